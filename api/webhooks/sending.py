"""Sends one message to a webhook, and reports the reply."""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver
from msgspec import Struct

from api.webhooks import webhooks
from api.webhooks.addresses import public_socket
from api.webhooks.message import message_of_test
from api.webhooks.webhooks import WebhookId
from engine.database.pool import Database
from engine.domain.errors import NotFound
from engine.domain.terms import TournamentId
from engine.process.version import version

ANSWER_SECONDS_MAX: Final = 15.0
"""For a request, from the look-up of the name to the status of the answer."""
CONNECTING_SECONDS_MAX: Final = 5.0
GONE: Final = 410
_SECONDS: Final = re.compile("[0-9]+")


class Answered(Struct, frozen=True):
    """The reply. `status` None: no answer. `problem`: why the receiver did not accept the message; None: it did.
    `retry_after_seconds`: how long it asks to be left alone; 0: it does not."""

    status: int | None
    problem: str | None
    retry_after_seconds: float = 0.0

    @property
    def is_gone(self) -> bool:
        """Whether the receiver will never accept a message again."""
        return self.status == GONE


def open_client(
    resolver: AbstractResolver | None = None, *, allows_private: bool, connections_max: int = 1
) -> ClientSession:
    """The client that sends messages. `resolver`: looks names up; None: the system does."""
    return ClientSession(
        connector=TCPConnector(
            limit=connections_max,
            resolver=resolver,
            use_dns_cache=False,
            socket_factory=None if allows_private else public_socket,
        ),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=ANSWER_SECONDS_MAX, sock_connect=CONNECTING_SECONDS_MAX),
        auto_decompress=False,
        headers={"User-Agent": f"tallybook/{version()}"},
    )


async def post(client: ClientSession, url: str, body: bytes, headers: Mapping[str, str]) -> Answered:
    """Sends one request. The body of its answer is not read."""
    try:
        async with client.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            seconds = _retry_after_seconds(answer.headers.get("Retry-After", ""), datetime.now(UTC))
            return Answered(answer.status, _problem(answer.status), seconds)
    except ConnectionTimeoutError:
        return Answered(None, f"no connection within {CONNECTING_SECONDS_MAX:.0f} seconds")
    except TimeoutError:
        return Answered(None, f"no answer within {ANSWER_SECONDS_MAX:.0f} seconds")
    except ClientConnectorError as error:
        return Answered(None, f"cannot connect: {error.os_error}")
    except (ClientError, OSError, ValueError) as error:  # ValueError: a name that cannot be looked up
        return Answered(None, f"no answer: {type(error).__name__}")  # its text may hold what the receiver has sent


async def send_test(database: Database, tournament_id: TournamentId, webhook_id: WebhookId) -> Answered:
    """Sends the webhook a test message now, in any state, and changes nothing. Raises NotFound."""
    async with database.connection_for(tournament_id) as connection:
        webhook = await webhooks.next_delivery(connection, tournament_id, webhook_id, in_any_state=True)
    if webhook is None:
        raise NotFound.of("webhook", webhook_id)
    at = datetime.now(UTC)
    message = message_of_test(
        webhook_id, tournament_id, webhook.slug, webhook.cursor.sequence, at=at, nonce=secrets.token_hex(4)
    )
    async with open_client(allows_private=webhook.allows_private) as client:
        return await post(client, webhook.url, message.body, message.headers(webhook.secrets, int(at.timestamp())))


def _problem(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    why = "; redirects are not followed" if 300 <= status < 400 else ""
    return f"answered {status}{why}"


def _retry_after_seconds(value: str, now: datetime) -> float:
    """What the header says, in seconds or as a date (RFC 9110); 0 if that is neither."""
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        until = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    return 0.0 if until.tzinfo is None else (until - now).total_seconds()
