"""Question 7: how many deltas does one API process take in a second when each request brings 1,000?

One tournament of 1,000 competitors; each request adds to all of them, some hundred kilobytes of form, over 64
connections. The limit is a loop that only runs the product's own form decoder and msgspec decoder over the same
bodies, without HTTP, checks, log or answer (`trials/decode.py`).
"""

from functools import partial
from typing import Final

from benchmarks import contest, hot_spots
from benchmarks.contest import Observed
from benchmarks.rounds import interleaved
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.traffic import LARGE_REQUESTS, adds
from benchmarks.world import Field, open_tournaments, seeding

NUMBERS: Final = (7,)
NEEDS: Final = ("wrk",)
FIELD: Final = Field(competitors=1_000, competitions=50)
SECONDS: Final = 8
QUICK_SECONDS: Final = 3
"""Longer than other runs: a second would be over before the first batch of such requests is answered."""
SEED: Final = 7
QUESTION_7: Final = "question 7"


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("large")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "large", 1, FIELD)
    async with setting.service(dsn, "large") as service:
        bodies = adds(tournaments * LARGE_REQUESTS, service.token, seed=SEED, spread=True)
        requests = setting.requests("large", bodies)

        seconds = setting.scaled(SECONDS, quick=QUICK_SECONDS)

        async def decoders() -> float:
            settings = {"requests": str(requests), "seconds": setting.seconds}
            return float((await setting.trial("decode", settings))["bodies_per_second"])

        observed: list[Observed] = []

        async def ours() -> float:
            observed.append(await contest.ours_observed(setting, service, tournaments, requests, seconds=seconds))
            return observed[-1].load.rate

        rates = await interleaved(setting.rounds, {"the decoders alone": decoders, "ours": ours})
        load = partial(contest.ours, setting, service, tournaments, requests)
        profiles = await hot_spots.recorded(QUESTION_7, service.api, load, setting)
    findings = Findings(profiles=profiles)
    for name, samples in rates.items():
        findings.figure(f"1,000 deltas in one request, {name}", "a second", samples)
    contest.add_to(findings, QUESTION_7, observed)
    findings.ratio("7", rates["ours"], rates["the decoders alone"])
    return findings
