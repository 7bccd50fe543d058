"""Requests with their answers, as they were recorded: what the documentation shows.

`make docs` records them: it runs the commands of a small tournament, whose order is that of `tests/api/examples.py`,
in a shell, against a service. So a reader who goes through them in this order gets the same answers.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec
from msgspec import Struct

FOLDED_CHARACTERS_MAX: Final = 48
"""Characters of a line of JSON that is shown, where it can be parted. A phone has room for them."""


class Example(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command of a shell that asks for an operation, and what was answered: status, some of the headers, the body.

    `about` tells it from other examples of the operation. `keeps` are the ids in the answer that later commands use,
    by the names of their variables. `cut`: the body continues.
    """

    operation_id: str
    about: str = ""
    command: str
    status: int
    headers: dict[str, str] = {}
    body: str
    keeps: dict[str, int] = {}
    cut: bool = False


@cache
def recorded() -> dict[str, list[Example]]:
    """All examples by their operation ids, in the order in which they were run."""
    found: dict[str, list[Example]] = {}
    for example in msgspec.json.decode(files(__package__).joinpath("examples.json").read_bytes(), type=list[Example]):
        found.setdefault(example.operation_id, []).append(example)
    return found


def body_text(example: Example) -> str:
    """The body as people read it: an object of JSON in lines of their width, all else as it came."""
    body = example.body.rstrip("\n")
    if example.cut:
        return f"{body} …"
    return folded(json.loads(body)) if body.startswith("{") and "\n" not in body else body


def folded(value: Any, indent: str = "", used: int = 0) -> str:
    """JSON in lines that are not much longer than FOLDED_CHARACTERS_MAX. `used`: the characters that its line has
    already."""
    whole = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or len(indent) + used + len(whole) <= FOLDED_CHARACTERS_MAX:
        return whole
    deeper = indent + "  "
    if isinstance(value, list):
        parts = [folded(item, deeper) for item in value]
    else:
        keys = [f"{json.dumps(key, ensure_ascii=False)}: " for key in value]
        parts = [key + folded(item, deeper, len(key)) for key, item in zip(keys, value.values(), strict=True)]
    first, last = "[]" if isinstance(value, list) else "{}"
    return f"{first}\n{_filled(parts, deeper)}\n{indent}{last}"


def _filled(parts: list[str], indent: str) -> str:
    """The parts with commas between them, as many in a line as there is room for; one of several lines has its own."""
    lines = [""]
    for number, part in enumerate(parts):
        text = part if number == len(parts) - 1 else f"{part},"
        room = FOLDED_CHARACTERS_MAX - len(indent) - len(lines[-1])
        if lines[-1] and "\n" not in part + lines[-1] and len(text) < room:
            lines[-1] += f" {text}"
        else:
            lines.append(text)
    return "\n".join([indent + line for line in lines[1:]])
