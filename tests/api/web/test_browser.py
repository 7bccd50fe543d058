"""The board in a real browser. Where there is no Chromium, these are skipped, and the end of a run says so."""

import gc
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any, Final

import pytest
from msgspec.structs import asdict
from playwright.async_api import Browser, ConsoleMessage, Page, expect

from api.stream import followers
from api.web.page import number_text
from api.web.words import Words
from engine.domain.commands import (
    AddCompetition,
    AddPoints,
    AddUnity,
    ChangeParticipants,
    ChangePresentation,
    ChangePublication,
    ChangeRankingInformation,
    ChangeUnity,
    CreateRanking,
    DeclareClassification,
    EraseCompetitor,
    ReversePoints,
)
from engine.domain.events import COLOR_DEFAULT, Criterion, Delta
from engine.domain.notation import DECIMALS_MAX, INFINITE, Notation
from engine.domain.terms import OPERATOR, CompetitionId, RankingId, Sequence, Sort, UnityId
from projections.answers.zones import zone_of
from tests.api.streams import counted
from tests.api.web.browser import CHROMIUM
from tests.api.web.browsing import AXE, NOTED, REORDERED, SECONDS, VIOLATIONS
from tests.api.web.season import Championship
from tests.bounds import Bounds
from tests.desks import until
from tests.shares import every

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: install one, or name it in TALLYBOOK_CHROMIUM"),
    pytest.mark.timeout(240),
]


class Visit:
    """A visit to the board. What the browser complains of is a fault."""

    def __init__(self, page: Page, championship: Championship) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._url = championship.service.url + championship.address
        page.on(
            "console", lambda said: self.complaints.append(said.text) if said.type in ("error", "warning") else None
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.complaints.append(said.text)

    async def go(self, below: str = "") -> Page:
        await self.page.goto(self._url + below)
        return self.page

    async def names(self) -> list[str]:
        found: list[str] = await self.page.locator("tbody .name").all_inner_texts()
        return found

    async def shows(self, names: list[str]) -> None:
        """Waits until the table has these lines."""
        await expect(self.page.locator("tbody .name")).to_have_text(names, timeout=SECONDS)


@pytest.fixture
async def visit(browser: Browser, championship: Championship) -> AsyncIterator[Callable[..., Awaitable[Visit]]]:
    """Begins visits; at the end, none of them may have had anything to complain of."""
    visits: list[Visit] = []

    async def begin(**context: Any) -> Visit:
        page = await (await browser.new_context(**context)).new_page()
        await page.add_init_script(NOTED)
        visits.append(Visit(page, championship))
        return visits[-1]

    yield begin
    for one in visits:
        if one.page.url.startswith("http"):
            assert await one.page.evaluate("window.violations ?? []") == []
        assert one.complaints == []


Begin = Callable[..., Awaitable[Visit]]
FINAL: Final = ["Ireland", "France", "England", "Scotland", "Italy", "Wales"]
LIVE: Final = "#moment.live"
HIDE: Final = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.mark.long
async def test_without_scripts_the_page_is_whole(visit: Begin) -> None:
    one = await visit(java_script_enabled=False)
    page = await one.go()
    assert await one.names() == FINAL
    await page.get_by_label("History").fill("2024-03-10")
    await page.get_by_role("button", name="Show").click()
    assert "at=2024-03-10" in page.url
    assert await one.names() == ["Ireland", "England", "France", "Scotland", "Italy", "Wales"]
    await page.get_by_role("link", name="As results came in").click()
    await page.get_by_label("History").fill("30")
    await page.get_by_role("button", name="Show").click()
    assert "at=30" in page.url
    assert await one.names() != FINAL
    await page.get_by_role("link", name="Now").click()
    assert await one.names() == FINAL
    await page.get_by_role("link", name="France", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("France")


@pytest.mark.long
async def test_with_scripts_the_page_says_the_same(visit: Begin, championship: Championship) -> None:
    """Of a competition of many, one entered late, a fixture, names that are long, run from the right, or have no
    colour."""
    desk, live, teams = championship.service.desk, championship.live, championship.teams
    await championship.enroll(["السعودية", "A name of more characters than a large screen has room for"])
    many, duel = CompetitionId(await desk.new_id()), CompetitionId(await desk.new_id())
    who = tuple(teams.values())
    result = {who[0]: "9.58", who[1]: "9.69"}
    await desk.submit(
        live, AddCompetition(competition_id=many, group_id=6, participants=who, result=result), actor=OPERATOR
    )
    await championship.give("Wales", 3, many)
    late, day = CompetitionId(await desk.new_id()), datetime(2024, 3, 10, tzinfo=UTC)
    added = AddCompetition(competition_id=late, group_id=8, participants=who[:2], started_at=day, location="Rome")
    await desk.submit(live, added, actor=OPERATOR)
    await championship.give("Wales", 2, late)
    await desk.submit(
        live, AddCompetition(competition_id=duel, group_id=7, participants=who[:2], round=7), actor=OPERATOR
    )
    taken = Delta(teams["Wales"], championship.unity_ids[0], -1)
    fine = AddPoints(ranking_id=championship.ranking_id, deltas=(taken,), reason="late <again>")
    zones = "1..2 promotion: Up & away; -1 relegation: Down"
    for command in fine, ChangeRankingInformation(ranking_id=championship.ranking_id, zones=zones):
        await desk.submit(live, command, actor=OPERATOR)
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    served = (await championship.get()).body.decode()
    for begin, end, part in (
        ('<p id="latest"', "</p>", "#latest"),
        ("<thead", "</table>", "table"),
        ('<ol class="notes"', "</ol>", ".notes"),
        ('<ul class="zones"', "</ul>", ".zones"),
        ('<section id="competitions"', "</section>", "#competitions"),
    ):
        text = served[served.index(begin) :]
        without = unescape(re.sub(r"<[^>]*>", "", text[: text.index(end)]))
        caption = await page.locator("caption").text_content() if part == "table" else ""
        shown = (await page.locator(part).text_content() or "").removeprefix(caption or "")
        assert "".join(shown.split()) == "".join(without.split())
    assert "and 3 more" in await page.locator("#latest").inner_text()
    assert "10 March 2024, Rome" in await page.locator("#latest .late").inner_text()


@pytest.mark.long
async def test_a_row_moves_when_points_come(visit: Begin, championship: Championship) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await page.evaluate(
        """() => {
          window.moves = [];
          const animate = Element.prototype.animate;
          Element.prototype.animate = function (frames, timing) {
            if (this.tagName === "TR") window.moves.push([this.innerText.trim(), frames[0].transform]);
            return animate.call(this, frames, timing);
          };
        }"""
    )
    await championship.give("Wales", 20)
    await one.shows(["Wales", *FINAL[:-1]])
    moves = dict(await page.evaluate("window.moves.map(([text, way]) => [text.match(/[A-Z]\\w+/)[0], way])"))
    assert moves.keys() == set(FINAL)
    assert float(moves["Wales"].removeprefix("translateY(").removesuffix("px)")) > 0  # from below
    await expect(page.get_by_role("status")).to_contain_text("Wales is now in position 1.")
    await expect(page.locator("tbody tr").first.locator("td.value.first")).to_have_text("24 +1")


@pytest.mark.long
async def test_nothing_moves_for_those_who_want_it_still(visit: Begin, championship: Championship) -> None:
    one = await visit(reduced_motion="reduce")
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await page.evaluate("() => { Element.prototype.animate = () => { window.moved = true } }")
    await championship.give("Wales", 20)
    await one.shows(["Wales", *FINAL[:-1]])
    assert await page.evaluate("window.moved") is None


@pytest.mark.long
async def test_the_slider_goes_through_the_matches_by_date_and_keeps_its_place(
    visit: Begin, championship: Championship
) -> None:
    one = await visit()
    page = await one.go("?at=2024-03-10")
    await page.get_by_role("button", name="Play").wait_for()
    slider = page.get_by_label("History")
    await expect(slider).to_have_value("12")
    told = (await championship.get("/timeline.json")).json["moments"]
    for place in (11, 0, 3):
        await slider.fill(str(place))
        then = (await championship.get(f"/table.json?at={told[place - 1][0] if place else '2024-01-01'}")).json
        await one.shows([line["name"] for line in then["lines"]])
    await expect(page.locator("#moment")).to_contain_text("After Wales \N{EN DASH} Scotland, 3 February 2024")
    await page.wait_for_url("**at=2024-02-03**")
    for link in await page.locator(".tabs a, .ways a").all():
        assert (await page.request.get(str(await link.evaluate("link => link.href")))).status == 200
    await championship.give("Wales", 1)  # what comes meanwhile does not disturb
    await page.reload()
    await expect(slider).to_have_value("3")
    await expect(slider).to_have_attribute("max", "16")
    await page.get_by_role("link", name="Now").click()
    await one.shows(FINAL)
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    assert "at=" not in page.url


@pytest.mark.long
async def test_the_slider_goes_through_the_events_where_one_is_asked_for(
    visit: Begin, championship: Championship
) -> None:
    one = await visit()
    page = await one.go(f"?at={championship.live.head.sequence}")
    await page.get_by_role("button", name="Play").wait_for()
    slider = page.get_by_label("History")
    then = (await championship.get("/table.json?at=30")).json
    names = [line["name"] for line in then["lines"]]
    await slider.fill("30")
    await one.shows(names)
    await expect(page.locator("#moment")).to_contain_text("After event 30")
    await page.wait_for_url("**at=30**")
    await page.reload()
    await one.shows(names)
    await expect(slider).to_have_value("30")
    await championship.give("Wales", 1)  # what comes meanwhile does not disturb
    await slider.fill("20")
    await one.shows([line["name"] for line in (await championship.get("/table.json?at=20")).json["lines"]])
    await page.get_by_role("link", name="Now").click()
    await one.shows(FINAL)
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    assert "at=" not in page.url


@pytest.mark.long
async def test_the_bar_of_the_past_stays_in_view_only_while_it_is_used(visit: Begin) -> None:
    page = await (await visit(viewport={"width": 390, "height": 844})).go()
    bar = page.locator("#past")
    await expect(bar).to_have_css("position", "static")
    await page.get_by_label("History").focus()
    await expect(bar).to_have_css("position", "sticky")
    await page.goto(f"{page.url}?at=30")
    await expect(bar).to_have_css("position", "sticky")


@pytest.mark.long
async def test_play_goes_through_the_season_to_its_end(visit: Begin) -> None:
    one = await visit()
    page = await one.go("?at=30")
    await page.get_by_label("Speed").select_option("600")
    await page.get_by_role("button", name="Play").click()
    await expect(page.get_by_role("button", name="Pause")).to_be_visible()
    await expect(page.locator(LIVE)).to_be_visible(timeout=2 * SECONDS)
    await one.shows(FINAL)
    await expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.long
async def test_what_is_frozen_stays_as_it_was_until_it_is_revealed(visit: Begin, championship: Championship) -> None:
    async def submit(command: Any) -> None:
        await championship.service.desk.submit(championship.live, command, actor=OPERATOR)

    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    end = championship.live.head.sequence
    await submit(ChangePublication(freeze="now"))
    await expect(page.locator("#moment.frozen")).to_contain_text("Frozen since", timeout=SECONDS)
    await championship.give("Wales", 20)
    await submit(ChangePublication(reveal=Sequence(end + 1)))  # the freeze itself: nothing that is seen
    await expect(page.locator("main")).to_have_attribute("data-end", str(end + 1), timeout=SECONDS)
    assert await one.names() == FINAL
    await submit(ChangePublication(reveal=Sequence(end + 2)))
    await one.shows(["Wales", *FINAL[:-1]])
    await championship.give("Wales", -20)
    await submit(ChangePublication(reveal="all"))
    await one.shows(FINAL)
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)


async def test_a_board_follows_the_referee_by_the_stream_and_asks_nothing_while_nothing_happens(
    visit: Begin, championship: Championship
) -> None:
    one = await visit()
    await one.page.clock.install()
    page = await one.go()
    await page.clock.run_for(100)
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.partition(championship.address)[2].partition("?")[0]))
    first = page.locator("tbody td.value.first").last
    for points in range(5, 9):
        await page.clock.run_for(2_000)
        await championship.give("Wales", 1)
        await expect(first).to_have_text(f"{points} +1", timeout=SECONDS)
    await page.clock.run_for(120_000)
    # That the stream was opened may be told late.
    assert [path for path in asked if path != "/events"] == ["/table.json"] * 4


@pytest.mark.long
async def test_what_happens_in_another_ranking_is_not_asked_for(visit: Begin, championship: Championship) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    desk, live = championship.service.desk, championship.live
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    created = CreateRanking(
        ranking_id=RankingId(await desk.new_id()),
        name="Another",
        participants=tuple(championship.teams.values()),
        main_unity_id=UnityId(await desk.new_id()),
        main_unity_name="points",
    )
    await desk.submit(live, created, actor=OPERATOR)
    await expect(page.locator("main")).to_have_attribute("data-end", str(live.head.sequence), timeout=SECONDS)
    assert [url for url in asked if "/events?" not in url] == []  # that the stream was opened may be told late


@pytest.mark.long
async def test_a_page_that_is_no_longer_public_shows_nothing(visit: Begin, championship: Championship) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await championship.service.desk.submit(championship.live, ChangePublication(published=False), actor=OPERATOR)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Nothing to see here", timeout=SECONDS)
    one.complaints = [said for said in one.complaints if "404" not in said]


@pytest.mark.long
async def test_where_there_is_no_room_for_the_stream_the_page_looks_now_and_then(
    visit: Begin, championship: Championship, bounds: Bounds
) -> None:
    bounds(LISTENERS_OF_VISITOR_MAX=0)
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await championship.give("Wales", 20)
    await one.shows(["Wales", *FINAL[:-1]])
    await expect(page.locator("#moment.lost")).to_have_count(0)
    await page.goto("about:blank")
    one.complaints = [said for said in one.complaints if "503" not in said]


@pytest.mark.long
async def test_a_hidden_page_does_not_listen(visit: Begin, championship: Championship) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await until(lambda: counted("tallybook_listeners") == 1)
    await page.evaluate(HIDE, True)
    await until(lambda: counted("tallybook_listeners") == 0)
    await championship.give("Wales", 20)
    await page.evaluate(HIDE, False)
    await one.shows(["Wales", *FINAL[:-1]])
    await until(lambda: counted("tallybook_listeners") == 1)


@pytest.mark.long
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("hidden", [False, True])
async def test_an_open_page_forgets_who_is_erased(
    visit: Begin, championship: Championship, *, hidden: bool, frozen: bool
) -> None:
    async def submit(command: Any) -> None:
        await championship.service.desk.submit(championship.live, command, actor=OPERATOR)

    one, wales = await visit(), championship.teams["Wales"]
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    if frozen:
        await submit(ChangePublication(freeze="now"))
        await expect(page.locator("#moment.frozen")).to_be_visible(timeout=SECONDS)
    await page.evaluate(HIDE, hidden)
    await until(lambda: counted("tallybook_listeners") == (0 if hidden else 1))
    assert "Wales" in await page.content()
    loads: list[object] = []
    page.on("load", lambda one: loads.append(one))  # noqa: PLW0108 - playwright takes no built-in function
    await submit(EraseCompetitor(competitor_id=wales))
    if hidden:  # otherwise, it loads itself again
        await page.evaluate(HIDE, False)
    await one.shows([*FINAL[:-1], f"#{wales}"])
    await expect(page.locator("html")).not_to_contain_text("Wales", timeout=SECONDS)
    assert "Wales" not in await page.content()
    await until(lambda: counted("tallybook_listeners") == 1)
    assert len(loads) <= 1  # its new stream tells it of the erasure once more


@pytest.mark.long
async def test_a_lost_connection_is_shown_and_recovers(visit: Begin, championship: Championship) -> None:
    one = await visit(timezone_id="Asia/Kolkata")
    page = await one.go()
    await expect(page.locator(LIVE)).to_contain_text(re.compile(r", ..:.. UTC \(.*..:.. your time\)"), timeout=SECONDS)
    for points, names in ((20, ["Wales", *FINAL[:-1]]), (-20, FINAL)):
        await page.context.set_offline(True)
        await expect(page.locator("#moment.lost")).to_contain_text("Connection lost", timeout=SECONDS)
        await championship.give("Wales", points)
        await page.context.set_offline(False)
        await one.shows(names)
        await expect(page.locator("#moment.lost")).to_have_count(0)
    await championship.give("Wales", 20)  # and it listens again
    await one.shows(["Wales", *FINAL[:-1]])
    one.complaints.clear()  # the browser says that it was offline


@pytest.mark.long
async def test_a_stream_that_is_cut_off_in_the_middle_is_taken_up_again(
    visit: Begin, championship: Championship
) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    table = ["Wales", *FINAL[:-1]]
    for points, names in ((20, table), (-20, FINAL), (20, table)):
        await until(lambda: counted("tallybook_listeners") == 1)
        (follower,) = {one for one in gc.get_objects() if isinstance(one, followers.Follower) and one.listeners}
        follower.end_all("shutting_down")
        await expect(page.locator("#moment.lost")).to_be_visible(timeout=SECONDS)
        await championship.give("Wales", points)
        await one.shows(names)
        await expect(page.locator("#moment.lost")).to_have_count(0)
    one.complaints = [said for said in one.complaints if "INCOMPLETE_CHUNKED" not in said]


GAINED_AFTER: Final = """() => {
  const end = (one) => one.getBoundingClientRect().right;
  const start = (one) => one.getBoundingClientRect().left;
  const head = end(document.querySelector("thead .first :is(a, abbr)"));
  return [...document.querySelectorAll(".gained")].every((one) => start(one) >= head);
}"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("below", ["", "/embed"])
async def test_on_a_phone_nothing_is_cut_off(visit: Begin, below: str) -> None:
    one = await visit(viewport={"width": 360, "height": 740})
    page = await one.go(below)
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    for link in await page.locator("tbody .name a").all():
        assert (await link.evaluate("one => one.scrollWidth <= one.closest('th').clientWidth")) is True
    for width, is_shown in (360, False), (1280, True):
        await page.set_viewport_size({"width": width, "height": 740})
        await expect(page.locator(".gained").first).to_be_visible(visible=is_shown)
    assert await page.evaluate(GAINED_AFTER), (
        "what the last round gave stands behind the total, outside its column head"
    )


@pytest.mark.long
async def test_everything_can_be_reached_with_the_keyboard(visit: Begin) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    reached = []
    for _ in range(35):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.innerText || document.activeElement.id"))
    wanted = [
        "Skip to the table",
        "PD",
        *FINAL,
        "at",
        "Play",
        "Now",
        "CSV",
        "Large screen",
        "Results and fixtures",
        "Embed",
    ]
    assert [name for name in reached if name in wanted][: len(wanted)] == wanted
    await page.get_by_label("History").focus()
    await page.keyboard.press("ArrowLeft")
    await expect(page.locator("#moment")).to_contain_text("After Ireland \N{EN DASH} Scotland, 16 March")


@pytest.mark.long
async def test_focus_stays_on_the_row_that_moves(visit: Begin, championship: Championship) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await page.get_by_role("link", name="Wales", exact=True).focus()
    await championship.give("Wales", 20)
    await one.shows(["Wales", *FINAL[:-1]])
    assert await page.evaluate("document.activeElement.innerText") == "Wales"


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
@every(3)
async def test_axe_finds_nothing(visit: Begin, championship: Championship, scheme: str, step: int) -> None:
    one = await visit(color_scheme=scheme)
    france, ranking_id = championship.teams["France"], championship.ranking_id
    zones = "1 promotion: Up; 2 play-off: Perhaps; 3 neutral: Stay; 4..6 relegation: Down"
    fine = AddPoints(ranking_id=ranking_id, deltas=(Delta(france, championship.unity_ids[0], -1),), reason="late")
    for command in fine, ChangeRankingInformation(ranking_id=ranking_id, zones=zones):
        await championship.service.desk.submit(championship.live, command, actor=OPERATOR)
    await championship.enroll(f"Guest {number}" for number in range(100))
    match = [*championship.live.board.competitions][-1]
    pages = ["", "/tv", "/embed", "?find=land", "?at=30", f"/competitors/{france}", f"/competitions/{match}"]
    contest = await championship.hold_contest({"Wales": "A:9+1 C:-1", "France": "A:3 B:-2?1", "Italy": "-"})
    pages += "/leaders", "/cross", f"/problems?ranking={contest}", "?at=100000"
    for below in pages[::step]:
        page = await one.go(below)
        if below in ("", "/tv", "/embed", "?find=land"):
            await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
        await page.evaluate(AXE.read_text(encoding="utf-8"))
        found = await page.evaluate(VIOLATIONS)
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == [], below
        assert await page.evaluate("window.violations") == []
    one.complaints = [said for said in one.complaints if "404" not in said]  # the last one is not there


async def test_the_browser_writes_numbers_as_the_service_does(visit: Begin) -> None:
    draw = random.Random(5)
    notations = [*(Notation(decimals=one) for one in range(DECIMALS_MAX + 1)), Notation(time="s"), Notation(time="ms")]
    notations.append(Notation(decimals=3, quotient=True))
    sizes = [INFINITE, 0, 1, 59, 60, 999, 3_599, 3_600, 12_345, 3_599_999, 3_600_000, 2**53 + 1]
    sizes += [draw.randrange(10 ** draw.randint(1, 19)) for _ in range(40)]
    cases = [(str(sign * one), asdict(notation)) for notation in notations for one in sizes for sign in (1, -1)]
    page = await (await visit()).go()
    written = await page.evaluate(
        """async (cases) => {
          const words = document.querySelector("script[src]").src.replace("board.js", "words.js");
          const { numberText } = await import(words);
          return cases.map(([number, notation]) => numberText(number, notation));
        }""",
        cases,
    )
    assert written == [number_text(int(number), Notation(**notation)) for number, notation in cases]


_HUES: Final = ("00", "33", "66", "99", "cc", "ff")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_line_of_a_race_stands_out_from_the_paper(visit: Begin, scheme: str) -> None:
    hues = [f"{red}{green}{blue}" for red in _HUES for green in _HUES for blue in _HUES]
    page = await (await visit(color_scheme=scheme)).go()
    ratios = await page.evaluate(
        """async (colors) => {
          const { strokesOf } = await import(document.querySelector("script[src]").src.replace("board.js", "race.js"));
          const style = getComputedStyle(document.documentElement);
          const [ink, paper] = ["--ink", "--paper"].map((name) => style.getPropertyValue(name).trim());
          const channels = (text) => text.match(/[0-9]+/g).map(Number);
          const luminance = (color) => {
            const linear = color.map((one) => (one <= 10 ? one / 3294 : ((one / 255 + 0.055) / 1.055) ** 2.4));
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
          };
          const below = luminance(channels(getComputedStyle(document.documentElement).backgroundColor));
          return strokesOf(colors, { ink, paper }).map(({ color }) => {
            const [less, more] = [luminance(channels(color)), below].sort((one, other) => one - other);
            return (more + 0.05) / (less + 0.05);
          });
        }""",
        [*hues, *[COLOR_DEFAULT] * 9],
    )
    assert len(ratios) == len(hues) + 9
    assert min(ratios) > 2.95  # WCAG 2.2, 1.4.11 asks for 3; colours are rounded


async def test_the_browser_writes_times_as_the_service_does(visit: Begin, championship: Championship) -> None:
    """A day without a time as a day. The reader's clock is in the same zone."""
    draw = random.Random(7)
    for zone in "UTC", "Asia/Kolkata", "America/New_York":
        changed = ChangePresentation(zone=zone)
        await championship.service.desk.submit(championship.live, changed, actor=OPERATOR)
        days = [datetime(2024, month, 1, tzinfo=zone_of(zone)) for month in (1, 3, 7, 11)]
        cases = [day + timedelta(seconds=seconds) for day in days for seconds in (-1, 0, 1, 59, draw.randrange(86_400))]
        page = await (await visit(timezone_id=zone)).go()
        written = await page.evaluate(
            """async (cases) => {
              const words = document.querySelector("script[src]").src.replace("board.js", "words.js");
              const { whenText } = await import(words);
              return cases.map((moment) => whenText(new Date(moment)));
            }""",
            [case.isoformat() for case in cases],
        )
        assert written == [Words("en", zone).when(case) for case in cases], zone


async def test_the_browser_folds_as_the_service_does(visit: Begin, championship: Championship) -> None:
    """At random moments of a history with free points, undone ones, large totals, ties, leavers, returners, a unity in
    which nobody without points has a total, and a declared classification."""
    desk, live, ranking_id = championship.service.desk, championship.live, championship.ranking_id
    draw = random.Random(17)
    teams, (net,) = list(championship.teams), await desk.new_ids(1)
    low = AddUnity(ranking_id=ranking_id, unity_id=UnityId(net), name="net", sort=Sort.ASC, absent="none")
    await desk.submit(live, low, actor=OPERATOR)
    for number in range(120):
        if number % 3 == 0:
            given = Delta(championship.teams[draw.choice(teams)], UnityId(net), draw.choice([0, 1, -2]))
            await desk.submit(live, AddPoints(ranking_id=ranking_id, deltas=(given,)), actor=OPERATOR)
        await championship.give(draw.choice(teams), draw.choice([1, 1, 2, -3, 0, 2_147_483_647, -2_147_483_647]))
        if number % 40 == 13:
            gone = (championship.teams[draw.choice(teams)],)
            await desk.submit(live, ChangeParticipants(ranking_id=ranking_id, removed=gone), actor=OPERATOR)
            await desk.submit(live, ChangeParticipants(ranking_id=ranking_id, added=gone), actor=OPERATOR)
        if number % 20 == 9:
            wrong = ReversePoints(ranking_id=ranking_id, sequence=live.head.sequence)
            await desk.submit(live, wrong, actor=OPERATOR)
        if number == 70:
            criteria = tuple(Criterion(unity_id=one) for one in reversed(championship.unity_ids))
            await desk.submit(live, DeclareClassification(ranking_id=ranking_id, criteria=criteria), actor=OPERATOR)
    page = await (await visit()).go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    folds = await page.evaluate_handle(
        """async (ranking) => {
          const fold = document.querySelector("script[src]").src.replace("board.js", "fold.js");
          const { Passage } = await import(fold);
          let passages = [];
          return async (at, unity) => {
            let passage = passages.find((one) => one.has(at));
            if (!passage) {
              const told = await fetch(`${location.pathname}/passage.json?ranking=${ranking}&at=${at}`);
              passages.push((passage = new Passage(await told.json())));
            }
            const criteria = passage.criteriaOf(unity);
            passage.goTo(at);
            return passage.lines(criteria).map(({ competitor, position, values }) =>
              [passage.competitors[competitor].id, position, values.map((one) => (one === null ? null : String(one)))]);
          };
        }""",
        ranking_id,
    )
    first = 1  # the event from which on there is a ranking
    while (await championship.get(f"/table.json?at={first}")).status == 404:
        first += 1
    for _ in range(150):
        at = draw.randint(first, championship.live.head.sequence)
        unity = draw.choice(["", str(championship.unity_ids[0])])
        told = await championship.get(f"/table.json?at={at}" + (f"&unity={unity}" if unity else ""))
        served = [[line["competitor_id"], line["position"], line["values"]] for line in told.json["lines"]]
        assert await page.evaluate("([folds, at, unity]) => folds(at, unity)", [folds, at, unity]) == served, (
            at,
            unity,
        )


@pytest.mark.long
async def test_a_page_of_many_lines_has_its_share_of_them(visit: Begin, championship: Championship) -> None:
    await championship.enroll(f"Competitor {number:04}" for number in range(294))
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await page.get_by_role("link", name="Next lines").first.click()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    assert (await one.names())[0] == "Competitor 0094"
    await page.get_by_role("link", name="As results came in").click()
    await page.get_by_role("button", name="Play").wait_for()
    await page.get_by_label("History").fill("200")
    await expect(page.locator(".pages span").last).to_have_text("None of 6 lines")
    await expect(page.get_by_role("link", name="Next lines")).to_have_count(0)
    await page.get_by_role("link", name="Now").click()
    await page.get_by_role("link", name="Next lines").last.click()
    await expect(page.get_by_role("link", name="Competitor 0293")).to_be_visible(timeout=SECONDS)


@pytest.mark.long
async def test_a_large_screen_turns_its_pages_and_each_fits(visit: Begin, championship: Championship) -> None:
    await championship.enroll(f"Competitor {number}" for number in range(12))
    one = await visit(viewport={"width": 1920, "height": 1080})
    await one.page.clock.install()
    page = await one.go("/tv")
    await page.clock.run_for(100)
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    positions = page.locator("tbody tr")
    await expect(positions).to_have_count(12)
    for table in ("main", "tbody"):
        assert await page.evaluate(
            "(name) => document.querySelector(name).getBoundingClientRect().bottom <= innerHeight", table
        )
    await expect(page.locator(".pages span")).to_have_text("Page 1 of 2, 1–12 of 18")  # noqa: RUF001
    await page.clock.run_for(15_000)
    await expect(positions).to_have_count(6, timeout=SECONDS)
    assert (await one.names())[-1] == "Competitor 11"
    await page.clock.run_for(15_000)
    await one.shows([*FINAL, *(f"Competitor {number}" for number in range(6))])


@pytest.mark.long
async def test_the_race_is_drawn_and_leads_to_its_moments(visit: Begin, championship: Championship) -> None:
    one = await visit()
    page = await one.go()
    await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
    await page.get_by_text("Race").click()
    picture = page.get_by_role("img", name="Positions over time. At the end: Ireland 1, France 2, England 3")
    await expect(picture).to_be_visible(timeout=SECONDS)
    await page.get_by_role("button", name="points", exact=True).click()
    await expect(page.get_by_role("img", name="points over time. At the end: Ireland 20")).to_be_visible()
    wales = page.get_by_role("button", name="Wales")
    await wales.press("Enter")
    await expect(wales).to_have_attribute("aria-pressed", "true")
    race = (await championship.get("/race.json")).json
    assert [row[-1] for row in race["totals"]] == [20, 15, 14, 12, 11, 4]
    assert [row[-1] for row in race["positions"]] == [1, 2, 3, 4, 5, 6]
    await page.locator(".u-over").click(position={"x": 2, "y": 100})
    await expect(page.locator("#moment")).to_contain_text("After France \N{EN DASH} Ireland, 2 February 2024")
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    found = await page.evaluate(VIOLATIONS)
    assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found] == []


@pytest.mark.long
async def test_others_can_frame_the_page_to_embed_and_no_other(visit: Begin, championship: Championship) -> None:
    one = await visit()
    address = championship.service.url + championship.address
    other = championship.service.url.replace("127.0.0.1", "localhost") + "/ours"  # another origin
    await one.page.route(other, lambda route: route.fulfill(content_type="text/html", body="<p>Ours"))
    await one.page.goto(other)
    for below, shown in (("/embed", True), ("", False)):
        await one.page.evaluate(
            "(src) => { document.body.replaceChildren(Object.assign(document.createElement('iframe'), { src })) }",
            address + below,
        )
        if shown:
            ireland = one.page.frame_locator("iframe").get_by_role("link", name="Ireland")
            await expect(ireland).to_be_visible()
            async with one.page.expect_popup() as opening:
                await ireland.click()
            await expect((await opening.value).get_by_role("heading", level=1)).to_have_text("Ireland")
        else:
            async with one.page.expect_console_message(lambda said: "frame-ancestors" in said.text):
                pass
            assert await one.page.frame_locator("iframe").get_by_role("link", name="Ireland").count() == 0
    one.complaints.clear()  # of the frame that was refused


@pytest.mark.long
async def test_paper_has_the_table_and_nothing_to_click(visit: Begin) -> None:
    page = await (await visit()).go()
    await page.emulate_media(media="print")
    await expect(page.locator("#past")).to_be_hidden()
    await expect(page.locator(".tabs").first).to_be_hidden()
    await expect(page.get_by_role("link", name="Wales", exact=True)).to_be_visible()


@pytest.mark.long
async def test_names_from_the_right_reorder_nothing(visit: Begin, championship: Championship) -> None:
    await championship.write_from_the_right()
    one = await visit(viewport={"width": 1440, "height": 900})
    team = championship.teams["\u05d0\u05d1\u05d2\u05d3"]
    match = [*championship.live.board.competitions][-1]
    for below in ("", "/leaders", "/tv", "/embed", f"/competitors/{team}", f"/competitions/{match}", "/cross"):
        page = await one.go(below)
        if below in ("", "/tv", "/embed"):
            await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
        assert await page.evaluate(REORDERED) == [], below


LONG: Final = [
    "Wolverhampton Wanderers Reserves and Academy Football Clubs",
    "LlanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogochFC",
    "נבחרת הכדורגל של מכבי תל אביב והסביבה הקרובה והרחוקה ביותר",
    "北京国安足球俱乐部青年梯队与女子代表队联合训练中心第一分部代表队",
    "🏆⚽🥇🎉 Team of those who have a name with emoji 🇩🇪🇫🇷🇪🇸",
    "Brighton & Hove Albion Football Club",
]
CUT: Final = """() => [...document.querySelectorAll("h1, th *, td *, #latest, .competitions *")]
  .filter((one) => !one.closest(".unseen, svg") && getComputedStyle(one).overflow !== "visible")
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 2)
  .map((one) => one.textContent)"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("width", [390, 1440, 1920])
async def test_no_letter_of_long_names_is_cut_at_any_size(visit: Begin, championship: Championship, width: int) -> None:
    """Names of competitors, of a unity and of the ranking; on a large screen, more lines than it shows at once."""
    service, live, ranking_id = championship.service, championship.live, championship.ranking_id
    await championship.enroll([*LONG, *(f"Guest {number}" for number in range(6))])
    for number, name in enumerate(LONG[:4]):
        await championship.give(name, 30 + number)
    named = "Championship points after deductions by the jury"
    unity_id = championship.unity_ids[0]
    for command in (
        ChangeUnity(ranking_id=ranking_id, unity_id=unity_id, name=named),
        ChangeRankingInformation(ranking_id=ranking_id, name=f"{LONG[0]} and {LONG[0].lower()}"),
    ):
        await service.desk.submit(live, command, actor=OPERATOR)
    one = await visit(viewport={"width": width, "height": width * 9 // 16 if width > 390 else 844})
    for below in ("", "/leaders", "/competitors/" + str(championship.teams[LONG[1]]), *(["/tv"] * (width > 390))):
        page = await one.go(below)
        if below in ("", "/tv"):
            await expect(page.locator(LIVE)).to_be_visible(timeout=SECONDS)
        assert await page.evaluate(CUT) == [], below
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), below
        if below == "/tv":
            assert await page.evaluate("document.querySelector('tbody').getBoundingClientRect().bottom <= innerHeight")
