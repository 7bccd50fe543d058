"""Events to stored text and back: the tag of each kind, and strict decoding.

Pure. The tag has a column of its own, and the body is JSON text. Tags and field names are never reused, and new fields
have defaults. Nothing is skipped: unknown tags and fields are errors, because a fold that skips an event is silently
and permanently wrong.

PERSONAL FIELDS of an event are stored next to its body, so that they can be erased. The body has a commitment to them,
and digests cover only bodies:

    text      {"competitor_id":7,"name":"Ann","tags":["u18"]}               what `encode` makes
    personal  <salt>{"name":"Ann","tags":["u18"]}                           32 random bytes, in 64 hexadecimal digits
    body      {"competitor_id":7,"commitment":"<SHA-256 of `personal`>"}    in 64 hexadecimal digits

Readers get the text again, or, once `personal` is erased, the body.
"""

from collections.abc import Iterable
from collections.abc import Sequence as Items
from hashlib import sha256
from typing import Final, get_args

import msgspec

from engine.domain.events import Event, PointsAdded, PointsReversed


class Undecodable(ValueError):
    """An unknown tag, an unknown field, or a body that does not fit its tag. The text says which."""


_KINDS: Final[dict[str, type[Event]]] = {kind.tag: kind for kind in get_args(Event) if kind.tag}
_TAGS: Final = {kind: tag for tag, kind in _KINDS.items()}
_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final[dict[str, msgspec.json.Decoder[Event]]] = {
    tag: msgspec.json.Decoder(event_type) for tag, event_type in _KINDS.items()
}


def tags() -> frozenset[str]:
    """Every tag that has ever been written."""
    return frozenset(_KINDS)


def encode(event: Event) -> tuple[str, str]:
    """The tag and the text of `event`."""
    return _TAGS[type(event)], text_of(event)


def text_of(event: Event) -> str:
    """The text of `event`."""
    return _ENCODER.encode(event).decode()


def encode_lines(events: Items[Event]) -> tuple[list[str], str]:
    """The tag of each event, and their texts with line feeds between them: no text has one in it."""
    return [_TAGS[type(event)] for event in events], _ENCODER.encode_lines(events)[:-1].decode()


SALT_DIGITS: Final = 64
"""A salt is 32 random bytes, in hexadecimal digits, so that a commitment cannot be used to test guessed names."""
_COMMITMENT_CHARACTERS: Final = len(f',"commitment":"{"0" * 64}"}}')
_MARKS: Final = {kind: [f',"{name}":' for name in kind.personal] for kind in get_args(Event)}
"""The beginnings of an event's personal fields in its text, in their order there."""


def part(event: Event, text: str, salt: str) -> tuple[str, str]:
    """The body of an event with this text, and its personal fields as they are stored; empty: it has none."""
    for mark in _MARKS[type(event)]:
        if (at := text.find(mark)) >= 0:
            personal = f"{salt}{{{text[at + 1 :]}"
            return f'{text[:at]},"commitment":"{sha256(personal.encode()).hexdigest()}"}}', personal
    return text, ""


def part_lines(events: Items[Event], texts: str, salts: Iterable[str]) -> tuple[str, str]:
    """The result of `part` for each event, given the texts of all and a salt for each; also as lines."""
    pairs = list(map(part, events, texts.split("\n"), salts))
    return "\n".join([body for body, _ in pairs]), "\n".join([personal for _, personal in pairs])


def join(body: str, personal: str | None) -> str:
    """The text of an event from what is stored. (`TEXT` in `engine/log/rows.py` is the same in SQL.)"""
    return body if personal is None else f"{body[:-_COMMITMENT_CHARACTERS]},{personal[SALT_DIGITS + 1 :]}"


def decode(tag: str, text: str) -> Event:
    """The event with this tag and text. Raises `Undecodable`."""
    try:
        return _DECODERS[tag].decode(text)
    except KeyError:
        raise Undecodable(f"unknown tag {tag!r}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Undecodable(f"{tag}: {error}") from error


# The index `event_competition` (`migrations/0001_log.sql`) reads stored points in exactly this spelling.
CAUSE_HEAD: Final = 80
"""The competition that caused points is within this many characters of a body: after the ranking, each with up to 19
digits. So finding it takes the same time for any number of deltas."""
_CAUSED: Final = (PointsAdded.tag, PointsReversed.tag)
_CAUSE: Final = '"competition_id":'
_CAUSE_CHARACTERS_MAX: Final = 20


def is_caused(tag: str, body: str) -> bool:
    """Whether the database has these stored points in its index of what competitions caused."""
    return _CAUSE in body[:CAUSE_HEAD] and tag in _CAUSED


def cause_of(body: str) -> str:
    """The text under which the index has these stored points: the id of the competition, as the service writes it."""
    return body[:CAUSE_HEAD].partition(_CAUSE)[2].partition(",")[0][:_CAUSE_CHARACTERS_MAX].rstrip("}")
