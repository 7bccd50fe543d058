"""Commands that take a tournament to another database."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.progress import progress
from api.cli.where import HERE, Json, Slug, Where, database_at, known, located
from api.cli.writing import written_to
from engine.database.migrator import as_owner
from engine.domain.errors import Unreadable
from engine.log.archive import ARCHIVE_LINE_BYTES_MAX
from projections.verification import archives

Archive = Annotated[Path, Parameter(help="File that `tallybook tournament export` wrote.")]


async def export_tournament(slug: Slug, /, *, output: Path | None = None, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    output
        File to write to instead of standard output.
    """
    async with database_at(where) as database:
        tournament_id = await known(database, slug)
        with written_to(output) as write, progress("exporting", data_there=output is None) as advance:
            async for line in archives.exported(database, tournament_id, progress=advance):
                write(line)


async def import_tournament(file: Archive, /, *, json: Json = False, where: Where = HERE) -> None:
    async with located(where) as dsn, as_owner(dsn) as owner:
        with progress("importing") as advance:
            entered = await archives.enter(owner, lines_of(file), progress=advance)
    if json:
        printing.json(entered)
    else:
        printing.line(entered.slug)
        printing.say(f"{entered.sequence:,} events, up to the digest {entered.digest}")


def lines_of(file: Path) -> Iterator[bytes]:
    """The lines of an archive; one that is longer than any may be is cut off behind that. Raises Unreadable."""
    try:
        with file.open("rb") as opened:
            while line := opened.readline(ARCHIVE_LINE_BYTES_MAX + 1):
                yield line
    except OSError as error:
        raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
