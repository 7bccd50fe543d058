"""Histories to test with: arbitrary events, commands that could be asked, and the logs that they lead to.

`EVENTS` is for those who write events down (codec, digest): any values of the right types. `histories` is for those
who fold them: what `decide` makes of random commands, so that nothing is in them which could not have happened. The
commands come from a small world (few competitors, few names, deltas that tie) and most of them make sense in it, so
that lists change, competitors leave and return, rankings are closed, and now and then something is refused.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count, takewhile
from typing import Any, Final, TypeVar, get_args

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from engine.domain import commands, events
from engine.domain.awards import Award, Scoring
from engine.domain.commands import Command
from engine.domain.counting import Known, LacksResults
from engine.domain.errors import Refusal
from engine.domain.events import Criterion, Delta, Event, Recorded, Result, Scored, Total
from engine.domain.judging import decide, recording
from engine.domain.lines import rule_of
from engine.domain.notation import DECIMALS_MAX
from engine.domain.options import UnityOptions, as_main_unity
from engine.domain.presentation import LANGUAGES
from engine.domain.rescoring import GivenLines, may_rescore, rescored
from engine.domain.scoring import worth
from engine.domain.state import State
from engine.domain.steps import finished
from engine.domain.terms import (
    BEST_MAX,
    CUTS_MAX,
    DELTA_MAX,
    ID_MAX,
    RESULT_MAX,
    SCORE_PARTICIPANTS_MAX,
    ActorId,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    Sort,
    TiebreakCode,
    TiebreakEdition,
    TiebreakPairing,
)
from projections.board.board import Board, Ranking, Revisions, Unity, count_in, fold, what_counts
from projections.board.classification import Counted
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.board.parts import parts_of, take_part
from projections.board.publication import NextRevealSearch
from projections.board.results import Results, note_given
from projections.columns.enrolment import Enrolment, Totals
from projections.past.passage import Passage, cut, passage

_T = TypeVar("_T")

unhurried: Final = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long an example takes tells nothing on a machine that does other things as well."""

# ── Any event ───────────────────────────────────────────────────────────────────────────────────────────


# Hypothesis examines each new strategy before it draws from it, which takes longer than the draw: what histories draw
# from is made once.
@cache
def _perhaps(strategy: st.SearchStrategy[_T]) -> st.SearchStrategy[_T | None]:
    return st.none() | strategy


@cache
def _unset_or(strategy: st.SearchStrategy[_T]) -> st.SearchStrategy[_T | UnsetType]:
    return st.just(UNSET) | strategy


ids: Final = st.integers(1, ID_MAX)
texts: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_zones: Final = st.sampled_from(["1 promotion: Up", "1..2 promotion: Up\n-2 neutral: Still in\n-1 relegation: Down"])
decimals: Final = st.integers(0, DECIMALS_MAX)
time_units: Final = st.sampled_from([None, "s", "ms"])
stored_texts: Final = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
"""Any text that PostgreSQL can hold."""
moments: Final = st.datetimes(timezones=st.just(UTC))
_lists: Final = st.lists(ids, max_size=5).map(tuple)
_tags: Final = st.lists(texts, max_size=3).map(tuple)
_results: Final = texts | st.dictionaries(ids, texts, max_size=4)
_criteria: Final = st.builds(
    Criterion,
    unity_id=ids,
    best=_perhaps(st.integers(1, BEST_MAX)),
    among=_perhaps(st.just("tied")),
    drop=st.lists(st.tuples(st.integers(1, BEST_MAX), st.integers(1, BEST_MAX)), max_size=3).map(tuple),
    tiebreak=_perhaps(st.sampled_from(get_args(TiebreakCode))),
    cut=st.integers(0, CUTS_MAX),
    limit=st.integers(-CUTS_MAX, CUTS_MAX),
    edition=_perhaps(st.sampled_from(get_args(TiebreakEdition))),
    pairing=_perhaps(st.sampled_from(get_args(TiebreakPairing))),
    ratio=_perhaps(ids),
    per=_perhaps(ids),
)
_deltas: Final = st.builds(Delta, ids, ids, st.integers(-DELTA_MAX, DELTA_MAX))
_scored: Final = st.builds(Scored, ids, ids, st.integers(-RESULT_MAX, RESULT_MAX))
_totals: Final = st.builds(Total, ids, ids, _perhaps(st.integers(-RESULT_MAX, RESULT_MAX)))

LOGO: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
"""A PNG of one pixel, in base64."""


_awards: Final = st.builds(
    Award,
    unity_id=ids,
    value=st.sampled_from(["outcome", "for", "place"]),
    table=_perhaps(st.dictionaries(texts, st.integers(-3, 3), max_size=2)),
    statuses=st.dictionaries(texts, st.integers(-3, 3) | st.just("entries+1"), max_size=2),
)
_scorings: Final = st.builds(Scoring, awards=st.lists(_awards, max_size=2).map(tuple), name=texts, groups=st.just((7,)))

EVENTS: Final[dict[type[Event], st.SearchStrategy[Event]]] = {
    events.TournamentRenamed: st.builds(events.TournamentRenamed, name=texts),
    events.PresentationChanged: st.builds(
        events.PresentationChanged,
        zone=_unset_or(_perhaps(texts)),
        language=_unset_or(_perhaps(texts)),
        accent=_unset_or(_perhaps(texts)),
        logo=_unset_or(_perhaps(texts)),
        listed=_unset_or(st.booleans()),
    ),
    events.TournamentOpened: st.builds(events.TournamentOpened, name=texts, slug=texts),
    events.CompetitorRegistered: st.builds(
        events.CompetitorRegistered,
        competitor_id=ids,
        name=texts,
        tags=_tags,
        color=texts,
        parent_id=_perhaps(ids),
        key=_perhaps(texts),
    ),
    events.CompetitorChanged: st.builds(
        events.CompetitorChanged,
        competitor_id=ids,
        name=_unset_or(texts),
        tags=_unset_or(_tags),
        color=_unset_or(texts),
        parent_id=_unset_or(_perhaps(ids)),
        key=_unset_or(_perhaps(texts)),
    ),
    events.CompetitorErased: st.builds(events.CompetitorErased, competitor_id=ids),
    events.CompetitionAdded: st.builds(
        events.CompetitionAdded,
        competition_id=ids,
        group_id=st.integers(-ID_MAX - 1, ID_MAX),
        started_at=_perhaps(moments),
        location=texts,
        participants=_lists,
        result=_perhaps(_results),
        winner_id=_perhaps(ids),
        scale=texts,
        round=_perhaps(st.integers(-ID_MAX - 1, ID_MAX)),
        round_name=texts,
        key=_perhaps(texts),
    ),
    events.CompetitionChanged: st.builds(
        events.CompetitionChanged,
        competition_id=ids,
        started_at=_unset_or(_perhaps(moments)),
        location=_unset_or(texts),
        result=_unset_or(_perhaps(_results)),
        winner_id=_unset_or(_perhaps(ids)),
        participants=_unset_or(_lists),
        group_id=_unset_or(st.integers(-ID_MAX - 1, ID_MAX)),
        scale=_unset_or(texts),
        round=_unset_or(_perhaps(st.integers(-ID_MAX - 1, ID_MAX))),
        round_name=_unset_or(texts),
        key=_unset_or(_perhaps(texts)),
        scored=st.booleans(),
    ),
    events.RankingCreated: st.builds(
        events.RankingCreated,
        ranking_id=ids,
        name=texts,
        participants=_lists,
        main_unity_id=ids,
        main_unity_name=texts,
        description=_perhaps(texts),
        main_unity_sort=st.sampled_from(Sort),
        main_unity_decimals=decimals,
        main_unity_time=time_units,
        main_unity_counts=st.sampled_from(Counts),
        main_unity_absent=st.sampled_from([None, "none"]),
    ),
    events.RankingModified: st.builds(
        events.RankingModified,
        ranking_id=ids,
        participants=_lists,
        main_unity_name=texts,
        name=_unset_or(texts),
        description=_unset_or(_perhaps(texts)),
    ),
    events.RankingInformationChanged: st.builds(
        events.RankingInformationChanged,
        ranking_id=ids,
        name=_unset_or(texts),
        description=_unset_or(_perhaps(texts)),
        zones=_unset_or(_perhaps(_zones)),
    ),
    events.ParticipantsChanged: st.builds(events.ParticipantsChanged, ranking_id=ids, added=_lists, removed=_lists),
    events.UnityAdded: st.builds(
        events.UnityAdded,
        ranking_id=ids,
        unity_id=ids,
        name=texts,
        sort=st.sampled_from(Sort),
        decimals=decimals,
        time=time_units,
        counts=st.sampled_from(Counts),
        absent=st.sampled_from([None, "none"]),
    ),
    events.UnityChanged: st.builds(
        events.UnityChanged,
        ranking_id=ids,
        unity_id=ids,
        name=_unset_or(texts),
        sort=_unset_or(st.sampled_from(Sort)),
    ),
    events.ClassificationDeclared: st.builds(
        events.ClassificationDeclared, ranking_id=ids, criteria=st.lists(_criteria, max_size=3).map(tuple)
    ),
    events.ScoringDeclared: st.builds(
        events.ScoringDeclared, ranking_id=ids, scorings=st.lists(_scorings, max_size=2).map(tuple)
    ),
    events.PointsScored: st.builds(
        events.PointsScored,
        ranking_id=ids,
        competition_id=ids,
        deltas=st.lists(_deltas, max_size=3).map(tuple),
        results=st.lists(_scored, max_size=2).map(tuple),
        instead_of=_perhaps(ids),
        since=_perhaps(moments),
        silent=st.lists(_deltas, max_size=2).map(tuple),
        silent_results=st.lists(_scored, max_size=2).map(tuple),
        totals=st.lists(_totals, max_size=2).map(tuple),
    ),
    events.PointsAdded: st.builds(
        events.PointsAdded,
        ranking_id=ids,
        deltas=st.lists(_deltas, max_size=5).map(tuple),
        results=st.lists(_scored, max_size=2).map(tuple),
        competition_id=_perhaps(ids),
        reason=_perhaps(texts),
        part=_perhaps(st.tuples(st.integers(1, 3), st.integers(2, 3))),
    ),
    events.PointsReversed: st.builds(
        events.PointsReversed,
        ranking_id=ids,
        deltas=st.lists(_deltas, max_size=5).map(tuple),
        competition_id=_perhaps(ids),
        reverses=ids,
        undone=_perhaps(st.booleans()),
        struck=_perhaps(st.booleans()),
        totals=st.lists(_totals, max_size=2).map(tuple),
        replaced=st.lists(st.tuples(ids, ids), max_size=2).map(tuple),
        instead_of=_perhaps(ids),
    ),
    events.PointsExpired: st.builds(
        events.PointsExpired, ranking_id=ids, boundary=moments, deltas=st.lists(_deltas, max_size=5).map(tuple)
    ),
    events.CompetitorsStruck: st.builds(
        events.CompetitorsStruck, competition_id=ids, competitors=st.lists(ids, max_size=3).map(tuple)
    ),
    events.CompetitorsUnstruck: st.builds(
        events.CompetitorsUnstruck, competition_id=ids, competitors=st.lists(ids, max_size=3).map(tuple)
    ),
    events.CompetitionVoided: st.builds(events.CompetitionVoided, competition_id=ids),
    events.CompetitionUnvoided: st.builds(events.CompetitionUnvoided, competition_id=ids),
    events.RankingClosed: st.builds(events.RankingClosed, ranking_id=ids),
    events.RankingReopened: st.builds(events.RankingReopened, ranking_id=ids),
    events.RankingHidden: st.builds(events.RankingHidden, ranking_id=ids),
    events.RankingShown: st.builds(events.RankingShown, ranking_id=ids),
    events.RankingsOrdered: st.builds(events.RankingsOrdered, rankings=st.lists(ids, max_size=3).map(tuple)),
    events.TournamentPublished: st.builds(events.TournamentPublished),
    events.TournamentUnpublished: st.builds(events.TournamentUnpublished),
    events.TournamentArchived: st.builds(events.TournamentArchived),
    events.TournamentDeleted: st.builds(events.TournamentDeleted),
    events.TournamentRestored: st.builds(events.TournamentRestored),
    events.PublicationFrozen: st.builds(events.PublicationFrozen, at=ids),
    events.PublicationRevealed: st.builds(events.PublicationRevealed, to=_perhaps(ids)),
    events.EventSetAside: st.builds(
        events.EventSetAside,
        sequence=st.integers(1, events.SET_ASIDE_MAX),
        digest=st.binary(min_size=32, max_size=32).map(bytes.hex),
    ),
}


def any_event() -> st.SearchStrategy[Event]:
    return st.one_of(*EVENTS.values())


# ── Commands of a small world ───────────────────────────────────────────────────────────────────────────

COMMANDS_MAX: Final = 40
NOBODY: Final = 999_999
"""An id that nothing has."""

_names: Final = st.sampled_from(["Points", " Goals ", "Fair play", "Tempi\N{COMBINING GRAVE ACCENT}", "點"])
_notes: Final = st.sampled_from(["all of it", "line\nand\ttab", "  kept as it is ", "\N{SNOWMAN}"])
_scores: Final = st.sampled_from(["3-1", "0-0", " 21:19 ", "a. e. t.", "½"])
_amounts: Final = st.integers(-3, 3) | st.integers(-DELTA_MAX, DELTA_MAX)
_times: Final = st.sampled_from(
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ]
)

_tag_lists: Final = st.lists(_names, max_size=2).map(tuple)
_colors: Final = st.sampled_from(["ff0000", "00FF7f"])
_places: Final = st.just("") | _names
_keys: Final = st.sampled_from([f"key {n}" for n in range(20)])
_nothing: Final = st.none()
_tied: Final = st.just("tied")
drops: Final = st.sampled_from([(), (), ((2, 1),), ((3, 2),), ((2, 1), (3, 2), (5, 4))])
"""Of criteria."""
_sorts: Final = st.sampled_from(Sort)
_rounds: Final = st.integers(-1, 3)
_publications: Final = (
    st.fixed_dictionaries({"published": st.booleans()})
    | st.fixed_dictionaries({"freeze": st.just("now") | st.integers(1, COMMANDS_MAX)})
    | st.fixed_dictionaries({"reveal": st.sampled_from(["next", "all"]) | st.integers(1, COMMANDS_MAX)})
)

_Draw = Callable[[st.SearchStrategy[Any]], Any]
_NextId = Callable[[], int]


def _one_of(draw: _Draw, known: Iterable[Any]) -> Any:
    """One of `known`; once in a while, and where there are none, what does not exist."""
    known = list(known)
    unknown = not known or draw(st.integers(0, 24)) == 24
    return NOBODY if unknown else _any_of(draw, known)


def _any_of(draw: _Draw, known: list[_T]) -> _T:
    return known[draw(st.integers(0, len(known) - 1))]


def _some_of(draw: _Draw, known: Iterable[CompetitorId], *, at_least: int, at_most: int) -> tuple[CompetitorId, ...]:
    known = list(known)
    if not known:
        return ()
    size = draw(st.integers(min(at_least, len(known)), min(at_most, len(known))))
    return tuple(known.pop(draw(st.integers(0, len(known) - 1))) for _ in range(size))


def _register_competitor(draw: _Draw, board: Board, next_id: _NextId) -> commands.RegisterCompetitor:
    return commands.RegisterCompetitor(
        competitor_id=next_id(),
        name=draw(_names),
        tags=draw(_tag_lists),
        color=draw(_perhaps(_colors)),
        parent_id=_one_of(draw, board.competitors) if board.competitors and draw(st.booleans()) else None,
        key=draw(_perhaps(_keys)),
    )


def _change_competitor(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    return commands.ChangeCompetitor(
        competitor_id=_one_of(draw, board.competitors),
        name=draw(_unset_or(_names)),
        tags=draw(_unset_or(_perhaps(_tag_lists))),
        color=draw(_unset_or(_perhaps(_colors))),
        parent_id=_one_of(draw, board.competitors) if draw(st.booleans()) else draw(_unset_or(_nothing)),
        key=draw(_unset_or(_perhaps(_keys))),
    )


def _erase_competitor(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    return commands.EraseCompetitor(competitor_id=_one_of(draw, board.competitors))


def _performances(draw: _Draw, participants: tuple[CompetitorId, ...]) -> Result | None:
    """A result of some form for that many participants, in an order of its own."""
    if len(participants) <= SCORE_PARTICIPANTS_MAX:
        return draw(_perhaps(_scores))
    performances = {
        competitor_id: draw(_scores) for competitor_id in _some_of(draw, participants, at_least=0, at_most=4)
    }
    as_text = msgspec.json.encode(performances).decode()
    return _any_of(draw, [None, performances, as_text])


def _add_competition(draw: _Draw, board: Board, next_id: _NextId) -> commands.AddCompetition:
    participants = _some_of(draw, board.competitors, at_least=0, at_most=4)
    return commands.AddCompetition(
        competition_id=next_id(),
        group_id=draw(st.integers(-2, 2)),
        started_at=draw(_perhaps(_times)),
        location=draw(_perhaps(_names)),
        participants=participants,
        result=_performances(draw, participants),
        winner_id=_one_of(draw, participants) if participants and draw(st.booleans()) else None,
        scale=draw(_perhaps(_names)),
        round=draw(_perhaps(_rounds)),
        round_name=draw(_perhaps(_names)),
        key=draw(_perhaps(_keys)),
    )


def _change_competition(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    competition_id = _one_of(draw, board.competitions)
    competition = board.competitions.get(competition_id)
    participants = () if competition is None else competition.participants
    relists = draw(st.booleans())
    if relists:
        participants = _some_of(draw, board.competitors, at_least=0, at_most=4)
    return commands.ChangeCompetition(
        competition_id=competition_id,
        participants=participants if relists else UNSET,
        group_id=draw(_unset_or(st.integers(-2, 2))),
        scale=draw(_unset_or(_perhaps(_names))),
        round=draw(_unset_or(_perhaps(_rounds))),
        round_name=draw(_unset_or(_perhaps(_names))),
        started_at=draw(_unset_or(_perhaps(_times))),
        location=draw(_unset_or(_perhaps(_places))),
        result=_performances(draw, participants) if draw(st.booleans()) else UNSET,
        winner_id=_one_of(draw, participants) if participants and draw(st.booleans()) else draw(_unset_or(_nothing)),
        key=draw(_unset_or(_perhaps(_keys))),
    )


def _record_result(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    """The command that it is on this board."""
    asked = _change_competition(draw, board, next_id)
    fields = msgspec.structs.asdict(asked) | {"competition_id": next_id(), "group_id": draw(st.integers(-2, 2))}
    return recording(board, commands.RecordResult(**fields))


def _record_results(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    """Of competitions of this board, perhaps of one twice, and of a new one."""
    asked = [_change_competition(draw, board, next_id) for _ in range(draw(st.integers(1, 3)))]
    changed = [{**msgspec.structs.asdict(one), "of": one.competition_id, "competition_id": next_id()} for one in asked]
    new = msgspec.structs.asdict(_add_competition(draw, board, next_id))
    return commands.RecordResults(
        items=tuple([commands.RecordResult(**one) for one in ([*changed, new] if draw(st.booleans()) else changed)])
    )


def _create_ranking(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    return commands.CreateRanking(
        ranking_id=next_id(),
        main_unity_id=next_id(),
        name=draw(_names),
        main_unity_name=draw(_names),
        participants=_some_of(draw, board.competitors, at_least=1, at_most=6),
        description=draw(_perhaps(_notes)),
        main_unity_sort=draw(_sorts),
        **draw(st.sampled_from([{}, {"main_unity_decimals": 1}, {"main_unity_time": "ms"}])),
    )


def _modify_ranking(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    ranking_id, ranking = _a_ranking(draw, board)
    as_before = tuple(sorted(ranking.participants)), next(iter(ranking.unities.values())).name
    return commands.ModifyRanking(
        ranking_id=ranking_id,
        main_unity_name=as_before[1] if draw(st.booleans()) else draw(_names),
        participants=as_before[0] if draw(st.booleans()) else _some_of(draw, board.competitors, at_least=1, at_most=6),
        name=draw(_unset_or(_names)),
        description=draw(_unset_or(_perhaps(_notes))),
    )


def _change_ranking_information(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    return commands.ChangeRankingInformation(
        ranking_id=_a_ranking(draw, board)[0],
        name=draw(_unset_or(_names)),
        description=draw(_unset_or(_perhaps(_notes))),
        zones=draw(_unset_or(_perhaps(_zones))),
    )


def _change_participants(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    ranking_id, _ = _a_ranking(draw, board)
    added = _some_of(draw, board.competitors, at_least=0, at_most=3)
    removed = _some_of(draw, board.competitors, at_least=0, at_most=3)
    return commands.ChangeParticipants(
        ranking_id=ranking_id,
        added=added,
        removed=removed if draw(st.booleans()) else tuple(c for c in removed if c not in added),
    )


def _add_unity(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    ranking_id, _ = _a_ranking(draw, board)
    notation = draw(st.sampled_from([{}, {"decimals": 2}, {"time": "s"}]))
    return commands.AddUnity(
        ranking_id=ranking_id, unity_id=next_id(), name=draw(_names), sort=draw(_sorts), **notation
    )


def _change_unity(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    ranking_id, ranking = _a_ranking(draw, board)
    return commands.ChangeUnity(
        ranking_id=ranking_id,
        unity_id=_one_of(draw, ranking.unities),
        name=draw(_unset_or(_names)),
        sort=draw(_unset_or(_perhaps(_sorts))),
    )


def _hide_ranking(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    ranking_id, _ = _a_ranking(draw, board)
    return commands.ChangeVisibility(ranking_id=ranking_id, hidden=ranking_id not in board.publication.hidden)


def _order_rankings(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    return commands.OrderRankings(
        rankings=tuple(draw(st.lists(st.sampled_from([*board.rankings, NOBODY]), unique=True)))
    )


def _declare_scoring(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    ranking_id, ranking = _a_ranking(draw, board)
    awards = []
    for unity_id in dict.fromkeys([_one_of(draw, ranking.unities) for _ in range(draw(st.integers(1, 2)))]):
        value = draw(st.sampled_from(["outcome", "for", "against"]))
        table = {"win": 3, "draw": 1, "loss": 0} if value == "outcome" else None
        awards.append(Award(unity_id=unity_id, value=value, table=table))
    return commands.DeclareScoring(ranking_id=ranking_id, scorings=(Scoring(awards=tuple(awards)),))


def _rename_tournament(draw: _Draw, _board: Board, _next_id: _NextId) -> Command:
    return commands.RenameTournament(name=draw(_names))


def _restore_tournament(_draw: _Draw, _board: Board, _next_id: _NextId) -> Command:
    return commands.RestoreTournament()


def _archive_tournament(_draw: _Draw, _board: Board, _next_id: _NextId) -> Command:
    return commands.ArchiveTournament()


def _change_presentation(draw: _Draw, _board: Board, _next_id: _NextId) -> Command:
    return commands.ChangePresentation(
        zone=draw(_unset_or(_perhaps(st.sampled_from(["Europe/Berlin", "Asia/Tokyo"])))),
        language=draw(_unset_or(_perhaps(st.sampled_from(LANGUAGES)))),
        accent=draw(_unset_or(_perhaps(st.sampled_from(["c0ffee", "123456"])))),
        logo=draw(_unset_or(_perhaps(st.just(LOGO)))),
        listed=draw(_unset_or(st.booleans())),
    )


def _declare_classification(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    ranking_id, ranking = _a_ranking(draw, board)
    criteria = [
        Criterion(
            unity_id=_one_of(draw, ranking.unities),
            best=draw(_perhaps(st.integers(1, 3))),
            among=draw(_perhaps(_tied)),
            drop=draw(drops),
        )
        if draw(st.integers(0, 3))
        else Criterion(unity_id=_one_of(draw, ranking.unities), first=True)
        for _ in range(draw(st.integers(0, 4)))
    ]
    scored = [one for one in ranking.unities if worth(ranking.scorings, one, "win") is not None]
    criteria += [
        Criterion(unity_id=draw(st.sampled_from(scored)), tiebreak=draw(st.sampled_from(get_args(TiebreakCode))))
        for _ in range(draw(st.integers(0, 2)) if scored else 0)
    ]
    return commands.DeclareClassification(ranking_id=ranking_id, criteria=tuple(criteria))


def _add_points(draw: _Draw, board: Board, _next_id: _NextId) -> commands.AddPoints:
    ranking_id, ranking = _a_ranking(draw, board)
    enrolled = sorted(ranking.participants)
    return commands.AddPoints(
        ranking_id=ranking_id,
        deltas=tuple(
            Delta(_one_of(draw, enrolled), _one_of(draw, ranking.unities), draw(_amounts))
            for _ in range(draw(st.integers(1, 4)))
        ),
        competition_id=_one_of(draw, board.competitions) if board.competitions and draw(st.booleans()) else None,
        reason=draw(_perhaps(_names)),
    )


def _register_competitors(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    asked = [_register_competitor(draw, board, next_id) for _ in range(draw(st.integers(1, 3)))]
    return commands.RegisterCompetitors(items=tuple(asked))


def _add_competitions(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    asked = [_add_competition(draw, board, next_id) for _ in range(draw(st.integers(1, 3)))]
    return commands.AddCompetitions(items=tuple(asked))


def _add_points_to_rankings(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    asked = [_add_points(draw, board, next_id) for _ in range(draw(st.integers(1, 3)))]
    its = {one.ranking_id: commands.RankingDeltas(one.ranking_id, one.deltas) for one in asked}
    return commands.AddPointsToRankings(
        rankings=tuple(its.values()), competition_id=asked[0].competition_id, reason=asked[0].reason
    )


def _void_competition(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    counting = [competition_id for competition_id, c in board.competitions.items() if c.voided_at is None]
    return commands.VoidCompetition(competition_id=_one_of(draw, counting or board.competitions), caused={})


def _unvoid_competition(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    voided = [competition_id for competition_id, c in board.competitions.items() if c.voided_at is not None]
    return commands.UnvoidCompetition(competition_id=_one_of(draw, voided or board.competitions), caused={})


def _strike_competitors(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    competitors = _some_of(draw, board.competitors, at_least=1, at_most=2)
    return commands.StrikeCompetitors(
        competition_id=_one_of(draw, board.competitions), competitors=competitors, caused={}
    )


def _unstrike_competitors(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    competition_id = _one_of(draw, board.struck or board.competitions)
    struck = sorted(board.struck.get(competition_id, ()))
    return commands.UnstrikeCompetitors(
        competition_id=competition_id,
        competitors=_some_of(draw, struck or board.competitors, at_least=1, at_most=2),
        caused={},
    )


def _reverse_points(draw: _Draw, board: Board, next_id: _NextId) -> commands.ReversePoints:
    """Of points that are not in the log, if it is not asked of a history. Their competition is there: in a log, it
    stands before them."""
    points = _add_points(draw, board, next_id)
    caused_by = points.competition_id if points.competition_id in board.competitions else None
    added = events.PointsAdded(ranking_id=points.ranking_id, deltas=points.deltas, competition_id=caused_by)
    undone = board.rankings[points.ranking_id].undone if points.ranking_id in board.rankings else {}
    number, event = Sequence(draw(st.integers(2, COMMANDS_MAX))), added
    root = number
    if undone and draw(st.booleans()):
        root, number = draw(st.sampled_from(sorted(undone.items())))
        event = events.PointsReversed(ranking_id=points.ranking_id, deltas=(), reverses=root, undone=True)
    named = commands.NamedEvent(event, ActorId(0), {root: added})
    return commands.ReversePoints(ranking_id=points.ranking_id, sequence=number, named=named)


def _close_ranking(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    return commands.CloseRanking(ranking_id=_a_ranking(draw, board)[0])


def _reopen_ranking(draw: _Draw, board: Board, _next_id: _NextId) -> Command:
    closed = [ranking_id for ranking_id, ranking in board.rankings.items() if ranking.closed_at is not None]
    return commands.ReopenRanking(ranking_id=_one_of(draw, closed or board.rankings))


def _change_publication(draw: _Draw, board: Board, _next_id: _NextId) -> commands.ChangePublication:
    said = draw(_publications)
    held = board.publication.frozen_at
    last = draw(_perhaps(st.integers((held or 0) + 1, (held or 0) + 3)))
    return commands.ChangePublication(**said, head=Sequence(COMMANDS_MAX), next_reveal=commands.NextReveal(held, last))


_NO_LIST: Final = Enrolment([NOBODY])
_NO_RANKING: Final = Ranking(
    number=1,
    place=1,
    name="Overall",
    description=None,
    participants=_NO_LIST,
    unities={NOBODY: Unity(number=1, name="Points", sort=Sort.DESC, totals=Totals(_NO_LIST))},
    updated_at=datetime(2024, 2, 29, tzinfo=UTC),
    revised=Sequence(1),
)


def _a_ranking(draw: _Draw, board: Board) -> tuple[RankingId, Ranking]:
    ranking_id = _one_of(draw, board.rankings)
    return ranking_id, board.rankings.get(ranking_id, _NO_RANKING)


_Ask = Callable[[_Draw, Board, _NextId], Command]
_ASKED: Final[list[_Ask]] = [
    *[_add_points] * 8,
    *[_modify_ranking] * 4,
    *[_register_competitor] * 2,
    *[_change_competitor] * 2,
    *[_add_competition] * 2,
    *[_change_competition] * 2,
    _record_result,
    _record_results,
    *[_create_ranking] * 2,
    *[_change_participants] * 4,
    *[_add_unity] * 3,
    *[_reopen_ranking] * 2,
    *[_void_competition] * 2,
    *[_change_unity] * 3,
    *[_declare_classification] * 2,
    _declare_scoring,
    _erase_competitor,
    _change_ranking_information,
    _rename_tournament,
    _change_presentation,
    _archive_tournament,
    *[_hide_ranking] * 2,
    _order_rankings,
    _register_competitors,
    _add_competitions,
    *[_add_points_to_rankings] * 2,
    _unvoid_competition,
    *[_reverse_points] * 2,
    _strike_competitors,
    _unstrike_competitors,
    _close_ranking,
    *[_change_publication] * 4,
]
_asked: Final = st.sampled_from(_ASKED)
_FIRST: Final[list[_Ask]] = [_register_competitor, _register_competitor, _register_competitor, _create_ranking]


@st.composite
def commands_for(draw: _Draw, board: Board) -> Command:
    """A command that could be asked of a tournament with this `board`, accepted or not; what it creates is new, and
    what it voids had given no points. Its log has COMMANDS_MAX events."""
    next_id = count(ID_MAX // 2).__next__
    return draw(_asked)(draw, board, next_id)


# ── Histories ───────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def histories(draw: _Draw, commands_max: int = COMMANDS_MAX, asked: st.SearchStrategy[_Ask] = _asked) -> list[Event]:
    """What happened in a tournament after its opening, as `decide` has it from random commands, and as the log holds it
    in the end: without the personal fields of those who were erased. One that was archived is restored soon."""
    board, next_id = Board(), count(1).__next__
    history: list[Event] = []
    length = draw(st.integers(0, commands_max))
    for ask in [*_FIRST, *(draw(asked) for _ in range(length)), _restore_tournament]:
        is_over = board.publication.stage is not None and draw(st.booleans())
        command = (_restore_tournament if is_over else ask)(draw, board, next_id)
        if isinstance(command, commands.Revalue):
            command = msgspec.structs.replace(command, caused=caused_of(history, command.competition_id))
        elif isinstance(command, commands.ReversePoints):
            given = [n for n, event in enumerate(history, start=2) if isinstance(event, events.Points)]
            command = reverse(history, draw(st.sampled_from(given or [1])))
        elif isinstance(command, commands.ChangePublication):
            command = _judged_at(command, board, history)
        try:
            made = decided(board, command, history)
        except Refusal:
            continue
        for event in made:
            recorded = Recorded(Sequence(len(history) + 2), _OPENED_AT, ActorId(0), None, event)
            fold(board, Revisions(), recorded)
            history.append(event)
    erased = {event.competitor_id for event in history if isinstance(event, events.CompetitorErased)}
    return [_forgotten(event) if _is_personal(event, erased) else event for event in history]


def _is_personal(event: Event, erased: set[CompetitorId]) -> bool:
    """Whether it has personal fields of those who were erased."""
    return (
        isinstance(event, events.Naming)
        and event.competitor_id in erased
        and any(getattr(event, name) is not UNSET for name in event.personal)
    )


def _forgotten(event: Event) -> Event:
    """The event, as it is once its personal fields are erased."""
    assert isinstance(event, events.Naming)
    return type(event)(competitor_id=event.competitor_id, parent_id=event.parent_id, commitment="c" * 64)


def decided(board: Board, command: Command, history: list[Event]) -> tuple[Event, ...]:
    """What the desk makes of a command: it reads results, and what scorings have given, where judging lacks them."""
    run = recorded_after_opening(history)
    try:
        return _decided_with(board, command, run, {})
    except LacksResults as lack:
        return _decided_with(board, command, run, results_of(board, run, lack.ranking_ids))


def recorded_after_opening(history: list[Event]) -> list[Recorded]:
    return [Recorded(Sequence(n), _OPENED_AT, ActorId(0), None, event) for n, event in enumerate(history, start=2)]


def results_of(board: Board, run: list[Recorded], ranking_ids: Iterable[RankingId]) -> dict[RankingId, Results]:
    """The results of these rankings, as they are read from the log that the board is the fold of."""
    results = {ranking_id: Results(board.rankings[ranking_id].unities) for ranking_id in ranking_ids}
    for ranking_id, its in results.items():
        for recorded in run:
            note_given(its, ranking_id, recorded)
            counting = [line.delta for line in rule_of(board, ranking_id).of(recorded) if line.is_result]
            its.leave_out(recorded.sequence, counting.__contains__)
    return results


def _decided_with(
    board: Board, command: Command, run: list[Recorded], results: dict[RankingId, Results]
) -> tuple[Event, ...]:
    events = decide(board, command, Known(results=results))
    if not may_rescore(board, command):
        return events
    given = GivenLines()
    for recorded in run:
        given.take(recorded)
    return *events, *finished(rescored(board, events, given, results, None))


def _add_unity_of_results(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    return msgspec.structs.replace(_add_unity(draw, board, next_id), **draw(_of_results))


def _create_ranking_of_results(draw: _Draw, board: Board, next_id: _NextId) -> Command:
    created = _create_ranking(draw, board, next_id)
    return msgspec.structs.replace(created, **as_main_unity(UnityOptions(**draw(st.one_of(st.just({}), _of_results)))))


_of_results: Final = st.sampled_from([{"counts": Counts.BEST}, {"counts": Counts.LAST}, {"absent": "none"}])


def result_histories() -> st.SearchStrategy[list[Event]]:
    """Histories in which unities count sums, with and without one of nothing, best and last results, which are given,
    voided, struck and undone."""
    others = _void_competition, _unvoid_competition, _strike_competitors, _unstrike_competitors
    made = _add_unity_of_results, _create_ranking_of_results, _add_competition, _change_competition
    lists = _change_participants, _add_points_to_rankings, _declare_classification
    return histories(asked=st.sampled_from([*[_add_points] * 6, *[_reverse_points] * 3, *made, *others, *lists]))


def scored_histories() -> st.SearchStrategy[list[Event]]:
    """Histories in which scorings give points for results, best and last ones among them, and little else happens."""
    results = _add_competition, _change_competition, _change_competition, _record_result
    others = _void_competition, _unvoid_competition, _strike_competitors, _unstrike_competitors, _reverse_points
    more = _change_participants, _close_ranking, _reopen_ranking, _add_unity_of_results, _add_points
    return histories(asked=st.sampled_from([*results * 4, *[_declare_scoring] * 4, *others, *more]))


def dated_histories() -> st.SearchStrategy[list[Event]]:
    """Histories in which competitions give points, get dates, are voided and undone, and little else happens."""
    others = _change_competition, _void_competition, _unvoid_competition, _reverse_points
    return histories(asked=st.sampled_from([*[_add_points] * 5, _add_competition, _add_competition, *others]))


def _judged_at(command: commands.ChangePublication, board: Board, history: list[Event]) -> Command:
    """The command with what the desk fills in, at the head of a history that begins at sequence 2."""
    head = Sequence(len(history) + 1)
    search = NextRevealSearch(board.publication.frozen_at)
    for sequence, event in enumerate(history, start=2):
        if sequence > (board.publication.frozen_at or head) and not search.over:
            search.take([Recorded(Sequence(sequence), _OPENED_AT, ActorId(0), None, event)])
    return msgspec.structs.replace(command, head=head, next_reveal=search.found)


def caused_of(history: list[Event], competition_id: CompetitionId) -> commands.CausedPoints:
    """The points that the competition caused, in a history that begins at sequence 2."""
    return {
        Sequence(sequence): event
        for sequence, event in enumerate(history, start=2)
        if isinstance(event, events.PointsAdded) and event.competition_id == competition_id
    }


def reverse(history: list[Event], sequence: int) -> commands.ReversePoints:
    """Reverses the event `sequence` of a history that begins at sequence 2."""
    event = OPENED if sequence == 1 else history[sequence - 2]
    if not isinstance(event, events.Points):
        named = commands.NamedEvent(event, ActorId(0), {})
        return commands.ReversePoints(ranking_id=RankingId(1), sequence=Sequence(sequence), named=named)
    root = events.root(Sequence(sequence), event)
    added = history[root - 2]
    assert isinstance(added, events.PointsAdded)
    number, count = added.part or (1, 1)
    request = range(root - number + 1, root - number + 1 + count)
    points = {Sequence(n): one for n in request if isinstance(one := history[n - 2], events.PointsAdded)}
    named = commands.NamedEvent(event, ActorId(0), points)
    return commands.ReversePoints(ranking_id=event.ranking_id, sequence=Sequence(sequence), named=named)


OPENED: Final = events.TournamentOpened(name="Spring Open", slug="spring-open")
_OPENED_AT: Final = datetime(2024, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC)
_pauses: Final = st.sampled_from([timedelta(), timedelta(microseconds=1), timedelta(seconds=2), timedelta(days=1)])


@st.composite
def logs(
    draw: _Draw, commands_max: int = COMMANDS_MAX, of: st.SearchStrategy[list[Event]] | None = None
) -> list[Recorded]:
    """A history from the opening on, as a log holds it: without gaps, its time never running backwards."""
    recorded_at = _OPENED_AT
    log = [Recorded(Sequence(1), recorded_at, ActorId(0), None, OPENED)]
    for sequence, event in enumerate(draw(histories(commands_max) if of is None else of), start=2):
        recorded_at += draw(_pauses)
        log.append(Recorded(Sequence(sequence), recorded_at, ActorId(sequence % 3), None, event))
    return log


def undone_in(log: Iterable[Recorded]) -> set[Sequence]:
    """The events of any ranking whose points are undone at the end of `log`."""
    undone: set[Sequence] = set()
    for event in [recorded.event for recorded in log]:
        if isinstance(event, events.PointsReversed) and event.undone is not None:
            (undone.add if event.undone else undone.discard)(event.reverses)
    return undone


def struck_in(log: list[Recorded]) -> dict[CompetitionId, set[CompetitorId]]:
    """Who is struck from competitions at the end of `log`."""
    struck: dict[CompetitionId, set[CompetitorId]] = {}
    for event in [recorded.event for recorded in log]:
        if isinstance(event, events.CompetitorsStruck):
            struck.setdefault(event.competition_id, set()).update(event.competitors)
        elif isinstance(event, events.CompetitorsUnstruck):
            struck[event.competition_id].difference_update(event.competitors)
    return struck


def voided_in(log: Iterable[Recorded]) -> set[CompetitionId]:
    """The competitions that are voided at the end of `log`."""
    voided: set[CompetitionId] = set()
    for event in [recorded.event for recorded in log]:
        if isinstance(event, events.CompetitionVoided | events.CompetitionUnvoided):
            (voided.add if isinstance(event, events.CompetitionVoided) else voided.discard)(event.competition_id)
    return voided


def counted_in(log: list[Recorded]) -> list[Recorded]:
    """The events of `log` that add points, without those that are undone or whose competition is voided at its end, and
    without lines that a correction took back."""
    undone, voided = undone_in(log), voided_in(log)
    taken_back: dict[Sequence, set[tuple[int, int]]] = {}
    for event in [recorded.event for recorded in log]:
        if isinstance(event, events.PointsReversed):
            taken_back.setdefault(event.reverses, set()).update(event.replaced)
    counted = []
    for r in log:
        if (
            isinstance(r.event, events.PointsAdded)
            and r.sequence not in undone
            and r.event.competition_id not in voided
        ):
            its = taken_back.get(r.sequence, ())
            lines = {
                name: tuple([one for one in getattr(r.event, name) if (one.competitor_id, one.unity_id) not in its])
                for name in ("deltas", "results")
            }
            if any(lines.values()):
                counted.append(msgspec.structs.replace(r, event=msgspec.structs.replace(r.event, **lines)))
    return counted


class SummedBoard(Board, kw_only=True):
    """A board, and the sums of competitions of its rankings."""

    sums: dict[RankingId, CompetitionSums] = msgspec.field(default_factory=dict)


def fold_events(board: Board, *history: Event, first: int = 1) -> None:
    """Folds what happened into `board`, for those who look at no time of it."""
    sums = board.sums if isinstance(board, SummedBoard) else {}
    for sequence, event in enumerate(history, start=first):
        fold(board, Revisions(), Recorded(Sequence(sequence), _OPENED_AT, ActorId(0), None, event))
        if isinstance(event, events.Points) and event.ranking_id in sums:
            assert count_in(sums[event.ranking_id], Sequence(sequence), _OPENED_AT, event, expires=False)


def judged_by(state: State) -> object:
    """All that commands are judged against, with the order of everything whose order decisions look at."""
    return (
        {competitor_id: competitor.parent_id for competitor_id, competitor in state.competitors.items()},
        {
            c: (one.participants, one.voided_at is None, {*one.struck}, one.result, one.winner_id)
            for c, one in state.competitions.items()
        },
        {
            ranking_id: (
                ranking.closed_at is None,
                frozenset(ranking.participants),
                [(unity_id, unity.name) for unity_id, unity in ranking.unities.items()],  # the main one first
                dict(ranking.undone),
            )
            for ranking_id, ranking in state.rankings.items()
        },
        state.publication,
    )


def board_of(log: Iterable[Recorded]) -> Board:
    """The board that `log` leads to."""
    board = Board()
    for recorded in log:
        fold(board, Revisions(), recorded)
    return board


def with_sums(board: Board, history: Iterable[Event]) -> SummedBoard:
    """The board, with sums as they are read from the log after `history`."""
    log = [Recorded(Sequence(n), _OPENED_AT, ActorId(0), None, event) for n, event in enumerate(history, start=1)]
    sums = {one: sums_of(log, what_counts(board, one, None)) for one in board.rankings}
    return SummedBoard(**msgspec.structs.asdict(board), sums=sums)


def counted_of(board: SummedBoard, ranking_id: RankingId) -> Counted:
    """The source of the values of a ranking's criteria."""
    return Counted(board, board.rankings[ranking_id], board.sums[ranking_id])


def passage_of(board: Board, after: Sequence, run: Iterable[Recorded], ranking_id: RankingId, at: int) -> Passage:
    """The passage that shows the event `at`. `run`: the events after the event `after`, which the board shows."""
    earlier, its = cut([*run], ranking_id, Sequence(at))
    for recorded in earlier:
        fold(board, Revisions(), recorded)
    return passage(board, earlier[-1].sequence if earlier else after, its, ranking_id)


def sums_of(log: Iterable[Recorded], counts: WhatCounts) -> CompetitionSums:
    """The sums of competitions that these events make."""
    sums = CompetitionSums(counts.first)
    for recorded in log:
        sums.take(recorded, counts)
    return sums


def copied(board: Board) -> Board:
    """A copy, made as snapshots are: what was stored must go on as what was folded."""
    copy = Board()
    for part in parts_of(board):
        for _ in take_part(part, copy):
            pass
    return copy


def _continues(history: list[Event], event: Event, before: Event) -> bool:
    """Whether `event` is of the request that led to `before`."""
    if isinstance(event, events.PointsScored):
        return True
    if isinstance(event, events.PointsAdded):
        return event.part is not None and event.part[0] > 1
    if not isinstance(event, events.PointsReversed) or event.undone is None:
        return isinstance(event, events.PointsReversed)
    same = isinstance(before, events.PointsReversed) and before.undone == event.undone
    return same and _request_of(history, event) == _request_of(history, before)


def _request_of(history: list[Event], event: Event) -> tuple[int, int]:
    """The first and last event of the request whose points `event` undoes or redoes."""
    assert isinstance(event, events.PointsReversed)
    added = history[event.reverses - 2]
    assert isinstance(added, events.PointsAdded)
    number, count = added.part or (1, 1)
    return event.reverses - number + 1, event.reverses - number + count


def _of_rounds(history: list[Event]) -> set[int]:
    """The indices of events between a competition and what its result gives: several can come in one request."""
    found: set[int] = set()
    of_rounds = events.CompetitionAdded | events.CompetitionChanged | events.PointsScored | events.PointsReversed
    for end, scored in enumerate(history):
        if isinstance(scored, events.PointsScored):
            before = takewhile(lambda number: isinstance(history[number], of_rounds), range(end - 1, -1, -1))
            for number in before:
                event = history[number]
                if (
                    isinstance(event, events.CompetitionAdded | events.CompetitionChanged)
                    and event.competition_id == scored.competition_id
                ):
                    found.update(range(number + 1, end))
                    break
    return found


def runs(history: list[Event], sizes: Iterable[int]) -> Iterator[list[Event]]:
    """`history` in runs of these sizes, cut short after a structural event: as blocks are. What is exact begins
    one, and the reversals that it leads to are in it. The points of one request are in one run."""
    remaining = iter(sizes)
    run: list[Event] = []
    size, full = next(remaining), False
    of_rounds = _of_rounds(history)
    for number, event in enumerate(history):
        if run and (full or event.exact) and number not in of_rounds and not _continues(history, event, run[-1]):
            yield run
            run, size, full = [], next(remaining), False
        run.append(event)
        full = full or event.structural or len(run) >= size
    if run:
        yield run
