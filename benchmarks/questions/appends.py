"""Question 10: how many events does `engine.log` append in a second, without HTTP, folds or worker?

10a, 10b, 10d: one-delta events of one tournament, 256 in a commit (`trials/append.py`), against others with the same
events in commits of the same size: `COPY` of a row for each (`peers/raw_copy.py`), the event store of the library
`eventsourcing` (`peers/eventsourcing_library.py`), and UmaDB (`peers/umadb_server.py`). For comparison, the library's
recorder alone, UmaDB without conditions, and pgbench calling the append function.

10c: 64 in a commit, drawn Zipf-distributed over 1,000 tournaments, against the rate of question 1, measured in the same
rounds.

All of them use one connection, commit after commit.
"""

from contextlib import AsyncExitStack
from functools import partial
from typing import Final

from benchmarks import contest
from benchmarks.cluster import find_pgbench
from benchmarks.peers import pgbench
from benchmarks.rounds import Contestant, interleaved
from benchmarks.setting import Setting, missing_command, missing_package
from benchmarks.table import Findings
from benchmarks.world import Field, Tournament, open_tournaments, seeding, settle

NUMBERS: Final = (10,)
NEEDS: Final = ()
SIZE: Final = 256
COMMITS: Final = 800
QUICK_COMMITS: Final = 200
EVENTSOURCING_SHARE: Final = 4
"""It is given fewer commits than the product, because it is slower and its rate does not depend on their number."""
ZIPF_TOURNAMENTS: Final = 1_000
ZIPF_SIZE: Final = 64
ZIPF_COMMITS: Final = 1_000
ZIPF_QUICK_COMMITS: Final = 150

OURS: Final = "engine.log, 256 a commit, one tournament"
COPY: Final = "COPY of the same rows, 256 a commit"
EVENTSOURCING: Final = "eventsourcing, the same events, 256 a commit"
UMADB: Final = "UmaDB, the same events, 256 a commit"
UNCONDITIONAL: Final = "UmaDB without conditions, 256 a commit"
RECORDER: Final = "eventsourcing, its recorder alone, 256 a commit"
PGBENCH: Final = "pgbench with the append function, 256 a commit"
ADDS: Final = "question 1, beside question 10"
ZIPF: Final = "engine.log, 64 a commit, 1,000 tournaments"


async def measure(setting: Setting) -> Findings:
    dsn = await setting.database("appends")
    async with seeding(dsn) as connection:
        rounds = await open_tournaments(connection, "round", setting.rounds, Field())
        many = await open_tournaments(connection, "many", ZIPF_TOURNAMENTS, Field())
        (for_pgbench,) = await open_tournaments(connection, "pgbench", 1, Field())
    await settle(dsn)
    race = _Race(setting, dsn, rounds)
    async with AsyncExitStack() as stack:
        contestants = race.contestants() | {ZIPF: partial(race.zipf, many)}
        if program := find_pgbench():
            contestants[PGBENCH] = partial(race.pgbench, program, for_pgbench)
        if missing_command("wrk") is None:
            contestants[ADDS] = await stack.enter_async_context(contest.question_1(setting, "appends"))
        rates = await interleaved(setting.rounds, contestants)
    findings = _findings(rates)
    for name, samples in race.busy_us.items():
        findings.figure(f"{name}: processor time of the process per event", "µs", samples)
    for name, samples in race.others.items():
        findings.figure(name, "a second", samples)
    return findings


class _Race:
    """The contestants and their databases. Every round appends to a new tournament; peers take the rows of that
    round."""

    def __init__(self, setting: Setting, dsn: str, tournaments: list[Tournament]) -> None:
        self.others: dict[str, list[float]] = {}
        self.busy_us: dict[str, list[float]] = {OURS: [], ZIPF: []}
        self._setting = setting
        self._dsn = dsn
        self._commits = setting.scaled(COMMITS, quick=QUICK_COMMITS)
        self._unused = list(tournaments)
        self._tournament = tournaments[0]

    def contestants(self) -> dict[str, Contestant[float]]:
        contestants: dict[str, Contestant[float]] = {OURS: self.ours, COPY: self.copy}
        if missing_package("eventsourcing") is None:
            contestants[EVENTSOURCING] = self.eventsourcing
        if missing_package("umadb") is None:
            contestants[UMADB] = self.umadb
        return contestants

    async def ours(self) -> float:
        self._tournament = self._unused.pop()
        return await self._append(OURS, [self._tournament], size=SIZE, commits=self._commits)

    async def zipf(self, tournaments: list[Tournament]) -> float:
        commits = self._setting.scaled(ZIPF_COMMITS, quick=ZIPF_QUICK_COMMITS)
        return await self._append(ZIPF, tournaments, size=ZIPF_SIZE, commits=commits)

    async def copy(self) -> float:
        settings = {"database": self._dsn, "tournament_id": self._tournament.tournament_id, "size": SIZE}
        return float((await self._setting.peer_trial("raw_copy", settings))["events_per_second"])

    async def eventsourcing(self) -> float:
        settings = {
            "database": self._dsn,
            "tournament_id": self._tournament.tournament_id,
            "size": SIZE,
            "commits": self._commits // EVENTSOURCING_SHARE,
        }
        figures = await self._setting.peer_trial("eventsourcing_library", settings)
        self.others.setdefault(RECORDER, []).append(figures["recorder"])
        return float(figures["store"])

    async def umadb(self) -> float:
        directory = self._setting.directory / f"umadb-{len(self._unused)}"
        directory.mkdir()
        settings = {
            "database": self._dsn,
            "tournament_id": self._tournament.tournament_id,
            "size": SIZE,
            "commits": self._commits,
            "directory": str(directory),
        }
        figures = await self._setting.peer_trial("umadb_server", settings)
        self.others.setdefault(UNCONDITIONAL, []).append(figures["unconditional"])
        return float(figures["conditional"])

    async def pgbench(self, program: str, tournament: Tournament) -> float:
        await self._setting.cluster.checkpoint()
        return await pgbench.measured(
            program,
            self._dsn,
            tournament,
            size=SIZE,
            seconds=self._setting.seconds,
            directory=self._setting.directory,
        )

    async def _append(self, name: str, tournaments: list[Tournament], *, size: int, commits: int) -> float:
        settings = {"database": self._dsn, "tournaments": tournaments, "size": size, "commits": commits}
        figures = await self._setting.trial("append", settings)
        self.busy_us[name].append(figures["busy_us"])
        return float(figures["events_per_second"])


def _findings(rates: dict[str, list[float]]) -> Findings:
    findings = Findings()
    for name, samples in rates.items():
        findings.figure(name, "a second", samples)
    findings.ratio("10a", rates[OURS], rates[COPY])
    for key, peer, package in (("10b", EVENTSOURCING, "eventsourcing"), ("10d", UMADB, "umadb")):
        if peer in rates:
            findings.ratio(key, rates[OURS], rates[peer])
        else:
            findings.missing[key] = missing_package(package) or ""
    if ADDS in rates:
        findings.ratio("10c", rates[ZIPF], rates[ADDS])
    else:
        findings.missing["10c"] = missing_command("wrk") or ""
    return findings
