"""The Python client follows a tournament: each event once and in order, across whatever becomes of its connections."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from types import SimpleNamespace

import asyncpg
import pytest
from yarl import URL

from assurance.faults.wire import Way, Wire, tcp, wire
from engine.domain.terms import OPERATOR, Sequence, TournamentId
from projections.verification.setting_aside import set_aside
from tallybook_client import (
    CaughtUp,
    Client,
    Conflict,
    Delta,
    NewCompetitor,
    Patience,
    Position,
    Recorded,
    Reset,
    SetAside,
    StreamEvent,
    Unauthenticated,
    Unavailable,
    sending,
)
from tests.api.clients.conftest import AT_ONCE
from tests.desks import GUARD_SECONDS
from tests.poison import POISONS, append_text
from tests.restoring import backup
from tests.service import Season, Service, deltas, make_token, play_season, serve, slug_of
from tests.tournaments import open_new_tournament


async def up_to(events: AsyncGenerator[StreamEvent, None], ends: Callable[[StreamEvent], bool]) -> list[StreamEvent]:
    """The events up to the first for which `ends`."""
    found = []
    async with asyncio.timeout(GUARD_SECONDS), aclosing(events) as following:
        async for event in following:
            found.append(event)
            if ends(event):
                break
    return found


def sequences(events: list[StreamEvent]) -> list[int]:
    return [event.sequence for event in events if isinstance(event, Recorded)]


@pytest.fixture
async def between(service: Service) -> AsyncIterator[Wire]:
    port = URL(service.url).port
    assert port is not None
    async with wire(tcp(port)) as between:
        yield between


@pytest.mark.parametrize(("way", "step"), [(Way.ASKED, 23), (Way.ANSWERED, 401)])
async def test_no_event_is_lost_or_comes_twice_wherever_a_connection_is_cut(
    between: Wire, season: Season, way: Way, step: int
) -> None:
    """The cut comes a little later each time: in the request, or in the head of the answer, then in its events."""
    slug, token = season.client.tournament, season.client.token or ""
    point = {"participants_delta": deltas((season.ids[0], season.unity_id, 1))}
    cuts = 0
    async with Client(f"http://127.0.0.1:{between.port}", token, patience=AT_ONCE) as client:
        while between.cuts == cuts:  # until all was carried before the cut
            between.cut_after(way, 1 + step * cuts, reset=cuts % 2 == 0)
            cuts += 1
            head = int((await season.client.put(f"{season.path}/add.json", point)).headers["Tallybook-Sequence"])
            found = await up_to(client.follow(slug), lambda event: isinstance(event, CaughtUp))
            assert sequences(found) == list(range(1, head + 1))
    assert cuts > 10


async def test_a_connection_that_is_lost_after_a_long_silence_is_opened_again(
    between: Wire, season: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    slug, token = season.client.tournament, season.client.token or ""
    point = {"participants_delta": deltas((season.ids[0], season.unity_id, 1))}
    async with (
        asyncio.timeout(GUARD_SECONDS),
        Client(f"http://127.0.0.1:{between.port}", token) as client,
        aclosing(client.follow(slug)) as events,
    ):
        while not isinstance(await anext(events), CaughtUp):
            pass
        monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: 1e12))
        between.reset_all()
        head = int((await season.client.put(f"{season.path}/add.json", point)).headers["Tallybook-Sequence"])
        while not isinstance(event := await anext(events), Recorded):
            pass
    assert event.sequence == head


async def test_it_continues_after_an_id_a_sequence_or_the_head(tallybook: Client, season: Season) -> None:
    slug = season.client.tournament
    events = await up_to(tallybook.follow(slug), lambda event: isinstance(event, CaughtUp))
    *recorded, end = events
    assert isinstance(end, CaughtUp)
    third = recorded[2]
    assert isinstance(third, Recorded)
    for after in (third.id, third.sequence):
        again = await up_to(tallybook.follow(slug, after=after), lambda event: isinstance(event, CaughtUp))
        assert again == events[3:]
    assert await up_to(tallybook.follow(slug, after="head"), lambda _: True) == [end]
    with pytest.raises(Conflict):
        await up_to(tallybook.follow(slug, after=end.head + 1), lambda _: True)


async def test_a_filter_says_how_far_it_has_looked(tallybook: Client, season: Season) -> None:
    slug = season.client.tournament
    of_kind = tallybook.follow(slug, kinds=["CompetitorRegistered"])
    found = await up_to(of_kind, lambda event: isinstance(event, CaughtUp))
    assert {event.kind for event in found if isinstance(event, Recorded)} == {"CompetitorRegistered"}
    of_ranking = tallybook.follow(slug, ranking=season.ranking_id, speed=1_000_000)
    assert len(await up_to(of_ranking, lambda event: isinstance(event, CaughtUp))) > 1


async def test_position_is_where_a_filtered_stream_continues(tallybook: Client, season: Season) -> None:
    """A position comes after each 1,000 events that were left out."""
    slug = season.client.tournament
    for _ in range(2):
        await tallybook.register_competitors(slug, [NewCompetitor("Ada")] * 1_000)
    events = await up_to(
        tallybook.follow(slug, kinds=["RankingClosed"]), lambda event: isinstance(event, Position | CaughtUp)
    )
    position = events[-1]
    assert isinstance(position, Position)
    rest = await up_to(tallybook.follow(slug, after=position.id), lambda event: isinstance(event, CaughtUp))
    assert sequences(rest)[0] == position.sequence + 1


async def test_after_a_restore_it_says_so_and_starts_again(dsn: str) -> None:
    async with serve(dsn) as service:
        token = await make_token(service.database)
        slug = await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR))
        season = await play_season(service.client(slug, token))
        async with (
            backup(dsn) as restore,
            Client(service.url, token, patience=AT_ONCE) as client,
            aclosing(client.follow(slug, after="head")) as events,
        ):
            assert isinstance(await anext(events), CaughtUp)
            await client.add_points(slug, season.ranking_id, [Delta(season.ids[0], season.unity_id, 1)])
            lost = await anext(events)
            assert isinstance(lost, Recorded)
            await restore()
            found = await up_to(events, lambda event: isinstance(event, CaughtUp) and event.head < lost.sequence)
    assert isinstance(found[0], CaughtUp | Reset)
    after = found[[isinstance(event, Reset) for event in found].index(True) + 1 :]
    assert sequences(after) == list(range(1, lost.sequence))


async def test_an_event_that_was_set_aside_is_no_event_to_fold(
    tallybook: Client, season: Season, service: Service, clients_tournament: TournamentId, owner: asyncpg.Connection
) -> None:
    sequence = await append_text(owner, clients_tournament, *POISONS["unknown tag"])
    await set_aside(service.database, clients_tournament, Sequence(sequence))
    events = tallybook.follow(season.client.tournament, after=sequence - 1)
    aside, naming, _ = await up_to(events, lambda event: isinstance(event, CaughtUp))
    assert isinstance(aside, SetAside)
    assert isinstance(naming, Recorded)
    assert (aside.sequence, naming.kind, naming.data["set_aside"]) == (sequence, "EventSetAside", sequence)


async def test_it_ends_with_the_token(tallybook: Client, season: Season, service: Service) -> None:
    async with Client(service.url, "tb_nobody") as stranger:
        with pytest.raises(Unauthenticated):
            await up_to(stranger.follow(season.client.tournament), lambda _: True)


async def test_it_gives_up_when_its_patience_is_at_an_end(between: Wire, season: Season) -> None:
    between.refusing = True
    patience = Patience(pause_seconds=0.0, attempts_max=3)
    address = f"http://127.0.0.1:{between.port}"
    async with Client(address, season.client.token or "", patience=patience) as client:
        with pytest.raises(Unavailable):
            await up_to(client.follow(season.client.tournament), lambda _: True)
