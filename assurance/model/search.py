"""Breadth-first search of every state that can be reached, and the shortest way to one that breaks a promise.

The two processes can do the same things. So of two states that differ only in which process is which, one is visited.
"""

import gc
import time
from itertools import chain, pairwise

from msgspec import Struct
from msgspec.structs import replace

from assurance.model import appender, barrier, clients, docket, faults, stream, worker
from assurance.model.invariants import broken, unfinished
from assurance.model.protocol import Protocol, Steps
from assurance.model.scenario import Copies, Mistake, Scenario
from assurance.model.state import (
    BEFORE,
    NOBODY,
    Client,
    Database,
    Event,
    Listener,
    Process,
    Reader,
    Tables,
    Worker,
    World,
)


class Found(Struct, frozen=True):
    """What a search has found. `depth`: how many steps away the farthest state is. `broken`: the promise that the last
    step of `story` breaks; empty: none is broken."""

    states: int
    depth: int
    seconds: float
    broken: str = ""
    story: tuple[str, ...] = ()

    @property
    def promise(self) -> str:
        """The name of the promise that is broken; empty: none."""
        return self.broken.partition(":")[0]

    def told(self, name: str) -> str:
        """The figures, for people."""
        return f"{name}: {self.states:,} states, {self.depth} steps deep, {self.seconds:.1f} s"

    def story_told(self) -> str:
        """The way to the state in which the promise is broken, for people."""
        return "\n".join([*(f"    {n:2}. {line}" for n, line in enumerate(self.story, 1)), f"    {self.broken}"])


def search(scenario: Scenario, mistake: Mistake | None = None) -> Found:
    """Visits every state, or ends at the first that breaks a promise."""
    began_at = time.perf_counter()
    protocol = Protocol(scenario, mistake)
    first = beginning(scenario)
    came_from: dict[World, World | None] = {first: None}
    layer, depth = [first], 0
    gc.disable()  # there is no garbage, and a great many values
    try:
        while layer:
            following: list[World] = []
            for world in layer:
                is_last = True
                for _, there in steps(protocol, world):
                    is_last = False
                    after = normal(there)
                    if after in came_from or mirrored(after) in came_from:
                        continue
                    came_from[after] = world
                    if why := broken(protocol, after):
                        seconds = time.perf_counter() - began_at
                        return Found(len(came_from), depth + 1, seconds, why, _story(protocol, came_from, after))
                    following.append(after)
                if is_last and (why := unfinished(protocol, world)):
                    seconds = time.perf_counter() - began_at
                    return Found(len(came_from), depth, seconds, why, _story(protocol, came_from, world))
            layer = following
            depth += bool(layer)
    finally:
        gc.enable()
    return Found(len(came_from), depth, time.perf_counter() - began_at)


def beginning(scenario: Scenario) -> World:
    """The state in which nobody has asked for anything, and both processes have the tournament in memory."""
    log = (Event(BEFORE),) if scenario.closed else ()
    requests = len(scenario.requests)
    tables = Tables(log, log)
    database = Database(log, (0,) * requests, tables=tables)
    return World(
        database=database,
        copy=database if scenario.copies in (Copies.STANDBY, Copies.SYNCHRONOUS) else None,
        processes=(Process(live=log), Process(live=log)),
        clients=(Client(),) * requests,
        left=scenario.left,
        reader=Reader(scenario.reads) if scenario.reads else None,
        listener=Listener() if scenario.listens else None,
        worker=Worker(kept=log) if scenario.works else None,
    )


def steps(protocol: Protocol, world: World) -> Steps:
    """Everything that can happen next."""
    return chain(
        docket.steps(protocol, world),
        appender.steps(protocol, world),
        barrier.steps(protocol, world),
        stream.steps(protocol, world),
        worker.steps(protocol, world),
        clients.steps(protocol, world),
        faults.steps(protocol, world),
    )


# ── States that are the same ────────────────────────────────────────────────────────────────────────────


def normal(world: World) -> World:
    """The state without what nobody can ask for any more: append ids of blocks that will not be sent again."""
    database = world.database
    if not (database.recorded or (world.copy is not None and world.copy.recorded)):
        return world
    blocks = [process.sending.block for process in world.processes if process.sending is not None]
    blocks += [one.block for one in world.holders if one.block is not None]
    asked = {block.append_id for block in (*blocks, *world.orphans)}

    def pruned(database: Database) -> Database:
        kept = tuple([one for one in database.recorded if one.append_id in asked])
        return database if len(kept) == len(database.recorded) else replace(database, recorded=kept)

    holders = tuple([replace(one, after=pruned(one.after)) for one in world.holders])
    copy = None if world.copy is None else pruned(world.copy)
    return replace(world, database=pruned(database), holders=holders, copy=copy)


def mirrored(world: World) -> World:
    """The same state, with each process in the other's place."""
    one, other = world.processes
    clients = world.clients
    if any(client.at != NOBODY for client in clients):
        clients = tuple([client if client.at == NOBODY else replace(client, at=1 - client.at) for client in clients])
    holders, reader, listener = world.holders, world.reader, world.listener
    if holders:
        holders = tuple([one if one.owner == NOBODY else replace(one, owner=1 - one.owner) for one in holders])
    if reader is not None and reader.at != NOBODY:
        reader = replace(reader, at=1 - reader.at)
    if listener is not None and listener.at != NOBODY:
        listener = replace(listener, at=1 - listener.at)
    on_the_way = tuple([(r, attempt, 1 - p) for r, attempt, p in world.on_the_way])
    return replace(
        world,
        processes=(other, one),
        clients=clients,
        holders=holders,
        reader=reader,
        listener=listener,
        on_the_way=on_the_way,
    )


# ── Stories ─────────────────────────────────────────────────────────────────────────────────────────────


def _story(protocol: Protocol, came_from: dict[World, World | None], world: World) -> tuple[str, ...]:
    """What happened on the way to this state."""
    ways: list[World] = [world]
    while (before := came_from[ways[-1]]) is not None:
        ways.append(before)
    ways.reverse()
    return tuple([_sentence(protocol, before, after) for before, after in pairwise(ways)])


def _sentence(protocol: Protocol, before: World, after: World) -> str:
    return next(sentence for sentence, there in steps(protocol, before) if normal(there) == after)
