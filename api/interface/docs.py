"""The description of the interface for people: one page, made from the OpenAPI document.

It loads nothing, from here or elsewhere, and runs nothing: it has no script, and its Content-Security-Policy allows
none. So no script can be tricked into misusing the token of a reader.
"""

import hashlib
from base64 import b64encode
from functools import cache
from html import escape
from typing import Any, Final

from api.http.reply import header
from api.interface import openapi

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; font-size: 1.1rem }
code, pre { font: 14px/1.4 ui-monospace, monospace }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #eee }
pre { overflow-x: auto; background: #f6f6f6; padding: .6rem }
a { color: #0645ad }
@media (prefers-color-scheme: dark) {
  body { background: #1b1b1b; color: #ddd } a { color: #8ab4f8 } pre { background: #2a2a2a }
  th, td { border-color: #333 } h2 { border-color: #555 }
}
"""
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MEDIA_TYPE: Final = "text/html; charset=utf-8"
HEADERS: Final = (
    header("Content-Security-Policy", _POLICY)
    + header("X-Content-Type-Options", "nosniff")
    + header("Referrer-Policy", "no-referrer")
)
_INTRODUCTION: Final = """
<p>Bodies are forms (<code>application/x-www-form-urlencoded</code>, UTF-8), or JSON objects
(<code>application/json</code>) with the same fields; answers are JSON. Send your token as
<code>Authorization: Bearer …</code>. Every answer has <code>status</code> and <code>message</code>; a refusal lists in
<code>errors</code> each field that is wrong. Send an <code>Idempotency-Key</code> with every change: then a retry after
500, or after no answer, is done once. For programs: <a href="openapi.json">openapi.json</a>.</p>
"""


@cache
def page() -> bytes:
    """The page, in HTML."""
    described = openapi.described()
    asked = [
        (method.upper(), path, operation)
        for path, operations in described["paths"].items()
        for method, operation in operations.items()
    ]
    parts = [
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Tallybook</title>',
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>',
        f"<h1>Tallybook {escape(described['info']['version'])}</h1>{_INTRODUCTION}<ul>",
        *(
            f'<li><a href="#{escape(operation["operationId"])}"><code>{method} {escape(path)}</code></a></li>'
            for method, path, operation in asked
        ),
        "</ul>",
        *(_operation(method, path, operation, described["components"]["schemas"]) for method, path, operation in asked),
        "</body></html>",
    ]
    return "".join(parts).encode()


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    rows = [
        (parameter["name"], parameter["in"], parameter["required"], parameter.get("description", ""))
        for parameter in operation.get("parameters", [])
        if "required" in parameter
    ]
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"][openapi.FORM]["schema"]
        one, *items = schema.get("oneOf", [schema])
        rows += [
            (name, "form", name in one["required"], field["description"])
            for alternative in (one, *items)
            for name, field in alternative["properties"].items()
        ]
    taken = "".join(
        f"<tr><td><code>{escape(name)}</code><td>{where}<td>{'required' if required else ''}<td>{escape(text)}</tr>"
        for name, where, required, text in rows
    )
    statuses = ", ".join(operation["responses"])
    (answer,) = operation["responses"]["200"]["content"].values()
    return (
        f'<h2 id="{escape(operation["operationId"])}"><code>{method} {escape(path)}</code></h2>'
        f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p>"
        + (f"<table>{taken}</table>" if taken else "")
        + f"<p>Answers {statuses}; 200:</p><pre>{escape(_sketch(answer['schema'], schemas))}</pre>"
    )


def _sketch(schema: dict[str, Any], schemas: dict[str, Any], indent: str = "") -> str:
    """What a value of `schema` looks like: JSON with types in place of values."""
    if reference := schema.get("$ref"):
        return _sketch(schemas[reference.rpartition("/")[2]], schemas, indent)
    if alternatives := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(_sketch(alternative, schemas, indent) for alternative in alternatives)
    if "const" in schema:
        return repr(schema["const"]).replace("'", '"')
    if items := schema.get("items"):
        return f"[{_sketch(items, schemas, indent)}, …]"
    if properties := schema.get("properties"):
        deeper = indent + "  "
        lines = [f'{deeper}"{name}": {_sketch(value, schemas, deeper)}' for name, value in properties.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return str(schema.get("type", "any"))
