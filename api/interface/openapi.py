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
from api.interface.competitors import CompetitorShape
from api.interface.declarations import TOURNAMENT, Operation, Preview, Read, Recall, Write, method_of, name_of, scope_of
from api.interface.fields import FROM_1, SHORT, Field, Fields
from api.interface.operations import OPERATIONS
from api.interface.points import DELTA_SCHEMA, Deltas
from api.interface.rankings import BriefRankingShape
from engine.domain.terms import DELTAS_MAX

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
    types = [*answers.values(), CompetitorShape, BriefRankingShape, problems.Problem, Deltas]
    references, schemas = msgspec.json.schema_components(types, ref_template=SCHEMAS + "{name}")
    schemas["Deltas"] = references[-1]
    schemas["Deltas"] |= {"maxItems": DELTAS_MAX, "minItems": 1}
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
    answer = operation.answer
    fields = [("status", int), ("message", str), (answer.key, answer.shape), *answer.more.items()]
    words = name_of(operation).replace(".json", "").replace("{", "").replace("}", "").replace("/", " ")
    name = "".join(word.capitalize() for word in words.replace("_id", "").split())
    return msgspec.defstruct(name, fields)


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
        content[JSON] = {"schema": {"oneOf": [{"$ref": SCHEMAS + answer}, _minimal(operation)]}}
        statuses += problems.OF_CHANGES
        parameters += _IDEMPOTENCY_KEY, _PREFER
        if "{" in operation.path:
            statuses += problems.OF_CONDITIONAL_CHANGES
            parameters.append(_IF_MATCH)
        described["requestBody"] = _body(operation.fields)
    else:
        statuses += problems.OF_PREVIEWS if isinstance(operation, Preview) else ()
        statuses += problems.OF_JUDGED_QUESTIONS if isinstance(operation, Read | Recall) and operation.judged else ()
        parameters += map(_of_query, operation.fields)
    if isinstance(operation, Read | Recall):
        done["headers"] = {"ETag": {"schema": {"type": "string"}}}
        responses["304"] = {"description": "As it was: If-None-Match names its ETag."}
    responses |= {str(status): {"$ref": f"#/components/responses/E{status}"} for status in sorted(statuses)}
    described["description"] = f"Needs a token of scope {scope_of(operation).text}."
    return described | {"parameters": parameters, "responses": responses}


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
    "Tallybook-Sequence": {"description": "The event that it became.", "schema": FROM_1.schema},
    "Idempotency-Replayed": {"description": "This was done before.", "schema": {"const": "true"}},
    "Preference-Applied": {"description": "The answer is minimal.", "schema": {"const": "return=minimal"}},
}


def _minimal(operation: Write) -> Document:
    """The schema of the minimal answer. It allows nothing else, so no whole answer is one."""
    properties: Document = {"status": {"const": 200}, "message": {"const": operation.answer.message}}
    properties |= dict.fromkeys(operation.new_ids, FROM_1.schema)
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


def _body(fields: Fields) -> Document:
    schema: Document = {
        "type": "object",
        "properties": {field.name: _of_form(field) for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }
    indexed = {f"^{field.name}{INDEXED}": SHORT.schema for field in fields if field.type.indexed}
    if indexed:
        schema["patternProperties"] = indexed
    return {"required": bool(schema["required"]), "content": {FORM: {"schema": schema}}}


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
