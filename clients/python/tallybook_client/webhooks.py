"""Verifies messages to webhooks, then decodes them, after the Standard Webhooks specification."""

import base64
import hmac
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from tallybook_client.errors import WebhookRefused

TOLERANCE_SECONDS: Final = 300
BODY_BYTES_MAX: Final = 20_000
_HEADERS: Final = ("webhook-id", "webhook-timestamp", "webhook-signature")


class WebhookLine(Struct, frozen=True, kw_only=True):
    """One line of points. `total`: the total after it. In a unity that counts results, `delta` is None, `result` is
    what the line gave (None: it reversed a result), and `total` is None if no result counts."""

    competitor_id: int
    unity_id: int
    delta: int | None
    total: int | None
    result: int | None = None


class WebhookData(Struct, frozen=True, kw_only=True):
    """`id`: the event's id in the stream. Ids and names that the event does not have are None. `lines`: those that
    points have changed. `lines_left_out`: the number of lines, if they are too many for a message."""

    tournament: str
    tournament_id: int
    sequence: int
    id: str
    ranking_id: int | None = None
    unity_id: int | None = None
    competition_id: int | None = None
    competitor_id: int | None = None
    main_unity_id: int | None = None
    main_unity_name: str | None = None
    name: str | None = None
    lines: tuple[WebhookLine, ...] = ()
    lines_left_out: int = 0


class WebhookMessage(Struct, frozen=True, kw_only=True):
    """One event. `message_id` is the same each time that it is sent to this webhook: drop messages that you have
    received before. `timestamp` is when the event was recorded, in UTC."""

    message_id: str = ""
    type: str
    timestamp: datetime
    data: WebhookData


_decode: Final = msgspec.json.Decoder(WebhookMessage).decode


def verify_webhook(
    secret: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float | None = None,
    tolerance_seconds: float = TOLERANCE_SECONDS,
) -> WebhookMessage:
    """The message, if it is from Tallybook and was sent within `tolerance_seconds` of `now` (Unix time in s).

    `secret` is the `whsec_…` of the webhook. `headers`: those of the request, in upper or lower case; `body`: its bytes
    as received. Raises WebhookRefused, and ValueError if `secret` is not a secret.
    """
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in _HEADERS if name not in given]
    if missing:
        raise WebhookRefused(f"it lacks {', '.join(missing)}")
    if len(body) > BODY_BYTES_MAX:
        raise WebhookRefused(f"it has more than {BODY_BYTES_MAX} bytes")
    message_id, sent_at, signatures = (given[name] for name in _HEADERS)
    signed = f"{message_id}.{sent_at}.".encode(errors="replace") + body
    expected = b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))
    if not any(hmac.compare_digest(one.encode(errors="replace"), expected) for one in signatures.split(" ")):
        raise WebhookRefused("it is not from Tallybook, or was changed on the way")
    if abs((time.time() if now is None else now) - int(sent_at)) > tolerance_seconds:
        raise WebhookRefused("it is old, or a clock is wrong")
    return msgspec.structs.replace(_decode(body), message_id=message_id)
