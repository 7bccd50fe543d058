"""The harness of `make stalls` asks everything, and is answered. How long that takes, it says itself, on an idle
machine."""

import asyncio

import asyncpg
import pytest

from api.interface.declarations import Write
from api.interface.operations import OPERATIONS
from assurance.stalls.asked import NOT_ASKED, READ
from assurance.stalls.measuring import asked_of, measured, routes_of
from assurance.stalls.worlds import Scale, crowd

SMALL = Scale(
    competitors=20, rankings=5, teams=6, deltas=200, events=80, alike=10, former=3, characters=100, lines=20, items=4
)


async def test_every_address_and_every_change_is_asked(dsn: str) -> None:
    routes = await routes_of(dsn)
    asked = asked_of("crowd", "{tournament}", SMALL, crowd(SMALL), routes)
    read = {one.name.split()[1] for one in asked if one.method == READ}
    left = {template for template, methods in routes.items() if READ in methods} - read
    assert all(any(part in template for part in NOT_ASKED) for template in left), left
    changed = {(one.method, one.target.partition("}/")[2]) for one in asked if one.method != READ}
    for operation in OPERATIONS:
        if isinstance(operation, Write):
            assert any(method == operation.method and is_of(operation.path, path) for method, path in changed), (
                operation.path
            )


def is_of(template: str, path: str) -> bool:
    parts = [*zip(template.split("/"), path.split("/"), strict=False)]
    return template.count("/") == path.count("/") and all(
        one == other or (one.startswith("{") and other.partition(".")[0].isdigit()) for one, other in parts
    )


@pytest.mark.parametrize("only", ["import of", " PUT ", pytest.param("GET", marks=pytest.mark.long)])
async def test_everything_is_answered(dsn: str, owner: asyncpg.Connection, only: str) -> None:
    await owner.execute("SELECT setval('tallybook.resource_id', 100000000)")
    found = await asyncio.to_thread(measured, dsn, SMALL, only=only)
    assert [one for one in found if one.status >= 500] == []
    assert [one.name for one in found if one.status == 200]
