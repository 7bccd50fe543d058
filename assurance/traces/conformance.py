"""Whether the model can do what a trace says that real processes did.

All rules are those of the model: `misfit` searches for a way through it on which the lines of the trace come one
after the other, the log is in the end what PostgreSQL holds, and no promise is broken. A line is held against the state
of the model at its place:

STARTED    the process was killed since the last line of its life before; what it has in memory is gone
ASKED      the request reaches a process that can take it; it knows of no more refusals than the model's
JUDGED     the process takes just these cases, by a live that ends in this sequence and digest, and would refuse those
LOCKED     the block was judged again under the lock, by the log that ends there
LOST       the process may not have heard of the block; it is sent again
COMMITTED  the block's transaction has ended, with these answers, and the log then ended there
NOTED      the log has these refusals, or the key was used by the request that is named
UNNOTED    the process has not heard that it refuses the key; it refuses it again
FORGOT     the process knows of no refusals any more; the barrier may fail, since it or a block has succeeded last and
           until one does: a session may say that it ends, before the connection is lost
FORKED     the log was replaced, and the live is not of this one, or has to reach what this one lacks; it is dropped
ANSWERED   the case is answered: as the line says, with the event that it names
READ       the reader asks the process, which has the tournament in memory
SHOWN      the process has the barrier's answer, and the list ended in this sequence and digest
OPENED     from here on the process may ask for the head, for a listener that has not begun
LISTENED   the process has the tournament in memory, and the listener begins at or before what was sent to it
SENT       what was sent goes on from what was sent before, up to there, and the process had folded it
CLAIMED    no worker is at work, the checkpoint is where the line says, and the log was read up to this head; if
           PostgreSQL was killed since, the checkpoint may be an earlier one: workers do not wait for the disk
SAVED      the tables have been committed up to this head
CRASHED    see CLAIMED
RESTORED   the log was what PostgreSQL held before it was replaced, and is what the older one held: the model restores

Between two lines any hidden steps of the model may lie: the server takes the lock, executes, commits, rolls back, or
gives up what was sent over a connection that is gone; an answer of the server arrives; a process reads the log or asks
for its head; loads the tournament; dies; a worker commits, or does not. The trace says nothing of these, so they are
searched for. An answer may be given before its line is written, because another process may be faster with the next
line; that it was given is checked where the line is.

Real processes take time for what is one step of the model, so some things are freer here than there:

- What a process reads of the log may be older than the log is when the step ends, though never older than what its live
  shows, or the head that its barrier saw.
- A live may show what a barrier has read before those who wait for it go on; and some of them may go on later, as if
  they had waited for the next barrier. So may the reader.
- What a request knows of refusals is what its line says, if that is no more than the process could know. Keys that are
  refused together get one number, as in `refuse_keys`, also if the process dies before it has noted all of them.
- A process that noted a refusal and died may not have answered it.
- What was sent to a listener over a connection that is gone may not have come, so it may begin anywhere before.
- A worker may read less than all of the log; one that does not die may fail.
- What a process read before the log was replaced it may write down, send or answer with afterwards. It answers 500
  without a look at its live if the log has not got what it was to read.
- A live that was dropped and the next one may work beside each other, as two processes do: to the model, they are two.

Not looked at: what an answer shows of the table, which I6 and I9 of the fault campaign are about; a log that is
replaced twice; points that expire; a request without a key that is asked again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from operator import gt
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from assurance.model import appender, barrier, clients, docket, faults, worker
from assurance.model.database import OVERTAKEN
from assurance.model.docket import is_prefix
from assurance.model.invariants import broken
from assurance.model.protocol import Protocol
from assurance.model.scenario import Scenario
from assurance.model.search import normal
from assurance.model.state import (
    NOBODY,
    Beside,
    Case,
    Client,
    Database,
    Event,
    Left,
    Listener,
    Outcome,
    Process,
    Reader,
    Request,
    Sending,
    Stage,
    Tables,
    Told,
    Worker,
    World,
    with_process,
)
from assurance.model.state import Log as ModelLog
from assurance.traces.lines import DATABASE, SERVICES, WORKERS, Did, Line, Log, Said, Trace

STATES_MAX: Final = 50_000
"""After visiting this many states, a search gives up. Most accepted traces need some hundreds or thousands."""
PATIENT_STATES_MAX: Final = 1_000_000
"""The same, where the verdict matters more than the time: few accepted traces need more than STATES_MAX."""
GAVE_UP: Final = "gave up at"
LIVES_MAX: Final = 2
"""Of a tournament in the memory of a process, if the database is replaced once: another live of the other log."""
_MANY: Final = 1_000_000
_FOUND_LOST: Final = (Did.FORGOT, Did.STARTED, Did.SHOWN)
_TOLD: Final = {
    Said.OK: Told.OK,
    Said.REPEATED: Told.OK,
    Said.REFUSED: Told.REFUSED,
    Said.UNAVAILABLE: Told.UNAVAILABLE,
    Said.UNKNOWN: Told.UNKNOWN,
}


def misfit(trace: Trace, states_max: int = STATES_MAX) -> str:
    """Empty: the model accepts the trace. Else the first line that it cannot get beyond, and why not."""
    try:
        return Conformance(trace).misfit(states_max)
    except Contradiction as error:
        return str(error)


class Contradiction(Exception):
    """The trace does not make sense, whatever the model says."""


class _Observed(Protocol):
    """The model's protocol, where nobody is told anything that the trace does not say."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.answers: dict[tuple[int, int], Told] = {}
        """By request and attempt."""
        self.unheard: set[tuple[int, int]] = set()
        """Attempts whose refusal was noted by a process that died before it could answer."""
        self.unnoted: set[tuple[int, int]] = set()
        """Attempts of a process that died, by which their keys may have been refused before it could note that."""
        self.histories: list[_History] = []

    def told(self, world: World, case: Case, told: Told, live: ModelLog | None = None, **facts: object) -> World:
        attempt = case.request, case.attempt
        if self.answers.get(attempt) is not told and not (told is Told.REFUSED and attempt in self.unheard):
            return replace(world, broken="trace: nobody was told that")
        return super().told(world, case, told, live, **facts)  # type: ignore[arg-type]

    def next_refusal(self, database: Database, request: int) -> int:
        history = self.histories[database.timeline]
        numbers = history.refusals.get(request, [])
        after = database.refusals + 1
        number = next((n for n in numbers if n > database.refused[request]), after)
        return after if number > database.refusals and after in history.unnamed else number


class _History:
    """A log of the trace, in the words of the model: how its log has ended."""

    def __init__(self, log: Log, requests: dict[str, int], noted: Iterable[tuple[int, str]]) -> None:
        self.log = log
        self.requests = tuple([requests[entry.request] for entry in log.entries])
        self.places = {log.begin: 0} | {entry.last: n for n, entry in enumerate(log.entries, 1)}
        """Of the last sequence of each entry."""
        self.firsts = {entry.first: n for n, entry in enumerate(log.entries, 1)}
        self.reverses = tuple([tuple(self.firsts[one] for one in entry.reverses) for entry in log.entries])
        named = {*noted, *((number, request) for request, number in log.refusals.items())}
        named = {(number, request) for number, request in named if number <= log.refusals.get(request, 0)}
        self.named = sorted([(number, requests[one]) for number, one in named if one in requests])
        """The refusals that are known, by number and request."""
        self.refusals: dict[int, list[int]] = {}
        """By request, the numbers of its refusals, ascending."""
        for number, r in self.named:
            self.refusals.setdefault(r, []).append(number)
        numbers = {number for number, _ in named}
        self.unnamed = set(range(1, max(numbers, default=0))) - numbers
        """Numbers of refusals that nobody wrote down, and whose keys were refused once more later."""
        self._last_refusals = {requests[one]: number for one, number in log.refusals.items() if one in requests}
        self._on_the_way: dict[Database, bool] = {}

    @cached_property
    def _lasts(self) -> list[int]:
        return [entry.last for entry in self.log.entries]

    @cached_property
    def _ends(self) -> list[int]:
        return sorted(self.log.digests)

    def place(self, sequence: int) -> int:
        """How many requests were recorded whole up to there."""
        return bisect_right(self._lasts, sequence)

    def digest(self, sequence: int) -> str:
        """That of the block which has the event; empty: there is none."""
        place = bisect_left(self._ends, sequence)
        return "" if place == len(self._ends) else self.log.digests[self._ends[place]]

    def has_head(self, line: Line) -> bool:
        """Whether a block ends where the line says, with that digest."""
        return self.log.digests.get(line.sequence) == line.digest

    def can_become_of(self, database: Database) -> bool:
        """Whether the log and its refusals can become what they are in the end."""
        if database not in self._on_the_way:
            self._on_the_way[database] = self._is_on_the_way(database)
        return self._on_the_way[database]

    def _is_on_the_way(self, database: Database) -> bool:
        log, refused = database.log, database.refused
        lasts = self._last_refusals
        if any(n and n not in self.refusals.get(r, ()) and n >= lasts.get(r, 0) for r, n in enumerate(refused)):
            return False
        done = [refused[r] >= number for number, r in self.named]
        return (
            sorted(done, reverse=True) == done
            and tuple([event.request for event in log]) == self.requests[: len(log)]
            and tuple([event.reverses for event in log]) == self.reverses[: len(log)]
        )


class Conformance:
    """The search for one trace."""

    def __init__(self, trace: Trace) -> None:
        lives = 1 if trace.lost is None else LIVES_MAX
        self._services = range(lives * len(SERVICES))
        self._lines = tuple(_by_lives(trace, lives))
        processes = len(self._services) + len(WORKERS) + 1
        self._lost = trace.lost
        self._replaced_at = next((n for n, line in enumerate(self._lines) if line.did is Did.RESTORED), _MANY)
        self._requests: dict[str, int] = {}
        self._cases: dict[tuple[int, int, int], Case] = {}
        """By process, its life, and the number of the case there."""
        self._lives: list[tuple[int, ...]] = []
        """At each line, which life each process is in."""
        wanted: list[Request] = []
        attempts: dict[int, int] = {}
        lives_begun = [0] * processes
        for line in self._lines:
            if line.did is Did.STARTED:
                lives_begun[line.process] += 1
            elif line.did is Did.ASKED:
                r = self._requests.setdefault(line.request, len(wanted))
                if r == len(wanted):
                    wanted.append(Request(line.kind, line.keyed, line.request))
                if wanted[r] != Request(line.kind, line.keyed, line.request):
                    raise Contradiction(f"{line} asks for another thing than before")
                if line.refusals and not line.keyed:
                    raise Contradiction(f"{line} has no key that could be refused")
                attempts[r] = attempts.get(r, -1) + 1
                case = lives_begun[line.process], line.process, line.case
                if case in self._cases:
                    raise Contradiction(f"{line} has the number of another case")
                self._cases[case] = Case(r, attempts[r])
            self._lives.append(tuple(lives_begun))
        scenario = Scenario(name="a trace", requests=tuple(wanted), left=Left(crashes=_MANY, cuts=_MANY))
        self._protocol = _Observed(replace(scenario, attempts=_MANY))
        self._unread: set[tuple[int, int]] = set()
        """Attempts whose answer their client did not wait for."""
        self._take_answers()
        self._take_logs(trace)
        self._look_ahead(processes)
        self._look_back(processes)

    def _take_logs(self, trace: Trace) -> None:
        """The history that was lost, if one was, and that of the end; with the refusals that were noted in each."""
        if unasked := {entry.request for log in trace.logs for entry in log.entries} - self._requests.keys():
            raise Contradiction(f"nobody asked for {sorted(unasked)}, which the log holds")
        noted = [
            (place, (line.refusals, line.request))
            for place, line in enumerate(self._lines)
            if line.did is Did.NOTED and not line.sequence
        ]
        if lacking := [one for _, one in noted if all(one[0] > log.refusals.get(one[1], 0) for log in trace.logs)]:
            raise Contradiction(f"refusal {lacking[0]} is not in the log")
        self._histories = self._protocol.histories
        before = [one for place, one in noted if place < self._replaced_at]
        after = [one for place, one in noted if place > self._replaced_at]
        if (lost := trace.lost) is not None:
            self._histories.append(_History(lost.log, self._requests, before))
            before = [(number, key) for number, key in before if number <= lost.refusals.get(key, 0)]
            after = [(number, key) for number, key in after if number > lost.refused]
        self._histories.append(_History(trace.log, self._requests, before + after))

    def _case(self, place: int, line: Line, number: int) -> Case:
        case = self._lives[place][line.process], line.process, number
        if case not in self._cases:
            raise Contradiction(f"nobody asked for what {line} is about")
        return self._cases[case]

    def _take_answers(self) -> None:
        for place, line in enumerate(self._lines):
            if line.did is Did.ANSWERED:
                case = self._case(place, line, line.case)
                if (case.request, case.attempt) in self._protocol.answers:
                    raise Contradiction(f"{line} answers once more")
                self._protocol.answers[case.request, case.attempt] = _TOLD[line.said]
            elif line.did is Did.ASKED:
                case = self._case(place, line, line.case)
                before = case.request, case.attempt - 1
                if case.attempt and self._protocol.answers.get(before) not in (Told.UNAVAILABLE, Told.UNKNOWN):
                    self._unread.add(before)
        noted = self._take_shape()
        for (life, process, _), case in self._cases.items():
            name = self._protocol.requests[case.request].name
            answered = (case.request, case.attempt) in self._protocol.answers
            if not answered and life < self._lives[-1][process]:
                is_noted = (life, process, name) in noted
                attempts = self._protocol.unheard if is_noted else self._protocol.unnoted
                attempts.add((case.request, case.attempt))

    def _take_shape(self) -> set[tuple[int, int, str]]:
        """Which keys each life has noted. What the model's steps do not show is looked at here: of each life, a block
        is under way until it has committed, and no other is taken meanwhile; the reader asks again when it has its
        answer, or when the process has died; a key is noted for somebody who asked with it, once; and before a case
        with a key is refused, its key is noted."""
        under_way: dict[tuple[int, int], tuple[int, ...]] = {}
        wanted = [(*life, self._protocol.requests[case.request].name) for (*life, _), case in self._cases.items()]
        noted: list[tuple[int, int, str]] = []
        reading: tuple[int, int] | None = None
        self._followed = _Followed(self._of_lives())
        lasts = {life: place for place, (life, _) in enumerate(self._of_lives())}
        for place, (life, line) in enumerate(self._of_lives()):
            if (line.did is Did.JUDGED and line.taken and life in under_way) or (
                line.did in (Did.LOCKED, Did.COMMITTED) and life not in under_way
            ):
                raise Contradiction(f"{line} is of another block than the one under way")
            if line.did is Did.COMMITTED:
                del under_way[life]
            elif line.did is Did.JUDGED and line.taken:
                under_way[life] = line.taken
            elif line.did is Did.READ:
                if reading is not None and (lasts[reading] >= place or self._is_last(reading)):
                    raise Contradiction(f"{line} is before the end of another read")
                reading = life
            elif line.did is Did.SHOWN:
                if reading != life:
                    raise Contradiction(f"{line} shows what nobody has asked for")
                reading = None
            elif line.did is Did.NOTED:
                noted.append((*life, line.request))
                if noted.count(noted[-1]) > wanted.count(noted[-1]):
                    raise Contradiction(f"{line} is about a key with which nobody asked")
            elif line.did is Did.ANSWERED and line.case in under_way.get(life, ()):
                raise Contradiction(f"{line} is before the end of its block")
            elif line.did is Did.ANSWERED and line.said is Said.REFUSED:
                request = self._protocol.requests[self._case(place, line, line.case).request]
                if request.keyed and (*life, request.name) not in noted:
                    raise Contradiction(f"{line} refuses a key that was not noted")
        if any(self._is_last(life) for life in under_way):
            raise Contradiction("a block never ended")
        if reading is not None and self._is_last(reading):
            raise Contradiction("a read never ended")
        return set(noted)

    def _is_last(self, life: tuple[int, int]) -> bool:
        number, process = life
        return number == self._lives[-1][process]

    def _of_lives(self) -> Iterator[tuple[tuple[int, int], Line]]:
        """Each line, with the life and the process that it is of."""
        for lives, line in zip(self._lives, self._lines, strict=True):
            yield (lives[line.process], line.process), line

    def _look_ahead(self, processes: int) -> None:
        """When each case is judged for the last time, and each request asked for. And from the last line to the first:
        whether each process says nothing more in its life, the last head that its live may have reached, how its block
        under way ends, and the head that a reader who has an answer was shown; None: any."""
        self._judged_last: dict[tuple[int, int], int] = {}
        self._asked_last: dict[int, int] = {}
        for place, line in enumerate(self._lines):
            if line.did is Did.ASKED:
                self._asked_last[self._requests[line.request]] = place
            for case in [self._case(place, line, number) for number in (*line.taken, *line.refused)]:
                self._judged_last[case.request, case.attempt] = place
        dying, heads = [False] * processes, [_MANY] * len(self._services)
        ends: list[_End | None] = [None] * len(self._services)
        shown: int | None = None
        self._is_dying, self._next_heads, self._next_ends = [tuple(dying)], [tuple(heads)], [tuple(ends)]
        self._next_shown = [shown]
        unnoted: frozenset[tuple[int, str]] = frozenset()
        self._next_unnoted = [unnoted]
        losing = [False] * processes
        self._will_lose = [tuple(losing)]
        for line in reversed(self._lines):
            dying[line.process] = line.did is Did.STARTED
            if line.did is Did.STARTED and line.process in self._services:
                heads[line.process] = _MANY
            elif line.did in (Did.JUDGED, Did.LOCKED, Did.SHOWN):
                heads[line.process] = self._place_of_head(line)
            if line.did is Did.COMMITTED:
                ends[line.process] = _End(line)
            elif line.did is Did.LOCKED and (end := ends[line.process]) is not None:
                ends[line.process] = replace(end, judged_at=self._place_of_head(line))
            elif line.process in self._services and (line.did is Did.STARTED or line.taken):
                ends[line.process] = None
            if line.did in (Did.READ, Did.SHOWN):
                shown = self._place_of_head(line) if line.did is Did.SHOWN else None
            if line.did is Did.UNNOTED:
                unnoted |= {(line.process, line.request)}
            elif line.did is Did.NOTED:
                unnoted -= {(line.process, line.request)}
            elif line.did is Did.STARTED:
                unnoted = frozenset([one for one in unnoted if one[0] != line.process])
            if line.did in _FOUND_LOST or line.answers:
                losing[line.process] = line.did is Did.FORGOT
            self._will_lose.append(tuple(losing))
            self._next_unnoted.append(unnoted)
            self._is_dying.append(tuple(dying))
            self._next_heads.append(tuple(heads))
            self._next_ends.append(tuple(ends))
            self._next_shown.append(shown)
        ahead = (self._is_dying, self._next_heads, self._next_ends, self._next_shown, self._next_unnoted)
        for one in (*ahead, self._will_lose):
            one.reverse()

    def _look_back(self, processes: int) -> None:
        """From the first line to the last, of each process: whether a listener has begun to open its stream; whether a
        connection was lost, and nothing heard since; whether its live was dropped in this life; and whether its block
        under way may have reached the server over a connection that was lost. And whether the tables may lack what
        workers had committed, because PostgreSQL was killed."""
        opening, losing, forked, sent = ([False] * processes for _ in range(4))
        self._is_opening, self._has_lost = [tuple(opening)], [tuple(losing)]
        self._has_forked, self._was_sent = [tuple(forked)], [tuple(sent)]
        may_lack, saved = False, set(self._followed.saved.values())
        self._may_lack: list[bool] = []
        for place, line in enumerate(self._lines):
            self._may_lack.append(may_lack)
            may_lack = line.did is Did.CRASHED or (may_lack and place not in saved)
            if line.did in (Did.LOST, Did.STARTED) or line.taken:
                sent[line.process] = line.did is Did.LOST
            self._was_sent.append(tuple(sent))
            if line.did in (Did.FORKED, Did.STARTED):
                forked[line.process] = line.did is Did.FORKED
            self._has_forked.append(tuple(forked))
            if line.did in (Did.OPENED, Did.LISTENED, Did.STARTED):
                opening[line.process] = line.did is Did.OPENED
            if line.did in _FOUND_LOST or line.answers:
                losing[line.process] = line.did is Did.FORGOT
            self._is_opening.append(tuple(opening))
            self._has_lost.append(tuple(losing))

    def _place_of_head(self, line: Line) -> int:
        """How many requests had been recorded when a block ended where the line says; -1: there was no such block."""
        return next((one.places.get(line.sequence, -1) for one in self._histories if one.has_head(line)), -1)

    def _history_of(self, log: ModelLog) -> _History:
        """That of which the log is a part: of the last, unless it is the same in both."""
        return self._histories[log[-1].timeline if log else 0]

    # ── The search ──────────────────────────────────────────────────────────────────────────────────────

    def misfit(self, states_max: int) -> str:
        count = len(self._protocol.requests)
        first = World(
            database=Database((), (0,) * count),
            processes=(Process(),) * len(self._services),
            clients=(Client(),) * count,
            left=self._protocol.scenario.left,
            reader=Reader(_MANY) if any(line.did is Did.READ for line in self._lines) else None,
            listener=Listener() if any(line.did is Did.LISTENED for line in self._lines) else None,
            worker=Worker() if any(line.did is Did.CLAIMED for line in self._lines) else None,
        )
        nodes, known, farthest = [(0, first)], {(0, first)}, 0
        while nodes:
            place, world = nodes.pop()
            farthest = max(farthest, place)
            if place == len(self._lines) and self._is_whole(world):
                return ""
            if len(known) > states_max:
                return f"{GAVE_UP} line {farthest + 1}: {self._lines[min(farthest, len(self._lines) - 1)]}"
            following = [(place, after) for after in self._hidden(world, place)]
            if place < len(self._lines):
                following += [(place + 1, after) for after in self._matched(world, place, self._lines[place])]
            for n, there in following:
                node = n, _normal(there)
                if node not in known and self._is_possible(*node):
                    known.add(node)
                    nodes.append(node)
        if farthest == len(self._lines):
            return "it has not ended as it did"
        return f"line {farthest + 1}: {self._lines[farthest]}"

    def _is_whole(self, world: World) -> bool:
        """Whether everything has ended as it did."""
        log = self._histories[-1].requests
        return len(world.database.log) == len(log) and all(process.is_idle for process in world.processes)

    def _is_possible(self, place: int, world: World) -> bool:
        """Whether the log and its refusals can become what they are in the end; the lives, blocks and the reader what
        they are next seen to be; and no promise is broken. A block whose process dies may be rolled back."""
        shown = self._next_shown[place]
        reader = world.reader if shown is not None else None
        if reader is not None and reader.at == NOBODY and reader.shown.bit_count() != shown:
            return False
        history = self._histories[world.database.timeline]
        if not history.can_become_of(world.database) or not self._may_refuse_next(history, place, world):
            return False
        for holder in world.holders:
            is_heard = holder.owner != NOBODY and self._next_ends[place][holder.owner] is not None
            if (is_heard or holder.block is None) and not history.can_become_of(holder.after):
                return False
        for p, end in enumerate(self._next_ends[place]):
            if end is not None and not self._may_end(world, p, end):
                return False
        for process, most in zip(world.processes, self._next_heads[place], strict=True):
            if len(process.live or ()) > most:
                return False
            for one in process.beside:
                last = self._judged_last.get((one.case.request, one.case.attempt), -1)
                if last >= place and one.stage not in (Stage.WAITS, Stage.ASKS):
                    return False
        return not broken(self._protocol, world)

    def _may_refuse_next(self, history: _History, place: int, world: World) -> bool:
        """Whether somebody has the key that is to be refused next, or will have it."""
        refused = world.database.refused
        number, r = next(((number, r) for number, r in history.named if refused[r] < number), (0, NOBODY))
        return (
            self._asked_last.get(r, _MANY) >= place
            or any(holder.after.refused[r] >= number for holder in world.holders)
            or any(case.request == r for process in world.processes for case in _cases(process))
        )

    def _may_end(self, world: World, p: int, end: "_End") -> bool:
        """Whether the block of the process, once it is executed, is judged and ends as it does."""
        sending = world.processes[p].sending
        if sending is None:
            return False
        outcome = sending.outcome or next(
            (holder.outcome for holder in world.holders if holder.owner == p and holder.block is not None), None
        )
        if outcome is None:
            return True
        is_judged = end.judged_at is None or len(sending.block.judged_by) == end.judged_at
        return is_judged and self._is_outcome(outcome, end.committed)

    def _hidden(self, world: World, place: int) -> Iterator[World]:
        """What steps of which the trace says nothing lead to, before the line at `place`."""
        dying = [p for p in self._services if self._is_dying[place][p]]
        for p in dying:
            if world.processes[p].live is not None:
                yield faults.killed(world, p)
        if world.worker is not None and world.worker.folded is not None:
            for _, there in worker.steps(self._protocol, world):
                yield there
        for _, there in appender.steps(self._protocol, world):
            yield there
        yield from self._refused_together(world)
        yield from self._lost_connections(world, place)
        yield from self._unseen(world)
        log = world.database.log
        for p, process in enumerate(world.processes):
            if self._is_opening[place][p] and process.is_ready and process.query is None and process.live != log:
                yield barrier.asked(world, p)
            if process.live is not None and process.query is not None:
                for end in range(len(process.live) + 1, len(log) + 1) if docket.follows(process, log) else ():
                    yield with_process(world, p, replace(process, live=log[:end]))
                asking = [one for one in process.beside if one.stage is Stage.ASKS]
                reads = world.reader is not None and world.reader.at == p and world.reader.asking
                for late in asking if len(asking) + reads > 1 else ():
                    waits = replace(late, stage=Stage.WAITS)
                    beside = tuple([waits if one is late else one for one in process.beside])
                    yield with_process(world, p, replace(process, beside=beside))
                if asking and world.reader is not None and reads:
                    yield replace(world, reader=replace(world.reader, asking=False))
        ends = [len(process.live) for process in world.processes if process.live is not None and _reads(process)]
        for end in range(min([*ends, len(log)]), len(log) + 1):
            past = world if end == len(log) else replace(world, database=replace(world.database, log=log[:end]))
            for _, there in chain(docket.steps(self._protocol, past), barrier.steps(self._protocol, past)):
                (p,) = [p for p in self._services if there.processes[p] is not world.processes[p]]
                before, after = world.processes[p], there.processes[p]
                if after.dropped is not before.dropped or (len(after.waiting) < len(before.waiting) and after.is_ready):
                    continue  # it finds another log, or judges: that is a line
                if before.live is None and not self._may_load(place, p):
                    continue
                if p in dying and after.query is before.query is None:
                    continue  # nobody will see what becomes of it; and it begins again with its STARTED
                if end < len(log) and not _may_have_read(before, after, end):
                    continue
                yield replace(there, database=world.database)

    def _may_load(self, place: int, p: int) -> bool:
        """Whether this is the process until it has found another log, or from then on."""
        first = p % len(SERVICES)
        return self._has_forked[place][first] == (p != first)

    def _unseen(self, world: World) -> Iterator[World]:
        """Steps of a process that does not look whether its live is of this log. If what it is to answer with is not
        there any more: 500. What overtook its block may have come with the answer."""
        log = world.database.log
        for p, process in enumerate(world.processes if world.database.timeline else ()):
            for one in process.beside:
                found = log[one.sequence - 1 : one.sequence]
                if one.stage is Stage.REPLAY and [event.request for event in found] != [one.case.request]:
                    after = with_process(world, p, replace(process, beside=docket.without(process.beside, one)))
                    yield self._protocol.told(after, one.case, Told.UNKNOWN)
            sending, live = process.sending, process.live or ()
            if sending is None or sending.outcome is None:
                continue
            cases, landed = sending.block.cases, sending.outcome.landed
            if sending.reading and not is_prefix(landed, log):
                after = with_process(world, p, replace(process, sending=None))
                yield docket.tell_all(self._protocol, after, cases, Told.UNKNOWN)
            elif not sending.outcome.answers and len(live) > len(sending.block.judged_by) and not is_prefix(live, log):
                again = replace(process, sending=None, waiting=(*cases, *process.waiting))
                yield with_process(world, p, again)

    def _lost_connections(self, world: World, place: int) -> Iterator[World]:
        """A connection is lost over which the process refuses a key, or asks for the head. Who waits for the head waits
        for the next one, or is answered with 503; so is a block that was overtaken, when the process cannot read what
        overtook it, and one that the process cannot send."""
        for p, process in enumerate(world.processes):
            for one in process.beside:
                name = self._protocol.requests[one.case.request].name
                if one.stage is Stage.REFUSING and (p, name) in self._next_unnoted[place]:
                    again = (*docket.without(process.beside, one), replace(one, stage=Stage.REFUSE))
                    after = with_process(world, p, replace(process, beside=again))
                    yield appender.refusal_orphaned(after, p)
            if not self._has_lost[place][p] and not self._will_lose[place][p]:
                continue
            if process.query is not None:
                waits = tuple(
                    [replace(one, stage=Stage.WAITS) if one.stage is Stage.ASKS else one for one in process.beside]
                )
                after = with_process(world, p, replace(process, query=None, beside=waits))
                if world.reader is not None and world.reader.at == p:
                    after = replace(after, reader=replace(world.reader, asking=False))
                yield after
            for one in process.beside:
                if one.stage is Stage.WAITS:
                    after = with_process(world, p, replace(process, beside=docket.without(process.beside, one)))
                    yield self._protocol.told(after, one.case, Told.UNAVAILABLE)
            sending, end = process.sending, self._next_ends[place][p]
            if sending is not None and sending.outcome is None and end is not None and not end.committed.answers:
                is_held = any(holder.owner == p and holder.block is not None for holder in world.holders)
                if not is_held and not self._was_sent[place][p]:
                    yield with_process(world, p, replace(process, sending=Sending(sending.block, OVERTAKEN)))
            if sending is not None and sending.outcome is not None and not sending.outcome.answers:
                after = with_process(world, p, replace(process, sending=None))
                yield docket.tell_all(self._protocol, after, sending.block.cases, Told.UNAVAILABLE)

    def _refused_together(self, world: World) -> Iterator[World]:
        """Another key is refused with the one under way, and its process dies before it notes that."""
        known = self._protocol.board(world.database.log).requests
        for holder in world.holders:
            after = holder.after
            if NOBODY in (holder.refuses, holder.owner) or after.refusals == world.database.refusals:
                continue
            for case in [one.case for one in world.processes[holder.owner].beside if one.stage is Stage.REFUSE]:
                r = case.request
                if (r, case.attempt) in self._protocol.unnoted and not known & 1 << r:
                    refused = (*after.refused[:r], after.refusals, *after.refused[r + 1 :])
                    yield replace(world, holders=(replace(holder, after=replace(after, refused=refused)),))

    # ── Lines ───────────────────────────────────────────────────────────────────────────────────────────

    def _matched(self, world: World, place: int, line: Line) -> Iterator[World]:
        """What the world is after the line, if it may come here."""
        if line.process not in self._services:
            yield from self._matched_elsewhere(world, place, line)
            return
        process, reader = world.processes[line.process], world.reader
        match line.did:
            case Did.STARTED:
                if process.live is None:
                    yield world
            case Did.ASKED:
                yield from self._asked(world, self._case(place, line, line.case), line)
            case Did.JUDGED:
                yield from self._judged(world, place, line)
            case Did.LOCKED:
                sending = process.sending
                if sending is not None and self._is_head(sending.block.judged_by, line):
                    yield world
            case Did.LOST:
                yield from self._lost_block(world, line)
            case Did.COMMITTED:
                if self._has_committed(process, line):
                    yield world
            case Did.NOTED:
                if self._is_noted(world, line):
                    yield world
            case Did.UNNOTED:
                refusing = [one.case.request for one in process.beside if one.stage is Stage.REFUSING]
                if self._requests.get(line.request) not in refusing:
                    yield world
            case Did.FORGOT:
                yield with_process(world, line.process, docket.end_of_epoch(process))
            case Did.FORKED:
                yield from self._forked(world, line)
            case Did.ANSWERED:
                if self._is_answered(world, self._case(place, line, line.case), line):
                    yield world
            case Did.READ:
                if process.is_ready and reader is not None and reader.at == NOBODY:
                    yield clients.read(self._protocol, world, line.process)[1]
            case Did.SHOWN:
                if reader is not None and self._is_shown(reader, line):
                    kept = self._protocol.board(world.database.log).requests
                    yield replace(world, reader=replace(reader, shown=reader.shown & kept))
            case Did.OPENED:
                yield world
            case Did.LISTENED:
                yield from self._listened(world, line)
            case Did.SENT:
                yield from self._sent(world, line)

    def _matched_elsewhere(self, world: World, place: int, line: Line) -> Iterator[World]:
        """As `_matched`, of a line that is not of an API process."""
        match line.did:
            case Did.CLAIMED:
                yield from self._claimed(world, place, line)
            case Did.SAVED:
                is_lost = self._followed.saved[place] < self._replaced_at < place
                if is_lost or len(world.database.tables.checkpoint) >= self._place_of_head(line) >= 0:
                    yield world
            case Did.RESTORED:
                yield from self._restored(world, place, line)
            case _:
                yield world

    def _lost_block(self, world: World, line: Line) -> Iterator[World]:
        """The block is sent again; the server may still have it. A block without players is passed over."""
        process = world.processes[line.process]
        sending = process.sending
        if sending is None:
            yield world
        elif not sending.reading:
            again = replace(process, sending=Sending(sending.block))
            yield with_process(appender.orphaned(world, line.process, sending), line.process, again)

    def _restored(self, world: World, place: int, line: Line) -> Iterator[World]:
        """What was there has become all that was lost, and what is there now was there once."""
        lost, database = self._lost, world.database
        history, end = self._histories[0], self._place_of_head(line)
        if lost is None or end < 0 or not all(one.has_head(line) for one in self._histories):
            return
        is_whole = all(database.refused[r] >= number for number, r in history.named)
        refused = tuple([lost.refusals.get(request.name, 0) for request in self._protocol.requests])
        if not is_whole or len(database.log) < len(history.requests) or any(map(gt, refused, database.refused)):
            return
        log = database.log[:end]
        folded = log[: history.place(lost.checkpoint)]
        recorded = tuple([one for one in database.recorded if one.last <= end])
        copy = Database(log, refused, lost.refused, recorded, database.timeline, Tables(folded, folded))
        reader = world.reader
        for there in self._read_before(world):
            after = faults.replaced(self._protocol, there, copy)
            if reader is not None and reader.at == NOBODY and self._next_shown[place] is not None:
                after = replace(after, reader=reader)  # its answer is the next line about it
            yield after

    def _read_before(self, world: World) -> Iterator[World]:
        """A process that reads the log may have read some of it before another takes its place."""
        worlds, log = [world], world.database.log
        for p, process in enumerate(world.processes):
            if _reads(process) and docket.follows(process, log):
                assert process.live is not None
                lives = [log[:end] for end in range(len(process.live), len(log) + 1)]
                worlds = [with_process(one, p, replace(process, live=live)) for one in worlds for live in lives]
        yield from worlds

    def _forked(self, world: World, line: Line) -> Iterator[World]:
        """The process drops its live: that is not of this log, or it has to reach what this log does not have. Whoever
        has it look, a read that is passed over or a listener too, the others learn of it afterwards."""
        p = line.process
        process = world.processes[p]
        if not process.is_ready or not world.database.timeline:
            return
        if not docket.follows(process, world.database.log):
            yield with_process(world, p, docket.dropped(process))
            return
        for _, there in chain(docket.steps(self._protocol, world), barrier.steps(self._protocol, world)):
            if there.processes[p].dropped:
                yield there

    def _listened(self, world: World, line: Line) -> Iterator[World]:
        listener, process = world.listener, world.processes[line.process]
        if listener is None or not process.is_ready:
            return
        history = self._history_of(listener.got)
        begins = history.place(line.sequence)
        if begins <= len(listener.got) and (not line.sequence or history.digest(line.sequence) == line.digest):
            yield replace(world, listener=Listener(line.process, listener.got[:begins]))

    def _sent(self, world: World, line: Line) -> Iterator[World]:
        listener, live, log = world.listener, world.processes[line.process].live, world.database.log
        if listener is None or listener.at != line.process or live is None or not is_prefix(listener.got, live):
            return
        history = self._history_of(live)
        got = live[: history.place(line.sequence)]
        is_there = is_prefix(got, log) or is_prefix(got, world.lost_log)  # what it had read
        is_there = is_there and len(got) == history.place(line.sequence)
        if is_there and history.digest(line.sequence) == line.digest and is_prefix(listener.got, got):
            yield replace(world, listener=replace(listener, got=got))

    def _claimed(self, world: World, place: int, line: Line) -> Iterator[World]:
        """A worker that is not seen to have saved what it read may have, or not."""
        tables, log = world.database.tables, world.database.log
        is_saved = place in self._followed.saved.values()
        if place > self._replaced_at and not is_saved and self._histories[0].has_head(line):
            yield world  # it had read that before
        history = self._histories[world.database.timeline]
        end = history.places.get(line.sequence, -1)
        if world.worker is None or world.worker.folded is not None or not history.has_head(line):
            return
        after = history.place(line.after)
        if (after == len(tables.checkpoint) or (after < len(tables.checkpoint) and self._may_lack[place])) and (
            after < end <= len(log)
        ):
            folded = tables.rows[:after] + log[after:end]
            left = replace(world.left, worker_crashes=0 if is_saved else 1)
            tables = Tables(tables.rows[:after], tables.checkpoint[:after])
            worker_ = Worker(folded=folded, claimed=log[:end])
            yield replace(world, database=replace(world.database, tables=tables), worker=worker_, left=left)

    def _asked(self, world: World, case: Case, line: Line) -> Iterator[World]:
        process, client = world.processes[line.process], world.clients[case.request]
        if process.live is None or not clients.may_ask(self._protocol, case.request, client):
            return
        _, world = clients.asked(self._protocol, world, case.request, line.process)
        process = world.processes[line.process]
        asked = process.waiting[-1]
        known = max(one.known for one in world.processes[line.process % len(SERVICES) :: len(SERVICES)])
        if asked.attempt != case.attempt or line.refusals > known:
            return
        stamped = replace(process, waiting=(*process.waiting[:-1], replace(asked, stamp=line.refusals)))
        world = with_process(world, line.process, stamped)
        if (case.request, case.attempt) in self._unread:
            _, world = clients.cut(self._protocol, world, case.request)
        yield world

    def _judged(self, world: World, place: int, line: Line) -> Iterator[World]:
        process = world.processes[line.process]
        if process.live is None or not self._is_head(process.live, line):
            return
        taken = [self._case(place, line, number) for number in line.taken]
        refused = [self._case(place, line, number) for number in line.refused]
        for _, there in docket.steps(self._protocol, world):
            after = there.processes[line.process]
            if len(after.waiting) >= len(process.waiting):
                continue
            sending, new = after.sending, after.beside[len(process.beside) :]
            cases = () if sending is None or process.sending is not None else sending.block.cases
            if not _are(cases, taken) or not _are([one.case for one in new], refused):
                continue
            if (sending.block.refusals if sending is not None and cases else 0) == line.refusals:
                yield there

    def _has_committed(self, process: Process, line: Line) -> bool:
        outcome = None if process.sending is None else process.sending.outcome
        return outcome is not None and self._is_outcome(outcome, line)

    def _is_outcome(self, outcome: Outcome, line: Line) -> bool:
        firsts = self._history_of(outcome.landed).firsts
        answers = tuple([0 if one is None else _placed(one, firsts) for one in line.answers])
        return outcome.answers == answers and (not line.sequence or self._is_head(outcome.landed, line))

    def _is_noted(self, world: World, line: Line) -> bool:
        r = self._requests.get(line.request, -1)
        if r < 0:
            return False
        if not line.sequence:
            lost = self._lost.log.refusals if self._lost is not None and world.database.timeline else {}
            return world.database.refusals >= line.refusals or lost.get(line.request) == line.refusals
        return bool(self._events(world, line.sequence, r))

    def _events(self, world: World, sequence: int, request: int) -> list[Event]:
        """The event of this request that begins there: in the log, and in the one that it replaced."""
        found = []
        for log in (world.database.log, world.lost_log):
            place = self._history_of(log).firsts.get(sequence, 0)
            found += [event for event in log[:place][place - 1 :] if event.request == request]
        return found

    def _is_answered(self, world: World, case: Case, line: Line) -> bool:
        """Whether the process is done with the case, and the event is the one that the line names."""
        process = world.processes[line.process]
        sent = () if process.sending is None else process.sending.block.cases
        if any(_same(case, one) for one in (*process.waiting, *sent, *(one.case for one in process.beside))):
            return False
        if _TOLD[line.said] is not Told.OK:
            return True
        events = self._events(world, line.sequence, case.request)
        return any((event.attempt == case.attempt) == (line.said is Said.OK) for event in events)

    def _is_shown(self, reader: Reader, line: Line) -> bool:
        """Whether the reader has its answer, and the list showed just these events."""
        return reader.at == NOBODY and self._place_of_head(line) == reader.shown.bit_count()

    def _is_head(self, log: ModelLog, line: Line) -> bool:
        """Whether the log ends where the line says, and has that digest there."""
        return self._history_of(log).has_head(line) and self._place_of_head(line) == len(log)


class _End(Struct, frozen=True):
    """How a block ends: the line that says so, and the head at which it was judged again under the lock; None: it was
    not, or is now."""

    committed: Line
    judged_at: int | None = None


class _Followed:
    """What lines of listeners and workers do not show of themselves. Raises Contradiction if a listener does not go on
    from where it was, or a worker saves what it did not read. `saved`: by the place of a saving, that of its claim."""

    def __init__(self, lines: Iterable[tuple[tuple[int, int], Line]]) -> None:
        self.saved: dict[int, int] = {}
        positions: dict[tuple[tuple[int, int], int], int] = {}
        claims: dict[tuple[int, int], tuple[int, Line]] = {}
        for place, (life, line) in enumerate(lines):
            listener = life, line.case
            if line.did is Did.LISTENED:
                if listener in positions:
                    raise Contradiction(f"{line} begins once more")
                positions[listener] = line.sequence
            elif line.did is Did.SENT:
                if line.sequence <= positions.get(listener, line.sequence):
                    raise Contradiction(f"{line} does not go on from where it was")
                positions[listener] = line.sequence
            elif line.did is Did.CLAIMED:
                claims[life] = place, line
            elif line.did is Did.SAVED:
                claim, what = claims.pop(life, (place, line))
                if claim == place or (what.sequence, what.digest) != (line.sequence, line.digest):
                    raise Contradiction(f"{line} is not what was read")
                self.saved[place] = claim


def _by_lives(trace: Trace, lives: int) -> Iterator[Line]:
    """The lines of the play, by the processes of the model: one for each life of the tournament that an API process has
    in memory, as many as `lives`, since two of them may work beside each other, as two processes do. The workers and
    the database come after these."""
    replacements = 0
    for line in _of_play(trace):
        if line.process not in SERVICES:
            replacements += line.did is Did.RESTORED
            is_of_database = line.did in (Did.CRASHED, Did.RESTORED)
            if line.live or (line.process == DATABASE) != is_of_database or line.process > DATABASE:
                raise Contradiction(f"{line} is of nobody who does that")
            yield replace(line, process=line.process + len(SERVICES) * (lives - 1))
        elif line.did in (Did.STARTED, Did.FORGOT):
            for n in range(lives):
                yield replace(line, process=line.process + len(SERVICES) * n)
        elif line.live >= lives or line.did in (Did.CRASHED, Did.RESTORED):
            raise Contradiction(f"{line} is of nobody who does that")
        else:
            yield replace(line, process=line.process + len(SERVICES) * line.live)
    if replacements != (trace.lost is not None):
        raise Contradiction("the database was not replaced as often as it was")


def _of_play(trace: Trace) -> Iterator[Line]:
    """The lines without those of workers about what was there before the play, and without what was sent over a
    connection that is gone: the client's streams are numbered."""
    listener, all_listeners = 0, set[int]()
    for line in trace.lines:
        if line.did is Did.LISTENED:
            all_listeners.add(line.case)
            if line.case < listener:
                continue
            listener = line.case
        elif line.did is Did.SENT and line.case not in all_listeners:
            raise Contradiction(f"{line} is sent to nobody")
        if line.process in WORKERS and line.did is not Did.STARTED and line.sequence <= trace.log.begin:
            continue
        if line.did is not Did.SENT or line.case == listener:
            yield line


def _placed(answer: int, firsts: dict[int, int]) -> int:
    """An answer of the log, by places in the model's."""
    place = firsts.get(abs(answer), -_MANY)
    return place if answer > 0 else -place


def _normal(world: World) -> World:
    """The state in which it does not matter in which order cases that no barrier holds up came to be beside."""
    for p, process in enumerate(world.processes):
        if len(process.beside) > 1:
            beside = tuple(sorted(process.beside, key=_by_stage))
            if beside != process.beside:
                world = with_process(world, p, replace(process, beside=beside))
    return normal(world)


def _by_stage(one: Beside) -> tuple[int, int, int]:
    if one.stage in (Stage.WAITS, Stage.ASKS):
        return 0, 0, 0
    return one.stage, one.case.request, one.case.attempt


def _same(one: Case, other: Case) -> bool:
    return (one.request, one.attempt) == (other.request, other.attempt)


def _are(cases: Iterable[Case], others: Iterable[Case]) -> bool:
    return [(one.request, one.attempt) for one in cases] == [(one.request, one.attempt) for one in others]


def _cases(process: Process) -> Iterator[Case]:
    """All that the process has to do with."""
    yield from process.waiting
    yield from () if process.sending is None else process.sending.block.cases
    yield from (one.case for one in process.beside)


def _reads(process: Process) -> bool:
    """Whether something that the process does ends with a look at the log."""
    return (
        process.query is not None
        or any(one.stage is Stage.REPLAY for one in process.beside)
        or (process.sending is not None and process.sending.outcome is not None)
    )


def _may_have_read(before: Process, after: Process, end: int) -> bool:
    """Whether the process may have read the log as it was when it ended there: it showed no more before, it has not
    learned of more, and it shows no more now."""
    if not _reads(before) or (before.query is None and after.query is not None):
        return False  # a query sees what is there when it is sent
    least = max(len(before.live or ()), 0 if before.query is None else len(before.query.saw))
    if before.sending is not None and before.sending.outcome is not None and after.sending is None:
        least = max(least, len(before.sending.outcome.landed))  # it reads until it has found that
    least = max(
        [least, *(one.sequence for one in before.beside if one.stage is Stage.REPLAY and one not in after.beside)]
    )
    return least <= end and after.live is not None and len(after.live) == end and not after.dropped
