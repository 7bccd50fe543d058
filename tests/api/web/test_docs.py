"""The documentation of a running service: it names everything, and shows nothing but what the service answers."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from shutil import which
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.interface.openapi import schema_of
from api.web.docs import docs_page
from api.web.docs.docs_page import marked
from api.web.docs.examples import FOLDED_CHARACTERS_MAX, Example, folded
from api.web.docs.glossary import WORDS
from api.web.docs.operations_part import kind_of
from tests.api import examples
from tests.api.cli.conftest import Tallybook
from tests.api.rendered import openapi_document
from tests.service import Client, Service

ARCHITECTURE: Final = Path(__file__).parents[3] / "docs/ARCHITECTURE.md"


@pytest.fixture
async def stranger(service: Service) -> Client:
    """A client without a token."""
    return service.client("none", None)


class Tags(HTMLParser):
    """The tags of a page, and what they point to."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            assert name != "style"
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")


def described() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of every operation."""
    for path, operations in openapi_document()["paths"].items():
        for method, operation in operations.items():
            yield method.upper(), path, operation


# ── The examples ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(which("curl") is None, reason="no curl: the examples of the documentation were not run")
async def test_every_answer_that_is_shown_is_what_the_service_answers(service: Service) -> None:
    """`make docs` records them again. The commands are run as they stand on the page."""
    told = [examples.settled(example) async for example in examples.told(service)]
    assert told == [examples.settled(example) for example in examples.kept_examples()]


def test_every_operation_has_an_example_that_is_no_refusal() -> None:
    shown = {example.operation_id for example in examples.kept_examples() if example.status == 200}
    assert shown == {operation["operationId"] for _, _, operation in described()}


def test_what_a_command_uses_was_kept_before() -> None:
    known = set(re.findall(r"^(\w+)=", docs_page._SETUP, re.MULTILINE))
    for example in examples.kept_examples():
        assert set(re.findall(r"\$(\w+)", example.command)) <= known
        known |= example.keeps.keys()


def test_the_first_table_is_how_the_examples_begin() -> None:
    steps = [operation_id for _, operation_id, _ in docs_page._STEPS]
    assert [example.operation_id for example in examples.kept_examples()][: len(steps)] == steps


async def test_an_operator_makes_what_the_first_table_needs(service: Service, dsn: str) -> None:
    made = [await Tallybook(dsn).done(*shlex.split(line)[1:]) for line in docs_page._MADE_BY_OPERATORS.splitlines()]
    slug, token = made[0], made[1].split()[-1]
    assert f"SLUG={slug}\n" in docs_page._SETUP
    assert token.startswith("tb_")
    assert (await service.client(slug, token).post("competitors.json", {"name": "Ana"})).status == 200


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=70),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=30), inner, max_size=5),
    )
)
def test_json_is_folded_unchanged_into_lines_for_which_a_phone_has_room(value: Any) -> None:
    text = folded(value)
    assert json.loads(text) == value
    for line in text.split("\n"):
        assert len(line) <= FOLDED_CHARACTERS_MAX + len(",") or holds_one(line.strip(" ").removesuffix(","))


def holds_one(line: str) -> bool:
    """Whether it cannot be parted: a value, the value of a key, or a key before what is folded."""
    if line[-1] in "[{":
        return len(line) == 1 or isinstance(json.loads(line.rstrip("[{ :")), str)
    with suppress(json.JSONDecodeError):
        return not isinstance(json.loads(line), list | dict)
    ((_, value),) = json.loads(f"{{{line}}}").items()
    return not value or not isinstance(value, list | dict)


def test_what_differs_each_time_is_not_compared_and_all_else_is() -> None:
    def settled(body: str) -> str:
        return examples.settled(Example(operation_id="a", command="", status=200, body=body)).body

    assert settled('{"at":"2026-11-23 06:31:55"}') == settled('{"at":"2027-01-02 03:04:05"}')
    assert settled('"2026-11-23T06:31:56.675533Z"') == settled('"2027-01-02T03:04:05.000001Z"')
    assert settled('{"id":"1-a2c9193e"}') == settled('{"id":"1-00112233"}')
    for one, other in [('{"id":1}', '{"id":2}'), ('"000000"', '"0044ff"'), ('"1-a2c9193e"', '"2-a2c9193e"')]:
        assert settled(one) != settled(other)


# ── The page ────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_page_names_every_operation_and_field_and_links_to_what_is_there(stranger: Client) -> None:
    answer = await stranger.send("GET", "/docs")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    text = re.sub("<[^>]*>", "", answer.body.decode())
    for method, path, operation in described():
        assert f"{method} {path}" in text
        for parameter in operation.get("parameters", []):
            assert parameter["name"] in text
    tags = Tags(answer.body)
    assert len({*tags.ids}) == len(tags.ids)
    assert {operation["operationId"] for _, _, operation in described()} <= {*tags.ids}
    for link in tags.links:
        if link.startswith("#"):
            assert link[1:] in tags.ids
        elif link != "data:,":
            assert (await stranger.send("GET", f"/{link.removeprefix('/')}")).status == 200


@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_runs_nothing_but_files_of_ours(stranger: Client, path: str) -> None:
    answer = await stranger.send("GET", path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    tags = Tags(answer.body)
    assert not tags.names & {"style", "img", "iframe", "object", "form", "base"}
    assert re.search(rb"<script[^>]*>[^<]", answer.body) is None


async def test_the_root_leads_to_what_there_is_and_names_no_tournament(service: Service, client: Client) -> None:
    stranger = service.client("none", None)
    await client.put("publication.json", {"published": "true"})
    answer = await stranger.send("GET", "/")
    assert answer.status == 200
    assert client.tournament.encode() not in answer.body
    links = [link for link in Tags(answer.body).links if not link.startswith(("/static/", "data:"))]
    assert links == ["/console", "/docs", "/openapi.json"]
    assert [(await stranger.send("GET", link)).status for link in links] == [401, 200, 200]  # it asks for a token


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_browser_that_asks_for_nothing_is_led_on_and_a_program_gets_json(stranger: Client, method: str) -> None:
    for accept, media_type in ((BROWSER, "text/html; charset=utf-8"), ("*/*", "application/json")):
        answer = await stranger.send(method, "/nowhere", headers={"Accept": accept})
        assert (answer.status, answer.headers["Content-Type"]) == (404, media_type)
    page = (await stranger.send("GET", "/nowhere", headers={"Accept": BROWSER})).body.decode()
    assert "There is nothing at this address." in page
    assert 'href="/console"' in page
    assert (await stranger.send("POST", "/nowhere", headers={"Accept": BROWSER})).json["status"] == 404


def test_every_status_is_explained() -> None:
    statuses = {int(status) for _, _, operation in described() for status in operation["responses"]}
    assert statuses == set(docs_page._STATUSES)


def test_a_word_is_defined_once_here_or_in_the_architecture() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    inside = re.findall(r"^\| ([a-z -]+) \| .+ \|$", text[text.index("## Words") :], re.MULTILINE)
    assert "epoch" in inside
    assert not WORDS.keys() & set(inside)


def test_the_values_of_a_field_are_described_in_words() -> None:
    told = {
        (operation["operationId"], one["name"]): kind_of(schema_of(one))
        for _, _, operation in described()
        for one in operation.get("parameters", ())
    }
    assert told["listCompetitions", "per_page"] == (
        "a whole number, 200 at most; a larger number means that many, 100 if absent"
    )
    assert told["showStandings", "top"] == "a whole number, 1 to 1,000"
    assert told["showStandings", "unity"] == "a whole number"
    assert told["showStandings", "competitors"] == "several, with commas"
    assert told["showStandings", "at_time"].startswith("such as 2026-05-02, ")
    assert told["listCompetitors", "name"] == "up to 255 characters"
    assert told["listCompetitions", "has_result"] == "true or false"
    assert kind_of({"anyOf": [{"type": "string", "enum": ["next", "all"]}, {"type": "null"}]}) == "next or all"


def test_what_stands_between_backticks_is_code_and_nothing_is_html() -> None:
    assert marked("a `b` <i>") == "a <code>b</code> &lt;i&gt;"
