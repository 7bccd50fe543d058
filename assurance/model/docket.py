"""The docket of the tournament in an API process: judging, and what becomes of cases (api/desk/docket.py).

An answer leaves in the same step as what leads to it, since nothing waits in between.
"""

from msgspec.structs import replace

from assurance.model.board import accepts
from assurance.model.protocol import Protocol, Step, Steps
from assurance.model.scenario import Mistake
from assurance.model.state import (
    Beside,
    Block,
    Case,
    Kind,
    Log,
    Outcome,
    Process,
    Sending,
    Stage,
    Told,
    World,
    with_process,
)


def steps(protocol: Protocol, world: World) -> Steps:
    """What the dockets of both processes may do next by themselves."""
    for p, process in enumerate(world.processes):
        if process.is_idle and not process.is_ready:
            loaded = replace(asking(process), live=world.database.log, dropped=False)
            yield f"Process {p} loads the tournament.", with_process(world, p, loaded)
        if process.sending is None:
            if process.is_ready and due(protocol, process):
                yield _expiry_leaves(protocol, world, p)
            elif process.waiting:
                yield _block_leaves(protocol, world, p)
        elif process.sending.outcome is not None:
            yield from _settled(protocol, world, p)
        for one in process.beside:
            if one.stage is Stage.REPLAY:
                yield _replayed(protocol, world, p, one)
            elif one.stage is Stage.TELL:
                yield _told_refused(protocol, world, p, one)


def asking(process: Process) -> Process:
    """The process as it is when it asks the database something. If the database was replaced since it last did, the
    epoch ends with that: what the process knew of refusals is forgotten."""
    if not process.cut_off:
        return process
    return end_of_epoch(replace(process, cut_off=False))


def end_of_epoch(process: Process) -> Process:
    """The process when its epoch has ended. What was counted in another epoch counts as 0."""
    return replace(
        process,
        known=0,
        waiting=tuple([replace(case, stamp=0) for case in process.waiting]),
        beside=tuple([replace(one, case=replace(one.case, stamp=0)) for one in process.beside]),
    )


def dropped(process: Process) -> Process:
    """The process when it has found that its live is not of this log."""
    return end_of_epoch(replace(process, dropped=True))


def due(protocol: Protocol, process: Process) -> tuple[int, ...]:
    """What has expired, as far as the process knows."""
    return protocol.board(process.live or ()).due(process.now)


def now_of(protocol: Protocol, process: Process, log: Log) -> int:
    """The last boundary by which everything in this log has expired that was due, as far as the process knows."""
    return max(0 if protocol.board(log).due(process.now) else process.now, log[-1].at if log else 0)


# ── Judging ─────────────────────────────────────────────────────────────────────────────────────────────


def _block_leaves(protocol: Protocol, world: World, p: int) -> Step:
    """Judges what waits, up to the first structural case; an exact one is alone. Refusals are confirmed beside."""
    process = world.processes[p]
    if process.live is None or process.dropped:
        gone = with_process(world, p, replace(process, waiting=()))
        for case in process.waiting:
            gone = protocol.told(gone, case, Told.UNAVAILABLE)
        return f"Process {p} answers {protocol.names(process.waiting)} with 503: its log was replaced.", gone
    board = protocol.board(process.live)
    waiting, taken, refused = list(process.waiting), list[Case](), list[Case]()
    while waiting:
        kind = protocol.kind(waiting[0])
        if kind.exact and taken:
            break
        case = waiting.pop(0)
        if not accepts(board, kind):
            refused.append(case)
            continue
        taken.append(case)
        if kind.structural:
            break
    beside = process.beside
    told = world
    for case in refused:
        if protocol.mistake is Mistake.STALE_REFUSAL:
            told = protocol.told(told, case, Told.REFUSED, outdated=lacks(protocol, world, case, process.live))
        else:
            beside = (*beside, Beside(case, Stage.WAITS))
    sending = Sending(block_of(protocol, process, tuple(taken), process.live)) if taken else None
    after = with_process(told, p, replace(process, waiting=tuple(waiting), beside=beside, sending=sending))
    said = []
    if taken:
        said.append(f"accepts {protocol.names(tuple(taken))} and sends the block")
    if refused:
        confirmed = "answers with a refusal" if protocol.mistake is Mistake.STALE_REFUSAL else "has to confirm it"
        said.append(f"would refuse {protocol.names(tuple(refused))} and {confirmed}")
    return f"Process {p} judges by {len(process.live)} events: it {', and '.join(said)}.", after


def _expiry_leaves(protocol: Protocol, world: World, p: int) -> Step:
    """What is due stands first: it is sent before anything else is judged."""
    process = world.processes[p]
    assert process.live is not None
    block = Block((), process.live, 0, due(protocol, process), now=process.now)
    story = f"Process {p} knows that {process.now} boundaries have passed, and sends what expires."
    return story, with_process(world, p, replace(process, sending=Sending(block)))


def block_of(protocol: Protocol, process: Process, cases: tuple[Case, ...], judged_by: Log) -> Block:
    """The block of these cases, which were accepted by this log."""
    stamps = [case.stamp for case in cases if protocol.requests[case.request].keyed]
    if protocol.mistake is Mistake.LATE_STAMP:
        stamps = [process.known]
    reverses: tuple[int, ...] = ()
    if protocol.kind(cases[-1]) is Kind.VOID:
        stale = protocol.mistake is Mistake.STALE_SUMS
        reverses = cases[-1].noted if stale else protocol.board(judged_by).in_effect
    return Block(cases, judged_by, min(stamps, default=0), reverses, now_of(protocol, process, judged_by))


def lacks(protocol: Protocol, world: World, case: Case, log: Log) -> bool:
    """Whether this log lacks something acknowledged before the case came, as far as its client still waits."""
    client = world.clients[case.request]
    if client.told is not Told.WAITS or client.attempt != case.attempt:
        return False
    return bool(client.floor & ~world.lost & ~protocol.board(log).requests)


# ── Settling ────────────────────────────────────────────────────────────────────────────────────────────


def _settled(protocol: Protocol, world: World, p: int) -> Steps:
    """Hears what became of the block under way. If others appended before it, their events come with the answer; if
    they are too many, they have to be read from the log."""
    process = world.processes[p]
    sending, live = process.sending, process.live
    assert sending is not None
    assert sending.outcome is not None
    assert live is not None
    block, outcome = sending.block, sending.outcome
    free, names = replace(process, sending=None), protocol.names(block.cases)
    if outcome.now is not None:
        again = replace(free, now=max(free.now, outcome.now), waiting=(*block.cases, *free.waiting))
        yield f"Process {p} hears that {outcome.now} boundaries have passed.", with_process(world, p, again)
    elif not outcome.answers:
        yield _overtaken(protocol, world, p, block)
    elif not outcome.confirmed and protocol.mistake is not Mistake.UNCONFIRMED:
        told = tell_all(protocol, with_process(world, p, free), block.cases, Told.UNKNOWN)
        yield f"Process {p} hears that no standby has confirmed {names}: 500.", told
    elif sending.reading:
        yield _read_up(protocol, world, p, block, outcome)
    else:
        is_next = is_prefix(live, outcome.landed)
        between = len(outcome.landed) - len(live) - sum(answer > 0 for answer in outcome.answers)
        if is_next:
            after = with_process(world, p, replace(free, live=outcome.landed))
            yield _answered(protocol, after, p, block, outcome, "folds what has landed")
        if is_next and between and protocol.mistake is Mistake.NOT_FOLDED:
            yield _answered(protocol, with_process(world, p, free), p, block, outcome, "folds nothing")
        if not is_next or between:
            reads = replace(sending, reading=True)
            story = f"Process {p} hears that {names} landed, and has to read the log."
            yield story, with_process(world, p, replace(process, sending=reads))


def _overtaken(protocol: Protocol, world: World, p: int, block: Block) -> Step:
    """It reads what overtook the block, and its cases wait again in front. If the log is another, they get 503."""
    process, log = asking(world.processes[p]), world.database.log
    names = protocol.names(block.cases)
    if follows(process, log):
        again = replace(process, sending=None, live=log, waiting=(*block.cases, *process.waiting))
        story = f"Process {p} hears that {names} was overtaken, and reads {len(log)} events: it is judged again."
        return story, with_process(world, p, again)
    gone = with_process(world, p, dropped(replace(process, sending=None)))
    story = f"Process {p} finds another log than the one it judged by, and answers {names} with 503."
    return story, tell_all(protocol, gone, block.cases, Told.UNAVAILABLE)


def _read_up(protocol: Protocol, world: World, p: int, block: Block, outcome: Outcome) -> Step:
    """Reads what others appended before the block, and answers if the log still has it."""
    process, log = asking(world.processes[p]), world.database.log
    free = replace(process, sending=None)
    if follows(process, log):
        landed = outcome.landed
        if log[: len(landed)] == landed or (protocol.mistake is Mistake.LANDED and len(log) >= len(landed)):
            read = with_process(world, p, replace(free, live=log))
            return _answered(protocol, read, p, block, outcome, "reads the log", read=log)
    else:
        free = dropped(free)
    story = f"Process {p} does not find {protocol.names(block.cases)} in the log: 500."
    return story, tell_all(protocol, with_process(world, p, free), block.cases, Told.UNKNOWN)


def _answered(
    protocol: Protocol, world: World, p: int, block: Block, outcome: Outcome, how: str, read: Log | None = None
) -> Step:
    """Each case of a block is answered by what became of it; repeats are read from the log first."""
    said = []
    for case, answer in zip(block.cases, outcome.answers if block.cases else (), strict=True):
        process = world.processes[p]
        if answer > 0:
            world = protocol.told(world, case, Told.OK, process.live, read=read)
            said.append(f"{protocol.name(case)} is answered with 200")
        elif answer < 0:
            one = Beside(case, Stage.REPLAY, sequence=-answer)
            world = with_process(world, p, replace(process, beside=(*process.beside, one)))
            said.append(f"{protocol.name(case)} was recorded before, as event {-answer}")
        else:
            world = with_process(world, p, replace(process, beside=(*process.beside, Beside(case, Stage.TELL))))
            said.append(f"the key of {protocol.name(case)} has been refused since it came")
    return f"Process {p} hears of its block, and {how}: {', '.join(said) or 'points have expired'}.", world


def _replayed(protocol: Protocol, world: World, p: int, one: Beside) -> Step:
    """Reads the event that a case repeats, and answers by it, when the live is known to show this log."""
    process, log = world.processes[p], world.database.log
    process = asking(replace(process, beside=without(process.beside, one)))
    name, live = protocol.name(one.case), process.live
    assert live is not None
    found = len(log) >= one.sequence
    if not (protocol.mistake is Mistake.REPLAY and found and len(live) >= one.sequence):
        found = found and log[one.sequence - 1].request == one.case.request and follows(process, log)
        process = replace(process, live=log) if follows(process, log) else dropped(process)
    world = with_process(world, p, process)
    if found:
        story = f"Process {p} reads event {one.sequence}, and answers {name} with 200, as a repeat."
        return story, protocol.told(world, one.case, Told.OK, process.live, read=log)
    return f"Process {p} cannot read what {name} repeats: 500.", protocol.told(world, one.case, Told.UNKNOWN)


def _told_refused(protocol: Protocol, world: World, p: int, one: Beside) -> Step:
    """Learns how many refusals there are, and answers a case that was not recorded because of one."""
    process = world.processes[p]
    process = asking(replace(process, beside=without(process.beside, one)))
    known = max(process.known, world.database.refusals)
    after = with_process(world, p, replace(process, known=known))
    story = f"Process {p} answers {protocol.name(one.case)} with 503, because its key was refused."
    return story, protocol.told(after, one.case, Told.UNAVAILABLE)


def tell_all(protocol: Protocol, world: World, cases: tuple[Case, ...], told: Told) -> World:
    """The world after each of these was answered."""
    for case in cases:
        world = protocol.told(world, case, told)
    return world


def without(beside: tuple[Beside, ...], one: Beside) -> tuple[Beside, ...]:
    """All but that one."""
    return tuple([other for other in beside if other is not one])


def follows(process: Process, log: Log) -> bool:
    """Whether the log goes on from where the live of the process stands."""
    return process.live is not None and is_prefix(process.live, log)


def is_prefix(before: Log, log: Log) -> bool:
    """Whether the log can be the one that was read before."""
    return len(before) <= len(log) and log[: len(before)] == before
