"""The body of a request: bounded in size and time, of the one media type there is."""

import asyncio
from typing import Final

from aiohttp import HttpVersion11, web

from api.forms import BODY_BYTES_MAX, Form, parse_form
from engine.errors import BodyTooLarge, BodyTooSlow, MediaTypeUnsupported, Unreadable

BODY_SECONDS_MAX: Final = 10.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_FORM: Final = "application/x-www-form-urlencoded"


async def read_form(request: web.BaseRequest) -> Form:
    """The decoded fields of the body. Raises an Unreadable of the kind that fits."""
    if request.headers.get("Content-Type") != _FORM or "Content-Encoding" in request.headers:
        _refuse_other_media(request)
    try:
        if request.content.is_eof():  # it is here already, as bodies of ordinary size are
            return parse_form(request.content.read_nowait())
        return parse_form(await _read(request))
    except (web.RequestPayloadError, ConnectionError) as error:  # it is cut off, or was never whole
        raise Unreadable("The body is not what its headers announce; send it again.") from error


async def _read(request: web.BaseRequest) -> bytes:
    content, length = request.content, request.content_length
    if length is not None:
        if length > BODY_BYTES_MAX:
            raise _too_large()
        content.set_read_chunk_size(max(1, length))  # it comes whole, without being stopped on its way
    if "Expect" in request.headers and request.version >= HttpVersion11:
        await request.writer.write(_CONTINUE)  # only now: of what is refused anyway, the body need not be sent
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS_MAX):
            while piece := await content.readany():
                body += piece
                if len(body) > BODY_BYTES_MAX:
                    raise _too_large()
                if length is None:
                    await asyncio.sleep(0)  # or who sends tiny chunks would have the event loop for itself
    except TimeoutError as error:
        raise BodyTooSlow(f"The body did not come within {BODY_SECONDS_MAX:.0f} seconds; send it again.") from error
    return bytes(body)


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"The body may have at most {BODY_BYTES_MAX} bytes; send less at a time.")


def _refuse_other_media(request: web.BaseRequest) -> None:
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise MediaTypeUnsupported("Send the body as it is, without Content-Encoding.")
    if request.content_type == _FORM and (request.charset or "utf-8").lower() in ("utf-8", "utf8"):
        return
    if "Content-Type" in request.headers or request.can_read_body:
        raise MediaTypeUnsupported(f"Send the body as {_FORM}, in UTF-8.")
