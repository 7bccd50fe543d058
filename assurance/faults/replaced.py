"""Cases 59 to 64: the database is put back to what it was, or has not said that it has what it has, while services run
that know more.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import uuid4

import asyncpg
import msgspec
from msgspec import Struct

from api.desk.remembered import IDS_RESERVED
from assurance.faults import checker
from assurance.faults.clients import MIXED, Answer, Caller, Client, NotSent
from assurance.faults.cluster import Cluster
from assurance.faults.history import Asked, Kind, Outcome
from assurance.faults.stage import Stage, processor_seconds
from assurance.faults.table import Trial, case, control
from engine.database.pool import open_database
from engine.domain.events import CompetitionAdded, CompetitorRegistered, Delta, PointsAdded, RankingCreated
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from engine.log import appending, heads, registry
from engine.log.appending import Block, Request
from engine.log.heads import Head
from tests.desks import DOOR, HOLD_HEAD, record, until, until_commits_wait, waiting_for_locks
from tests.restoring import backup
from tests.running import Said, said
from tests.service import make_token

DIFFERENCE: Final = 3
"""Exit code of `verify` where it found something."""
RESTORES_OF_A_STAGE: Final = 10
"""Restores before the log is judged and the next stage begins."""
ANSWER_SECONDS_MAX: Final = 30.0
_RETRY: Final = 503

# ── Backups ─────────────────────────────────────────────────────────────────────────────────────────────

Restore = Callable[[], Awaitable[None]]


async def _copied(stage: Stage, stack: AsyncExitStack) -> Restore:
    """A copy of the database, from which it is restored under its name: what a dump that is restored leaves."""
    return await stack.enter_async_context(backup(stage.cluster.dsn))


async def _base_backup(stage: Stage, stack: AsyncExitStack) -> Restore:
    """A base backup, started in the place of the cluster, which is killed."""
    there = await stage.cluster.base_backup(stage.folder / f"backup-{len(list(stage.folder.glob('backup-*')))}")

    async def restore() -> None:
        old = stage.cluster
        await old.kill()
        await there.start()
        stage.cluster = there
        for one in [*stage.back, *stage.tables]:
            one.reset_all()

    return restore


WAYS: Final = (_copied, _base_backup)


async def restored(stage: Stage, restore: Restore, began: float, heads: dict[tuple[int, int], bytes]) -> None:
    """Puts the database back, and notes that what was done since the backup `began` may be lost; `heads` are those that
    had been seen by then."""
    await restore()
    stage.history.replaced(began, time.monotonic())
    stage.heads = heads


async def verified(there: Cluster, *options: str) -> Said:
    return await asyncio.to_thread(said, "verify", *options, TALLYBOOK_DATABASE_URL=there.dsn)


async def look_whole(trial: Trial, there: Cluster) -> None:
    told = await verified(there)
    trial.look("I8", told.code == 0, f"`verify` finds: {told.out[-600:]} {told.err[-300:]}")


@asynccontextmanager
async def ended_with(stack: AsyncExitStack, stage: Stage) -> AsyncIterator[None]:
    """What took the cluster's place is stopped with `stack`, which is when the programs of the stage are."""
    first = stage.cluster
    try:
        yield
    finally:
        if stage.cluster is not first:
            stack.push_async_callback(stage.cluster.stop)


# ── 59 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    59,
    "Restore under running services",
    "under a mixed load, at random moments, the database goes back a moment (a copy under its name, or a base backup "
    "in its place); services go on",
    "what the backup has, and what is acknowledged later, is there once, in its own tournament; digests name the "
    "loss; `verify` clean; I1-I12 but for the loss",
)
async def restores(trial: Trial) -> None:
    left = trial.times(50)
    done = gone = named = 0
    while left:
        async with (
            AsyncExitStack() as stack,
            trial.stage(tournaments=3, seed=trial.seed + done) as stage,
            ended_with(stack, stage),
        ):
            for _ in range(min(left, RESTORES_OF_A_STAGE)):
                named += await _restore_under_load(trial, stage)
                left, done = left - 1, done + 1
            evidence = await stage.evidence()
            gone += checker.lost(evidence)
            trial.take(stage, checker.judge(evidence))
    trial.tell(
        f"{done} restores, {gone} acknowledged changes lost with what the backups lacked, {named} tournaments named by "
        f"digests; overwritten {_faults(trial, 'overwrites')}, misplaced {_faults(trial, 'was asked for in')}, "
        f"acknowledged afterwards and lost {_faults(trial, 'lost: ')}"
    )


def _faults(trial: Trial, text: str) -> int:
    return sum(text in fault for faults in trial.verdicts.wrong.values() for fault in faults)


async def _restore_under_load(trial: Trial, stage: Stage) -> int:
    """One restore; how many tournaments the digests show to have lost something."""
    at_random = trial.random.uniform
    async with AsyncExitStack() as stack:
        async with stage.load(clients=6, mix=MIXED, keyless=0.3):
            await asyncio.sleep(at_random(0.2, 1))
            heads, began = dict(stage.heads), time.monotonic()
            restore = await trial.random.choice(WAYS)(stage, stack)
            await asyncio.sleep(at_random(0.1, 1))
            kept = await outside(stage, stage.folder / f"digests-{len(stage.history.replacements)}")
            await asyncio.sleep(at_random(0, 0.5))
            await restored(stage, restore, began, heads)
            await stage.resume()
            await asyncio.sleep(at_random(0.2, 1))
        await stage.settled()
        await stage.caught_up()
        named = await _named(trial, stage, kept)
    await look_whole(trial, stage.cluster)
    return named


async def outside(stage: Stage, kept: Path) -> Path:
    """Digests that are kept elsewhere."""
    told = await asyncio.to_thread(said, "digests", "--output", str(kept), TALLYBOOK_DATABASE_URL=stage.cluster.dsn)
    assert told.code == 0, told.err
    return kept


_DIGEST: Final = "SELECT encode(digest, 'hex') AS digest FROM block WHERE tournament_id = $1 AND last_sequence = $2"


async def _named(trial: Trial, stage: Stage, kept: Path) -> int:
    """Whether `verify` names the tournaments that lack what the digests tell of, and no others; how many they are."""
    expected = set()
    for line in kept.read_text().splitlines():
        note = json.loads(line)
        rows = await stage.cluster.fetch(_DIGEST, note["tournament"], note["sequence"])
        if [row["digest"] for row in rows] != [note["digest"]]:
            expected.add(note["slug"])
    told = await verified(stage.cluster, "--digests", str(kept), "--json")
    found = {one["tournament"] for one in told.json["differences"]}
    trial.look("I8", found == expected, f"digests name {sorted(found)}, what lost something is {sorted(expected)}")
    trial.look("I8", (told.code == DIFFERENCE) == bool(expected), f"`verify --digests` ended with {told.code}")
    return len(found)


# ── 60 ──────────────────────────────────────────────────────────────────────────────────────────────────


async def asked_until(client: Client, asked: Asked, service: int) -> Any:
    """The attempt that was not answered with a 503, nor with nothing."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        attempt = await client.attempt(asked, service)
        if attempt.status not in (0, _RETRY) or time.monotonic() > deadline:
            return attempt
        await asyncio.sleep(0.02)


@case(
    60,
    "Judged by a lost history",
    "one service makes rankings, unities and points; a restore loses them; the other appends less, as much or more; "
    "the first writes to what it knew",
    "the lost is 404, the rest judged again; every event can be folded; `verify` clean; I1-I12",
)
async def judged_by_a_lost_history(trial: Trial) -> None:
    rounds = trial.times(50, least=2)
    refused = 0
    async with trial.stage(tournaments=2) as stage:
        for n in range(rounds):
            refused += await _lost_history(trial, stage, n)
        await stage.settled()
        await stage.caught_up()
        await look_whole(trial, stage.cluster)
        await trial.judge(stage)
    trial.tell(
        f"{rounds} rounds, {refused} writes to what is lost refused; {_faults(trial, 'is not')} events not to be folded"
    )


async def _lost_history(trial: Trial, stage: Stage, n: int) -> int:
    """One round, of which service 0 knows what is lost; how many of its writes to that were refused."""
    warm, growing = trial.random.sample([0, 1], 2)
    client = stage.client()
    place = n % len(stage.arenas)
    async with AsyncExitStack() as stack:
        # What the clients know of is taken up by both, so that neither has anything to read when it counts.
        for service in (warm, growing):
            await asked_until(client, client.draw(Kind.ADD, place, keyed=False), service)
        heads, began = dict(stage.heads), time.monotonic()
        restore = await _copied(stage, stack)
        made = await asked_until(client, client.draw(Kind.RANKING, place), warm)
        match = await asked_until(client, client.draw(Kind.COMPETITION, place), warm)
        lost = trial.random.randint(0, 6)
        for _ in range(lost):
            await asked_until(client, client.draw(Kind.ADD, place), warm)
        await restored(stage, restore, began, heads)
        for _ in range(trial.random.randint(0, 12)):
            await asked_until(client, client.draw(Kind.ADD, place), growing)
        about = [
            _about(client, Kind.UNITY, place, made.made),
            _about(client, Kind.CLOSE, place, made.made),
            _about(client, Kind.VOID, place, match.made),
            _about(client, Kind.ADD, place, match.made),
        ]
        refused = 0
        for asked in trial.random.sample(about, len(about)):
            attempt = await asked_until(client, asked, warm)
            right = attempt.status in (404, 422)
            refused += right
            trial.look("I3", right, f"what is lost was answered {attempt.status} {attempt.why}: {asked}")
        for service in (warm, growing):
            attempt = await asked_until(client, client.draw(Kind.ADD, place), service)
            trial.look("I12", attempt.outcome is Outcome.OK, f"then: {attempt.status} {attempt.why}")
    client.close()
    return refused


def _about(client: Client, kind: Kind, place: int, target: int) -> Asked:
    """A change that is about just that."""
    asked = client.draw(kind if kind is Kind.ADD else Kind.REGISTER, place)
    return msgspec.structs.replace(asked, kind=kind, target=target)


def _cut(door: str, clause: str) -> str:
    """The function that appends, without that."""
    without = door.replace(clause, "false")
    assert without != door, f"the function has no {clause}"
    return without


@control(
    "digest",
    "appends compare no digest of a judgement: after a restore, one judged against another history is recorded",
)
async def without_digests(trial: Trial) -> str:
    async with trial.stage(tournaments=1, workers=0) as stage:
        ((door,),) = await stage.cluster.fetch(DOOR)
        clause = "v_digest_then IS DISTINCT FROM p_judged_digest AND p_judged_digest IS NOT NULL"
        await stage.cluster.execute(_cut(door, clause))
        found = await _misjudged(stage)
        return f"{found} faults" if found else ""


async def _misjudged(stage: Stage) -> int:
    """Service 0 knows a ranking that is lost and adds points to it when the log has passed that place; how many events
    are about what is not there."""
    client = stage.client()
    callers = [stage.caller(service) for service in range(2)]
    below = f"/tournament/{stage.arenas[0].slug}"
    competitor = stage.arenas[0].competitors[0]
    async with AsyncExitStack() as stack:
        for service in range(2):
            await asked_until(client, client.draw(Kind.ADD, 0, keyed=False), service)
        restore = await _copied(stage, stack)
        form: dict[str, object] = {"name": "Lost", "main_unity_name": "points", "participants": competitor}
        answer = await _told(callers[0], "POST", f"{below}/rankings.json", form)
        lost = json.loads(answer.body)["ranking"]
        await restore()
        for _ in range(8):
            await asked_until(client, client.draw(Kind.ADD, 0), 1)
        deltas = [{"competitor_id": competitor, "unities": [{"unity_id": lost["unities"][0]["id"], "delta": "1"}]}]
        path = f"{below}/rankings/{lost['id']}/add.json"
        await _told(callers[0], "PUT", path, {"participants_delta": json.dumps(deltas)}, again=False)
    async with stage.cluster.owner() as owner:
        logs = [await checker.read_log(owner, stage.arenas[0])]
    verdicts = checker.Verdicts()
    checker._check_ids(verdicts, logs)
    for one in (client, *callers):
        one.close()
    return len(verdicts.wrong.get("I5", []))


async def _told(
    caller: Caller, method: str, path: str, form: dict[str, object] | None = None, *, again: bool = True
) -> Answer:
    """The answer that is not a 503; `again` False: nor one that took too long, which is as good as any other."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        with suppress(NotSent, OSError, EOFError, TimeoutError):
            answer = await caller.ask(method, path, form)
            if answer.status != _RETRY or (not again and time.monotonic() > deadline - ANSWER_SECONDS_MAX + 3):
                return answer
        assert time.monotonic() < deadline, f"{method} {path} is not answered"
        await asyncio.sleep(0.02)


@control(
    "ids",
    "appends compare no created ids, whose sequence is put back: something is overwritten",
)
async def without_ids(trial: Trial) -> str:
    async with trial.stage(tournaments=1, workers=0) as stage:
        ((door,),) = await stage.cluster.fetch(DOOR)
        await stage.cluster.execute(_cut(door, "b.created && p_created"))
        await _created_at_once(stage)
        async with stage.cluster.owner() as owner:
            logs = [await checker.read_log(owner, stage.arenas[0])]
        verdicts = checker.Verdicts()
        checker._check_ids(verdicts, logs)
        found = len(verdicts.wrong.get("I3", []))
        return f"{found} overwritten" if found else ""


async def _created_at_once(stage: Stage) -> None:
    """A competitor by each service, with the same id: each has drawn it, and judged, before either is in the log."""
    for service in stage.services:
        await service.again()  # which has drawn no ids yet
    client = stage.client()
    tournament_id = stage.arenas[0].tournament_id
    for service in range(2):
        await asked_until(client, client.draw(Kind.ADD, 0), service)  # it has read the tournament now
    asking: list[asyncio.Task[Any]] = []
    async with stage.cluster.owner() as owner:
        last = await owner.fetchval("SELECT last_value FROM resource_id")
        async with owner.transaction():
            await owner.execute(HOLD_HEAD, tournament_id)
            for service in range(2):
                async with stage.cluster.owner() as other:
                    await other.execute("SELECT setval('resource_id', $1)", last)
                    asked = client.draw(Kind.REGISTER, 0)
                    asking.append(asyncio.create_task(stage.client().attempt(asked, service)))
                    await until(partial(_wait, other, service + 1))
        await asyncio.gather(*asking)
        await owner.execute("SELECT setval('resource_id', $1)", last + 2 * IDS_RESERVED)


async def _wait(owner: asyncpg.Connection, count: int) -> bool:
    """Whether that many appends wait for a lock."""
    return len(await waiting_for_locks(owner, "append")) == count


# ── 61 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    61,
    "Lost ids and slugs",
    "a restore loses tournaments, tokens, competitors, competitions and rankings known to both services; others get "
    "their ids; the lost are used again. Then the sequence of ids is put back while both create",
    "404, for a lost token 401; never another's; nothing overwritten; I1-I12",
)
async def lost_ids(trial: Trial) -> None:
    rounds = trial.times(50, least=2)
    hits = uses = 0
    async with trial.stage(tournaments=2) as stage:
        for n in range(rounds):
            statuses = await _lost_names(trial, stage, n)
            uses += len(statuses)
            hits += sum(status < 400 for status in statuses)
        await _created_at_once(stage)
        await stage.settled()
        await stage.caught_up()
        await look_whole(trial, stage.cluster)
        await trial.judge(stage)
    trial.look("I11", hits == 0, f"{hits} of {uses} uses of what is lost were answered as if it was there")
    trial.tell(f"{hits} hits of {uses} uses of what is lost; overwritten {_faults(trial, 'overwrites')}")


async def _lost_names(trial: Trial, stage: Stage, n: int) -> list[int]:
    """One round; the statuses of all that was asked about what is lost."""
    client = stage.client()
    place = n % len(stage.arenas)
    arena = stage.arenas[place]
    slug = f"lost-{n}"
    async with AsyncExitStack() as stack:
        heads, began = dict(stage.heads), time.monotonic()
        restore = await _copied(stage, stack)
        lost_id = await _opened(stage, slug)
        token = await _token(stage)
        old = [Caller(lambda port=service: stage.front[port].port, token) for service in range(2)]  # type: ignore[misc]
        for caller in old:
            answer = await _told(caller, "GET", f"/tournament/{slug}/competitors.json")
            assert answer.status == 200, answer
        if trial.random.random() < 0.5:
            await _told(old[0], "POST", f"/tournament/{slug}/competitors.json", {"name": "Ada"})
        made = {}
        for kind in (Kind.REGISTER, Kind.RANKING, Kind.COMPETITION):
            made[kind] = (await asked_until(client, client.draw(kind, place), trial.random.randrange(2))).made
        await restored(stage, restore, began, heads)
        other = f"other-{n}"
        await _opened(stage, other, lost_id)
        await _filled(stage, TournamentId(lost_id), made)
        good = [stage.caller(service) for service in range(2)]
        below, unity = f"/tournament/{arena.slug}", arena.unities[0]
        deltas = json.dumps([{"competitor_id": made[Kind.REGISTER], "unities": [{"unity_id": unity, "delta": "1"}]}])
        uses: list[tuple[str, str, dict[str, object] | None]] = [
            ("GET", f"/tournament/{slug}/competitors.json", None),
            ("POST", f"/tournament/{slug}/competitors.json", {"name": "Ben"}),
            ("PUT", f"{below}/rankings/{made[Kind.RANKING]}/close.json", {}),
            ("PUT", f"{below}/competitions/{made[Kind.COMPETITION]}/void.json", {}),
            ("PUT", f"{below}/competitors/{made[Kind.REGISTER]}.json", {"name": "Cid"}),
            ("PUT", f"{below}/rankings/{arena.ranking_id}/add.json", {"participants_delta": deltas}),
        ]
        statuses = []
        for use in trial.random.sample(uses, len(uses)):
            for caller in good:
                status = (await _told(caller, *use)).status
                trial.look("I11", status in (404, 422), f"{use} was answered {status}")
                statuses.append(status)
        for caller in old:
            status = (await _told(caller, "GET", f"/tournament/{other}/competitors.json")).status
            trial.look("I11", status == 401, f"a lost token was answered {status}")
            statuses.append(status)
        answer = await _told(good[0], "GET", f"/tournament/{other}/competitors.json")
        there = json.loads(answer.body)["competitors"]["total"] if answer.status == 200 else -1
        trial.look("I11", there == 1, f"{other} has {there} competitors, of whom one was registered")
        for one in (client, *old, *good):
            one.close()
    return statuses


async def _opened(stage: Stage, slug: str, number: int = 0) -> int:
    """The id of a new tournament, which is `number` if one is given."""
    number = number or registry.new_tournament_id()
    async with stage.cluster.owner() as owner:
        assert await registry.open_tournament(owner, TournamentId(number), name=slug, slug=slug, actor=OPERATOR)
    return number


async def _filled(stage: Stage, tournament_id: TournamentId, ids: Mapping[Kind, int]) -> None:
    """Gives these ids to a competitor, a ranking and a competition of the tournament, past the services."""
    competitor_id = CompetitorId(ids[Kind.REGISTER])
    async with stage.cluster.owner() as owner:
        await record(
            owner,
            tournament_id,
            CompetitorRegistered(competitor_id=competitor_id, name="Dot"),
            CompetitionAdded(competition_id=CompetitionId(ids[Kind.COMPETITION]), group_id=1),
            RankingCreated(
                ranking_id=RankingId(ids[Kind.RANKING]),
                name="Other",
                participants=(competitor_id,),
                main_unity_id=UnityId(max(ids.values()) + 1),
                main_unity_name="points",
            ),
        )


async def _token(stage: Stage) -> str:
    async with open_database(stage.cluster.dsn, name="harness") as database:
        return await make_token(database)


# ── 62 ──────────────────────────────────────────────────────────────────────────────────────────────────

_WAITING: Final = """
    SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name LIKE 'tallybook%'
"""
_SILENT: Final = "ALTER SYSTEM SET synchronous_standby_names = 'gone'"
_NO_STANDBY: Final = "ALTER SYSTEM RESET synchronous_standby_names"


@case(
    62,
    "Unconfirmed commit repeated",
    "a keyed request waits for a lost synchronous standby, is cancelled, and repeated by either service: points, "
    "creation, closing, void, a refused one; lists are read meanwhile",
    "no 2xx or 4xx before a standby confirms, then as the first; a list may show it; I1-I10",
)
async def unconfirmed(trial: Trial) -> None:
    rounds = trial.times(50, least=5)
    early = repeats = seen = 0
    async with trial.stage(tournaments=2, workers=1) as stage:
        client = stage.client()
        async with stage.cluster.owner(synchronous_commit="local") as owner, stage.cluster.owner() as probe:
            for n in range(rounds):
                place = n % len(stage.arenas)
                asked, status = await _unconfirmed_one(client, place, n % 5)
                before = await asked_until(client, client.draw(Kind.LIST, place), 0)
                await _reload(owner, _SILENT)
                await until_commits_wait(owner, probe)
                for _ in range(trial.random.randint(1, 3)):
                    attempt = await _given_up(owner, client, asked, trial.random.randrange(2))
                    repeats += 1
                    early += attempt.status in (200, *range(400, 500))
                    trial.look("I1", attempt.outcome is not Outcome.OK, f"{asked} was ok before a standby had it")
                    trial.look("I1", attempt.status not in range(400, 500), f"{asked}: {attempt.status} before that")
                read = await _given_up(owner, client, client.draw(Kind.LIST, place), trial.random.randrange(2))
                right = read.outcome is Outcome.OK and read.count >= before.count
                trial.look("I10", right, f"a list in between was answered {read.status} {read.count}")
                seen += read.count > before.count
                await _reload(owner, _NO_STANDBY)
                for service in range(2):
                    attempt = await asked_until(client, asked, service)
                    trial.look("I2", attempt.status == status, f"{asked}: at last {attempt.status} {attempt.why}")
        await stage.settled()
        await stage.caught_up()
        await look_whole(trial, stage.cluster)
        await trial.judge(stage)
    trial.tell(
        f"{early} early oks or refusals of {repeats} attempts; {seen} shown by a list before they were confirmed"
    )


async def _reload(owner: asyncpg.Connection, statement: str) -> None:
    """Returns when a new session goes by it."""
    await owner.execute(statement)
    await owner.execute("SELECT pg_reload_conf()")
    names = "gone" if statement is _SILENT else ""

    async def known() -> bool:
        return bool(await owner.fetchval("SELECT current_setting('synchronous_standby_names') = $1", names))

    await until(known, 10)


async def _unconfirmed_one(client: Client, place: int, path: int) -> tuple[Asked, int]:
    """A keyed request of a path, and what it is to be answered in the end."""
    match path:
        case 0:
            return client.draw(Kind.COMPETITION, place, keyed=True), 200
        case 1:
            return client.draw(Kind.ADD, place, keyed=True), 200
        case 2:
            made = await asked_until(client, client.draw(Kind.RANKING, place, keyed=True), 0)
            return _keyed_about(client, Kind.CLOSE, place, made.made), 200
        case 3:
            made = await asked_until(client, client.draw(Kind.COMPETITION, place, keyed=True), 0)
            return _keyed_about(client, Kind.VOID, place, made.made), 200
        case _:
            made = await asked_until(client, client.draw(Kind.COMPETITION, place, keyed=True), 0)
            return _keyed_about(client, Kind.UNVOID, place, made.made), 409  # it is not voided


def _keyed_about(client: Client, kind: Kind, place: int, target: int) -> Asked:
    return msgspec.structs.replace(client.draw(Kind.REGISTER, place, keyed=True), kind=kind, target=target)


async def _given_up(owner: asyncpg.Connection, client: Client, asked: Asked, service: int) -> Any:
    """An attempt, of which every wait for a standby is ended by somebody else."""
    asking = asyncio.create_task(client.attempt(asked, service))
    while not asking.done():
        for row in await owner.fetch(_WAITING):
            await owner.execute("SELECT pg_cancel_backend($1)", row["pid"])
        await asyncio.sleep(0.02)
    return asking.result()


# ── 63 ──────────────────────────────────────────────────────────────────────────────────────────────────


@case(
    63,
    "Judged late",
    "a foreign transaction adds points for a competition; a void waits; its session is ended, its client leaves or "
    "gets 500; the transaction commits",
    "the void reverses exactly the points in effect, or is not applied; `verify` clean; I1-I10",
)
async def judged_late(trial: Trial) -> None:
    rounds = trial.times(40, least=4)
    applied = wrong = 0
    tournaments = 4
    async with trial.stage(tournaments=tournaments, services=1) as stage:
        for n in range(0, rounds, tournaments):
            patient = n % 8 == 4 and trial.scale >= 0.5  # waits for its 500, which takes 15 s
            outcomes = await asyncio.gather(
                *(_judged_late(trial, stage, place, patient=patient) for place in range(min(tournaments, rounds - n)))
            )
            applied += sum(outcomes)
        await stage.settled()
        await stage.caught_up()
        await look_whole(trial, stage.cluster)
        await trial.judge(stage)
    wrong = _faults(trial, "counts for the wrong points")
    trial.tell(f"{rounds} voids, {applied} applied after their client had gone; {wrong} wrong reversals")


async def _judged_late(trial: Trial, stage: Stage, place: int, *, patient: bool) -> bool:
    """One void; whether it was applied after all."""
    client = stage.client()
    arena = stage.arenas[place]
    made = await asked_until(client, client.draw(Kind.COMPETITION, place, keyed=True), 0)
    for _ in range(trial.random.randint(0, 3)):
        asked = msgspec.structs.replace(client.draw(Kind.ADD, place, keyed=True), target=made.made)
        await asked_until(client, asked, 0)
    void = _keyed_about(client, Kind.VOID, place, made.made)
    async with stage.cluster.owner() as foreign, stage.cluster.owner() as owner:
        async with foreign.transaction():
            await foreign.execute(HOLD_HEAD, arena.tournament_id)
            holder = foreign.get_server_pid()
            voiding = asyncio.create_task(client.attempt(void, 0))

            async def waits() -> list[Any]:
                return list(await owner.fetch(_HELD_UP, holder)) if not voiding.done() else [None]

            waiting = await until(waits, 20)
            if waiting != [None]:
                await owner.execute("SELECT pg_terminate_backend($1)", waiting[0]["pid"])
                if not patient:
                    await until(lambda: _sent_again(owner, holder, waiting[0]["pid"]), 20)
                    client.close()
            await asyncio.wait([voiding], timeout=ANSWER_SECONDS_MAX if patient else 5)
            for _ in range(trial.random.randint(1, 3)):
                await _foreign_points(foreign, stage, client, place, made.made)
        attempt = await voiding
    client.close()
    applied = await _applied(stage, arena.tournament_id, void)
    if trial.random.random() < 0.5:
        late = stage.client()
        await asked_until(late, _keyed_about(late, Kind.UNVOID, place, made.made), 0)
        late.close()
    return applied and attempt.outcome is not Outcome.OK


_HELD_UP: Final = """
    SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid)) AND application_name LIKE 'tallybook%'
"""


async def _sent_again(owner: asyncpg.Connection, holder: int, ended: int) -> bool:
    return any(row["pid"] != ended for row in await owner.fetch(_HELD_UP, holder))


async def _foreign_points(
    foreign: asyncpg.Connection, stage: Stage, client: Client, place: int, competition: int
) -> None:
    """Points for the competition that no service knows of; written down as somebody's, who was told that it is done."""
    arena = stage.arenas[place]
    asked = msgspec.structs.replace(client.draw(Kind.ADD, place, keyed=False), target=competition)
    attempt = stage.history.begin(asked, -1, time.monotonic())
    points = PointsAdded(
        ranking_id=RankingId(arena.ranking_id),
        deltas=tuple(Delta(CompetitorId(who), UnityId(unity), amount) for who, unity, amount in asked.lines),
        competition_id=CompetitionId(competition),
    )
    appended = await record(foreign, TournamentId(arena.tournament_id), points)
    attempt.outcome, attempt.status, attempt.sequence = Outcome.OK, 200, appended.first_sequence or 0
    stage.history.end(attempt, time.monotonic() + 10)  # nobody may rely on it before the commit


async def _applied(stage: Stage, tournament_id: int, void: Asked) -> bool:
    """Whether the void is in the log, some seconds later at the latest."""
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        rows = await stage.cluster.fetch(
            "SELECT 1 FROM idempotency WHERE tournament_id = $1 AND idempotency_key = $2", tournament_id, void.key
        )
        if rows:
            return True
        await asyncio.sleep(0.05)
    return False


# ── 64 ──────────────────────────────────────────────────────────────────────────────────────────────────

MEASURED: Final = 2_000
GROWTH_MAX: Final = 2.0


@case(
    64,
    "Old snapshot",
    "a REPEATABLE READ transaction held open during 80,000 commits on one tournament",
    "append and barrier query take at most twice as long at the end as at the start",
)
async def old_snapshot(trial: Trial) -> None:
    blocks = trial.times(80_000, least=4_000)
    async with trial.stage(tournaments=1, workers=0, services=1) as stage:
        arena = stage.arenas[0]
        tournament_id = TournamentId(arena.tournament_id)
        deltas = (Delta(CompetitorId(arena.competitors[0]), UnityId(arena.unities[0]), 1),)
        request = Request(events=(PointsAdded(ranking_id=RankingId(arena.ranking_id), deltas=deltas),), actor=OPERATOR)
        async with stage.cluster.owner(synchronous_commit="off") as owner, _snapshot(stage.cluster):
            head = (await heads.current(owner, [tournament_id]))[tournament_id]

            async def append() -> None:
                nonlocal head
                block = Block(
                    tournament_id=tournament_id,
                    judged_at=head.sequence,
                    judged_digest=head.digest,
                    requests=(request,),
                    append_id=uuid4().hex,
                )
                (appended,) = await appending.append(owner, [block], wait=True)
                assert isinstance(appended, appending.Appended)
                assert appended.last_sequence is not None
                assert appended.digest is not None
                head = Head(appended.last_sequence, appended.digest)

            async def barrier() -> None:
                await heads.current(owner, [tournament_id])

            async def many() -> None:
                for _ in range(blocks):
                    await append()

            costs = await _grown(owner, append, barrier, many)
        for name, (first, last) in zip(("append", "barrier"), costs, strict=True):
            right = last.spent <= GROWTH_MAX * first.spent
            trial.look("I12", right, f"{name} after {blocks} blocks: {first.told(last)}")
            trial.tell(f"{name} {first.told(last)}")
        await look_whole(trial, stage.cluster)
        trial.outcomes[Outcome.OK] += blocks
    trial.tell(f"{blocks} blocks")


@asynccontextmanager
async def _snapshot(there: Cluster) -> AsyncIterator[None]:
    """Held by somebody else for as long as the context lasts."""
    async with there.owner() as holder, holder.transaction(isolation="repeatable_read", readonly=True):
        await holder.fetchval("SELECT count(*) FROM tournament")
        yield


class Cost(Struct, frozen=True):
    """Of one call, among MEASURED: the median of the milliseconds it took, and the mean of those of processor that the
    server spent on it, which are not those of whatever else runs on the machine."""

    took: float
    spent: float

    def told(self, then: "Cost") -> str:
        return (
            f"{self.took:.2f} ms, then {then.took:.2f}; of processor {self.spent:.3f}, then {then.spent:.3f} "
            f"({then.spent / self.spent:.1f} times)"
        )


Call = Callable[[], Awaitable[None]]


async def _grown(owner: asyncpg.Connection, change: Call, read: Call, many: Call) -> list[tuple[Cost, Cost]]:
    """What a change and what a read cost, each before and after there were `many` changes."""
    pid = owner.get_server_pid()
    for _ in range(MEASURED // 5):  # what is planned once has been
        await change()
        await read()
    first = [await _cost(pid, call) for call in (change, read)]
    await many()
    last = [await _cost(pid, call) for call in (change, read)]
    return list(zip(first, last, strict=True))


async def _cost(pid: int, call: Call) -> Cost:
    took = []
    before = processor_seconds(pid)
    for _ in range(MEASURED):
        began = time.perf_counter()
        await call()
        took.append(1000 * (time.perf_counter() - began))
    return Cost(median(took), 1000 * (processor_seconds(pid) - before) / MEASURED)


_MANY_UPDATES: Final = """
    DO $$
    BEGIN
        FOR n IN 1 .. {} LOOP
            UPDATE updated SET sequence = sequence + 1 WHERE tournament_id = 1;
            COMMIT;
        END LOOP;
    END
    $$
"""


@control(
    "head-row",
    "every append updates a row of its tournament: under an old snapshot it becomes slow",
)
async def updated_row(trial: Trial) -> str:
    commits = trial.times(20_000, least=10_000)
    async with trial.stage(tournaments=1, workers=0, services=1) as stage:
        await stage.cluster.execute(
            "CREATE TABLE updated (tournament_id bigint PRIMARY KEY, sequence bigint) WITH (fillfactor = 50)"
        )
        await stage.cluster.execute("INSERT INTO updated VALUES (1, 0)")
        async with stage.cluster.owner(synchronous_commit="off") as owner, _snapshot(stage.cluster):

            async def change() -> None:
                async with owner.transaction():
                    await owner.fetchval("SELECT sequence FROM updated WHERE tournament_id = 1 FOR UPDATE")
                    await owner.execute("UPDATE updated SET sequence = sequence + 1 WHERE tournament_id = 1")

            async def read() -> None:
                await owner.fetchval("SELECT sequence FROM updated WHERE tournament_id = 1")

            async def many() -> None:
                await owner.execute(_MANY_UPDATES.format(commits), timeout=600)

            costs = await _grown(owner, change, read, many)
    first, last = costs[1]
    if last.spent <= GROWTH_MAX * first.spent:
        return ""
    (update, read_) = (before.told(after) for before, after in costs)
    return f"{commits} commits: update {update}; read {read_}"
