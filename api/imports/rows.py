"""Files as rows: a reader takes the bytes of a file, and knows nothing of what the rows mean. Pure."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from api.interface.cells import csv_rows
from engine.domain.errors import Fault, Unreadable

_T = TypeVar("_T")


class FileRow(Struct, frozen=True, kw_only=True):
    """A line of a file, by its number: its fields by column. `fault`: why it cannot be read."""

    number: int
    fields: Mapping[str, Any] = {}
    fault: str | None = None


class FileRows(Struct, frozen=True):
    """A file. `columns`: those that its first line names; None: each row names its own. `rows` are read while they are
    taken, which raises Unreadable at what is not in the format."""

    columns: tuple[str, ...] | None
    rows: Iterable[FileRow]


Reader = Callable[[bytes], FileRows]
"""Raises Unreadable."""


def read_csv(content: bytes) -> FileRows:
    rows = csv_rows(_text(content))
    _, first = next(rows, (1, []))
    columns = tuple([column.strip() for column in first])
    return FileRows(columns, (_csv_row(columns, number, row) for number, row in rows))


def _csv_row(columns: tuple[str, ...], number: int, row: list[str]) -> FileRow:
    if len(row) != len(columns):
        return FileRow(number=number, fault="it has more or fewer fields than the first line has columns")
    return FileRow(number=number, fields=dict(zip(columns, row, strict=True)))


def read_ndjson(content: bytes) -> FileRows:
    return FileRows(None, _ndjson_rows(_text(content)))


def _ndjson_rows(text: str) -> Iterator[FileRow]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield FileRow(number=number, fields=_fields(line))
            except msgspec.MsgspecError as error:
                yield FileRow(number=number, fault=str(error))


def _fields(line: str) -> dict[str, Any]:
    """Raises msgspec.MsgspecError."""
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except RecursionError as error:
        raise msgspec.DecodeError("it is nested too deeply") from error
    names = [name for name, _ in json.loads(line, object_pairs_hook=list)]  # msgspec takes the last of two equal keys
    for name, count in Counter(names).items():
        if count > 1:
            raise msgspec.ValidationError(f"it has the field {name!r} more than once")
    return fields


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"The file is not UTF-8 (at byte {error.start}); save it as UTF-8.") from error


def taken(rows: Iterable[FileRow], most: int, line_of: Callable[[FileRow], _T]) -> list[_T]:
    """What `line_of` makes of each row. Raises Unreadable for more than `most` rows, and for rows that cannot be read,
    or of which `line_of` raises a msgspec.ValidationError; it names all of these."""
    lines: list[_T] = []
    faults: list[Fault] = []
    for count, row in enumerate(islice(rows, most + 1), start=1):
        if count > most:
            raise Unreadable(f"The file has more than {most:,} lines to import; import that many at a time.")
        try:
            if row.fault is not None:
                raise msgspec.ValidationError(row.fault)
            lines.append(line_of(row))
        except msgspec.ValidationError as error:
            faults.append(Fault(f"line {row.number}", str(error)))
    if faults:
        raise Unreadable("Nothing was imported; correct these lines.", faults)
    return lines
