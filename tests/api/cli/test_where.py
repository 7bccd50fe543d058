"""Which database a command is for: only those that make one may, and a mistyped directory stays as it is."""

import fcntl
from pathlib import Path
from typing import Final

import pytest

from tests.api.cli.commands import COMMANDS
from tests.api.cli.conftest import said_here
from tests.desks import until
from tests.running import opened_by, said, started

CREATE: Final = {"serve", "demo", "migrate", "tournament create", "bring"}
"""The commands that make a database in a directory that has none. No other may."""


OTHERS: Final = sorted(COMMANDS.keys() - CREATE - {"check-proof", "completion"})  # these ask no database


def test_the_commands_that_create_are_commands() -> None:
    assert COMMANDS.keys() > CREATE
    assert len(OTHERS) > 20


@pytest.mark.parametrize(
    ("command", "directory"),
    [
        *((command, "nowhere") for command in OTHERS),
        *(("tournament list", directory) for directory in ("nowhere/below", "file", "file/below", "empty")),
    ],
)
def test_a_command_that_creates_no_database_says_that_there_is_none_and_makes_nothing(
    command: str, directory: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    before = sorted(tmp_path.rglob("*"))
    ended = said_here([*COMMANDS[command], "--data-dir", directory])
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        f"There is no database in {tmp_path / directory}; give the directory of one with --data-dir, or create one "
        "there with `tallybook tournament create NAME`, `serve` or `demo`.\n"
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_without_a_directory_it_is_the_usual_one_that_is_named(tmp_path: Path) -> None:
    ended = said("tournament", "list", cwd=tmp_path)
    assert (ended.code, ended.out) == (1, "")
    assert f"There is no database in {tmp_path / 'tallybook-data'};" in ended.err
    assert list(tmp_path.iterdir()) == []


async def test_a_process_that_waited_for_another_that_made_no_database_says_so_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with (data / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with started(tmp_path, "tournament", "list", "--data-dir", str(data)) as waiting:
            await until(lambda: str(data / "lock") in opened_by(waiting.pid))
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert await waiting.ended() == 1
            assert waiting.err.startswith(f"There is no database in {data};")
    assert [path.name for path in data.iterdir()] == ["lock"]


@pytest.mark.parametrize("command", ["migrate", "tournament create"])
def test_a_command_that_creates_a_database_leaves_one_that_others_find(command: str, tmp_path: Path) -> None:
    data = ["--data-dir", str(tmp_path / "new" / "data")]
    assert said(*COMMANDS[command], *data).code == 0
    listed = said("tournament", "list", "--json", *data)
    assert (listed.code, [t["slug"] for t in listed.json]) == (0, ["cup"] if command == "tournament create" else [])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("command", ["serve", "demo"])
async def test_a_service_creates_a_database_that_others_join(command: str, tmp_path: Path) -> None:
    data = ["--data-dir", str(tmp_path / "new" / "data")]
    with started(tmp_path, command, "--port", "0", *data) as service:
        await service.address()
        listed = said("tournament", "list", "--json", *data)
        assert (listed.code, len(listed.json)) == (0, 1 if command == "demo" else 0)
        assert await service.stopped() == 0
