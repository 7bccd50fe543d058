"""A history as values, as a file, and made from what the clients of the fault campaign wrote down."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from assurance.faults.history import Attempt, History, Kind, Outcome, Shown


class Operation(Struct, frozen=True, kw_only=True):
    """One line of a history; the docstring of the package says what each field is."""

    client: int
    object: str
    action: str
    value: Any = None
    call: int
    end: int | None
    shown: Any = None


def write(path: Path, operations: Iterable[Operation]) -> None:
    """Writes a history as a file of JSON lines."""
    path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in operations))


def read(path: Path) -> list[Operation]:
    """The history that a file holds."""
    return [msgspec.json.decode(line, type=Operation) for line in path.read_bytes().splitlines()]


def by_object(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """The operations on each object."""
    ordered = sorted(operations, key=lambda one: one.object)
    return {name: list(group) for name, group in groupby(ordered, key=lambda one: one.object)}


# ── From the fault campaign ─────────────────────────────────────────────────────────────────────────────


def of_campaign(history: History) -> list[Operation]:
    """The points and the number of competitions of each tournament, as clients added and saw them.

    Voids change points by what clients cannot know, so their histories are left to others.
    """
    asked_for: dict[int, list[Attempt]] = {}
    for attempt in history.attempts:
        asked_for.setdefault(attempt.asked.number, []).append(attempt)
    return [one for attempts in asked_for.values() for one in _operations(attempts)]


def _operations(attempts: list[Attempt]) -> Iterator[Operation]:
    """Those of one thing that was asked for, perhaps again and again: a change, and a read for each answer.

    The answer to a change is made after the change, and may show later ones as well. So the two are operations of their
    own, and the read says of which change it must show the effect.
    """
    asked = attempts[0].asked
    done = [attempt for attempt in attempts if attempt.outcome is Outcome.OK]
    if asked.kind in (Kind.ADD, Kind.COMPETITION):
        unknown = [attempt for attempt in attempts if attempt.outcome is Outcome.UNKNOWN]
        is_add = asked.kind is Kind.ADD
        action, value = ("add", [asked.number, asked.lines]) if is_add else ("count one", None)
        if done:
            began = attempts[0] if done[0].replayed else done[0]
            yield _operation(action, value, began, done[0])
        elif unknown and attempts[-1].status not in (409, 422):
            yield _operation(action, value, unknown[0], None)
    for attempt in done:
        if (shown := _shown(attempt)) is not None:
            yield _operation("read", asked.number if asked.kind is Kind.ADD else None, attempt, attempt, shown)


def _operation(action: str, value: Any, began: Attempt, ended: Attempt | None, shown: Any = None) -> Operation:
    asked = began.asked
    what = "competitions" if asked.kind in (Kind.COMPETITION, Kind.LIST) else "points"
    return Operation(
        client=asked.client,
        object=f"{what} {asked.tournament}",
        action=action,
        value=value,
        call=round(began.began * 1e9),
        end=None if ended is None else round(ended.ended * 1e9),
        shown=shown,
    )


def _shown(attempt: Attempt) -> Any:
    if attempt.asked.kind is Kind.LIST:
        return attempt.count
    return None if attempt.shown is None else _totals(attempt.shown)


def _totals(shown: Shown) -> list[list[int]]:
    """By unity's place and competitor, ascending, without zeros."""
    return [
        [place, competitor, total]
        for place, totals in enumerate(shown.totals)
        for competitor, total in sorted(totals)
        if total
    ]
