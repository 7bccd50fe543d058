"""Tie-breaks of a live tournament: current after every change, the same at both clocks, foreseen, and explained."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from api.desk.desk import Desk
from engine.domain import commands
from engine.domain.commands import Command
from engine.domain.events import Criterion
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from projections.answers.classification import Classification, ClassificationQuestion
from projections.answers.explanation import ExplainQuestion, Explanation
from projections.answers.foreseen import ForeseenQuestion
from projections.answers.view import View, ask, view_of
from projections.board import games
from projections.board.board import Board
from projections.board.classification import Classified, classified
from projections.past import folds
from tests.calls import Calls
from tests.desks import head_of, open_arena, recorded, submit
from tests.histories import counted_of, fold_events, with_sums
from tests.projections.test_games import Played, scoring_of
from tests.projections.test_tiebreaks import RECORDED, named

SWISS: Final = next(one for one in RECORDED if one["pairing"] == "swiss" and one["edition"] == "2026-03")
NAMES: Final = ("BH/C1", "DE", "SB", "AOB", "PS", "BWG")


class Evening(msgspec.Struct):
    """A tournament of an oracle at a desk. `rounds`: when each begins."""

    desk: Desk
    tournament_id: TournamentId
    ranking_id: RankingId
    unity_id: UnityId
    games: list[commands.AddCompetition]

    @property
    def rounds(self) -> list[datetime]:
        return sorted({game.started_at for game in self.games if game.started_at is not None})

    async def do(self, command: Command) -> None:
        await submit(self.desk, self.tournament_id, command)

    async def play(self) -> None:
        """All rounds."""
        for game in self.games:
            await self.do(game)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[View]:
        async with self.desk.live_pool.pinned(self.tournament_id) as live:
            await self.desk.live_pool.make_current(live)
            yield view_of(self.desk.database, live)

    async def table(self, **fields: Any) -> Classification:
        async with self.view() as view:
            return await ask(view, ClassificationQuestion(ranking_id=self.ranking_id, top=100, **fields))

    async def replayed(self) -> list[Classified]:
        """The classification, computed again from the log."""
        history = await recorded(self.desk.database, self.tournament_id)
        board = Board()
        fold_events(board, *history)
        summed = with_sums(board, history)
        ranking = summed.rankings[self.ranking_id]
        return list(finished(classified(counted_of(summed, self.ranking_id), ranking.criteria, ranking.participants)))

    async def check(self) -> None:
        """The live table is that of the log, and that of the moment."""
        now, head = await self.table(), await head_of(self.desk.database, self.tournament_id)
        assert lines(now) == lines(await self.table(at_sequence=head.sequence))
        assert lines(now) == [(line.competitor_id, line.position, list(line.values)) for line in await self.replayed()]


def lines(table: Classification) -> list[tuple[CompetitorId, int, list[int | None]]]:
    return [(line.competitor_id, line.position, line.values) for line in table.standings]


def positions(table: Classification) -> dict[CompetitorId, int]:
    return {line.competitor_id: line.position for line in table.standings}


@pytest.fixture
async def evening(desk: Desk) -> Evening:
    """Before the first round."""
    arena = await open_arena(desk.database)
    ids = await desk.new_ids(len(SWISS["players"]) + 200)
    players = [CompetitorId(one) for one in ids[: len(SWISS["players"])]]
    ranking_id, unity_id, *numbers = ids[len(players) :]
    games = [
        msgspec.structs.replace(
            command,
            competition_id=CompetitionId(numbers[number]),
            participants=tuple([players[one - 1] for one in command.participants]),
        )
        for number, command in enumerate(Played(SWISS).competitions())
    ]
    its = Evening(desk, arena.tournament_id, RankingId(ranking_id), UnityId(unity_id), games)
    for number, competitor_id in enumerate(players, start=1):
        await its.do(commands.RegisterCompetitor(competitor_id=competitor_id, name=f"Player {number}"))
    created = commands.CreateRanking(
        ranking_id=its.ranking_id,
        main_unity_id=its.unity_id,
        name="Open",
        main_unity_name="points",
        participants=tuple(players),
        main_unity_decimals=1,
    )
    await its.do(created)
    scoring = scoring_of(5 * SWISS["win"], 5 * SWISS["draw"])
    award = msgspec.structs.replace(scoring.awards[0], unity_id=its.unity_id)
    scorings = (msgspec.structs.replace(scoring, awards=(award,)),)
    await its.do(commands.DeclareScoring(ranking_id=its.ranking_id, scorings=scorings))
    criteria = [Criterion(unity_id=its.unity_id)]
    criteria += [msgspec.structs.replace(named(name), unity_id=its.unity_id) for name in NAMES]
    await its.do(commands.DeclareClassification(ranking_id=its.ranking_id, criteria=tuple(criteria)))
    return its


async def test_the_table_is_current_after_every_round(evening: Evening) -> None:
    heads: dict[datetime, tuple[Sequence, Classification]] = {}
    for begins in evening.rounds:
        for game in evening.games:
            if game.started_at == begins:
                await evening.do(game)
        await evening.check()
        heads[begins] = (await head_of(evening.desk.database, evening.tournament_id)).sequence, await evening.table()
    for begins, (sequence, then) in heads.items():
        assert lines(await evening.table(at_sequence=sequence)) == lines(then)
        assert lines(await evening.table(on=begins + timedelta(hours=1))) == lines(then)


async def test_corrected_voided_and_struck_games_change_the_tie_breaks_as_foreseen(evening: Evening) -> None:
    await evening.play()
    at_first = await evening.table()
    game = next(game for game in evening.games if len(game.participants) == 2 and game.result == "1:0")
    competition_id, participants = game.competition_id, game.participants
    for command in (
        commands.ChangeCompetition(competition_id=competition_id, result="-:+"),
        commands.ChangeCompetition(competition_id=competition_id, result="1:0"),
        commands.VoidCompetition(competition_id=competition_id),
        commands.UnvoidCompetition(competition_id=competition_id),
        commands.StrikeCompetitors(competition_id=competition_id, competitors=participants[:1]),
        commands.UnstrikeCompetitors(competition_id=competition_id, competitors=participants[:1]),
    ):
        before = await evening.table()
        foreseen: dict[CompetitorId, int | None] = {}
        if not isinstance(command, commands.ChangeCompetition):
            async with evening.view() as view:
                decided = await evening.desk.preview(view.live, command)
                (ranking,) = (await ask(view, ForeseenQuestion(decided))).rankings or []
                foreseen = {move.competitor_id: move.position_after for move in ranking.classification or []}
        await evening.do(command)
        await evening.check()
        after = await evening.table()
        assert lines(after) != lines(before)
        if foreseen:
            assert foreseen == positions(after)
    assert lines(await evening.table()) == lines(at_first)


async def test_a_tie_break_is_explained_by_what_it_is_made_of(evening: Evening) -> None:
    await evening.play()
    table = await evening.table()
    for line in table.standings:
        async with evening.view() as view:
            question = ExplainQuestion(
                ranking_id=evening.ranking_id, competitor_id=line.competitor_id, unity_id=evening.unity_id
            )
            found: Explanation = await ask(view, question)
        assert found.classification is not None
        for value in found.classification.tiebreaks or ():
            name = NAMES[value.criterion - 1]
            total = sum(part.amount / part.games for part in value.parts if part.left_out is None)
            shown = line.values[value.criterion]
            assert shown in (None, value.value) or name == "DE"
            if name != "DE":
                assert value.value == pytest.approx(total / value.divisor, abs=0.5 if name == "AOB" else 0)


async def test_a_change_while_lines_are_computed_does_not_show_in_them(evening: Evening) -> None:
    """Until the lines are computed, the competitions are those of the request."""
    await evening.play()
    at_first = await evening.replayed()
    async with evening.view() as view, view.live.classifications.lines(evening.ranking_id, view.know_sums) as now:
        for game in evening.games[:4]:
            result = "-:-" if len(game.participants) == 2 else "zero bye"
            await evening.do(commands.ChangeCompetition(competition_id=game.competition_id, result=result))
        found = finished(now.run(0, 100))
    assert [one.values[1:] for one in found] != [one.values[1:] for one in await evening.replayed()]
    assert found == at_first
    await evening.check()


async def test_a_game_that_turns_out_to_be_a_forfeit_changes_tie_breaks_and_no_points(evening: Evening) -> None:
    await evening.play()
    before, head = await evening.table(), await head_of(evening.desk.database, evening.tournament_id)
    game = next(game for game in evening.games if game.result == "1:0")
    await evening.do(commands.ChangeCompetition(competition_id=game.competition_id, result="+:-"))
    assert (await head_of(evening.desk.database, evening.tournament_id)).sequence == head.sequence + 1
    assert lines(await evening.table()) != lines(before)
    await evening.check()


async def test_of_a_corrected_result_only_the_competition_is_read_again(evening: Evening, calls: Calls) -> None:
    """No events are read from the log either: what decides is on the board."""
    await evening.play()
    read, from_log = calls(games, "read"), calls(folds, "competition_sums")
    await evening.table()
    assert (len(read), len(from_log)) == (len(evening.games), 0)
    game = next(game for game in evening.games if game.result == "1:0")
    await evening.do(commands.ChangeCompetition(competition_id=game.competition_id, result="0:1"))
    await evening.table()
    assert [one.result for _, one in read[len(evening.games) :]] == ["0:1"]
    assert from_log == []
