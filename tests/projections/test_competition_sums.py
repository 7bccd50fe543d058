"""Sums of competitions, against what the events of a log say, and in a live that begins to follow them."""

import asyncio
from collections import defaultdict
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain import events
from engine.domain.awards import Award, Scoring
from engine.domain.events import CompetitorsStruck, CompetitorsUnstruck, Delta, Event, Points, PointsReversed, Recorded
from engine.domain.rescoring import GivenLines, Rescoring
from engine.domain.steps import finished
from engine.domain.terms import DELTA_MAX, OPERATOR, CompetitionId, CompetitorId, Counts, RankingId, Sequence, UnityId
from projections.board.board import Board, what_counts
from projections.board.competition_sums import CompetitionSums
from tests.bounds import Bounds
from tests.histories import (
    counted_in,
    logs,
    recorded_after_opening,
    scored_histories,
    struck_in,
    sums_of,
    unhurried,
)
from tests.projections.classified import (
    COMPETITIONS,
    COMPETITORS,
    NOW,
    RANKING,
    UNITIES,
    histories_with_ties,
    history_of,
    live_at,
    live_of,
    meanwhile,
)

Sums = dict[tuple[UnityId, CompetitorId], dict[CompetitionId, int]]


def recounted(log: list[Recorded], ranking_id: RankingId) -> Sums:
    sums: Sums = defaultdict(lambda: defaultdict(int))
    for recorded in counted_in(log):
        event = recorded.event
        if isinstance(event, Points) and event.ranking_id == ranking_id and event.competition_id is not None:
            struck = struck_in(log).get(event.competition_id, ())
            for delta in [one for one in event.deltas if one.competitor_id not in struck]:
                sums[delta.unity_id, delta.competitor_id][event.competition_id] += delta.amount
    return sums


def gave(log: list[Recorded], ranking_id: RankingId) -> set[CompetitionId]:
    """The competitions that gave points in a ranking."""
    struck = struck_in(log)
    return {
        event.competition_id
        for event in [recorded.event for recorded in counted_in(log)]
        if isinstance(event, events.PointsAdded) and event.ranking_id == ranking_id and event.competition_id is not None
        if any(line.competitor_id not in struck.get(event.competition_id, ()) for line in events.changed_by(event))
    }


def shown(sums: CompetitionSums | None, board: Board, ranking_id: RankingId) -> Sums:
    """All sums of a ranking, where there are any, of competitions that are not voided; competitions must stand in
    ascending order."""
    assert sums is not None
    found: Sums = {}
    for unity_id in board.rankings[ranking_id].unities:
        for competitor_id in board.competitors:
            competition_ids, given_sums = sums.of(unity_id, competitor_id)
            assert list(competition_ids) == sorted(set(competition_ids))
            assert sums.number(unity_id, competitor_id) == len(competition_ids) == len(given_sums)
            its = dict(zip(competition_ids, given_sums, strict=True))
            if counted := {one: total for one, total in its.items() if one not in board.voided}:
                found[unity_id, competitor_id] = counted
            each = {one: sums.sum(unity_id, competitor_id, one) for one in [*board.competitions, CompetitionId(2**31)]}
            assert {one: total for one, total in each.items() if total is not None} == {
                one: total for one, total in its.items() if one in each
            }
    return found


@unhurried
@given(logs(), st.data())
def test_what_is_read_once_and_followed_from_then_on_is_what_the_whole_log_says(
    log: list[Recorded], data: st.DataObject
) -> None:
    moment = data.draw(st.integers(0, len(log)))
    live = live_at(log[:moment])
    begun = list(live.board.rankings)
    for ranking_id in begun:
        asyncio.run(live.know_sums(ranking_id))
    live.go_on(*log[moment:])
    for ranking_id in begun:
        sums_now = live.sums.get(ranking_id)
        if any(drops_sums(recorded, ranking_id) for recorded in log[moment:]):
            assert sums_now is None
        elif sums_now is None:
            assert any(may_drop_sums(recorded, ranking_id) for recorded in log[moment:])
        else:
            assert shown(sums_now, live.board, ranking_id) == recounted(log, ranking_id)
            assert sums_now.given.keys() - live.board.voided == gave(log, ranking_id)
    for ranking_id in live.board.rankings.keys() - begun:
        assert live.sums.get(ranking_id) is None


@unhurried
@given(scored_histories(), st.data())
def test_what_is_followed_through_corrections_of_results_is_what_the_whole_log_says(
    history: list[Event], data: st.DataObject
) -> None:
    opened = Recorded(Sequence(1), NOW, OPERATOR, None, events.TournamentOpened(name="Spring Open", slug="spring-open"))
    log = [opened, *recorded_after_opening(history)]
    moment = data.draw(st.integers(0, len(log)))
    live = live_at(log[:moment])
    begun = list(live.board.rankings)
    for ranking_id in begun:
        asyncio.run(live.know_sums(ranking_id))
    live.go_on(*log[moment:])
    for ranking_id in begun:
        if (followed := live.sums.get(ranking_id)) is not None:
            read = sums_of(log, what_counts(live.board, ranking_id, None))
            assert shown(followed, live.board, ranking_id) == shown(read, live.board, ranking_id)
            assert followed.given == read.given


def test_after_a_corrected_result_sums_are_not_read_again(bounds: Bounds) -> None:
    """But after one by which somebody has no points any more, who had some; and after that of a race that takes long to
    score."""
    live = live_of(history_of((), [()] * len(COMPETITIONS), [], set()))
    unity_id, race = next(iter(UNITIES)), CompetitionId(10**6)

    def change(**said: Any) -> None:
        head, now = (
            Sequence(live.head.sequence + 1),
            [events.CompetitionChanged(competition_id=race, scored=True, **said)],
        )
        rescoring = Rescoring(live.board, now, given, None)
        for event in (*now, *finished(rescoring.events({}))):
            live.append(event)
            given.take(Recorded(Sequence(live.head.sequence), NOW, OPERATOR, None, event))
        assert live.head.sequence > head

    award = Award(unity_id=unity_id, value="outcome", table={"win": 3, "draw": 1, "loss": 0})
    live.append(events.ScoringDeclared(ranking_id=RANKING, scorings=(Scoring(awards=(award,)),)))
    live.append(events.CompetitionAdded(competition_id=race, group_id=1, participants=COMPETITORS[:2]))
    given = GivenLines()
    change(result="2:1")
    asyncio.run(live.know_sums(RANKING))
    for result, points in (("1:1", 1), ("3:1", 3)):
        change(result=result)
        followed = live.sums.get(RANKING)
        assert followed is not None
        assert followed.sum(unity_id, COMPETITORS[0], race) == points
    change(result=None)
    assert live.sums.get(RANKING) is None
    change(result="2:1")
    asyncio.run(live.know_sums(RANKING))
    bounds(PARTICIPANTS_AT_ONCE=1)
    change(result="1:1")
    assert live.sums.get(RANKING) is None


def test_a_unity_that_is_added_later_has_its_best_results_in_the_sums() -> None:
    unity_id, (competitor_id, competition_id) = UnityId(29), (COMPETITORS[0], COMPETITIONS[0])
    live = live_of(history_of((), [()] * len(COMPETITIONS), [], set()))
    asyncio.run(live.know_sums(RANKING))
    live.append(events.UnityAdded(ranking_id=RANKING, unity_id=unity_id, name="best", counts=Counts.BEST))
    for result in (10, 7):
        scored = (Delta(competitor_id, unity_id, result),)
        live.append(events.PointsAdded(ranking_id=RANKING, competition_id=competition_id, deltas=(), results=scored))
    followed, read = live.sums.get(RANKING), sums_of(live.log, what_counts(live.board, RANKING, None))
    assert followed is not None
    assert followed.sum(unity_id, competitor_id, competition_id) == read.sum(unity_id, competitor_id, competition_id)
    assert followed.shown(unity_id, followed.sum(unity_id, competitor_id, competition_id) or 0) == 10


def drops_sums(recorded: Recorded, ranking_id: RankingId) -> bool:
    """Whether an event undoes or redoes points of the ranking, strikes or unstrikes competitors, or declares that it
    must be known who reached a total first."""
    event = recorded.event
    if isinstance(event, CompetitorsStruck | CompetitorsUnstruck):
        return True
    if isinstance(event, events.ClassificationDeclared) and event.ranking_id == ranking_id:
        return any(criterion.first for criterion in event.criteria)
    return isinstance(event, PointsReversed) and event.undone is not None and event.ranking_id == ranking_id


def may_drop_sums(recorded: Recorded, ranking_id: RankingId) -> bool:
    """Whether an event corrects points of a result in the ranking, or gives some that do not count."""
    match recorded.event:
        case PointsReversed(ranking_id=its, replaced=replaced):
            return its == ranking_id and bool(replaced)
        case events.PointsScored(ranking_id=its) as event:
            return its == ranking_id and bool(event.instead_of or event.silent or event.silent_results)
        case _:
            return False


points = st.lists(
    st.tuples(st.sampled_from(COMPETITIONS[:4]), st.sampled_from([DELTA_MAX, -DELTA_MAX, 1])).map(
        lambda it: events.PointsAdded(
            ranking_id=RANKING,
            competition_id=it[0],
            deltas=(Delta(COMPETITORS[0], next(iter(UNITIES)), it[1]),),
        )
    ),
    max_size=30,
)


@given(points)
@example([point for point in [events.PointsAdded(
    ranking_id=RANKING,
    competition_id=COMPETITIONS[n],
    deltas=(Delta(COMPETITORS[0], next(iter(UNITIES)), DELTA_MAX),),
) for n in (1, 1, 0, 2, 1)] for _ in range(9)])  # fmt: skip
def test_sums_are_exact_in_any_order_and_beyond_64_bits(added: list[events.PointsAdded]) -> None:
    sums = CompetitionSums()
    expected: dict[CompetitionId, int] = defaultdict(int)
    for event in added:
        sums.count(Sequence(1), NOW, event)
        expected[event.competition_id or COMPETITIONS[0]] += event.deltas[0].amount
    competition_ids, given_sums = sums.of(next(iter(UNITIES)), COMPETITORS[0])
    assert dict(zip(competition_ids, given_sums, strict=True)) == expected
    assert list(competition_ids) == sorted(expected)


@unhurried
@given(history=histories_with_ties, more=histories_with_ties)
def test_what_is_folded_while_the_log_is_read_is_counted_too(history: list[Event], more: list[Event]) -> None:
    live = live_of(history)
    following = enumerate(meanwhile(history, more), start=len(history) + 1)
    live.waiting.extend([Recorded(Sequence(n), NOW, OPERATOR, None, event) for n, event in following])
    while live.sums.get(RANKING) is None:  # others may count by now
        asyncio.run(live.know_sums(RANKING))
    live.go_on(*live.waiting)
    while (sums := live.sums.get(RANKING)) is None:  # after some events they are read again
        asyncio.run(live.know_sums(RANKING))
    assert shown(sums, live.board, RANKING) == recounted(live.log, RANKING)
    assert sums.given.keys() - live.board.voided == gave(live.log, RANKING)
