"""Mentions: the name of a competitor in text that people wrote. These are reasons, results, locations, descriptions,
names of rankings and unities, and idempotency keys that clients chose. An erasure does not remove them.

Pure. A name is found in any case, also as a part of a word: `Ann` in `ann-7`, and in `planned`. Letters are compared
one by one, so `ß` is not `ss`. PostgreSQL searches the log with the same patterns to find the events.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.domain.terms import Sequence
from engine.log.reading import Mentioning

KEY_FIELD: Final = "idempotency_key"
TEXTS: Final = frozenset({"name", "main_unity_name", "description", "reason", "location", "result"})
"""The fields of events that hold text written by people."""
NAMES_MAX: Final = 100
"""Names that are searched for. If there are more, only the last ones are."""
MENTIONS_MAX: Final = 100
"""Mentions that are listed. Further ones are only counted."""
_AROUND: Final = 40
"""Characters that are shown before and after a name."""


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
    """The patterns to search for, one for texts and one for the JSON of bodies. They are regular expressions with the
    same meaning in Python and PostgreSQL."""

    in_texts: str
    in_bodies: str

    def mentions(self, events: Iterable[Mentioning]) -> Iterator[Mention | None]:
        """The mentions in these events. None is a pause for other work."""
        found = re.compile(self.in_texts).search
        for event in events:
            yield None
            for field, text in _texts(event):
                if name := found(text):
                    words = text[max(name.start() - _AROUND, 0) : name.end() + _AROUND]
                    yield Mention(event.sequence, event.kind, field, words)


def sought(names: Iterable[str]) -> Sought | None:
    """The patterns for all names that a competitor had; None: the names have been erased."""
    last = [*dict.fromkeys(names)][-NAMES_MAX:]
    if not last:
        return None
    in_texts = "|".join(["".join(map(_any_case, name)) for name in last])
    in_bodies = "|".join(["".join(map(_any_case, _escaped(name))) for name in last])
    return Sought(in_texts, in_bodies)


def _any_case(letter: str) -> str:
    cases = {letter, letter.lower(), letter.upper(), letter.title(), letter.casefold()}
    single = sorted(one for one in cases if len(one) == 1)
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
