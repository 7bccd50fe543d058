"""The description of the interface for machines, as OpenAPI 3.1.

It is made from the declarations of the operations, the shapes of their answers, and the table of errors. Only what all
operations have in common is written here.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, get_args

import msgspec
from msgspec import UNSET, UnsetType

from api.desk.conditions import IF_MATCH_PATTERN, IF_MATCH_TAGS_MAX
from api.http import problems
from api.http.reply import JSON
from api.interface.declarations import (
    IDEMPOTENCY_KEY_PATTERN,
    TOURNAMENT,
    Action,
    Operation,
    Preview,
    Read,
    Recall,
    Recording,
    Stream,
    Write,
    fields_name,
    method_of,
    name_of,
    scope_of,
)
from api.interface.fields import FROM_1, SCHEMAS, Empty, Field, Fields, Schema
from api.interface.operations import ACTIONS, OPERATIONS, STREAMS
from api.interface.public.reads import PUBLIC, PUBLIC_READS, PublicRead
from api.interface.public.stream import PUBLIC_EVENTS
from api.interface.rendering import Answer
from api.interface.resources.competitions import SHOWN_RANKING
from api.interface.resources.competitors import CompetitorShape
from api.interface.resources.points import DELTA_SCHEMA, Deltas, RankingsDeltas
from api.interface.resources.rankings import BriefRankingShape
from api.stream.frames import POSITION_PATTERN, StreamFormat
from engine.domain.terms import ITEMS_MAX, SLUG_CHARACTERS_MAX, SLUG_PATTERN
from engine.process.version import version
from projections.answers.criteria import Criteria

Document = dict[str, Any]

_ABOUT: Final = (
    "Event-sourced rankings of tournaments. Times are in UTC. Times of the form `yyyy-mm-dd HH:ii:ss` have no zone: "
    "append `Z` before you pass them to a program that would take them for local time, such as JavaScript. Every time "
    "you send may end in `Z` or an offset such as `+02:00`. "
    'Bodies are shown as JSON. A value in it may also be sent as its text, such as `"5"`; null, an empty text and an '
    "empty list mean the same. A form (`application/x-www-form-urlencoded`) has the same fields: a list is "
    "`participants=1,2` or `participants=1&participants=2`, an array of objects is its JSON, and performances may also "
    "be sent as fields `result[<competitor id>]`."
)
RESOURCES: Final = {
    "tournaments": "All tournaments of a token, and new ones.",
    "tournament": "The tournament itself.",
    "competitors": "Participants: people or teams.",
    "competitions": "Matches and races, with their results; which of them count.",
    "rankings": "Tables of competitors, with one or more unities: scoring columns such as points.",
    "points": "Deltas: signed integers, each credited to one competitor in one unity.",
    "standings": "Tables of rankings, now or at any past moment.",
    "history": "Every delta, and why a total is what it is.",
    "stream": "The events of a tournament as they are committed.",
    "webhooks": "Addresses that receive the events of a tournament; docs/WEBHOOKS.md.",
    "public": "What everybody sees of a published tournament, up to its public end.",
    "publication": "What the public sees.",
    "presentation": "How the tournament presents itself.",
    "tokens": "Who may do what: tokens within the reach of one's own.",
    "service": "The service itself.",
}
"""What operations are about: the tags of the document, in the order in which a reader needs them."""

_STATUSES: Final = (*problems.ALWAYS, *problems.OF_CHANGES, *problems.OF_CONDITIONAL_CHANGES, *problems.OF_STREAMS)


@cache
def document() -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(described())


def described() -> Document:
    """The document."""
    answers = {name_of(operation): _answer(operation) for operation in OPERATIONS}
    public = {read.path: _body_of(_answer_name(read.operation_id), read.answer) for read in PUBLIC_READS}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Tallybook",
            "version": version(),
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "where this document is"}],
        "tags": [{"name": name, "description": about} for name, about in RESOURCES.items()],
        "security": [{"token": []}],
        "paths": _paths(answers, public) | _open_paths(),
        "components": {
            "schemas": _schemas([*answers.values()], [*public.values()]),
            "responses": {f"E{status}": _refusal(status) for status in _STATUSES},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Created by `tallybook token create`."}
            },
        },
    }
    shown: Document = _without_suffix(_with_formats(document))
    return shown


def _schemas(answers: list[Any], public: list[Any]) -> dict[str, Document]:
    """What the document calls each type of a body. `answers`, `public`: the bodies of operations, and of public
    reads."""
    of_items = [_answer_to_items(o) for o in OPERATIONS if isinstance(o, Write) and o.many]
    of_actions = [_body_of(_answer_name(action.operation_id), action.answer) for action in ACTIONS]
    more = (CompetitorShape, BriefRankingShape, problems.Problem, Criteria, RankingsDeltas, Deltas)
    types = [*answers, *of_items, *of_actions, *public, *more]
    references, components = msgspec.json.schema_components(types, ref_template=SCHEMAS + "{name}")
    schemas: dict[str, Document] = _typed(components)
    for schema in schemas.values():
        if "description" in schema:  # a docstring, with the line breaks of the source
            schema["description"] = " ".join(schema["description"].split())
    criteria, of_rankings, of_one = references[-3:]
    schemas["Deltas"] = of_one | {"minItems": 1}
    schemas["RankingsDeltas"] = of_rankings | {"minItems": 1}
    schemas["Criteria"] = criteria
    schemas |= {name: _minimal(names) for names, name in _MINIMAL.items()}
    schemas["RankingLines"]["properties"]["participants_delta"] = {"$ref": f"{SCHEMAS}Deltas"}
    schemas["UnityLine"]["properties"]["delta"] = DELTA_SCHEMA
    for operation in OPERATIONS:
        if isinstance(operation, Write) and operation.fields:
            schemas |= _bodies(operation)
    schemas |= {
        fields_name(one.operation_id): _object_of(one.fields) for one in ACTIONS if one.method == "POST" and one.fields
    }
    return schemas


def _paths(answers: Mapping[str, Any], public: Mapping[str, Any]) -> dict[str, Document]:
    """The operations by path and method. `answers`: bodies by the name of the operation; `public`: by path."""
    paths: dict[str, Document] = {}
    for operation in OPERATIONS:
        described = _described(operation, answers[name_of(operation)].__name__)
        paths.setdefault(TOURNAMENT + operation.path, {})[method_of(operation).lower()] = described
    for stream in STREAMS:
        paths[TOURNAMENT + stream.path] = {"get": _of_stream(stream)}
    for action in ACTIONS:
        paths.setdefault(action.address, {})[action.method.lower()] = _of_action(action)
    for read in PUBLIC_READS:
        paths[PUBLIC + read.path] = {"get": _of_public(read, public[read.path].__name__)}
    paths[PUBLIC + PUBLIC_EVENTS.path] = {"get": _of_public_stream(PUBLIC_EVENTS)}
    return paths


def resource_of(operation: Operation | Stream | Action) -> str:
    """What an operation is about."""
    words = operation.path.removesuffix(".json").split("/")
    about = operation.about if isinstance(operation, Recall) else _RESOURCE_BY_END.get(words[-1])
    return about or words[0]


_RESOURCE_BY_END: Final = {
    "add": "points",
    "standings": "standings",
    "classification": "standings",
    "events": "stream",
    "tickets": "stream",
    "test": "webhooks",
    "results": "competitions",
    "archive": "tournament",
    "restore": "tournament",
    "delete": "tournament",
}


def _answer(operation: Operation) -> Any:
    """The type of the whole body of a 200."""
    return _body_of(_answer_name(operation.operation_id), operation.answer)


def _answer_to_items(operation: Write) -> Any:
    """The type of the whole body of a 200 to `items`."""
    assert operation.many
    return _body_of(_answer_name(operation.operation_id, "ToItems"), operation.many.answer)


def _body_of(name: str, answer: Answer) -> Any:
    return msgspec.defstruct(
        name, [("status", int), ("message", str), (answer.key, answer.shape), *map(_more, answer.more.items())]
    )


def _more(field: tuple[str, Any]) -> tuple[Any, ...]:
    """A further field of an answer, as `defstruct` takes it."""
    return (*field, UNSET) if UnsetType in get_args(field[1]) else field


def _answer_name(operation_id: str, more: str = "") -> str:
    """What the whole body of a 200 is called."""
    return f"{operation_id[0].upper()}{operation_id[1:]}Answer{more}"


def _typed(value: Any) -> Any:
    """`value` with enumerations as those of strings, because generators name a bare one by its values; and with the end
    of a pattern as others than Python write it."""
    if isinstance(value, dict):
        typed = {key: _typed(of_key) for key, of_key in value.items()}
        return typed | {"type": "string"} if "enum" in typed else typed
    if isinstance(value, str) and value.endswith(r"\Z"):
        return value.removesuffix(r"\Z") + "$"
    return list(map(_typed, value)) if isinstance(value, list | tuple) else value


def _with_formats(value: Any) -> Any:
    """`value` with the size of every integer, without which generators take 32 bits."""
    if isinstance(value, dict):
        sized = {key: _with_formats(of_key) for key, of_key in value.items()}
        return sized | {"format": "int64"} if sized.get("type") == "integer" else sized
    return list(map(_with_formats, value)) if isinstance(value, list | tuple) else value


def _without_suffix(value: Any) -> Any:
    """`value` with all schemas named as readers of JSON expect it: Competitor, where the code says CompetitorShape."""
    if isinstance(value, dict):
        return {key.removesuffix("Shape"): _without_suffix(of_key) for key, of_key in value.items()}
    if isinstance(value, list | tuple):
        return [_without_suffix(item) for item in value]
    return value.removesuffix("Shape") if isinstance(value, str) else value


def _described(operation: Operation, answer: str) -> Document:
    content: Document = {JSON: {"schema": {"$ref": SCHEMAS + answer}}}
    done: Document = {"description": operation.answer.message, "content": content}
    responses: Document = {"200": done}
    statuses = [*problems.ALWAYS]
    parameters = _of_path(operation.path)
    described: Document = {"operationId": operation.operation_id, "summary": operation.summary}
    described["tags"] = [resource_of(operation)]
    if isinstance(operation, Write):
        done["headers"] = _HEADERS_OF_CHANGES
        shapes = [answer, _MINIMAL[tuple(operation.new_ids)]]
        if operation.many:
            shapes += f"{answer}ToItems", _MINIMAL["ids",]
        content[JSON] = {"schema": {"anyOf": [{"$ref": SCHEMAS + shape} for shape in shapes]}}
        statuses += problems.OF_CHANGES
        parameters += _IDEMPOTENCY_KEY, _PREFER
        if "{" in operation.path:
            statuses += problems.OF_CONDITIONAL_CHANGES
            parameters.append(_IF_MATCH)
        if operation.fields:
            described["requestBody"] = _body(operation)
        if isinstance(operation, Recording):
            parameters += _of_queries((SHOWN_RANKING,))
    else:
        statuses += problems.OF_PREVIEWS if isinstance(operation, Preview) else ()
        statuses += problems.OF_RECALLED_PREVIEWS if isinstance(operation, Recall) and operation.previews else ()
        statuses += problems.OF_JUDGED_QUESTIONS if isinstance(operation, Read | Recall) and operation.judged else ()
        parameters += _of_queries(operation.fields, operation.example)
    if isinstance(operation, Read | Recall):
        done["headers"] = _ETAG
        responses["304"] = _UNCHANGED
    responses |= _refusals(sorted(statuses))
    described["description"] = f"Needs a token of scope {scope_of(operation).text}."
    return described | {"parameters": parameters, "responses": responses}


def _of_stream(stream: Stream) -> Document:
    event: Document = {"type": "string", "description": "Events, one after another; docs/STREAM.md has their format."}
    content = {form.value: {"schema": event} for form in StreamFormat}
    statuses = sorted({*problems.ALWAYS, *problems.OF_STREAMS})
    return {
        "operationId": stream.operation_id,
        "tags": [resource_of(stream)],
        "summary": stream.summary,
        "description": "Needs a token of scope read, or a ticket.",
        "parameters": [*_of_path(stream.path), _LAST_EVENT_ID, *_of_queries(stream.fields)],
        "responses": {"200": {"description": "ok", "content": content}} | _refusals(statuses),
    }


def _of_public(read: PublicRead, answer: str) -> Document:
    content: Document = {JSON: {"schema": {"$ref": SCHEMAS + answer}}}
    done: Document = {"description": read.answer.message, "content": content, "headers": _ETAG}
    statuses = {*problems.ALWAYS, *problems.OF_JUDGED_QUESTIONS} - _OF_TOKENS
    return {
        "operationId": read.operation_id,
        "tags": ["public"],
        "summary": read.summary,
        "description": _FOR_ALL,
        "security": [],
        "parameters": [*_of_path(read.path), *_of_queries(read.fields, read.example)],
        "responses": {"200": done, "304": _UNCHANGED} | _refusals(sorted(statuses)),
    }


def _of_public_stream(stream: Stream) -> Document:
    described = _of_stream(stream)
    responses = {status: its for status, its in described["responses"].items() if int(status) not in _OF_TOKENS}
    own = {"tags": ["public"], "description": _FOR_ALL, "security": []}
    return described | own | {"responses": responses}


_FOR_ALL: Final = "Needs no token; 404 unless the tournament is published."
_OF_TOKENS: Final = frozenset({401, 403})


def _of_action(action: Action) -> Document:
    done: Document = {
        "description": action.answer.message,
        "content": {JSON: {"schema": {"$ref": SCHEMAS + _answer_name(action.operation_id)}}},
    }
    of_path = _of_path(action.path)[1:] if action.of_service else _of_path(action.path)
    described = {
        "operationId": action.operation_id,
        "tags": [resource_of(action)],
        "summary": action.summary,
        "description": f"Needs a token of scope {action.scope.text}.",
        "parameters": of_path,
        "responses": {"200": done} | _refusals(sorted({*problems.ALWAYS, *_STATUSES_OF_ACTIONS[action.method]})),
    }
    if action.method == "GET":
        return described | {"parameters": [*of_path, *_of_queries(action.fields, action.example)]}
    content = {"schema": {"$ref": SCHEMAS + fields_name(action.operation_id)}, "example": action.example}
    required = any(field.required for field in action.fields)
    return described | ({"requestBody": {"required": required, "content": {JSON: content}}} if action.fields else {})


_STATUSES_OF_ACTIONS: Final = {"GET": (), "POST": problems.OF_CHANGES}


def _refusals(statuses: Iterable[int]) -> Document:
    return {str(status): {"$ref": f"#/components/responses/E{status}"} for status in statuses}


_LAST_EVENT_ID: Final[Document] = {
    "name": "Last-Event-ID",
    "in": "header",
    "required": False,
    "description": "Continues after this event; takes precedence over `after`.",
    "schema": {"type": "string", "pattern": f"^(?:{POSITION_PATTERN})$"},
}
_ETAG: Final[Document] = {"ETag": {"schema": {"type": "string"}}}
_UNCHANGED: Final[Document] = {"description": "Unchanged: If-None-Match names its ETag."}
_IF_MATCH: Final[Document] = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": (
        "Only if the resource still has this ETag, or one of several separated by commas, "
        f"at most {IF_MATCH_TAGS_MAX}; *: only if it exists."
    ),
    "schema": {"type": "string", "pattern": f"^(?:{IF_MATCH_PATTERN})$"},
}
_IDEMPOTENCY_KEY: Final[Document] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Repeated requests with the same key are applied once. The key is remembered as long as the log.",
    "schema": {"type": "string", "pattern": f"^{IDEMPOTENCY_KEY_PATTERN}$"},
}
_PREFER: Final[Document] = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "return=minimal: the answer has only the ids of what was created. Other values are ignored.",
    "schema": {"type": "string"},
    "example": "return=minimal",
}
_HEADERS_OF_CHANGES: Final[Document] = {
    "Tallybook-Sequence": {
        "description": "The event that recorded the change; of several, the last.",
        "schema": FROM_1.schema,
    },
    "Idempotency-Replayed": {"description": "This was done before.", "schema": {"type": "string", "enum": ["true"]}},
    "Preference-Applied": {
        "description": "The answer is minimal.",
        "schema": {"type": "string", "enum": ["return=minimal"]},
    },
}


_MINIMAL: Final = {(): "Done", ("id",): "Made", ("id", "unity_id"): "MadeRanking", ("ids",): "MadeSeveral"}
"""What minimal answers are called, by what they name."""
_IDS: Final[Document] = {"type": "array", "items": FROM_1.schema, "minItems": 1, "maxItems": ITEMS_MAX}


def _minimal(names: Iterable[str]) -> Document:
    """The schema of a minimal answer that names these."""
    properties: Document = {"status": {"type": "integer"}, "message": {"type": "string"}}
    properties |= {name: _IDS if name == "ids" else FROM_1.schema for name in names}
    return {"type": "object", "properties": properties, "required": [*properties]}


def _of_path(path: str) -> list[Document]:
    slug: Document = {"type": "string", "pattern": f"^{SLUG_PATTERN}$", "maxLength": SLUG_CHARACTERS_MAX}
    names = [part[1:].partition("}")[0] for part in path.split("/") if part.startswith("{")]
    return [
        {"name": "tournament", "in": "path", "required": True, "schema": slug},
        *({"name": name, "in": "path", "required": True, "schema": FROM_1.schema} for name in names),
    ]


def _of_queries(fields: Fields, examples: Mapping[str, object] = MappingProxyType({})) -> list[Document]:
    return [_of_query(field, examples) for field in fields]


def _of_query(field: Field, examples: Mapping[str, object]) -> Document:
    described = {"name": field.name, "in": "query", "required": field.required, "description": field.about}
    schema = field.type.schema
    example = {"example": examples[field.name]} if field.name in examples else {}
    emptied = {"allowEmptyValue": True} if field.empty is Empty.EMPTIES else {}  # it empties what is there
    if schema.get("type") == "array" and not field.type.is_list:
        return described | {"content": {JSON: {"schema": schema} | example}}
    if field.type.is_list:
        described |= {"style": "form", "explode": False}
        schema = schema if emptied else {"minItems": 1, **schema}
    elif field.type.indexed:  # an object would be a parameter for each of its names
        schema = schema["anyOf"][0]
    return described | {"schema": schema} | example | emptied


def schema_of(parameter: Document) -> Document:
    """The schema of a parameter that the document describes: one of a text, or of JSON."""
    schema: Document = parameter.get("schema") or parameter["content"][JSON]["schema"]
    return schema


def _body(operation: Write) -> Document:
    schemas: list[Document] = [{"$ref": SCHEMAS + name} for name in _bodies(operation)]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    content = {"schema": schema, "example": operation.example}
    return {"required": any(field.required for field in operation.fields), "content": {JSON: content}}


def _bodies(operation: Write) -> dict[str, Document]:
    """The objects that a body can be, by name."""
    name = fields_name(operation.operation_id)
    bodies = {name: _object_of(operation.fields)}
    if operation.many:
        items = msgspec.structs.replace(operation.items, required=True)
        bodies[f"{name.removesuffix('Fields')}Items"] = _object_of((items,))
    return bodies


def _object_of(fields: Fields) -> Document:
    return {
        "type": "object",
        "properties": {field.name: {**_of_field(field), "description": _about(field)} for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def _about(field: Field) -> str:
    by_id = f"; or, instead, fields named {field.name}[<competitor id>]" if field.type.indexed else ""
    return field.about + by_id


def _of_field(field: Field) -> Schema:
    schema = field.type.schema
    return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]} if field.can_be_empty else schema


def _refusal(status: int) -> Document:
    codes = [error.code for error, its in problems.STATUSES.items() if its == status]
    described: Document = {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
        "content": {JSON: {"schema": {"$ref": f"{SCHEMAS}Problem"}}},
    }
    if status in (429, 503):
        described["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}}
    if status == HTTPStatus.UNAUTHORIZED:
        described["headers"] = {"WWW-Authenticate": {"schema": {"type": "string"}}}
    return described


def _open_paths() -> dict[str, Document]:
    """The paths that are not about a tournament."""
    ok = {"type": "object", "properties": {"status": {"type": "integer"}, "message": {"type": "string"}}}
    stopped: Document = {"stopped": {"type": "integer", "description": "tournaments that the operator must repair"}}
    troubled = {"id": {"type": "integer"}, "part": {"type": "string"}, "why": {"type": "string"}}
    stopped |= {
        "tournaments": {
            "type": "array",
            "description": "tournaments stopped, or with a defect within the last ten minutes; 20 of each at most",
            "items": {"type": "object", "properties": troubled},
        },
        "durable_elsewhere": {"type": "string", "description": "what is trusted to keep commits, if not the server"},
    }
    healthy = {**ok, "properties": ok["properties"] | {"version": {"type": "string"}}}  # type: ignore[operator]
    ready = {**ok, "properties": ok["properties"] | stopped}  # type: ignore[operator]
    texts = {
        "/healthz": ("showHealth", "Is it alive?", JSON, healthy, ()),
        "/readyz": ("showReadiness", "Is it ready?", JSON, ready, (503,)),
        "/openapi.json": ("showDocument", "This document", JSON, {"type": "object"}, ()),
        "/docs": ("showDocumentation", "This document, for people, with examples", "text/html", {"type": "string"}, ()),
    }
    tagged = {"/openapi.json", "/docs"}
    return {
        path: {
            "get": {
                "operationId": operation_id,
                "tags": ["service"],
                "summary": summary,
                "security": [],
                "responses": {
                    "200": {"description": "ok", "content": {media_type: {"schema": schema}}}
                    | ({"headers": _ETAG} if path in tagged else {}),
                    **({"304": _UNCHANGED} if path in tagged else {}),
                    **{
                        str(status): {"$ref": f"#/components/responses/E{status}"}
                        for status in (400, 408, 414, 431, 500, 503, *more)
                    },
                },
            }
        }
        for path, (operation_id, summary, media_type, schema, more) in texts.items()
    }
