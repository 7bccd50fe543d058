"""Keys of the organiser where an id is expected: `key:M17` in a path, or in a field or parameter that names
competitors or competitions. Only requests that have some take time for them. Pure.

A key of nothing is refused. But a request with an idempotency key may repeat one that was accepted while something had
the key. So it gets an id of nothing instead, and the refusal is a condition: then the log decides, as about any.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from api.http.forms import Form
from api.interface.fields import MARK, Field, Fields, fields_of
from engine.domain.errors import Fault, NotFound
from engine.domain.faults import cited, refuse_if_any
from engine.domain.ids import parse_id
from engine.domain.names import name_key
from engine.domain.terms import ID_MAX
from projections.board.board import Board

_IN_JSON: Final = re.compile(r'("competitor_id"\s*:\s*)?"key:((?:[^"\\]|\\.)*)"(\s*:)?', re.ASCII)
"""The value of a `competitor_id`, or the name of a field."""


def ids_of(parameters: Mapping[str, str], board: Board, *, repeats: bool) -> dict[str, int]:
    """The ids among the parameters of a path, by name. `repeats`: keys of nothing get ID_MAX. Raises NotFound."""
    found: dict[str, int] = {}
    for name, text in parameters.items():
        if name != "tournament":
            what = name.removesuffix("_id")
            its_id = _by_key(board, what, text) if text.startswith(MARK) else parse_id(text)
            if its_id is None and not (repeats and text.startswith(MARK)):
                raise NotFound.of(what, repr(text[:40]))
            found[name] = its_id or ID_MAX
    return found


def has_keys(said: Iterable[tuple[str, str]]) -> bool:
    """Whether a form or a query may have keys in place of ids."""
    return any(MARK in text for one in said for text in one)


def query_of(
    query: Iterable[tuple[str, str]], question: Callable[..., Any], fields: Fields, board: Board
) -> list[tuple[str, str]]:
    """The query with ids in place of keys. Raises Unacceptable for keys of nothing."""
    named = fields_of(question, fields)
    return [pair for one in query for pair in form_of(dict([one]), named, board, repeats=False).items()]


def form_of(form: Form, fields: Fields, board: Board, *, repeats: bool) -> Form:
    """The form with ids in place of keys. `repeats`: keys of nothing get ID_MAX. Raises Unacceptable for them
    otherwise."""
    faults: list[Fault] = []
    said: dict[str, str] = {}
    by_name = {field.name: field for field in fields}
    for name, text in form.items():
        field = by_name.get(name.partition("[")[0])
        if field is None or not field.names or not (MARK in text or MARK in name):
            said[name] = text
        else:
            id_of = _finder(board, field, faults, repeats=repeats)
            said[_indexed(name, id_of)] = text if name != field.name else _text(text, field, id_of)
    refuse_if_any(faults)
    return said


_IdOf = Callable[[str], str]


def _finder(board: Board, field: Field, faults: list[Fault], *, repeats: bool) -> _IdOf:
    def id_of(key: str) -> str:
        found = _by_key(board, field.names, MARK + key)
        if found is None and not repeats:
            faults.append(Fault(field.name, f"no {field.names} has the key {cited(key)}"))
        return str(found or ID_MAX)

    return id_of


def _by_key(board: Board, what: str, text: str) -> int | None:
    key = name_key(text.removeprefix(MARK))
    if what == "competitor":
        return board.competitors.by_key(key)
    return board.competitions.by_key(key) if what == "competition" else None


def _indexed(name: str, id_of: _IdOf) -> str:
    """The name of a field, which may be that of a performance: `result[key:A7]`."""
    before, bracket, key = name.partition("[key:")
    return f"{before}[{id_of(key[:-1])}]" if bracket and key.endswith("]") else name


def _text(text: str, field: Field, id_of: _IdOf) -> str:
    if text.lstrip().startswith(("{", "[")):
        return _IN_JSON.sub(lambda found: _in_json(found, id_of), text)
    if field.type.indexed:
        return text  # a score
    items = text.split(",") if field.type.is_list else [text]
    return ",".join([id_of(one.strip()[len(MARK) :]) if one.strip().startswith(MARK) else one for one in items])


def _in_json(found: re.Match[str], id_of: _IdOf) -> str:
    value, key, name = found.groups()
    if value is None and name is None:
        return found[0]  # a text that says what it likes
    its_id = id_of(msgspec.json.decode(f'"{key}"', type=str))
    return f"{value}{its_id}" if value is not None else f'"{its_id}"{name}'
