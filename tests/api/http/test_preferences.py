"""What a client would like an answer to be: minimal answers to changes, and how the header Prefer is read."""

import asyncio
from http.client import HTTPConnection
from typing import Final
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.http.preferences import parse_preferences, prefers_minimal
from api.interface.declarations import Write
from engine.domain.terms import TournamentId
from projections.live.cache import RenderCache
from tests.api.asking import POSSIBLE, WRITES, Log, ask, example_of, keyed, path_of, refused, with_points
from tests.api.fuzzed import examples, header_bytes
from tests.api.rendered import BY_NAME
from tests.desks import recorded
from tests.service import FORM, Answer, Season, Service


@pytest.fixture
async def season(season: Season) -> Season:
    return await with_points(season)


MINIMAL: Final = {"Prefer": "return=minimal"}
MADE: Final = {
    "PUT results.json": {"id"},
    "POST rankings.json": {"id", "unity_id"},
    "POST rankings/{ranking_id}/unities.json": {"id"},
    "POST competitors.json": {"id"},
    "POST competitions.json": {"id"},
}
"""What the minimal answer to each operation names; to all others, nothing."""


def ids_in(answer: Answer) -> dict[str, int]:
    """What a minimal answer names, taken from a whole one."""
    (payload,) = [answer.json[key] for key in answer.json.keys() - {"status", "message"}]
    ids = {"id": payload["id"]}
    return ids | {"unity_id": payload["unities"][0]["id"]} if "unities" in payload else ids


# ── Every operation ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_minimal_answer_says_what_was_made_and_nothing_else(
    season: Season, log: Log, subtests: pytest.Subtests
) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            before = await log.length()
            answer = await ask(name, season, season.client, MINIMAL)
            assert answer.status == 200
            assert answer.headers["Content-Type"] == "application/json"
            assert answer.headers["Preference-Applied"] == "return=minimal"
            assert before < int(answer.headers["Tallybook-Sequence"]) <= await log.length()
            message = "added" if name.startswith("POST") else "ok"
            assert list(answer.json.items())[:2] == [("status", 200), ("message", message)]
            assert answer.json.keys() - {"status", "message"} == MADE.get(name, set())


@pytest.mark.parametrize("first", ["minimal", "whole"])
async def test_a_repeat_with_the_other_preference_is_the_same_request(
    season: Season, log: Log, first: str, subtests: pytest.Subtests
) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            key = keyed(BY_NAME[name].operation_id)
            headers = [key | MINIMAL, key, key | MINIMAL, key | {"Prefer": "return=representation"}]
            if first == "whole":
                headers.reverse()
            answers = [await ask(name, season, season.client, headers[0])]
            length = await log.length()
            answers += [await ask(name, season, season.client, sent) for sent in headers[1:]]
            assert [answer.status for answer in answers] == [200] * 4
            assert await log.length() == length
            assert len({answer.headers["Tallybook-Sequence"] for answer in answers}) == 1
            assert ["Idempotency-Replayed" in answer.headers for answer in answers] == [False, True, True, True]
            minimal = [answer for answer in answers if "Preference-Applied" in answer.headers]
            whole = [answer for answer in answers if "Preference-Applied" not in answer.headers]
            assert len({answer.body for answer in minimal}) == len({answer.body for answer in whole}) == 1
            assert len(minimal) == len(whole) == 2
            assert minimal[0].json["message"] == whole[0].json["message"]
            if name in MADE:
                message = "added" if name.startswith("POST") else "ok"
                assert minimal[0].json == {"status": 200, "message": message} | ids_in(whole[0])


async def test_a_refusal_is_the_same_whatever_is_preferred(season: Season, log: Log, subtests: pytest.Subtests) -> None:
    for name in WRITES:
        with subtests.test(name):
            before = await log.length()
            send = season.client.post if name.startswith("POST") else season.client.put
            path, form = path_of(name, season), example_of(name)
            for at, status, field in ((path, 422, "not-a-field"), (f"{path}?a=1", 400, "a")):
                sent = {**form, "not-a-field": "1"} if status == 422 else form
                whole, minimal = [await send(at, sent, headers) for headers in ({}, MINIMAL)]
                assert refused(whole, status, field) == refused(minimal, status, field)
                assert "Preference-Applied" not in minimal.headers
            assert await log.length() == before


async def test_a_minimal_answer_names_what_its_event_creates(
    season: Season, service: Service, clients_tournament: TournamentId, subtests: pytest.Subtests
) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            operation = BY_NAME[name]
            assert isinstance(operation, Write)
            answer = await ask(name, season, season.client, MINIMAL)
            event = (await recorded(service.database, clients_tournament))[
                int(answer.headers["Tallybook-Sequence"]) - 1
            ]
            assert tuple(operation.new_ids.values()) == event.creates
            made = {key: getattr(event, field) for key, field in operation.new_ids.items()}
            assert answer.json == {"status": 200, "message": operation.answer.message} | made


async def test_nothing_is_rendered_for_a_minimal_answer(
    season: Season, service: Service, clients_tournament: TournamentId, subtests: pytest.Subtests
) -> None:
    for name in POSSIBLE:
        with subtests.test(name):
            key = keyed(BY_NAME[name].operation_id)
            async with service.desk.live_pool.pinned(clients_tournament) as live:
                live.cache = RenderCache()
                assert (await ask(name, season, season.client, key | MINIMAL)).status == 200
                assert live.cache.size_bytes == 0
                assert (await ask(name, season, season.client, key)).status == 200
                # What is short is not worth keeping.
                small = "/unities" in name or name.endswith(
                    (
                        "points.json",
                        "scoring.json",
                        "results.json",
                        "classification.json",
                        "publication.json",
                        "presentation.json",
                        "POST competitions.json",
                        "visibility.json",
                        "PUT rankings.json",
                        "PUT tournament.json",
                        "archive.json",
                    )
                )
                assert (live.cache.size_bytes == 0) == small


async def test_a_read_prefers_nothing(season: Season) -> None:
    whole, minimal = [await season.client.get("rankings.json", headers) for headers in ({}, MINIMAL)]
    assert whole.body == minimal.body
    assert "Preference-Applied" not in minimal.headers


# ── The list of rankings without their competitors ──────────────────────────────────────────────────────


async def test_competitors_are_left_out_where_they_are_omitted(season: Season) -> None:
    whole, brief = [await season.client.get(f"rankings.json{query}") for query in ("", "?omit=competitors")]
    rankings = whole.json["rankings"]["ranking"]
    for ranking in rankings:
        del ranking["competitors"]
    assert brief.json == {"status": 200, "message": "ok", "rankings": {"ranking": rankings}}
    assert [list(ranking) for ranking in brief.json["rankings"]["ranking"]] == [list(ranking) for ranking in rankings]


async def test_the_list_without_competitors_has_its_own_etag(season: Season) -> None:
    async def tags() -> list[str]:
        return [(await season.client.get(f"rankings.json{q}")).headers["ETag"] for q in ("", "?omit=competitors")]

    whole, brief = await tags()
    assert whole != brief
    for query, tag, status in (("?omit=competitors", brief, 304), ("?omit=competitors", whole, 200), ("", brief, 200)):
        assert (await season.client.get(f"rankings.json{query}", {"If-None-Match": tag})).status == status
    await season.client.put(f"competitors/{season.ids[0]}.json", {"name": "Adelaide"})
    renamed, still = await tags()
    assert renamed != whole
    assert still == brief
    await season.client.put(f"{season.path}/close.json")
    assert (await tags())[1] != brief


async def test_nothing_but_competitors_can_be_omitted(season: Season, subtests: pytest.Subtests) -> None:
    for query in ["omit=", "omit=unities", "omit=Competitors", "omit=competitors,competitors"]:
        with subtests.test(query):
            refused(await season.client.get(f"rankings.json?{query}"), 400, "omit")


# ── The header ──────────────────────────────────────────────────────────────────────────────────────────

READ: Final[list[tuple[list[str], dict[str, str]]]] = [
    ([], {}),
    ([""], {}),
    (["return=minimal"], {"return": "minimal"}),
    (["Return = MINIMAL"], {"return": "MINIMAL"}),
    (['return="minimal"'], {"return": "minimal"}),
    (['return="mini\\mal"'], {"return": "minimal"}),
    (["\t return\t=\tminimal "], {"return": "minimal"}),
    (["return"], {"return": ""}),
    (['return=""'], {"return": ""}),
    (["respond-async, return=minimal, wait=10"], {"respond-async": "", "return": "minimal", "wait": "10"}),
    ([", ,return=minimal,,"], {"return": "minimal"}),
    (["respond-async", "return=minimal"], {"respond-async": "", "return": "minimal"}),
    (["return=minimal, return=representation"], {"return": "minimal"}),
    (["return=representation", "return=minimal"], {"return": "representation"}),
    (["return, RETURN=minimal"], {"return": ""}),
    (['return=minimal; a; b=1 ;c = "x;,\\"y" ; ;'], {"return": "minimal"}),
    (["a; return=minimal"], {"a": ""}),
    (['a="return=minimal, \\", return=minimal"'], {"a": 'return=minimal, ", return=minimal'}),
    (['a="ü€", return=minimal'], {"a": "ü€", "return": "minimal"}),
    # What is no Prefer header counts as none.
    (["return="], {}),
    (["return=minimal,=x"], {}),
    (["return=minimal x"], {}),
    (["return minimal"], {}),
    (["return=minimal;="], {}),
    (["return=minimal;a="], {}),
    (["return=mini/mal"], {}),
    (["return==minimal"], {}),
    (["return=minimal", '"'], {}),
    (['return=minimal, a="'], {}),
    (['return=minimal, a="\\"'], {}),
    (["return=minimal, ü"], {}),
    (["return=minimal\n"], {}),
    (['return="minimal\x00"'], {}),
]


@pytest.mark.parametrize(("values", "preferences"), READ)
def test_the_header_is_read_as_its_rfc_says(values: list[str], preferences: dict[str, str]) -> None:
    assert parse_preferences(values) == preferences
    assert prefers_minimal(values) == (preferences.get("return", "").lower() == "minimal")


tokens = st.text("returnmialREPSTION-!~0", min_size=1, max_size=8) | st.sampled_from(["return", "minimal"])
quoted = st.text(st.characters(exclude_categories=["C"]), max_size=8).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
spaces = st.sampled_from(["", "", " ", "\t "])
pairs = st.tuples(tokens, spaces, st.just("="), spaces, tokens | quoted).map("".join) | tokens
preferences = st.tuples(pairs, st.lists(st.tuples(spaces, st.just(";"), spaces, pairs | st.just("")).map("".join))).map(
    lambda parts: parts[0] + "".join(parts[1])
)


@given(st.lists(preferences, min_size=1, max_size=4), spaces)
def test_a_list_is_read_the_same_on_one_line_or_on_several(items: list[str], space: str) -> None:
    first = parse_preferences(items[:1])
    assert len(first) == 1
    read = parse_preferences(items)
    assert read.items() >= first.items()
    assert parse_preferences([f"{space},{space}".join(items)]) == read
    assert parse_preferences([*items, "="]) == {}


@given(st.lists(st.text() | preferences | st.text('ab ,;="\\\t'), max_size=4))
@example(["a " * 50_000 + "="])
@example(["a;" * 50_000 + "="])
@example(['a="' + "\\" * 100_001])
@example(["," * 100_000 + "="])
def test_whatever_it_is_is_read_or_passed_over(values: list[str]) -> None:
    assert isinstance(prefers_minimal(values), bool)


async def test_whatever_is_preferred_the_answer_is_minimal_or_whole_and_never_a_refusal(
    season: Season, service: Service, log: Log
) -> None:
    """Asked again with a key, so that thousands of requests are one event."""
    connection = HTTPConnection(urlsplit(service.url).netloc, timeout=10)

    def body_of(*values: bytes) -> tuple[bytes, bool]:
        connection.putrequest("POST", f"/tournament/{season.client.tournament}/competitors.json")
        for name, value in (
            ("Authorization", f"Bearer {season.client.token}".encode()),
            ("Content-Type", FORM.encode()),
            ("Idempotency-Key", b"k"),
            ("Content-Length", b"8"),
            *(("Prefer", value) for value in values),
        ):
            connection.putheader(name, value)
        connection.endheaders(b"name=Ada")
        response = connection.getresponse()
        body = response.read()
        assert response.status == 200, body
        return body, response.headers["Preference-Applied"] == "return=minimal"

    @examples(300)
    @given(st.lists(header_bytes | preferences.map(str.encode), max_size=3))
    def whatever_it_is(values: list[bytes]) -> None:
        text = [value.decode("utf-8", "surrogateescape").strip(" \t") for value in values]
        is_minimal = prefers_minimal(text)
        assert body_of(*values) == ((minimal if is_minimal else whole), is_minimal)

    def ask_all() -> None:
        nonlocal whole, minimal
        whole, minimal = body_of()[0], body_of(b"return=minimal")[0]
        whatever_it_is()

    whole = minimal = b""
    before = await log.length()
    await asyncio.to_thread(ask_all)
    connection.close()
    assert len(whole) > 3 * len(minimal)
    assert await log.length() == before + 1
