"""Whatever is sent: the answer is a documented one, in the envelope and in time, and the service goes on.

The service runs in the event loop of the test. Hypothesis makes requests up in a thread beside it and sends them by
the standard library's client, which knows nothing of ours.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from http.client import HTTPConnection
from io import BytesIO
from itertools import count
from typing import Any, Final
from urllib.parse import quote_from_bytes, urlencode, urlsplit

import asyncpg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from yarl import URL

from api.access import auth
from engine.database.pool import Database
from engine.domain.terms import DELTA_MAX, DESCRIPTION_CHARACTERS_MAX, ID_MAX, NAME_CHARACTERS_MAX
from projections.tables.worker import Worker
from tests.api.fuzzed import examples, header_bytes
from tests.desks import GUARD_SECONDS
from tests.service import (
    FORM,
    Season,
    Service,
    create_ranking,
    deltas,
    listed,
    rankings_deltas,
    serve,
)

DOCUMENTED: Final = {200, 304, 400, 401, 403, 404, 405, 409, 413, 414, 415, 422, 431}
"""Without those that need trouble of some other kind than what is sent: 408, 429, 500 and 503."""


class Wire:
    """One connection to the service, kept alive. Counts the events that its answers tell of."""

    def __init__(self, service: Service, season: Season, spare_ranking_id: int) -> None:
        self.events = 0
        self.season = season
        self.spare_ranking_id = spare_ranking_id
        self._connection = HTTPConnection(urlsplit(service.url).netloc, timeout=GUARD_SECONDS)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, bytes] | None = None) -> Any:
        """The JSON of the answer, which is fit to be one; None: it was 304. `path` may be relative."""
        if not path.startswith("/"):
            path = f"/tournament/{self.season.client.tournament}/{path}"
        usual = {"Authorization": f"Bearer {self.season.client.token}".encode()}
        usual |= {} if body is None else {"Content-Type": FORM.encode()}
        self._connection.request(method, path, body, usual | (headers or {}))
        response = self._connection.getresponse()
        answer = response.read()
        assert response.status in DOCUMENTED, answer
        if response.status == 304:
            assert answer == b""
            return None
        assert response.headers["Content-Type"] == "application/json"
        envelope = json.loads(answer)
        assert envelope["status"] == response.status
        assert envelope["message"]
        if "Tallybook-Sequence" in response.headers and "Idempotency-Replayed" not in response.headers:
            self.events += 1
        return envelope

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
async def wire(
    service: Service, season: Season, dsn: str, database: Database, owner: asyncpg.Connection
) -> AsyncIterator[Wire]:
    """A connection to send anything by. Afterwards the log holds what was answered as done and nothing else, tables
    can be made of it, and a service that reads it all back answers as the one that took it does."""
    spare = await create_ranking(season.client, season.ids, name="Spare")
    before = await owner.fetchval("SELECT count(*) FROM event")
    wire = Wire(service, season, spare["id"])
    yield wire
    wire.close()
    assert (await season.client.post("competitors.json", {"name": "The next one"})).status == 200
    sequences = [row["sequence"] for row in await owner.fetch("SELECT sequence FROM event ORDER BY sequence")]
    assert sequences == list(range(1, before + wire.events + 2))
    await Worker(database).catch_up()
    async with serve(dsn) as fresh:
        client = fresh.client(season.client.tournament, season.client.token)
        for path in ("rankings.json", "competitions.json?per_page=200", "competitors.json?per_page=200"):
            now, read_back = await season.client.get(path), await client.get(path)
            assert (now.status, now.body) == (200, read_back.body)


# ── Fields ──────────────────────────────────────────────────────────────────────────────────────────────

BOUNDS = [0, 1, NAME_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX, DELTA_MAX, 2**32, ID_MAX, 2**64, 10**30]
numbers = st.one_of(
    st.integers(),
    st.builds(
        lambda bound, off, sign: sign * (bound + off),
        st.sampled_from(BOUNDS),
        st.integers(-1, 1),
        st.sampled_from([1, -1]),
    ),
)
nasty = st.sampled_from(
    [
        *("", " ", "\t\n", "0", "-0", "+5", " 5", "5 ", "05", "1_0", "1e3", "1.5", "NaN", "Infinity", "true", "null"),
        *("\u0663\u0664", "\uff15", "\u200b", "\u202eabc", "\ufeff", "\U0001f3d3", "e\u0301", "\u0085", "\x7f"),
        *("[", "[]", "{}", '{"', '"\\ud800"', "[[[[", "9" * 5000, "[" * 5000, "x" * 20_000, ",", ",,", "1,,2", "1;2"),
        *("2024-02-29 12:00:00", "2023-02-29 12:00:00", "9999-12-31 23:59:59", "0001-01-01 00:00:00", "ASC", "asc"),
        *("'; DROP TABLE event;--", "<script>", "=1+1", "%00", "${x}", "a\r\nb: c", "../../etc", "\\x00", "c0ffee"),
    ]
)
lengths = st.builds(
    lambda character, bound, off: character * (bound + off),
    st.sampled_from(["x", "ß", "\U0001f3d3"]),
    st.sampled_from([NAME_CHARACTERS_MAX, DESCRIPTION_CHARACTERS_MAX]),
    st.integers(-1, 1),
)
documents = st.recursive(
    st.none() | st.booleans() | numbers | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
texts = st.one_of(st.text(), nasty, lengths, numbers.map(str), documents.map(json.dumps))

DELTAS: Final = "participants_delta"


def values(field: str, season: Season) -> st.SearchStrategy[str]:
    """What to put into a field: anything, and what nearly fits."""
    known = st.sampled_from([*season.ids, season.ranking_id, season.unity_id, season.competition_id])
    if field == DELTAS:
        return texts | near_deltas(known | numbers)
    if field == "result":
        return texts | st.dictionaries(known.map(str) | st.text(max_size=5), texts, max_size=3).map(json.dumps)
    return texts | st.lists(known | numbers, max_size=4).map(listed)


def near_deltas(ids: st.SearchStrategy[int]) -> st.SearchStrategy[str]:
    """Deltas that are of the form, and some whose keys or values are not quite."""
    delta = st.one_of(numbers.map(str), st.integers(-9, 9).map(str), st.integers(-9, 9), nasty, documents)
    unity = st.fixed_dictionaries({"unity_id": ids, "delta": delta}, optional={"version": documents})
    line = st.fixed_dictionaries({"competitor_id": ids, "unities": st.lists(unity | documents, max_size=3)})
    return st.lists(line | line | documents, max_size=3).map(json.dumps)


_numbers = count(1)
Operation = tuple[str, str, dict[str, object]]


def operations(wire: Wire) -> dict[str, Operation]:
    """Method, path and a good form of each operation that changes something."""
    season, spare = wire.season, f"rankings/{wire.spare_ranking_id}"
    ids = listed(season.ids)
    return {
        "add points": (
            "PUT",
            f"{season.path}/add.json",
            {DELTAS: deltas((season.ids[0], season.unity_id, 1)), "competition_id": season.competition_id},
        ),
        "create a ranking": (
            "POST",
            "rankings.json",
            {"name": "Cup", "main_unity_name": "points", "participants": ids, "description": "x"},
        ),
        "modify a ranking": (
            "PUT",
            f"{spare}.json",
            {"name": "Spare", "main_unity_name": "points", "participants": ids, "description": "x"},
        ),
        "add points to rankings": (
            "PUT",
            "points.json",
            {
                "rankings_delta": rankings_deltas({season.ranking_id: deltas((season.ids[0], season.unity_id, 1))}),
                "competition_id": season.competition_id,
            },
        ),
        "change a ranking's information": ("PUT", f"{spare}/information.json", {"name": "Spare", "description": "x"}),
        "change a unity": (
            "PUT",
            f"{season.path}/unities/{season.unity_id}.json",
            {"name": "points", "sort": "ASC"},
        ),
        "add a unity": ("POST", f"{spare}/unities.json", {"name": f"unity {next(_numbers)}", "sort": "ASC"}),
        "close a ranking": ("PUT", f"rankings/{season.closed_ranking_id}/close.json", {}),
        "reopen a ranking": ("PUT", f"rankings/{season.closed_ranking_id}/reopen.json", {}),
        "add a competition": (
            "POST",
            "competitions.json",
            {
                "group_id": 1,
                "started_at": "2024-02-29 12:00:00",
                "location": "Hall 2",
                "participants": listed(season.ids[:2]),
                "result": "2:1",
                "winner": season.ids[0],
            },
        ),
        "change a competition": (
            "PUT",
            f"competitions/{season.competition_id}.json",
            {
                "started_at": "2024-02-29 12:00:00",
                "location": "Hall 2",
                "result": json.dumps({season.ids[0]: "9.8 s"}),
                "winner": season.ids[0],
            },
        ),
        "register a competitor": (
            "POST",
            "competitors.json",
            {"name": "Dan", "tags": "a,b", "color": "c0ffee", "parent": season.ids[0]},
        ),
        "change a competitor": (
            "PUT",
            f"competitors/{season.ids[2]}.json",
            {"name": "Pair", "tags": "a,b", "color": "c0ffee", "parent": season.ids[0]},
        ),
    }


OPERATIONS = [
    *("add points", "create a ranking", "modify a ranking", "add a unity", "close a ranking", "reopen a ranking"),
    *("add points to rankings", "change a ranking's information", "change a unity"),
    *("add a competition", "change a competition", "register a competitor", "change a competitor"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_any_text_in_any_field_is_done_or_refused(wire: Wire, name: str) -> None:
    def everywhere_in(field: str) -> None:
        @examples(100)
        @given(values(field, wire.season))
        def whatever_it_is(text: str) -> None:
            method, path, form = operations(wire)[name]
            answer = wire.ask(method, path, urlencode(form | {field: text}).encode())
            assert answer["status"] in (200, 400, 409, 422)
            if answer["status"] == 200 and field == "name" and text:
                (item,) = answer.keys() - {"status", "message"}
                assert answer[item]["name"] == text.strip()

        whatever_it_is()

    for field in [*operations(wire)[name][2], "unknown"]:
        await asyncio.to_thread(everywhere_in, field)


async def test_any_text_is_a_name_of_a_field_that_there_is_or_is_not(wire: Wire) -> None:
    @examples(300)
    @given(st.sampled_from(OPERATIONS), texts | texts.map("result[{}]".format), texts)
    def everywhere(name: str, field: str, text: str) -> None:
        method, path, form = operations(wire)[name]
        answer = wire.ask(method, path, urlencode(form | {field: text}).encode())
        assert answer["status"] in (200, 400, 409, 422)

    await asyncio.to_thread(everywhere)


# ── Bodies ──────────────────────────────────────────────────────────────────────────────────────────────

shreds = st.sampled_from(
    [b"%", b"%zz", b"%0", b"%00", b"%FF", b"&", b"=", b"+", b";", b"\0", b"\xff", b"[", b"]", b"\r\n"]
)


@st.composite
def torn(draw: st.DrawFn, form: bytes) -> bytes:
    """`form` with something else here and there."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(form)))
        form = form[:at] + draw(shreds | st.binary(max_size=8)) + form[at + draw(st.integers(0, 5)) :]
    return form


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_any_bytes_as_a_body_are_done_or_refused(wire: Wire, name: str) -> None:
    method, path, form = operations(wire)[name]

    @examples(150)
    @given(st.binary() | torn(urlencode(form).encode()))
    def everywhere(body: bytes) -> None:
        assert wire.ask(method, path, body)["status"] in (200, 400, 409, 422)

    await asyncio.to_thread(everywhere)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", OPERATIONS)
async def test_any_json_as_a_body_is_done_or_refused(wire: Wire, name: str) -> None:
    method, path, form = operations(wire)[name]
    fields = st.sampled_from([*form, "unknown", "result[1]"])
    nearly = st.builds(lambda field, value: form | {field: value}, fields, documents | texts | numbers)

    @examples(150)
    @given(
        (documents | nearly)
        .map(lambda said: json.dumps(said).encode())
        .flatmap(lambda body: st.just(body) | torn(body))
    )
    def everywhere(body: bytes) -> None:
        assert wire.ask(method, path, body, {"Content-Type": b"application/json"})["status"] in (200, 400, 409, 422)

    await asyncio.to_thread(everywhere)


# ── Headers ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_any_idempotency_key_is_one_or_is_refused(wire: Wire) -> None:
    visible = st.lists(st.sampled_from(range(0x21, 0x7F)), min_size=1, max_size=300).map(bytes)

    @examples(300)
    @given(header_bytes | visible)
    def whatever_it_is(key: bytes) -> None:
        answer = wire.ask("POST", "competitors.json", b"name=Ada", {"Idempotency-Key": key})
        good = re.fullmatch(rb"[\x21-\x7e]{1,255}", key.strip(b" \t"))
        assert answer["status"] == (200 if good else 400)

    await asyncio.to_thread(whatever_it_is)


async def test_nothing_but_a_token_is_one(wire: Wire) -> None:
    good = f"Bearer {wire.season.client.token}".encode()
    made_up = st.text(auth.BASE62, min_size=30, max_size=30).map(
        lambda secret: f"Bearer {auth.text_of(secret)}".encode()
    )

    @examples(300)
    @given(header_bytes | torn(good) | made_up)
    def whatever_it_is(authorization: bytes) -> None:
        if (
            re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", authorization)
            or re.sub(rb"(?i)^bearer ", b"Bearer ", authorization.strip(b" \t")) == good
        ):
            return
        assert wire.ask("GET", "rankings.json", headers={"Authorization": authorization})["status"] == 401

    await asyncio.to_thread(whatever_it_is)


async def test_any_if_none_match_is_answered(wire: Wire) -> None:
    tags = st.lists(st.text(st.sampled_from('*"W/,\\ abc'), max_size=9), max_size=9).map(lambda t: ",".join(t).encode())

    @examples(300)
    @given(header_bytes | tags)
    def whatever_it_is(tag: bytes) -> None:
        answer = wire.ask("GET", "rankings.json", headers={"If-None-Match": tag})
        assert (answer is None) == (tag.strip(b" \t") == b"*")

    await asyncio.to_thread(whatever_it_is)


async def test_any_media_type_is_the_form_or_is_refused(wire: Wire) -> None:
    @examples(300)
    @given(
        header_bytes | torn(FORM.encode() + b"; charset=utf-8"), st.sampled_from(["Content-Type", "Content-Encoding"])
    )
    def whatever_it_is(value: bytes, header: str) -> None:
        if re.search(rb"[\x00-\x08\x0a-\x1f\x7f]", value):
            return
        assert wire.ask("POST", "competitors.json", b"name=Ada", {header: value})["status"] in (200, 415)

    await asyncio.to_thread(whatever_it_is)


# ── Addresses ───────────────────────────────────────────────────────────────────────────────────────────

plain = st.text(st.sampled_from("abc019-._~!$&'()*+,;=:@/?%[]|{}^`\"<>\\"), max_size=30)
segments = st.one_of(
    st.binary(max_size=30).map(quote_from_bytes),
    numbers.map(str),
    st.text(max_size=9).map(str.encode).map(quote_from_bytes),
)


async def test_any_path_is_answered(wire: Wire) -> None:
    tournament = wire.season.client.tournament
    shapes = [
        "/{}",
        "/tournament/{}",
        "/tournament/{}/rankings.json",
        "/tournament/{}/competitors.json",
        f"/tournament/{tournament}/{{}}.json",
        f"/tournament/{tournament}/rankings/{{}}.json",
        f"/tournament/{tournament}/rankings/{{}}/add.json",
        f"/tournament/{tournament}/rankings/{{}}/close.json",
        f"/tournament/{tournament}/competitions/{{}}.json",
        f"/tournament/{tournament}/competitors/{{}}.json",
    ]

    @examples(800)
    @given(st.sampled_from(["GET", "POST", "PUT", "DELETE"]), st.sampled_from(shapes), segments | plain)
    def whatever_it_is(method: str, shape: str, segment: str) -> None:
        assume(shape.format(segment).partition("?")[0] != "/")  # a page for people
        answer = wire.ask(method, shape.format(segment), None if method in ("GET", "DELETE") else b"name=Ada")
        assert answer["status"] in (200, 400, 404, 405, 409, 422)

    await asyncio.to_thread(whatever_it_is)


async def test_any_query_is_answered(wire: Wire) -> None:
    pairs = st.tuples(st.sampled_from(["page", "per_page"]) | segments, segments | plain | numbers.map(str))
    queries = plain | st.lists(pairs.map("=".join), max_size=3).map("&".join)

    @examples(800)
    @given(st.sampled_from(["rankings.json", "competitors.json", "competitions.json"]), queries)
    def whatever_it_is(path: str, query: str) -> None:
        assert wire.ask("GET", f"{path}?{query}")["status"] in (200, 400)

    await asyncio.to_thread(whatever_it_is)


# ── Below HTTP ──────────────────────────────────────────────────────────────────────────────────────────

HEAD = (
    b"POST /tournament/SLUG/competitors.json HTTP/1.1\r\n"
    b"Host: a\r\n"
    b"Authorization: Bearer TOKEN\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n"
)
GOOD = HEAD + b"Content-Length: 8\r\n\r\nname=Ada"
LAST = HEAD + b"Content-Length: 8\r\nConnection: close\r\n\r\nname=Ada"
CHUNKED = b"\r\n8\r\nname=Ada\r\n0\r\n\r\n"

BROKEN = {
    "two lengths": HEAD + b"Content-Length: 8\r\nContent-Length: 9\r\n\r\nname=Ada",
    "the same length twice": HEAD + b"Content-Length: 8\r\nContent-Length: 8\r\n\r\nname=Ada",
    "a list of lengths": HEAD + b"Content-Length: 8, 8\r\n\r\nname=Ada",
    "a signed length": HEAD + b"Content-Length: +8\r\n\r\nname=Ada",
    "a negative length": HEAD + b"Content-Length: -8\r\n\r\nname=Ada",
    "a length beyond 64 bits": HEAD + b"Content-Length: 99999999999999999999\r\n\r\nname=Ada",
    "a length that is none": HEAD + b"Content-Length: 0x8\r\n\r\nname=Ada",
    "a length and chunks": HEAD + b"Content-Length: 8\r\nTransfer-Encoding: chunked\r\n" + CHUNKED,
    "chunks and a length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 8\r\n" + CHUNKED,
    "chunks twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + CHUNKED,
    "chunks, but not in the end": HEAD + b"Transfer-Encoding: chunked, identity\r\n" + CHUNKED,
    "an unknown coding": HEAD + b"Transfer-Encoding: xchunked\r\n" + CHUNKED,
    "a blank before the colon": HEAD + b"Transfer-Encoding : chunked\r\n" + CHUNKED,
    "a chunk without a size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nx\r\nname=Ada\r\n0\r\n\r\n",
    "a chunk with a bare LF": HEAD + b"Transfer-Encoding: chunked\r\n\r\n8\nname=Ada\n0\n\n",
    "bare LF": GOOD.replace(b"\r\n", b"\n"),
    "bare CR": GOOD.replace(b"\r\n", b"\r"),
    "a folded header": GOOD.replace(b"Host: a", b"Host: a\r\n b"),
    "NUL in a header": GOOD.replace(b"Host: a", b"Host: a\0b"),
    "a control character in a header": GOOD.replace(b"Host: a", b"Host: a\x01b"),
    "NUL in the token": GOOD.replace(b"TOKEN", b"TOKEN\0"),
    "a header without a name": GOOD.replace(b"Host: a", b"Host: a\r\n: b"),
    "a header too long": GOOD.replace(b"Host: a", b"Host: a\r\nX: " + b"a" * 9000),
    "a header's name too long": GOOD.replace(b"Host: a", b"Host: a\r\n" + b"X" * 9000 + b": a"),
    "a header of a megabyte": GOOD.replace(b"Host: a", b"Host: a\r\nX: " + b"a" * 1_000_000),
    "too many headers": GOOD.replace(b"Host: a", b"Host: a" + b"\r\nX: a" * 200),
    "a path too long": GOOD.replace(b"SLUG", b"a" * 9000),
    "a path of raw bytes": GOOD.replace(b"SLUG", b"\xff\xfe"),
    "chunked after a tab": HEAD + b"Transfer-Encoding:\tchunked\r\nContent-Length: 8\r\n" + CHUNKED,
    "chunked with a vertical tab": HEAD + b"Transfer-Encoding: chunked\x0b\r\n" + CHUNKED,
    "chunked after a comma": HEAD + b"Transfer-Encoding: , chunked\r\nContent-Length: 8\r\n" + CHUNKED,
    "chunked in quotes": HEAD + b'Transfer-Encoding: "chunked"\r\n' + CHUNKED,
    "chunked in a folded line": HEAD + b"Transfer-Encoding:\r\n chunked\r\n" + CHUNKED,
    "chunked in HTTP/1.0 with a length": HEAD.replace(b"HTTP/1.1", b"HTTP/1.0")
    + b"Content-Length: 8\r\nTransfer-Encoding: chunked\r\n"
    + CHUNKED,
    "a chunk's size with a sign": HEAD + b"Transfer-Encoding: chunked\r\n\r\n+8\r\nname=Ada\r\n0\r\n\r\n",
    "a chunk's size beyond 64 bits": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 17 + b"\r\nname=Ada",
    "a chunk longer than its size": HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\nname=Ada\r\n0\r\n\r\n",
    "a chunk's size with a bare LF in its extension": HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n8;a\nb\r\nname=Ada\r\n0\r\n\r\n",
    "a bare CR in a header": GOOD.replace(b"Host: a", b"Host: a\rX: b"),
    "an underscore for a blank": GOOD.replace(b"Content-Length", b"Content Length"),
    "a blank before the first header": GOOD.replace(b"Host: a", b" Host: a"),
    "a length behind the chunks": HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n8\r\nname=Ada\r\n0\r\nContent-Length: 5\r\n\r\n",
    "a body of unknown coding and length": HEAD + b"Transfer-Encoding: gzip\r\n\r\nname=Ada",
    "another scheme's port": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a path that is none": GOOD.replace(b"/tournament/SLUG/competitors.json", b"competitors.json"),
    "no host": GOOD.replace(b"Host: a\r\n", b""),
    "two hosts": GOOD.replace(b"Host: a", b"Host: a\r\nHost: b"),
    "an unknown method": GOOD.replace(b"POST", b"SEND"),
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/2.0": GOOD.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "HTTP/2 from the start": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/1.1.1": GOOD.replace(b"HTTP/1.1", b"HTTP/1.1.1"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
}
TOO_LARGE = {
    "a header too long": 431,
    "a header's name too long": 431,
    "a header of a megabyte": 431,
    "too many headers": 431,
    "a path too long": 414,
}
"""All others are 400."""
UNFINISHED = {
    "nothing": b"",
    "line ends": b"\r\n" * 10,
    "half a line": HEAD[:20],
    "half a head": HEAD,
    "half a body": HEAD + b"Content-Length: 8\r\n\r\nname",
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n8\r\nname",
}


async def test_what_is_not_http_is_refused_and_nothing_behind_it_is_heard(
    service: Service,
    season: Season,
    owner: asyncpg.Connection,
    log_lines: BytesIO,
    caplog: pytest.LogCaptureFixture,
    subtests: pytest.Subtests,
) -> None:
    assert await statuses(service, season, GOOD + LAST) == [200, 200]
    before = await owner.fetchval("SELECT count(*) FROM event")
    for name, broken in BROKEN.items():
        with subtests.test(name):
            answers = await answers_to(service, season, broken + LAST)
            envelope = json.loads(answers.partition(b"\r\n\r\n")[2])
            expected = TOO_LARGE.get(name, 400)
            assert (statuses_in(answers), envelope["status"], envelope["errors"]) == ([expected], expected, [])
            assert b"\r\nConnection: close\r\n" in answers
            assert await owner.fetchval("SELECT count(*) FROM event") == before
            assert (await season.client.get("rankings.json")).status == 200
    assert season.client.token not in log_lines.getvalue().decode() + caplog.text


async def test_what_breaks_off_is_forgotten(
    service: Service, season: Season, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    before = await owner.fetchval("SELECT count(*) FROM event")
    for name, unfinished in UNFINISHED.items():
        with subtests.test(name):
            assert await statuses(service, season, unfinished, hang_up=True) in ([], [400])
            assert await owner.fetchval("SELECT count(*) FROM event") == before
            assert (await season.client.get("rankings.json")).status == 200


HARMLESS = {
    "an absolute address": GOOD.replace(b"POST /", b"POST http://a/"),
    "an absolute address of somebody else": GOOD.replace(b"POST /", b"POST http://b:1/"),
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n" + CHUNKED,
    "chunks in capitals": HEAD + b"Transfer-Encoding: CHUNKED\r\n" + CHUNKED,
    "chunks with extensions": HEAD + b"Transfer-Encoding: chunked\r\n\r\n8;a=b\r\nname=Ada\r\n0\r\n\r\n",
    "chunks with a trailer": HEAD + b"Transfer-Encoding: chunked\r\n\r\n8\r\nname=Ada\r\n0\r\nX: 5\r\n\r\n",
    "line ends before it": b"\r\n\r\n" + GOOD,
}


UPGRADES = {
    "an upgrade that nobody asked for": GOOD.replace(
        b"Host: a", b"Host: a\r\nConnection: upgrade\r\nUpgrade: websocket"
    ),
    "an upgrade to HTTP/2": GOOD.replace(b"Host: a", b"Host: a\r\nConnection: Upgrade\r\nUpgrade: h2c"),
    "a tunnel": b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
}


async def test_what_is_unusual_is_one_request_and_the_next_is_the_next(
    service: Service, season: Season, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for name, unusual in HARMLESS.items():
        with subtests.test(name):
            before = await owner.fetchval("SELECT count(*) FROM event")
            assert await statuses(service, season, unusual + LAST) == [200, 200]
            assert await owner.fetchval("SELECT count(*) FROM event") == before + 2


async def test_nothing_is_heard_behind_an_upgrade(
    service: Service, season: Season, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    for name, upgrade in UPGRADES.items():
        with subtests.test(name):
            before = await owner.fetchval("SELECT count(*) FROM event")
            answers = await answers_to(service, season, upgrade + LAST)
            assert statuses_in(answers) == [200 if b"POST" in upgrade else 404]
            assert b"\r\nConnection: close\r\n" in answers
            assert await owner.fetchval("SELECT count(*) FROM event") == before + (b"POST" in upgrade)


async def test_a_chunk_that_cannot_be_read_is_refused_as_soon_as_it_comes(
    service: Service, season: Season, owner: asyncpg.Connection
) -> None:
    before = await owner.fetchval("SELECT count(*) FROM event")
    address = URL(service.url)
    head = HEAD.replace(b"SLUG", season.client.tournament.encode())
    head = head.replace(b"TOKEN", (season.client.token or "").encode())
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n8\r\nname=Ada\r\n")
    assert (await season.client.get("rankings.json")).status == 200
    writer.write(b"what?\r\n")
    answers = await asyncio.wait_for(reader.read(), GUARD_SECONDS)  # a body that is waited for is 408
    writer.close()
    assert statuses_in(answers) == [400]
    assert await owner.fetchval("SELECT count(*) FROM event") == before


async def statuses(service: Service, season: Season, sent: bytes, *, hang_up: bool = False) -> list[int]:
    return statuses_in(await answers_to(service, season, sent, hang_up=hang_up))


def statuses_in(answers: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/\d\.\d (\d+) ", answers)]


async def answers_to(service: Service, season: Season, sent: bytes, *, hang_up: bool = False) -> bytes:
    """Of all answers on a connection on which `sent` is all that is sent, until the service closes it."""
    sent = sent.replace(b"SLUG", season.client.tournament.encode())
    sent = sent.replace(b"TOKEN", (season.client.token or "").encode())
    address = URL(service.url)
    async with asyncio.timeout(GUARD_SECONDS):
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(sent)
        if hang_up:
            writer.write_eof()
        answers = b""
        with suppress(ConnectionResetError):
            while received := await reader.read(65_536):
                answers += received
        writer.close()
    return answers
