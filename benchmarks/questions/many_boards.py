"""Question 25: 10,000 leaderboards of 10, 100 and 1,000 members, where the best result of each counts.

The workload `leaderboard-top-{10,100,1000}` of redis-benchmarks-specification: 60 % of the requests write results of
ten members of one board, 40 % read its top two, over 200 connections. Redis and Valkey with AOF always, and Redis
without durability, behind aiohttp, get the same bodies. All boards begin empty. The product's answer to a read has the
competitors, too; its boards are rankings, a thousand in a tournament.
"""

import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from benchmarks import contest, ledger, traffic
from benchmarks.asking import Asker
from benchmarks.ledger import WrongAnswer
from benchmarks.load import Load
from benchmarks.peers.serving import Recorded, Settings
from benchmarks.rounds import interleaved
from benchmarks.service import Service
from benchmarks.setting import REDIS, VALKEY, Setting, Store
from benchmarks.sizes import worlds
from benchmarks.sizes.measuring import wait_for_tables
from benchmarks.table import Findings
from benchmarks.traffic import Request
from benchmarks.world import Field, Tournament, open_tournaments, seeding, settle
from engine.domain.events import Event, RankingCreated
from engine.domain.terms import RANKINGS_MAX, Counts, RankingId, UnityId
from engine.log import registry

NUMBERS: Final = (25,)
NEEDS: Final = ("wrk",)
MEMBERS: Final = {"25a": 10, "25b": 100, "25c": 1_000}
BOARDS: Final = 10_000
QUICK_BOARDS: Final = 50
SECONDS: Final = 8
QUICK_SECONDS: Final = 2
REQUESTS: Final = 50_000
READS: Final = 0.4
WRITTEN: Final = 10
TOP: Final = "top=2"
CONNECTIONS: Final = 200
MEMORY: Final = ("--memory", "4096")
"""Enough for 10,000 boards of 1,000 members. Redis has no bound."""
SEED: Final = 25

OURS: Final = "ours"
ALWAYS: Final = "redis, AOF always"
NOT_DURABLE: Final = "redis, not durable"
_STORES: Final = {ALWAYS: REDIS, NOT_DURABLE: Store("redis", None), "valkey, AOF always": VALKEY}


async def measure(setting: Setting) -> Findings:
    findings = Findings()
    boards = setting.scaled(BOARDS, quick=QUICK_BOARDS)
    for key, members in MEMBERS.items():
        loads, profiled = await _measured(setting, boards, members, key)
        findings.add(profiled)
        for name, runs in loads.items():
            findings.figure(f"{boards:,} boards of {members:,}, {name}", "a second", [load.rate for load in runs])
        for name, runs in loads.items():
            samples = [load.p99_us / 1e3 for load in runs]
            findings.figure(f"{boards:,} boards of {members:,}, {name}: p99", "ms", samples)
        if ALWAYS in loads:
            findings.ratio(key, [load.rate for load in loads[OURS]], [load.rate for load in loads[ALWAYS]])
    if missing := REDIS.missing:
        findings.missing |= dict.fromkeys(MEMBERS, missing)
    if setting.quick:
        findings.notes.append(f"25: scaled down, {boards:,} boards instead of {BOARDS:,}")
    return findings


async def _measured(setting: Setting, count: int, members: int, key: str) -> tuple[dict[str, list[Load]], Findings]:
    """The loads of each contestant, and where the time of the product goes."""
    name = f"boards_{members}"
    dsn = await setting.database(name)
    boards: list[Tournament] = []
    async with seeding(dsn) as connection:
        opened = await open_tournaments(
            connection, "boards", -(-count // (RANKINGS_MAX - 1)), Field(competitors=members)
        )
        ids = iter(await registry.next_ids(connection, 2 * count))
        for tournament in opened:
            its = list(islice(_boards(tournament, ids), min(RANKINGS_MAX - 1, count - len(boards))))
            await worlds.append(connection, tournament, map(_created, its))
            boards += its
    await settle(dsn)
    async with setting.service(dsn, name, *MEMORY) as service, AsyncExitStack() as stack:
        await wait_for_tables(dsn)  # else the worker still writes the boards while others are measured
        requests = setting.requests(name, _requests(boards, service.token))
        runs: dict[str, Callable[[], Awaitable[Load]]] = {}
        before: dict[str, int] = {}
        urls = {OURS: service.url}
        for rival, store in _STORES.items():
            if store.missing is not None:
                continue
            running = await stack.enter_async_context(setting.store(store, name))
            settings = Settings(token=service.token, database=running.socket)
            urls[rival] = (await stack.enter_async_context(setting.peer("boards_redis", settings))).url
        seconds = setting.scaled(SECONDS, quick=QUICK_SECONDS)
        for contestant, url in urls.items():
            await _warm_up(url, service.token, boards)
            runs[contestant] = partial(setting.load, url, requests, connections=CONNECTIONS, seconds=seconds)
            before[contestant] = await _recorded(service, contestant, url, opened)
        loads = await interleaved(setting.rounds, runs)
        for contestant, url in urls.items():
            recorded = await _recorded(service, contestant, url, opened) - before[contestant]
            acknowledged = sum(load.adds_acknowledged for load in loads[contestant])
            sent = sum(load.adds_sent for load in loads[contestant])
            if not acknowledged <= recorded <= sent:
                raise WrongAnswer(f"{contestant}: {sent} sent, {acknowledged} acknowledged, but {recorded} recorded")
        profiled = await contest.profiled(setting, service, f"question {key}", runs[OURS])
    return loads, profiled


async def _warm_up(url: str, token: str, boards: list[Tournament]) -> None:
    """Reads each board once. The product then puts its lines in order."""
    async with Asker(url, token) as asker:
        for board in boards:
            await asker.get(f"{board.path}/rankings/{board.ranking_id}/standings.json?{TOP}")


def _boards(tournament: Tournament, ids: Iterator[int]) -> Iterator[Tournament]:
    """The tournament again and again, with another ranking each time."""
    while True:
        ranking_id, unity_ids = RankingId(next(ids)), (UnityId(next(ids)),)
        yield msgspec.structs.replace(tournament, ranking_id=ranking_id, unity_ids=unity_ids)


def _created(board: Tournament) -> Event:
    return RankingCreated(
        ranking_id=board.ranking_id,
        name=f"Board {board.ranking_id}",
        participants=board.competitor_ids,
        main_unity_id=board.unity_ids[0],
        main_unity_name="score",
        main_unity_counts=Counts.BEST,
    )


def _requests(boards: list[Tournament], token: str) -> list[Request]:
    draw = random.Random(SEED)
    drawn = draw.choices(boards, k=REQUESTS)
    writes = [traffic.board_results(board, token, draw, WRITTEN) for board in drawn]
    reads = [read for board in draw.choices(boards, k=len(boards)) for read in traffic.windows(board, token, [TOP])]
    return traffic.mixed(reads, writes, reads_share=READS, count=REQUESTS, seed=SEED)


async def _recorded(service: Service, contestant: str, url: str, opened: list[Tournament]) -> int:
    """How many changes the contestant has recorded."""
    if contestant == OURS:
        return await ledger.adds_recorded(service, opened)
    async with Asker(url, service.token) as asker:
        return msgspec.json.decode(await asker.get("/recorded"), type=Recorded).recorded
