"""What a line of a trace is, and the log that it is held against. `assurance.traces` says what the lines mean."""

from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from assurance.model.state import Kind

SERVICES: Final = (0, 1)
WORKERS: Final = (2, 3)
PROCESSES: Final = (*SERVICES, *WORKERS)
DATABASE: Final = 4


class Did(StrEnum):
    STARTED = "started"
    ASKED = "asked"
    JUDGED = "judged"
    LOCKED = "locked"
    LOST = "lost"
    COMMITTED = "committed"
    NOTED = "noted"
    UNNOTED = "unnoted"
    FORGOT = "forgot"
    FORKED = "forked"
    ANSWERED = "answered"
    READ = "read"
    SHOWN = "shown"
    UNREAD = "unread"
    OPENED = "opened"
    LISTENED = "listened"
    SENT = "sent"
    CLAIMED = "claimed"
    SAVED = "saved"
    CRASHED = "crashed"
    RESTORED = "restored"


class Said(StrEnum):
    """How a request was answered. REPEATED: with 200, as a repeat."""

    OK = "ok"
    REPEATED = "repeated"
    REFUSED = "refused"
    UNAVAILABLE = "503"
    UNKNOWN = "500"


class Line(Struct, frozen=True, omit_defaults=True, kw_only=True):
    at: int
    process: int
    tournament: int
    did: Did
    live: int = 0
    case: int = -1
    request: str = ""
    kind: Kind = Kind.POINTS
    keyed: bool = False
    taken: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    sequence: int = 0
    digest: str = ""
    refusals: int = 0
    answers: tuple[int | None, ...] = ()
    said: Said = Said.OK
    after: int = 0


class Entry(Struct, frozen=True):
    """The events of one request in the log, from `first` to `last`. `reverses`: what a void takes back."""

    request: str
    first: int
    last: int
    reverses: tuple[int, ...] = ()


class Log(Struct, frozen=True):
    """The log of a tournament as PostgreSQL holds it in the end: what was appended after `begin`, the digest at the end
    of each block, and the refusals that there are, by key."""

    begin: int
    entries: tuple[Entry, ...]
    digests: dict[int, str]
    refusals: dict[str, int]


class Lost(Struct, frozen=True):
    """The log as it was when an older database took its place; and what that one had: the refusals by key, how many
    refusals, and the checkpoint of the tables."""

    log: Log
    refusals: dict[str, int]
    refused: int
    checkpoint: int


class Trace(Struct, frozen=True):
    """What became of one tournament."""

    lines: tuple[Line, ...]
    log: Log
    lost: Lost | None = None

    @property
    def logs(self) -> tuple[Log, ...]:
        """What was lost first."""
        return (self.log,) if self.lost is None else (self.lost.log, self.log)


def read(folder: Path) -> list[Line]:
    """The lines of all processes, in the order of time, without the reads that failed."""
    texts = [text for path in folder.glob("*.ndjson") for text in path.read_bytes().splitlines()]
    return without_failed_reads(
        sorted([msgspec.json.decode(text, type=Line) for text in texts], key=lambda line: line.at)
    )


def without_failed_reads(lines: list[Line]) -> list[Line]:
    """The lines but for each READ that came to nothing: its client has seen nothing that could be untrue."""
    reading: dict[tuple[int, int], int] = {}
    failed: set[int] = set()
    for place, line in enumerate(lines):
        its = line.process, line.tournament
        if line.did is Did.READ:
            reading[its] = place
        elif line.did is Did.UNREAD:
            failed.update((reading.pop(its), place))
    return [line for place, line in enumerate(lines) if place not in failed]
