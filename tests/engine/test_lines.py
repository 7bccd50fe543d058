"""The rule of which lines of points count says the same of one line as of all lines of an event."""

from datetime import UTC, datetime, timedelta
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain.events import Delta, PointsAdded, PointsScored
from engine.domain.expiry import ExpiresOn, Expiry
from engine.domain.lines import LineName, Rule
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId

RANKING: Final = RankingId(1)
FIRST: Final = Sequence(3)
GIVEN: Final = Sequence(7)
MATCH: Final = CompetitionId(5)
UNITIES: Final = (UnityId(21), UnityId(22))
"""The points of the first one expire."""
COMPETITORS: Final = (CompetitorId(11), CompetitorId(12))
DAY: Final = datetime(2024, 3, 1, tzinfo=UTC)
days: Final = st.integers(0, 12).map(lambda n: DAY + timedelta(days=n))


@given(
    undone=st.sets(st.just(GIVEN)),
    voided=st.sets(st.just(MATCH)),
    struck=st.sets(st.sampled_from(COMPETITORS)),
    replaced=st.dictionaries(
        st.tuples(st.sampled_from(COMPETITORS), st.sampled_from(UNITIES)), st.integers(FIRST, GIVEN + 1).map(Sequence)
    ),
    date=st.none() | days,
    closed_at=st.none() | days,
    now=st.none() | days,
)
@example(undone=set(), voided=set(), struck=set(), replaced={}, date=None, closed_at=DAY, now=DAY + timedelta(days=9))
def test_a_line_counts_just_where_it_is_among_those_that_count(
    undone: set[Sequence],
    voided: set[CompetitionId],
    struck: set[CompetitorId],
    replaced: dict[LineName, Sequence],
    date: datetime | None,
    closed_at: datetime | None,
    now: datetime | None,
) -> None:
    rule = Rule(
        ranking_id=RANKING,
        undone=undone,
        voided=voided,
        struck={MATCH: struck},
        replaced={FIRST: replaced},
        dates={} if date is None else {MATCH: date},
        expiries={UNITIES[0]: Expiry(lasts="P7D", on=next(iter(ExpiresOn)))},
        closed_at=closed_at,
    )
    deltas = tuple([Delta(competitor_id, unity_id, 1) for competitor_id in COMPETITORS for unity_id in UNITIES])
    of_hand = PointsAdded(ranking_id=RANKING, competition_id=MATCH, deltas=deltas)
    scored = PointsScored(ranking_id=RANKING, competition_id=MATCH, deltas=deltas, instead_of=FIRST, since=DAY)
    for of in (rule, rule.reopening()):
        found = []
        for points, place in ((of_hand, GIVEN), (scored, FIRST)):
            its = GIVEN, place, DAY, MATCH
            counting = [line.delta for line in of.lines(GIVEN, DAY, points, now)]
            assert counting == [one for one in deltas if of.counts(*its, one.competitor_id, one.unity_id, now)]
            found.append(counting)
        gone = [one for one, by in replaced.items() if by > GIVEN]
        assert found[1] == [one for one in found[0] if (one.competitor_id, one.unity_id) not in gone]
