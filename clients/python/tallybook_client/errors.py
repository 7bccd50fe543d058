"""The errors that a call raises, as one tree.

CallFailed
├── Refused                 the answer is definite: the change was not made, and never will be by this call
│   ├── Unauthenticated     401
│   ├── Forbidden           403
│   ├── NotFound            404
│   ├── Conflict            409
│   ├── PreconditionFailed  412: somebody else has changed it; read it again and decide again
│   └── Unacceptable        422: `errors` names the fields
├── Unavailable             no answer in time; a change was certainly not made
└── OutcomeUnknown          a change may have been made: repeat the call with this `idempotency_key`

WebhookRefused              a message to a webhook is not from Tallybook
"""

from typing import Final

from msgspec import Struct


class Fault(Struct, frozen=True):
    """What is wrong with a field of a request."""

    field: str
    message: str


class CallFailed(Exception):
    """`status` of the last answer; None: there was none. `errors` are the faults that it lists."""

    def __init__(self, message: str, *, status: int | None = None, errors: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.errors = errors

    def __str__(self) -> str:
        faults = "; ".join(f"{fault.field}: {fault.message}" for fault in self.errors)
        return f"{self.status or 'no answer'}: {self.message}" + (f" ({faults})" if faults else "")


class Refused(CallFailed):
    pass


class Unauthenticated(Refused):
    pass


class Forbidden(Refused):
    pass


class NotFound(Refused):
    pass


class Conflict(Refused):
    pass


class PreconditionFailed(Refused):
    pass


class Unacceptable(Refused):
    pass


class Unavailable(CallFailed):
    """`retry_after_seconds`: the wait that the service asked for last; None: it asked for none."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        errors: tuple[Fault, ...] = (),
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message, status=status, errors=errors)
        self.retry_after_seconds = retry_after_seconds


class OutcomeUnknown(CallFailed):
    def __init__(
        self, message: str, idempotency_key: str, *, status: int | None = None, errors: tuple[Fault, ...] = ()
    ) -> None:
        super().__init__(message, status=status, errors=errors)
        self.idempotency_key = idempotency_key


class WebhookRefused(ValueError):
    pass


REFUSALS: Final[dict[int, type[Refused]]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    422: Unacceptable,
}
"""Any other status below 500 is plainly Refused."""
