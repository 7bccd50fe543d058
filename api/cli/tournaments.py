"""Commands about tournaments."""

from typing import Annotated

from cyclopts import Parameter

from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, database_at, desk_at, tournament_at, writing_to
from api.desk import opening
from api.desk.desk import Desk
from engine.domain.commands import RenameTournament
from engine.domain.terms import OPERATOR
from engine.log import registry


async def create_tournament(name: str, /, *, json: Json = False, where: Where = HERE) -> None:
    async with desk_at(where, creates=True) as desk:
        registered = await open_tournament(desk, name)
    if json:
        printing.json({"id": registered.tournament_id, "name": registered.name, "slug": registered.slug})
    else:
        printing.line(registered.slug)


async def list_tournaments(*, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database, database.connection() as connection:
        rows = [
            {"id": t.tournament_id, "slug": t.slug, "name": t.name, "events": t.sequence}
            for t in await registry.tournaments(connection)
        ]
    printing.rows(rows, ("id", "slug", "name", "events"), as_json=json)


async def rename_tournament(
    slug: Slug,
    name: Annotated[str, Parameter(help="The new name.")],
    /,
    *,
    json: Json = False,
    where: Where = HERE,
) -> None:
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        receipt = await desk.submit(live, RenameTournament(name=name), actor=OPERATOR)
    printing.recorded(receipt.sequence, as_json=json, sentence=f"tournament {slug} is named {name.strip()}")


async def open_tournament(desk: Desk, name: str) -> registry.RegistryEntry:
    """As `opening.open_tournament`."""
    async with writing_to(desk.database) as connection:
        return await opening.open_tournament(connection, name, actor=OPERATOR)
