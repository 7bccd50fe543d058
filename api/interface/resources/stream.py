"""The stream of a tournament's events, and the tickets that open it in place of a token."""

import re
from typing import Final

from msgspec import Struct

from api.http.errors import NotAcceptable
from api.http.preferences import accepted_type
from api.http.request import HttpRequest
from api.interface.declarations import Acting, Action, Stream
from api.interface.fields import ID, Field, FieldMisread, FieldType, misread, parsed_type
from api.interface.rendering import Answer, Instant
from api.stream.frames import (
    BEGINNING_ID,
    POSITION_PATTERN,
    WHOLE_LOG,
    Position,
    Reached,
    StreamedLog,
    StreamFormat,
    Wanted,
    parse_position,
)
from api.stream.pace import PAUSE_SECONDS_MAX, SPEED_MAX
from api.stream.tickets import TICKET_SECONDS, create_ticket
from engine.database.pool import Database
from engine.domain.errors import Conflict, Unreadable
from engine.domain.terms import RankingId, Sequence, TournamentId
from engine.domain.times import instant
from engine.log import codec, heads, reading
from projections.answers.lookup import ranking_of
from projections.live.tournament import LiveTournament

HEAD: Final = "head"
_SPEED: Final = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,30})?")
_SLOWEST: Final = 0.001
_FORMATS: Final = (StreamFormat.NDJSON, StreamFormat.SSE)


class StreamQuestion(Struct, frozen=True, kw_only=True):
    """The query of a stream. `after`: where it continues; None: at the beginning; "head": with new events."""

    after: Position | str | None = None
    ranking_id: RankingId | None = None
    kinds: frozenset[str] | None = None
    speed: float | None = None
    ticket: str | None = None

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.ranking_id, self.kinds)


def format_of(request: HttpRequest) -> StreamFormat:
    """The format that the client prefers; NDJSON if it has no preference. Raises NotAcceptable."""
    chosen = accepted_type(request.headers.getall("Accept", ()), _FORMATS)
    if chosen is None:
        raise NotAcceptable(f"The stream is sent as {' or '.join(_FORMATS)}; name one of them in the header Accept.")
    return StreamFormat(chosen)


def start_of(request: HttpRequest, question: StreamQuestion) -> Position | str | None:
    """The position where the client wants to continue. The header Last-Event-ID takes precedence over `after`, because
    a browser that reconnects sends it to the same address. Raises Unreadable."""
    text = request.headers.get("Last-Event-ID")
    if not text:
        return question.after
    position = parse_position(text)
    if position is None:
        raise Unreadable("Last-Event-ID must be the id of an event of this stream, or a sequence.")
    return position


async def first_after(
    database: Database,
    live: LiveTournament,
    start: Position | str | None,
    end: Sequence,
    streamed: StreamedLog = WHOLE_LOG,
) -> Reached | None:
    """The event before the first one of the stream. `end`: the last event of the log. None: the client has read another
    log, or events that were set aside since, and must start over.

    Raises Conflict for a bare sequence beyond the end, and DatabaseUnavailable.
    """
    tournament_id = live.tournament_id
    if start == HEAD:
        start = Position(end)
    if not isinstance(start, Position) or start.sequence == 0:
        beginning = heads.beginning(tournament_id)
        return Reached(beginning.sequence, beginning.digest, BEGINNING_ID)
    if start.sequence > end:
        if start.digits is not None:
            return None
        raise Conflict(f"The log ends at sequence {end}; nothing follows {start.sequence} yet.")
    async with database.connection_for(tournament_id) as connection:
        block = await heads.block_around(connection, tournament_id, start.sequence)
        is_changed = await reading.set_aside_since(connection, tournament_id, start.sequence)
    if block is None or is_changed:
        return None
    reached = Reached(start.sequence, block[0], streamed.id_of(start.sequence, *block))
    if start.digits is not None and reached.id != f"{start.sequence}-{start.digits}":
        return None
    return reached


def refuse_unknown_ranking(live: LiveTournament, question: StreamQuestion) -> None:
    """Raises NotFound."""
    if question.ranking_id is not None:
        ranking_of(live.board, question.ranking_id)


class TicketShape(Struct):
    ticket: str
    expires_at: Instant


async def _create_ticket(acting: Acting, tournament_id: TournamentId) -> TicketShape:
    async with (await acting.desk.database.by_node(tournament_id)).writing() as connection:
        text, expires_at = await create_ticket(connection, tournament_id, acting.token.token_id)
    return TicketShape(text, instant(expires_at))


def parse_start(text: str) -> Position | str | None:
    """The start that a text names: after a position, or at the head; None: it names neither."""
    return HEAD if text == HEAD else parse_position(text)


def _kinds(text: str) -> frozenset[str]:
    kinds = frozenset(text.split(","))
    unknown = sorted(kinds - codec.tags())
    if unknown:
        raise FieldMisread(*(f"{kind[:40]!r} is not the name of an event" for kind in unknown[:5]))
    return kinds


def _speed(text: str) -> float:
    speed = float(text) if _SPEED.fullmatch(text) else 0
    if not _SLOWEST <= speed <= SPEED_MAX:
        raise misread(text, f"a number from {_SLOWEST} to {SPEED_MAX:,}, in digits and a point only")
    return speed


_AFTER: Final = parsed_type(
    f"{HEAD}|{POSITION_PATTERN}", 'the id of an event, a sequence, or "head"', lambda found: parse_start(found[0])
)
_KINDS: Final = FieldType(
    _kinds,
    {"type": "array", "items": {"type": "string", "enum": sorted(codec.tags())}, "minItems": 1},
    is_list=True,
)
_SPEEDS: Final = FieldType(_speed, {"type": "number", "minimum": _SLOWEST, "maximum": SPEED_MAX})
_TICKET: Final = FieldType(str, {"type": "string"})

AFTER: Final = Field("after", _AFTER, 'continues after this event: its id, or its sequence; "head": only new events')
EVENTS: Final = Stream(
    "events",
    "Stream the events as they are committed",
    "followEvents",
    (
        AFTER,
        Field("ranking", ID, "only events that name this ranking", argument="ranking_id"),
        Field("kinds", _KINDS, "only events of these names, with commas between them"),
        Field(
            "speed",
            _SPEEDS,
            f"plays the past with its pauses, this many times as fast; no pause exceeds {PAUSE_SECONDS_MAX:.0f} s",
        ),
        Field("ticket", _TICKET, "opens the stream in place of a token, see `tickets.json`"),
    ),
)
TICKETS: Final = Action(
    "tickets.json",
    f"Get a ticket, which opens one stream in place of the token within {TICKET_SECONDS} s",
    "createTicket",
    Answer("ticket", TicketShape, "Ticket created"),
    _create_ticket,
)
