"""A series has as many points as fit in a race, however long the log is, and each is as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.domain.events import Points, Recorded
from projections.board.board import Board, Revisions, fold
from projections.past.series import Series
from tests.bounds import set_bounds
from tests.histories import board_of, logs, unhurried
from tests.positions import standings


@unhurried
@given(logs(), st.integers(2, 6))
def test_points_are_those_of_the_log_and_the_last_one_is_among_them(log: list[Recorded], most: int) -> None:
    end = board_of(log)
    for ranking_id, ranking in end.rankings.items():
        for unity_id in ranking.unities:
            with pytest.MonkeyPatch.context() as small:
                set_bounds(small, SERIES_POINTS_MAX=most)
                some = tuple(ranking.participants)[1::2]
                everybody = dict.fromkeys([*ranking.participants, *end.competitors])
                board, followed, expected = Board(), Series(ranking_id, unity_id, tuple(everybody)), {}
                of_some = Series(ranking_id, unity_id, some)
                for recorded in log:
                    fold(board, Revisions(), recorded)
                    followed.follow(board, recorded)
                    of_some.follow(board, recorded)
                    event = recorded.event
                    if isinstance(event, Points) and unity_id in {delta.unity_id for delta in event.deltas}:
                        then = board.rankings[ranking_id]
                        unity = then.unities[unity_id]
                        lines = standings(then.participants, unity.totals, unity.sort)
                        caused = board.competitions.get(event.competition_id) if event.competition_id else None
                        at = recorded.recorded_at if caused is None else caused.started_at
                        expected[recorded.sequence] = at, {line.competitor_id: line for line in lines}
                        assert followed.points[-1].sequence == recorded.sequence
                        assert len(followed.points) <= most + 1
            assert [(point.sequence, point.at, point.lines) for point in of_some.points] == [
                (point.sequence, point.at, {one: line for one, line in point.lines.items() if one in some})
                for point in followed.points
            ]
            *earlier, last = followed.points or [None]
            assert [m for m in earlier if m and (m.at, m.lines) != expected[m.sequence]] == []
            unity = ranking.unities[unity_id]
            now = standings(ranking.participants, unity.totals, unity.sort)
            assert last is None or (last.sequence, list(last.lines.values())) == (max(expected), now)
            sequences = [point.sequence for point in followed.points]
            assert sequences == sorted(set(sequences))
            assert len(expected) > most or sequences == list(expected)
