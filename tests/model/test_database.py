"""The model's database says what PostgreSQL says: both are asked the same, at random, and their answers compared.

Blocks of one to three requests, with keys and without, judged by any log that there was or by one that never was; sent
again under their append id; keys that are refused, and requests that knew of fewer refusals.
"""

from random import Random

import msgspec
import pytest
from asyncpg import Connection
from msgspec.structs import replace

from engine.database.pool import Database
from engine.domain import events
from engine.domain.terms import OPERATOR, CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import appending, reading
from engine.log.appending import Appended, Block, NotAppended, Request
from engine.log.reading import Head
from tests.desks import fingerprint
from tests.model import database as model
from tests.model import state as values
from tests.model.protocol import Protocol
from tests.model.scenario import ADD, ADD_TOO, CLOSE, PLAIN_ADD, REOPEN, VOID, Mistake, Scenario
from tests.model.state import BEFORE, Case, Event, Kind, Log
from tests.tournaments import open_new_tournament

REQUESTS = (ADD, ADD_TOO, PLAIN_ADD, CLOSE, REOPEN, VOID)
STEPS = 30
SEEDS = 12
ALONE = Scenario(name="the database alone", requests=REQUESTS)
EVENTS: dict[Kind, events.Event] = {
    Kind.POINTS: events.PointsAdded(ranking_id=RankingId(1), deltas=(events.Delta(CompetitorId(1), UnityId(1), 1),)),
    Kind.CLOSE: events.RankingClosed(ranking_id=RankingId(1)),
    Kind.REOPEN: events.RankingReopened(ranking_id=RankingId(1)),
    Kind.VOID: events.CompetitionVoided(competition_id=CompetitionId(1)),
}


class Both:
    """The same database twice: the model's, and a tournament of the real one."""

    def __init__(
        self, protocol: Protocol, connection: Connection, tournament_id: TournamentId, head: Head, random: Random
    ) -> None:
        self.model = values.Database((Event(BEFORE),), (0,) * len(REQUESTS))
        self.said: list[object] = []
        self._protocol = protocol
        self._connection = connection
        self._tournament_id = tournament_id
        self._random = random
        self._digests: dict[Log, bytes] = {self.model.log: head.digest}
        self._attempts = 0
        self._sent: list[tuple[values.Block, Block]] = []

    async def step(self) -> None:
        """Asks both for one thing."""
        die = self._random.random()
        if die < 0.2:
            await self._refuse(self._random.choice([r for r, one in enumerate(REQUESTS) if one.keyed]))
        elif die < 0.4 and self._sent:
            await self._append(*self._random.choice(self._sent[-4:]))
        else:
            self._sent.append(self._drawn())
            await self._append(*self._sent[-1])

    def _drawn(self) -> tuple[values.Block, Block]:
        cases = self._cases()
        known = self._random.randint(0, self.model.refusals)
        judged_by = self._random.choice([*list(self._digests)[-3:], self.model.log, self.model.log])
        digest = self._digests[judged_by]
        if self._random.random() < 0.15:
            judged_by, digest = (*judged_by[:-1], Event(BEFORE, timeline=9)), bytes(32)  # it never was
        requests = [self._request(case, known) for case in cases]
        block = Block(
            tournament_id=self._tournament_id,
            judged_at=Sequence(len(judged_by)),
            judged_digest=digest,
            requests=tuple(requests),
        )
        return values.Block(cases, judged_by, known if any(r.idempotency_key for r in requests) else 0), block

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
        after, expected = model.execute(self._protocol, self.model, modelled)
        (outcome,) = await appending.append(self._connection, [block], wait=True, again=self._random.random() < 0.5)
        if expected is model.OVERTAKEN:
            assert outcome is NotAppended.OVERTAKEN
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
    database: Database, tournament_id: TournamentId, seed: int
) -> None:
    said = await _compared(database, tournament_id, Protocol(ALONE), seed)
    kinds = {"overtaken" if one is NotAppended.OVERTAKEN else one > 0 for one in said}  # type: ignore[operator]
    assert kinds == {"overtaken", True, False}


@pytest.mark.parametrize(
    "mistake", [Mistake.DIGEST, Mistake.STRUCTURE, Mistake.EXACT, Mistake.KEYS, Mistake.NO_APPEND_ID]
)
async def test_a_model_with_a_mistake_answers_otherwise(database: Database, mistake: Mistake) -> None:
    assert await _differs_somewhere(database, Protocol(ALONE, mistake))


async def _differs_somewhere(database: Database, protocol: Protocol) -> bool:
    for seed in range(SEEDS):
        try:
            await _compared(database, await open_new_tournament(database, actor=OPERATOR), protocol, seed)
        except AssertionError:
            return True
    return False


async def _compared(database: Database, tournament_id: TournamentId, protocol: Protocol, seed: int) -> list[object]:
    """What both said; raises AssertionError where they do not say the same."""
    async with database.connection() as connection:
        head = (await reading.heads(connection, [tournament_id]))[tournament_id]
        both = Both(protocol, connection, tournament_id, head, Random(seed))
        for _ in range(STEPS):
            await both.step()
        assert len(await _stored(connection, tournament_id)) == len(both.model.log)
        return both.said


async def _stored(connection: Connection, tournament_id: TournamentId) -> list[object]:
    tail = await reading.tail(connection, tournament_id, reading.beginning(tournament_id))
    return [msgspec.structs.astuple(one) for one in tail.events]
