"""Ratios and averages as criteria, compared with fractions that are computed independently."""

from fractions import Fraction
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from engine.domain.events import Criterion
from engine.domain.notation import INFINITE, NONE, Notation
from engine.domain.steps import finished
from engine.domain.terms import CompetitorId, Sort, UnityId
from projections.board.board import Board, Ranking, Unity
from projections.board.classification import Counted, classified, needs_sums, value_notations
from projections.board.quotients import quotient_notation, quotient_of
from projections.columns.enrolment import Enrolment, Totals
from tests.projections.classified import NOW

ABOVE, BELOW = UnityId(1), UnityId(2)
RATIO, PER = Criterion(ABOVE, ratio=BELOW), Criterion(ABOVE, per=BELOW)
WHOLE: Final = Notation(), Notation()
totals = st.one_of(st.none(), st.integers(-4, 4), st.integers(-(2**63), 2**63))


def compared(pair: tuple[int | None, int | None], criterion: Criterion, sort: Sort) -> tuple[int, Fraction | int]:
    """A key that sorts the better one first, by the documentation alone."""
    above, below = pair
    sign = -1 if sort is Sort.DESC else 1
    if above is None or below is None or (below == 0 and (above == 0 or criterion is PER)):
        return (3, 0)
    if below == 0:
        return (sign if above > 0 else -sign, 0)
    return (0, sign * Fraction(above, below))


@given(st.lists(st.tuples(totals, totals), max_size=9), st.sampled_from([RATIO, PER]), st.sampled_from(Sort))
@example([(5, 0), (0, 0), (-5, 0), (None, 3), (7, 2)], RATIO, Sort.DESC)
@example([(2**62, 2**62 - 1), (2**62 - 1, 2**62 - 2)], RATIO, Sort.DESC)  # equal as floating-point numbers
def test_quotients_are_in_the_order_of_fractions(
    pairs: list[tuple[int | None, int | None]], criterion: Criterion, sort: Sort
) -> None:
    keys = [quotient_of(criterion, *pair, WHOLE, sort).compared for pair in pairs]
    expected = [compared(pair, criterion, sort) for pair in pairs]
    order = sorted(range(len(pairs)), key=keys.__getitem__, reverse=sort is Sort.DESC)
    assert [expected[one] for one in order] == sorted(expected)
    assert [(one == other) for one in keys for other in keys] == [(o == p) for o in expected for p in expected]


def test_they_are_shown_rounded_as_people_write_them() -> None:
    def shown(criterion: Criterion, above: int, below: int, *notations: Notation) -> str:
        found = notations or WHOLE
        quotient = quotient_of(criterion, above, below, (found[0], found[1]), Sort.DESC)
        return quotient_notation(criterion, found[0], Sort.DESC).text(quotient.shown)

    assert [shown(RATIO, 41, 28), shown(RATIO, -2, 3), shown(RATIO, 1, 2000)] == ["1.464", "-0.667", "0.001"]
    assert [shown(RATIO, 3, 0), shown(RATIO, -3, 0), shown(RATIO, 0, 0)] == ["∞", "-∞", NONE]
    assert [shown(PER, 7, 4), shown(PER, 7, 0)] == ["1.750", NONE]
    assert shown(PER, 25, 2, Notation(1), Notation()) == "1.250"
    assert shown(PER, 25, 15, Notation(1), Notation(1)) == "1.667"
    assert shown(PER, 7_397_401, 2, Notation(time="ms"), Notation()) == "1:01:38.701"
    assert shown(RATIO, 2**63, 1) == f"{(INFINITE - 1) // 1000}.{(INFINITE - 1) % 1000}"


def ranking_of(above: dict[int, int], below: dict[int, int], criteria: tuple[Criterion, ...]) -> Ranking:
    enrolment = Enrolment(map(CompetitorId, [*above]))

    def unity(number: int, sums: dict[int, int], sort: Sort) -> Unity:
        kept = {CompetitorId(one): total for one, total in sums.items()}
        return Unity(number=number, name=f"{number}", sort=sort, totals=Totals(enrolment, kept))

    unities = {ABOVE: unity(1, above, Sort.DESC), BELOW: unity(2, below, Sort.ASC)}
    return Ranking(
        number=1,
        place=1,
        name="League",
        description=None,
        participants=enrolment,
        unities=unities,
        criteria=criteria,
        updated_at=NOW,
        revised=1,  # type: ignore[arg-type]
    )


@given(st.dictionaries(st.integers(1, 9), st.tuples(st.integers(-3, 5), st.integers(0, 3)), min_size=1))
def test_a_table_is_in_the_order_of_its_goal_averages(goals: dict[int, tuple[int, int]]) -> None:
    above, below = [{one: pair[place] for one, pair in goals.items()} for place in (0, 1)]
    ranking = ranking_of(above, below, (RATIO,))
    assert not needs_sums(ranking)
    lines = [*finished(classified(Counted(Board(), ranking), ranking.criteria, ranking.participants.listed()))]
    keys = {one: compared(pair, RATIO, Sort.DESC) for one, pair in goals.items()}
    assert {line.competitor_id: line.position for line in lines} == {
        one: 1 + sum(other < key for other in keys.values()) for one, key in keys.items()
    }
    (notation,) = value_notations(ranking, ranking.criteria)
    for line in lines if len(lines) > 1 else []:
        (value,) = line.values
        assert value is not None
        assert (notation.shown(value) is None) == (keys[line.competitor_id][0] == 3)
