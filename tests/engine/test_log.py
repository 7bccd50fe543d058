"""The log: one order per tournament, one answer per request, one door; and what happens without the lock."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count, groupby
from typing import Any, Final
from uuid import UUID, uuid4

import asyncpg
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.database.distribution import TournamentQuery
from engine.database.pool import Database, open_database
from engine.domain.errors import LogForked, LogUnreadable
from engine.domain.events import (
    CompetitorRegistered,
    Event,
    EventSetAside,
    RankingClosed,
    Recorded,
    TournamentOpened,
    TournamentRenamed,
)
from engine.domain.terms import OPERATOR, ActorId, CompetitorId, RankingId, Sequence, TournamentId
from engine.log import appending, codec, digest, heads, reading, registry, rows, tails, undecoded
from engine.log.appending import Appended, Block, KeyUse, NotAppended, OvertakenBy, Request, UnconfirmedCommit, Unseen
from engine.log.heads import Head
from projections.verification import stored_log
from tests.bounds import Bounds, set_bounds
from tests.conftest import A_COMMIT_EACH, PLANS_OF_NODES
from tests.desks import DOOR, HOLD_HEAD, head_of, holding, number_of, until, waiting_for_locks
from tests.poison import append_text
from tests.projections.written import on_the_database
from tests.sql import OWNERS_OWN, flattened, rows_scanned, statements
from tests.statements import sent
from tests.tampering import line_removed, tamper, unguarded
from tests.tournaments import open_new_tournament

_names = count(1)


def registered(name: str = "") -> Event:
    """An event that is not structural."""
    number = next(_names)
    return CompetitorRegistered(competitor_id=CompetitorId(number), name=name or f"Competitor {number}")


def closed() -> Event:
    """An event that is structural."""
    return RankingClosed(ranking_id=RankingId(1))


def request(*events: Event, key: str | None = None, fingerprint: bytes | None = b"f") -> Request:
    return Request(
        events=events or (registered(),),
        actor=ActorId(7),
        idempotency_key=key,
        fingerprint=None if key is None else fingerprint,
    )


def block(tournament_id: TournamentId, *requests: Request, judged_at: int = 1) -> Block:
    return Block(
        tournament_id=tournament_id,
        judged_at=Sequence(judged_at),
        judged_digest=None,
        requests=requests or (request(),),
    )


async def append(
    database: Database, *blocks: Block, wait: bool = False, unseen_bytes: int = 0
) -> list[Appended | OvertakenBy | NotAppended]:
    async with database.raw_connection() as connection:
        return await appending.append(connection, blocks, wait=wait, unseen_bytes=unseen_bytes)


async def appended(database: Database, one: Block) -> Appended:
    (outcome,) = await append(database, one)
    assert isinstance(outcome, Appended)
    return outcome


async def whole(database: Database, tournament_id: TournamentId) -> list[Event]:
    async with database.connection() as connection:
        tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=100_000)
    assert [recorded.sequence for recorded in tail.events] == list(range(1, len(tail.events) + 1))
    return [recorded.event for recorded in tail.events]


# ── Sequences ───────────────────────────────────────────────────────────────────────────────────────────


async def test_every_request_is_answered_with_the_sequence_of_its_first_event(
    database: Database, tournament_id: TournamentId
) -> None:
    requests = [request(registered(), registered()), request(), request(registered(), registered(), registered())]
    outcome = await appended(database, block(tournament_id, *requests))
    assert outcome.answers == (2, 4, 5)
    assert (outcome.first_sequence, outcome.last_sequence) == (2, 7)
    assert (await whole(database, tournament_id))[1:] == [event for asked in requests for event in asked.events]
    assert (await appended(database, block(tournament_id))).answers == (8,)


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_several_tournaments_are_appended_to_in_one_commit_or_not_at_all(
    database: Database, owner: asyncpg.Connection
) -> None:
    ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(3)]
    outcomes = await append(database, *(block(tournament_id) for tournament_id in ids))
    assert [outcome.answers for outcome in outcomes if isinstance(outcome, Appended)] == [(2,)] * 3
    xids = await owner.fetch("SELECT DISTINCT xmin FROM block WHERE last_sequence = 2")
    assert len(xids) == 1
    await owner.execute("ALTER TABLE personal ADD CHECK (strpos(text, ':\"1313\"') = 0)")
    blocks = [block(tournament_id) for tournament_id in ids[:2]] + [block(ids[2], request(registered("1313")))]
    with pytest.raises(asyncpg.CheckViolationError):
        await append(database, *blocks)
    assert [(await head_of(database, tournament_id)).sequence for tournament_id in ids] == [2, 2, 2]


async def test_a_block_that_is_not_appended_leaves_the_others_of_its_commit_alone(
    database: Database, owner: asyncpg.Connection, dsn: str
) -> None:
    ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(3)]
    overtaken, held, fine = ids
    await appended(database, block(overtaken, request(closed())))
    async with holding(dsn, HOLD_HEAD, held):
        outcomes = await append(
            database, block(overtaken, judged_at=1), block(held), block(fine), block(TournamentId(10**9))
        )
    assert outcomes[:2] + outcomes[3:] == [NotAppended.OVERTAKEN, NotAppended.BUSY, NotAppended.UNKNOWN]
    assert isinstance(outcomes[2], Appended)
    assert [(await head_of(database, tournament_id)).sequence for tournament_id in ids] == [2, 1, 2]


class Model:
    """What `append_block` says it does, without a database. (Digests are made by `engine/log/digest.py`.)"""

    def __init__(self, tournament_id: TournamentId, opened: list[Recorded], head: Head) -> None:
        self.tournament_id = tournament_id
        self.head = head
        self.structure = 1
        self.recorded = opened
        self.keys: dict[str, tuple[bytes | None, int]] = {}
        self.said: dict[object, tuple[int, ...]] = {}

    def append(self, asked: Block) -> tuple[int, ...] | NotAppended:
        if asked.append_id in self.said:
            return self.said[asked.append_id]
        if self.structure > asked.judged_at:
            return NotAppended.OVERTAKEN
        answers = []
        following = self.head.sequence + 1
        for one in asked.requests:
            if one.idempotency_key in self.keys:
                fingerprint, sequence = self.keys[one.idempotency_key]
                answers.append(-sequence if fingerprint == one.fingerprint else 0)
                continue
            if one.idempotency_key is not None:
                self.keys[one.idempotency_key] = one.fingerprint, following
            answers.append(following)
            following += len(one.events)
        if following > self.head.sequence + 1:
            self.said[asked.append_id] = tuple(answers)
            if asked.requests[-1].events[0].structural and answers[-1] > 0:
                self.structure = following - 1
        return tuple(answers)

    def follow(self, asked: Block, outcome: Appended) -> None:
        """Holds against the model what the database chose itself: times and digests."""
        if outcome.last_sequence is None or outcome.last_sequence <= self.head.sequence:
            return
        assert outcome.recorded_at is not None
        new = list(appending.recorded_events(asked, outcome))
        assert outcome.recorded_at >= self.recorded[-1].recorded_at
        text = digest.block_text(new[0].sequence, outcome.recorded_at, "\n".join(map(line, new)))
        self.head = Head(new[-1].sequence, digest.chain(self.head.digest, text))
        assert outcome.digest == self.head.digest
        self.recorded = self.recorded + new


def line(recorded: Recorded) -> str:
    body, _ = codec.part(recorded.event, codec.text_of(recorded.event), _SALT)
    return codec.line_with(recorded.event.tag, recorded.actor, recorded.idempotency_key, body)


_SALT: Final = "5a" * 32


requests = st.builds(
    lambda names, key, fingerprint: request(*map(registered, names), key=key, fingerprint=fingerprint),
    st.lists(st.sampled_from(["Ann", "Bob", "Cèé", "點"]), min_size=1, max_size=3),
    st.none() | st.sampled_from(["k1", "k2", "k3"]),
    st.sampled_from([b"a", b"b"]),
)
last_requests = requests | st.builds(
    lambda key, fingerprint: request(closed(), key=key, fingerprint=fingerprint),
    st.none() | st.sampled_from(["k1", "k2", "k3"]),
    st.sampled_from([b"a", b"b"]),
)
steps = st.tuples(st.lists(requests, max_size=4), last_requests, st.integers(0, 3), st.booleans())


@pytest.mark.parametrize("set_min", [1, 10], ids=["all together", "each by itself"])
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(steps, min_size=1, max_size=3), min_size=1, max_size=6))
async def test_whatever_is_appended_is_answered_and_stored_as_the_model_says(
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    set_min: int,
    sequence_of_commits: list[list[tuple[list[Request], Request, int, bool]]],
) -> None:
    """Keys repeated in a block and across blocks, stale judgements, blocks sent again: in any order, in several
    tournaments."""
    monkeypatch.setattr(appending, "new_salts", lambda count: [_SALT] * count)
    set_bounds(monkeypatch, SET_MIN=set_min)
    models = []
    for _ in range(3):
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        async with database.connection() as connection:
            opened = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=10)
        models.append(Model(tournament_id, opened.events, opened.head))
    sent: list[list[Block]] = [[] for _ in models]
    for commit in sequence_of_commits:
        blocks = []
        for (first, last, lag, again), model, before in zip(commit, models, sent, strict=False):
            if again and before:
                blocks.append(before[len(first) % len(before)])
            else:
                judged_at = max(0, model.head.sequence - lag)
                blocks.append(block(model.tournament_id, *first, last, judged_at=judged_at))
                before.append(blocks[-1])
        expected = [model.append(one) for model, one in zip(models, blocks, strict=False)]
        outcomes = await append(database, *blocks)
        for model, one, outcome, said in zip(models, blocks, outcomes, expected, strict=False):
            assert (outcome.answers if isinstance(outcome, Appended) else outcome) == said
            if isinstance(outcome, Appended):
                model.follow(one, outcome)
    for model in models:
        async with database.connection() as connection:
            tail = await tails.tail(connection, model.tournament_id, heads.beginning(model.tournament_id))
        assert tail.events == model.recorded
        assert tail.head == model.head == await head_of(database, model.tournament_id)


@pytest.mark.one_postgresql(A_COMMIT_EACH)
async def test_blocks_that_are_appended_together_are_recorded_at_one_time_and_those_that_cannot_be_are_not(
    database: Database, dsn: str
) -> None:
    """One is held by somebody else, one is overtaken, and one does not exist."""
    ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(6)]
    await appended(database, block(ids[0], request(closed())))
    async with holding(dsn, HOLD_HEAD, ids[1]):
        outcomes = await append(database, *[block(one) for one in (*ids, TournamentId(10**9))])
    assert outcomes[:2] == [NotAppended.OVERTAKEN, NotAppended.BUSY]
    assert outcomes[6:] == [NotAppended.UNKNOWN]
    together = [outcome for outcome in outcomes if isinstance(outcome, Appended)]
    assert [outcome.answers for outcome in together] == [(2,)] * 4
    assert len({outcome.recorded_at for outcome in together}) == 1


async def test_two_blocks_of_one_tournament_in_one_commit_are_an_error(
    database: Database, tournament_id: TournamentId
) -> None:
    ids = [await open_new_tournament(database, actor=OPERATOR) for _ in range(3)]
    if not database.is_distributed:
        with pytest.raises(asyncpg.CardinalityViolationError, match="two blocks in one commit"):
            await append(database, *[block(one) for one in (*ids, tournament_id, tournament_id)])
    assert len(await whole(database, tournament_id)) == 1


# ── Blocks that are sent again ──────────────────────────────────────────────────────────────────────────


async def test_a_block_sent_again_is_answered_as_it_was_and_not_appended_again(
    database: Database, tournament_id: TournamentId
) -> None:
    await appended(database, block(tournament_id, request(key="old")))
    asked = block(
        tournament_id,
        request(key="old"),
        request(key="new"),
        request(key="old", fingerprint=b"other"),
        request(key="new"),
        request(closed()),
    )
    first = await appended(database, asked)
    assert first.answers == (-2, 3, 0, -3, 4)
    await appended(database, block(tournament_id, request(closed()), judged_at=4))  # by which it would be overtaken
    for _ in range(3):
        again = await appended(database, asked)
        assert again.previous_digest is None
        for fact in ("answers", "first_sequence", "last_sequence", "recorded_at", "digest"):
            assert getattr(again, fact) == getattr(first, fact)
    assert len(await whole(database, tournament_id)) == 5


async def test_a_block_of_events_without_keys_that_is_sent_again_is_answered_as_it_was(
    database: Database, tournament_id: TournamentId
) -> None:
    """Nothing but the place of its events is stored of it."""
    asked = block(tournament_id, request(registered(), registered()), request(), request(registered(), registered()))
    first = await appended(database, asked)
    assert first.answers == (2, 4, 5)
    await appended(database, block(tournament_id))
    assert (await appended(database, asked)).answers == (2, 4, 5)
    assert len(await whole(database, tournament_id)) == 7


async def test_what_was_judged_by_a_longer_log_is_not_appended_to_a_shorter_one(
    database: Database, tournament_id: TournamentId
) -> None:
    """The longer one was lost with a server that a standby took the place of."""
    assert await append(database, block(tournament_id, judged_at=2)) == [NotAppended.OVERTAKEN]
    assert (await appended(database, block(tournament_id, judged_at=1))).answers == (2,)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")  # the child needs no lock
def test_processes_draw_other_append_ids_though_one_is_forked_from_the_other() -> None:
    asked = {
        "tournament_id": TournamentId(1),
        "judged_at": Sequence(1),
        "judged_digest": None,
        "requests": (request(),),
    }
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, Block(**asked).append_id.encode())
        os._exit(0)
    os.waitpid(child, 0)
    drawn = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    assert len({drawn, Block(**asked).append_id}) == 2
    assert UUID(drawn).hex == drawn


async def test_an_append_id_belongs_to_its_tournament(database: Database, tournament_id: TournamentId) -> None:
    elsewhere = await open_new_tournament(database, actor=OPERATOR)
    append_id = uuid4().hex
    for where in (tournament_id, elsewhere):
        asked = Block(
            tournament_id=where, judged_at=Sequence(1), judged_digest=None, requests=(request(),), append_id=append_id
        )
        assert (await appended(database, asked)).answers == (2,)


async def test_a_block_sent_again_while_the_first_is_still_being_committed_waits_for_it(
    database: Database, dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    asked = block(tournament_id)
    async with database.raw_connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        (first,) = await appending.append(connection, [asked], wait=False)
        assert await append(database, asked) == [NotAppended.BUSY]
        again = asyncio.create_task(append(database, asked, wait=True))
        await until(lambda: waiting_for_locks(owner, "append_block"))
        await transaction.commit()
    assert isinstance(first, Appended)
    assert (await again)[0].answers == first.answers
    assert len(await whole(database, tournament_id)) == 2


BETWEEN_MAX: Final = 2_000
"""Events between where a block was judged and the head, as `append_block` has it (`c_between_max`)."""


async def test_what_landed_since_is_searched_up_to_a_bound_where_a_block_is_sent_first(
    database: Database, tournament_id: TournamentId
) -> None:
    """And all of it where it may have been sent before: its answer must be found however much has landed."""
    asked = block(tournament_id)
    first = await appended(database, asked)
    await appended(database, block(tournament_id, *(request() for _ in range(BETWEEN_MAX - 1))))
    assert (await appended(database, asked)).answers == first.answers
    assert (await appended(database, block(tournament_id))).answers == (BETWEEN_MAX + 2,)
    assert await append(database, block(tournament_id)) == [NotAppended.OVERTAKEN]
    assert await append(database, asked) == [NotAppended.OVERTAKEN]
    async with database.raw_connection() as connection:
        (again,) = await appending.append(connection, [asked], wait=False, again=True)
    assert isinstance(again, Appended)
    assert again.answers == first.answers


# ── The history that it was judged against ───────────────────────────────────────────────────────────────────


async def test_a_block_is_appended_only_to_the_history_that_it_was_judged_by(
    database: Database, tournament_id: TournamentId
) -> None:
    heads = [await head_of(database, tournament_id)]
    for _ in range(3):
        await appended(database, block(tournament_id, request(), request()))
        heads.append(await head_of(database, tournament_id))
    for head in heads:
        for digest_, fits in ((head.digest, True), (bytes(32), False), (heads[-1 - heads.index(head)].digest, False)):
            asked = msgspec.structs.replace(block(tournament_id, judged_at=head.sequence), judged_digest=digest_)
            (outcome,) = await append(database, asked)
            assert isinstance(outcome, Appended) is fits
    within = msgspec.structs.replace(block(tournament_id, judged_at=2), judged_digest=heads[1].digest)
    assert await append(database, within) == [NotAppended.OVERTAKEN]  # no block ends there


async def test_an_id_that_was_created_since_the_judgement_is_not_created_again(
    database: Database, tournament_id: TournamentId
) -> None:
    first = CompetitorRegistered(competitor_id=CompetitorId(10**9), name="First")
    await appended(database, block(tournament_id, request(), request(first)))
    for judged_at, expected in ((1, NotAppended.OVERTAKEN), (3, None)):
        second = CompetitorRegistered(competitor_id=CompetitorId(10**9), name="Second")
        (outcome,) = await append(database, block(tournament_id, request(second), judged_at=judged_at))
        assert expected is None or outcome is expected  # who had judged against all of it would have known
    assert (await appended(database, block(tournament_id, judged_at=1))).answers == (5,)


@pytest.mark.one_postgresql("an older version cannot append to a distributed database")
async def test_a_process_of_the_previous_version_continues_to_append(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    assert await append_text(owner, tournament_id, "RankingClosed", '{"ranking_id":1}') == 2
    assert (await head_of(database, tournament_id)).sequence == 2
    assert [tuple(row) for row in await owner.fetch("SELECT sequence, structure_sequence FROM head")] == [(2, 1)]


# ── Refused keys ────────────────────────────────────────────────────────────────────────────────────────


async def refuse(database: Database, tournament_id: TournamentId, *keys: str) -> list[appending.KeyOutcome]:
    async with database.connection() as connection:
        return await appending.refuse_keys(connection, tournament_id, keys)


async def test_what_was_sent_before_its_key_was_refused_is_not_appended_and_what_is_sent_later_is(
    database: Database, tournament_id: TournamentId
) -> None:
    asked = [request(key="other"), request(key="k"), request()]
    assert await refuse(database, tournament_id, "k") == [appending.KeyOutcome(None, 1)]
    outcome = await appended(database, block(tournament_id, *asked))
    assert outcome.answers == (2, None, 3)
    assert await appended(database, block(tournament_id, asked[1], judged_at=3)) == appending.Appended(
        answers=(None,),
        first_sequence=None,
        last_sequence=None,
        recorded_at=None,
        previous_digest=outcome.digest,
        digest=None,
    )
    assert (await refuse(database, tournament_id, "k"))[0].refusals == 2
    for refusals, answer in ((1, None), (2, 4)):
        later = msgspec.structs.replace(asked[1], refusals=refusals)
        assert (await appended(database, block(tournament_id, later, judged_at=3))).answers == (answer,)
    async with database.connection() as connection:
        assert await appending.refusals(connection, tournament_id) == 2
        assert await appending.refusals(connection, TournamentId(10**9)) == 0


async def test_a_key_that_was_used_is_not_refused(database: Database, tournament_id: TournamentId) -> None:
    await appended(database, block(tournament_id, request(key="k", fingerprint=b"f")))
    assert await refuse(database, tournament_id, "k") == [appending.KeyOutcome(KeyUse(b"f", Sequence(2)), 0)]
    refused = await refuse(database, tournament_id, "new", "k", "new")
    assert [answer.used for answer in refused] == [None, KeyUse(b"f", Sequence(2)), None]
    assert {answer.refusals for answer in refused} == {1}
    assert (await appended(database, block(tournament_id, request(key="k")))).answers == (-2,)


async def test_a_structural_request_whose_key_was_refused_changes_no_structure(
    database: Database, tournament_id: TournamentId
) -> None:
    await refuse(database, tournament_id, "k")
    assert (await appended(database, block(tournament_id, request(), request(closed(), key="k")))).answers == (2, None)
    assert (await appended(database, block(tournament_id, judged_at=1))).answers == (3,)


# ── Structure ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_block_judged_before_a_structural_event_of_another_process_is_refused(
    database: Database, tournament_id: TournamentId
) -> None:
    await appended(database, block(tournament_id, request(closed())))
    assert await append(database, block(tournament_id, judged_at=1)) == [NotAppended.OVERTAKEN]
    assert await append(database, block(tournament_id, request(closed()), judged_at=1)) == [NotAppended.OVERTAKEN]
    assert len(await whole(database, tournament_id)) == 2
    assert (await appended(database, block(tournament_id, judged_at=2))).answers == (3,)


async def test_points_after_points_of_another_process_are_not_refused(
    database: Database, tournament_id: TournamentId
) -> None:
    for sequence in range(2, 6):
        assert (await appended(database, block(tournament_id, judged_at=1))).answers == (sequence,)
    assert (await appended(database, block(tournament_id, request(closed()), judged_at=1))).answers == (6,)
    assert await append(database, block(tournament_id, judged_at=5)) == [NotAppended.OVERTAKEN]
    assert (await appended(database, block(tournament_id, judged_at=6))).answers == (7,)


async def test_the_structural_sequence_is_the_last_of_the_block_that_holds_the_event(
    database: Database, tournament_id: TournamentId
) -> None:
    """So that whoever knows the block knows the structure, and whoever knows less does not."""
    outcome = await appended(database, block(tournament_id, request(), request(closed()), judged_at=1))
    assert outcome.last_sequence == 3
    assert await append(database, block(tournament_id, judged_at=2)) == [NotAppended.OVERTAKEN]
    assert (await appended(database, block(tournament_id, judged_at=3))).answers == (4,)


async def test_a_structural_request_that_is_a_repeat_changes_no_structure(
    database: Database, tournament_id: TournamentId
) -> None:
    await appended(database, block(tournament_id, request(closed(), key="k")))
    outcome = await appended(database, block(tournament_id, request(), request(closed(), key="k"), judged_at=2))
    assert outcome.answers == (3, -2)
    assert (await appended(database, block(tournament_id, judged_at=2))).answers == (4,)


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_key_is_known_within_its_block_across_blocks_and_only_in_its_tournament(
    database: Database, tournament_id: TournamentId
) -> None:
    elsewhere = await open_new_tournament(database, actor=OPERATOR)
    within = block(tournament_id, request(registered(), registered(), key="k"), request(), request(key="k"))
    assert (await appended(database, within)).answers == (2, 4, -2)
    across = block(tournament_id, request(key="k"), request(), request(key="k", fingerprint=b"other"))
    assert (await appended(database, across)).answers == (-2, 5, 0)
    assert (await appended(database, block(elsewhere, request(key="k", fingerprint=b"other")))).answers == (2,)
    async with database.connection() as connection:
        here, there = [await reading.keyed(connection, t, ["k", "K"]) for t in (tournament_id, elsewhere)]
    used = [{key: (one.fingerprint, one.recorded.sequence) for key, one in found.items()} for found in (here, there)]
    assert used == [{"k": (b"f", 2)}, {"k": (b"other", 2)}]


async def test_of_many_keys_those_that_were_used_are_answered_with_what_they_led_to_first(
    database: Database, tournament_id: TournamentId
) -> None:
    elsewhere = await open_new_tournament(database, actor=OPERATOR)
    first, second = registered(), registered()
    await appended(database, block(tournament_id, request(first, registered(), key="a"), request(second, key="b")))
    await appended(database, block(elsewhere, request(key="c")))
    async with database.connection() as connection:
        found = await reading.keyed(connection, tournament_id, ["b", "c", "none", "a"])
        assert await reading.keyed(connection, tournament_id, []) == {}
        asked = [*map(str, range(reading.IDEMPOTENCY_KEYS_MAX - 1)), "a"]
        assert list(await reading.keyed(connection, tournament_id, asked)) == ["a"]
        with pytest.raises(ValueError, match="more than"):
            await reading.keyed(connection, tournament_id, [*asked, "b"])
    assert {key: (one.fingerprint, one.recorded.sequence, one.recorded.event) for key, one in found.items()} == {
        "a": (b"f", 2, first),
        "b": (b"f", 4, second),
    }


async def test_a_block_of_nothing_but_repeats_is_answered_and_leaves_no_trace(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection
) -> None:
    await appended(database, block(tournament_id, request(key="a"), request(key="b")))
    before = await head_of(database, tournament_id)
    outcome = await appended(
        database, block(tournament_id, request(key="b"), request(key="a"), request(key="b", fingerprint=b"other"))
    )
    assert outcome.answers == (-3, -2, 0)
    assert (outcome.first_sequence, outcome.last_sequence, outcome.recorded_at, outcome.digest) == (None,) * 4
    assert await head_of(database, tournament_id) == before
    assert await owner.fetchval("SELECT count(*) FROM block WHERE tournament_id = $1", tournament_id) == 2


async def test_a_block_keeps_its_answers_only_where_they_do_not_follow_from_its_place(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection
) -> None:
    """They are kept for ever, one number for each request."""
    plain = block(tournament_id, request(registered(), registered()), request())
    keyed = block(tournament_id, request(key="a"), request(registered(), registered(), key="b"), request())
    repeats = block(tournament_id, request(key="a"), request(), request(key="b", fingerprint=b"other"))
    for asked, kept in ((plain, None), (keyed, None), (repeats, [-5, 9, 0])):
        first = await appended(database, asked)
        assert (await appended(database, asked)).answers == first.answers
        answers = "SELECT answers FROM block WHERE tournament_id = $1 ORDER BY last_sequence DESC LIMIT 1"
        assert await owner.fetchval(answers, tournament_id) == kept
        assert kept is None or first.answers == tuple(kept)


async def test_a_key_that_was_not_committed_is_not_used(database: Database, tournament_id: TournamentId) -> None:
    async with database.raw_connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await appending.append(connection, [block(tournament_id, request(key="k"))], wait=False)
        await transaction.rollback()
    assert (await appended(database, block(tournament_id, request(key="k")))).answers == (2,)


async def test_of_two_processes_with_one_key_at_once_the_second_answers_with_the_first_one(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    async with database.raw_connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await appending.append(connection, [block(tournament_id, request(key="k"))], wait=False)
        second = asyncio.create_task(append(database, block(tournament_id, request(key="k"), request()), wait=True))
        await until(lambda: waiting_for_locks(owner, "append_block"))
        await transaction.commit()
    (outcome,) = await second
    assert isinstance(outcome, Appended)
    assert outcome.answers == (-2, 3)


# ── Waiting for the head ────────────────────────────────────────────────────────────────────────────────


async def test_a_head_that_somebody_holds_is_not_waited_for_unless_asked_and_then_not_for_ever(
    database: Database, dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    async with holding(dsn, HOLD_HEAD, tournament_id) as holder:
        assert await append(database, block(tournament_id)) == [NotAppended.BUSY]
        with pytest.raises(asyncpg.LockNotAvailableError):
            await append(database, block(tournament_id), wait=True)
        waiting = asyncio.create_task(append(database, block(tournament_id), wait=True))
        await until(lambda: waiting_for_locks(owner, "append_block"))
        await holder.execute("ROLLBACK; BEGIN")
        (outcome,) = await waiting
        assert isinstance(outcome, Appended)
    assert len(await whole(database, tournament_id)) == 2


async def test_a_tournament_that_does_not_exist_is_unknown(database: Database) -> None:
    for wait in (False, True):
        assert await append(database, block(TournamentId(10**9)), wait=wait) == [NotAppended.UNKNOWN]


async def warn_at_commit(owner: asyncpg.Connection, message: str) -> None:
    """Has each commit of an event come with this warning."""
    await owner.execute(
        f"""
        CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE WARNING '{message}';
            RETURN NULL;
        END $$
        """
    )
    await owner.execute(
        """
        CREATE CONSTRAINT TRIGGER warned AFTER INSERT ON block DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW EXECUTE FUNCTION warn()
        """
    )


@pytest.mark.parametrize(
    "message",
    [
        "canceling wait for synchronous replication due to user request",
        "storniere Warten auf synchrone Replikation wegen Benutzeraufforderung",
        "failed to commit transaction on node:5432",
    ],
)
async def test_a_commit_that_comes_with_a_warning_is_recognised(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId, message: str
) -> None:
    await warn_at_commit(owner, message)
    with pytest.raises(UnconfirmedCommit, match=message):
        await append(database, block(tournament_id))
    assert len(await whole(database, tournament_id)) == 2
    await owner.execute("DROP TRIGGER warned ON block")
    assert (await appended(database, block(tournament_id))).answers == (3,)  # the same connection is not tainted


async def test_a_warning_of_citus_about_its_own_processes_leaves_a_commit_confirmed(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    await warn_at_commit(owner, "could not start maintenance background worker")
    assert (await appended(database, block(tournament_id))).answers == (2,)


# ── Time ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_recorded_at_never_falls_not_even_where_the_clock_was_set_back(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    first = await appended(database, block(tournament_id))
    assert first.recorded_at is not None
    assert before < first.recorded_at < datetime.now(UTC) + timedelta(seconds=5)
    future = datetime(2101, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
    async with unguarded(owner):
        await owner.execute("UPDATE block SET recorded_at = $1 WHERE last_sequence = 2", future)
    for _ in range(3):
        assert (await appended(database, block(tournament_id))).recorded_at == future
    async with database.connection() as connection:
        tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=10)
    assert [recorded.recorded_at for recorded in tail.events[2:]] == [future] * 3


async def test_the_last_event_at_the_very_moment_of_one_is_that_one(
    database: Database, tournament_id: TournamentId
) -> None:
    """Or the last of those that were recorded at once."""
    times = [
        (await appended(database, block(tournament_id, request(*[registered()] * n)))).recorded_at for n in (1, 3, 1)
    ]
    async with database.connection() as connection:
        for moment, last in zip(times, (2, 5, 6), strict=True):
            assert moment is not None
            assert await heads.last_at(connection, tournament_id, moment, Sequence(6)) == last
            before = await heads.last_at(connection, tournament_id, moment - timedelta(microseconds=1), Sequence(6))
            assert before == {2: 1, 5: 2, 6: 5}[last]


async def test_a_chunk_takes_just_as_many_bytes_as_it_may(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection, bounds: Bounds
) -> None:
    await appended(database, block(tournament_id, request(*[registered("x" * size) for size in (5, 100, 50, 50)])))
    async with database.connection() as connection:
        events = await reading.chunk_of(connection, tournament_id, Sequence(0), Sequence(5))
        sizes = [len(codec.line_of(one.event, OPERATOR)) + 1 for one in events]
        for count in range(1, 6):
            for spare, expected in ((0, count), (-1, max(1, count - 1))):
                bounds(CHUNK_BYTES_MAX=sum(sizes[:count]) + spare)
                found = await reading.chunk_of(connection, tournament_id, Sequence(0), Sequence(5))
                assert [recorded.sequence for recorded in found] == list(range(1, expected + 1))


async def test_a_chunk_that_lacks_an_event_is_of_another_log_and_says_of_which_tournament_and_where(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection
) -> None:
    await appended(database, block(tournament_id, request(*map(registered, "abc"))))
    await tamper(owner, line_removed(3), tournament_id)
    after = Sequence(1)
    assert after != tournament_id
    async with database.connection() as connection:
        with pytest.raises(LogForked) as missed:
            await reading.chunk_of(connection, tournament_id, after, Sequence(4))
    assert (missed.value.tournament_id, missed.value.sequence) == (tournament_id, after)


# ── Opening ─────────────────────────────────────────────────────────────────────────────────────────────


async def open_named(database: Database, slug: str) -> tuple[bool, TournamentId]:
    async with database.connection() as connection:
        tournament_id = registry.new_tournament_id()
        opened = await registry.open_tournament(connection, tournament_id, name="A", slug=slug, actor=ActorId(3))
        return opened, tournament_id


async def test_opening_a_tournament_enters_it_and_records_it(database: Database) -> None:
    opened, tournament_id = await open_named(database, "a")
    assert opened
    async with database.connection() as connection:
        assert await registry.tournament_named(connection, "a") == tournament_id
        assert await registry.tournament_named(connection, "A") is None
        assert [r.tournament_id for r in await registry.tournaments(connection)] == [tournament_id]
        recorded = await reading.event_at(connection, tournament_id, Sequence(1))
    assert recorded.event == TournamentOpened(name="A", slug="a")
    assert (recorded.actor, recorded.idempotency_key) == (3, None)


async def test_a_tournament_has_the_name_of_its_last_renaming_and_keeps_its_slug(database: Database) -> None:
    _, tournament_id = await open_named(database, "a")
    _, other = await open_named(database, "b")
    renamings = [request(TournamentRenamed(name=name)) for name in ("B", "C")]
    await appended(database, block(tournament_id, *renamings))
    async with database.connection() as connection:
        named = [await reading.name_at(connection, tournament_id, Sequence(upto)) for upto in (1, 2, 3)]
        assert named == ["A", "B", "C"]
        for entries in (
            await registry.tournaments(connection),
            await registry.tournaments_after(connection, "", None, 9),
        ):
            assert [(one.slug, one.name) for one in entries] == [("a", "C"), ("b", "A")]
        assert await registry.tournament_named(connection, "a") == tournament_id
        assert await reading.name_at(connection, other, Sequence(1)) == "A"


async def test_a_request_is_read_whole_and_alone(database: Database, tournament_id: TournamentId) -> None:
    """Whatever else is in its block, and whatever follows."""
    requests = [
        request(registered("a"), registered("b"), key="one"),
        request(registered("c"), key="two"),
        request(registered("d")),
        request(registered("e"), registered("f"), registered("g"), key="three"),
    ]
    answers = (await appended(database, block(tournament_id, *requests))).answers
    await appended(database, block(tournament_id, request(registered("h"))))
    async with database.connection() as connection:
        for asked, sequence in zip(requests, answers, strict=True):
            assert sequence is not None
            if asked.idempotency_key is None:
                continue
            read = await reading.request_at(connection, tournament_id, Sequence(sequence), asked.idempotency_key)
            assert tuple(one.event for one in read) == asked.events
            assert [one.sequence for one in read] == list(range(sequence, sequence + len(asked.events)))
        for sequence in (4, 5, 99):  # another's, nobody's key, beyond the end
            with pytest.raises(LogForked) as raised:
                await reading.request_at(connection, tournament_id, Sequence(sequence), "one")
            assert (raised.value.tournament_id, raised.value.sequence) == (tournament_id, sequence)


async def test_a_slug_that_is_taken_opens_nothing(database: Database) -> None:
    _, first = await open_named(database, "a")
    assert (await open_named(database, "a"))[0] is False
    async with database.connection() as connection:
        assert len(await registry.tournaments(connection)) == 1
        assert await registry.tournament_named(connection, "a") == first


async def test_of_many_who_open_one_slug_at_once_exactly_one_does(database: Database) -> None:
    outcomes = await asyncio.gather(*(open_named(database, "a") for _ in range(20)))
    (winner,) = [tournament_id for opened, tournament_id in outcomes if opened]
    async with database.connection() as connection:
        assert [r.tournament_id for r in await registry.tournaments(connection)] == [winner]


async def test_ids_are_never_given_twice(database: Database) -> None:
    async def take(size: int) -> list[int]:
        async with database.connection() as connection:
            return await registry.next_ids(connection, size)

    given_out = await asyncio.gather(*(take(size) for size in [1, 32, 5] * 10))
    assert all(ids == sorted(ids) for ids in given_out)
    assert len({number for ids in given_out for number in ids}) == 380


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_tail_is_whole_blocks_up_to_a_bound_and_leads_to_the_head(
    database: Database, tournament_id: TournamentId
) -> None:
    for size in (1, 3, 2, 5):
        await appended(database, block(tournament_id, *(request() for _ in range(size))))
    async with database.connection() as connection:
        at, sizes = heads.beginning(tournament_id), []
        while True:
            tail = await tails.tail(connection, tournament_id, at, blocks_max=2)
            if not tail.events:
                assert tail.head == at
                break
            assert [r.sequence for r in tail.events] == list(range(at.sequence + 1, tail.head.sequence + 1))
            sizes.append(len(tail.events))
            at = tail.head
        assert sizes == [2, 5, 5]
        assert at == await head_of(database, tournament_id)


async def test_a_tail_holds_no_more_events_than_its_bound_unless_one_block_has_more(
    database: Database, tournament_id: TournamentId, bounds: Bounds
) -> None:
    bounds(TAIL_EVENTS_MAX=4)
    for size in (3, 1, 9, 2, 2, 1):
        await appended(database, block(tournament_id, *(request() for _ in range(size))))
    sizes = []
    async with database.connection() as connection:
        at = heads.beginning(tournament_id)
        while (tail := await tails.tail(connection, tournament_id, at, blocks_max=100)).events:
            sizes.append(len(tail.events))
            at = tail.head
    assert sizes == [4, 1, 9, 4, 1]
    assert at == await head_of(database, tournament_id)


async def test_heads_are_those_of_the_tournaments_that_exist(database: Database, tournament_id: TournamentId) -> None:
    other = await open_new_tournament(database, actor=OPERATOR)
    outcome = await appended(database, block(other))
    async with database.connection() as connection:
        found = await heads.current(connection, [tournament_id, other, TournamentId(10**9)])
        assert found.keys() == {tournament_id, other}
        assert found[other] == Head(Sequence(2), outcome.digest)
        assert await heads.current(connection, []) == {}


@pytest.mark.parametrize("after", [1, 2, 3, 9])
async def test_a_log_without_a_block_that_ends_in_this_head_is_another_one(
    database: Database, tournament_id: TournamentId, after: int
) -> None:
    await appended(database, block(tournament_id, request(registered(), registered())))
    await appended(database, block(tournament_id))
    async with database.connection() as connection:
        with pytest.raises(LogForked) as raised:
            await tails.tail(connection, tournament_id, Head(Sequence(after), b"\0" * 32), blocks_max=10)
        assert (raised.value.tournament_id, raised.value.sequence) == (tournament_id, after)
        with pytest.raises(LogForked):  # the beginning of another tournament
            await tails.tail(connection, tournament_id, heads.beginning(TournamentId(tournament_id + 1)), blocks_max=10)


@pytest.mark.parametrize("of", [1, 2])
async def test_events_of_a_log_without_a_known_head_are_not_read(database: Database, of: int) -> None:
    spans = {}
    for _ in range(of):
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        await appended(database, block(tournament_id, request(registered(), registered())))
        spans[tournament_id] = undecoded.EventSpan(
            heads.beginning(tournament_id), Sequence(2), await head_of(database, tournament_id)
        )
    async with database.connection() as connection:
        assert [len(events) for events in (await undecoded.stored_of(connection, spans)).values()] == [2] * of
        known = spans[tournament_id].known
        assert known is not None
        for other in (
            Head(Sequence(2), known.digest),
            Head(known.sequence, b"\0" * 32),
            Head(Sequence(2**62), known.digest),
        ):
            spans[tournament_id] = msgspec.structs.replace(spans[tournament_id], known=other)
            assert tournament_id not in await undecoded.stored_of(connection, spans)
            with pytest.raises(LogForked):
                await undecoded.stored(connection, tournament_id, spans[tournament_id])


async def test_a_log_that_lacks_events_of_a_block_is_not_read_past_them(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection
) -> None:
    await appended(database, block(tournament_id, request(), request(), request()))
    await tamper(owner, line_removed(3), tournament_id)
    async with database.connection() as connection:
        with pytest.raises(LogForked):
            await tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=10)
        with pytest.raises(LogForked) as raised:
            await reading.event_at(connection, tournament_id, Sequence(4))
        assert (raised.value.tournament_id, raised.value.sequence) == (tournament_id, 4)


async def test_a_log_that_lacks_events_of_a_block_does_not_keep_other_logs_from_being_read(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection
) -> None:
    await appended(database, block(tournament_id, request(), request(), request()))
    await tamper(owner, line_removed(3), tournament_id)
    other = await open_new_tournament(database, actor=OPERATOR)
    spans = {
        tournament_id: undecoded.EventSpan(heads.beginning(tournament_id), Sequence(4)),
        other: undecoded.EventSpan(heads.beginning(other), Sequence(1)),
    }
    async with database.connection() as connection:
        found = await undecoded.stored_of(connection, spans)
        assert {one: [event.sequence for event in events] for one, events in found.items()} == {other: [1]}


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("Nonsense", "{}", "unknown tag"),
        ("RankingClosed", "{}", "missing required field"),
        ("RankingClosed", '{"ranking_id":1,"why":"done"}', "unknown field"),
        ("RankingClosed", '{"ranking_id":', "truncated"),
        ("PointsAdded", '{"ranking_id":1,"deltas":[[1,1,2147483648]]}', "2147483647"),
    ],
)
async def test_an_event_that_cannot_be_decoded_is_named_with_its_reason(
    database: Database, tournament_id: TournamentId, owner: asyncpg.Connection, kind: str, body: str, reason: str
) -> None:
    await appended(database, block(tournament_id))
    sequence = await append_text(owner, tournament_id, kind, body)
    async with database.connection() as connection:
        for unreadable in (
            tails.tail(connection, tournament_id, heads.beginning(tournament_id), blocks_max=10),
            reading.event_at(connection, tournament_id, sequence),
        ):
            with pytest.raises(LogUnreadable, match=reason) as raised:
                await unreadable
            assert (raised.value.tournament_id, raised.value.sequence) == (tournament_id, 3)


# ── A reader of "sequence > last" misses nothing ────────────────────────────────────────────────────────
#
# The classic bug of logs in PostgreSQL: numbers are drawn from a sequence, a transaction that drew the smaller one
# commits later, and the reader, who has seen the larger one, never looks back. The same story is told three times:
# with the log as it is; with its lock taken away; and with numbers from a sequence, as the classic has it.

READ_AFTER: Final = "SELECT sequence FROM event WHERE tournament_id = $1 AND sequence > $2 ORDER BY sequence"


async def overlapping_appends_are_read_in_full(
    owner: asyncpg.Connection,
    connections: tuple[asyncpg.Connection, asyncpg.Connection],
    append_one: Callable[[asyncpg.Connection], Awaitable[object]],
    read_after: Callable[[int], Awaitable[list[int]]],
    already: int,
) -> None:
    """Two transactions append; the one that began first commits last. In between, the reader looks."""
    first, second = connections
    slow = first.transaction()
    await slow.start()
    await append_one(first)
    appending = asyncio.create_task(append_one(second))
    await until(lambda: appending.done() or waits(owner, second))
    seen = await read_after(already)
    await slow.commit()
    await appending
    seen += await read_after(max(seen, default=already))
    assert seen == await read_after(already)
    assert len(set(seen)) == 2


async def waits(owner: asyncpg.Connection, connection: asyncpg.Connection) -> bool:
    return await number_of(owner, connection) in await waiting_for_locks(owner)


@asynccontextmanager
async def two_connections(dsn: str) -> Any:
    connections = [await asyncpg.connect(dsn, server_settings={"search_path": "tallybook"}) for _ in range(2)]
    try:
        yield connections
    finally:
        for connection in connections:
            await connection.close()


async def tell(dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId) -> None:
    """The story with the log, such as it is in this database."""

    async def append_one(connection: asyncpg.Connection) -> None:
        (outcome,) = await appending.append(connection, [block(tournament_id)], wait=True)
        assert isinstance(outcome, Appended)

    async def read_after(last: int) -> list[int]:
        return [row["sequence"] for row in await owner.fetch(READ_AFTER, tournament_id, last)]

    async with two_connections(dsn) as connections:
        await overlapping_appends_are_read_in_full(owner, connections, append_one, read_after, already=1)


async def take_the_lock_away(owner: asyncpg.Connection) -> None:
    source: str = await owner.fetchval(DOOR)
    unlocked = source.replace("FOR UPDATE SKIP LOCKED", "").replace("FOR UPDATE", "")
    assert unlocked.count("FOR UPDATE") < source.count("FOR UPDATE") == 2
    await owner.execute(unlocked)


async def test_a_reader_of_sequence_greater_than_last_misses_nothing(
    dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    await tell(dsn, owner, tournament_id)


async def test_without_the_lock_the_log_is_not_what_it_says(
    dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    """Both draw the same number. That the second is refused, and nothing is lost, is owed to the primary key."""
    await take_the_lock_away(owner)
    with pytest.raises(asyncpg.UniqueViolationError, match="block_pkey"):
        await tell(dsn, owner, tournament_id)


async def test_without_lock_and_key_the_chain_forks(
    dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    await take_the_lock_away(owner)
    for table in "block", "personal":
        await owner.execute(f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey")
    with pytest.raises(AssertionError):
        await tell(dsn, owner, tournament_id)


async def test_numbers_from_a_sequence_lose_an_event(dsn: str, owner: asyncpg.Connection) -> None:
    await owner.execute("CREATE TABLE classic (id bigserial PRIMARY KEY)")

    async def append_one(connection: asyncpg.Connection) -> None:
        await connection.execute("INSERT INTO classic DEFAULT VALUES")

    async def read_after(last: int) -> list[int]:
        return [row["id"] for row in await owner.fetch("SELECT id FROM classic WHERE id > $1 ORDER BY id", last)]

    async with two_connections(dsn) as connections:
        with pytest.raises(AssertionError, match=r"\[2\] == \[1, 2\]"):
            await overlapping_appends_are_read_in_full(owner, connections, append_one, read_after, already=0)


WRITERS: Final = 8
BLOCKS_EACH: Final = 60


async def test_readers_who_follow_many_appenders_see_every_event_once_and_in_order(
    dsn: str, owner: asyncpg.Connection, database: Database
) -> None:
    """Appenders in processes of their own, some with two tournaments in a commit; and two kinds of readers."""
    ids = sorted([await open_new_tournament(database, actor=OPERATOR) for _ in range(2)])
    expected = 1 + WRITERS * BLOCKS_EACH

    async def write(number: int) -> None:
        async with open_database(dsn, name=f"writer {number}", connections_max=1) as process:
            for n in range(BLOCKS_EACH):
                events = [registered(f"{number}/{n}") for _ in ids]
                blocks = [block(where, request(event)) for where, event in zip(ids, events, strict=True)]
                if number % 2:
                    assert all(isinstance(outcome, Appended) for outcome in await append(process, *blocks, wait=True))
                else:
                    for one in blocks:
                        await append(process, one, wait=True)

    async def read_plainly(where: TournamentId) -> list[int]:
        seen = [0]
        async with database.connection() as connection:
            while len(seen) <= expected:
                seen += [row["sequence"] for row in await connection.fetch(READ_AFTER, where, seen[-1])]
        return seen[1:]

    async def follow(where: TournamentId) -> list[str]:
        names: list[str] = []
        at = heads.beginning(where)
        async with database.connection() as connection:
            while len(names) < expected:
                tail = await tails.tail(connection, where, at, blocks_max=5)
                names += [getattr(recorded.event, "name", "") for recorded in tail.events]
                at = tail.head
        return names

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(write(number))
        plain = [tasks.create_task(read_plainly(where)) for where in ids]
        following = [tasks.create_task(follow(where)) for where in ids]
    for reader in plain:
        assert reader.result() == list(range(1, expected + 1))
    for reader in following:
        pairs = [tuple(map(int, name.split("/"))) for name in reader.result()[1:]]
        for _, of_one in groupby(sorted(pairs, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
            assert [n for _, n in of_one] == list(range(BLOCKS_EACH))


# ── Append only ─────────────────────────────────────────────────────────────────────────────────────────

LOG_TABLES: Final = ("tournament", "append_lock", "block", "topic", "personal", "idempotency", "refusal")


def changes_of(table: str) -> dict[str, str]:
    return {
        "INSERT": f"INSERT INTO {table} DEFAULT VALUES",
        "UPDATE": f"UPDATE {table} SET tournament_id = tournament_id",
        "DELETE": f"DELETE FROM {table}",
        "TRUNCATE": f"TRUNCATE {table}",
        "LOCK": f"SELECT 1 FROM {table} WHERE tournament_id = 1 FOR UPDATE",
    }


async def test_the_service_may_change_the_log_in_no_way_also_where_it_logs_in_as_the_owner(
    database: Database, tournament_id: TournamentId, subtests: pytest.Subtests
) -> None:
    for table in LOG_TABLES:
        with subtests.test(table):
            async with database.raw_connection() as connection:
                assert await connection.fetchval("SELECT current_user") == "tallybook_service"
                for statement in changes_of(table).values():
                    with pytest.raises(
                        asyncpg.InsufficientPrivilegeError, match=f"permission denied for table {table}"
                    ):
                        await connection.execute(statement)
                for statement in (f"ALTER TABLE {table} DISABLE TRIGGER ALL", f"DROP TABLE {table}"):
                    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="must be owner"):
                        await connection.execute(statement)
                assert (
                    await connection.fetchval(f"SELECT count(*) FROM {table} WHERE tournament_id = $1", tournament_id)
                    <= 1
                )


@pytest.mark.parametrize("table", LOG_TABLES)
async def test_the_owners_slips_are_refused(
    owner: asyncpg.Connection, database: Database, tournament_id: TournamentId, table: str
) -> None:
    await appended(database, block(tournament_id, request(key="k", fingerprint=bytes(32))))
    refused = ["DELETE", "TRUNCATE"] if table in ("append_lock", "refusal") else ["UPDATE", "DELETE", "TRUNCATE"]
    for kind in refused:
        with pytest.raises(
            asyncpg.InsufficientPrivilegeError, match=rf"append-only: {kind} on {table}(_\d+)? is refused"
        ):
            await owner.execute(changes_of(table)[kind])


async def test_nobody_else_may_call_the_door(owner: asyncpg.Connection) -> None:
    doors = await owner.fetch(
        """
        SELECT proname, proconfig, has_function_privilege('public', oid, 'EXECUTE') AS anybody
        FROM pg_proc
        WHERE pronamespace = 'tallybook'::regnamespace AND prosecdef
        ORDER BY proname
        """
    )
    fixed = ["search_path=tallybook, pg_temp"]
    names = ["append_block", "append_blocks", "open_tournament", "refuse_keys"]
    assert [tuple(row) for row in doors] == [(name, fixed, False) for name in names]


# ── What the sender has not seen ────────────────────────────────────────────────────────────────────────


def judged(at: Head, tournament_id: TournamentId, *requests: Request) -> Block:
    return Block(
        tournament_id=tournament_id,
        judged_at=at.sequence,
        judged_digest=at.digest,
        requests=requests or (request(),),
    )


_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
_requests = st.tuples(st.integers(1, 3), _texts, st.booleans())
_ENOUGH: Final = 100_000


@settings(on_the_database, max_examples=40)
@given(st.lists(st.lists(_requests, min_size=1, max_size=3), min_size=1, max_size=4), st.booleans())
async def test_an_append_tells_just_what_reading_the_log_would(
    database: Database, others: list[list[tuple[int, str, bool]]], structural: bool
) -> None:
    """Events, keys, times, actors and the digest there: whether it is recorded after them or overtaken by them."""
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    at = await head_of(database, tournament_id)
    for number, requests in enumerate(others):
        last = [request(closed())] if structural and number == len(others) - 1 else []
        made = [
            request(*[registered(name) for _ in range(n)], key=f"{number} {m} {name}" if keyed else None)
            for m, (n, name, keyed) in enumerate(requests)
        ]
        await appended(database, judged(await head_of(database, tournament_id), tournament_id, *made, *last))
    async with database.raw_connection() as connection:
        read = await tails.tail(connection, tournament_id, at)
    (outcome,) = await append(database, judged(at, tournament_id), unseen_bytes=_ENOUGH)
    assert isinstance(outcome, OvertakenBy if structural else Appended)
    assert outcome.unseen is not None
    assert tails.unseen_tail(tournament_id, at, outcome.unseen) == read
    if isinstance(outcome, Appended):
        assert (outcome.previous_digest, outcome.first_sequence) == (read.head.digest, read.head.sequence + 1)


async def test_nothing_is_returned_where_nothing_landed_or_nobody_asks(database: Database) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    at = await head_of(database, tournament_id)
    (first,) = await append(database, judged(at, tournament_id), unseen_bytes=_ENOUGH)
    (second,) = await append(database, judged(at, tournament_id))
    assert isinstance(first, Appended)
    assert isinstance(second, Appended)
    assert (first.unseen, second.unseen) == (None, None)


async def test_an_append_tells_as_many_bytes_and_blocks_as_it_may_and_no_more(
    database: Database, owner: asyncpg.Connection
) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    at = await head_of(database, tournament_id)

    async def told(bytes_max: int) -> bool:
        """Of a block that is overtaken, so that nothing else changes."""
        (outcome,) = await append(database, judged(at, tournament_id), unseen_bytes=bytes_max)
        return isinstance(outcome, OvertakenBy)

    for _ in range(99):
        await appended(database, judged(await head_of(database, tournament_id), tournament_id))
    await appended(database, judged(await head_of(database, tournament_id), tournament_id, request(closed())))
    size = int(await owner.fetchval("SELECT sum(octet_length(text)) FROM block WHERE last_sequence > 1"))
    assert await told(size)
    assert not await told(size - 1)
    await appended(database, judged(await head_of(database, tournament_id), tournament_id))
    assert not await told(10 * size)  # that were 101 blocks


async def test_a_block_judged_by_another_log_gets_nothing_of_this_one(database: Database) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    await appended(database, block(tournament_id))
    other = judged(Head(Sequence(1), digest.genesis(tournament_id)), tournament_id)
    assert await append(database, other, unseen_bytes=_ENOUGH) == [NotAppended.OVERTAKEN]


async def test_what_an_append_tells_is_folded_only_where_its_chain_holds(database: Database) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    at = await head_of(database, tournament_id)
    await appended(database, block(tournament_id, request(TournamentRenamed(name="Ann"))))
    (outcome,) = await append(database, judged(at, tournament_id), unseen_bytes=_ENOUGH)
    assert isinstance(outcome, Appended)
    assert outcome.unseen is not None
    for forged in (
        msgspec.structs.replace(outcome.unseen, text=outcome.unseen.text.replace("Ann", "Eve")),
        msgspec.structs.replace(outcome.unseen, digest=digest.genesis(tournament_id)),
    ):
        with pytest.raises(LogForked):
            tails.unseen_tail(tournament_id, at, forged)
    with pytest.raises(LogForked):
        tails.unseen_tail(tournament_id, Head(at.sequence, digest.genesis(tournament_id)), outcome.unseen)


@pytest.mark.parametrize("place", ["", "2", "2 1 1", "2 x", f"2 {2**63 - 1}", f"2 -{2**63}"])
def test_what_an_append_tells_without_a_place_and_time_that_it_can_have_is_read_from_the_log(place: str) -> None:
    tournament_id = TournamentId(1)
    head = Head(Sequence(1), digest.genesis(tournament_id))
    text = f'{place}\n["TournamentRenamed",0] {{"name":"Ann"}}'
    unseen = Unseen(text, digest.chain(head.digest, text.encode()))
    assert tails.unseen_tail(tournament_id, head, unseen) is None


async def test_what_sets_something_aside_is_read_from_the_log_and_what_cannot_be_decoded_is_named(
    database: Database, owner: asyncpg.Connection
) -> None:
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    at = await head_of(database, tournament_id)
    named = await append_text(owner, tournament_id, "Nonsense", "{}")
    (outcome,) = await append(database, judged(at, tournament_id), unseen_bytes=_ENOUGH)
    assert isinstance(outcome, Appended)
    assert outcome.unseen is not None
    with pytest.raises(LogUnreadable) as unreadable:
        tails.unseen_tail(tournament_id, at, outcome.unseen)
    assert unreadable.value.sequence == named
    aside = EventSetAside(sequence=named, digest="0" * 64)
    async with database.raw_connection() as connection:
        await appending.append(connection, [block(tournament_id, request(aside), judged_at=3)], wait=True)
    (outcome,) = await append(database, judged(at, tournament_id), unseen_bytes=_ENOUGH)
    assert isinstance(outcome, OvertakenBy)
    assert (
        tails.unseen_tail(tournament_id, Head(Sequence(2), b""), Unseen(outcome.unseen.text.split("\n")[-1], b""))
        is None
    )


# ── Statements ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_statements_of_every_module_are_found() -> None:
    by_module = {name.rpartition(".")[0] for name in statements()}
    expected = {
        "engine.log.reading",
        "engine.database.migrator",
        "projections.tables.tables",
        "projections.tables.wakeup",
        "api.access.auth",
    }
    assert expected <= by_module
    assert len(statements()) > 50


async def test_every_statement_fits_the_migrated_schema_and_the_rights_of_whom_it_is_for(
    database: Database, owner: asyncpg.Connection
) -> None:
    async with database.raw_connection() as service:
        can_explain = service.get_server_version().major >= 16
        for name, statement in statements().items():
            migrates = name.rpartition(".")[0] in OWNERS_OWN
            try:
                await (owner if migrates else service).prepare(statement)
                if (
                    can_explain
                    and not migrates
                    and statement.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
                ):
                    # PostgreSQL looks at rights when a statement is about to be executed; EXPLAIN goes as far.
                    await service.execute(f"EXPLAIN (GENERIC_PLAN) {statement}")
            except asyncpg.PostgresError as error:
                pytest.fail(f"{name}: {error}")


async def test_for_no_statement_a_connection_asks_the_server_for_types(database: Database) -> None:
    with sent(database) as texts:
        async with database.raw_connection() as service:
            await service.fetchval("SELECT 1")
            for name, statement in statements().items():
                if name.rpartition(".")[0] not in OWNERS_OWN:
                    await service.prepare(statement)
    assert texts == ["SELECT 1"]


# ── Plans ───────────────────────────────────────────────────────────────────────────────────────────────

TOURNAMENTS: Final = 400
EVENTS_EACH: Final = 250
NOTHING: Final = sha256(b"").digest()


HOT_READS: Final = [
    (tails._BLOCKS.one, (200, 240, 2_002, 10_000, 10_000_000), "block_pkey", 3),
    (tails._BLOCKS.each, ([200, 7], [240, 245], 2_002, 10_000, 10_000_000), "block_pkey", 3 + 2),
    (tails._BLOCKS.each, ([200], [0], 11, 10_000, 10_000_000), "block_pkey", 11),
    (reading._EVENTS_WITH_TOPIC, (200, 7, 0, 250, 20, 10_000), "topic_pkey", 12 + 12 + 60),
    (reading._EVENTS_WITH_TOPIC, (200, 7, 100, 120, 20, 10_000), "topic_pkey", 1 + 1 + 5),
    (reading._POINTS_OF_COMPETITIONS, (200, [7, 9, 8], [100, 0, 200], 120, 20, 10_000), "topic_pkey", 1 + 1 + 5),
    (reading._POINTS_OF_COMPETITIONS, (200, [7, 8], [0, 0], 250, 5, 10_000), "topic_pkey", 10 + 10 + 50),
    (reading._WITH_TOPICS, (200, [7, 9, 8], 100, 120, 20), "topic_pkey", 1 + 1),
    (reading._WITH_TOPICS_BETWEEN, (200, 7, 8, 0, 250, 20), "topic_pkey", 12 + 12),
    (reading._EVENTS_AT, (200, [110, 120], 10_000), "block_pkey", 2 + 10),
    (reading._SET_ASIDE_SINCE, (200, 250), "topic_pkey", 0),
    (reading._EVENT, (200, 250), "block_pkey", 1 + 5),
    (reading._BLOCK_WITH, (200, 241), "block_pkey", 1),
    (heads._HEADS, ([7, 200, 333],), "block_pkey", 3),
    (heads._HEAD, (200,), "block_pkey", 1),
    (heads._LOGS_BYTES, ([7, 200, 333],), "block_pkey", 3),
    (heads._LOG_BYTES, (200,), "block_pkey", 1),
    (rows.EVENTS_BETWEEN, (200, 100, 250, 20, 10_000_000), "block_pkey", 4 + 1),
    (rows.EVENTS_BETWEEN, (200, 100, 250, 20, 1), "block_pkey", 4 + 1),
    (undecoded._STORED.one, (200, 100, 250, 20, 10_000_000, NOTHING, 245, NOTHING), "block_pkey", 4 + 1 + 2),
    (
        undecoded._STORED.each,
        ([200, 7], [100, 0], [250, 250], [20, 20], [1, 1], [NOTHING, b""], [245, 0], [NOTHING, b""]),
        "block_pkey",
        8 + 2 + 3,
    ),
    (heads._BLOCK_AROUND, (200, 101), "block_pkey", 1),
    (heads._LAST_AT, (200, 250, datetime(2024, 1, 1, tzinfo=UTC)), "block_pkey", 9),
    (heads._LAST_AT, (200, 250, datetime(9999, 1, 1, tzinfo=UTC)), "block_pkey", 9),
    (heads._BLOCK_DIGEST, (200, 250), "block_pkey", 1),
    (reading._KEYED, (200, ["key 50", "key 51", "key 60"]), "idempotency_pkey", 2 + 2 + 10),
    (reading._KEYED, (200, ["key 50", "key 51", "key 60"]), "block_pkey", 2 + 2 + 10),
    (registry._BY_SLUG, ("slug-50",), "tournament_slug_key", 1),
]
"""Statement, arguments, the index that is to be used, the rows that may be scanned for it."""


@pytest.mark.one_postgresql(PLANS_OF_NODES)
@pytest.mark.parametrize("plan_cache_mode", ["force_custom_plan", "force_generic_plan"])
async def test_hot_reads_use_their_index_and_scan_what_they_return(
    owner: asyncpg.Connection, plan_cache_mode: str
) -> None:
    await fill(owner)
    await owner.execute(f"SET plan_cache_mode = {plan_cache_mode}")
    for statement, arguments, index, rows_max in HOT_READS:
        explained = await owner.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", *arguments)
        nodes = list(flattened(json.loads(explained)[0]["Plan"]))
        assert index in {node.get("Index Name") for node in nodes}, statement
        assert "Seq Scan" not in {node["Node Type"] for node in nodes}, statement
        assert sum(map(rows_scanned, nodes)) <= rows_max, statement


@pytest.mark.one_postgresql("a distributed database is asked about one tournament at a time")
@pytest.mark.parametrize(
    ("query", "values", "common"),
    [
        (tails._BLOCKS, [(240,), (245,), (0,)], (20, 10_000, 10_000_000)),
        (
            undecoded._STORED,
            [
                (240, 250, 20, 10_000_000, NOTHING, 250, NOTHING),
                (0, 9, 20, 10_000_000, b"", 0, b""),
                (9, 20, 20, 10_000_000, b"", 0, b""),
            ],
            (),
        ),
    ],
)
async def test_several_tournaments_give_in_one_statement_what_each_gives_alone(
    owner: asyncpg.Connection,
    query: TournamentQuery,
    values: list[tuple[object, ...]],
    common: tuple[object, ...],
) -> None:
    await fill(owner)
    asked = {TournamentId(tournament_id): each for tournament_id, each in zip((200, 7, 9), values, strict=True)}
    together = await query.fetch(owner, asked, *common)
    alone = [row for one, each in asked.items() for row in await query.fetch(owner, {one: each}, *common)]
    assert {row["tournament_id"] for row in together} >= {200, 7}
    assert together == alone


@pytest.mark.one_postgresql(PLANS_OF_NODES)
@pytest.mark.parametrize("statement", [heads._HEAD, heads._HEADS])
async def test_a_head_is_found_by_its_index_even_if_that_was_planned_when_there_were_few_blocks(
    owner: asyncpg.Connection, tournament_id: TournamentId, statement: str
) -> None:
    """A session keeps its plan until the blocks are counted again, and a sort of them all would grow with them."""
    await owner.execute("SET plan_cache_mode = force_generic_plan")
    arguments = [tournament_id] if statement == heads._HEAD else [[tournament_id, tournament_id + 1]]
    nodes = list(
        flattened(json.loads(await owner.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *arguments))[0]["Plan"])
    )
    assert "block_pkey" in {node.get("Index Name") for node in nodes}
    assert "Sort" not in {node["Node Type"] for node in nodes}


@pytest.mark.one_postgresql(PLANS_OF_NODES)
async def test_reading_a_long_log_in_chunks_walks_along_it_whatever_the_statistics_say(
    database: Database, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    """PostgreSQL takes a tournament for as long as the others are, or for short where it has not counted yet. What it
    then thinks best is to fetch and sort all the rest for each chunk: in the end, as the square of its length."""
    await owner.execute("ALTER TABLE block SET (autovacuum_enabled = off)")
    await owner.execute(
        """
        INSERT INTO block
            (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, digest, text, log_bytes,
                append_id)
        SELECT $1, n, n, now(), 1, '', '{}', 2 * n, gen_random_uuid() FROM generate_series(2, 30000) AS n
        """,
        tournament_id,
    )
    chunks = {
        tails._BLOCKS.each: ([tournament_id], [2], 1_000, 1_000, 1_000_000),
        rows.EVENTS_BETWEEN: (tournament_id, 2, 29_000, 1_000, reading.CHUNK_BYTES_MAX),
        undecoded._STORED.each: (
            [tournament_id],
            [2],
            [29_000],
            [1_000],
            [reading.CHUNK_BYTES_MAX],
            [b""],
            [30_000],
            [b""],
        ),
        stored_log._BLOCKS: (tournament_id, 2, 500, stored_log.BYTES_MAX),
    }
    async with database.connection() as connection:
        for query, arguments in chunks.items():
            plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {query}", *arguments))
            assert "Sort" not in plan, plan


async def fill(owner: asyncpg.Connection) -> None:
    """A log of many tournaments with many events each, in blocks of 5, of which the planner knows."""
    tournaments = f"generate_series(1, {TOURNAMENTS}) AS t (id)"
    events = f"generate_series(1, {EVENTS_EACH}) AS s (n)"
    await owner.execute(
        f"""
        INSERT INTO tournament (tournament_id, slug, name)
        SELECT id, 'slug-' || id, 'T' FROM generate_series(1, {20 * TOURNAMENTS}) AS id;
        INSERT INTO append_lock (tournament_id) SELECT t.id FROM {tournaments};
        INSERT INTO topic (tournament_id, topic, sequence)
        SELECT t.id, 7 + s.n / 10 % 2, s.n FROM {tournaments}, {events} WHERE s.n % 10 = 0;
        INSERT INTO block
            (tournament_id, last_sequence, first_sequence, recorded_at, structure_sequence, digest, text, log_bytes,
                append_id)
        SELECT t.id, s.n, s.n - 4, now(), 1, sha256(''), repeat(repeat('x', 100) || chr(10), 4) || 'x', 81 * s.n,
            gen_random_uuid()
        FROM {tournaments}, {events} WHERE s.n % 5 = 0;
        INSERT INTO personal (tournament_id, sequence, competitor_id, text)
        SELECT t.id, s.n, s.n, 'x' FROM {tournaments}, {events} WHERE s.n % 50 = 0;
        INSERT INTO idempotency (tournament_id, idempotency_key, fingerprint, sequence)
        SELECT t.id, 'key ' || s.n, '', s.n FROM {tournaments}, {events} WHERE s.n % 10 = 0;
        ANALYZE
        """
    )


async def test_a_tail_is_bounded_in_bytes_and_is_still_read_whole(
    database: Database, tournament_id: TournamentId, bounds: Bounds
) -> None:
    bounds(TAIL_BYTES_MAX=50_000)
    for _ in range(4):
        await appended(database, block(tournament_id, *(request(registered("x" * 200)) for _ in range(100))))
    sizes, head = [], heads.beginning(tournament_id)
    async with database.connection() as connection:
        while (tail := await tails.tail(connection, tournament_id, head, blocks_max=100)).events:
            assert tail.events[0].sequence == head.sequence + 1
            sizes.append(len(tail.events))
            head = tail.head
    assert head == await head_of(database, tournament_id)
    assert len(sizes) > 1
    assert sum(sizes) == 401


async def test_what_a_server_tells_its_clients_besides_warnings_is_no_unconfirmed_commit(
    dsn: str, owner: asyncpg.Connection, tournament_id: TournamentId
) -> None:
    name = await owner.fetchval("SELECT current_database()")
    await owner.execute(f"ALTER DATABASE {name} SET client_min_messages = debug1")
    await owner.execute(f"ALTER DATABASE {name} SET log_min_duration_statement = 0")
    async with open_database(dsn, name="talkative") as database:
        assert (await appended(database, block(tournament_id, request(registered())))).answers == (2,)
