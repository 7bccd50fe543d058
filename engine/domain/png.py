"""Whether bytes are a PNG that every browser shows (ISO/IEC 15948).

Pure. Pixels are not kept: they are inflated a few rows at a time, up to the number that the header gives.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_CHUNK: Final = struct.Struct(">I4s")
_HEADER: Final = struct.Struct(">IIBBBBB")
_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""By colour type."""
_DEPTHS: Final = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_INDEXED: Final = 3
_GRAY: Final = (0, 4)
_COLORS_MAX: Final = 256
_PASSES: Final = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""For each pass of an interlaced picture: where its pixels begin, and the distance between them."""
_FILTERS: Final = bytes(range(5))
_INFLATED_BYTES: Final = 65_536


class Png(Struct, frozen=True):
    """The header fields of a whole PNG, and its compressed pixels."""

    width: int
    height: int
    depth: int
    color_type: int
    is_interlaced: bool
    compressed: bytes

    @property
    def has_its_pixels(self) -> bool:
        """Whether the compressed data has exactly the pixels of a picture of this size. The time grows with their
        number."""
        inflate, rest = zlib.decompressobj(), self.compressed
        try:
            for row_bytes, rows in self._parts():
                inflated = inflate.decompress(rest, row_bytes * rows)
                if len(inflated) < row_bytes * rows or inflated[::row_bytes].strip(_FILTERS):
                    return False
                rest = inflate.unconsumed_tail
            return not inflate.decompress(rest, 1) and inflate.eof and not inflate.unused_data
        except zlib.error:
            return False

    def _parts(self) -> Iterator[tuple[int, int]]:
        """For each part that is inflated at once: the bytes of a row, including its filter, and the number of rows."""
        bits = self.depth * _CHANNELS[self.color_type]
        for left, top, across, down in _PASSES if self.is_interlaced else ((0, 0, 1, 1),):
            width, height = -((left - self.width) // across), -((top - self.height) // down)
            if width > 0 and height > 0:
                row_bytes = (width * bits + 7) // 8 + 1
                most = max(_INFLATED_BYTES // row_bytes, 1)
                yield from [(row_bytes, min(most, height - row)) for row in range(0, height, most)]


def png_of(data: bytes) -> Png | None:
    """The PNG that the bytes consist of; None: they are not one, or something follows it. Does not check its pixels."""
    if not data.startswith(_SIGNATURE):
        return None
    chunks, at = [], len(_SIGNATURE)
    while at + _CHUNK.size <= len(data):
        length, kind = _CHUNK.unpack_from(data, at)
        end = at + _CHUNK.size + length
        if data[end : end + 4] != zlib.crc32(data[at + 4 : end]).to_bytes(4):
            return None
        chunks.append((kind, data[at + _CHUNK.size : end]))
        at = end + 4
    return _png(chunks) if at == len(data) else None


def _png(chunks: list[tuple[bytes, bytes]]) -> Png | None:
    kinds, of = [kind for kind, _ in chunks], dict(chunks)
    pieces = [content for kind, content in chunks if kind == b"IDAT"]
    expected = [b"IHDR", *[b"PLTE"] * (b"PLTE" in of), *[b"IDAT"] * len(pieces), b"IEND"]
    if not pieces or [kind for kind in kinds if not kind[:1].islower()] != expected:  # small letters: others may ignore
        return None
    first = kinds.index(b"IDAT")
    if kinds[0] != b"IHDR" or kinds[-1] != b"IEND" or kinds[first : first + len(pieces)] != [b"IDAT"] * len(pieces):
        return None
    if len(of[b"IHDR"]) != _HEADER.size or of[b"IEND"]:
        return None
    width, height, depth, color_type, compression, filtering, interlacing = _HEADER.unpack(of[b"IHDR"])
    if depth not in _DEPTHS.get(color_type, ()) or compression or filtering or interlacing > 1:
        return None
    if not _has_palette(of.get(b"PLTE"), color_type, depth):
        return None
    return Png(width, height, depth, color_type, bool(interlacing), b"".join(pieces))


def _has_palette(palette: bytes | None, color_type: int, depth: int) -> bool:
    """Whether there is a palette where it is needed, none where there must be none, and of a size that may be."""
    if palette is None:
        return color_type != _INDEXED
    colors_max = 2**depth if color_type == _INDEXED else _COLORS_MAX
    return color_type not in _GRAY and len(palette) % 3 == 0 and 1 <= len(palette) // 3 <= colors_max
