"""Commands about tournaments."""

from base64 import b64encode
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import UNSET, UnsetType

from api.cli import printing
from api.cli.changes import record
from api.cli.files import read_bytes
from api.cli.where import HERE, Json, Slug, Where, database_at, desk_at, tournament_at, writing_to
from api.desk import opening
from api.desk.desk import Desk
from api.interface.direction import isolated
from api.web.accent import accents
from engine.domain.commands import ChangePresentation, RenameTournament
from engine.domain.errors import Fault, Unacceptable
from engine.domain.presentation import LOGO_BYTES_MAX
from engine.domain.terms import OPERATOR
from engine.log import registry
from projections.answers.zones import unknown_zone

Zone = Annotated[
    str | None,
    Parameter(help="The time zone in which its days begin and end, such as Europe/Berlin. Without one, UTC."),
]


async def create_tournament(name: str, /, *, zone: Zone = None, json: Json = False, where: Where = HERE) -> None:
    command = ChangePresentation(zone=_or_unset(_zone(zone)))
    async with desk_at(where, creates=True) as desk:
        registered = await open_tournament(desk, name)
        if zone:
            async with tournament_at(desk, registered.slug) as live:
                await desk.submit(live, command, actor=OPERATOR)
    facts = {"id": registered.tournament_id, "name": registered.name, "slug": registered.slug}
    printing.made(registered.slug, facts, as_json=json)


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
    await record(
        slug,
        where,
        lambda _names: RenameTournament(name=name),
        json=json,
        sentence=lambda _command: f"tournament {slug} is named {isolated(name.strip())}",
    )


async def present_tournament(
    slug: Slug,
    /,
    *,
    zone: Zone = None,
    language: str | None = None,
    accent: str | None = None,
    logo: str | None = None,
    listed: bool | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    language
        Language of its board: en, de, fr or es. Without one, that of the reader.
    accent
        Colour of its board, as RRGGBB. Pages make it lighter or darker where it could not be read.
    logo
        A PNG file of at most 12 KiB, 1,024 pixels wide and high, 8 bits a colour.
    listed
        Whether the first page of the service leads to its board while it is published.
    """
    command = ChangePresentation(
        zone=_or_unset(_zone(zone)),
        language=_or_unset(language),
        accent=_or_unset(accent),
        logo=_or_unset(None if logo is None else _logo(logo)),
        listed=UNSET if listed is None else listed,
    )
    if command == ChangePresentation():
        raise Unacceptable("Say what to change: --zone, --language, --accent, --logo or --listed.")
    sentence = f"the presentation of {slug} is changed"
    await record(slug, where, lambda _names: command, json=json, sentence=lambda _command: sentence)
    if accent and not json:
        light, dark = accents(accent.lower())
        printing.say(
            f"its colour is drawn as {light} on light pages and as {dark} on dark ones, so that it can be read"
        )


def _or_unset(text: str | None) -> str | None | UnsetType:
    """None: nothing was said; an empty text empties."""
    return UNSET if text is None else text or None


def _zone(name: str | None) -> str | None:
    """Raises Unacceptable if there is no such zone."""
    if name and (fault := unknown_zone(name)) is not None:
        raise Unacceptable("There is no such time zone.", [Fault("zone", fault)])
    return name


def _logo(path: str) -> str:
    """The file in base64. Raises Unreadable."""
    return b64encode(read_bytes(Path(path), LOGO_BYTES_MAX + 1)).decode() if path else ""


async def open_tournament(desk: Desk, name: str) -> registry.RegistryEntry:
    """As `opening.open_tournament`."""
    async with writing_to(desk.database) as connection:
        return await opening.open_tournament(connection, name, actor=OPERATOR)
