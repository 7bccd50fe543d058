"""The values that a state of the model is made of. Words are those of docs/ARCHITECTURE.md.

A log is the tuple of its events. A digest names the whole history before it, so here the history itself stands for its
digest: two digests are equal if and only if the logs are. Times, ids and totals are left out.
"""

from enum import IntEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

BEFORE: Final = -1
"""The request of an event that was there before anybody asked."""
NOBODY: Final = -1
EXPIRY: Final = -3
"""The request of an event by which points expire: nobody asked for it."""


class Kind(IntEnum):
    """What a request asks for. Points are for the one competition; VOID reverses them."""

    POINTS = 0
    CLOSE = 1
    REOPEN = 2
    VOID = 3

    @property
    def structural(self) -> bool:
        return self is not Kind.POINTS

    @property
    def exact(self) -> bool:
        return self is Kind.VOID


class Request(Struct, frozen=True, cache_hash=True):
    """One thing that one client wants; `name` is what stories call it. Its number is its key, if it has one."""

    kind: Kind
    keyed: bool
    name: str


class Event(Struct, frozen=True, cache_hash=True):
    """What an attempt at a request left in the log. `reverses`: the sequences of the points that a void takes back.
    `timeline` tells the same request recorded again after a failover, which makes another digest. `at`: how many
    boundaries had passed when it was recorded. `misplaced`: the log that it landed in is not the one that it was judged
    by. (Nobody but the invariants looks.)"""

    request: int
    attempt: int = 0
    reverses: tuple[int, ...] = ()
    timeline: int = 0
    misplaced: bool = False
    at: int = 0


Log = tuple[Event, ...]


class Case(Struct, frozen=True, cache_hash=True):
    """An attempt at a request, as a docket has it. `stamp`: the refusals that its process knew of when it came.
    `noted`: what a void would reverse, as of when it came; only a mistake looks at it."""

    request: int
    attempt: int
    stamp: int = 0
    noted: tuple[int, ...] = ()


class Block(Struct, frozen=True, cache_hash=True):
    """Cases that were accepted by `judged_by`, and go to the database together. A case is not judged twice by the same
    log, so a block that is sent again is the one with the same cases and the same log: that is its append id. One
    without cases expires the points that it `reverses`. `now`: how many boundaries had passed when it was judged."""

    cases: tuple[Case, ...]
    judged_by: Log
    refusals: int
    reverses: tuple[int, ...] = ()
    now: int = 0

    @property
    def append_id(self) -> tuple[object, ...]:
        return tuple([(case.request, case.attempt) for case in self.cases]), self.judged_by, self.now


class Recorded(Struct, frozen=True, cache_hash=True):
    """That a block was recorded, for whoever sends it again. `last`: its last sequence."""

    append_id: tuple[object, ...]
    answers: tuple[int, ...]
    last: int


class Tables(Struct, frozen=True, cache_hash=True):
    """The events that the rows show, in the order in which they were folded, and the checkpoint."""

    rows: Log = ()
    checkpoint: Log = ()


class Database(Struct, frozen=True, cache_hash=True):
    """What is committed. `refused`: by request, the number of the last refusal of its key; 0: none."""

    log: Log
    refused: tuple[int, ...]
    refusals: int = 0
    recorded: tuple[Recorded, ...] = ()
    timeline: int = 0
    tables: Tables = Tables()


class Outcome(Struct, frozen=True, cache_hash=True):
    """What became of a block. `answers`: by case, n > 0: recorded as event n; n < 0: a repeat of event -n; 0: its key
    has been refused; empty: overtaken. `landed`: the log up to the block's end. `confirmed`: as the server is
    configured. `now`: another boundary has passed since it was judged, which is this one."""

    answers: tuple[int, ...]
    landed: Log = ()
    confirmed: bool = True
    now: int | None = None


class Transaction(Struct, frozen=True, cache_hash=True):
    """One that holds the tournament's lock, and what it will have done when it commits. `owner`: the process; NOBODY:
    its connection was lost. `block` for an append; else `refuses`, a request whose key is refused. `drawn`: how long
    the log was when it drew its sequences."""

    owner: int
    after: Database
    block: Block | None = None
    outcome: Outcome | None = None
    refuses: int = NOBODY
    drawn: int = 0


class Stage(IntEnum):
    """Of a case that is looked into beside the others: it waits for a barrier, then for the barrier's answer; it is to
    be refused; its refusal is under way; the event that it repeats, or why it was not recorded, is to be read."""

    WAITS = 0
    ASKS = 1
    REFUSE = 2
    REFUSING = 3
    REPLAY = 4
    TELL = 5


class Beside(Struct, frozen=True, cache_hash=True):
    """A case that is looked into beside the others. `sequence`: what it repeats. `outdated`: it was refused by a state
    that lacked something acknowledged before it was asked."""

    case: Case
    stage: Stage
    sequence: int = 0
    outdated: bool = False


class Sending(Struct, frozen=True, cache_hash=True):
    """The block under way; `outcome`: what the database has said, if it has. `reading`: what others appended before it
    is to be read, before it can be answered."""

    block: Block
    outcome: Outcome | None = None
    reading: bool = False


class Query(Struct, frozen=True, cache_hash=True):
    """A barrier's query under way: where the live stood when it was sent, the log whose head it saw, and how many
    boundaries had passed."""

    stood_at: Log
    saw: Log
    now: int = 0


class Process(Struct, frozen=True, cache_hash=True):
    """An API process. `live`: the log that its live has folded; None: it is not in memory. `dropped`: the live is no
    longer the truth, and only settles what is under way. `known`: the refusals that the process knows of. `cut_off`:
    the database was replaced, and the process has not asked it anything since. `now`: how many boundaries had passed
    when the database last told it."""

    live: Log | None = None
    dropped: bool = False
    known: int = 0
    waiting: tuple[Case, ...] = ()
    sending: Sending | None = None
    beside: tuple[Beside, ...] = ()
    query: Query | None = None
    cut_off: bool = False
    now: int = 0

    @property
    def is_ready(self) -> bool:
        """Whether it takes requests."""
        return self.live is not None and not self.dropped

    @property
    def is_idle(self) -> bool:
        """Whether its docket has nothing to do."""
        return self.sending is None and not self.waiting and not self.beside


class Told(IntEnum):
    """What a client knows. UNKNOWN: a 500, a cut connection or no answer. UNAVAILABLE: a 503."""

    NOTHING = 0
    WAITS = 1
    OK = 2
    REFUSED = 3
    UNAVAILABLE = 4
    UNKNOWN = 5


class Client(Struct, frozen=True, cache_hash=True):
    """Who wants one request done. `attempt`: the number of the last. `at`: the process that was asked. `floor`: the
    requests acknowledged to anybody before it was asked, a bit for each; `since`: how many boundaries had passed then.
    `unavailable`: the attempts that were answered with 503, a bit for each."""

    told: Told = Told.NOTHING
    attempt: int = 0
    at: int = NOBODY
    floor: int = 0
    unavailable: int = 0
    since: int = 0


class Reader(Struct, frozen=True, cache_hash=True):
    """Who reads a list, at most `left` more times. `at`: the process that was asked. `asking`: a barrier's query is
    under way for it. `since`: as of a client. `shown`: the requests that an answer has shown, a bit for each."""

    left: int
    at: int = NOBODY
    asking: bool = False
    floor: int = 0
    shown: int = 0
    since: int = 0


class Listener(Struct, frozen=True, cache_hash=True):
    """Who listens to the stream of process `at`, and has `got` this."""

    at: int = NOBODY
    got: Log = ()


class Worker(Struct, frozen=True, cache_hash=True):
    """Who folds the log into the tables. `kept`: the log whose board it has in memory. `folded`: what it is about to
    save, with the checkpoint that it claimed. `saved`: only a mistake saves rows before the checkpoint."""

    kept: Log = ()
    folded: Log | None = None
    claimed: Log = ()
    saved: bool = False


class Left(Struct, frozen=True, cache_hash=True):
    """How many more times each fault can come; and how many boundaries are still to pass."""

    crashes: int = 0
    cuts: int = 0
    losses: int = 0
    expiries: int = 0
    cancels: int = 0
    failovers: int = 0
    worker_crashes: int = 0
    boundaries: int = 0


class World(Struct, frozen=True, cache_hash=True):
    """Everything at one moment. `holders`: the transactions that hold the lock; one, unless by mistake. `orphans`:
    blocks that are with the server although their connection was lost. `copy`: the standby, or the backup. `lost`:
    requests that a failover has lost, a bit for each; `lost_log`: the log it replaced. `on_the_way`: attempts whose
    client has given up, and which have not reached their process yet. `now`: how many boundaries have passed. `broken`:
    the promise that was broken."""

    database: Database
    processes: tuple[Process, ...]
    clients: tuple[Client, ...]
    left: Left
    holders: tuple[Transaction, ...] = ()
    orphans: tuple[Block, ...] = ()
    copy: Database | None = None
    reader: Reader | None = None
    listener: Listener | None = None
    worker: Worker | None = None
    lost: int = 0
    lost_log: Log = ()
    on_the_way: tuple[tuple[int, int, int], ...] = ()
    now: int = 0
    broken: str = ""


def with_process(world: World, p: int, process: Process) -> World:
    """The world with another process `p`."""
    return replace(world, processes=(*world.processes[:p], process, *world.processes[p + 1 :]))


def with_client(world: World, r: int, client: Client) -> World:
    """The world with another client of request `r`."""
    return replace(world, clients=(*world.clients[:r], client, *world.clients[r + 1 :]))
