"""The documentation in a real browser. Where there is no Chromium, these are skipped, and the end of a run says so."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Page, expect

from tests.api import examples
from tests.api.web.browser import CHROMIUM
from tests.api.web.browsing import AXE, NOTED, VIOLATIONS
from tests.service import Service

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install one, or name it in TALLYBOOK_CHROMIUM"),
    pytest.mark.timeout(240),
]
PHONE: Final = {"width": 390, "height": 844}
_HEIGHT: Final = "document.documentElement.scrollHeight"
_OPEN_ALL: Final = "document.querySelectorAll('details').forEach((one) => (one.open = true))"
_CUT_OFF: Final = """() => [...document.body.querySelectorAll("*:not(.unseen):not(.skip)")]
  .filter((one) => one.clientWidth)
  .filter((one) => one.getBoundingClientRect().right > innerWidth || one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.outerHTML.slice(0, 200))"""
"""What is wider than the screen, or than the room that it has."""
Read = Callable[..., Awaitable[Page]]


@pytest.fixture
async def read(browser: Browser, service: Service) -> AsyncIterator[Read]:
    """Opens pages of the service. At the end, no page may have broken the policy, and the browser may not have
    complained of anything."""
    pages: list[tuple[Page, list[str]]] = []

    async def begin(path: str = "/docs", **context: Any) -> Page:
        page = await (await browser.new_context(**context)).new_page()
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        await page.add_init_script(NOTED)
        pages.append((page, complaints))
        await page.goto(service.url + path)
        return page

    yield begin
    for page, complaints in pages:
        assert complaints == []
        assert await page.evaluate("window.violations ?? []") == []


@pytest.mark.long
async def test_on_a_phone_nothing_runs_off_the_screen(read: Read) -> None:
    for path in ("/", "/docs"):
        page = await read(path, viewport=PHONE)
        await page.evaluate(_OPEN_ALL)
        assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        assert await page.evaluate(_CUT_OFF) == []


@pytest.mark.long
async def test_at_first_sight_there_is_less_than_a_quarter_of_the_page(read: Read) -> None:
    for context in ({"viewport": PHONE}, {}):
        page = await read(**context)
        at_first = await page.evaluate(_HEIGHT)
        await page.evaluate(_OPEN_ALL)
        assert 4 * at_first < await page.evaluate(_HEIGHT)


@pytest.mark.long
async def test_every_command_can_be_copied_as_it_stands(read: Read) -> None:
    page = await read(permissions=["clipboard-read", "clipboard-write"])
    await page.evaluate(_OPEN_ALL)
    commands = page.locator(".command")
    shown = await commands.locator("pre").all_text_contents()
    assert {example.command for example in examples.kept_examples()} <= {*shown}
    assert await page.locator(".command button").count() == len(shown)
    for number in (0, len(shown) // 2, len(shown) - 1):
        button = commands.nth(number).get_by_role("button", name="Copy")
        await button.press("Enter")
        await expect(button).to_have_text("Copied")
        await expect(page.get_by_role("status")).to_have_text("Copied")
        assert await page.evaluate("navigator.clipboard.readText()") == shown[number]
    await expect(page.get_by_text("Copied")).to_have_count(0)


@pytest.mark.long
async def test_a_page_that_came_without_tls_can_copy_too(read: Read) -> None:
    page = await read(permissions=["clipboard-read", "clipboard-write"])
    await page.evaluate("window.kept = navigator.clipboard; Object.defineProperty(navigator, 'clipboard', {})")
    first = page.locator(".command").first
    await first.get_by_role("button").click()
    await expect(first.get_by_role("button")).to_have_text("Copied")
    assert await page.evaluate("window.kept.readText()") == await first.locator("pre").text_content()


@pytest.mark.long
async def test_without_scripts_it_is_whole_and_a_link_opens_what_it_leads_to(read: Read) -> None:
    page = await read(java_script_enabled=False)
    await expect(page.get_by_role("button")).to_have_count(0)
    await expect(page.locator("#addPoints")).to_be_hidden()
    await page.get_by_role("link", name="More about addPoints").click()
    await expect(page.locator("#addPoints")).to_be_visible()
    await expect(page.locator("#addPoints .answer").first).to_contain_text('"status": 200')
    await page.locator("summary", has_text="Register a competitor").click()
    await expect(page.locator("#registerCompetitor")).to_be_visible()


async def test_an_operation_opens_by_keyboard(read: Read) -> None:
    page = await read("/docs#operations")
    for _ in range(3):
        await page.keyboard.press("Tab")
    focused = await page.evaluate("document.activeElement.tagName")
    assert focused == "SUMMARY"
    await page.keyboard.press("Enter")
    assert await page.evaluate("document.activeElement.parentElement.open")


@pytest.mark.long
async def test_the_root_leads_to_it(read: Read) -> None:
    page = await read("/")
    await page.get_by_role("link", name="The interface").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("The interface")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
async def test_axe_finds_nothing_in_the_documentation(read: Read, scheme: str) -> None:
    for path in ("/", "/docs"):
        page = await read(path, color_scheme=scheme)
        await page.evaluate(_OPEN_ALL)
        await page.evaluate(AXE.read_text(encoding="utf-8"))
        found = await page.evaluate(VIOLATIONS)
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], path


async def test_the_operations_can_be_searched(read: Read) -> None:
    page = await read()
    search, shown = page.get_by_label("Search the operations"), page.locator(".operation:visible")
    every = await shown.count()
    await search.fill("PUT add.json reason")
    await expect(shown).to_have_count(1)
    await expect(page.locator("section:visible > h3")).to_have_text(["Points"])
    await expect(page.get_by_role("status")).to_have_text(f"1 of {every} operations")
    await search.fill("")
    await expect(shown).to_have_count(every)
