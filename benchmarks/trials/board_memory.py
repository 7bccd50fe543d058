"""What a tournament takes in memory: a million competitors, all in one ranking, each with points; and competitions.

    PYTHONPATH=. python -m benchmarks.trials.board_memory [MEMBERS]

Folds events into a board, and prints what the process takes more after each kind, in bytes a member, beside what the
service counts with.
"""

import asyncio
import random
import resource
import sys
from datetime import UTC, datetime
from typing import Final

from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    Event,
    ParticipantsChanged,
    PointsAdded,
    RankingCreated,
    Recorded,
)
from engine.domain.terms import OPERATOR, PARTICIPANTS_MAX, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.process.turns import Turn
from projections.board.board import Board, Revisions, fold
from projections.live.orders import made_in_turns
from projections.tables.sizes import board_bytes

SEED: Final = 20
FIRST_ID: Final = 2**51
RANKING: Final = RankingId(1)
UNITY: Final = UnityId(2)


def main() -> None:
    members = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    board, draw = Board(), random.Random(SEED)
    ids = [CompetitorId(FIRST_ID + n) for n in range(members)]
    last, counted = _taken(), board_bytes(board)

    def tell(what: str) -> None:
        nonlocal last, counted
        now, counts = _taken(), board_bytes(board)
        print(
            f"{what:>12}  {(now - last) / members:6.0f} bytes a member, counted as {(counts - counted) / members:4.0f}"
        )
        last, counted = now, counts

    for n, competitor_id in enumerate(ids):
        _fold(board, CompetitorRegistered(competitor_id=competitor_id, name=f"Competitor {n}", color=f"{n % 4096:06x}"))
    tell("competitor")
    _fold(
        board,
        RankingCreated(
            ranking_id=RANKING, name="Board", participants=(ids[0],), main_unity_id=UNITY, main_unity_name="Points"
        ),
    )
    for start in range(0, members, PARTICIPANTS_MAX):
        _fold(board, ParticipantsChanged(ranking_id=RANKING, added=tuple(ids[start : start + PARTICIPANTS_MAX])))
    tell("enrolment")
    for competitor_id in ids:
        delta = Delta(competitor_id, UNITY, draw.randrange(1_000_000))
        _fold(board, PointsAdded(ranking_id=RANKING, deltas=(delta,)))
    tell("total")
    ranking = board.rankings[RANKING]
    order = asyncio.run(made_in_turns(ranking.participants, ranking.unities[UNITY], turn=Turn()))
    tell("order")
    for n in range(members):
        opponents = ids[n], ids[draw.randrange(members)]
        _fold(
            board,
            CompetitionAdded(
                competition_id=CompetitionId(FIRST_ID + members + n),
                group_id=n // 10,
                location="Stadium",
                participants=opponents,
                result="2-1",
            ),
        )
    tell("competition")
    print(f"{'order alone':>12}  {order.size_bytes / members:6.0f} bytes a member, as it counts itself")
    print(f"At most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB in all.")


def _fold(board: Board, event: Event) -> None:
    fold(board, Revisions(), Recorded(Sequence(1), datetime.now(UTC), OPERATOR, None, event))


def _taken() -> int:
    """Bytes that the process has in memory."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
