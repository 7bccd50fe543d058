"""docs/man/tallybook.1, made from the help of every command. `make docs` writes it, and the wheel installs it."""

import io
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from cyclopts import App
from cyclopts.help import HelpPanel
from rich.console import Console, ConsoleOptions

from api.cli.main import app

PAGE: Final = Path(__file__).parents[2] / "docs" / "man" / "tallybook.1"
_COLUMNS: Final = 10_000
"""So wide that no line of a help is broken; man(1) breaks them."""
_HEAD: Final = """\
.TH TALLYBOOK 1 "" "Tallybook {version}" "User Commands"
.SH NAME
tallybook \\- {summary}
.SH SYNOPSIS
.B tallybook
COMMAND
.SH DESCRIPTION
{description}
.SH COMMANDS
"""
_END: Final = """\
.SH ENVIRONMENT
A variable can give every option: TALLYBOOK_DATA_DIR gives \\-\\-data\\-dir. The command line is stronger.
.SH "EXIT STATUS"
.TP
0
Done.
.TP
1
Refused, with a reason on standard error.
.TP
2
Wrong usage.
.TP
3
Disproved: a difference was found.
.TP
130
Interrupted.
"""


def manual() -> str:
    """The page, in the language of man(7)."""
    summary, _, description = app.help.partition("\n\n")
    head = _HEAD.format(version=version("tallybook"), summary=_text(summary), description=_text(description))
    return head + "".join(_section(path) for path in commands()) + _END


def commands(part: App = app, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command, in the order of the help."""
    for name in part:
        if not name.startswith("-"):
            command = part[name]
            yield from commands(command, (*path, name)) if command.default_command is None else [(*path, name)]


def _section(path: tuple[str, ...]) -> str:
    """The help of one command, as cyclopts has it shown by whatever is its formatter."""
    section = _Section()
    before, app.help_formatter = app.help_formatter, section
    try:
        app.help_print(list(path), console=Console(file=io.StringIO(), width=_COLUMNS, color_system=None))
    finally:
        app.help_formatter = before
    return "\n".join([*section.lines, ""])


class _Section:
    """A formatter of cyclopts: takes the parts of a help, one after the other."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        self.lines.append(f'.SS "{_text(_plain(console, usage)).removeprefix("Usage: ")}"')

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        self.lines.append(_text(_plain(console, description)))

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        for entry in panel.entries:
            notes = [
                f"[choices: {', '.join(entry.choices)}]" if entry.choices else "",
                f"[default: {entry.default}]" if entry.default is not None else "",
                "[required]" if entry.required else "",
            ]
            said = " ".join(filter(None, [_plain(console, entry.description or ""), *notes]))
            self.lines += [".TP", rf"\fB{_text(', '.join(entry.display_labels_with_metavar))}\fR", _text(said)]


def _plain(console: Console, renderable: Any) -> str:
    """What the console would show, without marks, and without the blanks that fill its lines."""
    with console.capture() as captured:
        console.print(renderable, highlight=False, markup=False)
    return "\n".join(line.strip() for line in captured.get().strip().splitlines())


def _text(plain: str) -> str:
    """`plain` as man(7) writes it: nothing in it is a request, and a line that is empty begins a paragraph."""
    escaped = plain.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return "\n".join(
        ".PP" if not line else rf"\&{line}" if line.startswith((".", "'")) else line for line in escaped.split("\n")
    )


def main() -> None:
    PAGE.write_text(manual(), encoding="utf-8")


if __name__ == "__main__":
    main()
