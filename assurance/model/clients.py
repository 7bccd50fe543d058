"""Clients: they ask, give up, and ask again as docs/RELIABILITY.md says; and one reads.

A request reaches its process when it is asked, and an answer its client when it is given; what is slow on the way only
leaves more time, which every other action may use.
"""

from msgspec.structs import replace

from assurance.model.protocol import Protocol, Step, Steps, acknowledged
from assurance.model.scenario import Mistake
from assurance.model.state import (
    NOBODY,
    Case,
    Client,
    Kind,
    Told,
    World,
    with_client,
    with_process,
)


def steps(protocol: Protocol, world: World) -> Steps:
    """What clients and the reader may do next, and what may happen to them."""
    for r, client in enumerate(world.clients):
        if may_ask(protocol, r, client):
            for p, process in enumerate(world.processes):
                if process.is_ready:
                    yield asked(protocol, world, r, p)
        elif client.told is Told.WAITS:
            if world.left.cuts:
                yield cut(protocol, world, r)
            if world.left.cuts and protocol.scenario.late:
                yield from _cut_on_the_way(protocol, world, r)
            if world.left.expiries:
                yield from _expired(protocol, world, r)
    for late in world.on_the_way:
        if world.processes[late[2]].is_ready:
            yield _arrived(protocol, world, late)
    reader = world.reader
    if reader is not None and reader.at == NOBODY and reader.left:
        for p, process in enumerate(world.processes):
            if process.is_ready:
                yield read(protocol, world, p)


def may_ask(protocol: Protocol, r: int, client: Client) -> bool:
    """Whether the client asks, or asks again: after a 503 in any case, after an unknown outcome only with its key."""
    if client.told is Told.NOTHING:
        return True
    again = client.told is Told.UNAVAILABLE or (client.told is Told.UNKNOWN and protocol.requests[r].keyed)
    return again and client.attempt + 1 < protocol.scenario.attempts


def asked(protocol: Protocol, world: World, r: int, p: int) -> Step:
    client, process = world.clients[r], world.processes[p]
    request = protocol.requests[r]
    again = client.told is not Told.NOTHING
    attempt = client.attempt + again
    noted: tuple[int, ...] = ()
    if protocol.mistake is Mistake.STALE_SUMS and request.kind is Kind.VOID:
        noted = protocol.board(process.live or ()).in_effect
    case = Case(r, attempt, process.known if request.keyed else 0, noted)
    world = with_process(world, p, replace(process, waiting=(*process.waiting, case)))
    client = Client(
        told=Told.WAITS,
        attempt=attempt,
        at=p,
        floor=acknowledged(world),
        unavailable=client.unavailable,
        since=world.now,
    )
    return f"Process {p} is asked{' again' * again} for {request.name}.", with_client(world, r, client)


def cut(protocol: Protocol, world: World, r: int) -> Step:
    """Its connection is cut: nobody knows, and the process goes on."""
    client = world.clients[r]
    gone = replace(client, told=Told.UNKNOWN, at=NOBODY, floor=0, since=0)
    left = replace(world.left, cuts=world.left.cuts - 1)
    story = f"The client of {protocol.requests[r].name} loses its connection, and does not know."
    return story, replace(with_client(world, r, gone), left=left)


def _cut_on_the_way(protocol: Protocol, world: World, r: int) -> Steps:
    """Its connection is cut before its request has reached the process, which it does later."""
    client = world.clients[r]
    process = world.processes[client.at]
    if process.waiting and (process.waiting[-1].request, process.waiting[-1].attempt) == (r, client.attempt):
        story, world = cut(protocol, world, r)
        without = with_process(world, client.at, replace(process, waiting=process.waiting[:-1]))
        late = (*world.on_the_way, (r, client.attempt, client.at))
        yield f"{story} The request is still on the way.", replace(without, on_the_way=late)


def _arrived(protocol: Protocol, world: World, late: tuple[int, int, int]) -> Step:
    r, attempt, p = late
    request, process = protocol.requests[r], world.processes[p]
    case = Case(r, attempt, process.known if request.keyed else 0)
    arrived = with_process(world, p, replace(process, waiting=(*process.waiting, case)))
    rest = tuple([one for one in world.on_the_way if one != late])
    return f"What was sent before for {request.name} reaches process {p}.", replace(arrived, on_the_way=rest)


def _expired(protocol: Protocol, world: World, r: int) -> Steps:
    """Its time is up: what was not sent yet never is, and the answer says so; of what was sent, it says 500."""
    client = world.clients[r]
    process = world.processes[client.at]
    left = replace(world.left, expiries=world.left.expiries - 1)
    mine = [case for case in process.waiting if (case.request, case.attempt) == (r, client.attempt)]
    name = protocol.requests[r].name
    if mine:
        kept = tuple([case for case in process.waiting if case not in mine])
        withdrawn = with_process(world, client.at, replace(process, waiting=kept))
        after = protocol.told(withdrawn, mine[0], Told.UNAVAILABLE)
        yield (
            f"The time of {name} is up before it was sent: it is withdrawn, and answered with 503.",
            replace(after, left=left),
        )
    elif process.sending is not None:
        for case in process.sending.block.cases:
            if (case.request, case.attempt) == (r, client.attempt):
                late = protocol.mistake is Mistake.LATE_IS_NO
                after = protocol.told(world, case, Told.UNAVAILABLE if late else Told.UNKNOWN)
                said = "503" if late else "500"
                yield (
                    f"The time of {name} is up, and it was sent: it is answered with {said}.",
                    replace(after, left=left),
                )


def read(protocol: Protocol, world: World, p: int) -> Step:
    reader = world.reader
    assert reader is not None
    joins = protocol.mistake is Mistake.BARRIER_JOINED and world.processes[p].query is not None
    floor = acknowledged(world) | reader.shown
    if protocol.mistake is Mistake.NO_BARRIER:
        reading = replace(reader, at=p, floor=floor, since=world.now)
        story, answered = shown(protocol, replace(world, reader=reading), p)
        return f"Process {p} is asked for a list. {story}", answered
    return f"Process {p} is asked for a list.", replace(
        world, reader=replace(reader, at=p, floor=floor, asking=joins, since=world.now)
    )


def shown(protocol: Protocol, world: World, p: int) -> Step:
    """The reader has its answer, made from the live of process `p`."""
    reader = world.reader
    assert reader is not None
    requests = protocol.board(world.processes[p].live or ()).requests
    missing = reader.floor & ~world.lost & ~requests
    broken = "current: a read lacks what was acknowledged or shown before it was asked" if missing else ""
    if protocol.board(world.processes[p].live or ()).due(reader.since):
        broken = "expired: a read shows what had expired before it was asked for"
    after = replace(
        reader, left=reader.left - 1, at=NOBODY, asking=False, floor=0, since=0, shown=reader.shown | requests
    )
    count = len(world.processes[p].live or ())
    return f"The list shows {count} events.", replace(world, reader=after, broken=broken or world.broken)


def unread(world: World) -> World:
    """The reader has no answer, and may ask again."""
    assert world.reader is not None
    return replace(world, reader=replace(world.reader, at=NOBODY, asking=False, floor=0, since=0))
