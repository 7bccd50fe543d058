"""What counts: points that are undone and redone, of competitions that are voided and unvoided, for competitors who are
struck and unstruck, in any order."""

from collections import Counter
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, field

from engine.domain import commands, events
from engine.domain.commands import Command, RankingDeltas
from engine.domain.errors import Refusal
from engine.domain.events import Criterion, Delta, Event
from engine.domain.judging import decide
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.board.board import Board
from tests.histories import caused_of, fold_events, reverse, unhurried

RANKINGS: Final = {RankingId(10): UnityId(11), RankingId(20): UnityId(21), RankingId(30): UnityId(31)}
COMPETITORS: Final = tuple(map(CompetitorId, (1, 2, 3)))
COMPETITIONS: Final = tuple(map(CompetitionId, (4, 5)))
BEGINNING: Final[list[Event]] = [
    *[events.CompetitorRegistered(competitor_id=c, name=f"C{c}") for c in COMPETITORS],
    *[events.CompetitionAdded(competition_id=c, group_id=1, participants=COMPETITORS) for c in COMPETITIONS],
    *[
        events.RankingCreated(
            ranking_id=r, name=f"R{r}", participants=COMPETITORS, main_unity_id=u, main_unity_name="points"
        )
        for r, u in RANKINGS.items()
    ],
    *[
        events.ClassificationDeclared(ranking_id=r, criteria=(Criterion(u, best=1), Criterion(u)))
        for r, u in RANKINGS.items()
    ],
]

# ── What is asked ───────────────────────────────────────────────────────────────────────────────────────


class Add(Struct, frozen=True):
    """`of`: what whom gets in which ranking, for which competition."""

    of: dict[RankingId, tuple[CompetitorId, int]]
    competition_id: CompetitionId | None


class Void(Struct, frozen=True):
    competition_id: CompetitionId
    back: bool


class Strike(Struct, frozen=True):
    competition_id: CompetitionId
    competitor_id: CompetitorId
    back: bool


class Reverse(Struct, frozen=True):
    """`which` of the events of points so far, modulo their number."""

    which: int


adds = st.builds(
    Add,
    st.dictionaries(
        st.sampled_from(list(RANKINGS)), st.tuples(st.sampled_from(COMPETITORS), st.integers(-3, 9)), min_size=1
    ),
    st.sampled_from([None, *COMPETITIONS]),
)
asks = st.lists(
    adds
    | st.builds(Void, st.sampled_from(COMPETITIONS), st.booleans())
    | st.builds(Strike, st.sampled_from(COMPETITIONS), st.sampled_from(COMPETITORS), st.booleans())
    | st.builds(Reverse, st.integers(0, 30)),
    max_size=25,
)
Ask = Add | Void | Strike | Reverse


class Naive(Struct):
    """What was added, and what became of it. A line counts unless its request is undone, its competition is voided, or
    its competitor is struck there."""

    added: list[Add] = field(default_factory=list)
    undone: dict[int, int] = field(default_factory=dict)
    """The number of each undone request, with the number of the command that undid it."""
    voided: set[CompetitionId] = field(default_factory=set)
    struck: set[tuple[CompetitionId | None, CompetitorId]] = field(default_factory=set)
    means: list[tuple[str, int, int]] = field(default_factory=list)
    """What each event of points is: its kind, the number of the request that it is about, and that of its command."""

    def lines(self, competition_id: CompetitionId) -> list[tuple[int, CompetitorId]]:
        """Of the competition: the request and the competitor of each line that is not undone."""
        return [
            (n, competitor_id)
            for n, one in enumerate(self.added)
            if one.competition_id == competition_id and n not in self.undone
            for competitor_id, _ in one.of.values()
        ]

    def take(self, ask: Ask, number: int) -> int:
        """How many events of points the command `number` leads to; -1: it is refused."""
        match ask:
            case Add():
                named = {(ask.competition_id, competitor_id) for competitor_id, _ in ask.of.values()}
                if ask.competition_id in self.voided or named & self.struck:
                    return -1
                self.added.append(ask)
                self.means += [("added", len(self.added) - 1, number)] * len(ask.of)
                return len(ask.of)
            case Void():
                if (ask.competition_id in self.voided) != ask.back:
                    return -1
                (self.voided.discard if ask.back else self.voided.add)(ask.competition_id)
                its = [n for n, c in self.lines(ask.competition_id) if (ask.competition_id, c) not in self.struck]
                self.means += [("voided", n, number) for n in its]
                return len(its)
            case Strike():
                struck = ask.competition_id, ask.competitor_id
                if (struck in self.struck) != ask.back:
                    return -1
                (self.struck.discard if ask.back else self.struck.add)(struck)
                if ask.competition_id in self.voided:
                    return 0
                its = [n for n, competitor_id in self.lines(ask.competition_id) if competitor_id == ask.competitor_id]
                self.means += [("struck", n, number) for n in its]
                return len(its)
            case Reverse():
                if not self.means:
                    return -1
                kind, request, by = self.means[ask.which % len(self.means)]
                if kind == "added" and request not in self.undone:
                    self.undone[request] = number
                elif kind == "undone" and self.undone.get(request) == by:
                    del self.undone[request]
                else:
                    return -1
                kind = "redone" if kind == "undone" else "undone"
                self.means += [(kind, request, number)] * len(self.added[request].of)
                return len(self.added[request].of)

    def totals(self) -> dict[RankingId, Counter[CompetitorId]]:
        found = {ranking_id: Counter[CompetitorId]() for ranking_id in RANKINGS}
        for n, one in enumerate(self.added):
            if n not in self.undone and one.competition_id not in self.voided:
                for ranking_id, (competitor_id, amount) in one.of.items():
                    if (one.competition_id, competitor_id) in self.struck:
                        continue
                    found[ranking_id][competitor_id] += amount
        return found


def command_of(ask: Ask, history: list[Event]) -> Command:
    match ask:
        case Add():
            lines = [RankingDeltas(r, (Delta(c, RANKINGS[r], amount),)) for r, (c, amount) in ask.of.items()]
            return commands.AddPointsToRankings(rankings=tuple(lines), competition_id=ask.competition_id)
        case Void():
            kind: type[Any] = commands.UnvoidCompetition if ask.back else commands.VoidCompetition
            caused = caused_of(history, ask.competition_id)
            return kind(competition_id=ask.competition_id, caused=caused)  # type: ignore[no-any-return]
        case Strike():
            kind = commands.UnstrikeCompetitors if ask.back else commands.StrikeCompetitors
            caused = caused_of(history, ask.competition_id)
            return kind(competition_id=ask.competition_id, competitors=(ask.competitor_id,), caused=caused)  # type: ignore[no-any-return]
        case Reverse():
            points = [n for n, event in enumerate(history, start=2) if isinstance(event, events.Points)]
            return reverse(history, points[ask.which % len(points)] if points else 1)


@settings(unhurried, max_examples=120)
@given(asks)
def test_the_order_of_adding_voiding_striking_and_undoing_never_matters(asked: list[Ask]) -> None:
    """They are refused where they must be. `tests/what_counts` asks the tables, and verifies the log."""
    board, naive, history = Board(), Naive(), list(BEGINNING)
    fold_events(board, *BEGINNING, first=2)
    for number, ask in enumerate(asked):
        command = command_of(ask, history)
        expected = naive.take(ask, number)
        try:
            decided = decide(board, command)
        except Refusal:
            assert expected == -1
            continue
        assert len([event for event in decided if isinstance(event, events.Points)]) == expected
        fold_events(board, *decided, first=len(history) + 2)
        history += decided
        for ranking_id, totals in naive.totals().items():
            unity = board.rankings[ranking_id].unities[RANKINGS[ranking_id]]
            assert {c: unity.totals.get(c, 0) for c in COMPETITORS} == {c: totals[c] for c in COMPETITORS}
