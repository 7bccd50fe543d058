"""What is written of the Python client does what it says: its examples are run as they stand."""

import asyncio
import re
import textwrap
from pathlib import Path
from typing import Any, Final

import pytest

from api.webhooks.message import secret_text
from tallybook_client import CaughtUp, Client, StreamEvent
from tests.api.clients.signed import BODY, KEY, sent
from tests.service import Season, Service, totals

ROOT: Final = Path(__file__).parents[3]
CLIENT_README: Final = ROOT / "clients" / "python" / "README.md"
DEMO: Final = ("http://localhost:8080", "thursday-league")
"""Where the service of the README's examples is, and its tournament."""


def examples(page: Path) -> list[str]:
    found: list[str] = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return found


async def run(code: str, **names: object) -> dict[str, Any]:
    """The local names of an example, run in a coroutine that is given these names."""
    space: dict[str, Any] = {}
    exec(f"async def example({', '.join(names)}):\n{textwrap.indent(code, '    ')}\n    return locals()", space)
    found: dict[str, Any] = await space["example"](**names)
    return found


class CaughtUpError(Exception):
    pass


def print_until_caught_up(event: StreamEvent) -> None:
    if isinstance(event, CaughtUp):
        raise CaughtUpError


async def test_the_example_of_the_project_adds_points_and_follows(service: Service, season: Season) -> None:
    (code,) = examples(ROOT / "README.md")
    for of_demo, here in zip(DEMO, (service.url, season.client.tournament), strict=True):
        assert of_demo in code
        code = code.replace(of_demo, here)
    names = {"league": season.ranking_id, "harbour": season.ids[0], "points": season.unity_id}
    with pytest.raises(CaughtUpError):
        await run(code, token=season.client.token, print=print_until_caught_up, **names)
    assert totals(await season.client.get(f"{season.path}/standings.json"))[season.ids[0]] == 5


async def test_the_examples_of_the_client(service: Service, season: Season) -> None:
    first, synchronous, following, webhook = examples(CLIENT_README)
    here = {"address": service.url, "token": season.client.token, "slug": season.client.tournament}
    printed: list[tuple[object, ...]] = []
    ana = (await run(first, **here, print=lambda *values: printed.append(values)))["ana"]
    assert printed == [(1, ana.id, 3)]
    names: list[str] = []
    await asyncio.to_thread(exec, synchronous, {**here, "print": names.append})
    assert names == ["Ana"]
    async with Client(service.url, season.client.token or "") as client:
        found = await run(following, client=client, slug=season.client.tournament, last_id=None)
    assert found["last_id"] is not None
    assert (await run(webhook, secret=secret_text(KEY), headers=sent(), body=BODY))["status"] == 400  # it is old
