"""The picture of a board, and what a page says of itself to those who show a link to it."""

import asyncio
import re
from html import unescape
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PIL import Image, ImageColor
from pymupdf_fonts import fontbuffers

from api.http.errors import TooManyRequests
from api.web import drawing
from api.web.drawing import draw
from api.web.picture import Pictures
from api.web.pictured import HEIGHT, PICTURE_LINES, WIDTH, Pictured, PictureLine
from engine.domain.commands import ChangePublication, ChangeRankingInformation
from engine.domain.table_zones import ZoneKind
from engine.domain.terms import OPERATOR
from tests.api.web.season import Championship
from tests.bounds import Bounds
from tests.calls import Calls
from tests.histories import unhurried
from tests.service import Answer


def said_of(page: Answer) -> dict[str, str]:
    """What the page says of itself, by its name in Open Graph."""
    found = re.findall(r'<meta property="(.*?)" content="(.*?)">', page.body.decode())
    return {name: unescape(text) for name, text in found}


def shown(*names: str, more: str = "", color: str = "169b62") -> Pictured:
    lines = [PictureLine(str(place), place, name, color, str(30 - place)) for place, name in enumerate(names, start=1)]
    return Pictured("Cup", "League", "points", "As of today", tuple(lines), more, "Nobody", "No. {number}")


async def test_a_picture_is_in_the_language_of_its_address(
    championship: Championship, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    drawn: list[Pictured] = []

    def noted(one: Pictured) -> bytes:
        drawn.append(one)
        return b""

    monkeypatch.setattr(drawing, "draw", noted)
    bounds(PICTURE_LINES=2)
    zones = "1 promotion: <Cup>; 2..3 play-off: Stay; -1 relegation: Down"
    command = ChangeRankingInformation(ranking_id=championship.ranking_id, zones=zones)
    await championship.service.desk.submit(championship.live, command, actor=OPERATOR)
    assert (await championship.get("/picture.png?lang=de")).status == 200
    assert [(one.more, one.nobody, one.numbered) for one in drawn] == [
        ("4 weitere", "Noch keine Teilnehmer", "Nr. {number}")
    ]
    assert [[line.zone for line in one.lines] for one in drawn] == [["promotion", "play-off"]]
    assert [one.zones for one in drawn] == [(("promotion", "1 <Cup>"), ("play-off", "2\N{EN DASH}3 Stay"))]


@pytest.mark.parametrize(
    ("kind", "color", "share"),
    [
        ("promotion", "#17703f", (1, 1)),
        ("neutral", "#5d626b", (1, 1)),
        ("play-off", "#1a56b0", (0.6, 0.75)),
        ("relegation", "#a8321f", (0.4, 0.6)),
    ],
)
def test_a_zone_is_a_bar_before_its_lines_told_by_colour_and_by_pattern_and_named_at_the_foot(
    kind: ZoneKind, color: str, share: tuple[float, float]
) -> None:
    plain = shown(*"abcdefg")
    lines = (replace(plain.lines[0], zone=kind), *plain.lines[1:])
    image = Image.open(BytesIO(draw(replace(plain, lines=lines, zones=((kind, "1 Somewhere"),)))))
    bar = [y for y in range(20, HEIGHT) if image.getpixel((drawing._BAR + 1, y)) == ImageColor.getrgb(color)]
    row = (drawing._BOTTOM - drawing._TOP) / PICTURE_LINES
    assert share[0] * row - 4 <= len([y for y in bar if y < drawing._BOTTOM]) <= share[1] * row
    assert drawing._TOP <= bar[0] <= bar[-1] <= drawing._TOP + row
    foot = (0, drawing._BOTTOM, WIDTH, HEIGHT)
    assert image.crop(foot).tobytes() != Image.open(BytesIO(draw(plain))).crop(foot).tobytes()


async def test_a_page_names_its_picture_and_says_what_it_shows(championship: Championship) -> None:
    page = said_of(await championship.get(f"?ranking={championship.ranking_id}&since=20", Host="cup.example"))
    assert page["og:title"].startswith("Championship · ")
    assert page["og:description"] == "1 Ireland, 2 France, 3 England, 4 Scotland, 5 Italy"
    board = f"http://cup.example{championship.address}"
    assert page["og:url"] == f"{board}?ranking={championship.ranking_id}"
    assert page["og:image"] == f"{board}/picture.png?ranking={championship.ranking_id}"
    assert (page["og:image:width"], page["og:image:height"]) == ("1200", "630")
    answer = await championship.get(page["og:image"].removeprefix(board))
    assert (answer.status, answer.headers["Content-Type"]) == (200, "image/png")
    image = Image.open(BytesIO(answer.body))
    assert image.size == (WIDTH, HEIGHT) == (1200, 630)


async def test_a_page_is_kept_for_those_alone_who_ask_under_the_same_host(championship: Championship) -> None:
    for host in ("cup.example", "other.example:8080", "[::1]:8181", "cup.example"):
        assert said_of(await championship.get("", Host=host))["og:image"].startswith(f"http://{host}/board/")
    for host in ('a"b', "a/b", "a@b", "a b"):
        page = await championship.get("", Host=host)
        assert page.status == 400 or "og:image" not in said_of(page)


async def test_a_picture_is_that_of_a_log_that_ends_at_the_public_end(championship: Championship) -> None:
    async def submit(command: ChangePublication) -> None:
        await championship.service.desk.submit(championship.live, command, actor=OPERATOR)

    end = championship.live.head.sequence
    first = await championship.get("/picture.png")
    assert (await championship.get("/picture.png", **{"If-None-Match": first.headers["ETag"]})).status == 304
    await submit(ChangePublication(freeze="now"))
    await championship.give("Wales", 20)
    held = await championship.get("/picture.png")
    assert (held.body, held.headers["ETag"]) == (first.body, first.headers["ETag"])
    await submit(ChangePublication(reveal="all"))
    moved = await championship.get("/picture.png")
    assert moved.body != first.body
    assert (await championship.get(f"/picture.png?at={end}")).body == first.body
    await submit(ChangePublication(published=False))
    assert (await championship.get("/picture.png")).status == 404


async def test_a_picture_is_drawn_once_for_all_who_ask_and_the_pictures_of_a_second_are_limited(
    championship: Championship, calls: Calls
) -> None:
    drawn = calls(drawing, "draw")
    answers = await asyncio.gather(*(championship.get("/picture.png") for _ in range(10)))
    assert ({answer.status for answer in answers}, len(drawn)) == ({200}, 1)
    assert (await championship.get("/picture.png")).body == answers[0].body
    assert len(drawn) == 1


async def test_a_reading_that_outlasts_the_drawing_of_a_picture_gets_that_picture(
    bounds: Bounds,
) -> None:
    bounds(PICTURES_AT_ONCE_MAX=3, PICTURES_PER_SECOND_MAX=0.001, PICTURES_KEPT_MAX=2)
    pictures = Pictures()
    for name in ("a", "a", "b", "a", "c", "b"):
        await pictures.drawn(shown(name))
    with pytest.raises(TooManyRequests):  # a was drawn before the last two
        await pictures.drawn(shown("a"))


async def test_pictures_of_a_process_are_bounded(bounds: Bounds) -> None:
    bounds(PICTURES_AT_ONCE_MAX=3, PICTURES_PER_SECOND_MAX=0.001)
    pictures = Pictures()
    same = [pictures.drawn(shown("a")) for _ in range(5)]
    others = [pictures.drawn(shown(name)) for name in ("b", "c")]
    await asyncio.gather(*same, *others)
    with pytest.raises(TooManyRequests):
        await pictures.drawn(shown("d"))


# ── Drawing ─────────────────────────────────────────────────────────────────────────────────────────────

_NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=255)


@settings(unhurried, max_examples=15)
@given(st.lists(_NAMES, max_size=PICTURE_LINES), _NAMES, st.text("0123456789abcdef", min_size=6, max_size=6))
def test_whatever_the_names_are_there_is_a_picture(names: list[str], title: str, color: str) -> None:
    line = tuple(PictureLine("999999", 7, name, color, "\u22129\u202f223\u202f372\u202f036") for name in names)
    image = Image.open(BytesIO(draw(Pictured(title, title, title, title, line, title, title, title))))
    assert image.size == (WIDTH, HEIGHT)
    assert image.getpixel((WIDTH - 10, HEIGHT // 2)) == image.getpixel((10, HEIGHT // 2))  # nothing runs over the edge


def pixels(one: Pictured) -> bytes:
    return Image.open(BytesIO(draw(one))).tobytes()


@pytest.mark.parametrize(
    "name", ["Łódź", "Ελλάδα", "Україна", "ישראל", "السعودية", "საქართველო", "भारत", "ประเทศไทย", "Việt Nam", "⚽ FC Ⅱ"]
)
def test_names_in_many_scripts_are_drawn_whole(name: str) -> None:
    drawn = "".join(run for run, _ in drawing._runs(name, bold=False))
    assert drawn == name


def test_a_blank_stands_between_words_of_two_directions() -> None:
    runs = [run for run, _ in drawing._runs(" مصر  2024 FC ישראל x ", bold=False)]
    assert runs == ["مصر", " ", "2024 FC", " ", "ישראל", " ", "x"]


def test_a_letter_that_no_font_has_leaves_no_box(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "SYSTEM_FONTS", ())
    drawing._fonts.cache_clear()
    try:
        assert pixels(shown("Łódź 漢 FC")) == pixels(shown("Łódź FC"))
        assert pixels(shown("日本代表")) == pixels(shown("தமிழ்")) == pixels(shown("No. 1"))
    finally:
        drawing._fonts.cache_clear()


def test_a_font_of_the_system_has_what_the_installed_ones_do_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert list(drawing._runs("𝄞", bold=False)) == []
    font = tmp_path / "music.ttf"
    font.write_bytes(fontbuffers["music"]())
    monkeypatch.setattr(drawing, "SYSTEM_FONTS", ("/no/such/font.ttf", str(font)))
    drawing._fonts.cache_clear()
    try:
        assert list(drawing._runs("𝄞", bold=False)) == [("𝄞", str(font))]
    finally:
        drawing._fonts.cache_clear()


def test_a_name_that_is_too_long_ends_in_an_ellipsis_and_its_points_are_there() -> None:
    assert drawing._cut("a" * 255, 30, 200, bold=False).endswith("a…")
    assert drawing._cut("short", 30, 200, bold=False) == "short"
    assert pixels(shown("W" * 254)) == pixels(shown("W" * 255))


def test_a_colour_is_a_dot_that_is_seen_even_if_it_is_that_of_the_paper() -> None:
    assert len({pixels(shown("Ann", color=color)) for color in ("169b62", "fbfaf7", "000000")}) == 3
    assert pixels(shown("Ann", more="19 more")) != pixels(shown("Ann"))
