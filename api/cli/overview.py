"""The entrance of the command line. What only lists commands is printed here, as cyclopts prints it: to import cyclopts
and what it imports takes five times as long."""

import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from api.cli.plain import terminal_columns, write
from api.cli.tree import ABOUT, GROUPS, OPTIONS_OF_ALL, PARTS, TREE
from engine.process.version import version

HELP: Final = ("--help", "-h")
COLUMNS_MIN: Final = 60
"""In narrower terminals, cyclopts shortens names as well."""
_NAME: Final = "\x1b[36m{}\x1b[0m"
"""A name on a terminal: cyan, as in the help of commands."""


def main() -> None:
    """Runs the command of `sys.argv`, or lists commands, and exits with its code."""
    words, columns = sys.argv[1:], terminal_columns()
    if words == ["--version"]:
        shown: str | None = f"{version()}\n"
    else:
        shown = overview_of(words, columns, colored=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    if shown is None or columns < COLUMNS_MIN or sys.stdout.encoding != "utf-8":
        import_module("api.cli.main").main()
        return
    write(shown)


def overview_of(words: list[str], columns: int, *, colored: bool = False) -> str | None:
    """The list of commands that these words ask for, this wide. None: they ask for something else."""
    part = words[0] if words and words[0] in PARTS else None
    if words[part is not None :] not in ([], *([word] for word in HELP)):
        return None
    lines = [f"Usage: {' '.join(['tallybook', *words[: part is not None]])} COMMAND", ""]
    for paragraph in (ABOUT if part is None else PARTS[part][1]).split("\n\n"):
        lines += [*_wrapped(paragraph, columns), ""]
    for title, rows in _groups(part):
        lines += _panel(title, rows, columns, _NAME if colored else "{}")
    return "\n".join([*lines, ""])


def _groups(part: str | None) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The groups of commands of a part, or of the whole tree: what each command is for, by name."""
    entries = [(entry.words.split(), entry) for entry in TREE]
    if part is not None:
        yield "Commands", {words[1]: entry.help for words, entry in entries if words[0] == part}
        return
    for group in GROUPS[:-1]:
        parts = {name: about for name, (its_group, about) in PARTS.items() if its_group == group}
        yield group, parts | {words[0]: entry.help for words, entry in entries if entry.group == group}
    yield GROUPS[-1], OPTIONS_OF_ALL


def _panel(title: str, rows: Mapping[str, str], columns: int, name_style: str) -> Iterator[str]:
    """A frame around names, each with the first paragraph about it."""
    width = max(map(len, rows))
    yield f"╭─ {title} {'─' * (columns - len(title) - 5)}╮"
    for name, about in sorted(rows.items()):
        label = name
        for line in _wrapped(about.strip().partition("\n\n")[0], columns - width - 6):
            yield f"│ {name_style.format(f'{label:{width}}')}  {line:{columns - width - 6}} │"
            label = ""
    yield f"╰{'─' * (columns - 2)}╯"


def _wrapped(text: str, columns: int) -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > columns:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield line
