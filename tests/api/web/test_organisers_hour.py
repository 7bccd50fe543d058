"""An organiser's first hour in a real browser, page by page: a league from nothing to its second match day."""

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.api.web.browser import CHROMIUM
from tests.api.web.browsing import AXE, VIOLATIONS
from tests.service import Service, make_token

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install one, or name it in TALLYBOOK_CHROMIUM"),
    pytest.mark.timeout(240),
    pytest.mark.long,
]
PAGES_MAX: Final = 12
SECONDS_MAX: Final = 600
TEAMS: Final = ("Anchor", "Bakers", "Cobblers", "Dynamo", "Eagles", "Forge")
KEY_SECONDS, ACT_SECONDS, READ_SECONDS = 0.5, 4, 20
"""What takes somebody slow at it how long: a key on a phone; finding and touching something; reading a new page."""


class Hour:
    """Somebody at the console, and what it takes them. Each page is looked at by axe, and photographed."""

    def __init__(self, page: Page, folder: Path) -> None:
        self.page, self.pages, self.seconds, self.errors = page, 0, 0.0, list[str]()
        self._folder = folder
        page.on("load", self._count)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.note(said.text) if said.type == "error" else None)
        page.on("response", lambda answer: self.note(f"{answer.status} {answer.url}") if answer.status >= 400 else None)

    def _count(self, _page: Page) -> None:
        self.pages += 1

    def note(self, error: str) -> None:
        """Only the page for signing in is an answer to what was not allowed."""
        if self.pages:
            self.errors.append(error)

    async def seen(self, title: str) -> None:
        await expect(self.page.get_by_role("heading", level=1)).to_have_text(title)
        self.seconds += READ_SECONDS
        await self.page.screenshot(path=self._folder / f"{self.pages:02}.png", full_page=True, animations="disabled")
        await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = await self.page.evaluate(VIOLATIONS)
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], self.page.url
        width = await self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1], self.page.url

    async def type(self, into: Locator | str, text: str) -> None:
        self.seconds += ACT_SECONDS + len(text) * KEY_SECONDS
        await (self.page.get_by_label(into, exact=True) if isinstance(into, str) else into).fill(text)

    async def choose(self, among: Locator, value: str) -> None:
        self.seconds += 2 * ACT_SECONDS
        await among.select_option(value)

    async def press(self, name: str, then: str, *, role: str = "button") -> None:
        self.seconds += ACT_SECONDS
        async with self.page.expect_event("load"):
            await self.page.get_by_role(role, name=name, exact=True).click()  # type: ignore[arg-type]
        await self.seen(then)

    def match(self, home: str) -> Locator:
        return self.page.locator(".match").filter(has=self.page.locator(".home", has_text=home))

    async def score(self, home: str, ours: str, theirs: str) -> None:
        for side, text in ((".home-box", ours), (".away-box", theirs)):
            await self.type(self.match(home).locator(side), text)


async def begun(hour: Hour, url: str, token: str) -> None:
    """From nothing to a published league with its fixtures."""
    await hour.page.goto(f"{url}/console")
    await hour.seen("Sign in")
    hour.seconds += ACT_SECONDS  # it is pasted
    await hour.page.get_by_label("Token").fill(token)
    await hour.press("Sign in", "Create a tournament")
    await hour.type("Name", "Thursday Five-a-side")
    await hour.type("Time zone", "Europe/Madrid")
    await hour.press("Create it", "What is played")
    await hour.type("Who plays", "\n".join(TEAMS))
    await hour.press("Create", "Fixtures of Table")
    await hour.type("First round", f"{datetime.now(UTC) - timedelta(days=10):%Y-%m-%d}")
    await hour.type("Time", "19:00")
    await hour.type("Places", "Court 1\nCourt 2")
    await hour.type("Minutes for a match", "40")
    await hour.press("Make the matches", "Publish the tournament")
    await hour.press("Publish it", "Thursday Five-a-side")


@pytest.mark.parametrize("width", [390, 1280])
async def test_a_league_is_led_from_nothing_to_its_second_match_day_in_few_pages_and_minutes(
    service: Service, browser: Browser, log_lines: BytesIO, tmp_path: Path, width: int
) -> None:
    page = await (await browser.new_context(viewport={"width": width, "height": 844})).new_page()
    hour = Hour(page, tmp_path)
    await begun(hour, service.url, await make_token(service.database))
    await hour.press("Enter results", "Match day", role="link")
    await hour.score("Anchor", "2", "1")
    await hour.choose(hour.match("Bakers").get_by_label("How it ended"), "wo-2")
    await hour.choose(hour.match("Dynamo").get_by_label("How it ended"), "postponed")
    await hour.press("Save", "Match day")
    await hour.score("Anchor", "2", "2")  # a correction
    await hour.press("Save", "Match day")
    await hour.choose(hour.match("Bakers").get_by_label("How it ended"), "")  # taken back: they came after all
    await hour.press("Save", "Match day")
    await hour.press("Later", "Match day", role="link")
    for home in await hour.page.locator(".home").all_inner_texts():
        await hour.score(home, "1", "0")
    await hour.press("Save", "Match day")
    assert hour.pages <= PAGES_MAX
    assert hour.seconds <= SECONDS_MAX
    assert hour.errors == []
    assert {json.loads(line)["level"] for line in log_lines.getvalue().splitlines()} == {"info"}
    table = [one.split() for one in await hour.page.locator(".tables tbody tr").all_inner_texts()]
    assert table[:3] == [["1", "Forge", "4"], ["2", "Cobblers", "3"], ["2", "Eagles", "3"]]
