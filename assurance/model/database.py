"""What PostgreSQL does: `append_block` and `refuse_keys` (migrations/0001_log.sql), and commits.

A transaction takes the tournament's lock, is executed by what is committed then, and commits or rolls back. Nobody sees
anything of it before. With a synchronous standby, it commits when the standby has it, unless the wait is cancelled.
"""

from msgspec.structs import replace

from assurance.model.board import HOLE
from assurance.model.protocol import Protocol
from assurance.model.scenario import Mistake
from assurance.model.state import BEFORE, EXPIRY, Block, Database, Event, Kind, Outcome, Recorded, Transaction

OVERTAKEN = Outcome(())


def execute(protocol: Protocol, database: Database, block: Block, now: int = 0) -> tuple[Database, Outcome]:
    """As `append_block`: what will be committed, and what is answered then. `now`: how many boundaries have passed."""
    log, judged_at, mistake = database.log, len(block.judged_by), protocol.mistake
    exact = bool(block.cases) and protocol.kind(block.cases[-1]).exact
    if len(log) < judged_at:
        return database, OVERTAKEN
    if len(log) != judged_at:
        if mistake is not Mistake.NO_APPEND_ID:
            for recorded in database.recorded:
                if recorded.append_id == block.append_id and recorded.last > judged_at:
                    return database, Outcome(recorded.answers, log[: recorded.last])
        landed = [event for event in log[judged_at:] if event is not HOLE]
        if mistake is not Mistake.STRUCTURE and any(_structural(protocol, event) for event in landed):
            return database, OVERTAKEN
        if exact and mistake is not Mistake.EXACT:
            return database, OVERTAKEN
    if log[:judged_at] != block.judged_by and mistake not in (Mistake.DIGEST, Mistake.SEQUENCE):
        return database, OVERTAKEN
    if now != block.now and mistake is not Mistake.NO_DUE:
        return database, Outcome((), now=now)
    passed = now > (log[-1].at if log else 0)
    if passed and len(log) != judged_at and mistake is not Mistake.PASSED_UNSEEN:
        return database, OVERTAKEN
    return _append(protocol, database, block, now)


def _structural(protocol: Protocol, event: Event) -> bool:
    if event.request == EXPIRY:
        return protocol.mistake is not Mistake.EXPIRY_PLAIN
    return event.request == BEFORE or protocol.requests[event.request].kind.structural


def _append(protocol: Protocol, database: Database, block: Block, now: int) -> tuple[Database, Outcome]:
    """The requests whose keys are not known, and not refused since they were taken, follow the log's last event."""
    log, answers = database.log, list[int]()
    misplaced = log[: len(block.judged_by)] != block.judged_by
    for case in block.cases:
        keyed = protocol.requests[case.request].keyed
        known = [n for n, event in enumerate(log, 1) if event.request == case.request] if keyed else []
        if known and protocol.mistake is not Mistake.KEYS:
            answers.append(-known[0])
        elif keyed and database.refused[case.request] > block.refusals:
            answers.append(0)
        else:
            reverses = block.reverses if protocol.kind(case) is Kind.VOID else ()
            log = (*log, Event(case.request, case.attempt, reverses, database.timeline, misplaced, now))
            answers.append(len(log))
    if not block.cases:
        log = (*log, Event(EXPIRY, 0, block.reverses, database.timeline, misplaced, now))
        answers.append(len(log))
    if len(log) == len(database.log):
        return database, Outcome(tuple(answers), log)
    recorded = Recorded(block.append_id, tuple(answers), len(log))
    after = replace(database, log=log, recorded=(*database.recorded, recorded))
    return after, Outcome(tuple(answers), log)


def refuse(protocol: Protocol, database: Database, request: int) -> Database:
    """As `refuse_keys`, of one key: what will be committed. If the key is known, nothing changes."""
    if protocol.board(database.log).requests & 1 << request:
        return database
    number = protocol.next_refusal(database, request)
    refused = (*database.refused[:request], number, *database.refused[request + 1 :])
    return replace(database, refused=refused, refusals=max(database.refusals, number))


def committed(protocol: Protocol, database: Database, transaction: Transaction) -> Database:
    """What is committed when `transaction` commits. The tables are a worker's, who needs no lock of the log."""
    if protocol.mistake is not Mistake.SEQUENCE:
        return replace(transaction.after, tables=database.tables)
    new = transaction.after.log[len(transaction.after.log) - _count(transaction) :]
    log: list[Event] = list(database.log)
    for n, event in enumerate(new, transaction.drawn):
        log += [HOLE] * (n + 1 - len(log))
        log[n] = event
    return replace(database, log=tuple(log))


def _count(transaction: Transaction) -> int:
    assert transaction.outcome is not None
    return sum(answer > 0 for answer in transaction.outcome.answers)


def drawn_so_far(database: Database, holders: tuple[Transaction, ...]) -> int:
    """How many sequences have been drawn, by whoever has not committed yet as well."""
    return max([len(database.log), *[one.drawn + _count(one) for one in holders if one.outcome is not None]])
