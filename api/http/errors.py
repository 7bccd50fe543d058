"""The refusals that only HTTP has: unacceptable requests, and answers that cannot be given.

Refusal
├── Unreadable
│   ├── BodyTooLarge
│   ├── BodyTooSlow
│   ├── HeadTooLarge
│   ├── HeadTooSlow
│   ├── MediaTypeUnsupported
│   └── TargetTooLong
├── TooManyRequests            from one client or token; it should wait
├── MethodNotAllowed
└── NotAcceptable              no media type of the answer that the client takes
"""

from collections.abc import Sequence

from engine.domain.errors import Refusal, Unreadable


class BodyTooLarge(Unreadable):
    code = "body_too_large"


class BodyTooSlow(Unreadable):
    code = "body_too_slow"


class HeadTooLarge(Unreadable):
    code = "head_too_large"

    def __init__(self) -> None:
        super().__init__("The headers of the request are too large or too many; send less.")


class HeadTooSlow(Unreadable):
    code = "head_too_slow"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The headers of the request did not arrive within {seconds:.0f} seconds; send it again.")


class MediaTypeUnsupported(Unreadable):
    code = "media_type_unsupported"


class TargetTooLong(Unreadable):
    code = "target_too_long"

    def __init__(self) -> None:
        super().__init__("The address of the request is too long; shorten it.")


class TooManyRequests(Refusal):
    """`retry_after_seconds`: when to try again."""

    code = "too_many_requests"

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class MethodNotAllowed(Refusal):
    code = "method_not_allowed"

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        super().__init__(message)
        self.allowed = tuple(allowed)


class NotAcceptable(Refusal):
    code = "not_acceptable"
