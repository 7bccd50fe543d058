"""Tournaments of many competitors, in memory and in a log, whose answers are long."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from api.interface.resources import standings
from engine.database.pool import open_database
from engine.domain.events import (
    CompetitorRegistered,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    Recorded,
    UnityAdded,
)
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import appending, heads, registry
from engine.log.appending import Appended, Block, Request
from engine.log.heads import Head
from projections.board.board import Board
from projections.live.tournament import LiveTournament
from tests.bounds import set_bounds

NOBODY: Final = Head(Sequence(0), b"")


def live_of(log: list[Recorded]) -> LiveTournament:
    live = LiveTournament(TournamentId(1), NOBODY, Board())
    go_on(live, log)
    return live


def go_on(live: LiveTournament, log: list[Recorded]) -> None:
    for recorded in log:
        live.fold([recorded], Head(recorded.sequence, b"%d" % recorded.sequence))


@contextmanager
def all_long(made_lines_max: int = standings.MADE_LINES_MAX) -> Iterator[None]:
    """Everything is too much to be rendered in one go, and in as many chunks as can be. Of more lines than
    `made_lines_max`, nothing is kept."""
    with pytest.MonkeyPatch.context() as patch:
        set_bounds(patch, LINES_AT_ONCE_MAX=-1)
        set_bounds(
            patch,
            LONG_BYTES=0,
            LINES_OF_CHUNK=2,
            COMPARED_LINES_OF_CHUNK=1,
            MADE_LINES_MAX=made_lines_max,
            PIECES_BYTES_MAX=1_000,
            CHUNK_BYTES=300,
        )
        yield


def crowd(competitors: int, unities: int = 1, rankings: int = 1, **said: Any) -> list[Event]:
    """A tournament with these numbers of competitors, rankings, and unities per ranking; ids begin at 1."""
    ids = [CompetitorId(n) for n in range(1, competitors + 1)]
    facts: list[Event] = [CompetitorRegistered(competitor_id=c, name=f"competitor {c}", **said) for c in ids]
    for ranking in range(1, rankings + 1):
        facts.append(
            RankingCreated(
                ranking_id=RankingId(ranking),
                name=f"R{ranking}",
                participants=tuple(ids),
                main_unity_id=UnityId(ranking * 1_000),
                main_unity_name="points",
            )
        )
        facts += [
            UnityAdded(ranking_id=RankingId(ranking), unity_id=UnityId(ranking * 1_000 + n), name=f"u{n}")
            for n in range(1, unities)
        ]
    return facts


def recorded(facts: list[Event], after: int = 0) -> list[Recorded]:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    return [Recorded(Sequence(after + n), moment, OPERATOR, None, fact) for n, fact in enumerate(facts, start=1)]


def points(unity: int = 1_000, amount: int = 1, competitor: int = 1) -> Event:
    return PointsAdded(
        ranking_id=RankingId(unity // 1_000), deltas=(Delta(CompetitorId(competitor), UnityId(unity), amount),)
    )


async def append(dsn: str, slug: str, facts: list[Event]) -> TournamentId:
    """Has it happened, as another process would have recorded it."""
    async with open_database(dsn, name="test") as database, database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
        assert tournament_id is not None
        run: list[Request] = []
        for n, fact in enumerate(facts, start=1):
            run.append(Request(events=(fact,), actor=OPERATOR))
            if fact.structural or len(run) == 500 or n == len(facts):
                head = (await heads.current(connection, [tournament_id]))[tournament_id]
                block = Block(
                    tournament_id=tournament_id, judged_at=head.sequence, judged_digest=head.digest, requests=tuple(run)
                )
                (outcome,) = await appending.append(connection, [block], wait=True)
                assert isinstance(outcome, Appended)
                run = []
    return tournament_id
