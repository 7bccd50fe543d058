"""Sending blocks and refusals, and their transactions: lock, commit, answer (engine/log/appender.py, docket.py).

What the server has executed is committed later or rolled back; meanwhile it holds the lock. A block whose connection is
lost is sent again at once, under its append id. What was sent first may still be with the server: an *orphan*, which
may be executed at any time, or never.
"""

from msgspec.structs import replace

from assurance.model.database import OVERTAKEN, committed, drawn_so_far, execute, refuse
from assurance.model.docket import asking, block_of, end_of_epoch, follows, tell_all, without
from assurance.model.protocol import Protocol, Step, Steps
from assurance.model.scenario import Copies, Mistake
from assurance.model.state import (
    NOBODY,
    Beside,
    Block,
    Database,
    Process,
    Sending,
    Stage,
    Told,
    Transaction,
    World,
    with_process,
)


def steps(protocol: Protocol, world: World) -> Steps:
    """What may happen next to what has been sent."""
    if not world.holders or protocol.mistake is Mistake.SEQUENCE:
        for p, process in enumerate(world.processes):
            sending = process.sending
            if sending is not None and sending.outcome is None and not _holds(world, p):
                yield _executed(protocol, world, p, sending.block)
            for one in process.beside:
                if one.stage is Stage.REFUSE:
                    yield _refusing(protocol, world, p, one)
        for block in world.orphans:
            yield _orphan_executed(protocol, world, block)
    for block in world.orphans:
        yield "The server gives up what was sent over the lost connection.", _without_orphan(world, block)
    for transaction in world.holders:
        yield from _ended(protocol, world, transaction)
    if world.left.losses:
        for p, process in enumerate(world.processes):
            if process.sending is not None:
                yield from _lost(protocol, world, p)
            for one in process.beside:
                if one.stage is Stage.REFUSING:
                    yield _refusal_lost(world, p, one)


def _holds(world: World, p: int) -> bool:
    return any(one.owner == p and one.block is not None for one in world.holders)


# ── Executing ───────────────────────────────────────────────────────────────────────────────────────────


def _executed(protocol: Protocol, world: World, p: int, block: Block) -> Step:
    """The server takes the lock and executes an append. An exact block that was overtaken is judged again under it."""
    process = asking(world.processes[p])
    database = world.database
    after, outcome = execute(protocol, database, block, world.now)
    again = ""
    if outcome is OVERTAKEN and block.cases and protocol.kind(block.cases[0]).exact and not process.dropped:
        found = _judged_under_lock(protocol, process, block, database)
        if found is not None:
            block, process = found, replace(process, live=database.log)
            after, outcome = execute(protocol, database, block, world.now)
            again = ", judges it again under the lock,"
    early = protocol.mistake is Mistake.ANSWER_BEFORE_COMMIT
    process = replace(process, sending=Sending(block, outcome if early else None))
    drawn = drawn_so_far(database, world.holders)
    holder = Transaction(p, after, block, outcome, drawn=drawn)
    story = f"The server takes the lock for process {p}{again} and executes {protocol.names(block.cases)}: "
    story += (
        "overtaken."
        if outcome is OVERTAKEN
        else "a boundary has passed."
        if outcome.now is not None
        else f"{outcome.answers}."
    )
    return story, with_process(replace(world, holders=(*world.holders, holder)), p, process)


def _judged_under_lock(protocol: Protocol, process: Process, block: Block, database: Database) -> Block | None:
    if not follows(process, database.log):
        return None
    (case,) = block.cases
    if protocol.board(database.log).voided:
        return None
    return block_of(protocol, process, (case,), database.log)


def _orphan_executed(protocol: Protocol, world: World, block: Block) -> Step:
    after, outcome = execute(protocol, world.database, block, world.now)
    drawn = drawn_so_far(world.database, world.holders)
    holder = Transaction(NOBODY, after, block, outcome, drawn=drawn)
    story = f"The server executes {protocol.names(block.cases)}, sent over the lost connection."
    return story, replace(_without_orphan(world, block), holders=(*world.holders, holder))


def _without_orphan(world: World, block: Block) -> World:
    left = list(world.orphans)
    left.remove(block)
    return replace(world, orphans=tuple(left))


def _refusing(protocol: Protocol, world: World, p: int, one: Beside) -> Step:
    """The server takes the lock and notes a refusal."""
    process, r, name = world.processes[p], one.case.request, protocol.name(one.case)
    if protocol.mistake in (Mistake.UNNOTED_REFUSAL, Mistake.PLAIN_LOOK_UP):
        return _looked_up(protocol, world, p, one)
    beside = (*without(process.beside, one), replace(one, stage=Stage.REFUSING))
    process = asking(replace(process, beside=beside))
    holder = Transaction(p, refuse(protocol, world.database, r), refuses=r)
    story = f"The server takes the lock for process {p} and looks up the key of {name}, to refuse it."
    return story, with_process(replace(world, holders=(holder,)), p, process)


def _looked_up(protocol: Protocol, world: World, p: int, one: Beside) -> Step:
    """By mistake: the key is only looked up. (PLAIN_LOOK_UP notes a refusal that it finds to be one.)"""
    process, log, r = world.processes[p], world.database.log, one.case.request
    process = asking(replace(process, beside=without(process.beside, one)))
    if protocol.board(log).requests & 1 << r:
        sequence = next(n for n, event in enumerate(log, 1) if event.request == r)
        process = replace(process, beside=(*process.beside, replace(one, stage=Stage.REPLAY, sequence=sequence)))
        return f"Process {p} looks up the key of {protocol.name(one.case)}: event {sequence}.", with_process(
            world, p, process
        )
    if protocol.mistake is Mistake.PLAIN_LOOK_UP:
        world = replace(world, database=refuse(protocol, world.database, r))
    story = f"Process {p} looks up the key of {protocol.name(one.case)}, and answers with a refusal."
    return story, protocol.told(with_process(world, p, process), one.case, Told.REFUSED, outdated=one.outdated)


# ── Committing ──────────────────────────────────────────────────────────────────────────────────────────


def _ended(protocol: Protocol, world: World, transaction: Transaction) -> Steps:
    others = tuple([one for one in world.holders if one is not transaction])
    after = committed(protocol, world.database, transaction)
    free = replace(world, holders=others)
    whose = "the lost connection" if transaction.owner == NOBODY else f"process {transaction.owner}"
    if protocol.scenario.copies is Copies.SYNCHRONOUS and world.copy != after:
        yield f"The standby has the transaction of {whose}.", replace(world, copy=after)
        if world.left.cancels:
            left = replace(world.left, cancels=world.left.cancels - 1)
            told = _heard(protocol, replace(free, database=after, left=left), transaction, confirmed=False)
            yield f"The wait of {whose} for the standby is cancelled: it commits, and warns.", told
    else:
        committed_ = _heard(protocol, replace(free, database=after), transaction, confirmed=True)
        yield f"The transaction of {whose} commits.", committed_
    if transaction.owner == NOBODY and (protocol.scenario.copies is not Copies.SYNCHRONOUS or world.copy != after):
        yield "The transaction of the lost connection is rolled back.", free


def _heard(protocol: Protocol, world: World, transaction: Transaction, *, confirmed: bool) -> World:
    """The owner has the answer, and tells what it says of a refusal."""
    p = transaction.owner
    if p == NOBODY:
        return world
    process = world.processes[p]
    if transaction.block is not None:
        assert transaction.outcome is not None
        if process.sending is None:
            return world  # by mistake it was answered before the commit
        outcome = replace(transaction.outcome, confirmed=confirmed)
        sending = replace(process.sending, outcome=outcome)
        return with_process(world, p, replace(process, sending=sending))
    (one,) = [one for one in process.beside if one.stage is Stage.REFUSING and one.case.request == transaction.refuses]
    beside = without(process.beside, one)
    if not confirmed:
        return protocol.told(with_process(world, p, replace(process, beside=beside)), one.case, Told.UNKNOWN)
    known = max(process.known, world.database.refusals)
    log, r = world.database.log, one.case.request
    if protocol.board(log).requests & 1 << r:
        sequence = next(n for n, event in enumerate(log, 1) if event.request == r)
        beside = (*beside, replace(one, stage=Stage.REPLAY, sequence=sequence))
        return with_process(world, p, replace(process, beside=beside, known=known))
    world = with_process(world, p, replace(process, beside=beside, known=known))
    return protocol.told(world, one.case, Told.REFUSED, outdated=one.outdated)


# ── Lost connections ────────────────────────────────────────────────────────────────────────────────────


def _lost(protocol: Protocol, world: World, p: int) -> Steps:
    """The connection of the block under way is lost, before its answer was read."""
    process = world.processes[p]
    sending = process.sending
    assert sending is not None
    if sending.reading:
        return
    left = replace(world.left, losses=world.left.losses - 1)
    after = replace(orphaned(world, p, sending), left=left)
    process = end_of_epoch(process)
    names = protocol.names(sending.block.cases)
    if protocol.mistake is Mistake.LOST_IS_NO:
        forgotten = with_process(after, p, replace(process, sending=None))
        told = tell_all(protocol, forgotten, sending.block.cases, Told.UNAVAILABLE)
        yield f"Process {p} loses the connection over which it sent {names}, and answers with 503.", told
    else:
        again = with_process(after, p, replace(process, sending=Sending(sending.block)))
        yield f"Process {p} loses the connection over which it sent {names}, and sends it again.", again


def orphaned(world: World, p: int, sending: Sending) -> World:
    """The world in which the connection of this block is gone: it may be with the server still."""
    if sending.outcome is not None:
        return world
    if _holds(world, p):
        holders = tuple([replace(one, owner=NOBODY) if one.owner == p and one.block else one for one in world.holders])
        return replace(world, holders=holders)
    return replace(world, orphans=(*world.orphans, sending.block))


def _refusal_lost(world: World, p: int, one: Beside) -> Step:
    """The connection of a refusal under way is lost: it is refused again."""
    process = end_of_epoch(world.processes[p])
    left = replace(world.left, losses=world.left.losses - 1)
    beside = tuple(
        [
            replace(other, stage=Stage.REFUSE)
            if other.case.attempt == one.case.attempt and other.case.request == one.case.request
            else other
            for other in process.beside
        ]
    )
    story = f"Process {p} loses the connection of the refusal, and sends it again."
    after = with_process(replace(world, left=left), p, replace(process, beside=beside))
    return story, refusal_orphaned(after, p)


def refusal_orphaned(world: World, p: int) -> World:
    """The world in which the connection of the refusals of process `p` is gone."""
    holders = tuple(
        [replace(one, owner=NOBODY) if one.owner == p and one.block is None else one for one in world.holders]
    )
    return replace(world, holders=holders)
