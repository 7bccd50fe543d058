"""Opens tournaments: a name becomes a slug that no other tournament has."""

from hashlib import sha256
from typing import Final

from asyncpg import Connection, UniqueViolationError
from msgspec.structs import replace
from slugify import slugify

from api.desk.desk import Desk, changed_already
from api.desk.fingerprints import fingerprint
from engine.database.distribution import is_distributed, unlike_copies
from engine.domain.commands import ChangePresentation
from engine.domain.errors import Conflict, KeyReused, Unacceptable
from engine.domain.terms import ActorId, Sequence, TournamentId, name_fault
from engine.log import registry

STEM_CHARACTERS_MAX: Final = 100
SLUG_ATTEMPTS_MAX: Final = 1_000


async def create_tournament(
    desk: Desk, name: str, *, zone: str | None, actor: ActorId, key: str | None
) -> registry.RegistryEntry:
    """Opens a tournament whose days are those of this time zone; None: UTC. Its id follows from the `key`, so one that
    is sent again finds what it created. Raises KeyReused if that has another name, and as `open_tournament`."""
    tournament_id = None
    if key is not None:
        hashed = sha256(f"{actor} {key}".encode()).digest()
        tournament_id = TournamentId(1 + int.from_bytes(hashed) % registry.TOURNAMENT_ID_MAX)
    async with desk.database.writing() as connection:
        opened = await open_tournament(connection, name, actor=actor, tournament_id=tournament_id)
    if opened.name != name.strip():
        raise KeyReused
    if zone is None:
        return opened
    command = ChangePresentation(zone=zone)
    with changed_already():
        async with desk.live_pool.pinned(opened.tournament_id) as live:
            receipt = await desk.submit(
                live,
                command,
                actor=actor,
                idempotency_key=key,
                fingerprint=fingerprint("POST", "tournaments.json", {"zone": zone}),
            )
    return replace(opened, sequence=receipt.last_sequence)


async def open_tournament(
    connection: Connection, name: str, *, actor: ActorId, tournament_id: TournamentId | None = None
) -> registry.RegistryEntry:
    """Opens a tournament under the first free slug of its name: slug, slug-2, slug-3 … `tournament_id`: its id; if a
    tournament with it was opened already, that one is returned. None: a random one. Raises Unacceptable and Conflict.
    """
    name = name.strip()
    fault = name_fault(name)
    if fault:
        raise Unacceptable(f"The name {fault}.")
    stem = slugify(name, max_length=STEM_CHARACTERS_MAX)
    if not stem:
        raise Unacceptable("This name has no letters or digits to make a slug from; add some.")
    may_be_open = tournament_id is not None
    tournament_id = tournament_id or registry.new_tournament_id()
    if is_distributed(connection) and await unlike_copies(connection, "tournament"):
        raise Conflict(
            "Nothing was created: the nodes do not agree on which tournaments there are. Was one restored alone? "
            "`tallybook verify` says what differs; the documentation says how a node is restored."
        )
    for number in range(1, SLUG_ATTEMPTS_MAX + 1):
        slug = stem if number == 1 else f"{stem}-{number}"
        try:
            is_open = await registry.open_tournament(connection, tournament_id, name=name, slug=slug, actor=actor)
        except UniqueViolationError as error:
            opened = await registry.opened(connection, tournament_id) if may_be_open else None
            if opened is not None:
                return opened
            raise Conflict(
                f"Nothing was created: something with the id {tournament_id} or the slug {slug} already exists, "
                f"where it should not be; `tallybook verify` says what. ({error})"
            ) from error
        if is_open:
            return registry.RegistryEntry(tournament_id, slug, name, Sequence(1))
    raise Unacceptable(f"There are already {SLUG_ATTEMPTS_MAX} tournaments with this name; choose another name.")
