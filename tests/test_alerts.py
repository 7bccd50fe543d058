"""The alerts of `deploy/prometheus/`: each fires for its symptom alone, and none while all is well.

They are played by Prometheus's own promtool, on the series that a service and a verification show. Each series begins
with the value shown, so an alert that waits for the first value of a series is found out.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prometheus_client.samples import Sample

from api.service.lifecycle import DSN_VARIABLE
from tests.running import started
from tests.test_deploy import ALERTS, DEPLOY, expressions_of_alerts, metrics_of, run, samples_at, tool

MINUTES: Final = 40
Course = dict[str, str]
"""Values of series by a pattern of their names, in promtool's notation, where `{0}` is the value shown, and `{1}` one
more."""
CONSTANT: Final = f"{{0}}+0x{MINUTES}"
A: Final = '{instance="a".*'
"""Of the service. A verification shows the same series."""
V: Final = '{instance="v"'
SLOW: Final = 'le="(0.5|[1-9].*|.Inf)"'
RISEN: Final = "{0}+0x34 {1}+0x5"
WELL: Final[Course] = {
    f"errors_total{A}503": "{0}+1x40",
    f"turned_away_total{A}": "{0}+6x40",
    f"append_seconds_bucket{A}{SLOW}": "{0}+601x40",
    f"append_seconds_bucket{A}": "{0}+600x40",
    f"pool_waiting{A}": " ".join(["3 0"] * (MINUTES // 2)),
    f"appended_events_total{A}": "{0}+600x40",
    f"folded_events_total{A}": "{0}+598x40",
    f"unverified_seconds{V}": "3600+60x40",
}


@dataclass(frozen=True)
class Symptom:
    """What an alert is for: how series differ from those while all is well, and what it then says."""

    alert: str
    course: Course
    labels: Mapping[str, str]
    summary: str
    description: str = ""


OF_SERVICE: Final = {"instance": "a", "job": "tallybook"}
OF_VERIFICATION: Final = {"instance": "v", "job": "tallybook-verify"}
PAGE: Final = {"severity": "page"}
TICKET: Final = {"severity": "ticket"}
SYMPTOMS: Final = [
    Symptom("TallybookDown", {f"^up{A}": "0+0x40"}, PAGE | OF_SERVICE, "a does not answer"),
    Symptom(
        "TallybookFails",
        {f"errors_total{A}503": "{0}+60x40"},
        PAGE | {"instance": "a"},
        "a answers 1 requests a second with 5xx",
        "503 is the database; 500 is a defect, and its log line has the trace.",
    ),
    Symptom(
        "TallybookRefuses",
        {f"errors_total{A}429": "{0}+120x40"},
        TICKET | {"instance": "a"},
        "a refuses 2 requests a second as too many",
    ),
    Symptom(
        "TallybookTurnsAway",
        {f"turned_away_total{A}": "{0}+120x40"},
        TICKET | {"instance": "a"},
        "a turns away 2 requests a second that would wait too long",
    ),
    Symptom(
        "TallybookCommitsSlowly",
        {
            f"append_seconds_bucket{A}{SLOW}": "{0}+100x40",
            f"append_seconds_bucket{A}": "{0}+90x40",
        },
        TICKET | {"instance": "a"},
        "One in a hundred commits of a takes more than 475ms",
    ),
    Symptom(
        "TallybookWaitsForConnections",
        {f"pool_waiting{A}": "1+0x40"},
        TICKET | OF_SERVICE,
        "Work of a waits for connections to the database all the time",
    ),
    Symptom(
        "TallybookAvoidsNode",
        {f"nodes_avoided{A}": "1+0x40"},
        PAGE | OF_SERVICE,
        "a cannot connect to 1 node(s) of the database",
        "The tournaments of these nodes are asked for by way of the coordinator, or not answered.",
    ),
    Symptom(
        "TallybookTablesBehind",
        {f"folded_events_total{A}": "{0}+400x40"},
        TICKET,
        "The tables have fallen 2k events behind the logs in ten minutes",
    ),
    Symptom(
        "TallybookTournamentStopped",
        {f"stopped_total{A}": RISEN},
        PAGE | OF_SERVICE,
        "a has met an event that it cannot fold; /readyz counts the tournaments",
    ),
    Symptom(
        "TallybookDefect",
        {f"defects_total{A}judging": RISEN},
        PAGE | {"instance": "a"},
        "a has met a defect in a tournament; the log has it as tournament_defect",
    ),
    Symptom(
        "TallybookLogReplaced",
        {f"forked_total{A}": RISEN},
        PAGE | OF_SERVICE,
        "A log is not the one that a read before; was the database restored?",
    ),
    Symptom(
        "TallybookClockBehind",
        {f"clock_behind_seconds{A}": "30+0x40"},
        TICKET | {"instance": "a"},
        "The time of a log is 30s ahead of the clock of the database",
    ),
    Symptom(
        "TallybookQuotaNear",
        {f"quotas_near{A}": "2+0x40"},
        TICKET | {"instance": "a"},
        "2 quotas are used by 80% or more; /readyz names some of them",
    ),
    Symptom(
        "TallybookWebhooksStopped",
        {f"webhooks{A}parked": "2+0x40"},
        TICKET | {"state": "parked"},
        "2 webhooks are parked; `tallybook webhook list` says why",
    ),
    Symptom(
        "TallybookDifferenceFound",
        {f"differing_tournaments{V}": "1+0x40"},
        PAGE | OF_VERIFICATION,
        "Verification finds differences in 1 tournaments; its log names them",
    ),
    Symptom(
        "TallybookVerificationOld",
        {f"unverified_seconds{V}": "90000+60x40"},
        TICKET | OF_VERIFICATION,
        "A tournament has not been verified for a day, or nothing verifies at all",
    ),
    Symptom(
        "TallybookVerificationOld",
        {f"unverified_seconds{V}": ""},
        TICKET | {"job": "tallybook-verify"},
        "A tournament has not been verified for a day, or nothing verifies at all",
    ),
]


async def shown_at_start(dsn: str, folder: Path) -> dict[str, list[Sample]]:
    """What a service of several processes and a verification show, by the labels that Prometheus adds."""
    database = {DSN_VARIABLE: dsn}
    (folder / "verify").mkdir()
    with (
        started(folder, "serve", "--port", "0", "--processes", "2", "--open-metrics", **database) as service,
        started(folder / "verify", "verify", "--forever", "--metrics-port", "0", **database) as verification,
    ):
        address = await service.address()
        metrics = await verification.logged("metrics_shown")
        return {
            _labels(OF_SERVICE): await samples_at(f"{address}/metrics"),
            _labels(OF_VERIFICATION): await samples_at(metrics["address"]),
        }


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in sorted(labels.items()))


async def test_alerts_fire_for_their_symptoms_and_for_nothing_else(dsn: str, tmp_path: Path) -> None:
    promtool = tool("promtool")
    shown = await shown_at_start(dsn, tmp_path)
    wanted = metrics_of(expressions_of_alerts())
    series = {f"up{{{labels}}}": 1.0 for labels in shown} | {
        f"{sample.name}{{{','.join(filter(None, (labels, _labels(sample.labels))))}}}": sample.value
        for labels, samples in shown.items()
        for sample in samples
        if sample.name in wanted
    }
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    assert {symptom.alert for symptom in SYMPTOMS} == set(alerts)
    cases = [_case(series, alerts, None), *(_case(series, alerts, symptom) for symptom in SYMPTOMS)]
    file = tmp_path / "alerts_test.json"
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": cases}))
    assert "SUCCESS" in run(promtool, "check", "rules", str(ALERTS))
    assert "SUCCESS" in run(promtool, "test", "rules", str(file))
    for config in DEPLOY / "prometheus" / "prometheus.yml", DEPLOY / "container" / "prometheus.yml":
        run(promtool, "check", "config", "--syntax-only", str(config))


def _case(series: Mapping[str, float], alerts: list[str], symptom: Symptom | None) -> dict[str, Any]:
    """Forty minutes with this symptom, or none, at the end of which the alerts are compared."""
    of_symptom = symptom.course if symptom else {}
    patterns = of_symptom | WELL | {"": CONSTANT} | of_symptom  # the first that fits holds
    used: set[str] = set()
    courses: dict[str, str] = {}
    for name, shown in series.items():
        pattern = next(pattern for pattern in patterns if re.search(pattern, name))
        used.add(pattern)
        courses[name] = patterns[pattern].format(f"{shown:g}", f"{shown + 1:g}")
    assert used >= {*of_symptom}, "no series is shown of which this could be a symptom"
    fired = []
    if symptom is not None:
        told = {"summary": symptom.summary} | ({"description": symptom.description} if symptom.description else {})
        fired = [{"exp_labels": symptom.labels, "exp_annotations": told}]
    return {
        "name": symptom.alert if symptom else "all is well",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in courses.items() if values],
        "alert_rule_test": [
            {"eval_time": f"{MINUTES}m", "alertname": alert}
            | ({"exp_alerts": fired} if symptom and alert == symptom.alert else {})
            for alert in alerts
        ],
    }
