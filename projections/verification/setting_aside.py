"""Setting aside: the one way past an event that cannot be folded, for the operator of a tournament that has stopped.

The stored log is checked from its beginning to its head, and folded by the same code as everywhere. Only the first
event that cannot be folded may be set aside. An event is appended that names it and the digest of its block, and only
to the very log that was checked. From then on the event that it names has no effect, at any moment and for any reader.
"""

from collections.abc import Callable
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final

from asyncpg import Connection
from msgspec import Struct, field

from engine.database.pool import Database
from engine.domain.errors import Conflict, LogDisproved, NotFound, OutcomeUnknown
from engine.domain.events import Event, EventSetAside, Ignored, Recorded
from engine.domain.terms import OPERATOR, ActorId, Sequence, TournamentId
from engine.log import appending, codec, digest, heads
from engine.log.appending import Appended, Block, Request, UnconfirmedCommit
from engine.log.heads import Head
from engine.log.rows import ASIDE
from projections.board.board import Board, Revisions, fold
from projections.tables import tables
from projections.verification import stored_log
from projections.verification.proof import is_whole
from projections.verification.stored_log import StoredEvent

SET_ASIDE_ATTEMPTS_MAX: Final = 3
"""How often the log is checked again because of appends during the check."""


class Unfoldable(Struct, frozen=True):
    """An event that cannot be folded, as it is stored, and why."""

    event: StoredEvent
    reason: str


class Findings(Struct):
    """What was found in a log whose chain holds up to `head`. `first` is the first event that cannot be folded,
    `second` the first that cannot once that is set aside. `count`: how many there are."""

    head: Head
    first: Unfoldable | None = None
    second: Unfoldable | None = None
    count: int = 0


async def find_unfoldable(
    database: Database, tournament_id: TournamentId, *, progress: Callable[[Sequence], None] = lambda _: None
) -> Findings:
    """Checks and folds the whole log of a tournament, in one snapshot; calls `progress` with the sequence reached.

    Raises LogDisproved if the chain does not hold, NotFound if there is no such tournament, and DatabaseUnavailable.
    """
    async with database.connection() as connection, stored_log.one_moment(connection):
        if not await stored_log.registered_tournaments(connection, tournament_id):
            raise NotFound(f"There is no tournament {tournament_id}.")
        asides = await connection.fetch(ASIDE, tournament_id, timeout=stored_log.LOOK_SECONDS_MAX)
        folding = _Folding(heads.beginning(tournament_id), frozenset(row["sequence"] for row in asides))
        while blocks := await stored_log.blocks(connection, tournament_id, folding.head.sequence):
            for block in blocks:
                folding.take(block)
            progress(folding.head.sequence)
        found = Findings(folding.head, count=len(folding.faults))
        for sequence, reason in list(folding.faults.items())[:2]:
            event = await stored_log.stored_event(connection, tournament_id, sequence)
            assert event is not None
            if found.first is None:
                found.first = Unfoldable(event, reason)
            else:
                found.second = Unfoldable(event, reason)
    return found


class _Folding(Struct):
    """A log while it is folded. `faults`: why each event could not be folded, once those before it are set aside."""

    head: Head
    ignored: frozenset[Sequence]
    board: Board = field(default_factory=Board)
    revisions: Revisions = field(default_factory=Revisions)
    faults: dict[Sequence, str] = field(default_factory=dict)

    def take(self, block: stored_log.StoredBlock) -> None:
        content = block.content()
        if block.text is None or content is None or not is_whole(block, self.head.sequence):
            raise LogDisproved(f"The log has a gap at sequence {self.head.sequence + 1}; run `tallybook verify`.")
        if digest.chain(self.head.digest, block.text) != block.digest:
            raise LogDisproved(
                f"The digest of the block from {block.first_sequence} to {block.last_sequence} is not that of its "
                "events; run `tallybook verify`."
            )
        recorded_at = digest.moment(content.recorded_us)
        stored = zip(content.parts, block.texts(content), strict=True)
        for sequence, (parts, text) in enumerate(stored, content.first_sequence):
            try:
                event: Event = Ignored() if sequence in self.ignored else codec.decode(parts.kind, text)
                fold(self.board, self.revisions, Recorded(Sequence(sequence), recorded_at, OPERATOR, None, event))
            except codec.Undecodable as error:
                self.faults[Sequence(sequence)] = str(error)
            except LookupError as error:
                self.faults[Sequence(sequence)] = f"it names {error}, which does not exist"
            except Exception as error:  # noqa: BLE001 - nobody can fold it
                self.faults[Sequence(sequence)] = f"folding it fails: {error!r}"
        self.head = Head(block.last_sequence, block.digest)


async def set_aside(
    database: Database,
    tournament_id: TournamentId,
    sequence: Sequence,
    *,
    dry_run: bool = False,
    progress: Callable[[Sequence], None] = lambda _: None,
) -> Findings:
    """Sets aside the event `sequence`, and returns what `find_unfoldable` found before; with `dry_run` that is all.

    Raises Conflict unless it is the first event that cannot be folded, and if tables stand at it or beyond, or somebody
    appends all the time; OutcomeUnknown if the commit was not confirmed; and as `find_unfoldable`.
    """
    for _ in range(SET_ASIDE_ATTEMPTS_MAX):
        found = await find_unfoldable(database, tournament_id, progress=progress)
        async with database.connection() as connection:
            event = await _allowed(connection, tournament_id, sequence, found)
            if dry_run:
                return found
            block = Block(
                tournament_id=tournament_id,
                judged_at=found.head.sequence,
                judged_digest=found.head.digest,
                requests=(Request(events=(event,), actor=OPERATOR),),
            )
            try:
                (outcome,) = await appending.append(connection, [block], wait=True)
            except UnconfirmedCommit as error:
                raise OutcomeUnknown from error
        if isinstance(outcome, Appended):
            return found
    raise Conflict("Others kept appending to this tournament; try again.")


async def _allowed(
    connection: Connection, tournament_id: TournamentId, sequence: Sequence, found: Findings
) -> EventSetAside:
    first = found.first
    if first is None:
        raise Conflict(
            f"Every event up to the head, {found.head.sequence}, can be folded; there is nothing to set aside."
        )
    if first.event.sequence != sequence:
        raise Conflict(
            f"The first event that cannot be folded is {first.event.sequence} ({first.reason}); set that one aside."
        )
    checkpoint = await tables.checkpoint(connection, tournament_id)
    if checkpoint is not None and checkpoint.head.sequence >= sequence:
        raise Conflict(
            f"The tables stand at event {checkpoint.head.sequence}: a newer version of Tallybook could fold event "
            f"{sequence}. Run that version instead."
        )
    return EventSetAside(sequence=sequence, digest=first.event.digest.hex())


# ── What was set aside ──────────────────────────────────────────────────────────────────────────────────

_SET_ASIDES: Final = """
    SELECT
        t.tournament_id, t.sequence, b.recorded_at,
        split_part(b.text, chr(10), (t.sequence - b.first_sequence + 1)::int) AS line
    FROM topic AS t
    CROSS JOIN LATERAL (
        SELECT first_sequence, recorded_at, text
        FROM block
        WHERE tournament_id = t.tournament_id AND last_sequence >= t.sequence
        ORDER BY last_sequence
        LIMIT 1
    ) AS b
    WHERE t.tournament_id = ANY($1::bigint[]) AND t.topic = -1
    ORDER BY t.tournament_id, t.sequence
"""


class SetAside(Struct, frozen=True):
    """An event that was set aside. `by`, `at` and `actor`: sequence, time and sender of the event that names it.
    `fault`: why it was not set aside, although that event names it."""

    by: Sequence
    at: datetime
    actor: ActorId
    sequence: Sequence | None
    kind: str | None
    fault: str | None = None


async def set_asides(connection: Connection, tournament_ids: Items[TournamentId]) -> dict[TournamentId, list[SetAside]]:
    """The effect of every EventSetAside of the logs, in their order, judged from the events themselves."""
    found_in: dict[TournamentId, list[SetAside]] = {}
    rows = await connection.fetch(_SET_ASIDES, tournament_ids, timeout=stored_log.LOOK_SECONDS_MAX)
    for tournament_id, by, at, line in rows:
        found = found_in.setdefault(tournament_id, [])
        actor = codec.any_parts_of(line).actor
        try:
            event = codec.entry_of(line).event
        except codec.Undecodable as error:
            found.append(SetAside(by, at, actor, None, None, f"cannot be decoded: {error}"))
            continue
        if not isinstance(event, EventSetAside):
            continue  # its topic is wrong, which verification finds
        named = await stored_log.stored_event(connection, tournament_id, event.sequence)
        earlier = [other for other in found if other.sequence == event.sequence and other.fault is None]
        fault = None
        if event.sequence >= by or named is None:
            fault = f"names event {event.sequence}, which is not before it"
        elif named.digest.hex() != event.digest:
            fault = f"names event {event.sequence} by a digest that is not that of its block"
        elif earlier:
            fault = f"names event {event.sequence}, which event {earlier[0].by} has set aside"
        elif codec.line_of(event, actor) != line:
            fault = f"names event {event.sequence} in a form that the service does not write"
        found.append(SetAside(by, at, actor, event.sequence, None if named is None else named.kind, fault))
    return found_in
