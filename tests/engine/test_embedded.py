"""The embedded PostgreSQL: it keeps what was committed, has one owner, and never outlives it."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import pytest

from engine.database import embedded
from engine.database.embedded import Embedded, embedded_postgres
from engine.domain.errors import StartupRefused
from tests.desks import until

OWNER = """
import asyncio, sys
from pathlib import Path
from engine.database.embedded import embedded_postgres

async def own():
    async with embedded_postgres(Path(sys.argv[1])) as cluster:
        print(cluster.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(own())
"""
SYSTEM_MAJORS = sorted(Path(path).parts[-2] for path in Path("/usr/lib/postgresql").glob("*/bin"))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="of root only")


@asynccontextmanager
async def session(cluster: Embedded) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(cluster.dsn, timeout=5)
    try:
        yield connection
    finally:
        await connection.close(timeout=5)


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


@contextmanager
def owner_process(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another process that owns the cluster, once it runs; with the postmaster's pid."""
    with process(sys.executable, "-c", OWNER, str(data_dir)) as owner:
        assert owner.stdout is not None
        yield owner, int(owner.stdout.readline())


@asynccontextmanager
async def starting(data_dir: Path) -> AsyncIterator[asyncio.Task[None]]:
    """A start under way in this process."""

    async def start() -> None:
        async with embedded_postgres(data_dir):
            pass

    async with asyncio.TaskGroup() as tasks:
        yield tasks.create_task(start())


def runs(pid: int) -> bool:
    """Whether the process lives; one that is dead and only waits for its parent to notice does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def litter(data_dir: Path) -> list[Path]:
    return list(data_dir.glob("postgres.partial-*"))


def initdb_is_at_work(data_dir: Path) -> bool:
    return any((partial / "PG_VERSION").exists() for partial in litter(data_dir))


def log(data_dir: Path) -> str:
    """What PostgreSQL has said in this run; nothing while there is none yet."""
    return "".join(path.read_text() for path in data_dir.glob("postgres.log"))


def owner_of(path: Path) -> int:
    return path.stat().st_uid


async def remember(cluster: Embedded, word: str) -> None:
    async with session(cluster) as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS memory (word text)")
        await connection.execute("INSERT INTO memory VALUES ($1)", word)


async def remembered(cluster: Embedded) -> list[str]:
    async with session(cluster) as connection:
        return [row["word"] for row in await connection.fetch("SELECT word FROM memory ORDER BY word")]


async def test_first_start_is_durable_private_and_checked(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path / "new" / "data", settings={"max_connections": "17"}) as cluster:
        assert cluster.owned
        assert runs(cluster.pid)
        async with session(cluster) as connection:
            shown = dict(await connection.fetch("SELECT name, setting FROM pg_settings"))
            names = await connection.fetchrow("SELECT current_user, current_database()")
    assert tuple(names) == ("tallybook", "tallybook")
    expected = {
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "data_checksums": "on",
        "server_encoding": "UTF8",
        "listen_addresses": "",
        "max_connections": "17",
    }
    assert {name: shown[name] for name in expected} == expected
    directories = (tmp_path / "new" / "data", tmp_path / "new" / "data" / "postgres")
    assert [directory.stat().st_mode & 0o777 for directory in directories] == [0o700, 0o700]


async def test_a_restart_keeps_what_was_committed_and_leaves_nothing_running(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        await remember(cluster, "first")
    assert not runs(cluster.pid)
    assert sorted(os.listdir(tmp_path)) == ["lock", "postgres", "postgres.log"]
    async with embedded_postgres(tmp_path) as cluster:
        assert await remembered(cluster) == ["first"]


async def test_others_join_the_owner_and_leaving_stops_nothing(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        await remember(cluster, "owner")
        async with embedded_postgres(tmp_path) as joined:
            assert (joined.owned, joined.dsn, joined.pid) == (False, cluster.dsn, cluster.pid)
            await remember(joined, "joined")
        assert await remembered(cluster) == ["joined", "owner"]


async def test_of_many_that_start_at_once_one_owns_and_the_others_join(tmp_path: Path) -> None:
    everybody_is_in = asyncio.Barrier(4)

    async def start() -> Embedded:
        async with embedded_postgres(tmp_path) as cluster:
            await everybody_is_in.wait()
            return cluster

    clusters = await asyncio.gather(*(start() for _ in range(4)))
    assert sorted(cluster.owned for cluster in clusters) == [False, False, False, True]
    assert len({cluster.pid for cluster in clusters}) == 1


async def test_a_killed_owner_takes_postgres_along_and_the_next_start_has_its_data(tmp_path: Path) -> None:
    with owner_process(tmp_path) as (owner, postmaster):
        async with embedded_postgres(tmp_path) as joined:
            assert (joined.owned, joined.pid) == (False, postmaster)
            await remember(joined, "committed")
        owner.kill()
        await until(lambda: not runs(postmaster))
    async with embedded_postgres(tmp_path) as cluster:
        assert cluster.owned
        assert await remembered(cluster) == ["committed"]


async def test_a_process_that_starts_while_a_killed_owner_falls_becomes_the_owner(tmp_path: Path) -> None:
    with owner_process(tmp_path) as (owner, postmaster):
        owner.kill()
        owner.wait()
        async with embedded_postgres(tmp_path) as cluster:
            assert cluster.owned
            assert cluster.pid != postmaster
            assert not runs(postmaster)


async def test_a_killed_postmaster_is_recovered_from(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        await remember(cluster, "committed")
        os.kill(cluster.pid, signal.SIGKILL)
    async with embedded_postgres(tmp_path) as cluster:
        assert await remembered(cluster) == ["committed"]
    assert "not properly shut down" in log(tmp_path)


async def test_a_start_waits_for_the_backends_of_a_killed_postmaster(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        connection = await asyncpg.connect(cluster.dsn, timeout=5)
        backend = connection.get_server_pid()
        os.kill(backend, signal.SIGSTOP)
        os.kill(cluster.pid, signal.SIGKILL)
        connection.terminate()
    async with starting(tmp_path):
        try:
            await until(lambda: "shared memory block" in log(tmp_path))
        finally:
            os.kill(backend, signal.SIGCONT)


async def test_a_postmaster_without_an_owner_is_replaced(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path) as cluster:
        await remember(cluster, "committed")
    place = embedded._place(tmp_path)
    tools = embedded._find_tools(place)
    with ExitStack() as stack:
        stack.enter_context(embedded._socket_directory(place, tools))
        orphan = embedded._launch(place, tools, ["postgres", *embedded._arguments(place, {})])
        stack.enter_context(orphan)
        assert await embedded._is_ready(place, orphan)
        async with embedded_postgres(tmp_path) as cluster:
            assert cluster.owned
            assert orphan.wait() == 0
            assert await remembered(cluster) == ["committed"]


async def test_a_pid_file_that_names_a_stranger_is_no_obstacle(tmp_path: Path) -> None:
    async with embedded_postgres(tmp_path):
        left = (tmp_path / "postgres" / "postmaster.pid").read_text().splitlines()
    with process("sleep", "60") as stranger:
        (tmp_path / "postgres" / "postmaster.pid").write_text("\n".join([str(stranger.pid), *left[1:]]) + "\n")
        async with embedded_postgres(tmp_path) as cluster:
            assert cluster.owned
        assert stranger.poll() is None


async def test_a_path_too_long_for_a_socket_works_for_owner_and_joiner(tmp_path: Path) -> None:
    data_dir = tmp_path / ("a, long 'path' " * 6) / ("ü" * 60)
    async with embedded_postgres(data_dir) as cluster:
        socket_directory = (data_dir / "socket").resolve()
        assert socket_directory.stat().st_mode & 0o777 == 0o700
        async with embedded_postgres(data_dir) as joined:
            assert not joined.owned
            await remember(joined, "far away")
        assert await remembered(cluster) == ["far away"]
    assert not socket_directory.exists()


async def test_an_interrupted_initdb_breaks_nothing(tmp_path: Path) -> None:
    async with starting(tmp_path) as start:
        await until(lambda: initdb_is_at_work(tmp_path))
        start.cancel()
    assert not (tmp_path / "postgres").exists()
    async with embedded_postgres(tmp_path) as cluster:
        await remember(cluster, "whole")
    assert not litter(tmp_path)


async def test_an_owner_killed_during_initdb_breaks_nothing(tmp_path: Path) -> None:
    with process(sys.executable, "-c", OWNER, str(tmp_path)):
        await until(lambda: initdb_is_at_work(tmp_path))
    assert not (tmp_path / "postgres").exists()
    async with embedded_postgres(tmp_path) as cluster:
        assert cluster.owned


async def test_a_cluster_of_a_version_that_is_not_here_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "PG_VERSION").write_text("12\n")
    with pytest.raises(
        StartupRefused, match=r"written by PostgreSQL 12, which is not installed here \(found: .*\); put its"
    ):
        async with embedded_postgres(tmp_path):
            pass


@pytest.mark.skipif("15" not in SYSTEM_MAJORS, reason="needs a PostgreSQL 15 of the system")
def test_the_version_that_wrote_a_cluster_decides_the_binaries(tmp_path: Path) -> None:
    assert embedded._major_version(embedded._find_binaries(tmp_path)) > 15
    (tmp_path / "PG_VERSION").write_text("15\n")
    assert embedded._major_version(embedded._find_binaries(tmp_path)) == 15


async def test_a_setting_that_postgres_refuses_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match='unrecognized configuration parameter "no_such_setting"'):
        async with embedded_postgres(tmp_path, settings={"no_such_setting": "1"}):
            pass
    async with embedded_postgres(tmp_path) as cluster:
        assert cluster.owned


async def test_a_data_directory_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartupRefused, match="choose a data directory that this user can write to"):
        async with embedded_postgres(tmp_path / "file"):
            pass


@pytest.fixture
def no_user_namespaces(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A PATH without `unshare`, until it is undone."""
    monkeypatch.setenv("PATH", "/nowhere")
    return monkeypatch


@pytest.fixture
def directory_for_all() -> Iterator[Path]:
    """Every user can enter it; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o711)
        yield Path(directory)


@as_root
def test_root_needs_no_user_but_nobody(tmp_path: Path) -> None:
    """In a mount namespace whose list of users is that of a fresh system."""
    users = tmp_path / "passwd"
    known = Path("/etc/passwd").read_text().splitlines(keepends=True)
    users.write_text("".join(line for line in known if line.partition(":")[0] in {"root", "nobody"}))
    alone = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/passwd && exec "$@"', str(users))
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine lets root make no mount namespace")
    with process(*alone, sys.executable, "-c", OWNER, str(tmp_path / "data")) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline().strip().isdecimal()


@as_root
async def test_without_user_namespaces_root_lets_nobody_run_it(
    no_user_namespaces: pytest.MonkeyPatch, directory_for_all: Path
) -> None:
    data_dir = directory_for_all / "data"
    async with embedded_postgres(data_dir) as cluster:
        assert owner_of(Path(f"/proc/{cluster.pid}")) == owner_of(data_dir) != 0
        await remember(cluster, "nobody's")
    no_user_namespaces.undo()
    async with embedded_postgres(data_dir) as cluster:
        assert await remembered(cluster) == ["nobody's"]


@as_root
@pytest.mark.usefixtures("no_user_namespaces")
async def test_root_gets_an_error_when_nobody_can_run_it(tmp_path: Path) -> None:
    with pytest.raises(StartupRefused, match="PostgreSQL does not run as root"):
        async with embedded_postgres(tmp_path / "data"):
            pass
