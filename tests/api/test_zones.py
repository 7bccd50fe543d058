"""Days are those of the tournament's time zone."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given
from hypothesis import strategies as st

from api.http.zones import Day, unknown_zone
from api.interface.fields import begin_of_time, end_of_time
from tests.api.asking import refused
from tests.api.service import Season, deltas

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
