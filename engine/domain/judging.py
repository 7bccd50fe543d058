"""How requests are judged: what each leads to, in the state that a tournament is in.

    decide(state, command) → events      raises a Refusal, or IdTaken

Pure: a function of its arguments alone. It only reads the state, and of the state only what the protocols here name.
The board (`projections/board/board.py`) satisfies them. Totals, for example, are not part of it: no delta is refused
because of a sum.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol, TypeVar, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from engine.domain import commands, events
from engine.domain.commands import Command
from engine.domain.errors import Conflict, Fault, Forbidden, IdTaken, Impossible, Unacceptable, existing
from engine.domain.events import Delta, Event, Result, Scored, Total
from engine.domain.expiry import ExpiresOn, Expiry, duration
from engine.domain.notation import DECIMALS_MAX, TimeUnit
from engine.domain.presentation import accent_fault, language_fault, logo_fault, zone_fault
from engine.domain.terms import (
    BEST_MAX,
    COMPETITIONS_MAX,
    COMPETITORS_MAX,
    CRITERIA_MAX,
    DELTA_MAX,
    DELTAS_MAX,
    ENROLLED_MAX,
    ITEMS_MAX,
    PARTICIPANTS_MAX,
    RANKINGS_MAX,
    RESULT_MAX,
    REVERSED_LINES_MAX,
    SCORE_PARTICIPANTS_MAX,
    TAGS_MAX,
    UNDONE_MAX,
    UNITIES_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    Sort,
    UnityId,
    description_fault,
    name_fault,
)

CIRCLE_SHOWN_MAX: Final = 500
"""Characters that name a circle of parents."""

_T = TypeVar("_T")
_H = TypeVar("_H", bound=Hashable)
_N = TypeVar("_N", str, str | None, str | UnsetType)

# ── What judging needs to know ──────────────────────────────────────────────────────────────────────────


class CompetitorState(Protocol):
    """`erased` is the event that erased it; None or 0: none has yet."""

    @property
    def parent_id(self) -> CompetitorId | None: ...
    @property
    def erased(self) -> Sequence | None: ...


class CompetitionState(Protocol):
    """`voided_at` is None while the competition counts; `struck` has the competitors for whom it does not.
    `started_at`: its date, if it `is_dated`; else `created_at`."""

    @property
    def participants(self) -> tuple[CompetitorId, ...]: ...
    @property
    def voided_at(self) -> datetime | None: ...
    @property
    def struck(self) -> Collection[CompetitorId]: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def is_dated(self) -> bool: ...


class UnityState(Protocol):
    """`expiry` is None if its points do not expire."""

    @property
    def name(self) -> str: ...
    @property
    def expiry(self) -> Expiry | None: ...


class GivenResult(Protocol):
    """A result that an event gave."""

    @property
    def sequence(self) -> Sequence: ...
    @property
    def recorded_at(self) -> datetime: ...
    @property
    def competition_id(self) -> CompetitionId | None: ...
    @property
    def result(self) -> int: ...


ResultLine = tuple[Sequence, int, int]
"""A result that an event gave: its sequence, the number of the line in it, and the result."""


class ResultsState(Protocol):
    """The results of a ranking. `of` has those of a competitor in a unity, with the lines `given_back`; the total is
    the first of them that counts. Those that do not count may be missing."""

    def of(
        self, unity_id: UnityId, competitor_id: CompetitorId, given_back: Iterable[ResultLine] = ()
    ) -> Iterator[GivenResult]: ...


class RankingState(Protocol):
    """`closed_at` is None while the ranking is open; `participants` finds a competitor at once; `unities` has the main
    one first; `undone` has the events whose points are undone, each with the event that undid it. `of_results` has the
    unities that count results, and `results` these, or None where they must be read from the log first. `special` has
    the unities that count results, and those whose points expire."""

    @property
    def closed_at(self) -> datetime | None: ...
    @property
    def participants(self) -> Collection[CompetitorId]: ...
    @property
    def unities(self) -> Mapping[UnityId, UnityState]: ...
    @property
    def undone(self) -> Mapping[Sequence, Sequence]: ...
    @property
    def of_results(self) -> Collection[UnityId]: ...
    @property
    def results(self) -> ResultsState | None: ...
    @property
    def special(self) -> Collection[UnityId]: ...


class PublicationState(Protocol):
    """`frozen_at` is None while what the public sees is not held; `seen` has the last sequence that it has seen of a
    log with this head; `hidden` has the rankings that it does not see."""

    @property
    def hidden(self) -> Collection[RankingId]: ...
    @property
    def published(self) -> bool: ...
    @property
    def frozen_at(self) -> Sequence | None: ...
    def seen(self, head: Sequence) -> Sequence: ...


class State(Protocol):
    """A tournament, as far as decisions look at it."""

    @property
    def competitors(self) -> Mapping[CompetitorId, CompetitorState]: ...
    @property
    def competitions(self) -> Mapping[CompetitionId, CompetitionState]: ...
    @property
    def rankings(self) -> Mapping[RankingId, RankingState]: ...
    @property
    def publication(self) -> PublicationState: ...


class ExpiryTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What judging needs where points expire. `now`: everything due by then has expired in the state; `until`: what the
    command is to have expired as well. `given`: points that may count otherwise by the command, with the time of each.
    """

    now: datetime
    until: datetime | None = None
    given: Mapping[Sequence, tuple[datetime, events.PointsAdded]] = msgspec.field(default_factory=dict)


class NothingDue(Exception):
    """No points expire by a command that has points expire."""


class LacksResults(Exception):
    """The `results` of these rankings must be read before the command can be judged."""

    def __init__(self, ranking_ids: Iterable[RankingId]) -> None:
        super().__init__()
        self.ranking_ids = tuple(ranking_ids)


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────────


def decide(state: State, command: Command) -> tuple[Event, ...]:
    """The events that `command` leads to in `state`: all of them are recorded, or none.

    Raises NotFound if it addresses what does not exist; Conflict if a ranking's being open, closed or hidden, a
    competition's being voided or not, points' being undone or not, or the tournament's being published or frozen or
    not, forbids it; Forbidden if it is about the event of another sender; Unacceptable with every fault of its fields,
    or if a limit would be exceeded; IdTaken if an id that it brings exists already.
    """
    match command:
        case commands.AddPoints():
            return (_add_points(state, command),)
        case commands.AddPointsToRankings():
            return _add_points_to_rankings(state, command)
        case commands.RegisterCompetitor():
            _refuse_beyond(state.competitors, COMPETITORS_MAX, "This tournament", "competitors")
            return (register_competitor(state, command),)
        case commands.RegisterCompetitors():
            return _register_competitors(state, command)
        case commands.ChangeCompetitor():
            return (_change_competitor(state, command),)
        case commands.EraseCompetitor():
            if existing(state.competitors, "competitor", command.competitor_id).erased:
                raise Conflict(f"Competitor {command.competitor_id} is erased already.")
            return (events.CompetitorErased(competitor_id=command.competitor_id),)
        case commands.AddCompetition():
            _refuse_beyond(state.competitions, COMPETITIONS_MAX, "This tournament", "competitions")
            return (add_competition(state, command),)
        case commands.AddCompetitions():
            return _add_competitions(state, command)
        case commands.ChangeCompetition():
            return (_change_competition(state, command),)
        case commands.ExpirePoints():
            raise NothingDue
        case commands.CreateRanking():
            return (_create_ranking(state, command),)
        case commands.ModifyRanking():
            return (_modify_ranking(state, command),)
        case commands.ChangeRankingInformation():
            return (_change_ranking_information(state, command),)
        case commands.ChangeParticipants():
            return (_change_participants(state, command),)
        case commands.AddUnity():
            return (_add_unity(state, command),)
        case commands.ChangeUnity():
            return (_change_unity(state, command),)
        case commands.DeclareClassification():
            return (_declare_classification(state, command),)
        case commands.VoidCompetition():
            return _void_competition(state, command)
        case commands.UnvoidCompetition():
            return _unvoid_competition(state, command)
        case commands.StrikeCompetitors() | commands.UnstrikeCompetitors():
            return _strike_competitors(state, command)
        case commands.ReversePoints():
            return _reverse_points(state, command)
        case commands.CloseRanking():
            if existing(state.rankings, "ranking", command.ranking_id).closed_at is not None:
                raise Conflict(f"Ranking {command.ranking_id} is closed already.")
            return (events.RankingClosed(ranking_id=command.ranking_id),)
        case commands.ReopenRanking():
            if existing(state.rankings, "ranking", command.ranking_id).closed_at is None:
                raise Conflict(f"Ranking {command.ranking_id} is open already.")
            return (events.RankingReopened(ranking_id=command.ranking_id),)
        case commands.ChangeVisibility():
            return (_change_visibility(state, command),)
        case commands.OrderRankings():
            return (_order_rankings(state, command),)
        case commands.ChangePublication():
            return (_change_publication(state.publication, command),)
        case commands.RenameTournament():
            _refuse_if_any(_name_faults("name", command.name))
            return (events.TournamentRenamed(name=command.name.strip()),)
        case commands.ChangePresentation():
            return (_change_presentation(command),)
        case _:
            assert_never(command)


def decide_at(state: State, command: Command, times: ExpiryTimes) -> tuple[Event, ...]:
    """As `decide`, where points expire. Raises NothingDue too."""
    match command:
        case commands.AddPoints() | commands.AddPointsToRankings():
            added = decide(state, command)
            return *added, *_too_old(state, command.competition_id, added, times)
        case commands.ChangeCompetition():
            changed = _change_competition(state, command)
            return changed, *_dated_otherwise(state, changed, times)
        case commands.ExpirePoints():
            open_ones = [one for one, ranking in state.rankings.items() if ranking.closed_at is None]
            if expired := _expired(state, times, open_ones):
                return expired
            raise NothingDue
        case commands.VoidCompetition():
            return _void_competition(state, command, times)
        case commands.UnvoidCompetition():
            return _unvoid_competition(state, command, times)
        case commands.StrikeCompetitors() | commands.UnstrikeCompetitors():
            return _strike_competitors(state, command, times)
        case commands.ReversePoints():
            return _reverse_points(state, command, times)
        case commands.ReopenRanking():
            return *decide(state, command), *_expired(state, times, [command.ranking_id])
        case _:
            return decide(state, command)


def _add_points(state: State, command: commands.AddPoints) -> Event:
    if refuse_points(state, command):
        of_results = state.rankings[command.ranking_id].of_results
        reason = command.reason and command.reason.strip()
        return _with_results(of_results, command.ranking_id, command.deltas, command.competition_id, reason)
    return events.PointsAdded(
        ranking_id=command.ranking_id,
        deltas=command.deltas,
        competition_id=command.competition_id,
        reason=command.reason and command.reason.strip(),
    )


def _with_results(
    of_results: Collection[UnityId],
    ranking_id: RankingId,
    deltas: tuple[Delta, ...],
    competition_id: CompetitionId | None,
    reason: str | None,
    part: tuple[int, int] | None = None,
) -> events.PointsAdded:
    """Points in a ranking that has unities of results."""
    sums: list[Delta] = []
    results: list[Scored] = []
    for delta in deltas:
        if delta.unity_id in of_results:
            results.append(Scored(delta.competitor_id, delta.unity_id, delta.amount))
        else:
            sums.append(delta)
    return events.PointsAdded(
        ranking_id=ranking_id,
        deltas=tuple(sums),
        results=tuple(results),
        competition_id=competition_id,
        reason=reason,
        part=part,
    )


def refuse_points(state: State, points: commands.AddPoints | events.PointsAdded) -> Collection[UnityId]:
    """Raises a Refusal, as `decide` does, if these points cannot be given in `state`. Returns the unities of the
    ranking that are special."""
    ranking = _open_ranking(state, points.ranking_id)
    if len(points.deltas) > DELTAS_MAX:
        raise _unacceptable([Fault("participants_delta", f"must hold at most {DELTAS_MAX} deltas")])
    faults = _delta_faults(ranking, points.deltas)
    if points.competition_id is not None:  # nothing is judged as often as points, mostly without cause and reason
        faults += _cause_faults(state, points.competition_id, points.deltas)
    if points.reason is not None:
        faults += _name_faults("reason", points.reason)
    if faults:
        raise _unacceptable(faults)
    return ranking.special


def _add_points_to_rankings(state: State, command: commands.AddPointsToRankings) -> tuple[Event, ...]:
    closed = [str(one.ranking_id) for one in command.rankings if _is_closed(state, one.ranking_id)]
    if closed:
        raise Conflict(f"These rankings are closed; have them reopened first: {', '.join(closed)}.")
    if sum([len(one.deltas) for one in command.rankings]) > DELTAS_MAX:
        raise _unacceptable([Fault("rankings_delta", f"must hold at most {DELTAS_MAX} deltas")])
    faults = [] if command.rankings else [Fault("rankings_delta", "must name at least one ranking")]
    named = Counter([one.ranking_id for one in command.rankings])
    faults += [Fault("rankings_delta", f"ranking {r} is named more than once") for r, n in named.items() if n > 1]
    for number, one in enumerate(command.rankings):
        its = f"rankings_delta[{number}]"
        ranking = state.rankings.get(one.ranking_id)
        if ranking is None:
            faults.append(Fault(f"{its}.ranking_id", f"ranking {one.ranking_id} is not in this tournament"))
        else:
            faults += _within(its, _delta_faults(ranking, one.deltas))
    deltas = [delta for one in command.rankings for delta in one.deltas]
    faults += [*_cause_faults(state, command.competition_id, deltas), *_name_faults("reason", command.reason)]
    _refuse_if_any(faults)
    reason, count = _stripped(command.reason), len(command.rankings)
    return tuple(
        [
            _with_results(
                state.rankings[one.ranking_id].of_results,
                one.ranking_id,
                one.deltas,
                command.competition_id,
                reason,
                None if count == 1 else (number, count),
            )
            for number, one in enumerate(command.rankings, start=1)
        ]
    )


def _delta_faults(ranking: RankingState, deltas: tuple[Delta, ...]) -> list[Fault]:
    faults: list[Fault] = []
    if not deltas:
        faults.append(Fault("participants_delta", "must hold at least one delta"))
    enrolled = ranking.participants
    unities = ranking.unities
    for delta in deltas:
        if delta.competitor_id not in enrolled:
            faults.append(Fault("participants_delta", f"competitor {delta.competitor_id} is not in this ranking"))
        if delta.unity_id not in unities:
            faults.append(Fault("participants_delta", f"unity {delta.unity_id} is not in this ranking"))
        if not -DELTA_MAX <= delta.amount <= DELTA_MAX:
            most = RESULT_MAX if delta.unity_id in ranking.of_results else DELTA_MAX
            if not -most <= delta.amount <= most:
                faults.append(Fault("participants_delta", f"delta {delta.amount} is not within ±{most}"))
    return faults


def _cause_faults(state: State, competition_id: CompetitionId | None, deltas: Iterable[Delta]) -> list[Fault]:
    if competition_id is None:
        return []
    competition = state.competitions.get(competition_id)
    if competition is None:
        return [Fault("competition_id", f"competition {competition_id} is not in this tournament")]
    if competition.voided_at is not None:
        return [Fault("competition_id", f"competition {competition_id} is voided")]
    struck = competition.struck and dict.fromkeys(
        d.competitor_id for d in deltas if d.competitor_id in competition.struck
    )
    return [Fault("competition_id", f"competitor {one} is struck from competition {competition_id}") for one in struck]


def _register_competitors(state: State, command: commands.RegisterCompetitors) -> tuple[Event, ...]:
    _refuse_beyond(state.competitors, COMPETITORS_MAX, "This tournament", "competitors", more=len(command.items))
    _refuse_taken_twice([item.competitor_id for item in command.items])
    return _each(command.items, lambda item: register_competitor(state, item))


def register_competitor(state: State, command: commands.RegisterCompetitor) -> Event:
    """As `decide`, however many competitors there are."""
    tags = _all_stripped(command.tags)
    faults = [
        *_name_faults("name", command.name),
        *_tag_faults(tags),
        *_color_faults(command.color),
        *_parent_faults(state, command.parent_id),
    ]
    _refuse_if_any(faults)
    _refuse_taken(command.competitor_id, state.competitors)
    return events.CompetitorRegistered(
        competitor_id=command.competitor_id,
        name=command.name.strip(),
        tags=tags,
        color=command.color or events.COLOR_DEFAULT,
        parent_id=command.parent_id,
    )


def _change_competitor(state: State, command: commands.ChangeCompetitor) -> Event:
    if existing(state.competitors, "competitor", command.competitor_id).erased:
        raise Conflict(f"Competitor {command.competitor_id} was erased, and cannot be changed.")
    tags = UNSET if command.tags is UNSET else _all_stripped(command.tags or ())
    parent_id = None if command.parent_id is UNSET else command.parent_id
    faults = [
        *_name_faults("name", command.name),
        *_tag_faults(() if tags is UNSET else tags),
        *_color_faults(command.color),
        *_parent_faults(state, parent_id),
        *_circle_faults(state, command.competitor_id, parent_id),
    ]
    _refuse_if_any(faults)
    return events.CompetitorChanged(
        competitor_id=command.competitor_id,
        name=_stripped(command.name),
        tags=tags,
        color=_instead(events.COLOR_DEFAULT, command.color),
        parent_id=command.parent_id,
    )


def _add_competitions(state: State, command: commands.AddCompetitions) -> tuple[Event, ...]:
    _refuse_beyond(state.competitions, COMPETITIONS_MAX, "This tournament", "competitions", more=len(command.items))
    _refuse_taken_twice([item.competition_id for item in command.items])
    if sum([len(item.participants) for item in command.items]) > PARTICIPANTS_MAX:
        raise _unacceptable([Fault("items", f"must name at most {PARTICIPANTS_MAX} participants in all")])
    return _each(command.items, lambda item: add_competition(state, item))


def add_competition(state: State, command: commands.AddCompetition) -> Event:
    """As `decide`, however many competitions there are."""
    result, result_faults = _result(command.result, command.participants)
    faults = [
        *_participant_faults(state, command.participants),
        *_time_faults(command.started_at),
        *_location_faults(command.location),
        *result_faults,
        *_winner_faults(command.winner_id, command.participants),
    ]
    _refuse_if_any(faults)
    _refuse_taken(command.competition_id, state.competitions)
    return events.CompetitionAdded(
        competition_id=command.competition_id,
        group_id=command.group_id,
        started_at=command.started_at,
        location=(command.location or "").strip(),
        participants=command.participants,
        result=result,
        winner_id=command.winner_id,
    )


def _change_competition(state: State, command: commands.ChangeCompetition) -> events.CompetitionChanged:
    participants = existing(state.competitions, "competition", command.competition_id).participants
    result: Result | None | UnsetType = UNSET
    result_faults: list[Fault] = []
    if command.result is not UNSET:
        result, result_faults = _result(command.result, participants)
    faults = [
        *_time_faults(None if command.started_at is UNSET else command.started_at),
        *_location_faults(None if command.location is UNSET else command.location),
        *result_faults,
        *_winner_faults(None if command.winner_id is UNSET else command.winner_id, participants),
    ]
    _refuse_if_any(faults)
    return events.CompetitionChanged(
        competition_id=command.competition_id,
        started_at=command.started_at,
        location=_stripped(_instead("", command.location)),
        result=result,
        winner_id=command.winner_id,
    )


def _void_competition(
    state: State, command: commands.VoidCompetition, times: ExpiryTimes | None = None
) -> tuple[Event, ...]:
    if existing(state.competitions, "competition", command.competition_id).voided_at is not None:
        raise Conflict(f"Competition {command.competition_id} is voided already.")
    if command.only is not None and holds_others(state, command):
        raise Conflict(f"Competition {command.competition_id} holds points of others.")
    voided = events.CompetitionVoided(competition_id=command.competition_id)
    return voided, *_reversals(state, command.competition_id, command.caused, times, takes_back=True)


def holds_others(state: State, command: commands.VoidCompetition) -> bool:
    """Whether the competition holds points of other events than `only`. Those that were undone do not count."""
    caused, only = command.caused or {}, command.only or ()
    return any(
        sequence not in only and sequence not in state.rankings[points.ranking_id].undone
        for sequence, points in caused.items()
    )


def _unvoid_competition(
    state: State, command: commands.UnvoidCompetition, times: ExpiryTimes | None = None
) -> tuple[Event, ...]:
    if existing(state.competitions, "competition", command.competition_id).voided_at is None:
        raise Conflict(f"Competition {command.competition_id} is not voided.")
    unvoided = events.CompetitionUnvoided(competition_id=command.competition_id)
    return unvoided, *_reversals(state, command.competition_id, command.caused, times, takes_back=False)


def _strike_competitors(
    state: State, command: commands.StrikeCompetitors | commands.UnstrikeCompetitors, times: ExpiryTimes | None = None
) -> tuple[Event, ...]:
    competition_id, strike = command.competition_id, isinstance(command, commands.StrikeCompetitors)
    competition = existing(state.competitions, "competition", competition_id)
    faults = _participant_faults(state, command.competitors, "competitors")
    if not command.competitors:
        faults.append(Fault("competitors", "must name at least one competitor"))
    _refuse_if_any(faults)
    if wrong := [str(one) for one in command.competitors if (one in competition.struck) is strike]:
        state_of = "struck already" if strike else "not struck"
        raise Conflict(f"These competitors are {state_of}: {', '.join(wrong)}.")
    if strike and len(competition.struck) + len(command.competitors) > PARTICIPANTS_MAX:
        raise Unacceptable(f"Competition {competition_id} can have at most {PARTICIPANTS_MAX:,} struck competitors.")
    kind = events.CompetitorsStruck if strike else events.CompetitorsUnstruck
    fact = kind(competition_id=competition_id, competitors=command.competitors)
    if competition.voided_at is not None:
        return (fact,)
    only = command.competitors
    return fact, *_reversals(state, competition_id, command.caused, times, takes_back=strike, only=only, struck=strike)


def _reversals(
    state: State,
    competition_id: CompetitionId,
    caused: commands.CausedPoints | None,
    times: ExpiryTimes | None,
    *,
    takes_back: bool,
    only: Iterable[CompetitorId] | None = None,
    struck: bool | None = None,
) -> list[Event]:
    """One event for each of `caused` that is not undone, with the lines of `only` these competitors, or of all that
    are not struck, including those that have left the ranking. `takes_back`: the points; otherwise they are given back.

    Raises Conflict if one of the rankings is closed, Unacceptable beyond REVERSED_LINES_MAX, and LacksResults.
    """
    assert caused is not None
    counting = {s: points for s, points in caused.items() if s not in state.rankings[points.ranking_id].undone}
    among = frozenset(state.competitions[competition_id].struck if only is None else only)
    if among:
        wanted = only is not None
        counting = {
            s: some
            for s, points in counting.items()
            if (some := of_some(points, lambda one: (one in among) is wanted)) and (some.deltas or some.results)
        }
    if times is not None:
        counting = {s: unexpired(state, times.given[s][0], points, times.now) for s, points in counting.items()}
        counting = {s: points for s, points in counting.items() if events.changed_by(points)}
    if closed := _closed(state, counting.values()):
        raise Conflict(
            f"Competition {competition_id} gave points in closed rankings; have them reopened first: {closed}."
        )
    if sum(len(points.deltas) + len(points.results) for points in counting.values()) > REVERSED_LINES_MAX:
        raise Unacceptable(
            f"Competition {competition_id} gave more than {REVERSED_LINES_MAX} lines of deltas, "
            "more than can be reversed at once."
        )
    afterwards = Afterwards(competition_id=competition_id, only=None if only is None else among, counts=not takes_back)
    totals = _totals(state, counting, afterwards, {} if takes_back else counting)
    return [
        events.PointsReversed(
            ranking_id=points.ranking_id,
            deltas=_times(-1 if takes_back else 1, points.deltas),
            competition_id=competition_id,
            reverses=sequence,
            struck=struck,
            totals=_totals_of(points.results, totals),
        )
        for sequence, points in counting.items()
    ]


def of_some(points: events.PointsAdded, wanted: Callable[[CompetitorId], bool]) -> events.PointsAdded:
    """The points of those competitors who are wanted."""
    return msgspec.structs.replace(
        points,
        deltas=tuple([delta for delta in points.deltas if wanted(delta.competitor_id)]),
        results=tuple([delta for delta in points.results if wanted(delta.competitor_id)]),
    )


# ── Totals of results ───────────────────────────────────────────────────────────────────────────────────


class Afterwards(msgspec.Struct, frozen=True, kw_only=True):
    """What counts after a change otherwise than before it: the competition, for `only` these competitors if they are
    given; or the events `sequences`. `counts`: they count afterwards. `now`: by when results have expired then; None:
    none expires by the change. `dates`: those that competitions have only then."""

    competition_id: CompetitionId | None = None
    only: Container[CompetitorId] | None = None
    sequences: Container[Sequence] = ()
    counts: bool = True
    now: datetime | None = None
    dates: Mapping[CompetitionId, datetime | None] = msgspec.field(default_factory=dict)


_AS_NOW: Final = Afterwards()


def total_of_results(
    state: State,
    ranking_id: RankingId,
    results: ResultsState,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    afterwards: Afterwards = _AS_NOW,
    given_back: Iterable[ResultLine] = (),
) -> int | None:
    """The total of a competitor in a unity that counts results, of these `results` of the ranking. `given_back`: those
    that count afterwards and do not count now."""
    undone, competition_id = state.rankings[ranking_id].undone, afterwards.competition_id
    expiry = None if afterwards.now is None else state.rankings[ranking_id].unities[unity_id].expiry
    for one in results.of(unity_id, competitor_id, given_back):
        if one.sequence in afterwards.sequences:
            if not afterwards.counts:
                continue
        elif one.sequence in undone:
            continue
        if one.competition_id is not None:
            competition = state.competitions[one.competition_id]
            voided, struck = competition.voided_at is not None, competitor_id in competition.struck
            if one.competition_id == competition_id:
                if afterwards.only is None:
                    voided = not afterwards.counts
                elif competitor_id in afterwards.only:
                    struck = not afterwards.counts
            if voided or struck:
                continue
        if expiry is not None:
            assert afterwards.now is not None
            took_place = took_place_at(state, one.recorded_at, one.competition_id, afterwards.dates)
            if expiry.is_over(took_place, afterwards.now):
                continue
        return one.result
    return None


_Totals = Mapping[tuple[UnityId, CompetitorId], Total]


def _totals(
    state: State, points: commands.CausedPoints, afterwards: Afterwards, starting: commands.CausedPoints
) -> _Totals:
    """The totals of all who have a result in one of these events, whose lines start or stop counting. `starting`: those
    that start. Raises LacksResults."""
    rankings = {(d.unity_id, d.competitor_id): one.ranking_id for one in points.values() for d in one.results}
    results = {one: state.rankings[one].results for one in rankings.values()}
    if missing := [ranking_id for ranking_id, its in results.items() if its is None]:
        raise LacksResults(missing)
    given_back: dict[tuple[UnityId, CompetitorId], list[ResultLine]] = {named: [] for named in rankings}
    for sequence, one in starting.items():
        for number, result in enumerate(one.results):
            given_back[result.unity_id, result.competitor_id].append((sequence, number, result.amount))
    totals = {}
    for (unity_id, competitor_id), ranking_id in rankings.items():
        its, back = results[ranking_id], given_back[unity_id, competitor_id]
        assert its is not None
        total = total_of_results(state, ranking_id, its, unity_id, competitor_id, afterwards, back)
        totals[unity_id, competitor_id] = Total(competitor_id, unity_id, total)
    return totals


def _totals_of(results: Iterable[Delta], totals: _Totals) -> tuple[Total, ...]:
    """Those of the competitors and unities of these results, each once."""
    return tuple([totals[named] for named in dict.fromkeys((d.unity_id, d.competitor_id) for d in results)])


# ── Points that expire ──────────────────────────────────────────────────────────────────────────────────


def declared_date(state: State, competition_id: CompetitionId | None) -> datetime | None:
    """The date of the competition; None: none was declared, or there is no competition."""
    competition = None if competition_id is None else state.competitions.get(competition_id)
    return competition.started_at if competition is not None and competition.is_dated else None


def took_place_at(
    state: State,
    recorded_at: datetime,
    competition_id: CompetitionId | None,
    dates: Mapping[CompetitionId, datetime | None] = {},
) -> datetime:
    """When points took place that were recorded then. `dates`: those of competitions that are not as in `state`."""
    if competition_id is not None and competition_id in dates:
        return dates[competition_id] or recorded_at
    return declared_date(state, competition_id) or recorded_at


def now_of(ranking: RankingState, now: datetime) -> datetime:
    """By when what was due has expired in the ranking: closed ones stand still."""
    return now if ranking.closed_at is None else min(now, ranking.closed_at)


def over_by(ranking: RankingState, took_place: datetime, now: datetime) -> set[UnityId]:
    """The unities in which points of the ranking that took place then have expired by now."""
    expiries = {unity_id: ranking.unities[unity_id].expiry for unity_id in ranking.special}
    return {one for one, expiry in expiries.items() if expiry is not None and expiry.is_over(took_place, now)}


def of_unities(points: events.PointsAdded, wanted: Callable[[UnityId], bool]) -> events.PointsAdded:
    """The points in those unities that are wanted."""
    return msgspec.structs.replace(
        points,
        deltas=tuple([delta for delta in points.deltas if wanted(delta.unity_id)]),
        results=tuple([delta for delta in points.results if wanted(delta.unity_id)]),
    )


def unexpired(state: State, recorded_at: datetime, points: events.PointsAdded, now: datetime) -> events.PointsAdded:
    """The points, recorded then, without those that have expired by now."""
    ranking = state.rankings[points.ranking_id]
    if not ranking.special:
        return points
    over = over_by(ranking, took_place_at(state, recorded_at, points.competition_id), now_of(ranking, now))
    return of_unities(points, lambda one: one not in over)


def _too_old(
    state: State, competition_id: CompetitionId | None, added: Iterable[Event], times: ExpiryTimes
) -> tuple[Event, ...]:
    """What expires at once of points that are added."""
    date = declared_date(state, competition_id)
    if date is None:
        return ()
    expiring = _Expiring(state)
    for points in added:
        assert isinstance(points, events.PointsAdded)
        over = over_by(state.rankings[points.ranking_id], date, times.now)
        expiring.stop(_NOT_YET, points, over)
    return expiring.decided(times.now, _AS_NOW)


def _expired(state: State, times: ExpiryTimes, rankings: Items[RankingId]) -> tuple[Event, ...]:
    """What expires in these rankings by `times.until`, of the points that `times` has."""
    assert times.until is not None
    expiring = _Expiring(state)
    for sequence, (recorded_at, points) in times.given.items():
        ranking = state.rankings[points.ranking_id]
        if points.ranking_id in rankings and sequence not in ranking.undone:
            took_place = took_place_at(state, recorded_at, points.competition_id)
            before = over_by(ranking, took_place, now_of(ranking, times.now))
            expiring.stop(sequence, points, over_by(ranking, took_place, times.until) - before)
    return expiring.decided(times.until, Afterwards(now=times.until))


def _dated_otherwise(state: State, changed: events.CompetitionChanged, times: ExpiryTimes) -> tuple[Event, ...]:
    """What expires because the date of a competition is another, and what counts again because of that.

    Raises Conflict if that is so in a closed ranking.
    """
    if changed.started_at is UNSET:
        return ()
    date = changed.started_at
    if date == state.competitions[changed.competition_id].created_at:
        date = None  # it stands for none
    expiring = _Expiring(state)
    for sequence, (recorded_at, points) in times.given.items():
        ranking = state.rankings[points.ranking_id]
        if sequence not in ranking.undone:
            now = now_of(ranking, times.now)
            before = over_by(ranking, took_place_at(state, recorded_at, points.competition_id), now)
            after = over_by(ranking, date or recorded_at, now)
            expiring.start(sequence, points, before - after)
            expiring.stop(sequence, points, after - before)
    if closed := _closed(state, expiring.points):
        raise Conflict(
            f"By another date, points of competition {changed.competition_id} would count otherwise in closed "
            f"rankings; have them reopened first: {closed}."
        )
    return expiring.decided(times.now, Afterwards(now=times.now, dates={changed.competition_id: date}))


_NOT_YET: Final = Sequence(0)
"""The sequence of an event that is being judged."""


class _Expiring:
    """The lines that stop counting because they have expired, or start because they have not."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stopping: list[tuple[Sequence, events.PointsAdded]] = []
        self._starting: list[tuple[Sequence, events.PointsAdded]] = []

    @property
    def points(self) -> list[events.PointsAdded]:
        return [points for _, points in (*self._stopping, *self._starting)]

    def stop(self, sequence: Sequence, points: events.PointsAdded, over: Container[UnityId]) -> None:
        """The points of this event that count stop doing so in the unities `over`."""
        self._take(self._stopping, sequence, points, over)

    def start(self, sequence: Sequence, points: events.PointsAdded, back: Container[UnityId]) -> None:
        """Those that would count start doing so in the unities `back`."""
        self._take(self._starting, sequence, points, back)

    def _take(
        self,
        taken: list[tuple[Sequence, events.PointsAdded]],
        sequence: Sequence,
        points: events.PointsAdded,
        unities: Container[UnityId],
    ) -> None:
        its = of_unities(_counting(self._state, points), lambda one: one in unities)
        if events.changed_by(its):
            taken.append((sequence, its))

    def decided(self, boundary: datetime, afterwards: Afterwards) -> tuple[Event, ...]:
        """One for each ranking. Raises LacksResults."""
        starting = dict(self._starting)
        deltas: dict[RankingId, list[Delta]] = {}
        results: dict[RankingId, list[Delta]] = {}
        touched: dict[Sequence, events.PointsAdded] = {}
        for number, (_, points) in enumerate((*self._stopping, *self._starting)):
            sign: Literal[-1, 1] = -1 if number < len(self._stopping) else 1
            deltas.setdefault(points.ranking_id, []).extend(_times(sign, points.deltas))
            results.setdefault(points.ranking_id, []).extend(points.results)
            touched[Sequence(number)] = points
        totals = _totals(self._state, touched, afterwards, starting)
        return tuple(
            [
                events.PointsExpired(
                    ranking_id=ranking_id,
                    boundary=boundary,
                    deltas=summed(its),
                    totals=_totals_of(results[ranking_id], totals),
                )
                for ranking_id, its in deltas.items()
            ]
        )


def summed(lines: Iterable[Delta]) -> tuple[Delta, ...]:
    """For each competitor and unity one line with the sum, be it 0, or several where one cannot hold it."""
    sums: dict[tuple[CompetitorId, UnityId], int] = {}
    for line in lines:
        named = line.competitor_id, line.unity_id
        sums[named] = sums.get(named, 0) + line.amount
    found: list[Delta] = []
    for (competitor_id, unity_id), amount in sums.items():
        left = amount
        while abs(left) > DELTA_MAX:
            part = DELTA_MAX if left > 0 else -DELTA_MAX
            found.append(Delta(competitor_id, unity_id, part))
            left -= part
        found.append(Delta(competitor_id, unity_id, left))
    return tuple(found)


def _lasts_faults(prefix: str, lasts: str | None, expires_on: ExpiresOn | None) -> list[Fault]:
    faults: list[Fault] = []
    if lasts is not None and duration(lasts) is None:
        about = "must be a duration of ISO 8601 in weeks, days, hours and minutes, such as P52W, P90D or PT1H30M"
        faults.append(Fault(f"{prefix}lasts", about))
    if lasts is not None and expires_on is None:
        faults.append(Fault(f"{prefix}expires_on", f"must be sent with {prefix}lasts"))
    if lasts is None and expires_on is not None:
        faults.append(Fault(f"{prefix}lasts", f"must be sent with {prefix}expires_on"))
    return faults


def _closed(state: State, points: Iterable[events.PointsAdded | events.PointsExpired]) -> str:
    """The closed ones of the rankings that these points were added in, as text."""
    touched = dict.fromkeys(one.ranking_id for one in points)
    return ", ".join([str(ranking_id) for ranking_id in touched if state.rankings[ranking_id].closed_at is not None])


def _times(sign: Literal[-1, 1], deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    return tuple([Delta(d.competitor_id, d.unity_id, sign * d.amount) for d in deltas])


def _reverse_points(
    state: State, command: commands.ReversePoints, times: ExpiryTimes | None = None
) -> tuple[Event, ...]:
    existing(state.rankings, "ranking", command.ranking_id)
    undo, roots = _undo_or_redo(state, command)
    if closed := _closed(state, roots.values()):
        raise Conflict(f"These points are in closed rankings; have them reopened first: {closed}.")
    reversals: list[Event] = []
    counting = {sequence: _counting(state, points) for sequence, points in roots.items()}
    if times is not None:
        counting = {s: unexpired(state, times.given[s][0], points, times.now) for s, points in counting.items()}
    totals = _totals(state, counting, Afterwards(sequences=roots, counts=not undo), {} if undo else counting)
    for sequence, points in sorted(roots.items(), key=lambda root: root[1].ranking_id != command.ranking_id):
        if undo and len(state.rankings[points.ranking_id].undone) >= UNDONE_MAX:
            raise Unacceptable(f"Ranking {points.ranking_id} has {UNDONE_MAX:,} undone events, the most it can have.")
        reversals.append(
            events.PointsReversed(
                ranking_id=points.ranking_id,
                competition_id=points.competition_id,
                deltas=_times(-1 if undo else 1, counting[sequence].deltas),
                reverses=sequence,
                undone=undo,
                totals=_totals_of(counting[sequence].results, totals),
            )
        )
    return tuple(reversals)


def _counting(state: State, points: events.PointsAdded) -> events.PointsAdded:
    """Those of the points that count unless they are undone."""
    if points.competition_id is None:
        return points
    competition = state.competitions[points.competition_id]
    if competition.voided_at is not None:
        return of_some(points, lambda _: False)
    return of_some(points, lambda one: one not in competition.struck)


def _undo_or_redo(state: State, command: commands.ReversePoints) -> tuple[bool, commands.CausedPoints]:
    """Whether the command undoes points or redoes them, and which. Raises a Refusal if it can do neither."""
    assert command.named is not None
    number, event, roots = command.sequence, command.named.event, command.named.points
    if not isinstance(event, events.PointsAdded | events.PointsReversed) or not roots:
        raise _unacceptable([Fault("sequence", f"event {number} neither adds points nor undoes any")])
    if command.ranking_id not in [points.ranking_id for points in roots.values()]:
        raise _unacceptable([Fault("sequence", f"event {number} is about ranking {event.ranking_id}")])
    by = state.rankings[event.ranking_id].undone.get(events.root(Sequence(number), event))
    if isinstance(event, events.PointsAdded):
        refusal = None if by is None else f"is undone already. To redo it, name the event that undid it: {by}"
    elif event.struck is not None:
        refusal = (
            f"came with a change of who is struck from competition {event.competition_id}; strike or unstrike there"
        )
    elif event.undone is None:
        refusal = f"came with the voiding or unvoiding of competition {event.competition_id}; unvoid or void that"
    elif event.undone:
        refusal = None if by == number else f"undid event {event.reverses}, which was redone after it"
    else:
        refusal = f"redid event {event.reverses}. To undo that again, name it"
    if refusal is not None:
        raise Conflict(f"Event {number} {refusal}.")
    if command.only_of not in (None, command.named.actor):
        raise Forbidden(f"Event {number} has another sender; reversing it needs a token of scope admin.")
    return isinstance(event, events.PointsAdded), roots


def _create_ranking(state: State, command: commands.CreateRanking) -> Event:
    _refuse_beyond(state.rankings, RANKINGS_MAX, "This tournament", "rankings")
    faults = [
        *_name_faults("name", command.name),
        *_name_faults("main_unity_name", command.main_unity_name),
        *_list_faults(state, command.participants),
        *_description_faults(command.description),
        *_notation_faults("main_unity_", command.main_unity_decimals, command.main_unity_time),
        *_lasts_faults("main_unity_", command.main_unity_lasts, command.main_unity_expires_on),
    ]
    _refuse_if_any(faults)
    _refuse_taken(command.ranking_id, state.rankings)
    _refuse_taken_unity(state, command.main_unity_id)
    stripped = {"name": command.name.strip(), "main_unity_name": command.main_unity_name.strip()}
    return events.RankingCreated(**msgspec.structs.asdict(command) | stripped)


def _modify_ranking(state: State, command: commands.ModifyRanking) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    _refuse_too_long_to_replace(command.ranking_id, ranking)
    main_unity_id = next(iter(ranking.unities))
    faults = [
        *_name_faults("name", command.name),
        *_name_faults("main_unity_name", command.main_unity_name),
        *_taken_faults("main_unity_name", command.main_unity_name, ranking, main_unity_id),
        *_list_faults(state, command.participants),
        *_description_faults(None if command.description is UNSET else command.description),
    ]
    _refuse_if_any(faults)
    return events.RankingModified(
        ranking_id=command.ranking_id,
        participants=command.participants,
        main_unity_name=command.main_unity_name.strip(),
        name=_stripped(command.name),
        description=command.description,
    )


def _refuse_too_long_to_replace(ranking_id: RankingId, ranking: RankingState) -> None:
    """Raises Unacceptable if the ranking has more participants than one request can name."""
    enrolled = len(ranking.participants)
    if enrolled > PARTICIPANTS_MAX:
        path = f"rankings/{ranking_id}/"
        raise Unacceptable(
            f"Ranking {ranking_id} has {enrolled:,} competitors, and this replaces a list of at most "
            f"{PARTICIPANTS_MAX:,}; change it by PUT {path}information.json (its name and description), "
            f"{path}unities/<unity id>.json (the name and sort of a unity) and {path}participants.json (its "
            "competitors)."
        )


def _change_ranking_information(state: State, command: commands.ChangeRankingInformation) -> Event:
    _open_ranking(state, command.ranking_id)
    faults = [
        *_name_faults("name", command.name),
        *_description_faults(None if command.description is UNSET else command.description),
    ]
    _refuse_if_any(faults)
    return events.RankingInformationChanged(
        ranking_id=command.ranking_id, name=_stripped(command.name), description=command.description
    )


def _change_participants(state: State, command: commands.ChangeParticipants) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    added = frozenset(command.added)
    faults = [
        *_participant_faults(state, command.added, "add"),
        *_participant_faults(state, command.removed, "remove"),
        *(Fault("remove", f"competitor {c} is to be added too") for c in command.removed if c in added),
    ]
    if not (command.added or command.removed):
        faults.append(Fault("add", "must name at least one competitor, unless remove does"))
    _refuse_if_any(faults)
    enrolled = ranking.participants
    coming = len([c for c in command.added if c not in enrolled])
    left = len(enrolled) + coming - len([c for c in command.removed if c in enrolled])
    if left == 0:
        faults.append(Fault("remove", "must leave at least one competitor in the ranking"))
    if coming and left > ENROLLED_MAX:
        faults.append(Fault("add", f"must leave at most {ENROLLED_MAX} competitors in the ranking"))
    _refuse_if_any(faults)
    return events.ParticipantsChanged(ranking_id=command.ranking_id, added=command.added, removed=command.removed)


def _add_unity(state: State, command: commands.AddUnity) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    _refuse_beyond(ranking.unities, UNITIES_MAX, "This ranking", "unities")
    faults = [
        *_name_faults("name", command.name),
        *_taken_faults("name", command.name, ranking),
        *_notation_faults("", command.decimals, command.time),
        *_lasts_faults("", command.lasts, command.expires_on),
    ]
    _refuse_if_any(faults)
    _refuse_taken_unity(state, command.unity_id)
    return events.UnityAdded(**msgspec.structs.asdict(command) | {"name": command.name.strip()})


def _change_unity(state: State, command: commands.ChangeUnity) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    existing(ranking.unities, "unity", command.unity_id)
    faults = [
        *_name_faults("name", command.name),
        *_taken_faults("name", command.name, ranking, command.unity_id),
    ]
    if command.sort is not UNSET and command.unity_id in ranking.of_results:
        faults.append(Fault("sort", "cannot be changed in a unity that counts results"))
    _refuse_if_any(faults)
    return events.UnityChanged(
        ranking_id=command.ranking_id,
        unity_id=command.unity_id,
        name=_stripped(command.name),
        sort=_instead(Sort.DESC, command.sort),
    )


def _declare_classification(state: State, command: commands.DeclareClassification) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    if len(command.criteria) > CRITERIA_MAX:
        raise _unacceptable([Fault("criteria", f"must be at most {CRITERIA_MAX}")])
    faults = []
    for number, criterion in enumerate(command.criteria):
        if criterion.unity_id not in ranking.unities:
            faults.append(Fault(f"criteria[{number}].unity", f"unity {criterion.unity_id} is not in this ranking"))
        if criterion.best is not None and not 1 <= criterion.best <= BEST_MAX:
            faults.append(Fault(f"criteria[{number}].best", f"must be from 1 to {BEST_MAX}"))
        if criterion.first and (criterion.best is not None or criterion.among is not None):
            faults.append(Fault(f"criteria[{number}].first", "must be sent without best and among"))
        if criterion.unity_id in ranking.of_results:
            faults += [
                Fault(f"criteria[{number}].{name}", "is for unities that count sums")
                for name in ("best", "among")
                if getattr(criterion, name) is not None
            ]
    faults += [
        Fault(f"criteria[{number}]", "is there before: it could part nobody any more")
        for number, criterion in enumerate(command.criteria)
        if criterion.among is None and criterion in command.criteria[:number]
    ]
    _refuse_if_any(faults)
    return events.ClassificationDeclared(ranking_id=command.ranking_id, criteria=command.criteria)


def _change_visibility(state: State, command: commands.ChangeVisibility) -> Event:
    ranking_id = command.ranking_id
    existing(state.rankings, "ranking", ranking_id)
    if (ranking_id in state.publication.hidden) == command.hidden:
        raise Conflict(f"Ranking {ranking_id} is {'hidden already' if command.hidden else 'not hidden'}.")
    if command.hidden:
        return events.RankingHidden(ranking_id=ranking_id)
    return events.RankingShown(ranking_id=ranking_id)


def _order_rankings(state: State, command: commands.OrderRankings) -> Event:
    faults = [] if command.rankings else [Fault("order", "must name at least one ranking")]
    faults += [
        Fault("order", f"ranking {one} is not in this tournament")
        for one in command.rankings
        if one not in state.rankings
    ]
    faults += [Fault("order", f"ranking {one} is named more than once") for one in _repeated(command.rankings)]
    _refuse_if_any(faults)
    return events.RankingsOrdered(rankings=command.rankings)


def _change_publication(publication: PublicationState, command: commands.ChangePublication) -> Event:
    said = {name: getattr(command, name) for name in ("published", "freeze", "reveal")}
    named = [name for name, value in said.items() if value is not None]
    if len(named) != 1:
        raise _unacceptable([Fault(name, "must be sent alone") for name in named or ["published"]])
    if command.freeze is not None:
        return events.PublicationFrozen(at=_frozen_at(publication, command.freeze, command.head))
    if command.reveal is not None:
        return events.PublicationRevealed(to=_revealed_to(publication, command))
    if command.published == publication.published:
        raise Conflict(f"This tournament is {'published already' if command.published else 'not published'}.")
    return events.TournamentPublished() if command.published else events.TournamentUnpublished()


def _change_presentation(command: commands.ChangePresentation) -> Event:
    judged: list[tuple[str, str | None | UnsetType, Callable[[str], str | None]]] = [
        ("zone", command.zone, zone_fault),
        ("language", command.language, language_fault),
        ("accent", command.accent, accent_fault),
        ("logo", command.logo, logo_fault),
    ]
    found = [(name, fault_of(said)) for name, said, fault_of in judged if isinstance(said, str)]
    _refuse_if_any([Fault(name, fault) for name, fault in found if fault is not None])
    return events.PresentationChanged(
        zone=command.zone,
        language=command.language,
        accent=command.accent.lower() if isinstance(command.accent, str) else command.accent,
        logo=command.logo,
        listed=command.listed,
    )


def _frozen_at(publication: PublicationState, freeze: Sequence | Literal["now"], head: Sequence | None) -> Sequence:
    if publication.frozen_at is not None:
        raise Conflict(f"What the public sees is held at event {publication.frozen_at} already; a reveal moves it on.")
    assert head is not None
    if freeze == "now":
        return head
    seen = publication.seen(head)
    if freeze < seen:
        raise _unacceptable([Fault("freeze", f"must be at least {seen}: the public has seen the events up to there")])
    _refuse_beyond_head("freeze", freeze, head)
    return freeze


def _revealed_to(publication: PublicationState, command: commands.ChangePublication) -> Sequence | None:
    """The event at which the public end is held afterwards; None: it is no longer held."""
    held, to, found = publication.frozen_at, command.reveal, command.next_reveal
    if held is None:
        raise Conflict("Nothing is held back from the public; a freeze does that.")
    if to == "all" or to is None:
        return None
    if to == "next":
        assert found is not None
        if found.held != held:
            raise Conflict(f"Somebody else has just revealed the events up to {held}; look at them, then reveal more.")
        if found.last is None:
            raise Conflict(f"No competition has given points after event {held}; reveal all to show the rest.")
        return found.last
    if to <= held:
        raise _unacceptable([Fault("reveal", f"must be more than {held}: what the public sees only grows")])
    assert command.head is not None
    _refuse_beyond_head("reveal", to, command.head)
    return to


def _refuse_beyond_head(field: str, sequence: Sequence, head: Sequence) -> None:
    if sequence > head:
        raise _unacceptable([Fault(field, f"must be at most {head}: the log of this tournament ends there")])


# ── What decisions have in common ───────────────────────────────────────────────────────────────────────


def _each(items: tuple[_T, ...], judge: Callable[[_T], Event]) -> tuple[Event, ...]:
    """What `judge` makes of each item. Raises Unacceptable with the faults of all items, each within its own."""
    if not items:
        raise _unacceptable([Fault("items", "must hold at least one item")])
    if len(items) > ITEMS_MAX:
        raise _unacceptable([Fault("items", f"must hold at most {ITEMS_MAX} items")])
    decided: list[Event] = []
    faults: list[Fault] = []
    for number, item in enumerate(items):
        try:
            decided.append(judge(item))
        except Unacceptable as refusal:
            faults += _within(f"items[{number}]", refusal.faults)
    _refuse_if_any(faults)
    return tuple(decided)


def _within(place: str, faults: Iterable[Fault]) -> list[Fault]:
    """The faults of what stands at this place of a field."""
    return [Fault(f"{place}.{fault.field}", fault.message) for fault in faults]


def _is_closed(state: State, ranking_id: RankingId) -> bool:
    ranking = state.rankings.get(ranking_id)
    return ranking is not None and ranking.closed_at is not None


def _open_ranking(state: State, ranking_id: RankingId) -> RankingState:
    ranking = existing(state.rankings, "ranking", ranking_id)
    if ranking.closed_at is not None:
        raise Conflict(f"Ranking {ranking_id} is closed; have it reopened first.")
    return ranking


def _refuse_taken(new_id: int, existing: Container[int]) -> None:
    if new_id in existing:
        raise IdTaken


def _refuse_taken_twice(new_ids: list[int]) -> None:
    if len(set(new_ids)) < len(new_ids):
        raise IdTaken


def _refuse_taken_unity(state: State, unity_id: UnityId) -> None:
    for ranking in state.rankings.values():
        _refuse_taken(unity_id, ranking.unities)


def _refuse_beyond(those: Collection[object], most: int, whose: str, what: str, *, more: int = 1) -> None:
    """Raises Unacceptable if `those` and `more` further ones would exceed the limit."""
    if len(those) + more > most:
        raise Unacceptable(f"{whose} has {len(those):,} {what}; it can have no more than {most:,}.")


def _refuse_if_any(faults: list[Fault]) -> None:
    if faults:
        raise _unacceptable(faults)


def _unacceptable(faults: list[Fault]) -> Unacceptable:
    distinct = list(dict.fromkeys(faults))
    return Unacceptable("The request cannot be accepted as it is; correct the fields named.", distinct)


def _name_faults(field: str, name: str | None | UnsetType) -> list[Fault]:
    fault = None if name is None or name is UNSET else name_fault(name.strip())
    return [Fault(field, fault)] if fault else []


def _taken_faults(
    field: str, name: str | UnsetType, ranking: RankingState, its_own: UnityId | None = None
) -> list[Fault]:
    """The fault of a unity's name that another unity of the ranking than `its_own` has."""
    if name is UNSET:
        return []
    taken = [unity.name for unity_id, unity in ranking.unities.items() if unity_id != its_own]
    return [Fault(field, f"this ranking has a unity {name.strip()!r} already")] if name.strip() in taken else []


def _notation_faults(prefix: str, decimals: int, time: TimeUnit | None) -> list[Fault]:
    if not 0 <= decimals <= DECIMALS_MAX:
        return [Fault(f"{prefix}decimals", f"must be from 0 to {DECIMALS_MAX}")]
    if decimals and time is not None:
        return [Fault(f"{prefix}time", f"must not be sent with {prefix}decimals: a time has its own")]
    return []


def _description_faults(description: str | None) -> list[Fault]:
    fault = None if description is None else description_fault(description)
    return [Fault("description", fault)] if fault else []


def _time_faults(started_at: datetime | None) -> list[Fault]:
    in_utc = started_at is None or started_at.utcoffset() == timedelta()
    return [] if in_utc else [Fault("started_at", "must be in UTC")]


def _location_faults(location: str | None) -> list[Fault]:
    return _name_faults("location", location) if location else []


_COLOR: Final = re.compile(r"[0-9A-Fa-f]{6}")


def _color_faults(color: str | None | UnsetType) -> list[Fault]:
    if color is None or color is UNSET or _COLOR.fullmatch(color):
        return []
    return [Fault("color", "must be 6 hexadecimal characters, without a leading #")]


def _tag_faults(tags: tuple[str, ...]) -> list[Fault]:
    faults = [fault for tag in tags for fault in _name_faults("tags", tag)]
    faults += [Fault("tags", f"tag {tag!r} is given more than once") for tag in _repeated(tags)]
    if len(tags) > TAGS_MAX:
        faults.append(Fault("tags", f"must be at most {TAGS_MAX}"))
    return faults


def _parent_faults(state: State, parent_id: CompetitorId | None) -> list[Fault]:
    if parent_id is None or parent_id in state.competitors:
        return []
    return [Fault("parent", f"competitor {parent_id} is not in this tournament")]


def _circle_faults(state: State, competitor_id: CompetitorId, parent_id: CompetitorId | None) -> list[Fault]:
    if parent_id not in state.competitors or competitor_id not in _self_and_ancestors(state, parent_id):
        return []
    if parent_id == competitor_id:
        return [Fault("parent", "must be another competitor")]
    return [Fault("parent", f"competitor {parent_id} is below competitor {competitor_id}")]


def _self_and_ancestors(state: State, competitor_id: CompetitorId | None) -> set[CompetitorId]:
    """`competitor_id` and all its ancestors. Raises Impossible if these form a circle, or one of them is missing."""
    line: dict[CompetitorId, None] = {}
    while competitor_id is not None:
        if competitor_id in line:
            raise Impossible(f"a circle of parents: {' → '.join(map(str, (*line, competitor_id)))}"[:CIRCLE_SHOWN_MAX])
        if competitor_id not in state.competitors:
            raise Impossible(f"the parent {competitor_id} is not in this tournament")
        line[competitor_id] = None
        competitor_id = state.competitors[competitor_id].parent_id
    return set(line)


def _list_faults(state: State, participants: tuple[CompetitorId, ...]) -> list[Fault]:
    if not participants:
        return [Fault("participants", "must name at least one competitor")]
    return _participant_faults(state, participants)


def _participant_faults(
    state: State, participants: tuple[CompetitorId, ...], field: str = "participants"
) -> list[Fault]:
    if len(participants) > PARTICIPANTS_MAX:
        return [Fault(field, f"must be at most {PARTICIPANTS_MAX}")]
    unknown = [c for c in participants if c not in state.competitors]
    return [
        *(Fault(field, f"competitor {c} is not in this tournament") for c in unknown),
        *(Fault(field, f"competitor {c} is named more than once") for c in _repeated(participants)),
    ]


def _winner_faults(winner_id: CompetitorId | None, participants: tuple[CompetitorId, ...]) -> list[Fault]:
    if winner_id is None or winner_id in participants:
        return []
    return [Fault("winner", f"competitor {winner_id} is not a participant")]


def _result(result: Result | None, participants: tuple[CompetitorId, ...]) -> tuple[Result | None, list[Fault]]:
    """`result` in the form that fits the number of participants, and its faults."""
    if result is None:
        return None, []
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        if isinstance(result, str) and not _is_object(result):
            return result.strip(), _name_faults("result", result)
        return None, [Fault("result", "must be a string, the score, with up to two participants")]
    if isinstance(result, str):
        try:
            text, result = result, msgspec.json.decode(result, type=dict[CompetitorId, str])
            # json.loads keeps repeated keys, and msgspec the last of them: fewer competitors than pairs are a repeat.
            if len(result) <= PARTICIPANTS_MAX and len(json.loads(text, object_pairs_hook=list)) != len(result):
                return None, [Fault("result", "names a competitor more than once")]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None, [
                Fault(
                    "result",
                    "must be, with more than two participants, an object of strings by competitor id",
                )
            ]
    if len(result) > PARTICIPANTS_MAX:
        return None, [Fault("result", f"must be of at most {PARTICIPANTS_MAX} competitors")]
    known = set(participants)  # a tuple would be searched once for each competitor of the result
    faults = [
        Fault("result", f"competitor {competitor_id} is not a participant")
        for competitor_id in result
        if competitor_id not in known
    ]
    faults += [fault for text in result.values() for fault in _name_faults("result", text)]
    return {competitor_id: text.strip() for competitor_id, text in result.items()} or None, faults


def _is_object(text: str) -> bool:
    """Whether the text is a JSON object, as performances are sent."""
    try:
        return text.lstrip().startswith("{") and isinstance(msgspec.json.decode(text), dict)
    except (ValueError, RecursionError):
        return False


def _stripped(name: _N) -> _N:
    """The value, without white space around it if it is a text."""
    return name.strip() if isinstance(name, str) else name


def _instead(empty: _T, value: _T | None | UnsetType) -> _T | UnsetType:
    """The value of a change, with what creation makes of a field that is left out in place of None."""
    return empty if value is None else value


def _all_stripped(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([name.strip() for name in names])


def _repeated(items: Iterable[_H]) -> list[_H]:
    """The items that occur more than once in `items`, each once."""
    return [item for item, count in Counter(items).items() if count > 1]
