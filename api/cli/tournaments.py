"""Commands about tournaments."""

from typing import Annotated, Final

import asyncpg
from cyclopts import Parameter
from slugify import slugify

from api.cli import printing
from api.cli.where import HERE, Json, Slug, Where, database_at, desk_at, tournament_at, writing_to
from api.desk.desk import Desk
from engine.database.distribution import is_distributed, unlike_copies
from engine.domain.commands import RenameTournament
from engine.domain.errors import Conflict, Unacceptable
from engine.domain.terms import OPERATOR, Sequence, name_fault
from engine.log import log

STEM_CHARACTERS_MAX: Final = 100
SLUG_ATTEMPTS_MAX: Final = 1_000


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
            for t in await log.tournaments(connection)
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


async def open_tournament(desk: Desk, name: str) -> log.RegistryEntry:
    """Opens a tournament under the first free slug of its name: slug, slug-2, slug-3 …"""
    name = name.strip()
    fault = name_fault(name)
    if fault:
        raise Unacceptable(f"The name {fault}.")
    stem = slugify(name, max_length=STEM_CHARACTERS_MAX)
    if not stem:
        raise Unacceptable("This name has no letters or digits to make a slug from; use some.")
    tournament_id = log.new_tournament_id()
    async with writing_to(desk.database) as connection:
        if is_distributed(connection) and await unlike_copies(connection, "tournament"):
            raise Conflict(
                "Nothing was created: the nodes do not agree on which tournaments there are. Was one restored alone? "
                "`tallybook verify` says what differs; the documentation says how a node is restored."
            )
        for number in range(1, SLUG_ATTEMPTS_MAX + 1):
            slug = stem if number == 1 else f"{stem}-{number}"
            try:
                is_open = await log.open_tournament(connection, tournament_id, name=name, slug=slug, actor=OPERATOR)
            except asyncpg.UniqueViolationError as error:
                raise Conflict(
                    f"Nothing was created: something of the id {tournament_id} or of the slug {slug} is there already, "
                    f"where it should not be; `tallybook verify` says what. ({error})"
                ) from error
            if is_open:
                return log.RegistryEntry(tournament_id, slug, name, Sequence(1))
    raise Unacceptable(f"There are {SLUG_ATTEMPTS_MAX} tournaments with this name already; choose another name.")
