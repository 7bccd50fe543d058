"""UmaDB, an event store for dynamic consistency boundaries, with its Python client: appends the same events.

Its server runs on this machine and syncs each append before it confirms. A call is a commit, with the same number of
events as in the product, over one connection. `conditional`, a row of the table: each append has the condition that the
tournament has no other event since the last one, as the product and `eventsourcing` check it. `unconditional`: without.
The events are made beforehand, and the file of the server is created by a first append, which does not count.
"""

import sys
from pathlib import Path
from typing import Final

import asyncpg
import uvloop
from msgspec import Struct
from umadb import AppendCondition, Client, Event, Query, QueryItem

from benchmarks.processes import free_port, running
from benchmarks.service import OWNER_SETTINGS
from benchmarks.trials import Stopwatch, say, told

_ROWS: Final = """
    SELECT kind, body
    FROM event
    WHERE tournament_id = $1 AND kind = 'PointsAdded'
    ORDER BY sequence
    LIMIT $2
"""


class Settings(Struct, frozen=True, kw_only=True):
    """`directory`: an empty one, where the server keeps its file and its log."""

    database: str
    tournament_id: int
    size: int
    commits: int
    directory: str


async def run(settings: Settings) -> None:
    connection = await asyncpg.connect(settings.database, server_settings=OWNER_SETTINGS)
    rows = await connection.fetch(_ROWS, settings.tournament_id, settings.size * settings.commits)
    await connection.close()
    tag = f"tournament:{settings.tournament_id}"
    events = [Event(kind, body.encode(), [tag]) for kind, body in rows]
    batches = [events[start : start + settings.size] for start in range(0, len(events), settings.size)]
    directory, address = Path(settings.directory), f"127.0.0.1:{free_port()}"
    program = str(Path(sys.executable).with_name("umadb"))
    command = [program, "--listen", address, "--db-path", str(directory / "events")]
    async with running(command, log=directory / "log", ready="UmaDB started"):
        client = Client(f"http://{address}")
        head = client.append(batches[0])
        same = Query([QueryItem(tags=[tag])])
        unconditional = Stopwatch()
        with unconditional.timing():
            for batch in batches:
                head = client.append(batch)
        conditional = Stopwatch()
        with conditional.timing():
            for batch in batches:
                head = client.append(batch, AppendCondition(same, head))
    assert head == len(batches[0]) + 2 * len(events), f"the server has counted {head} events"
    say(conditional=len(events) / conditional.seconds, unconditional=len(events) / unconditional.seconds)


if __name__ == "__main__":
    uvloop.run(run(told(Settings)))
