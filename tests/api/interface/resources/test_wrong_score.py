"""The wrong score: typed, corrected, closed, voided, struck, taken back, and shown correctly right after each step.

What is right is what the naive model of what counts says, on both clocks.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import asyncpg
import pytest
from msgspec.structs import replace

from engine.database.pool import Database
from tests.api.public_boards import Board, change
from tests.api.scored import OUTCOMES, League, league_of
from tests.projections.verified import verified
from tests.service import Client, listed
from tests.told_clock import ToldClock, told_clock
from tests.what_counts.model import Accepted, Competition, Model, Moment, State, Unity

MARCH: Final = datetime(2031, 3, 9, 15, tzinfo=UTC)
MAY: Final = datetime(2031, 5, 11, 9, tzinfo=UTC)


class Drill:
    """A league of three, the naive model of it, and the moments after the steps so far."""

    def __init__(self, league: League, board: Board, clock: ToldClock) -> None:
        self.league, self.board, self.clock = league, board, clock
        self.match = 0
        self.moments: list[Moment] = []
        unity = league.points
        self.model = Model({league.ranking_id: {unity: Unity()}})
        self._scoring = {"awards": [{"unity": unity, "from": "outcome", "table": OUTCOMES}]}

    async def begin(self) -> None:
        league, ids = self.league, self.league.ids

        def begun(state: State) -> None:
            state.lists[league.ranking_id], state.ever[league.ranking_id] = ids, set(ids)
            state.scorings[league.ranking_id] = [self._scoring]

        await league.score()
        self._accept(0, await self.board.sequence(), begun)

    async def type_score(self, *, dated: bool) -> None:
        a, b, _ = self.league.ids
        date = MARCH if dated else None
        before = await self.board.sequence()
        fields = {"started_at": MARCH.isoformat()} if dated else {}
        self.match = await self.league.play(a, b, "2:1", **fields)
        typed = Competition(created_at=self.clock.now, date=date, participants=(a, b), result="2:1")
        self._accept(before, await self.board.sequence(), lambda state: state.competitions.update({self.match: typed}))
        await self.compare()

    async def do(self, path: str, change_of: Callable[[State], object] | None, **form: object) -> None:
        """None: it is refused, and changes nothing."""
        before = await self.board.sequence()
        answer = await self.league.client.put(path, form)
        if change_of is None:
            assert answer.status == 409, answer.body
            assert "'League'" in answer.json["message"]
            assert await self.board.sequence() == before
        else:
            assert answer.status == 200, answer.body
            self._accept(before, await self.board.sequence(), change_of)
        await self.compare()

    async def correct(self, result: str, *, refused: bool = False) -> None:
        def corrected(state: State) -> None:
            state.competitions[self.match] = replace(state.competitions[self.match], result=result or None)

        await self.do(f"competitions/{self.match}.json", None if refused else corrected, result=result)

    def _accept(self, before: int, last: int, change_of: Callable[[State], object]) -> None:
        scored = {(self.league.ranking_id, self.match or 0): before + 2}
        self.model.accept(Accepted(before + 1, last, self.clock.now, change_of, scored))
        self.moments.append(Moment(upto=last, now=self.clock.now))

    # ── Comparing ───────────────────────────────────────────────────────────────────────────────────────

    async def compare(self) -> None:
        """The board now, at each step so far, and at these times."""
        now = self.moments[-1]
        await self._compare(now, "")
        for moment in self.moments:
            await self._compare(moment, f"?at={moment.upto}")
        for on in (MARCH - timedelta(days=1), MARCH + timedelta(days=1), MAY + timedelta(days=1)):
            await self._compare(replace(now, on=on), f"?on={quote(on.isoformat())}")
        await self._compare_explained(now)

    async def _compare(self, moment: Moment, query: str) -> None:
        ranking, unity = self.league.ranking_id, self.league.points
        expected = self.model.standings(ranking, moment)[unity]
        answer = await self.board.get(f"table.json{query}")
        assert answer.status == 200, answer.body
        lines = answer.json["lines"]
        found = {int(one["competitor_id"]): (one["position"], int(one["values"][0] or 0)) for one in lines}
        assert found == expected, (
            query,
            moment,
            (await self.league.client.get(f"competitions/{self.match}.json")).body,
        )
        private = query.replace("at=", "at_sequence=")
        assert await self.league.table(private) == {one: total for one, (_, total) in expected.items()}

    async def _compare_explained(self, moment: Moment) -> None:
        totals = self.model.totals(moment)
        for one in self.league.ids:
            answer = await self.league.client.get(f"{self.league.path}/explain.json?competitor={one}")
            explained: Any = answer.json["explanation"]
            assert explained["to"]["total"] == totals.get((self.league.points, one), 0), explained


@pytest.mark.parametrize("dated", [False, True])
async def test_a_wrong_score_is_right_on_the_board_after_each_step(
    client: Client,
    board: Board,
    database: Database,
    owner: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
    dated: bool,
) -> None:
    clock = await told_clock(owner, monkeypatch)
    await clock.set(MARCH + timedelta(hours=2))
    drill = Drill(await league_of(client), board, clock)
    await change(client, published="true")
    await drill.begin()
    a = drill.league.ids[0]
    ranking, path = drill.league.ranking_id, drill.league.path
    await drill.type_score(dated=dated)
    match = drill.match
    await clock.set(MAY)
    await drill.correct("2:2")
    await drill.do(f"{path}/close.json", lambda state: state.closed.update({ranking: MAY}))
    await drill.correct("1:2", refused=True)
    await drill.do(f"{path}/reopen.json", lambda state: state.closed.pop(ranking))
    await drill.correct("1:2")
    await drill.do(f"competitions/{match}/void.json", lambda state: state.voided.add(match))
    await drill.correct("3:1")
    await drill.do(f"competitions/{match}/unvoid.json", lambda state: state.voided.remove(match))
    strike = {"competitors": listed([a])}
    await drill.do(f"competitions/{match}/strike.json", lambda state: state.struck.add((match, a)), **strike)
    await drill.correct("4:4")
    await drill.do(f"competitions/{match}/unstrike.json", lambda state: state.struck.remove((match, a)), **strike)
    await drill.correct("")
    await drill.correct("2:1")  # as it was typed
    await clock.give_back()
    assert not (await verified(database)).differences
