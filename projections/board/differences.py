"""Where two values of one kind differ: the paths to every part that is not the same.

Pure. Compares structs by fields, dictionaries by keys and tuples by places, at any depth. So new fields are compared
automatically. A path is written as in Python: `rankings[7].unities[9].totals[3]`.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from projections.columns.enrolment import Enrolment
from projections.columns.packed import Packed

SHOWN_CHARACTERS_MAX: Final = 80
UNORDERED: Final = ("totals", "sums", "undone", "replaced", "struck")
"""The fields of a board whose order is never shown."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Unlike(Struct, frozen=True):
    """One part that differs, with its values on both sides as text. "nothing": it is missing."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path} is {self.found}, not {self.expected}"


NOTHING: Final = "nothing"


class Unmatched(Generic[_Key, _Value]):
    """Compares two runs of values chunk by chunk. It keeps only values whose counterpart has not come yet: few, if both
    runs are in nearly the same order.

    `key` identifies the item that a value describes.
    """

    def __init__(self, key: Callable[[_Value], _Key]) -> None:
        self.expected: dict[_Key, _Value] = {}
        self.found: dict[_Key, _Value] = {}
        self._key = key

    def take(self, expected: Items[_Value], found: Items[_Value]) -> None:
        """Takes the next values of both."""
        if expected == found:
            return
        for values, unmatched, others in (
            (expected, self.expected, self.found),
            (found, self.found, self.expected),
        ):
            for value in values:
                key = self._key(value)
                if others.get(key) == value:
                    del others[key]
                else:
                    unmatched[key] = value


def differences(expected: object, found: object, *, path: str = "") -> Iterator[Unlike]:
    """Each part of `found` that is not as in `expected`. The order of keys counts, except in fields UNORDERED."""
    if type(expected) is not type(found):
        yield _unlike(path, expected, found)
    elif isinstance(expected, Struct):
        for name in expected.__struct_fields__:
            ours, theirs = getattr(expected, name), getattr(found, name)
            if name in UNORDERED and ours == theirs:
                continue
            yield from differences(ours, theirs, path=f"{path}.{name}" if path else name)
    elif isinstance(expected, Packed) and isinstance(found, Packed) and expected.is_just(found):
        return
    elif isinstance(expected, Mapping) and isinstance(found, Mapping):
        yield from _of_mappings(expected, found, path)
    elif expected != found:
        if isinstance(expected, tuple) and isinstance(found, tuple):
            yield from _of_tuples(expected, found, path)
        elif isinstance(expected, Enrolment) and isinstance(found, Enrolment):
            yield from _of_enrolments(expected, found, path)
        else:
            yield _unlike(path, expected, found)


def _of_mappings(expected: Mapping[Any, object], found: Mapping[Any, object], path: str) -> Iterator[Unlike]:
    for key, ours in expected.items():
        at = f"{path}[{key!r}]"
        if key not in found:
            yield Unlike(at, _shown(ours), NOTHING)
        elif not _simply_same(ours, found[key]):
            yield from differences(ours, found[key], path=at)
    for key, theirs in found.items():
        if key not in expected:
            yield Unlike(f"{path}[{key!r}]", NOTHING, _shown(theirs))
    name = path.rpartition(".")[2].partition("[")[0]
    if name not in UNORDERED and expected.keys() == found.keys() and list(expected) != list(found):
        yield Unlike(f"{path}.order" if path else "order", _shown(list(expected)), _shown(list(found)))


def _of_tuples(expected: tuple[object, ...], found: tuple[object, ...], path: str) -> Iterator[Unlike]:
    for place in range(max(len(expected), len(found))):
        at = f"{path}[{place}]"
        if place >= len(expected):
            yield Unlike(at, NOTHING, _shown(found[place]))
        elif place >= len(found):
            yield Unlike(at, _shown(expected[place]), NOTHING)
        else:
            yield from differences(expected[place], found[place], path=at)


def _of_enrolments(expected: Enrolment, found: Enrolment, path: str) -> Iterator[Unlike]:
    """The differences of the lists; if these are equal, those of the places."""
    lists = list(_of_tuples(tuple(expected), tuple(found), path))
    yield from lists or _of_tuples(tuple(expected.places), tuple(found.places), f"{path}.places")


def _simply_same(ours: object, theirs: object) -> bool:
    """Whether they are equal and contain no mapping, whose order would have to be compared. True for nearly all values
    of a board."""
    if ours != theirs or type(ours) is not type(theirs):
        return False
    return not isinstance(ours, Mapping) and not (isinstance(ours, Struct) and any(map(_has_order, astuple(ours))))


def _has_order(value: object) -> bool:
    return isinstance(value, Mapping)


def _unlike(path: str, expected: object, found: object) -> Unlike:
    return Unlike(path, _shown(expected), _shown(found))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 1]}…"
