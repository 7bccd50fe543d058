"""The tails of several tournaments, read together: each is what it would be alone, and all are bounded together."""

import asyncpg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.errors import LogForked, LogUnreadable
from engine.domain.events import CompetitionAdded, Event
from engine.domain.terms import OPERATOR, CompetitionId, Sequence, TournamentId
from engine.log import heads, tails
from engine.log.heads import Head
from engine.log.tails import Tails
from tests.bounds import Bounds, set_bounds
from tests.poison import append_text
from tests.projections.written import append, on_the_database, whole_log
from tests.tampering import line_removed, tamper
from tests.tournaments import open_new_tournament


def competitions(number: int, *, location: str = "Hall") -> list[Event]:
    return [
        CompetitionAdded(competition_id=CompetitionId(n), group_id=1, location=location) for n in range(1, number + 1)
    ]


async def opened(database: Database, sizes: list[int], *, location: str = "Hall") -> TournamentId:
    """A tournament whose opening is followed by blocks of these sizes."""
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    for size in sizes:
        await append(database, tournament_id, competitions(size, location=location))
    return tournament_id


async def read(database: Database, after: dict[TournamentId, Head]) -> Tails:
    async with database.connection() as connection:
        return await tails.tails(connection, after)


def sizes_of(tails: Tails) -> dict[TournamentId, int]:
    return {tournament_id: len(tail.events) for tournament_id, tail in tails.tails.items()}


@settings(on_the_database, max_examples=15)
@given(
    many=st.lists(st.lists(st.integers(1, 6), max_size=6), min_size=1, max_size=5),
    events_max=st.integers(1, 40),
    bytes_max=st.integers(1, 2_000),
)
async def test_tails_are_whole_blocks_that_lead_to_the_heads(
    database: Database, many: list[list[int]], events_max: int, bytes_max: int
) -> None:
    tournaments = [await opened(database, sizes) for sizes in many]
    at = {tournament_id: heads.beginning(tournament_id) for tournament_id in tournaments}
    events = {tournament_id: [] for tournament_id in tournaments}
    with pytest.MonkeyPatch.context() as patched:
        set_bounds(patched, TAIL_EVENTS_MAX=events_max, TAIL_BYTES_MAX=bytes_max)
        while True:
            some = await read(database, at)
            if not some.tails:
                break
            counts = sizes_of(some)
            assert len(counts) == 1 or sum(counts.values()) <= events_max
            for tournament_id, tail in some.tails.items():
                events[tournament_id] += tail.events
                at[tournament_id] = tail.head
            async with database.connection() as connection:
                found = await heads.current(connection, tournaments)
            assert some.unread == {t for t in tournaments if at[t] != found[t]}
    assert at == found
    assert not some.unread
    for tournament_id in tournaments:
        assert events[tournament_id] == await whole_log(database, tournament_id)


async def test_each_has_the_same_share_and_at_least_a_block(database: Database, bounds: Bounds) -> None:
    bounds(TAIL_EVENTS_MAX=12)
    short, long, broad = [await opened(database, sizes) for sizes in ([2], [1] * 20, [4, 4])]
    at = {tournament_id: heads.beginning(tournament_id) for tournament_id in (short, long, broad)}
    some = await read(database, at)
    assert sizes_of(some) == {short: 3, long: 4, broad: 1}
    assert some.unread == {long, broad}
    some = await read(database, {long: some.tails[long].head, broad: some.tails[broad].head})
    assert sizes_of(some) == {long: 6, broad: 4}


async def test_each_has_the_same_share_in_bytes_and_the_last_of_too_many_heavy_blocks_wait(
    database: Database, bounds: Bounds
) -> None:
    light, heavy = await opened(database, [1] * 10), await opened(database, [1] * 30, location="x" * 200)
    at = {tournament_id: heads.beginning(tournament_id) for tournament_id in (light, heavy)}
    bounds(TAIL_BYTES_MAX=6_000)
    counts = sizes_of(await read(database, at))
    assert counts[light] == 11
    assert 1 < counts[heavy] < 20
    first, second = [await opened(database, [20], location="x" * 200) for _ in range(2)]
    async with database.connection() as connection:
        at = {t: (await tails.tail(connection, t, heads.beginning(t), blocks_max=1)).head for t in (first, second)}
    some = await read(database, at)
    assert sizes_of(some) == {first: 20}
    assert some.unread == {second}


async def test_there_is_no_tail_where_there_is_nothing_more(database: Database) -> None:
    tournament_id = await opened(database, [3])
    async with database.connection() as connection:
        at = await heads.current(connection, [tournament_id])
    assert await read(database, at) == Tails({}, set())
    assert await read(database, {}) == Tails({}, set())


@pytest.mark.parametrize("after", [0, 1, 2, 3, 9])
async def test_a_log_without_a_block_that_ends_in_this_head_is_another_one(database: Database, after: int) -> None:
    fine, forked = await opened(database, [2, 1]), await opened(database, [2, 1])
    with pytest.raises(LogForked) as raised:
        await read(database, {fine: heads.beginning(fine), forked: Head(Sequence(after), b"\0" * 32)})
    assert (raised.value.tournament_id, raised.value.sequence) == (forked, after)


async def test_a_log_that_lacks_events_of_a_block_is_not_read_past_them(
    database: Database, owner: asyncpg.Connection
) -> None:
    fine, forked = await opened(database, [3]), await opened(database, [3])
    await tamper(owner, line_removed(3), forked)
    with pytest.raises(LogForked) as raised:
        await read(database, {fine: heads.beginning(fine), forked: heads.beginning(forked)})
    assert raised.value.tournament_id == forked


async def test_an_event_that_cannot_be_decoded_is_named(database: Database, owner: asyncpg.Connection) -> None:
    fine, bad = await opened(database, [3]), await opened(database, [3])
    sequence = await append_text(owner, bad, "Nonsense", "{}")
    with pytest.raises(LogUnreadable, match="unknown tag") as raised:
        await read(database, {fine: heads.beginning(fine), bad: heads.beginning(bad)})
    assert (raised.value.tournament_id, raised.value.sequence) == (bad, sequence)
