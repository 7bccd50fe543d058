"""Whatever is changed, a preview shows the totals and positions that the change then makes."""

from contextlib import suppress
from typing import Any, Literal, get_args

import asyncpg
import pytest

from api.desk.case import Receipt
from engine.database.pool import Database
from engine.domain import commands
from engine.domain.commands import Command, Previewed
from engine.domain.errors import Refusal
from engine.domain.events import Criterion
from engine.domain.terms import RankingId, UnityId
from projections.answers.foreseen import ForeseenQuestion
from projections.answers.view import view_of
from tests.bounds import set_bounds
from tests.desks import desk_at, submit
from tests.service import Client, make_token, serve, slug_of
from tests.told_clock import told_clock
from tests.what_counts.doors import standings_of
from tests.what_counts.model import Standings
from tests.what_counts.playing import RANKINGS, UNITIES, Tournament

AT_ONCE = 10
"""Seeds for which one database is made."""
SHARE, SEEDS_OF_LONG = (0, 570), 1_000
"""577 previews a competition without a date, which belongs to the round of its day for tie-breaks."""
STEPS = 30

Shown = dict[tuple[int, int | None], Standings]
"""By ranking and unity, None for the classification, which has no totals."""


class PreviewedTournament(Tournament):
    """Each change that has a preview is compared with it, as soon as there is a `client` to ask. `compared`: how many
    were."""

    client: Client | None = None
    compared = 0

    async def declare_criteria(self, ranking: RankingId) -> None:
        """As many of some random ones as are accepted."""
        criteria = [self._a_criterion(ranking) for _ in range(self.random.randint(1, 4))]
        while criteria:
            command = commands.DeclareClassification(ranking_id=ranking, criteria=tuple(criteria))
            with suppress(Refusal):
                await submit(self._desks[0], self.tournament_id, command)
                return
            del criteria[-1]

    def _a_criterion(self, ranking: RankingId) -> Criterion:
        random = self.random
        best, drop, tied = {"best": random.randint(1, 3)}, {"drop": ((2, 1), (4, 2))}, {"among": "tied"}
        tiebreak = {"tiebreak": random.choice(["BH", "SB", "DE", "WIN"])}
        chosen: list[dict[str, Any]] = [
            {},
            best,
            drop,
            best | drop,
            tied,
            tied | best,
            tiebreak,
            *[{"first": True}] * 5,
        ]
        return Criterion(unity_id=UnityId(random.choice([*UNITIES[ranking]])), **random.choice(chosen))

    async def _submit(self, command: Command) -> Receipt | None:
        if self.client is None or not isinstance(command, get_args(Previewed)):
            return await super()._submit(command)
        before = await self._shown(self.client)
        foreseen = await self._foreseen(command)
        receipt = await super()._submit(command)
        assert (foreseen is None) == (receipt is None)
        if foreseen is not None:
            where = f"seed {self.seed}, {command}"
            assert before | foreseen["before"] == before, where
            assert before | foreseen["after"] == await self._shown(self.client), where
            self.compared += 1
        return receipt

    async def _shown(self, client: Client) -> Shown:
        found: Shown = {}
        for ranking in RANKINGS:
            answers = [await client.get(f"rankings/{ranking}/{name}.json") for name in ("standings", "classification")]
            standings, classification = [one.json for one in answers]
            found |= {(ranking, unity): lines for unity, lines in standings_of(standings).items()}
            lines = classification["classification"]["standings"]
            found[ranking, None] = {one["competitor_id"]: (one["position"], None) for one in lines}
        return found

    async def _foreseen(self, command: Previewed) -> dict[Literal["before", "after"], Shown] | None:
        """None: it is refused."""
        desk = self.random.choice(self._desks)
        async with desk.live_pool.pinned(self.tournament_id) as live:
            await desk.live_pool.make_current(live)
            await desk.expire_points(live, self.clock.now)
            try:
                decided = await desk.preview(live, command)
            except Refusal:
                return None
            question = ForeseenQuestion(decided, is_short=False)
            foreseen = await question.answered(view_of(self.database, live))
        before: Shown = {}
        after: Shown = {}
        for ranking in foreseen.rankings or ():
            for unity in ranking.unities:
                named = ranking.id, unity.id
                before[named] = {
                    one.competitor_id: (one.position_before, one.total_before)
                    for one in unity.moves
                    if one.position_before is not None
                }
                after[named] = {
                    one.competitor_id: (one.position_after, one.total_after)
                    for one in unity.moves
                    if one.position_after is not None
                }
            moves = ranking.classification or ()
            before[ranking.id, None] = {
                one.competitor_id: (one.position_before, None) for one in moves if one.position_before is not None
            }
            after[ranking.id, None] = {
                one.competitor_id: (one.position_after, None) for one in moves if one.position_after is not None
            }
        return {"before": before, "after": after}


@pytest.mark.parametrize(
    "first",
    [
        first if first in SHARE else pytest.param(first, marks=pytest.mark.long)
        for first in range(0, SEEDS_OF_LONG, AT_ONCE)
    ],
)
async def test_a_preview_shows_what_the_change_then_makes(
    dsn: str, owner: asyncpg.Connection, database: Database, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """Nothing happens unasked, so that a seed is the same tournament each time."""
    set_bounds(monkeypatch, EXPIRY_WATCH_SECONDS=1e6, EXPIRY_SWEEP_SECONDS=1e6)
    clock = await told_clock(owner, monkeypatch)
    compared = 0
    async with desk_at(dsn) as other, serve(dsn) as service:
        token = await make_token(database)
        for seed in range(first, first + AT_ONCE):
            tournament = PreviewedTournament([service.desk, other], database, clock, seed)
            await tournament.begin()
            tournament.client = service.client(await slug_of(database, tournament.tournament_id), token)
            for ranking in RANKINGS:
                await tournament.declare_criteria(ranking)
            for _ in range(STEPS):
                await tournament.step()
            compared += tournament.compared
    assert compared > 5 * AT_ONCE
