"""What shells complete is the tree of commands: every command after its group, every option after its command."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from cyclopts import App

from api.cli.main import app
from tests.api.cli.conftest import said_here
from tests.running import environment

BASH: Final = """
source "$1"
while read -r -a COMP_WORDS; do
    [[ ${COMP_WORDS[-1]} == . ]] && COMP_WORDS[-1]=""
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    COMPREPLY=()
    _tallybook
    echo "${COMPREPLY[*]}"
done
"""
"""Says what is completed after each line of words, of which the last is begun; a full stop stands for an empty word."""
FISH: Final = """
source $argv[1]
while read line
    set words (complete -C (string replace -r '[.]$' '' -- $line) | string replace -r '\\t.*' '')
    echo $words
end
"""


def parts(part: App = app, path: tuple[str, ...] = ("tallybook",)) -> Iterator[tuple[tuple[str, ...], App]]:
    """Every group and command, with the words that lead to it."""
    yield path, part
    for name in part:
        if not name.startswith("-"):
            yield from parts(part[name], (*path, name))


def names_of(part: App) -> set[str]:
    """What may follow the words that lead to a group."""
    return {name for name in part if not name.startswith("-")}


def options_of(command: App) -> set[str]:
    """The long options of a command, and those of every command."""
    collected = command.assemble_argument_collection(parse_docstring=True)
    named = {name for argument in collected if argument.show for name in argument.names if name.startswith("--")}
    return named | {"--help", "--version"}


GROUPS: Final = [(path, names_of(part)) for path, part in parts() if part.default_command is None]


@cache
def commands() -> dict[tuple[str, ...], set[str]]:
    """The options of every command. To collect them takes a second."""
    return {path: options_of(part) for path, part in parts() if part.default_command is not None}


def completed(shell: str, program: str, file: Path, lines: list[str]) -> list[set[str]]:
    """What the shell offers after each of the lines."""
    nothing = file.parent / "nothing"  # or names of files would be completed, too
    nothing.mkdir(exist_ok=True)
    arguments = {
        "bash": ["--norc", "-c", program, "bash", str(file)],
        "fish": ["--no-config", "-c", program, str(file)],
    }
    done = subprocess.run(
        [shell, *arguments[shell]],
        check=True,
        cwd=nothing,
        env=environment(HOME=str(file.parent)),
        input="".join(f"{line}\n" for line in lines),
        stdout=subprocess.PIPE,
        text=True,
    )
    return [set(line.split()) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("shell", "program"), [("bash", BASH), pytest.param("fish", FISH, marks=pytest.mark.long)])
def test_a_shell_completes_every_command_and_every_option(shell: str, program: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "script"
    file.write_text(said_here(["completion", shell]).out)
    after_groups = completed(shell, program, file, [" ".join((*path, ".")) for path, _ in GROUPS])
    assert dict(zip([path for path, _ in GROUPS], after_groups, strict=True)) == dict(GROUPS)
    after_commands = completed(shell, program, file, [" ".join((*path, "--")) for path in commands()])
    assert dict(zip(commands(), after_commands, strict=True)) == commands()


def test_zsh_knows_every_command_and_every_option(tmp_path: Path) -> None:
    """It completes only at a terminal, so this reads what it is told. Where there is a zsh, it parses that, too."""
    script = said_here(["completion", "zsh"]).out
    told = set(re.findall(r"^ *'?[({*]*(--[a-z-]+)", script, re.MULTILINE))
    assert told == set().union(*commands().values())
    for path, names in GROUPS:
        assert names <= set(re.findall(r"^ *'([a-z-]+):", script, re.MULTILINE)), path
    if shutil.which("zsh"):
        file = tmp_path / "script"
        file.write_text(script)
        subprocess.run(["zsh", "-f", "-n", str(file)], check=True)


def test_an_unknown_shell_is_refused() -> None:
    said = said_here(["completion", "tcsh"])
    assert (said.code, said.out) == (2, "")
