"""Events as listeners get them: `text/event-stream` and `application/x-ndjson`.

Pure. Both formats have the same content: the name of the event, its data, a JSON object, and an id.

    event: PointsAdded                      {"id":"7-1f0c2a9e","event":"PointsAdded","data":{"sequence":7,…}}
    data: {"sequence":7,…}
    id: 7-1f0c2a9e

An event of the log has its stored tag as its name, which is capitalised. Frames that are not events of the log have
names in lower case.

A client of Server-Sent Events comes back with the last id that it took. The standard has it take an id together with
its event, at the blank line. Some libraries take it at its own line, so it is the last line of an event: if a
connection breaks earlier, both kinds come back with the id of the event before. Only if it breaks between the last two
bytes of an event has the second kind taken the id of an event that it then lacks, and the sequences show that. Ids in
frames of their own after each event would close this gap, but clients of the first kind, all browsers among them, would
then get the last event again after most breaks, and count its points twice unless they look at its sequence.

No id is empty, and none stands without data, because libraries differ in what they do then. A blank line only follows
an event: some libraries would make another one of it.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from engine.domain.events import EventSetAside
from engine.domain.ids import ID_PATTERN
from engine.domain.terms import CompetitorId, RankingId, Sequence
from engine.domain.times import instant
from engine.log.heads import Head
from engine.log.undecoded import Stored
from projections.board.publication import Publication

ID_DIGITS: Final = 8
"""Hexadecimal digits of a block's digest in the id of an event."""
POSITION_PATTERN: Final = f"(0|{ID_PATTERN})(?:-([0-9a-f]{{{ID_DIGITS}}}))?"
_POSITION: Final = re.compile(POSITION_PATTERN)


class StreamFormat(StrEnum):
    """The media type of a stream."""

    SSE = "text/event-stream"
    NDJSON = "application/x-ndjson"


SILENCE: Final = {StreamFormat.SSE: b":\n", StreamFormat.NDJSON: b"\n"}
"""The sign of life of a silent stream: a comment, and an empty line."""
BEGINNING_ID: Final = "0"
"""The id of the position before the first event, in every log."""
_LINE_ENDS: Final = {character.encode(): f"\\u{ord(character):04x}".encode() for character in "\u0085\u2028\u2029"}
"""Characters that JSON may contain, but that end a line for some libraries; and how JSON escapes them."""


class Position(Struct, frozen=True):
    """Where a stream continues: after the event `sequence`, if its block's digest begins with `digits`. None: with any
    digest. 0: at the beginning."""

    sequence: Sequence
    digits: str | None = None


def parse_position(text: str) -> Position | None:
    """The position that an id, or a bare sequence, names; None: it is neither."""
    match = _POSITION.fullmatch(text)
    return None if match is None else Position(Sequence(int(match[1])), match[2])


def digits_of(digest: bytes) -> str:
    """The digits in an id: the beginning of the digest of its event's block."""
    return digest.hex()[:ID_DIGITS]


def id_of(sequence: Sequence, digest: bytes) -> str:
    """The id of an event, or of a position."""
    return f"{sequence}-{digits_of(digest)}"


class Reached(Head, frozen=True):
    """The position of a stream: an event, the digest of its block, and the id by which the client knows it."""

    id: str


# ── The streamed log ────────────────────────────────────────────────────────────────────────────────────


class StreamedLog(Protocol):
    """The streamed part of a log: up to which event, and with which data."""

    def end(self, publication: Publication, head: Sequence) -> Sequence | None:
        """The last event of a log that ends at `head`. None: nothing is streamed any more."""

    def is_held(self, publication: Publication) -> bool:
        """Whether it ends before the log does, because of a freeze."""

    def id_of(self, sequence: Sequence, digest: bytes, recorded_at: datetime) -> str:
        """The id of an event. `digest`, `recorded_at`: those of its block."""

    def hidden(self, publication: Publication) -> frozenset[RankingId]:
        """The rankings that are left out."""

    def said(self, stored: Stored, hidden: frozenset[RankingId]) -> tuple[str, bytes]:
        """The name of an event and its data, a JSON object in one line."""

    def said_of_head(self, head: Head, *, is_held: bool) -> bytes:
        """The data of the frame that says where the log ends, and whether it is held there."""


class WholeLog:
    """The whole log, each event as it is stored."""

    def end(self, publication: Publication, head: Sequence) -> Sequence | None:
        return head

    def is_held(self, publication: Publication) -> bool:
        return False

    def id_of(self, sequence: Sequence, digest: bytes, recorded_at: datetime) -> str:
        return id_of(sequence, digest)

    def hidden(self, publication: Publication) -> frozenset[RankingId]:
        return frozenset()

    def said(self, stored: Stored, hidden: frozenset[RankingId]) -> tuple[str, bytes]:
        return SET_ASIDE if stored.kind is None else stored.kind, _data(stored)

    def said_of_head(self, head: Head, *, is_held: bool) -> bytes:
        return b'{"head":%d,"digest":"%b"}' % (head.sequence, head.digest.hex().encode())


WHOLE_LOG: Final = WholeLog()


# ── Events of the log ───────────────────────────────────────────────────────────────────────────────────

_OVERHEAD_BYTES: Final = 300


class _Of(Struct):
    """The fields of a stored body that filters use."""

    ranking_id: RankingId | None = None


_OF: Final = msgspec.json.Decoder(_Of)


class Frame:
    """One event of the log, ready to be sent. Each of its formats is made on demand, and shared. Nothing is shown of an
    event that concerns a ranking in `hidden`."""

    __slots__ = ("_hidden", "_ranking_id", "_sent_as", "_streamed", "stored")

    def __init__(
        self, stored: Stored, streamed: StreamedLog = WHOLE_LOG, hidden: frozenset[RankingId] = frozenset()
    ) -> None:
        self.stored = stored
        self._streamed = streamed
        self._hidden = hidden
        self._sent_as: dict[StreamFormat, bytes] = {}
        self._ranking_id: RankingId | None = None

    def sent_as(self, form: StreamFormat) -> bytes:
        """The whole event in this format."""
        made = self._sent_as.get(form)
        if made is None:
            made = self._sent_as[form] = event(form, *self._streamed.said(self.stored, self._hidden), self.reached.id)
        return made

    @property
    def reached(self) -> Reached:
        """The position of a stream after this event."""
        stored = self.stored
        event_id = self._streamed.id_of(stored.sequence, stored.digest, stored.recorded_at)
        return Reached(stored.sequence, stored.digest, event_id)

    @property
    def size_bytes(self) -> int:
        """The most it takes in memory: the stored event, and all its formats."""
        return (1 + len(StreamFormat)) * (len(self.stored.body) + _OVERHEAD_BYTES)

    @property
    def ranking_id(self) -> RankingId | None:
        """The ranking that the event names; None: it names none."""
        if self._ranking_id is None and '"ranking_id":' in self.stored.body:
            self._ranking_id = _OF.decode(self.stored.body).ranking_id
        return self._ranking_id


class Wanted(Struct, frozen=True):
    """The events that a listener wants: those that both filters accept. None: all."""

    ranking_id: RankingId | None = None
    kinds: frozenset[str] | None = None

    def lets_through(self, frame: Frame) -> bool:
        """Whether the listener wants this event. An event that was set aside has no kind and no ranking."""
        kind = frame.stored.kind
        return (self.kinds is None or kind in self.kinds) and (
            self.ranking_id is None or (kind is not None and frame.ranking_id == self.ranking_id)
        )


ALL: Final = Wanted()


def joined(frames: Iterable[Frame], form: StreamFormat, wanted: Wanted) -> bytes:
    """The events that the filter lets through, in this format, one after another."""
    if wanted == ALL:
        return b"".join([frame.sent_as(form) for frame in frames])
    return b"".join([frame.sent_as(form) for frame in frames if wanted.lets_through(frame)])


def chunk(piece: bytes) -> bytes:
    """The piece as a chunk of HTTP/1.1, for a body of unknown length."""
    return b"%x\r\n%b\r\n" % (len(piece), piece)


# ── Frames that are not events of the log ────────────────────────────────────────────────────────────────

SET_ASIDE: Final = "set-aside"
"""Replaces an event that was set aside: nothing is to be folded."""


def caught_up(form: StreamFormat, reached: Reached, streamed: StreamedLog, *, is_held: bool) -> bytes:
    """The listener has everything up to the end of the log."""
    return event(form, "caught-up", streamed.said_of_head(reached, is_held=is_held), reached.id)


def position(form: StreamFormat, reached: Reached) -> bytes:
    """Everything that the listener wants up to this event has been sent."""
    return event(form, "position", b'{"sequence":%d}' % reached.sequence, reached.id)


def erased(form: StreamFormat, competitor_id: CompetitorId, reached: Reached) -> bytes:
    """The competitor no longer has a name, although the log that the client sees ends before the event of the
    erasure."""
    return event(form, "erased", b'{"competitor_id":%d}' % competitor_id, reached.id)


def reset(form: StreamFormat, head: Head, streamed: StreamedLog) -> bytes:
    """The log is not the one that the listener has read: it must start again. The id makes browsers do so
    automatically, because it takes precedence over the position in their address."""
    return event(form, "reset", streamed.said_of_head(head, is_held=False), BEGINNING_ID)


def event(form: StreamFormat, name: str, data: bytes, event_id: str) -> bytes:
    """One event in this format. `data` is a JSON object in one line."""
    if not data.isascii():
        for character, escaped in _LINE_ENDS.items():
            data = data.replace(character, escaped)
    if form is StreamFormat.SSE:
        return b"event: %b\ndata: %b\nid: %b\n\n" % (name.encode(), data, event_id.encode())
    return b'{"id":"%b","event":"%b","data":%b}\n' % (event_id.encode(), name.encode(), data)


def _data(stored: Stored) -> bytes:
    """The stored body, after the event's sequence, time and actor. If the event was set aside, only these three."""
    head = f'{{"sequence":{stored.sequence},"recorded_at":"{instant(stored.recorded_at)}","actor":{stored.actor}'
    if stored.kind is None:
        return f"{head}}}".encode()
    body = stored.body
    if stored.kind == EventSetAside.tag:
        # Its own `sequence` is that of the other event, and would hide the one that every event has here.
        named = msgspec.json.decode(body, type=EventSetAside)
        body = msgspec.json.encode({"set_aside": named.sequence, "digest": named.digest}).decode()
    elif "\n" in body or "\r" in body:  # the service never writes them; either would end the line
        body = msgspec.json.format(body, indent=-1)
    own = body[body.index("{") + 1 :]
    return f"{head}{'' if own.lstrip().startswith('}') else ','}{own}".encode()
