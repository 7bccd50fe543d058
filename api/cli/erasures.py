"""Commands that keep a list of erasures outside of the database, and apply it."""

import asyncio
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.previews import DryRun
from api.cli.where import HERE, Json, Where, database_at
from engine.domain.errors import Unacceptable, Unreadable
from projections.verification import erasures, witness
from projections.verification.erasures import Unread

List = Annotated[Path, Parameter(help="File with the list of erasures.")]


async def keep(file: List, /, *, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database:
        found = [one async for one in erasures.erasures(database)]
    try:
        kept = await asyncio.to_thread(erasures.kept_in, file)
        new = [one for one in found if one not in kept]
        await asyncio.to_thread(witness.append, file, new)
    except OSError as error:
        raise Unacceptable(f"{file} cannot be written: {error.strerror}.") from error
    printing.done(f"{printing.count(len(new), 'erasure')} added to {file}", new, as_json=json)


async def apply(file: List, /, *, dry_run: DryRun = False, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database:
        try:
            lines = await asyncio.to_thread(erasures.listed, file)
        except OSError as error:
            raise Unreadable(f"The file cannot be read: {error.strerror}.") from error
        done = [one async for one in erasures.applied(database, lines, dry_run=dry_run)]
    if json:
        printing.json(done)
    else:
        columns = ("line", "tournament", "competitor", "outcome", "reason")
        rows = [(one.line, one.slug, one.competitor, one.outcome, one.reason) for one in done]
        printing.table(columns, rows, title="Nothing is erased: this is a dry run" if dry_run else "")
    if wrong := [(number, line) for number, line in lines if isinstance(line, Unread)]:
        most = printing.count(len(wrong), "line")
        raise Unreadable(f"{most} of the list cannot be read. All others were applied.", erasures.faults_of(wrong))
