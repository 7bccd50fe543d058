"""The description of the interface for machines, as OpenAPI 3.1.

It is made from the declarations of the operations, the shapes of their answers, and the table of errors. Only what all
operations have in common is written here.
"""

from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec

from api.desk.conditions import IF_MATCH_TAGS_MAX
from api.http import problems
from api.http.reply import JSON
from api.interface.classifications import Criteria
from api.interface.competitors import CompetitorShape
from api.interface.declarations import TOURNAMENT, Operation, Preview, Read, Recall, Write, method_of, name_of, scope_of
from api.interface.fields import FROM_1, SHORT, Field, Fields, Schema, items_field, json_object_of
from api.interface.operations import OPERATIONS
from api.interface.points import DELTA_SCHEMA, Deltas, RankingsDeltas
from api.interface.rankings import BriefRankingShape
from api.interface.rendering import Answer
from engine.domain.terms import ITEMS_MAX

Document = dict[str, Any]
FORM: Final = "application/x-www-form-urlencoded"
SCHEMAS: Final = "#/components/schemas/"
INDEXED: Final = r"\[[1-9][0-9]{0,17}\]$"
"""What follows the name of a field that is sent as several, each with an id."""

_STATUSES: Final = (*problems.ALWAYS, *problems.OF_CHANGES, *problems.OF_CONDITIONAL_CHANGES)


@cache
def document() -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(described())


def described() -> Document:
    """The document."""
    answers = {name_of(operation): _answer(operation) for operation in OPERATIONS}
    of_items = {name_of(o): _answer_to_items(o) for o in OPERATIONS if isinstance(o, Write) and o.many}
    types = [*answers.values(), *of_items.values()]
    types += CompetitorShape, BriefRankingShape, problems.Problem, Criteria, RankingsDeltas, Deltas
    references, schemas = msgspec.json.schema_components(types, ref_template=SCHEMAS + "{name}")
    schemas["Deltas"] = references[-1]
    schemas["Deltas"] |= {"minItems": 1}
    schemas["RankingsDeltas"] = references[-2]
    schemas["RankingsDeltas"] |= {"minItems": 1}
    schemas["Criteria"] = references[-3]
    schemas["RankingLines"]["properties"]["participants_delta"] = {"$ref": f"{SCHEMAS}Deltas"}
    schemas["UnityLine"]["properties"]["delta"] = DELTA_SCHEMA
    paths: dict[str, Document] = {}
    for operation in OPERATIONS:
        described = _described(operation, answers[name_of(operation)].__name__)
        paths.setdefault(TOURNAMENT + operation.path, {})[method_of(operation).lower()] = described
    document = {
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
    shown: Document = _without_suffix(document)
    return shown


def _answer(operation: Operation) -> Any:
    """The type of the whole body of a 200."""
    return _body_of(_id_of(operation), operation.answer)


def _answer_to_items(operation: Write) -> Any:
    """The type of the whole body of a 200 to `items`."""
    assert operation.many
    return _body_of(f"{_id_of(operation)}Items", operation.many.answer)


def _body_of(name: str, answer: Answer) -> Any:
    return msgspec.defstruct(
        name, [("status", int), ("message", str), (answer.key, answer.shape), *answer.more.items()]
    )


def _id_of(operation: Operation) -> str:
    words = name_of(operation).replace(".json", "").replace("{", "").replace("}", "").replace("/", " ")
    return "".join(word.capitalize() for word in words.replace("_id", "").split())


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
    described: Document = {"operationId": answer, "summary": operation.summary}
    if isinstance(operation, Write):
        done["headers"] = _HEADERS_OF_CHANGES
        shapes = [{"$ref": SCHEMAS + answer}, _minimal(operation, dict.fromkeys(operation.new_ids, FROM_1.schema))]
        if operation.many:
            ids = {"type": "array", "items": FROM_1.schema, "minItems": 1, "maxItems": ITEMS_MAX}
            shapes += {"$ref": f"{SCHEMAS}{answer}Items"}, _minimal(operation, {"ids": ids})
        content[JSON] = {"schema": {"oneOf": shapes}}
        statuses += problems.OF_CHANGES
        parameters += _IDEMPOTENCY_KEY, _PREFER
        if "{" in operation.path:
            statuses += problems.OF_CONDITIONAL_CHANGES
            parameters.append(_IF_MATCH)
        described["requestBody"] = _body(operation)
    else:
        statuses += problems.OF_PREVIEWS if isinstance(operation, Preview) else ()
        statuses += problems.OF_JUDGED_QUESTIONS if isinstance(operation, Read | Recall) and operation.judged else ()
        parameters += map(_of_query, operation.fields)
    if isinstance(operation, Read | Recall):
        done["headers"] = _ETAG
        responses["304"] = _UNCHANGED
    responses |= {str(status): {"$ref": f"#/components/responses/E{status}"} for status in sorted(statuses)}
    described["description"] = f"Needs a token of scope {scope_of(operation).text}."
    return described | {"parameters": parameters, "responses": responses}


_ETAG: Final[Document] = {"ETag": {"schema": {"type": "string"}}}
_UNCHANGED: Final[Document] = {"description": "As it was: If-None-Match names its ETag."}
_IF_MATCH: Final[Document] = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": (
        "Only if the resource is still as it was when it had this ETag, or one of several with commas between them, "
        f"at most {IF_MATCH_TAGS_MAX}; *: only if it exists."
    ),
    "schema": {"type": "string", "pattern": '^"[!#-~]{1,100}"$'},
}
_IDEMPOTENCY_KEY: Final[Document] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeat of the request with the same key is done once; it is remembered as long as the log.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_PREFER: Final[Document] = {
    "name": "Prefer",
    "in": "header",
    "required": False,
    "description": "return=minimal: the answer names what was made, and shows nothing. All else is passed over.",
    "schema": {"type": "string"},
    "example": "return=minimal",
}
_HEADERS_OF_CHANGES: Final[Document] = {
    "Tallybook-Sequence": {"description": "The event that it became, the last of several.", "schema": FROM_1.schema},
    "Idempotency-Replayed": {"description": "This was done before.", "schema": {"const": "true"}},
    "Preference-Applied": {"description": "The answer is minimal.", "schema": {"const": "return=minimal"}},
}


def _minimal(operation: Write, ids: dict[str, Schema]) -> Document:
    """The schema of the minimal answer with these ids. It allows nothing else, so no whole answer is one."""
    properties: Document = {"status": {"const": 200}, "message": {"const": operation.answer.message}, **ids}
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _of_path(path: str) -> list[Document]:
    slug: Document = {"type": "string", "pattern": "^[a-z0-9-]{1,100}$"}
    names = [part[1:].partition("}")[0] for part in path.split("/") if part.startswith("{")]
    return [
        {"name": "tournament", "in": "path", "required": True, "schema": slug},
        *({"name": name, "in": "path", "required": True, "schema": FROM_1.schema} for name in names),
    ]


def _of_query(field: Field) -> Document:
    return {
        "name": field.name,
        "in": "query",
        "required": field.required,
        "description": field.about,
        "schema": field.type.schema,
    }


def _body(operation: Write) -> Document:
    fields = operation.fields
    form, json = _form(fields), _json(fields)
    if operation.many:
        items = (msgspec.structs.replace(items_field(fields), required=True),)
        form, json = {"oneOf": [form, _form(items)]}, {"oneOf": [json, _json(items)]}
    needed = any(field.required for field in fields)
    return {"required": needed, "content": {FORM: {"schema": form}, JSON: {"schema": json}}}


def _json(fields: Fields) -> Document:
    return dict(json_object_of(fields)) | _indexed(fields)


def _form(fields: Fields) -> Document:
    return {
        "type": "object",
        "properties": {field.name: _of_form(field) for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    } | _indexed(fields)


def _indexed(fields: Fields) -> Document:
    patterns = {f"^{field.name}{INDEXED}": SHORT.schema for field in fields if field.type.indexed}
    return {"patternProperties": patterns} if patterns else {}


def _of_form(field: Field) -> Document:
    schema = field.type.schema if field.required else {"anyOf": [field.type.schema, {"const": ""}]}  # empty: as absent
    return {**schema, "description": field.about}


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
    ok = {"type": "object", "properties": {"status": {"const": 200}, "message": {"const": "ok"}}}
    stopped = {"stopped": {"type": "integer", "description": "tournaments that the operator must repair"}}
    ready = {**ok, "properties": ok["properties"] | stopped}  # type: ignore[operator]
    texts = {
        "/healthz": ("Is it alive?", JSON, ok, ()),
        "/readyz": ("Is it ready?", JSON, ready, (503,)),
        "/openapi.json": ("This document", JSON, {"type": "object"}, ()),
        "/docs": ("This document, for people", "text/html", {"type": "string"}, ()),
    }
    tagged = {"/openapi.json", "/docs"}
    return {
        path: {
            "get": {
                "operationId": path.strip("/").partition(".")[0],
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
        for path, (summary, media_type, schema, more) in texts.items()
    }
