"""The description of the interface for machines, as OpenAPI 3.1.

Answers are derived from the shapes, statuses from the table of errors, operations from the table of routes. The forms
and queries that operations take are described here and nowhere else. The readers in `wire.py` and `queries.py` are not
made from this description. But a test asks the running service which fields each operation takes and needs, and
compares them with it.
"""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec
from msgspec import Struct

from api.desk.conditions import IF_MATCH_TAGS_MAX
from api.http import problems
from api.http.auth import Scope
from api.http.reply import JSON
from api.interface import queries, shapes, wire
from api.interface.routes import ROUTES, Preview, Read, Recall, Show, Write
from engine.domain.terms import (
    DELTA_MAX,
    DELTAS_MAX,
    DESCRIPTION_CHARACTERS_MAX,
    ID_MAX,
    NAME_CHARACTERS_MAX,
    PARTICIPANTS_MAX,
    TAGS_MAX,
    Sort,
)

Schema = dict[str, Any]
Route = Read | Show | Recall | Write | Preview
TOURNAMENT: Final = "/tournament/{tournament}/"
FORM: Final = "application/x-www-form-urlencoded"


class Field(Struct, frozen=True):
    """A field of a form, or a parameter of a query."""

    text: str
    schema: Schema
    required: bool = False


Fields = Mapping[str, Field]


class Operation(Struct, frozen=True):
    """What cannot be derived from a route. `payload`: the key and the type of what a 200 holds beside `status` and
    `message`. `more`: further keys and their types."""

    summary: str
    message: str
    payload: tuple[str, Any]
    takes: Fields = {}
    more: Mapping[str, Any] = {}


def name_of(route: Route) -> str:
    """The key of a route in `OPERATIONS`: its method, and its path in the tournament."""
    method = route.method if isinstance(route, Write) else "GET"
    return f"{method} {route.path.removeprefix(TOURNAMENT)}"


# ── Fields ──────────────────────────────────────────────────────────────────────────────────────────────

_ID: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": ID_MAX}
_NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": ID_MAX}
_NAME: Final[Schema] = {
    "type": "string",
    "minLength": 1,
    "maxLength": NAME_CHARACTERS_MAX,
    "pattern": r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$",
}
_IDS: Final[Schema] = {"type": "string", "pattern": "^[1-9][0-9]{0,17}(,[1-9][0-9]{0,17})*$"}
_MOMENT: Final[Schema] = {
    "type": "string",
    "pattern": "^(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8]) ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$",
}
_TIME: Final[Schema] = {
    "type": "string",
    "pattern": "^(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])( ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])?$",
}
_COLOR: Final[Schema] = {"type": "string", "pattern": "^[0-9a-fA-F]{6}$"}
_TAGS: Final[Schema] = {"type": "string", "pattern": "^[^,\\s\\x00-\\x1f\\x7f-\\x9f]{1,50}$"}
_SHORT: Final[Schema] = {"type": "string", "maxLength": NAME_CHARACTERS_MAX, "pattern": "^[^\\x00-\\x1f\\x7f-\\x9f]*$"}
_DESCRIPTION: Final[Schema] = {
    "type": "string",
    "maxLength": DESCRIPTION_CHARACTERS_MAX,
    "pattern": r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$",
}
_DELTAS: Final[Schema] = {
    "type": "string",
    "contentMediaType": JSON,
    "contentSchema": {"$ref": "#/components/schemas/Deltas"},
}

_DELTA: Final[Schema] = {
    "anyOf": [
        {"type": "string", "pattern": "^[+-]?[0-9]{1,10}$"},
        {"type": "integer", "minimum": -DELTA_MAX, "maximum": DELTA_MAX},
    ]
}
_LIST: Final = f"ids of competitors, separated by commas, at most {PARTICIPANTS_MAX:,}"
_COMPETITOR: Final[Fields] = {
    "name": Field("without control characters; white space around it is not kept", _NAME),
    "tags": Field(f"separated by commas, at most {TAGS_MAX}", _TAGS),
    "color": Field("six hexadecimal characters", _COLOR),
    "parent": Field("the competitor above it in the hierarchy", _ID),
}
_RESULT: Final = (
    "with up to two participants, the score; with more, a JSON object of performances by competitor id; or, instead, "
    "fields named result[<competitor id>]"
)
_COMPETITION: Final[Fields] = {
    "started_at": Field("UTC, yyyy-mm-dd HH:ii:ss; when it was created, if it is not said", _MOMENT),
    "location": Field("where", _SHORT),
    "result": Field(_RESULT, _SHORT),
    "winner": Field("one of the participants", _ID),
}
_PAGE: Final[Fields] = {
    "page": Field("counted from 1", {"type": "integer", "minimum": 1, "maximum": 10**18 - 1, "default": 1}),
    "per_page": Field(
        f"{wire.PER_PAGE_MAX} at most; more is served as so many",
        {"type": "integer", "minimum": 1, "maximum": 10**18 - 1, "default": wire.PER_PAGE_DEFAULT},
    ),
}


def _required(fields: Fields, *names: str) -> Fields:
    return {
        name: msgspec.structs.replace(field, required=True) if name in names else field
        for name, field in fields.items()
    }


def _count(most: int, default: int) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": ID_MAX, "default": default, "description": f"{most} at most"}


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_RANKING: Final = ("ranking", shapes.ListedRanking)
_MODIFIED: Final = ("ranking", shapes.ModifiedRanking)
_COMPETITION_SHAPE: Final = ("competition", shapes.Competition)
_COMPETITOR_SHAPE: Final = ("competitor", shapes.Competitor)
_VOIDED: Final = ("rankings", list[shapes.ComparedRanking])

OPERATIONS: Final[Mapping[str, Operation]] = {
    "GET rankings.json": Operation("List the rankings", "ok", ("rankings", shapes.Rankings)),
    "POST rankings.json": Operation(
        "Create a ranking",
        "added",
        _RANKING,
        {
            "name": Field("its title", _NAME, required=True),
            "main_unity_name": Field("the name of its main unity", _NAME, required=True),
            "participants": Field(_LIST, _IDS, required=True),
            "description": Field("in brief", _DESCRIPTION),
        },
    ),
    "GET rankings/{ranking_id}.json": Operation("Show a ranking, without its standings", "ok", _RANKING),
    "PUT rankings/{ranking_id}.json": Operation(
        "Modify a ranking's information, its list of competitors and the name of its main unity",
        "ok",
        _MODIFIED,
        {
            "main_unity_name": Field("the name of its main unity", _NAME, required=True),
            "participants": Field(f"becomes the list, in that order: {_LIST}", _IDS, required=True),
            "name": Field("its title; absent: as it is", _NAME),
            "description": Field("absent: as it is; empty: none any more", _DESCRIPTION),
        },
    ),
    "PUT rankings/{ranking_id}/add.json": Operation(
        "Add points",
        "ok",
        _MODIFIED,
        {
            "participants_delta": Field(
                f"JSON text of at most {DELTAS_MAX:,} deltas within ±{DELTA_MAX:,}; all of them are applied, or none",
                _DELTAS,
                required=True,
            ),
            "competition_id": Field("what they are for", _ID),
        },
    ),
    "POST rankings/{ranking_id}/unities.json": Operation(
        "Add a unity to a ranking",
        "added",
        ("unity", shapes.ListedUnity),
        {
            "name": Field("unique in the ranking", _NAME, required=True),
            "sort": Field("which totals are better: the highest (DESC) or the lowest", {"enum": [*map(str, Sort)]}),
        },
    ),
    "PUT rankings/{ranking_id}/close.json": Operation(
        "Close a ranking: every change of it is refused", "ok", _MODIFIED
    ),
    "PUT rankings/{ranking_id}/reopen.json": Operation("Reopen a closed ranking", "ok", _MODIFIED),
    "GET rankings/{ranking_id}/standings.json": Operation(
        "Show the standings of a ranking, now or at one moment of the past",
        "ok",
        ("ranking", shapes.PastRanking),
        {
            "at_sequence": Field("after this event", _ID),
            "at_time": Field("after all events of this time in UTC", _TIME),
            "version": Field(
                "when a unity had this version", {"type": "string", "pattern": "^[1-9][0-9]{0,9}:[1-9][0-9]{0,9}$"}
            ),
        },
    ),
    "GET rankings/{ranking_id}/history.json": Operation(
        "List the deltas of a ranking, with totals and positions",
        "ok",
        ("history", list[shapes.Line]),
        {
            "unity": Field("only in this one", _ID),
            "competitor": Field("only of this one", _ID),
            "competition": Field("only for this one", _ID),
            "actor": Field("only by this token; 0: by the operator", _NUMBER),
            "from_sequence": Field("only from this event on", _ID),
            "to_sequence": Field("only up to this event", _ID),
            "from_time": Field("only from this time on, UTC", _TIME),
            "to_time": Field("only up to this time, UTC", _TIME),
            "after": Field(
                "go on after this: what was given as next",
                {"type": "string", "pattern": r"^[1-9][0-9]{0,9}\.(0|[1-9][0-9]{0,8})$"},
            ),
            "limit": Field("lines", _count(queries.LINES_MAX, queries.LINES_DEFAULT)),
        },
        {"next": str | None},
    ),
    "GET rankings/{ranking_id}/explain.json": Operation(
        "Explain how a competitor came to stand where they stand",
        "ok",
        ("explanation", shapes.Explanation),
        {
            "competitor": Field("who", _ID, required=True),
            "unity": Field("in what; absent: in the main unity", _ID),
            "from": Field("from after this event; 0: from the beginning", _NUMBER),
            "to": Field("to after this event; absent: until now", _ID),
            "limit": Field("steps", _count(queries.STEPS_MAX, queries.STEPS_DEFAULT)),
        },
    ),
    "GET competitions.json": Operation("List the competitions", "ok", ("competitions", shapes.Competitions), _PAGE),
    "POST competitions.json": Operation(
        "Add a competition",
        "added",
        _COMPETITION_SHAPE,
        {
            "group_id": Field(
                "the group of matches that contains it",
                {"type": "integer", "minimum": -ID_MAX - 1, "maximum": ID_MAX},
                required=True,
            ),
            "participants": Field(f"in this order: {_LIST}", _IDS),
            **_COMPETITION,
        },
    ),
    "GET competitions/{competition_id}.json": Operation("Show a competition", "ok", _COMPETITION_SHAPE),
    "PUT competitions/{competition_id}.json": Operation(
        "Change a competition; what is absent stays as it is", "ok", _COMPETITION_SHAPE, _COMPETITION
    ),
    "PUT competitions/{competition_id}/void.json": Operation(
        "Void a competition: all points it gave are taken back", "ok", _COMPETITION_SHAPE
    ),
    "PUT competitions/{competition_id}/unvoid.json": Operation(
        "Have a voided competition count again", "ok", _COMPETITION_SHAPE
    ),
    "GET competitions/{competition_id}/void.json": Operation(
        "Show what voiding a competition would lead to", "preview", _VOIDED
    ),
    "GET competitions/{competition_id}/unvoid.json": Operation(
        "Show what unvoiding a competition would lead to", "preview", _VOIDED
    ),
    "GET competitors.json": Operation("List the competitors", "ok", ("competitors", shapes.Competitors), _PAGE),
    "POST competitors.json": Operation(
        "Register a competitor", "added", _COMPETITOR_SHAPE, _required(_COMPETITOR, "name")
    ),
    "GET competitors/{competitor_id}.json": Operation("Show a competitor", "ok", _COMPETITOR_SHAPE),
    "PUT competitors/{competitor_id}.json": Operation(
        "Change a competitor; what is absent stays as it is", "ok", _COMPETITOR_SHAPE, _COMPETITOR
    ),
}
INDEXED: Final = {"result": r"^result\[[1-9][0-9]{0,17}\]$"}
"""Fields that may also be sent as several, each named with an id; with the pattern of these names."""


# ── The document ────────────────────────────────────────────────────────────────────────────────────────

_ALWAYS: Final = (400, 401, 403, 404, 408, 414, 429, 431, 500, 503)
_OF_PREVIEWS: Final = (409, 422)
_OF_CHANGES: Final = (409, 413, 415, 422)
_OF_CONDITIONAL_CHANGES: Final = (412,)
_STATUSES: Final = (*_ALWAYS, *_OF_CHANGES, *_OF_CONDITIONAL_CHANGES)


@cache
def document() -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(described())


def described() -> Schema:
    """The document."""
    answers = {name: _answer(name, operation) for name, operation in OPERATIONS.items()}
    types = [*answers.values(), shapes.Competitor, problems.Problem, wire.Deltas]
    references, schemas = msgspec.json.schema_components(types, ref_template=shapes.SCHEMAS + "{name}")
    schemas["Deltas"] = references[-1]
    schemas["Deltas"] |= {"maxItems": DELTAS_MAX, "minItems": 1}
    schemas["UnityLine"]["properties"]["delta"] = _DELTA
    paths: dict[str, Schema] = {}
    for route in ROUTES:
        name = name_of(route)
        paths.setdefault(route.path, {})[name.split()[0].lower()] = _described(route, answers[name].__name__)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tallybook",
            "version": version("tallybook"),
            "description": "Event-sourced rankings of tournaments.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths | _open_paths(),
        "components": {
            "schemas": schemas,
            "responses": {f"E{status}": _refusal(status) for status in _STATUSES},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Made by `tallybook token create`."}
            },
        },
    }


def _answer(name: str, operation: Operation) -> Any:
    """The type of the whole body of a 200."""
    key, shape = operation.payload
    fields = [("status", int), ("message", str), (key, shape), *operation.more.items()]
    words = name.replace(".json", "").replace("{", "").replace("}", "").replace("/", " ").replace("_id", "").split()
    return msgspec.defstruct("".join(word.capitalize() for word in words), fields)


def _described(route: Route, answer: str) -> Schema:
    name = name_of(route)
    operation = OPERATIONS[name]
    scope = Scope.READ
    if isinstance(route, Write):
        scope = route.scope
    elif isinstance(route, Preview):
        scope = Scope.ADMIN
    content = {"application/json": {"schema": {"$ref": shapes.SCHEMAS + answer}}}
    done: Schema = {"description": operation.message, "content": content}
    responses: Schema = {"200": done}
    statuses = [*_ALWAYS]
    parameters = _of_path(route.path)
    described: Schema = {"operationId": answer, "summary": operation.summary}
    if isinstance(route, Write):
        statuses += _OF_CHANGES
        done["headers"] = _HEADERS_OF_CHANGES
        parameters.append(_IDEMPOTENCY_KEY)
        if _addresses_resource(route):
            statuses += _OF_CONDITIONAL_CHANGES
            parameters.append(_IF_MATCH)
        described["requestBody"] = _body(operation.takes)
    else:
        statuses += _OF_PREVIEWS if isinstance(route, Preview) else ()
        parameters += [_of_query(name, field) for name, field in operation.takes.items()]
    if isinstance(route, Read | Show | Recall):
        done["headers"] = {"ETag": {"schema": {"type": "string"}}}
        responses["304"] = {"description": "As it was: If-None-Match names its ETag."}
    responses |= {str(status): {"$ref": f"#/components/responses/E{status}"} for status in sorted(statuses)}
    described["description"] = f"Needs a token of scope {scope.text}."
    return described | {"parameters": parameters, "responses": responses}


def _addresses_resource(route: Route) -> bool:
    return "{" in route.path.removeprefix(TOURNAMENT)


_IF_MATCH: Final[Schema] = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": (
        "Only if the resource is still as it was when it had this ETag, or one of several with commas between them, "
        f"at most {IF_MATCH_TAGS_MAX}; *: only if it exists."
    ),
    "schema": {"type": "string", "pattern": '^"[!#-~]{1,100}"$'},
}
_IDEMPOTENCY_KEY: Final[Schema] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeat of the request with the same key is done once; it is remembered as long as the log.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_HEADERS_OF_CHANGES: Final[Schema] = {
    "Tallybook-Sequence": {"description": "The event that it became.", "schema": _ID},
    "Idempotency-Replayed": {"description": "This was done before.", "schema": {"const": "true"}},
}


def _of_path(path: str) -> list[Schema]:
    names = [part[1:].partition("}")[0] for part in path.split("/") if part.startswith("{")]
    slug: Schema = {"type": "string", "pattern": "^[a-z0-9-]{1,100}$"}
    return [
        {"name": name, "in": "path", "required": True, "schema": slug if name == "tournament" else _ID}
        for name in names
    ]


def _of_query(name: str, field: Field) -> Schema:
    return {"name": name, "in": "query", "required": field.required, "description": field.text, "schema": field.schema}


def _body(fields: Fields) -> Schema:
    schema: Schema = {
        "type": "object",
        "properties": {name: _of_form(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
        "additionalProperties": False,
    }
    indexed = {pattern: _SHORT for name, pattern in INDEXED.items() if name in fields}
    if indexed:
        schema["patternProperties"] = indexed
    return {"required": bool(schema["required"]), "content": {FORM: {"schema": schema}}}


def _of_form(field: Field) -> Schema:
    schema = field.schema if field.required else {"anyOf": [field.schema, {"const": ""}]}  # empty: as absent
    return {**schema, "description": field.text}


def _refusal(status: int) -> Schema:
    codes = [error.code for error, its in problems.STATUSES.items() if its == status]
    described: Schema = {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {JSON: {"schema": {"$ref": f"{shapes.SCHEMAS}Problem"}}},
    }
    if status in (429, 503):
        described["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}}
    if status == HTTPStatus.UNAUTHORIZED:
        described["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return described


def _open_paths() -> dict[str, Schema]:
    """The paths that are not about a tournament."""
    ok = {"type": "object", "properties": {"status": {"const": 200}, "message": {"const": "ok"}}}
    stopped = {"stopped": {"type": "integer", "description": "tournaments that the operator must repair"}}
    ready = {**ok, "properties": ok["properties"] | stopped}  # type: ignore[operator]
    texts = {
        "/healthz": ("Is it alive?", JSON, ok, ()),
        "/readyz": ("Is it ready?", JSON, ready, (503,)),
        "/openapi.json": ("This document", JSON, {"type": "object"}, ()),
        "/docs": ("This document, for people", "text/html", {"type": "string"}, ()),
    }
    return {
        path: {
            "get": {
                "operationId": path.strip("/").partition(".")[0],
                "summary": summary,
                "security": [],
                "responses": {
                    "200": {"description": "ok", "content": {media_type: {"schema": schema}}},
                    **{
                        str(status): {"$ref": f"#/components/responses/E{status}"}
                        for status in (400, 408, 414, 431, 500, 503, *more)
                    },
                },
            }
        }
        for path, (summary, media_type, schema, more) in texts.items()
    }
