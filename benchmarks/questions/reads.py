"""Questions 5 and 16: how many lists does one API process answer in a second, alone and with adds among them?

Sixteen tournaments of 20 competitors and 1,000 competitions of two. Clients read `rankings.json` of each, and every
page of 100 of `competitions.json`, over 64 connections. In the mixed load, nine requests in ten are such reads, half of
each kind, and one is an `add.json` of one delta. Every read of the product passes its read barrier. The ceiling answers
each path with the same number of bytes.
"""

from functools import partial
from pathlib import Path
from typing import Final

from benchmarks import asking, contest, traffic
from benchmarks.peers.serving import Settings
from benchmarks.rounds import interleaved
from benchmarks.service import Service
from benchmarks.setting import Setting
from benchmarks.table import Findings
from benchmarks.world import Field, Tournament, open_tournaments, seeding

NUMBERS: Final = (5, 16)
NEEDS: Final = ("wrk",)
TOURNAMENTS: Final = 16
FIELD: Final = Field(competitors=20, competitions=1_000)
READS_SHARE: Final = 0.9
SEED: Final = 5

RANKINGS: Final = "GET rankings.json"
COMPETITIONS: Final = "GET competitions.json"
MIXED: Final = "90 % reads, 10 % adds"
_ROWS: Final = {"5a": RANKINGS, "5b": COMPETITIONS, "16": MIXED}


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("reads")
    async with seeding(dsn) as connection:
        tournaments = await open_tournaments(connection, "read", TOURNAMENTS, FIELD)
    async with setting.service(dsn, "reads") as service:
        loads = _loads(setting, service, tournaments)
        async with setting.peer("ceiling", await _sizes(service, tournaments)) as ceiling:
            contestants = {}
            for name, requests in loads.items():
                contestants[f"{name}, ceiling"] = partial(setting.load, ceiling.url, requests)
                contestants[f"{name}, ours"] = partial(contest.ours, setting, service, tournaments, requests)
            runs = await interleaved(setting.rounds, contestants)
        mixed = partial(contest.ours, setting, service, tournaments, loads[MIXED])
        findings = await contest.profiled(setting, service, "question 16", mixed)
    for name, run in runs.items():
        findings.figure(name, "a second", [load.rate for load in run])
    for key, name in _ROWS.items():
        contest.against(findings, key, runs[f"{name}, ours"], runs[f"{name}, ceiling"])
    return findings


def _loads(setting: Setting, service: Service, tournaments: list[Tournament]) -> dict[str, Path]:
    rankings = traffic.rankings(tournaments, service.token)
    competitions = traffic.competitions(tournaments, service.token)
    adds = traffic.adds(tournaments * (traffic.REQUESTS // TOURNAMENTS), service.token, seed=SEED)
    evenly = rankings * (len(competitions) // len(rankings)) + competitions
    mixed = traffic.mixed(evenly, adds, reads_share=READS_SHARE, count=traffic.REQUESTS, seed=SEED)
    return {
        RANKINGS: setting.requests("rankings", rankings),
        COMPETITIONS: setting.requests("competitions", competitions),
        MIXED: setting.requests("mixed", mixed),
    }


async def _sizes(service: Service, tournaments: list[Tournament]) -> Settings:
    sizes = (
        await asking.read_sizes(service, tournaments, "rankings")
        | await asking.read_sizes(service, tournaments, "competitions")
        | await asking.add_sizes(service, tournaments)
    )
    return Settings(token=service.token, sizes=sizes)
