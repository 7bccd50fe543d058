"""Lists of erasures: every line is judged, with its number and a reason, and only such a list is added to."""

import codecs
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.database.pool import Database
from engine.domain.errors import Unacceptable
from engine.domain.events import CompetitorRegistered
from engine.domain.terms import OPERATOR, CompetitorId, TournamentId
from projections.verification import erasures
from projections.verification.erasures import FAULTS_SHOWN_MAX, LINE_BYTES_MAX, Erasure, Unread, kept_in, listed
from tests.bounds import Bounds
from tests.desks import record
from tests.tournaments import open_new_tournament

ERASURE: Final = Erasure(
    tournament=TournamentId(7),
    slug="cup",
    competitor=CompetitorId(12),
    registered_at=datetime(2026, 5, 2, tzinfo=UTC),
    erased_at=datetime(2026, 5, 3, tzinfo=UTC),
)
LINE: Final = msgspec.json.encode(ERASURE)


def line(**changed: Any) -> bytes:
    return json.dumps(json.loads(LINE) | changed).encode()


_NEST: Final = b"[" * 2_000 + b"]" * 2_000
try:
    msgspec.json.decode(_NEST)
    _DEEP = "slug"  # Python bounds the memory of a nest, or its depth at 10,000: from some release of 3.13 on
except RecursionError:
    _DEEP = "nested"
STRANGE: Final = {
    "an id beyond 64 bits": (line(competitor=2**70), "competitor"),
    "an id beyond those of competitors": (line(competitor=2**63), "competitor"),
    "an id of nobody": (line(competitor=0), "competitor"),
    "a tournament beyond 64 bits": (line(tournament=2**64), "tournament"),
    "a negative tournament": (line(tournament=-1), "tournament"),
    "an id that is no whole number": (line(competitor=1.5), "competitor"),
    "a time without a zone": (line(registered_at="2026-05-02T00:00:00"), "registered_at"),
    "a time of no calendar": (line(erased_at="2026-02-30T00:00:00Z"), "erased_at"),
    "no slug": (line(slug="\x1b[2J"), "slug must be lower-case"),
    "a field too few": (b'{"tournament":7}', "slug"),
    "a note of a digest": (b'{"tournament":7,"slug":"cup","sequence":3,"digest":"00"}', "competitor"),
    "no object": (b"[]", "object"),
    "no JSON": (b"name,tags", "malformed"),
    "no UTF-8": (b'{"tournament":7,"slug":"\xff"}', "utf-8"),
    "a line that is cut off": (LINE[:40], "malformed"),
    "a deep nest": (b'{"tournament":7,"x":' + _NEST + b"}", _DEEP),
    "a long line": (line(x="x" * LINE_BYTES_MAX), "4,096"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "erasures"


@pytest.mark.parametrize("strange", STRANGE)
def test_a_line_that_is_not_an_erasure_is_reported_with_its_number_and_the_reason(path: Path, strange: str) -> None:
    said, reason = STRANGE[strange]
    path.write_bytes(b"\n".join([LINE, b"", said, LINE]))
    first, wrong, last = listed(path)
    assert (first, last) == ((1, ERASURE), (4, ERASURE))
    assert wrong[0] == 3
    assert isinstance(wrong[1], Unread)
    assert reason in wrong[1].reason


@given(st.binary(max_size=5_000).filter(lambda rubbish: b"\n" not in rubbish))
def test_no_rubbish_hides_an_erasure_or_becomes_one(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    path = tmp_path_factory.mktemp("rubbish") / "erasures"
    path.write_bytes(b"\n".join([LINE, rubbish, LINE]))
    first, *wrong, last = listed(path)
    assert (first, last) == ((1, ERASURE), (3, ERASURE))
    assert all(isinstance(found, Unread) for _, found in wrong)


def test_a_byte_order_mark_before_the_first_line_is_not_part_of_it(path: Path) -> None:
    path.write_bytes(codecs.BOM_UTF8 + LINE + b"\n" + codecs.BOM_UTF8 + LINE + b"\n")
    (_, first), (_, second) = listed(path)
    assert (first, isinstance(second, Unread)) == (ERASURE, True)
    longest = LINE.ljust(LINE_BYTES_MAX)
    path.write_bytes(codecs.BOM_UTF8 + longest)
    assert listed(path) == [(1, ERASURE)]


@pytest.mark.parametrize("strange", STRANGE)
def test_only_a_list_of_erasures_is_added_to(path: Path, strange: str) -> None:
    said, reason = STRANGE[strange]
    assert kept_in(path) == set()
    for length in (1, 40):
        path.write_bytes(LINE + b"\n" + LINE[:length] + b"\n")
        assert kept_in(path) == {ERASURE}
    path.write_bytes(LINE + b"\n" + said + b"\n")
    if strange == "a line that is cut off":
        assert kept_in(path) == {ERASURE}
        return
    with pytest.raises(Unacceptable, match="not a list of erasures") as refused:
        kept_in(path)
    (fault,) = refused.value.faults
    assert (fault.field, reason in fault.message) == ("line 2", True)


def test_of_many_wrong_lines_the_first_are_named(path: Path) -> None:
    path.write_bytes(b"x\n" * 1_000)
    with pytest.raises(Unacceptable) as refused:
        kept_in(path)
    assert [fault.field for fault in refused.value.faults] == [f"line {n + 1}" for n in range(FAULTS_SHOWN_MAX)]


async def test_a_list_names_all_who_were_erased_however_few_events_one_statement_reads(
    database: Database, bounds: Bounds
) -> None:
    bounds(READ_EVENTS_AT_ONCE=2)
    for erased in ([1, 2, 5, 6, 7], []):
        tournament_id = await open_new_tournament(database, actor=OPERATOR)
        async with database.connection() as connection:
            for number in range(1, 8):
                registered = CompetitorRegistered(competitor_id=CompetitorId(number), name=f"Number {number}")
                await record(connection, tournament_id, registered)
        for number in erased:
            await erasures.erase_in_log(database, tournament_id, CompetitorId(number))
        found = [one.competitor async for one in erasures.erasures(database) if one.tournament == tournament_id]
        assert found == erased
