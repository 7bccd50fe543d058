"""A leaderboard holds what its clients were told: imported, enrolled, scored, killed in between, compared, verified.

`make million` does the same with a million.
"""

import pytest

from benchmarks.million import Share, shown


@pytest.mark.long
async def test_each_score_counts_once_though_the_process_is_killed() -> None:
    seen = await shown(Share(competitors=1_000, scores=1_000, clients=16, windows=20))
    assert seen.repeated > 0, "the kill met no request: nothing was shown"
    assert {"api, before the kill", "api, at the end", "tallybook verify"} <= seen.memory_mib.keys()
