"""Events to stored text and back: the tag of each kind, and strict decoding.

Pure. The tag stands in a column of its own, the body is JSON text. Tags and field names are never reused, and new
fields have defaults. Nothing is skipped: what this code does not know is an error, because a fold that overlooks an
event is quietly wrong for ever.
"""

from collections.abc import Sequence as Items
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
    """The stored tag and body of `event`."""
    return _TAGS[type(event)], body_of(event)


def body_of(event: Event) -> str:
    """The stored body of `event`."""
    return _ENCODER.encode(event).decode()


def encode_lines(events: Items[Event]) -> tuple[list[str], str]:
    """The stored tag of each event, and their stored bodies with line feeds between them: no body has one in it."""
    return [_TAGS[type(event)] for event in events], _ENCODER.encode_lines(events)[:-1].decode()


def decode(tag: str, body: str) -> Event:
    """The event that was stored as `tag` and `body`. Raises `Undecodable`."""
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise Undecodable(f"unknown tag {tag!r}")
    try:
        return decoder.decode(body)
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
