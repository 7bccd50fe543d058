"""Files as rows: a reader takes the bytes of a file, and knows nothing of what the rows mean. Pure."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from api.imports.readers.brought import text_of
from api.interface.cells import csv_rows
from engine.domain.errors import Fault, Unreadable

_F = TypeVar("_F")


class FileRow(Struct, Generic[_F], frozen=True):
    """What a line of a file says, with its number."""

    number: int
    fields: _F


RowRead = FileRow[Mapping[str, Any]] | Fault
"""The fields of a line by column, or what is wrong with it."""


class FileRows(Struct, frozen=True):
    """A file. `columns`: those that its first line names; None: each line names its own. `rows` are read while they are
    taken, which raises Unreadable at what is not in the format."""

    columns: tuple[str, ...] | None
    rows: Iterable[RowRead]


Reader = Callable[[bytes], FileRows]
"""Raises Unreadable."""


def read_csv(content: bytes) -> FileRows:
    rows = csv_rows(text_of(content))
    _, first = next(rows, (1, []))
    columns = tuple([column.strip() for column in first])
    while columns and not columns[-1]:
        columns = columns[:-1]
    return FileRows(columns, (_csv_row(columns, number, row) for number, row in rows))


def _csv_row(columns: tuple[str, ...], number: int, row: list[str]) -> RowRead:
    named, others = row[: len(columns)], row[len(columns) :]
    if len(named) < len(columns) or any(map(str.strip, others)):
        return _fault(number, "it has more or fewer fields than the first line has columns")
    return FileRow(number, dict(zip(columns, named, strict=True)))


def read_ndjson(content: bytes) -> FileRows:
    return FileRows(None, _ndjson_rows(text_of(content)))


def _ndjson_rows(text: str) -> Iterator[RowRead]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield FileRow(number, _json_fields(line))
            except msgspec.MsgspecError as error:
                yield _fault(number, str(error))


def _json_fields(line: str) -> dict[str, Any]:
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


def _fault(number: int, message: str) -> Fault:
    return Fault(f"line {number}", message)


def parted(columns: Iterable[str], known: Collection[str]) -> tuple[list[str], list[str]]:
    """The columns that are `known`, and the others."""
    own: list[str] = []
    others: list[str] = []
    for column in columns:
        (own if column in known else others).append(column)
    return own, others


def only(known: Collection[str], rows: Iterable[RowRead]) -> Iterator[RowRead]:
    """The rows without the fields of other columns."""
    for row in rows:
        if isinstance(row, Fault):
            yield row
        else:
            yield FileRow(row.number, {column: row.fields[column] for column in row.fields if column in known})


def taken(rows: Iterable[RowRead], most: int, kind: type[_F]) -> list[FileRow[_F]]:
    """The rows, with their fields as `kind`. Raises Unreadable for more than `most`, and for lines that cannot be read,
    naming all of these."""
    found: list[FileRow[_F]] = []
    faults: list[Fault] = []
    for count, row in enumerate(islice(rows, most + 1), start=1):
        if count > most:
            raise Unreadable(f"The file has more than {most:,} lines to import; import that many at a time.")
        if isinstance(row, Fault):
            faults.append(row)
            continue
        try:
            found.append(FileRow(row.number, msgspec.convert(row.fields, kind)))
        except msgspec.ValidationError as error:
            faults.append(_fault(row.number, str(error)))
    if faults:
        raise Unreadable("Nothing was imported; correct these lines.", faults)
    return found
