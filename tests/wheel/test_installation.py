"""Both wheels install in an empty environment of each Python on this machine, and start there."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.desks import until
from tests.running import environment, free_port
from tests.wheel.sbom import ROOT
from tests.wheel.test_wheel import CLIENT, build

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # each downloads all dependencies
MINORS: Final = (11, 12, 13, 14, 15)


def _interpreter(minor: int) -> str | None:
    """A Python of this minor version: in the path, or from pyenv."""
    if sys.version_info.minor == minor:
        return sys.executable
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(versions.glob(f"3.{minor}.*/bin/python3.{minor}"))
    return str(found[-1]) if found else shutil.which(f"python3.{minor}")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Of the product and of the client."""
    folder = tmp_path_factory.mktemp("wheels")
    return [build(folder / project.name, umask=0o022, project=project) for project in (ROOT, CLIENT)]


@contextmanager
def _serving(tallybook: Path, folder: Path) -> Iterator[int]:
    """Runs a service with a database of its own; yields its port."""
    port = free_port()
    with (folder / "said").open("wb") as said:
        command = [str(tallybook), "serve", "--port", str(port), "--data-dir", str(folder / "data")]
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=said, stderr=said)
        try:
            yield port
        finally:
            process.terminate()
            assert process.wait(30) == 0, (folder / "said").read_text()


def test_pip_of_an_older_python_says_which_one_is_needed(wheels: list[Path], tmp_path: Path) -> None:
    interpreter = _interpreter(MINORS[0] - 1)
    if interpreter is None:
        pytest.skip(f"there is no Python 3.{MINORS[0] - 1}")
    subprocess.run([interpreter, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(tmp_path / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for wheel in wheels:
        done = subprocess.run([*pip, str(wheel)], check=False, capture_output=True, text=True)
        assert done.returncode == 1
        assert re.search(r"ERROR: Package 'tallybook\S*' requires a different Python: .* not in '>=3.11'$", done.stderr)


@pytest.mark.parametrize("minor", MINORS)
def test_the_wheels_install_in_an_empty_environment_and_start(minor: int, wheels: list[Path], tmp_path: Path) -> None:
    """Version and manual are those of the wheel, in the command, in `/healthz`, and in man(1). A picture is drawn."""
    interpreter = _interpreter(minor)
    if interpreter is None:
        pytest.skip(f"there is no Python 3.{minor}")
    number = wheels[0].name.split("-")[1]
    subprocess.run([interpreter, "-m", "venv", str(tmp_path / "venv")], check=True)
    bin_ = tmp_path / "venv" / "bin"
    pip = [str(bin_ / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *map(str, wheels)], check=True)

    def said(*command: str) -> str:
        return subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True).stdout.strip()

    assert said(str(bin_ / "tallybook"), "--version") == number
    assert f"Tallybook {number}" in (tmp_path / "venv/share/man/man1/tallybook.1").read_text().splitlines()[0]
    told = "import importlib.metadata as m, tallybook_client; print(m.version('tallybook-client'))"
    assert said(str(bin_ / "python"), "-c", told) == wheels[1].name.split("-")[1]
    drawn = (
        "from api.web import drawing as d, pictured as p; print(d.draw(p.Pictured(*'abcd', (), *'efg'))[1:4].decode())"
    )
    assert said(str(bin_ / "python"), "-c", drawn) == "PNG"
    with _serving(bin_ / "tallybook", tmp_path) as port:

        def health() -> dict[str, object] | None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as answer:
                    found: dict[str, object] = json.load(answer)
                    return found
            except OSError:
                return None

        assert asyncio.run(until(health)) == {"status": 200, "message": "ok", "version": number}
