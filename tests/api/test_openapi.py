"""The description of the interface: it is valid, it does not drift from what it describes, and the service keeps to it.

What a running service does with requests made up from the description is looked at by schemathesis with all its checks:
a few seconds of it here, as much as is wanted by `make fuzz`.
"""

import asyncio
import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from openapi_spec_validator import validate

from api.http import problems
from api.interface import openapi
from api.interface.declarations import TOURNAMENT, Write
from tests.api import documented
from tests.api.rendered import BY_NAME
from tests.api.service import Client, Season, Service
from tests.api.test_section5 import path_of

EXAMPLES: Final = int(os.environ.get("TALLYBOOK_TEST_EXAMPLES", "2"))
"""Of requests to each operation; there are some hundred more, for each way of being wrong."""
READS: Final = [name for name, operation in BY_NAME.items() if not isinstance(operation, Write)]
WRITES: Final = [name for name, operation in BY_NAME.items() if isinstance(operation, Write)]


@pytest.fixture
async def document(service: Service) -> Any:
    """As anybody can have it."""
    answer = await service.client("", None).send("GET", "/openapi.json")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    return answer.json


# ── The document ────────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_openapi_3_1(document: Any) -> None:
    validate(document)
    assert document["openapi"].startswith("3.1")


def described(name: str) -> Any:
    """What the document says of the operation of this name."""
    method, path = name.split()
    return openapi.described()["paths"][TOURNAMENT + path][method.lower()]


def test_every_operation_is_described_and_nothing_else() -> None:
    paths = openapi.described()["paths"]
    names = [f"{method.upper()} {path}" for path, operations in paths.items() for method in operations]
    assert sorted(name.replace(TOURNAMENT, "") for name in names if TOURNAMENT in name) == sorted(BY_NAME)


async def test_every_status_that_is_answered_is_described(document: Any) -> None:
    described = {int(name[1:]) for name in document["components"]["responses"]}
    assert described == set(problems.STATUSES.values()) - {405}  # that is answered to what is not described


def told(answer: Any, prefix: str) -> list[str]:
    """What a refusal says that an operation takes."""
    (message,) = [fault["message"] for fault in answer.json["errors"] if prefix in fault["message"]]
    return [] if message.endswith("it takes none") else re.split(", | and ", message.rpartition("it takes ")[2])


@pytest.mark.parametrize("name", WRITES)
async def test_the_fields_that_are_described_are_those_that_are_taken_and_needed(season: Season, name: str) -> None:
    send = season.client.post if name.startswith("POST") else season.client.put
    answer = await send(path_of(name, season), {"not a field": "1"})
    assert answer.status == 422
    needed = {fault["field"] for fault in answer.json["errors"] if fault["message"] == "is required"}
    for content in described(name)["requestBody"]["content"].values():
        one, *others = alternatives(content["schema"])
        assert sorted(told(answer, "is not a field")) == sorted({**one["properties"]} | of_all(others))
        assert needed == set(one["required"])
        assert [list(other["properties"]) for other in others] == [other["required"] for other in others]


def alternatives(schema: Any) -> list[Any]:
    """The objects that a body may be: the fields of one, or items."""
    found: list[Any] = schema.get("oneOf", [schema])
    return found


def of_all(schemas: list[Any]) -> dict[str, Any]:
    return {name: field for schema in schemas for name, field in schema["properties"].items()}


@pytest.mark.parametrize("name", READS)
async def test_the_parameters_that_are_described_are_those_that_are_taken_and_needed(season: Season, name: str) -> None:
    answer = await season.client.get(path_of(name, season) + "?no-parameter=1")
    assert answer.status == 400
    parameters = [parameter for parameter in described(name)["parameters"] if parameter["in"] == "query"]
    assert sorted(told(answer, "is not a parameter")) == sorted(parameter["name"] for parameter in parameters)
    needed = {fault["field"] for fault in answer.json["errors"] if fault["message"] == "is required"}
    assert needed == {parameter["name"] for parameter in parameters if parameter["required"]}


async def test_fields_with_an_id_are_described(season: Season) -> None:
    indexed = f"result[{season.ids[0]}]"
    for name in WRITES:
        send = season.client.post if name.startswith("POST") else season.client.put
        answer = await send(path_of(name, season), {indexed: "1", "not a field": "1"})
        refused = indexed in {fault["field"] for fault in answer.json["errors"]}
        for content in described(name)["requestBody"]["content"].values():
            patterns = alternatives(content["schema"])[0].get("patternProperties", {})
            assert refused == (not any(re.search(pattern, indexed) for pattern in patterns))


def test_an_optional_field_may_be_empty() -> None:
    for operations in openapi.described()["paths"].values():
        for described in operations.values():
            for content in described.get("requestBody", {}).get("content", {}).values():
                for schema in alternatives(content["schema"]):
                    for name, field in schema["properties"].items():
                        assert ({"const": ""} in field.get("anyOf", [])) == (name not in schema["required"])


def test_the_table_of_the_documentation_is_made_from_the_declarations() -> None:
    assert (
        documented.in_page(documented.PAGE.read_text(encoding="utf-8")) == documented.table()
    )  # `make docs` writes it


# ── The page ────────────────────────────────────────────────────────────────────────────────────────────


class Tags(HTMLParser):
    """The tags of a page, and what they point to."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.add(value or "")


async def test_the_page_names_every_operation_and_loads_and_runs_nothing(service: Service) -> None:
    answer = await service.client("", None).send("GET", "/docs")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    tags = Tags()
    tags.feed(answer.body.decode())
    assert not tags.names & {"script", "link", "img", "iframe", "object", "form", "base"}
    assert all(link == "openapi.json" or link[1:] in tags.ids for link in tags.links)
    for operation in BY_NAME.values():
        assert TOURNAMENT + operation.path in answer.body.decode()


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────

SETTINGS: Final = """
headers = { Authorization = "Bearer ${TOKEN}" }

[checks.positive_data_acceptance]
expected-statuses = ["200", "404", "409", "412", "422"]

# What JSON Schema cannot say: from is not beyond to, there is one moment, a page or a cursor, a field is JSON.
[[operations]]
include-path-regex = "(explain|standings|classification|form|add|points|competitors|competitions).json$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404", "409", "412", "422"]

[[operations]]
include-name-regex = "^GET .*/(competitors|competitions).json$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404", "422"]
"""


@pytest.fixture
async def described_season(document: Any, season: Season, tmp_path: Path) -> Path:
    """The document, written for what there is in `season`: with other ids nearly all would be 404."""
    paths = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            there = path
            if path.startswith(openapi.TOURNAMENT):
                name = f"{method.upper()} {path.removeprefix(openapi.TOURNAMENT)}"
                there = f"/tournament/{season.client.tournament}/{path_of(name, season)}"
            # No tag that is made up is one that was given: what If-Match does is looked at in test_conditional.py.
            given = [p for p in operation.get("parameters", []) if p["in"] != "path" and p["name"] != "If-Match"]
            operation["parameters"] = given
            paths.setdefault(there, {})[method] = operation
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document | {"paths": paths}))
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    return file


@pytest.mark.timeout(3_600)
async def test_the_service_is_as_it_is_described(service: Service, client: Client, described_season: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        *("run", str(described_season), "--url", service.url, "--checks", "all", "--phases", "coverage,fuzzing"),
        *("--max-examples", str(EXAMPLES), "--seed", "5", "--continue-on-failure", "--no-color", "--no-shrink"),
        cwd=described_season.parent,
        env=os.environ | {"TOKEN": client.token or "", "COLUMNS": "200"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    generated = re.search(r"(\d+) generated", said)
    assert generated, said
    assert int(generated[1]) > 500
