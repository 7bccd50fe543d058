"""One call, sent as often as necessary: it ends with an answer, or with what is known about its outcome.

A change carries one idempotency key through all its attempts, so the service makes it once. A call may be retried after
an answer without a result (408, 429, 5xx), and after a lost connection. All other answers are definite.
"""

import asyncio
import random
import re
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientHandlerType,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    ServerDisconnectedError,
)
from msgspec import Struct
from yarl import URL

from tallybook_client.errors import (
    REFUSALS,
    CallFailed,
    Conflict,
    Fault,
    NotFound,
    OutcomeUnknown,
    PreconditionFailed,
    Refused,
    Unacceptable,
    Unavailable,
)

CONNECT_SECONDS_MAX: Final = 10.0
SILENCE_SECONDS_MAX: Final = 30.0
"""The answer to a write begins within 16 s, to a read within 20 s. A silent stream sends a keep-alive every 15 s."""
_TIMEOUT: Final = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=SILENCE_SECONDS_MAX)
_NOT_SENT: Final = (ClientConnectorError, ConnectionTimeoutError)
_SETTLED: Final = (NotFound, Conflict, PreconditionFailed, Unacceptable)
"""After one of these, no earlier request with the same key was applied, or ever will be."""
_RETRY_AFTER: Final = re.compile("[0-9]{1,6}")


def open_session() -> ClientSession:
    return ClientSession(timeout=_TIMEOUT, cookie_jar=DummyCookieJar(), middlewares=(_sent_once,))


async def _sent_once(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Sends a request once. When a kept connection is lost, aiohttp would resend a PUT automatically, and a refusal of
    the second one would be taken for the answer to both."""
    try:
        return await handler(request)
    except _NOT_SENT:
        raise
    except (ClientOSError, ServerDisconnectedError) as error:
        raise ClientError(str(error)) from error


class Patience(Struct, frozen=True, kw_only=True):
    """How often, and for how long, a call is retried: for `seconds_max`, but only for `unreached_seconds_max` while the
    service has never answered this client, because then its address may be wrong.

    The first pause between attempts has at most `pause_seconds`, each further one at most twice as many, up to
    `pause_seconds_max`. Within these limits pauses are random, so that many clients do not return at once. The seconds
    of a `Retry-After` are added.
    """

    attempts_max: int = 10
    seconds_max: float = 60.0
    unreached_seconds_max: float = 5.0
    pause_seconds: float = 0.2
    pause_seconds_max: float = 10.0


class Attempts:
    """The attempts of one call, or of one connection to a stream."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._made = 0
        self._began_at = time.monotonic()

    async def pause(self, retry_after_seconds: int | None, *, reached: bool) -> bool:
        """Waits for the next attempt. Returns False at once if there are no more attempts, or if the wait would exceed
        the time left. `reached`: the service has answered this client before."""
        patience = self._patience
        seconds_max = patience.seconds_max if reached else min(patience.unreached_seconds_max, patience.seconds_max)
        self._made += 1
        longest = min(patience.pause_seconds_max, patience.pause_seconds * 2 ** min(self._made - 1, 30))
        seconds = (retry_after_seconds or 0) + random.uniform(0, longest)  # noqa: S311 - no secret
        if self._made >= patience.attempts_max or time.monotonic() + seconds > self._began_at + seconds_max:
            return False
        await asyncio.sleep(seconds)
        return True


class Request(Struct, frozen=True, kw_only=True):
    """`path` is below the address of the service, encoded. `key` is that of a change; None: it changes nothing."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    key: str | None = None


class Reply(Struct, frozen=True):
    """A 200."""

    headers: Mapping[str, str]
    body: bytes


class Problem(Struct, frozen=True):
    """The body of any other answer."""

    message: str
    errors: tuple[Fault, ...] = ()


class Sender:
    """Sends requests to one service, with one token."""

    def __init__(self, session: ClientSession, address: URL, token: str, patience: Patience) -> None:
        self._session = session
        self._address = str(address).rstrip("/")
        self._bearer = {"Authorization": f"Bearer {token}"}
        self.patience = patience
        self.reached = False
        """Whether the service has ever answered."""

    def open(self, request: Request) -> Any:
        """The context of one attempt: its response, whose body is still to be read."""
        keyed = {} if request.key is None else {"Idempotency-Key": request.key}
        return self._session.request(
            request.method,
            URL(f"{self._address}{request.path}", encoded=True),
            params=dict(request.query),
            data=request.body,
            headers={**self._bearer, **keyed, **request.headers},
            allow_redirects=False,
        )

    async def send(self, request: Request) -> Reply:
        """The 200 to this request. Raises CallFailed."""
        attempts = Attempts(self.patience)
        is_unknown = False
        while True:
            failure: CallFailed
            try:
                async with self.open(request) as response:
                    self.reached = True
                    body = await response.read()
                if response.status == 200:
                    return Reply(response.headers, body)
                failure = failure_of(response, body)
                is_unknown |= response.status >= 500 and response.status != 503
            except (ClientError, TimeoutError) as error:
                failure = lost(error)
                is_unknown |= not isinstance(error, _NOT_SENT)
            if isinstance(failure, Unavailable) and await attempts.pause(
                failure.retry_after_seconds, reached=self.reached
            ):
                continue
            if request.key is not None and is_unknown and not isinstance(failure, _SETTLED):
                raise OutcomeUnknown(
                    failure.message, request.key, status=failure.status, errors=failure.errors
                ) from failure
            raise failure


def failure_of(response: ClientResponse, body: bytes) -> CallFailed:
    """The failure of an answer other than 200: Unavailable if the call may be retried, otherwise Refused. If the answer
    is not the service's own, it is no subclass of Refused."""
    status = response.status
    refusal = REFUSALS.get(status, Refused)
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.DecodeError:  # a proxy's
        problem, refusal = Problem(response.reason or "not answered by the service"), Refused
    if status in (408, 429) or status >= 500:
        retry_after = response.headers.get("Retry-After", "")
        seconds = int(retry_after) if _RETRY_AFTER.fullmatch(retry_after) else None
        return Unavailable(problem.message, status=status, errors=problem.errors, retry_after_seconds=seconds)
    return refusal(problem.message, status=status, errors=problem.errors)


def lost(error: Exception) -> Unavailable:
    """The failure of a connection."""
    failure = Unavailable(str(error) or type(error).__name__)
    failure.__cause__ = error
    return failure
