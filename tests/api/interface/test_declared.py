"""What a field may be is declared once: the service takes what the document admits, and refuses what it does not.

Values fit the schemas of the document, nearly fit them, or are hostile. Each is judged twice: by its schema, and by the
service. Rules that JSON Schema cannot say are in BEYOND.
"""

import asyncio
import json
import re
from contextlib import closing, suppress
from datetime import datetime
from http.client import HTTPConnection
from itertools import count
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from api.interface.declarations import TOURNAMENT, Write, fields_name, method_of
from api.interface.fields import (
    FROM_0,
    FROM_1,
    ID,
    INTEGER,
    SCHEMAS,
    Empty,
    Field,
    FieldMisread,
    FieldType,
    read_query,
)
from api.interface.public.reads import PUBLIC_READS
from api.interface.public.stream import PUBLIC_EVENTS
from api.interface.resources.stream import EVENTS
from engine.domain.errors import Unreadable
from engine.domain.terms import ID_MAX
from tests.api.asking import path_of, with_points
from tests.api.fuzzed import examples
from tests.api.rendered import BY_NAME, openapi_document
from tests.desks import GUARD_SECONDS
from tests.service import Season, Service

WRITES: Final = [name for name, operation in BY_NAME.items() if isinstance(operation, Write) and operation.fields]
BEYOND: Final = re.compile(
    "|".join(
        [
            "is not in this",
            "is not a participant",
            "must be one of the participants",
            "is (named|given) more than once",
            "names a competitor more than once",
            "must name each id once",
            "is also to be added",
            "already has a unity ",
            "has this key already",
            "the tournament that is deleted",
            "must be lines like 1..4 promotion",
            "a lower number of those dropped",
            "must have one of unity, ratio and per",
            "is the key of more than one",
            "must be another competitor",
            "is below competitor",
            "must be sent (alone|with)",
            "if there are (at most|more than) two participants",
            "is not within ±2147483647",  # where results count, more is
            "cannot separate anyone",
            "neither adds points nor undoes any",
            "is not a known time zone",
            "must be a.* PNG",
            "must contain a character that can be seen",
            "is already the name of a unity",
        ]
    )
)
"""What is said of values that JSON Schema cannot tell from good ones."""
DOCUMENT: Final = openapi_document()
DIGITS: Final = "\u0663\uff15\u0967"
HOSTILE: Final = [
    *(" ", "\n", "\t", "0", "00", "-1", "+1", "01", "1 ", " 1", "1\n", "1_0", "1.0", "1e3", "0x1", "½", "²", *DIGITS),
    *(
        "P5W",
        "P5W\n",
        f"P{DIGITS[0]}W",
        "P0D",
        "P",
        "PT",
        "P1M",
        "p1w",
        "P99999W",
        "true",
        "True",
        "null",
        "asc",
        "DESC\n",
    ),
    *("2024-02-29 12:00:00", "2024-02-29 12:00:00\n", f"2024-02-2{DIGITS[1]} 12:00:00", "2024-13-01 00:00:00"),
    *("2024-01-31", "2024-01-32", "2024-01-01 24:00:00", "2024-01-01T00:00:00z", "2024-01-01 00:00:00+24:00"),
    *(
        "c0ffee",
        "c0ffee\n",
        "C0FFE\uff21",
        "junior, senior",
        "two words",
        ",",
        "a,b",
        "\u202eabc",
        "\u200b",
        " \u3164",
        "\u2028",
        "\x00",
        "\x85",
    ),
    *(
        "x" * 255,
        "x" * 256,
        f" {'x' * 255} ",
        "Europe/Berlin",
        "Europe/Berlin\n",
        "head",
        "1:1",
        f"1:{DIGITS[0]}",
        "1.0\n",
    ),
]
"""Texts for any field."""
INTEGERS: Final = st.integers() | st.sampled_from(
    [0, 1, 2**31 - 1, 2**31, 2**53, ID_MAX, ID_MAX + 1, -ID_MAX - 2, 10**30]
)


def resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].removeprefix(SCHEMAS)]
    return schema


def ecma(value: Any) -> Any:
    """A schema with the ends of its patterns as Python writes them, and all that it refers to."""
    if isinstance(value, dict):
        if "$ref" in value:
            return ecma(resolved(value))
        value = {key: ecma(of_key) for key, of_key in value.items()}
        if isinstance(value.get("pattern"), str):
            value["pattern"] = value["pattern"].removesuffix("$") + r"\Z"
        return value
    return list(map(ecma, value)) if isinstance(value, list | tuple) else value


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Values of the types that a schema names, many of which fit it."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return st.one_of([values(one) for one in schema["anyOf"] if one != {"type": "null"}])
    match schema["type"]:
        case "integer":
            return INTEGERS
        case "number":
            return INTEGERS | st.floats(allow_nan=False, allow_infinity=False, width=16)
        case "boolean":
            return st.booleans()
        case "array":
            if "prefixItems" in schema:
                return st.tuples(*map(values, schema["prefixItems"])).map(list)
            return st.lists(values(schema["items"]), min_size=1, max_size=3)
        case "object" if "properties" in schema:
            required = {name: values(its) for name, its in schema["properties"].items() if name in schema["required"]}
            optional = {name: values(its) for name, its in schema["properties"].items() if name not in required}
            return st.fixed_dictionaries(required, optional=optional)
        case "object":
            of_ids = st.integers(1, 99).map(str) | st.sampled_from(HOSTILE)
            return st.dictionaries(of_ids, values(schema["additionalProperties"]), min_size=1, max_size=3)
    near = st.text() | st.sampled_from(HOSTILE) | st.sampled_from(schema.get("enum", ["x"]))
    if "pattern" in schema:
        fits = st.from_regex(re.compile(schema["pattern"]), fullmatch=True)
        changed = st.builds(lambda text, other, at: text[:at] + other + text[at + 1 :], fits, near, st.integers(0, 9))
        near = fits | changed | near
    return near


def is_of_the_calendar(text: object) -> bool:
    """Whether a text is no time, or one of a day that there is."""
    written = isinstance(text, str) and re.match("([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    if not written:
        return True
    with suppress(ValueError):
        day = datetime(*map(int, written.groups()))  # type: ignore[arg-type,misc]
        return 1 < day.year < 9999  # in UTC, an offset may leave the calendar
    return False


@pytest.mark.parametrize("name", WRITES)
def test_the_example_of_an_operation_fits_the_schema_of_its_body(name: str) -> None:
    operation = BY_NAME[name]
    described = DOCUMENT["paths"][TOURNAMENT + operation.path][method_of(operation).lower()]
    content = described["requestBody"]["content"]["application/json"]
    assert content["example"]
    Draft202012Validator(ecma(content["schema"])).validate(content["example"])


# ── Bodies ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", WRITES)
async def test_a_body_is_refused_just_where_its_schema_refuses_it(service: Service, season: Season, name: str) -> None:
    operation, season = BY_NAME[name], await with_points(season)
    assert isinstance(operation, Write)
    headers = {"Authorization": f"Bearer {season.client.token}", "Content-Type": "application/json"}
    path = f"/tournament/{season.client.tournament}/{path_of(name, season)}"
    schemas = DOCUMENT["components"]["schemas"][fields_name(operation.operation_id)]["properties"]
    numbers = count(1)

    def faults(field: str, value: object) -> list[str]:
        """What the service has against this value of a field."""
        body = dict(BY_NAME[name].example) | {field: value}
        if field != "name" and operation.operation_id == "addUnity":
            body["name"] = f"unity {next(numbers)}"
        connection.request(operation.method, path, json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status in (200, 400, 404, 409, 422), found
        said = [fault for fault in found.get("errors", []) if re.split(r"[\[.]", fault["field"])[0] == field]
        assert not found.get("errors") or said or BEYOND.search(str(found["errors"])), found
        return [fault["message"] for fault in said]

    def everywhere_in(field: Field) -> None:
        validator = Draft202012Validator(ecma(schemas[field.name]))

        @examples(100)
        @given(values(schemas[field.name]))
        def whatever_it_is(value: object) -> None:
            assume(value not in ("", [], {}) and is_of_the_calendar(value))
            said = faults(field.name, value)
            if validator.is_valid(value):
                assert [message for message in said if not BEYOND.search(message)] == []
            else:
                assert said

        whatever_it_is()

    with closing(HTTPConnection(urlsplit(service.url).netloc, timeout=GUARD_SECONDS)) as connection:
        for field in operation.fields:
            await asyncio.to_thread(everywhere_in, field)


# ── Queries ─────────────────────────────────────────────────────────────────────────────────────────────

QUERIES: Final = {
    **{name: its.fields for name, its in BY_NAME.items() if not isinstance(its, Write)},
    **{f"public {one.path}": one.fields for one in PUBLIC_READS},
    "events": EVENTS.fields,
    "public events": PUBLIC_EVENTS.fields,
}
FIELDS: Final = {
    (field.name, id(field.type)): pytest.param(field, id=f"{name} {field.name}")
    for name, fields in QUERIES.items()
    for field in fields
    if field.empty is Empty.NOTHING
}
"""Those that differ, without those of a change: these are judged with it, as its body is."""


def text_of(value: object) -> str:
    """A value as a parameter writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(text_of, value)) if isinstance(value, list) else str(value)


def value_of(text: str, schema: Any) -> object:
    """The value that a text writes, of the type that the schema has."""
    kinds = {one.get("type") for one in schema.get("anyOf", [schema])}
    if "array" in kinds:
        return [value_of(item.strip(), schema["items"]) for item in text.split(",")]
    if "integer" in kinds and re.fullmatch("0|-?[1-9][0-9]*", text):
        return int(text)
    if "number" in kinds and re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", text):
        return float(text)
    return {"true": True, "false": False}.get(text, text) if "boolean" in kinds else text


@pytest.mark.parametrize("kind", [ID, INTEGER, FROM_0, FROM_1])
def test_a_whole_number_has_the_bounds_of_its_schema(kind: FieldType) -> None:
    bounds = kind.schema["minimum"], kind.schema["maximum"]
    assert tuple(kind.read(str(bound)) for bound in bounds) == bounds
    for beyond in (bounds[0] - 1, bounds[1] + 1):
        with pytest.raises(FieldMisread):
            kind.read(str(beyond))


@pytest.mark.parametrize("field", FIELDS.values())
def test_a_parameter_is_refused_just_where_its_schema_refuses_it(field: Field) -> None:
    validator = Draft202012Validator(ecma(field.type.schema))

    @given(values(field.type.schema).map(text_of) | st.sampled_from(HOSTILE))
    def whatever_it_is(text: str) -> None:
        assume(is_of_the_calendar(text))
        try:
            read_query([(field.name, text)], (field,))
            said = ""
        except Unreadable as refusal:
            said = refusal.faults[0].message
        assert bool(said) != validator.is_valid(value_of(text, field.type.schema)) or BEYOND.search(said)

    whatever_it_is()
