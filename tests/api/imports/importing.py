"""Imports of files, in the process of the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from api.desk.desk import Desk
from api.imports.importer import Imported, import_lines
from api.imports.kinds import FileKind
from api.interface.names import Names
from engine.domain.commands import Command
from engine.domain.errors import DatabaseUnavailable, Refusal, TallybookError
from engine.domain.terms import OPERATOR, TournamentId
from projections.live.tournament import LiveTournament


class Importing:
    """A tournament into which files are imported. `read` makes something to import of the content of a file."""

    def __init__(self, desk: Desk, tournament_id: TournamentId, read: Callable[..., FileKind[Any]]) -> None:
        self.desk: Any = desk  # or one that is Leaving
        self.tournament_id = tournament_id
        self.read = read
        self.progress: list[tuple[int, int]] = []

    @asynccontextmanager
    async def live(self) -> AsyncIterator[LiveTournament]:
        async with self.desk.live_pool.pinned(self.tournament_id) as live:
            await self.desk.live_pool.make_current(live)
            yield live

    async def __call__(
        self, content: str | bytes, *, stop_at: int | None = None, sure: bool = False, **how: Any
    ) -> Imported:
        """`how` it is read. With `stop_at`, interrupted when this many lines are done."""
        self.progress.clear()
        stop = asyncio.Event()

        def progress(done: int, total: int) -> None:
            self.progress.append((done, total))
            if stop_at is not None and done >= stop_at:
                stop.set()

        if stop_at == 0:
            stop.set()
        async with self.live() as live:
            content = content.encode() if isinstance(content, str) else content
            kind = self.read(content, Names(live.board), **how)
            return await import_lines(self.desk, live, kind, actor=OPERATOR, stop=stop, progress=progress, sure=sure)

    async def counts(self, content: str, **how: Any) -> tuple[int, int]:
        """How many lines were done now, and how many before."""
        outcome = await self(content, **how)
        return outcome.made, outcome.already

    async def refusal(self, content: str | bytes, **how: Any) -> Refusal:
        """Why the file is refused, after which the log must be as before."""
        before = await self.length()
        with pytest.raises(Refusal) as caught:
            await self(content, **how)
        assert await self.length() == before
        return caught.value

    async def refused(self, content: str | bytes, **how: Any) -> list[str]:
        """The lines of the reason."""
        refusal = await self.refusal(content, **how)
        return [refusal.message, *[f"{fault.field}: {fault.message}" for fault in refusal.faults]]

    async def length(self) -> int:
        async with self.live() as live:
            return live.head.sequence

    async def submit(self, command: Command) -> None:
        async with self.live() as live:
            await self.desk.submit(live, command, actor=OPERATOR)


class Leaving:
    """A desk that fails after a number of requests: as if its database had gone away, unless another `failure` is
    given."""

    def __init__(self, desk: Desk, left: int, failure: TallybookError | None = None) -> None:
        self._desk = desk
        self._left = left
        self._failure = failure or DatabaseUnavailable()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk, name)

    async def submit(self, *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise self._failure
        return await self._desk.submit(*arguments, **named)
