"""Bringing files of other programs through the console."""

import re
import threading
from base64 import b64encode
from types import SimpleNamespace

import pytest

from api.imports.readers import recognising
from api.imports.readers.brought import Brought, FileReader
from tests.api.asking import Log
from tests.api.imports.readers.damaged import FILES
from tests.api.scored import League
from tests.api.visitor import Visitor, form_of
from tests.api.web.test_console import at, words
from tests.bounds import Bounds
from tests.service import Season


def sent(name: str, **more: str) -> dict[str, str]:
    """A file as the script of the page puts it into the form."""
    return {"file": b64encode((FILES / name).read_bytes()).decode(), "file_name": name, **more}


async def test_a_file_is_brought_after_a_look_at_what_it_makes(visitor: Visitor, season: Season, log: Log) -> None:
    page, before = at(season, "/bring"), await log.length()
    look = (await visitor.fill(page, sent("league.xlsx", like="football"))).body.decode()
    assert "XLSX; it would make this. Nothing is recorded yet." in words(look)
    for said in ("4 competitors", "ranking Fixtures, like football", "6 competitions", "column 'Referee' is left out"):
        assert said in words(look)
    assert await log.length() == before
    form, action = form_of(look)
    assert (await visitor.post(action, form)).status == 303
    rankings = (await season.client.get("rankings.json?omit=competitors")).json["rankings"]["ranking"]
    assert "Fixtures" in [one["name"] for one in rankings]
    done = await log.length()
    again = words((await visitor.fill(page, sent("league.xlsx", like="football"))).body.decode())
    assert "6 competitions: 0 new, 0 to correct, and 6 unchanged" in again
    assert (await visitor.post(action, form)).status == 303
    assert await log.length() == done
    assert "/undo" in await visitor.page(at(season, "/imports"))


async def test_a_text_can_be_pasted_and_what_is_wrong_in_it_is_said(visitor: Visitor, season: Season) -> None:
    page = at(season, "/bring")
    report = (FILES / "round_robin.trf").read_text()
    assert "TRF; it would make this." in words((await visitor.fill(page, {"file": report})).body.decode())
    wrong = await visitor.fill(page, {"file": report.replace("6 w 0", "6 w 1", 1)})
    assert (wrong.status, "line 16 says otherwise about this game" in words(wrong.body.decode())) == (400, True)
    table = "home,away,score\nAnn,Zoe,2:1\n"
    assert "CSV; it would make this." in words(
        (await visitor.fill(page, {"file": table, "like": "football"})).body.decode()
    )
    for given, why in (
        ({"file": ""}, "The file is empty."),
        ({"file": table}, "The file does not say how its results count"),
        ({"file": "%", "file_name": "x.csv"}, "The file did not arrive whole; choose it again."),
    ):
        assert why in words((await visitor.fill(page, given)).body.decode())


@pytest.mark.parametrize("page", ["/bring", "/rankings/{}/import"])
async def test_what_looks_wrong_is_imported_only_with_a_tick(
    visitor: Visitor, season: Season, league: League, log: Log, page: str
) -> None:
    await league.score()
    before = await log.length()
    field = "file" if page == "/bring" else "csv"
    table = "date,{},score\n9990-03-01,{},2:1\n"
    text = table.format("home,away", "Ajax,Bari") if page == "/bring" else table.format("participants", "Ajax|Bari")
    look = await visitor.fill(at(season, page.format(league.ranking_id)), {field: text, "like": "football"})
    question = "Line 2, date: This competition is still to come. Has it been played?"
    form, action = form_of(look.body.decode())
    (sure,) = re.findall(r'<input type="checkbox" name="sure" value="([^"]*)" required>', look.body.decode())
    for tick in ({}, {"sure": "on"}):
        asked = await visitor.post(action, form | tick)
        assert question in words(asked.body.decode())
        assert await log.length() == before
    assert (await visitor.post(action, form | {"sure": sure})).status == 303
    assert await log.length() > before


async def test_beyond_the_limits_of_a_page_the_command_is_shown(
    visitor: Visitor, season: Season, bounds: Bounds
) -> None:
    page, slug = at(season, "/bring"), season.client.tournament
    bounds(PASTED_COMPETITIONS_MAX=5)
    many = words((await visitor.fill(page, sent("league.xlsx", like="football", dates="day-first"))).body.decode())
    command = f"tallybook bring league.xlsx {slug} --like=football --dates=day-first"
    assert f"A page brings up to 5 competitors and competitions. Use the command line: {command}" in many
    bounds(BODY_BYTES_MAX=10_000)
    large = await visitor.fill(page, {"file": "x" * 10_000, "file_name": "x.csv"})
    assert large.status == 413
    assert f"bytes. Use the command line: tallybook bring FILE {slug}" in words(large.body.decode())


async def test_a_file_is_read_while_others_are_answered(
    visitor: Visitor, season: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers do not pause, so they run next to the loop that answers."""
    threads = []

    def read(_content: bytes) -> Brought:
        threads.append(threading.current_thread())
        return Brought(name="", entrants=(), rankings=(), meetings=())

    reader = FileReader(name="Ours", suffixes=(), recognises=lambda _: True, read=read)
    monkeypatch.setattr(recognising, "entry_points", lambda *, group: [SimpleNamespace(load=lambda: reader)])
    assert "Ours; it would make this." in words((await visitor.fill(at(season, "/bring"), {"file": "x"})).body.decode())
    assert threads != [threading.main_thread()]
