"""How commands are judged: the events that each leads to in the current state of a tournament.

    decide(state, command, known) → events      raises a Refusal, IdTaken, or LacksResults

Pure: a function of its arguments only. It reads only the parts of the state that the protocols in `state.py` name.
`faults.py` finds faults of fields, and `counting.py` decides which points count. `reversals.py` and `expirations.py`
judge changes that make points stop counting.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator
from typing import Final, Literal, TypeVar, assert_never

import msgspec
from msgspec import UNSET, UnsetType

from engine.domain import commands, events
from engine.domain.commands import Command
from engine.domain.counting import NOTHING_KNOWN, Known, closed_among
from engine.domain.errors import Conflict, Fault, IdTaken, NotFound, Unacceptable, existing
from engine.domain.events import Criterion, Delta, Event, Result, Scored
from engine.domain.expirations import expired_at_once
from engine.domain.faults import (
    circle_faults,
    cited,
    color_faults,
    description_faults,
    drop_faults,
    judged_result,
    kept_result_faults,
    key_faults,
    list_faults,
    name_faults,
    parent_faults,
    participant_faults,
    refuse_if_any,
    repeated,
    tag_faults,
    taken_faults,
    text_faults,
    time_faults,
    unacceptable,
    winner_faults,
    within,
)
from engine.domain.names import name_key
from engine.domain.options import MAIN_UNITY, option_faults, options_of_main_unity
from engine.domain.presentation import accent_fault, language_fault, logo_fault, zone_fault
from engine.domain.rescoring import SCORED_FIELDS, is_scored, new_scores
from engine.domain.reversals import reverse_points, strike_competitors, unvoid_competition, void_competition
from engine.domain.scoring import contradicts, scoring_faults, tells_the_winner, winner_by_score
from engine.domain.state import CompetitionState, PublicationState, RankingState, State
from engine.domain.table_zones import declared_zones
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
    UNITIES_MAX,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    Sort,
    Stage,
    UnityId,
    name_fault,
    slug_fault,
)
from engine.domain.tiebreaking import tiebreak_faults, with_editions

_T = TypeVar("_T")
_N = TypeVar("_N", str, str | None, str | UnsetType, str | None | UnsetType)
_E = TypeVar("_E", bound=Event)
_MayHaveKey = (
    commands.RegisterCompetitor | commands.AddCompetition | events.CompetitionAdded | events.CompetitionChanged
)


def decide(state: State, command: Command, known: Known = NOTHING_KNOWN) -> tuple[Event, ...]:
    """The events that `command` leads to in `state`: all of them are recorded, or none. Where points expire, those that
    the command expires, or makes count again, are among them. (What expires with another date or a reopening may be
    much, so `projections/live/due.py` sums it before. What other results, scorings or participants change in what
    scorings have given is in `rescoring.py`.)

    Raises NotFound if it addresses something that does not exist; Conflict if the current state forbids it: whether a
    ranking is open, closed or hidden, a competition voided, points undone, or the tournament published, frozen or
    archived;
    Forbidden if it is about the event of another sender; Unacceptable with every fault of its fields, or if it would
    exceed a limit; IdTaken if an id that it carries exists already; LacksResults if results must be read first.
    """
    if state.publication.stage is not None:
        _refuse_unless_for(state.publication.stage, command)
    if known.now is not None and isinstance(command, commands.AddPoints | commands.AddPointsToRankings):
        added = decide(state, command)
        return *added, *expired_at_once(state, command.competition_id, added, known)
    match command:  # the frequent ones first, because each class before is asked whether the command is of it
        case commands.AddPoints():
            return (_add_points(state, command),)
        case commands.AddPointsToRankings():
            return _add_points_to_rankings(state, command)
        case commands.RecordResult():
            return decide(state, recording(state, command), known)
        case commands.AddCompetition():
            _refuse_beyond(state.competitions, COMPETITIONS_MAX, "This tournament", "competitions")
            refuse_taken(state, (command.competition_id,))
            added = (add_competition(state, command),)
        case commands.VoidCompetition():
            return void_competition(state, command, known)
        case commands.UnvoidCompetition():
            return unvoid_competition(state, command, known)
        case commands.StrikeCompetitors() | commands.UnstrikeCompetitors():
            return strike_competitors(state, command, known)
        case commands.ReversePoints():
            return reverse_points(state, command, known)
        case commands.RegisterCompetitors():
            return _register_competitors(state, command)
        case commands.AddCompetitions():
            added = _add_competitions(state, command)
        case commands.RecordResults():
            return _record_results(state, command)  # their points: see `Rescoring`
        case commands.ExpirePoints():
            return ()  # those that are due are summed before: see `projections/live/due.py`
        case _:
            return (_event_of(state, command),)
    return *added, *new_scores(state, added, known.now)


def _event_of(state: State, command: commands.OneEvent) -> Event:
    match command:
        case commands.RegisterCompetitor():
            _refuse_beyond(state.competitors, COMPETITORS_MAX, "This tournament", "competitors")
            refuse_taken(state, (command.competitor_id,))
            return register_competitor(state, command)
        case commands.ChangeCompetitor():
            return _change_competitor(state, command)
        case commands.EraseCompetitor():
            return _erase_competitor(state, command)
        case commands.ChangeCompetition():
            return _change_competition(state, command)
        case commands.CreateRanking():
            return _create_ranking(state, command)
        case commands.ModifyRanking():
            return _modify_ranking(state, command)
        case commands.ChangeRankingInformation():
            return _change_ranking_information(state, command)
        case commands.ChangeParticipants():
            return _change_participants(state, command)
        case commands.AddUnity():
            return _add_unity(state, command)
        case commands.ChangeUnity():
            return _change_unity(state, command)
        case commands.DeclareClassification():
            return _declare_classification(state, command)
        case commands.DeclareScoring():
            ranking = _open_ranking(state, command.ranking_id)
            refuse_if_any(scoring_faults(ranking, command.scorings))
            return events.ScoringDeclared(ranking_id=command.ranking_id, scorings=command.scorings)
        case commands.CloseRanking() | commands.ReopenRanking():
            return _close_or_reopen(state, command)
        case commands.ChangeVisibility():
            return _change_visibility(state, command)
        case commands.OrderRankings():
            return _order_rankings(state, command)
        case commands.ChangePublication():
            return _change_publication(state.publication, command)
        case commands.RenameTournament():
            refuse_if_any(name_faults("name", command.name))
            return events.TournamentRenamed(name=command.name.strip())
        case commands.ArchiveTournament() | commands.DeleteTournament() | commands.RestoreTournament():
            return _change_stage(state, command)
        case commands.ChangePresentation():
            return _change_presentation(command)
        case _:
            assert_never(command)


def _refuse_unless_for(stage: Stage, command: Command) -> None:
    """Raises Conflict, or NotFound, unless the command is for a tournament of this stage."""
    if isinstance(command, commands.RestoreTournament | commands.ExpirePoints):
        return
    if stage == "deleted":
        raise NotFound("This tournament is deleted; the operator can restore it.")
    if not isinstance(command, commands.DeleteTournament):
        raise Conflict("This tournament is archived; restore it first.")


def opening(name: str, slug: str) -> Event:
    """The first event of a tournament. Raises Unacceptable."""
    if fault := name_fault(name):
        raise Unacceptable(f"The name {fault}.")
    if fault := slug_fault(slug):
        raise Unacceptable(f"The slug {fault}.")
    return events.TournamentOpened(name=name.strip(), slug=slug)


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
    """The event that adds points in a ranking with unities that count results."""
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
    faults = _delta_faults(ranking, points.deltas)
    if points.competition_id is not None:  # nothing is judged as often as points, mostly without cause and reason
        faults += _cause_faults(state, points.competition_id, points.deltas)
    if points.reason is not None:
        faults += name_faults("reason", points.reason)
    if faults:
        raise unacceptable(faults)
    return ranking.special


def _add_points_to_rankings(state: State, command: commands.AddPointsToRankings) -> tuple[Event, ...]:
    closed = closed_among(state, [one.ranking_id for one in command.rankings if one.ranking_id in state.rankings])
    if closed:
        raise Conflict(f"These rankings are closed; reopen them first: {closed}.")
    if sum([len(one.deltas) for one in command.rankings]) > DELTAS_MAX:
        raise unacceptable([Fault("rankings_delta", f"must contain at most {DELTAS_MAX} deltas")])
    faults = [] if command.rankings else [Fault("rankings_delta", "must name at least one ranking")]
    named = Counter([one.ranking_id for one in command.rankings])
    faults += [Fault("rankings_delta", f"ranking {r} is named more than once") for r, n in named.items() if n > 1]
    for number, one in enumerate(command.rankings):
        its = f"rankings_delta[{number}]"
        ranking = state.rankings.get(one.ranking_id)
        if ranking is None:
            faults.append(Fault(f"{its}.ranking_id", f"ranking {one.ranking_id} is not in this tournament"))
        else:
            faults += within(its, _delta_faults(ranking, one.deltas))
    deltas = [delta for one in command.rankings for delta in one.deltas]
    faults += [*_cause_faults(state, command.competition_id, deltas), *name_faults("reason", command.reason)]
    refuse_if_any(faults)
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
    enrolled: Container[int] = ranking.participants
    if len(deltas) != 1:
        if not deltas:
            return [Fault("participants_delta", "must contain at least one delta")]
        if len(deltas) > DELTAS_MAX:
            return [Fault("participants_delta", f"must contain at most {DELTAS_MAX} deltas")]
        enrolled = ranking.participants.lookup()
    unities = ranking.unities
    faults: list[Fault] = []
    for delta in deltas:
        if delta.competitor_id in enrolled and delta.unity_id in unities and _LEAST <= delta.amount <= DELTA_MAX:
            continue
        if delta.competitor_id not in enrolled:
            faults.append(Fault("participants_delta", f"competitor {delta.competitor_id} is not in this ranking"))
        unity = unities.get(delta.unity_id)
        if unity is None:
            faults.append(Fault("participants_delta", f"unity {delta.unity_id} is not in this ranking"))
        most = DELTA_MAX if unity is None else unity.counts.most
        if not -most <= delta.amount <= most:
            faults.append(Fault("participants_delta", f"delta {delta.amount} is not within ±{most}"))
    return faults


_LEAST: Final = -DELTA_MAX


def _cause_faults(state: State, competition_id: CompetitionId | None, deltas: Iterable[Delta]) -> list[Fault]:
    if competition_id is None:
        return []
    competition = state.competitions.get(competition_id)
    if competition is None:
        return [Fault("competition_id", f"competition {competition_id} is not in this tournament")]
    if competition.voided_at is not None:
        return [Fault("competition_id", f"competition {competition_id} is voided")]
    struck = state.struck.get(competition_id, ())
    struck = struck and dict.fromkeys(d.competitor_id for d in deltas if d.competitor_id in struck)
    return [Fault("competition_id", f"competitor {one} is struck from competition {competition_id}") for one in struck]


def _register_competitors(state: State, command: commands.RegisterCompetitors) -> tuple[Event, ...]:
    _refuse_beyond(state.competitors, COMPETITORS_MAX, "This tournament", "competitors", more=len(command.items))
    refuse_taken(state, [item.competitor_id for item in command.items])
    _refuse_same_key(command.items)
    return _each(command.items, lambda item: register_competitor(state, item))


def register_competitor(state: State, command: commands.RegisterCompetitor) -> Event:
    """As `decide`, without the limit on the number of competitors, and whether the id is free."""
    faults = [
        *name_faults("name", command.name),
        *tag_faults(_all_stripped(command.tags)),
        *color_faults(command.color),
        *parent_faults(state, command.parent_id),
        *key_faults(command.key, state.competitors),
    ]
    refuse_if_any(faults)
    return naming(command)


def _change_competitor(state: State, command: commands.ChangeCompetitor) -> Event:
    if existing(state.competitors, "competitor", command.competitor_id).erased:
        raise Conflict(f"Competitor {command.competitor_id} was erased, and cannot be changed.")
    parent_id = None if command.parent_id is UNSET else command.parent_id
    faults = [
        *name_faults("name", command.name),
        *tag_faults(_all_stripped(command.tags or ())),
        *color_faults(command.color),
        *parent_faults(state, parent_id),
        *circle_faults(state, command.competitor_id, parent_id),
        *key_faults(command.key, state.competitors, command.competitor_id),
    ]
    refuse_if_any(faults)
    return naming(command)


def _erase_competitor(state: State, command: commands.EraseCompetitor) -> Event:
    if existing(state.competitors, "competitor", command.competitor_id).erased:
        raise Conflict(f"Competitor {command.competitor_id} is already erased.")
    return events.CompetitorErased(competitor_id=command.competitor_id)


def naming(command: commands.RegisterCompetitor | commands.ChangeCompetitor) -> events.Naming:
    """The event that the command leads to if it is accepted."""
    if isinstance(command, commands.RegisterCompetitor):
        return events.CompetitorRegistered(
            competitor_id=command.competitor_id,
            name=command.name.strip(),
            tags=_all_stripped(command.tags),
            color=command.color or events.COLOR_DEFAULT,
            parent_id=command.parent_id,
            key=_as_key(command.key),
        )
    return events.CompetitorChanged(
        competitor_id=command.competitor_id,
        name=_stripped(command.name),
        tags=UNSET if command.tags is UNSET else _all_stripped(command.tags or ()),
        color=_instead(events.COLOR_DEFAULT, command.color),
        parent_id=command.parent_id,
        key=_as_key(command.key),
    )


def _add_competitions(state: State, command: commands.AddCompetitions) -> tuple[events.CompetitionAdded, ...]:
    _refuse_beyond(state.competitions, COMPETITIONS_MAX, "This tournament", "competitions", more=len(command.items))
    refuse_taken(state, [item.competition_id for item in command.items])
    if sum([len(item.participants) for item in command.items]) > PARTICIPANTS_MAX:
        raise unacceptable([Fault("items", f"must name at most {PARTICIPANTS_MAX} participants in total")])
    _refuse_same_key(command.items)
    return _each(command.items, lambda item: add_competition(state, item))


def _record_results(
    state: State, command: commands.RecordResults
) -> tuple[events.CompetitionAdded | events.CompetitionChanged, ...]:
    def judge(item: commands.RecordResult) -> events.CompetitionAdded | events.CompetitionChanged:
        its = recording(state, item)
        return (
            add_competition(state, its) if isinstance(its, commands.AddCompetition) else _change_competition(state, its)
        )

    made = _each(command.items, judge)
    named = [one.competition_id for one in made]
    refuse_if_any([Fault("items", f"competition {one} is named more than once") for one in repeated(named)])
    _refuse_same_key(made)
    new_ids = [one.competition_id for one in made if one.creates]
    _refuse_beyond(state.competitions, COMPETITIONS_MAX, "This tournament", "competitions", more=len(new_ids))
    refuse_taken(state, new_ids)
    if sum([len(one.participants or ()) for one in made]) > PARTICIPANTS_MAX:
        raise unacceptable([Fault("items", f"must name at most {PARTICIPANTS_MAX} participants in total")])
    return made


def recorded_before(state: State, command: commands.RecordResult) -> CompetitionId | None:
    """The competition that it names, or that has its key; None: its competition is new."""
    if command.of is None and isinstance(command.key, str):
        return state.competitions.by_key(name_key(command.key))
    return command.of


def recording(state: State, command: commands.RecordResult) -> commands.AddCompetition | commands.ChangeCompetition:
    """The command that it is in this state. What it says of a known competition as that is changes nothing. Raises
    Unacceptable."""
    said = msgspec.structs.asdict(command)
    its_id = recorded_before(state, command)
    if its_id is None:
        refuse_if_any([Fault("group_id", "is required for a new competition")] if command.group_id is UNSET else [])
        return commands.AddCompetition(**{k: one for k, one in said.items() if one is not UNSET and one is not None})
    if its_id not in state.competitions:
        raise unacceptable([Fault("competition", f"competition {its_id} is not in this tournament")])
    its = state.competitions[its_id]
    same = {"of", "competition_id"} | {name for name, of in _AS_IT_IS.items() if said.get(name) == getattr(its, of)}
    if command.of is None:
        same.add("key")
    changed = {name: value for name, value in said.items() if name not in same and value is not UNSET}
    return commands.ChangeCompetition(competition_id=its_id, **changed)


_AS_IT_IS = {
    "started_at": "date",
    **{name: name for name in ("location", "participants", "group_id", "scale", "round", "round_name")},
}


def add_competition(state: State, command: commands.AddCompetition) -> events.CompetitionAdded:
    """As `decide`, without the limit on the number of competitions, and whether the id is free."""
    result, result_faults = judged_result(command.result, command.participants)
    faults = [
        *participant_faults(state, command.participants),
        *time_faults(command.started_at),
        *text_faults(command),
        *result_faults,
        *winner_faults(command.winner_id, command.participants),
        *key_faults(command.key, state.competitions),
    ]
    refuse_if_any(faults)
    follows = command.winner_id is None and is_scored(state)
    return events.CompetitionAdded(
        competition_id=command.competition_id,
        group_id=command.group_id,
        started_at=command.started_at,
        location=(command.location or "").strip(),
        participants=command.participants,
        result=result,
        winner_id=winner_by_score(command.participants, result) if follows else command.winner_id,
        scale=(command.scale or "").strip(),
        round=command.round,
        round_name=(command.round_name or "").strip(),
        key=_as_key(command.key),
    )


def _change_competition(state: State, command: commands.ChangeCompetition) -> events.CompetitionChanged:
    competition = existing(state.competitions, "competition", command.competition_id)
    relists, winner_id = command.participants is not UNSET, command.winner_id
    participants = command.participants or () if relists else competition.participants
    said = winner_id
    result: Result | None | UnsetType = UNSET
    result_faults: list[Fault] = []
    if command.result is not UNSET:
        result, result_faults = judged_result(command.result, participants)
    elif relists:
        result_faults = kept_result_faults(competition.result, participants)
    if winner_id is UNSET and is_scored(state):
        said = winner_id = _winner_corrected(competition, participants, result)
    if relists and winner_id is UNSET:
        winner_id = competition.winner_id
    faults = [
        *(participant_faults(state, participants) if relists else ()),
        *time_faults(None if command.started_at is UNSET else command.started_at),
        *text_faults(command),
        *result_faults,
        *winner_faults(None if winner_id is UNSET else winner_id, participants),
        *key_faults(command.key, state.competitions, command.competition_id),
    ]
    refuse_if_any(faults)
    return events.CompetitionChanged(
        competition_id=command.competition_id,
        started_at=command.started_at,
        location=_stripped(_instead("", command.location)),
        participants=_instead((), command.participants),
        result=result,
        winner_id=said,
        group_id=command.group_id,
        scale=_stripped(_instead("", command.scale)),
        round=command.round,
        round_name=_stripped(_instead("", command.round_name)),
        key=_as_key(command.key),
        scored=is_scored(state) and any(getattr(command, one) is not UNSET for one in SCORED_FIELDS),
    )


def _winner_corrected(
    competition: CompetitionState, participants: tuple[CompetitorId, ...], said: Result | None | UnsetType
) -> CompetitorId | None | UnsetType:
    """The winner after a correction that names none. Whoever was named stays, unless the result is a new one that says
    by itself who has won, or the participants are turned. UNSET: the same as before."""
    named = competition.winner_id
    result = competition.result if said is UNSET else said
    is_new = result != competition.result
    follows = named in (None, winner_by_score(competition.participants, competition.result))
    if not is_new and (participants == competition.participants or (not follows and named not in participants)):
        return UNSET
    decides = is_new and tells_the_winner(participants, result)
    if follows or decides or result is None or contradicts(participants, result, named):
        return winner_by_score(participants, result)
    return UNSET


def _create_ranking(state: State, command: commands.CreateRanking) -> Event:
    _refuse_beyond(state.rankings, RANKINGS_MAX, "This tournament", "rankings")
    faults = [
        *name_faults("name", command.name),
        *name_faults("main_unity_name", command.main_unity_name),
        *list_faults(state, command.participants),
        *description_faults(command.description),
        *option_faults(options_of_main_unity(command), MAIN_UNITY),
    ]
    refuse_if_any(faults)
    refuse_taken(state, (command.ranking_id, command.main_unity_id))
    stripped = {"name": command.name.strip(), "main_unity_name": command.main_unity_name.strip()}
    return events.RankingCreated(**msgspec.structs.asdict(command) | stripped)


def _modify_ranking(state: State, command: commands.ModifyRanking) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    _refuse_too_long_to_replace(command.ranking_id, ranking)
    main_unity_id = next(iter(ranking.unities))
    faults = [
        *name_faults("name", command.name),
        *name_faults("main_unity_name", command.main_unity_name),
        *taken_faults("main_unity_name", command.main_unity_name, ranking, main_unity_id),
        *list_faults(state, command.participants),
        *description_faults(None if command.description is UNSET else command.description),
    ]
    refuse_if_any(faults)
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
        *name_faults("name", command.name),
        *description_faults(None if command.description is UNSET else command.description),
        *description_faults(command.zones or None, "zones"),
    ]
    zones = command.zones
    try:
        zones = declared_zones(zones) or None if zones else zones
    except ValueError as error:
        faults.append(Fault("zones", str(error)))
    refuse_if_any(faults)
    return events.RankingInformationChanged(
        ranking_id=command.ranking_id, name=_stripped(command.name), description=command.description, zones=zones
    )


def _change_participants(state: State, command: commands.ChangeParticipants) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    added = frozenset(command.added)
    faults = [
        *participant_faults(state, command.added, "add"),
        *participant_faults(state, command.removed, "remove"),
        *(Fault("remove", f"competitor {c} is also to be added") for c in command.removed if c in added),
    ]
    if not (command.added or command.removed):
        faults.append(Fault("add", "must name at least one competitor, unless remove does"))
    refuse_if_any(faults)
    enrolled = ranking.participants
    coming = len([c for c in command.added if c not in enrolled])
    left = len(enrolled) + coming - len([c for c in command.removed if c in enrolled])
    if left == 0:
        faults.append(Fault("remove", "must leave at least one competitor in the ranking"))
    if coming and left > ENROLLED_MAX:
        faults.append(Fault("add", f"must leave at most {ENROLLED_MAX} competitors in the ranking"))
    refuse_if_any(faults)
    return events.ParticipantsChanged(ranking_id=command.ranking_id, added=command.added, removed=command.removed)


def _add_unity(state: State, command: commands.AddUnity) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    _refuse_beyond(ranking.unities, UNITIES_MAX, "This ranking", "unities")
    faults = [
        *name_faults("name", command.name),
        *taken_faults("name", command.name, ranking),
        *option_faults(command),
    ]
    refuse_if_any(faults)
    refuse_taken(state, (command.unity_id,))
    return events.UnityAdded(**msgspec.structs.asdict(command) | {"name": command.name.strip()})


def _change_unity(state: State, command: commands.ChangeUnity) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    existing(ranking.unities, "unity", command.unity_id)
    faults = [
        *name_faults("name", command.name),
        *taken_faults("name", command.name, ranking, command.unity_id),
    ]
    if command.sort is not UNSET and command.unity_id in ranking.of_results:
        is_sum = ranking.unities[command.unity_id].counts is Counts.SUM
        why = "has no totals for absent competitors" if is_sum else "counts results"
        faults.append(Fault("sort", f"cannot be changed in a unity that {why}"))
    refuse_if_any(faults)
    return events.UnityChanged(
        ranking_id=command.ranking_id,
        unity_id=command.unity_id,
        name=_stripped(command.name),
        sort=_instead(Sort.DESC, command.sort),
    )


def _declare_classification(state: State, command: commands.DeclareClassification) -> Event:
    ranking = _open_ranking(state, command.ranking_id)
    if len(command.criteria) > CRITERIA_MAX:
        raise unacceptable([Fault("criteria", f"must be at most {CRITERIA_MAX}")])
    faults, criteria = [], with_editions(state, ranking, command.criteria)
    for number, criterion in enumerate(criteria):
        unity = ranking.unities.get(criterion.unity_id)
        if unity is None:
            faults.append(Fault(f"criteria[{number}].unity", f"unity {criterion.unity_id} is not in this ranking"))
        else:
            faults += within(f"criteria[{number}]", tiebreak_faults(ranking, criterion))
        if criterion.divisor is not None:
            faults += within(f"criteria[{number}]", _quotient_faults(ranking, criterion))
        if criterion.best is not None and not 1 <= criterion.best <= BEST_MAX:
            faults.append(Fault(f"criteria[{number}].best", f"must be from 1 to {BEST_MAX}"))
        if criterion.drop:
            faults += within(f"criteria[{number}]", drop_faults(criterion.drop))
        if criterion.first and (criterion.best, criterion.among, criterion.drop) != (None, None, ()):
            faults.append(Fault(f"criteria[{number}].first", "must be sent without best, among and drop"))
        if unity is not None and unity.counts is not Counts.SUM:
            faults += [
                Fault(f"criteria[{number}].{name}", "is only for unities that count sums")
                for name in ("best", "among", "drop")
                if getattr(criterion, name) not in (None, ())
            ]
    faults += [
        Fault(f"criteria[{number}]", "repeats an earlier criterion, so it cannot separate anyone")
        for number, criterion in enumerate(command.criteria)
        if criterion.among is None and criterion.tiebreak != "DE" and criterion in command.criteria[:number]
    ]
    refuse_if_any(faults)
    return events.ClassificationDeclared(ranking_id=command.ranking_id, criteria=criteria)


def _quotient_faults(ranking: RankingState, criterion: Criterion) -> Iterator[Fault]:
    name, alone = ("per" if criterion.ratio is None else "ratio"), Criterion(criterion.unity_id)
    if criterion.divisor not in ranking.unities:
        yield Fault(name, f"unity {criterion.divisor} is not in this ranking")
    elif criterion.divisor == criterion.unity_id:
        yield Fault(name, "must name two unities")
    if msgspec.structs.replace(criterion, **{name: None}) != alone:
        yield Fault(name, "must be sent alone")


def _close_or_reopen(state: State, command: commands.CloseRanking | commands.ReopenRanking) -> Event:
    ranking_id, closes = command.ranking_id, isinstance(command, commands.CloseRanking)
    if (existing(state.rankings, "ranking", ranking_id).closed_at is not None) == closes:
        raise Conflict(f"Ranking {ranking_id} is already {'closed' if closes else 'open'}.")
    return events.RankingClosed(ranking_id=ranking_id) if closes else events.RankingReopened(ranking_id=ranking_id)


def _change_stage(
    state: State, command: commands.ArchiveTournament | commands.DeleteTournament | commands.RestoreTournament
) -> Event:
    match command:
        case commands.ArchiveTournament():
            return events.TournamentArchived()
        case commands.DeleteTournament():
            return events.TournamentDeleted()
        case commands.RestoreTournament():
            if state.publication.stage is None:
                raise Conflict("This tournament is neither archived nor deleted.")
            return events.TournamentRestored()


def _change_visibility(state: State, command: commands.ChangeVisibility) -> Event:
    ranking_id = command.ranking_id
    existing(state.rankings, "ranking", ranking_id)
    if (ranking_id in state.publication.hidden) == command.hidden:
        raise Conflict(f"Ranking {ranking_id} is {'already hidden' if command.hidden else 'not hidden'}.")
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
    faults += [Fault("order", f"ranking {one} is named more than once") for one in repeated(command.rankings)]
    refuse_if_any(faults)
    return events.RankingsOrdered(rankings=command.rankings)


def _change_publication(publication: PublicationState, command: commands.ChangePublication) -> Event:
    said = {name: getattr(command, name) for name in ("published", "freeze", "reveal")}
    named = [name for name, value in said.items() if value is not None]
    if not named:
        raise unacceptable([Fault("published", "is required, unless freeze or reveal is sent")])
    if len(named) > 1:
        raise unacceptable([Fault(name, "must be sent alone") for name in named])
    if command.freeze is not None:
        return events.PublicationFrozen(at=_frozen_at(publication, command.freeze, command.head))
    if command.reveal is not None:
        return events.PublicationRevealed(to=_revealed_to(publication, command))
    if command.published == publication.published:
        raise Conflict(f"This tournament is {'already published' if command.published else 'not published'}.")
    return events.TournamentPublished() if command.published else events.TournamentUnpublished()


def _change_presentation(command: commands.ChangePresentation) -> Event:
    judged: list[tuple[str, str | None | UnsetType, Callable[[str], str | None]]] = [
        ("zone", command.zone, zone_fault),
        ("language", command.language, language_fault),
        ("accent", command.accent, accent_fault),
        ("logo", command.logo, logo_fault),
    ]
    found = [(name, fault_of(said)) for name, said, fault_of in judged if isinstance(said, str)]
    refuse_if_any([Fault(name, fault) for name, fault in found if fault is not None])
    return events.PresentationChanged(
        zone=command.zone,
        language=command.language,
        accent=command.accent.lower() if isinstance(command.accent, str) else command.accent,
        logo=command.logo,
        listed=command.listed,
    )


def _frozen_at(publication: PublicationState, freeze: Sequence | Literal["now"], head: Sequence | None) -> Sequence:
    if publication.frozen_at is not None:
        raise Conflict(f"The public view is already frozen at event {publication.frozen_at}; a reveal moves it on.")
    assert head is not None
    if freeze == "now":
        return head
    seen = publication.seen(head)
    if freeze < seen:
        raise unacceptable([Fault("freeze", f"must be at least {seen}: the public has already seen that event")])
    _refuse_beyond_head("freeze", freeze, head)
    return freeze


def _revealed_to(publication: PublicationState, command: commands.ChangePublication) -> Sequence | None:
    """The event at which the public end is held afterwards; None: it is no longer held."""
    held, to, found = publication.frozen_at, command.reveal, command.next_reveal
    if held is None:
        raise Conflict("Nothing is held back from the public; freeze the tournament first.")
    if to == "all" or to is None:
        return None
    if to == "next":
        assert found is not None
        if found.held != held:
            raise Conflict(f"Someone else has just revealed events up to {held}; look at them before you reveal more.")
        if found.last is None:
            raise Conflict(f"No competition has given points after event {held}; reveal all to show the rest.")
        return found.last
    if to <= held:
        raise unacceptable([Fault("reveal", f"must be more than {held}: the public view only moves forward")])
    assert command.head is not None
    _refuse_beyond_head("reveal", to, command.head)
    return to


def _refuse_beyond_head(field: str, sequence: Sequence, head: Sequence) -> None:
    if sequence > head:
        raise unacceptable([Fault(field, f"must be at most {head}: the log of this tournament ends there")])


# ── Shared by decisions ─────────────────────────────────────────────────────────────────────────────────


def _each(items: tuple[_T, ...], judge: Callable[[_T], _E]) -> tuple[_E, ...]:
    """The event that `judge` returns for each item. Raises Unacceptable with the faults of all items, named by item."""
    if not items:
        raise unacceptable([Fault("items", "must contain at least one item")])
    if len(items) > ITEMS_MAX:
        raise unacceptable([Fault("items", f"must contain at most {ITEMS_MAX} items")])
    decided: list[_E] = []
    faults: list[Fault] = []
    for number, item in enumerate(items):
        try:
            decided.append(judge(item))
        except Unacceptable as refusal:
            faults += within(f"items[{number}]", refusal.faults)
    refuse_if_any(faults)
    return tuple(decided)


def _open_ranking(state: State, ranking_id: RankingId) -> RankingState:
    ranking = state.rankings.get(ranking_id)  # without a call, as points are judged more often than anything else
    if ranking is None or ranking.closed_at is not None:
        name = existing(state.rankings, "ranking", ranking_id).name
        raise Conflict(f"The ranking {cited(name)} is closed; reopen it first.")
    return ranking


def refuse_taken(state: State, new_ids: Collection[int]) -> None:
    """Raises IdTaken if anything in the tournament has one of these ids, of whatever kind it is, or two are the same.
    All ids come from one sequence, and a restored database gives some of them again."""
    distinct = {*new_ids}
    if len(distinct) < len(new_ids):
        raise IdTaken
    for one in new_ids:
        if one in state.competitors or one in state.competitions or one in state.rankings:
            raise IdTaken
    for ranking in state.rankings.values():  # without a call of ours for each: there may be 1,000
        if not distinct.isdisjoint(ranking.unities):
            raise IdTaken


def _refuse_same_key(items: Iterable[_MayHaveKey]) -> None:
    """Raises Unacceptable if two items of a request are to have the same key."""
    keys = [name_key(item.key) for item in items if isinstance(item.key, str)]
    refuse_if_any([Fault("items", f"{cited(key)} is the key of more than one") for key in repeated(keys)])


def _refuse_beyond(those: Collection[object], most: int, whose: str, what: str, *, more: int = 1) -> None:
    """Raises Unacceptable if `those` and `more` further ones would exceed the limit."""
    if len(those) + more > most:
        raise Unacceptable(f"{whose} has {len(those):,} {what}; it can have no more than {most:,}.")


def _stripped(name: _N) -> _N:
    """The value, without white space around it if it is a text."""
    return name.strip() if isinstance(name, str) else name


def _as_key(key: _N) -> _N:
    """The key, in the form of Unicode in which keys are compared."""
    return name_key(key) if isinstance(key, str) else key


def _instead(empty: _T, value: _T | None | UnsetType) -> _T | UnsetType:
    """The value of a change. None becomes `empty`, the value that creation gives to an omitted field."""
    return empty if value is None else value


def _all_stripped(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([name.strip() for name in names])
