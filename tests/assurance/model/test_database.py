"""The model's database says what PostgreSQL says: both are asked the same, at random, and their answers compared.

Blocks of one to three requests, with keys and without, judged by any log that there was or by one that never was; sent
again under their append id; keys that are refused, and requests that knew of fewer refusals; boundaries at which
points expire, which the clock passes, stands at, or is put back behind.
"""

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

import asyncpg
import msgspec
import pytest
from asyncpg import Connection
from msgspec.structs import replace

from assurance.model import database as model
from assurance.model import state as values
from assurance.model.protocol import Protocol
from assurance.model.scenario import ADD, ADD_TOO, CLOSE, PLAIN_ADD, REOPEN, VOID, Mistake, Scenario
from assurance.model.state import BEFORE, Case, Event, Kind, Log
from engine.database.pool import Database
from engine.domain import events
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import appending, heads, tails
from engine.log.appending import Appended, Block, NotAppended, Passed, Request
from engine.log.heads import Head
from tests.desks import fingerprint
from tests.told_clock import ToldClock, told_clock
from tests.tournaments import open_new_tournament

REQUESTS = (ADD, ADD_TOO, PLAIN_ADD, CLOSE, REOPEN, VOID)
STEPS = 60
SEEDS = 12
BEGAN: Final = datetime(2024, 1, 1, tzinfo=UTC)
BETWEEN: Final = timedelta(minutes=1)
"""From one boundary to the next."""
ALONE = Scenario(name="the database alone", requests=REQUESTS)
EVENTS: dict[Kind, events.Event] = {
    Kind.POINTS: events.PointsAdded(ranking_id=RankingId(1), deltas=(events.Delta(CompetitorId(1), UnityId(1), 1),)),
    Kind.CLOSE: events.RankingClosed(ranking_id=RankingId(1)),
    Kind.REOPEN: events.RankingReopened(ranking_id=RankingId(1)),
    Kind.VOID: events.CompetitionVoided(competition_id=CompetitionId(1)),
}
EXPIRED: Final = events.PointsExpired(
    ranking_id=RankingId(1), boundary=BEGAN, deltas=(events.Delta(CompetitorId(1), UnityId(1), -1),)
)


class Both:
    """The same database twice: the model's, and a tournament of the real one."""

    def __init__(
        self,
        protocol: Protocol,
        connection: Connection,
        tournament_id: TournamentId,
        head: Head,
        clock: ToldClock,
        random: Random,
    ) -> None:
        self.model = values.Database((Event(BEFORE),), (0,) * len(REQUESTS))
        self.said: list[object] = []
        self._protocol = protocol
        self._connection = connection
        self._tournament_id = tournament_id
        self._clock = clock
        self._random = random
        self._digests: dict[Log, bytes] = {self.model.log: head.digest}
        self._attempts = 0
        self._sent: list[tuple[values.Block, Block]] = []
        self._append_ids: dict[object, str] = {}

    @property
    def _now(self) -> int:
        """How many boundaries have passed, by a clock that never falls behind the log."""
        return max((self._clock.now - BEGAN) // BETWEEN, self.model.log[-1].at)

    async def step(self) -> None:
        """Asks both for one thing."""
        die = self._random.random()
        if die < 0.1:
            await self._pass_time()
        elif die < 0.2:
            await self._refuse(self._random.choice([r for r, one in enumerate(REQUESTS) if one.keyed]))
        elif die < 0.4 and self._sent:
            await self._append(*self._random.choice(self._sent[-4:]))
        else:
            self._sent.append(self._drawn())
            await self._append(*self._sent[-1])

    async def _pass_time(self) -> None:
        """To just a boundary, to the last moment before one, or between two; at times one is passed back."""
        boundary = BEGAN + BETWEEN * max(
            (self._clock.now - BEGAN) // BETWEEN + self._random.choice((-1, 0, 1, 1, 2)), 0
        )
        await self._clock.set(
            boundary + self._random.choice((timedelta(), BETWEEN / 2, BETWEEN - timedelta.resolution))
        )

    def _drawn(self) -> tuple[values.Block, Block]:
        """A block of requests, or one that expires points. At times its sender takes it to be earlier, or later."""
        cases = self._cases() if self._random.random() < 0.85 else ()
        known = self._random.randint(0, self.model.refusals)
        judged_by = self._random.choice([*list(self._digests)[-3:], self.model.log, self.model.log])
        digest = self._digests[judged_by]
        if self._random.random() < 0.15:
            judged_by, digest = (*judged_by[:-1], Event(BEFORE, timeline=9)), bytes(32)  # it never was
        requests = [self._request(case, known) for case in cases] or [Request(events=(EXPIRED,), actor=OPERATOR)]
        now = max(self._now + self._random.choice((-1, 0, 0, 0, 0, 0, 0, 1)), 0)
        refusals = known if any(request.idempotency_key for request in requests) else 0
        modelled = values.Block(cases, judged_by, refusals, now=now)
        block = Block(
            tournament_id=self._tournament_id,
            judged_at=Sequence(len(judged_by)),
            judged_digest=digest,
            requests=tuple(requests),
            within=(BEGAN + BETWEEN * now, BEGAN + BETWEEN * (now + 1)),
        )
        append_id = self._append_ids.setdefault(modelled.append_id, block.append_id)
        return modelled, msgspec.structs.replace(block, append_id=append_id)

    def _cases(self) -> tuple[Case, ...]:
        """As a docket takes them: up to the first that is structural, what is exact alone."""
        cases: list[Case] = []
        for _ in range(self._random.randint(1, 3)):
            request = self._random.randrange(len(REQUESTS))
            kind = REQUESTS[request].kind
            if kind.exact and cases:
                break
            self._attempts += 1
            cases.append(Case(request, self._attempts))
            if kind.structural:
                break
        return tuple(cases)

    def _request(self, case: Case, known: int) -> Request:
        request = REQUESTS[case.request]
        key = f"key {case.request}" if request.keyed else None
        return Request(
            events=(EVENTS[request.kind],),
            actor=OPERATOR,
            idempotency_key=key,
            fingerprint=fingerprint(key),
            refusals=known,
        )

    async def _append(self, modelled: values.Block, block: Block) -> None:
        after, expected = model.execute(self._protocol, self.model, modelled, self._now)
        (outcome,) = await appending.append(self._connection, [block], wait=True, again=self._random.random() < 0.5)
        if expected is model.OVERTAKEN:
            assert outcome is NotAppended.OVERTAKEN
            self.said.append(outcome)
            return
        if expected.now is not None:
            assert isinstance(outcome, Passed)
            assert (outcome.now - BEGAN) // BETWEEN == expected.now
            self.said.append(outcome)
            return
        assert isinstance(outcome, Appended)
        assert tuple(answer or 0 for answer in outcome.answers) == expected.answers
        self.said += expected.answers
        if after.log != self.model.log:
            assert (outcome.first_sequence, outcome.last_sequence) == (len(self.model.log) + 1, len(after.log))
            assert outcome.digest is not None
            self._digests[after.log] = outcome.digest
        self.model = replace(after)

    async def _refuse(self, request: int) -> None:
        after = model.refuse(self._protocol, self.model, request)
        (told,) = await appending.refuse_keys(self._connection, self._tournament_id, [f"key {request}"])
        used = [n for n, event in enumerate(after.log, 1) if event.request == request]
        assert (None if told.used is None else told.used.sequence) == (used[0] if used else None)
        assert told.refusals == after.refusals
        self.model = after


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_the_model_answers_as_the_function_that_appends(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    said = await _compared(database, await told_clock(owner, monkeypatch), Protocol(ALONE), seed)
    assert {one > 0 if isinstance(one, int) else type(one) for one in said} == {NotAppended, Passed, True, False}


@pytest.mark.parametrize(
    "mistake",
    [
        Mistake.DIGEST,
        Mistake.STRUCTURE,
        Mistake.EXACT,
        Mistake.KEYS,
        Mistake.NO_APPEND_ID,
        Mistake.NO_DUE,
        Mistake.PASSED_UNSEEN,
        Mistake.EXPIRY_PLAIN,
    ],
)
async def test_a_model_with_a_mistake_answers_otherwise(
    database: Database, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, mistake: Mistake
) -> None:
    clock = await told_clock(owner, monkeypatch)
    assert await _differs_somewhere(database, clock, Protocol(ALONE, mistake))


async def _differs_somewhere(database: Database, clock: ToldClock, protocol: Protocol) -> bool:
    for seed in range(SEEDS):
        try:
            await _compared(database, clock, protocol, seed)
        except AssertionError:
            return True
    return False


async def _compared(database: Database, clock: ToldClock, protocol: Protocol, seed: int) -> list[object]:
    """What both said; raises AssertionError where they do not say the same."""
    await clock.set(BEGAN)
    tournament_id = await open_new_tournament(database, actor=OPERATOR)
    async with database.connection() as connection:
        head = (await heads.current(connection, [tournament_id]))[tournament_id]
        both = Both(protocol, connection, tournament_id, head, clock, Random(seed))
        for _ in range(STEPS):
            await both.step()
        assert len(await _stored(connection, tournament_id)) == len(both.model.log)
        return both.said


async def _stored(connection: Connection, tournament_id: TournamentId) -> list[object]:
    tail = await tails.tail(connection, tournament_id, heads.beginning(tournament_id))
    return [msgspec.structs.astuple(one) for one in tail.events]
