"""What is in `deploy/`: units, alerts and the dashboard speak of commands and metrics that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from api.service.lifecycle import DSN_VARIABLE
from api.web import drawing
from engine.process import telemetry
from projections.tables.defects import DefectPart
from tests.desks import until
from tests.running import TALLYBOOK, said, started
from tests.upgrades.promised import metrics_to_watch

DEPLOY = Path(__file__).parents[1] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
CONTAINERFILE = DEPLOY / "container" / "Containerfile"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "tallybook.json"
EXPOSURE_MAX = 20
"""In tenths of 10, as `systemd-analyze security` counts what a service could still reach."""

_METRIC = re.compile(r"\b((?:tallybook|process)_[a-z_]+)\b(?!-)")


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, check=False, cwd=cwd, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def expressions_of_dashboard() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(targets) > 20
    return targets


def expressions_of_alerts() -> list[str]:
    found = re.findall(r"^ *expr: (?:>\n)?((?:.+\n(?: {10}.+\n)*))", ALERTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == ALERTS.read_text(encoding="utf-8").count("- alert:")
    return found


def metrics_of(expressions: list[str]) -> set[str]:
    return {metric for expression in expressions for metric in _METRIC.findall(re.sub(r'"[^"]*"', "", expression))}


async def samples_at(url: str) -> list[Sample]:
    """What is shown there."""
    async with ClientSession() as session, session.get(url) as answer:
        return [sample for family in text_string_to_metric_families(await answer.text()) for sample in family.samples]


async def test_a_service_shows_what_alerts_dashboard_and_operators_ask_for(dsn: str, tmp_path: Path) -> None:
    options = ("--port", "0", "--processes", "2", "--open-metrics")
    with started(tmp_path, "serve", *options, **{DSN_VARIABLE: dsn}) as running:
        figures = f"{await running.address()}/metrics"
        at_start = await samples_at(figures)
        wanted = metrics_of([*expressions_of_alerts(), *expressions_of_dashboard(), *metrics_to_watch()])
        assert len(wanted) > 20

        async def are_shown() -> bool:
            """Some are shown after an answer."""
            names = {sample.name for sample in await samples_at(figures)}
            return wanted <= names | {name.removesuffix("_count") for name in names}

        await until(are_shown)

    # A counter begins with 0 for every value of its label: Prometheus sees no increase in the first value of a series.
    listed = re.findall(r"(tallybook_\w+_total)\{\w+\}: ((?:\w+,\s+)*\w+)", telemetry.__doc__ or "")
    from_start = {(name, kind) for name, kinds in listed for kind in re.split(r",\s+", kinds)}
    counters = [one for one in at_start if one.name.startswith("tallybook_") and one.name.endswith("_total")]
    assert {(one.name, *one.labels.values()) for one in counters if one.labels} == from_start
    assert metrics_of(expressions_of_alerts()) <= {sample.name for sample in at_start}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("command", ["worker", "verify"])
async def test_others_show_theirs_on_a_port_of_their_own(command: str, dsn: str, tmp_path: Path) -> None:
    arguments = ("worker",) if command == "worker" else ("verify", "--forever")
    with started(tmp_path, *arguments, "--metrics-port", "0", **{DSN_VARIABLE: dsn}) as running:
        samples = await samples_at((await running.logged("metrics_shown"))["address"])
        assert await running.stopped() == 0
    assert {"tallybook_folded_events_total", "tallybook_unverified_seconds"} < {sample.name for sample in samples}
    assert {part for sample in samples if (part := sample.labels.get("part"))} == {*DefectPart}


def test_the_dashboard_asks_what_prometheus_understands(tmp_path: Path) -> None:
    promtool = tool("promtool")
    expressions = [
        expression.replace("$__rate_interval", "5m").replace("$instance", ".*")
        for expression in expressions_of_dashboard()
    ]
    rules = [{"record": f"panel:{n}", "expr": expression} for n, expression in enumerate(expressions)]
    file = tmp_path / "dashboard.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    run(promtool, "check", "rules", str(file))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_understood_and_hardened(unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analyze = tool("systemd-analyze")
    text = unit.read_text(encoding="utf-8")
    assert "/opt/tallybook/bin/tallybook" in text
    here = tmp_path / unit.name
    here.write_text(text.replace("/opt/tallybook/bin/tallybook", TALLYBOOK), encoding="utf-8")
    # Each service requires this target. The units of this machine, which others wrote, are left out.
    (tmp_path / "sysinit.target").write_text("[Unit]\nDescription=System Initialization\n", encoding="utf-8")
    monkeypatch.setenv("SYSTEMD_UNIT_PATH", str(tmp_path))
    assert run(analyze, "verify", "--man=no", str(here)) == ""
    run(analyze, "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", str(here))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_start_commands_that_there_are(unit: Path) -> None:
    command = re.search(r"^ExecStart=\S+ (.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    assert command
    name, *options = command[1].split()
    usage = said(name, "--help").out
    for option in options:
        if option.startswith("--"):
            assert option in usage, (unit.name, option)


def test_containers_start_commands_that_there_are() -> None:
    compose = (DEPLOY / "container" / "compose.yml").read_text(encoding="utf-8")
    commands = re.findall(r"command: \[(.+)\]", compose)
    assert len(commands) == 4
    for command in commands:
        name, *options = [word.strip().strip('"') for word in command.split(",")]
        usage = said(name, "--help").out
        for option in options:
            if option.startswith("--"):
                assert option in usage, (name, option)


def test_what_deploy_refers_to_is_there() -> None:
    for file in DEPLOY.rglob("*"):
        if file.is_file():
            for name in re.findall(r"\b((?:docs|benchmarks|deploy)/[\w/.-]+\w)", file.read_text(encoding="utf-8")):
                assert (DEPLOY.parent / name).exists(), (file.name, name)


def test_what_the_image_is_built_from_reaches_its_build() -> None:
    sent = re.findall(r"^!(\S+)$", (DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--)(\S+) ", CONTAINERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(copied) - {"."} <= set(sent)
    assert copied[-1] == "."


def test_the_image_has_what_pictures_are_drawn_with() -> None:
    installed = re.search(r"apt-get install (?:--\S+ )*(.+?) \\", CONTAINERFILE.read_text(encoding="utf-8"))
    assert installed
    wanted = re.findall(r"# Debian: (\S+)", Path(drawing.__file__).read_text(encoding="utf-8"))
    packages = {name.rstrip(",") for name in wanted} - {"fonts-droid-fallback"}  # which the first makes needless
    assert packages == {"fonts-noto-cjk", "fonts-noto-core"}
    assert set(installed[1].split()) == packages | {"libfribidi0"}
