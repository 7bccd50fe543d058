"""Tie-breaks of a ranking, from the results of its competitions: the same places as those of gacrux."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from engine.domain import commands, events
from engine.domain.awards import Award, Scoring
from engine.domain.events import Criterion, Event
from engine.domain.judging import decide
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board
from projections.board.classification import Classified, classified
from projections.board.classified_lines import ClassifiedLines
from projections.board.tiebreaks import Broken, shown_value
from tests.histories import SummedBoard, counted_of, fold_events, with_sums
from tests.projections.test_tiebreaks import RECORDED, named

RANKING: Final = RankingId(1_001)
POINTS: Final = UnityId(1_002)
RATING: Final = UnityId(1_003)
_RESULTS: Final = {"1": "1:0", "0": "0:1", "=": "½:½", "U": "bye", "F": "full bye", "H": "half bye"}
_STARTS: Final = {"2024-08": datetime(2025, 5, 5, 17, tzinfo=UTC), "2026-03": datetime(2026, 5, 5, 17, tzinfo=UTC)}


def scoring_of(win: int, draw: int) -> Scoring:
    table = {"win": win, "draw": draw, "loss": 0, "bye": win, "bye full": win, "bye half": draw, "bye zero": 0}
    return Scoring(awards=(Award(unity_id=POINTS, value="outcome", table=table),))


class Played:
    """A tournament of an oracle as it is recorded here: its events so far, and the board."""

    def __init__(self, one: dict[str, Any]) -> None:
        self.one = one
        self.board, self.history = Board(), list[Event]()
        ids = [CompetitorId(number) for number in range(1, len(one["players"]) + 1)]
        self.take(events.CompetitorRegistered(competitor_id=one, name=f"Player {one}") for one in ids)
        created = events.RankingCreated(
            ranking_id=RANKING,
            name="Open",
            participants=tuple(ids),
            main_unity_id=POINTS,
            main_unity_name="points",
            main_unity_decimals=1,
        )
        rated = [events.Delta(number, RATING, rating) for number, rating in zip(ids, one["ratings"], strict=True)]
        self.take(
            [
                created,
                events.UnityAdded(ranking_id=RANKING, unity_id=RATING, name="rating"),
                events.PointsAdded(ranking_id=RANKING, deltas=tuple(rated)),
                events.ScoringDeclared(ranking_id=RANKING, scorings=(scoring_of(5 * one["win"], 5 * one["draw"]),)),
            ]
        )

    def take(self, made: Iterable[Event]) -> None:
        for event in made:
            self.history.append(event)
            fold_events(self.board, event, first=len(self.history))

    def do(self, command: commands.Command) -> None:
        self.take(decide(self.board, command))

    def play(self) -> None:
        """All rounds, each on a day of its own."""
        for command in self.competitions():
            self.do(command)

    def competitions(self) -> Iterator[commands.AddCompetition]:
        cells = [[(int(cell[:-2]), cell[-2], cell[-1]) for cell in its.split()] for its in self.one["players"]]
        number = 2_000
        for at in range(len(cells[0])):
            for player, its in enumerate(cells, start=1):
                opponent, colour, result = its[at]
                if colour == "b" or result == "Z" or (not opponent and self.one["pairing"] != "swiss"):
                    continue
                other = cells[opponent - 1][at][2] if opponent else ""
                number += 1
                yield commands.AddCompetition(
                    competition_id=CompetitionId(number),
                    group_id=1,
                    started_at=_STARTS[self.one["edition"]] + timedelta(days=at),
                    participants=(CompetitorId(player), CompetitorId(opponent))
                    if opponent
                    else (CompetitorId(player),),
                    result=f"{result}:{other}" if result in "+-" else _RESULTS[result],
                )

    def declare(self, names: Iterable[str]) -> None:
        criteria = [Criterion(unity_id=POINTS)]
        for name in names:
            unity_id = RATING if name.startswith("ARO") else POINTS
            criteria.append(msgspec.structs.replace(named(name), unity_id=unity_id, pairing=self.one["pairing"]))
        self.do(commands.DeclareClassification(ranking_id=RANKING, criteria=tuple(criteria)))

    @property
    def summed(self) -> SummedBoard:
        return with_sums(self.board, self.history)

    def classified(self) -> list[Classified]:
        board = self.summed
        ranking = board.rankings[RANKING]
        return list(finished(classified(counted_of(board, RANKING), ranking.criteria, ranking.participants)))

    def places(self) -> list[int]:
        return [line.position for line in sorted(self.classified(), key=lambda line: line.competitor_id)]

    def broken(self, players: Iterable[int]) -> dict[int, dict[int, Broken]]:
        """By player, then by criterion."""
        board = self.summed
        lines = finished(ClassifiedLines.in_steps(board, board.rankings[RANKING], board.sums[RANKING]))
        return {player: finished(lines.broken(CompetitorId(player))) for player in players}


def test_a_ranking_has_the_places_that_gacrux_gives() -> None:
    for one in RECORDED:
        played = Played(one)
        played.play()
        for chain, places in one["places"].items():
            names = chain.split()
            if len(names) < 15 and (one["pairing"] == "swiss" or not {"WON", "BPG"} & {*names}):
                played.declare(names)
                assert played.places() == places, (one["number"], chain)
                assert {criterion.edition for criterion in played.board.rankings[RANKING].criteria[1:]} == {
                    one["edition"]
                }


def test_values_are_shown_in_points() -> None:
    one = next(one for one in RECORDED if one["pairing"] == "swiss" and one["edition"] == "2026-03")
    played = Played(one)
    played.play()
    for name in ("BH/C1", "SB", "STD", "WIN", "AOB", "PS/C1", "KS", "ARO"):
        played.declare([name])
        criterion = played.board.rankings[RANKING].criteria[1]
        decimals = {"SB": 2, "AOB": 3, "WIN": 0, "ARO": 0}.get(criterion.tiebreak or "", 1)
        found = played.broken(range(1, len(one["players"]) + 1))
        for player, theirs in enumerate(one["values"][name], start=1):
            (broken,) = found[player].values()
            shown = shown_value(criterion, broken) / 10**decimals
            assert shown == pytest.approx(float(theirs), abs=0.0051 if name == "AOB" else 0)


def test_a_competitor_that_left_the_ranking_stays_an_opponent_with_a_rating() -> None:
    played = Played(next(one for one in RECORDED if one["pairing"] == "swiss"))
    played.play()
    played.declare(["ARO", "BH"])
    others = range(2, len(played.one["players"]) + 1)
    before = played.broken(others)
    played.do(commands.ChangeParticipants(ranking_id=RANKING, removed=(CompetitorId(1),)))
    assert played.broken(others) == before
    assert any(broken[1].value for broken in before.values())
