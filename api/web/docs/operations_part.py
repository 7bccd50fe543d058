"""The operations on the page of the interface: each with its examples, what it takes, and what it answers."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from api.http.reply import JSON
from api.interface.declarations import TOURNAMENT
from api.interface.openapi import Document, schema_of
from api.interface.public.reads import PUBLIC
from api.web.docs.examples import Example, body_text, recorded
from api.web.html import Child, Html, element, joined
from engine.domain.terms import ID_MAX

_OF_CHANGES: Final = ("Idempotency-Key", "Prefer", "If-Match")
"""Headers that are explained once, for all changes."""


def group_shown(described: Document, name: str, about: str) -> Html:
    """The operations of the OpenAPI document `described` that are about `name`, each as a line that opens."""
    operations = [
        _operation(described, method.upper(), path, operation)
        for path, its in described["paths"].items()
        for method, operation in its.items()
        if name in operation["tags"]
    ]
    return element("section", element("h3", name.capitalize(), id=name), element("p", about), *operations)


def _operation(described: Document, method: str, path: str, operation: Document) -> Html:
    operation_id, schemas = operation["operationId"], described["components"]["schemas"]
    answer = next(iter(operation["responses"]["200"]["content"].values()))["schema"]
    statuses = [element("a", status, href=f"#status-{status}") for status in operation["responses"]]
    return element(
        "details",
        element(
            "summary",
            element("span", method, class_=f"method {method.lower()}"),
            element("span", operation["summary"], class_="what"),
            element("code", *_parted(path.removeprefix(TOURNAMENT).removeprefix(PUBLIC))),
        ),
        element(
            "div",
            element("p", element("code", f"{method} ", *_parted(path))),
            element("p", operation["description"]) if "description" in operation else None,
            *[child for example in recorded().get(operation_id, ()) for child in _example(example)],
            _taken(operation, schemas),
            element(
                "details",
                element("summary", "All of the answer, with types"),
                element("pre", _sketch(answer, schemas)),
                class_="types",
            ),
            element("p", "Statuses: ", *_with_blanks(statuses), class_="beside"),
            id=operation_id,
        ),
        class_="operation",
    )


def _parted(path: str) -> list[Child]:
    """A path that may be broken after its slashes."""
    *parts, last = path.split("/")
    return [*[child for part in parts for child in (f"{part}/", element("wbr"))], last]


def _with_blanks(parts: Iterable[Child]) -> list[Child]:
    return [child for part in parts for child in (part, " ")]


def _taken(operation: Document, schemas: Document) -> Html:
    """What it takes: fields of the query and of the body, in the order in which they are declared; then headers."""
    parameters = [parameter for parameter in operation.get("parameters", []) if parameter["in"] != "path"]
    rows = [_field(one, "query") for one in parameters if one["in"] == "query"]
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"][JSON]["schema"]
        one, *items = [schemas[its["$ref"].rpartition("/")[2]] for its in schema.get("oneOf", [schema])]
        fields = [(one, ""), *[(alternative, "in place of all other fields") for alternative in items]]
        rows += [
            _field(
                {
                    "name": name,
                    "schema": field,
                    "description": field["description"],
                    "required": name in its["required"],
                },
                where,
            )
            for its, where in fields
            for name, field in its["properties"].items()
        ]
    headers = [one for one in parameters if one["in"] == "header"]
    rows += [_field(one, "header") for one in headers if one["name"] not in _OF_CHANGES]
    common = [element("a", one["name"], href="#requests") for one in headers if one["name"] in _OF_CHANGES]
    return joined(
        (
            element("p", "It takes:") if rows else None,
            element("dl", *rows, class_="taken") if rows else None,
            element("p", "Headers: ", *_with_blanks(common), class_="beside") if common else None,
        )
    )


def _field(field: Document, where: str) -> Html:
    required = "required" if field.get("required") else ""
    marks = [element("span", text, class_="mark") for text in (where, required) if text]
    kind = kind_of(schema_of(field))
    return element(
        "div",
        element("dt", element("code", field["name"]), " ", *_with_blanks(marks)),
        element("dd", field.get("description"), element("span", f" {kind}", class_="mark") if kind else None),
    )


def kind_of(schema: Document) -> str:
    """A value of `schema` in a few words; empty: the description of its field is enough."""
    if options := schema.get("anyOf"):
        return " or ".join([kind for one in options if (kind := kind_of(one))])
    if "maxLength" in schema:
        return f"up to {schema['maxLength']:,} characters"
    if "examples" in schema:
        return f"such as {', '.join(schema['examples'])}"
    if "enum" in schema:
        return " or ".join(schema["enum"])
    if schema.get("type") == "integer":
        return f"a whole number{_bounds(schema)}"
    if schema.get("type") == "array" and "$ref" not in schema["items"]:
        return "several, with commas"
    return "true or false" if schema.get("type") == "boolean" else ""


def _bounds(schema: Document) -> str:
    """Of a number: what it can be, where that is not all that fits, and what it is if it is absent."""
    told = [schema["description"]] if "description" in schema and "default" in schema else []
    if schema["maximum"] < ID_MAX:
        told.insert(0, f"{schema['minimum']:,} to {schema['maximum']:,}")
    if "default" in schema:
        told.append(f"{schema['default']:,} if absent")
    return "".join([f", {one}" for one in told])


def _example(example: Example) -> list[Child]:
    return [element("p", example.about) if example.about else None, *example_shown(example)]


def example_shown(example: Example) -> list[Child]:
    """A request and its answer."""
    headers = [f" · {name}: {value}" for name, value in example.headers.items()]
    shown: list[Child] = [
        command_shown(f"Request: {example.operation_id}", example.command),
        element(
            "div",
            element("p", element("strong", example.status), *headers, class_="status"),
            element("pre", body_text(example)),
            class_="answer" if example.status == HTTPStatus.OK else "answer refused",
        ),
    ]
    if example.keeps:
        kept = "\n".join([f"{name}={value}" for name, value in example.keeps.items()])
        shown += element("p", "Keep the ids that your answer has:"), command_shown("Keep the ids", kept)
    return shown


def command_shown(name: str, text: str) -> Html:
    """What is to be typed. The script adds a button that copies it."""
    return element("div", element("pre", text), class_="command", data_copied=name)


def _sketch(schema: Document, schemas: Document, indent: str = "") -> str:
    """What a value of `schema` looks like: JSON with types in place of values."""
    if reference := schema.get("$ref"):
        return _sketch(schemas[reference.rpartition("/")[2]], schemas, indent)
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join([_sketch(alternative, schemas, indent) for alternative in alternatives])
    if items := schema.get("items"):
        return f"[{_sketch(items, schemas, indent)}, …]"
    if properties := schema.get("properties"):
        deeper = indent + "  "
        lines = [f'{deeper}"{name}": {_sketch(value, schemas, deeper)}' for name, value in properties.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return str(schema.get("type", "any"))
