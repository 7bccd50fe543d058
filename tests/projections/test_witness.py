"""Outside digests: notes are whole lines on disk, and whatever else is in the file is passed over and said."""

import asyncio
import codecs
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engine.database.pool import Database
from engine.domain.errors import Unacceptable
from engine.domain.terms import Sequence, TournamentId
from engine.log import heads, tails
from projections.verification import witness
from projections.verification.witness import Note, NotedDigests, Witness
from tests.desks import open_arena, record, until
from tests.histories import unhurried

NOW = datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=UTC)


def a_note(tournament: int = 7, sequence: int = 1, byte: int = 0) -> Note:
    return Note(
        tournament=TournamentId(tournament),
        slug=f"cup-{tournament}",
        sequence=Sequence(sequence),
        digest=bytes([byte] * 32).hex(),
        recorded_at=NOW,
        noted_at=NOW,
    )


def noted(sequence: int, *byte: int) -> NotedDigests:
    return NotedDigests(Sequence(sequence), tuple(bytes([b] * 32) for b in byte))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "digests.ndjson"


_opened: Final[list[Witness]] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Closes what `read` has opened."""
    yield
    while _opened:
        _opened.pop().close()


def read(path: Path) -> Witness:
    witness_ = Witness(path)
    _opened.append(witness_)
    witness_.read()
    return witness_


def test_a_line_is_json_with_the_head_and_its_times(path: Path) -> None:
    witness.append(path, [a_note()])
    assert path.read_text() == (
        '{"tournament":7,"slug":"cup-7","sequence":1,"digest":"' + "00" * 32 + '",'
        '"recorded_at":"2024-02-29T12:30:01.000005Z","noted_at":"2024-02-29T12:30:01.000005Z"}\n'
    )


def test_notes_are_appended_and_read_by_tournament_and_sequence(path: Path) -> None:
    witness.append(path, [a_note(7, 3), a_note(8, 1)])
    witness.append(path, [a_note(7, 2), a_note(7, 3)])
    witness.append(path, [])
    file = read(path)
    assert list(file.digests_of(TournamentId(7), Sequence(0))) == [noted(2, 0), noted(3, 0)]
    assert list(file.digests_of(TournamentId(7), Sequence(2))) == [noted(3, 0)]
    assert list(file.tournaments()) == [(7, "cup-7", 3), (8, "cup-8", 1)]
    assert (file.lines, file.unreadable, file.torn) == (4, 0, False)


def test_a_byte_order_mark_is_not_part_of_a_note(path: Path) -> None:
    witness.append(path, [a_note()])
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert (read(path).lines, read(path).unreadable) == (1, 0)


def test_two_digests_of_one_sequence_come_together(path: Path) -> None:
    witness.append(path, [a_note(7, 3, 1), a_note(7, 3, 2), a_note(7, 4, 2)])
    assert list(read(path).digests_of(TournamentId(7), Sequence(0))) == [noted(3, 1, 2), noted(4, 2)]


@pytest.mark.parametrize("page", [1, 2, 3])
def test_any_number_of_notes_is_read_in_chunks(path: Path, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "_PAGE", page + 1)
    monkeypatch.setattr(witness, "_CHUNK", page)
    witness.append(path, [a_note(7, n, b) for n in range(1, 20) for b in range(1 + n % 2)])
    assert list(read(path).digests_of(TournamentId(7), Sequence(0))) == [
        noted(n, *range(1 + n % 2)) for n in range(1, 20)
    ]


def test_what_was_appended_since_is_read_and_nothing_twice(path: Path) -> None:
    witness.append(path, [a_note(7, 1)])
    file = read(path)
    witness.append(path, [a_note(7, 2)])
    file.read()
    assert (file.lines, len(list(file.digests_of(TournamentId(7), Sequence(0))))) == (2, 2)


def test_a_line_that_a_crash_cut_off_is_reported_and_the_next_note_begins_a_line_of_its_own(path: Path) -> None:
    witness.append(path, [a_note(7, 1), a_note(7, 2)])
    path.write_bytes(path.read_bytes()[:-20])
    file = read(path)
    assert (file.lines, file.torn) == (1, True)
    witness.append(path, [a_note(7, 3)])
    file.read()
    assert (file.lines, file.torn, file.unreadable_lines) == (3, False, [2])
    assert list(file.digests_of(TournamentId(7), Sequence(0))) == [noted(1, 0), noted(3, 0)]


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "{}",
        "[]",
        "[" * 4_000,
        "\N{SNOWMAN}" * 3_000,
        msgspec.json.encode(msgspec.structs.replace(a_note(), sequence=2)).decode().replace(":2,", f":{2**64},"),
        msgspec.json.encode(a_note()).decode().replace("00" * 32, "00" * 31),
        msgspec.json.encode(a_note()).decode().replace("00" * 32, "zz" * 32),
        msgspec.json.encode(a_note()).decode().replace("00" * 32, "00 " * 21 + "0"),
    ],
)
def test_a_line_that_is_not_a_note_is_reported(path: Path, line: str) -> None:
    path.write_text(f"{line}\n", encoding="utf-8")
    assert (read(path).unreadable, read(path).unreadable_lines) == (1, [1])


STRANGE = {
    "a line of text": "root:x:0:0",
    "another object": "{}",
    "a line of a list of erasures": '{"tournament":7,"slug":"cup","competitor":1}',
    "a line that is nested too deeply": "[" * 4_000,
    "a line that is no text": "\udcff",
}


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("strange", STRANGE)
def test_only_a_file_of_notes_is_added_to(path: Path, strange: str, end: str) -> None:
    assert witness.last_noted(path) == {}
    witness.append(path, [a_note(7, 1), a_note(7, 2)])
    before = path.read_bytes()
    path.write_bytes(before + STRANGE[strange].encode(errors="surrogateescape") + end.encode())
    with pytest.raises(Unacceptable, match="is not a file of digests; nothing was added") as refused:
        witness.last_noted(path)
    assert [fault.field for fault in refused.value.faults] == ["line 3"]


@pytest.mark.parametrize("length", [1, 8, 14, 60])
def test_a_file_of_notes_with_a_line_that_is_cut_off_is_added_to(path: Path, length: int) -> None:
    witness.append(path, [a_note(7, 1)])
    path.write_bytes(path.read_bytes() + path.read_bytes()[:length])
    for _ in range(2):
        assert witness.last_noted(path) == {7: (1, a_note().digest)}
        witness.append(path, [a_note(7, 1)])
        assert list(read(path).tournaments()) == [(7, "cup-7", 1)]


@settings(unhurried, max_examples=150)
@given(rubbish=st.binary(max_size=200))
def test_no_rubbish_hides_a_note_or_becomes_one(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    path = tmp_path_factory.mktemp("notes") / "digests.ndjson"
    path.write_bytes(rubbish)
    witness.append(path, [a_note(7, 1)])
    assert list(read(path).tournaments()) == [(7, "cup-7", 1)]


async def test_heads_are_noted_as_they_are(database: Database, path: Path) -> None:
    arena, _ = await open_arena(database), await open_arena(database)
    async with database.connection() as connection:
        both = await witness.current_notes(connection)
        (one,) = await witness.current_notes(connection, arena.tournament_id)
        found = await heads.current(connection, [arena.tournament_id])
    assert both[0] == msgspec.structs.replace(one, noted_at=both[0].noted_at)
    assert len(both) == 2
    head = found[arena.tournament_id]
    assert (one.tournament, one.sequence, one.digest) == (arena.tournament_id, head.sequence, head.digest.hex())


async def test_only_heads_that_have_changed_are_noted_again_also_by_who_starts_again(
    database: Database, dsn: str, path: Path
) -> None:
    arena, other = await open_arena(database), await open_arena(database)

    def count() -> int:
        return len(path.read_text().splitlines()) if path.exists() else 0

    async def change() -> None:
        async with database.connection() as connection:
            tail = await tails.tail(connection, arena.tournament_id, heads.beginning(arena.tournament_id))
            await record(connection, arena.tournament_id, tail.events[1].event)

    for lines in (2, 3, 4):
        keeping = asyncio.create_task(witness.keep_noting(dsn, path, 0.01))
        await until(lambda wanted=lines: count() == wanted)  # type: ignore[misc]
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await change()
    assert len(list(read(path).digests_of(other.tournament_id, Sequence(0)))) == 1


async def test_a_witness_adds_to_no_file_of_others(database: Database, dsn: str, path: Path) -> None:
    await open_arena(database)
    await asyncio.to_thread(path.write_text, "mine\n")
    with capture_logs() as lines:
        keeping = asyncio.create_task(witness.keep_noting(dsn, path, 0.01))
        await until(lambda: [line for line in lines if line["event"] == "digests_failed"])
        assert await asyncio.to_thread(path.read_text) == "mine\n"
        await asyncio.to_thread(path.unlink)
        await until(path.exists)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_witness_that_cannot_write_continues_and_writes_when_it_can(
    database: Database, dsn: str, tmp_path: Path
) -> None:
    await open_arena(database)
    path = tmp_path / "later" / "digests.ndjson"
    with capture_logs() as lines:
        keeping = asyncio.create_task(witness.keep_noting(dsn, path, 0.01))
        await until(lambda: [line for line in lines if line["event"] == "digests_failed"])
        path.parent.mkdir()
        await until(path.exists)
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
