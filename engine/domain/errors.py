"""Everything that Tallybook refuses or fails at, in one tree. `api/http/errors.py` adds the refusals of HTTP.

    TallybookError
    ├── Refusal                    refused because of its content or the current state
    │   ├── Unreadable             it could not be read
    │   ├── Unauthenticated        no token, or an invalid one
    │   ├── Forbidden              the token's scope is too small
    │   ├── NotFound               no such path, tournament, ranking, …
    │   ├── Conflict               the current state forbids it: a closed ranking
    │   ├── QuotaReached           its tournament has no room for it
    │   ├── PreconditionFailed     the resource has changed since the client saw it
    │   └── Unacceptable           readable, but not acceptable
    │       └── KeyReused          the idempotency key belongs to another request
    ├── Unavailable                certainly not applied by this attempt; the same request may succeed later
    │   ├── QueueFull
    │   ├── ListenersFull          too many clients are listening
    │   ├── TooMuchWork            the answer would exceed its limit of work
    │   ├── Overtaken              judged or read several times, and overtaken each time
    │   ├── DatabaseUnavailable
    │   ├── Rejected               the database refuses this very change
    │   ├── HistoryReplaced        the log is not the one read before; it is read again
    │   ├── IdTaken                an id that was drawn exists already
    │   ├── KeyRefused             another request with its idempotency key was refused meanwhile
    │   ├── TournamentStopped      its log holds an event that cannot be folded
    │   └── ShuttingDown
    ├── OutcomeUnknown             it may have been applied or not
    ├── TournamentDefect           an unexpected failure in the code of one tournament
    ├── LogUnreadable              an event whose tag or body this code does not know
    ├── LogForked                  the log is not the one that was read before
    ├── LogDisproved               what is stored does not match its digests or events
    └── StartupRefused             the process exits with a sentence that says what to do

Pure. Each class has a stable `code`; facts are attributes. One table in `api/http/problems.py` gives their HTTP
statuses.
"""

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Items
from typing import ClassVar, Final, TypeVar

from msgspec import Struct

from engine.domain.terms import Sequence, TournamentId

NO_TOURNAMENT: Final = "There is no such tournament; check the slug in the address."

_K = TypeVar("_K")
_V = TypeVar("_V")


class Fault(Struct, frozen=True):
    """One thing that is wrong with one field of a request."""

    field: str
    message: str


class TallybookError(Exception):
    """`message` is a sentence for the client that says what to do."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Refusal(TallybookError):
    """`faults` lists every fault that was found, in the order of the request's fields."""

    code = "refused"

    def __init__(self, message: str, faults: Items[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)


class Unreadable(Refusal):
    code = "unreadable"


class Unauthenticated(Refusal):
    code = "unauthenticated"


class Forbidden(Refusal):
    code = "forbidden"


class NotFound(Refusal):
    code = "not_found"

    @classmethod
    def of(cls, what: str, name: object) -> "NotFound":
        """The refusal of a request that names what the tournament does not have: "ranking", 7."""
        return cls(f"This tournament has no {what} {name}.")


def existing(those: Mapping[_K, _V], what: str, name: _K) -> _V:
    """The item of a tournament with this name. Raises NotFound, which calls it `what`."""
    found = those.get(name)
    if found is None:
        raise NotFound.of(what, name)
    return found


class Conflict(Refusal):
    code = "conflict"


class QuotaReached(Refusal):
    """`faults` name each bound and its current use."""

    code = "quota_reached"

    def __init__(self, faults: Items[Fault]) -> None:
        super().__init__("The tournament's quota has no room for this; ask the operator of the service.", faults)


class PreconditionFailed(Refusal):
    code = "precondition_failed"


class Unacceptable(Refusal):
    code = "unacceptable"


class KeyReused(Unacceptable):
    code = "key_reused"

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key was used for another request; use a new key for a new request.",
            [Fault("Idempotency-Key", "was used for another request")],
        )


class Unavailable(TallybookError):
    """`retry_after_seconds`: when to try again."""

    code = "unavailable"
    retry_after_seconds: int = 1


class QueueFull(Unavailable):
    """`expected_seconds`: how long the request would have waited. `still` returns how long a similar request would wait
    now; 0: it would be accepted."""

    code = "queue_full"
    MESSAGE: ClassVar[str] = "Too many requests are waiting. This attempt changed nothing; try again shortly."

    def __init__(self, expected_seconds: float = 1.0, still: Callable[[], float] | None = None) -> None:
        super().__init__(self.MESSAGE)
        self.expected_seconds = expected_seconds
        self.still = still


class ListenersFull(Unavailable):
    code = "listeners_full"
    retry_after_seconds = 5

    def __init__(self) -> None:
        super().__init__("Too many clients are listening; try again later.")


class TooMuchWork(Unavailable):
    """`retry_after_seconds` is long: the same question takes less work only after other points."""

    code = "too_much_work"
    retry_after_seconds = 60

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"This would examine more than {most:,} {what}, the limit for one answer.")


class Overtaken(Unavailable):
    code = "overtaken"

    def __init__(self) -> None:
        super().__init__("Others are changing this tournament right now. This attempt changed nothing; try again.")


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"
    retry_after_seconds = 2

    def __init__(self) -> None:
        super().__init__("The database does not answer. This attempt changed nothing; try again shortly.")


class Rejected(Unavailable):
    code = "rejected"
    retry_after_seconds = 60

    def __init__(self) -> None:
        super().__init__("The database refused this change; it was not applied. Tell the operator of the service.")


class HistoryReplaced(Unavailable):
    code = "history_replaced"

    def __init__(self) -> None:
        super().__init__("The tournament's log was replaced meanwhile. This attempt changed nothing; try again.")


class IdTaken(Unavailable):
    code = "id_taken"

    def __init__(self) -> None:
        super().__init__(
            "The id generated for this already exists (was the database restored, or the tournament imported?). "
            "This attempt changed nothing; try again. If this lasts, the operator must run `tallybook migrate`."
        )


class KeyRefused(Unavailable):
    code = "key_refused"

    def __init__(self) -> None:
        super().__init__(
            "Another request with this Idempotency-Key was refused meanwhile. This attempt changed nothing; try again."
        )


class TournamentStopped(Unavailable):
    code = "tournament_stopped"
    retry_after_seconds = 60

    def __init__(self) -> None:
        super().__init__("This tournament is stopped until its operator repairs it; this attempt changed nothing.")


class ShuttingDown(Unavailable):
    code = "shutting_down"

    def __init__(self) -> None:
        super().__init__("This server is shutting down. This attempt changed nothing; try again.")


class OutcomeUnknown(TallybookError):
    code = "outcome_unknown"

    def __init__(self) -> None:
        super().__init__(
            "This may or may not have been applied; repeat it with the same Idempotency-Key, or read first."
        )


class TournamentDefect(TallybookError):
    """A defect met while judging a request of one tournament. It was logged and counted where it occurred."""

    code = "defect"

    def __init__(self) -> None:
        super().__init__("An internal error occurred in this tournament; the request may or may not have been applied.")


class Impossible(Exception):
    """No log written by the service leads to this state. A defect, so never an answer."""


class LogUnreadable(TallybookError):
    """The event at `sequence` cannot be decoded or folded; its tournament stops there."""

    code = "log_unreadable"

    def __init__(self, tournament_id: TournamentId, sequence: Sequence, reason: str) -> None:
        super().__init__(f"event {sequence} of tournament {tournament_id} cannot be folded: {reason}")
        self.tournament_id = tournament_id
        self.sequence = sequence
        self.reason = reason

    @classmethod
    def unfoldable(cls, tournament_id: TournamentId, sequence: Sequence, error: Exception) -> "LogUnreadable":
        """The fold raised `error`: a LookupError if the event names what does not exist, else a defect."""
        if isinstance(error, LookupError):
            return cls(tournament_id, sequence, f"it names {error}, which does not exist")
        return cls(tournament_id, sequence, f"folding it fails: {error!r}")


class LogForked(TallybookError):
    """The log no longer continues from `sequence` as it was read before: its history was replaced."""

    code = "log_forked"

    def __init__(self, tournament_id: TournamentId, sequence: Sequence) -> None:
        super().__init__(
            f"tournament {tournament_id} does not continue from sequence {sequence} as it was read before: "
            "was the database restored or failed over?"
        )
        self.tournament_id = tournament_id
        self.sequence = sequence


class LogDisproved(TallybookError):
    """A check of the log, or of what is made from it, found a difference."""

    code = "log_disproved"


class StartupRefused(TallybookError):
    code = "startup_refused"
