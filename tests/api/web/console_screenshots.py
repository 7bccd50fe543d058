"""Takes the pictures of docs/CONSOLE.md, of the demo's league: `make screenshots`."""

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
from tests.api.web.browser import opened
from tests.service import Service, make_token, serve

FOLDER: Final = Path(__file__).parents[3] / "docs" / "console"


async def _season(service: Service) -> str:
    """Plays the season. Returns the path of its page."""
    tournament_id = (await open_tournament(service.desk, demo.TOURNAMENT_NAME)).tournament_id
    async with service.desk.live_pool.pinned(tournament_id) as live:
        await demo.play(service.desk, view_of(service.database, live))
        return f"/console/tournament/{live.slug}"


async def _signed_in(service: Service, browser: Browser, path: str, **context: Any) -> Page:
    page = await (await browser.new_context(**context)).new_page()
    await page.goto(service.url + path)
    await page.get_by_label("Token").fill(await make_token(service.database))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    return page


async def _take(page: Page, name: str) -> None:
    await page.evaluate("document.fonts.ready")
    await page.screenshot(path=FOLDER / f"{name}.png", full_page=True, animations="disabled")


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        async with embedded_postgres(Path(folder) / "pg") as cluster:
            await migrate(cluster.dsn)
            async with serve(cluster.dsn) as service, opened() as browser:
                path = await _season(service)
                page = await _signed_in(service, browser, path, viewport={"width": 1100, "height": 700})
                await _take(page, "tournament")
                await page.get_by_role("link", name="League", exact=True).click()
                await page.get_by_role("link", name="Add points").click()
                await page.get_by_label("Points for Meadow").fill("-3")
                await page.get_by_label("Reason").fill("A player without a pass")
                await _take(page, "points")
                await page.goto(f"{service.url}{path}/competitions")
                await page.get_by_role("row").filter(has_text="won by").first.get_by_text("Do not count").first.click()
                await _take(page, "void")
                await page.goto(f"{service.url}{path}")
                await page.get_by_role("link", name="League", exact=True).click()
                await page.get_by_role("link", name="Order of the table").click()
                await _take(page, "classification")
                size = {"width": 360, "height": 740}
                phone = await _signed_in(service, browser, path, viewport=size, color_scheme="dark")
                await phone.goto(f"{service.url}{path}/competitions/new")
                await phone.get_by_label("Division").fill("first")
                await phone.get_by_role("button", name="Add", exact=True).click()
                await expect(phone.locator(".summary")).to_be_visible()
                await _take(phone, "phone")


if __name__ == "__main__":
    asyncio.run(main())
