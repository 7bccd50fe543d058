"""The command line, run in this process."""

import asyncio
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import cyclopts
from cyclopts import App
from rich.console import Console

from api.cli import printing
from api.cli.main import app
from engine.domain.errors import TallybookError
from tests.running import Said


class Tallybook:
    """The command line, with one database."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    async def __call__(self, *arguments: str) -> Said:
        """What the command says, run in this process."""
        return await asyncio.to_thread(said_here, [*arguments, "--database-url", self.dsn])

    async def done(self, *arguments: str) -> str:
        """What it put out, without the end of the line; it must have gone well."""
        said = await self(*arguments)
        assert said.code == 0, said.err
        return said.out.removesuffix("\n")

    async def json(self, *arguments: str) -> Any:
        return json.loads(await self.done(*arguments, "--json"))

    async def refused(self, *arguments: str) -> list[str]:
        """The lines of the reason, after exit code 1 and nothing put out."""
        said = await self(*arguments)
        assert (said.code, said.out) == (1, "")
        return said.err.splitlines()


def said_here(arguments: list[str]) -> Said:
    """What `main` would put out, and the code it would end with."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app(arguments, exit_on_error=False, console=Console(file=out, width=400))
        except cyclopts.CycloptsError:
            code = 2
        except TallybookError as error:
            printing.refused(error)
            code = 1
    return Said(code, out.getvalue(), err.getvalue())


def commands(part: App, *above: str) -> dict[str, App]:
    """Every command of the tree, by the words that it is called with."""
    found: dict[str, App] = {}
    for name in part:
        if not name.startswith("-"):
            command, words = part[name], (*above, name)
            found |= commands(command, *words) if command.default_command is None else {" ".join(words): command}
    return found
