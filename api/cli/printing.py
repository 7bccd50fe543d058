"""Prints what commands say: data on standard output, as tables or JSON, and sentences on standard error.

The encoding of a stream may lack a character of a name. That character is then written as JSON escapes it (ë as
\\u00eb), in tables and sentences too. So JSON stays JSON.
"""

import codecs
import io
import json as stdlib_json
import os
import sys
from collections.abc import Mapping
from collections.abc import Sequence as Items
from functools import cache
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from engine.domain.errors import Refusal, TallybookError

PIPED_COLUMNS: Final = 200
"""Width of a table that does not go to a terminal."""
_ESCAPING: Final = "tallybook.escaping"
"""Name under which `_escaped` is registered with Python's codecs."""


def in_any_encoding() -> None:
    """Makes both standard streams escape what their encoding lacks, for all who write to them."""
    codecs.register_error(_ESCAPING, _escaped)
    for stream in sys.stdout, sys.stderr:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ESCAPING)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return stdlib_json.dumps(error.object[error.start : error.end])[1:-1], error.end


@cache
def talk() -> Console:
    return Console(stderr=True, soft_wrap=True, emoji=False)


@cache
def data() -> Console:
    return Console(width=None if sys.stdout.isatty() else PIPED_COLUMNS, emoji=False)


def say(sentence: str) -> None:
    talk().print(sentence, markup=False, highlight=False)


def line(text: str) -> None:
    write(f"{text}\n")


def write(text: str) -> None:
    """Writes to standard output. Exits with 1 and without a message if its reader is gone, as rich does for tables."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def json(value: object) -> None:
    line(msgspec.json.encode(value).decode())


def rows(values: Items[Mapping[str, object]], columns: Items[str], *, as_json: bool) -> None:
    """A table of `columns`, or an array of objects."""
    if as_json:
        json(values)
        return
    table = Table(*columns)
    for value in values:
        table.add_row(*(cell(value[column]) for column in columns))
    data().print(table, markup=False)


def refused(error: TallybookError) -> None:
    """Says the reason, and every fault."""
    say(error.message)
    if isinstance(error, Refusal):
        for fault in error.faults:
            say(f"  {fault.field}: {fault.message}")


def recorded(sequence: int, *, as_json: bool) -> None:
    """The event that a change was recorded as; of several, the first."""
    if as_json:
        json({"sequence": sequence})
    else:
        say(f"recorded as event {sequence}")


def listening(address: str) -> None:
    say(f"Listening on {address}. Stop with Ctrl-C.")


def cell(value: object) -> str:
    match value:
        case None:
            text = ""
        case list():
            text = ", ".join(map(str, value))
        case dict():
            text = ", ".join(f"{key} {of_key}" for key, of_key in value.items())
        case _:
            text = str(value)
    # Escaped before the columns are laid out, so that they are as wide as what is in them.
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == _ESCAPING:
        return text.encode(stream.encoding, _ESCAPING).decode(stream.encoding)
    return text
