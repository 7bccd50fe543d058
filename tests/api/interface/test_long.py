"""Long answers are what short ones would be, whatever happens while they are made, and hold what may be held."""

import asyncio
import gc
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from typing import Final, Literal

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from api.desk.desk import open_desk
from api.http.outgoing import CHUNK_BYTES, STEP_BYTES, Later, Long, Made, Outgoing, Taken, joined, regrouped
from api.interface.paging import PageQuestion
from api.interface.rendering import TaggedBody, whole
from api.interface.resources import previews, standings
from api.interface.resources.previews import answer_preview
from api.interface.resources.rankings import RankingQuestion, RankingsQuestion
from api.service.app import make_front, serving
from api.service.settings import Settings
from benchmarks.machine import rss_bytes
from engine.database.pool import open_database
from engine.domain.commands import VoidCompetition
from engine.domain.errors import Conflict, OutcomeUnknown, QueueFull, Unacceptable
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    RankingClosed,
    RankingCreated,
    RankingsOrdered,
    Recorded,
)
from engine.domain.judging import decide
from engine.domain.terms import OPERATOR, RankingId, Sequence
from engine.process.telemetry import Lines
from engine.process.time_slices import TimeSlices
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.live.tournament import LiveTournament
from tests.api.crowds import all_long, append, crowd, go_on, live_of, points, recorded
from tests.api.rendered import ADD, BY_NAME, answered
from tests.bounds import Bounds, set_bounds
from tests.desks import GUARD_SECONDS
from tests.histories import caused_of, logs, result_histories, sums_of, unhurried
from tests.service import Client, Service, make_token, slug_of
from tests.tournaments import open_new_tournament

PAGES: Final = [PageQuestion(1, 2), PageQuestion(2, 2), PageQuestion(1, 200), PageQuestion(10**17, 200)]


def asked(live: LiveTournament) -> dict[str, bytes | TaggedBody | Later]:
    """Every answer that there is."""
    board = live.board
    found: dict[str, bytes | TaggedBody | Later] = {"rankings": answered(live, "GET rankings.json", RankingsQuestion())}
    brief = RankingsQuestion(omit="competitors")
    found["rankings without competitors"] = answered(live, "GET rankings.json", brief)
    found["ordered rankings"] = answered(live, "PUT rankings.json", RankingsOrdered(rankings=()))
    for n, page in enumerate(PAGES):
        found[f"competitors {n}"] = answered(live, "GET competitors.json", page)
        found[f"competitions {n}"] = answered(live, "GET competitions.json", page)
    for ranking_id, ranking in board.rankings.items():
        created = RankingCreated(
            ranking_id=ranking_id,
            name="",
            participants=(),
            main_unity_id=next(iter(ranking.unities)),
            main_unity_name="",
        )
        found[f"ranking {ranking_id}"] = answered(live, ADD, RankingQuestion(ranking_id))
        found[f"new ranking {ranking_id}"] = answered(live, "POST rankings.json", created)
    for competitor_id in board.competitors:
        registered = CompetitorRegistered(competitor_id=competitor_id, name="")
        found[f"competitor {competitor_id}"] = answered(live, "POST competitors.json", registered)
    for competition_id in board.competitions:
        added = CompetitionAdded(competition_id=competition_id, group_id=1)
        found[f"competition {competition_id}"] = answered(live, "POST competitions.json", added)
    return found


PREVIEW: Final = BY_NAME["GET competitions/{competition_id}/void.json"].answer


# ── What they are ───────────────────────────────────────────────────────────────────────────────────────


@unhurried
@given(logs())
def test_a_long_preview_is_what_a_short_one_is(log: list[Recorded]) -> None:
    live = live_of(log)

    async def read(_sequence: Sequence, counts: WhatCounts) -> CompetitionSums:
        return sums_of(log, counts)

    for competition_id in [c for c, competition in live.board.competitions.items() if competition.voided_at is None]:
        caused = caused_of([one.event for one in log], competition_id)
        try:
            decided = decide(live.board, VoidCompetition(competition_id=competition_id, caused=caused))
        except Conflict:
            continue
        short = asyncio.run(answer_preview(live, PREVIEW, decided, read))
        assert isinstance(short, bytes)
        with pytest.MonkeyPatch.context() as patch:
            set_bounds(patch, PREVIEW_AT_ONCE_MAX=-1)
            patch.setattr(previews, "_MOVES_OF_CHUNK", 2)
            long = asyncio.run(answer_preview(live, PREVIEW, decided, read))
            assert isinstance(long, Long)
            chunks = long.chunks()
            begun = next(chunks) + next(chunks)
            for n, ranking_id in enumerate(live.board.rankings):  # others go on
                closing = RankingClosed(ranking_id=ranking_id)
                go_on(live, [Recorded(Sequence(len(log) + n + 1), log[-1].recorded_at, OPERATOR, None, closing)])
            assert begun + b"".join(chunks) == short
            live = live_of(log)
            set_bounds(patch, PREVIEW_LINES_MAX=-1)
            with pytest.raises(Unacceptable):
                asyncio.run(answer_preview(live, PREVIEW, decided, read))


@unhurried
@given(logs() | logs(of=result_histories()), st.data())
def test_a_long_answer_is_what_a_short_one_is_however_long_it_takes(log: list[Recorded], data: st.DataObject) -> None:
    begun_at = data.draw(st.integers(0, len(log)))
    short = {name: whole(body) for name, body in asked(live_of(log[:begun_at])).items()}
    live = live_of(log[:begun_at])
    with all_long(data.draw(st.sampled_from([0, 2, standings.MADE_LINES_MAX]))):
        begun = {name: body() for name, body in asked(live).items() if not isinstance(body, bytes | TaggedBody)}
        assert not live.board.rankings or {name for name in short if "ranking" in name} <= begun.keys()
        made = {name: long.chunks() for name, long in begun.items()}
        found = {name: next(chunks, b"") for name, chunks in made.items()}
        for recorded in log[begun_at:]:
            go_on(live, [recorded])
            for name, chunks in made.items():
                found[name] += next(chunks, b"")
        for name, chunks in made.items():
            found[name] += b"".join(chunks)
            assert b"".join(begun[name].chunks()) == found[name]  # for who comes later
    assert found == {name: short[name] for name in begun}


def begun(later: bytes | TaggedBody | Later) -> Long:
    assert not isinstance(later, bytes | TaggedBody)
    return later()


def test_equal_requests_at_the_same_head_share_the_answer() -> None:
    live = live_of(recorded(crowd(5_000, unities=2)))
    first, second = (begun(answered(live, ADD, RankingQuestion(RankingId(1)))) for _ in range(2))
    assert first is second
    assert first.parts == second.parts
    standing = first.parts[-1]
    assert isinstance(standing, Made)
    one, other = ([piece for piece in standing.chunks() if piece] for _ in range(2))
    assert len(one) > 1
    assert all(a is b for a, b in zip(one, other, strict=True))
    go_on(live, recorded([points()], live.head.sequence))
    third = begun(answered(live, ADD, RankingQuestion(RankingId(1))))
    assert (third is first, third.etag == first.etag) == (False, False)
    # Of what it is made from, only the standing of the unity that has changed is new.
    assert len(set(map(id, third.parts)) - set(map(id, first.parts))) == 1


def test_what_is_larger_than_all_that_is_kept_is_not_kept_and_drives_nothing_out(
    bounds: Bounds,
) -> None:
    live = live_of([])
    bounds(RENDERED_BYTES_MAX=100_000, KEPT_BYTES_MAX=50_000)
    small, large = b"x" * 10, b"y" * 60_000
    for made in (small, large):
        for _ in range(2):
            assert live.cache.rendered(made[:1], 0, lambda made=made: made, len) is made  # type: ignore[misc]
    rendered: list[bytes] = []
    live.cache.rendered(b"x", 0, lambda: rendered.append(b"x") or b"", len)  # type: ignore[func-returns-value]
    live.cache.rendered(b"y", 0, lambda: rendered.append(b"y") or b"", len)  # type: ignore[func-returns-value]
    assert rendered == [b"y"]


@given(
    made=st.sampled_from([joined, regrouped]),
    sizes=st.lists(st.integers(0, 3) | st.integers(0, 2 * STEP_BYTES), max_size=60),
    repeated=st.integers(1, 10),
)
def test_a_chunk_is_made_in_small_steps(
    made: Callable[[Iterator[bytes]], Iterator[bytes]], sizes: list[int], repeated: int
) -> None:
    pieces = [b"x" * size for size in sizes * repeated]
    taken: list[bytes] = []

    def taking() -> Iterator[bytes]:
        for piece in pieces:
            taken.append(piece)
            yield piece

    chunks = []
    for chunk in made(taking()):
        assert sum(map(len, taken[:-1])) <= STEP_BYTES
        taken.clear()
        chunks.append(chunk)

    comma = b"," if made is joined else b""
    assert b"".join(chunks) == comma.join(filter(None, pieces))
    assert all(len(chunk) > CHUNK_BYTES for chunk in list(filter(None, chunks))[:-1])


def test_a_part_that_failed_is_not_taken_for_a_whole_one() -> None:
    def failing() -> Iterator[bytes]:
        yield b"a"
        raise KeyError("b")

    part = Made(failing(), 1)
    with pytest.raises(KeyError):
        list(part.chunks())
    with pytest.raises(RuntimeError):
        list(part.chunks())


def test_pages_past_the_end_are_not_kept_and_others_are_charged_for_what_is_around_them() -> None:
    live = live_of(recorded(crowd(3)))
    before = live.size_bytes()
    for n in range(2, 1_000):
        answered(live, "GET competitors.json", PageQuestion(n, 200))
        answered(live, "GET competitions.json", PageQuestion(n, 200))
    assert live.size_bytes() == before
    gc.collect()
    answered(live, "GET competitors.json", PageQuestion(1, 3))  # and with it the pieces
    charged = live.size_bytes()
    for n in range(4, 1_004):
        answered(live, "GET competitors.json", PageQuestion(1, n))
    assert live.size_bytes() - charged > 1_000 * (800 + 300)


# ── Over HTTP ───────────────────────────────────────────────────────────────────────────────────────────


async def raw(service: Service, request: str) -> tuple[bytes, bytes]:
    """Head and rest of what is answered until the connection is closed."""
    url = URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(request.encode())
    async with asyncio.timeout(GUARD_SECONDS):
        head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return head, rest


async def test_a_long_list_comes_in_chunks_and_has_an_etag_that_changes_with_the_head(
    dsn: str, service: Service, client: Client, peers_client: Client
) -> None:
    await append(dsn, client.tournament, crowd(5_000))
    first, second = await client.get("rankings.json"), await peers_client.get("rankings.json")
    assert first.headers["Transfer-Encoding"] == "chunked"
    assert (first.body, first.headers["ETag"]) == (second.body, second.headers["ETag"])
    (ranking,) = first.json["rankings"]["ranking"]
    assert [c["id"] for c in ranking["competitors"]] == list(range(1, 5_001))
    assert [c["lft"] for c in ranking["competitors"]] == list(range(1, 10_001, 2))
    same = await client.get("rankings.json", {"If-None-Match": first.headers["ETag"]})
    assert (same.status, same.body) == (304, b"")
    assert (await client.put("competitors/7.json", {"name": "New"})).status == 200
    assert (await client.get("rankings.json")).headers["ETag"] != first.headers["ETag"]


async def test_a_client_that_cannot_take_chunks_reads_until_the_connection_ends(
    dsn: str, service: Service, client: Client
) -> None:
    await append(dsn, client.tournament, crowd(5_000))
    whole = await client.get("rankings.json")
    for lines in ("", "Connection: keep-alive\r\n"):
        head, body = await raw(
            service,
            f"GET /tournament/{client.tournament}/rankings.json HTTP/1.0\r\nAuthorization: Bearer {client.token}\r\n"
            f"{lines}\r\n",
        )
        assert b"chunked" not in head
        assert b"Content-Length" not in head
        assert b"\r\nConnection: close\r\n" in head
        assert body == whole.body


async def test_changes_and_the_past_of_a_large_ranking_show_all_of_it(
    dsn: str, client: Client, peers_client: Client
) -> None:
    await append(dsn, client.tournament, crowd(5_000, unities=2))
    delta = [{"competitor_id": 7, "unities": [{"unity_id": 1_001, "delta": 3}]}]
    added = await client.put("rankings/1/add.json", {"participants_delta": json.dumps(delta)})
    standings = added.json["ranking"]["unities"]
    assert [(u["name"], u["version"], len(u["competitors_ranking"])) for u in standings] == [
        ("points", 1, 5_000),
        ("u1", 2, 5_000),
    ]
    assert standings[1]["competitors_ranking"][0] == {"competitor_id": 7, "position": 1, "total": 3}
    assert {(line["position"], line["total"]) for line in standings[1]["competitors_ranking"][1:]} == {(2, 0)}
    now = await client.get("rankings/1/standings.json")
    assert now.json["ranking"]["unities"] == standings
    assert len(added.json["ranking"]["competitors"]) == 5_000
    sequence = now.json["ranking"]["sequence"]
    await client.put("rankings/1/add.json", {"participants_delta": json.dumps(delta)})
    then = await peers_client.get(f"rankings/1/standings.json?at_sequence={sequence}")
    assert then.json == now.json
    again = await client.get(f"rankings/1/standings.json?at_sequence={sequence}")
    assert (again.headers["ETag"], again.body) == (then.headers["ETag"], then.body)


# ── How much is held ────────────────────────────────────────────────────────────────────────────────────


async def test_a_long_answer_waits_for_room_and_is_not_begun_where_there_is_none(
    bounds: Bounds,
) -> None:
    def later(size_bytes: int) -> Later:
        return lambda: Long(lambda: iter(()), (Taken(size_bytes),), end=b"", etag="")

    account = Outgoing(TimeSlices(), bytes_max=1_000)
    first = await account.begun(later(1_000))  # all that there may be
    second = await account.begun(later(1))
    assert account.held_bytes == 1_001
    waiting = asyncio.create_task(account.begun(later(1)))
    assert not (await asyncio.wait([waiting], timeout=0.2))[0]
    del first
    assert (await waiting).parts[0].size_bytes == 1
    assert account.held_bytes == 2
    del second, waiting

    third = await account.begun(later(1_001))
    bounds(ROOM_SECONDS_MAX=0.0)
    with pytest.raises(QueueFull):
        await account.begun(later(1))
    with pytest.raises(OutcomeUnknown):
        await account.begun_after_all(later(1))
    del third
    assert (await account.begun(later(1))).parts


def test_what_several_hold_is_counted_once() -> None:
    account = Outgoing(TimeSlices())
    shared, own = Taken(100), b"x" * 10
    account.hold(shared, own)
    account.hold(shared)
    assert account.held_bytes == 110
    account.let_go(shared, own)
    assert account.held_bytes == 100
    account.let_go(shared)
    assert account.held_bytes == 0


class Silent:
    """A connection whose client does not read."""

    def __init__(self, account: Outgoing) -> None:
        self._account = account

    def end(self, reason: Literal["unread"], *, at_once: bool) -> None:
        assert (reason, at_once) == ("unread", True)
        self._account.was_read(self)


async def test_what_grows_while_it_is_held_is_counted_as_large_as_it_is_and_makes_others_give_way() -> None:
    account, part = Outgoing(TimeSlices(), bytes_max=100), Taken(40)
    first, second = Silent(account), Silent(account)
    account.hold(part)
    for silent in (first, second):
        account.wait_to_be_read(silent, 5)
    part.size_bytes = 90
    account.measure()
    assert account.held_bytes == 100
    part.size_bytes = 91
    account.measure()
    assert account.held_bytes == 96  # the first one is gone: it has been idle longest
    account.was_read(first)
    account.let_go(part)
    assert account.held_bytes == 5


class Unread:
    """Connections that ask and do not read."""

    def __init__(self, url: str) -> None:
        self._url = URL(url)
        self.open: list[socket.socket] = []

    def __enter__(self) -> "Unread":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.open:
            connection.close()

    def ask(self, request: bytes) -> None:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        connection.connect((self._url.host, self._url.port))
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.send(request)
        self.open.append(connection)


async def _forty_unread(dsn: str, unsent_bytes: int, rounds: int) -> tuple[int, int, int]:
    """What the account says at most, what it says when nothing is asked any more, and by how much memory has grown."""
    async with open_database(dsn, name="test") as database, open_desk(database) as desk:
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        slug, token = await slug_of(database, tournament_id), await make_token(database)
        await append(dsn, slug, crowd(10_000, rankings=4))
        listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        front = make_front(desk, Lines(BytesIO()), Settings(unsent_bytes=unsent_bytes))
        async with serving(front, listener):
            port = listener.getsockname()[1]
            head = f"HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
            get = f"GET /tournament/{slug}/rankings.json {head}\r\n".encode()
            line = '[{"competitor_id":1,"unities":[{"unity_id":1000,"delta":1}]}]'
            form = f"participants_delta={line}"
            put = (
                f"PUT /tournament/{slug}/rankings/1/add.json {head}"
                f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n{form}"
            ).encode()

            async def answered() -> None:
                """Somebody who reads is answered."""
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert b" 200 " in await reader.read()
                writer.close()

            before, most = rss_bytes(os.getpid()), 0
            with Unread(f"http://127.0.0.1:{port}") as unread:
                for _ in range(rounds):
                    unread.ask(get * 3)
                    unread.ask(put)  # and at another head the next
                    for _ in range(5):
                        await asyncio.sleep(0.01)
                        most = max(most, front.outgoing.held_bytes)
                    await answered()
                grown = rss_bytes(os.getpid()) - before
            async with asyncio.timeout(GUARD_SECONDS):
                while front.outgoing.held_bytes:
                    await answered()
            return most, front.outgoing.held_bytes, grown


def test_forty_connections_that_do_not_read_cost_little_and_what_they_cost_is_counted(dsn: str) -> None:
    most, left, grown = uvloop.run(_forty_unread(dsn, 128 << 20, 20))
    assert 1_000_000 < most < 48 << 20
    assert left == 0
    assert grown < 64 << 20


def test_the_reader_that_has_been_idle_for_longest_gives_way(dsn: str) -> None:
    # There is room for some six of them, of a standing and a chunk each, beside what all share.
    most, left, _ = uvloop.run(_forty_unread(dsn, 8 << 20, 20))
    assert most < (8 << 20) + (6 << 20)
    assert left == 0
