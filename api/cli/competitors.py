"""Commands about competitors."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from api.cli import printing
from api.cli.arguments import THE_COMPETITOR, Argument, option, positional
from api.cli.names import CompetitorText
from api.cli.previews import DryRun, show_comparison
from api.cli.progress import progress
from api.cli.verbs import verb
from api.cli.where import HERE, Json, Slug, Where, desk_at, known, tournament_at
from api.cli.writing import written_to
from api.interface.names import Names, typed
from api.interface.rendering import encode
from api.interface.resources.competitor_exports import competitor_json, exported_events
from api.interface.resources.competitor_standings import CompetitorStandingsQuestion, find_competitor_standings
from engine.domain.commands import ChangeCompetitor, EraseCompetitor, RegisterCompetitor
from engine.domain.errors import TournamentStopped, Unacceptable
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence
from projections.answers.competitors import CompetitorListQuestion
from projections.answers.erasure import ErasureEffect, ErasureQuestion
from projections.answers.registrations import ReplacingQuestion, WithdrawingQuestion
from projections.answers.view import ask
from projections.verification.erasures import erase_in_log

_COLOR: Final = option("color", about="Six hexadecimal digits, without #.")
_PARENT: Final = option("parent", "parent_id", about="Id or name of the competitor above this one in the hierarchy.")
_KEY: Final = option(
    "key", about="The organiser's own id for it, without a comma; no two competitors have the same one."
)


def _tag(about: str) -> Argument:
    return option("tag", "tags", Annotated[list[str] | None, Parameter(negative="")], about=about)


add_competitor = verb(
    RegisterCompetitor,
    positional("name", str),
    _tag("A tag; may be given several times."),
    _COLOR,
    _PARENT,
    _KEY,
    makes="competitor_id",
    shows=("name",),
)
change_competitor = verb(
    ChangeCompetitor,
    THE_COMPETITOR,
    option("name", about="Its new name."),
    _tag("A tag; may be given several times. They replace all earlier tags."),
    _COLOR,
    _PARENT,
    _KEY,
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
            async with tournament_at(desk, slug) as view:
                competitor_id = Names(view.live.board).competitor(competitor)
                found = await ask(view, ErasureQuestion(competitor_id))
                command = EraseCompetitor(competitor_id=competitor_id)
                sequence = None if dry_run else (await desk.submit(view.live, command, actor=OPERATOR)).sequence
        except TournamentStopped:  # so there is no board to decide by, and no name to find anybody by
            said = typed(competitor)
            if dry_run or said.id is None:
                raise
            if said.name is not None:
                raise Unacceptable(
                    f"This tournament has stopped, so nobody can tell whether {said.id} is also somebody's name; write "
                    f"id:{said.id} to erase the competitor with this id."
                ) from None
            competitor_id, found = CompetitorId(said.id), None
            sequence = await erase_in_log(desk.database, await known(desk.database, slug), competitor_id)
    kept = [] if found is None else found.rankings
    if json:
        mentions = {} if found is None else {"mentions": found.mentions, "mentions_left_out": found.mentions_left_out}
        printing.json({"id": competitor_id, "rankings": kept, "sequence": sequence, **mentions})
        return
    if found is not None and found.mentions:
        _print_mentions(found)
    points = f"its points stay in {printing.count(len(kept), 'ranking')}" if kept else "its points stay"
    printing.say(
        f"competitor {competitor_id} {'would be' if dry_run else 'is'} erased: all its names, tags and colours, and "
        f"its parent; {points}"
    )


def _print_mentions(found: ErasureEffect) -> None:
    columns = ("event", "kind", "field", "text")
    rows = [(one.sequence, one.kind, one.field, one.text) for one in found.mentions]
    printing.table(columns, rows, title="Its name stays in these texts")
    if found.mentions_left_out:
        printing.say(f"and {printing.count(found.mentions_left_out, 'more text')}")


async def replace_competitor(
    slug: Slug,
    competitor: CompetitorText,
    by: CompetitorText,
    /,
    *,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        names = Names(view.live.board)
        former, present = names.competitor(competitor), names.competitor(by)
        found = await ask(view, ReplacingQuestion(former=former, present=present))
        sequence = None if dry_run else await desk.submit_all(view.live, found.commands, actor=OPERATOR)
    if json:
        facts = {"competitions": found.competitions, "rankings": found.rankings, "points": found.points}
        printing.json({"id": former, "by": present, **facts, "sequence": sequence})
        return
    if found.points:
        columns = ("event", "ranking", "unity", "competition", "points")
        rows = []
        for one in found.points:
            ranking = view.ranking(one.ranking_id)
            unity = ranking.unities[one.unity_id]
            rows.append((one.sequence, ranking.name, unity.name, one.competition_id, unity.notation.text(one.amount)))
        printing.table(columns, rows, title=f"Points given by hand stay with competitor {former}")
    where_else = printing.count(len(found.rankings), "ranking")
    printing.say(
        f"competitor {former} {'would be' if dry_run else 'is'} replaced by {present} in "
        f"{printing.count(len(found.competitions), 'competition')} and {where_else}, and erased"
    )


async def withdraw_competitor(
    slug: Slug,
    competitor: CompetitorText,
    /,
    *,
    keep_results: Annotated[bool, Parameter(negative="")] = False,
    dry_run: DryRun = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    keep_results
        Its results stay, and it stays in the rankings: only what it has not played is voided.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        competitor_id = Names(view.live.board).competitor(competitor)
        found = await ask(view, WithdrawingQuestion(competitor_id=competitor_id, keeps_results=keep_results))
        if dry_run and not json:
            show_comparison(view, found.compared, json=False)
        sequence = None if dry_run else await desk.submit_all(view.live, found.commands, actor=OPERATOR)
    if json:
        facts = {"voided": found.voided, "struck": found.struck, "rankings": found.rankings}
        compared = {"compared": found.compared} if dry_run else {}
        printing.json({"id": competitor_id, **facts, **compared, "sequence": sequence})
        return
    would = "would be " if dry_run else ""
    struck = f", it {would or 'is '}struck from {len(found.struck)} more" if found.struck else ""
    left = f"; it {'would leave' if dry_run else 'leaves'} {printing.count(len(found.rankings), 'ranking')}"
    printing.say(f"{printing.count(len(found.voided), 'competition')} {would}voided{struck}{left}")


async def export_competitor(
    slug: Slug, competitor: CompetitorText, /, *, output: Path | None = None, where: Where = HERE
) -> None:
    """
    Parameters
    ----------
    output
        File to write to instead of standard output.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        competitor_id = Names(view.live.board).competitor(competitor)
        last = view.live.head.sequence
        with written_to(output) as write:
            write(f'{{"competitor":{_text(await competitor_json(view.live, competitor_id))},"standings":[')
            question, comma = CompetitorStandingsQuestion(competitor_id), ""
            while True:
                shown = await find_competitor_standings(view.live, view.time_slices, question)
                comma = _write_items(write, comma, shown.ranking)
                if shown.next is None:
                    break
                question = CompetitorStandingsQuestion(competitor_id, RankingId(shown.next))
            write('],"events":[')
            comma = ""
            with progress("reading", total=last, data_there=output is None) as advance:
                async for reached, found in exported_events(view, competitor_id, Sequence(0), last):
                    comma = _write_items(write, comma, found)
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


async def list_competitors(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view:
        found = await ask(view, CompetitorListQuestion())
    rows: list[dict[str, object]] = [
        {"id": i, "name": c.name, "tags": list(c.tags), "color": c.color, "parent": c.parent_id, "key": c.key}
        for i, c in found.competitors.items()
    ]
    printing.rows(rows, ("id", "name", "tags", "color", "parent", "key"), as_json=json)
