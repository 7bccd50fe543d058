"""One PostgreSQL per test session, and a fresh database for every test that asks for one.

The cluster is the embedded one, as `tallybook serve` would start it, with its durability on. A migrated database is
the template; each test works on a copy. Nothing is mocked: what the tests say holds for the real thing.

The data directories lie in memory where the machine has enough of it: to make and drop thousands of databases on a disk
takes longer than all that is tested in them. Tests kill processes and not machines, and what a process has written
outlives it there as well.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from hypothesis import settings

from api.desk.desk import Desk, open_desk
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database
from engine.domain.terms import OPERATOR, TournamentId
from tests.tournaments import open_new_tournament

# A busy machine is no failure: the timeout of a test bounds its time, not a deadline for each example.
settings.register_profile("unhurried", deadline=None, max_examples=40)
settings.load_profile("unhurried")

_TEMPLATE = "tallybook_template"
_COUNT_FROM_ONE = "SELECT setval('tallybook.resource_id', 1, false)"
"""A new database begins to count at a random number, and a test that failed should fail in the same way again."""
_IN_MEMORY = Path("/dev/shm")
_MEMORY_BYTES_MIN = 8 * 2**30
_TEMPORARY = "PYTEST_DEBUG_TEMPROOT"  # where pytest makes its temporary directories
_numbers = count(1)


def pytest_configure() -> None:
    """Has pytest make its temporary directories in memory, unless the environment names another place."""
    if _TEMPORARY not in os.environ and _room(_IN_MEMORY) >= _MEMORY_BYTES_MIN:
        os.environ[_TEMPORARY] = str(_IN_MEMORY)


def _room(directory: Path) -> int:
    """Free bytes; 0 where nothing can be written."""
    if not os.access(directory, os.W_OK):
        return 0
    state = os.statvfs(directory)
    return state.f_bavail * state.f_frsize


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running PostgreSQL, whose database `tallybook_template` is migrated."""
    address: list[str | BaseException] = []
    ready, done = threading.Event(), threading.Event()

    async def run(data_dir: Path) -> None:
        try:
            async with embedded_postgres(
                data_dir, settings={"max_connections": "300", "max_wal_size": "256MB"}
            ) as cluster:
                await _administer(cluster.dsn, f"CREATE DATABASE {_TEMPLATE}")
                await migrate(_with_database(cluster.dsn, _TEMPLATE))
                await _administer(_with_database(cluster.dsn, _TEMPLATE), _COUNT_FROM_ONE)
                address.append(cluster.dsn)
                ready.set()
                await asyncio.to_thread(done.wait)
        except BaseException as error:
            address.append(error)
            ready.set()
            raise

    # In a thread of its own, because every test has an event loop of its own.
    thread = threading.Thread(target=lambda: asyncio.run(run(tmp_path_factory.mktemp("pg"))), name="cluster")
    thread.start()
    ready.wait()
    (dsn,) = address
    if isinstance(dsn, BaseException):
        raise dsn
    yield dsn
    done.set()
    thread.join()


@pytest.fixture
async def dsn(cluster: str) -> AsyncIterator[str]:
    """The address of a database that is migrated and empty."""
    name = f"test_{next(_numbers)}"
    await _administer(cluster, f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    yield _with_database(cluster, name)
    await _administer(cluster, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection with the owner's rights, for looking behind the service's back."""
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"})
    yield connection
    await connection.close()


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    async with open_database(dsn, name="test") as database:
        yield database


@pytest.fixture
async def desk(database: Database) -> AsyncIterator[Desk]:
    async with open_desk(database) as desk:
        yield desk


@pytest.fixture
async def tournament_id(database: Database) -> TournamentId:
    """A tournament in which nothing has happened but its opening."""
    return await open_new_tournament(database, actor=OPERATOR)


async def _administer(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
