"""Members of ZIP archives, within bounds. Pure."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Final

from engine.domain.errors import Unreadable

UNPACKED_BYTES_MAX: Final = 128 * 2**20
"""Bytes of all members of an archive together, unpacked."""
MEMBERS_MAX: Final = 1_000
DAMAGE: Final = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, NotImplementedError, RuntimeError, ValueError)
"""What the standard library raises for damaged, encrypted and unusual archives."""
_ENTRY: Final = b"PK\x01\x02"
_CHUNK_BYTES: Final = 65_536


def checked(content: bytes) -> zipfile.ZipFile:
    """The archive, whose members unpack within the bounds. Python unpacks no more of a member than its entry says.
    Raises Unreadable."""
    if content.count(_ENTRY) > MEMBERS_MAX:
        raise Unreadable(f"The archive has more than {MEMBERS_MAX:,} files.")
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except DAMAGE as error:
        raise Unreadable(f"The file is damaged: it is not a complete archive ({error}).") from error
    if sum(member.file_size for member in archive.infolist()) > UNPACKED_BYTES_MAX:
        raise Unreadable(f"The archive unpacks to more than {UNPACKED_BYTES_MAX:,} bytes.")
    return archive


def member(content: bytes, wanted: Callable[[str], bool]) -> bytes:
    """The first member of the archive whose name is `wanted`. Raises Unreadable."""
    archive = checked(content)
    for name in archive.namelist():
        if wanted(name):
            return b"".join(unpacked(archive, name))
    raise Unreadable("The archive does not contain what such files contain.")


def unpacked(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """The member in chunks. Raises Unreadable."""
    try:
        with archive.open(name) as opened:
            while chunk := opened.read(_CHUNK_BYTES):
                yield chunk
    except DAMAGE as error:
        raise Unreadable(f"The file is damaged: {name!r} cannot be unpacked ({error}).") from error
