"""What docs/PROMISE.md promises of HTTP, command line, client, limits and metrics by name: one promise a line.

`make docs` writes them to `promised/<version>.txt`, and every later version is held to that. What was deprecated for
long enough is taken out of the files of earlier versions when it is removed.
"""

import inspect
import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from operator import le
from pathlib import Path
from typing import Any, Final

import tallybook_client
from tests.api.rendered import openapi_document
from tests.project import ROOT
from tests.wheel.manual import PAGE

FOLDER: Final = Path(__file__).parent / "promised"
FILE: Final = FOLDER / f"{metadata.version('tallybook')}.txt"
_SECTION: Final = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)
_ROW: Final = re.compile(r"^\| (?!what \||---)(.+?) \| (.+) \|$", re.MULTILINE)
_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SCOPE: Final = re.compile(r"scope \w+")
_COMMAND: Final = re.compile(r'^\.SS "(tallybook(?: [a-z][a-z-]*)+).*\n((?:(?!\.S[SH]).*\n)*)', re.MULTILINE)
_ARGUMENT: Final = re.compile(r"^\.TP\n\\fB(.+)\\fR\n(.*)$", re.MULTILINE)
_EXIT_CODE: Final = re.compile(r"^\.TP\n(\d+)\n(.+)$", re.MULTILINE)

Schema = dict[str, Any]


def promised() -> list[str]:
    """Each line has a subject before a colon. What it `needs`, callers must give; all else is there for them."""
    return sorted({*_operations(), *_shapes(), *_commands(), *_client(), *_limits(), *_metrics()})


def broken(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """What is no longer there, what is needed now by something that was content without it, and what limit is lower."""
    old, new = set(before), set(now)
    subjects = {line.partition(": ")[0] for line in old}
    gone = {line for line in old - new if ": needs " not in line and not _risen(line, new)}
    more = {line for line in new - old if ": needs " in line and line.partition(": ")[0] in subjects}
    return sorted(gone | more)


def _risen(line: str, now: set[str]) -> bool:
    """Whether it is a limit that is there with numbers at least as high."""
    subject, limit, numbers = line.partition(": at most ")
    later = [one.removeprefix(subject + limit) for one in now if limit and one.startswith(subject + limit)]
    before = _numbers(numbers)
    return any(len(_numbers(one)) == len(before) and all(map(le, before, _numbers(one))) for one in later)


def _numbers(limit: str) -> list[float]:
    return [float(number.replace(",", "")) for number in _NUMBER.findall(limit)]


def _operations() -> Iterator[str]:
    document = openapi_document()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            what = f"{method.upper()} {path}"
            scope = _SCOPE.search(operation.get("description", ""))
            yield f"{what}: takes {scope[0] if scope else 'no token'}"
            for one in operation.get("parameters", ()):
                yield f"{what}: {'needs' if one.get('required') else 'takes'} {one['in']} {one['name']}"
            for one in operation.get("requestBody", {}).get("content", {}).values():
                yield from (f"{what}: takes {kind}" for kind in _alternatives(one["schema"]))
            for status, answer in operation["responses"].items():
                for media, one in answer.get("content", {}).items():
                    yield from (f"{what}: answers {status} {media} {kind}" for kind in _alternatives(one["schema"]))
    for response in document["components"]["responses"].values():
        status, _, kinds = response["description"].partition(": ")
        yield from (f"{status}: {kind}" for kind in kinds.split(", "))


def _shapes() -> Iterator[str]:
    """Of what is asked, a field may take more than before; of what is answered, it may not."""
    document = openapi_document()
    shapes: dict[str, Schema] = document["components"]["schemas"]
    bodies = [one.get("requestBody", {}) for methods in document["paths"].values() for one in methods.values()]
    asked, found = set[str](), _named(bodies)
    while found:
        asked |= found
        found = _named([shapes[name] for name in found]) - asked
    for name, shape in shapes.items():
        for field, schema in shape.get("properties", {}).items():
            kinds = _alternatives(schema)
            told = (
                (f"takes {field} {kind}" for kind in kinds) if name in asked else [f"has {field} {' or '.join(kinds)}"]
            )
            yield from (f"{name}: {one}" for one in told)
        yield from (f"{name}: {'needs' if name in asked else 'always has'} {one}" for one in shape.get("required", ()))
        yield from (f"{name}: takes {value}" for value in shape.get("enum", ()))


def _named(schemas: Any) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", repr(schemas)))


def _alternatives(schema: Schema) -> list[str]:
    """The types of a value, without their bounds."""
    for of in "anyOf", "oneOf":
        if of in schema:
            return sorted({kind for one in schema[of] for kind in _alternatives(one)})
    if "$ref" in schema:
        return [schema["$ref"].rpartition("/")[2]]
    if within := schema.get("prefixItems") or ([schema["items"]] if "items" in schema else []):
        return [f"[{', '.join(' or '.join(_alternatives(one)) for one in within)}]"]
    return [str(schema.get("type", "anything"))]


def _commands() -> Iterator[str]:
    page = PAGE.read_text(encoding="utf-8").replace("\\-", "-")
    for command, arguments in _COMMAND.findall(page):
        for names, said in _ARGUMENT.findall(arguments):
            yield f"{command}: {'needs' if '[required]' in said else 'takes'} {names}"
    yield from (f"exit code {code}: {meaning}" for code, meaning in _EXIT_CODE.findall(page))


def _client() -> Iterator[str]:
    """`SyncClient` has the methods of `Client`."""
    package = tallybook_client.__name__
    for name in tallybook_client.__all__:
        one = getattr(tallybook_client, name)
        yield f"{package}: has {name}"
        if hasattr(one, "__struct_fields__"):
            yield from (f"{package}.{name}: has {field}" for field in one.__struct_fields__)
        elif inspect.isfunction(one):
            yield from _arguments(f"{package}.{name}", one)
    for name, method in inspect.getmembers(tallybook_client.Client, callable):
        if not name.startswith("_") or name == "__init__":
            yield f"{package}.Client: has {name}"
            yield from _arguments(f"{package}.Client.{name}", method)


def _arguments(what: str, function: Any) -> Iterator[str]:
    for place, one in enumerate(inspect.signature(function).parameters.values()):
        if one.name != "self":
            given = "by name" if one.kind is one.KEYWORD_ONLY else f"in place {place}"
            yield f"{what}: {'needs' if one.default is one.empty else 'takes'} {one.name} {given}"


def _limits() -> Iterator[str]:
    page = (ROOT / "docs" / "LIMITS.md").read_text(encoding="utf-8")
    for heading, section in _SECTION.findall(page):
        for what, limit in _ROW.findall(section):
            yield f"{heading}, {what}: at most {limit}"


def _metrics() -> Iterator[str]:
    return (f"metrics: has {name}" for name in metrics_to_watch())


def metrics_to_watch() -> set[str]:
    """Those that docs/OPERATIONS.md names."""
    sections = dict(_SECTION.findall((ROOT / "docs" / "OPERATIONS.md").read_text(encoding="utf-8")))
    return set(re.findall(r"`(tallybook_\w+)`", sections["Watching"]))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    FILE.write_text("".join(f"{line}\n" for line in promised()), encoding="utf-8")


if __name__ == "__main__":
    main()
