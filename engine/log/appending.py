"""All appends to the log of events in PostgreSQL.

The comment at the function `append_block` in `migrations/0001_log.sql` describes what the database guarantees:
sequences without gaps in the order of commits, one way to append, one chain of digests. This module maps that to Python
values. It adds one fact that only the client can know: whether a commit was confirmed.

Times are UTC, and digests are 32 bytes. Functions take a connection and do not translate driver errors; the appender
distinguishes them.
"""

import os
import secrets
from collections.abc import Awaitable, Callable, Iterator
from collections.abc import Sequence as Items
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from random import Random
from typing import Any, Final

import msgspec
from asyncpg import Connection, InterfaceError
from msgspec import Struct, field

from engine.database.distribution import is_distributed
from engine.database.pool import casts_doubt
from engine.domain.events import Event, Recorded
from engine.domain.terms import OPERATION_BYTES, ActorId, Sequence, TournamentId
from engine.log import codec
from engine.process import failpoints
from engine.process.tracing import RequestSpan

# Each column is one text: chr(30) separates blocks, and within a block line feeds separate events. No number or JSON
# text contains either. Arrays, or one statement per block, would take the driver many times as long.
_COLUMNS: Final = """
            string_to_array($1, chr(30))::bigint[],
            string_to_array($2, chr(30))::uuid[],
            string_to_array($3, chr(30))::bigint[],
            string_to_array($4, chr(30), '')::bytea[],
            string_to_array($5, chr(30))::boolean[],
            string_to_array($6, chr(30))::boolean[],
            string_to_array($7, chr(30), ''),
            string_to_array($8, chr(30))::bigint[],
            string_to_array($9, chr(30), ''),
            string_to_array($10, chr(30), ''),
            string_to_array($11, chr(30), ''),
            string_to_array($12, chr(30)),
            string_to_array($13, chr(30), ''),
            string_to_array($14, chr(30), ''),
            string_to_array($15, chr(30), '')::tstzrange[]"""
# The name stands first because pg_stat_activity shows the first thousand characters.
_APPEND: Final = f"""
    SELECT /* append_block */
        r.status, r.first_sequence, r.last_sequence, r.recorded_at, r.previous_digest, r.digest, r.answers, r.unseen
    FROM
        unnest({_COLUMNS}
        ) WITH ORDINALITY AS b (
            tournament_id, append_id, judged_at, judged_digest, structural, exact, created, refusals, event_counts,
            keys, fingerprints, text, topics, personals, within, n
        ),
        append_block(
            b.tournament_id,
            b.append_id,
            $18,
            b.judged_at,
            b.judged_digest,
            b.structural,
            b.exact,
            $17,
            string_to_array(b.created, chr(10))::bigint[],
            b.refusals,
            $16,
            string_to_array(b.event_counts, chr(10))::int[],
            CASE WHEN b.keys IS NOT NULL THEN ARRAY(SELECT json_array_elements_text(b.keys::json)) END,
            string_to_array(b.fingerprints, chr(10), '')::bytea[],
            b.text,
            string_to_array(b.topics, chr(10), ''),
            string_to_array(b.personals, chr(10), ''),
            b.within
        ) AS r
    ORDER BY b.n
"""  # noqa: S608 # written down above
_APPEND_SET: Final = f"""
    SELECT /* append_blocks */
        status, first_sequence, last_sequence, recorded_at, previous_digest, digest, answers, unseen
    FROM append_blocks({_COLUMNS},
            $16
    )
    ORDER BY n
"""  # noqa: S608 # written down above
# A single block costs the server less than an array of one. On a distributed database the whole call goes to the node
# of its tournament: the function is all that is asked, and no argument is a subquery.
_APPEND_ONE: Final = """
    SELECT /* append_block */
        status, first_sequence, last_sequence, recorded_at, previous_digest, digest, answers, unseen
    FROM append_block(
        $1::text::bigint,
        $2::text::uuid,
        $18,
        $3::text::bigint,
        nullif($4::text, '')::bytea,
        $5::text::boolean,
        $6::text::boolean,
        $17,
        string_to_array(nullif($7::text, ''), chr(10))::bigint[],
        $8::text::bigint,
        $16,
        string_to_array(nullif($9::text, ''), chr(10))::int[],
        $10::text[],
        string_to_array(nullif($11::text, ''), chr(10), '')::bytea[],
        $12,
        string_to_array(nullif($13::text, ''), chr(10), ''),
        string_to_array(nullif($14::text, ''), chr(10), ''),
        nullif($15::text, '')::tstzrange
    )
"""
SET_MIN: Final = 4
"""A commit of fewer blocks costs the server less if each is appended by itself."""
_REFUSE_KEYS: Final = "SELECT fingerprint, sequence, refusals FROM refuse_keys($1, $2)"
_REFUSALS: Final = "SELECT refusals FROM append_lock WHERE tournament_id = $1"


class Request(Struct, frozen=True, kw_only=True):
    """The events that one request records: all or none, and once per idempotency key.

    `exact`: it may be appended only at the sequence it was judged at, even if its events do not require that.
    `refusals`: the tournament's number of refusals when the request came in. If its key has been refused since, it is
    not recorded (see `refuse_keys`).
    """

    events: tuple[Event, ...]
    actor: ActorId
    idempotency_key: str | None = None
    fingerprint: bytes | None = None
    exact: bool = False
    refusals: int = 0


def new_salts(count: int) -> Iterator[str]:
    """The salts of `count` commitments (`engine/log/codec.py`), from one call of the system."""
    digits = secrets.token_hex(count * codec.SALT_DIGITS // 2)
    return (digits[at : at + codec.SALT_DIGITS] for at in range(0, len(digits), codec.SALT_DIGITS))


def _new_append_id() -> str:
    return f"{_RANDOM.getrandbits(128):032x}"


_RANDOM: Final = Random()  # noqa: S311 - no secret; `uuid4` asks the system each time, which takes as long as judging
os.register_at_fork(after_in_child=_RANDOM.seed)  # or two processes would draw the same ids


class Block(Struct, frozen=True, kw_only=True):
    """Requests to append to one tournament in one commit.

    All of them were judged against the log up to `judged_at`, where its digest was `judged_digest` (None: it is not
    compared). Only the last may be structural, so no request depends on a change by another one in the block. A request
    that is exact, or whose first event is, has a block of its own. `spans`: the spans of traced requests. `within`: the
    last boundary at which points expire and the next one, at the time of judging; None: no points expire. The block can
    be recorded only from the first up to the second.
    `append_id`, 128 random bits in hexadecimal digits, stays the same when the block is sent again because the answer
    was lost.
    """

    tournament_id: TournamentId
    judged_at: Sequence
    judged_digest: bytes | None
    requests: tuple[Request, ...]
    spans: tuple[RequestSpan, ...] = ()
    within: tuple[datetime, datetime] | None = None
    append_id: str = field(default_factory=_new_append_id)

    @property
    def exact(self) -> bool:
        return self.requests[0].exact or self.requests[0].events[0].exact


class Unseen(Struct, frozen=True):
    """The blocks that landed between where a block was judged and the log's head at the append, as `text`: see `unseen`
    at the function `append_block`. `digest`: what their chain leads to. `unseen_tail` reads it."""

    text: str
    digest: bytes


class Appended(Struct, frozen=True, kw_only=True):
    """What became of each request of a block.

    `answers`: n > 0, recorded, its first event has sequence n; n < 0, a repeat of the request whose first event
    has sequence -n; 0, its key belongs to another request; None, its key has been refused since it was taken. The other
    fields describe the block that was recorded; they are None if no request was. `previous_digest` is None if an
    earlier sending had recorded the block. `unseen`: what landed before it since it was judged; None: nothing, or it
    was not asked for, or it was too much.
    """

    answers: tuple[int | None, ...]
    first_sequence: Sequence | None
    last_sequence: Sequence | None
    recorded_at: datetime | None
    previous_digest: bytes | None
    digest: bytes | None
    unseen: Unseen | None = None


class OvertakenBy(Struct, frozen=True):
    """Nothing of a block was recorded, because of an event in `unseen`, which leads to the head. For an exact block the
    outcome is NotAppended.OVERTAKEN instead."""

    unseen: Unseen


class Passed(Struct, frozen=True):
    """Nothing of a block was recorded, because a boundary at which points expire has passed since it was judged.
    `now`: the time at the append."""

    now: datetime


class NotAppended(StrEnum):
    """Why a block was not recorded."""

    OVERTAKEN = "overtaken"
    """It was judged against another log, too far behind the head, or before an event that it depends on was appended.
    If the answer contains everything appended since, the outcome is an OvertakenBy instead."""
    BUSY = "busy"
    """The tournament's lock is held, and the call did not ask to wait."""
    UNKNOWN = "unknown"
    """There is no such tournament."""


class UnconfirmedCommit(Exception):
    """The server committed, but warned that it did not do so as configured (a standby did not confirm)."""


async def append(
    connection: Connection,
    blocks: Items[Block],
    *,
    wait: bool,
    again: bool = False,
    unseen_bytes: int = 0,
    warnings: list[object] | None = None,
) -> list[Appended | OvertakenBy | Passed | NotAppended]:
    """Appends `blocks`, of different tournaments, in one commit. Returns their outcomes in the same order.

    `wait`: wait for locks that others hold, up to the session's lock_timeout, instead of answering BUSY. With more than
    one block this can deadlock unless the tournaments ascend. `again`: the blocks may have been sent, and appended,
    before. `unseen_bytes`: how many bytes of blocks that landed after the judging the outcome of each block may hold.
    `warnings`: a list in which the caller collects notices on this connection that may be about the commit; if None,
    the call listens for them itself.

    Raises a driver error (nothing was recorded, or, if the connection was lost, the outcome is unknown), ValueError (a
    block cannot be encoded for the wire) and UnconfirmedCommit (everything was recorded, but may be lost).
    """
    if warnings is None:
        with _noted(connection) as noted:
            return await append(connection, blocks, wait=wait, again=again, unseen_bytes=unseen_bytes, warnings=noted)
    warnings.clear()
    outcomes = await _append(connection, blocks, wait=wait, again=again, unseen_bytes=unseen_bytes)
    _refuse_unconfirmed(warnings)
    return outcomes


async def append_exact(
    connection: Connection, block: Block, judge_again: Callable[[Connection], Awaitable[Block | None]], *, again: bool
) -> Appended | OvertakenBy | Passed | NotAppended:
    """Appends one exact block. If it was overtaken, it is judged again under the lock, where nothing can overtake it.

    An append that was overtaken holds the lock until its transaction ends. So `judge_again`, which reads over the same
    connection, sees everything that precedes its block. It returns None if there is nothing to append after all.
    Raises as `append` does, and what `judge_again` raises.
    """
    with _noted(connection) as warnings:
        async with connection.transaction():
            (outcome,) = await _append(connection, [block], wait=True, again=again)
            if outcome is NotAppended.OVERTAKEN and (rejudged := await judge_again(connection)):
                (outcome,) = await _append(connection, [rejudged], wait=True, again=False)
    _refuse_unconfirmed(warnings)
    return outcome


async def _append(
    connection: Connection, blocks: Items[Block], *, wait: bool, again: bool, unseen_bytes: int = 0
) -> list[Appended | OvertakenBy | Passed | NotAppended]:
    failpoints.reached_next(failpoints.Point.APPEND_SENT)
    if len(blocks) == 1:
        rows = await connection.fetch(_APPEND_ONE, *_row(blocks[0]), unseen_bytes, wait, again)
    else:
        columns = map("\x1e".join, zip(*map(_part, blocks), strict=True))
        if len(blocks) < SET_MIN or wait or again or is_distributed(connection):
            rows = await connection.fetch(_APPEND, *columns, unseen_bytes, wait, again)
        else:
            rows = await connection.fetch(_APPEND_SET, *columns, unseen_bytes)
    return [_outcome(block, row) for block, row in zip(blocks, rows, strict=True)]


def _refuse_unconfirmed(warnings: list[object]) -> None:
    if warnings:
        # "canceling wait for synchronous replication", or of Citus: "failed to commit transaction".
        raise UnconfirmedCommit(str(warnings[0]))


@contextmanager
def _noted(connection: Connection) -> Iterator[list[object]]:
    """Collects notices from the server that may be about the commit."""
    warnings: list[object] = []

    def note(_connection: object, warning: object) -> None:
        if casts_doubt(warning):
            warnings.append(warning)

    connection.add_log_listener(note)
    try:
        yield warnings
    finally:
        with suppress(InterfaceError):  # the connection was lost, and is already back in the pool
            connection.remove_log_listener(note)


def recorded_events(block: Block, appended: Appended) -> Iterator[Recorded]:
    """The events of `block` that were recorded, as the log holds them, in its order. Repeats are left out."""
    if appended.recorded_at is None:
        return
    for request, answer in zip(block.requests, appended.answers, strict=True):
        if answer is not None and answer > 0:
            for n, event in enumerate(request.events):
                yield Recorded(
                    Sequence(answer + n), appended.recorded_at, request.actor, request.idempotency_key, event
                )


def _part(block: Block) -> list[str]:
    """The block's part of each column of _APPEND."""
    row = _row(block)
    keys = row[_KEYS]
    row[_KEYS] = "" if keys is None else msgspec.json.encode(keys).decode()
    return row


_KEYS: Final = 9


def _row(block: Block) -> list[Any]:
    """The parameters of _APPEND_ONE for the block: texts, except the idempotency keys at _KEYS, which are a list or
    None."""
    requests = block.requests
    entries: list[codec.LogEntry] = []
    created: list[str] = []
    topics: list[tuple[int, ...]] = []
    structural = keyed = False
    for request in requests:
        key = request.idempotency_key
        if key is not None:
            keyed = True
        for event in request.events:
            entries.append(codec.ENTRIES[type(event)](request.actor, key, event))
            topics.append(codec.topics_of(event))
            if event.structural:  # only the last request may be
                structural = True
            if event.creates:
                created += [str(getattr(event, name)) for name in event.creates]
    counts = fingerprints = personals = ids = ""
    if structural or created:
        ids = "\n".join(created)
        text, personals = _parted(entries)
    else:
        text = codec.lines_of(entries)
    refusals = "0"
    used = None
    if keyed:
        used = [request.idempotency_key for request in requests]
        refusals = str(min([request.refusals for request in requests if request.idempotency_key is not None]))
        counts = "\n".join([str(len(request.events)) for request in requests])
        fingerprints = "\n".join(map(_fingerprint, requests))
    return [
        str(block.tournament_id),
        block.append_id,
        str(block.judged_at),
        "" if block.judged_digest is None else rf"\x{block.judged_digest.hex()}",
        "t" if structural else "f",
        "t" if requests[0].exact or requests[0].events[0].exact else "f",
        ids,
        refusals,
        counts,
        used,
        fingerprints,
        text,
        "\n".join([" ".join(map(str, each)) for each in topics]) if any(topics) else "",
        personals,
        "" if block.within is None else _range(*block.within),
    ]


def _parted(entries: list[codec.LogEntry]) -> tuple[str, str]:
    """The lines of the events, and the lines of their personal fields; empty: none has any."""
    if not any(entry.event.personal for entry in entries):
        return codec.lines_of(entries), ""
    text, parted = codec.parted_lines(entries, new_salts(len(entries)))
    return text, "\n".join(parted) if any(parted) else ""


def _range(first: datetime, end: datetime) -> str:
    return f'["{first.isoformat()}","{end.isoformat()}")'


def _fingerprint(request: Request) -> str:
    return "" if request.fingerprint is None else rf"\x{request.fingerprint.hex()}"


def _outcome(block: Block, row: Any) -> Appended | OvertakenBy | Passed | NotAppended:
    status, first_sequence, last_sequence, recorded_at, previous_digest, digest, answers, text = row
    unseen = None if text is None else Unseen(text, previous_digest)
    if status != "appended":
        if status == "passed":
            return Passed(recorded_at)
        return NotAppended(status) if unseen is None else OvertakenBy(unseen)
    return Appended(
        answers=_consecutive(block, first_sequence) if answers is None else tuple(answers),
        first_sequence=first_sequence,
        last_sequence=last_sequence,
        recorded_at=recorded_at,
        previous_digest=previous_digest,
        digest=digest,
        unseen=unseen,
    )


def _consecutive(block: Block, first_sequence: Sequence) -> tuple[int | None, ...]:
    """The first sequence of each request, when all were appended."""
    counts = [len(request.events) for request in block.requests]
    return tuple(accumulate(counts[:-1], initial=first_sequence))


def is_repeat(fingerprint: bytes | None, used: bytes) -> bool:
    """Whether a request with this fingerprint can be the one that used its key with the other one. If only the
    operation is left of that, `may_have_made` compares what is left of the events."""
    return fingerprint is not None and used in (fingerprint, fingerprint[:OPERATION_BYTES])


class KeyUse(Struct, frozen=True):
    """The request that used an idempotency key: its fingerprint, and the sequence of its first event."""

    fingerprint: bytes
    sequence: Sequence


class KeyOutcome(Struct, frozen=True):
    """The outcome of refusing a key. `used`: the request that has used the key, so that it is not refused. `refusals`:
    the number of refusals in the tournament, including this one."""

    used: KeyUse | None
    refusals: int


async def refuse_keys(
    connection: Connection, tournament_id: TournamentId, idempotency_keys: Items[str]
) -> list[KeyOutcome]:
    """Refuses those keys that no request has used: requests sent with them before are never recorded.

    Returns the outcome of each key, in their order. Waits for the tournament's lock, up to the session's lock_timeout.
    Raises driver errors, and UnconfirmedCommit: the refusals may not last.
    """
    with _noted(connection) as warnings:
        rows = await connection.fetch(_REFUSE_KEYS, tournament_id, idempotency_keys)
    _refuse_unconfirmed(warnings)
    return [
        KeyOutcome(None if sequence is None else KeyUse(fingerprint, sequence), refusals)
        for fingerprint, sequence, refusals in rows
    ]


async def refusals(connection: Connection, tournament_id: TournamentId) -> int:
    """The number of refusals in the tournament; 0 if it does not exist."""
    return int(await connection.fetchval(_REFUSALS, tournament_id) or 0)
