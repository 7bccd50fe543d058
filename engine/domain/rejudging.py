"""Whether an event of a log could have been made: events are judged again by the rules that judged the commands.

    impossible(state, sequence, event) → why not, or None
    may_have_made(command, events)     → whether a repeated request can be the one that made them

Pure. `judging.decide` is the only statement of the rules. Each event determines the command that led to it. If `decide`
refuses that command, or returns another event for it, no process of this program can have recorded the event. This file
judges only the event itself, by the state before it; `projections/verification/block_checks.py` checks what a voiding
must reverse.

RULES is the version of the rules. Each block holds the version that it was judged by (the column `rules`). If a rule
becomes stricter, RULES is raised, and the new rule holds only for blocks of the new version. So older logs stay valid.
Faults that are in YOUNGER are not held against any log.
"""

from collections.abc import Collection, Iterable
from collections.abc import Sequence as Items
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import UNSET

from engine.domain import commands, events
from engine.domain.commands import Command
from engine.domain.errors import Conflict, Fault, IdTaken, Impossible, Refusal, existing
from engine.domain.events import Delta, Event, Naming
from engine.domain.faults import TAKEN_OTHERWISE
from engine.domain.judging import (
    add_competition,
    decide,
    naming,
    opening,
    refuse_points,
    refuse_taken,
    register_competitor,
)
from engine.domain.state import RankingState, State
from engine.domain.terms import (
    COMPETITIONS_MAX,
    COMPETITORS_MAX,
    DELTA_MAX,
    DELTAS_MAX,
    EXCESS_MAX,
    NOT_SEEN,
    RankingId,
    Sequence,
)

RULES: Final = 1
YOUNGER: Final = frozenset({NOT_SEEN, TAKEN_OTHERWISE})

_C = TypeVar("_C", bound=Command)

_COMMANDS: Final[dict[type[Event], type[Any]]] = {
    command.makes: command for command in get_args(Command) if command.makes is not None
}


def impossible(state: State, sequence: Sequence, event: Event) -> str | None:
    """Why `event` cannot have been made in `state` as the event `sequence`. None: it can."""
    try:
        decided = _decided(state, sequence, event)
    except IdTaken:
        created = ", ".join(f"{name.removesuffix('_id')} {getattr(event, name)}" for name in event.creates)
        return f"could not be made: {created}: an id that exists"
    except Impossible as error:  # an earlier event caused this, and was reported
        return f"could not be made: {error}"
    except Refusal as refusal:
        if refusal.faults and YOUNGER.issuperset([fault.message for fault in refusal.faults]):
            return impossible(state, sequence, _without_faults(event, refusal.faults))
        faults = "; ".join(f"{fault.field} {fault.message}" for fault in refusal.faults)
        return f"could not be made: {faults or refusal.message.removesuffix('.')}"
    if decided is event or decided == event:
        return None
    return "could not be made: judging would have written other values"


def all_possible(state: State, given: Iterable[events.PointsAdded]) -> bool:
    """Whether judging would surely have made all these points, which have only a ranking and deltas: as `impossible`
    says, for each. They do not change what such points are judged by."""
    if state.publication.stage is not None:
        return False
    by_ranking: dict[RankingId, list[Delta]] = {}
    for points in given:
        if not 1 <= len(points.deltas) <= DELTAS_MAX:
            return False
        of_ranking = by_ranking.get(points.ranking_id)
        if of_ranking is None:
            of_ranking = by_ranking[points.ranking_id] = []
        of_ranking += points.deltas
    for ranking_id, deltas in by_ranking.items():
        ranking = state.rankings.get(ranking_id)
        if ranking is None or ranking.closed_at is not None:
            return False
        unity_ids = {delta.unity_id for delta in deltas}
        if not unity_ids <= ranking.unities.keys() or not unity_ids.isdisjoint(ranking.of_results):
            return False
        enrolled = ranking.participants.lookup()
        if not all(map(enrolled.__contains__, {delta.competitor_id for delta in deltas})):
            return False
        amounts = [delta.amount for delta in deltas]
        if min(amounts) < -DELTA_MAX or max(amounts) > DELTA_MAX:
            return False
    return True


def _without_faults(event: Event, faults: Iterable[Fault]) -> Event:
    """The event with other texts in the fields that have faults, so that only the rest of it is judged."""
    return msgspec.structs.replace(event, **{one.field: _other(getattr(event, one.field)) for one in faults})


def _other(text: Any) -> Any:
    if isinstance(text, str):
        return f"x{text}"
    return {key: _other(one) for key, one in text.items()} if isinstance(text, dict) else tuple(map(_other, text))


def may_have_made(command: Command, made: Items[Event]) -> bool:
    """Whether `command`, from a request of the same operation and path, can have made these events. This is doubtful
    only if personal fields of an event were erased; then compares everything that is left of the events."""
    if not any(isinstance(event, Naming) and event.commitment is not UNSET for event in made):
        return True
    asked = command.items if isinstance(command, commands.RegisterCompetitors) else (command,)
    return len(asked) == len(made) and all(map(_may_have_made_one, asked, made))


def _may_have_made_one(command: Command, event: Event) -> bool:
    if not isinstance(command, commands.RegisterCompetitor | commands.ChangeCompetitor):
        return False
    if not isinstance(event, Naming) or command.parent_id != event.parent_id:
        return False
    if event.commitment is not UNSET:
        return True
    return msgspec.structs.replace(naming(command), competitor_id=event.competitor_id) == event


def _decided(state: State, sequence: Sequence, event: Event) -> Event:
    """The event that judging returns for the command behind `event`. Raises a Refusal, and IdTaken."""
    if state.publication.stage is not None and isinstance(event, _JUDGED_APART):
        raise Conflict(f"This tournament is {state.publication.stage}.")
    match event:
        case events.PointsScored():
            _refuse_scored(state, sequence, event)
            return event
        case events.PointsAdded():  # nearly first, because most events are these
            return _decided_points(state, event)
        case events.PointsReversed():
            _refuse_reversal(state, sequence, event)
            return event
        case events.PointsExpired():
            _refuse_expiry(state, event)
            return event
        case events.TournamentOpened():
            if sequence != 1:
                raise Conflict("The tournament is already open.")
            return opening(event.name, event.slug)
        case events.EventSetAside() | events.Ignored():
            return event
        case events.CompetitorRegistered() | events.CompetitorChanged() if event.commitment is not UNSET:
            stand_in = msgspec.structs.replace(event, name="erased", commitment=UNSET)
            decided = _decided(state, sequence, stand_in)
            return event if decided == stand_in else decided
        case events.CompetitorRegistered():
            _refuse_excess(state.competitors, COMPETITORS_MAX, "competitors")
            refuse_taken(state, (event.competitor_id,))
            return register_competitor(state, _asked(commands.RegisterCompetitor, event))
        case events.CompetitionAdded():
            _refuse_excess(state.competitions, COMPETITIONS_MAX, "competitions")
            refuse_taken(state, (event.competition_id,))
            return add_competition(state, _asked(commands.AddCompetition, event))
    return decide(state, _command(sequence, event))[0]


_JUDGED_APART: Final = (
    *(events.PointsAdded, events.PointsReversed),
    *(events.CompetitorRegistered, events.CompetitionAdded),
)
"""Events that are not judged by `decide`, which asks for the stage of the tournament."""


def _decided_points(state: State, event: events.PointsAdded) -> Event:
    if event.part is not None and event.part[0] > event.part[1]:
        raise Conflict(f"There is no part {event.part[0]} of {event.part[1]}.")
    if event.results:
        asked = commands.AddPoints(
            ranking_id=event.ranking_id,
            deltas=(*event.deltas, *event.results),
            competition_id=event.competition_id,
            reason=event.reason,
        )
        return msgspec.structs.replace(decide(state, asked)[0], part=event.part)
    if refuse_points(state, event) and any(
        delta.unity_id in state.rankings[event.ranking_id].of_results for delta in event.deltas
    ):
        raise Conflict("It adds deltas in a unity that counts results.")
    return event if event.reason is None else msgspec.structs.replace(event, reason=event.reason.strip())


def _refuse_reversal(state: State, sequence: Sequence, event: events.PointsReversed) -> None:
    if event.competition_id is not None:
        existing(state.competitions, "competition", event.competition_id)
    elif event.undone is None:
        raise Conflict("It names no competition, and undoes nothing.")
    ranking = _ranking_of(state, event)
    if event.reverses >= sequence:
        raise Conflict(f"Event {event.reverses} is not before it.")
    if (event.undone is not None) + (event.struck is not None) + bool(event.replaced) > 1:
        raise Conflict("It names two causes.")
    if event.undone is not None and event.undone == (event.reverses in ranking.undone):
        raise Conflict(f"Event {event.reverses} is already undone, or not undone.")


def _refuse_scored(state: State, sequence: Sequence, event: events.PointsScored) -> None:
    if event.competition_id is None:
        raise Conflict("It names no competition.")
    existing(state.competitions, "competition", event.competition_id)
    ranking = _ranking_of(state, event)
    for line in (*event.silent, *event.given_results):
        existing(ranking.unities, "unity", line.unity_id)
        if (line.unity_id in ranking.of_results) is not isinstance(line, events.Scored):
            raise Conflict(f"Unity {line.unity_id} does not count such a line.")
    if not (event.given or event.given_results):
        raise Conflict("It gives nothing.")
    if event.instead_of is not None and event.instead_of >= sequence:
        raise Conflict(f"Event {event.instead_of} is not before it.")


def _refuse_expiry(state: State, event: events.PointsExpired) -> None:
    if not events.changed_by(event):
        raise Conflict("It expires no points.")
    ranking = _ranking_of(state, event)
    for line in events.changed_by(event):
        if existing(ranking.unities, "unity", line.unity_id).expiry is None:
            raise Conflict(f"Points of unity {line.unity_id} do not expire.")


def _ranking_of(
    state: State, event: events.PointsScored | events.PointsReversed | events.PointsExpired
) -> RankingState:
    """The ranking of the event. Raises Conflict if it is closed, or if the event has deltas in a unity that counts
    results, or totals in one that does not."""
    ranking = existing(state.rankings, "ranking", event.ranking_id)
    if ranking.closed_at is not None:
        raise Conflict(f"Ranking {event.ranking_id} is closed.")
    for delta in event.deltas:
        existing(ranking.unities, "unity", delta.unity_id)
        if delta.unity_id in ranking.of_results:
            raise Conflict(f"Unity {delta.unity_id} counts results, not deltas.")
    for total in event.totals:
        if total.unity_id not in ranking.of_results:
            raise Conflict(f"Unity {total.unity_id} counts no results.")
    return ranking


def _command(sequence: Sequence, event: Event) -> Command:
    """The command that leads to `event`, the event `sequence`."""
    head = Sequence(sequence - 1)
    match event:
        case events.CompetitionVoided():
            return commands.VoidCompetition(competition_id=event.competition_id, caused={})
        case events.CompetitionUnvoided():
            return commands.UnvoidCompetition(competition_id=event.competition_id, caused={})
        case events.CompetitorsStruck():
            return commands.StrikeCompetitors(
                competition_id=event.competition_id, competitors=event.competitors, caused={}
            )
        case events.CompetitorsUnstruck():
            return commands.UnstrikeCompetitors(
                competition_id=event.competition_id, competitors=event.competitors, caused={}
            )
        case events.RankingHidden() | events.RankingShown():
            hidden = isinstance(event, events.RankingHidden)
            return commands.ChangeVisibility(ranking_id=event.ranking_id, hidden=hidden)
        case events.TournamentPublished():
            return commands.ChangePublication(published=True)
        case events.TournamentUnpublished():
            return commands.ChangePublication(published=False)
        case events.PublicationFrozen():
            return commands.ChangePublication(freeze=event.at, head=head)
        case events.PublicationRevealed():
            return commands.ChangePublication(reveal="all" if event.to is None else event.to, head=head)
        case _:
            command: Command = _asked(_COMMANDS[type(event)], event)
            return command


def _asked(command: type[_C], event: Event) -> _C:
    fields = msgspec.structs.asdict(event)
    for name in ("commitment", "scored"):
        fields.pop(name, None)
    return command(**fields)


def _refuse_excess(those: Collection[object], most: int, what: str) -> None:
    if len(those) >= most + EXCESS_MAX:
        raise Conflict(f"There are {len(those):,} {what}, more than {EXCESS_MAX:,} beyond the {most:,} allowed.")
