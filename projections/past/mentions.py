"""Mentions: the name of a competitor in text that people wrote. These are reasons, results, locations, descriptions,
names of rankings and unities, and idempotency keys that clients chose. An erasure does not remove them.

Pure. A name is found in any case, also as a part of a word: `Ann` in `ann-7`, and in `planned`. Its accents may be
composed or not. Letters are compared one by one, so `ß` is not `ss`. PostgreSQL finds the events by patterns with the
same meaning.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Final, get_args, get_origin
from unicodedata import normalize

import msgspec
from msgspec import Struct

from engine.domain.events import Event
from engine.domain.terms import Sequence
from engine.log.reading import Mentioning

KEY_FIELD: Final = "idempotency_key"


def _holds_text(kind: Any) -> bool:
    """Whether a value of this type, or a part of it, is a `str` about which nothing more is declared."""
    return kind is str or (get_origin(kind) is not Annotated and any(map(_holds_text, get_args(kind))))


TEXTS: Final = frozenset(
    [
        field.name
        for kind in get_args(Event)
        for field in msgspec.structs.fields(kind)
        if field.name not in kind.personal and _holds_text(field.type)
    ]
)
"""The fields of events that hold text written by people."""
NAMES_MAX: Final = 100
"""Names that are searched for. If there are more, only the last ones are."""
MENTIONS_MAX: Final = 100
"""Mentions that are listed. Further ones are only counted."""
_AROUND: Final = 40
"""Characters that are shown before and after a name."""
_FORMS: Final = ("NFC", "NFD")
"""Letters with accents are one character, or several."""


class Mention(Struct, frozen=True):
    """A text, or the key, of the event `sequence` contains the name: its `field`, and the words around the name."""

    sequence: Sequence
    kind: str
    field: str
    text: str


class Mentions(Struct, frozen=True):
    """The first mentions, and how many more there are."""

    listed: list[Mention]
    left_out: int


class Sought(Struct, frozen=True):
    """The `names` to search for, and the patterns with which PostgreSQL finds them, one for texts and one for the JSON
    of bodies."""

    names: tuple[str, ...]
    in_texts: str
    in_bodies: str

    def mentions(self, events: Iterable[Mentioning]) -> Iterator[Mention | None]:
        """The mentions in these events. None is a pause for other work."""
        keyed = [(name, name.translate(_KEYS)) for name in self.names]
        for event in events:
            yield None
            for field, text in _texts(event):
                first: tuple[int, int] | None = None
                keys = text.translate(_KEYS)
                for name, its_keys in keyed:
                    start = keys.find(its_keys)
                    while start >= 0 and not _is_at(text, start, name):
                        yield None
                        start = keys.find(its_keys, start + 1)
                    if start >= 0 and (first is None or start < first[0]):
                        first = start, start + len(name)
                if first is not None:
                    words = text[max(first[0] - _AROUND, 0) : first[1] + _AROUND]
                    yield Mention(event.sequence, event.kind, field, words)


def sought(names: Iterable[str]) -> Sought | None:
    """All names that a competitor had, in every form; None: they have been erased."""
    last = [*dict.fromkeys(names)][-NAMES_MAX:]
    if not last:
        return None
    forms = tuple(dict.fromkeys([form for name in last for form in (name, *[normalize(one, name) for one in _FORMS])]))
    in_texts = "|".join(["".join(map(_any_case, form)) for form in forms])
    in_bodies = "|".join(["".join(map(_any_case, _escaped(form))) for form in forms])
    return Sought(forms, in_texts, in_bodies)


class _Keys(dict[int, str]):
    """For each letter a key that its cases have as well, so a text can contain a name only where it contains its keys.
    The keys of other letters may be the same."""

    def __missing__(self, letter: int) -> str:
        return chr(letter).upper().casefold()[0]


_KEYS: Final = _Keys()


def _is_at(text: str, start: int, name: str) -> bool:
    return all(one in _cases(letter) for one, letter in zip(text[start : start + len(name)], name, strict=True))


@lru_cache(maxsize=1_000)
def _cases(letter: str) -> Collection[str]:
    cases = letter, letter.lower(), letter.upper(), letter.title(), letter.casefold()
    return {one for one in cases if len(one) == 1}


@lru_cache(maxsize=1_000)
def _any_case(letter: str) -> str:
    single = sorted(_cases(letter))
    return re.escape(letter) if len(single) == 1 else f"[{''.join(single)}]"


def _escaped(name: str) -> str:
    return msgspec.json.encode(name).decode()[1:-1]


def _texts(event: Mentioning) -> Iterator[tuple[str, str]]:
    """The texts of an event, by field. An unreadable event that was set aside has only a key."""
    if event.idempotency_key is not None:
        yield KEY_FIELD, event.idempotency_key
    try:
        told: Any = msgspec.json.decode(event.body)
    except (msgspec.MsgspecError, RecursionError):
        return
    for field, value in told.items() if isinstance(told, dict) else ():
        if field in TEXTS:
            for text in value.values() if isinstance(value, dict) else (value,):
                if isinstance(text, str):
                    yield field, text
