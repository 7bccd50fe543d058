"""Lists that are answered a page at a time."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Final, TypeVar

from msgspec import Struct

from api.interface.fields import FROM_1, Field, Fields, FieldType, count
from api.interface.rendering import Answer, cut

PER_PAGE_DEFAULT: Final = 100
PER_PAGE_MAX: Final = 200

_T = TypeVar("_T")


class PageQuestion(Struct, frozen=True):
    """Which part of a list is asked for: `page` counts from 1, `per_page` is from 1 to PER_PAGE_MAX."""

    page: int = 1
    per_page: int = PER_PAGE_DEFAULT

    def is_past_the_end(self, total: int) -> bool:
        """Whether the page lies past the end. Such a page is not kept: there is no end to their number."""
        return (self.page - 1) * self.per_page >= total

    def of(self, items: Collection[_T]) -> list[_T]:
        """The items of a page that is not past the end. Beyond it, the start may be a number that islice does not
        take."""
        start = (self.page - 1) * self.per_page
        return list(islice(items, start, start + self.per_page))

    def around(self, answer: Answer, shape: Callable[..., Struct], items: str, total: int) -> tuple[bytes, bytes]:
        """What stands in the body before and after the items of a page: a `PagedShape` with the list `items`."""
        pages = max(1, -(-total // self.per_page))
        paged = shape(**{items: []}, page=self.page, pages=pages, perpage=self.per_page, total=total)
        before, after = cut(paged, items)
        return answer.before + before, after + b"}"


class PagedShape(Struct, kw_only=True):
    page: int
    pages: int
    perpage: int
    total: int


FIELDS: Final[Fields] = (
    Field("page", FieldType(FROM_1.read, {**FROM_1.schema, "default": 1}), "counted from 1"),
    Field("per_page", count(PER_PAGE_DEFAULT, PER_PAGE_MAX), "items of a page"),
)
