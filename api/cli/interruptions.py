"""Commands that Ctrl-C stops between two steps, so that they can say how far they came."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from api.cli import printing
from api.service.lifecycle import stop_on_signals


@contextmanager
def interruptible(nothing: str) -> Iterator[Callable[[], asyncio.Event]]:
    """Says at Ctrl-C that it came before the command did anything (`nothing`: such as "imported anything"). Yields a
    function that returns an event: from then on, Ctrl-C sets that, also while what is within the context closes."""
    with ExitStack() as listening:
        try:
            yield lambda: listening.enter_context(stop_on_signals())
        except asyncio.CancelledError:
            printing.say(f"Interrupted before this command {nothing}.")
            raise
