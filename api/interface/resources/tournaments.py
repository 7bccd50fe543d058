"""Tournaments: which there are, new ones, and the one that a path names with its name and its state."""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from msgspec import Struct

from api.access.auth import Scope
from api.desk.opening import create_tournament
from api.desk.remembered import Slugs
from api.interface.declarations import Acting, Action, NoQuestion, Operation, Recall, RecallContext, Write
from api.interface.fields import NAME, SHORT, Field, FieldMisread, number_up_to, text_type
from api.interface.rendering import Answer, BoardNow, Instant, TaggedBody, encode, tagged_body
from api.interface.resources.presentation import ZONE
from engine.domain.commands import ArchiveTournament, DeleteTournament, RenameTournament, RestoreTournament
from engine.domain.errors import NO_TOURNAMENT, Forbidden, NotFound
from engine.domain.terms import SLUG_CHARACTERS_MAX, SLUG_PATTERN, Stage, TournamentId, slug_fault
from engine.domain.times import instant
from engine.log import registry
from projections.answers.tournament import TournamentQuestion
from projections.answers.view import ask
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.past import moments

SLUG_CHARACTERS_LOGGED: Final = 100
TOURNAMENTS_LISTED_MAX: Final = 1_000
_DELETED: Final = (
    "Nobody can reach it, and its slug stays taken. Its log is kept until the operator deletes it on the command line; "
    "until then, the operator can restore the tournament."
)


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


class ListedTournamentShape(Struct):
    """`sequence`: the last event of its log."""

    id: int
    slug: str
    name: str
    sequence: int


class TournamentStateShape(Struct, kw_only=True):
    """How much there is after the event `sequence`. `public_end`: the last event that the public sees; null: it sees
    nothing. `stage`: archived; null: it can change."""

    id: int
    slug: str | None
    name: str
    sequence: int
    recorded_at: Instant
    competitors: int
    competitions: int
    rankings: int
    published: bool
    public_end: int | None
    stage: Stage | None


class TournamentStageShape(Struct):
    """`stage`: null: it can change."""

    stage: Stage | None


class DeletedTournamentShape(Struct):
    stage: Stage
    note: str


class OfName(Protocol):
    @property
    def name(self) -> str: ...


class OfStage(Protocol):
    @property
    def stage(self) -> Stage | None: ...


def _render_name(_view: BoardNow, answer: Answer, of: OfName) -> bytes:
    return answer.body(encode(TournamentShape(of.name)))


def _render_stage(_view: BoardNow, answer: Answer, of: OfStage) -> bytes:
    return answer.body(encode(TournamentStageShape(of.stage)))


def _render_deletion(_view: BoardNow, answer: Answer, _event: object) -> bytes:
    return answer.body(encode(DeletedTournamentShape("deleted", _DELETED)))


def _listed(entry: registry.RegistryEntry) -> ListedTournamentShape:
    return ListedTournamentShape(entry.tournament_id, entry.slug, entry.name, entry.sequence)


async def _list(acting: Acting, *, after: str = "", limit: int = TOURNAMENTS_LISTED_MAX) -> list[ListedTournamentShape]:
    async with acting.desk.database.connection() as connection:
        return [*map(_listed, await registry.tournaments_after(connection, after, acting.token.tournament_ids, limit))]


async def _create(acting: Acting, *, name: str, zone: str | None = None) -> ListedTournamentShape:
    if acting.token.tournament_ids is not None:  # it would not be for the new one
        raise Forbidden("This needs a token for all tournaments; this one is for some.")
    opened = await create_tournament(acting.desk, name, zone=zone, actor=acting.token.token_id, key=acting.key)
    return _listed(opened)


async def _state(context: RecallContext, answer: Answer, _question: NoQuestion) -> TaggedBody:
    state = await ask(context, TournamentQuestion())
    shown = TournamentStateShape(
        id=context.live.tournament_id,
        slug=context.live.slug,
        name=await moments.name(context.past, context.live.tournament_id, state.sequence),
        sequence=state.sequence,
        recorded_at=instant(state.recorded_at),
        competitors=state.competitors,
        competitions=state.competitions,
        rankings=state.rankings,
        published=state.publication.published,
        public_end=state.public_end,
        stage=state.publication.stage,
    )
    return tagged_body(answer.body(encode(shown)))


def _slug(text: str) -> str:
    if (fault := slug_fault(text)) is not None:
        raise FieldMisread(fault)
    return text


_SLUG: Final = text_type(SLUG_PATTERN, _slug, maxLength=SLUG_CHARACTERS_MAX)
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
    Write(
        "PUT",
        "archive.json",
        "Archive the tournament: everything in it can be read, and nothing changed",
        operation_id="archiveTournament",
        command=ArchiveTournament,
        answer=Answer("tournament", TournamentStageShape),
        render=_render_stage,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "restore.json",
        "Restore an archived tournament: it can change again",
        operation_id="restoreTournament",
        command=RestoreTournament,
        answer=Answer("tournament", TournamentStageShape),
        render=_render_stage,
        scope=Scope.ADMIN,
    ),
    Recall(
        "tournament.json",
        "Show the name of the tournament, and how much there is in it",
        "showTournament",
        answer=Answer("tournament", TournamentStateShape),
        question=NoQuestion,
        render=_state,
    ),
    Write(
        "PUT",
        "delete.json",
        "Delete the tournament, with a token for all: from now on it is 404; only the operator can restore it",
        operation_id="deleteTournament",
        command=DeleteTournament,
        answer=Answer("tournament", DeletedTournamentShape),
        render=_render_deletion,
        fields=(Field("slug", SHORT, "its slug, sent again", required=True),),
        scope=Scope.ADMIN,
        example={"slug": "summer-open"},
    ),
)
TOURNAMENT_ACTIONS: Final = (
    Action(
        "tournaments.json",
        "List the tournaments of the token, in the order of their slugs",
        "listTournaments",
        Answer("tournaments", list[ListedTournamentShape]),
        _list,
        method="GET",
        of_service=True,
        fields=(
            Field("after", _SLUG, "only those whose slugs come after this one, the last of a list"),
            Field("limit", number_up_to(1, TOURNAMENTS_LISTED_MAX, TOURNAMENTS_LISTED_MAX), "how many"),
        ),
    ),
    Action(
        "tournaments.json",
        "Create a tournament; its slug is made from the name",
        "createTournament",
        Answer("tournament", ListedTournamentShape, "Tournament created"),
        _create,
        Scope.ADMIN,
        of_service=True,
        fields=(
            Field("name", NAME, "its name", required=True),
            Field("zone", ZONE, "the time zone of its days, such as Europe/Berlin; absent: UTC"),
        ),
        example={"name": "Summer Open"},
    ),
)
