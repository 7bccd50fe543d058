"""The appender: what is ready together is committed together, what fails fails alone, and no outcome is guessed."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.database import nodes as nodes_module
from engine.database.distribution import Node, nodes_of
from engine.database.pool import POOL_CONNECTIONS_MAX, Database, open_database
from engine.domain.errors import DatabaseUnavailable, OutcomeUnknown, Rejected
from engine.domain.events import CompetitorRegistered, Event, RankingClosed
from engine.domain.terms import OPERATOR, CompetitorId, RankingId, Sequence, TournamentId
from engine.log.appender import BATCH_MIN, FLOOD, LANES_MAX, Appender, Outcome, batch_size
from engine.log.appending import Appended, Block, NotAppended, Request
from engine.process.telemetry import NODES_AVOIDED
from tests.bounds import Bounds
from tests.conftest import A_COMMIT_EACH, COMMITTED_BY_ITS_NODE, only_distributed
from tests.desks import HOLD_HEAD, holding, holding_heads, leave_unconfirmed, recorded, until, waiting_for_locks
from tests.proxy import Fault, proxy
from tests.running import free_port
from tests.tournaments import open_new_tournament
from tests.two_nodes import ONE_IS_ENOUGH, side, two_nodes

_numbers = count(1)


def registered(name: str = "Ann") -> Event:
    return CompetitorRegistered(competitor_id=CompetitorId(next(_numbers)), name=name)


class Queue:
    """A source of blocks of one event each; it keeps what it is told, and never asks for two things at once."""

    def __init__(self, appender: Appender, tournament_id: TournamentId, *events: Event, judged_at: int = 1) -> None:
        self.tournament_id = tournament_id
        self.outcomes: list[Outcome] = []
        self._appender = appender
        self._waiting = list(events)
        self._judged_at = Sequence(judged_at)
        self._under_way: Block | None = None
        self._length = len(events)

    def start(self) -> None:
        self._appender.ready(self)

    def next_block(self) -> Block | None:
        assert self._under_way is None
        if not self._waiting:
            return None
        request = Request(events=(self._waiting.pop(0),), actor=OPERATOR)
        self._under_way = Block(
            tournament_id=self.tournament_id, judged_at=self._judged_at, judged_digest=None, requests=(request,)
        )
        return self._under_way

    def settled(self, block: Block, outcome: Outcome) -> None:
        assert block is self._under_way
        self._under_way = None
        self.outcomes.append(outcome)
        if self._waiting:
            self._appender.ready(self)

    def is_done(self) -> bool:
        return len(self.outcomes) == self._length

    @property
    def answers(self) -> list[object]:
        """The sequence of each event that was appended; what else was said, where it was not."""
        return [outcome.answers[0] if isinstance(outcome, Appended) else outcome for outcome in self.outcomes]


@asynccontextmanager
async def appending(database: Database) -> AsyncIterator[Appender]:
    appender = Appender(database)
    running = asyncio.create_task(appender.run())
    try:
        yield appender
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()


async def run(queues: Iterable[Queue]) -> None:
    queues = list(queues)
    for queue in queues:
        queue.start()
    await until(lambda: all(queue.is_done() for queue in queues))


@pytest.fixture
async def ids(database: Database) -> list[TournamentId]:
    return [await open_new_tournament(database, actor=OPERATOR) for _ in range(6)]


async def commits(owner: asyncpg.Connection) -> int:
    """In how many transactions what follows the openings was appended."""
    number: int = await owner.fetchval("SELECT count(DISTINCT xmin::text) FROM block WHERE last_sequence > 1")
    return number


# ── Together ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_what_is_ready_together_is_committed_together_in_whatever_order_it_came(
    database: Database, owner: asyncpg.Connection, ids: list[TournamentId]
) -> None:
    """In ascending order of tournaments, so that two such never lock each other out: also if they are few, which are
    appended one by one."""
    for some in ids[:3], ids[3:], ids:
        before = await commits(owner)
        async with appending(database) as appender:
            queues = [Queue(appender, one, registered(), judged_at=1 + (some is ids)) for one in reversed(some)]
            await run(queues)
            assert [queue.answers for queue in queues] == [[2 + (some is ids)]] * len(some)
        assert await commits(owner) == before + 1
        rows = await owner.fetch("SELECT tournament_id FROM block WHERE last_sequence > 1 ORDER BY ctid")
        assert [row["tournament_id"] for row in rows][-len(some) :] == some


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_what_comes_while_a_commit_is_on_its_way_leaves_with_the_next(
    database: Database, owner: asyncpg.Connection, ids: list[TournamentId]
) -> None:
    async with appending(database) as appender:
        queues = [Queue(appender, tournament_id, *[registered() for _ in range(5)]) for tournament_id in ids]
        await run(queues)
        assert [queue.answers for queue in queues] == [[2, 3, 4, 5, 6]] * 6
    assert await commits(owner) == 5


_COMMITS_OF_NODES: Final = """
    SELECT count(DISTINCT (p.groupid, x.xmin))
    FROM run_command_on_shards(
        'tallybook.block', 'SELECT coalesce(jsonb_agg(DISTINCT xmin::text), ''[]'') FROM %s WHERE last_sequence > 1'
    ) AS r
    JOIN pg_dist_placement AS p ON p.shardid = r.shardid
    CROSS JOIN jsonb_array_elements_text(r.result::jsonb) AS x (xmin)
"""


@only_distributed
async def test_what_is_ready_together_for_one_node_is_committed_together_there(
    database: Database, owner: asyncpg.Connection, ids: list[TournamentId]
) -> None:
    async with database.connection() as connection:
        nodes = set((await nodes_of(connection, ids)).values())
    async with appending(database) as appender:
        queues = [Queue(appender, tournament_id, *[registered() for _ in range(5)]) for tournament_id in ids]
        await run(queues)
        assert [queue.answers for queue in queues] == [[2, 3, 4, 5, 6]] * 6
    assert 1 < len(nodes) < len(ids)
    assert await owner.fetchval(_COMMITS_OF_NODES) == 5 * len(nodes)


@only_distributed
async def test_what_cannot_be_sent_straight_to_its_node_goes_another_way(
    database: Database, ids: list[TournamentId], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody listens there, and for a while nobody is asked there again."""
    nowhere = Node("127.0.0.1", free_port())

    async def misled(_connection: object, tournament_ids: Collection[TournamentId]) -> dict[TournamentId, Node]:
        return dict.fromkeys(tournament_ids, nowhere)

    monkeypatch.setattr(nodes_module, "nodes_of", misled)
    with capture_logs() as lines:
        async with appending(database) as appender:
            queues = [Queue(appender, tournament_id, *[registered() for _ in range(5)]) for tournament_id in ids]
            await run(queues)
            assert [queue.answers for queue in queues] == [[2, 3, 4, 5, 6]] * 6
    assert [line["event"] for line in lines].count("node_avoided") == 1
    database.show_use()
    assert NODES_AVOIDED._value.get() == 1


@only_distributed
async def test_a_tournament_that_is_not_where_it_was_found_is_appended_all_the_same(
    database: Database, ids: list[TournamentId], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mixed_up(connection: asyncpg.Connection, among: Collection[TournamentId]) -> dict[TournamentId, Node]:
        found = await nodes_of(connection, ids)
        other = dict(zip(found, [*found.values()][1:] + [*found.values()][:1], strict=True))
        return {one: other[one] for one in among}

    monkeypatch.setattr(nodes_module, "nodes_of", mixed_up)
    async with appending(database) as appender:
        queues = [Queue(appender, tournament_id, *[registered() for _ in range(5)]) for tournament_id in ids]
        await run(queues)
        assert [queue.answers for queue in queues] == [[2, 3, 4, 5, 6]] * 6


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_one_commit_takes_no_more_tournaments_than_its_bound(
    database: Database, owner: asyncpg.Connection, ids: list[TournamentId], bounds: Bounds
) -> None:
    bounds(BATCH_BLOCKS_MAX=2)
    async with appending(database) as appender:
        queues = [Queue(appender, tournament_id, registered()) for tournament_id in ids]
        await run(queues)
        assert [queue.answers for queue in queues] == [[2]] * 6
    assert await commits(owner) == 3


@given(st.integers(BATCH_MIN, FLOOD // 2), st.integers(BATCH_MIN, FLOOD // 2 - 1))
def test_clients_who_ask_again_when_they_are_answered_soon_go_in_two_halves(going: int, waiting: int) -> None:
    """However they came. If all go at once, there is nobody to work for meanwhile."""
    for _ in range(2):
        gone, going = going, min(waiting, batch_size(waiting, going))
        waiting += gone - going
    assert abs(waiting - going) <= 1


@given(st.integers(1, BATCH_MIN) | st.integers(FLOOD, 10_000), st.integers(0, 10_000))
def test_a_few_and_a_flood_go_together_at_once(waiting: int, sent_last: int) -> None:
    assert batch_size(waiting, sent_last) >= waiting


async def test_a_source_that_has_nothing_after_all_gets_nothing(database: Database, ids: list[TournamentId]) -> None:
    async with appending(database) as appender:
        nothing = Queue(appender, ids[0])
        nothing.start()
        for _ in range(3):
            await run([Queue(appender, ids[1], registered())])
        assert nothing.outcomes == []


async def test_two_sources_of_one_tournament_are_ordered_like_two_processes(
    database: Database, ids: list[TournamentId]
) -> None:
    async with appending(database) as appender:
        structural = Queue(appender, ids[0], RankingClosed(ranking_id=RankingId(1)), judged_at=1)
        stale = Queue(appender, ids[0], registered(), judged_at=1)
        # Of a distributed database, what is ready together goes side by side, and either may be first.
        for sources in [[structural], [stale]] if database.is_distributed else [[structural, stale]]:
            await run(sources)
        assert (structural.answers, stale.answers) == ([2], [NotAppended.OVERTAKEN])


async def test_two_appenders_with_the_same_tournaments_neither_deadlock_nor_lose_anything(
    database: Database, dsn: str, ids: list[TournamentId]
) -> None:
    async with (
        open_database(dsn, name="other") as other,
        appending(database) as one,
        appending(other) as two,
    ):
        queues = [
            Queue(appender, tournament_id, *(registered() for _ in range(30)))
            for appender, order in ((one, ids), (two, ids[::-1]))
            for tournament_id in order
        ]
        await run(queues)
    for tournament_id in ids:
        answers = [n for queue in queues if queue.tournament_id == tournament_id for n in queue.answers]
        assert sorted(answers) == list(range(2, 62))


# ── Alone ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_tournament_whose_head_is_held_goes_alone_and_a_few_such_at_a_time(
    database: Database, dsn: str, owner: asyncpg.Connection
) -> None:
    free, *held = await of_one_node(database, LANES_MAX + 2)
    async with appending(database) as appender:
        waiting = [Queue(appender, tournament_id, registered()) for tournament_id in held]
        passing = Queue(appender, free, *(registered() for _ in range(20)))
        async with holding_heads(dsn, held):
            for queue in waiting:
                queue.start()
            await run([passing])
            await until(lambda: four_wait(owner))
            assert not any(queue.outcomes for queue in waiting)
        await until(lambda: all(queue.is_done() for queue in waiting))
        assert [queue.answers for queue in waiting] == [[2]] * len(held)


async def of_one_node(database: Database, number: int) -> list[TournamentId]:
    """So many new tournaments that one node has."""
    opened: dict[Database, list[TournamentId]] = {}
    while True:
        one = await open_new_tournament(database, actor=OPERATOR)
        together = opened.setdefault(await database.by_node(one), [])
        together.append(one)
        if len(together) == number:
            return together


async def four_wait(owner: asyncpg.Connection) -> bool:
    waiting = len(await waiting_for_locks(owner, "append_block"))
    assert waiting <= LANES_MAX
    return waiting == LANES_MAX


@pytest.mark.one_postgresql(ONE_IS_ENOUGH)
async def test_what_waits_at_one_node_leaves_the_lanes_of_another_free(dsn: str, owner: asyncpg.Connection) -> None:
    async with two_nodes(dsn) as nodes, appending(nodes.database) as appender:
        ids = [await open_new_tournament(nodes.database, actor=OPERATOR) for _ in range(2 * LANES_MAX + 2)]
        there, *here = sorted(ids, key=lambda one: side(one) == 0)[LANES_MAX:]
        waiting = [Queue(appender, tournament_id, registered()) for tournament_id in here]
        passing = Queue(appender, there, registered())
        async with holding_heads(dsn, here):
            async with holding_heads(dsn, [there]):
                for queue in waiting:
                    queue.start()
                await until(lambda: lock_waiters(owner, LANES_MAX))
                passing.start()
                await until(lambda: lock_waiters(owner, LANES_MAX + 1))
            await until(passing.is_done)
            assert not any(queue.outcomes for queue in waiting)
        await until(lambda: all(queue.is_done() for queue in waiting))
        assert [queue.answers for queue in (passing, *waiting)] == [[2]] * (len(here) + 1)


async def lock_waiters(owner: asyncpg.Connection, number: int) -> bool:
    return len(await waiting_for_locks(owner, "append_block")) == number


@pytest.mark.one_postgresql(ONE_IS_ENOUGH)
async def test_a_node_that_falls_silent_takes_no_connection_that_another_needs(dsn: str) -> None:
    """What was sent to it waits for an answer for many seconds, on as many connections as there are for it."""
    async with two_nodes(dsn) as nodes, appending(nodes.database) as appender:
        ids = [await open_new_tournament(nodes.database, actor=OPERATOR) for _ in range(2 * POOL_CONNECTIONS_MAX)]
        queues = [Queue(appender, tournament_id, registered(), registered()) for tournament_id in ids]
        await run([Queue(appender, tournament_id, registered()) for tournament_id in ids])
        async with nodes.proxies[1].holding_answers("append_block", number=len(ids)) as held:
            for queue in queues:
                queue.start()
            await held.wait()
            await until(lambda: all(queue.is_done() for queue in queues if side(queue.tournament_id) == 0))
            assert not any(queue.outcomes for queue in queues if side(queue.tournament_id) == 1)
        await until(lambda: all(queue.is_done() for queue in queues))
        assert [queue.answers for queue in queues] == [[3, 4]] * len(ids)


@pytest.mark.one_postgresql(ONE_IS_ENOUGH)
async def test_a_process_whose_own_node_is_dead_continues_by_another_of_its_address(dsn: str) -> None:
    async with two_nodes(dsn, or_second=True) as nodes, appending(nodes.database) as appender:
        ids = [await open_new_tournament(nodes.database, actor=OPERATOR) for _ in range(4)]
        await run([Queue(appender, tournament_id, registered()) for tournament_id in ids])
        nodes.proxies[0].refusing = True
        nodes.proxies[0].cut_all()
        await until(lambda: answers(nodes.database))
        others = [Queue(appender, one, registered(), registered()) for one in ids if side(one) == 1]
        await run(others)
        assert [queue.answers for queue in others] == [[3, 4]] * len(others)
        assert nodes.proxies[0].refused > 0


async def answers(database: Database) -> bool:
    with suppress(DatabaseUnavailable):
        async with database.connection() as connection:
            return await connection.fetchval("SELECT true") is True
    return False


async def test_a_bad_block_is_rejected_and_those_it_was_sent_with_are_not(
    database: Database, owner: asyncpg.Connection, ids: list[TournamentId]
) -> None:
    await owner.execute("ALTER TABLE personal ADD CHECK (strpos(text, ':\"1313\"') = 0)")
    async with appending(database) as appender:
        queues = [Queue(appender, tournament_id, registered(), registered()) for tournament_id in ids[1:]]
        bad = Queue(appender, ids[0], registered("1313"), registered())
        await run([*queues, bad])
        assert [queue.answers for queue in queues] == [[2, 3]] * 5
        assert isinstance(bad.outcomes[0], Rejected)
        assert bad.answers[1] == 2


async def test_an_event_that_cannot_be_written_down_is_rejected_and_nobody_else(
    database: Database, ids: list[TournamentId]
) -> None:
    """No name is like this one; should it ever be, the process is to outlive it."""
    async with appending(database) as appender:
        bad, good = Queue(appender, ids[0], registered("\ud800")), Queue(appender, ids[1], registered())
        await run([bad, good])
        assert isinstance(bad.outcomes[0], Rejected)
        assert good.answers == [2]


# ── Trouble ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_what_was_certainly_not_sent_is_given_up_after_some_attempts(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(APPEND_ATTEMPTS_MAX=3)
    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        async with appending(database) as appender:
            between.refusing = True
            between.cut_all()
            with pytest.raises(DatabaseUnavailable):  # by now the pool has noticed
                async with database.connection() as connection:
                    await connection.fetchval("SELECT 1")
            queue = Queue(appender, tournament_id, registered(), registered())
            queue.start()
            await until(lambda: queue.outcomes)
            assert isinstance(queue.outcomes[0], DatabaseUnavailable)
            between.refusing = False
            await until(queue.is_done)
            assert queue.answers[1] == 2
    assert await owner.fetchval("SELECT count(*) FROM event") == 2


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.UNFINISHED, Fault.AFTER])
async def test_what_was_sent_on_a_connection_that_was_lost_is_sent_again_until_its_outcome_is_certain(
    dsn: str, fault: Fault, bounds: Bounds
) -> None:
    bounds(APPEND_ATTEMPTS_MAX=1)
    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(3)]
        async with appending(database) as appender:
            between.strike(*[fault] * 5)
            queues = [Queue(appender, tournament_id, registered(), registered()) for tournament_id in ids]
            await run(queues)
            assert between.faults_left == 0
            assert [queue.answers for queue in queues] == [[2, 3]] * 3
        for tournament_id in ids:
            assert len(await recorded(database, tournament_id)) == 3


async def test_a_commit_that_a_server_answers_only_by_shutting_down_may_have_been_applied(
    dsn: str, bounds: Bounds
) -> None:
    """It is told to end after its commit and before its last word: so an error comes, and not just a lost connection.
    Only another attempt can tell what became of it, so there is one, although a block has but one here."""
    bounds(APPEND_ATTEMPTS_MAX=1)
    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        async with appending(database) as appender:
            between.strike(Fault.DISMISSED, Fault.DISMISSED)
            queue = Queue(appender, tournament_id, registered(), registered())
            await run([queue])
            assert between.faults_left == 0
            assert queue.answers == [2, 3]
        assert len(await recorded(database, tournament_id)) == 3


@pytest.mark.one_postgresql(COMMITTED_BY_ITS_NODE)
async def test_a_block_that_may_have_been_applied_is_not_given_up_while_its_session_lingers(
    dsn: str, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    bounds(APPEND_ATTEMPTS_MAX=1)
    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        async with appending(database) as appender:
            between.strike(Fault.LATE_COMMIT)
            queue = Queue(appender, tournament_id, registered())
            queue.start()
            await between.struck()
            await until(lambda: waiting_for_locks(owner, "append_block"))
            await until(lambda: nobody_waits(owner))  # it has given up waiting for the lock
            await until(lambda: waiting_for_locks(owner, "append_block"))  # and comes again
            assert not queue.outcomes
            between.release()
            await until(queue.is_done)
            assert queue.answers == [2]
        assert len(await recorded(database, tournament_id)) == 2


async def nobody_waits(owner: asyncpg.Connection) -> bool:
    return not await waiting_for_locks(owner, "append_block")


async def test_an_unconfirmed_commit_is_of_unknown_outcome_for_all_that_it_holds_and_not_sent_again(
    database: Database, owner: asyncpg.Connection, ids: list[TournamentId]
) -> None:
    await leave_unconfirmed(owner, "personal", "strpos(NEW.text, ':\"1313\"') > 0")
    async with appending(database) as appender:
        queues = [Queue(appender, ids[0], registered("1313")), Queue(appender, ids[1], registered(), registered())]
        await run(queues)
        nodes = await database.by_nodes(ids[:2])
        of_the_other = OutcomeUnknown if nodes[ids[0]] is nodes[ids[1]] else Appended  # by a commit of its own
        assert [type(queue.outcomes[0]) for queue in queues] == [OutcomeUnknown, of_the_other]
        assert queues[1].answers[1] == 3
    assert [len(await recorded(database, tournament_id)) for tournament_id in ids[:2]] == [2, 3]


async def test_a_block_is_rejected_without_doubt_although_a_connection_was_lost_before(
    dsn: str, owner: asyncpg.Connection
) -> None:
    await owner.execute("ALTER TABLE personal ADD CHECK (strpos(text, ':\"1313\"') = 0)")
    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        async with appending(database) as appender:
            between.strike(Fault.UNFINISHED)
            queue = Queue(appender, tournament_id, registered("1313"), registered())
            await run([queue])
            assert isinstance(queue.outcomes[0], Rejected)
            assert queue.answers[1] == 2


@pytest.mark.one_postgresql("it makes a trigger as on one PostgreSQL")
async def test_a_row_that_is_there_already_says_nothing_about_a_sending_that_was_lost(
    dsn: str, owner: asyncpg.Connection
) -> None:
    """Each further attempt fails like this, and the first one may have been applied."""

    async def collide() -> None:
        await owner.execute(
            """
            CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE unique_violation USING MESSAGE = 'duplicate key value violates unique constraint "event_pkey"';
            END $$;
            CREATE TRIGGER collides BEFORE INSERT ON block FOR EACH ROW EXECUTE FUNCTION collide()
            """
        )

    async with proxy(dsn) as between, open_database(between.dsn, name="test") as database:
        ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(2)]
        async with appending(database) as appender:
            between.strike(Fault.BEFORE, meanwhile=collide)
            queue = Queue(appender, ids[0], registered(), registered())
            queue.start()
            await until(lambda: len(queue.outcomes) == 2)
            assert [type(outcome) for outcome in queue.outcomes] == [OutcomeUnknown, Rejected]
            await owner.execute("DROP TRIGGER collides ON block")
            again = Queue(appender, ids[1], registered())
            await run([again])
            assert again.answers == [2]


async def test_a_cancelled_appender_leaves_nothing_running(
    database: Database, dsn: str, owner: asyncpg.Connection, ids: list[TournamentId]
) -> None:
    before = asyncio.all_tasks()
    async with holding(dsn, HOLD_HEAD, ids[0]), appending(database) as appender:
        queue = Queue(appender, ids[0], registered())
        queue.start()
        await until(lambda: waiting_for_locks(owner, "append_block"))
    await until(lambda: asyncio.all_tasks() <= before)
    assert queue.outcomes == []
