"""The console in a real browser. Where there is no Chromium, these are skipped, and the end of a run says so."""

from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import pytest
from playwright.async_api import Browser, FilePayload, Page, expect

from api.access.auth import Scope
from api.interface.competition_names import BETWEEN
from tests.api.imports.readers.damaged import FILES
from tests.api.web.browser import CHROMIUM
from tests.api.web.browsing import AXE, NOTED, REORDERED, SECONDS, VIOLATIONS
from tests.api.web.season import Championship
from tests.bounds import Bounds, set_bounds
from tests.histories import LOGO
from tests.service import make_token
from tests.shares import every

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install one, or name it in TALLYBOOK_CHROMIUM"),
    pytest.mark.timeout(240),
]
LISTENS: Final = "body.listens"
SignIn = Callable[..., Awaitable[Page]]


@pytest.fixture
async def signed_in(browser: Browser, championship: Championship) -> AsyncIterator[SignIn]:
    """Signs in as somebody. At the end, no page may have broken the policy, and no script may have failed."""
    pages: list[tuple[Page, list[str]]] = []

    async def sign_in(scope: Scope = Scope.ADMIN, **context: Any) -> Page:
        page = await (await browser.new_context(**context)).new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if "Content Security" in said.text else None)
        await page.add_init_script(NOTED)
        pages.append((page, errors))
        await page.goto(f"{championship.service.url}{at(championship)}")
        await page.get_by_label("Token").fill(await make_token(championship.service.database, scope))
        await page.get_by_role("button", name="Sign in").press("Enter")
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
        return page

    yield sign_in
    for page, errors in pages:
        assert errors == []
        if await page.evaluate("typeof window.violations") != "undefined":
            assert await page.evaluate("window.violations") == []


def at(championship: Championship, below: str = "") -> str:
    return f"/console/tournament/{championship.live.slug}{below}"


async def test_a_referee_gives_points_while_others_watch(signed_in: SignIn, championship: Championship) -> None:
    ranking = at(championship, f"/rankings/{championship.ranking_id}")
    referee, watcher = await signed_in(Scope.WRITE), await signed_in(Scope.READ)
    await watcher.goto(championship.service.url + ranking)
    await expect(watcher.locator(LISTENS)).to_be_visible(timeout=SECONDS)
    first = watcher.locator("tbody .name").first
    await expect(first).to_have_text("Ireland")
    await watcher.get_by_role("link", name="Wales").focus()
    await referee.get_by_role("link", name="Championship", exact=True).click()
    await referee.get_by_role("link", name="Add points").click()
    await referee.get_by_label("Points for Wales").fill("20")
    await referee.get_by_role("textbox", name="Reason").fill("a day of theirs")
    await referee.get_by_role("button", name="Add these points").click()
    await expect(referee.locator(".done")).to_contain_text("Saved.")
    await expect(first).to_have_text("Wales", timeout=SECONDS)
    await expect(watcher.get_by_role("link", name="Add points")).to_have_count(0)
    await referee.get_by_role("link", name="History").click()
    await expect(referee.locator("tbody tr").first).to_contain_text("a day of theirs")


async def test_a_page_whose_stream_was_refused_says_so_stays_current_and_listens_when_there_is_room(
    signed_in: SignIn, championship: Championship, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        set_bounds(full, LISTENERS_OF_TOURNAMENT_MAX=0)
        page = await signed_in()
        await page.goto(championship.service.url + at(championship, f"/rankings/{championship.ranking_id}"))
        first = page.locator("tbody .name").first
        await expect(page.locator("body.lost")).to_be_visible(timeout=SECONDS)
        await championship.give("Wales", 20)
        await expect(first).to_have_text("Wales", timeout=SECONDS)
        await expect(page.locator("body.lost")).to_be_visible()
    await expect(page.locator(LISTENS)).to_be_visible(timeout=SECONDS)
    await championship.give("Wales", -20)
    await expect(first).to_have_text("Ireland", timeout=SECONDS)


@pytest.mark.long
async def test_a_match_is_voided_after_a_look_at_the_moves(signed_in: SignIn, championship: Championship) -> None:
    page = await signed_in()
    await page.get_by_role("link", name="Competitions").click()
    row = page.locator("tbody tr").first
    await row.get_by_role("link", name="Do not count", exact=False).first.click()
    await expect(page.locator(".preview")).to_contain_text("→")
    assert not championship.live.board.voided
    await page.get_by_role("button", name="Do not count it").click()
    await page.get_by_text("Show the 1 that does not count").click()
    await expect(page.locator("tbody tr").first).to_contain_text("not counted")
    assert len(championship.live.board.voided) == 1


@pytest.mark.long
async def test_an_import_is_taken_back_after_a_look_at_the_moves(signed_in: SignIn, championship: Championship) -> None:
    page = await signed_in()
    file = "date,participants,score\n2024-05-02,Ireland|Wales,2:1\n"
    await page.goto(championship.service.url + at(championship, f"/rankings/{championship.ranking_id}/import"))
    await page.get_by_role("textbox", name="Competitions").fill(file)
    await page.get_by_role("button", name="Check them first").click()
    await page.get_by_role("button", name="Import 1").click()
    await page.get_by_role("link", name="Undo").click()
    await page.get_by_text("They would no longer count: 1").click()
    await expect(page.locator("main")).to_contain_text(f"Ireland{BETWEEN}Wales")
    await page.get_by_role("button", name="Undo it").click()
    await expect(page.locator("tbody tr").first).to_contain_text("undone")


@pytest.mark.long
async def test_a_logo_is_chosen_as_a_file(signed_in: SignIn, championship: Championship) -> None:
    page = await signed_in()
    await page.get_by_role("link", name="Change the logo").click()
    picture: FilePayload = {"name": "logo.png", "mimeType": "image/png", "buffer": b64decode(LOGO)}
    await page.get_by_label("A file with the logo").set_input_files(picture)
    await expect(page.locator("textarea")).to_be_hidden()
    await expect(page.locator("textarea")).to_have_value(LOGO)
    await page.get_by_role("button", name="Change it").click()
    await expect(page.locator(".done")).to_be_visible()
    assert championship.live.board.publication.presentation.logo == championship.live.head.sequence


async def test_a_file_of_another_program_is_chosen_and_brought(
    signed_in: SignIn, championship: Championship, bounds: Bounds
) -> None:
    page = await signed_in()  # imports the pages
    bounds(BROUGHT_BYTES_MAX=1_000)
    await page.goto(f"{page.url.partition('/console')[0]}{at(championship, '/bring')}")
    chosen = page.get_by_label("A file with them")
    await chosen.set_input_files(FILES / "swiss.trf")
    message = await chosen.evaluate("input => input.validationMessage")
    assert message.endswith(f"tallybook bring swiss.trf {championship.live.slug}")
    await chosen.set_input_files(FILES / "round_robin.trf")
    await page.get_by_role("button", name="Show what it makes").click()
    await expect(page.locator("main")).to_contain_text("ranking Club Final, like chess-round-robin")
    await page.get_by_role("button", name="Bring it").click()
    await expect(page.locator(".done")).to_be_visible()
    assert "Club Final" in [one.name for one in championship.live.board.rankings.values()]


async def test_what_is_wrong_is_read_out_and_nothing_that_was_typed_is_lost(
    signed_in: SignIn, championship: Championship
) -> None:
    page = await signed_in()
    await page.goto(championship.service.url + at(championship, "/competitors/new"))
    await page.get_by_role("textbox", name="Name").fill("Georgia")
    await page.get_by_role("textbox", name="Colour", exact=True).fill("red")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".summary")).to_be_focused()
    await expect(page.get_by_role("textbox", name="Name")).to_have_value("Georgia")
    await expect(page.get_by_role("textbox", name="Colour", exact=True)).to_have_attribute("aria-invalid", "true")
    await page.get_by_role("textbox", name="Colour", exact=True).fill("cc0000")
    await page.get_by_role("button", name="Add", exact=True).click()
    await expect(page.locator(".done")).to_be_visible()
    await expect(page.get_by_role("rowheader", name="Georgia")).to_be_visible()


@pytest.mark.long
async def test_it_is_whole_without_scripts(signed_in: SignIn, championship: Championship) -> None:
    page = await signed_in(java_script_enabled=False)
    await page.get_by_role("link", name="Championship", exact=True).click()
    await page.get_by_role("link", name="Add points").click()
    await page.get_by_label("Points for Italy").fill("1")
    await page.get_by_role("button", name="Add these points").click()
    await expect(page.locator(".done")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.long
async def test_a_page_that_is_open_goes_to_the_signing_in_when_its_session_ends(
    signed_in: SignIn, championship: Championship
) -> None:
    page = await signed_in()
    await expect(page.locator(LISTENS)).to_be_visible(timeout=SECONDS)
    await (await page.context.new_page()).goto(f"{championship.service.url}/console/sessions")
    await page.context.pages[-1].get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible(timeout=SECONDS)


async def test_a_script_of_the_page_cannot_read_the_cookie(signed_in: SignIn) -> None:
    page = await signed_in()
    assert await page.evaluate("document.cookie") == ""
    kept = await page.context.cookies()
    assert {cookie["path"] for cookie in kept} == {"/console", "/tournament"}
    assert {(cookie["httpOnly"], cookie["sameSite"]) for cookie in kept} == {(True, "Strict")}


def pages_of(championship: Championship) -> list[str]:
    team, ranking = championship.teams["France"], f"/rankings/{championship.ranking_id}"
    competition = next(iter(championship.live.board.competitions))
    below = (
        *(
            "",
            "/competitors",
            "/competitions",
            "/publication",
            "/webhooks",
            ranking,
            f"{ranking}/history",
            f"{ranking}/add",
        ),
        *("/competitors/new", "/competitions/new", f"/competitions/{competition}/record", "/publication/freeze"),
        *(f"/competitions/{competition}/void", f"{ranking}/competitors/{team}", f"{ranking}/unities/new"),
        f"{ranking}/competitions/{competition}",
        *(f"{ranking}/classification", "/publication/freeze-at", "/competitors/import", "/rankings/new"),
        *(f"{ranking}/import", f"{ranking}/fixtures", "/imports", "/matchday", f"/competitions/{competition}/strike"),
        *(
            "/competitors/names",
            "/log",
            "/scorers",
            "/bring",
            "/rankings/like",
            f"{ranking}/participants",
            "/presentation",
            "/logo",
            f"/competitors/{team}/withdraw",
        ),
    )
    return [
        "/console",
        "/console/tokens",
        "/console/tokens/new",
        "/console/sessions",
        "/console/tournaments/new",
        *[at(championship, one) for one in below],
    ]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
@every(3)
async def test_axe_finds_nothing_in_the_console(
    signed_in: SignIn, championship: Championship, scheme: str, step: int
) -> None:
    page = await signed_in(color_scheme=scheme)
    for address in pages_of(championship)[::step]:
        await page.goto(championship.service.url + address)
        await page.evaluate(AXE.read_text(encoding="utf-8"))
        found = await page.evaluate(VIOLATIONS)
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], address
        assert await page.evaluate("window.violations") == [], address


@pytest.mark.long
async def test_no_page_is_wider_than_a_phone(signed_in: SignIn, championship: Championship) -> None:
    page = await signed_in(viewport={"width": 360, "height": 740})
    for address in pages_of(championship):
        await page.goto(championship.service.url + address)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360, address
    for below in ("", f"/rankings/{championship.ranking_id}/history"):
        await page.goto(championship.service.url + at(championship, below))
        assert await page.evaluate("document.querySelector('.wide').scrollWidth") <= 360  # nothing is out of sight


@pytest.mark.long
async def test_names_from_the_right_reorder_nothing(signed_in: SignIn, championship: Championship) -> None:
    page, pages = await signed_in(), pages_of(championship)
    await championship.write_from_the_right()
    for address in pages:
        await page.goto(championship.service.url + address)
        await page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert await page.evaluate(REORDERED) == [], address


_NUMBER_ALL: Final = """() => {
  const all = document.querySelectorAll(
    "a[href], button, select, textarea, summary, input:not([type=hidden]), [tabindex='0']"
  );
  const seen = [...all].filter((one) => one.checkVisibility());
  seen.forEach((one, number) => (one.dataset.stop = number));
  window.reached = new Set();
  document.addEventListener("focusin", (event) => window.reached.add(event.target.dataset.stop));
  return seen.length;
}"""


_PARTS_OF_TIMES: Final = 7
"""Stops within a field for a time: its parts, and the picker."""


@pytest.mark.long
async def test_everything_is_reached_by_keyboard(signed_in: SignIn, championship: Championship) -> None:
    page = await signed_in()
    for address in pages_of(championship):
        await page.goto(championship.service.url + address)
        stops = await page.evaluate(_NUMBER_ALL)
        picked = await page.locator("[type=datetime-local], [type=date], [type=time]").count()
        for _ in range(stops + _PARTS_OF_TIMES * picked):
            await page.keyboard.press("Tab")
        assert set(await page.evaluate("[...reached]")) == {str(number) for number in range(stops)}, address
