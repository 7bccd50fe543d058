"""The planted mistakes: where each shows, and which promise it breaks."""

from typing import Any, Final

from msgspec import Struct

from assurance.model.scenario import ADD, ADD_TOO, CLOSE, PLAIN_ADD, REOPEN, VOID, Copies, Mistake, Scenario
from assurance.model.state import Left


class Planted(Struct, frozen=True):
    """`promise`: the one that it breaks, at the end of a story of `steps`. `long`: it takes long to find."""

    mistake: Mistake
    promise: str
    scenario: Scenario
    steps: int
    long: bool


def _planted(mistake: Mistake, promise: str, steps: int, *, long: bool = False, **scenario: Any) -> Planted:
    return Planted(mistake, promise, Scenario(name=mistake.name, **scenario), steps, long)


PLANTED: Final = (
    _planted(
        Mistake.DIGEST, "history", 15, requests=(ADD, PLAIN_ADD), copies=Copies.STANDBY, left=Left(cuts=1, failovers=1)
    ),
    _planted(Mistake.STRUCTURE, "judged", 8, requests=(PLAIN_ADD, CLOSE)),
    _planted(Mistake.EXACT, "judged", 8, requests=(PLAIN_ADD, VOID)),
    _planted(Mistake.SEQUENCE, "stream", 11, requests=(PLAIN_ADD, PLAIN_ADD), listens=True),
    _planted(Mistake.KEYS, "once", 6, requests=(ADD,), left=Left(cuts=1)),
    _planted(Mistake.NO_APPEND_ID, "once", 7, requests=(PLAIN_ADD,), left=Left(losses=1)),
    _planted(Mistake.ANSWER_BEFORE_COMMIT, "once", 4, requests=(PLAIN_ADD,), left=Left(crashes=1)),
    _planted(Mistake.LOST_IS_NO, "refused", 5, requests=(PLAIN_ADD,), left=Left(losses=1)),
    _planted(Mistake.LATE_IS_NO, "refused", 5, requests=(PLAIN_ADD,), left=Left(expiries=1)),
    _planted(Mistake.NOT_FOLDED, "current", 9, requests=(PLAIN_ADD, ADD)),
    _planted(Mistake.BARRIER_JOINED, "current", 10, requests=(PLAIN_ADD, REOPEN), closed=True, reads=1),
    _planted(Mistake.NO_BARRIER, "current", 6, requests=(PLAIN_ADD,), reads=1),
    _planted(Mistake.STALE_REFUSAL, "current", 7, requests=(REOPEN, PLAIN_ADD), closed=True),
    _planted(Mistake.UNNOTED_REFUSAL, "refused", 15, requests=(ADD, REOPEN), closed=True, left=Left(cuts=1)),
    _planted(
        Mistake.LATE_STAMP, "refused", 21, long=True, requests=(ADD, ADD_TOO, REOPEN), closed=True, left=Left(cuts=1)
    ),
    _planted(
        Mistake.EPOCH,
        "refused",
        23,
        long=True,
        requests=(ADD, ADD_TOO, REOPEN),
        closed=True,
        copies=Copies.BACKUP,
        left=Left(cuts=1, failovers=1),
    ),
    _planted(Mistake.STALE_SUMS, "judged", 8, requests=(PLAIN_ADD, VOID)),
    _planted(
        Mistake.UNCONFIRMED,
        "once",
        6,
        requests=(PLAIN_ADD,),
        copies=Copies.SYNCHRONOUS,
        left=Left(failovers=1, cancels=1),
    ),
    _planted(
        Mistake.PLAIN_LOOK_UP,
        "once",
        15,
        requests=(CLOSE,),
        reads=1,
        copies=Copies.SYNCHRONOUS,
        left=Left(failovers=1, cancels=1),
    ),
    _planted(
        Mistake.REPLAY,
        "once",
        14,
        requests=(ADD, CLOSE),
        copies=Copies.BACKUP,
        left=Left(failovers=1, cuts=1),
    ),
    _planted(
        Mistake.LANDED,
        "once",
        17,
        requests=(PLAIN_ADD, ADD, ADD_TOO),
        copies=Copies.STANDBY,
        left=Left(failovers=1),
    ),
    _planted(
        Mistake.POSITION,
        "ends",
        11,
        requests=(PLAIN_ADD,),
        copies=Copies.STANDBY,
        listens=True,
        left=Left(failovers=1),
    ),
    _planted(
        Mistake.BARRIER_HISTORY,
        "current",
        14,
        requests=(PLAIN_ADD, ADD),
        copies=Copies.STANDBY,
        reads=1,
        left=Left(failovers=1),
    ),
    _planted(
        Mistake.BARRIER_PASSED,
        "current",
        14,
        requests=(PLAIN_ADD, ADD),
        copies=Copies.STANDBY,
        reads=1,
        left=Left(failovers=1),
    ),
    _planted(Mistake.NO_DUE, "expired", 10, requests=(PLAIN_ADD, ADD), left=Left(boundaries=1)),
    _planted(Mistake.PASSED_UNSEEN, "expired", 13, requests=(PLAIN_ADD, ADD), left=Left(boundaries=1)),
    _planted(Mistake.EXPIRY_PLAIN, "expired", 15, requests=(PLAIN_ADD, ADD), left=Left(boundaries=1)),
    _planted(Mistake.NO_CLOCK, "expired", 8, requests=(PLAIN_ADD,), reads=1, left=Left(boundaries=1)),
    _planted(Mistake.CHECKPOINT, "tables", 7, requests=(PLAIN_ADD,), works=True, left=Left(worker_crashes=1)),
)
