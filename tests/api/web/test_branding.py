"""The colour and logo of a tournament on its board, and the first page, which leads to listed boards."""

import re
from base64 import b64decode
from importlib.resources import files

from hypothesis import given
from hypothesis import strategies as st

from api.web.accent import DARK_PAPERS, LEGIBLE_CONTRAST_MIN, LIGHT_PAPERS, accents, contrast
from projections.tables.worker import Worker
from tests.histories import LOGO
from tests.service import Season, Service


@given(st.from_regex(r"[0-9a-f]{6}", fullmatch=True))
def test_every_colour_can_be_read_on_every_paper(color: str) -> None:
    light, dark = accents(color)
    assert all(contrast(light, paper) >= LEGIBLE_CONTRAST_MIN for paper in LIGHT_PAPERS)
    assert all(contrast(dark, paper) >= LEGIBLE_CONTRAST_MIN for paper in DARK_PAPERS)
    assert (
        color in (light, dark)
        or min(contrast(color, paper) for paper in LIGHT_PAPERS + DARK_PAPERS) < LEGIBLE_CONTRAST_MIN
    )


def test_the_papers_are_those_of_the_style() -> None:
    style = (files("api.web") / "static" / "board.css").read_text(encoding="utf-8")
    for name, papers in (("paper", 0), ("raised", 1), ("faint", 2)):
        found = re.findall(rf"--{name}: #([0-9a-f]{{6}});", style)
        assert found == [LIGHT_PAPERS[papers], DARK_PAPERS[papers]]


async def test_a_board_has_the_colour_and_logo_of_its_tournament(season: Season) -> None:
    client = season.client
    board = f"/board/{client.tournament}"
    assert (await client.put("publication.json", {"published": "true"})).status == 200
    plain = (await client.send("GET", board)).body.decode()
    assert "accent/" not in plain
    assert (await client.send("GET", f"{board}/logo.png")).status == 404
    await client.put("presentation.json", {"accent": "FFEE00", "logo": LOGO})
    page = (await client.send("GET", board)).body.decode()
    (address,) = re.findall(r'href="(/static/\w+/accent/ffee00\.css)"', page)
    style = await client.send("GET", address)
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert all(f"--accent: #{color};" in style.body.decode() for color in accents("ffee00"))
    assert f'<link rel="icon" href="{board}/logo.png" type="image/png">' in page
    assert f'<img src="{board}/logo.png" alt="" class="logo">' in page
    logo = await client.send("GET", f"{board}/logo.png")
    assert (logo.body, logo.headers["Content-Type"]) == (b64decode(LOGO), "image/png")
    await client.put("presentation.json", {"accent": "", "logo": ""})
    page = (await client.send("GET", board)).body.decode()
    assert "accent/" not in page
    assert "logo.png" not in page


async def test_the_first_page_leads_to_listed_boards_alone(season: Season, service: Service) -> None:
    client = season.client

    async def leads() -> bool:
        await Worker(service.database).catch_up()
        return f"/board/{client.tournament}" in (await client.send("GET", "/")).body.decode()

    assert not await leads()
    await client.put("presentation.json", {"listed": "true"})
    assert not await leads()  # it is not published
    await client.put("publication.json", {"published": "true"})
    assert await leads()
    await client.put("presentation.json", {"listed": "false"})
    assert not await leads()
