"""A database of any earlier version, migrated by this one, shows what it showed."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec
import pytest

from tests.conftest import Administrator, DistributedAdministrator
from tests.running import said
from tests.upgrades import dumped, promised

_numbers = count(1)


@pytest.fixture
def unmigrated(administrator: Administrator) -> Iterator[str]:
    """The address of a database without anything in it."""
    if isinstance(administrator, DistributedAdministrator):
        pytest.skip("a distributed database is not upgraded from a dump")
    name = f"upgraded_{next(_numbers)}"
    administrator.run(administrator.everywhere(f"CREATE DATABASE {name} TEMPLATE template0"))
    yield urlunsplit(urlsplit(administrator.dsn)._replace(path=f"/{name}"))
    administrator.drop(name)


@pytest.mark.parametrize("version", [*dumped.versions(), "this"])
async def test_a_database_of_each_version_shows_what_it_showed_and_its_archive_and_proof_hold(
    version: str, dsn: str, other_dsn: str, unmigrated: str, tmp_path: Path
) -> None:
    directory = dumped.DUMPS
    if version == "this":
        directory = tmp_path
        await dumped.fill(dsn, histories=10)
        await dumped.dump(dsn, directory, version)
    dumped.restore(directory, version, unmigrated)
    kept = {kind: f"{directory / version}.{kind}" for kind in ("archive", "digests", "proof")}
    for address, *command in (
        (unmigrated, "migrate"),
        (unmigrated, "verify", "--digests", kept["digests"]),
        (other_dsn, "tournament", "import", kept["archive"]),
        (other_dsn, "check-proof", kept["proof"], kept["digests"]),
    ):
        told = said(*command, TALLYBOOK_DATABASE_URL=address)
        assert told.code == 0, told
    expected = msgspec.json.decode((directory / f"{version}.json").read_bytes())
    assert all(expected.values())
    assert await dumped.shown(unmigrated) == expected


def test_no_version_takes_back_what_an_earlier_one_promised() -> None:
    now = promised.promised()
    assert promised.FILE.read_text(encoding="utf-8").splitlines() == now, "run `make docs`"
    for file in promised.FOLDER.iterdir():
        assert promised.broken(file.read_text(encoding="utf-8").splitlines(), now) == [], file.name


@pytest.mark.parametrize(
    ("before", "now", "broken"),
    [
        ("A: takes x", "A: takes x|A: takes y|B: needs z", ""),
        ("A: needs x", "A: takes x", ""),
        ("A: needs x", "A: needs x|A: needs y", "A: needs y"),
        ("A: takes x", "A: needs x", "A: needs x|A: takes x"),
        ("A: has x integer", "A: has x integer or null", "A: has x integer"),
        ("A: has x|B: has y", "B: has y", "A: has x"),
        ("Time, a read: at most 1,000 (422)", "Time, a read: at most 2,000 (422)", ""),
        ("Time, a read: at most 1 s", "Time, a read: at most 1 s, then 2 s", "Time, a read: at most 1 s"),
        ("Time, a read: at most 1.5 s", "Time, a read: at most 1 s", "Time, a read: at most 1.5 s"),
    ],
)
def test_what_is_gone_or_lower_or_needed_more_is_broken(before: str, now: str, broken: str) -> None:
    assert promised.broken(before.split("|"), now.split("|")) == [one for one in broken.split("|") if one]
