"""A running service, as processes: what it does when it is stopped, killed, doubled, and asked many things at once.

Every service is `tallybook serve` itself, on a free port, with an embedded database in a directory of its own that is a
copy of one prepared beforehand, or with a database of the session's cluster.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path
from time import monotonic

import asyncpg
import msgspec
import pytest
from aiohttp import ClientError, ClientSession, DummyCookieJar, TCPConnector

from api.service import supervisor
from api.service.figures import FIGURES_DIRECTORY
from api.service.lifecycle import DSN_VARIABLE, READY
from api.service.settings import FAILURES_AT_ONCE_MAX, Settings
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate, shipped
from engine.database.pool import Database, open_database
from engine.domain.terms import Sequence, TournamentId
from engine.log import heads, tails
from projections.board.board import FOLD_VERSION
from projections.tables import tables
from tests.api.service.served import FIGURE, add, total
from tests.bounds import Bounds
from tests.desks import GUARD_SECONDS, Arena, open_arena, until
from tests.histories import board_of
from tests.running import Running, below, environment, free_port, lives, said, started
from tests.service import Client, deltas, make_token, slug_of
from tests.spectator import Spectator, follow, shown


@dataclass(frozen=True)
class Prepared:
    """A data directory, and what is in its database: a tournament with two competitors and a ranking of both."""

    data_dir: Path
    arena: Arena
    slug: str
    token: str


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, _prepare(tmp_path_factory.mktemp("original"))).result()


async def _prepare(data_dir: Path) -> Prepared:
    async with embedded_postgres(data_dir) as embedded:
        await migrate(embedded.dsn)
        async with open_database(embedded.dsn, name="test") as database:
            arena = await open_arena(database)
            slug = await slug_of(database, arena.tournament_id)
            return Prepared(data_dir, arena, slug, await make_token(database))


@pytest.fixture
def prepared(original: Prepared, tmp_path: Path) -> Prepared:
    """A copy that nobody else uses."""
    data_dir = tmp_path / "data"
    shutil.copytree(original.data_dir, data_dir)
    return Prepared(data_dir, original.arena, original.slug, original.token)


@contextmanager
def serving(prepared: Prepared, *options: str, **variables: str) -> Iterator[Running]:
    """`tallybook serve` on the data directory and a free port, with a directory of its own for temporary files."""
    folder = prepared.data_dir.parent
    (folder / "temporary").mkdir(exist_ok=True)
    variables = {"TALLYBOOK_DATA_DIR": str(prepared.data_dir), "TMPDIR": str(folder / "temporary")} | variables
    with started(folder, "serve", *options, **({"TALLYBOOK_PORT": "0"} | variables)) as running:
        yield running


@asynccontextmanager
async def asking(url: str, slug: str, token: str, *, connection_per_request: bool = False) -> AsyncIterator[Client]:
    connector = TCPConnector(limit=0, force_close=connection_per_request)
    async with ClientSession(connector=connector, cookie_jar=DummyCookieJar()) as session:
        yield Client(session, url, slug, token)


@asynccontextmanager
async def client_of(
    running: Running, prepared: Prepared, *, connection_per_request: bool = False
) -> AsyncIterator[Client]:
    async with asking(
        await running.address(), prepared.slug, prepared.token, connection_per_request=connection_per_request
    ) as client:
        yield client


@asynccontextmanager
async def database_of(prepared: Prepared) -> AsyncIterator[Database]:
    """The database in the data directory, joined, or started where nobody runs it."""
    async with embedded_postgres(prepared.data_dir) as embedded, open_database(embedded.dsn, name="test") as database:
        yield database


async def stored_total(prepared: Prepared) -> int:
    """The first competitor's, as the log has it."""
    async with database_of(prepared) as database:
        board = board_of((await whole_log(database, prepared.arena.tournament_id)).events)
    unity = board.rankings[prepared.arena.ranking_id].unities[prepared.arena.unity_id]
    return unity.totals.get(prepared.arena.competitors[0], 0)


async def whole_log(database: Database, tournament_id: TournamentId) -> tails.Tail:
    async with database.connection() as connection:
        tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=1_000_000)
        assert not (await tails.tail(connection, tournament_id, tail.head, blocks_max=1)).events
    return tail


async def head_and_checkpoint(database: Database, tournament_id: TournamentId) -> tuple[Sequence, Sequence]:
    """How long the log is, and how much of it the tables show."""
    async with database.connection() as connection:
        head = (await heads.current(connection, [tournament_id]))[tournament_id]
        checkpoint = await tables.checkpoint(connection, tournament_id)
    return head.sequence, Sequence(0) if checkpoint is None else checkpoint.head.sequence


async def tables_are_up_to_date(database: Database, tournament_id: TournamentId) -> bool:
    head, checkpoint = await head_and_checkpoint(database, tournament_id)
    return head == checkpoint


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def assert_port_is_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        probe.listen()


async def assert_nothing_is_left(prepared: Prepared, pids: set[int], port: int) -> None:
    await until(lambda: not [pid for pid in pids if lives(pid)])
    assert_port_is_free(port)
    assert not (prepared.data_dir / "socket").exists()
    assert os.listdir(prepared.data_dir.parent / "temporary") == []


# ── Starting, answering, ending ─────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "Ctrl-C"])
async def test_it_says_where_it_answers_and_leaves_nothing_when_it_is_stopped(prepared: Prepared, how: str) -> None:
    with serving(prepared, "--processes", "2") as running:
        url = await running.address()
        async with client_of(running, prepared) as client:
            assert [(await client.send("GET", path)).status for path in ("/healthz", "/readyz")] == [200, 200]
            assert total(await add(client, prepared.arena, 7)) == 7
            pids = below(running.pid)
            started_pids = [*await running.started_pids("api", 2), *await running.started_pids("worker")]
            assert set(started_pids) < pids
            assert len(started_pids) == 3
            running.press_ctrl_c() if how == "Ctrl-C" else running.send(signal.Signals[how])
            assert await running.ended() == 0
        assert running.out == ""
        assert "Traceback" not in running.err
    await assert_nothing_is_left(prepared, pids, port_of(url))
    assert await stored_total(prepared) == 7


async def test_every_process_answers_and_figures_and_failures_are_those_of_all(prepared: Prepared) -> None:
    port = free_port()
    options = {"PORT": str(port), "PROCESSES": "2", "NO_WORKER": "true", "OPEN_METRICS": "true"}
    with serving(prepared, **{f"TALLYBOOK_{name}": value for name, value in options.items()}) as running:
        assert await running.address() == f"http://localhost:{port}"
        await running.started_pids("api", 2)
        assert running.pids("worker") == []
        async with client_of(running, prepared) as client:
            answers = await asyncio.gather(*(add(client, prepared.arena) for _ in range(40)))
            assert max(map(total, answers)) == 40
            assert [accepted_by(pid, port) > 0 for pid in running.pids("api")] == [True, True]
        async with client_of(running, prepared, connection_per_request=True) as client:

            async def figures() -> dict[str, float]:
                answer = await client.send("GET", "/metrics")
                return {name: float(value) for name, value in FIGURE.findall(answer.body.decode())}

            async def both_have_shown_theirs() -> bool:  # figures are set once in a while
                found = await figures()
                return (found["tallybook_live_tournaments"], found["tallybook_append_requests_sum"]) == (2, 40)

            await until(both_have_shown_theirs)
            for _ in range(6):
                found = await figures()
                assert found["tallybook_append_requests_sum"] == 40
                assert found["tallybook_live_tournaments"] == 2

            client.token, began = None, monotonic()
            answers = [await client.get("rankings.json") for _ in range(2 * FAILURES_AT_ONCE_MAX)]
            let_in = [answer.status for answer in answers].count(401)
            assert FAILURES_AT_ONCE_MAX <= let_in <= FAILURES_AT_ONCE_MAX + 1 + monotonic() - began


@pytest.mark.long
async def test_figures_tell_of_each_process_its_pool_its_loop_and_what_the_workers_lack(prepared: Prepared) -> None:
    with serving(prepared, TALLYBOOK_PROCESSES="2", TALLYBOOK_OPEN_METRICS="true") as running:
        await running.started_pids("api", 2)
        await running.started_pids("worker")
        async with client_of(running, prepared) as client:
            await asyncio.gather(*(add(client, prepared.arena) for _ in range(7)))
            await client.send("MADEUP", "/healthz")
            text = ""

            async def shown() -> bool:
                nonlocal text
                text = (await client.send("GET", "/metrics")).body.decode()
                figures = {name: float(value) for name, value in FIGURE.findall(text)}
                return (
                    figures["tallybook_folded_events_total"] == 4 + 7  # four were there before
                    and figures["tallybook_appended_events_total"] == 7
                    and figures["tallybook_pool_connections"] >= 3
                    and figures["tallybook_loop_lag_seconds_count"] >= 3
                )

            await until(shown)
        for pid in (*running.pids("api"), *running.pids("worker")):
            assert re.search(rf'^process_resident_memory_bytes{{pid="{pid}"}} \d', text, re.MULTILINE)
            assert re.search(rf'^process_cpu_seconds_total{{pid="{pid}"}} \d', text, re.MULTILINE)
        assert re.search(
            rf'^tallybook_build_info{{fold_version="{FOLD_VERSION}",python="3[.\d]+",version="[\w.]+"}} 1.0$',
            text,
            re.MULTILINE,
        )
        assert 'tallybook_request_seconds_count{method="PUT",route=' in text
        assert 'tallybook_request_seconds_count{method="other",route=' in text
        assert "MADEUP" not in text


def accepted_by(pid: int, port: int) -> int:
    """How many established connections to the port the process has."""
    links = [os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    established = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "01" and int(local.rpartition(":")[2], 16) == port:
                established.add(f"socket:[{inode}]")
    return len(established.intersection(links))


@pytest.mark.long
async def test_folders_of_the_current_directory_are_not_taken_for_ours(prepared: Prepared, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    for package in ("api", "engine", "projections", "migrations", "json", "asyncio"):
        (elsewhere / package).mkdir(parents=True)
        (elsewhere / package / "__init__.py").write_text("raise SystemExit('not ours')\n")
    variables = {"TALLYBOOK_DATA_DIR": str(prepared.data_dir)}
    with started(tmp_path, "serve", "--port", "0", cwd=elsewhere, **variables) as running:
        async with client_of(running, prepared) as client:
            assert (await client.send("GET", "/readyz")).status == 200


async def test_the_tables_follow_what_is_written(prepared: Prepared) -> None:
    with serving(prepared) as running:
        async with client_of(running, prepared) as client, database_of(prepared) as database:
            for _ in range(3):
                assert (await add(client, prepared.arena)).status == 200
                await until(lambda: tables_are_up_to_date(database, prepared.arena.tournament_id))


@pytest.mark.long
async def test_without_a_worker_the_tables_are_left_to_one_elsewhere(prepared: Prepared, tmp_path: Path) -> None:
    with serving(prepared, "--no-worker") as running:
        async with client_of(running, prepared) as client, database_of(prepared) as database:
            assert (await add(client, prepared.arena)).status == 200
            assert await head_and_checkpoint(database, prepared.arena.tournament_id) == (5, 0)
            assert running.pids("worker") == []
            with started(tmp_path, "worker", "--data-dir", str(prepared.data_dir)) as worker:
                await until(lambda: tables_are_up_to_date(database, prepared.arena.tournament_id), 20)
                assert await worker.stopped() == 0
            assert (await add(client, prepared.arena)).status == 200
            assert await head_and_checkpoint(database, prepared.arena.tournament_id) == (6, 5)


# ── Ports that are taken ────────────────────────────────────────────────────────────────────────────────


async def test_a_port_that_is_taken_is_refused_in_a_sentence(prepared: Prepared) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = said("serve", "--port", str(port), "--data-dir", str(prepared.data_dir))
    sentence = f"Cannot listen on 127.0.0.1, port {port}: Address already in use; choose another with --port."
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines()[-1] == sentence


@pytest.mark.long
async def test_two_services_do_not_share_a_port(prepared: Prepared, tmp_path: Path) -> None:
    with serving(prepared) as running:
        port = str(port_of(await running.address()))
        for data_dir in (prepared.data_dir, tmp_path / "another"):
            refused = await asyncio.to_thread(said, "serve", "--port", port, "--data-dir", str(data_dir))
            assert (refused.code, refused.out) == (1, "")
            assert "Address already in use; choose another with --port." in refused.err
        async with client_of(running, prepared, connection_per_request=True) as client:
            assert [total(await add(client, prepared.arena)) for _ in range(4)] == [1, 2, 3, 4]


# ── Joining ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_a_command_joins_the_database_of_the_service_that_runs(prepared: Prepared) -> None:
    arena = prepared.arena

    async def tell(*arguments: str) -> str:
        told = await asyncio.to_thread(said, *arguments, TALLYBOOK_DATA_DIR=str(prepared.data_dir))
        assert told.code == 0, told.err
        return told.out.strip()

    with serving(prepared) as running:
        async with client_of(running, prepared) as client:
            assert total(await add(client, arena, 5)) == 5
            assert f'"competitor_id":{arena.competitors[0]},"position":1,"total":5' in await tell(
                "standings", prepared.slug, str(arena.ranking_id), "--json"
            )
            cid = int(await tell("competitor", "add", prepared.slug, "Cid"))
            listed = (await client.get("competitors.json")).json["competitors"]["competitor"]
            assert [competitor["id"] for competitor in listed] == [*arena.competitors, cid]
            await tell("ranking", "close", prepared.slug, str(arena.ranking_id))
            assert (await add(client, arena)).status == 409
        assert await running.stopped() == 0


@pytest.mark.long
async def test_a_second_service_joins_the_first_ones_database_and_leaves_it_to_it(prepared: Prepared) -> None:
    with serving(prepared) as first:
        async with client_of(first, prepared) as client:
            assert total(await add(client, prepared.arena)) == 1
            with serving(prepared) as second:
                async with client_of(second, prepared) as other:
                    assert total(await add(other, prepared.arena)) == 2
                    assert total(await add(client, prepared.arena)) == 3
                assert await second.stopped() == 0
            assert total(await add(client, prepared.arena)) == 4
        assert await first.stopped() == 0
    assert "Traceback" not in first.err + second.err


# ── Killing ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_killed_process_is_replaced_while_the_others_continue(prepared: Prepared) -> None:
    totals = count(1)
    with serving(prepared, "--processes", "2") as running:
        async with client_of(running, prepared, connection_per_request=True) as client:
            for kind, number in (("api", 3), ("worker", 2)):
                os.kill((await running.started_pids(kind, number - 1))[0], signal.SIGKILL)
                while len(running.pids(kind)) < number:
                    assert total(await add(client, prepared.arena)) == next(totals)
                assert total(await add(client, prepared.arena)) == next(totals)
            async with database_of(prepared) as database:
                await until(lambda: tables_are_up_to_date(database, prepared.arena.tournament_id))
        dead = [line for line in running.log if line["event"] == "process_died"]
        assert [(line["kind"], line["code"]) for line in dead] == [("api", -9), ("worker", -9)]
        assert await running.stopped() == 0
    assert await stored_total(prepared) == next(totals) - 1


@pytest.mark.long
async def test_listeners_continue_while_every_process_is_killed(prepared: Prepared) -> None:
    spectator, last = Spectator(), 0
    with serving(prepared, "--processes", "2") as running:
        address = f"{await running.address()}/tournament/{prepared.slug}/events"
        following = asyncio.create_task(
            follow(lambda: address, prepared.token, spectator, lambda: spectator.sequence >= last > 0)
        )
        async with client_of(running, prepared, connection_per_request=True) as client:
            for killed in range(2):
                for _ in range(20):
                    assert (await add(client, prepared.arena)).status == 200
                await until(lambda killed=killed: spectator.count("PointsAdded") > 10 * (killed + 1), 30)  # type: ignore[misc]
                os.kill((await running.started_pids("api", 2 + killed))[killed], signal.SIGKILL)
                await running.started_pids("api", 3 + killed)
            answer = await add(client, prepared.arena)
            last = int(answer.headers["Tallybook-Sequence"])
            async with asyncio.timeout(GUARD_SECONDS):
                await following
            assert spectator.sequences == list(range(1, last + 1))
            path = f"rankings/{prepared.arena.ranking_id}/standings.json"
            assert spectator.standings() == shown([(await client.get(path)).json])
        assert await running.stopped() == 0


@pytest.mark.long
async def test_when_all_is_killed_from_above_nothing_continues_and_the_next_start_has_everything(
    prepared: Prepared,
) -> None:
    with serving(prepared, "--processes", "2") as running:
        port = port_of(await running.address())
        async with client_of(running, prepared) as client:
            assert total(await add(client, prepared.arena, 7)) == 7
            pids = below(running.pid)
            assert len(pids) > 4
            running.send(signal.SIGKILL)
            assert await running.ended() == -signal.SIGKILL
        await until(lambda: not [pid for pid in pids if lives(pid)])
    assert_port_is_free(port)
    with serving(prepared, TALLYBOOK_PORT=str(port)) as again:
        async with client_of(again, prepared) as client:
            assert total(await add(client, prepared.arena)) == 8
        assert await again.stopped() == 0


async def test_a_service_whose_own_postgresql_is_killed_says_where_its_log_is_and_ends(prepared: Prepared) -> None:
    with serving(prepared) as running:
        await running.address()
        os.kill(int((prepared.data_dir / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        assert await running.ended() == 1
        (error,) = [line for line in running.log if line["level"] == "error"]
        assert error["event"] == "embedded_ended"
        assert f"its log is {prepared.data_dir / 'postgres.log'}." in error["reason"]
        assert running.log[-2]["event"] == "process_stopped"
        assert "Traceback" not in running.err
    with serving(prepared) as again:
        async with client_of(again, prepared) as client:
            assert total(await add(client, prepared.arena, 7)) == 7
        assert await again.stopped() == 0


@pytest.mark.long
async def test_processes_that_die_between_a_migration_and_the_upgrade_are_started_again(prepared: Prepared) -> None:
    """And so is the whole service, by its old version: the migration says that this runs on with it."""
    known = shipped()[-1].number
    enter = "INSERT INTO tallybook.migration (number, name, sha256, oldest) VALUES ($1, 'newer', 'x', $2)"
    with serving(prepared) as running:
        async with client_of(running, prepared) as client, embedded_postgres(prepared.data_dir) as embedded:
            owner = await asyncpg.connect(embedded.dsn)
            await owner.execute(enter, known + 1, known)
            await owner.close()
            for kind in ("api", "worker"):
                os.kill((await running.started_pids(kind))[0], signal.SIGKILL)
            for kind in ("api", "worker"):
                await running.started_pids(kind, 2)
            assert total(await add(client, prepared.arena)) == 1
        assert await running.stopped() == 0
    with serving(prepared) as again:
        async with client_of(again, prepared) as client:
            assert total(await add(client, prepared.arena)) == 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["api", "worker"])
async def test_a_process_whose_supervisor_is_gone_before_it_is_ready_ends_with_a_line(
    dsn: str, kind: str, tmp_path: Path
) -> None:
    """Its standard output, where it would say that it is ready, is a pipe that nobody reads any more."""
    reading, writing = os.pipe()
    os.close(reading)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        settings = Settings()
        arguments = {
            "api": ("api", str(listener.fileno()), msgspec.json.encode(settings).decode()),
            "worker": ("worker", str(settings.memory_bytes)),
        }
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "tallybook_command", *arguments[kind]),
            stdin=asyncio.subprocess.PIPE,
            stdout=writing,
            stderr=asyncio.subprocess.PIPE,
            env=environment(**{DSN_VARIABLE: dsn, FIGURES_DIRECTORY: str(tmp_path)}),
            pass_fds=(listener.fileno(),),
        )
        os.close(writing)
        async with asyncio.timeout(GUARD_SECONDS):
            _, err = await process.communicate()
    lines = [json.loads(line) for line in err.decode().splitlines()]
    reasons = [line["reason"] for line in lines if line["event"] == "start_refused"]
    assert reasons == ["The process that started this one is gone, so this one ends too."]
    assert process.returncode == 1


# ── Stopping under load ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.long
async def test_what_is_written_while_it_is_stopped_is_answered_or_not_applied(prepared: Prepared) -> None:
    acknowledged: set[str] = set()
    refused: set[str] = set()
    unanswered: set[str] = set()

    async def write_on(client: Client, writer: int) -> None:
        """One after the other, until there is no answer any more."""
        for number in count():
            key = f"{writer}-{number}"
            try:
                answer = await add(client, prepared.arena, key=key)
            except (ClientError, OSError):
                unanswered.add(key)
                return
            (acknowledged if answer.status == 200 else refused).add(key)
            assert answer.status in (200, 503), answer.body

    with serving(prepared, "--processes", "2") as running:
        async with client_of(running, prepared) as client, asyncio.TaskGroup() as writers:
            for writer in range(50):
                writers.create_task(write_on(client, writer))
            await until(lambda: len(acknowledged) >= 100, 20)
            assert await running.stopped() == 0
    async with database_of(prepared) as database:
        events = (await whole_log(database, prepared.arena.tournament_id)).events
    recorded = [recorded.idempotency_key for recorded in events if recorded.idempotency_key]
    assert len(unanswered) == 50
    assert len(recorded) == len(set(recorded))
    assert acknowledged <= set(recorded), "acknowledged and lost"
    assert not refused & set(recorded), "refused and applied"
    assert not unanswered & set(recorded), "applied and not answered"


async def test_a_cancellation_is_not_lost_where_giving_back_a_lost_connection_fails(database: Database) -> None:
    """What is cancelled would else take the failure for trouble with the database, try again, and never end."""
    working = asyncio.Event()

    async def work() -> None:
        for _ in range(3):  # for ever, but for the sake of a test that fails
            with suppress(OSError):
                async with database.raw_connection():
                    working.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        raise ConnectionResetError

    task = asyncio.create_task(work())
    await working.wait()
    task.cancel()
    await asyncio.wait([task], timeout=GUARD_SECONDS)
    assert task.cancelled()


# ── Two services and two workers on one database ────────────────────────────────────────────────────────

TOURNAMENTS = 4
WRITERS_EACH = 4
ROUNDS = 250
NEWCOMER_EVERY_ROUNDS = 25


class Place:
    """A tournament, asked about at two services, and how many competitors of it have been acknowledged."""

    def __init__(self, arena: Arena, clients: list[Client]) -> None:
        self.arena = arena
        self.known = len(arena.competitors)
        self._clients = clients

    async def write(self, writer: int) -> int:
        """Counts in a unity of its own, and registers newcomers now and then; returns how many answers it checked."""
        path = f"rankings/{self.arena.ranking_id}"
        turns = cycle(self._clients)
        made = await next(turns).post(f"{path}/unities.json", {"name": f"of {writer}"})
        form = {"participants_delta": deltas((self.arena.competitors[1], made.json["unity"]["id"], 1))}
        checks = 0
        for number in range(1, ROUNDS + 1):
            answer = await next(turns).put(f"{path}/add.json", form)
            assert answer.status == 200, answer.body
            (own,) = [unity for unity in answer.json["ranking"]["unities"] if unity["name"] == f"of {writer}"]
            totals = [standing["total"] for standing in own["competitors_ranking"]]
            assert (totals, own["version"]) == ([number, 0], 1 + number)
            checks += 1
            if number % NEWCOMER_EVERY_ROUNDS == 0:
                assert (await next(turns).post("competitors.json", {"name": f"{writer}/{number}"})).status == 200
                self.known += 1
                known_before = self.known
                listed = await next(turns).get("competitors.json?per_page=1")
                assert listed.json["competitors"]["total"] >= known_before
                checks += 1
        return checks


@pytest.mark.long
async def test_every_process_knows_all_that_was_acknowledged_and_nothing_is_lost_or_doubled(
    dsn: str, database: Database, tmp_path: Path
) -> None:
    """Every answer must show the writer's last write, which the other service took, and all who were registered."""
    arenas = [await open_arena(database) for _ in range(TOURNAMENTS)]
    token = await make_token(database)
    where = {"TALLYBOOK_DATABASE_URL": dsn}
    async with AsyncExitStack() as stack:
        services = [
            stack.enter_context(started(tmp_path, "serve", "--port", "0", "--no-worker", **where)) for _ in range(2)
        ]
        running = [*services, *(stack.enter_context(started(tmp_path, "worker", **where)) for _ in range(2))]
        urls = [await service.address() for service in services]
        assert urls[0] != urls[1]
        checking = []
        for arena in arenas:
            slug = await slug_of(database, arena.tournament_id)
            clients = [await stack.enter_async_context(asking(url, slug, token)) for url in urls]
            place = Place(arena, clients)
            checking += [place.write(writer) for writer in range(WRITERS_EACH)]
        checks = await asyncio.gather(*checking)
        assert sum(checks) == TOURNAMENTS * WRITERS_EACH * (ROUNDS + ROUNDS // NEWCOMER_EVERY_ROUNDS)
        for arena in arenas:
            await until(lambda arena=arena: tables_are_up_to_date(database, arena.tournament_id), 30)
        assert [await one.stopped() for one in running] == [0, 0, 0, 0]
        assert not [one.err for one in running if "Traceback" in one.err]
    for arena in arenas:
        await assert_all_is_counted(database, arena)


async def assert_all_is_counted(database: Database, arena: Arena) -> None:
    tail = await whole_log(database, arena.tournament_id)
    assert [recorded.sequence for recorded in tail.events] == list(range(1, tail.head.sequence + 1))
    board = board_of(tail.events)
    async with database.connection() as connection:
        assert await tables.load_board(connection, arena.tournament_id) == board
    _, *unities = board.rankings[arena.ranking_id].unities.values()
    assert [unity.totals for unity in unities] == [{arena.competitors[1]: ROUNDS}] * WRITERS_EACH
    assert len(board.competitors) == len(arena.competitors) + WRITERS_EACH * (ROUNDS // NEWCOMER_EVERY_ROUNDS)


async def test_of_two_workers_one_folds_what_the_other_does_not(dsn: str, database: Database, tmp_path: Path) -> None:
    arenas = [await open_arena(database) for _ in range(20)]
    with (
        started(tmp_path, "worker", TALLYBOOK_DATABASE_URL=dsn) as one,
        started(tmp_path, "worker", TALLYBOOK_DATABASE_URL=dsn) as other,
    ):
        for arena in arenas:
            await until(lambda arena=arena: tables_are_up_to_date(database, arena.tournament_id))
        await until(lambda: all(any(line["event"] == "process_started" for line in w.log) for w in (one, other)))
        assert [await one.stopped(), await other.stopped()] == [0, 0]
    folded = [line for line in one.log + other.log if line["event"] == "tables_folded"]
    assert sum(line["tournaments"] for line in folded) == len(arenas), "each once"


async def test_a_process_that_hangs_while_it_starts_again_is_killed_and_started_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """The first and the third are ready at once, the second never."""
    (script := tmp_path / "python").write_text(
        f"""#!/bin/sh
cd {tmp_path}
echo $$ >> pids
[ "$(wc -l < pids)" = 2 ] || echo {READY.decode().strip()}
exec sleep 600
"""
    )
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    child = supervisor._Child(dict(os.environ) | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}, ("worker",), None)

    def pids() -> list[int]:
        return [int(line) for line in (tmp_path / "pids").read_text().splitlines()]

    await child.start()
    bounds(READY_SECONDS_MAX=0.5, RESTART_SECONDS=0.0)
    keeping = asyncio.create_task(child.keep_running())
    os.kill(pids()[0], signal.SIGKILL)
    await until(lambda: len(pids()) >= 3 and child._process is not None and child._process.pid == pids()[-1])
    assert not lives(pids()[1])
    keeping.cancel()
    await asyncio.wait([keeping])
    await child.stop()
