"""The words of the console: an organiser meets those of their sport, and none of those that developers use."""

import re
from html import unescape
from typing import Final

from api.interface.kinds import kinds
from api.interface.sports import column_of
from engine.domain.presentation import LANGUAGES
from tests.api.asking import with_points
from tests.api.visitor import Visitor
from tests.api.web.test_console import OPEN, address_of, at, import_match, routes_of, with_idle
from tests.service import Season, Service

NEVER: Final = (
    *(
        "unity",
        "unities",
        "P52W",
        "ISO 8601",
        "classifications?",
        "groups?",
        "struck",
        "strikes?",
        "unstrike",
        "voids?",
    ),
    *("voided", "unvoid", "have it count", "leave it as it is", "enrol\\w*", "slugs?", "scopes?", "public end"),
    *("events?", "digests?", "tables current", "free modification", "as recorded", "by date", "ids?", "competitor_id"),
)
"""What no page for organisers says."""
FOR_AUDITORS: Final = ("/tournament/{tournament}/log", "/tournament/{tournament}/webhooks")
FOR_PROGRAMS: Final = ("/tournament/{tournament}/competitors/{competitor_id}/export",)
_SAID: Final = re.compile(r"\b(?:aria-label|placeholder|title|data-label)=\"([^\"]*)\"")


def said_on(page: str) -> str:
    """All that the page says: its text, and what its attributes say, but for the names of columns in files."""
    body = page[page.index("<main") :]
    texts = [
        re.sub(r"<textarea.*?</textarea>|<code>[a-z,]*</code>|<[^>]*>", " ", body, flags=re.DOTALL),
        *_SAID.findall(body),
    ]
    return unescape(" ".join(texts))


async def test_no_page_for_organisers_has_the_words_of_developers(
    service: Service, visitor: Visitor, season: Season
) -> None:
    season = await with_points(await with_idle(season))
    import_name = await import_match(visitor, season)
    never, met = re.compile(rf"\b(?:{'|'.join(NEVER)})\b", re.IGNORECASE), dict[str, set[str]]()
    for template, methods in (await routes_of(service)).items():
        if "GET" in methods and template not in {*OPEN, *FOR_AUDITORS, *FOR_PROGRAMS}:
            page = await visitor.page(address_of(template, season, import_name))
            met[template] = {*never.findall(said_on(page))}
    assert len(met) > 50
    assert {template: words for template, words in met.items() if words} == {}


async def test_a_league_of_a_kind_has_the_words_of_its_sport(visitor: Visitor, season: Season) -> None:
    assert "Add a competition" in await visitor.page(at(season, "/competitions"))
    answer = await visitor.fill(at(season, "/rankings/like"), {"like": "ice-hockey", "name": "League"})
    assert answer.headers["Location"].startswith(at(season, "?done="))
    (league,) = (await season.client.get("rankings.json")).json["rankings"]["ranking"][-1:]
    page = await visitor.page(at(season, f"/rankings/{league['id']}"))
    assert re.findall(r'<abbr title="(goals for|played)">([^<]*)<', page) == [("played", "P"), ("goals for", "GF")]
    assert "Add a game" in await visitor.page(at(season, "/competitions"))
    assert "Add a team" in await visitor.page(at(season, "/competitors"))


async def test_a_board_names_the_columns_of_a_sport_in_its_language(visitor: Visitor, season: Season) -> None:
    await visitor.fill(at(season, "/rankings/like"), {"like": "football", "name": "Liga"})
    await visitor.fill(at(season, "/publication/publish"), {})
    (league,) = (await season.client.get("rankings.json")).json["rankings"]["ranking"][-1:]
    query = f"ranking={league['id']}&lang=de"
    for below in ("", "/leaders"):
        page = await visitor.page(f"/board/{season.client.tournament}{below}?{query}")
        assert "Tordifferenz" in page
        assert "goal difference" not in page


def test_every_kind_has_its_words_in_every_language() -> None:
    for kind in kinds().values():
        for language in LANGUAGES:
            for unity in kind.unities:
                column = column_of(unity.name, language)
                assert column is not None, unity.name
                assert len(column.short) <= 9
                assert language != "en" or column.text == unity.name
