"""Selections: the competitors or competitions that a filter accepts, in the order of creation. They are found a few at
a time, then kept current.

Pure. No item ever leaves the two lists, so a selection only continues its search and checks changed items again.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from engine.domain.events import Event, Touchable
from engine.domain.names import caseless_key, name_key
from engine.domain.terms import CompetitionId, CompetitorId
from projections.board.board import Board, Competition, Competitor
from projections.columns.packed import Packed

LOOKED_AT_ONCE: Final = 500
"""Items that one step checks; each takes between 1 and 2 µs."""
_BYTES: Final = 2_000
_CHANGED_BYTES: Final = 100


class CompetitorFilter(Struct, frozen=True, kw_only=True):
    """Accepts competitors that meet every condition that is not None. `name`: the `caseless_key` of how the name
    begins. `tag`: the `name_key` of one of its tags. `parent_id`: the competitor directly above."""

    kind: ClassVar[Touchable] = "competitor"
    name: str | None = None
    tag: str | None = None
    parent_id: CompetitorId | None = None

    def lets_through(self, competitor: Competitor) -> bool:
        return (
            (self.tag is None or self.tag in map(name_key, competitor.tags))
            and (self.parent_id is None or competitor.parent_id == self.parent_id)
            and (self.name is None or caseless_key(competitor.name).startswith(self.name))
        )

    @staticmethod
    def items(board: Board) -> Packed[CompetitorId, Competitor]:
        return board.competitors


class CompetitionFilter(Struct, frozen=True, kw_only=True):
    """Accepts competitions that meet every condition that is not None. `competitor_id`: a participant. `since` and
    `until`: the bounds of its start."""

    kind: ClassVar[Touchable] = "competition"
    group_id: int | None = None
    round: int | None = None
    competitor_id: CompetitorId | None = None
    has_result: bool | None = None
    voided: bool | None = None
    since: datetime | None = None
    until: datetime | None = None

    def lets_through(self, competition: Competition) -> bool:
        return (
            (self.group_id is None or competition.group_id == self.group_id)
            and (self.round is None or competition.round == self.round)
            and (self.has_result is None or (competition.result is not None) == self.has_result)
            and (self.voided is None or (competition.voided_at is not None) == self.voided)
            and (self.since is None or competition.started_at >= self.since)
            and (self.until is None or competition.started_at <= self.until)
            and (self.competitor_id is None or self.competitor_id in competition.participants)
        )

    @staticmethod
    def items(board: Board) -> Packed[CompetitionId, Competition]:
        return board.competitions


ListFilter: TypeAlias = CompetitorFilter | CompetitionFilter


class Selection:
    """The ids of the items of `board` that `chosen` accepts. `note` every event before it is folded; take `steps`
    before reading ids."""

    def __init__(self, chosen: ListFilter, board: Board) -> None:
        self._chosen = chosen
        self.start_over(board)

    def start_over(self, board: Board) -> None:
        """Forgets everything found, and continues with `board`."""
        self._items: Packed[Any, Any] = self._chosen.items(board)
        self._numbers = array("q")
        self._ids = array("q")
        self._looked_at = 0
        self._changed: set[int] = set()

    def note(self, event: Event) -> None:
        kind = self._chosen.kind
        if kind in event.touches and not event.creates:
            self._changed.add(getattr(event, f"{kind}_id"))

    # ── Finding ─────────────────────────────────────────────────────────────────────────────────────────

    def steps(self, number: int, count: int | None) -> Iterator[None]:
        """Works in small steps. Afterwards `has` is true unless an event was folded meanwhile."""
        while not self.has(number, count):
            self._look()
            yield

    def has(self, number: int, count: int | None) -> bool:
        """Whether it has found the first `count` ids after the item with this number, or all if there are fewer;
        `count` None: all."""
        if self._changed:
            return False
        if self._looked_at == len(self._items):
            return True
        return count is not None and len(self) - self.index_after(number) >= count

    def _look(self) -> None:
        """Checks one changed item again, or, if there is none, some further items."""
        if self._changed:
            item_id = next(iter(self._changed))
            self._look_again(item_id)
            self._changed.remove(item_id)  # only now: if it fails, the next query checks it again
            return
        for item_id, item in self._items.run(self._looked_at + 1, self._looked_at + LOOKED_AT_ONCE):
            if self._chosen.lets_through(item):
                self._numbers.append(item.number)
                self._ids.append(item_id)
            self._looked_at = item.number

    def _look_again(self, item_id: int) -> None:
        item = self._items[item_id]
        if item.number > self._looked_at:
            return
        index = bisect_left(self._numbers, item.number)
        was_in = index < len(self) and self._numbers[index] == item.number
        is_in = self._chosen.lets_through(item)
        if is_in and not was_in:
            self._numbers.insert(index, item.number)
            self._ids.insert(index, item_id)
        elif was_in and not is_in:
            del self._numbers[index], self._ids[index]

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        """How many it has."""
        return len(self._numbers)

    def index_after(self, number: int) -> int:
        """The number of its ids that belong to items up to this number."""
        return bisect_right(self._numbers, number)

    def run(self, start: int, stop: int) -> Items[int]:
        """The ids from the `start`-th to before the `stop`-th, counted from 0; fewer if it has no more."""
        return self._ids[start:stop]

    @property
    def changed(self) -> int:
        """How many items it must check again."""
        return len(self._changed)

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return _BYTES + 2 * self._ids.itemsize * len(self._ids) + _CHANGED_BYTES * len(self._changed)
