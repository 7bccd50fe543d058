"""Commands about imports: of competitors, and of competitions, which can be undone."""

from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter
from msgspec.structs import asdict

from api.cli import printing
from api.cli.files import STDIN, read_whole
from api.cli.interruptions import interruptible
from api.cli.names import RankingText
from api.cli.previews import DryRun, show_foreseen
from api.cli.progress import progress
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.imports.competitions import Competitions, read_competitions, read_fixtures
from api.imports.competitors import read_competitors
from api.imports.dates import DateOrder
from api.imports.fixtures import FixturePlan
from api.imports.importer import import_lines
from api.imports.kinds import FileKind
from api.imports.rows import FileRows, Reader, read_csv, read_ndjson
from api.imports.undoing import plan_undoing, undo_import
from api.interface.names import Names
from engine.domain.errors import Unreadable
from engine.domain.terms import OPERATOR
from engine.log import import_runs
from projections.answers.zones import zone_of

CompetitorsFile = Annotated[
    Path, Parameter(help="A .csv or .ndjson file; - means standard input, in either format.", allow_leading_hyphen=True)
]
CompetitionsFile = Annotated[Path, Parameter(help="A CSV file; - means standard input.", allow_leading_hyphen=True)]
Yes = Annotated[bool, Parameter(negative="", help="Import lines that look wrong, too, without asking about them.")]
LeaveOut = Annotated[bool, Parameter(negative="", help="Leave out the columns that mean nothing here.")]
_READERS: Final[dict[str, Reader]] = {".csv": read_csv, ".ndjson": read_ndjson}


async def import_competitors(
    slug: Slug, file: CompetitorsFile, /, *, leave_out: LeaveOut = False, json: Json = False, where: Where = HERE
) -> None:
    await _import(slug, lambda _: read_competitors(_read(file), leave_out=leave_out), json=json, where=where)


def _read(file: Path) -> FileRows:
    """The rows of a file: its suffix says which format it has. Standard input is NDJSON if it begins with a brace, else
    CSV. Raises Unreadable."""
    suffix = file.suffix.lower()
    if file != STDIN and suffix not in _READERS:
        raise Unreadable("The file must be .csv or .ndjson, or - for standard input.")
    content = read_whole(file)
    if file == STDIN:
        suffix = ".ndjson" if content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else ".csv"
    return _READERS[suffix](content)


async def import_competitions(
    slug: Slug,
    ranking: RankingText,
    file: CompetitionsFile,
    /,
    *,
    leave_out: LeaveOut = False,
    dates: DateOrder | None = None,
    yes: Yes = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    dates
        What comes first in dates such as 01/08/2026; needed only if no date in the file shows it, as 13/02/2026 does.
    """

    def kind_of(names: Names) -> Competitions:
        return read_competitions(read_csv(read_whole(file)), names.ranking(ranking), leave_out=leave_out, dates=dates)

    await _import(slug, kind_of, yes=yes, json=json, where=where)


async def fixtures(
    slug: Slug,
    ranking: RankingText,
    day: Annotated[str, Parameter(help="Day of the first round, such as 2026-09-05.")],
    /,
    *,
    time: str = "",
    every: str = "7d",
    place: Annotated[list[str] | None, Parameter(negative="")] = None,
    lasts: str = "",
    twice: Annotated[bool, Parameter(negative="")] = False,
    group: Annotated[int | None, Parameter(negative="")] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    time
        When matches begin, in the tournament's time zone, such as 15:00.
    every
        From round to round: days, hours or minutes, such as 7d, 2h or 20min.
    place
        Where a match is; may be given several times: the matches of a round take turns.
    lasts
        How long a match takes, such as 20min: at fewer places than a round has matches, they follow each other.
    twice
        Let each be at home to each other.
    group
        The group of the matches, a whole number.
    """
    plan = FixturePlan(
        day=day,
        clock=time,
        every=every,
        places=tuple(place or ()),
        lasts=lasts,
        twice=twice,
        group="" if group is None else str(group),
    )
    if dry_run:
        await _show_fixtures(slug, ranking, plan, json=json, where=where)
        return

    def kind_of(names: Names) -> Competitions:
        return read_fixtures(plan, names, names.ranking(ranking))

    await _import(slug, kind_of, yes=yes, json=json, where=where)


async def _show_fixtures(slug: str, ranking: str, plan: FixturePlan, *, json: bool, where: Where) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        planned, zone = plan.of(names.enrolled(names.ranking(ranking))), zone_of(view.publication.presentation.zone)
    rows = [
        {
            **asdict(one),
            "home": names.text_of(one.home),
            "away": names.text_of(one.away),
            "begins": one.begins.replace(tzinfo=zone).astimezone(UTC) if json else f"{one.begins:%Y-%m-%d %H:%M}",
        }
        for one in planned.fixtures
    ]
    printing.rows(rows, ("round", "begins", "home", "away", "location"), as_json=json)
    if not json:
        for number, who in planned.byes.items():
            printing.say(f"round {number}: {names.text_of(who)} has no match")


async def _import(
    slug: str, kind_of: Callable[[Names], FileKind[Any]], *, yes: bool = False, json: bool, where: Where
) -> None:
    """Imports the file that `kind_of` reads, and says what became of it."""
    with interruptible("imported anything") as listen:
        async with desk_at(where) as desk, tournament_at(desk, slug) as view:
            stop = listen()
            kind = kind_of(Names(view.live.board))
            with progress("importing") as advance:
                imported = await import_lines(
                    desk, view.live, kind, actor=OPERATOR, stop=stop, progress=advance, sure=yes
                )
    if kind.left_out:
        printing.say(f"left out: {', '.join(map(repr, kind.left_out))}")
    if kind.warning:
        printing.say(kind.warning)
    if json:
        counted: dict[str, object] = {kind.done: imported.made, "corrected": imported.corrected}
        counted |= {f"already_{kind.done}": imported.already, "ids": imported.ids}
        printing.json({"name": imported.name, **counted} if kind.named else counted)
    elif imported.made or imported.corrected or not imported.already:
        corrected = f", {imported.corrected} corrected" if imported.corrected else ""
        already = f"; {imported.already} in the file already were" if imported.already else ""
        printing.say(f"{printing.count(imported.made, kind.what)} {kind.done}{corrected}{already}")
        if imported.made and imported.name is not None:
            printing.say(f"to take this import back: tallybook import undo {slug} {imported.name}")
    else:
        printing.say(f"nothing to do: all {imported.already} {kind.what}s in the file are already {kind.done}")


async def list_imports(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view, desk.database.connection() as connection:
        runs = await import_runs.runs(connection, view.live.tournament_id)
    printing.rows([asdict(run) for run in runs], import_runs.Run.__struct_fields__, as_json=json)


async def undo(
    slug: Slug,
    name: Annotated[str, Parameter(help="Name of the import, as `import list` shows it.")],
    /,
    *,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    with interruptible("undid anything") as listen:
        async with desk_at(where) as desk, tournament_at(desk, slug) as view:
            planned = await plan_undoing(desk, view.live, name)
            if dry_run:
                await show_foreseen(view, planned.events, json=json)
                return
            stop = listen()
            with progress("undoing") as advance:
                await undo_import(desk, view.live, planned, actor=OPERATOR, stop=stop, progress=advance)
    if json:
        printing.json(
            {"voided": planned.voided, "kept": planned.kept, "points": planned.points, "results": planned.results}
        )
        return
    if not planned.commands:
        printing.say(f"nothing to do: nothing from import {name} counts")
    elif not planned.events:
        printing.say(
            f"nothing from import {name} counted any longer; now that it is undone, its file can be imported again"
        )
    else:
        counts = {"result": planned.results, "event": planned.points}
        taken = " and ".join(
            [f"{'points of ' * (what == 'event')}{printing.count(n, what)}" for what, n in counts.items() if n]
        )
        voided = f"{printing.count(len(planned.voided), 'competition')} voided"
        printing.say(f"{voided}, {taken} taken back" if taken else voided)
        for competition_id in planned.voided:
            printing.line(str(competition_id))
    if planned.kept:
        listed = ", ".join(map(str, planned.kept[:20])) + (" …" if len(planned.kept) > 20 else "")
        printing.say(f"kept, because they also have points from elsewhere: {listed}")
