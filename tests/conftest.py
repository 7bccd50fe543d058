"""One PostgreSQL per test session, and a fresh database for every test that asks for one.

The cluster is the embedded one, as `tallybook serve` would start it, with its durability on. A migrated database is
the template; each test works on a copy. Nothing is mocked: what the tests say holds for the real thing.

Where TALLYBOOK_TEST_DISTRIBUTED names a database, these databases are distributed ones on its cluster: it has the
extension citus, knows its nodes, and its address leads to the coordinator's unix socket (`?host=<directory>&port=…`),
as a superuser that every node lets in. A test that makes a server of its own does so all the same. Those of engine,
projections and API took 21 minutes on two cores, with max_connections of 400 and max_worker_processes of 200. Tests
that do not apply there are marked `one_postgresql` with the reason.

The data directories lie in memory where the machine has enough of it: to make and drop thousands of databases on a disk
takes longer than all that is tested in them. Tests kill processes and not machines, and what a process has written
outlives it there as well.
"""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit
from zlib import crc32

import asyncpg
import pytest
import structlog
from hypothesis import settings

from api.desk.desk import Desk, open_desk
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate, migrate_and_distribute
from engine.database.pool import DATABASE_TROUBLE, Database, open_database
from engine.database.sessions import DRAWS
from engine.domain.terms import OPERATOR, TournamentId
from engine.process import collector
from tests.bounds import Bounds, set_bounds
from tests.calls import Calls, noted_calls
from tests.memory import IN_MEMORY, memory_has_room
from tests.restoring import database_of, role_settings
from tests.running import drop_settings
from tests.tournaments import open_new_tournament

# A busy machine is no failure: the timeout of a test bounds its time, not a deadline for each example.
settings.register_profile("unhurried", deadline=None, max_examples=12)
settings.load_profile("unhurried")

EMPTY = f"tallybook_template_{os.getpid()}"
"""The database that most tests have a copy of: migrated, and nothing in it."""
_TEMPORARY = "PYTEST_DEBUG_TEMPROOT"  # where pytest makes its temporary directories
_DISTRIBUTED = "TALLYBOOK_TEST_DISTRIBUTED"
_SHARDS = 4
_TURN = 18  # the key of a lock
_DROPS_MAX = 50
_NODES = "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
_numbers = count(1)
_T = TypeVar("_T")

only_distributed = pytest.mark.distributed

# Reasons that several tests have to be marked with `one_postgresql`.
A_COMMIT_EACH: Final = "on a distributed database each tournament has a commit of its own"
COMMITTED_BY_ITS_NODE: Final = (
    "a node commits an append as it executes it, so no session can hold it and commit it late on a distributed database"
)
COMMITS_OF_OTHERS: Final = "what is committed in any other database of the nodes moves the moment that is looked at"
TOLD_AT_THEIR_NODE: Final = "hints reach a worker at its node, which a test of its own shows"
PLANS_OF_NODES: Final = "of a distributed database EXPLAIN shows where a statement goes, not how a node plans it"


def pytest_configure() -> None:
    """Has pytest make its temporary directories in memory, unless the environment names another place. Exceptions are
    logged as Python writes them: structlog's default draws all local variables, which takes half a second of
    processor time, during which nothing else runs. The tests see neither what a user has set for another service nor a
    proxy of theirs. Opening a database asks once whether a balancer drew a standby: to ask DRAWS times takes as long as
    the rest of it, and only tests that use the fixture `draws` have a balancer."""
    drop_settings(os.environ)
    set_bounds(pytest.MonkeyPatch(), DRAWS=1)  # for the whole run
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = "localhost,127.0.0.1,::1"
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])
    if _TEMPORARY not in os.environ and memory_has_room():
        os.environ[_TEMPORARY] = str(IN_MEMORY)


def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each core, because every second of them waits: for PostgreSQL, a browser or a process."""
    return 2 * len(os.sched_getaffinity(0))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks as `long` the cases that `one_in` leaves to `make long`. Skips what is for another kind of database."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("one_in") and not item.get_closest_marker("long"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for test, those in cases.items():
        (number,) = (marker.args[0] for marker in those[0].iter_markers("one_in"))
        # At least one case runs. Tests begin at different ones: those of the same operations run different ones.
        first = crc32(test.encode()) % min(number, len(those))
        for place, item in enumerate(those):
            if (place - first) % number:
                item.add_marker(pytest.mark.long)
    for item in items:
        for marker in item.iter_markers("one_postgresql"):
            (reason,) = marker.args
            if _DISTRIBUTED in os.environ:
                item.add_marker(pytest.mark.skip(reason=f"for one PostgreSQL: {reason}"))
        if item.get_closest_marker("distributed") and _DISTRIBUTED not in os.environ:
            reason = f"the tests on a distributed database did not run: {_DISTRIBUTED} names none"
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Has the garbage collector rest meanwhile: what collecting makes stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Has the garbage collector pass over what collecting leaves, thousands of tests and all modules, and run as often
    as it does in the product: with Python's default it takes a tenth of the time of the tests."""
    collector.settle()


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
        self.run(self.everywhere(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {self._strategy}"))

    def drop(self, name: str) -> None:
        self.run(self.everywhere(f"DROP DATABASE {name} WITH (FORCE)"))

    def make_template(self, name: str, fill: Callable[[str], Coroutine[Any, Any, _T]]) -> _T:
        """Makes a template of what `fill` does with an empty database, of which it is told the address. Returns what
        `fill` does."""
        self.copy(EMPTY, name)
        filled = self.run(fill(_with_database(self.dsn, name)))
        self.run(self.seal(name))
        return filled

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What `work` returns, done in the thread of the cluster."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def everywhere(self, statement: str) -> None:
        """Executes it on each node, of which there is one."""
        await self._sessions.execute(statement)

    async def seal(self, name: str) -> None:
        """Lets nobody connect to the database of this name any more: while somebody is, it cannot be copied."""
        await self.everywhere(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        await self.everywhere(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")


class DistributedAdministrator(Administrator):
    """As an Administrator, of a database on each node of a cluster: a copy of all of them is another one as a whole."""

    def __init__(self, dsn: str, addresses: list[tuple[str, int]], nodes: list[asyncpg.Connection]) -> None:
        """`addresses` and `nodes`: those of the coordinator, then those of the others."""
        super().__init__(dsn, nodes[0], in_memory=False)
        self._addresses = addresses
        self._nodes = nodes
        self._dropping: list[Future[None]] = []
        self._one_by_one = asyncio.Lock()

    def copy(self, template: str, name: str) -> None:
        super().copy(template, name)
        self.run(self.everywhere("".join(role_settings(name))))  # a copy of a database does not have them

    def address(self, name: str, *, node: int = 0) -> str:
        """That of a database on a node; 0 is the coordinator."""
        return _with_database(_at(self.dsn, *self._addresses[node]), name)

    def addresses(self, name: str) -> list[str]:
        return [self.address(name, node=node) for node in range(len(self._addresses))]

    def drop(self, name: str) -> None:
        """Nobody waits for it: it takes seconds where a process of Citus has just begun in the database."""
        self._dropping.append(asyncio.run_coroutine_threadsafe(self.drop_everywhere(name), self._loop))

    async def drop_everywhere(self, name: str) -> None:
        async with self._one_by_one:
            await asyncio.gather(*(self._drop_at(address, name) for address in self._addresses))

    async def _drop_at(self, address: tuple[str, int], name: str) -> None:
        """Over a connection of its own: meanwhile the next database is made. Citus has a process of its own in each
        database, which may be about to start, and a test may have killed the node, which is about to be back."""
        for attempt in count(1):
            try:
                session = await asyncpg.connect(_at(self.dsn, *address))
                try:
                    await session.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                    return
                finally:
                    await session.close()
            except DATABASE_TROUBLE:
                if attempt == _DROPS_MAX:
                    raise
                await asyncio.sleep(0.1)

    async def dropped(self) -> None:
        """Returns when all are gone that were to be dropped."""
        await asyncio.gather(*map(asyncio.wrap_future, self._dropping))

    async def everywhere(self, statement: str) -> None:
        await asyncio.gather(*(self._at(place, statement) for place in range(len(self._nodes))))

    async def _at(self, place: int, statement: str) -> None:
        if self._nodes[place].is_closed():  # a test has killed the node
            self._nodes[place] = await asyncpg.connect(_at(self.dsn, *self._addresses[place]))
        await self._nodes[place].execute(statement)

    async def make_empty(self, name: str) -> None:
        """Makes the template of this name, a distributed database with nothing in it."""
        await self.everywhere(f"CREATE DATABASE {name}")
        dsn = _with_database(self.dsn, name)
        await self.join(name)
        async with self._one_by_one_of_all():
            await migrate_and_distribute(dsn, shards=_SHARDS)
        await self.seal(name)

    @asynccontextmanager
    async def _one_by_one_of_all(self) -> AsyncIterator[None]:
        """Keeps out other processes of the tests: no two can change a role at the same time, as adding a node does."""
        await self._nodes[0].execute("SELECT pg_advisory_lock($1)", _TURN)
        try:
            yield
        finally:
            await self._nodes[0].execute("SELECT pg_advisory_unlock($1)", _TURN)

    async def join(self, name: str, *, nodes_max: int | None = None) -> None:
        """Makes one cluster of the empty databases of this name: the coordinator, and that many other nodes."""
        async with self._one_by_one_of_all():
            await self._join(name, nodes_max)

    async def _join(self, name: str, nodes_max: int | None) -> None:
        for address in self._addresses:
            session = await asyncpg.connect(_with_database(_at(self.dsn, *address), name))
            await session.execute("CREATE EXTENSION citus")
            await session.close()
        session = await asyncpg.connect(_with_database(self.dsn, name))
        coordinator, *workers = self._addresses
        await session.execute("SELECT citus_set_coordinator_host($1, $2)", *coordinator)
        for worker in workers[:nodes_max]:
            await session.execute("SELECT citus_add_node($1, $2)", *worker)
        await session.close()


async def _distributed(dsn: str, ready: "Future[Administrator]", done: threading.Event) -> None:
    """Administers the cluster that the database at `dsn` is of, until it is done."""
    coordinator = await asyncpg.connect(dsn)
    addresses = [(host, port) for host, port in await coordinator.fetch(_NODES)]
    await coordinator.close()
    nodes = [await asyncpg.connect(_at(dsn, *address)) for address in addresses]
    administrator = DistributedAdministrator(dsn, addresses, nodes)
    try:
        await administrator.make_empty(EMPTY)
        ready.set_result(administrator)
        await asyncio.to_thread(done.wait)
    finally:
        await administrator.dropped()
        await administrator.drop_everywhere(EMPTY)
        for node in nodes:
            await node.close()


@pytest.fixture(scope="session")
def administrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administrator]:
    """The administrator of a running PostgreSQL, whose database EMPTY is migrated."""
    ready: Future[Administrator] = Future()
    done = threading.Event()

    async def run(data_dir: Path) -> None:
        try:
            if _DISTRIBUTED in os.environ:
                await _distributed(os.environ[_DISTRIBUTED], ready, done)
                return
            async with (
                embedded_postgres(data_dir, settings={"max_connections": "300", "max_wal_size": "256MB"}) as cluster,
                asyncpg.create_pool(cluster.dsn, min_size=1, max_size=2) as sessions,
            ):
                await sessions.execute(f"CREATE DATABASE {EMPTY}")
                await migrate(_with_database(cluster.dsn, EMPTY))
                # PostgreSQL keeps a file of what each new session reads of the catalog; now the copies have it, too.
                session = await asyncpg.connect(_with_database(cluster.dsn, EMPTY))
                await session.close()
                in_memory = data_dir.is_relative_to(IN_MEMORY)
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
def bounds(monkeypatch: pytest.MonkeyPatch) -> Bounds:
    return partial(set_bounds, monkeypatch)


@pytest.fixture
def draws(bounds: Bounds) -> None:
    """As in the product, each opening asks DRAWS times which server a balancer has drawn."""
    bounds(DRAWS=DRAWS)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return partial(noted_calls, monkeypatch)


@pytest.fixture
def templates() -> dict[str, str]:
    """The databases of a folder, by the fixture of the tests that work on a copy: `template_<fixture>` makes it."""
    return {}


@pytest.fixture
def template(request: pytest.FixtureRequest, templates: dict[str, str]) -> str:
    """The name of the database that `dsn` is a copy of."""
    for fixture, name in templates.items():
        if fixture in request.fixturenames:
            request.getfixturevalue(f"template_{fixture}")
            return name
    return EMPTY


@pytest.fixture
def dsn(administrator: Administrator, template: str) -> Iterator[str]:
    """The address of a database that is migrated, and empty unless `template` is another one."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    administrator.copy(template, name)
    yield _with_database(administrator.dsn, name)
    administrator.drop(name)


@pytest.fixture
def other_dsn(administrator: Administrator, dsn: str) -> Iterator[str]:
    """The address of another migrated database."""
    name = dsn.partition("/test_")[2].partition("?")[0]
    administrator.copy(EMPTY, f"other_{name}")
    yield dsn.replace(f"/test_{name}?", f"/other_{name}?")
    administrator.drop(f"other_{name}")


@pytest.fixture
def addresses(administrator: Administrator, dsn: str) -> list[str]:
    """The addresses of the database at `dsn` on each node, the first of them being the coordinator; of a plain one, the
    only one."""
    if isinstance(administrator, DistributedAdministrator):
        return administrator.addresses(database_of(dsn))
    return [dsn]


@pytest.fixture
async def owner(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection with the owner's rights, for looking behind the service's back."""
    settings = {"search_path": "tallybook"}
    if _DISTRIBUTED in os.environ:
        settings["citus.enable_unsafe_triggers"] = "on"  # or none could be disabled or dropped
    connection = await asyncpg.connect(dsn, server_settings=settings)
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


def _at(dsn: str, host: str, port: int) -> str:
    login = urlsplit(dsn).netloc.rpartition("@")[0]
    return urlunsplit(urlsplit(dsn)._replace(netloc=f"{login}@{host}:{port}", query=""))


def _with_database(dsn: str, name: str) -> str:
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
