"""What is taken back and restored, or restored and taken back again, leaves every answer as it was."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.domain import commands, events
from engine.domain.commands import Command
from engine.domain.errors import Refusal
from engine.domain.events import Criterion, Event, Recorded
from engine.domain.steps import finished
from engine.domain.terms import ActorId, CompetitionId, CompetitorId, Sequence
from projections.board.board import Board, Ranking, what_counts
from projections.board.classification import Classified, Counted, classified, in_force
from projections.board.competition_sums import CompetitionSums
from projections.past.leaders import TrueLeaders
from projections.past.timeline import Timeline
from tests.histories import (
    board_of,
    caused_of,
    dated_histories,
    decided,
    logs,
    result_histories,
    reverse,
    sums_of,
    unhurried,
)
from tests.positions import standings
from tests.projections.classified import COMPETITIONS, COMPETITORS, history_of, live_at, live_of

Turn = Callable[[Board, list[Event]], Command]
"""Makes the command that takes something back, or, where it is taken back, the one that restores it."""


def void(one: CompetitionId, board: Board, history: list[Event]) -> Command:
    kind = commands.UnvoidCompetition if one in board.voided else commands.VoidCompetition
    return kind(competition_id=one, caused=caused_of(history, one))


def strike(one: CompetitionId, who: tuple[CompetitorId, ...], board: Board, history: list[Event]) -> Command:
    struck = board.struck.get(one, frozenset()).issuperset(who)
    kind = commands.UnstrikeCompetitors if struck else commands.StrikeCompetitors
    return kind(competition_id=one, competitors=who, caused=caused_of(history, one))


def undo(sequence: Sequence, board: Board, history: list[Event]) -> Command:
    undone = {root: by for ranking in board.rankings.values() for root, by in ranking.undone.items()}
    return reverse(history, undone.get(sequence, sequence))


def turns(board: Board, history: list[Event]) -> Iterator[Turn]:
    for one, competition in board.competitions.items():
        yield partial(void, one)
        yield from [partial(strike, one, (who,)) for who in board.competitors]
        if len(competition.struck) > 1:
            yield partial(strike, one, competition.struck[:1])
            yield partial(strike, one, competition.struck)
    for sequence, event in enumerate(history, start=2):
        if isinstance(event, events.PointsAdded):
            yield partial(undo, Sequence(sequence))


def lines_of(
    board: Board, ranking: Ranking, criteria: tuple[Criterion, ...], sums: CompetitionSums | None
) -> list[Classified] | None:
    """None: there are no sums."""
    if sums is None:
        return None
    return [*finished(classified(Counted(board, ranking, sums), criteria, ranking.participants))]


def answers(log: list[Recorded]) -> list[object]:
    """Everything that does not say when something was changed: by either clock, by each chain of criteria."""
    board = board_of(log)
    found: list[object] = [(one, c.voided_at is None, c.struck) for one, c in board.competitions.items()]
    for ranking_id, ranking in board.rankings.items():
        unities, timeline = ranking.unities, Timeline(board, ranking_id)
        counts = what_counts(board, ranking_id, None)
        sums = sums_of(log, msgspec.structs.replace(counts, first=frozenset(unities)))
        chains = [in_force(ranking)]
        for unity_id, unity in unities.items():
            found.append(standings(ranking.participants, unity.totals, unity.sort))
            chains.append((Criterion(unity_id), Criterion(unity_id, first=True)))
            chains.append((Criterion(unity_id, best=2), Criterion(unity_id, among="tied")))
            leaders = TrueLeaders(board_of(log), ranking_id, unity_id, None)
            for recorded in log:
                leaders.follow(recorded)
            finished(leaders.finish())
            found.append((list(leaders.reigns), leaders.reigns.competitions))
        found += [lines_of(board, ranking, chain, sums) for chain in chains]
        for recorded in log:
            timeline.follow(recorded)
        found += [sums, finished(timeline.steps())]
    return found


@unhurried
@given(logs() | logs(of=result_histories()) | logs(of=dated_histories()), st.data())
def test_taking_back_and_restoring_leaves_every_answer_as_it_was(log: list[Recorded], data: st.DataObject) -> None:
    """Whether it counted before or not. A live that has read the sums before has them afterwards, or reads them
    again."""
    history = [recorded.event for recorded in log[1:]]
    possible = [*turns(board_of(log), history)]
    assume(possible)
    turn, live, before = data.draw(st.sampled_from(possible)), live_at(log), answers(log)
    for ranking_id in live.board.rankings:
        asyncio.run(live.know_sums(ranking_id))
    for number in range(2):
        try:
            made = decided(live.board, turn(live.board, history), history)
        except Refusal:
            assume(number == 1)  # what could be taken back can be restored
            raise
        for event in made:
            at = log[-1].recorded_at + timedelta(seconds=1)
            log.append(Recorded(Sequence(len(log) + 1), at, ActorId(0), None, event))
            live.go_on(log[-1])
            history.append(event)
    assert answers(log) == before
    for ranking_id, ranking in live.board.rankings.items():
        read = sums_of(log, what_counts(live.board, ranking_id, None))
        lines = [lines_of(live.board, ranking, in_force(ranking), sums) for sums in (live.sums.get(ranking_id), read)]
        assert lines[0] in (None, lines[1])


def test_competitors_who_are_struck_again_stand_where_they_stood() -> None:
    match, (one, other, *_) = COMPETITIONS[0], COMPETITORS
    history = history_of((), [()] * len(COMPETITIONS), [], set())
    history.append(events.CompetitorsStruck(competition_id=match, competitors=(other, one)))
    before = live_of(history).board.competitions[match].struck
    history.append(events.CompetitorsUnstruck(competition_id=match, competitors=(other,)))
    history.append(events.CompetitorsStruck(competition_id=match, competitors=(other,)))
    assert live_of(history).board.competitions[match].struck == before
