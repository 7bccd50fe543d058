"""How far a command has come, as a bar on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import Progress

from api.cli import printing


class Advance(Protocol):
    """Moves a bar to how much is `done`, where it is known now `of` how much."""

    def __call__(self, done: int, of: int | None = None) -> None: ...


@contextmanager
def progress(what: str, *, total: int | None = None, data_there: bool = False) -> Iterator[Advance]:
    """A bar on a terminal, unless the data itself goes there; it is told how much is done, and perhaps of how much."""
    with Progress(console=printing.talk(), disable=data_there or not printing.talk().is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, of=None: bar.update(task, completed=done, total=of)
