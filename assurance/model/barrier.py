"""The read barrier of a process: one query for the head, for all who came before it (projections/live/pool.py).

The query is sent and sees the head in one step, because what matters is that both come after those whom it serves. Its
answer comes later.
"""

from msgspec.structs import replace

from assurance.model.board import accepts
from assurance.model.clients import shown, unread
from assurance.model.docket import asking, dropped, due, follows, lacks
from assurance.model.protocol import Protocol, Step, Steps
from assurance.model.scenario import Mistake
from assurance.model.state import Log, Process, Query, Stage, Told, World, with_process


def steps(protocol: Protocol, world: World) -> Steps:
    """What the barriers of both processes may do next."""
    for p, process in enumerate(world.processes):
        if process.live is None:
            continue
        if process.query is None:
            if _is_needed(world, p) and not due(protocol, process):
                yield f"Process {p} asks for the head: {len(world.database.log)}.", asked(world, p)
        else:
            yield _answered(protocol, world, p, process.query)


def _is_needed(world: World, p: int) -> bool:
    """Whether somebody waits for it. For its listeners a process looks again and again, which matters if it lacks
    something."""
    return (
        any(one.stage is Stage.WAITS for one in world.processes[p].beside)
        or (world.reader is not None and world.reader.at == p and not world.reader.asking)
        or (world.listener is not None and world.listener.at == p and world.processes[p].live != world.database.log)
    )


def asked(world: World, p: int) -> World:
    process = asking(world.processes[p])
    assert process.live is not None
    beside = tuple([replace(one, stage=Stage.ASKS) if one.stage is Stage.WAITS else one for one in process.beside])
    process = replace(process, beside=beside, query=Query(process.live, world.database.log, world.now))
    if world.reader is not None and world.reader.at == p:
        world = replace(world, reader=replace(world.reader, asking=True))
    return with_process(world, p, process)


def _answered(protocol: Protocol, world: World, p: int, query: Query) -> Step:
    """The live catches up to the head that the query saw, and those who wait go on. If the log is not the one that the
    live has folded, the live is dropped, and they get 503."""
    process = replace(world.processes[p], query=None)
    if protocol.mistake is not Mistake.NO_CLOCK:
        process = replace(process, now=max(process.now, query.now))
    stood_at, saw, live, log = query.stood_at, query.saw, process.live, world.database.log
    assert live is not None
    if _passes(protocol, stood_at, saw, live):
        return _released(protocol, world, p, process)
    process = asking(process)
    if protocol.mistake is Mistake.BARRIER_HISTORY and len(saw) >= len(stood_at):
        return _released(protocol, world, p, replace(process, live=live + log[len(live) :]))
    if len(stood_at) < len(saw) <= len(log) and follows(process, log):
        return _released(protocol, world, p, replace(process, live=log))
    return f"Process {p} finds that its live is not of this log.", _forked(protocol, world, p, process)


def _passes(protocol: Protocol, stood_at: Log, saw: Log, live: Log) -> bool:
    """Whether nothing need be read: the live stands at the head that was seen, or did when the query was sent."""
    if protocol.mistake is Mistake.BARRIER_PASSED:
        return len(live) >= len(saw) and (saw == stood_at or len(saw) > len(stood_at))
    if protocol.mistake is Mistake.BARRIER_HISTORY:
        return len(live) >= len(saw) >= len(stood_at)
    return saw in (stood_at, live)


def _released(protocol: Protocol, world: World, p: int, process: Process) -> Step:
    """Judges again what was refused, by what is current now, and answers the reader."""
    assert process.live is not None
    board = protocol.board(process.live)
    beside, waiting, refused, said = list(process.beside), process.waiting, [], []
    for one in process.beside:
        if one.stage is not Stage.ASKS:
            continue
        beside.remove(one)
        name = protocol.name(one.case)
        if accepts(board, protocol.kind(one.case)):
            waiting = (one.case, *waiting)
            said.append(f"accepts {name} after all")
            continue
        outdated = lacks(protocol, world, one.case, process.live)
        if protocol.requests[one.case.request].keyed:
            beside.append(replace(one, stage=Stage.REFUSE, outdated=outdated))
            said.append(f"refuses {name}, if the log does not know its key")
        else:
            refused.append((one.case, outdated))
            said.append(f"answers {name} with a refusal")
    world = with_process(world, p, replace(process, beside=tuple(beside), waiting=waiting))
    for case, outdated in refused:
        world = protocol.told(world, case, Told.REFUSED, outdated=outdated)
    if world.reader is not None and world.reader.at == p and world.reader.asking:
        if due(protocol, process):
            waits = replace(world, reader=replace(world.reader, asking=False))
            return f"Process {p} has the head and the time: something is due, and the reader waits.", waits
        story, world = shown(protocol, world, p)
        said.append(story.rstrip("."))
    return (
        f"Process {p} has the head, stands at {len(process.live)} events: {', '.join(said) or 'nobody waits'}.",
        world,
    )


def _forked(protocol: Protocol, world: World, p: int, process: Process) -> World:
    asked = [one.case for one in process.beside if one.stage is Stage.ASKS]
    process = dropped(process)
    kept = tuple([one for one in process.beside if one.stage is not Stage.ASKS])
    world = with_process(world, p, replace(process, beside=kept))
    for case in asked:
        world = protocol.told(world, case, Told.UNAVAILABLE)
    if world.reader is not None and world.reader.at == p and world.reader.asking:
        world = unread(world)
    return world
