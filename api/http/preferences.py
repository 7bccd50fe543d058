"""A client's preferences for an answer: the headers Prefer (RFC 7240), Accept, Accept-Encoding and Accept-Language (RFC
9110, section 12.5).

Pure. A preference is never a reason to refuse: unknown ones and unreadable headers are ignored.
"""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from functools import lru_cache
from typing import Final

from msgspec import Struct

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]++"  # noqa: S105 # a word of HTTP
_QUOTED: Final = r'"(?:[\t !#-\[\]-~\x80-\U0010ffff]|\\[\t -~\x80-\U0010ffff])*"'
_VALUE: Final = rf"{_TOKEN}|{_QUOTED}"
_PARAMETER: Final = rf"{_TOKEN}(?:[ \t]*+=[ \t]*+(?:{_VALUE}))?"
_PREFERENCE: Final = rf"({_TOKEN})(?:[ \t]*+=[ \t]*+({_VALUE}))?(?:[ \t]*+;(?:[ \t]*+{_PARAMETER})?)*"
_ITEM: Final = re.compile(rf"[ \t]*+(?:{_PREFERENCE})?[ \t]*+(?:,|\Z)")
"""An item of the list, with the comma after it. It may be empty (RFC 9110, section 5.6.1). No part begins with what
may follow the part before it, so the time that any text takes grows only with its length. Groups are not possessive:
Python before 3.11.5, such as Debian's, goes on from where a group failed (CPython's issue 106052)."""
_QUALITY: Final = r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?"
_CODING: Final = re.compile(
    rf"[ \t]*+(?:({_TOKEN})(?:[ \t]*+;[ \t]*+[qQ]=({_QUALITY}))?)?[ \t]*+(?:,|\Z)"  # `*` is a token too
)
"""An item of Accept-Encoding, as _ITEM is one of Prefer."""
_RANGE: Final = re.compile(
    rf"[ \t]*+(?:({_TOKEN}/{_TOKEN})((?:[ \t]*+;(?:[ \t]*+{_PARAMETER})?)*))?[ \t]*+(?:,|\Z)"  # `*` is a token too
)
"""An item of Accept."""
_QUALITY_OF_RANGE: Final = re.compile(rf";[ \t]*+[qQ]=({_QUALITY})[ \t]*+(?:;|\Z)")
ENCODINGS_KEPT_MAX: Final = 100
ENCODINGS_KEPT_CHARACTERS_MAX: Final = 200
"""A process remembers what this many values of Accept-Encoding of up to this many characters accept. It reads longer
values each time."""
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_preferences(values: Iterable[str]) -> Mapping[str, str]:
    """The preferences that the values of Prefer state, by their names in lower case; without a value: "". Parameters of
    a preference are left out.

    If a preference is stated more than once, the first counts. Empty if the values cannot be read as one list.
    """
    preferences: dict[str, str] = {}
    for name, value in _named(_ITEM, ",".join(values)):
        preferences.setdefault(name, _unquoted(value))
    return preferences


def prefers_minimal(values: Iterable[str]) -> bool:
    """Whether the values of Prefer ask for `return=minimal`: only data that the client cannot know."""
    return parse_preferences(values).get("return", "").lower() == "minimal"


def accepted_type(values: Iterable[str], types: Items[str]) -> str | None:
    """The media type that the values of Accept prefer; of several equal ones, the first. None: they accept none.
    Without values, or if they cannot be read as one list, the first type.

    A type has the quality given for it, else for `type/*`, else for `*/*`. If a range is named more than once, the
    first counts.
    """
    qualities: dict[str, float] = {}
    for name, parameters in _named(_RANGE, ",".join(values)):
        quality = _QUALITY_OF_RANGE.search(parameters)
        qualities.setdefault(name, float(quality[1]) if quality else 1.0)
    if not qualities:
        return types[0]
    best, best_quality = None, 0.0
    for one in types:
        ranges = (one, f"{one.partition('/')[0]}/*", "*/*")
        quality_of = next((qualities[range_] for range_ in ranges if range_ in qualities), 0.0)
        if quality_of > best_quality:
            best, best_quality = one, quality_of
    return best


class Encodings(Struct, frozen=True):
    """The encodings that a client accepts. `gzip`: it accepts gzip, with at least the quality of the plain bytes.
    `identity`: it accepts the plain bytes."""

    gzip: bool = False
    identity: bool = True


def accepted_encodings(values: Iterable[str]) -> Encodings:
    """The encodings that the values of Accept-Encoding accept. Without values, or if they cannot be read as one list,
    identity alone.

    An encoding that is not named has the quality of `*`. Without `*`, gzip is not accepted; identity is, but anything
    else that is accepted is preferred to it. If an encoding is named more than once, the first counts.
    """
    text = ",".join(values)
    return _kept_encodings(text) if len(text) <= ENCODINGS_KEPT_CHARACTERS_MAX else _encodings(text)


def _encodings(text: str) -> Encodings:
    qualities: dict[str, float] = {}
    for name, quality in _named(_CODING, text):
        qualities.setdefault("gzip" if name == "x-gzip" else name, float(quality or 1))
    others = qualities.get("*")
    gzip = qualities.get("gzip", others or 0.0)
    identity = qualities.get("identity", others)
    return Encodings(gzip=gzip > 0 and gzip >= (identity or 0.0), identity=identity != 0)


_kept_encodings: Final = lru_cache(maxsize=ENCODINGS_KEPT_MAX)(_encodings)


def accepted_language(values: Iterable[str], languages: Items[str]) -> str | None:
    """The language that the values of Accept-Language prefer (RFC 9110, section 12.5.4), whatever its region; of
    several equal ones, the first. None: none of these."""
    found: dict[str, float] = {}
    for name, quality in _named(_CODING, ",".join(values)):  # a language range is written like a coding
        language = name.partition("-")[0]
        if language in languages:
            found[language] = max(found.get(language, 0.0), float(quality or 1))
    best = max(found, key=lambda language: found[language], default=None)
    return best if best is not None and found[best] > 0 else None


def _named(item: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """The names in a list, in lower case, each with what `item` finds after it. Empty if the text is not one list."""
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = item.match(text, position)
        if match is None:
            return []
        name, rest = match.groups()
        if name:
            found.append((name.lower(), rest or ""))
        position = match.end()
    return found


def _unquoted(value: str) -> str:
    return _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value
