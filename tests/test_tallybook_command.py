"""The command starts with its own packages, or says in a sentence whose they would be."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tallybook_command
from tallybook_command import PACKAGES
from tests.running import Said, environment, said, started

ROOT = Path(__file__).parents[1]
OTHER = "raise SystemExit('the other project was run')"


def test_every_package_next_to_the_command_is_looked_at() -> None:
    wheel = {"engine", "api", "projections", "migrations"}
    assert set(PACKAGES) == wheel
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "assurance", "benchmarks"} == wheel


@pytest.fixture(params=["folder", "file"])
def other_project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where `_make` makes a package beside, as a folder or as a file."""
    (tmp_path / "other").mkdir()
    return tmp_path / "other" / request.param


def _make(kind: Path, name: str) -> Path:
    """The package `name` of another project, in the folder beside `kind`."""
    if kind.name == "file":
        place = kind.with_name(f"{name}.py")
        place.write_text(OTHER)
        return place
    place = kind.with_name(name)
    place.mkdir()
    (place / "__init__.py").write_text(OTHER)
    return place


@pytest.mark.parametrize("name", PACKAGES)
@pytest.mark.parametrize("command", [["tournament", "list"], ["--version"]])
def test_a_package_of_another_project_is_named_with_its_place(
    name: str, command: list[str], other_project: Path
) -> None:
    place = _make(other_project, name)
    assert said(*command, PYTHONPATH=str(place.parent)) == _refused(name, place)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_process_of_the_service_says_the_same(name: str, other_project: Path) -> None:
    place = _make(other_project, name)
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "tallybook_command", "worker"],
        check=False,
        env=environment(PYTHONPATH=str(place.parent)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert Said(ended.returncode, ended.stdout, ended.stderr) == _refused(name, place)


def _refused(name: str, place: Path) -> Said:
    return Said(
        1,
        "",
        f"Python finds another package `{name}` in {place} before Tallybook's, which is in {ROOT}; take {place.parent} "
        "off PYTHONPATH, or run Tallybook in an environment of its own.\n",
    )


@pytest.mark.parametrize(
    ("kind", "unneeded"),
    [
        ("api", {"rich.console", "pygments", "cyclopts", "aiohttp.client", "api.web.pages", "http.server", "segno"}),
        ("worker", {"rich.console", "pygments", "cyclopts", "aiohttp", "http.server"}),
    ],
)
def test_a_process_imports_no_large_library_that_it_does_not_need(kind: str, unneeded: set[str]) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tallybook_command", kind],  # it ends for lack of its arguments
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    imported = set(re.findall(r"^import time:.*\| +(\S+)$", ended.stderr, re.MULTILINE))
    assert {"asyncpg", "structlog"} <= imported
    assert not imported & unneeded


def test_a_process_of_no_known_kind_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tallybook_command", "nonsense"], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


def test_a_folder_that_is_no_package_is_in_nobodys_way(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
    assert said("--version", PYTHONPATH=str(tmp_path)).code == 0


def test_a_path_that_leads_to_our_packages_another_way_is_ours(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(ROOT)
    assert said("--version", PYTHONPATH=str(ROOT)).code == 0
    assert said("--version", PYTHONPATH=str(link)).code == 0


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    alone = tmp_path / "tallybook_command.py"
    alone.write_text(Path(tallybook_command.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    for name in PACKAGES[1:]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    ended = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.append({str(tmp_path)!r}); import tallybook_command as t; t.main()",
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    sentence = f"Tallybook's package `api` is missing in {tmp_path}; install Tallybook again.\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", sentence)


@pytest.mark.long
async def test_a_service_whose_process_dies_after_another_project_came_says_so_in_its_log(
    dsn: str, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    arguments = ["serve", "--port", "0"]
    with started(tmp_path, *arguments, TALLYBOOK_DATABASE_URL=dsn, PYTHONPATH=str(other)) as service:
        await service.address()
        _make(other / "folder", "api")
        (worker,) = await service.started_pids("worker")
        os.kill(worker, signal.SIGKILL)
        await service.has_said("Python finds another package `api`")
        assert "Traceback" not in service.err
        assert await service.stopped() == 0
