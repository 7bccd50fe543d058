"""Days are those of the tournament's time zone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from importlib import resources
from itertools import product
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import asyncpg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from api.interface.declarations import Write
from api.interface.fields import TIME_BEGIN, TIME_END, FieldMisread, Fields, begin_of_time, end_of_time
from api.interface.operations import OPERATIONS
from api.interface.public.reads import PUBLIC_READS
from engine.domain.presentation import in_zone
from projections.answers.zones import Day, unknown_zone
from projections.tables.worker import Worker
from projections.verification.all_tournaments import Plan, verify_all
from tests.api.asking import refused
from tests.api.cli.conftest import Tallybook
from tests.api.public_boards import change
from tests.api.visitor import CONSOLE, unreached, visiting
from tests.service import Answer, Season, Service, create_ranking, deltas, listed

_TICK = timedelta(microseconds=1)


@given(st.dates(date(1900, 1, 2), date(2100, 1, 1)), st.sampled_from(sorted(available_timezones())))
def test_a_day_ends_where_the_next_one_begins(day: date, name: str) -> None:
    zone = ZoneInfo(name)
    end, begin = end_of_time(day.isoformat()), begin_of_time((day + timedelta(days=1)).isoformat())
    assert isinstance(end, Day)
    assert isinstance(begin, Day)
    assert end.located(zone) + _TICK == begin.located(zone)
    assert type(end.located(zone)) is datetime
    assert end.located(UTC) == end


def test_only_a_day_without_a_zone_is_the_tournaments() -> None:
    for text in ("2024-03-10Z", "2024-03-10+02:00", "2024-03-10 12:00", "2024-03-10T12:00:00Z"):
        assert not isinstance(end_of_time(text), Day)
    berlin = ZoneInfo("Europe/Berlin")
    assert begin_of_time("2024-07-10 15:00", berlin) == datetime(2024, 7, 10, 13, tzinfo=UTC)
    assert begin_of_time("2024-07-10 15:00+00:00", berlin) == datetime(2024, 7, 10, 15, tzinfo=UTC)


@pytest.mark.parametrize("local", ["2026-03-29 02:00", "2026-03-29T02:30", "2026-03-29 02:59:59.5"])
def test_a_time_that_clocks_skip_is_refused(local: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    with pytest.raises(FieldMisread, match=r"2026-03-29 02:.. does not exist in Europe/Berlin: clocks are put forward"):
        begin_of_time(local, berlin)
    assert begin_of_time(local) == datetime.fromisoformat(local).replace(tzinfo=UTC)
    assert begin_of_time(f"{local}+01:00", berlin) == datetime.fromisoformat(f"{local}+01:00")


def test_a_time_that_occurs_twice_is_the_first_and_a_day_may_begin_late() -> None:
    assert begin_of_time("2026-10-25 02:30", ZoneInfo("Europe/Berlin")) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert begin_of_time("2018-11-04", ZoneInfo("America/Sao_Paulo")) == datetime(2018, 11, 4, 3, tzinfo=UTC)


def test_zones_are_those_of_the_package_whatever_the_machine_has(tmp_path: Path) -> None:
    """States change their clocks at short notice, and what each machine knows of it differs."""
    (tmp_path / "Europe").mkdir()
    (tmp_path / "Europe" / "Berlin").write_bytes((resources.files("tzdata.zoneinfo.Asia") / "Tokyo").read_bytes())
    asked = "from projections.answers.zones import *; print(datetime(2026, 1, 1, tzinfo=zone_of('Europe/Berlin')))"
    said = subprocess.check_output([sys.executable, "-c", asked], env=os.environ | {"PYTHONTZPATH": str(tmp_path)})
    assert said == b"2026-01-01 00:00:00+01:00\n"


def test_a_zone_that_nobody_knows_is_refused_with_near_names() -> None:
    assert unknown_zone("Europe/Berlin") is None
    assert "Europe/Berlin" in (unknown_zone("berlin") or "")
    assert "America/New_York" in (unknown_zone("New York") or "")
    for not_everywhere in ("localtime", "Factory"):
        assert unknown_zone(not_everywhere) is not None


async def test_days_of_questions_are_those_of_the_tournament(season: Season) -> None:
    client, ranking = season.client, season.ranking_id
    refused(await client.put("presentation.json", {"zone": "Atlantis"}), 422, "zone")
    form = {"group_id": 1, "participants": f"{season.ids[0]},{season.ids[1]}", "started_at": "2030-06-01 23:30:00"}
    competition = (await client.post("competitions.json", form)).json["competition"]["id"]
    points = {"participants_delta": deltas((season.ids[0], season.unity_id, 7)), "competition_id": competition}
    assert (await client.put(f"rankings/{ranking}/add.json", points)).status == 200

    async def total_on(day: str) -> int:
        answer = await client.get(f"rankings/{ranking}/standings.json?on={day}&top=1")
        return answer.json["ranking"]["unities"][0]["competitors_ranking"][0]["total"]

    before = await total_on("2030-05-31")
    assert await total_on("2030-06-01") == before + 7
    for zone, day in (("Asia/Tokyo", "2030-06-02"), ("America/New_York", "2030-06-01"), ("", "2030-06-01")):
        changed = await client.put("presentation.json", {"zone": zone})
        assert changed.json["presentation"]["zone"] == (zone or "UTC")
        assert await total_on("2030-05-31") == before
        assert await total_on("2030-06-02") == before + 7
        assert (await total_on("2030-06-01") == before + 7) == (day == "2030-06-01")
    asked = "competitions.json?from=2030-06-01&to=2030-06-01"
    listed = (await client.get(asked)).json["competitions"]["competition"]
    assert [one["id"] for one in listed] == [competition]
    await client.put("presentation.json", {"zone": "Asia/Tokyo"})
    assert not (await client.get(asked)).json["competitions"]["competition"]
    # In Tokyo, it is 8:30 of the next day. Until then, the day began 15 hours ago in London.
    until_then = "competitions.json?from=2030-06-02&to=2030-06-01T23:30:00Z"
    assert [one["id"] for one in (await client.get(until_then)).json["competitions"]["competition"]] == [competition]
    for reversed_days in ("from=2030-06-02&to=2030-06-01", "from=2030-06-02&to=2030-06-01T14:59:00Z"):
        refused(await client.get(f"competitions.json?{reversed_days}"), 400, "from")


# ── The ends of the calendar ────────────────────────────────────────────────────────────────────────────

ENDS = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(sorted(available_timezones())))
@example(datetime.min.replace(tzinfo=UTC), "America/New_York")
@example(datetime.max.replace(tzinfo=UTC), "Asia/Tokyo")
def test_a_moment_is_the_same_in_every_zone(moment: datetime, name: str) -> None:
    shown = in_zone(moment, ZoneInfo(name))
    assert shown == moment
    assert shown.tzinfo == ZoneInfo(name) or shown.date() in (date.min, date.max)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
async def test_competitions_at_the_ends_of_the_calendar_are_shown_everywhere(
    service: Service, season: Season, owner: asyncpg.Connection, tallybook: Tallybook, zone: str
) -> None:
    client, ids = season.client, season.ids
    slug = client.tournament
    await change(client, published="true")
    assert (await client.put("presentation.json", {"zone": zone})).status == 200
    lasting = await create_ranking(client, ids, name="Year", main_unity_lasts="P52W", main_unity_expires_on="day")
    for end in ENDS:
        played = {"group_id": 1, "participants": listed(ids[:2]), "started_at": end, "result": "2:1"}
        competition = (await client.post("competitions.json", played)).json["competition"]["id"]
        for ranking, unity in (season.ranking_id, season.unity_id), (lasting["id"], lasting["unities"][0]["id"]):
            points = {"participants_delta": deltas((ids[0], unity, 3)), "competition_id": competition}
            assert (await client.put(f"rankings/{ranking}/add.json", points)).status == 200

    async def answered(address: str) -> Answer:
        answer = await client.send("GET", address)
        assert answer.status < 500, (address, answer.body)
        return answer

    async def shown(address: str) -> Answer:
        answer = await answered(address)
        assert answer.status == 200, (address, answer.body)
        return answer

    words = {"ranking_id": season.ranking_id, "competitor_id": ids[0], "competition_id": competition}
    reads = [
        *((f"/tournament/{slug}/{one.path}", one.fields) for one in OPERATIONS if not isinstance(one, Write)),
        *((f"/board/{slug}/{one.path}", one.fields) for one in PUBLIC_READS),
    ]
    for path, fields in reads:
        for query in _queries(fields, season):
            await answered(path.format_map(words) + query)
    for below in (
        "/rounds",
        "/calendar.ics",
        "/timeline.json",
        "/race.json",
        "/picture.png",
        "/leaders",
        f"/competitors/{ids[0]}",
    ):
        await shown(f"/board/{slug}{below}")
    for below in ("", "/tv", "/embed", "/table.json", "/table.csv"):
        for name, end in product(("at", "on", "since"), ENDS):
            await shown(f"/board/{slug}{below}?{name}={end}")
    await unreached(answered, f"/board/{slug}", ())
    async with visiting(service, client.token) as visitor:

        async def visited(address: str) -> Answer:
            answer = await visitor.get(address)
            assert answer.status < 500, (address, answer.body)
            return answer

        await unreached(visited, f"{CONSOLE}/tournament/{slug}", ())

    await tallybook.done("leaders", slug, "Season", "--unity", "points")
    await Worker(service.database).catch_up()
    for (view,) in await owner.fetch("SELECT viewname FROM pg_views WHERE schemaname = 'tallybook'"):
        await owner.fetch(f"SELECT * FROM {view}")
    report = await verify_all(
        service.database, Plan(), on_difference=lambda _: None, on_events=lambda _done, _all: None
    )
    assert not report.differences


def _queries(fields: Fields, season: Season) -> Iterator[str]:
    """A query without times, and one for each end in each field that is a time."""
    said = {"competitor": season.ids[0], "competitors": season.ids[0], "sequence": 2}
    needed = [f"{one.name}={said.get(one.name, ENDS[1])}" for one in fields if one.required]
    yield f"?{'&'.join(needed)}"
    for one, end in product(fields, ENDS):
        if one.type in (TIME_BEGIN, TIME_END):
            yield "?" + "&".join([f"{one.name}={end}", *(said for said in needed if not said.startswith(one.name))])
