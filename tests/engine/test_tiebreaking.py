"""How tie-breaks may be declared, and by which edition of the regulations."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from engine.domain import events
from engine.domain.awards import Award, Scoring
from engine.domain.commands import DeclareClassification
from engine.domain.errors import Unacceptable
from engine.domain.events import Criterion, Event
from engine.domain.judging import decide
from engine.domain.terms import CompetitionId, RankingId, UnityId
from projections.board.board import Board
from tests.histories import fold_events

RANKING: Final = RankingId(1)
POINTS: Final = UnityId(2)
RATING: Final = UnityId(3)


def board_of(*more: Event, is_scored: bool = True) -> Board:
    board = Board()
    award = Award(unity_id=POINTS, value="outcome", table={"win": 10, "draw": 5, "loss": 0, "bye": 10})
    fold_events(
        board,
        events.RankingCreated(
            ranking_id=RANKING, name="Open", participants=(), main_unity_id=POINTS, main_unity_name="points"
        ),
        events.UnityAdded(ranking_id=RANKING, unity_id=RATING, name="rating"),
        *([events.ScoringDeclared(ranking_id=RANKING, scorings=(Scoring(awards=(award,)),))] if is_scored else []),
        *more,
    )
    return board


def declared(board: Board, **fields: Any) -> Criterion:
    """The criterion that is recorded. Raises Unacceptable."""
    criteria = (Criterion(**{"unity_id": POINTS, "tiebreak": "BH", **fields}),)
    (event,) = decide(board, DeclareClassification(ranking_id=RANKING, criteria=criteria))
    assert isinstance(event, events.ClassificationDeclared)
    return event.criteria[0]


def played_on(*dates: datetime | None) -> Board:
    return board_of(
        *[
            events.CompetitionAdded(competition_id=CompetitionId(number), group_id=1, started_at=date)
            for number, date in enumerate(dates, start=1)
        ]
    )


@pytest.mark.parametrize(
    ("dates", "edition"),
    [
        ([], "2026-03"),
        ([None], "2026-03"),
        ([datetime(2026, 3, 1, tzinfo=UTC)], "2026-03"),
        ([datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 2, 28, 23, tzinfo=UTC)], "2024-08"),
        ([datetime(2024, 8, 1, tzinfo=UTC)], "2024-08"),
    ],
)
def test_the_edition_is_that_of_the_first_competition_or_the_newest(dates: list[datetime | None], edition: str) -> None:
    assert declared(played_on(*dates)).edition == edition


def test_an_edition_that_was_sent_is_kept() -> None:
    assert declared(played_on(datetime(2026, 5, 1, tzinfo=UTC)), edition="2024-08").edition == "2024-08"


def test_criteria_without_tie_breaks_have_no_edition() -> None:
    assert declared(board_of(), tiebreak=None) == Criterion(unity_id=POINTS)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"best": 3}, "tiebreak must be sent without best, drop, among and first"),
        ({"drop": ((4, 1),)}, "tiebreak must be sent without best, drop, among and first"),
        ({"cut": 1, "median": 1}, "median must be sent without cut"),
        ({"tiebreak": "SB", "median": 1}, "median is only for the tie-breaks BH, FB, ARO"),
        ({"tiebreak": "WIN", "cut": 1}, "cut is only for the tie-breaks BH, FB, SB, PS, ARO"),
        ({"limit": 1}, "limit is only for the tie-breaks KS"),
        ({"tiebreak": None, "pairing": "swiss"}, "pairing is only for the tie-breaks"),
        ({"cut": 65}, "cut must be from 0 to 64"),
        ({"tiebreak": "KS", "limit": -65}, "limit must be from -64 to 64"),
        ({"pairing": "predetermined"}, "tiebreak is only for Swiss tournaments"),
        ({"unity_id": RATING}, "tiebreak needs a scoring that gives points for wins in this unity"),
    ],
)
def test_an_option_that_no_tie_break_has_is_refused(fields: dict[str, Any], fault: str) -> None:
    assert any(found.startswith(f"criteria[0].{fault}") for found in faults(board_of(), **fields))


def faults(board: Board, **fields: Any) -> list[str]:
    with pytest.raises(Unacceptable) as refused:
        declared(board, **fields)
    return [f"{fault.field} {fault.message}" for fault in refused.value.faults]


def test_a_ranking_without_scoring_has_no_tie_breaks() -> None:
    for tiebreak, unity_id in (("BH", POINTS), ("ARO", RATING)):
        (fault,) = faults(board_of(is_scored=False), tiebreak=tiebreak, unity_id=unity_id)
        assert fault == "criteria[0].tiebreak needs a scoring that gives points for wins in this unity"


def test_an_older_edition_is_refused_by_name() -> None:
    (fault,) = faults(played_on(datetime(2024, 7, 31, tzinfo=UTC)))
    assert fault == (
        "criteria[0].edition must be sent, as the first competition is older than 2024-08: 2024-08, 2026-03"
    )


def test_buchholz_in_a_round_robin_is_allowed_by_the_edition_of_2024() -> None:
    assert declared(board_of(), pairing="predetermined", edition="2024-08").pairing == "predetermined"


def test_a_rating_is_in_another_unity_than_points() -> None:
    assert declared(board_of(), tiebreak="ARO", unity_id=RATING).unity_id == RATING


def test_a_direct_encounter_may_be_declared_twice_and_others_not() -> None:
    board = board_of()
    twice = [Criterion(unity_id=POINTS, tiebreak=one) for one in ("DE", "SB", "DE")]
    decide(board, DeclareClassification(ranking_id=RANKING, criteria=tuple(twice)))
    with pytest.raises(Unacceptable):
        decide(board, DeclareClassification(ranking_id=RANKING, criteria=(*twice, twice[1])))
