"""What goes out over HTTP about the past: a ranking as it was, its history, explanations."""

import hashlib
from datetime import datetime
from typing import Final

import msgspec

from api.http.outgoing import Long, tag
from api.interface import shapes
from api.interface.answers import Listing, timestamp
from api.interface.queries import cursor_text
from engine.domain.terms import CompetitorId, Sequence, TournamentId, UnityId
from engine.domain.tournament import Tournament
from engine.log.log import Head
from projections.live.live import Live
from projections.past.explanation import Step
from projections.past.history import HistoryLine
from projections.past.past import DatedPlace, Explanation, HistoryPage, PastBoard

_encode: Final = msgspec.json.Encoder().encode


def as_it_was(tournament_id: TournamentId, then: PastBoard) -> Live:
    """A live for rendering `then`, and for nothing else: it has no digest and cannot judge."""
    parents = {competitor_id: competitor.parent_id for competitor_id, competitor in then.board.competitors.items()}
    return Live(tournament_id, Head(then.sequence, b""), Tournament(competitors=parents), then.board)


def standings(body: bytes | Long, sequence: Sequence, recorded_at: datetime, head: Head) -> Listing | Long:
    """Adds to `body`, a ranking in the modification shape, the sequence that it shows and the time of that event. The
    event is of the log that ends at `head`."""
    end = b',"sequence":%d,"recorded_at":"%b"}}' % (sequence, timestamp(recorded_at).encode())
    if isinstance(body, bytes):
        return _listing(b"%b%b" % (body.removesuffix(b"}}"), end))
    return body.ending(b"]" + end, tag("standings", body.etag, head.digest))


def history(page: HistoryPage) -> Listing:
    """A page of lines. `next` is what to send as `after` for the following page."""
    following = None if page.next is None else cursor_text(page.next)
    lines = _encode([line_shape(line) for line in page.lines])
    return _listing(b'{"status":200,"message":"ok","history":%b,"next":%b}' % (lines, _encode(following)))


def explanation(told: Explanation, unity_id: UnityId, competitor_id: CompetitorId) -> Listing:
    """An explanation, or the page of it that was asked for."""
    shape = explanation_shape(told, unity_id, competitor_id)
    return _listing(b'{"status":200,"message":"ok","explanation":%b}' % _encode(shape))


def line_shape(line: HistoryLine) -> shapes.Line:
    return shapes.Line(
        sequence=line.sequence,
        recorded_at=timestamp(line.recorded_at),
        actor=line.actor,
        competitor_id=line.competitor_id,
        unity_id=line.unity_id,
        competition_id=line.competition_id,
        delta=line.delta,
        total=line.total,
        position_before=line.position_before,
        position_after=line.position_after,
        reverses=line.reverses,
    )


def explanation_shape(told: Explanation, unity_id: UnityId, competitor_id: CompetitorId) -> shapes.Explanation:
    return shapes.Explanation(
        competitor_id=competitor_id,
        unity_id=unity_id,
        start=_stand(told.start),
        end=_stand(told.end),
        steps=[_step(step) for step in told.steps],
        next=told.next,
    )


def _stand(stand: DatedPlace) -> shapes.Stand:
    return shapes.Stand(
        sequence=stand.sequence,
        recorded_at=None if stand.recorded_at is None else timestamp(stand.recorded_at),
        position=stand.place.position,
        total=stand.place.total,
    )


def _step(step: Step) -> shapes.Step:
    return shapes.Step(
        sequence=step.recorded.sequence,
        recorded_at=timestamp(step.recorded.recorded_at),
        actor=step.recorded.actor,
        cause=step.cause.value,
        competition_id=step.competition_id,
        reverses=step.reverses,
        delta=step.delta,
        total=step.after.total,
        position_before=step.before.position,
        position_after=step.after.position,
        overtakings=step.overtakings,
    )


def _listing(body: bytes) -> Listing:
    return Listing(body, hashlib.sha256(body).hexdigest()[:32])
