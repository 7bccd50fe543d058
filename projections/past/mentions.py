"""Where people wrote the name of a competitor: in reasons, results, locations, descriptions, names of rankings and
unities, and in the idempotency keys that clients chose. An erasure leaves these.

Pure. A name is found in any case, also as a part of a word: `Ann` in `ann-7`, and in `planned`. Letters are compared
one by one, so `ß` is not `ss`. PostgreSQL looks through the log by the same patterns, and finds the events.
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
"""The fields of events in which people write."""
NAMES_MAX: Final = 100
"""Names that are looked for; of more, the last."""
MENTIONS_MAX: Final = 100
"""Mentions that are listed; others are counted."""
_AROUND: Final = 40
"""Characters that are shown before a name and after it."""


class Mention(Struct, frozen=True):
    """A text of the event `sequence` has the name in it, or its key has: its `field`, and the words around the name."""

    sequence: Sequence
    kind: str
    field: str
    text: str


class Mentions(Struct, frozen=True):
    """The first mentions, and how many more there are."""

    listed: list[Mention]
    left_out: int


class Sought(Struct, frozen=True):
    """What is looked for, as regular expressions that Python and PostgreSQL take for the same: in texts, and in the
    JSON of bodies."""

    in_texts: str
    in_bodies: str

    def mentions(self, events: Iterable[Mentioning]) -> Iterator[Mention | None]:
        """The mentions in these events; None: a pause for other work."""
        found = re.compile(self.in_texts).search
        for event in events:
            yield None
            for field, text in _texts(event):
                if name := found(text):
                    words = text[max(name.start() - _AROUND, 0) : name.end() + _AROUND]
                    yield Mention(event.sequence, event.kind, field, words)


def sought(names: Iterable[str]) -> Sought | None:
    """What to look for, given all names that a competitor had; None: they have been erased."""
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
    """The texts of an event, by field. One that cannot be read, and was set aside, has only a key."""
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
