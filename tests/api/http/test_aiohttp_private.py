"""What aiohttp does not document and we use is there, and is used in one module alone."""

import re

import pytest
from aiohttp import StreamReader, web, web_protocol

from api.http.aiohttp_private import PRIVATE, parser_is_in_c
from tests.project import ROOT

API = ROOT / "api"
OF_HANDLERS = PRIVATE[web.RequestHandler]
OF_BODIES = PRIVATE[StreamReader]


@pytest.mark.parametrize("name", OF_HANDLERS)
def test_a_handler_of_aiohttps_has_it(name: str) -> None:
    assert hasattr(web.RequestHandler, name), f"this version of aiohttp has no RequestHandler.{name}"


@pytest.mark.parametrize("name", OF_BODIES)
def test_a_body_of_aiohttps_has_it(name: str) -> None:
    assert hasattr(StreamReader, name), f"this version of aiohttp has no StreamReader.{name}"


async def test_a_server_of_aiohttps_has_them() -> None:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError

    server = web.Server(answer)
    for name in PRIVATE[web.Server]:
        assert hasattr(server, name), f"this version of aiohttp has no Server.{name}"


def test_aiohttp_says_by_one_type_that_a_head_cannot_be_read() -> None:
    assert web_protocol._ErrInfo(status=400, exc=ValueError(), message="").status == 400


def test_requests_are_parsed_in_c() -> None:
    assert parser_is_in_c()


def test_no_other_module_uses_them() -> None:
    of_handlers = "|".join({*OF_HANDLERS} - {"_loop", "_close"})  # which classes of ours have, too
    private = re.compile(rf"\.({of_handlers})\b|content\.({'|'.join(OF_BODIES)})\b|_ErrInfo|aiohttp\.streams")
    using = {path.name for path in API.rglob("*.py") if private.search(path.read_text(encoding="utf-8"))}
    assert using == {"aiohttp_private.py"}
