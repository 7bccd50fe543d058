"""Tallybook as its users have it: a command with arguments, an environment, two streams, signals and an exit code.

`said` runs a command to its end, `started` one that goes on until it is told to stop. Standard input is a file, or else
/dev/null, as under systemd and cron; the environment has none of the caller's TALLYBOOK_ variables.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.desks import GUARD_SECONDS, until
from tests.forks import ended

TALLYBOOK: Final = str(Path(sys.executable).with_name("tallybook"))
COMMAND_SECONDS_MAX: Final = 120.0
START_SECONDS_MAX: Final = 120.0
_OF_PYTHON: Final = ("PYTHON", "LANG", "LC_")
_SETTINGS: Final = ("TALLYBOOK_", "PG", "OTEL_")
_FOR_TESTS: Final = ("TALLYBOOK_TEST_", "TALLYBOOK_CHROMIUM")


@dataclass(frozen=True)
class Said:
    """How a command ended, and what it put out."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(**variables: str) -> dict[str, str]:
    """Of a user who has set just these variables; lines are as long as they are."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
    return inherited | {"COLUMNS": "300"} | variables


def drop_settings(variables: MutableMapping[str, str]) -> None:
    """Removes what a user of this machine has set for the service, PostgreSQL or OpenTelemetry."""
    for name in [one for one in variables if one.startswith(_SETTINGS) and not one.startswith(_FOR_TESTS)]:
        del variables[name]


def said(*arguments: str, cwd: Path | None = None, stdin: Path = Path(os.devnull), **variables: str) -> Said:
    """What the command says, run to its end: in a fork, unless Python reads one of the `variables` as it starts."""
    argv, there, env = [TALLYBOOK, *arguments], cwd or Path.cwd(), environment(**variables)
    with stdin.open("rb") as given:
        if not any(name.startswith(_OF_PYTHON) for name in variables):
            return Said(*ended(argv, cwd=there, environment=env, stdin=given, seconds=COMMAND_SECONDS_MAX))
        done = subprocess.run(
            argv,
            check=False,
            cwd=there,
            env=env,
            stdin=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
    return Said(done.returncode, done.stdout, done.stderr)


class Running:
    """A command that goes on. What it says goes into files, so that it never waits for a reader."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path, err: Path) -> None:
        self.process = process
        self._out = out
        self._err = err

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines of its log, whole ones only."""
        return [json.loads(line) for line in self.err.splitlines() if line.startswith("{") and line.endswith("}")]

    def pids(self, kind: str) -> list[int]:
        """Of its processes of a kind, `api` or `worker`, in the order they started in; also of those that died."""
        return [line["pid"] for line in self.log if line["event"] == "process_started" and line["kind"] == kind]

    async def started_pids(self, kind: str, number: int = 1) -> list[int]:
        """Waits for `number` processes of the kind, then returns `pids`. A process logs its start just after it is
        ready."""
        return await until(lambda: pids if len(pids := self.pids(kind)) >= number else [])

    async def has_said(self, text: str) -> None:
        """Returns when it has said `text` on standard error."""

        def said_or_ended() -> bool:
            assert self.process.poll() is None or text in self.err, self.err
            return text in self.err

        await until(said_or_ended, START_SECONDS_MAX)

    async def address(self) -> str:
        """Where it says that it answers, when it does."""
        return str((await self.logged("listening"))["address"])

    async def logged(self, event: str) -> dict[str, Any]:
        """The first line of that event in its log, when there is one."""
        await self.has_said(f'"event":"{event}"')
        return await until(lambda: next((line for line in self.log if line["event"] == event), None)) or {}

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def press_ctrl_c(self) -> None:
        """What a terminal does: SIGINT to all of the foreground process group."""
        os.killpg(self.pid, signal.SIGINT)

    async def ended(self) -> int:
        """Its exit code, when it has one."""
        await until(lambda: self.process.poll() is not None)
        assert self.process.returncode is not None
        return self.process.returncode

    async def stopped(self) -> int:
        """Its exit code, after SIGTERM."""
        self.send(signal.SIGTERM)
        return await self.ended()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def started(
    folder: Path, *arguments: str, cwd: Path | None = None, descriptors: int | None = None, **variables: str
) -> Iterator[Running]:
    """The command at work, in a process group of its own; what it says is kept in `folder`. It ends with the context
    and, where `setpriv` is installed, with the thread that started it.

    None of its processes may have more than `descriptors` files open.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # we are in a shell's background, and would pass it on
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # the same under nohup
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    limited = [] if descriptors is None else ["sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh"]
    bound = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []
    number = len(list(folder.glob("said-*.out")))
    out, err = folder / f"said-{number}.out", folder / f"said-{number}.err"
    with out.open("wb") as out_file, err.open("wb") as err_file:
        process = subprocess.Popen(
            [*bound, *limited, TALLYBOOK, *arguments],
            cwd=cwd,
            env=environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=out_file,
            stderr=err_file,
            start_new_session=True,
        )
    try:
        yield Running(process, out, err)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(GUARD_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()


# ── Processes ───────────────────────────────────────────────────────────────────────────────────────────


def lives(pid: int) -> bool:
    """Whether there is such a process, and not only its memory in a parent that never asks for its exit code."""
    try:
        return _stat(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def opened_by(pid: int) -> set[str]:
    """The files that a process has open; it must live."""
    assert lives(pid)
    opened = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it has been closed meanwhile
            opened.add(os.readlink(descriptor))
    return opened


def below(pid: int) -> set[int]:
    """The processes that it started, and theirs, and so on."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(_stat(int(entry.name))[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh}
        found |= fresh
    return found


def _stat(pid: int) -> list[str]:
    """State, parent and more; the name before them may hold anything but its closing bracket."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
