"""A listener to the stream of a process (api/stream/followers.py, listeners.py).

The follower reads from the log what the live has folded, from the position of the listener on. A position is a sequence
with its digest: a log that does not have it is another one, and the listener is told to begin again.
"""

from msgspec.structs import replace

from assurance.model.docket import asking
from assurance.model.protocol import Protocol, Steps
from assurance.model.scenario import Mistake
from assurance.model.state import NOBODY, Listener, World, with_process


def steps(protocol: Protocol, world: World) -> Steps:
    """What may happen next to the listener."""
    listener = world.listener
    if listener is None:
        return
    if listener.at == NOBODY:
        for p, process in enumerate(world.processes):
            if process.is_ready:
                yield f"The listener asks process {p}.", replace(world, listener=replace(listener, at=p))
        return
    process = world.processes[listener.at]
    if not process.is_ready:
        yield "The listener's stream ends.", replace(world, listener=replace(listener, at=NOBODY))
        return
    assert process.live is not None
    process, log, got = asking(process), world.database.log, listener.got
    end = min(len(process.live), len(log))
    if len(got) < end or log[: len(got)] != got:
        world = with_process(world, listener.at, process)
        if protocol.mistake in (Mistake.POSITION, Mistake.SEQUENCE):
            if len(got) < end:
                went_on = replace(listener, got=got + log[len(got) : end])
                yield f"The listener gets the events {len(got) + 1} to {end}.", replace(world, listener=went_on)
        elif log[: len(got)] != got:
            yield "The listener is told to begin again.", replace(world, listener=Listener())
        else:
            yield (
                f"The listener gets the events {len(got) + 1} to {end}.",
                replace(world, listener=replace(listener, got=log[:end])),
            )
