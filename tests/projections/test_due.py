"""Which events what was read for another date, or for a reopening, cannot follow."""

from datetime import UTC, datetime

import pytest

from engine.domain.events import CompetitionChanged, CompetitionVoided, Event, RankingClosed, RankingReopened
from engine.domain.terms import CompetitionId, RankingId
from projections.live.due import update_of_redated, update_of_reopened
from projections.live.kept import unfollowed
from tests.api.crowds import points, recorded

RANKING, OTHER = RankingId(1), RankingId(2)
DUEL = CompetitionId(1)
REDATED = CompetitionChanged(competition_id=DUEL, started_at=datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "event",
    [RankingClosed(ranking_id=RANKING), RankingReopened(ranking_id=RANKING), CompetitionVoided(competition_id=DUEL)],
)
def test_what_another_date_changes_is_read_again_when_other_lines_may_count(
    event: Event,
) -> None:
    assert update_of_redated(DUEL, *recorded([event])) is unfollowed


def test_what_another_date_changes_follows_points() -> None:
    assert update_of_redated(DUEL, *recorded([CompetitionVoided(competition_id=CompetitionId(2))])) is None
    assert update_of_redated(DUEL, *recorded([points()])) not in (None, unfollowed)


def test_what_a_reopening_expires_is_read_again_after_it_and_after_another_date() -> None:
    def update(event: Event) -> object:
        return update_of_reopened(RANKING, *recorded([event]))

    assert update(RankingReopened(ranking_id=RANKING)) is unfollowed
    assert update(REDATED) is unfollowed
    assert update(RankingReopened(ranking_id=OTHER)) is None
    assert update(points()) is None
