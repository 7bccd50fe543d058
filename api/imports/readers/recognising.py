"""Which reader reads a file: by what the file begins with, else by its suffix.

Readers of others are entry points of the group `tallybook.readers`; each is a `FileReader`. They are asked first, so
that they can also replace one of these.
"""

from importlib.metadata import entry_points
from typing import Final

from api.imports.readers.brought import FILE_BYTES_MAX, Brought, FileReader
from api.imports.readers.clics import CLICS, SCOREBOARD
from api.imports.readers.football_json import FOOTBALL_JSON
from api.imports.readers.iof import IOF
from api.imports.readers.lenex import LENEX
from api.imports.readers.sheets import CSV_READER, ODS_READER, XLSX_READER
from api.imports.readers.srk import SRK
from api.imports.readers.trf import TRF
from engine.domain.errors import Unreadable

READERS: Final = (IOF, LENEX, XLSX_READER, ODS_READER, CLICS, SCOREBOARD, SRK, FOOTBALL_JSON, TRF, CSV_READER)
GROUP: Final = "tallybook.readers"
_HEAD_BYTES: Final = 4_096


def read_file(content: bytes, file_name: str) -> tuple[FileReader, Brought]:
    """The reader of the file, and what it would make. Raises Unreadable."""
    if len(content) > FILE_BYTES_MAX:
        raise Unreadable(f"The file has more than {FILE_BYTES_MAX:,} bytes.")
    if not content:
        raise Unreadable("The file is empty.")
    reader = _reader_of(content, file_name)
    return reader, reader.read(content)


def _reader_of(content: bytes, file_name: str) -> FileReader:
    """Archives say what they hold at their end, too."""
    head = content[:_HEAD_BYTES] + (content[-_HEAD_BYTES:] if content.startswith(b"PK") else b"")
    readers: list[FileReader] = [*(point.load() for point in entry_points(group=GROUP)), *READERS]
    for reader in readers:
        if reader.recognises(head):
            return reader
    suffix = "." + file_name.rpartition(".")[2].lower()
    by_suffix = [reader for reader in readers if suffix in reader.suffixes]
    if len(by_suffix) == 1:
        return by_suffix[0]
    known = ", ".join(sorted({f"{reader.name} ({', '.join(reader.suffixes)})" for reader in readers}))
    raise Unreadable(f"The file is in none of the known formats: {known}. An older .xls must be saved as .xlsx.")
