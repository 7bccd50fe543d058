"""The commands that bring files of other programs, and write such files."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import asdict

from api.cli import printing
from api.cli.files import read_whole
from api.cli.interruptions import interruptible
from api.cli.names import RankingText
from api.cli.previews import DryRun
from api.cli.progress import progress
from api.cli.tournaments import open_tournament
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.cli.writing import written_to
from api.imports.bringing import Bringing, BringingPlan, told
from api.imports.dates import DateOrder
from api.imports.importer import Imported
from api.imports.readers.brought import bounded
from api.imports.readers.recognising import read_file
from api.imports.writing import WrittenForm, written
from api.interface.direction import isolated
from api.interface.kinds import KindName
from api.interface.names import Names
from engine.domain.errors import Unacceptable
from engine.domain.steps import finished
from engine.domain.terms import OPERATOR
from engine.process.time_slices import in_time_slices

BroughtFile = Annotated[Path, Parameter(help="The file; - means standard input.", allow_leading_hyphen=True)]
Into = Annotated[str | None, Parameter(help="Slug of the tournament. Without one, a new tournament.")]


async def bring(
    file: BroughtFile,
    slug: Into = None,
    /,
    *,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
    like: KindName | None = None,
    dates: DateOrder | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    as_
        Name of the new tournament, or in an existing one of the file's only ranking, instead of that in the file.
    like
        Kind of the rankings, where the file does not tell.
    dates
        What comes first in dates such as 01/08/2026; needed only if no date in the file shows it, as 13/02/2026 does.
    yes
        Do not ask for confirmation, nor about lines that look wrong.
    """
    if json and not (yes or dry_run):
        raise Unacceptable("With --json, nothing can be asked: add --yes or --dry-run.")
    reader, brought = read_file(read_whole(file), file.name)
    bringing = Bringing(brought, like=like, name=as_, dates=dates)
    name = as_ or brought.name or file.stem
    if slug is None:
        offer = finished(bringing.judged(reader.name))
    else:
        async with desk_at(where) as desk, tournament_at(desk, slug) as view:
            offer = await in_time_slices(bringing.judged(reader.name, view.live.board))
    if not json:
        _show(offer, slug or f"a new tournament, {isolated(name)}")
    if dry_run or not (yes or _is_wanted()):
        if json:
            printing.json(offer)
        return
    slug, imported = await _bring(bringing, slug, name, where)
    if json:
        printing.json({"slug": slug, "import": imported.name, **asdict(offer)})
        return
    printing.line(slug)
    if imported.name is not None:
        printing.say(f"to undo its competitions: tallybook import undo {slug} {imported.name}")


async def _bring(bringing: Bringing, slug: str | None, name: str, where: Where) -> tuple[str, Imported]:
    """Into a new tournament with this name, or that with this slug; returns it."""
    with interruptible("brought anything") as listen:
        async with desk_at(where, creates=slug is None) as desk:
            slug = slug or (await open_tournament(desk, name)).slug
            async with tournament_at(desk, slug) as view:
                stop = listen()
                with progress("bringing") as advance:
                    return slug, await bringing.bring(desk, view.live, actor=OPERATOR, stop=stop, progress=advance)


async def write(
    slug: Slug,
    ranking: RankingText,
    form: Annotated[WrittenForm, Parameter(help="clics: a scoreboard; trf: a report of a chess tournament.")],
    /,
    *,
    output: Path | None = None,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    output
        File to write to instead of standard output.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        text = await written(view, Names(view.live.board).ranking(ranking), form, with_keys=True)
    with written_to(output) as write:
        write(text)


def _show(offer: BringingPlan, where_to: str) -> None:
    printing.say(f"{offer.format}; it would make in {where_to}:")
    for sentence in told(offer):
        printing.say(f"  {sentence}")
    for one in bounded([f"{one.field}: {one.message}" for one in offer.questions], "are asked about"):
        printing.say(f"  {one}")


def _is_wanted() -> bool:
    if not sys.stdin.isatty():
        printing.say("Nothing was changed. Add --yes to bring the file.")
        return False
    with suppress(EOFError):
        return printing.talk().input("Bring this file? [y/N] ").strip().casefold() in ("y", "yes")
    return False
