"""The wheel: the same to the byte wherever it is built, with a manual and a list of its parts that are true."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from api.cli.main import app
from tests.wheel.manual import PAGE, commands, manual
from tests.wheel.sbom import FILE, ROOT, VENDORED, sbom

CLIENT: Final = ROOT / "clients" / "python"
BUILT_FROM: Final = {
    ROOT: re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE),
    CLIENT: ["pyproject.toml", "README.md", "LICENSE", "tallybook_client"],
}
"""What an image is built from, and so a wheel can be; and the client."""
HELD: Final = {"engine", "projections", "api", "migrations", "tallybook_command.py"}
KINDS: Final = {".py", ".sql", ".json", ".js", ".css", ".svg", "LICENSE"}
FREE: Final = {
    *("Apache-2.0", "Artistic-1.0-Perl", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MIT-CMU", "OFL-1.1", "PSF-2.0"),
}
"""The licences of parts that a work under Apache-2.0 may have."""
STALE: Final = "run `make docs`"


def build(folder: Path, *, umask: int, project: Path = ROOT, **variables: str) -> Path:
    """A wheel from a copy of the sources in `folder`, whose files are of today and of this umask."""
    source = folder / "source"
    source.mkdir(parents=True)
    before = os.umask(umask)
    try:
        for name in BUILT_FROM[project]:
            if (project / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(project / name, source / name, copy_function=shutil.copyfile, ignore=ignored)
            else:
                shutil.copyfile(project / name, source / name)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
            check=True,
            cwd=source,
            env=os.environ | variables,
            capture_output=True,
        )
    finally:
        os.umask(before)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("built") / "here", umask=0o022, SOURCE_DATE_EPOCH="1700000000", TZ="UTC")


def test_a_wheel_is_the_same_to_the_byte_wherever_and_whenever_it_is_built(wheel: Path, tmp_path: Path) -> None:
    variables = {"SOURCE_DATE_EPOCH": "1700000000", "TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "1"}
    client = build(tmp_path / "client", umask=0o022, project=CLIENT, SOURCE_DATE_EPOCH="1700000000")
    for project, first in {ROOT: wheel, CLIENT: client}.items():
        other = build(tmp_path / "a" / "longer" / first.name, umask=0o077, project=project, **variables)
        assert other.name == first.name
        assert other.read_bytes() == first.read_bytes()
        dates = {entry.date_time for entry in ZipFile(first).infolist()}
        assert dates == {(2023, 11, 14, 22, 13, 20)}


def test_a_wheel_installs_the_manual_and_says_what_it_is_made_of(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        version = app.version
        number = version() if callable(version) else version
        manual_page = archive.read(f"tallybook-{number}.data/data/share/man/man1/tallybook.1")
        assert manual_page == PAGE.read_bytes()
        assert archive.read(f"tallybook-{number}.dist-info/sboms/{FILE.name}") == FILE.read_bytes()


def test_a_wheel_has_the_modules_with_the_data_that_they_read_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        held = {Path(name) for name in archive.namelist() if not name.startswith("tallybook-")}
    there = {
        path.relative_to(ROOT) for name in HELD for path in [ROOT / name, *(ROOT / name).rglob("*")] if path.is_file()
    }
    assert held == {path for path in there if "__pycache__" not in path.parts}
    assert {path.suffix or path.name for path in held} == KINDS
    vendored = {Path("api/web/static") / one["name"] for one in json.loads(VENDORED.read_text(encoding="utf-8"))}
    assert {path.parent for path in held if path.name == "LICENSE"} == vendored


def test_the_manual_is_the_help_of_every_command() -> None:
    assert PAGE.read_text(encoding="utf-8") == manual(), STALE
    headings = re.findall(r'^\.SS "(.*)"$', manual().replace("\\-", "-"), re.MULTILINE)
    for heading, path in zip(headings, commands(), strict=True):
        assert f"{heading} ".startswith(f"tallybook {' '.join(path)} ")


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man(1)")
def test_man_shows_the_manual_without_a_warning() -> None:
    shown = subprocess.run(
        ["man", "--local-file", "--warnings=all", str(PAGE)],
        check=True,
        env=os.environ | {"MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert shown.stderr == ""
    assert "tallybook tournament create [OPTIONS] NAME" in shown.stdout


def test_the_list_of_parts_is_made_from_the_lock_and_from_what_is_vendored() -> None:
    assert FILE.read_text(encoding="utf-8") == sbom(), STALE
    document = json.loads(FILE.read_text(encoding="utf-8"))
    listed = {component["name"]: component["version"] for component in document["components"]}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE))
    vendored = {one["name"]: one["version"] for one in json.loads(VENDORED.read_text())}
    assert {name: version for name, version in listed.items() if name not in vendored}.items() <= locked.items()
    assert vendored.items() <= listed.items()
    assert locked.keys() - listed.keys() == {
        "editables",
        "hatchling",
        "packaging",
        "pathspec",
        "pluggy",
        "tomlkit",
        "trove-classifiers",
    }, "only what installs a working copy is in the lock and not in the list"
    licences = {component["name"]: component["licenses"][0]["expression"] for component in document["components"]}
    for stated in licences.values():
        assert all(set(part.split(" OR ")) & FREE for part in stated.split(" AND ")), licences
    references = {component["bom-ref"] for component in (document["metadata"]["component"], *document["components"])}
    assert {one["ref"] for one in document["dependencies"]} == references
    assert {ref for one in document["dependencies"] for ref in one.get("dependsOn", ())} < references
