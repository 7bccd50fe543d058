"""Question 24: a leaderboard of a million by best results: what do changes and windows cost?

Like question 20, next to a sorted set of Redis and of Valkey with `ZADD GT` and AOF always. About half of the results
improve nothing; the product judges and records these too.
"""

from typing import Final

from benchmarks import leaderboard, traffic
from benchmarks.questions.leaderboards import ALWAYS, AROUND, TOP, VALKEY_ALWAYS, WRITES, Rules, raced
from benchmarks.setting import REDIS, VALKEY, Setting
from benchmarks.table import Findings
from engine.domain.terms import Counts

NUMBERS: Final = (24,)
NEEDS: Final = ("wrk",)
BESTS: Final = Rules(
    name="best_results",
    number=24,
    counts=Counts.BEST,
    kinds={"24a": WRITES, "24b": AROUND, "24c": TOP},
    redis="leaderboard_redis_best",
    stores={ALWAYS: REDIS, VALKEY_ALWAYS: VALKEY},
    has_table=False,
    writes=traffic.leaderboard_results,
    counted=leaderboard.best_counted,
)


async def measure(setting: Setting) -> Findings:
    return await raced(setting, BESTS)
