"""The description of the interface: it is valid, it does not drift from what it describes, and the service keeps to it.

What a running service does with requests made up from the description is looked at by schemathesis with all its checks:
a few seconds of it here, as much as is wanted by `make fuzz`.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from openapi_spec_validator import validate

from api.http import problems
from api.interface import openapi
from api.interface.declarations import TOURNAMENT, Write
from api.interface.fields import SCHEMAS, Empty
from api.interface.operations import ACTIONS, OPERATIONS, STREAMS
from api.interface.public.reads import PUBLIC, PUBLIC_READS
from api.interface.public.stream import PUBLIC_EVENTS
from api.interface.resources.stream import EVENTS
from tests.api import documented
from tests.api.asking import path_of, query_of, refused
from tests.api.rendered import BY_NAME, openapi_document
from tests.service import Client, Season, Service

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
    return openapi_document()["paths"][TOURNAMENT + path][method.lower()]


async def test_no_description_has_the_line_breaks_of_the_source(document: Any) -> None:
    found = re.findall(r'"description": ?"[^"]*\\n[^"]*"', json.dumps(document))
    assert found == []


def test_every_operation_is_described_and_nothing_else() -> None:
    paths = openapi_document()["paths"]
    names = [f"{method.upper()} {path}" for path, operations in paths.items() for method in operations]
    others = [*(f"GET {stream.path}" for stream in STREAMS), *(f"{one.method} {one.address}" for one in ACTIONS)]
    opened = [f"GET {path}" for path in openapi._open_paths()]
    told = sorted(name.replace(TOURNAMENT, "") for name in names if PUBLIC not in name)
    assert told == sorted([*BY_NAME, *[other.replace(TOURNAMENT, "") for other in others], *opened])


def test_every_path_of_the_public_is_described_and_no_other() -> None:
    paths = openapi_document()["paths"]
    public = {path: described for path, described in paths.items() if path.startswith(PUBLIC)}
    assert sorted(public) == sorted(PUBLIC + one.path for one in (*PUBLIC_READS, PUBLIC_EVENTS))
    for described in public.values():
        assert list(described) == ["get"]
        assert (described["get"]["tags"], described["get"]["security"]) == (["public"], [])
        assert not {"401", "403"} & described["get"]["responses"].keys()


async def test_the_parameters_of_the_public_that_are_described_are_those_that_are_taken(
    service: Service, season: Season, subtests: pytest.Subtests
) -> None:
    for path in [one.path for one in (*PUBLIC_READS, PUBLIC_EVENTS)]:
        with subtests.test(path):
            address = f"/board/{season.client.tournament}/{path.format(ranking_id=season.ranking_id)}?no-parameter=1"
            answer = await service.client("", None).send("GET", address)
            assert answer.status == 400
            parameters = [
                one for one in openapi_document()["paths"][PUBLIC + path]["get"]["parameters"] if one["in"] == "query"
            ]
            assert sorted(told(answer, "is not a parameter")) == sorted(one["name"] for one in parameters)
            needed = {fault["field"] for fault in answer.json["errors"] if fault["message"] == "is required"}
            assert needed == {one["name"] for one in parameters if one["required"]}


async def test_every_status_that_is_answered_is_described(document: Any) -> None:
    described = {int(name[1:]) for name in document["components"]["responses"]}
    assert described == set(problems.STATUSES.values()) - {405}  # that is answered to what is not described


def told(answer: Any, prefix: str) -> list[str]:
    """What a refusal says that an operation takes."""
    (message,) = [fault["message"] for fault in answer.json["errors"] if prefix in fault["message"]]
    return [] if message.endswith("it takes none") else re.split(", | and ", message.rpartition("it takes ")[2])


async def test_the_fields_that_are_described_are_those_that_are_taken_and_needed(
    season: Season, subtests: pytest.Subtests
) -> None:
    for name in WRITES:
        with subtests.test(name):
            send = season.client.post if name.startswith("POST") else season.client.put
            answer = await send(path_of(name, season), {"not a field": "1"})
            assert answer.status == 422
            needed = {fault["field"] for fault in answer.json["errors"] if fault["message"] == "is required"}
            one, *others = bodies(name) or [{"properties": {}, "required": []}]
            assert sorted(told(answer, "is not a field")) == sorted({**one["properties"]} | of_all(others))
            assert needed == set(one["required"])
            assert [list(other["properties"]) for other in others] == [other["required"] for other in others]


def bodies(name: str) -> list[Any]:
    """The objects that a body may be: the fields of one, or items."""
    if "requestBody" not in described(name):
        return []
    (content,) = described(name)["requestBody"]["content"].values()
    schemas = openapi_document()["components"]["schemas"]
    named = content["schema"].get("oneOf", [content["schema"]])
    return [schemas[its["$ref"].removeprefix(SCHEMAS)] for its in named]


def of_all(schemas: list[Any]) -> dict[str, Any]:
    return {name: field for schema in schemas for name, field in schema["properties"].items()}


async def test_the_parameters_that_are_described_are_those_that_are_taken_and_needed(
    season: Season, subtests: pytest.Subtests
) -> None:
    for name in READS:
        with subtests.test(name):
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
        about = [body["properties"].get("result", {}).get("description", "") for body in bodies(name)[:1]]
        assert refused == (not any("result[<competitor id>]" in words for words in about))


def test_an_optional_field_may_be_empty_unless_a_change_refuses_that() -> None:
    refused = {
        (operation.operation_id, field.name)
        for operation in OPERATIONS
        if isinstance(operation, Write)
        for field in operation.fields
        if field.empty is Empty.REFUSED
    }
    assert ("changeCompetitor", "name") in refused
    for name in WRITES:
        for body in bodies(name):
            for field, schema in body["properties"].items():
                must_be_full = field in body["required"] or (described(name)["operationId"], field) in refused
                assert ({"type": "null"} in schema.get("anyOf", [])) != must_be_full


def test_operations_have_ids_and_tags_that_clients_can_be_made_from() -> None:
    document = openapi_document()
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len({*ids}) == len(ids)
    assert all(re.fullmatch("[a-z][A-Za-z]*", one) for one in ids)
    assert {tag for operation in operations for tag in operation["tags"]} == {tag["name"] for tag in document["tags"]}


def parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    """All objects in a document."""
    if isinstance(schema, dict):
        yield schema
        yield from (part for value in schema.values() for part in parts_of(value))
    elif isinstance(schema, list | tuple):
        yield from (part for value in schema for part in parts_of(value))


def test_there_are_no_constants_or_bare_enumerations_which_generators_name_by_their_values() -> None:
    for part in parts_of(openapi_document()):
        assert "const" not in part
        assert "enum" not in part or "type" in part


def test_every_integer_has_its_size_without_which_generators_take_32_bits() -> None:
    integers = [part for part in parts_of(openapi_document()) if part.get("type") == "integer"]
    assert len(integers) > 100
    assert {part.get("format") for part in integers} == {"int64"}


def test_alternatives_may_both_fit_because_generated_clients_refuse_an_answer_that_fits_two() -> None:
    document = openapi_document()
    answers = [operation["responses"] for path in document["paths"].values() for operation in path.values()]
    assert not any("oneOf" in part for part in parts_of([answers, document["components"]]))


def test_a_body_has_one_media_type_of_which_generators_choose_none_or_the_wrong_one() -> None:
    for part in parts_of(openapi_document()):
        if "requestBody" in part:
            assert [*part["requestBody"]["content"]] == ["application/json"]


def test_names_stay_apart_in_every_language() -> None:
    """Whatever the case of their letters; and of a type `X`, Go has a function `NewX`."""
    document = openapi_document()
    operations = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    for names in (operations, [*document["components"]["schemas"]]):
        assert all(re.fullmatch("[A-Za-z]+", name) for name in names)
        made = {name.lower() for name in names} | {f"new{name.lower()}" for name in names}
        assert len(made) == 2 * len(names)


def test_patterns_mean_the_same_in_every_language() -> None:
    """They have no classes that some take for ASCII, nor anything that RE2 lacks; and fit their own examples."""
    patterns = {part["pattern"] for part in parts_of(openapi_document()) if isinstance(part.get("pattern"), str)}
    assert len(patterns) > 10
    assert [one for one in patterns if re.search(r"\\[dDwWsSbBpPZAz]|\(\?[^:]|\\[1-9]", one)] == []
    assert [one for one in patterns if not one.startswith("^") or not one.endswith("$")] == []
    for part in parts_of(openapi_document()):
        if isinstance(part.get("pattern"), str):
            assert all(re.search(part["pattern"], example) for example in part.get("examples", []))


async def test_a_default_that_is_sent_changes_nothing(season: Season) -> None:
    """Generated clients send it, together with whatever else is asked."""
    for name, more in product(READS, ("", "after=0", "top=1", f"around={season.ids[0]}&span=1")):
        defaults = {
            parameter["name"]: openapi.schema_of(parameter)["default"]
            for parameter in described(name)["parameters"]
            if "default" in openapi.schema_of(parameter)
        }
        address = path_of(name, season) + (query_of(name) or "?") + f"&{more}"
        answer = await season.client.get(address.replace("?&", "?").rstrip("?&"))
        with_defaults = await season.client.get(f"{address}&{urlencode(defaults)}".replace("?&", "?").rstrip("?&"))
        assert (answer.status, answer.body) == (with_defaults.status, with_defaults.body), address


async def test_forms_and_queries_take_lists_with_commas_and_as_repeated_fields(season: Season) -> None:
    one, two, _ = season.ids
    for body in (f"group_id=1&participants={one},{two}", f"group_id=1&participants={one}&participants={two}"):
        made = await season.client.post("competitions.json", body.encode())
        assert [its["competitor_id"] for its in made.json["competition"]["participants"]] == [one, two]
    windows = [f"competitors={one},{two}", f"competitors={one}&competitors={two}"]
    answers = [await season.client.get(f"{season.path}/standings.json?{window}") for window in windows]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].body == answers[1].body


async def test_a_list_with_brackets_is_refused_in_words_that_name_the_right_form(season: Season) -> None:
    answer = await season.client.post("competitions.json", b"group_id=1&participants[]=1&participants[]=2")
    for said in refused(answer, 422, "participants[]"):
        assert "send participants=1,2" in said
    answer = await season.client.get(f"{season.path}/standings.json?competitors[]=1")
    for said in refused(answer, 400, "competitors[]"):
        assert "send competitors=1,2" in said


def test_what_takes_no_fields_has_no_body() -> None:
    for name in WRITES:
        operation = BY_NAME[name]
        assert isinstance(operation, Write)
        assert ("requestBody" in described(name)) == bool(operation.fields)


def test_the_table_of_the_documentation_is_made_from_the_declarations() -> None:
    assert documented.PAGE.read_text(encoding="utf-8") == documented.page()  # `make docs` writes it


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────

FUZZED_MIN: Final = 50
COVERED_MIN: Final = 500
"""Requests that are made up, at least: fewer, and nothing was shown."""
SETTINGS: Final = """
headers = { Authorization = "Bearer ${TOKEN}" }

[checks.positive_data_acceptance]
expected-statuses = ["200", "404", "409", "412", "422"]

[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "413", "414", "415", "422", "428"]

# What JSON Schema cannot say: from is not beyond to, there is one moment, a page or a cursor, no year is 0000, a field
# is JSON, and an address has its limit.
[[operations]]
include-path-regex = "(explain|standings|classification|expiring|leaders|form|add|points|competit(or|ion)s).json$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404", "409", "412", "422"]

[[operations]]
include-path-regex = "(history|scoring).json$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404", "409", "412", "422"]

[[operations]]
include-path-regex = "preview.json$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404", "409", "412", "414", "422"]

[[operations]]
include-name-regex = "^GET .*/(competitors|competitions).json$"
checks.positive_data_acceptance.expected-statuses = ["200", "400", "404", "422"]
"""


def with_texts(schema: Any) -> Any:
    """A field's schema, and what the document says in words: its value may be sent as a text, and be empty."""
    alternatives = schema.get("anyOf", [schema])
    texts = [TEXTS[one["type"]] for one in alternatives if one.get("type") in TEXTS]
    texts += [TEXTS["array"] for one in alternatives if "$ref" in one]
    empty = [{"type": "string", "maxLength": 0}] if {"type": "null"} in alternatives else []
    return {"anyOf": [*alternatives, *texts, *empty]}


TEXTS: Final = {
    "integer": {"type": "string", "pattern": "^(0|-?[1-9][0-9]{0,18})$"},
    "boolean": {"type": "string", "enum": ["true", "false"]},
    "array": {"type": "string"},
}


@pytest.fixture
async def described_season(document: Any, season: Season, tmp_path: Path) -> Path:
    """The document, written for what there is in `season`: with other ids nearly all would be 404."""
    paths = {}
    asked = json.dumps({"name": "ended", "scope": "read", "expires_in_days": 1}).encode()
    made = await season.client.send("POST", "/tokens.json", asked, {"Content-Type": "application/json"})
    ended = made.json["token"]["id"]
    assert (await season.client.put("publication.json", {"published": "true"})).status == 200
    for stream in (TOURNAMENT + EVENTS.path, PUBLIC + PUBLIC_EVENTS.path):
        del document["paths"][stream]  # its answers do not end
    for name, schema in document["components"]["schemas"].items():
        if name.endswith(("Fields", "Items")):
            schema["properties"] = {name: with_texts(field) for name, field in schema["properties"].items()}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            there = path
            if path.startswith(openapi.TOURNAMENT):
                name = f"{method.upper()} {path.removeprefix(openapi.TOURNAMENT)}"
                there = f"/tournament/{season.client.tournament}/{path_of(name, season)}"
            elif "{token_id}" in path:
                there = path.format(token_id=ended)
            elif path.startswith(PUBLIC):
                there = path.format(tournament=season.client.tournament, ranking_id=season.ranking_id)
            # No tag that is made up is one that was given: what If-Match does is looked at in test_conditional.py.
            given = [p for p in operation.get("parameters", []) if p["in"] != "path" and p["name"] != "If-Match"]
            operation["parameters"] = given
            paths.setdefault(there, {})[method] = operation
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document | {"paths": paths}))
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    return file


async def test_a_nul_in_any_field_is_refused_or_found_nowhere(season: Season, described_season: Path) -> None:
    """PostgreSQL has no text with one."""
    form = "application/x-www-form-urlencoded"
    document = json.loads(await asyncio.to_thread(described_season.read_text))
    asked = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            requests: list[tuple[str, bytes | None]] = [
                (f"{path}?{one['name']}=a%00", None) for one in operation["parameters"] if one["in"] == "query"
            ]
            if form in (taken := operation.get("requestBody", {"content": {}})["content"]):
                schema = document["components"]["schemas"][taken[form]["schema"]["$ref"].rpartition("/")[2]]
                requests += [(path, f"{name}=a%00".encode()) for name in schema["properties"]]
            for address, body in requests:
                answer = await season.client.send(method.upper(), address, body, {"Content-Type": form})
                assert answer.status in (200, 400, 404, 409, 422), (method, address, body)
                asked += 1
    assert asked > 100


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("phase", "least"), [("fuzzing", FUZZED_MIN), ("coverage", COVERED_MIN)])
async def test_the_service_is_as_it_is_described(
    service: Service, client: Client, described_season: Path, phase: str, least: int
) -> None:
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).with_name("schemathesis")),
        *("run", str(described_season), "--url", service.url, "--checks", "all", "--phases", phase),
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
    assert int(generated[1]) >= least
