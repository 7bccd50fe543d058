"""The docket of a tournament: its cases in order of arrival, how they are judged, and how they are settled.

Every command is judged against a committed state: the live tournament at the moment its block leaves. Only the last
command of a block may be structural. So no command depends on the changes of another one in its block, and nothing has
to be undone when a block is not appended. A docket has one block under way at a time. The next one is judged after that
block was folded.

Acceptance is optimistic: the state may lag behind what another process has appended. If a structural event lies in
between, the append refuses the block, and its cases are judged again. The log cannot check a *refusal* that way. So a
refusal counts only if a state that was current after the command came in (the read barrier) confirms it. A refusal with
an idempotency key also counts only if the log does not know the key: a command that was accepted earlier gets its
earlier answer.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from collections.abc import Sequence as Items
from datetime import datetime
from time import monotonic
from typing import Final, TypeVar, assert_never

from asyncpg import Connection
from msgspec import Struct

from api.desk.case import Case, Key, Receipt
from api.desk.evidence import LookUp, PointsDue
from api.desk.remembered import Ids, Refusals
from engine.database.pool import Database
from engine.domain.commands import ExpirePoints
from engine.domain.errors import (
    Conflict,
    DatabaseUnavailable,
    HistoryReplaced,
    IdTaken,
    KeyRefused,
    KeyReused,
    LogForked,
    OutcomeUnknown,
    Overtaken,
    QueueFull,
    Refusal,
    Rejected,
    TallybookError,
    Unavailable,
)
from engine.domain.events import Recorded, lines_of
from engine.domain.rejudging import may_have_made
from engine.domain.terms import OPERATOR, Sequence
from engine.log import appending, heads, reading
from engine.log.appender import Appender, Outcome, batch_size
from engine.log.appending import (
    Appended,
    Block,
    KeyOutcome,
    NotAppended,
    OvertakenBy,
    Passed,
    Request,
    UnconfirmedCommit,
)
from engine.log.heads import Head
from engine.process import tracing
from engine.process.pace import WAITED_SECONDS_MAX, QueuePace
from engine.process.time_slices import WOKEN_AT_ONCE
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.tables.defects import is_defect
from projections.tables.wakeup import Waker

BLOCK_REQUESTS_MAX: Final = 512
BLOCK_LINES_MAX: Final = 20_000
"""A block with more deltas and participants takes no further request: PostgreSQL needs some microseconds for each, and
other tournaments wait for the same commit."""
JUDGED_MAX: Final = 100
"""How often a command is judged before it fails as overtaken. If another process changes the structure without a pause,
this takes some tenths of a second."""

READ_AGAIN_SECONDS: Final = 0.1
_T = TypeVar("_T")


class Means(Struct, frozen=True, kw_only=True):
    """The services and tasks that a docket uses."""

    database: Database
    live_pool: LivePool
    appender: Appender
    waker: Waker
    tasks: asyncio.TaskGroup
    ids: Ids
    refusals: Refusals


class Docket:
    """An `appender.Source`. It keeps its live pinned until it is `idle`. Then it calls `retire`, and takes no more
    cases."""

    def __init__(self, means: Means, live: LiveTournament, *, retire: Callable[["Docket"], None]) -> None:
        self.tournament_id = live.tournament_id
        self.live = live
        self.idle = False
        self._means = means
        self._retire = retire
        self._waiting: deque[Case] = deque()
        self._under_way: list[Case] = []
        self._busy = False  # it is ready, or its block is under way or being folded
        self._sent_last = 0  # cases
        self._sent_at = 0.0
        self._was_full = False  # whether the last block was full, and left cases waiting
        self._pace = QueuePace()
        self._answering: list[Items[tuple[Case, int | None]]] = []  # blocks that are answered over several rounds
        self._background = 0  # cases in background work
        self._refused: list[tuple[Case, Key, Refusal]] = []  # to be entered in the log
        self._refusing: asyncio.Lock | None = None
        self._expiry: Case | None = None
        live.pins += 1

    def expected_seconds(self) -> float:
        """How long a new case is expected to wait: the cases before it at the pace of the last blocks. If the first of
        them has waited too long already, nothing moves, and its waiting time counts."""
        waiting = len(self._waiting)
        expected = waiting * self._pace.seconds_each
        if waiting > BLOCK_REQUESTS_MAX:
            has_waited = monotonic() - self._waiting[0].taken_at
            if has_waited > WAITED_SECONDS_MAX:
                return max(expected, has_waited)
        return expected

    def put(self, case: Case) -> None:
        self._waiting.append(case)
        if not self._busy:
            self._fetch_next()

    def put_when_looked_up(self, case: Case) -> None:
        """As `put`, once what the case lacks is looked up."""
        if (look_up := case.lacks()) is None:
            self.put(case)
        else:
            self._in_background(self._look_up(case, look_up, self.put), [case])

    def _fetch_next(self) -> None:
        """Asks for the next block to be fetched if a case waits; called after every arrival and every completion."""
        if self._busy:
            return
        if self._waiting:
            self._busy = True
            self._means.appender.ready(self)
        elif not self._background:
            self.idle = True
            self._means.live_pool.unpin(self.live)
            self._retire(self)

    def _be_free(self) -> None:
        """Nothing is under way any more: the next block may leave."""
        self._busy = False
        self._fetch_next()

    # ── Points that expire ──────────────────────────────────────────────────────────────────────────────

    async def expire_points(self, now: datetime) -> None:
        """Expires the points due by `now`, or waits for an expiry that is under way. Raises the error with which a
        command fails."""
        if self._expiry is None or self._expiry.receipt.done():
            due = PointsDue(self.live, self._last_boundary(now))
            self._expiry = self._expiring(due)
            self._in_background(self._look_up(self._expiry, due.look_up, self._waiting.appendleft), [self._expiry])
        await asyncio.shield(self._expiry.receipt)

    def _expiring(self, due: PointsDue) -> Case:
        """A case that expires these points. It takes as long as it takes; who waits for it does not."""
        receipt: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        receipt.add_done_callback(self._expiry_settled)
        return Case(
            command=ExpirePoints(),
            actor=OPERATOR,
            receipt=receipt,
            taken_at=monotonic(),
            until=math.inf,
            evidence=due,
            alone=True,
        )

    def _last_boundary(self, now: datetime) -> datetime:
        """The last boundary up to `now`."""
        last, until = self.live.boundaries
        return until + (now - until) // (until - last) * (until - last)

    def _expiry_settled(self, receipt: "asyncio.Future[Receipt]") -> None:
        self._expiry = None
        if not receipt.cancelled():
            receipt.exception()  # retrieved: perhaps nobody waits for it

    async def _pass(self, taken: Items[Case], now: datetime) -> None:
        """Puts cases that were judged before a boundary back in front, behind the expiry at that boundary."""
        if now < self.live.boundaries[0]:
            self.live.forget_checked()  # the clock was put back
        # An expiry that took longer than to the next boundary reads only what is due since.
        before = taken[0].evidence if isinstance(taken[0].evidence, PointsDue) else None
        due = PointsDue(self.live, self._last_boundary(now), before)
        if before is None:
            expiry, others = self._expiring(due), taken
        else:
            expiry, others = taken[0], []
            expiry.evidence = due
        try:
            await due.look_up(self._means.live_pool)
        except Exception as error:  # noqa: BLE001 - none of them is in the log
            _fail([expiry, *others], self._defective(error))
        else:
            self._waiting.extendleft(reversed(others))
            self._waiting.appendleft(expiry)
        self._be_free()

    # ── Judging ─────────────────────────────────────────────────────────────────────────────────────────

    def next_block(self) -> Block | None:
        """A batch of the waiting cases, judged, up to the first structural one. None: none was accepted."""
        taken: list[Case] = []
        try:
            return self._next_block(taken)
        except Exception as error:  # noqa: BLE001 - the caller appends for all tournaments
            for case in taken:
                case.sent = False
            _fail(taken, self._defective(error))
            self._be_free()
            return None

    def _next_block(self, taken: list[Case]) -> Block | None:
        """Like `next_block`; adds the cases that it takes to `taken`."""
        now = monotonic()
        waiting = self._waiting
        if self._was_full:
            self._pace.took(now - self._sent_at, self._sent_last)
            self._was_full = False
        count = min(BLOCK_REQUESTS_MAX, batch_size(len(waiting), self._sent_last))
        lines = 0
        while waiting and len(taken) < count and lines < BLOCK_LINES_MAX:
            if waiting[0].alone and taken:
                break
            case = waiting.popleft()
            if case.withdrawn:
                case.let_go()
                continue
            if (
                now - case.taken_at > WAITED_SECONDS_MAX
                and len(waiting) > BLOCK_REQUESTS_MAX
                and not case.judged
                and case.until != math.inf  # or else all others would go on waiting for points to expire
            ):
                case.fail(QueueFull(now - case.taken_at))
                continue
            try:
                if not self._judge(case):
                    continue
            except Exception as error:  # noqa: BLE001 - a defect of this tournament alone
                case.fail(self._defective(error))
                continue
            taken.append(case)
            if case.alone:
                self._leave_alone(taken)
                break
            *others, last = case.events
            lines += sum(map(lines_of, case.events))
            if last.structural or (others and any(event.structural for event in others)):
                break
        if not taken:
            self._be_free()
            return None
        block = self._block(taken, self.live.head)
        self._under_way = taken
        self._sent_last = len(taken)
        self._sent_at = now
        self._was_full = bool(waiting) and (len(taken) == BLOCK_REQUESTS_MAX or len(taken) < count)
        if not self._was_full:
            self._pace.forget()
        return block

    def _block(self, cases: Items[Case], judged_at: Head) -> Block:
        known_at = self._means.refusals.known_at
        return Block(
            tournament_id=self.tournament_id,
            judged_at=judged_at.sequence,
            judged_digest=judged_at.digest,
            requests=tuple(
                [
                    Request(
                        events=case.events,
                        actor=case.actor,
                        idempotency_key=case.key.text,
                        fingerprint=case.key.fingerprint,
                        exact=case.exact,
                        refusals=known_at(case.key.refusals),
                    )
                    if case.key is not None
                    else Request(events=case.events, actor=case.actor, exact=case.exact)
                    for case in cases
                ]
            ),
            spans=() if tracing.spans is None else tuple([case.span for case in cases if case.span is not None]),
            within=self._within(cases[0]) if self.live.expires else None,
        )

    def _within(self, first: Case) -> tuple[datetime, datetime]:
        """The two boundaries between which a block with this case may be recorded."""
        return self.live.boundaries if first.evidence is None else first.evidence.within

    def _judge(self, case: Case) -> bool:
        """Whether the present state accepts the case. A refusal is confirmed in the background."""
        case.judged += 1
        if self.live.dropped:
            case.fail(HistoryReplaced())
            return False
        if case.judged > JUDGED_MAX:
            case.fail(Overtaken())
            return False
        try:
            if (look_up := case.judge(self.live)) is not None:
                self._in_background(self._look_up(case, look_up, self._waiting.appendleft), [case])
                return False
        except Refusal:
            self._in_background(self._confirm_refusal(case), [case])
            return False
        except IdTaken as error:
            self._fail_taken(case, error)
            return False
        case.sent = True
        return True

    def _leave_alone(self, taken: list[Case]) -> None:
        """Lets the last of the judged cases leave alone. One that judging has made exact is judged again, after the
        others; and one for which nothing is due is settled."""
        case = taken[-1]
        if len(taken) == 1 and case.events:
            return
        taken.pop()
        case.sent = False
        if taken:
            self._waiting.appendleft(case)
            return
        if isinstance(case.evidence, PointsDue):
            self.live.nothing_due(case.evidence.until)
        case.succeed(Receipt((), self.live.head.sequence, replayed=False), monotonic())

    async def _look_up(self, case: Case, look_up: LookUp, put: Callable[[Case], None]) -> None:
        """Looks up what the case lacks, then lets it wait to be judged."""
        try:
            await look_up(self._means.live_pool)
        except Exception as error:  # noqa: BLE001 - a client waits for this task
            case.fail(self._defective(error))
            return
        if case.evidence is not None and case.evidence.exact:
            case.exact = case.alone = True
        put(case)

    async def _confirm_refusal(self, case: Case) -> None:
        """Judges the case again, by a current state. If it is accepted after all, it waits for the next block."""
        try:
            await self._means.live_pool.make_current(self.live)
        except Exception as error:  # noqa: BLE001 - a client waits for this task
            case.fail(self._defective(error))
            return
        try:
            case.judge(self.live)  # what it lacks is looked up when it is judged for the next block
        except Refusal as refusal:
            await self._refuse(case, refusal)
        except IdTaken as error:
            self._fail_taken(case, error)
        except Exception as error:  # noqa: BLE001 - a defect of this tournament alone
            case.fail(self._defective(error))
        else:
            self._waiting.appendleft(case)

    def _fail_taken(self, case: Case, error: IdTaken) -> None:
        """Fails the case: the database has given out its id twice. The other ids drawn may be taken, too."""
        self._means.ids.forget()
        case.fail(error)

    async def _refuse(self, case: Case, refusal: Refusal) -> None:
        """Refuses, unless the log knows the key. Cases that gather while others are being refused are refused
        together."""
        if case.key is None:
            case.fail(refusal)
            return
        self._refused.append((case, case.key, refusal))
        self._refusing = self._refusing or asyncio.Lock()
        async with self._refusing:
            refused, self._refused = self._refused, []
            if refused:  # otherwise, the previous round included the case
                await self._refuse_keyed(refused)

    async def _refuse_keyed(self, refused: list[tuple[Case, Key, Refusal]]) -> None:
        cases, keys = [case for case, _, _ in refused], [key.text for _, key, _ in refused]

        async def refuse() -> list[KeyOutcome]:
            async with self._means.database.connection_for(self.tournament_id) as connection:
                epoch = self._means.database.epoch.number
                answers = await appending.refuse_keys(connection, self.tournament_id, keys)
                self._means.refusals.learn(self.tournament_id, answers[-1].refusals, epoch=epoch)
                return answers

        try:
            answers = await _patiently(cases, refuse)
        except (TallybookError, UnconfirmedCommit):
            _fail(cases, OutcomeUnknown())  # of an earlier sending, if there was one
            return
        except Exception as error:  # noqa: BLE001 - clients wait for this task
            self._defective(error)
            _fail(cases, OutcomeUnknown())
            return
        for (case, key, refusal), answer in zip(refused, answers, strict=True):
            if answer.used is None:
                case.fail(refusal)
            elif appending.is_repeat(key.fingerprint, answer.used.fingerprint):
                self._in_background(self._replay(case, answer.used.sequence), [case])
            else:
                case.fail(KeyReused())

    async def _tell_refused(self, case: Case) -> None:
        """Fails a case that was not recorded because its key has been refused since it was taken."""
        try:
            async with self._means.database.connection_for(self.tournament_id) as connection:
                epoch = self._means.database.epoch.number
                count = await appending.refusals(connection, self.tournament_id)
                self._means.refusals.learn(self.tournament_id, count, epoch=epoch)
        except DatabaseUnavailable as error:
            case.fail(error)
        else:
            case.fail(KeyRefused())

    async def _replay(self, case: Case, sequence: Sequence) -> None:
        """Answers with the events of the request that used the key first, when the live shows them."""
        key = "" if case.key is None else case.key.text

        async def read() -> list[Recorded]:
            async with self._means.database.connection_for(self.tournament_id) as connection:
                recorded = await reading.request_at(connection, self.tournament_id, sequence, key)
            await self._means.live_pool.make_current(self.live)  # also: the log that was read is that of the live
            return recorded

        try:
            recorded = await _patiently([case], read)
        except TallybookError:
            case.fail(OutcomeUnknown())  # an earlier sending was applied: a 503 would deny that
        else:
            set_aside = [one.sequence for one in recorded if one.is_ignored]
            if set_aside:
                case.fail(Conflict(f"This was recorded as event {set_aside[0]}, which the operator has set aside."))
            elif not may_have_made(case.command, [one.event for one in recorded]):
                case.fail(KeyReused())
            else:
                case.succeed(Receipt(tuple([one.event for one in recorded]), sequence, replayed=True), monotonic())

    async def judged_under_lock(self, connection: Connection) -> Block | None:
        (case,) = self._under_way
        if self.live.dropped:
            return None
        try:
            head = (await heads.current(connection, [self.tournament_id]))[self.tournament_id]
            await self._means.live_pool.catch_up(self.live, head, connection)
            if self.live.head != head:
                return None  # the live has another history, and may be beyond the end of this one
            if case.judge(self.live) is not None or not case.events:
                return None
        except Exception as error:
            if not isinstance(error, TallybookError) and not is_defect(error):
                raise  # of the connection
            return None  # it stays overtaken, so it is judged again, which meets and reports the error again
        return self._block([case], head)

    # ── Settling ────────────────────────────────────────────────────────────────────────────────────────

    def settled(self, block: Block, outcome: Outcome) -> None:
        """Receives the outcome of the pending block; the next one may leave when the live shows it."""
        taken, self._under_way = self._under_way, []
        try:
            self._settle(taken, block, outcome)
        except Exception as error:  # noqa: BLE001 - the caller appends for all tournaments
            self._defective(error)
            self._means.live_pool.drop(self.live)
            _fail(taken, OutcomeUnknown())
            self._be_free()

    def _settle(self, taken: list[Case], block: Block, outcome: Outcome) -> None:
        match outcome:
            case Appended():
                self._means.waker.appended(self.tournament_id)
                self._fold(taken, block, outcome)
                return
            case OvertakenBy() | NotAppended.OVERTAKEN:
                for case in taken:
                    case.sent = False
                if not self._fold_overtaking(block, outcome):
                    self._in_background(self._put_back(taken), taken)
                    return
                self._waiting.extendleft(reversed(taken))
            case Passed():
                for case in taken:
                    case.sent = False
                self._in_background(self._pass(taken, outcome.now), taken)
                return
            case NotAppended.BUSY | NotAppended.UNKNOWN:
                self._in_background(self._fail_unknown(taken), taken)
                return
            case Rejected() if len(taken) > 1:
                # One of them is bad. With a block for each, it does not hold up the others.
                for case in taken:
                    case.alone = True
                self._waiting.extendleft(reversed(taken))
            case Unavailable() | OutcomeUnknown():
                if isinstance(outcome.__cause__, Exception):
                    self._defective(outcome.__cause__)  # reports a defect to operators
                _fail(taken, outcome)
            case _:
                assert_never(outcome)
        self._be_free()

    async def _fail_unknown(self, taken: list[Case]) -> None:
        """Fails cases of a tournament that the log does not have: it was deleted, or an older log was restored."""
        error: Exception = HistoryReplaced()
        try:
            await self._means.live_pool.refuse_deleted(self.live)
        except Exception as reason:  # noqa: BLE001 - none of them is in the log
            error = self._defective(reason)
        self._means.live_pool.drop(self.live)
        _fail(taken, error)
        self._be_free()

    async def _put_back(self, taken: list[Case]) -> None:
        """Puts overtaken cases back in front, once the live shows the events that overtook them. Until then the docket
        stays busy: waiting cases would be overtaken, too."""
        try:
            await self._means.live_pool.make_current(self.live)
        except Exception as error:  # noqa: BLE001 - none of them is in the log
            _fail(taken, self._defective(error))
        else:
            self._waiting.extendleft(reversed(taken))
        self._be_free()

    def _fold_overtaking(self, block: Block, outcome: OvertakenBy | NotAppended) -> bool:
        """Whether the live shows the events that overtook the block, because the append returned them."""
        try:
            return isinstance(outcome, OvertakenBy) and self._means.live_pool.fold_unseen(
                self.live, block, outcome.unseen
            )
        except TallybookError:
            return False  # reading the log meets the error again, and reports it

    def _fold(self, taken: list[Case], block: Block, appended: Appended) -> None:
        """Makes the live show the block: at once, or after reading what others appended before it."""
        try:
            folded = self._means.live_pool.fold_appended(self.live, block, appended)
        except TallybookError:
            _fail(taken, OutcomeUnknown())  # it is in the log, but there is no valid state to answer from
            folded = True
        if folded:
            self._answer(taken, appended)
        else:
            self._in_background(self._fold_after_others(taken, appended), taken)

    async def _fold_after_others(self, taken: list[Case], appended: Appended) -> None:
        async def read() -> None:
            await self._means.live_pool.make_current(self.live)
            if appended.last_sequence is None or appended.digest is None:
                return
            landed = Head(appended.last_sequence, appended.digest)
            async with self._means.database.connection_for(self.tournament_id) as connection:
                if not await heads.has(connection, self.tournament_id, landed):  # it was replaced since
                    raise LogForked(self.tournament_id, landed.sequence)

        try:
            await _patiently(taken, read)
            self._answer(taken, appended)
        except Exception as error:  # noqa: BLE001 - it is in the log
            self._defective(error)
            _fail(taken, OutcomeUnknown())
            self._be_free()

    def _answer(self, taken: list[Case], appended: Appended) -> None:
        """Answers the appended cases, and lets the next block leave; if answers of the block before are outstanding,
        after those. So answers do not pile up when a tournament appends faster than it answers."""
        answers = list(zip(taken, appended.answers, strict=True))
        if self._answering:
            self._answering.append(answers)
            return
        if len(answers) > WOKEN_AT_ONCE:
            self._answering.append(answers)
            self._in_background(self._answer_in_rounds(), taken)
        else:
            self._tell(answers)
        self._be_free()

    async def _answer_in_rounds(self) -> None:
        try:
            while True:
                answers, start = self._answering[0], 0
                while start < len(answers):
                    count = await self._means.live_pool.rounds.leave()
                    self._tell(answers[start : start + count])
                    start += count
                self._answering.pop(0)
                if not self._answering:
                    return
                self._be_free()
        except Exception as error:  # noqa: BLE001 - they wait for this task, and so does the next block
            self._defective(error)
            left, self._answering = self._answering, []
            for answers in left:
                _fail([case for case, _ in answers], OutcomeUnknown())
            if len(left) > 1:
                self._be_free()

    def _tell(self, answers: Items[tuple[Case, int | None]]) -> None:
        now = monotonic()  # kept, because it is needed for each block, and a block may be one command
        for case, answer in answers:
            if answer is None:
                self._in_background(self._tell_refused(case), [case])
            elif answer > 0:
                case.succeed(Receipt(case.events, Sequence(answer), replayed=False), now)
            elif answer < 0:
                self._in_background(self._replay(case, Sequence(-answer)), [case])
            else:
                case.fail(KeyReused())

    def _in_background(self, work: Coroutine[None, None, None], cases: Items[Case]) -> None:
        """Does `work` on `cases` while others are judged. The docket is not idle before it is done."""

        async def do() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 - they wait for this task
                self._defective(error)
                _fail(cases, OutcomeUnknown())
            finally:
                self._background -= 1
                self._fetch_next()

        self._background += 1
        self._means.tasks.create_task(do())

    def _defective(self, error: Exception) -> Exception:
        """The error to fail a case with: another one than `error` if that is a defect."""
        return self._means.live_pool.defective(self.live, error)


async def _patiently(cases: Iterable[Case], read: Callable[[], Awaitable[_T]]) -> _T:
    """Returns what `read` returns, to answer `cases` that may be in the log.

    While the database is unavailable, `read` is tried again for as long as a client waits: until then the outcome is
    unknown.
    """
    while True:
        try:
            return await read()
        except DatabaseUnavailable:
            if all(case.receipt.done() for case in cases):
                raise
        await asyncio.sleep(READ_AGAIN_SECONDS)


def _fail(cases: Iterable[Case], error: Exception) -> None:
    for case in cases:
        case.fail(error)
