"""Where what is stored is not what the log comes to, field by field.

Pure. Works on anything made of structs, dictionaries and tuples, as boards are.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct


class _Nothing:
    def __repr__(self) -> str:
        return "not there"


NOTHING: Final = _Nothing()
"""What stands for a part that only the other side has."""


class Difference(Struct, frozen=True):
    """One field at which two values differ, and what it is in each; NOTHING where it is not there."""

    field: str
    expected: object
    found: object

    def __str__(self) -> str:
        return f"{self.field} is {self.found!r}, by the log it is {self.expected!r}"


def differences(expected: object, found: object, field: str = "") -> Iterator[Difference]:
    """Every smallest part at which `found` is not as `expected`, named by its path, as in rankings[7].name."""
    if expected == found:
        return
    match expected, found:
        case Struct(), Struct() if type(expected) is type(found):
            for name in expected.__struct_fields__:
                within = f"{field}.{name}" if field else name
                yield from differences(getattr(expected, name), getattr(found, name), within)
        case (Mapping(), Mapping()):
            for key in dict.fromkeys([*expected, *found]):
                yield from differences(expected.get(key, NOTHING), found.get(key, NOTHING), f"{field}[{key}]")
        case (tuple(), tuple()) if len(expected) == len(found):
            for index, (one, other) in enumerate(zip(expected, found, strict=True)):
                yield from differences(one, other, f"{field}[{index}]")
        case _:
            yield Difference(field, expected, found)
