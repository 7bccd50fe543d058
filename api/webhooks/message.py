"""The messages to webhooks, after the Standard Webhooks specification (standardwebhooks.com).

Pure. A message says that an event has happened, and which: its kind, its sequence, the ids and names in it, and for
points the lines that changed. The receiver can request anything else with a token. A message depends only on the log up
to its event, so it is the same at each attempt.

The signature proves that the sender has the webhook's secret, and the time in it that the message is not old.
`webhook-id` is the same each time this event is sent to this webhook.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final, get_args

import msgspec
from msgspec import UNSET, Struct, UnsetType

from api.stream.frames import SET_ASIDE, id_of
from engine.domain.events import Delta, Points, Total, changed_by
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.domain.times import instant
from engine.log import codec
from engine.log.undecoded import Stored

SECRET_BYTES: Final = 32
"""The specification asks for 24 to 64."""
TEST: Final = "test"
"""The type of a message that an operator sends to try a webhook."""


MESSAGE_LINES_MAX: Final = 100
"""Lines of a message. If points have more, the message has only their number."""
_POINTS: Final = frozenset(kind.tag for kind in get_args(Points))


class ChangedLine(Struct, frozen=True):
    """One line of points, and the total after it. `delta` null: the unity counts results; the line gave a `result`, or
    it reversed one. `total` null: none counts."""

    competitor_id: CompetitorId
    unity_id: UnityId
    delta: int | None
    total: int | None
    result: int | UnsetType = UNSET


class _Named(Struct):
    """The ids and names in a stored body, except those in lists."""

    ranking_id: RankingId | None = None
    unity_id: UnityId | None = None
    competition_id: CompetitionId | None = None
    competitor_id: CompetitorId | None = None
    main_unity_id: UnityId | None = None
    main_unity_name: str | None = None
    name: str | None = None


class _Data(Struct, omit_defaults=True, kw_only=True):
    tournament: str
    tournament_id: TournamentId
    sequence: Sequence
    id: str
    ranking_id: RankingId | None = None
    unity_id: UnityId | None = None
    competition_id: CompetitionId | None = None
    competitor_id: CompetitorId | None = None
    main_unity_id: UnityId | None = None
    main_unity_name: str | None = None
    name: str | None = None
    lines: Items[ChangedLine] | None = None
    lines_left_out: int | None = None


class _Body(Struct):
    type: str
    timestamp: str
    data: _Data


_NAMED: Final = msgspec.json.Decoder(_Named)


class Message(Struct, frozen=True):
    """The message of one event. `message_id`: its `webhook-id`."""

    message_id: str
    body: bytes

    def headers(self, secrets: Iterable[bytes], at: int) -> dict[str, str]:
        """The headers that it is sent with at this time, in seconds since 1970, signed with each of the secrets."""
        return {
            "Content-Type": "application/json",
            "webhook-id": self.message_id,
            "webhook-timestamp": str(at),
            "webhook-signature": " ".join(self._signature(secret, at) for secret in secrets),
        }

    def _signature(self, secret: bytes, at: int) -> str:
        signed = b"%b.%d.%b" % (self.message_id.encode(), at, self.body)
        return f"v1,{base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()}"


def points_of(stored: Stored) -> Points | None:
    """The event, if it is one of points."""
    if stored.kind is None or stored.kind not in _POINTS:
        return None
    event = codec.decode(stored.kind, stored.body)
    assert isinstance(event, Points)
    return event


def lines_of(stored: Stored) -> tuple[Delta | Total, ...]:
    """The lines of an event; none unless it is one of points."""
    points = points_of(stored)
    return () if points is None else changed_by(points)


def message_of(
    webhook_id: int, tournament_id: TournamentId, slug: str, stored: Stored, lines: Items[ChangedLine] = ()
) -> Message:
    """The message of an event. For one that was set aside, it says only that. `lines`: those that points have changed;
    none if there are more than MESSAGE_LINES_MAX."""
    event_id = id_of(stored.sequence, stored.digest)
    named = _Named() if stored.kind is None else _NAMED.decode(stored.body)
    data = _Data(
        tournament=slug,
        tournament_id=tournament_id,
        sequence=stored.sequence,
        id=event_id,
        lines=lines or None,
        lines_left_out=None if lines else len(lines_of(stored)) or None,
        **msgspec.structs.asdict(named),
    )
    body = _Body(SET_ASIDE if stored.kind is None else stored.kind, instant(stored.recorded_at), data)
    return Message(f"{webhook_id}-{event_id}", msgspec.json.encode(body))


def message_of_test(
    webhook_id: int, tournament_id: TournamentId, slug: str, sequence: Sequence, *, at: datetime, nonce: str
) -> Message:
    """A message that only shows that messages arrive. `sequence`: the last event that the webhook has received, so a
    receiver that drops repeats drops this one, too. `nonce` makes its id unique."""
    data = _Data(tournament=slug, tournament_id=tournament_id, sequence=sequence, id=TEST)
    body = _Body(TEST, instant(at), data)
    return Message(f"{webhook_id}-{TEST}-{nonce}", msgspec.json.encode(body))


def secret_text(secret: bytes) -> str:
    """The secret as receivers get it."""
    return f"whsec_{base64.b64encode(secret).decode()}"
