"""A page of another site that asks the service, in a real browser. Where there is no Chromium, it is skipped."""

from shutil import which
from typing import Final

import pytest
from playwright.async_api import Browser

from tests.api.public_boards import change
from tests.api.test_platforms import played_by_a_platform
from tests.api.web.browser import CHROMIUM
from tests.service import Season, Service, serve

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install one, or name it in TALLYBOOK_CHROMIUM")]
ASK: Final = """async ([url, token, body]) => {
  const headers = token ? { Authorization: `Bearer ${token}`, "Content-Type": "application/json" } : {};
  try {
    const answer = await fetch(url, { method: body ? "POST" : "GET", headers, body });
    return [answer.status, answer.headers.get("ETag") !== null, await answer.json()];
  } catch {
    return null; // the browser does not show it
  }
}"""


async def test_a_browser_shows_a_page_of_another_site_what_it_may_read(
    browser: Browser, service: Service, season: Season, dsn: str
) -> None:
    """The page of `service` is another site to a second service, and that knows it by name or does not."""
    await change(season.client, published="true")
    slug, token = season.client.tournament, season.client.token
    page = await browser.new_page()
    await page.goto(f"{service.url}/healthz")  # unlike pages, it does not restrict itself
    for origins, may in (((service.url,), True), ((), False)):
        async with serve(dsn, origins=origins) as other:
            status, has_tag, shown = await page.evaluate(ASK, [f"{other.url}/board/{slug}/tournament.json", None, None])
            assert (status, has_tag, shown["status"]) == (200, True, 200)
            status, _, shown = await page.evaluate(ASK, [f"{other.url}/board/{slug}/nothing.json", None, None])
            assert (status, shown["status"]) == (404, 404)
            of_token = f"{other.url}/tournament/{slug}/competitors.json"
            for body in None, '{"name": "Ana"}':
                answer = await page.evaluate(ASK, [of_token, token, body])
                assert (answer is not None and answer[0] == 200) == may


@pytest.mark.skipif(which("curl") is None, reason="no curl: the lines of a platform were not run")
async def test_a_page_of_the_platform_shows_its_tables(
    browser: Browser, service: Service, token: str, dsn: str
) -> None:
    shown = await played_by_a_platform(service, token)
    page = await browser.new_page()
    async with serve(dsn) as other:  # it stands for the platform: another origin
        await page.goto(f"{other.url}/healthz")
        table = f"{service.url}/board/thursday-league/rankings/5"
        named = await page.evaluate(ASK, [f"{table}/standings.json", None, None])
        standings = await page.evaluate(ASK, [f"{table}/classification.json", None, None])
    assert ([one[0] for one in (named, standings)], standings[2]) == ([200, 200], shown)
    assert "Harbour" in str(named[2])
