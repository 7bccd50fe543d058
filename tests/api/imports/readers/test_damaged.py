"""Damaged and hostile files: a clear refusal, or what is left of the file; never another exception, within bounds."""

import tracemalloc
import zipfile
from contextlib import suppress
from io import BytesIO

import pytest

from api.imports.bringing import Bringing
from api.imports.readers.recognising import read_file
from engine.domain.errors import Unacceptable, Unreadable
from engine.domain.steps import finished
from tests.api.imports.readers.damaged import FILES, damaged
from tests.api.imports.readers.test_files import refused
from tests.bounds import Bounds

NAMES = sorted(file.name for file in FILES.iterdir())
DAMAGED_MEMORY_BYTES = 16 * 2**20


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(4, 120), marks=pytest.mark.long)], ids=["some", "all"])
def test_a_damaged_file_is_refused_or_read(name: str, seeds: range) -> None:
    tracemalloc.start()
    try:
        for seed in seeds:
            with suppress(Unreadable, Unacceptable):
                _, brought = read_file(damaged(name, seed), name)
                assert finished(Bringing(brought, like="laps", dates="day-first").judged(name)).format == name
        assert tracemalloc.get_traced_memory()[1] < DAMAGED_MEMORY_BYTES
    finally:
        tracemalloc.stop()


def test_xml_that_could_name_entities_is_refused() -> None:
    text = '<!DOCTYPE ResultList [<!ENTITY a "aaaa">]><ResultList>&a;</ResultList>'
    assert refused(text, "x.xml") == [
        "The file declares a document type, and could name entities; such files are not read."
    ]


def test_xml_that_ends_too_early_is_refused_by_line() -> None:
    content = (FILES / "spring.xml").read_bytes()
    assert refused(content[: len(content) // 2], "x.xml")[0] == "The file is not XML."
    assert refused(content[: len(content) // 2], "x.xml")[1].startswith("line 2")


@pytest.mark.parametrize("text", ["<a>" * 60 + "</a>" * 60, "<a>" + "<b/>" * 200 + "</a>"], ids=["deep", "many"])
def test_elements_are_bounded_in_depth_and_number(text: str, bounds: Bounds) -> None:
    bounds(ELEMENTS_MAX=100)
    text = text.replace("a>", "ResultList>")
    assert refused(text, "x.xml") == ["The file has more than 100 elements, or they are nested too deeply."]


def test_a_tag_is_bounded(bounds: Bounds) -> None:
    bounds(TOKEN_BYTES_MAX=100_000)
    text = "<ResultList " + " ".join(f'a{n}=""' for n in range(40_000)) + "/>"
    assert refused(text, "x.xml") == ["The file has a tag or comment of more than 100,000 bytes."]


def test_an_archive_is_bounded_before_it_is_unpacked(bounds: Bounds) -> None:
    bounds(UNPACKED_BYTES_MAX=1_000_000, MEMBERS_MAX=10)
    assert refused(_archive({"bomb.lef": b"\0" * 1_000_001}), "x.lxf") == [
        "The archive unpacks to more than 1,000,000 bytes."
    ]
    assert refused(_archive({f"{n}.lef": b"" for n in range(11)}), "x.lxf") == ["The archive has more than 10 files."]


def _archive(members: dict[str, bytes]) -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_a_file_is_bounded(bounds: Bounds) -> None:
    bounds(FILE_BYTES_MAX=10)
    assert refused("x" * 11, "x.csv") == ["The file has more than 10 bytes."]
