"""docs/FIRST_HOUR.md, and the request in the README: what a newcomer is told to do leads to what they say."""

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
from aiohttp import ClientSession, DummyCookieJar

from tests.api.cli.commands import FINAL_TABLE
from tests.api.visitor import Visitor
from tests.running import said, started

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = (ROOT / "docs" / "FIRST_HOUR.md").read_text(encoding="utf-8")
(FIRST_PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
INTERFACE: Final = (ROOT / "docs" / "INTERFACE.md").read_text(encoding="utf-8")
REQUESTS: Final = re.findall(r"^    (curl [^…]*… (?:.*\\\n)*.* -d .*)$", INTERFACE, re.MULTILINE)
QUERIES: Final = re.findall(r"^    GET …/(\S+)$", INTERFACE, re.MULTILINE)
LONGER: Final = ("The log of this tournament ends at", "event 41 neither adds points nor")
"""How a request is refused that is about a longer log than that of the demo."""
(REQUEST,) = re.findall(
    r"^\$ (curl .*?)\n```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)
OLD_PYTHON: Final = f"""#!/bin/sh
exec {sys.executable} -c 'import sys; sys.version_info = (3, 10, 13); exec(sys.argv[2])' "$@"
"""
"""It runs the program that it is given as an older Python would, as far as that asks how old it is."""


def ran(folder: Path, program: str, address: str, token: str) -> list[str]:
    """What one of the programs of the page prints."""
    file = folder / "first.py"
    file.write_text(program)
    variables = os.environ | {"PYTHONPATH": str(ROOT / "clients" / "python")}
    arguments = [sys.executable, str(file), address, token]
    return subprocess.run(arguments, check=True, env=variables, stdout=subprocess.PIPE, text=True).stdout.splitlines()


@pytest.mark.long
async def test_the_demo_its_board_the_lines_of_python_and_its_console(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path / "data"))
    with started(tmp_path, "demo", "--port", "0", *data) as running:
        address = await running.address()
        board, token = re.search(r"^ +(http\S+/board/\S+)$", running.err, re.M), re.search(r"\btb_\w+", running.err)
        assert board
        assert token
        table = [f"{name} {total}" for name, total in FINAL_TABLE]
        printed = await asyncio.to_thread(ran, tmp_path, FIRST_PROGRAM, address, token[0])
        assert [line.partition(" ")[2] for line in printed] == table
        assert f"`{printed[0]}`" in PAGE
        shown = said("standings", "thursday-league", "League", *data).out
        assert re.search(r"P . W . D . L . GF . GA . GD . Pts", shown)
        assert "log_requests" not in running.err
        assert not [line for line in running.log if line["event"] == "request"]
        console = re.search(r"^ +(http\S+/console)$", running.err, re.M)
        assert console
        async with ClientSession(cookie_jar=DummyCookieJar()) as session:
            async with session.get(board[1]) as answer:
                assert "Harbour" in await answer.text()
            visitor = Visitor(session, address)
            await visitor.sign_in(token[0])
            assert "Thursday League" in await visitor.page(console[1].removeprefix(address))
        request = REQUEST.replace("tb_…", token[0]).replace("http://localhost:8080", address)
        for replayed in False, True:
            answer = await asyncio.to_thread(subprocess.check_output, ["bash", "-c", f"{request} --silent"], text=True)
            assert "Tallybook-Sequence: 86" in answer
            assert ("Idempotency-Replayed: true" in answer) is replayed
            assert '{"competitor_id":1,"position":1,"total":18}' in answer
        sent = f"-H 'Authorization: Bearer {token[0]}' {address}/tournament/thursday-league/"
        for request in (*REQUESTS, *(f"curl … '{query}'" for query in QUERIES)):
            command = request.replace("… ", sent)
            answer = await asyncio.to_thread(subprocess.check_output, ["bash", "-c", f"{command} --silent"], text=True)
            assert any(one in answer for one in ('"status":200', *LONGER)), (command, answer)
        assert (len(REQUESTS), len(QUERIES)) == (4, 4)


def test_the_versions_of_python_that_are_claimed_were_tried() -> None:
    (versions,) = re.findall(r"the demo ran, with Python (.+?)\. Tests", PAGE, re.DOTALL)
    tried = re.findall(r"\b(3\.\d+)\.\d+", versions)
    for project in ROOT, ROOT / "clients" / "python":
        stated = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        classified = [c.rpartition(" ")[2] for c in stated["classifiers"] if re.search(r":: 3\.\d+$", c)]
        assert classified == tried
        assert stated["requires-python"] == f">={tried[0]}"


def test_make_says_which_python_it_needs(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(OLD_PYTHON)
    old.chmod(0o700)
    for name in "Makefile", "pyproject.toml", "requirements.lock":
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    done = subprocess.run(["make", "demo", f"PYTHON={old}"], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Tallybook needs Python 3.11 or later; name one: make PYTHON=python3.13\n")
    assert not (tmp_path / ".venv").exists()
