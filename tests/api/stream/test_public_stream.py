"""The stream of a published tournament: that of a log that ends at the public end, in shapes of its own."""

import gc
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Final

import asyncpg
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.problems import STATUSES
from api.stream import followers, frames
from api.stream.followers import Follower, Pieces
from api.stream.frames import Frame, StreamFormat
from api.stream.listeners import Listener
from api.stream.public_frames import PUBLIC_KINDS, PUBLIC_LOG
from engine.domain.errors import ListenersFull
from engine.domain.events import Event
from engine.domain.terms import ActorId, Sequence, TournamentId
from engine.log import codec
from engine.log.undecoded import Stored
from projections.verification.setting_aside import set_aside
from tests.api.asking import refused
from tests.api.public_boards import NOWHERE, Board, Shorter, change, give, play_on, told
from tests.api.streams import counted, ended, every_format, heard, listening, raw
from tests.bounds import Bounds
from tests.calls import Calls
from tests.desks import open_arena, until
from tests.histories import any_event, moments
from tests.poison import POISONS, append_text
from tests.proxy import proxy
from tests.service import Client, Season, Service, make_token, play_season, serve, slug_of
from tests.spectator import NDJSON, SSE, Lines, Spectator, connected, follow

HIDDEN_KINDS: Final = {
    "CompetitionAdded",  # a competition is shown as the cause of points
    "CompetitionChanged",
    "CompetitionVoided",  # what it takes back tells; it may have given points in a hidden ranking alone
    "CompetitionUnvoided",
    "CompetitorsStruck",
    "CompetitorsUnstruck",
    "ScoringDeclared",  # the points that it gives tell
    "TournamentPublished",
    "TournamentUnpublished",
    "TournamentArchived",
    "TournamentDeleted",
    "TournamentRestored",
    "PublicationFrozen",
    "PublicationRevealed",
    "RankingHidden",
    "RankingShown",
    "PresentationChanged",  # its pages show it
    "RankingsOrdered",  # it may name a hidden one
    "EventSetAside",
}


async def standings(board: Board) -> dict[tuple[int, str], Lines]:
    """Those of every unity, as the service shows them to the public."""
    found: dict[tuple[int, str], Lines] = {}
    for ranking in (await board.get("tournament.json")).json["tournament"]["rankings"]:
        path = f"rankings/{ranking['id']}"
        for unity in (await board.get(f"{path}.json")).json["ranking"]["unities"]:
            lines = (await board.get(f"{path}/standings.json?unity={unity['id']}")).json["standings"]["standings"]
            found[ranking["id"], unity["name"]] = [
                (line["position"], line["competitor_id"], line["total"]) for line in lines
            ]
    return found


@every_format
async def test_a_client_of_the_public_stream_alone_folds_what_the_public_sees(
    service: Service, season: Season, peers_client: Client, board: Board, media_type: str
) -> None:
    await change(season.client, published="true")
    spectator = Spectator(media_type)
    async with listening(service, board.slug, Accept=media_type) as connection:
        assert connection.headers["Content-Type"] == media_type
        assert "no-transform" in connection.headers["Cache-Control"]
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        assert spectator.standings() == await standings(board)
        for amount in range(1, 6):
            await give(season, 0, amount)
        assert (await peers_client.post("competitors.json", {"name": "Eve"})).status == 200
        await connection.feed(spectator, lambda: spectator.told[-1][1].get("name") == "Eve")
    assert spectator.sequences == list(range(1, spectator.sequence + 1))
    assert spectator.standings() == await standings(board)


async def test_a_freeze_holds_the_stream_a_reveal_lets_it_go_on_and_unpublishing_ends_it(
    service: Service, peer: Service, season: Season, board: Board
) -> None:
    """In the process that was asked, and in another one."""
    await change(season.client, published="true")
    before = counted("tallybook_listeners_ended_total", why="unpublished")
    async with listening(service, board.slug) as here, listening(peer, board.slug) as there:
        both = [(here, Spectator()), (there, Spectator())]

        async def feed(sequence: int) -> None:
            for connection, spectator in both:
                await connection.feed(spectator, lambda one=spectator: one.sequence >= sequence)  # type: ignore[misc]

        end = await board.sequence()
        await feed(end)
        assert (await change(season.client, freeze="now"))["public_end"] == end
        first, second, third = [await give(season, 0, 1) for _ in range(3)]
        await change(season.client, reveal=second)
        await feed(second)
        assert [spectator.sequence for _, spectator in both] == [second, second]
        assert both[0][1].standings() == both[1][1].standings() == await standings(board)
        late = await heard(service, board.slug)
        assert (late.sequence, late.told[-1]) == (second, ("caught-up", {"head": second, "frozen": True}))
        await change(season.client, reveal="all")
        await feed(third)
        await change(season.client, published="false")
        for connection, _ in both:
            await ended(connection)
    assert first < second < third
    assert counted("tallybook_listeners_ended_total", why="unpublished") == before + 2
    assert (await board.get("events")).status == 404


async def test_a_listener_during_a_freeze_hears_nothing_until_something_is_revealed(
    service: Service, season: Season, board: Board, bounds: Bounds
) -> None:
    bounds(SILENT_SECONDS=0.3)
    await change(season.client, freeze=3)
    await change(season.client, published="true")
    spectator = Spectator(SSE)
    async with listening(service, board.slug, "?after=head", Accept=SSE) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        await give(season, 0, 1)
        await connection.feed(spectator, lambda: spectator.silences >= 2)
        assert spectator.told == [("caught-up", {"head": 3, "frozen": True})]
        await change(season.client, reveal=4)
        await connection.feed(spectator, lambda: spectator.sequence >= 4)
        await change(season.client, reveal="all")
        await connection.feed(spectator, lambda: spectator.count("caught-up") == 2)
        await change(season.client, freeze="now")
        await connection.feed(spectator, lambda: spectator.count("caught-up") == 3)
    assert spectator.sequences[0] == 4


async def test_a_client_reached_only_after_an_erasure_reads_on_during_a_freeze(
    service: Service, season: Season, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    await change(season.client, freeze=3)
    await change(season.client, published="true")
    spectators = [Spectator(SSE), Spectator(SSE)]
    taken, take = list[Listener](), Listener.take

    def taking(listener: Listener, pieces: Pieces) -> bool:
        taken.append(listener)
        (follower,) = [one for one in gc.get_objects() if isinstance(one, Follower) and listener in one.listeners]
        follower.erased += 1
        return take(listener, pieces)

    async with (
        listening(service, board.slug, "?after=head", Accept=SSE) as first,
        listening(service, board.slug, "?after=head", Accept=SSE) as second,
    ):
        await first.feed(spectators[0], lambda: bool(spectators[0].count("caught-up")))
        await second.feed(spectators[1], lambda: bool(spectators[1].count("caught-up")))
        monkeypatch.setattr(Listener, "take", taking)
        await change(season.client, reveal=4)
        await first.feed(spectators[0], lambda: spectators[0].sequence >= 4)
        await second.feed(spectators[1], lambda: spectators[1].sequence >= 4)
    assert len(taken) == 1


async def test_a_listener_starts_over_when_a_ranking_is_hidden_or_shown(
    service: Service, peer: Service, season: Season, board: Board
) -> None:
    """In both processes, also while all is held. Nothing that comes after names the hidden ranking."""
    await give(season, 0, 3)
    await change(season.client, published="true")
    for hidden in ("true", "false"):
        async with listening(service, board.slug) as here, listening(peer, board.slug) as there:
            both = [(here, Spectator()), (there, Spectator())]
            for connection, spectator in both:
                await connection.feed(spectator, lambda one=spectator: bool(one.count("caught-up")))  # type: ignore[misc]
            await season.client.put(f"{season.path}/visibility.json", {"hidden": hidden})
            await give(season, 1, 5)
            for connection, spectator in both:
                await connection.feed(spectator, lambda one=spectator: bool(one.count("reset")))  # type: ignore[misc]
                await ended(connection)
                assert spectator.told[-1][0] == "reset"
        for one in (service, peer):
            again = await heard(one, board.slug)
            assert {data.get("ranking_id") for _, data in again.told} == (
                {None, season.closed_ranking_id} | ({season.ranking_id} if hidden == "false" else set())
            )
        await change(season.client, **({"freeze": "now"} if hidden == "true" else {"reveal": "all"}))


async def test_nothing_reveals_a_competition_that_gave_points_only_in_a_hidden_ranking(
    service: Service, season: Season, board: Board
) -> None:
    client, competition = season.client, season.competition_id
    await client.put(f"{season.path}/visibility.json", {"hidden": "true"})
    await give(season, 0, 3, competition_id=competition)
    striking = {"competitors": season.ids[0]}
    for what, form in (("strike", striking), ("unstrike", striking), ("void", {}), ("unvoid", {})):
        assert (await client.put(f"competitions/{competition}/{what}.json", form)).status == 200
    await change(client, published="true")
    spectator = await heard(service, board.slug)
    assert [one for one in spectator.told if one[1].get("competition_id") == competition] == []
    assert spectator.standings() == await standings(board)


# ── Just what a log that ends there shows ───────────────────────────────────────────────────────────────


async def test_the_bytes_are_those_of_a_log_that_ends_there(
    service: Service,
    season: Season,
    board: Board,
    owner: asyncpg.Connection,
    clients_tournament: TournamentId,
    other_dsn: str,
    other_owner: asyncpg.Connection,
) -> None:
    """At every event of a small history at which a block ends, in both formats: ids as well. Only `frozen` tells that a
    freeze holds it. The other log is published by another event, which the public is not shown here."""
    await play_on(season)
    shorter = Shorter(owner, other_owner, clients_tournament)
    ends = [row[0] for row in await owner.fetch("SELECT last_sequence FROM block ORDER BY last_sequence")]
    await change(season.client, freeze=1)
    await change(season.client, published="true")
    await shorter.begin()
    async with serve(other_dsn) as other:
        for end in ends:
            await shorter.add_block(end)
            if end > 1:
                await change(season.client, reveal=end)
            async with other.desk.live_pool.pinned(clients_tournament) as live:
                await other.desk.live_pool.make_current(live)
                live.board.publication = msgspec.structs.replace(live.board.publication, published=True)
                for media_type in (SSE, NDJSON):
                    here, there = await raw(service, board.slug, media_type), await raw(other, board.slug, media_type)
                    assert here.count(b',"frozen":true') == 1
                    assert here.replace(b',"frozen":true', b"") == there, (end, media_type)


async def test_nobody_and_nothing_secret_is_named(service: Service, season: Season, board: Board) -> None:
    await play_on(season)
    await season.client.post("competitors.json", {"name": "Child", "parent": season.ids[0]})
    await change(season.client, published="true")
    spectator = await heard(service, board.slug)
    assert {key for _, data in spectator.told for key in data} == {
        *("sequence", "recorded_at", "name", "tags", "color", "competitor_id", "ranking_id", "participants"),
        *("main_unity_id", "main_unity_name", "unity_id", "sort", "criteria", "deltas", "competition_id", "reason"),
        *("reverses", "removed", "head"),
    } | ({"description"} & {key for _, data in spectator.told for key in data})
    assert spectator.count("other") >= 2  # the competition, and the publication


def test_of_every_kind_of_event_it_is_decided_whether_the_public_hears_it() -> None:
    assert codec.tags() == PUBLIC_KINDS | HIDDEN_KINDS
    assert not PUBLIC_KINDS & HIDDEN_KINDS


@given(any_event(), st.tuples(*[st.binary(min_size=32, max_size=32)] * 2), moments, st.sampled_from(StreamFormat))
def test_what_is_said_of_an_event_depends_on_nothing_secret(
    event: Event, digests: tuple[bytes, bytes], recorded_at: datetime, form: StreamFormat
) -> None:
    """Neither on its sender, nor on the digest of its block, which is made of secrets, and of later events."""
    kind, body = event.tag, codec.text_of(event)
    recorded_at = max(recorded_at, datetime(1970, 1, 1, tzinfo=UTC))
    one, other = [
        Frame(Stored(Sequence(7), recorded_at, ActorId(actor), kind, body, digest), PUBLIC_LOG)
        for actor, digest in enumerate(digests)
    ]
    assert one.sent_as(form) == other.sent_as(form)
    sent = one.sent_as(StreamFormat.NDJSON)
    name, data = msgspec.json.decode(sent)["event"], msgspec.json.decode(sent)["data"]
    assert name == (kind if kind in PUBLIC_KINDS else "other")
    stored = msgspec.json.decode(body)
    assert all(data[key] == stored[key] for key in data.keys() - {"sequence", "recorded_at"})


# ── Where it goes on ────────────────────────────────────────────────────────────────────────────────────


@every_format
async def test_a_client_that_was_cut_off_continues_without_a_gap_from_each_id(
    service: Service, season: Season, board: Board, media_type: str
) -> None:
    await play_on(season)
    await change(season.client, published="true")
    end = b"\n\n" if media_type == SSE else b"\n"
    whole = await raw(service, board.slug, media_type)
    spectator = Spectator(media_type)
    pieces = [piece + end for piece in whole.split(end)[:-1]]
    for number, piece in enumerate(pieces[:-1]):
        spectator.feed(piece)
        rest = b"".join(pieces[number + 1 :])
        async with listening(
            service, board.slug, Accept=media_type, Last_Event_ID=str(spectator.last_id)
        ) as connection:
            read = b""
            while not read.endswith(pieces[-1]):
                read += await connection.piece()
        assert read == rest


@every_format
async def test_an_id_of_another_log_is_answered_by_reset_which_names_the_public_end_alone(
    service: Service, season: Season, board: Board, media_type: str
) -> None:
    await change(season.client, freeze=3)
    await change(season.client, published="true")
    real = (await heard(service, board.slug)).last_id
    assert real is not None
    digits = real.partition("-")[2]
    for other in ("3-00000000", f"4-{digits}", f"{2**62}-{digits}"):
        for query, headers in ((f"?after={other}", {}), ("", {"Last_Event_ID": other})):
            spectator = await heard(service, board.slug, query, media_type, **headers)
            assert spectator.told == [("reset", {"head": 3})]
            again = await heard(service, board.slug, query, media_type, Last_Event_ID=str(spectator.last_id))
            assert again.sequences == [1, 2, 3]
    answer = await board.get("events?after=4")
    assert (answer.status, answer.json["message"]) == (409, "The log ends at sequence 3; nothing follows 4 yet.")
    for query in ("after=x", "ranking=1", "kinds=PointsAdded", "speed=2", "ticket=x", "after=1&after=2"):
        refused(await board.get(f"events?{query}"), 400, query.partition("=")[0])
    assert (await board.get("events", {"Accept": "text/html"})).status == 406
    head = await service.client(board.slug, None).send("HEAD", f"/board/{board.slug}/events")
    assert (head.status, head.body) == (200, b"")


@every_format
async def test_what_is_set_aside_beyond_the_public_end_resets_nobody(
    service: Service, season: Season, board: Board, owner: asyncpg.Connection, media_type: str
) -> None:
    """Neither those who go on from the public end nor those who go on from before it."""
    await change(season.client, freeze="now")
    await change(season.client, published="true")
    whole = await raw(service, board.slug, media_type)
    tournament_id = await owner.fetchval("SELECT tournament_id FROM tournament WHERE slug = $1", board.slug)
    sequence = await append_text(owner, tournament_id, *POISONS["unknown tag"])
    await set_aside(service.database, tournament_id, Sequence(sequence))
    while (await season.client.get("rankings.json")).status == 503:
        pass
    assert await raw(service, board.slug, media_type) == whole
    end = b"\n\n" if media_type == SSE else b"\n"
    spectator, pieces = Spectator(media_type), [piece + end for piece in whole.split(end)[:-1]]
    for number, piece in enumerate(pieces):
        spectator.feed(piece)
        rest = pieces[number + 1 :] or pieces[-1:]  # at the end, that it has caught up is said again
        async with listening(
            service, board.slug, Accept=media_type, Last_Event_ID=str(spectator.last_id)
        ) as connection:
            read = b""
            while len(read) < len(b"".join(rest)):
                read += await connection.piece()
        assert read == b"".join(rest)


async def test_what_is_not_published_is_as_what_does_not_exist(service: Service, season: Season, board: Board) -> None:
    nowhere = Board(service, NOWHERE)
    for path in ("events", "events?after=x", "events?after=100"):
        assert told(await board.get(path)) == told(await nowhere.get(path))
    await change(season.client, published="true")
    await change(season.client, published="false")
    assert told(await board.get("events")) == told(await nowhere.get("events"))


# ── Bounds ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_each_event_is_read_and_encoded_once_for_all_of_the_public(
    service: Service, season: Season, board: Board, calls: Calls
) -> None:
    await change(season.client, published="true")
    async with AsyncExitStack() as open_streams:
        listeners = []
        for media_type in (SSE, SSE, SSE, NDJSON, NDJSON):
            connection = await open_streams.enter_async_context(
                listening(service, board.slug, "?after=head", Accept=media_type)
            )
            spectator = Spectator(media_type)
            await connection.feed(spectator, lambda one=spectator: bool(one.count("caught-up")))  # type: ignore[misc]
            listeners.append((connection, spectator))
        (follower,) = {one for one in gc.get_objects() if isinstance(one, followers.Follower) and one.listeners}
        assert len(follower.current) == 5
        made = calls(frames, "event")
        for amount in range(1, 11):
            await give(season, 0, amount)
        for connection, spectator in listeners:
            await connection.feed(spectator, lambda one=spectator: one.count("PointsAdded") == 10)  # type: ignore[misc]
    assert sorted((form, name) for form, name, *_ in made) == sorted(
        [(form, "PointsAdded") for form in StreamFormat] * 10
    )


async def test_the_streams_of_an_address_are_bounded_and_those_of_the_public_leave_room_for_others(dsn: str) -> None:
    async with serve(dsn, connections=12) as service, AsyncExitStack() as open_streams:  # 10 of them may be streams
        season = await published(service)
        client = season.client
        for _ in range(8):
            connection = await open_streams.enter_async_context(listening(service, client.tournament))
            assert connection.status == 200
            assert await connection.piece()
        answer = await service.client(client.tournament, None).send("GET", f"/board/{client.tournament}/events")
        assert (answer.status, answer.headers["Retry-After"]) == (STATUSES[ListenersFull], "5")
        with_token = {"Authorization": f"Bearer {client.token}"}
        async with connected(f"{service.url}/tournament/{client.tournament}/events", with_token) as connection:
            assert connection.status == 200


async def test_the_streams_of_one_address_are_bounded(dsn: str, bounds: Bounds) -> None:
    bounds(LISTENERS_OF_VISITOR_MAX=2)
    async with serve(dsn, proxies=1) as service, AsyncExitStack() as open_streams:
        slug = (await published(service)).client.tournament

        async def status(address: str) -> int:
            connection = await open_streams.enter_async_context(listening(service, slug, X_Forwarded_For=address))
            assert await connection.piece()
            return connection.status

        assert [await status(f"192.0.2.{n}") for n in (1, 1, 1, 2)] == [200, 200, 503, 200]
        await open_streams.aclose()
        await until(lambda: not counted("tallybook_listeners"))
        assert await status("192.0.2.1") == 200


async def published(service: Service) -> Season:
    """A season that the public sees."""
    tournament_id = (await open_arena(service.database)).tournament_id
    slug = await slug_of(service.database, tournament_id)
    season = await play_season(service.client(slug, await make_token(service.database)))
    await change(season.client, published="true")
    return season


async def test_the_requests_of_an_address_are_counted_where_those_of_tokens_are(dsn: str, season: Season) -> None:
    await change(season.client, published="true")
    async with serve(dsn, requests_per_second=1) as careful:
        board = Board(careful, season.client.tournament)
        assert (await board.get("tournament.json")).status == 200
        assert 429 in [(await board.get("events?after=x")).status for _ in range(3)]


# ── Breaks ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_it_ends_when_nobody_can_tell_whether_it_is_still_published_and_is_taken_up_again(dsn: str) -> None:
    async with proxy(dsn) as between, serve(between.dsn) as service, serve(dsn) as other:
        season = await published(other)
        slug, spectator = season.client.tournament, Spectator()
        async with listening(service, slug) as connection:
            await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
            between.fall_silent(answers_only=False)
            await ended(connection)
        await give(season, 0, 4)
        between.release()
        between.cut_all()
        address = f"{service.url}/board/{slug}/events"
        await follow(lambda: address, None, spectator, lambda: bool(spectator.count("PointsAdded")))
        assert spectator.sequences == list(range(1, spectator.sequence + 1))
        assert spectator.standings() == await standings(Board(other, slug))
