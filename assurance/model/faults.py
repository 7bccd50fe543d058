"""Processes that die, and a database that is replaced by its copy."""

from msgspec.structs import replace

from assurance.model.appender import orphaned, refusal_orphaned
from assurance.model.docket import asking, dropped, follows
from assurance.model.protocol import Protocol, Steps
from assurance.model.scenario import Copies, Mistake
from assurance.model.state import (
    NOBODY,
    Database,
    Process,
    Stage,
    Told,
    Worker,
    World,
    with_client,
    with_process,
)


def steps(protocol: Protocol, world: World) -> Steps:
    """The faults that may come next, boundaries that pass, and a process that looks at the time though nobody asks."""
    if world.left.boundaries:
        left = replace(world.left, boundaries=world.left.boundaries - 1)
        yield f"Boundary {world.now + 1} passes.", replace(world, now=world.now + 1, left=left)
    log = world.database.log
    if protocol.board(log).due(world.now):
        for p, process in enumerate(world.processes):
            if process.is_ready and (process.now < world.now or process.live != log):
                yield f"Process {p} looks at the time, {world.now}, and reads the log.", _looked(world, p)
    if world.left.crashes:
        for p, process in enumerate(world.processes):
            if process.live is not None:
                yield f"Process {p} is killed, and started again.", killed(world, p)
    copies = protocol.scenario.copies
    if copies is Copies.NONE or not world.left.failovers:
        return
    if copies is Copies.BACKUP and world.copy is None:
        yield f"A backup is made, of {len(world.database.log)} events.", replace(world, copy=world.database)
    if copies is Copies.STANDBY and world.copy != world.database:
        yield f"The standby follows, to {len(world.database.log)} events.", replace(world, copy=world.database)
    if world.copy is not None:
        what = "A restore puts the backup" if copies is Copies.BACKUP else "A failover puts the standby"
        yield (
            f"{what} in the database's place, with {len(world.copy.log)} events.",
            replaced(protocol, world, world.copy),
        )


def _looked(world: World, p: int) -> World:
    process, log = asking(world.processes[p]), world.database.log
    looked = replace(process, live=log, now=world.now) if follows(process, log) else dropped(process)
    return with_process(world, p, looked)


def killed(world: World, p: int) -> World:
    process = world.processes[p]
    if process.sending is not None:
        world = orphaned(world, p, process.sending)
    world = refusal_orphaned(world, p)
    for r, client in enumerate(world.clients):
        if client.told is Told.WAITS and client.at == p:
            world = with_client(world, r, replace(client, told=Told.UNKNOWN, at=NOBODY, floor=0, since=0))
    if world.reader is not None and world.reader.at == p:
        world = replace(world, reader=replace(world.reader, at=NOBODY, asking=False, floor=0, since=0))
    if world.listener is not None and world.listener.at == p:
        world = replace(world, listener=replace(world.listener, at=NOBODY))
    left = replace(world.left, crashes=world.left.crashes - 1)
    return replace(with_process(world, p, Process()), left=left)


def replaced(protocol: Protocol, world: World, copy: Database) -> World:
    """What was not committed is gone, and every connection is lost. Blocks under way are sent again, to the copy. What
    was committed and is not in the copy is lost, unless commits waited for the copy."""
    gone = protocol.board(world.database.log).requests & ~protocol.board(copy.log).requests
    synchronous = protocol.scenario.copies is Copies.SYNCHRONOUS
    lost = world.lost if synchronous else world.lost | gone
    for p, process in enumerate(world.processes):
        if process.live is None:
            continue
        beside = tuple([replace(one, stage=_again(one.stage)) for one in process.beside])
        after = replace(process, beside=beside, cut_off=protocol.mistake is not Mistake.EPOCH)
        world = with_process(world, p, after)
    for r, client in enumerate(world.clients):
        if client.floor & gone:
            world = with_client(world, r, replace(client, floor=client.floor & ~gone))
        if client.told is Told.REFUSED and not synchronous and copy.refused[r] != world.database.refused[r]:
            lost |= 1 << r
    if world.reader is not None:
        unshown = gone if not synchronous else gone & ~_acknowledged(world)
        reader = replace(world.reader, floor=world.reader.floor & ~unshown, shown=world.reader.shown & ~unshown)
        world = replace(world, reader=reader)
    if world.worker is not None:
        world = replace(world, worker=Worker(kept=world.worker.kept))
    return replace(
        world,
        database=replace(copy, timeline=world.database.timeline + 1),
        copy=None,
        holders=(),
        orphans=(),
        lost=lost,
        lost_log=world.database.log,
        left=replace(world.left, failovers=world.left.failovers - 1),
    )


def _again(stage: Stage) -> Stage:
    """A refusal that was under way is sent again."""
    return Stage.REFUSE if stage is Stage.REFUSING else stage


def _acknowledged(world: World) -> int:
    return sum(1 << r for r, client in enumerate(world.clients) if client.told is Told.OK)
