"""Events to stored text and back: the tag of each kind, its line in a block, and strict decoding.

Pure. A block's text (`engine/log/digest.py`) has a line for each event, the JSON array of four:

    ["PointsAdded",12,"a key",{"ranking_id":3,"deltas":[[7,5,10]]}]           kind, actor, key or null, body

Tags and field names are never reused, and new fields have defaults. Nothing is skipped: unknown tags and fields are
errors, because a fold that skips an event is silently and permanently wrong.

PERSONAL FIELDS of an event are stored next to its block, so that they can be erased. The body has a commitment to them,
and digests cover only bodies:

    text      {"competitor_id":7,"name":"Ann","tags":["u18"]}               what `text_of` makes
    personal  <salt>{"name":"Ann","tags":["u18"]}                           32 random bytes, in 64 hexadecimal digits
    body      {"competitor_id":7,"commitment":"<SHA-256 of `personal`>"}    in 64 hexadecimal digits

Readers get the text again, or, once `personal` is erased, the body.

TOPICS of an event are stored next to its block, too: an index by which it is found.
"""

import re
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as Items
from enum import IntEnum
from functools import reduce
from hashlib import sha256
from operator import or_
from typing import Final, cast, get_args

import msgspec
from msgspec import Struct

from engine.domain.events import (
    CompetitionChanged,
    CompetitorErased,
    Event,
    EventSetAside,
    Points,
    PointsAdded,
    PointsScored,
    TournamentDeleted,
    TournamentRenamed,
    TournamentRestored,
    origin,
)
from engine.domain.terms import OPERATOR, ActorId, RankingId, Sequence
from engine.log import digest


class Undecodable(ValueError):
    """Not a line of an event, an unknown tag, an unknown field, or a body that does not fit its tag. The text says
    which."""


class LogEntry(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An event as a line of a block has it. Each kind has a class of its own, whose tag begins the line."""

    actor: ActorId
    key: str | None
    event: Event


_KINDS: Final[dict[str, type[Event]]] = {kind.tag: kind for kind in get_args(Event) if kind.tag}
_TAGS: Final = {kind: tag for tag, kind in _KINDS.items()}
ENTRIES: Final[dict[type[Event], type[LogEntry]]] = {
    kind: cast(
        type[LogEntry],
        msgspec.defstruct(
            f"{tag}LogEntry", [("event", kind)], bases=(LogEntry,), frozen=True, array_like=True, tag=tag, gc=False
        ),
    )
    for tag, kind in _KINDS.items()
}
_ENCODER: Final = msgspec.json.Encoder()
_DECODERS: Final[dict[str, msgspec.json.Decoder[Event]]] = {
    tag: msgspec.json.Decoder(event_type) for tag, event_type in _KINDS.items()
}
_ENTRY_DECODER: Final[msgspec.json.Decoder[LogEntry]] = msgspec.json.Decoder(reduce(or_, ENTRIES.values()))


def tags() -> frozenset[str]:
    """Every tag that has ever been written."""
    return frozenset(_KINDS)


def text_of(event: Event) -> str:
    """The text of `event`."""
    return _ENCODER.encode(event).decode()


def line_of(event: Event, actor: ActorId, key: str | None = None) -> str:
    """The line of an event without personal fields."""
    return _ENCODER.encode(ENTRIES[type(event)](actor, key, event)).decode()


def lines_of(entries: Items[LogEntry]) -> str:
    """The lines of events without personal fields."""
    return _ENCODER.encode_lines(entries)[:-1].decode()


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


def parted_lines(entries: Items[LogEntry], salts: Iterable[str]) -> tuple[str, list[str]]:
    """The lines of events, and the personal fields of each as they are stored; empty: it has none."""
    parted = [part(entry.event, text_of(entry.event), salt) for entry, salt in zip(entries, salts, strict=True)]
    each = zip(entries, parted, strict=True)
    lines = [line_with(_TAGS[type(entry.event)], entry.actor, entry.key, body) for entry, (body, _) in each]
    return "\n".join(lines), [personal for _, personal in parted]


def line_with(tag: str, actor: ActorId, key: str | None, body: str) -> str:
    """The line of an event with this body."""
    return f"[{_json(tag)},{actor},{_json(key)},{body}]"


def _json(text: str | None) -> str:
    return _ENCODER.encode(text).decode()


def join(body: str, personal: str | None) -> str:
    """The text of an event from what is stored."""
    return body if personal is None else f"{body[:-_COMMITMENT_CHARACTERS]},{personal[SALT_DIGITS + 1 :]}"


def join_line(line: str, personal: str | None = None) -> str:
    """The line of an event with its text instead of its body."""
    return line if personal is None else f"{join(line[:-1], personal)}]"


def decode(tag: str, text: str) -> Event:
    """The event with this tag and text. Raises `Undecodable`."""
    try:
        return _DECODERS[tag].decode(text)
    except KeyError:
        raise Undecodable(f"unknown tag {tag!r}" if tag else "not the line of an event") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Undecodable(f"{tag}: {error}") from error


def entry_of(line: str) -> LogEntry:
    """The event of a line. Raises `Undecodable`."""
    try:
        return _ENTRY_DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        parts = any_parts_of(line)
        decode(parts.kind, parts.body)  # says more, and says it without the place of the body in the line
        raise Undecodable(str(error)) from error


def entries_of(lines: str) -> list[LogEntry]:
    """The events of these lines, in one step; for many, of the fastest. Raises `Undecodable`, which does not say of
    which."""
    try:
        entries = _ENTRY_DECODER.decode_lines(lines)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Undecodable(str(error)) from error
    if len(entries) != lines.count("\n") + 1:
        raise Undecodable("a line is empty")  # the decoder skips it
    return entries


class Parts(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A line, its event not decoded."""

    kind: str
    actor: ActorId
    key: str | None
    raw: msgspec.Raw

    @property
    def body(self) -> str:
        return bytes(self.raw).decode()


_PARTS_DECODER: Final = msgspec.json.Decoder(Parts)


def parts_of(line: str) -> Parts:
    """The parts of a line. Raises `Undecodable` if it is not an array of four."""
    try:
        return _PARTS_DECODER.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Undecodable(f"not the line of an event: {error}") from error


def any_parts_of(line: str) -> Parts:
    """The parts of a line, whose body may be no JSON. Of a line that is not that of an event, the kind is empty, and
    the body is the line."""
    try:
        return parts_of(line)
    except Undecodable:
        found = _LINE_BY_ITS_FORM.fullmatch(line)
        if found is None:
            return Parts("", OPERATOR, None, msgspec.Raw(line.encode(errors="replace")))
        return Parts(found[1], ActorId(int(found[2])), None, msgspec.Raw(found[3].encode(errors="replace")))


_LINE_BY_ITS_FORM: Final = re.compile(r'\["([A-Za-z]+)",([0-9]{1,19}),(?:null|"(?:[^"\\]|\\.)*"),(.*)\]')


def regular_entries(lines: bytes) -> list[LogEntry] | None:
    """The events of these lines, if each is written as the service writes it; None: one is not."""
    try:
        entries = _ENTRY_DECODER.decode_lines(lines)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return entries if entries and _ENCODER.encode_lines(entries)[:-1] == lines else None


def are_plain(lines: bytes, count: int) -> bool:
    """Whether these lines, `count` of `regular_entries`, are all points with nothing but a ranking and deltas, and no
    key: each other field, and a key, would bring two more quotation marks to its line."""
    return lines.count(b'"') == count * _MARKS_OF_PLAIN and lines.count(_PLAIN) == count


_PLAIN: Final = b'["PointsAdded",'
_MARKS_OF_PLAIN: Final = line_of(PointsAdded(ranking_id=RankingId(1), deltas=()), OPERATOR).count('"')


class BlockContent:
    """The content of a block's text: its first sequence, its time, and its lines.

    `entries`: the lines, decoded, if each is written as the service writes it. (Personal fields are not in them.)
    `count`: the number of the lines. `keyed`: one of the events has an idempotency key.
    """

    __slots__ = ("_lines", "count", "entries", "first_sequence", "keyed", "recorded_us")

    def __init__(
        self, first_sequence: Sequence, recorded_us: int, lines: bytes, entries: list[LogEntry] | None = None
    ) -> None:
        self.first_sequence = first_sequence
        self.recorded_us = recorded_us
        self._lines = lines
        self.entries = regular_entries(lines) if entries is None else entries
        self.count = len(self.entries) if self.entries else lines.count(b"\n") + 1
        self.keyed = False
        for sent in self.entries or self.parts:
            if sent.key is not None:
                self.keyed = True
                break

    @property
    def size(self) -> int:
        """The bytes of the lines."""
        return len(self._lines)

    @property
    def lines(self) -> list[str]:
        return self._lines.decode().split("\n")

    @property
    def parts(self) -> list[Parts]:
        """The lines, as `any_parts_of` takes each apart."""
        try:
            parts = _PARTS_DECODER.decode_lines(self._lines)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            parts = []
        return parts if len(parts) == self.count else list(map(any_parts_of, self.lines))

    @property
    def sent(self) -> list[LogEntry] | list[Parts]:
        """For each line the actor and the key, with the rest decoded or not."""
        return self.entries or self.parts


def content_of(text: str) -> BlockContent:
    """The content of a block's text. Raises `Undecodable` if it does not begin with a place (`digest.block_text`)."""
    block = digest.block_in(text)
    if block is None:
        raise Undecodable("not the text of a block")
    return BlockContent(block.first_sequence, block.recorded_us, block.lines.encode())


# ── Topics ──────────────────────────────────────────────────────────────────────────────────────────────


class Topic(IntEnum):
    """What an event can be found by, besides the competition that it changes, or whose points it adds or reverses:
    these have positive ids. The comment at the column `topic.topic` (`migrations/0001_log.sql`) has them, too."""

    SET_ASIDE = -1
    RENAMED = -2
    ERASED = -3
    SCORED = -4
    DELETED = -5
    RESTORED = -6


TOPICS: Final[Mapping[type[Event], Topic]] = {
    EventSetAside: Topic.SET_ASIDE,
    TournamentRenamed: Topic.RENAMED,
    CompetitorErased: Topic.ERASED,
    PointsScored: Topic.SCORED,
    TournamentDeleted: Topic.DELETED,
    TournamentRestored: Topic.RESTORED,
}
_TOPICS: Final[Mapping[type[Event], tuple[int, ...]]] = {
    kind: (TOPICS[kind],) if kind in TOPICS else () for kind in get_args(Event)
}

_OF_COMPETITION: Final = get_args(Points | CompetitionChanged)  # isinstance is faster than with a union


def sets_aside(text: str) -> bool:
    """Whether these lines may hold an event that sets another one aside."""
    return f'["{EventSetAside.tag}"' in text


def changing(place: Sequence) -> int:
    """The topic of events that take back, restore or correct points with this place in the log (`origin`)."""
    return _CHANGING + place % _PLACES


_CHANGING: Final = -(2**62)
_PLACES: Final = 2**61
"""More than a log has. An untrue event may name any, and must not be found by what it is not about."""
_ITS_OWN: Final = Sequence(0)


def topics_of(event: Event) -> tuple[int, ...]:
    """What the event can be found by: the id of a competition, and a `Topic`, or that of what it is `changing`."""
    if type(event) is PointsAdded:  # first, because most events are these
        return () if event.competition_id is None else (event.competition_id,)
    topics = _TOPICS[type(event)]
    if isinstance(event, Points) and (place := origin(_ITS_OWN, event)) != _ITS_OWN:
        topics = (changing(place),)
    if isinstance(event, _OF_COMPETITION) and event.competition_id is not None:
        return event.competition_id, *topics
    return topics
