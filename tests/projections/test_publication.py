"""What the public sees: where its log ends, and what is revealed next."""

from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given, settings

from engine.domain import events
from engine.domain.commands import NextReveal
from engine.domain.events import Delta, Event, Recorded
from engine.domain.rejudging import impossible
from engine.domain.terms import ActorId, Sequence
from projections.board.board import Board, Revisions, fold
from projections.board.publication import NextRevealSearch, Publication
from tests.histories import board_of, copied, logs, unhurried

FREE: Final = events.PointsAdded(ranking_id=1, deltas=(Delta(1, 1, 1),))
CAME: Final = events.CompetitorRegistered(competitor_id=9, name="Eve")


def given_by(competition_id: int) -> Event:
    return events.PointsAdded(ranking_id=1, deltas=(Delta(1, 1, 1),), competition_id=competition_id)


def taken_from(competition_id: int) -> Event:
    return events.PointsReversed(ranking_id=1, deltas=(Delta(1, 1, -1),), competition_id=competition_id, reverses=1)


def voided(competition_id: int) -> Event:
    return events.CompetitionVoided(competition_id=competition_id)


def unvoided(competition_id: int) -> Event:
    return events.CompetitionUnvoided(competition_id=competition_id)


# ── The public end ──────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_public_of_a_new_tournament() -> None:
    assert Board().publication.public_end(Sequence(5)) is None
    assert Board().publication.seen(Sequence(5)) == 0


def test_the_public_end_is_the_head_unless_it_is_held() -> None:
    assert Publication(published=True).public_end(Sequence(5)) == 5
    assert Publication(published=True, frozen_at=Sequence(3)).public_end(Sequence(5)) == 3
    assert Publication(frozen_at=Sequence(3)).public_end(Sequence(5)) is None


@settings(unhurried, max_examples=40)
@given(logs())
def test_what_was_seen_stays_seen_and_lies_in_the_log(log: list[Recorded]) -> None:
    """While a tournament is published, its public end never falls; from one publication to the next neither."""
    board, seen = Board(), 0
    for recorded in log:
        fold(board, Revisions(), recorded)
        end = board.publication.public_end(recorded.sequence)
        if end is not None:
            assert seen <= end <= recorded.sequence
            seen = end
        assert board.publication.seen(recorded.sequence) == seen


@settings(unhurried, max_examples=40)
@given(logs())
def test_snapshots_keep_it(log: list[Recorded]) -> None:
    board = board_of(log)
    assert copied(board).publication == board.publication


SHOWN, HELD = Publication(published=True), Publication(published=True, frozen_at=Sequence(5))
FAULTS: Final[dict[str, tuple[Publication, Event]]] = {
    "publishes what is already published": (SHOWN, events.TournamentPublished()),
    "unpublishes what is not published": (Publication(), events.TournamentUnpublished()),
    "freezes what is frozen at 5 already": (HELD, events.PublicationFrozen(at=9)),
    "freezes at 8, which is not from 9 to 9": (SHOWN, events.PublicationFrozen(at=8)),
    "freezes at 10, which is not from 9 to 9": (SHOWN, events.PublicationFrozen(at=10)),
    "freezes at 3, which is not from 4 to 9": (Publication(seen_before=Sequence(4)), events.PublicationFrozen(at=3)),
    "reveals what is not frozen": (SHOWN, events.PublicationRevealed()),
    "reveals up to 5, which is not beyond 5 and up to 9": (HELD, events.PublicationRevealed(to=5)),
    "reveals up to 10, which is not beyond 5 and up to 9": (HELD, events.PublicationRevealed(to=10)),
}


@pytest.mark.parametrize(("given_", "event"), FAULTS.values(), ids=FAULTS.keys())
def test_what_the_public_sees_is_judged_again_in_a_log(given_: Publication, event: Event) -> None:
    assert impossible(Board(publication=given_), Sequence(10), event)


# ── The next competition ────────────────────────────────────────────────────────────────────────────────

NEXT: Final[dict[str, tuple[list[Event], int | None]]] = {
    "nothing": ([], None),
    "no points": ([CAME, voided(7)], None),
    "free points alone": ([FREE, FREE], None),
    "one competition": ([given_by(7)], 11),
    "what comes before it is shown with it": ([FREE, CAME, given_by(7), FREE], 13),
    "all it gave": ([given_by(7), given_by(7), FREE], 12),
    "and what others gave between": ([given_by(7), given_by(8), given_by(7), given_by(8)], 13),
    "not what comes after it": ([given_by(7), given_by(8)], 11),
    "not that it is voided later": ([given_by(7), given_by(8), voided(7), taken_from(7)], 11),
    "the voiding of one that was shown": ([voided(7), taken_from(7), taken_from(7), given_by(8)], 13),
    "which may count again later": ([voided(7), taken_from(7), given_by(8), unvoided(7), taken_from(7)], 12),
    "not that another is voided": ([given_by(7), voided(8), taken_from(8), given_by(7)], 14),
}


@pytest.mark.parametrize(("follow", "last"), NEXT.values(), ids=NEXT.keys())
@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_next_is(follow: list[Event], last: int | None, chunk: int) -> None:
    search = NextRevealSearch(Sequence(10))
    at = datetime(2024, 5, 4, tzinfo=UTC)
    log = [Recorded(Sequence(n), at, ActorId(0), None, event) for n, event in enumerate(follow, start=11)]
    for start in range(0, len(log), chunk):
        if not search.over:
            search.take(log[start : start + chunk])
    assert search.found == NextReveal(Sequence(10), last)  # type: ignore[arg-type]
