"""Encodes answers as the client accepts: gzip or identity. Also answers conditional reads, which depend on the
encoding.

Each encoding of an answer has its own ETag: the compressed bytes have that of the plain bytes, with a suffix. Only
answers without secrets come here (THREAT_MODEL.md says why): 200s of GETs of tournaments, and the documentation.

A short answer is compressed as a whole, in another thread if it is not small, once for all requests, and kept. A long
one is compressed while it is sent, and flushed after each chunk, so that readers get everything rendered so far. It is
also kept, unless it is very long, once the first reader has received all of it.
"""

import asyncio
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from api.http.outgoing import CHUNK_BYTES, Long, Outgoing, Taken
from api.http.preferences import Encodings, accepted_encodings
from api.http.reply import JSON, REVALIDATED_BY_CLIENT, Reply, header
from api.http.request import HttpRequest

PLAIN_BYTES_MAX: Final = 1_024
"""A body of up to this size is sent as it is. It fits into one packet with its head."""
AT_ONCE_BYTES_MAX: Final = 65_536
"""A body of up to this size is compressed on the event loop, in some 0.4 ms; a larger one in another thread."""
COMPRESSING_MAX: Final = 8
"""Bodies that threads compress or that wait for one. Further ones are sent as they are."""
COMPRESSED_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of compressed bodies that a process keeps. The least recently used ones are dropped first."""
STREAM_BYTES_MAX: Final = COMPRESSED_BYTES_MAX // 8
"""Compressed bytes of a long answer that is kept. COMPRESSING_MAX of them are gathered at once."""
SUFFIX: Final = "-gzip"
"""The end of a compressed answer's ETag. If-Match compares only the part before the first dash."""

LEVEL: Final = 1
"""For zlib. Level 6 saves another fifth of the bytes, and takes two to nine times as long."""
_WINDOW_BITS: Final = 16 + 13
"""For zlib: gzip's format, and a window of 8 KB. Answers repeat nearby text."""
_MEMORY_LEVEL: Final = 6
"""For zlib. With this window and memory, a compressor of a small body is ready in a fifth of the time that the largest
take, and compresses as well."""
_COMPRESSOR_BYTES: Final = 75_000
"""Bytes of a compressor in memory."""
_OVERHEAD_BYTES: Final = 400
"""The overhead of a kept body in addition to its bytes and its key."""
_NEGOTIATED: Final = header("Vary", "Accept-Encoding")
_AS_IT_IS: Final = Encodings()
_COMPRESSED: Final = header("Content-Encoding", "gzip")

_Key = tuple[str, str]
"""The path of a resource and an ETag, which together name a body."""


class Compression:
    """Compresses the answers of one process. `outgoing`: the account of the memory that answers hold while they are
    sent."""

    def __init__(self, outgoing: Outgoing, *, kept_bytes_max: int = COMPRESSED_BYTES_MAX) -> None:
        self.kept_bytes = 0
        self._kept_bytes_max = kept_bytes_max
        self._outgoing = outgoing
        self._kept: dict[_Key, bytes] = {}  # the last one used stands last
        self._making: dict[object, asyncio.Future[bytes]] = {}
        self._gathering: set[_Key] = set()

    def reply_at_hand(
        self,
        request: HttpRequest,
        body: bytes | Long,
        *,
        etag: str | None = None,
        media_type: str = JSON,
        headers: str = "",
        kept: str = REVALIDATED_BY_CLIENT,
    ) -> Reply | None:
        """As `reply`, if that needs no compressing; None: it does."""
        stated = request.headers
        accepted = accepted_encodings(stated.getall("Accept-Encoding")) if "Accept-Encoding" in stated else _AS_IT_IS
        is_plain = not accepted.gzip or (isinstance(body, bytes) and len(body) <= PLAIN_BYTES_MAX and accepted.identity)
        if etag is not None and "If-None-Match" in stated:
            if not is_plain and _has(request, etag + SUFFIX):
                return Reply(b"", code=304, headers=f"{headers}{_NEGOTIATED}{_etag(etag + SUFFIX)}", kept=kept)
            if (is_plain or accepted.identity) and _has(request, etag):
                return Reply(b"", code=304, headers=f"{headers}{_NEGOTIATED}{_etag(etag)}", kept=kept)
        if is_plain:
            return _plain(body, etag, media_type, headers, kept)
        made = None if etag is None else self._found((request.path, etag))
        return None if made is None else _packed(made, etag, media_type, headers, kept)

    async def reply(
        self,
        request: HttpRequest,
        body: bytes | Long,
        *,
        etag: str | None = None,
        media_type: str = JSON,
        headers: str = "",
        kept: str = REVALIDATED_BY_CLIENT,
        is_fixed: bool = False,
    ) -> Reply:
        """A 200 with the body in the encoding that the client prefers, or 304 if the client already has these bytes in
        an encoding that it accepts. `etag`: that of the plain body. The compressed form of a body with an ETag is kept.
        `is_fixed`: the body is the same as long as the process runs, so it is made as small as zlib can. Raises
        QueueFull as `Outgoing.begun` does."""
        reply = self.reply_at_hand(request, body, etag=etag, media_type=media_type, headers=headers, kept=kept)
        if reply is not None:
            return reply
        key = None if etag is None else (request.path, etag)
        made = await (self._long(key, body) if isinstance(body, Long) else self._short(key, body, is_fixed=is_fixed))
        if made is None:
            return _plain(body, etag, media_type, headers, kept)
        return _packed(made, etag, media_type, headers, kept)

    def _found(self, key: _Key) -> bytes | None:
        """The compressed body if it is kept."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept[key] = kept
        return kept

    async def _long(self, key: _Key | None, long: Long) -> Long:
        """The compressed answer, which holds the plain one."""

        def make() -> Iterator[bytes]:
            chunks = compressed_chunks(long.chunks())
            return chunks if key is None else self._gathered(key, chunks)

        made = Long(make, (Taken(_COMPRESSOR_BYTES),), end=b"", etag=long.etag)
        return await self._outgoing.begun(lambda: made)

    def _gathered(self, key: _Key, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks; kept as one body when all have been made, if there was room to gather them."""
        if key in self._gathering or len(self._gathering) >= COMPRESSING_MAX:
            yield from chunks
            return
        self._gathering.add(key)
        gathered: list[bytes] = []
        size_bytes = 0
        try:
            for chunk in chunks:
                size_bytes += len(chunk)
                if size_bytes > STREAM_BYTES_MAX:
                    gathered.clear()
                elif chunk:
                    gathered.append(chunk)
                yield chunk
        finally:
            self._gathering.discard(key)
        if gathered:
            self._keep(key, b"".join(gathered))

    async def _short(self, key: _Key | None, body: bytes, *, is_fixed: bool) -> bytes | None:
        """The compressed body; None: too many are being compressed."""
        if len(body) <= AT_ONCE_BYTES_MAX:
            made = compressed(body)
            self._keep(key, made)
            return made
        making = self._making.get(key)
        if making is None:
            if len(self._making) >= COMPRESSING_MAX:
                return None
            making = asyncio.get_running_loop().run_in_executor(None, smallest if is_fixed else compressed, body)
            name = object() if key is None else key
            self._making[name] = making
            making.add_done_callback(partial(self._made, name, key))
        return await asyncio.shield(making)  # others may wait for it too

    def _made(self, name: object, key: _Key | None, making: "asyncio.Future[bytes]") -> None:
        del self._making[name]
        if not making.cancelled() and making.exception() is None:
            self._keep(key, making.result())

    def _keep(self, key: _Key | None, made: bytes) -> None:
        if key is None:
            return
        with suppress(KeyError):
            self.kept_bytes -= _size_bytes(key, self._kept.pop(key))
        self._kept[key] = made
        self.kept_bytes += _size_bytes(key, made)
        while self.kept_bytes > self._kept_bytes_max:
            first = next(iter(self._kept))
            self.kept_bytes -= _size_bytes(first, self._kept.pop(first))


def _plain(body: bytes | Long, etag: str | None, media_type: str, headers: str, kept: str) -> Reply:
    tag = "" if etag is None else f'ETag: "{etag}"\r\n'
    return Reply(body, media_type=media_type, headers=f"{headers}{_NEGOTIATED}{tag}", kept=kept)


def _packed(made: bytes | Long, etag: str | None, media_type: str, headers: str, kept: str) -> Reply:
    tag = "" if etag is None else _etag(etag + SUFFIX)
    return Reply(made, media_type=media_type, headers=f"{headers}{_NEGOTIATED}{_COMPRESSED}{tag}", kept=kept)


def compressed(body: bytes) -> bytes:
    """The body in gzip's format, the same bytes each time. Other threads run meanwhile."""
    compressor = _compressor()
    return compressor.compress(body) + compressor.flush()


def smallest(body: bytes) -> bytes:
    """As `compressed`, in ten times the time."""
    return gzip.compress(body, 9, mtime=0)


def compressed_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks as one body in gzip's format; each step compresses CHUNK_BYTES at most. After each, a reader can
    decompress everything so far."""
    compressor = _compressor()
    unflushed_bytes = 0
    for chunk in chunks:
        for start in range(0, len(chunk) or 1, CHUNK_BYTES):
            part = chunk[start : start + CHUNK_BYTES]
            made = compressor.compress(part)
            unflushed_bytes += len(part)
            if unflushed_bytes >= CHUNK_BYTES:
                made += compressor.flush(zlib.Z_SYNC_FLUSH)
                unflushed_bytes = 0
            yield made
    yield compressor.flush()


def _compressor() -> "zlib._Compress":
    return zlib.compressobj(LEVEL, wbits=_WINDOW_BITS, memLevel=_MEMORY_LEVEL)


def _has(request: HttpRequest, etag: str) -> bool:
    """Whether If-None-Match names the ETag. It is compared weakly, as that header demands."""
    named = request.headers["If-None-Match"]
    position = 0
    while found := _TAG.match(named, position):
        if found[1] == etag:
            return True
        position = found.end()
    return named == "*"


_TAG: Final = re.compile(r'(?:W/)?"([!\x23-\x7e\x80-\xff]*)"[ \t]*(?:,[ \t]*|\Z)')


def _etag(etag: str) -> str:
    return header("ETag", f'"{etag}"')


def _size_bytes(key: _Key, body: bytes) -> int:
    return len(body) + sum(map(len, key)) + _OVERHEAD_BYTES
