"""Prints the output of commands: data on standard output, as tables or JSON, and sentences on standard error.

The encoding of a stream may lack a character of a name. That character is then written as JSON escapes it (ë as
\\u00eb), in tables and sentences too. So JSON stays JSON.
"""

import codecs
import io
import json as stdlib_json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from functools import cache
from importlib import import_module
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

import msgspec
from rich.cells import cell_len, set_cell_size

from api.cli.plain import terminal_columns, write
from api.interface.direction import END_OF_ISOLATE, ISOLATE, isolated
from engine.domain.errors import LogUnreadable, Refusal, TallybookError, TournamentStopped
from engine.domain.times import instant, timestamp
from engine.process.logs import Logger

if TYPE_CHECKING:
    from rich.console import Console

PIPED_COLUMNS: Final = 200
"""Width of a table that does not go to a terminal."""
_FRAMES: Final = ("┏━┳┓", "┃┃", "┡━╇┩", "││", "└─┴┘")
"""Of a table: above the names of the columns, around them, below them, around a line, below the last."""
_ASCII_FRAMES: Final = ("+--+", "||", "|-+|", "||", "+--+")
"""The same for encodings that lack these."""
_STEERING: Final = dict.fromkeys(map(ord, "\a\b\v\f\r"))
"""Characters left out of sentences and cells: they ring, or move the cursor."""
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
    lacking = error.object[error.start : error.end]
    return stdlib_json.dumps(lacking.replace(ISOLATE, "").replace(END_OF_ISOLATE, ""))[1:-1], error.end


@cache
def talk() -> "Console":
    """Standard error of a terminal, for more than sentences."""
    console: Console = import_module("rich.console").Console(stderr=True, soft_wrap=True, emoji=False)
    return console


def width() -> int:
    """The width of tables."""
    return terminal_columns() if sys.stdout.isatty() else PIPED_COLUMNS


def count(number: int, noun: str) -> str:
    """The number and its noun, such as "1 event" or "2,000 events"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def say(sentence: str) -> None:
    write(f"{sentence}\n".translate(_STEERING), sys.stderr)


def line(text: str) -> None:
    write(f"{text}\n")


def json(value: object) -> None:
    line(msgspec.json.encode(value).decode())


def rows(values: Items[Mapping[str, object]], columns: Items[str], *, as_json: bool) -> None:
    """A table of `columns`, which says that times are in UTC, or an array of objects."""
    if as_json:
        json([{key: instant(of) if isinstance(of, datetime) else of for key, of in value.items()} for value in values])
        return
    of_times = {key for value in values for key, of in value.items() if isinstance(of, datetime)}
    heads = [f"{column} (UTC)" if column in of_times else column for column in columns]
    table(heads, [[value[column] for column in columns] for value in values])


def table(columns: Items[str], lines: Iterable[Items[object]], *, title: str = "") -> None:
    """A table that is as wide as the terminal at most. Long cells are broken between words, and nothing is cut. If a
    word is too wide for that, each line becomes a paragraph, with a column on each of its lines."""
    texts = [list(map(cell, line)) for line in lines]
    cells = list(zip(columns, *texts, strict=True))
    fewest = [max(cell_len(word) for text in one for word in (text.split() or [""])) for one in cells]
    widths = _widths(fewest, [max(map(cell_len, one)) for one in cells], width() - _BORDERS * len(cells) - 1)
    if widths is None:
        _paragraphs(columns, texts, title)
    else:
        line("\n".join(_drawn(columns, texts, widths, title)))


def _drawn(columns: Items[str], lines: Iterable[Items[str]], widths: Items[int], title: str) -> Iterator[str]:
    """The lines of a table."""
    bold, italic = ("\x1b[1m{}\x1b[0m", "\x1b[3m{}\x1b[0m") if _is_styled() else ("{}", "{}")
    above, around_names, below_names, around, below = _FRAMES if _has(_FRAMES[0]) else _ASCII_FRAMES
    full = sum(widths) + _BORDERS * len(widths) + 1
    for text in _broken(title, full).split("\n") if title else ():
        yield " " * ((full - cell_len(text)) // 2) + italic.format(isolated(text))
    yield _rule(above, widths)
    yield from _row(columns, widths, around_names, bold)
    yield _rule(below_names, widths)
    for texts in lines:
        yield from _row(texts, widths, around, "{}")
    yield _rule(below, widths)


def _rule(frame: str, widths: Items[int]) -> str:
    left, fill, between, right = tuple(frame)
    return left + between.join([fill * (width + 2) for width in widths]) + right


def _row(texts: Items[str], widths: Items[int], frame: str, style: str) -> Iterator[str]:
    """The lines of a row, as many as its highest cell has."""
    outer, inner = tuple(frame)
    for parts in zip_longest(*[_broken(text, width).split("\n") for text, width in zip(texts, widths, strict=True)]):
        filled = [set_cell_size(isolated(part or ""), width) for part, width in zip(parts, widths, strict=True)]
        yield f"{outer} {f' {inner} '.join(map(style.format, filled))} {outer}"


def _is_styled() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("dumb", "unknown")


def _has(text: str) -> bool:
    """Whether the encoding of standard output has these characters."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


_BORDERS: Final = 3
"""The width of a column in addition to its text: a blank on both sides, and a line."""


def _widths(fewest: Items[int], most: Items[int], available: int) -> list[int] | None:
    """The width of each column: what it needs for its longest word, and as fair a share of the rest as it can use.
    None: there is not enough for the words."""
    left = available - sum(fewest)
    if left < 0:
        return None
    widths = list(fewest)
    wanting = sorted(range(len(widths)), key=lambda n: most[n] - fewest[n])
    for place, n in enumerate(wanting):
        share = min(most[n] - fewest[n], left // (len(wanting) - place))
        widths[n] += share
        left -= share
    return widths


def _broken(text: str, width: int) -> str:
    """The text, broken between words."""
    if cell_len(text) <= width:
        return text
    lines: list[str] = []
    for word in text.split():
        if lines and cell_len(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join(lines)


def _apart(text: str) -> str:
    """Lines of text, each isolated, so that no name reorders the columns next to it."""
    return "\n".join(map(isolated, text.split("\n")))


def _paragraphs(columns: Items[str], lines: Iterable[Items[str]], title: str) -> None:
    width = max(map(cell_len, columns))
    paragraphs = [_apart(title)] if title else []
    for cells in lines:
        told = [(set_cell_size(column, width), text) for column, text in zip(columns, cells, strict=True) if text]
        paragraphs.append("\n".join([f"{column}  {_apart(text)}" for column, text in told]))
    line("\n\n".join(paragraphs))


def refused(error: TallybookError) -> None:
    """Says the reason, and every fault. Of an event that cannot be folded, says what the operator can do."""
    cause = error.__cause__ if isinstance(error, TournamentStopped) else error
    if isinstance(cause, LogUnreadable):
        number = cause.sequence
        say(
            f"Event {number} of tournament {cause.tournament_id} cannot be folded, so the tournament is stopped; this "
            f"changed nothing. `tallybook set-aside SLUG {number} --dry-run` shows the event; for what to do, see "
            '"An event that no version can fold" in docs/TROUBLE.md.'
        )
        return
    say(error.message)
    if isinstance(error, Refusal):
        for fault in error.faults:
            say(f"  {fault.field}: {fault.message}")


def title_of(*names: str) -> str:
    """The title of a table of these, such as a ranking and its unity."""
    return ": ".join(map(isolated, names))


def done(sentence: str, facts: object, *, as_json: bool) -> None:
    """What was done, as a sentence, or as JSON."""
    if as_json:
        json(facts)
    else:
        say(sentence)


def made(name: str, facts: object, *, as_json: bool) -> None:
    """What was made, by its id or the name that others use, or as JSON."""
    if as_json:
        json(facts)
    else:
        line(name)


def announce(event: str, sentence: str, **facts: object) -> None:
    """Says what a long-running command does: in a sentence on a terminal, elsewhere in a line of its log."""
    if sys.stderr.isatty():
        say(sentence)
    else:
        Logger().info(event, **facts)


def listening(address: str) -> None:
    announce("listening", f"Listening on {address}. Stop with Ctrl-C.", address=address)


def cell(value: object) -> str:
    match value:
        case None:
            text = ""
        case datetime():
            text = timestamp(value)
        case list():
            text = ", ".join(map(str, value))
        case dict():
            text = ", ".join(f"{key} {of_key}" for key, of_key in value.items())
        case _:
            text = str(value)
    text = text.translate(_STEERING)
    # Escaped before the columns are laid out, so that they are as wide as what is in them.
    stream = sys.stdout
    if isinstance(stream, io.TextIOWrapper) and stream.errors == _ESCAPING:
        return text.encode(stream.encoding, _ESCAPING).decode(stream.encoding)
    return text
