"""Tournaments to measure with: the same for the product and for its peers, made from one seed.

They are appended to the log by the product's own `engine.log`, in blocks, because making them is not measured. Only
this connection does not wait for its commits; everything is on disk before anything is measured, because every run
begins with a checkpoint.
"""

import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import cycle, islice
from typing import Final

import asyncpg
import msgspec
from msgspec import Struct

from benchmarks.service import OWNER_SETTINGS
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    UnityAdded,
)
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import (
    OPERATOR,
    PARTICIPANTS_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    Sort,
    TournamentId,
    UnityId,
)
from engine.log import appending, heads, registry
from engine.log.appending import Appended, Block, Request
from engine.log.heads import Head

TOURNAMENTS_PER_APPEND: Final = 200
DRAWN_MAX: Final = 50_000
DELTA_SHOWN_MAX: Final = 50
"""Deltas are within ±DELTA_SHOWN_MAX, as points of matches are."""

_FIRST_NAMES: Final = (
    "Ana",
    "Dmitri",
    "Élodie",
    "Giulia",
    "Jakub",
    "Małgorzata",
    "Oluwaseun",
    "Søren",
    "Tomás",
    "Wilhelmina",
    "Xiomara",
    "Zoë",
)
_LAST_NAMES: Final = (
    "Abebe",
    "Castellanos",
    "Eriksen",
    "Fernández",
    "Haddad",
    "Kowalczyk",
    "Lindqvist",
    "Okonkwo",
    "Petrović",
    "Rossi",
    "Takahashi",
    "Yamamoto",
)
_TAGS: Final = ("junior", "senior", "guest", "veteran")
_PLACES: Final = ("Centre Court", "Halle 3", "Stade des Alpes", "Rua do Campo 12", "Room 2")


class Field(Struct, frozen=True, kw_only=True):
    """The size of each tournament. With more than PARTICIPANTS_MAX competitors, the ranking has the first
    PARTICIPANTS_MAX. `lasts`: its points expire at that age; None: never."""

    competitors: int = 20
    unities: int = 1
    competitions: int = 0
    lasts: str | None = None


class Tournament(Struct, frozen=True, kw_only=True):
    """One tournament of a world, with one ranking."""

    tournament_id: TournamentId
    slug: str
    ranking_id: RankingId
    unity_ids: tuple[UnityId, ...]
    competitor_ids: tuple[CompetitorId, ...]
    competition_ids: tuple[CompetitionId, ...]

    @property
    def path(self) -> str:
        return f"/tournament/{self.slug}"

    @property
    def add_path(self) -> str:
        return f"{self.path}/rankings/{self.ranking_id}/add.json"


@asynccontextmanager
async def seeding(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection that makes worlds quickly."""
    connection = await asyncpg.connect(dsn, server_settings=OWNER_SETTINGS | {"synchronous_commit": "off"})
    try:
        yield connection
    finally:
        await connection.close()


async def settle(dsn: str) -> None:
    """Brings a grown database into its state some hours after such a load: vacuumed, with statistics."""
    connection = await asyncpg.connect(dsn, server_settings=OWNER_SETTINGS)
    try:
        await connection.execute("VACUUM (ANALYZE)")
    finally:
        await connection.close()


# ── Tournaments ─────────────────────────────────────────────────────────────────────────────────────────


async def open_tournaments(connection: asyncpg.Connection, name: str, count: int, field: Field) -> list[Tournament]:
    """`count` new tournaments whose slugs begin with `name`, each with its competitors, competitions and ranking."""
    tournaments: list[Tournament] = []
    while len(tournaments) < count:
        chunk = min(TOURNAMENTS_PER_APPEND, count - len(tournaments))
        opened = [await _open(connection, f"{name}-{len(tournaments) + n}", field) for n in range(1, chunk + 1)]
        await _append(connection, [_founding(tournament, field) for tournament in opened])
        for number in range(1, field.unities):
            await _append(connection, [_unity(tournament, number) for tournament in opened])
        tournaments += opened
    return tournaments


async def _open(connection: asyncpg.Connection, slug: str, field: Field) -> Tournament:
    ids = iter(await registry.next_ids(connection, 1 + field.unities + field.competitors + field.competitions))
    tournament = Tournament(
        tournament_id=registry.new_tournament_id(),
        slug=slug,
        ranking_id=RankingId(next(ids)),
        unity_ids=tuple(UnityId(next(ids)) for _ in range(field.unities)),
        competitor_ids=tuple(CompetitorId(next(ids)) for _ in range(field.competitors)),
        competition_ids=tuple(CompetitionId(next(ids)) for _ in range(field.competitions)),
    )
    opened = await registry.open_tournament(connection, tournament.tournament_id, name=slug, slug=slug, actor=OPERATOR)
    assert opened, f"the slug {slug} is taken"
    return tournament


def _founding(tournament: Tournament, field: Field) -> Block:
    """All events of a tournament except points and further unities. The ranking comes last, because it is
    structural."""
    draw = random.Random(tournament.slug)
    facts: list[Event] = [
        *(competitor(competitor_id, draw) for competitor_id in tournament.competitor_ids),
        *(_competition(competition_id, tournament, draw) for competition_id in tournament.competition_ids),
        RankingCreated(
            ranking_id=tournament.ranking_id,
            name="Season",
            participants=tournament.competitor_ids[:PARTICIPANTS_MAX],
            main_unity_id=tournament.unity_ids[0],
            main_unity_name="points",
            main_unity_lasts=field.lasts,
            main_unity_expires_on=None if field.lasts is None else ExpiresOn.DAY,
        ),
    ]
    return unjudged(tournament, _of(facts))


def _unity(tournament: Tournament, number: int) -> Block:
    fact = UnityAdded(
        ranking_id=tournament.ranking_id,
        unity_id=tournament.unity_ids[number],
        name=f"column {number}",
        sort=Sort.DESC,
    )
    return unjudged(tournament, _of([fact]))


def competitor(competitor_id: CompetitorId, draw: random.Random) -> CompetitorRegistered:
    """A competitor with an ordinary name and a tag or two."""
    return CompetitorRegistered(
        competitor_id=competitor_id,
        name=f"{draw.choice(_FIRST_NAMES)} {draw.choice(_LAST_NAMES)} {competitor_id}",
        tags=tuple(draw.sample(_TAGS, draw.randint(1, 2))),
        color=f"{draw.randrange(2**24):06x}",
    )


def _competition(competition_id: CompetitionId, tournament: Tournament, draw: random.Random) -> CompetitionAdded:
    """A match of two, played."""
    participants = tuple(draw.sample(tournament.competitor_ids, 2))
    return CompetitionAdded(
        competition_id=competition_id,
        group_id=draw.randint(1, 40),
        location=draw.choice(_PLACES),
        participants=participants,
        result=f"{draw.randint(0, 9)}-{draw.randint(0, 9)}",
        winner_id=draw.choice(participants),
    )


# ── Points ──────────────────────────────────────────────────────────────────────────────────────────────


async def add_points(
    connection: asyncpg.Connection, tournament: Tournament, *, events: int, block_events: int, seed: int
) -> None:
    """Appends `events` one-delta events to a tournament, in blocks of `block_events`, like that number of clients.

    They repeat after DRAWN_MAX, because drawing millions takes longer than appending them.
    """
    draw = random.Random(seed)
    requests = cycle([point_request(tournament, draw) for _ in range(min(events, DRAWN_MAX))])
    for start in range(0, events, block_events):
        block = list(islice(requests, min(block_events, events - start)))
        await _append(connection, [unjudged(tournament, block)])


async def everyone_scores(connection: asyncpg.Connection, tournament: Tournament) -> None:
    """Appends an event per unity that adds points to every competitor of the ranking."""
    enrolled = tournament.competitor_ids[:PARTICIPANTS_MAX]
    requests = [
        Request(
            events=(
                PointsAdded(
                    ranking_id=tournament.ranking_id,
                    deltas=tuple(Delta(c, unity_id, 1_000 + n) for n, c in enumerate(enrolled)),
                ),
            ),
            actor=OPERATOR,
        )
        for unity_id in tournament.unity_ids
    ]
    await _append(connection, [unjudged(tournament, requests)])


async def add_batches(connection: asyncpg.Connection, batches: Iterable[list[Block]]) -> None:
    """Appends one commit after another."""
    for blocks in batches:
        await _append(connection, blocks)


def point_request(tournament: Tournament, draw: random.Random) -> Request:
    """A request that adds points to one competitor in one unity."""
    delta = Delta(
        draw.choice(tournament.competitor_ids),
        draw.choice(tournament.unity_ids),
        draw.randint(-DELTA_SHOWN_MAX, DELTA_SHOWN_MAX),
    )
    return Request(events=(PointsAdded(ranking_id=tournament.ranking_id, deltas=(delta,)),), actor=OPERATOR)


def unjudged(tournament: Tournament, requests: list[Request]) -> Block:
    """A block that is to be `judged` before it is appended."""
    return Block(
        tournament_id=tournament.tournament_id, judged_at=Sequence(0), judged_digest=None, requests=tuple(requests)
    )


def judged(block: Block, heads: Mapping[TournamentId, Head]) -> Block:
    """The block as the product would send it just after judging it."""
    head = heads[block.tournament_id]
    return msgspec.structs.replace(block, judged_at=head.sequence, judged_digest=head.digest)


class Zipf:
    """Draws tournaments as loads do: the one of rank n with a frequency in proportion to 1/n."""

    def __init__(self, tournaments: list[Tournament]) -> None:
        self._tournaments = tournaments
        self._weights = [1 / rank for rank in range(1, len(tournaments) + 1)]

    def draw(self, draw: random.Random, count: int) -> list[Tournament]:
        return draw.choices(self._tournaments, self._weights, k=count)

    def batches(self, draw: random.Random, *, size: int, count: int) -> Iterator[list[Block]]:
        """`count` commits of `size` requests, one block for each tournament that was drawn, in their order."""
        known = {tournament.tournament_id: tournament for tournament in self._tournaments}
        for _ in range(count):
            requests: dict[TournamentId, list[Request]] = {}
            for tournament in self.draw(draw, size):
                requests.setdefault(tournament.tournament_id, []).append(point_request(tournament, draw))
            yield [unjudged(known[i], requests[i]) for i in sorted(requests)]


async def _append(connection: asyncpg.Connection, blocks: list[Block]) -> None:
    at = await heads.current(connection, [block.tournament_id for block in blocks])
    for outcome in await appending.append(connection, [judged(block, at) for block in blocks], wait=True):
        assert isinstance(outcome, Appended), outcome


def _of(facts: list[Event]) -> list[Request]:
    """A request for each."""
    return [Request(events=(fact,), actor=OPERATOR) for fact in facts]
