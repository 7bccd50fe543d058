"""The words of boards, in every language, against what uses them."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.preferences import accepted_language
from api.interface.kinds import kinds
from api.interface.sports import ANY_SPORT, Sport
from api.web.words import Words, table, texts_of, words_for
from engine.domain.notation import Notation
from engine.domain.presentation import LANGUAGES
from tests.service import Season

WEB: Final = Path(__file__).parents[3] / "api" / "web"
_ANY: Final = re.compile(r"""["']([a-z_]+)["']""")
PLURALS: Final = ("_one", "_other")


def test_each_key_has_words_in_each_language_with_the_same_places() -> None:
    keys = [key for part in table().values() for key in part]
    assert len(keys) == len(set(keys))
    for part in table().values():
        for key, texts in part.items():
            assert tuple(texts) == LANGUAGES, key
            places = {language: sorted(re.findall(r"\{(\w+)\}", text)) for language, text in texts.items()}
            assert all(found == places["en"] for found in places.values()), (key, places)
            assert all(text.strip() for text in texts.values()), key
    assert {len(texts_of(language)["months"].split("|")) for language in LANGUAGES} == {12}


def test_each_sport_has_words_for_what_is_played_in_each_language() -> None:
    for sport in [ANY_SPORT, *[Sport(kind.competitor, kind.competition) for kind in kinds().values()]]:
        for language in LANGUAGES:
            said, general = Words(language, sport=sport), Words(language)
            for key in "competitions", "competition_number", "competition_of", "no_competition", "no_matches":
                assert "{match" not in said(key).lower()
                assert (said(key) == general(key)) == (sport == ANY_SPORT), (key, language, sport)
            assert said("fixtures") == "Fixtures" or said("competitions").lower() in said("fixtures").lower()
            assert said.html("competition_number", number=3) == said("competition_number", number=3)
    assert Words("de", sport=Sport("boat", "race"))("fixtures") == "Nächste Rennen"


def test_no_key_is_unused_and_none_that_is_used_is_missing() -> None:
    pages = {name for path in WEB.glob("*.py") for name in _ANY.findall(path.read_text(encoding="utf-8"))}
    scripts = {
        name for path in (WEB / "static").glob("*.js") for name in _ANY.findall(path.read_text(encoding="utf-8"))
    }
    scripts |= set(re.findall(r"WORDS\.(\w+)", (WEB / "static" / "words.js").read_text(encoding="utf-8")))
    for part, texts in table().items():
        for key in texts:
            stem = next((key.removesuffix(end) for end in PLURALS if key.endswith(end)), key)
            assert stem in (scripts if part == "script" else pages), key
    said = {key for path in WEB.glob("*.py") for key in _said(path, r"\bwords(?:\.html)?\(\s*\"([a-z_]+)\"")}
    counted = {key for path in WEB.glob("*.py") for key in _said(path, r"words\.counted\(\s*\"([a-z_]+)\"")}
    said |= {key + end for key in counted for end in PLURALS}
    assert said <= texts_of("en").keys()
    in_scripts = {
        key for path in (WEB / "static").glob("*.js") for key in _said(path, r"\bword(?:Parts)?\(\"([a-z_]+)\"")
    }
    assert in_scripts <= table()["script"].keys()


def _said(path: Path, pattern: str) -> list[str]:
    return re.findall(pattern, path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("language", "zone", "text"),
    [
        ("en", "UTC", "1 March 2024, 23:05 UTC"),
        ("de", "Europe/Berlin", "2. März 2024, 00:05 UTC+1"),
        ("fr", "America/St_Johns", "1er mars 2024, 19:35 UTC\N{MINUS SIGN}3:30"),
        ("es", "Asia/Kolkata", "2 de marzo de 2024, 04:35 UTC+5:30"),
    ],
)
def test_a_time_is_written_in_the_zone_and_the_language(language: str, zone: str, text: str) -> None:
    assert Words(language, zone).time(datetime(2024, 3, 1, 23, 5, tzinfo=UTC)) == text


@pytest.mark.parametrize(
    ("zone", "moment", "text"),
    [
        ("UTC", datetime(2024, 3, 1, tzinfo=UTC), "1 March 2024"),
        ("UTC", datetime(2024, 3, 1, 23, 59, 59, 999_999, UTC), "1 March 2024"),
        ("UTC", datetime(2024, 3, 1, 0, 0, 1, tzinfo=UTC), "1 March 2024, 00:00 UTC"),
        ("Europe/Berlin", datetime(2024, 7, 1, 22, tzinfo=UTC), "2 July 2024"),
        ("Europe/Berlin", datetime(2024, 7, 1, tzinfo=UTC), "1 July 2024, 02:00 UTC+2"),
        ("America/New_York", datetime(2024, 7, 1, tzinfo=UTC), "30 June 2024, 20:00 UTC\N{MINUS SIGN}4"),
    ],
)
def test_a_day_that_was_given_without_a_time_is_written_without_one(zone: str, moment: datetime, text: str) -> None:
    assert Words("en", zone).when(moment) == text
    assert text in str(Words("en", zone).when_element(moment))


def test_numbers_have_the_point_of_the_language() -> None:
    assert Words("en").number(-1234550, Notation(decimals=2)) == "\N{MINUS SIGN}12\u202f345.50"
    assert Words("de").number(-1234550, Notation(decimals=2)) == "\N{MINUS SIGN}12\u202f345,50"
    assert Words("fr").counted("lines", 0) == "0 ligne"
    assert Words("de").counted("lines", 0) == "0 Zeilen"


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(LANGUAGES))
def test_every_time_can_be_written(moment: datetime, language: str) -> None:
    assert str(moment.year) in Words(language).time(moment)
    assert Words(language, "Asia/Tokyo").time(moment)


def test_the_language_is_that_asked_for_then_the_tournaments_then_the_preferred() -> None:
    assert words_for("UTC", "es", "fr", None).language == "es"
    assert words_for("UTC", None, "fr", "de").language == "fr"
    assert words_for("UTC", None, None, "de").language == "de"
    assert words_for("UTC", None, None, None).language == "en"


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("de-CH,de;q=0.9,en;q=0.8", "de"),
        ("it,fr;q=0.5,en;q=0.4", "fr"),
        ("en;q=0,es", "es"),
        ("de;q=0", None),
        ("*", None),
        ("", None),
        ("de;;;", None),
    ],
)
def test_the_preferred_language_is_the_first_of_the_best(header: str, language: str | None) -> None:
    assert accepted_language([header], LANGUAGES) == language


async def test_a_page_is_in_the_language_of_its_reader(season: Season) -> None:
    client = season.client
    assert (await client.put("publication.json", {"published": "true"})).status == 200
    board = f"/board/{client.tournament}"

    async def page(query: str = "", accepts: str = "") -> str:
        answer = await client.send("GET", board + query, headers={"Accept-Language": accepts} if accepts else {})
        assert "Accept-Language" in ", ".join(answer.headers.getall("Vary"))
        return answer.body.decode()

    assert '<html lang="en">' in await page()
    german = await page(accepts="de-DE,en;q=0.5")
    assert '<html lang="de">' in german
    assert "Stand: " in german
    assert '<html lang="en">' in await page()  # what is kept for others is not theirs
    spanish = await page("?lang=es", accepts="de")
    assert '<html lang="es">' in spanish
    assert spanish.count("lang=es") > 3  # where it leads
    await client.put("presentation.json", {"language": "fr", "zone": "Asia/Tokyo"})
    french = await page(accepts="de")
    assert '<html lang="fr">' in french
    assert 'data-zone="Asia/Tokyo"' in french
    assert "UTC+9" in french
    assert (await client.send("GET", f"{board}?lang=xx")).status == 400
