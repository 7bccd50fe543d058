"""Webhooks: the receivers of a tournament's events, and their cursors. The only SQL on the table `webhook`.

The log itself is the queue. A webhook has a cursor: the last event that it received, with the digest of its block. It
receives events up to the checkpoint of its tournament, so the tables already show them.

Times are UTC. Functions take a connection of the service. The driver's errors pass through unchanged.
"""

import secrets
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NewType

from asyncpg import Connection
from msgspec import Struct

from api.webhooks.addresses import private_fault, url_fault
from api.webhooks.message import SECRET_BYTES
from engine.domain.errors import Conflict, Fault, NotFound, Unacceptable
from engine.domain.terms import Sequence, TournamentId
from engine.log import codec, heads, registry
from engine.log.heads import Head

WebhookId = NewType("WebhookId", int)

WEBHOOKS_MAX: Final = 1_000
"""Webhooks of a database. (A few more if several are added at the same moment.)"""
OLD_SECRET_HOURS: Final = 24
"""After a secret is replaced, the old one also signs for this time."""
PROBLEM_CHARACTERS_MAX: Final = 300

_COUNT: Final = "SELECT count(*) FROM webhook"
_ADD: Final = """
    INSERT INTO webhook (tournament_id, webhook_id, url, kinds, allows_private, secret, sequence, digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_LIST: Final = """
    SELECT
        w.webhook_id, t.slug, w.url, w.kinds, w.allows_private, w.state, w.sequence, b.last_sequence - w.sequence,
        w.failures, w.problem, CASE WHEN w.failures > 0 AND w.state = 'active' THEN w.due_at END, w.delivered_at,
        w.created_at
    FROM webhook AS w
    JOIN tournament AS t ON t.tournament_id = w.tournament_id
    CROSS JOIN LATERAL (
        SELECT last_sequence
        FROM block
        WHERE tournament_id = w.tournament_id
        ORDER BY last_sequence DESC
        LIMIT 1
    ) AS b
    WHERE $1::bigint IS NULL OR w.tournament_id = $1
    ORDER BY w.webhook_id
"""
_REMOVE: Final = "DELETE FROM webhook WHERE tournament_id = $1 AND webhook_id = $2 RETURNING webhook_id"
_RESUME: Final = """
    UPDATE webhook
    SET
        state = 'active', failures = 0, problem = NULL, due_at = now(),
        sequence = coalesce($3, sequence), digest = coalesce($4, digest)
    WHERE tournament_id = $1 AND webhook_id = $2
    RETURNING sequence
"""
_ROTATE: Final = """
    UPDATE webhook
    SET old_secret = secret, old_secret_until = now() + make_interval(hours => $4), secret = $3
    WHERE tournament_id = $1 AND webhook_id = $2
    RETURNING webhook_id
"""
_DUE: Final = """
    SELECT w.tournament_id, w.webhook_id
    FROM webhook AS w
    JOIN checkpoint AS c ON c.tournament_id = w.tournament_id
    WHERE w.state = 'active' AND w.due_at <= now() AND w.sequence < c.sequence AND w.webhook_id <> ALL($1::bigint[])
    ORDER BY w.due_at
    LIMIT $2
"""
_FIGURES: Final = """
    SELECT w.state, count(*), max(c.sequence - w.sequence)
    FROM webhook AS w
    JOIN checkpoint AS c ON c.tournament_id = w.tournament_id
    GROUP BY w.state
"""
_NEXT: Final = """
    SELECT
        t.slug, w.url, w.kinds, w.allows_private, w.secret,
        CASE WHEN w.old_secret_until > now() THEN w.old_secret END,
        w.sequence, w.digest, coalesce(c.sequence, w.sequence), w.failures
    FROM webhook AS w
    JOIN tournament AS t ON t.tournament_id = w.tournament_id
    LEFT JOIN checkpoint AS c ON c.tournament_id = $1
    WHERE w.tournament_id = $1 AND w.webhook_id = $2 AND (w.state = 'active' OR $3)
"""
# Each change of a cursor names the event that the cursor is at, so that it does not undo an operator's change.
_MOVE_ON: Final = """
    UPDATE webhook
    SET sequence = $4, digest = $5, failures = 0, problem = NULL, due_at = now()
    WHERE tournament_id = $1 AND webhook_id = $2 AND sequence = $3 AND state = 'active'
    RETURNING webhook_id
"""
_NOTE_DELIVERY: Final = """
    UPDATE webhook
    SET sequence = $4, digest = $5, failures = 0, problem = NULL, due_at = now(), delivered_at = now()
    WHERE tournament_id = $1 AND webhook_id = $2 AND sequence = $3 AND state = 'active'
    RETURNING webhook_id
"""
_NOTE_FAILURE: Final = """
    UPDATE webhook
    SET failures = failures + 1, problem = $4, state = $5, due_at = now() + make_interval(secs => $6)
    WHERE tournament_id = $1 AND webhook_id = $2 AND sequence = $3 AND state = 'active' AND failures = $7
    RETURNING webhook_id
"""


class WebhookState(StrEnum):
    """Whether a webhook receives events."""

    ACTIVE = "active"
    PARKED = "parked"
    """It waits for an operator: sending the next event has failed too often, or its log was replaced."""
    OFF = "off"
    """Its receiver has switched it off, with status 410."""


class ListedWebhook(Struct, frozen=True):
    """A webhook as an operator sees it. `behind`: the number of events after its cursor. `failures`: failed attempts to
    send the next event; `problem`: why the last one failed; `retried_at`: the earliest time of the next one."""

    id: WebhookId
    tournament: str
    url: str
    kinds: list[str] | None
    allows_private: bool
    state: WebhookState
    sequence: Sequence
    behind: int
    failures: int
    problem: str | None
    retried_at: datetime | None
    delivered_at: datetime | None
    created_at: datetime


# ── For operators ───────────────────────────────────────────────────────────────────────────────────────


async def add_webhook(
    connection: Connection,
    tournament_id: TournamentId,
    url: str,
    *,
    kinds: Collection[str] | None,
    allows_private: bool,
    after: Sequence | None,
) -> tuple[WebhookId, Sequence, bytes]:
    """Adds a webhook that receives events after the event `after`; None: new ones. Returns its id, the last event that
    it does not receive, and its secret, which is for its receiver alone.

    Raises Unacceptable, naming every fault, and Conflict.
    """
    await _refuse_webhook_faults(url, kinds, allows_private=allows_private)
    if await connection.fetchval(_COUNT) >= WEBHOOKS_MAX:
        raise Conflict(f"There are already {WEBHOOKS_MAX:,} webhooks, the limit; remove one first.")
    cursor = await _cursor_after(connection, tournament_id, after)
    webhook_id = await registry.next_webhook_id(connection)
    secret = secrets.token_bytes(SECRET_BYTES)
    wanted = None if kinds is None else sorted(set(kinds))
    await connection.execute(
        _ADD, tournament_id, webhook_id, url, wanted, allows_private, secret, cursor.sequence, cursor.digest
    )
    return WebhookId(webhook_id), cursor.sequence, secret


async def listed_webhooks(connection: Connection, tournament_id: TournamentId | None) -> list[ListedWebhook]:
    """The webhooks of this tournament, oldest first; None: of all."""
    return [ListedWebhook(*row) for row in await connection.fetch(_LIST, tournament_id)]


async def remove_webhook(connection: Connection, tournament_id: TournamentId, webhook_id: WebhookId) -> None:
    """Removes a webhook. Messages under way may still arrive. Raises NotFound."""
    _refuse_none(webhook_id, await connection.fetchval(_REMOVE, tournament_id, webhook_id))


async def resume_webhook(
    connection: Connection, tournament_id: TournamentId, webhook_id: WebhookId, *, after: Sequence | None
) -> Sequence:
    """Resumes a webhook at once, whatever its state: at its cursor, or after the event `after`. Returns the event after
    which it continues. Raises NotFound, and Conflict if the log does not reach that far."""
    cursor = None if after is None else await _cursor_after(connection, tournament_id, after)
    digest = None if cursor is None else cursor.digest
    sequence: Sequence | None = await connection.fetchval(_RESUME, tournament_id, webhook_id, after, digest)
    _refuse_none(webhook_id, sequence)
    assert sequence is not None
    return sequence


async def rotate_secret(connection: Connection, tournament_id: TournamentId, webhook_id: WebhookId) -> bytes:
    """Gives a webhook a new secret, and returns it. The old one also signs for OLD_SECRET_HOURS. Raises NotFound."""
    secret = secrets.token_bytes(SECRET_BYTES)
    _refuse_none(webhook_id, await connection.fetchval(_ROTATE, tournament_id, webhook_id, secret, OLD_SECRET_HOURS))
    return secret


async def _refuse_webhook_faults(url: str, kinds: Collection[str] | None, *, allows_private: bool) -> None:
    fault = url_fault(url)
    if fault is None and not allows_private:
        fault = await private_fault(url)
    faults = [Fault("url", fault)] if fault else []
    unknown = sorted(set(kinds or ()) - codec.tags())
    faults += [Fault("kinds", f"{kind[:40]!r} is not the name of an event") for kind in unknown]
    if kinds is not None and not kinds:
        faults.append(Fault("kinds", "must name an event"))
    if faults:
        raise Unacceptable("The webhook cannot be added like this; correct the fields named.", faults)


async def _cursor_after(connection: Connection, tournament_id: TournamentId, after: Sequence | None) -> Head:
    head = (await heads.current(connection, [tournament_id]))[tournament_id]
    if after is None:
        return head
    if after == 0:
        return heads.beginning(tournament_id)
    block = await heads.block_around(connection, tournament_id, after)
    if block is None:
        raise Conflict(f"The log ends at sequence {head.sequence}; nothing follows {after} yet.")
    return Head(after, block[0])


def _refuse_none(webhook_id: WebhookId, found: object) -> None:
    if found is None:
        raise NotFound.of("webhook", webhook_id)


# ── For the deliverer ───────────────────────────────────────────────────────────────────────────────────


class NextDelivery(Struct, frozen=True):
    """A webhook with new events: those after `cursor`, up to `upto`. `secrets`: those that sign its messages.
    `failures`: failed attempts to send the next event."""

    tournament_id: TournamentId
    webhook_id: WebhookId
    slug: str
    url: str
    kinds: frozenset[str] | None
    allows_private: bool
    secrets: tuple[bytes, ...]
    cursor: Head
    upto: Sequence
    failures: int

    def wants(self, kind: str | None) -> bool:
        """Whether the webhook wants events of this kind; None: those that were set aside."""
        return self.kinds is None or kind in self.kinds


async def due_webhooks(
    connection: Connection, but: Collection[WebhookId], limit: int
) -> list[tuple[TournamentId, WebhookId]]:
    """Webhooks with new events that may be sent now, except those in `but`. The one that has waited longest comes
    first."""
    return [(row[0], row[1]) for row in await connection.fetch(_DUE, list(but), limit)]


async def next_delivery(
    connection: Connection, tournament_id: TournamentId, webhook_id: WebhookId, *, in_any_state: bool = False
) -> NextDelivery | None:
    """The events to send to the webhook. None: there is no such webhook, or, unless `in_any_state`, it is not
    active."""
    row: Any = await connection.fetchrow(_NEXT, tournament_id, webhook_id, in_any_state)
    if row is None:
        return None
    slug, url, kinds, allows_private, secret, old_secret, sequence, digest, upto, failures = row
    return NextDelivery(
        tournament_id,
        webhook_id,
        slug,
        url,
        None if kinds is None else frozenset(kinds),
        allows_private,
        (secret,) if old_secret is None else (secret, old_secret),
        Head(sequence, digest),
        upto,
        failures,
    )


async def move_on(
    connection: Connection, delivery: NextDelivery, cursor: Sequence, to: Head, *, delivered: bool
) -> bool:
    """Records that the webhook has received everything that it wants up to `to`. `delivered`: `to` itself was
    delivered. False: its cursor is not `cursor` any more, or it is not active; nothing is noted."""
    statement = _NOTE_DELIVERY if delivered else _MOVE_ON
    noted = await connection.fetchval(
        statement, delivery.tournament_id, delivery.webhook_id, cursor, to.sequence, to.digest
    )
    return noted is not None


async def note_failure(
    connection: Connection,
    delivery: NextDelivery,
    cursor: Sequence,
    problem: str,
    *,
    failures: int,
    state: WebhookState,
    pause_seconds: float,
) -> bool:
    """Records that sending the next event failed, after `failures` earlier ones, and why. It is sent again after the
    pause if the webhook is to be active. False: as `move_on`, or it was resumed meanwhile."""
    noted = await connection.fetchval(
        _NOTE_FAILURE,
        delivery.tournament_id,
        delivery.webhook_id,
        cursor,
        problem[:PROBLEM_CHARACTERS_MAX],
        state,
        pause_seconds,
        failures,
    )
    return noted is not None


class WebhookFigures(Struct, frozen=True):
    """How many webhooks are in one state, and how many events the slowest of them is behind."""

    count: int
    behind: int


async def webhook_figures(connection: Connection) -> dict[WebhookState, WebhookFigures]:
    """The figures of each state that a webhook is in."""
    rows = await connection.fetch(_FIGURES)
    return {WebhookState(state): WebhookFigures(count, behind) for state, count, behind in rows}
