"""Question 6: how many adds does one API process acknowledge in a second when they go to 1,000 tournaments?

Zipf-distributed: the tournament of rank n is drawn with a frequency in proportion to 1/n, so that the first gets some
13 in 100 and a commit holds blocks of many tournaments. Each tournament has 20 competitors; each request has one delta,
over 64 connections. Compared with the ceiling.
"""

import random
from functools import partial
from typing import Final

from benchmarks import asking, contest, hot_spots
from benchmarks.contest import Observed
from benchmarks.load import Load
from benchmarks.peers.serving import Settings
from benchmarks.rounds import Contestant, interleaved
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.traffic import REQUESTS, adds
from benchmarks.world import Field, Zipf, open_tournaments, seeding, settle

NUMBERS: Final = (6,)
NEEDS: Final = ("wrk",)
TOURNAMENTS: Final = 1_000
SEED: Final = 6
QUESTION_6: Final = "question 6"


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("zipf")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "zipf", TOURNAMENTS, Field())
    await settle(dsn)
    async with setting.service(dsn, "zipf") as service:
        drawn = Zipf(tournaments).draw(random.Random(SEED), REQUESTS)
        requests = setting.requests("zipf", adds(drawn, service.token, seed=SEED))
        sizes = Settings(token=service.token, sizes=await asking.add_sizes(service, tournaments))
        observed: list[Observed] = []

        async def ours() -> Load:
            observed.append(await contest.ours_observed(setting, service, tournaments, requests))
            return observed[-1].load

        async with setting.peer("ceiling", sizes) as ceiling:
            contestants: dict[str, Contestant[Load]] = {
                "ceiling": partial(setting.load, ceiling.url, requests),
                "ours": ours,
            }
            loads = await interleaved(setting.rounds, contestants)
        load = partial(contest.ours, setting, service, tournaments, requests)
        profiles = await hot_spots.recorded(QUESTION_6, service.api, load, setting)
    findings = Findings(profiles=profiles)
    for name, runs in loads.items():
        findings.figure(f"add.json, 1,000 tournaments, {name}", "a second", [load.rate for load in runs])
        findings.figure(f"add.json, 1,000 tournaments, {name}: p99", "ms", [load.p99_us / 1e3 for load in runs])
    contest.add_to(findings, QUESTION_6, observed)
    contest.against(findings, "6", loads["ours"], loads["ceiling"])
    return findings
