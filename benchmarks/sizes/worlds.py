"""Tournaments that are large in one dimension, each in a separate database.

Almost all of it is appended to the log in large blocks by the product's own `engine.log`. If a ranking has more
competitors than the event of its creation holds, the service enrols them in chunks, as for users.
"""

import random
from collections.abc import Iterable, Iterator
from itertools import chain, cycle, islice
from typing import Final, TypeVar
from uuid import UUID, uuid4

import asyncpg
import msgspec
from msgspec import Struct

from benchmarks import world
from benchmarks.world import Tournament
from engine.domain.events import (
    ClassificationDeclared,
    CompetitionAdded,
    CompetitorRegistered,
    Criterion,
    Delta,
    Event,
    PointsAdded,
    RankingCreated,
    Scored,
    TournamentOpened,
    UnityAdded,
)
from engine.domain.terms import (
    DELTAS_MAX,
    OPERATOR,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    UnityId,
)
from engine.log import codec, registry
from engine.log.appending import Request

BLOCK_EVENTS: Final = 5_000
POINTS_BLOCK_EVENTS: Final = 512
"""The most that the product puts into one block."""
ENROLLED_AT_ONCE: Final = 10_000
CLASSIFIED_BY: Final = 3
"""Unities whose totals classify the first ranking, or all if it has fewer."""
OTHER_PARTICIPANTS: Final = 20
"""Competitors in each ranking but the first."""
TOURNAMENTS_AT_ONCE: Final = 1_000
DRAWN: Final = 1_000
"""How many different names and points are drawn; then they repeat."""
SPREAD: Final = 7_919
"""A prime: totals spread by it are distinct and in no order."""
TOTALS: Final = 1_000_003
SEED: Final = 19

_OPEN: Final = """
    SELECT open_tournament(t.tournament_id, t.slug, t.name, t.append_id, t.line)
    FROM unnest($1::bigint[], $2::text[], $2::text[], $3::uuid[], $4::text[]) AS t (
        tournament_id, slug, name, append_id, line
    )
"""
_DIGEST: Final = bytes(32)
_T = TypeVar("_T")


class Size(Struct, frozen=True, kw_only=True):
    """The size of a world in every dimension.

    `competitors`: in the tournament, and not in its ranking. `participants`: in its ranking. `rankings` of few
    competitors outside that ranking. `events` that add points without, and `keys` with an idempotency key.
    `tournaments` next to this one.
    """

    competitors: int = 100
    participants: int = 100
    rankings: int = 10
    unities: int = 1
    competitions: int = 100
    events: int = 100
    tournaments: int = 10
    keys: int = 100


class Step(Struct, frozen=True, kw_only=True):
    """One more size of a dimension, which is a field of `Size`. All others stay small."""

    dimension: str
    count: int
    is_quick: bool = False

    @property
    def size(self) -> Size:
        return msgspec.structs.replace(SMALLEST, **{self.dimension: self.count})

    @property
    def name(self) -> str:
        return f"{self.count:,} {self.dimension}"


SMALLEST: Final = Size()
STEPS: Final = (
    Step(dimension="competitors", count=10_000, is_quick=True),
    Step(dimension="competitors", count=1_000_000 - 1_000),
    Step(dimension="participants", count=9_900, is_quick=True),
    Step(dimension="participants", count=1_000_000 - 1_000),
    Step(dimension="rankings", count=100),
    Step(dimension="rankings", count=900, is_quick=True),
    Step(dimension="unities", count=10),
    Step(dimension="unities", count=90, is_quick=True),
    Step(dimension="competitions", count=10_000, is_quick=True),
    Step(dimension="competitions", count=100_000),
    Step(dimension="events", count=10_000, is_quick=True),
    Step(dimension="events", count=1_000_000),
    Step(dimension="tournaments", count=1_000, is_quick=True),
    Step(dimension="tournaments", count=100_000),
    Step(dimension="keys", count=10_000, is_quick=True),
    Step(dimension="keys", count=300_000),
)
"""The sizes to measure. All leave room below the limits of a tournament for what the measured operations add."""
DIMENSIONS: Final = tuple(dict.fromkeys(step.dimension for step in STEPS))


class World(Struct, frozen=True, kw_only=True):
    """A tournament to measure in. `tournament` has the first ranking, with all of its `participants`."""

    size: Size
    tournament: Tournament
    bystanders: tuple[CompetitorId, ...]
    other_rankings: tuple[RankingId, ...]
    other_unities: tuple[UnityId, ...]
    elsewhere: str
    """A path that reads one competitor of another tournament."""
    counts: Counts = Counts.SUM
    """What the main unity of the first ranking counts."""

    @property
    def participants(self) -> tuple[CompetitorId, ...]:
        return self.tournament.competitor_ids

    @property
    def not_yet_enrolled(self) -> Iterator[tuple[CompetitorId, ...]]:
        """Chunks of the participants that the service is to enrol."""
        return chunks(self.participants[ENROLLED_AT_ONCE:], ENROLLED_AT_ONCE)


def chunks(items: Iterable[_T], size: int) -> Iterator[tuple[_T, ...]]:
    """The items in their order, `size` at a time; fewer in the last chunk."""
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk


async def make(
    connection: asyncpg.Connection, size: Size, *, scores: bool = True, counts: Counts = Counts.SUM
) -> World:
    """A new tournament of this size, and the others next to it. `connection` is one of `world.seeding`. `scores`: each
    enrolled participant has points, which the main unity `counts`."""
    ids = iter(
        await registry.next_ids(
            connection,
            2 + size.unities + size.participants + size.competitors + size.competitions + 2 * size.rankings,
        )
    )
    tournament = Tournament(
        tournament_id=registry.new_tournament_id(),
        slug="measured",
        ranking_id=RankingId(next(ids)),
        unity_ids=tuple(map(UnityId, islice(ids, size.unities))),
        competitor_ids=tuple(map(CompetitorId, islice(ids, size.participants))),
        competition_ids=tuple(map(CompetitionId, islice(ids, size.competitions))),
    )
    await registry.open_tournament(
        connection, tournament.tournament_id, name="Measured", slug=tournament.slug, actor=OPERATOR
    )
    made = World(
        size=size,
        tournament=tournament,
        bystanders=tuple(map(CompetitorId, islice(ids, size.competitors))),
        other_rankings=tuple(map(RankingId, islice(ids, size.rankings))),
        other_unities=tuple(map(UnityId, islice(ids, size.rankings))),
        elsewhere=await _others(connection, size.tournaments, CompetitorId(next(ids))),
        counts=counts,
    )
    await append(connection, tournament, _founding(made))
    if scores:
        await append(connection, tournament, _scores(made, made.participants[:ENROLLED_AT_ONCE]))
    await _add_points(connection, made)
    return made


async def score_all(connection: asyncpg.Connection, made: World) -> None:
    """Gives points to the competitors that the service has enrolled."""
    await append(connection, made.tournament, _scores(made, made.participants[ENROLLED_AT_ONCE:]))


async def append(connection: asyncpg.Connection, tournament: Tournament, events: Iterable[Event]) -> None:
    """Appends each event as a separate request, in blocks in which only the last event is structural."""
    await world.add_batches(connection, ([world.unjudged(tournament, block)] for block in _blocks(events)))


async def _others(connection: asyncpg.Connection, count: int, competitor_id: CompetitorId) -> str:
    """Opens `count` tournaments, the first with one competitor; returns the path of that."""
    for names in chunks((f"other-{n}" for n in range(1, count + 1)), TOURNAMENTS_AT_ONCE):
        ids = [registry.new_tournament_id() for _ in names]
        lines = [codec.line_of(TournamentOpened(name=name, slug=name), OPERATOR) for name in names]
        await connection.execute(_OPEN, ids, names, [uuid4() for _ in names], lines)
    first = await registry.tournament_named(connection, "other-1")
    assert first is not None
    beside = Tournament(
        tournament_id=first,
        slug="other-1",
        ranking_id=RankingId(0),
        unity_ids=(),
        competitor_ids=(competitor_id,),
        competition_ids=(),
    )
    await append(connection, beside, [CompetitorRegistered(competitor_id=competitor_id, name="Somebody Else")])
    return f"{beside.path}/competitors/{competitor_id}.json"


def _founding(made: World) -> Iterator[Event]:
    """All events except points."""
    tournament, participants = made.tournament, made.participants
    draw = random.Random(SEED)
    drawn = [world.competitor(CompetitorId(0), draw) for _ in range(DRAWN)]
    for like, competitor_id in zip(cycle(drawn), (*participants, *made.bystanders), strict=False):
        yield msgspec.structs.replace(
            like, competitor_id=competitor_id, name=f"{like.name.removesuffix('0')}{competitor_id}"
        )
    for n, competition_id in enumerate(tournament.competition_ids):
        pair = participants[n % len(participants)], participants[(n + 1) % len(participants)]
        yield CompetitionAdded(
            competition_id=competition_id,
            group_id=n % 40 + 1,
            location="Centre Court",
            participants=pair,
            result="3-1",
            winner_id=pair[0],
        )
    yield RankingCreated(
        ranking_id=tournament.ranking_id,
        name="Season",
        participants=participants[:ENROLLED_AT_ONCE],
        main_unity_id=tournament.unity_ids[0],
        main_unity_name="points",
        main_unity_counts=made.counts,
    )
    for n, unity_id in enumerate(tournament.unity_ids[1:], start=1):
        yield UnityAdded(ranking_id=tournament.ranking_id, unity_id=unity_id, name=f"column {n}")
    criteria = tuple([Criterion(unity_id=unity_id) for unity_id in tournament.unity_ids[:CLASSIFIED_BY]])
    yield ClassificationDeclared(ranking_id=tournament.ranking_id, criteria=criteria)
    for ranking_id, unity_id in zip(made.other_rankings, made.other_unities, strict=True):
        yield RankingCreated(
            ranking_id=ranking_id,
            name=f"Group {ranking_id}",
            participants=participants[:OTHER_PARTICIPANTS],
            main_unity_id=unity_id,
            main_unity_name="points",
        )


def _scores(made: World, competitor_ids: Iterable[CompetitorId]) -> Iterator[Event]:
    """Points for each of these competitors in the main unity, in no order."""
    ranking_id, unity_id = made.tournament.ranking_id, made.tournament.unity_ids[0]
    for some in chunks(competitor_ids, DELTAS_MAX):
        if made.counts is Counts.SUM:
            deltas = tuple(Delta(c, unity_id, c * SPREAD % TOTALS) for c in some)
            yield PointsAdded(ranking_id=ranking_id, deltas=deltas)
        else:
            results = tuple(Scored(c, unity_id, c * SPREAD % TOTALS) for c in some)
            yield PointsAdded(ranking_id=ranking_id, deltas=(), results=results)


async def _add_points(connection: asyncpg.Connection, made: World) -> None:
    """One-delta events as clients make them: the first for the first competition, some with keys."""
    tournament, draw = made.tournament, random.Random(SEED)
    for_first = PointsAdded(
        ranking_id=tournament.ranking_id,
        deltas=(Delta(made.participants[0], tournament.unity_ids[0], 3),),
        competition_id=tournament.competition_ids[0],
    )
    await append(connection, tournament, [for_first])
    enrolled = msgspec.structs.replace(tournament, competitor_ids=made.participants[:ENROLLED_AT_ONCE])
    plain = [world.point_request(enrolled, draw) for _ in range(DRAWN)]
    requests = chain(
        islice(cycle(plain), made.size.events),
        (
            msgspec.structs.replace(request, idempotency_key=str(UUID(int=draw.getrandbits(128))), fingerprint=_DIGEST)
            for request in islice(cycle(plain), made.size.keys)
        ),
    )
    await world.add_batches(
        connection, ([world.unjudged(tournament, list(some))] for some in chunks(requests, POINTS_BLOCK_EVENTS))
    )


def _blocks(events: Iterable[Event]) -> Iterator[list[Request]]:
    block: list[Request] = []
    for event in events:
        block.append(Request(events=(event,), actor=OPERATOR))
        if event.structural or len(block) == BLOCK_EVENTS:
            yield block
            block = []
    if block:
        yield block
