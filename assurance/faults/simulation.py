"""The simulation: thousands of seeded schedules of judging, appending, folding and dying, on the real PostgreSQL.

A schedule is a sequence of moves on one tournament: two processes are asked for changes, with keys or without; the
next append meets with a fault (lost before it came, half sent, committed and the answer lost, late, committed late); a
process crashes and another takes its place; workers fold, die within it, and take over from each other; tables are
rebuilt; competitions are voided and had back. In the end everything that nobody knows about is asked for again with
its key, and then the log must hold what was promised, and the live boards, the tables and a replay must be equal.
hypothesis draws the moves, and tells the smallest schedule that fails.
"""

import asyncio
import shutil
from collections import Counter
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack, suppress
from itertools import count
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec
import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from msgspec import Struct, field

from api.desk.desk import Desk, open_desk
from assurance.faults.cluster import cluster
from assurance.faults.history import Outcome
from assurance.faults.table import Trial
from engine.database.migrator import migrate
from engine.database.pool import Database, open_database
from engine.domain import commands
from engine.domain.commands import Command
from engine.domain.errors import Conflict, OutcomeUnknown, Refusal, TallybookError, Unavailable
from engine.domain.events import (
    CompetitionAdded,
    CompetitorRegistered,
    Delta,
    PointsAdded,
    PointsReversed,
    RankingModified,
    Recorded,
)
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, Sequence
from engine.log import heads, tails
from projections.tables import tables
from projections.tables.rebuild import rebuild
from projections.tables.worker import Worker
from tests.desks import Arena, fingerprint, open_arena
from tests.histories import board_of
from tests.proxy import Fault, Proxy, proxy

MOVES_MAX: Final = 25
SETTLE_ATTEMPTS_MAX: Final = 60
_T = TypeVar("_T")
_numbers = count(1)


class Wish(Struct, gc=False):
    """One thing asked for, and what became of each attempt. `mark`: a number that only its event has."""

    command: Command
    key: str | None
    mark: int
    outcomes: list[Outcome] = field(default_factory=list)
    sequences: set[int] = field(default_factory=set)
    refused: bool = False
    is_sent: bool = False

    def sending(self) -> Command:
        """What is sent next: what it creates has another id each time, as the service draws one for every request."""
        command, again = self.command, self.is_sent
        self.is_sent = True
        match command:
            case commands.AddCompetition() if again:
                return msgspec.structs.replace(command, competition_id=CompetitionId(900_000_000 + next(_numbers)))
            case commands.RegisterCompetitor() if again:
                return msgspec.structs.replace(command, competitor_id=CompetitorId(900_000_000 + next(_numbers)))
        return command


class Process:
    """A desk with a pool of its own behind a proxy; it can die."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._life: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self.proxy: Proxy
        self.desk: Desk
        self.under_way: dict[asyncio.Task[None], Wish] = {}

    async def start(self) -> None:
        ready, self._stop = asyncio.Event(), asyncio.Event()
        self._life = asyncio.create_task(self._live(ready))
        waiting = asyncio.create_task(ready.wait())
        await asyncio.wait([waiting, self._life], return_when=asyncio.FIRST_COMPLETED)
        if self._life.done():
            waiting.cancel()
            self._life.result()

    async def _live(self, ready: asyncio.Event) -> None:
        async with (
            proxy(self._dsn) as self.proxy,
            open_database(self.proxy.dsn, name="simulated") as database,
            open_desk(database) as self.desk,
        ):
            ready.set()
            await self._stop.wait()

    async def crash(self) -> None:
        """All at once: its connections are cut, and nothing of it goes on."""
        assert self._life is not None
        self.proxy.refusing = True
        self.proxy.release()
        self.proxy.cut_all()
        for task in self.under_way:
            task.cancel()
        self._life.cancel()
        await asyncio.gather(*self.under_way, self._life, return_exceptions=True)

    async def end(self) -> None:
        assert self._life is not None
        self.proxy.release()
        await asyncio.gather(*self.under_way, return_exceptions=True)
        self._stop.set()
        await self._life

    async def ask(self, arena: Arena, wish: Wish) -> None:
        try:
            async with self.desk.live_pool.pinned(arena.tournament_id) as live:
                receipt = await self.desk.submit(
                    live, wish.sending(), actor=OPERATOR, idempotency_key=wish.key, fingerprint=fingerprint(wish.key)
                )
        except Refusal:
            wish.outcomes.append(Outcome.NO)
            wish.refused = True
        except Unavailable:
            wish.outcomes.append(Outcome.NO)
        except (OutcomeUnknown, asyncio.CancelledError):
            wish.outcomes.append(Outcome.UNKNOWN)
        else:
            wish.outcomes.append(Outcome.OK)
            wish.sequences.add(receipt.sequence)

    def begin(self, arena: Arena, wish: Wish) -> None:
        task = asyncio.create_task(self.ask(arena, wish))
        self.under_way[task] = wish
        task.add_done_callback(lambda done: self.under_way.pop(done, None))


class Universe:
    """One schedule: a tournament, two processes, two workers."""

    def __init__(self, database: Database, dsn: str) -> None:
        self.database = database
        self.dsn = dsn
        self.processes = [Process(dsn), Process(dsn)]
        self.wishes: list[Wish] = []
        self.competitions: list[CompetitionId] = []
        self.arena: Arena
        self._folding: list[asyncio.Task[Any]] = []
        self._stack = AsyncExitStack()
        self._workers: list[tuple[Proxy, Worker]] = []

    async def open(self) -> None:
        self.arena = await open_arena(self.database)
        for process in self.processes:
            await process.start()
        for _ in range(2):
            between = await self._stack.enter_async_context(proxy(self.dsn))
            pool = await self._stack.enter_async_context(open_database(between.dsn, name="worker", connections_max=3))
            self._workers.append((between, Worker(pool)))

    def wish(self, kind: str, *, keyed: bool, choice: int) -> Wish:
        number = next(_numbers)
        return Wish(self._command(kind, number, choice), f"key-{number}" if keyed else None, number)

    def _command(self, kind: str, number: int, choice: int) -> Command:
        arena = self.arena
        known = self.competitions[choice % len(self.competitions)] if self.competitions else CompetitionId(999_999_999)
        match kind:
            case "points":
                return arena.points(number)
            case "points of a competition":
                delta = Delta(arena.competitors[choice % 2], arena.unity_id, number)
                return commands.AddPoints(ranking_id=arena.ranking_id, deltas=(delta,), competition_id=known)
            case "competition":
                self.competitions.append(CompetitionId(800_000_000 + number))
                return commands.AddCompetition(competition_id=self.competitions[-1], group_id=number)
            case "competitor":
                return commands.RegisterCompetitor(competitor_id=CompetitorId(700_000_000 + number), name=f"C{number}")
            case "modify":
                return commands.ModifyRanking(
                    ranking_id=arena.ranking_id,
                    main_unity_name="Points",
                    participants=arena.competitors,
                    description=str(number),
                )
            case "close":
                return commands.CloseRanking(ranking_id=arena.ranking_id)
            case "reopen":
                return commands.ReopenRanking(ranking_id=arena.ranking_id)
            case "void":
                return commands.VoidCompetition(competition_id=known)
            case "unvoid":
                return commands.UnvoidCompetition(competition_id=known)
        raise AssertionError(kind)

    # ── Workers ─────────────────────────────────────────────────────────────────────────────────────────

    async def fold(self, number: int, turns: int, *, dies: bool) -> None:
        """A worker folds for a while; it dies then, and another of its kind takes its place, or goes on alongside."""
        between, worker = self._workers[number]
        task = asyncio.create_task(worker.catch_up())
        self._folding.append(task)
        await spin(turns)
        if dies and not task.done():
            between.cut_all()
            await asyncio.gather(task, return_exceptions=True)
            self._workers[number] = between, Worker(worker._database)

    async def rebuild(self) -> None:
        with suppress(Conflict, Unavailable):
            await rebuild(self.database, self.arena.tournament_id)

    # ── The end ─────────────────────────────────────────────────────────────────────────────────────────

    async def settle(self) -> None:
        """Nothing is under way any more, and of all that has a key it is known what became of it."""
        for process in self.processes:
            process.proxy.refusing = False
            process.proxy.strike()
            process.proxy._faults.clear()
            process.proxy.lose_commits(0)
            process.proxy.release()
        for process in self.processes:
            await asyncio.gather(*process.under_way, return_exceptions=True)
        await asyncio.gather(*self._folding, return_exceptions=True)
        for n, wish in enumerate(self.wishes):
            for _ in range(SETTLE_ATTEMPTS_MAX):
                if wish.key is None or wish.refused or Outcome.OK in wish.outcomes:
                    break
                await self.processes[n % 2].ask(self.arena, wish)
                await asyncio.sleep(0.02 if wish.outcomes[-1] is not Outcome.OK else 0)
            else:
                raise AssertionError(f"there is no definite answer to {wish}")

    async def check(self) -> None:
        """What was promised is so."""
        async with self.database.connection() as connection:
            tail = await tails.tail(connection, self.arena.tournament_id, heads.beginning(self.arena.tournament_id))
            head = (await heads.current(connection, [self.arena.tournament_id]))[self.arena.tournament_id]
        assert tail.head == head
        assert [r.sequence for r in tail.events] == list(range(1, head.sequence + 1))
        firsts: dict[str, list[int]] = {}
        marks: Counter[int] = Counter()
        for recorded in tail.events:
            if recorded.idempotency_key is not None:
                firsts.setdefault(recorded.idempotency_key, []).append(recorded.sequence)
            marks.update(_marks(recorded.event))
        assert all(times == 1 for times in marks.values()), f"recorded more than once: {marks}"
        _check_reversals(tail.events)
        for wish in self.wishes:
            there = firsts.get(wish.key or "", [])
            assert there == list(range(there[0], there[-1] + 1)) if there else True, (
                f"key of two blocks: {wish}, {there}"
            )
            if wish.key is not None and Outcome.OK in wish.outcomes:
                assert there, f"lost: {wish}"
                assert wish.sequences == {there[0]}, f"answered with others: {wish}, {there}"
            if wish.key is None and wish.outcomes == [Outcome.OK]:
                (sequence,) = wish.sequences
                assert sequence <= head.sequence, f"lost: {wish}"
            certain_no = (
                bool(wish.outcomes)
                and Outcome.OK not in wish.outcomes
                and (wish.refused or Outcome.UNKNOWN not in wish.outcomes)
            )
            if certain_no and wish.key is not None:
                assert not there, f"refused, but recorded: {wish}, {there}"
        replayed = board_of(tail.events)
        for process in self.processes:
            async with process.desk.live_pool.pinned(self.arena.tournament_id) as live:
                await process.desk.live_pool.make_current(live)
                assert live.head == head
                assert live.board == replayed, "live and replay differ"
        await Worker(self.database).catch_up()
        async with self.database.connection() as connection:
            checkpoint = await tables.checkpoint(connection, self.arena.tournament_id)
            board = await tables.load_board(connection, self.arena.tournament_id)
        assert checkpoint is not None
        assert checkpoint.head == head, "the tables lag"
        assert board == replayed, "tables and replay differ"

    async def close(self) -> None:
        for process in self.processes:
            with suppress(TallybookError):
                await process.end()
        for task in self._folding:
            task.cancel()
        await asyncio.gather(*self._folding, return_exceptions=True)
        await self._stack.aclose()


def _marks(event: object) -> list[int]:
    match event:
        case PointsAdded():
            return [event.deltas[0].amount]
        case CompetitionAdded():
            return [event.group_id]
        case CompetitorRegistered() if event.name.startswith("C"):
            return [int(event.name[1:])]
        case RankingModified() if isinstance(event.description, str):
            return [int(event.description)]
    return []


def _check_reversals(recorded: Iterable[Recorded]) -> None:
    """A void takes points back, once, before an unvoid gives them back, once."""
    given: dict[Sequence, int] = {}
    counting: dict[Sequence, int] = {}
    for one in recorded:
        match one.event:
            case PointsAdded(deltas=deltas):
                given[one.sequence] = counting[one.sequence] = sum(delta.amount for delta in deltas)
            case PointsReversed(deltas=deltas, reverses=reverses):
                counting[reverses] += sum(delta.amount for delta in deltas)
                assert counting[reverses] in (0, given[reverses]), f"reversed more than once: {reverses}"


async def spin(turns: int) -> None:
    """Lets others go on for some moments; it is the schedule, not a wait for something."""
    for _ in range(turns):
        await asyncio.sleep(0.0003)


# ── The machine ─────────────────────────────────────────────────────────────────────────────────────────

_processes: Final = st.integers(0, 1)
_turns: Final = st.integers(0, 12)
_kinds: Final = st.sampled_from(
    ["points"] * 4
    + ["points of a competition"] * 3
    + ["competition"] * 2
    + ["competitor", "modify", "modify", "close", "reopen", "reopen", "void", "void", "unvoid"]
)
_asked: Final = st.lists(st.tuples(_kinds, st.booleans(), st.integers(0, 5)), min_size=1, max_size=4)
_faults: Final = st.sampled_from([fault for fault in Fault if fault is not Fault.NONE])


class Counts(Struct):
    schedules: int = 0
    moves: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)


def machine(runner: asyncio.Runner, database: Database, dsn: str, counts: Counts) -> type[RuleBasedStateMachine]:
    """The machine of hypothesis's whose schedules are played on this database."""

    class Schedule(RuleBasedStateMachine):
        universe: Universe

        def play(self, name: str, move: Coroutine[Any, Any, _T]) -> _T:
            counts.moves[name] += 1
            return runner.run(asyncio.wait_for(move, 100))

        @initialize()
        def begin(self) -> None:
            self.universe = Universe(database, dsn)
            counts.schedules += 1
            self.play("begin", self.universe.open())

        @rule(process=_processes, asked=_asked, turns=_turns)
        def ask(self, process: int, asked: list[tuple[str, bool, int]], turns: int) -> None:
            async def move() -> None:
                for kind, keyed, choice in asked:
                    wish = self.universe.wish(kind, keyed=keyed, choice=choice)
                    self.universe.wishes.append(wish)
                    self.universe.processes[process].begin(self.universe.arena, wish)
                await spin(turns)

            self.play("ask", move())

        @precondition(lambda self: any(wish.key is not None for wish in self.universe.wishes))
        @rule(process=_processes, choice=st.integers(0, 50), turns=_turns)
        def ask_again(self, process: int, choice: int, turns: int) -> None:
            async def move() -> None:
                keyed = [wish for wish in self.universe.wishes if wish.key is not None]
                self.universe.processes[process].begin(self.universe.arena, keyed[choice % len(keyed)])
                await spin(turns)

            self.play("ask again", move())

        @rule(process=_processes, fault=_faults)
        def strike(self, process: int, fault: Fault) -> None:
            async def move() -> None:
                if self.universe.processes[process].proxy.faults_left < 3:
                    self.universe.processes[process].proxy.strike(fault)

            self.play(f"strike {fault.name.lower()}", move())

        @precondition(lambda self: bool(self.universe.wishes))
        @rule(process=_processes, turns=_turns)
        def release(self, process: int, turns: int) -> None:
            async def move() -> None:
                self.universe.processes[process].proxy.release()
                await spin(turns)

            self.play("release", move())

        @precondition(lambda self: bool(self.universe.wishes))
        @rule(process=_processes)
        def crash(self, process: int) -> None:
            async def move() -> None:
                await self.universe.processes[process].crash()
                await self.universe.processes[process].start()

            self.play("crash", move())

        @precondition(lambda self: bool(self.universe.wishes))
        @rule(worker=st.integers(0, 1), turns=_turns, dies=st.booleans())
        def fold(self, worker: int, turns: int, dies: bool) -> None:
            self.play("fold", self.universe.fold(worker, turns, dies=dies))

        @precondition(lambda self: bool(self.universe.wishes))
        @rule()
        def rebuild(self) -> None:
            self.play("rebuild", self.universe.rebuild())

        def teardown(self) -> None:
            if not hasattr(self, "universe"):
                return
            try:
                self.play("settle", self.universe.settle())
                self.play("check", self.universe.check())
                counts.outcomes.update(str(o) for wish in self.universe.wishes for o in wish.outcomes)
            finally:
                runner.run(asyncio.wait_for(self.universe.close(), 100))

    return Schedule


def play_schedules(dsn: str, number: int, *, first_seed: int, shrink: bool = True) -> Counts:
    """Plays that many schedules; raises with the smallest one that fails, or with the first, without `shrink`.

    What failed once has failed: real servers do not take the same time twice, so it need not fail when it is repeated.
    `dsn`: by unix socket, migrated.
    """
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    counts = Counts()
    with asyncio.Runner() as runner:
        context = open_database(dsn, name="simulation")
        database = runner.run(context.__aenter__())
        try:
            chosen = settings(
                max_examples=number,
                stateful_step_count=MOVES_MAX,
                deadline=None,
                database=None,
                phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
                suppress_health_check=list(HealthCheck),
            )
            run_state_machine_as_test(seed(first_seed)(machine(runner, database, dsn, counts)), settings=chosen)
        except FlakyFailure as not_repeated:
            raise not_repeated.exceptions[0] from not_repeated
        finally:
            runner.run(context.__aexit__(None, None, None))
            structlog.reset_defaults()
    return counts


async def simulated(trial: Trial, *, schedules: int, seed: int) -> None:
    """As one of the campaign's trials."""
    shutil.copytree(trial.prepared, trial.folder / "data", ignore=shutil.ignore_patterns("socket*", "lock"))
    async with cluster(trial.folder / "data") as there:
        await there.execute("CREATE DATABASE simulation")
        dsn = urlunsplit(urlsplit(there.dsn)._replace(path="/simulation"))
        await migrate(dsn)
        counts = await asyncio.to_thread(play_schedules, dsn, schedules, first_seed=seed)
        trial.outcomes.update(Outcome(name) for name, n in counts.outcomes.items() for _ in range(n))
        trial.look("I1", counts.schedules >= schedules, f"only {counts.schedules} schedules were played")
        moves = ", ".join(
            f"{name} {n}" for name, n in sorted(counts.moves.items()) if name not in ("begin", "settle", "check")
        )
        trial.tell(f"{counts.schedules} schedules: {moves}")
