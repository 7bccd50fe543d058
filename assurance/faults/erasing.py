"""Case 78: competitors are erased while all else fails, and are found nowhere afterwards."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from aiohttp import ClientError
from msgspec import Struct

from assurance.faults.clients import MIXED, Answer, Caller, NotSent
from assurance.faults.replaced import WAYS, ended_with, look_whole, restored
from assurance.faults.resources import failover
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, case, control
from tests.desks import until
from tests.leftovers import forms_of, found_in, rows
from tests.running import said
from tests.spectator import NDJSON, Spectator, connected

ERASED_OF_A_ROUND: Final = 4
FORGOTTEN_SECONDS_MAX: Final = 5.0
"""How long a process may go on to tell of somebody who was erased by another."""
ANSWER_SECONDS_MAX: Final = 60.0
ROUNDS_OF_A_STAGE: Final = 4
FAULTS: Final = ("a service killed", "PostgreSQL killed", "a failover", "a restore")


# As OPERATIONS has it, after a restore.
_SKIP_IDS: Final = """
    SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, min_value) + 1000000)
    FROM pg_sequences
    WHERE schemaname = 'tallybook'
"""


class Victim(Struct, frozen=True):
    """Somebody who is to be erased, with every name that they had."""

    place: int
    competitor_id: int
    names: tuple[str, str]


@case(
    78,
    "Forgotten",
    "competitors erased under a mixed load, while a service or PostgreSQL is killed, a synchronous standby takes "
    "over, or a restore undoes the erasures and their list is applied",
    f"found in no table, answer, export or archive, after {FORGOTTEN_SECONDS_MAX:.0f} s in no stream; `verify` "
    "clean; I1-I12 but for what a restore loses",
)
async def forgotten(trial: Trial) -> None:
    left = trial.times(40, least=len(FAULTS))
    done = erased = searched = 0
    while left:
        async with (
            AsyncExitStack() as stack,
            trial.stage(tournaments=2, seed=trial.seed + done) as stage,
            ended_with(stack, stage),
        ):
            victims: list[Victim] = []
            for n in range(min(left, ROUNDS_OF_A_STAGE)):
                victims += await _erased_during(trial, stage, FAULTS[(done + n) % len(FAULTS)])
                searched += await _look_forgotten(trial, stage, victims)
            erased, done, left = erased + len(victims), done + n + 1, left - n - 1
            await trial.judge(stage)
    trial.tell(f"{done} faults, {erased} erased, {searched:,} places searched")


async def _erased_during(trial: Trial, stage: Stage, fault: str) -> list[Victim]:
    """Those who are erased by when the fault is over."""
    stamp, at_random = time.monotonic_ns(), trial.random.uniform
    names = [(f"Quill-{stamp}-{n}", f"Feather-{stamp}-{n}") for n in range(ERASED_OF_A_ROUND)]
    victims = [await _registered(stage, trial.random.randrange(len(stage.arenas)), one) for one in names]
    if fault == "a failover":
        erasing = asyncio.create_task(_erase(stage, victims, pause=at_random(0, 1)))
        await failover(trial, stage)
        await erasing
        await stage.caught_up()
        return victims
    async with AsyncExitStack() as stack, stage.load(clients=6, mix=MIXED, keyless=0.3):
        if fault == "a restore":
            heads, began = dict(stage.heads), time.monotonic()
            restore = await trial.random.choice(WAYS)(stage, stack)
            await _erase(stage, victims)
            kept = str(stage.folder / f"erasures-{stamp}")
            await _command(stage, "erasures", "keep", kept)
            await restored(stage, restore, began, heads)
            await stage.cluster.execute(_SKIP_IDS)
            told = json.loads(await _command(stage, "erasures", "apply", kept, "--json"))
            outcomes = {one["outcome"] for one in told if one["competitor"] in {one.competitor_id for one in victims}}
            trial.look("I10", outcomes == {"erased"}, f"the list was applied with {outcomes}")
        else:
            erasing = asyncio.create_task(_erase(stage, victims, pause=at_random(0, 0.1)))
            await asyncio.sleep(at_random(0, 0.4))
            if fault == "a service killed":
                stage.services[trial.random.randrange(2)].kill()
            else:
                await stage.cluster.kill()
                await stage.cluster.start()
            await erasing
        await stage.resume()
    await stage.settled()
    await stage.caught_up()
    await look_whole(trial, stage.cluster)
    return victims


async def _registered(stage: Stage, place: int, names: tuple[str, str]) -> Victim:
    """Somebody who has had two names."""
    below = f"/tournament/{stage.arenas[place].slug}"
    form: dict[str, object] = {"name": names[0], "tags": names[0]}
    made = json.loads((await _definite(stage, "POST", f"{below}/competitors.json", form, names[0])).body)
    competitor_id = made["competitor"]["id"]
    path = f"{below}/competitors/{competitor_id}.json"
    await _definite(stage, "PUT", path, {"name": names[1], "tags": names[1]}, names[1])
    return Victim(place, competitor_id, names)


async def _erase(stage: Stage, victims: list[Victim], pause: float = 0.0) -> None:
    for one in victims:
        await asyncio.sleep(pause)
        path = f"/tournament/{stage.arenas[one.place].slug}/competitors/{one.competitor_id}/erase.json"
        await _definite(stage, "PUT", path, {}, f"erase-{one.names[0]}")


async def _definite(
    stage: Stage, method: str, path: str, form: dict[str, object], key: str, status: int = 200
) -> Answer:
    """What it is answered in the end, with this status, by one of the services."""
    deadline, n = time.monotonic() + ANSWER_SECONDS_MAX, 0
    while True:
        caller, n = stage.caller(n % len(stage.services)), n + 1
        answer: Answer | str
        try:
            answer = await caller.ask(method, path, form, f"{key}-key")
            if answer.status == status:
                return answer
        except (NotSent, OSError, EOFError, TimeoutError) as error:
            answer = repr(error)
        finally:
            caller.close()
        assert time.monotonic() < deadline, f"{method} {path} was answered {answer}"
        await asyncio.sleep(0.05)


async def _command(stage: Stage, *arguments: str) -> str:
    done = await asyncio.to_thread(said, *arguments, TALLYBOOK_DATABASE_URL=stage.cluster.dsn)
    assert done.code == 0, done.err
    return done.out


# ── The search ──────────────────────────────────────────────────────────────────────────────────────────


async def _look_forgotten(trial: Trial, stage: Stage, victims: list[Victim]) -> int:
    """Searches everything, and returns how many places that were. The keys of the requests that named somebody are
    those of no others."""
    for one in victims:
        path = f"/tournament/{stage.arenas[one.place].slug}/competitions.json"
        await _definite(stage, "POST", path, {"group_id": 1}, one.names[0], 422)
    forms = {what: form for one in victims for name in one.names for what, form in forms_of(name).items()}
    keys = {f"{name}-key" for one in victims for name in (*one.names, f"erase-{one.names[0]}")}
    searched = 0
    async for place, text in _places(stage, victims):
        searched += 1
        left = found_in(_without(text, keys), forms)
        trial.look("I10", not left, f"{place} has {left[:3]}")

    async def no_stream_tells() -> bool:
        told = [text async for _, text in _streams(stage)]
        return not any(found_in(_without(text, keys), forms) for text in told)

    began = time.monotonic()
    await until(no_stream_tells, ANSWER_SECONDS_MAX)
    took = time.monotonic() - began
    trial.look("I10", took <= FORGOTTEN_SECONDS_MAX, f"a stream told of somebody for {took:.1f} s")
    return searched + len(stage.services) * len(stage.arenas)


def _without(text: bytes, keys: set[str]) -> bytes:
    """The text without the keys of these requests, which their client has chosen, so that they stay."""
    for key in keys:
        text = text.replace(key.encode(), b"")
    return text


async def _places(stage: Stage, victims: list[Victim]) -> AsyncIterator[tuple[str, bytes]]:
    """Every place but the streams, and what it says."""
    async with stage.cluster.owner() as owner:
        async for table, row in rows(owner):
            yield table, row
    for arena in stage.arenas:
        yield f"an archive of {arena.slug}", (await _command(stage, "tournament", "export", arena.slug)).encode()
    for service in range(len(stage.services)):
        caller = stage.caller(service)
        for n, arena in enumerate(stage.arenas):
            below = f"/tournament/{arena.slug}"
            for one in [one.competitor_id for one in victims if one.place == n]:
                for path in (f"competitors/{one}.json", f"competitors/{one}/export.json"):
                    yield path, await _body(caller, f"{below}/{path}")
            after: int | None = 0
            while after is not None:
                body = await _body(caller, f"{below}/competitors.json?per_page=200&after={after}")
                yield "competitors.json", body
                after = json.loads(body)["competitors"]["next"]
        caller.close()


async def _body(caller: Caller, path: str) -> bytes:
    answer = await caller.ask("GET", path)
    assert answer.status == 200, (path, answer.body)
    return answer.body


async def _streams(stage: Stage) -> AsyncIterator[tuple[str, bytes]]:
    """What each service tells of each tournament, from its beginning."""
    for service in range(len(stage.services)):
        for arena in stage.arenas:
            address = f"http://127.0.0.1:{stage.front[service].port}/tournament/{arena.slug}/events?after=0"
            yield f"the stream of {arena.slug}", await _told(address, stage.token)


async def _told(address: str, token: str) -> bytes:
    spectator = Spectator(NDJSON)
    try:
        async with connected(address, {"Accept": NDJSON, "Authorization": f"Bearer {token}"}) as connection:
            await connection.feed(spectator, partial(spectator.count, "caught-up"))
    except (ClientError, OSError) as error:
        raise AssertionError(f"{address} cannot be followed: {error}") from error
    return json.dumps(spectator.told, ensure_ascii=False).encode()


@control("not-erased", "a competitor left unerased: found in tables, answers and streams")
async def planted(trial: Trial) -> str:
    async with trial.stage(tournaments=1) as stage:
        one = await _registered(stage, 0, ("Quill-planted", "Feather-planted"))
        await stage.caught_up()
        forms = forms_of(one.names[1])
        found = {place async for place, text in _places(stage, [one]) if found_in(text, forms)}
        told = [found_in(text, forms) async for _, text in _streams(stage)]
    wanted = {"personal", "competitor", "competitors.json", f"competitors/{one.competitor_id}/export.json"}
    return f"found in {len(found)} places" if all(told) and wanted <= found else ""
