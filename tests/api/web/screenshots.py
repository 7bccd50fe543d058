"""Takes the pictures of docs/BOARD.md, of a season, and of the demo's league: `make screenshots`."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from playwright.async_api import Browser, Page, expect

from api.cli import demo
from api.cli.tournaments import open_tournament
from engine.database.embedded import embedded_postgres
from engine.database.migrator import migrate
from projections.answers.view import view_of
from tests import six_nations
from tests.api.web.browser import opened
from tests.service import Service, serve

FOLDER: Final = Path(__file__).parents[3] / "docs" / "board"


async def _season(service: Service) -> str:
    """Plays the season, which publishes it. Returns the address of its board."""
    tournament_id = (await open_tournament(service.desk, six_nations.TOURNAMENT_NAME)).tournament_id
    async with service.desk.live_pool.pinned(tournament_id) as live:
        await six_nations.play(service.desk, view_of(service.database, live))
        return f"{service.url}/board/{live.slug}"


async def _league(service: Service) -> str:
    """Plays the league of the demo. Returns the address of its board."""
    tournament_id = (await open_tournament(service.desk, demo.TOURNAMENT_NAME)).tournament_id
    async with service.desk.live_pool.pinned(tournament_id) as live:
        await demo.play(service.desk, view_of(service.database, live))
        return f"{service.url}/board/{live.slug}"


async def _page(browser: Browser, address: str, width: int, height: int, **context: Any) -> Page:
    page = await (await browser.new_context(viewport={"width": width, "height": height}, **context)).new_page()
    await page.goto(address)
    await expect(page.locator("#moment.live")).to_be_visible()
    return page


async def _take(page: Page, name: str, *, whole: bool = True) -> None:
    """With the `whole` page, which is as high as all that is in it, so that nothing lies over anything."""
    await page.evaluate("document.fonts.ready")
    if whole and page.viewport_size is not None:
        height = await page.evaluate("document.documentElement.scrollHeight")
        await page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    await page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        async with embedded_postgres(Path(folder) / "pg") as cluster:
            await migrate(cluster.dsn)
            async with serve(cluster.dsn) as service, opened() as browser:
                await _take(await _page(browser, await _league(service), 1100, 780), "league")
                address = await _season(service)
                await _take(await _page(browser, address, 1100, 780), "board")
                await _take(await _page(browser, address, 1100, 780, color_scheme="dark"), "dark")
                await _take(await _page(browser, address, 360, 740), "phone")
                await _take(await _page(browser, f"{address}/tv", 1920, 1080), "tv", whole=False)
                page = await _page(browser, address, 1100, 780)
                picture = await page.request.get(f"{address}/picture.png")
                (FOLDER / "picture.png").write_bytes(await picture.body())
                await page.get_by_text("Race").click()
                await expect(page.get_by_role("img")).to_be_visible()
                await page.get_by_label("History").fill("11")
                await expect(page.locator("#moment")).to_contain_text("After ")
                await page.wait_for_url("**at=**")
                await expect(page.locator("tbody .form li").first).to_be_visible()
                await _take(page, "past")
                page = await _page(browser, address, 1100, 780)
                await page.get_by_role("link", name="France", exact=True).click()
                await _take(page, "explanation")


if __name__ == "__main__":
    asyncio.run(main())
