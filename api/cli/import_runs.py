"""Commands about imports of competitions that were made: `import list`, `import undo`."""

from functools import partial
from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.interruptions import interruptible
from api.cli.previews import DryRun, show_comparison
from api.cli.progress import progress
from api.cli.where import HERE, Json, Slug, Where, desk_at, tournament_at
from api.imports.undoing import plan_undoing, undo_import
from engine.domain.terms import OPERATOR
from engine.log import import_runs
from projections.answers.foreseen import compared, foreseen_comparisons
from projections.past import folds
from projections.past.past import Past


async def list_imports(slug: Slug, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as view, desk.database.connection() as connection:
        runs = await import_runs.runs(connection, view.live.tournament_id)
    rows: list[dict[str, object]] = [
        {
            "name": run.name,
            "recorded_at": run.recorded_at,
            "event": run.first,
            "competitions": run.competitions,
            "points": run.points,
            "undone": run.undone,
        }
        for run in runs
    ]
    printing.rows(rows, ("name", "recorded_at", "event", "competitions", "points", "undone"), as_json=json)


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
                read = partial(folds.competition_sums, Past(desk.database), view.live.tournament_id)
                comparisons = await foreseen_comparisons(view.live, planned.events, read)
                show_comparison(view, compared(view.live.board, comparisons), json=json)
                return
            stop = listen()
            with progress("undoing") as advance:
                await undo_import(desk, view.live, planned, actor=OPERATOR, stop=stop, progress=advance)
    if json:
        printing.json({"voided": planned.voided, "kept": planned.kept, "points": planned.points})
        return
    if not planned.commands:
        printing.say(f"nothing to do: nothing of import {name} counts")
    elif not planned.events:
        printing.say(
            f"nothing of import {name} counted any more; now that it is undone, its file can be imported again"
        )
    else:
        voided = printing.count(len(planned.voided), "competition")
        printing.say(f"{voided} voided, points of {printing.count(planned.points, 'event')} taken back")
        for competition_id in planned.voided:
            printing.line(str(competition_id))
    if planned.kept:
        listed = ", ".join(map(str, planned.kept[:20])) + (" …" if len(planned.kept) > 20 else "")
        printing.say(f"kept, because they hold points of others: {listed}")
