"""What a log means, and what a request leads to there: the model's fold and its judging."""

from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from assurance.model.state import BEFORE, EXPIRY, Event, Kind, Log, Request

HOLE = Event(request=-2)
"""A sequence that was drawn, whose event is not visible."""


class Board(Struct, frozen=True):
    """`in_effect`: the sequences of the points that no void has reversed, and that have not expired; `at`: how many
    boundaries had passed when each was recorded. `requests`: those recorded, a bit for each.
    `attempts`: those recorded. `wrong`: what should not be in any log; empty: nothing."""

    open: bool = True
    voided: bool = False
    in_effect: tuple[int, ...] = ()
    at: tuple[int, ...] = ()
    requests: int = 0
    attempts: frozenset[tuple[int, int]] = frozenset()
    wrong: str = ""

    def due(self, now: int) -> tuple[int, ...]:
        """The sequences of the points that have expired when this many boundaries have passed: they last until the
        next one."""
        return tuple([sequence for sequence, at in zip(self.in_effect, self.at, strict=True) if at < now])


Requests = tuple[Request, ...]


@cache
def board_of(requests: Requests, log: Log) -> Board:
    """What `log` means."""
    if not log:
        return Board()
    before, event = board_of(requests, log[:-1]), log[-1]
    if event is HOLE:
        return before
    if event.request == EXPIRY:
        return _expired(before, event)
    kind = Kind.CLOSE if event.request == BEFORE else requests[event.request].kind
    wrong = before.wrong
    if event.request != BEFORE and before.requests & 1 << event.request:
        wrong = "once: a request is recorded twice"
    elif event.misplaced:
        wrong = "history: an event landed in another history than the one it was judged by"
    elif not accepts(before, kind):
        wrong = "judged: an event was recorded that the log before it does not allow"
    elif kind is Kind.VOID and event.reverses != before.in_effect:
        wrong = "judged: a void did not reverse exactly the points in effect"
    elif before.due(event.at):
        wrong = "expired: an event was recorded after a boundary, before what expires there"
    in_effect, at = before.in_effect, before.at
    if kind is Kind.POINTS:
        in_effect, at = (*in_effect, len(log)), (*at, event.at)
    return Board(
        open=before.open if kind in (Kind.POINTS, Kind.VOID) else kind is Kind.REOPEN,
        voided=before.voided or kind is Kind.VOID,
        in_effect=() if kind is Kind.VOID else in_effect,
        at=() if kind is Kind.VOID else at,
        requests=before.requests if event.request == BEFORE else before.requests | 1 << event.request,
        attempts=before.attempts | {(event.request, event.attempt)},
        wrong=wrong,
    )


def _expired(before: Board, event: Event) -> Board:
    """What the log means after points have expired."""
    due = before.due(event.at)
    wrong = before.wrong
    if event.misplaced:
        wrong = "history: an event landed in another history than the one it was judged by"
    elif not due or event.reverses != due:
        wrong = "expired: not exactly what was due expired, and once"
    left = [(n, at) for n, at in zip(before.in_effect, before.at, strict=True) if n not in event.reverses]
    return replace(before, in_effect=tuple([n for n, _ in left]), at=tuple([at for _, at in left]), wrong=wrong)


def accepts(board: Board, kind: Kind) -> bool:
    """Whether the request is accepted there; else it is refused."""
    match kind:
        case Kind.POINTS:
            return board.open and not board.voided
        case Kind.CLOSE:
            return board.open
        case Kind.REOPEN:
            return not board.open
        case Kind.VOID:
            return not board.voided
