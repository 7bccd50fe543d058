"""Functions of the product that a test watches: with what they are called, and what happens before they return."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

Calls = Callable[[Any, str], list[tuple[Any, ...]]]
"""The arguments of each call from now on of the function that `owner` has under this name, by place and then by name;
the function does what it always does."""


def noted_calls(patch: pytest.MonkeyPatch, owner: Any, name: str) -> list[tuple[Any, ...]]:
    """See Calls."""
    calls, function = list[tuple[Any, ...]](), getattr(owner, name)

    def noting(*given: Any, **named: Any) -> Any:
        calls.append((*given, *named.values()))
        return function(*given, **named)

    patch.setattr(owner, name, noting)
    return calls


class Held:
    """A call that has done its work, and does not return before `goes_on`. Use within `held_after`."""

    def __init__(self) -> None:
        self.has_done, self.goes_on = asyncio.Event(), asyncio.Event()


@contextmanager
def held_after(patch: pytest.MonkeyPatch, owner: Any, name: str) -> Iterator[Held]:
    """Holds the calls that are made within the context."""
    held, function = Held(), getattr(owner, name)

    async def holding(*given: Any, **named: Any) -> Any:
        found = await function(*given, **named)
        held.has_done.set()
        await held.goes_on.wait()
        return found

    with patch.context() as patched:
        patched.setattr(owner, name, holding)
        yield held
