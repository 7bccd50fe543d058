"""Question 26: what does a feature cost an add and a read in a tournament that uses it, and nothing else?

One API process, and for each feature a tournament of 20 competitors and 50 competitions: results give points by a
scoring; a classification has tie-breaks; points expire after a year; 20 clients listen to the events; each add has an
idempotency key of its own; or OpenTelemetry traces every request (the spans are made and batched, and go to an exporter
that throws them away). The loads are those of questions 1 (`add.json` of one delta) and 5 (`GET rankings.json`), over
64 connections. The figures are ratios to the same load in the same round on a tournament without any of these; 26a and
26b are the lowest of each round, without keys and traces.
"""

import json
from functools import partial
from itertools import count
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Final
from urllib.parse import urlencode

from msgspec.structs import replace

from benchmarks import traffic
from benchmarks.asking import Asker
from benchmarks.contest import Metered, metered
from benchmarks.listening import listening
from benchmarks.rounds import Contestant, interleaved
from benchmarks.service import Service
from benchmarks.setting import Setting
from benchmarks.table import FEATURES, TIMES, Findings, Grid
from benchmarks.world import Field, Tournament, open_tournaments, seeding, settle

NUMBERS: Final = (26,)
NEEDS: Final = ("wrk",)
LISTENERS: Final = 20
SEED: Final = 26

PLAIN: Final = "nothing"
SCORING: Final = "results give points by a scoring"
TIEBREAKS: Final = "tie-breaks, and such a scoring"
EXPIRY: Final = "points expire after a year"
HEARD: Final = f"{LISTENERS} listeners"
KEYED: Final = "an idempotency key for each"
TRACES: Final = "OpenTelemetry traces every request"
FIELD: Final = Field(competitors=20, competitions=50)
_FIELDS: Final = dict.fromkeys((PLAIN, SCORING, TIEBREAKS, EXPIRY, HEARD, KEYED, TRACES), FIELD) | {
    EXPIRY: replace(FIELD, lasts="P52W")
}
_LOADS: Final = {"26a": "add.json", "26b": "GET rankings.json"}
_ALONE: Final = {"26a": {"26c": TRACES, "26e": KEYED}, "26b": {"26d": TRACES}}
"""Rows of the same loads with one feature."""
_KEYED_A_SECOND: Final = 60_000
"""No more requests with keys can be answered; were one sent twice, the second would only be a repeat."""
_AWARD: Final = {"from": "outcome", "table": {"win": 3, "draw": 1, "loss": 0}}
_CODES: Final = ("BH", "SB", "DE")
_EXPORTERS: Final = "[opentelemetry_traces_exporter]\nnowhere = benchmarks.trials.tracing:Nowhere\n"


async def measure(setting: Setting) -> Findings:
    plain, traced = await setting.database("features"), await setting.database("features_traced")
    tournaments: dict[str, Tournament] = {}
    for n, (feature, field) in enumerate(_FIELDS.items()):
        async with seeding(traced if feature == TRACES else plain) as connection:
            (tournaments[feature],) = await open_tournaments(connection, f"feature-{n}", 1, field)
    for dsn in (plain, traced):
        await settle(dsn)
    exporting = _exporting_nowhere(setting.directory / "exporter")
    async with (
        setting.service(plain, "features") as service,
        setting.service(traced, "features-traced", environment=exporting) as tracing,
    ):
        await _declare(service, tournaments)
        services = dict.fromkeys(_FIELDS, service) | {TRACES: tracing}
        if "tracing_failed" in setting.log("service-features-traced").read_text():
            del services[TRACES]
        contestants = {
            f"{load}, {feature}": _contestant(setting, services[feature], tournaments[feature], load, feature)
            for row, load in _LOADS.items()
            for feature in services
            if feature != KEYED or row == "26a"
        }
        loads = await interleaved(setting.scaled(setting.rounds, quick=1), contestants)
    return _findings(loads, [feature for feature in services if feature != PLAIN])


async def _declare(service: Service, tournaments: dict[str, Tournament]) -> None:
    async with Asker(service.url, service.token) as asker:

        async def declare(feature: str, resource: str, field: str, content: object) -> None:
            path = f"{tournaments[feature].path}/rankings/{tournaments[feature].ranking_id}/{resource}.json"
            await asker.put(path, urlencode({field: json.dumps(content)}).encode())

        unities = {feature: {"unity": tournaments[feature].unity_ids[0]} for feature in (SCORING, TIEBREAKS)}
        for feature, unity in unities.items():
            await declare(feature, "scoring", "scorings", [{"awards": [_AWARD | unity]}])
        plain = unities[TIEBREAKS]
        await declare(TIEBREAKS, "classification", "criteria", [plain, *(plain | {"tiebreak": one} for one in _CODES)])


def _contestant(setting: Setting, service: Service, one: Tournament, load: str, feature: str) -> Contestant[Metered]:
    if load == _LOADS["26a"]:
        requests = traffic.adds([one] * traffic.REQUESTS, service.token, seed=SEED)
    else:
        requests = traffic.rankings([one], service.token)
    run = partial(metered, setting, [service], [one], [setting.requests(f"{load}, {feature}", requests)])

    draws = count()

    async def keyed() -> Metered:
        wanted, draw = _KEYED_A_SECOND * setting.seconds, next(draws)
        fresh = traffic.keyed(requests, (f"{draw}-{n}" for n in range(wanted)))
        return await metered(setting, [service], [one], [setting.requests(KEYED, fresh)])

    async def heard() -> Metered:
        async with listening(service, [one], LISTENERS, directory=setting.directory):
            return await run()

    return {HEARD: heard, KEYED: keyed}.get(feature, run)


def _exporting_nowhere(directory: Path) -> dict[str, str]:
    """The variables with which a service finds an exporter for its spans that throws them away. `directory`: for a
    package that names it."""
    package = directory / "nowhere-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: nowhere\nVersion: 1\n")
    (package / "entry_points.txt").write_text(_EXPORTERS)
    return {"OTEL_TRACES_EXPORTER": "nowhere", "PYTHONPATH": str(directory)}


def _findings(loads: dict[str, list[Metered]], features: list[str]) -> Findings:
    findings = Findings()
    rows = [[feature] for feature in features]
    for key, load in _LOADS.items():
        runs = {feature: loads[name] for feature in (PLAIN, *features) if (name := f"{load}, {feature}") in loads}
        rates = {feature: [run.rate for run in of_feature] for feature, of_feature in runs.items()}
        times = {feature: [run.whole_us for run in of_feature] for feature, of_feature in runs.items()}
        for feature in runs:
            findings.figure(f"feature, {load}, {feature}", "a second", rates[feature])
            findings.figure(f"feature, {load}, {feature}: processor time", "µs", times[feature])
        for row, feature in zip(rows, features, strict=True):
            row += [
                f"{median(map(truediv, of[feature], of[PLAIN])):.2f} {TIMES}" if feature in of else ""
                for of in (rates, times)
            ]
        ratios = {feature: [*map(truediv, rates[feature], rates[PLAIN])] for feature in features if feature in rates}
        for alone, feature in _ALONE[key].items():
            if feature in ratios:
                findings.values[alone] = ratios.pop(feature)
            else:
                findings.missing[alone] = "the product's Python has no opentelemetry-sdk"
        findings.values[key] = [*map(min, zip(*ratios.values(), strict=True))]
    notes = ["Ratios to the same load without any. Processor time: of the API process, and of PostgreSQL for it."]
    head = ["feature", *(f"{load}: {what}" for load in _LOADS.values() for what in ("rate", "processor time"))]
    findings.grids = [Grid(title=FEATURES, head=head, rows=rows, notes=notes)]
    return findings
