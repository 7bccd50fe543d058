"""The progress of a command, as a bar on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from api.cli import printing


class Advance(Protocol):
    """Moves the bar to `done`. `of` is the total, if it became known only now."""

    def __call__(self, done: int, of: int | None = None) -> None: ...


@contextmanager
def progress(what: str, *, total: int | None = None, data_there: bool = False) -> Iterator[Advance]:
    """Shows a bar on a terminal, unless the data goes there (`data_there`). Yields the function that moves it."""
    if data_there or not sys.stderr.isatty():
        yield lambda done, of=None: None
        return
    from rich.progress import Progress  # noqa: PLC0415 - for terminals only

    with Progress(console=printing.talk()) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, of=None: bar.update(task, completed=done, total=of)
