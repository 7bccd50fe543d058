"""The Python library `eventsourcing` with its PostgreSQL recorder (psycopg): appends the same events.

There are two figures. `store`: its EventStore, which encodes domain events and hands them to the recorder, as
`engine.log` does with ours. It is a row of the table. `recorder`: the recorder alone, with finished bytes. Nobody uses
the library like that, but it shows how much of the cost is PostgreSQL's.

A call is a commit, with the same number of events as in the product. The events are made beforehand. The library's
switch `enable_db_functions` is off, because the recorder was slower with it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import msgspec
import psycopg
from eventsourcing.domain import DomainEvent
from eventsourcing.persistence import DatetimeAsISO, EventStore, JSONTranscoder, Mapper, StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore
from msgspec import Struct

from benchmarks.trials import Stopwatch, say, told

_DROP: Final = "DROP TABLE IF EXISTS public.stored_events"
_ROWS: Final = """
    SELECT sequence, kind, body
    FROM tallybook.event
    WHERE tournament_id = %s AND kind = 'PointsAdded'
    ORDER BY sequence
    LIMIT %s
"""
_Row = tuple[int, str, str]


class Settings(Struct, frozen=True, kw_only=True):
    database: str
    tournament_id: int
    size: int
    commits: int


@dataclass(frozen=True)
class PointsAdded(DomainEvent):
    """One of our events, as an event of the library."""

    ranking_id: int
    deltas: list[list[int]]


def run(settings: Settings) -> None:
    with psycopg.connect(settings.database) as connection:
        rows = connection.execute(_ROWS, (settings.tournament_id, settings.size * settings.commits)).fetchall()
    say(store=_through_store(settings, rows), recorder=_through_recorder(settings, rows))


def _through_store(settings: Settings, rows: list[_Row]) -> float:
    originator_id = UUID(int=settings.tournament_id)
    now = datetime.now(UTC)
    events = [PointsAdded(originator_id, n, now, **msgspec.json.decode(body)) for n, _, body in rows]
    transcoder = JSONTranscoder()
    transcoder.register(DatetimeAsISO())
    stopwatch = Stopwatch()
    with _datastore(settings) as datastore:
        recorder = _empty_recorder(datastore)
        store = EventStore[UUID](Mapper(transcoder), recorder)
        with stopwatch.timing():
            for start in range(0, len(events), settings.size):
                store.put(events[start : start + settings.size])
        return _rate(recorder, len(rows), stopwatch)


def _through_recorder(settings: Settings, rows: list[_Row]) -> float:
    originator_id = UUID(int=settings.tournament_id)
    events = [StoredEvent(originator_id, sequence, kind, body.encode()) for sequence, kind, body in rows]
    stopwatch = Stopwatch()
    with _datastore(settings) as datastore:
        recorder = _empty_recorder(datastore)
        with stopwatch.timing():
            for start in range(0, len(events), settings.size):
                recorder.insert_events(events[start : start + settings.size])
        return _rate(recorder, len(rows), stopwatch)


def _empty_recorder(datastore: PostgresDatastore) -> PostgresApplicationRecorder:
    with datastore.transaction(commit=True) as cursor:
        cursor.execute(_DROP)
    recorder = PostgresApplicationRecorder(datastore)
    recorder.create_table()
    return recorder


def _rate(recorder: PostgresApplicationRecorder, events: int, stopwatch: Stopwatch) -> float:
    """Events a second, provided that all of them are stored."""
    recorded = recorder.max_notification_id()
    assert recorded == events, f"{recorded} of {events} events were recorded"
    return events / stopwatch.seconds


def _datastore(settings: Settings) -> PostgresDatastore:
    parts = urlsplit(settings.database)
    (host,), (port,) = parse_qs(parts.query)["host"], parse_qs(parts.query)["port"]
    return PostgresDatastore(parts.path.removeprefix("/"), host, port, parts.username or "", "")


if __name__ == "__main__":
    run(told(Settings))
