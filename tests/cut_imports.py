"""`tallybook competitor import`, cut off at random moments, and given again until it is through.

`cut_import` plays it on any database and says what became of it: used by the tests of the command line, and as a case
of the campaign against faults.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import Sequence as Items
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
from msgspec import Struct

from tests.desks import until
from tests.running import Running, said, started

CUT_SECONDS_MAX: Final = 60.0
FAMILY: Final = 40
"""One line in FAMILY has the line before it as its parent, so that a file is registered in many chunks."""
_COUNT: Final = """
    SELECT count(*)
    FROM tallybook.event AS e
    JOIN tallybook.tournament AS t ON t.tournament_id = e.tournament_id
    WHERE t.slug = $1 AND e.kind = 'CompetitorRegistered'
"""


class Cut(Struct, frozen=True):
    """One time that the command was cut off: how, when that many were registered, and how it ended."""

    how: signal.Signals
    at: int
    code: int
    err: str

    @property
    def told(self) -> bool:
        """Whether it ended as it should, and said what it had done, if it could."""
        if self.code == 0:  # it was through before
            return True
        if self.how == signal.SIGKILL:
            return self.code == -signal.SIGKILL
        return self.code == 130 and "Import it again: that adds only the rest." in self.err


class CutImport(Struct, frozen=True, kw_only=True):
    """What became of an import that was cut off. Competitors are counted as who has a name below a parent."""

    cuts: list[Cut]
    code: int
    err: str
    again: str
    doubles: int
    missing: int
    in_order: bool

    @property
    def right(self) -> bool:
        return (
            self.code == 0
            and not self.doubles
            and not self.missing
            and self.in_order
            and self.again.startswith("nothing to do: all ")
            and all(cut.told for cut in self.cuts)
        )


def a_file(folder: Path, count: int) -> tuple[Path, list[tuple[str, str]]]:
    """A file of `count` competitors, some of the same name and some below the line before, and whom it asks for."""
    asked: list[tuple[str, str]] = []
    for n in range(count):
        if n % FAMILY == 1:
            asked.append((f"Player {n}", f"Player {n - 1}"))
        elif n % FAMILY == 2:
            asked.append(("Namesake", ""))
        else:
            asked.append((f"Player {n}", ""))
    file = folder / "many.csv"
    file.write_text("name,parent\n" + "".join(f"{name},{parent}\n" for name, parent in asked), encoding="utf-8")
    return file, asked


async def cut_import(
    where: Items[str],
    dsn: str,
    slug: str,
    folder: Path,
    random: Random,
    *,
    count: int,
    cuts: int,
    ways: Items[signal.Signals] = (signal.SIGINT, signal.SIGKILL),
) -> CutImport:
    """Imports `count` competitors into a tournament that has none, with the options `where` for its database.

    Cut off `cuts` times, each in one of the `ways`, when a random number of them is in the log, and at least one by the
    command that is cut off; `dsn` is where they are counted. Then it is given once more, and then once more.
    """
    file, asked = a_file(folder, count)
    command = ["competitor", "import", slug, str(file), *where]
    done: list[Cut] = []
    for at in sorted(random.sample(range(1, count), cuts)):
        how = random.choice(list(ways))
        before = len(await _listed(slug, where))
        with started(folder, *command) as importing:
            await until(partial(_has_come_to, max(at, before + 1), importing, dsn, slug), CUT_SECONDS_MAX)
            importing.send(how)
            done.append(Cut(how, at, await importing.ended(), importing.err))
    last, again = [await asyncio.to_thread(said, *command) for _ in range(2)]
    there = await _listed(slug, where)
    names = {one["id"]: one["name"] for one in there}
    found = [(one["name"], names.get(one["parent"], "")) for one in there]
    return CutImport(
        cuts=done,
        code=last.code or again.code,
        err=last.err,
        again=again.err,
        doubles=(Counter(found) - Counter(asked)).total(),
        missing=(Counter(asked) - Counter(found)).total(),
        in_order=found == asked,
    )


async def _listed(slug: str, where: Items[str]) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await asyncio.to_thread(said, "competitor", "list", slug, "--json", *where)).json
    return listed


async def _has_come_to(at: int, importing: Running, dsn: str, slug: str) -> bool:
    """Whether that many are registered, or it is through."""
    return importing.process.poll() is not None or await _registered(dsn, slug) >= at


async def _registered(dsn: str, slug: str) -> int:
    """How many competitors the log has; 0 where there is nobody to ask, or only until now."""
    try:
        connection = await asyncpg.connect(dsn, timeout=5)
        try:
            count: int = await connection.fetchval(_COUNT, slug)
        finally:
            connection.terminate()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        return 0
    return count
