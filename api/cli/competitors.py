"""Commands about competitors."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import UNSET

from api.cli import printing
from api.cli.changes import changed, record
from api.cli.imports import register_competitors
from api.cli.interruptions import interruptible
from api.cli.names import CompetitorText
from api.cli.progress import progress
from api.cli.void import DryRun
from api.cli.where import HERE, Json, Slug, Where, desk_at, known, tournament_at
from api.cli.writing import written_to
from api.interface.names import Names
from api.interface.rendering import encode
from api.interface.resources.competitor_erasures import mention_shapes, rankings_keeping
from api.interface.resources.competitor_exports import competitor_json, exported
from api.interface.resources.competitor_standings import CompetitorStandingsQuestion, find_competitor_standings
from engine.domain.commands import ChangeCompetitor, EraseCompetitor, RegisterCompetitor
from engine.domain.errors import TournamentStopped
from engine.domain.ids import parse_id
from engine.domain.judging import decide
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence
from engine.process.time_slices import TimeSlices
from projections.past import searches
from projections.past.mentions import Mentions
from projections.past.moments import Span
from projections.past.past import Past
from projections.verification.erasures import erase_in_log

CompetitorsFile = Annotated[
    Path, Parameter(help="A .csv or .ndjson file; - means standard input, in either format.", allow_leading_hyphen=True)
]


async def add_competitor(
    slug: Slug,
    name: str,
    /,
    *,
    tag: Annotated[list[str] | None, Parameter(negative="")] = None,
    color: str | None = None,
    parent: str | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    tag
        A tag; may be given several times.
    color
        Six hexadecimal digits, without #.
    parent
        Id or name of the competitor above this one in the hierarchy.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        competitor_id = CompetitorId(await desk.new_id())
        await desk.submit(
            live,
            RegisterCompetitor(
                competitor_id=competitor_id,
                name=name,
                tags=tuple(tag or ()),
                color=color,
                parent_id=None if parent is None else Names(live.board).competitor(parent),
            ),
            actor=OPERATOR,
        )
    printing.made(str(competitor_id), {"id": competitor_id, "name": name.strip()}, as_json=json)


async def change_competitor(
    slug: Slug,
    competitor: CompetitorText,
    /,
    *,
    name: str | None = None,
    tag: Annotated[list[str] | None, Parameter(negative="")] = None,
    color: str | None = None,
    parent: str | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    name
        Its new name.
    tag
        A tag; may be given several times. They replace all earlier tags.
    color
        Six hexadecimal digits, without #.
    parent
        Id or name of the competitor above this one in the hierarchy.
    """
    await record(
        slug,
        where,
        lambda names: ChangeCompetitor(
            competitor_id=names.competitor(competitor),
            name=UNSET if name is None else name,
            tags=UNSET if tag is None else None if tag == [""] else tuple(tag),
            color=changed(color, str),
            parent_id=changed(parent, names.competitor),
        ),
        json=json,
    )


async def erase_competitor(
    slug: Slug,
    competitor: CompetitorText,
    /,
    *,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    async with desk_at(where) as desk:
        try:
            async with tournament_at(desk, slug) as live:
                competitor_id = Names(live.board).competitor(competitor)
                command = EraseCompetitor(competitor_id=competitor_id)
                decide(live.board, command)
                kept = rankings_keeping(live.board, competitor_id)
                mentions = await searches.mentions(
                    Past(desk.database), live.tournament_id, competitor_id, live.head.sequence
                )
                sequence = None if dry_run else (await desk.submit(live, command, actor=OPERATOR)).sequence
        except TournamentStopped:  # so there is no board to decide by, and no name to find anybody by
            if dry_run or (number := parse_id(competitor)) is None:
                raise
            competitor_id, kept, mentions = CompetitorId(number), [], None
            sequence = await erase_in_log(desk.database, await known(desk.database, slug), competitor_id)
    if json:
        found = {"mentions": mention_shapes(mentions), "mentions_left_out": mentions.left_out} if mentions else {}
        printing.json({"id": competitor_id, "rankings": kept, "sequence": sequence, **found})
        return
    if mentions is not None and mentions.listed:
        _print_mentions(mentions)
    points = f"its points stay in {printing.count(len(kept), 'ranking')}" if kept else "its points stay"
    printing.say(
        f"competitor {competitor_id} {'would be' if dry_run else 'is'} erased: all its names, tags and colours, and "
        f"its parent; {points}"
    )


def _print_mentions(mentions: Mentions) -> None:
    columns = ("event", "kind", "field", "text")
    rows = [(one.sequence, one.kind, one.field, one.text) for one in mentions.listed]
    printing.table(columns, rows, title="People wrote its name here, where it stays")
    if mentions.left_out:
        printing.say(f"and {printing.count(mentions.left_out, 'more text')}")


async def export_competitor(
    slug: Slug, competitor: CompetitorText, /, *, output: Path | None = None, where: Where = HERE
) -> None:
    """
    Parameters
    ----------
    output
        File to write to instead of standard output.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        competitor_id = Names(live.board).competitor(competitor)
        span = Span(Sequence(1), live.head.sequence)
        with written_to(output) as write:
            write(f'{{"competitor":{_text(await competitor_json(live, competitor_id))},"standings":[')
            question, comma = CompetitorStandingsQuestion(competitor_id), ""
            while True:
                shown = await find_competitor_standings(live, TimeSlices(), question)
                comma = _write_items(write, comma, shown.ranking)
                if shown.next is None:
                    break
                question = CompetitorStandingsQuestion(competitor_id, RankingId(shown.next))
            write('],"events":[')
            comma = ""
            with progress("reading", total=span.last, data_there=output is None) as advance:
                touches = searches.touches(Past(desk.database), live.board, live.tournament_id, competitor_id, span)
                async for reached, found in touches:
                    comma = _write_items(write, comma, map(exported, found))
                    advance(reached)
            write("]}\n")


def _write_items(write: Callable[[str], None], comma: str, items: Iterable[object]) -> str:
    """Writes the items of an array, after `comma`. Returns what stands before the next ones."""
    for item in items:
        write(comma + _text(item))
        comma = ","
    return comma


def _text(value: object) -> str:
    return encode(value).decode()


async def import_competitors(slug: Slug, file: CompetitorsFile, /, *, json: Json = False, where: Where = HERE) -> None:
    with interruptible("registered anybody") as listen:
        async with desk_at(where) as desk, tournament_at(desk, slug) as live:
            stop = listen()
            with progress("importing") as advance:
                imported = await register_competitors(desk, live, file, stop=stop, progress=advance)
    if json:
        printing.json(imported)
    else:
        _say_how_many(imported.registered, imported.already_registered)


async def list_competitors(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        rows: list[dict[str, object]] = [
            {"id": i, "name": c.name, "tags": list(c.tags), "color": c.color, "parent": c.parent_id}
            for i, c in live.board.competitors.items()
        ]
    printing.rows(rows, ("id", "name", "tags", "color", "parent"), as_json=json)


def _say_how_many(registered: int, already_registered: int) -> None:
    if not already_registered:
        printing.say(f"{registered} competitors registered")
    elif registered:
        printing.say(f"{registered} competitors registered; {already_registered} of the file were registered already")
    else:
        printing.say(f"nothing to do: all {already_registered} competitors of the file are registered already")
