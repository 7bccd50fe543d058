"""The events of a tournament, followed across connections: each once, in their order, without gaps."""

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any, Final

import msgspec
from aiohttp import ClientError, StreamReader
from msgspec import Struct

from tallybook_client.errors import Unavailable
from tallybook_client.sending import Attempts, Request, Sender, failure_of, lost

LINE_BYTES_MAX: Final = 16 * 2**20
"""A request has 1 MiB at most; an event repeats a part of one."""


class Recorded(Struct, frozen=True, kw_only=True):
    """An event of the log. `kind` is its name (`PointsAdded`), `data` its content; an absent field has its default.
    `id`: pass it as `after` to continue after this event."""

    id: str
    kind: str
    sequence: int
    recorded_at: datetime
    actor: int
    data: dict[str, Any]


class SetAside(Struct, frozen=True, kw_only=True):
    """Replaces an event that was set aside: there is nothing to fold."""

    id: str
    sequence: int
    recorded_at: datetime
    actor: int


class CaughtUp(Struct, frozen=True, kw_only=True):
    """You have received everything up to the sequence `head`. `digest` is that of its block."""

    id: str
    head: int
    digest: str


class Position(Struct, frozen=True, kw_only=True):
    """You have received everything that the filter lets through, up to this sequence."""

    id: str
    sequence: int


class Reset(Struct, frozen=True, kw_only=True):
    """Forget what you have folded: the log was replaced, or an event of it was set aside. The next event is the first
    of the log."""

    head: int
    digest: str


StreamEvent = Recorded | SetAside | CaughtUp | Position | Reset


class _Line(Struct, frozen=True):
    id: str
    event: str
    data: dict[str, Any]


_decode: Final = msgspec.json.Decoder(_Line).decode
_BESIDE_THE_LOG: Final[dict[str, type[CaughtUp | Position | Reset | SetAside]]] = {
    "caught-up": CaughtUp,
    "position": Position,
    "reset": Reset,
    "set-aside": SetAside,
}
_NDJSON: Final = {"Accept": "application/x-ndjson"}


async def follow(
    sender: Sender, path: str, query: dict[str, str], after: int | str | None
) -> AsyncGenerator[StreamEvent, None]:
    """The events after `after`: an id, a sequence, "head" or None for all. It never ends on its own.

    When a connection ends, it is reopened after the last id, with growing pauses. The patience begins when it is lost.
    Raises Refused, and Unavailable when the patience runs out.
    """
    last = None if after is None else str(after)
    attempts: Attempts | None = Attempts(sender.patience)
    while True:
        there = query if last is None else {**query, "after": last}
        failure = Unavailable("the stream ended")
        try:
            async with sender.open(Request(method="GET", path=path, query=there, headers=_NDJSON)) as response:
                sender.reached = True
                if response.status != 200:
                    refused = failure_of(response, await response.read())
                    if not isinstance(refused, Unavailable):
                        raise refused
                    failure = refused
                else:
                    async for line in _lines(response.content):
                        attempts = None
                        event = _event(line)
                        if event is not None:
                            last = None if isinstance(event, Reset) else event.id
                            yield event
        except (ClientError, TimeoutError) as error:
            failure = lost(error)
        attempts = attempts or Attempts(sender.patience)
        if not await attempts.pause(failure.retry_after_seconds, reached=sender.reached):
            raise failure


async def _lines(content: StreamReader) -> AsyncGenerator[bytes, None]:
    """The complete lines. Anything after the last one was cut off."""
    rest = b""
    async for piece in content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > LINE_BYTES_MAX:
            raise ClientError(f"a line of more than {LINE_BYTES_MAX} bytes")
        for line in lines:
            yield line


def _event(line: bytes) -> StreamEvent | None:
    """None: a keep-alive, or something that this version does not know."""
    if not line:
        return None
    said = _decode(line)
    is_of_log = said.event[:1].isupper()
    shape: type[StreamEvent] | None = Recorded if is_of_log else _BESIDE_THE_LOG.get(said.event)
    if shape is None:
        return None
    return msgspec.convert({**said.data, "id": said.id, "kind": said.event, "data": said.data}, shape)
