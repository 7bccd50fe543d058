"""The product, started as its users start it: migrated, `tallybook serve` with its worker, a token, a log file.

Authentication, validation, metrics and logging are on, because there is no way to turn them off.
"""

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
from msgspec import Struct

from benchmarks import machine
from benchmarks.processes import ProgramFailed, running

DSN_VARIABLE: Final = "TALLYBOOK_DATABASE_URL"
COMMAND_SECONDS_MAX: Final = 120
OWNER_SETTINGS: Final = {"search_path": "tallybook", "timezone": "UTC"}

_BACKENDS: Final = """
    SELECT pid, CASE WHEN application_name LIKE 'tallybook%' THEN application_name ELSE 'background' END AS side
    FROM pg_stat_activity
    WHERE application_name LIKE 'tallybook%' OR backend_type NOT IN ('client backend', 'autovacuum worker')
"""


class Product(Struct, frozen=True):
    """The installed command, and the interpreter that it runs with."""

    command: str
    python: str

    def run(self, *arguments: str, dsn: str) -> str:
        """The output of a command of the product. Raises ProgramFailed."""
        result = subprocess.run(
            [self.command, *arguments],
            env={DSN_VARIABLE: dsn, "PATH": "/usr/bin:/bin"},
            check=False,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )
        if result.returncode != 0:
            raise ProgramFailed(f"tallybook {' '.join(arguments)} failed:\n{result.stderr}")
        return result.stdout

    def trial(self, name: str) -> list[str]:
        """The command of a trial that is run by the product's interpreter."""
        return [self.python, "-m", f"benchmarks.trials.{name}"]


def installed() -> Product:
    """The product as `make` installs it next to its sources, or else as found on the PATH."""
    beside = machine.ROOT / ".venv" / "bin" / "tallybook"
    found = str(beside) if beside.exists() else shutil.which("tallybook")
    if found is None:
        raise ProgramFailed("There is no `tallybook` to measure; run `make test` once, or put it on the PATH.")
    return Product(found, str(Path(found).with_name("python")))


class Service(Struct, frozen=True, kw_only=True):
    """A running service. `api` and `worker` are the ids of its processes just after the start; `supervisor` restarts
    them."""

    url: str
    dsn: str
    token: str
    supervisor: int
    api: int
    worker: int

    @property
    def apis(self) -> list[int]:
        """All its current API processes."""
        return [pid for pid in machine.children_of(self.supervisor) if pid != self.worker]

    async def backends(self) -> dict[str, list[int]]:
        """The processes of PostgreSQL that work for the service, by client: tallybook api, tallybook worker,
        background."""
        async with owner(self.dsn) as connection:
            return await backends(connection)


async def backends(connection: asyncpg.Connection) -> dict[str, list[int]]:
    """Like `Service.backends`, over an existing connection."""
    found: dict[str, list[int]] = {}
    for row in await connection.fetch(_BACKENDS):
        found.setdefault(row["side"], []).append(row["pid"])
    return found


def processes(supervisor: int) -> dict[str, int]:
    """The current processes of a supervisor, by kind: api, worker."""
    return {_kind(machine.command_of(pid)): pid for pid in machine.children_of(supervisor)}


def token(product: Product, dsn: str) -> str:
    """A new token for all tournaments."""
    made: Any = json.loads(product.run("token", "create", "bench", "--scope", "admin", "--json", dsn=dsn))
    return str(made["token"])


@asynccontextmanager
async def serving(
    product: Product,
    dsn: str,
    *options: str,
    log: Path,
    known_token: str | None = None,
    environment: Mapping[str, str] = {},
) -> AsyncIterator[Service]:
    """A service on a migrated database, with one API process and one worker. `options`, `environment`: further options
    of `serve`, and variables. `known_token`: an existing token; None: a new one is made."""
    async with running(
        [product.command, "serve", "--port", "0", *options],
        log=log,
        ready=r'"address":"http://[^:]+:(\d+)","event":"listening"',
        environment={DSN_VARIABLE: dsn, **environment},
    ) as process:
        children = processes(process.pid)
        yield Service(
            url=f"http://127.0.0.1:{process.said[1]}",
            dsn=dsn,
            token=known_token or token(product, dsn),
            supervisor=process.pid,
            api=children["api"],
            worker=children["worker"],
        )


@asynccontextmanager
async def owner(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection with the owner's rights, for looking behind the service's back."""
    connection = await asyncpg.connect(dsn, server_settings=OWNER_SETTINGS)
    try:
        yield connection
    finally:
        await connection.close()


def _kind(command: list[str]) -> str:
    """Whether a child of the service is its api or its worker."""
    found = re.search(r"tallybook_command (\w+)", " ".join(command))
    return found[1] if found else "other"
