"""Compressed answers are the same as others in fewer bytes: which are compressed, which never, and what is kept."""

import asyncio
import gzip
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Final, NamedTuple

import pytest
from aiohttp import ClientSession
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from api.http import compression, outgoing
from api.http.compression import (
    AT_ONCE_BYTES_MAX,
    COMPRESSING_MAX,
    PLAIN_BYTES_MAX,
    Compression,
    compressed,
    compressed_chunks,
)
from api.http.front import Front
from api.http.outgoing import Outgoing
from api.http.preferences import ENCODINGS_KEPT_CHARACTERS_MAX, Encodings, accepted_encodings
from api.http.reply import Reply
from api.http.router import IncomingRequest, Router
from api.interface.declarations import method_of
from api.service.app import serving
from engine.process.telemetry import Lines
from engine.process.time_slices import TimeSlices
from tests.api.asking import POSSIBLE, ask, path_of, query_of, with_points
from tests.api.crowds import append, crowd
from tests.api.fuzzed import examples, header_bytes
from tests.api.rendered import BY_NAME
from tests.bounds import Bounds, set_bounds
from tests.desks import until
from tests.service import Client, Season, Service, serve


@pytest.fixture
async def season(season: Season) -> Season:
    return await with_points(season)


GZIP: Final = {"Accept-Encoding": "gzip"}
ALWAYS: Final = {"Accept-Encoding": "gzip, identity;q=0"}
"""Small bodies too."""
READS: Final = [name for name, operation in BY_NAME.items() if method_of(operation) == "GET"]


class Raw(NamedTuple):
    """An answer as it came, not decompressed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_compressed(self) -> bool:
        """Whether it is. It says so just if it is."""
        says = self.headers.get("Content-Encoding") == "gzip"
        assert says == self.body.startswith(b"\x1f\x8b")
        assert says == self.headers.get("ETag", "").endswith('-gzip"') or "ETag" not in self.headers
        return says


async def raw(client: Client, path: str, headers: Mapping[str, str], method: str = "GET") -> Raw:
    path = path if path.startswith("/") else f"/tournament/{client.tournament}/{path}"
    bearer = {"Authorization": f"Bearer {client.token}"}
    async with (
        ClientSession(auto_decompress=False, skip_auto_headers=["Accept-Encoding"]) as session,
        session.request(method, URL(client._url + path, encoded=True), headers=bearer | dict(headers)) as response,
    ):
        return Raw(response.status, response.headers, await response.read())


# ── Every answer ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_compressed_answer_is_the_same_in_other_bytes(season: Season, subtests: pytest.Subtests) -> None:
    for name in READS:
        with subtests.test(name):
            path = path_of(name, season) + query_of(name)
            plain = await raw(season.client, path, {})
            small = await raw(season.client, path, ALWAYS)
            assert (plain.status, plain.is_compressed, small.status, small.is_compressed) == (200, False, 200, True)
            assert gzip.decompress(small.body) == plain.body
            assert small.headers["Content-Length"] == str(len(small.body))
            assert small.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
            if "ETag" in plain.headers:
                assert small.headers["ETag"] == plain.headers["ETag"][:-1] + '-gzip"'
            assert (await raw(season.client, path, GZIP)).is_compressed == (len(plain.body) > PLAIN_BYTES_MAX)
            for headers, got in (({}, plain), (ALWAYS, small)):
                head = await raw(season.client, path, headers, "HEAD")
                same = ("Content-Length", "Content-Encoding", "Content-Type", "ETag", "Vary")
                assert (head.status, head.body) == (200, b"")
                assert [head.headers.get(one) for one in same] == [got.headers.get(one) for one in same]
                part = await raw(season.client, path, {**headers, "Range": "bytes=0-9"})
                assert (part.status, part.body) == (200, got.body)  # whole: nobody offers ranges
                assert "Accept-Ranges" not in part.headers


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
async def test_the_documentation_is_compressed_for_everybody(service: Service, season: Season, path: str) -> None:
    nobody = service.client(season.client.tournament, None)
    plain, small = [await raw(nobody, path, headers) for headers in ({}, GZIP)]
    assert (plain.is_compressed, small.is_compressed) == (False, True)
    assert gzip.decompress(small.body) == plain.body
    assert small.headers["Content-Type"] == plain.headers["Content-Type"]
    assert len(small.body) < min(60_000, len(plain.body) // 3)
    assert (await raw(nobody, path, GZIP | {"If-None-Match": small.headers["ETag"]})).status == 304


async def test_the_answer_to_a_change_is_never_compressed(season: Season, subtests: pytest.Subtests) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            answer = await ask(name, season, season.client, ALWAYS)
            assert answer.status == 200
            assert not {"Content-Encoding", "Vary"} & answer.headers.keys()


async def test_refusals_health_and_figures_are_never_compressed(service: Service, season: Season) -> None:
    for path, status in (
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/nowhere", 404),
        ("competitors/999999.json", 404),
        ("rankings.json?omit=" + "x" * 2_000, 400),
        (f"{season.path}/standings.json?top=0", 400),
    ):
        answer = await raw(season.client, path, ALWAYS)
        assert (path, answer.status, answer.is_compressed) == (path, status, False)
        assert "Vary" not in answer.headers
    nobody = service.client(season.client.tournament, None)
    assert ((await raw(nobody, "rankings.json", ALWAYS)).status, (await raw(nobody, "x", ALWAYS)).status) == (401, 404)


async def test_a_long_answer_is_compressed_in_chunks_while_it_is_made(
    dsn: str, service: Service, client: Client
) -> None:
    await append(dsn, client.tournament, crowd(5_000))
    for path in ("rankings.json", "rankings/1/standings.json"):
        plain, small = [await raw(client, path, headers) for headers in ({}, GZIP)]
        assert plain.headers["Transfer-Encoding"] == "chunked"
        assert small.is_compressed
        assert small.headers["Transfer-Encoding"] == "chunked"
        assert gzip.decompress(small.body) == plain.body
        head = await raw(client, path, GZIP, "HEAD")
        assert (head.headers["ETag"], head.headers["Content-Encoding"]) == (small.headers["ETag"], "gzip")
        unchanged = await raw(client, path, GZIP | {"If-None-Match": small.headers["ETag"]})
        assert (unchanged.status, unchanged.body) == (304, b"")
        again = await raw(client, path, GZIP)
        assert (again.headers["ETag"], again.body) == (
            small.headers["ETag"],
            small.body,
        )  # a strong tag: the same bytes


async def test_a_client_that_decompresses_automatically_need_not_know(season: Season) -> None:
    async with ClientSession(headers={"Authorization": f"Bearer {season.client.token}"}) as session:
        url = f"{season.client._url}/tournament/{season.client.tournament}/rankings.json"
        async with session.get(url, headers=ALWAYS) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert await response.read() == (await season.client.get("rankings.json")).body


# ── Conditions ──────────────────────────────────────────────────────────────────────────────────────────


async def test_unchanged_is_what_the_client_has_in_an_encoding_that_it_takes(season: Season) -> None:
    path = f"{season.path}.json"
    plain = (await raw(season.client, path, {})).headers["ETag"]
    small = (await raw(season.client, path, ALWAYS)).headers["ETag"]
    both = {"Accept-Encoding": "gzip, identity;q=0.5"}
    refused_gzip = {"Accept-Encoding": "gzip;q=0"}
    await season.client.put(f"{season.path}/information.json", {"description": "x" * PLAIN_BYTES_MAX})
    long_plain = (await raw(season.client, path, {})).headers["ETag"]
    long_small = (await raw(season.client, path, both)).headers["ETag"]
    assert len({plain, small, long_plain, long_small}) == 4
    cases: list[tuple[Mapping[str, str], str, str | None]] = [
        ({}, long_plain, long_plain),
        ({}, long_small, None),  # what it cannot read is of no use to it
        (refused_gzip, long_small, None),
        (refused_gzip, f"{long_small}, {long_plain}", long_plain),
        (ALWAYS, long_small, long_small),
        (ALWAYS, f"W/{long_small}", long_small),
        (ALWAYS, long_plain, None),
        (both, long_plain, long_plain),
        (both, f"{long_plain}, {long_small}", long_small),
        (both, f"{plain}, {small}", None),
        (both, "*", long_small),
        ({}, "*", long_plain),
    ]
    for headers, asked, tag in cases:
        answer = await raw(season.client, path, {**headers, "If-None-Match": asked})
        assert (headers, asked, answer.status) == (headers, asked, 304 if tag else 200)
        assert answer.headers["Vary"] == "Accept-Encoding"
        assert "Content-Encoding" not in answer.headers or answer.status == 200
        assert tag is None or answer.headers["ETag"] == tag


async def test_the_tag_of_any_encoding_is_one_of_the_resource(season: Season) -> None:
    path = f"{season.path}.json"
    for headers in ({}, ALWAYS):
        tag = (await raw(season.client, path, headers)).headers["ETag"]
        for name, status in (("New", 200), ("Newer", 412)):
            changed = await season.client.put(f"{season.path}/information.json", {"name": name}, {"If-Match": tag})
            assert changed.status == status


# ── What is compressed at once, elsewhere, not at all ───────────────────────────────────────────────────


def text(size: int, letter: bytes = b"a") -> bytes:
    return letter * size


@asynccontextmanager
async def answering(bodies: Mapping[str, bytes], front_of: Compression | None = None) -> AsyncIterator[Client]:
    """A server with these bodies at /b/NAME, whose ETag is their letter and size."""
    under_way = Outgoing(TimeSlices())
    compressing = front_of or Compression(under_way)
    router = Router()

    async def answer(incoming: IncomingRequest) -> Reply:
        body = bodies[incoming.parameters["name"]]
        return await compressing.reply(incoming.request, body, etag=f"{body[:1].decode()}{len(body)}")

    router.add("GET", "/b/{name}", answer)
    listener = socket.create_server(("127.0.0.1", 0))
    async with serving(Front(router, Lines(BytesIO()), under_way), listener), ClientSession() as session:
        yield Client(session, f"http://127.0.0.1:{listener.getsockname()[1]}", "", None)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The thread of each body that is compressed."""
    found: list[int] = []

    def noted(body: bytes) -> bytes:
        found.append(threading.get_ident())
        return compressed(body)

    monkeypatch.setattr(compression, "compressed", noted)
    return found


@pytest.mark.parametrize(
    ("size", "is_compressed", "elsewhere"),
    [
        (PLAIN_BYTES_MAX, False, False),
        (PLAIN_BYTES_MAX + 1, True, False),
        (AT_ONCE_BYTES_MAX, True, False),
        (AT_ONCE_BYTES_MAX + 1, True, True),
    ],
)
async def test_a_body_is_compressed_if_it_is_worth_it_and_in_another_thread_if_it_is_large(
    threads: list[int], size: int, is_compressed: bool, elsewhere: bool
) -> None:
    async with answering({"x": text(size)}) as client:
        answer = await raw(client, "/b/x", GZIP)
        assert answer.is_compressed == is_compressed
        assert (gzip.decompress(answer.body) if is_compressed else answer.body) == text(size)
        assert [thread != threading.get_ident() for thread in threads] == ([elsewhere] if is_compressed else [])
        assert (await raw(client, "/b/x", {})).body == text(size)
        assert (await raw(client, "/b/x", ALWAYS)).is_compressed


async def test_what_many_ask_for_is_compressed_once_until_it_changes(threads: list[int]) -> None:
    for size in (2_000, AT_ONCE_BYTES_MAX + 1):
        threads.clear()
        bodies = {"x": text(size)}
        async with answering(bodies) as client:
            answers = await asyncio.gather(*(raw(client, "/b/x", GZIP) for _ in range(20)))
            assert all(answer == answers[0]._replace(headers=answer.headers) for answer in answers)
            assert len(threads) == 1
            bodies["x"] = text(size, b"b")
            assert gzip.decompress((await raw(client, "/b/x", GZIP)).body) == text(size, b"b")
            assert len(threads) == 2


async def test_what_is_kept_is_bounded_in_bytes_and_what_nobody_asked_for_longest_goes_first(
    threads: list[int],
) -> None:
    bodies = {str(n): text(2_000, bytes([97 + n])) for n in range(3)}
    one = compression._size_bytes(("/b/0", "a2000"), compressed(bodies["0"]))
    keeping = Compression(Outgoing(TimeSlices()), kept_bytes_max=2 * one)
    async with answering(bodies, keeping) as client:
        for name, made in (("0", 1), ("1", 2), ("0", 2), ("2", 3), ("0", 3), ("1", 4), ("2", 5), ("1", 5)):
            assert (await raw(client, f"/b/{name}", GZIP)).is_compressed
            assert (name, len(threads)) == (name, made)
            assert keeping.kept_bytes == min(made, 2) * one
    keeping = Compression(Outgoing(TimeSlices()), kept_bytes_max=one - 1)
    async with answering(bodies, keeping) as client:
        for _ in range(2):
            assert gzip.decompress((await raw(client, "/b/0", GZIP)).body) == bodies["0"]
    assert (len(threads), keeping.kept_bytes) == (7, 0)


async def test_beyond_the_limit_answers_are_sent_uncompressed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a client that goes away leaves the others their answer."""
    go_on, begun = threading.Event(), list[bytes]()

    def held_up(body: bytes) -> bytes:
        begun.append(body)
        assert go_on.wait(10)
        return compressed(body)

    monkeypatch.setattr(compression, "compressed", held_up)
    bodies = {str(n): text(AT_ONCE_BYTES_MAX + 1 + n) for n in range(COMPRESSING_MAX + 1)}
    making = Compression(Outgoing(TimeSlices()))
    async with answering(bodies, making) as client:
        asking = [asyncio.create_task(raw(client, f"/b/{n}", GZIP)) for n in range(COMPRESSING_MAX)]
        another = asyncio.create_task(raw(client, "/b/0", GZIP))
        try:
            await until(lambda: len(making._making) == COMPRESSING_MAX)
            for headers in (GZIP, ALWAYS):
                beyond = await raw(client, f"/b/{COMPRESSING_MAX}", headers)
                assert (beyond.is_compressed, beyond.body) == (False, bodies[str(COMPRESSING_MAX)])
                assert beyond.headers["Vary"] == "Accept-Encoding"
            asking[0].cancel()
        finally:
            go_on.set()
        answers = [await another, *await asyncio.gather(*asking[1:])]
        assert [gzip.decompress(answer.body) for answer in answers] == [bodies[str(n)] for n in range(COMPRESSING_MAX)]
        assert (await raw(client, f"/b/{COMPRESSING_MAX}", GZIP)).is_compressed
    assert sorted(map(len, begun)) == sorted(map(len, bodies.values()))


# ── Long answers ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_long_answer_is_kept_when_a_reader_has_had_all_of_it_unless_it_is_too_long(
    dsn: str, service: Service, client: Client, bounds: Bounds
) -> None:
    await append(dsn, client.tournament, crowd(5_000))
    size = len((await raw(client, "rankings.json", GZIP)).body)
    kept = await raw(client, "rankings.json", GZIP)
    assert (kept.headers["Content-Length"], "Transfer-Encoding" in kept.headers) == (str(size), False)
    assert gzip.decompress(kept.body) == (await raw(client, "rankings.json", {})).body
    for bytes_max, is_kept in ((size - 1, False), (size, True)):
        async with serve(dsn) as another:
            bounds(STREAM_BYTES_MAX=bytes_max)
            asked = [await raw(another.client(client.tournament, client.token), "rankings.json", GZIP) for _ in "ab"]
            assert ["Content-Length" in answer.headers for answer in asked] == [False, is_kept]
            assert asked[0].body == asked[1].body == kept.body
    assert (await client.put("competitors/7.json", {"name": "New"})).status == 200
    changed = await raw(client, "rankings.json", GZIP)
    assert gzip.decompress(changed.body) == (await raw(client, "rankings.json", {})).body != kept.body


def test_a_long_answer_that_a_reader_left_is_not_kept() -> None:
    keeping = Compression(Outgoing(TimeSlices()))
    begun = [keeping._gathered(("/", str(n)), iter([b"a", b"b"])) for n in range(3)]
    assert [next(chunks) for chunks in begun] == [b"a"] * 3
    begun[0].close()
    assert (len(keeping._gathering), keeping.kept_bytes) == (2, 0)
    assert list(begun[1]) == [b"b"]
    assert (len(keeping._gathering), keeping._found(("/", "1"))) == (1, b"ab")
    assert keeping._found(("/", "0")) is None


def test_the_long_answers_gathered_at_once_are_limited_and_each_is_gathered_once() -> None:
    keeping = Compression(Outgoing(TimeSlices()))
    begun = [keeping._gathered(("/", str(n)), iter([b"a", b"b"])) for n in (0, *range(COMPRESSING_MAX + 1))]
    assert [next(chunks) for chunks in begun] == [b"a"] * (COMPRESSING_MAX + 2)
    assert len(keeping._gathering) == COMPRESSING_MAX
    assert [list(chunks) for chunks in begun] == [[b"b"]] * (COMPRESSING_MAX + 2)
    kept = [keeping._found(("/", str(n))) for n in range(COMPRESSING_MAX + 1)]
    assert kept == [b"ab"] * COMPRESSING_MAX + [None]


@given(st.lists(st.binary(max_size=50) | st.integers(0, 1_000).map(text)), st.integers(1, 300))
def test_a_reader_of_what_was_flushed_has_all_but_the_last_chunk(chunks: list[bytes], chunk_bytes: int) -> None:
    """And no step takes more than a chunk."""
    taken = given_out = 0

    def told() -> Iterator[bytes]:
        nonlocal taken
        for chunk in chunks:
            taken += len(chunk)
            yield chunk

    with pytest.MonkeyPatch.context() as patch:
        set_bounds(patch, CHUNK_BYTES=chunk_bytes)
        reader = zlib.decompressobj(wbits=31)
        found, steps = b"", 0
        for made in compressed_chunks(told()):
            before = len(found)
            found += reader.decompress(made)
            given_out, steps = len(found), steps + 1
            assert len(found) - before < 2 * chunk_bytes or reader.eof
            assert taken - given_out < chunk_bytes + max(map(len, chunks), default=0)
    assert reader.eof
    assert found == b"".join(chunks)
    assert steps >= len(chunks)


async def test_what_a_compressor_takes_is_counted_while_the_answer_is_under_way(
    dsn: str, service: Service, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await append(dsn, client.tournament, crowd(5_000))
    held: list[int] = []
    chunks = compressed_chunks

    def watched(long: Iterator[bytes]) -> Iterator[bytes]:
        held.append(under_way[0].held_bytes)
        return chunks(long)

    under_way: list[Outgoing] = []
    begun = Outgoing.begun

    async def noted(self: Outgoing, later: Callable[[], outgoing.Long]) -> outgoing.Long:
        under_way[:] = [self]
        return await begun(self, later)

    monkeypatch.setattr(Outgoing, "begun", noted)
    monkeypatch.setattr(compression, "compressed_chunks", watched)
    assert (await raw(client, "rankings.json", GZIP)).is_compressed
    assert held[0] > compression._COMPRESSOR_BYTES
    await until(lambda: under_way[0].held_bytes == 0)


# ── Accept-Encoding ─────────────────────────────────────────────────────────────────────────────────────

PLAIN: Final = Encodings(gzip=False, identity=True)
BOTH: Final = Encodings(gzip=True, identity=True)
ONLY_GZIP: Final = Encodings(gzip=True, identity=False)
NOTHING: Final = Encodings(gzip=False, identity=False)
READ: Final = [
    ([], PLAIN),
    ([""], PLAIN),
    (["gzip"], BOTH),
    (["GZip"], BOTH),
    (["x-gzip"], BOTH),
    (["gzip, deflate, br, zstd"], BOTH),
    (["deflate, br"], PLAIN),
    (["deflate", "gzip"], BOTH),
    (["*"], BOTH),
    (["*;q=0"], NOTHING),
    (["identity;q=0"], NOTHING),
    (["gzip, identity;q=0"], ONLY_GZIP),
    (["gzip, *;q=0"], ONLY_GZIP),
    (["*, identity;q=0"], ONLY_GZIP),
    (["*, gzip;q=0"], PLAIN),
    (["gzip;q=0"], PLAIN),
    (["gzip;q=0.000"], PLAIN),
    (["gzip;q=0."], PLAIN),
    (["gzip;q=0.001"], BOTH),
    (["gzip;Q=1.000"], BOTH),
    (["gzip;q=0.5, *;q=1"], PLAIN),
    (["gzip;q=0.5, *;q=0.5"], BOTH),
    (["gzip;q=0.5, identity;q=0.6"], PLAIN),
    (["gzip;q=0.5, identity"], PLAIN),
    (["gzip, identity"], BOTH),
    (["compress;q=0.5, gzip;q=1.0"], BOTH),
    (["gzip;q=1.0, identity; q=0.5, *;q=0"], BOTH),
    ([" \tgzip \t;\t q=0.5 , identity ; q=0"], ONLY_GZIP),
    ([",, gzip ,, "], BOTH),
    (["gzip;q=0, gzip"], PLAIN),
    (["gzip, x-gzip;q=0"], BOTH),
    # What is no Accept-Encoding counts as none.
    (["gzip;q=2"], PLAIN),
    (["gzip;q=1.001"], PLAIN),
    (["gzip;q=0.1234"], PLAIN),
    (["gzip;q=-1"], PLAIN),
    (["gzip;q=.5"], PLAIN),
    (["gzip;q="], PLAIN),
    (["gzip;q"], PLAIN),
    (["gzip;"], PLAIN),
    (["gzip; q =1"], PLAIN),
    (["gzip;q=1;a=1"], PLAIN),
    (["gzip;level=9"], PLAIN),
    (["gzip deflate"], PLAIN),
    (["gzip, =", "identity;q=0"], PLAIN),
    (["gzip, identity;q=0, ü"], PLAIN),
    (["gzip\n"], PLAIN),
]


@pytest.mark.parametrize(("values", "accepted"), READ)
def test_accept_encoding_is_read_as_its_rfc_says(values: list[str], accepted: Encodings) -> None:
    assert accepted_encodings(values) == accepted


codings = st.sampled_from(["gzip", "identity", "*", "deflate", "br", "zstd", "a!#$%&'*+-.^_`|~9"])
qualities = st.integers(0, 1_000)
spaces = st.sampled_from(["", "", " ", "\t "])


def written(quality: int, digits: int) -> str:
    """The thousandths as a quality with at least that many digits, as few as tell it."""
    whole, rest = divmod(quality, 1_000)
    decimals = f"{rest:03}".rstrip("0").ljust(digits, "0")
    return f"{whole}.{decimals}" if decimals or digits else f"{whole}"


@given(
    st.lists(st.tuples(codings, st.none() | qualities), unique_by=lambda item: item[0], max_size=7),
    st.lists(spaces, min_size=4, max_size=4),
    st.integers(0, 3),
    st.booleans(),
    st.booleans(),
)
@example([("deflate", None)] * 50, [" "] * 4, 3, False, True)
def test_the_qualities_decide_as_the_rfc_has_it(
    items: list[tuple[str, int | None]], s: list[str], digits: int, uppercase: bool, on_one_line: bool
) -> None:
    texts = [
        f"{s[0]}{coding.upper() if uppercase else coding}{s[1]}"
        + ("" if quality is None else f";{s[2]}q={written(quality, digits)}{s[3]}")
        for coding, quality in items
    ]
    of = {coding: 1_000 if quality is None else quality for coding, quality in items}
    accepted = accepted_encodings([",".join(texts)] if on_one_line else texts)
    gzip_quality = of.get("gzip", of.get("*", 0))
    # "identity" is acceptable unless it, or what is not named, is excluded.
    assert accepted.identity == (of.get("identity", of.get("*", 1)) != 0)
    assert not (accepted.gzip and gzip_quality == 0)
    if gzip_quality:
        assert accepted.gzip == (gzip_quality >= of.get("identity", of.get("*", 0)))


@given(st.lists(st.text() | st.text("gzip*;q=01. ,\t"), max_size=4))
@example(["a " * 50_000 + "="])
@example(["a;q=0" * 50_000])
@example(["," * 100_000 + "="])
@example(["gzip" + " " * 100_000 + "x"])
def test_whatever_is_accepted_is_read_or_passed_over(values: list[str]) -> None:
    assert isinstance(accepted_encodings(values), Encodings)


@pytest.mark.parametrize("size", [ENCODINGS_KEPT_CHARACTERS_MAX, ENCODINGS_KEPT_CHARACTERS_MAX + 1])
def test_a_long_header_is_read_like_a_short_one(size: int) -> None:
    for _ in range(2):
        assert accepted_encodings(["gzip".rjust(size, ",")]) == BOTH


async def test_whatever_is_accepted_the_answer_is_the_same(season: Season) -> None:
    plain = (await raw(season.client, "rankings.json", {})).body
    loop = asyncio.get_running_loop()

    @examples(100)
    @given(header_bytes | st.text("gzip*;q=01. ,\t").map(str.encode))
    def asked(value: bytes) -> None:
        text = value.strip(b" \t").decode("utf-8", "surrogateescape")
        answer = asyncio.run_coroutine_threadsafe(
            raw(season.client, "rankings.json", {"Accept-Encoding": text}), loop
        ).result(10)
        assert answer.status == 200
        assert (gzip.decompress(answer.body) if answer.is_compressed else answer.body) == plain

    await asyncio.to_thread(asked)
