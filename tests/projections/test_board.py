"""The board, against what its log says when it is counted by hand."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from engine.domain import events
from engine.domain.errors import LogUnreadable
from engine.domain.events import Delta, Event, Recorded
from engine.domain.terms import (
    OPERATOR,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    Sort,
    Stage,
    TournamentId,
    UnityId,
)
from projections.board.board import Board, Competitor, Revisions, fold, fold_all
from projections.board.hierarchy import NestedSetBounds
from projections.board.publication import Presentation, Publication
from tests.histories import board_of, copied, judged_by, logs, unhurried
from tests.positions import standings
from tests.projections.boards import laid_out, shown_result
from tests.projections.forests import naive

every_log = settings(unhurried, max_examples=20)

# ── Folding ─────────────────────────────────────────────────────────────────────────────────────────────


@every_log
@given(log=logs(), data=st.data())
def test_folding_in_two_parts_is_folding_at_once(log: list[Recorded], data: st.DataObject) -> None:
    split = data.draw(st.integers(0, len(log)))
    first_part = board_of(log[:split])
    resumed = copied(first_part)
    for recorded in log[split:]:
        fold(resumed, Revisions(), recorded)
    together = copied(first_part)
    for _, alike in groupby(log[split:], lambda recorded: type(recorded.event)):
        fold_all(TournamentId(1), together, list(alike))
    assert laid_out(together) == laid_out(resumed) == laid_out(board_of(log))
    assert laid_out(first_part) == laid_out(board_of(log[:split]))


@every_log
@given(log=logs(), data=st.data())
def test_what_requests_are_judged_by_too_may_be_folded_in_two_parts(log: list[Recorded], data: st.DataObject) -> None:
    split = data.draw(st.integers(0, len(log)))
    resumed = copied(board_of(log[:split]))
    judged_by(resumed)  # what is made when it is first asked for, was asked for
    for recorded in log[split:]:
        fold(resumed, Revisions(), recorded)
    assert judged_by(resumed) == judged_by(board_of(log))


@every_log
@given(logs())
def test_what_requests_are_judged_by_is_what_was_said_of_it_last(log: list[Recorded]) -> None:
    board = Board()
    for number, recorded in enumerate(log, start=1):
        fold(board, Revisions(), recorded)
        assert judged_by(board) == said_last([recorded.event for recorded in log[:number]])


def said_last(history: list[Event]) -> object:  # noqa: PLR0915 - a case for each kind of event
    """As `judged_by`, from the events alone."""
    parents: dict[CompetitorId, CompetitorId | None] = {}
    competitions: dict[CompetitionId, dict[str, Any]] = {}
    struck: dict[CompetitionId, set[CompetitorId]] = defaultdict(set)
    is_open: dict[RankingId, bool] = {}
    enrolled: dict[RankingId, frozenset[CompetitorId]] = {}
    unities: dict[RankingId, list[tuple[UnityId, str]]] = {}
    undone: dict[RankingId, dict[Sequence, int]] = {}
    erased = {e.competitor_id for e in history if isinstance(e, events.Naming) and e.commitment is not UNSET}
    published, frozen_at, seen_before = False, None, 0
    stage: Stage | None = None
    hidden: set[RankingId] = set()
    presentation: dict[str, Any] = {"zone": "UTC", "language": None, "accent": None, "logo": None, "listed": False}
    for sequence, event in enumerate(history, start=1):
        match event:
            case events.TournamentPublished():
                published = True
            case events.TournamentUnpublished():
                published, seen_before = False, max(seen_before, frozen_at or sequence - 1)
            case events.TournamentDeleted():
                seen_before = max(seen_before, frozen_at or sequence - 1) if published else seen_before
                published = False
                stage = "deleted"
            case events.TournamentArchived() | events.TournamentRestored():
                stage = "archived" if isinstance(event, events.TournamentArchived) else None
            case events.PublicationFrozen(at=at):
                frozen_at = at
            case events.PublicationRevealed(to=to):
                frozen_at = to
            case events.CompetitorRegistered():
                parents[event.competitor_id] = None if event.competitor_id in erased else event.parent_id
            case events.CompetitorChanged(parent_id=parent_id) if parent_id is not UNSET:
                parents[event.competitor_id] = None if event.competitor_id in erased else parent_id
            case events.CompetitionAdded():
                said = {name: getattr(event, name) for name in ("participants", "result", "winner_id")}
                competitions[event.competition_id] = {"counts": True, **said}
            case events.CompetitionChanged():
                said = {name: getattr(event, name) for name in ("participants", "result", "winner_id")}
                competitions[event.competition_id] |= {n: one for n, one in said.items() if one is not UNSET}
            case events.CompetitionVoided() | events.CompetitionUnvoided():
                competitions[event.competition_id]["counts"] = isinstance(event, events.CompetitionUnvoided)
            case events.CompetitorsStruck(competition_id=competition_id, competitors=competitors):
                struck[competition_id].update(competitors)
            case events.CompetitorsUnstruck(competition_id=competition_id, competitors=competitors):
                struck[competition_id].difference_update(competitors)
            case events.RankingCreated():
                is_open[event.ranking_id] = True
                enrolled[event.ranking_id] = frozenset(event.participants)
                unities[event.ranking_id] = [(event.main_unity_id, event.main_unity_name)]
                undone[event.ranking_id] = {}
            case events.PointsReversed(undone=True):
                undone[event.ranking_id][event.reverses] = sequence
            case events.PointsReversed(undone=False):
                del undone[event.ranking_id][event.reverses]
            case events.RankingModified():
                (main_unity_id, _), *others = unities[event.ranking_id]
                enrolled[event.ranking_id] = frozenset(event.participants)
                unities[event.ranking_id] = [(main_unity_id, event.main_unity_name), *others]
            case events.ParticipantsChanged():
                enrolled[event.ranking_id] = (enrolled[event.ranking_id] - {*event.removed}) | {*event.added}
            case events.UnityAdded():
                unities[event.ranking_id].append((event.unity_id, event.name))
            case events.UnityChanged():
                unities[event.ranking_id] = [
                    (u, event.name if u == event.unity_id and event.name is not UNSET else name)
                    for u, name in unities[event.ranking_id]
                ]
            case events.PresentationChanged():
                said = {n: getattr(event, n) for n in presentation if getattr(event, n) is not UNSET}
                said |= {"zone": said["zone"] or "UTC"} if "zone" in said else {}
                said |= {"logo": said["logo"] and sequence} if "logo" in said else {}
                presentation |= said
            case events.RankingHidden():
                hidden.add(event.ranking_id)
            case events.RankingShown():
                hidden.remove(event.ranking_id)
            case events.RankingClosed() | events.RankingReopened():
                is_open[event.ranking_id] = isinstance(event, events.RankingReopened)
    publication = Publication(
        published=published,
        frozen_at=frozen_at,
        seen_before=seen_before,
        hidden=frozenset(hidden),
        presentation=Presentation(**presentation),
        stage=stage,
    )
    its = {
        c: (said["participants"], said["counts"], struck[c], said["result"], said["winner_id"])
        for c, said in competitions.items()
    }
    return parents, its, {r: (is_open[r], enrolled[r], unities[r], undone[r]) for r in is_open}, publication


@every_log
@given(logs())
def test_rankings_stand_as_they_were_ordered_last(log: list[Recorded]) -> None:
    order: list[RankingId] = []
    for recorded in log:
        match recorded.event:
            case events.RankingCreated(ranking_id=ranking_id):
                order.append(ranking_id)
            case events.RankingsOrdered(rankings=rankings):
                order = [*rankings, *(one for one in order if one not in rankings)]
    rankings = board_of(log).rankings
    assert list(rankings) == order
    assert [one.place for one in rankings.values()] == list(range(1, len(order) + 1))


@every_log
@given(logs())
def test_the_enrolled_are_those_in_the_list_after_every_event(log: list[Recorded]) -> None:
    board = Board()
    for recorded in log:
        fold(board, Revisions(), recorded)
        for ranking in board.rankings.values():
            listed = list(ranking.participants)
            assert (len(ranking.participants), len(set(listed))) == (len(listed), len(listed))
            assert [c for c in board.competitors if c in ranking.participants] == [
                c for c in board.competitors if c in set(listed)
            ]


@every_log
@given(logs())
def test_no_parent_is_new_that_is_not_counted(log: list[Recorded]) -> None:
    board, revisions = Board(), Revisions()
    for recorded in log:
        stamp, before = revisions.parents, parents(board)
        fold(board, revisions, recorded)
        assert revisions.parents > stamp or parents(board) == before


@every_log
@given(logs())
def test_competitors_that_were_there_are_shown_as_before_while_their_stamp_is_the_same(log: list[Recorded]) -> None:
    board, revisions = Board(), Revisions()
    for recorded in log:
        stamp, before = revisions.shown, shapes(board)
        fold(board, revisions, recorded)
        after = shapes(board)
        assert revisions.shown != stamp or all(after[c] == shape for c, shape in before.items())


def shapes(board: Board) -> dict[CompetitorId, tuple[Competitor, NestedSetBounds]]:
    bounds = naive({c: competitor.parent_id for c, competitor in board.competitors.items()})
    return {c: (competitor, bounds[c]) for c, competitor in board.competitors.items()}


def parents(board: Board) -> dict[CompetitorId, CompetitorId]:
    return {c: one.parent_id for c, one in board.competitors.items() if one.parent_id is not None}


@every_log
@given(logs())
def test_everything_is_numbered_in_the_order_of_its_creation(log: list[Recorded]) -> None:
    board = board_of(log)
    lists = [board.competitors, board.competitions, board.rankings, *[r.unities for r in board.rankings.values()]]
    for made in lists:
        numbers = [thing.number for thing in made.values()]
        assert (sorted(numbers) if made is board.rankings else numbers) == list(range(1, len(made) + 1))


# ── Versions and totals ─────────────────────────────────────────────────────────────────────────────────


def recounted_versions(log: list[Recorded]) -> dict[UnityId, int]:
    """1 at its creation, and one more for every event that names the unity in a delta or changes its name, its sort
    or its ranking's list."""
    versions: dict[UnityId, int] = {}
    for number, recorded in enumerate(log):
        event = recorded.event
        match event:
            case events.RankingCreated():
                versions[event.main_unity_id] = 1
            case events.UnityAdded():
                versions[event.unity_id] = 1
            case (
                events.PointsAdded()
                | events.PointsReversed()
                | events.RankingModified()
                | events.ParticipantsChanged()
                | events.UnityChanged()
            ):
                before, after = shown(log[:number]), shown(log[: number + 1])
                for unity_id in versions:
                    named = isinstance(event, events.Points) and unity_id in [d.unity_id for d in event.deltas]
                    versions[unity_id] += named or before[unity_id] != after[unity_id]
    return versions


def shown(log: list[Recorded]) -> dict[UnityId, tuple[str, Sort, tuple[CompetitorId, ...]]]:
    """Name, sort and list of every unity, by the last event that said so."""
    ranking_of: dict[UnityId, RankingId] = {}
    main: dict[RankingId, UnityId] = {}
    names: dict[UnityId, str] = {}
    sorts: dict[UnityId, Sort] = {}
    lists: dict[RankingId, tuple[CompetitorId, ...]] = {}
    for event in [recorded.event for recorded in log]:
        match event:
            case events.RankingCreated():
                main[event.ranking_id] = event.main_unity_id
                ranking_of[event.main_unity_id] = event.ranking_id
                names[event.main_unity_id], sorts[event.main_unity_id] = event.main_unity_name, event.main_unity_sort
                lists[event.ranking_id] = event.participants
            case events.UnityAdded():
                ranking_of[event.unity_id] = event.ranking_id
                names[event.unity_id], sorts[event.unity_id] = event.name, event.sort
            case events.UnityChanged():
                names[event.unity_id] = names[event.unity_id] if event.name is UNSET else event.name
                sorts[event.unity_id] = sorts[event.unity_id] if event.sort is UNSET else event.sort
            case events.RankingModified():
                names[main[event.ranking_id]] = event.main_unity_name
                lists[event.ranking_id] = event.participants
            case events.ParticipantsChanged():
                stayed = [c for c in lists[event.ranking_id] if c not in event.removed]
                lists[event.ranking_id] = (*stayed, *[c for c in event.added if c not in stayed])
    return {unity_id: (names[unity_id], sorts[unity_id], lists[r]) for unity_id, r in ranking_of.items()}


@every_log
@given(logs())
def test_a_version_counts_the_events_that_shaped_the_unity(log: list[Recorded]) -> None:
    board = board_of(log)
    versions = {u: unity.version for ranking in board.rankings.values() for u, unity in ranking.unities.items()}
    assert versions == recounted_versions(log)


@every_log
@given(logs())
def test_a_unity_shows_what_was_said_of_it_last(log: list[Recorded]) -> None:
    assert shown(log) == {
        unity_id: (unity.name, unity.sort, tuple(ranking.participants))
        for ranking in board_of(log).rankings.values()
        for unity_id, unity in ranking.unities.items()
    }


@every_log
@given(logs())
def test_a_total_is_the_sum_of_all_its_deltas(log: list[Recorded]) -> None:
    deltas = [d for r in log if isinstance(r.event, events.Points) for d in r.event.deltas]
    summed = {
        (d.unity_id, d.competitor_id): sum(
            e.amount for e in deltas if (e.unity_id, e.competitor_id) == (d.unity_id, d.competitor_id)
        )
        for d in deltas
    }
    assert {of: total for of, total in summed.items() if total} == {
        (unity_id, competitor_id): total
        for ranking in board_of(log).rankings.values()
        for unity_id, unity in ranking.unities.items()
        for competitor_id, total in unity.totals.items()
    }


@every_log
@given(logs())
def test_whatever_is_shown_changes_with_a_version_or_a_revision(log: list[Recorded]) -> None:
    """So that what was rendered may be kept for as long as these stay."""
    board, revisions = Board(), Revisions()
    before = rendered(board, revisions)
    for recorded in log:
        fold(board, revisions, recorded)
        after = rendered(board, revisions)
        for stamp in before.keys() & after.keys():
            assert before[stamp] == after[stamp]
        before = after


def rendered(board: Board, revisions: Revisions) -> dict[object, object]:
    """What is shown of the board, by what says whether it still holds."""
    lists = [
        (
            ranking_id,
            ranking.name,
            ranking.description,
            ranking.closed_at,
            ranking.participants,
            [(unity_id, unity.number, unity.name, unity.sort) for unity_id, unity in ranking.unities.items()],
        )
        for ranking_id, ranking in board.rankings.items()
    ]
    by_unity = {
        ("unity", unity_id, unity.version): (unity.name, standings(ranking.participants, unity.totals, unity.sort))
        for ranking in board.rankings.values()
        for unity_id, unity in ranking.unities.items()
    }
    return {
        ("competitors", revisions.competitors): dict(board.competitors),
        ("competitions", revisions.competitions): dict(board.competitions),
        ("rankings", revisions.rankings): lists,
        **by_unity,
    }


# ── Examples ────────────────────────────────────────────────────────────────────────────────────────────

ANNA, BEN, CARA = map(CompetitorId, (1, 2, 3))
RACE, OVERALL, POINTS, GOALS = 20, RankingId(30), UnityId(40), UnityId(41)
OPENED_AT = datetime(2024, 5, 4, 12, tzinfo=UTC)

ENTRIES: tuple[Event, ...] = tuple(
    events.CompetitorRegistered(competitor_id=competitor_id, name=name, tags=("u18",), color="ff0000")
    for competitor_id, name in ((ANNA, "Anna"), (BEN, "Ben"), (CARA, "Cara"))
)
CREATED = events.RankingCreated(
    ranking_id=OVERALL,
    name="Overall",
    participants=(ANNA, BEN),
    main_unity_id=POINTS,
    main_unity_name="Points",
    description="all of it",
)
GOALS_ADDED = events.UnityAdded(ranking_id=OVERALL, unity_id=GOALS, name="Goals", sort=Sort.ASC)


def at(sequence: int) -> datetime:
    """When the event of this sequence was recorded, where there is an event a minute."""
    return OPENED_AT + timedelta(minutes=sequence)


def board_after(*history: Event) -> Board:
    return board_of(Recorded(Sequence(n), at(n), OPERATOR, None, event) for n, event in enumerate(history, start=1))


def points(*deltas: tuple[CompetitorId, UnityId, int]) -> Event:
    return events.PointsAdded(ranking_id=OVERALL, deltas=tuple(Delta(*delta) for delta in deltas))


def modified(*participants: CompetitorId, main_unity_name: str = "Points", **facts: object) -> Event:
    return events.RankingModified(
        ranking_id=OVERALL, participants=participants, main_unity_name=main_unity_name, **facts
    )


@pytest.mark.parametrize(
    ("history", "versions"),
    [
        pytest.param([], (1, 1), id="1 at its creation"),
        pytest.param([points((ANNA, POINTS, 3))], (2, 1), id="points in one unity"),
        pytest.param([points((ANNA, POINTS, 0))], (2, 1), id="no points, but named"),
        pytest.param([points((ANNA, POINTS, 1), (BEN, POINTS, 1), (ANNA, GOALS, 1))], (2, 2), id="one an event"),
        pytest.param([modified(ANNA, BEN)], (1, 1), id="a modification that changes nothing"),
        pytest.param([modified(ANNA, BEN, name="All", description=None)], (1, 1), id="another name of the ranking"),
        pytest.param([modified(ANNA, BEN, main_unity_name="Score")], (2, 1), id="another name of the main unity"),
        pytest.param([modified(ANNA)], (2, 2), id="another list"),
        pytest.param([modified(BEN, ANNA)], (2, 2), id="the list in another order"),
        pytest.param([modified(BEN, main_unity_name="Score")], (2, 2), id="one an event, however much it changes"),
        pytest.param([modified(ANNA), modified(ANNA, BEN)], (3, 3), id="there and back again"),
        pytest.param(
            [events.RankingClosed(ranking_id=OVERALL), events.RankingReopened(ranking_id=OVERALL)],
            (1, 1),
            id="closing and reopening",
        ),
        pytest.param([events.CompetitorChanged(competitor_id=ANNA, name="Anne")], (1, 1), id="a competitor's name"),
    ],
)
def test_versions_after(history: list[Event], versions: tuple[int, int]) -> None:
    unities = board_after(*ENTRIES, CREATED, GOALS_ADDED, *history).rankings[OVERALL].unities
    assert (unities[POINTS].version, unities[GOALS].version) == versions


def test_a_competitor_that_leaves_a_ranking_keeps_the_total_and_has_it_back_on_return() -> None:
    history = [*ENTRIES, CREATED, points((ANNA, POINTS, 3), (BEN, POINTS, 5)), modified(ANNA)]

    def lines(board: Board) -> list[tuple[CompetitorId, int]]:
        ranking = board.rankings[OVERALL]
        unity = ranking.unities[POINTS]
        return [(line.competitor_id, line.total) for line in standings(ranking.participants, unity.totals, unity.sort)]

    assert lines(board_after(*history)) == [(ANNA, 3)]
    assert lines(board_after(*history, modified(CARA, BEN, ANNA))) == [(BEN, 5), (ANNA, 3), (CARA, 0)]


def test_a_modification_leaves_what_it_does_not_speak_of() -> None:
    ranking = board_after(*ENTRIES, CREATED, modified(CARA)).rankings[OVERALL]
    assert (ranking.name, ranking.description, [*ranking.participants]) == ("Overall", "all of it", [CARA])
    ranking = board_after(*ENTRIES, CREATED, modified(CARA, name="All", description="U18")).rankings[OVERALL]
    assert (ranking.name, ranking.description) == ("All", "U18")
    ranking = board_after(*ENTRIES, CREATED, modified(CARA, description=None)).rankings[OVERALL]
    assert (ranking.name, ranking.description) == ("Overall", None)


def test_a_ranking_shows_since_when_it_is_closed() -> None:
    closed, reopened = events.RankingClosed(ranking_id=OVERALL), events.RankingReopened(ranking_id=OVERALL)
    assert board_after(*ENTRIES, CREATED).rankings[OVERALL].closed_at is None
    assert board_after(*ENTRIES, CREATED, closed).rankings[OVERALL].closed_at == at(5)
    assert board_after(*ENTRIES, CREATED, closed, reopened).rankings[OVERALL].closed_at is None
    assert board_after(*ENTRIES, CREATED, closed, reopened, closed).rankings[OVERALL].closed_at == at(7)


def test_a_changed_competitor_keeps_what_the_change_does_not_speak_of() -> None:
    board = board_after(*ENTRIES, events.CompetitorChanged(competitor_id=BEN, name="Benjamin", parent_id=ANNA))
    ben = board.competitors[BEN]
    assert (ben.name, ben.tags, ben.color, ben.parent_id) == ("Benjamin", ("u18",), "ff0000", ANNA)
    assert (ben.number, ben.created_at, ben.updated_at) == (2, at(2), at(4))
    ben = board_after(*ENTRIES, events.CompetitorChanged(competitor_id=BEN, tags=(), color="00ff00")).competitors[BEN]
    assert (ben.name, ben.tags, ben.color, ben.parent_id) == ("Ben", (), "00ff00", None)


def test_a_competition_of_no_known_time_started_when_it_was_recorded() -> None:
    race = board_after(events.CompetitionAdded(competition_id=RACE, group_id=7)).competitions[RACE]
    assert (race.started_at, race.created_at, race.updated_at) == (at(1), at(1), at(1))
    noon = datetime(2024, 6, 1, 12, tzinfo=UTC)
    race = board_after(events.CompetitionAdded(competition_id=RACE, group_id=7, started_at=noon)).competitions[RACE]
    assert (race.started_at, race.created_at) == (noon, at(1))


def test_a_declared_date_may_be_the_moment_of_creation() -> None:
    added = events.CompetitionAdded(competition_id=RACE, group_id=7, started_at=at(1))
    changed = events.CompetitionChanged(competition_id=RACE, started_at=None)
    assert board_after(added).competitions[RACE].date == at(1)
    assert board_after(added, changed).competitions[RACE].date is None


def test_a_changed_competition_keeps_what_the_change_does_not_speak_of() -> None:
    duel = events.CompetitionAdded(
        competition_id=RACE, group_id=7, location="Hall 2", participants=(ANNA, BEN), result="3-1", winner_id=ANNA
    )
    race = board_after(duel, events.CompetitionChanged(competition_id=RACE, result="3-3")).competitions[RACE]
    assert (race.location, race.result, race.winner_id, race.started_at) == ("Hall 2", "3-3", ANNA, at(1))
    assert (race.created_at, race.updated_at) == (at(1), at(2))
    race = board_after(duel, events.CompetitionChanged(competition_id=RACE, location="")).competitions[RACE]
    assert (race.location, race.result) == ("", "3-1")


def test_a_change_empties_what_it_says_is_empty() -> None:
    gone = events.CompetitorChanged(competitor_id=BEN, parent_id=None)
    ben = board_after(*ENTRIES, events.CompetitorChanged(competitor_id=BEN, parent_id=ANNA), gone).competitors[BEN]
    assert (ben.parent_id, ben.name, ben.updated_at) == (None, "Ben", at(5))
    duel = events.CompetitionAdded(
        competition_id=RACE,
        group_id=7,
        started_at=datetime(2024, 6, 1, tzinfo=UTC),
        participants=(ANNA, BEN),
        result="3-1",
        winner_id=ANNA,
    )
    emptied = events.CompetitionChanged(competition_id=RACE, started_at=None, result=None, winner_id=None)
    race = board_after(duel, emptied).competitions[RACE]
    assert (race.started_at, race.result, race.winner_id) == (at(1), None, None)


def test_performances_are_shown_in_the_order_of_the_participants_not_in_the_order_sent() -> None:
    """The tables keep each with its participant, so that the order sent could not be had back from them."""
    sent = {CARA: "9.72", ANNA: "9.58", BEN: "9.69"}
    added = events.CompetitionAdded(competition_id=RACE, group_id=7, participants=(BEN, CARA, ANNA), result=sent)
    assert shown_result(board_after(added).competitions[RACE].result) == [(BEN, "9.69"), (CARA, "9.72"), (ANNA, "9.58")]
    changed = events.CompetitionChanged(competition_id=RACE, result={ANNA: "9.57", CARA: "9.71"})
    assert shown_result(board_after(added, changed).competitions[RACE].result) == [(CARA, "9.71"), (ANNA, "9.57")]


@pytest.mark.parametrize(
    "event",
    [
        events.CompetitorChanged(competitor_id=ANNA),
        events.CompetitionChanged(competition_id=RACE),
        modified(ANNA),
        GOALS_ADDED,
        points((ANNA, POINTS, 1)),
        events.RankingClosed(ranking_id=OVERALL),
        events.RankingReopened(ranking_id=OVERALL),
        events.ClassificationDeclared(ranking_id=OVERALL),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_that_names_what_does_not_exist_is_not_folded_in_silence(event: Event) -> None:
    with pytest.raises(KeyError):
        board_after(event)


def test_points_in_a_unity_that_does_not_exist_are_not_folded_in_silence() -> None:
    with pytest.raises(KeyError):
        board_after(*ENTRIES, CREATED, points((ANNA, GOALS, 1)))
    given_points = [points((ANNA, POINTS, 1)), points((ANNA, GOALS, 1)), points((ANNA, POINTS, 1))]
    with pytest.raises(LogUnreadable, match="event 12 ") as raised:
        fold_all(
            TournamentId(1),
            board_after(*ENTRIES, CREATED),
            [Recorded(Sequence(n), at(n), OPERATOR, None, event) for n, event in enumerate(given_points, start=11)],
        )
    assert raised.value.sequence == 12


def test_a_declaration_by_a_unity_that_does_not_exist_is_not_folded_in_silence() -> None:
    criteria = (events.Criterion(unity_id=POINTS), events.Criterion(unity_id=GOALS))
    with pytest.raises(KeyError):
        board_after(*ENTRIES, CREATED, events.ClassificationDeclared(ranking_id=OVERALL, criteria=criteria))
