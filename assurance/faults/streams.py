"""Cases 67 and 79: those who follow a tournament from outside, by its stream and by a webhook, while all else fails."""

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Final

from api.access import auth
from api.access.auth import Scope
from api.webhooks import webhooks
from assurance.faults.clients import MIXED
from assurance.faults.replaced import look_whole, restored
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, case
from engine.database.pool import open_database
from engine.domain.terms import Sequence, TournamentId
from tests.api.receiver import receiver_on
from tests.desks import until
from tests.restoring import backup
from tests.service import make_token
from tests.spectator import NDJSON, SSE, Connected, Spectator, connected, follow, shown

LISTENERS: Final = 6
REVOKED_SECONDS_MAX: Final = 5.0
QUIET_SECONDS_MAX: Final = 60.0
_LAST: Final = "SELECT sequence FROM head WHERE tournament_id = $1"


@case(
    67,
    "Streams",
    f"{LISTENERS} listeners of both formats; connections reset, PostgreSQL and services killed, the database put "
    "back, a token revoked",
    "each has every event once, in order, and folds the standings shown; `reset` where the log was replaced; closed "
    f"{REVOKED_SECONDS_MAX:.0f} s after revocation; I1-I10, I12",
)
async def streams(trial: Trial) -> None:
    async with trial.stage(tournaments=1) as stage, AsyncExitStack() as stack:
        spectators = [Spectator(SSE if n % 2 else NDJSON) for n in range(LISTENERS)]
        last: list[int] = []
        listening = [
            asyncio.create_task(follow(_address(stage, n % 2), stage.token, one, _has(one, last)))
            for n, one in enumerate(spectators)
        ]
        resets = trial.times(60, least=6)
        async with stage.load(clients=4, pause_seconds=0.005):
            await until(lambda: all(one.count("PointsAdded") > 10 for one in spectators), 30)
            for n in range(resets):
                await asyncio.sleep(trial.random.uniform(0.02, 0.2))
                for one in stage.front:
                    one.reset_all()
                if n % 6 == 3:
                    await stage.cluster.kill()
                    await stage.cluster.start()
                    await stage.resume()
                if n % 6 == 5:
                    stage.services[n % 2].kill()
                    await stage.resume()
        before = sum(one.count("reset") for one in spectators)
        trial.look("I7", before == 0, f"{before} listeners were told to start over, and nothing was replaced")
        async with stage.load(clients=4, pause_seconds=0.005):
            heads, began = dict(stage.heads), time.monotonic()
            restore = await stack.enter_async_context(backup(stage.cluster.dsn))
            behind = max(one.sequence for one in spectators)
            await until(lambda: all(one.sequence > behind + 10 for one in spectators), 30)
            told = [len(one.told) for one in spectators]
            await restored(stage, restore, began, heads)
            await stage.resume()
        started_over = sum(len(one.told) < count for one, count in zip(spectators, told, strict=True))
        await stage.settled()
        last.append((await stage.cluster.fetch(_LAST, stage.arenas[0].tournament_id))[0]["sequence"])
        async with asyncio.timeout(QUIET_SECONDS_MAX):
            await asyncio.gather(*listening)
        expected = await _standings(stage)
        for one in spectators:
            trial.look("I7", one.sequences == list(range(1, last[0] + 1)), f"a listener has {one.sequences[-5:]}")
            trial.look("I5", one.standings() == expected, "a listener folds to other standings")
        trial.show(started_over > 0, "no listener had read more than the restored log holds")
        await _look_revoked(trial, stage)
        await look_whole(trial, stage.cluster)
        await trial.judge(stage)
        trial.tell(
            f"{resets} resets of all connections, among them {len(range(3, resets, 6))} crashes of PostgreSQL and "
            f"{len(range(5, resets, 6))} of a service; {last[0]} events, had by {LISTENERS} listeners; {started_over} "
            "of them told to start over after the restore"
        )


def _address(stage: Stage, service: int) -> Callable[[], str]:
    return lambda: f"http://127.0.0.1:{stage.front[service].port}/tournament/{stage.arenas[0].slug}/events"


def _has(spectator: Spectator, last: list[int]) -> Callable[[], bool]:
    """Whether it has all of the log, once that is known."""
    return lambda: bool(last) and spectator.sequence >= last[0]


async def _standings(stage: Stage) -> dict[Any, Any]:
    caller, arena = stage.caller(0), stage.arenas[0]
    path = f"/tournament/{arena.slug}/rankings/{arena.ranking_id}/standings.json"
    answer = await caller.ask("GET", path)
    caller.close()
    return shown([json.loads(answer.body)])


async def _look_revoked(trial: Trial, stage: Stage) -> None:
    async with open_database(stage.cluster.dsn, name="harness") as database:
        token = await make_token(database, Scope.READ)
        async with connected(_address(stage, 0)(), {"Authorization": f"Bearer {token}"}) as connection:
            trial.look("I10", connection.status == 200, f"a listener was answered {connection.status}")
            async with database.connection() as session:
                token_id = await session.fetchval("SELECT max(token_id) FROM token")
                assert await auth.revoke(session, token_id)
            began = time.monotonic()
            async with asyncio.timeout(QUIET_SECONDS_MAX):
                await _to_the_end(connection)
            took = time.monotonic() - began
            trial.look("I12", took <= REVOKED_SECONDS_MAX, f"a listener without a token was served for {took:.1f} s")


async def _to_the_end(connection: Connected) -> None:
    while await connection.piece():
        pass


# ── 79 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    79,
    "Webhooks",
    "a webhook of all events; kill -9 of the delivering workers in turn, and of PostgreSQL",
    "each event comes at least once, none before its predecessor; I1-I10, I12",
)
async def delivered(trial: Trial) -> None:
    faults = trial.times(20, least=4)
    async with trial.stage(tournaments=1) as stage, receiver_on() as receiver:
        tournament_id = TournamentId(stage.arenas[0].tournament_id)
        async with open_database(stage.cluster.dsn, name="harness") as database, database.connection() as session:
            _, since, _ = await webhooks.add_webhook(
                session, tournament_id, receiver.url, kinds=None, allows_private=True, after=Sequence(1)
            )
        async with stage.load(clients=4, mix=MIXED, pause_seconds=0.01):
            for n in range(faults):
                count = len(receiver.got)
                await until(lambda count=count: len(receiver.got) > count + 3, QUIET_SECONDS_MAX)  # type: ignore[misc]
                if n % 4 == 3:
                    await stage.cluster.kill()
                    await stage.cluster.start()
                    await stage.resume()
                else:
                    stage.workers[n % 2].kill()
                    await stage.workers[n % 2].again()
        await stage.settled()
        last = (await stage.cluster.fetch(_LAST, tournament_id))[0]["sequence"]
        await until(lambda: last in receiver.sequences, QUIET_SECONDS_MAX)
        firsts = list(dict.fromkeys(receiver.sequences))
        trial.look("I1", firsts == list(range(since + 1, last + 1)), f"what came is {_gaps(firsts, since, last)}")
        await trial.judge(stage)
        trial.tell(
            f"{faults} faults; {last - since} events, {len(receiver.got)} messages, "
            f"{len(receiver.got) - len(firsts)} of them again"
        )


def _gaps(firsts: list[int], since: int, last: int) -> str:
    missing = sorted(set(range(since + 1, last + 1)) - set(firsts))
    return f"in another order, or without {missing[:10]}"
