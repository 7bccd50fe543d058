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
from concurrent.futures import Future
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


class Administrator:
    """Makes and drops databases, in the thread of the cluster.

    A template is copied by its files if they lie in memory. That takes half the processor time of PostgreSQL's default,
    by the write-ahead log. On a disk each file would be synchronized, which takes far longer.
    """

    def __init__(self, dsn: str, sessions: asyncpg.Pool, *, in_memory: bool) -> None:
        self.dsn = dsn
        self._sessions = sessions
        self._strategy = "file_copy" if in_memory else "wal_log"
        self._loop = asyncio.get_running_loop()

    def copy(self, template: str, name: str) -> None:
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {self._strategy}")

    def drop(self, name: str) -> None:
        self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        asyncio.run_coroutine_threadsafe(self._sessions.execute(statement), self._loop).result()


@pytest.fixture(scope="session")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administrator]:
    """The administrator of a running PostgreSQL, whose database `tallybook_template` is migrated."""
    ready: Future[Administrator] = Future()
    done = threading.Event()

    async def run(data_dir: Path) -> None:
        try:
            async with (
                embedded_postgres(data_dir, settings={"max_connections": "300", "max_wal_size": "256MB"}) as cluster,
                asyncpg.create_pool(cluster.dsn, min_size=1, max_size=2) as sessions,
            ):
                await sessions.execute(f"CREATE DATABASE {_TEMPLATE}")
                await migrate(_with_database(cluster.dsn, _TEMPLATE))
                # PostgreSQL keeps a file of what each new session reads of the catalog; now the copies have it, too.
                session = await asyncpg.connect(_with_database(cluster.dsn, _TEMPLATE))
                await session.execute(_COUNT_FROM_ONE)
                await session.close()
                in_memory = data_dir.is_relative_to(_IN_MEMORY)
                ready.set_result(Administrator(cluster.dsn, sessions, in_memory=in_memory))
                await asyncio.to_thread(done.wait)
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    # In a thread of its own, because every test has an event loop of its own.
    thread = threading.Thread(target=lambda: asyncio.run(run(tmp_path_factory.mktemp("pg"))), name="cluster")
    thread.start()
    yield ready.result()
    done.set()
    thread.join()


@pytest.fixture(scope="session")
def cluster(administrator: Administrator) -> str:
    """The address of a running PostgreSQL."""
    return administrator.dsn


@pytest.fixture
def dsn(administrator: Administrator) -> Iterator[str]:
    """The address of a database that is migrated and empty."""
    name = f"test_{next(_numbers)}"
    administrator.copy(_TEMPLATE, name)
    yield _with_database(administrator.dsn, name)
    administrator.drop(name)


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


def _with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
