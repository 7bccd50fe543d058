"""Events to stored text and back: the written tag of each kind, and strict decoding.

Pure. The tag stands in a column of its own, the body is JSON text. Tags and field names are never reused, and new
fields have defaults. Nothing is skipped: what this code does not know is an error, because a fold that overlooks an
event is quietly wrong for ever.
"""

from collections.abc import Sequence as Items
from typing import Final

import msgspec

from engine.domain import events
from engine.domain.events import Event


class Undecodable(ValueError):
    """An unknown tag, an unknown field, or a body that does not fit its tag. The text says which."""


# Written out, so that renaming a class cannot change what is stored. Add lines, never change one.
_KINDS: Final[dict[str, type[Event]]] = {
    "TournamentOpened": events.TournamentOpened,
    "CompetitorRegistered": events.CompetitorRegistered,
    "CompetitorChanged": events.CompetitorChanged,
    "CompetitionAdded": events.CompetitionAdded,
    "CompetitionChanged": events.CompetitionChanged,
    "RankingCreated": events.RankingCreated,
    "RankingModified": events.RankingModified,
    "UnityAdded": events.UnityAdded,
    "PointsAdded": events.PointsAdded,
    "RankingClosed": events.RankingClosed,
    "RankingReopened": events.RankingReopened,
    "PointsReversed": events.PointsReversed,
    "CompetitionVoided": events.CompetitionVoided,
    "CompetitionUnvoided": events.CompetitionUnvoided,
    "EventSetAside": events.EventSetAside,
}
_TAGS: Final = {event_type: tag for tag, event_type in _KINDS.items()}
_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final[dict[str, msgspec.json.Decoder[Event]]] = {
    tag: msgspec.json.Decoder(event_type) for tag, event_type in _KINDS.items()
}


def tags() -> frozenset[str]:
    """Every tag that has ever been written."""
    return frozenset(_KINDS)


def encode(event: Event) -> tuple[str, str]:
    """The stored tag and body of `event`."""
    return _TAGS[type(event)], _ENCODER.encode(event).decode()


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
