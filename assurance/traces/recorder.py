"""Records what an API process or a worker does, from within it; `assurance.traces` says what the lines mean.

It wraps docket, barrier, listener and worker where they begin and end each part of their work; the failpoints of an
append lie between JUDGED and COMMITTED, those of a fold between CLAIMED and SAVED. The product has nothing of it. A
line is in the file before the process goes on, so a process that is killed leaves what it did until then.
"""

import os
import time
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
from asyncpg import Connection

from api.desk.case import Case, Receipt
from api.desk.docket import Docket
from api.http.reply import Reply
from api.http.router import IncomingRequest
from api.interface.handlers import Handlers
from api.stream.followers import Pieces, Streams
from api.stream.listeners import Listener
from assurance.model.state import Kind
from assurance.traces.lines import Did, Line, Said
from engine.database.pool import Epoch
from engine.domain.commands import AddPoints, CloseRanking, ReopenRanking, VoidCompetition
from engine.domain.errors import OutcomeUnknown, Refusal
from engine.domain.terms import TournamentId
from engine.log import appending, tails
from engine.log.appender import Outcome, _Sending, _SendingFailed
from engine.log.appending import Appended, Block, KeyOutcome
from engine.log.heads import Head
from projections.live.pool import LivePool
from projections.live.tournament import LiveTournament
from projections.tables.worker import Worker

PLACE = "TRACES_OF_TESTS"
"""The variable that has a process record; a folder, and which process of the model it is: `/tmp/traces/1`."""
KINDS = {
    AddPoints: Kind.POINTS,
    CloseRanking: Kind.CLOSE,
    ReopenRanking: Kind.REOPEN,
    VoidCompetition: Kind.VOID,
}


_opens: ContextVar[bool] = ContextVar("opens", default=False)
"""Whether a stream is being opened, which reads as a list does."""
_live: ContextVar[LiveTournament] = ContextVar("live")
"""By which keys are refused."""
_number: ContextVar[int] = ContextVar("number")
"""Which of its streams the client that opens it says that it is."""


class Recorder:
    """Writes the lines of one process. A case is known by the order in which it came, in all tournaments."""

    def __init__(self, path: Path) -> None:
        self._process = int(path.name)
        self._file = path.with_suffix(".ndjson").open("ab", buffering=0)
        self._cases: dict[int, tuple[int, Case, LiveTournament]] = {}
        """Of each case by its address: its number, itself, so that the address stays its own, and its live."""
        self._lives: dict[int, list[LiveTournament]] = {}
        """Of each tournament, in the order in which they came."""
        self._judged_by: dict[str, LiveTournament] = {}
        """Of each block by its append id."""
        self.write(0, Did.STARTED)

    def write(self, tournament_id: int, did: Did, **facts: Any) -> None:
        line = Line(at=time.monotonic_ns(), process=self._process, tournament=tournament_id, did=did, **facts)
        self._file.write(msgspec.json.encode(line) + b"\n")

    def write_of(self, live: LiveTournament, did: Did, **facts: Any) -> None:
        lives = self._lives.setdefault(live.tournament_id, [])
        if live not in lives:
            lives.append(live)
        self.write(live.tournament_id, did, live=lives.index(live), **facts)

    def write_at(self, live: LiveTournament, did: Did, head: Head, **facts: Any) -> None:
        self.write_of(live, did, sequence=head.sequence, digest=head.digest.hex(), **facts)

    def asked(self, docket: Docket, case: Case) -> None:
        kind = KINDS.get(type(case.command))
        if kind is None:
            return
        self._cases[id(case)] = len(self._cases), case, docket.live
        amount = case.command.deltas[0].amount if isinstance(case.command, AddPoints) else 0
        self.write_of(
            docket.live,
            Did.ASKED,
            case=self.number(case),
            request=f"{amount:+}" if case.key is None else case.key.text,
            kind=kind,
            keyed=case.key is not None,
            refusals=0 if case.key is None else docket._means.refusals.known_at(case.key.refusals),
        )

    def judged(self, live: LiveTournament, block: Block | None) -> None:
        if block is not None:
            self._judged_by[block.append_id] = live

    def lost(self, block: Block) -> None:
        self.write_of(self._judged_by[block.append_id], Did.LOST)

    def number(self, case: Case) -> int:
        """-1: it is none of those that are recorded."""
        return self._cases[id(case)][0] if id(case) in self._cases else -1

    def numbers(self, cases: list[Case]) -> tuple[int, ...]:
        return tuple([self.number(case) for case in cases if id(case) in self._cases])

    def answered(self, case: Case, said: Said, sequence: int = 0) -> None:
        if id(case) in self._cases:
            number, _, live = self._cases[id(case)]
            self.write_of(live, Did.ANSWERED, case=number, said=said, sequence=sequence)


def record_worker() -> None:
    """Has this worker record from now on."""
    _wrap_worker(Recorder(Path(os.environ[PLACE])))


def record() -> None:
    """Has this API process record from now on."""
    recorder = Recorder(Path(os.environ[PLACE]))
    _wrap_docket(recorder)
    _wrap_case(recorder)
    _wrap_barrier(recorder)
    _wrap_listener(recorder)
    _wrap_connections(recorder)
    refuse_keys = appending.refuse_keys

    async def noting(connection: Connection, tournament_id: TournamentId, keys: list[str]) -> list[KeyOutcome]:
        try:
            outcomes = await refuse_keys(connection, tournament_id, keys)
        except BaseException:
            for key in keys:
                recorder.write_of(_live.get(), Did.UNNOTED, request=key)
            raise
        for key, outcome in zip(keys, outcomes, strict=True):
            used = 0 if outcome.used is None else outcome.used.sequence
            recorder.write_of(_live.get(), Did.NOTED, request=key, sequence=used, refusals=outcome.refusals)
        return outcomes

    appending.refuse_keys = noting


def _wrap_docket(recorder: Recorder) -> None:
    put, next_block, judged_under_lock, settled, refuse_keyed = (
        Docket.put,
        Docket.next_block,
        Docket.judged_under_lock,
        Docket.settled,
        Docket._refuse_keyed,
    )

    def putting(self: Docket, case: Case) -> None:
        recorder.asked(self, case)
        put(self, case)

    def judging(self: Docket) -> Block | None:
        waiting = list(self._waiting)
        block = next_block(self)
        recorder.judged(self.live, block)
        taken = [] if block is None else self._under_way
        left = {id(case) for case in (*taken, *self._waiting)}
        refused = [case for case in waiting if id(case) not in left and not case.receipt.done()]
        if recorder.numbers([*taken, *refused]):
            recorder.write_at(
                self.live,
                Did.JUDGED,
                self.live.head,
                taken=recorder.numbers(taken),
                refused=recorder.numbers(refused),
                refusals=_refusals(block),
            )
        return block

    async def judging_under_lock(self: Docket, connection: Connection) -> Block | None:
        block = await judged_under_lock(self, connection)
        recorder.judged(self.live, block)
        if block is not None and recorder.numbers(self._under_way):
            recorder.write_at(self.live, Did.LOCKED, self.live.head)
        return block

    def settling(self: Docket, block: Block, outcome: Outcome) -> None:
        if recorder.numbers(self._under_way):
            if isinstance(outcome, Appended):
                recorder.write_of(
                    self.live,
                    Did.COMMITTED,
                    answers=outcome.answers,
                    sequence=outcome.last_sequence or 0,
                    digest="" if outcome.digest is None else outcome.digest.hex(),
                )
            else:
                recorder.write_of(self.live, Did.COMMITTED)
        settled(self, block, outcome)

    async def refusing_keyed(self: Docket, refused: Any) -> None:
        _live.set(self.live)
        await refuse_keyed(self, refused)

    Docket.put = putting
    Docket.next_block = judging
    Docket.judged_under_lock = judging_under_lock
    Docket.settled = settling
    Docket._refuse_keyed = refusing_keyed


def _refusals(block: Block | None) -> int:
    """What the block says of refusals: the least that a request with key knew of."""
    requests = () if block is None else block.requests
    return min([request.refusals for request in requests if request.idempotency_key is not None], default=0)


def _wrap_case(recorder: Recorder) -> None:
    succeed, fail = Case.succeed, Case.fail

    def succeeding(self: Case, receipt: Receipt, now: float) -> None:
        was_done = self.receipt.done()
        succeed(self, receipt, now)
        if not was_done and (error := self.receipt.exception()) is not None:  # its time was up
            recorder.answered(self, _said(error))
        elif not was_done:
            recorder.answered(self, Said.REPEATED if receipt.replayed else Said.OK, receipt.sequence)

    def failing(self: Case, error: Exception) -> None:
        was_done = self.receipt.done()
        fail(self, error)
        if not was_done:
            recorder.answered(self, _said(error))

    Case.succeed = succeeding
    Case.fail = failing


def _wrap_barrier(recorder: Recorder) -> None:
    """Of the barrier, reads by clients; whether it holds for refusals shows where they are judged again."""
    make_current = LivePool.make_current

    def making_current(self: LivePool, live: LiveTournament, node: Any = None, *, read_at: float | None = None) -> Any:
        if read_at is None:
            return make_current(self, live, node)
        if _opens.get():
            recorder.write_of(live, Did.OPENED)
            return make_current(self, live, node, read_at=read_at)
        recorder.write_of(live, Did.READ)
        return showing(live, make_current(self, live, node, read_at=read_at))

    async def showing(live: LiveTournament, current: Awaitable[None]) -> None:
        try:
            await current
        except BaseException:
            recorder.write_of(live, Did.UNREAD)
            raise
        recorder.write_at(live, Did.SHOWN, live.head)

    LivePool.make_current = making_current  # type: ignore[method-assign]


def _wrap_connections(recorder: Recorder) -> None:
    """That a connection is lost: over which a block was sent, or any. And that the log is taken for another one."""
    send_, end, drop = _Sending._send, Epoch.end, LivePool.drop

    async def sending(self: _Sending, over: Any, blocks: list[Block], send: Any) -> Any:
        try:
            return await send_(self, over, blocks, send)
        except _SendingFailed as failure:
            if failure.maybe_applied:
                for block in blocks:
                    recorder.lost(block)
            raise

    def ending(self: Epoch) -> None:
        end(self)
        recorder.write(0, Did.FORGOT)

    def dropping(self: LivePool, live: LiveTournament) -> None:
        if not live.dropped:
            recorder.write_of(live, Did.FORKED)
        drop(self, live)

    _Sending._send = sending  # type: ignore[method-assign]
    Epoch.end = ending  # type: ignore[method-assign]
    LivePool.drop = dropping  # type: ignore[method-assign]


def _wrap_listener(recorder: Recorder) -> None:
    """A piece is written down before it leaves."""
    follow, listen, send = Handlers._follow, Listener.listen, Listener._send
    listening = dict[int, tuple[Listener, int, LiveTournament]]()

    async def following(self: Handlers, incoming: IncomingRequest) -> Reply:
        _opens.set(True)
        _number.set(int(incoming.request.headers["User-Agent"]))
        try:
            return await follow(self, incoming)
        finally:
            _opens.set(False)

    async def listening_(self: Listener, streams: Streams, live: LiveTournament) -> None:
        listening[id(self)] = self, _number.get(), live
        write(self, Did.LISTENED, self.position)
        await listen(self, streams, live)

    def sending(self: Listener, pieces: Pieces) -> None:
        write(self, Did.SENT, pieces.last)
        send(self, pieces)

    def write(listener: Listener, did: Did, at: Head) -> None:
        _, number, live = listening[id(listener)]
        recorder.write_at(live, did, at, case=number)

    Handlers._follow = following  # type: ignore[method-assign]
    Listener.listen = listening_  # type: ignore[method-assign]
    Listener._send = sending  # type: ignore[method-assign]


def _wrap_worker(recorder: Recorder) -> None:
    """What it reads within the transaction that has claimed the checkpoint, and what it has committed."""
    read_tails, fold = tails.tails, Worker._fold

    async def reading_(connection: Connection, after: Mapping[TournamentId, Head], **bounds: Any) -> tails.Tails:
        read = await read_tails(connection, after, **bounds)
        for tournament_id, tail in read.tails.items():
            write(tournament_id, Did.CLAIMED, tail.head, after=after[tournament_id].sequence)
        return read

    async def folding(self: Worker, batch: list[TournamentId]) -> Any:
        folded = await fold(self, batch)
        for tournament_id, (head, _) in folded.boards.items():
            write(tournament_id, Did.SAVED, head)
        return folded

    def write(tournament_id: TournamentId, did: Did, head: Head, **facts: Any) -> None:
        recorder.write(tournament_id, did, sequence=head.sequence, digest=head.digest.hex(), **facts)

    tails.tails = reading_  # type: ignore[assignment]
    Worker._fold = folding  # type: ignore[method-assign]


def _said(error: BaseException) -> Said:
    if isinstance(error, Refusal):
        return Said.REFUSED
    return Said.UNKNOWN if isinstance(error, OutcomeUnknown) else Said.UNAVAILABLE
