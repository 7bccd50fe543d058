"""The promises of docs/RELIABILITY.md, as the model has them. Each is looked at in every state.

once      an acknowledged change is in the log, once; nothing is in it twice
refused   what was refused, or answered with 503, is not in the log, then or later
current   an answer shows everything acknowledged before it was asked for, and a refusal is judged by such a state
judged    every event is one that the log before it allows, and a void reverses exactly the points in effect
expired   what is due expires once, before anything else is recorded, and no answer shows it that was asked for then
history   nothing lands in another history than the one it was judged by; no live, stream or table mixes two of them
stream    a stream has no gap
tables    the tables show every event up to their checkpoint, once
ends      every request ends: nobody waits in a state in which nothing can happen any more

What an asynchronous failover or a restore has lost is excepted: what was acknowledged, refused or shown, and is not in
the copy. With a synchronous standby nothing is excepted.
"""

from typing import Final

from assurance.model.docket import is_prefix
from assurance.model.protocol import Protocol
from assurance.model.scenario import Mistake
from assurance.model.state import NOBODY, Told, World

PROMISES: Final = ("once", "refused", "current", "judged", "expired", "history", "stream", "tables", "ends")


def broken(protocol: Protocol, world: World) -> str:
    """The promise that this state breaks, and how; empty: none."""
    if world.broken:
        return world.broken
    log = world.database.log
    board = protocol.board(log)
    if board.wrong:
        return board.wrong
    for r, client in enumerate(world.clients):
        is_there, is_lost = board.requests & 1 << r, world.lost & 1 << r
        if client.told is Told.OK and not is_there and not is_lost:
            return "once: an acknowledged change is not in the log"
        if client.told is Told.REFUSED and is_there and not is_lost:
            return "refused: what was refused is in the log"
        if client.unavailable and any(
            request == r and client.unavailable & 1 << attempt for request, attempt in board.attempts
        ):
            return "refused: what was answered with 503 is in the log"
    return _mixed(protocol, world)


def _mixed(protocol: Protocol, world: World) -> str:
    log = world.database.log
    if protocol.mistake is not Mistake.SEQUENCE:
        for process in world.processes:
            live = process.live
            if live is not None and live != log and not is_prefix(live, log) and not is_prefix(live, world.lost_log):
                return "history: a live is of no history that there has been"
    listener = world.listener
    if listener is not None and not is_prefix(listener.got, log) and not is_prefix(listener.got, world.lost_log):
        return "stream: a listener has what no history has, or lacks what its history has"
    tables = world.database.tables
    is_between = world.worker is None or world.worker.saved  # the two transactions of a mistake
    if not is_between and (tables.rows != tables.checkpoint or not is_prefix(tables.rows, log)):
        return "tables: the tables do not show every event up to their checkpoint, once"
    return ""


def unfinished(protocol: Protocol, world: World) -> str:
    """As `broken`, of a state after which nothing can happen."""
    for client in world.clients:
        if client.told is Told.WAITS:
            return "ends: a client waits for ever"
    if world.reader is not None and world.reader.at != NOBODY:
        return "ends: the reader waits for ever"
    log = world.database.log
    if protocol.board(log).due(world.now):
        return "ends: what is due never expires"
    if world.listener is not None and world.listener.got != log:
        return "ends: the listener never has everything"
    if world.worker is not None and world.database.tables.checkpoint != log:
        return "ends: the tables never have everything"
    return ""
