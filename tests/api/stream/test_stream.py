"""The stream: what it promises, to clients that know nothing else."""

import asyncio
import gc
import json
import re
import socket
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from typing import Any, get_args
from urllib.parse import quote

import asyncpg
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from api.access.auth import LOOKUPS_AT_ONCE_MAX, Scope
from api.desk.desk import Desk
from api.http import connections
from api.stream import followers, frames, pace
from api.stream.public_frames import PUBLIC_LOG
from engine.domain.errors import ShuttingDown
from engine.domain.events import CompetitorChanged, CompetitorRegistered, Event, EventSetAside, RankingClosed
from engine.domain.terms import OPERATOR, ActorId, CompetitorId, RankingId, Sequence, TournamentId
from engine.log import codec, reading, undecoded
from engine.process.time_slices import TimeSlices
from projections.verification.setting_aside import set_aside
from tests.api.streams import add, counted, ended, every_format, heard, listening, raw, standings
from tests.bounds import Bounds
from tests.calls import Calls
from tests.desks import GUARD_SECONDS, holding, until, waiting_for_locks
from tests.histories import any_event
from tests.poison import POISONS, append_text, cut_tail
from tests.projections.working import NEVER_SECONDS
from tests.proxy import proxy
from tests.restoring import backup
from tests.service import Client, Season, Service, deltas, make_token, play_season, serve, slug_of
from tests.spectator import NDJSON, SSE, Spectator, connected, follow
from tests.tournaments import open_new_tournament

MINIMAL = {"Prefer": "return=minimal"}


async def id_of(owner: asyncpg.Connection, season: Season) -> TournamentId:
    slug = season.client.tournament
    tournament_id: TournamentId = await owner.fetchval("SELECT tournament_id FROM tournament WHERE slug = $1", slug)
    return tournament_id


async def events_of(owner: asyncpg.Connection, season: Season) -> list[Any]:
    return await owner.fetch(
        """
        SELECT e.sequence, e.kind, e.actor, e.recorded_at, e.body, e.personal, left(encode(digest, 'hex'), 8) AS digits
        FROM event AS e
        JOIN tournament AS t USING (tournament_id)
        JOIN block AS b ON b.tournament_id = e.tournament_id AND e.sequence BETWEEN b.first_sequence AND b.last_sequence
        WHERE t.slug = $1
        ORDER BY e.sequence
        """,
        season.client.tournament,
    )


@every_format
async def test_a_stream_has_every_event_as_it_is_stored_and_says_when_it_has_caught_up(
    service: Service, season: Season, owner: asyncpg.Connection, media_type: str
) -> None:
    spectator = await heard(service, season.client, media_type=media_type)
    stored = await events_of(owner, season)
    *told, (last, head) = spectator.told
    assert [(name, data) for name, data in told] == [
        (
            event["kind"],
            {
                "sequence": event["sequence"],
                "recorded_at": event["recorded_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                "actor": event["actor"],
            }
            | json.loads(codec.join(event["body"], event["personal"])),
        )
        for event in stored
    ]
    assert (last, head["head"], head["digest"][:8]) == ("caught-up", stored[-1]["sequence"], stored[-1]["digits"])
    assert spectator.last_id == f"{stored[-1]['sequence']}-{stored[-1]['digits']}"
    assert spectator.standings() == await standings(season.client)


async def test_what_happens_reaches_a_listener_from_this_process_and_from_another(
    service: Service, season: Season, peers_client: Client
) -> None:
    spectator = Spectator()
    async with listening(service, season.client) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        for amount in range(1, 6):
            await add(season, amount)
        await connection.feed(spectator, lambda: spectator.count("PointsAdded") >= 5)
        assert (await peers_client.post("competitors.json", {"name": "Eve"})).status == 200
        await connection.feed(spectator, lambda: spectator.told[-1][1].get("name") == "Eve")
    assert spectator.sequences == list(range(1, spectator.sequence + 1))
    assert spectator.standings() == await standings(season.client)


# ── Where a stream goes on ──────────────────────────────────────────────────────────────────────────────


class Recorder(Spectator):
    """Notes events without folding them: a made-up one may name what is not there."""

    def _fold(self, name: str, data: Any) -> None:
        pass


@every_format
async def test_a_client_that_is_cut_off_at_any_byte_continues_without_a_gap(
    service: Service, season: Season, media_type: str
) -> None:
    await add(season, 3)
    await season.client.put(f"competitions/{season.competition_id}/void.json")
    expected = await standings(season.client)
    whole = await raw(service, season.client, media_type)
    rest_after: dict[str | None, bytes] = {None: whole}
    for cut in range(len(whole) + 1):
        spectator = Spectator(media_type)
        spectator.feed(whole[:cut])
        last_id = spectator.last_id
        if last_id not in rest_after:
            rest = Recorder(media_type)
            pieces = []
            async with listening(service, season.client, Accept=media_type, Last_Event_ID=str(last_id)) as connection:
                while not rest.count("caught-up"):
                    pieces.append(await connection.piece())
                    rest.feed(pieces[-1])
            rest_after[last_id] = b"".join(pieces)
        spectator.connect()
        spectator.feed(rest_after[last_id])
        assert spectator.standings() == expected
        assert spectator.sequences == list(range(1, spectator.sequence + 1))
    assert len(rest_after) == spectator.sequence + 1


async def test_a_client_that_takes_an_id_at_its_line_lacks_an_event_only_if_its_last_byte_is_lost(
    service: Service, season: Season
) -> None:
    """Some libraries take it before the blank line at which the standard has an event end."""
    whole = await raw(service, season.client, SSE)
    for cut in range(len(whole) + 1):
        received = whole[:cut]
        ids, events = len(re.findall(rb"^id: .+\n", received, re.MULTILINE)), received.count(b"\n\n")
        assert ids == events or (ids == events + 1 and whole[cut - 1 : cut + 1] == b"\n\n")


async def test_the_header_counts_before_the_query_and_both_take_an_id_or_a_sequence(
    service: Service, season: Season, owner: asyncpg.Connection
) -> None:
    stored = await events_of(owner, season)
    head = stored[-1]["sequence"]
    id_of_3 = f"3-{stored[2]['digits']}"
    for query, headers, first in (
        ("", {}, 1),
        ("?after=0", {}, 1),
        ("?after=3", {}, 4),
        (f"?after={id_of_3}", {}, 4),
        ("", {"Last_Event_ID": "3"}, 4),
        ("", {"Last_Event_ID": id_of_3}, 4),
        ("?after=5", {"Last_Event_ID": id_of_3}, 4),
        ("?after=head", {"Last_Event_ID": id_of_3}, 4),
        ("?after=head", {}, head + 1),
        (f"?after={head}", {}, head + 1),
        ("?after=3", {"Last_Event_ID": ""}, 4),
    ):
        spectator = await heard(service, season.client, query, **headers)
        assert spectator.sequences == list(range(first, head + 1))


@every_format
async def test_an_id_of_another_log_is_answered_by_reset_alone(
    service: Service, season: Season, owner: asyncpg.Connection, media_type: str
) -> None:
    stored = await events_of(owner, season)
    head = stored[-1]
    for other in ("3-00000000", f"{head['sequence'] + 1}-{head['digits']}", f"{2**62}-{head['digits']}"):
        for query, headers in ((f"?after={other}", {}), ("", {"Last_Event_ID": other})):
            spectator = await heard(service, season.client, query, media_type, **headers)
            assert [name for name, _ in spectator.told] == ["reset"]
            assert spectator.told[0][1]["head"] == head["sequence"]
            # A browser reconnects automatically: to the same address, with the last id that it received.
            again = await heard(service, season.client, query, media_type, Last_Event_ID=str(spectator.last_id))
            assert again.count("reset") == 0
            assert again.standings() == await standings(season.client)


async def test_a_start_that_nobody_can_know_is_refused(service: Service, season: Season) -> None:
    head = (await heard(service, season.client)).sequence
    for query, headers, status in (
        (f"?after={head + 1}", {}, 409),
        ("", {"Last-Event-ID": str(head + 1)}, 409),
        ("?after=-1", {}, 400),
        ("?after=01", {}, 400),
        ("?after=3-0000000", {}, 400),
        ("?after=3-0000000G", {}, 400),
        ("?after=", {}, 400),
        ("?after=tail", {}, 400),
        ("", {"Last-Event-ID": "x"}, 400),
        ("?after=1&after=2", {}, 400),
        ("?ranking=x", {}, 400),
        (f"?ranking={2**64}", {}, 400),
        (f"?ranking={10**17}", {}, 404),
        ("?kinds=PointsAdded,Nonsense", {}, 400),
        ("?speed=0", {}, 400),
        ("?speed=0.0001", {}, 400),
        ("?speed=-1", {}, 400),
        ("?speed=1000000.001", {}, 400),
        ("?speed=nan", {}, 400),
        ("", {"Accept": "application/json"}, 406),
        ("", {"Accept": "text/html, text/event-stream;q=0"}, 406),
    ):
        answer = await season.client.get(f"events{query}", headers)
        assert (query, headers, answer.status) == (query, headers, status)
        assert answer.json["status"] == status


async def test_the_format_is_the_one_that_the_client_likes_best(service: Service, season: Season) -> None:
    for accept, media_type in (
        (None, NDJSON),
        ("*/*", NDJSON),
        ("application/*", NDJSON),
        ("text/*", SSE),
        ("text/event-stream", SSE),
        ("TEXT/Event-Stream; charset=utf-8", SSE),
        ("application/x-ndjson;q=0.5, text/event-stream", SSE),
        ("text/event-stream, application/x-ndjson", NDJSON),
        ("*/*, application/x-ndjson;q=0", SSE),
        ("not a header;;", NDJSON),
    ):
        async with listening(service, season.client, **({} if accept is None else {"Accept": accept})) as connection:
            assert (accept, connection.headers["Content-Type"]) == (accept, media_type)
            assert "no-transform" in connection.headers["Cache-Control"]
            assert connection.headers["X-Accel-Buffering"] == "no"
            assert "Content-Encoding" not in connection.headers
        answer = await season.client.send("HEAD", f"/tournament/{season.client.tournament}/events")
        assert (answer.status, answer.body) == (200, b"")


async def test_http_1_0_has_the_stream_without_chunks(service: Service, season: Season) -> None:
    url = URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(
        f"GET /tournament/{season.client.tournament}/events HTTP/1.0\r\n"
        f"Authorization: Bearer {season.client.token}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"chunked" not in head
    spectator = Spectator()
    while not spectator.count("caught-up"):
        spectator.feed(await reader.read(2**16))
    writer.close()
    assert spectator.standings() == await standings(season.client)


# ── Filters ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_stream_of_one_ranking_is_enough_to_fold_it(service: Service, season: Season) -> None:
    for amount in range(1, 4):
        await add(season, amount, who=amount - 1)
    spectator = await heard(service, season.client, f"?ranking={season.ranking_id}")
    expected = {key: lines for key, lines in (await standings(season.client)).items() if key[0] == season.ranking_id}
    assert spectator.standings() == expected
    assert {data["ranking_id"] for name, data in spectator.told if name[0].isupper()} == {season.ranking_id}


async def test_kinds_are_those_events_alone_and_both_filters_count(service: Service, season: Season) -> None:
    everything = await heard(service, season.client)
    for query, wanted in (
        ("kinds=CompetitorRegistered,RankingClosed", lambda n, d: n in ("CompetitorRegistered", "RankingClosed")),
        (
            f"kinds=RankingClosed,RankingCreated&ranking={season.ranking_id}",
            lambda n, d: n == "RankingCreated" and d["ranking_id"] == season.ranking_id,
        ),
        ("kinds=EventSetAside", lambda n, d: False),
    ):
        spectator = await heard(service, season.client, f"?{query}")
        assert spectator.told[:-1] == [(n, d) for n, d in everything.told[:-1] if wanted(n, d)]
        assert spectator.last_id == everything.last_id


async def test_a_filtered_stream_tells_its_position_when_enough_has_passed(
    service: Service, season: Season, bounds: Bounds
) -> None:
    bounds(PASSED_EVENTS_MAX=5)
    spectator = Spectator()
    async with listening(service, season.client, "?after=head&kinds=RankingClosed") as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        start = spectator.told[0][1]["head"]
        for amount in range(1, 6):
            assert spectator.count("position") == 0
            await add(season, amount)
        await connection.feed(spectator, lambda: bool(spectator.count("position")))
    assert spectator.told[1:] == [("position", {"sequence": start + 5})]
    again = await heard(service, season.client, "?kinds=RankingClosed", Last_Event_ID=str(spectator.last_id))
    assert [name for name, _ in again.told] == ["caught-up"]


# ── Time ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(2)
@every_format
async def test_a_silent_stream_gives_a_sign_of_life_and_a_filtered_one_its_position(
    service: Service, season: Season, bounds: Bounds, media_type: str
) -> None:
    bounds(SILENT_SECONDS=0.5)
    spectator = Spectator(media_type)
    async with listening(service, season.client, "?after=head&kinds=RankingClosed", Accept=media_type) as connection:
        await connection.feed(spectator, lambda: spectator.silences >= 2)
        assert [name for name, _ in spectator.told] == ["caught-up"]
        await add(season, 1)
        await connection.feed(spectator, lambda: bool(spectator.count("position")))


async def test_the_past_is_played_with_its_pauses_and_none_is_longer_than_five_seconds(
    service: Service, season: Season, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    loop = asyncio.get_running_loop()
    stored = await events_of(owner, season)
    span_seconds = (stored[-1]["recorded_at"] - stored[0]["recorded_at"]).total_seconds()
    assert pace.PAUSE_SECONDS_MAX == 5

    async def played(query: str) -> list[float]:
        spectator, times = Spectator(), []
        async with listening(service, season.client, query) as connection:
            while not spectator.count("caught-up"):
                spectator.feed(await connection.piece())
                times += [loop.time()] * (len(spectator.sequences) - len(times))
        assert spectator.sequences == [event["sequence"] for event in stored]
        return times

    speed = round(span_seconds / 2, 3)
    times = await played(f"?speed={speed}")
    for event, at in zip(stored, times, strict=True):
        due_seconds = (event["recorded_at"] - stored[0]["recorded_at"]).total_seconds() / speed
        assert at - times[0] >= due_seconds - 0.05
    bounds(PAUSE_SECONDS_MAX=0.02)
    began_at = loop.time()
    await played("?speed=0.001")
    assert loop.time() - began_at >= 0.01 * len(stored)
    monkeypatch.undo()
    await played("?speed=1000000")


# ── Tokens and tickets ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(2)
@pytest.mark.parametrize("end", ["revoked_at = now()", "expires_at = now()"])
@pytest.mark.parametrize("by_ticket", [False, True])
async def test_a_stream_ends_with_the_token_that_opened_it(
    service: Service, season: Season, owner: asyncpg.Connection, end: str, by_ticket: bool
) -> None:
    token = await make_token(service.database)
    other = service.client(season.client.tournament, token)
    query = f"?ticket={(await other.post('tickets.json')).json['ticket']['ticket']}" if by_ticket else ""
    stays, goes = Spectator(), Spectator()
    address = f"{service.url}/tournament/{season.client.tournament}/events{query}"
    headers = {} if by_ticket else {"Authorization": f"Bearer {token}"}
    async with listening(service, season.client) as staying, connected(address, headers) as going:
        await staying.feed(stays, lambda: bool(stays.count("caught-up")))
        await going.feed(goes, lambda: bool(goes.count("caught-up")))
        await owner.execute(f"UPDATE token SET {end} WHERE hash = $1", sha256(token.encode()).digest())
        await ended(going)
        await add(season, 1)
        await staying.feed(stays, lambda: bool(stays.count("PointsAdded")))


async def test_a_ticket_opens_one_stream_of_its_tournament_once(
    service: Service, season: Season, owner: asyncpg.Connection, log_lines: BytesIO
) -> None:
    nobody = service.client(season.client.tournament, None)
    reader = service.client(season.client.tournament, await make_token(service.database, Scope.READ))
    answer = await reader.post("tickets.json")
    assert answer.status == 200
    assert answer.headers["Cache-Control"] == "no-store"
    ticket = answer.json["ticket"]["ticket"]
    row = await owner.fetchrow("SELECT *, expires_at - now() AS left FROM ticket")
    assert row["hash"] == sha256(ticket.encode()).digest()
    assert 50 < row["left"].total_seconds() <= 60
    assert answer.json["ticket"]["expires_at"] == row["expires_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    other = service.client(
        await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)), None
    )
    for who in (other, service.client("nowhere", None)):
        assert (await who.get(f"events?ticket={ticket}")).status == 401
    async with connected(f"{service.url}/tournament/{reader.tournament}/events?ticket={ticket}", {}) as connection:
        spectator = Spectator()
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
    assert spectator.standings() == await standings(season.client)
    assert await owner.fetchval("SELECT count(*) FROM ticket") == 0
    for bad in (ticket, "", "tk_", "x" * 35, "tk_" + "é" * 32):
        assert (await nobody.get(f"events?ticket={quote(bad)}")).status == 401
    assert (await nobody.get("rankings.json?ticket=" + ticket)).status == 401
    log_lines.flush()
    assert ticket not in log_lines.getvalue().decode()


async def test_a_ticket_expires_and_is_no_more_than_its_token(
    service: Service, season: Season, owner: asyncpg.Connection
) -> None:
    nobody = service.client(season.client.tournament, None)
    token = await make_token(service.database)
    client = service.client(season.client.tournament, token)
    expired = (await client.post("tickets.json")).json["ticket"]["ticket"]
    await owner.execute("UPDATE ticket SET expires_at = now()")
    assert (await nobody.get(f"events?ticket={expired}")).status == 401
    of_ended = (await client.post("tickets.json")).json["ticket"]["ticket"]
    assert await owner.fetchval("SELECT count(*) FROM ticket") == 1  # the expired one was cleared away
    await owner.execute("UPDATE token SET revoked_at = now() WHERE hash = $1", sha256(token.encode()).digest())
    assert (await nobody.get(f"events?ticket={of_ended}")).status == 401


async def test_a_good_ticket_opens_its_stream_although_others_fail_at_its_address(dsn: str, season: Season) -> None:
    async with serve(dsn, failures_at_once=2) as careful:
        nobody = careful.client(season.client.tournament, None)
        guessed = [(await nobody.get(f"events?ticket=tk_{number:032}")).status for number in range(4)]
        assert guessed == [401, 401, 429, 429]
        ticket = (await season.client.post("tickets.json")).json["ticket"]["ticket"]
        async with connected(f"{careful.url}/tournament/{nobody.tournament}/events?ticket={ticket}", {}) as connection:
            assert connection.status == 200
        assert (await nobody.get(f"events?ticket={ticket}")).status == 429


async def test_guesses_of_tickets_take_few_connections_once_there_are_too_many(
    dsn: str, season: Season, owner: asyncpg.Connection
) -> None:
    async with serve(dsn, failures_at_once=1) as careful:
        nobody = careful.client(season.client.tournament, None)
        paths = [f"events?ticket=tk_{number:032}" for number in range(9)]
        assert (await nobody.get(paths[0])).status == 401
        async with asyncio.TaskGroup() as guessing, holding(dsn, "LOCK TABLE tallybook.ticket"):
            guesses = [guessing.create_task(nobody.get(path)) for path in paths[1:]]
            await until(lambda: waiting_for_locks(owner, "ticket"))
            assert max([len(await waiting_for_locks(owner, "ticket")) for _ in range(30)]) <= LOOKUPS_AT_ONCE_MAX
        assert {guess.result().status for guess in guesses} <= {429, 503}  # 503: it waited too long for the lock


async def test_the_tickets_of_a_tournament_are_bounded(service: Service, season: Season, bounds: Bounds) -> None:
    bounds(TICKETS_MAX=3)
    answers = [await season.client.post("tickets.json") for _ in range(4)]
    assert [answer.status for answer in answers] == [200, 200, 200, 503]
    ticket = answers[0].json["ticket"]["ticket"]
    async with connected(f"{service.url}/tournament/{season.client.tournament}/events?ticket={ticket}", {}) as one:
        assert one.status == 200
    assert (await season.client.post("tickets.json")).status == 200


async def test_streams_and_tickets_need_a_token_for_the_tournament(service: Service, season: Season) -> None:
    other_id = await open_new_tournament(service.database, actor=OPERATOR)
    foreign = service.client(season.client.tournament, await make_token(service.database, tournament_ids=[other_id]))
    nobody = service.client(season.client.tournament, None)
    for ask, path in (("get", "events"), ("post", "tickets.json")):
        assert (await getattr(nobody, ask)(path)).status == 401
        assert (await getattr(foreign, ask)(path)).status == 404


# ── Bounds ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_listeners_are_bounded_for_a_process_and_requests_have_connections_left(dsn: str) -> None:
    async with serve(dsn, connections=10) as service, AsyncExitStack() as open_streams:
        token = await make_token(service.database)
        client = service.client(
            await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)), token
        )
        for _ in range(9):
            connection = await open_streams.enter_async_context(listening(service, client))
            spectator = Spectator()
            await connection.feed(spectator, lambda one=spectator: bool(one.count("caught-up")))  # type: ignore[misc]
        assert counted("tallybook_listeners") == 9
        answer = await client.get("events")
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
        assert (await client.get("rankings.json")).status == 200


async def test_listeners_are_bounded_for_a_tournament(service: Service, season: Season, bounds: Bounds) -> None:
    bounds(LISTENERS_OF_TOURNAMENT_MAX=2)
    other = service.client(
        await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)),
        season.client.token,
    )
    async with AsyncExitStack() as open_streams:
        for client in (season.client, season.client, other):
            connection = await open_streams.enter_async_context(listening(service, client))
            assert connection.status == 200
            assert await connection.piece()
        assert (await season.client.get("events")).status == 503
    while counted("tallybook_listeners"):
        assert (await season.client.get("rankings.json")).status == 200
    async with listening(service, season.client) as connection:
        assert connection.status == 200


class Deaf:
    """A client that asks for the stream and reads nothing, through a small window."""

    def __init__(self, service: Service, client: Client) -> None:
        url = URL(service.url)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        self.socket.connect((url.host, url.port))
        self.socket.sendall(
            f"GET /tournament/{client.tournament}/events HTTP/1.0\r\n"
            f"Authorization: Bearer {client.token}\r\n\r\n".encode()
        )


async def fill(season: Season, events: int) -> None:
    """Registers competitors with long names: some 350 bytes an event."""
    for start in range(0, events, 500):
        items = [{"name": f"{'n' * 240} {n}"} for n in range(start, min(start + 500, events))]
        answer = await season.client.post("competitors.json", {"items": json.dumps(items)}, MINIMAL)
        assert answer.status == 200


@pytest.mark.long
async def test_a_client_that_does_not_read_holds_one_piece_in_memory_and_is_closed_and_nobody_waits_for_it(
    service: Service, season: Season, bounds: Bounds
) -> None:
    before = counted("tallybook_listeners_ended_total", why="unread")
    spectator = Spectator()
    async with listening(service, season.client) as connection, AsyncExitStack() as leaving:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        for _ in range(5):
            leaving.callback(Deaf(service, season.client).socket.close)
        feeding = asyncio.create_task(connection.feed(spectator, lambda: spectator.sequence >= 20_000))
        await fill(season, 20_000)  # 7 MB
        await feeding
        buffered = [
            one.transport.get_write_buffer_size()
            for one in gc.get_objects()
            if isinstance(one, connections.Connection) and one.transport is not None
        ]
        assert sum(size > 0 for size in buffered) == 5
        assert max(buffered) <= reading.CHUNK_BYTES_MAX + 300 * reading.CHUNK_EVENTS_MAX  # what is handed out at once
        bounds(UNREAD_SECONDS_MAX=0.5)
        while counted("tallybook_listeners_ended_total", why="unread") < before + 5:
            await add(season, 1)
        await connection.feed(spectator, lambda: spectator.count("PointsAdded") > 0)


async def test_a_listener_much_slower_than_the_writers_gets_everything_from_the_log(
    service: Service, season: Season, bounds: Bounds
) -> None:
    bounds(RING_EVENTS_MAX=50)
    with Deaf(service, season.client).socket as slow:
        await fill(season, 3_000)
        loop = asyncio.get_running_loop()
        slow.setblocking(False)
        spectator = Spectator()
        rest = b""
        while b"\r\n\r\n" not in rest:
            rest += await loop.sock_recv(slow, 512)
        spectator.feed(rest.partition(b"\r\n\r\n")[2])
        while spectator.sequence < 3_000:
            spectator.feed(await loop.sock_recv(slow, 512))
            if spectator.sequence % 100 == 0:
                await add(season, 1)
        answer = await season.client.post("competitors.json", {"name": "The last one"})
        while spectator.sequence < int(answer.headers["Tallybook-Sequence"]):
            spectator.feed(await loop.sock_recv(slow, 65_536))
        assert spectator.sequences == list(range(1, spectator.sequence + 1))
        assert spectator.standings() == await standings(season.client)


async def test_each_event_is_encoded_once_for_all_who_are_current(
    service: Service, season: Season, calls: Calls
) -> None:
    async with AsyncExitStack() as open_streams:
        told = []
        for media_type in (SSE, SSE, SSE, NDJSON, NDJSON):
            connection = await open_streams.enter_async_context(
                listening(service, season.client, "?after=head", Accept=media_type)
            )
            spectator = Spectator(media_type)
            await connection.feed(spectator, lambda one=spectator: bool(one.count("caught-up")))  # type: ignore[misc]
            told.append((connection, spectator))
        made = calls(frames, "event")
        for amount in range(1, 11):
            await add(season, amount)
        for connection, spectator in told:
            await connection.feed(spectator, lambda one=spectator: one.count("PointsAdded") == 10)  # type: ignore[misc]
    assert sorted((form, name) for form, name, *_ in made) == sorted(
        [(form, "PointsAdded") for form in frames.StreamFormat] * 10
    )


@pytest.mark.long
async def test_the_rings_of_all_tournaments_together_are_bounded(
    service: Service, season: Season, bounds: Bounds
) -> None:
    bounds(RINGS_BYTES_MAX=30_000)
    spectator = Spectator()
    async with listening(service, season.client) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        for _ in range(5):
            await fill(season, 200)
            await connection.feed(spectator, lambda: spectator.sequence >= 200)
            (follower,) = {one for one in gc.get_objects() if isinstance(one, followers.Follower) and one.listeners}
            streams = follower._streams
            assert 0 < streams.ring_bytes == sum(frame.size_bytes for frame in follower._ring) <= 30_000
    while counted("tallybook_listeners"):
        assert (await season.client.get("rankings.json")).status == 200
    assert streams.ring_bytes == 0


# ── Breaks ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_client_folds_what_the_service_shows_through_restarts_and_two_writers(dsn: str) -> None:
    async with serve(dsn) as other, AsyncExitStack() as first:
        service = await first.enter_async_context(serve(dsn))
        token = await make_token(other.database)
        slug = await slug_of(other.database, await open_new_tournament(other.database, actor=OPERATOR))
        season = await play_season(other.client(slug, token))
        spectators = [Spectator(media_type) for media_type in (SSE, NDJSON) * 3]
        url = service.url
        last = 0

        def address() -> str:
            return f"{url}/tournament/{slug}/events"

        listening_to = [
            asyncio.create_task(follow(address, token, one, lambda one=one: one.sequence >= last > 0))  # type: ignore[misc]
            for one in spectators
        ]
        for _ in range(3):
            client = service.client(slug, token)
            for amount in range(1, 21):
                await add(season, amount, who=amount % 3)
                line = deltas((season.ids[0], season.unity_id, -amount))
                assert (await client.put(f"{season.path}/add.json", {"participants_delta": line})).status == 200
            await first.aclose()
            service = await first.enter_async_context(serve(dsn))
            url = service.url
        answer = await season.client.post("competitors.json", {"name": "The last one"})
        last = int(answer.headers["Tallybook-Sequence"])
        async with asyncio.timeout(GUARD_SECONDS):
            await asyncio.gather(*listening_to)
        expected = await standings(season.client)
        for spectator in spectators:
            assert spectator.sequences == list(range(1, last + 1))
            assert spectator.standings() == expected


async def test_streams_end_at_once_when_the_service_stops(dsn: str) -> None:
    async with AsyncExitStack() as running:
        service = await running.enter_async_context(serve(dsn))
        token = await make_token(service.database)
        client = service.client(
            await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR)), token
        )
        async with connected(
            f"{service.url}/tournament/{client.tournament}/events", {"Authorization": f"Bearer {token}"}
        ) as connection:
            spectator = Spectator()
            await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
            async with asyncio.timeout(GUARD_SECONDS):
                await running.aclose()
            assert await connection.piece() == b""


async def test_a_restored_database_ends_the_streams_and_resets_who_comes_back_with_what_is_lost(dsn: str) -> None:
    async with serve(dsn) as service:
        token = await make_token(service.database)
        slug = await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR))
        client = service.client(slug, token)
        season = await play_season(client)
        behind, ahead = Spectator(), Spectator()
        address = f"{service.url}/tournament/{slug}/events"
        headers = {"Authorization": f"Bearer {token}"}
        async with connected(address, headers) as connection:
            await connection.feed(behind, lambda: bool(behind.count("caught-up")))
        async with backup(dsn) as restore, connected(address, headers) as connection:
            await connection.feed(ahead, lambda: bool(ahead.count("caught-up")))
            await add(season, 5)
            await connection.feed(ahead, lambda: bool(ahead.count("PointsAdded")))
            await restore()
            await ended(connection)
            while (await client.get("rankings.json")).status != 200:
                pass
            await add(season, 7)
            last = behind.sequence + 1
            resets = []
            for one in (behind, ahead):
                before = one.told
                await follow(
                    lambda: address,
                    token,
                    one,
                    lambda one=one: (
                        one.sequence >= last
                        and one.count("caught-up") > 0
                        and one.told[-1][0] == "caught-up"
                        and one.last_id is not None
                        and one.last_id.startswith(f"{last}-")
                    ),
                )  # type: ignore[misc]
                resets.append(one.told is not before)
            assert resets == [False, True]
            for one in (behind, ahead):
                assert one.standings() == await standings(client)


async def test_a_stream_tells_nothing_of_another_log_than_its_board_is_of(
    service: Service, season: Season, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """The log is replaced when the process has folded an event that it has not yet read for its listeners."""
    bounds(NEWS_SECONDS=NEVER_SECONDS)  # nobody else notices
    tournament_id = await id_of(owner, season)
    is_asked, goes_on, read = asyncio.Event(), asyncio.Event(), undecoded.stored_of

    async def held(*asked: Any, **bounds: Any) -> Any:
        is_asked.set()
        await goes_on.wait()
        return await read(*asked, **bounds)

    spectator = Spectator()
    async with listening(service, season.client) as connection, asyncio.timeout(GUARD_SECONDS):
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        monkeypatch.setattr(undecoded, "stored_of", held)
        last = spectator.sequence
        await add(season, 5)
        await is_asked.wait()
        await cut_tail(owner, tournament_id, Sequence(last))
        assert await append_text(owner, tournament_id, *POISONS["unknown tag"]) == last + 1
        goes_on.set()
        await connection.feed(spectator, lambda: False)
    assert spectator.sequence == last


@pytest.mark.parametrize("why", ["unknown tag", "unknown unity"])
async def test_an_event_that_cannot_be_folded_stops_the_stream_and_is_sent_as_nothing_once_set_aside(
    service: Service, season: Season, owner: asyncpg.Connection, why: str
) -> None:
    await add(season, 1)
    spectator = Spectator()
    async with listening(service, season.client) as connection:
        await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
        kind, text = POISONS[why]
        ids = {"ranking": season.ranking_id, "unity": season.unity_id, "competitor": season.ids[0]}
        tournament_id = await id_of(owner, season)
        sequence = await append_text(owner, tournament_id, kind, text % ids)
        await connection.feed(spectator, lambda: False)
    assert spectator.sequence == sequence - 1
    assert (await season.client.get("events")).status == 503
    await set_aside(service.database, tournament_id, Sequence(sequence))
    while (await season.client.get("rankings.json")).status == 503:
        pass
    await add(season, 2)
    again = Spectator()
    for one in (spectator, again):
        await follow(
            lambda: f"{service.url}/tournament/{season.client.tournament}/events",
            str(season.client.token),
            one,
            lambda one=one: one.sequence == sequence + 2,  # type: ignore[misc]
        )
        assert one.sequences == list(range(1, sequence + 3))
        (told,) = [data for name, data in one.told if name == "set-aside"]
        assert told.keys() == {"sequence", "recorded_at", "actor"}
        (naming,) = [data for name, data in one.told if name == "EventSetAside"]
        assert (told["sequence"], naming["set_aside"], naming["sequence"]) == (sequence, sequence, sequence + 1)
        assert one.standings() == await standings(season.client)


async def test_a_live_that_folded_an_event_set_aside_since_starts_again(
    service: Service, season: Season, owner: asyncpg.Connection
) -> None:
    """A client can have it from a version that could fold the event, and reset is the only way to take it back."""
    tournament_id = await id_of(owner, season)
    kind, text = POISONS["unknown tag"]
    sequence = await append_text(owner, tournament_id, kind, text)
    await set_aside(service.database, tournament_id, Sequence(sequence))
    stored = await events_of(owner, season)
    had_it = await heard(service, season.client, Last_Event_ID=f"{sequence}-{stored[sequence - 1]['digits']}")
    assert [name for name, _ in had_it.told] == ["reset"]
    had_not = await heard(service, season.client, Last_Event_ID=f"{sequence - 1}-{stored[sequence - 2]['digits']}")
    assert [name for name, _ in had_not.told] == ["set-aside", "EventSetAside", "caught-up"]


async def test_a_stream_whose_token_nobody_can_look_up_ends_and_is_taken_up_again(dsn: str) -> None:
    async with proxy(dsn) as between, serve(between.dsn) as service, serve(dsn) as other:
        token = await make_token(other.database)
        slug = await slug_of(other.database, await open_new_tournament(other.database, actor=OPERATOR))
        season = await play_season(other.client(slug, token))
        address, spectator = f"{service.url}/tournament/{slug}/events", Spectator()
        before = counted("tallybook_listeners_ended_total", why="token_unconfirmed")
        async with connected(address, {"Authorization": f"Bearer {token}"}) as connection:
            await connection.feed(spectator, lambda: bool(spectator.count("caught-up")))
            between.fall_silent(answers_only=False)
            await ended(connection)
        assert counted("tallybook_listeners_ended_total", why="token_unconfirmed") == before + 1
        await add(season, 4)
        between.release()
        between.cut_all()
        await follow(lambda: address, token, spectator, lambda: bool(spectator.count("PointsAdded")))
        assert spectator.standings() == await standings(season.client)


# ── Forms ───────────────────────────────────────────────────────────────────────────────────────────────


def stored_of(event: Event) -> undecoded.Stored:
    kind, body = event.tag, codec.text_of(event)
    moment = datetime(2026, 5, 2, 17, 4, 11, 5, UTC)
    return undecoded.Stored(Sequence(7), moment, ActorId(3), kind, body, b"\x1f" * 32)


def test_a_follower_of_a_ranking_gets_its_events_but_none_that_were_set_aside() -> None:
    stored = stored_of(RankingClosed(ranking_id=RankingId(4)))
    wanted = frames.Wanted(ranking_id=RankingId(4))
    assert wanted.lets_through(frames.Frame(stored))
    assert not wanted.lets_through(frames.Frame(msgspec.structs.replace(stored, kind=None)))


@given(any_event(), st.sampled_from(frames.StreamFormat))
def test_a_client_reads_of_any_event_what_was_stored(event: Event, form: frames.StreamFormat) -> None:
    stored = stored_of(event)
    spectator = Recorder(form)
    spectator.feed(frames.Frame(stored).sent_as(form))
    assert spectator.last_id == "7-1f1f1f1f"
    ((name, data),) = spectator.told
    assert name == stored.kind
    told = {key: data.pop(key) for key in ("sequence", "recorded_at", "actor")}
    assert told == {"sequence": 7, "recorded_at": "2026-05-02T17:04:11.000005Z", "actor": 3}
    body = json.loads(stored.body)
    if isinstance(event, EventSetAside):
        body["set_aside"] = body.pop("sequence")
    assert data == body


def test_no_event_but_one_has_a_field_of_a_name_that_the_stream_gives_to_all() -> None:
    own = {"sequence", "recorded_at", "actor"}
    assert {kind for kind in get_args(Event) if own & set(kind.__struct_fields__)} == {EventSetAside}


@given(st.sampled_from(frames.StreamFormat), st.text("a\x1c\x85\u2028\u2029", min_size=1))
def test_no_library_takes_a_character_of_an_event_for_the_end_of_a_line(form: frames.StreamFormat, name: str) -> None:
    stored = stored_of(CompetitorRegistered(competitor_id=CompetitorId(1), name=name))
    for streamed in frames.WHOLE_LOG, PUBLIC_LOG:
        sent = frames.Frame(stored, streamed).sent_as(form)
        assert sent.decode().splitlines() == sent.decode()[:-1].split("\n")
        spectator = Recorder(form)
        spectator.feed(sent)
        assert [data["name"] for _, data in spectator.told] == [name]


@given(st.sampled_from(frames.StreamFormat), st.sampled_from(["\n", "\r", "\r\n", "\n\n"]))
def test_a_body_that_the_service_would_not_write_stays_in_its_line(form: frames.StreamFormat, end: str) -> None:
    """As a tournament that comes from elsewhere could have it."""
    stored = msgspec.structs.replace(
        stored_of(CompetitorChanged(competitor_id=CompetitorId(1))), body=f'{{{end}"competitor_id":{end}1}}{end}'
    )
    spectator = Recorder(form)
    spectator.feed(frames.Frame(stored).sent_as(form))
    assert [data["competitor_id"] for _, data in spectator.told] == [1]
    empty = Recorder(form)
    empty.feed(frames.Frame(msgspec.structs.replace(stored, body="{}")).sent_as(form))
    assert len(empty.told) == 1


async def test_a_stream_that_begins_when_its_process_has_ended_the_others_is_refused(
    desk: Desk, tournament_id: TournamentId
) -> None:
    """It was counted as allowed before, and looks for its database meanwhile."""
    streams = followers.Streams(desk.live_pool, desk.database, TimeSlices(), listeners_max=1)
    running = asyncio.create_task(streams.run())
    await until(lambda: streams._tasks is not None)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    nobody: Any = None
    async with desk.live_pool.pinned(tournament_id) as live:
        with pytest.raises(ShuttingDown):
            await streams.enter(live, nobody, frames.WHOLE_LOG, live.head)
    assert streams.count == 0
