"""Refusals and failures as answers: one table of statuses, one shape."""

from math import ceil
from random import random
from typing import Final

import msgspec
from msgspec import Struct

from api.http import errors as http_errors
from api.http.reply import header
from engine.domain import errors
from engine.domain.errors import Fault, TallybookError

STATUSES: Final[dict[type[TallybookError], int]] = {
    errors.Unreadable: 400,
    http_errors.BodyTooLarge: 413,
    http_errors.BodyTooSlow: 408,
    http_errors.MediaTypeUnsupported: 415,
    http_errors.TargetTooLong: 414,
    http_errors.HeadTooLarge: 431,
    http_errors.HeadTooSlow: 408,
    http_errors.TooManyRequests: 429,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    http_errors.MethodNotAllowed: 405,
    http_errors.NotAcceptable: 406,
    errors.Conflict: 409,
    errors.QuotaReached: 409,
    errors.PreconditionFailed: 412,
    errors.Unacceptable: 422,
    errors.KeyReused: 422,
    errors.OutcomeUnknown: 500,
    errors.TournamentDefect: 500,
    errors.QueueFull: 503,
    errors.ListenersFull: 503,
    errors.TooMuchWork: 503,
    errors.Overtaken: 503,
    errors.DatabaseUnavailable: 503,
    errors.Rejected: 503,
    errors.HistoryReplaced: 503,
    errors.IdTaken: 503,
    errors.KeyRefused: 503,
    errors.TournamentStopped: 503,
    errors.ShuttingDown: 503,
}
ALWAYS: Final = (400, 401, 403, 404, 408, 414, 429, 431, 500, 503)
"""Every operation may answer with these, as well as 200; some operations also with the ones below."""
OF_JUDGED_QUESTIONS: Final = (422,)
OF_PREVIEWS: Final = (409, 422)
OF_RECALLED_PREVIEWS: Final = (409,)
OF_CHANGES: Final = (409, 413, 415, 422)
OF_CONDITIONAL_CHANGES: Final = (412,)
OF_STREAMS: Final = (406, 409)
DEFECT_MESSAGE: Final = "An internal error occurred; the request may or may not have been applied."


class Problem(Struct, kw_only=True):
    """The body of every refusal and failure. `message` says what to do; `errors` lists each fault."""

    status: int
    message: str
    errors: list[Fault] = []


def body(status: int, message: str, faults: tuple[Fault, ...] = ()) -> bytes:
    """The body of an answer that is not a 200."""
    return msgspec.json.encode(Problem(status=status, message=message, errors=list(faults)))


def headers(error: TallybookError) -> str:
    """The header lines that tell a client what to do about `error`; empty for most errors."""
    match error:
        case errors.Unauthenticated():
            return header("WWW-Authenticate", 'Bearer realm="tallybook"')
        case http_errors.MethodNotAllowed():
            return header("Allow", ", ".join(error.allowed))
        case errors.QueueFull():
            return header("Retry-After", retry_after(error.expected_seconds))
        case errors.Unavailable() | http_errors.TooManyRequests():
            return header("Retry-After", error.retry_after_seconds)
    return ""


def retry_after(expected_seconds: float) -> int:
    """The seconds after which a client should retry, randomised so that clients do not all return at once."""
    return max(1, ceil(expected_seconds * (0.5 + random())))  # noqa: S311 - no secret
