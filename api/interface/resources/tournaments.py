"""Finds the tournament that a path names, and changes its name."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

from api.access.auth import Scope
from api.desk.remembered import Slugs
from api.interface.declarations import Operation, Write
from api.interface.fields import NAME, Field
from api.interface.rendering import Answer, BoardNow, encode
from engine.domain.commands import RenameTournament
from engine.domain.errors import NO_TOURNAMENT, NotFound
from engine.domain.terms import TournamentId
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament

SLUG_CHARACTERS_LOGGED: Final = 100


async def pin_named(
    live_pool: LivePool, slugs: Slugs, slug: str, found: TournamentId, find: Callable[[str], Awaitable[TournamentId]]
) -> LiveTournament:
    """Pins the live of the tournament with this slug, and checks that it still has the slug. The caller must unpin it.

    After a restore, a slug or an id may belong to another tournament than before. So the slug of the live decides: it
    is consistent with its log. `found`: the remembered id; `find`: looks the id up again. Raises NotFound, as `find`,
    and as `LivePool.pin` and `LivePool.make_current`.
    """
    live = await live_pool.pin(found)
    if live.slug == slug:
        return live
    try:
        slugs.forget(slug)
        await live_pool.make_current(live)
    finally:
        live_pool.unpin(live)
    live = await live_pool.pin(await find(slug))
    if live.slug == slug:
        return live
    live_pool.unpin(live)
    raise NotFound(NO_TOURNAMENT)


class TournamentShape(Struct):
    name: str


class OfName(Protocol):
    @property
    def name(self) -> str: ...


def _render_name(_view: BoardNow, answer: Answer, of: OfName) -> bytes:
    return answer.body(encode(TournamentShape(of.name)))


OPERATIONS: Final[tuple[Operation, ...]] = (
    Write(
        "PUT",
        "tournament.json",
        "Give the tournament another name; its slug stays",
        operation_id="renameTournament",
        command=RenameTournament,
        answer=Answer("tournament", TournamentShape),
        render=_render_name,
        fields=(Field("name", NAME, "its new name", required=True),),
        scope=Scope.ADMIN,
        example={"name": "Summer Open"},
    ),
)
