"""Lists that are answered in parts: page by page, or each part after the last item of the one before."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from api.interface.fields import FROM_0, FROM_1, Field, Fields, count
from api.interface.rendering import Answer, cut
from engine.domain.errors import Fault, Unreadable
from engine.process.time_slices import TimeSlices
from projections.answers.lookup import number_before
from projections.board.selection import ListFilter, Selection
from projections.columns.packed import Packed
from projections.live.selections import Selections

PER_PAGE_DEFAULT: Final = 100
PER_PAGE_MAX: Final = 200


class PagedShape(Struct, frozen=True, kw_only=True):
    """A part of a list. A page has its number and the total number of items. A part after an item has in `next` the
    `after` of the next part; null: there is nothing more yet."""

    page: int | UnsetType = UNSET
    pages: int | UnsetType = UNSET
    perpage: int
    total: int | UnsetType = UNSET
    next: int | UnsetType | None = UNSET


class ListPart(Struct, frozen=True):
    """The items of a part of a list, by their ids, and the other fields of the answer."""

    ids: tuple[int, ...]
    paging: PagedShape

    def around(self, answer: Answer, shape: Callable[..., Struct], items: str) -> tuple[bytes, bytes]:
        """The body before and after the items: a `PagedShape` with the list `items`."""
        before, after = cut(shape(**{items: []}, **msgspec.structs.asdict(self.paging)), items)
        return answer.before + before, after + b"}"


class PageQuestion(Struct, frozen=True):
    """The requested part of a list: a page, counted from 1, or the items after an item; 0: from the first. Raises
    Unreadable if both are named."""

    page: int | None = None
    per_page: int = PER_PAGE_DEFAULT
    after: int | None = None

    def __post_init__(self) -> None:
        if self.page is not None and self.after is not None:
            faults = [Fault("page", "cannot be sent with after"), Fault("after", "cannot be sent with page")]
            raise Unreadable("The query names both a page and an item to continue after; send one of them.", faults)

    @property
    def is_page(self) -> bool:
        return self.after is None

    def is_past_the_end(self, total: int) -> bool:
        """Whether it is a page past the end. Such pages are not kept, because their number is unlimited."""
        return self.is_page and self._start >= total

    def part(self, items: Packed[Any, Any], what: str) -> ListPart:
        """The part of all these items, in their order. Raises Unacceptable if it starts after an item that does not
        exist, which it calls `what`."""
        if self.after is not None:
            number = number_before(items, what, self.after)
            return self._following(items.ids(number + 1, number + self.per_page + 1))
        return self._page(items.ids(self._start + 1, self._start + self.per_page), len(items))

    async def selected(
        self, items: Packed[Any, Any], what: str, chosen: ListFilter, selections: Selections, time_slices: TimeSlices
    ) -> ListPart:
        """As `part`, of the items that `chosen` accepts. A page needs all of them."""
        if self.after is None:
            return self.part_of(await selections.of(chosen, time_slices), 0)
        number = number_before(items, what, self.after)
        return self.part_of(await selections.of(chosen, time_slices, number=number, count=self.per_page + 1), number)

    def part_of(self, selection: Selection, number: int) -> ListPart:
        """The part of a selection, which must have the requested items. `number` is that of the item `after`."""
        if self.after is None:
            return self._page(selection.run(self._start, self._start + self.per_page), len(selection))
        start = selection.index_after(number)
        return self._following(selection.run(start, start + self.per_page + 1))

    @property
    def _start(self) -> int:
        """How many items come before the page."""
        return ((self.page or 1) - 1) * self.per_page

    def _page(self, ids: Iterable[int], total: int) -> ListPart:
        pages = max(1, -(-total // self.per_page))
        paging = PagedShape(page=self.page or 1, pages=pages, perpage=self.per_page, total=total)
        return ListPart(tuple(ids), paging)

    def _following(self, ids_and_one_more: Iterable[int]) -> ListPart:
        ids = tuple(ids_and_one_more)
        shown = ids[: self.per_page]
        return ListPart(shown, PagedShape(perpage=self.per_page, next=shown[-1] if len(ids) > len(shown) else None))


FIELDS: Final[Fields] = (
    Field("page", FROM_1, "counted from 1; not with after"),
    Field("per_page", count(PER_PAGE_DEFAULT, PER_PAGE_MAX), "items per page"),
    Field("after", FROM_0, "items created after this one; 0: from the first"),
)
