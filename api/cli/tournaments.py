"""Commands about tournaments."""

from base64 import b64encode
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from api.cli import printing
from api.cli.arguments import option, positional
from api.cli.files import read_bytes
from api.cli.verbs import Done, verb
from api.cli.where import HERE, Json, Where, database_at, desk_at
from api.desk import opening
from api.desk.desk import Desk
from api.web.accent import accents
from engine.domain.commands import ArchiveTournament, ChangePresentation, RenameTournament, RestoreTournament
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
    zone = zone and _zone(zone)
    async with desk_at(where, creates=True) as desk:
        registered = await opening.create_tournament(desk, name, zone=zone, actor=OPERATOR, key=None)
    facts = {"id": registered.tournament_id, "name": registered.name, "slug": registered.slug}
    printing.made(registered.slug, facts, as_json=json)


async def list_tournaments(*, json: Json = False, where: Where = HERE) -> None:
    async with database_at(where) as database, database.connection() as connection:
        rows = [
            {
                "id": t.tournament_id,
                "slug": t.slug,
                "name": t.name,
                "events": t.sequence,
                "deleted": "over HTTP" if t.withdrawn else None,
            }
            for t in await registry.tournaments(connection)
        ]
    printing.rows(rows, ("id", "slug", "name", "events", "deleted"), as_json=json)


def _changed_presentation(**given: Any) -> ChangePresentation:
    """Raises Unacceptable if nothing is to change."""
    if not given:
        raise Unacceptable("Say what to change: --zone, --language, --accent, --logo or --listed.")
    return ChangePresentation(**given)


def _presented(done: Done) -> str:
    sentence = f"the presentation of {done.slug} is changed"
    if not done.command.accent:
        return sentence
    light, dark = accents(done.command.accent.lower())
    return f"{sentence}\nits colour is drawn as {light} on light pages and {dark} on dark ones, to stay readable"


rename_tournament = verb(
    RenameTournament,
    positional("name", Annotated[str, Parameter(help="The new name.")]),
    says="tournament {slug} is named {name}",
)
archive_tournament = verb(ArchiveTournament, says="tournament {slug} is archived")
restore_tournament = verb(RestoreTournament, says="tournament {slug} is restored")
present_tournament = verb(
    ChangePresentation,
    option("zone", kind=Zone, read=lambda _reading, name: _zone(name)),
    option("language", about="Language of its board: en, de, fr or es. Without one, that of the reader."),
    option(
        "accent",
        about="Colour of its board, as RRGGBB. Pages lighten or darken it where it would be hard to read.",
    ),
    option(
        "logo",
        about="A PNG file of at most 12 KiB, 1,024 pixels wide and high.",
        read=lambda _reading, path: _logo(path),
    ),
    option(
        "listed",
        kind=bool | None,
        about="Whether the first page of the service leads to its board while it is published.",
    ),
    make=_changed_presentation,
    says=_presented,
)


def _zone(name: str) -> str:
    """Raises Unacceptable if there is no such zone."""
    if (fault := unknown_zone(name)) is not None:
        raise Unacceptable("There is no such time zone.", [Fault("zone", fault)])
    return name


def _logo(path: str) -> str:
    """The file in base64. Raises Unreadable."""
    return b64encode(read_bytes(Path(path), LOGO_BYTES_MAX + 1)).decode()


async def open_tournament(desk: Desk, name: str) -> registry.RegistryEntry:
    """As `opening.open_tournament`."""
    async with desk.database.writing() as connection:
        return await opening.open_tournament(connection, name, actor=OPERATOR)
