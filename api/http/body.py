"""The body of a request: bounded in size and time, and of one of two media types."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from aiohttp.http import HttpVersion11
from aiohttp.web_protocol import RequestPayloadError

from api.http.errors import BodyTooLarge, BodyTooSlow, MediaTypeUnsupported
from api.http.forms import BODY_BYTES_MAX, JSON_UNNAMED, Form, parse_form
from api.http.reply import JSON
from api.http.request import HttpRequest
from api.http.router import IncomingRequest
from engine.domain.errors import QueueFull, Unreadable

BODY_SECONDS_MAX: Final = 10.0
AWAITED_BYTES_MAX: Final = 134_217_728
"""Bytes of all incoming bodies of one process together. A body beyond that is answered 503."""
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_FORM: Final = "application/x-www-form-urlencoded"


class Bodies:
    """Reads the bodies that come to one process."""

    def __init__(self) -> None:
        self._awaited_bytes = 0  # announced by bodies that are still arriving

    async def form(
        self, incoming: IncomingRequest, parse_json: Callable[[bytes], Form], lists: frozenset[str] = frozenset()
    ) -> Form:
        """Returns the decoded fields of the body as `parse_form` does; for JSON, as `parse_json` does. Records the time
        at which the body was complete. Raises a suitable Unreadable, Unacceptable for fields that are repeated or of a
        wrong kind, and QueueFull."""
        request = incoming.request
        parse: Callable[[bytes], Form] = partial(parse_form, lists=lists)
        if request.headers.get("Content-Type") != _FORM or "Content-Encoding" in request.headers:
            if request.body == b"":
                return {}  # whatever some clients call it
            _refuse_other_media(request)
            if request.media_type[0] == JSON:
                parse = parse_json
        if request.body is not None:  # like most bodies
            return parse(request.body)
        length = request.content_length
        if length is not None and length > BODY_BYTES_MAX:
            raise _too_large()
        room = BODY_BYTES_MAX if length is None else length
        if self._awaited_bytes + room > AWAITED_BYTES_MAX:
            raise QueueFull
        self._awaited_bytes += room
        try:
            body = await _read(request, length)
            incoming.taken_at = time.monotonic()
            return parse(body)
        finally:
            self._awaited_bytes -= room


def form_here(request: HttpRequest, lists: frozenset[str]) -> Form | None:
    """As `Bodies.form`, for a form that arrived with its head, as small ones do; None: the body is something else."""
    headers = request.headers
    if request.body is None or headers.get("Content-Type") != _FORM or "Content-Encoding" in headers:
        return None
    return parse_form(request.body, lists)


async def _read(request: HttpRequest, length: int | None) -> bytes:
    """Reads a body of `length` bytes; None: it comes in chunks."""
    content = request.content
    if length is not None:
        content.set_read_chunk_size(max(1, length))  # the buffer takes all of it without a pause
    if "Expect" in request.headers and request.version >= HttpVersion11:
        request.connection.write(_CONTINUE)  # not earlier: a client whose request is refused need not send its body
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            while piece := await content.readany():
                body += piece
                if len(body) > BODY_BYTES_MAX:
                    raise _too_large()
                if length is None:
                    await asyncio.sleep(0)  # otherwise, a client that sends tiny chunks would occupy the event loop
    except TimeoutError as error:
        raise BodyTooSlow(f"The body did not arrive within {BODY_SECONDS_MAX:.0f} seconds; send it again.") from error
    except _BROKEN as error:
        raise _broken_off(error) from None
    request.is_read = True
    request.connection.body_came_apart()
    return bytes(body)


_BROKEN: Final = (ConnectionError, RequestPayloadError)


def _broken_off(error: BaseException) -> Unreadable:
    # The stream keeps the error. Its traceback would keep the frames it has passed, with all that was read, until the
    # next garbage collection.
    error.__traceback__ = None
    return Unreadable("The body is not what its headers announce; send it again.")


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"The body may have at most {BODY_BYTES_MAX} bytes; send less at a time.")


def _refuse_other_media(request: HttpRequest) -> None:
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise MediaTypeUnsupported("Send the body uncompressed, without Content-Encoding.")
    media_type, charset = request.media_type
    if media_type in (_FORM, JSON) and charset in ("", "utf-8", "utf8"):
        return
    looks_like_json = media_type != JSON and (request.body or b"").startswith(b"{")
    raise MediaTypeUnsupported(JSON_UNNAMED if looks_like_json else f"Send the body as {_FORM} or {JSON}, in UTF-8.")
