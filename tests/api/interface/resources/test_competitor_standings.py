"""A competitor's standings: each line against the whole standings of its unity."""

import asyncio
from itertools import count
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given

from api.interface.resources.competitor_standings import (
    COMPETITOR_LINES_MAX,
    CompetitorStandingsQuestion,
    CompetitorStandingsShape,
    find_competitor_standings,
)
from engine.domain.events import Delta, PointsAdded, RankingModified, Recorded
from engine.domain.terms import UNITIES_MAX, CompetitorId, RankingId, UnityId
from engine.process.time_slices import TimeSlices
from projections.live import orders
from projections.live.tournament import LiveTournament
from tests.api.asking import NOBODY, refused
from tests.api.crowds import crowd, go_on, live_of, recorded
from tests.bounds import Bounds
from tests.histories import logs, unhurried
from tests.positions import standings
from tests.projections.pacing import AlwaysOver
from tests.service import Client, Season, deltas

ADA: Final = CompetitorId(1)
BOTH: Final = PointsAdded(
    ranking_id=RankingId(1), deltas=(Delta(ADA, UnityId(1_000), 1), Delta(CompetitorId(2), UnityId(1_001), -1))
)
"""It changes a line of each of the first two unities."""


async def found(live: LiveTournament, competitor_id: CompetitorId, after: int = 0) -> CompetitorStandingsShape:
    question = CompetitorStandingsQuestion(competitor_id, RankingId(after))
    return await find_competitor_standings(live, TimeSlices(), question)


def expected(live: LiveTournament, competitor_id: CompetitorId) -> list[Any]:
    """From the whole standings of each unity."""
    shown = []
    for ranking_id, ranking in live.board.rankings.items():
        unities = []
        for unity_id, unity in ranking.unities.items():
            lines = standings(ranking.participants, unity.totals, unity.sort)
            unities += [
                {"id": unity_id, "name": unity.name, "version": unity.version, "position": line.position,
                 "total": line.total, "lines": len(lines)}
                for line in lines
                if line.competitor_id == competitor_id
            ]  # fmt: skip
        if unities:
            shown.append({"id": ranking_id, "name": ranking.name, "unities": unities})
    return shown


# ── What is found ───────────────────────────────────────────────────────────────────────────────────────


@unhurried
@given(logs())
def test_they_are_the_lines_of_the_competitor_in_all_standings(log: list[Recorded]) -> None:
    async def assert_found() -> None:
        live = live_of(log)
        for competitor_id in live.board.competitors:
            shown = await found(live, competitor_id)
            assert msgspec.to_builtins(shown) == {"next": None, "ranking": expected(live, competitor_id)}

    asyncio.run(assert_found())


async def test_the_lines_of_an_answer_are_limited_and_the_next_one_continues() -> None:
    """A ranking is never divided, however many unities it may have."""
    exact = live_of(recorded(crowd(2, rankings=COMPETITOR_LINES_MAX)))
    assert (await found(exact, ADA)).next is None
    for unities, at_once in (
        (1, COMPETITOR_LINES_MAX),
        (3, COMPETITOR_LINES_MAX // 3),
        (UNITIES_MAX, COMPETITOR_LINES_MAX // UNITIES_MAX),
    ):
        live = live_of(recorded(crowd(2, unities=unities, rankings=at_once + 1)))
        first = await found(live, ADA)
        assert [ranking.id for ranking in first.ranking] == [*range(1, at_once + 1)]
        assert first.next == at_once
        rest = await found(live, ADA, after=at_once)
        assert ([ranking.id for ranking in rest.ranking], rest.next) == ([at_once + 1], None)
        assert (await found(live, ADA, after=at_once + 1)).ranking == []


async def test_orders_that_take_long_together_are_made_in_time_slices(bounds: Bounds) -> None:
    """Others have their turn after each. Nobody waits with the turns of all answers for an order that gives way itself:
    here, that of the ranking of all."""

    class OneAtATime(TimeSlices):
        entered = 0
        over = True

        async def __aenter__(self) -> None:
            await super().__aenter__()
            self.entered += 1

    bounds(MADE_AT_ONCE_MAX=10)
    live = live_of(recorded(crowd(11, unities=3, rankings=2)))
    small = RankingModified(
        ranking_id=RankingId(2),
        participants=(ADA, CompetitorId(3), CompetitorId(5), CompetitorId(7)),
        main_unity_name="p",
    )
    go_on(live, recorded([small], after=live.head.sequence))
    time_slices = OneAtATime()
    shown = await find_competitor_standings(live, time_slices, CompetitorStandingsQuestion(ADA))
    assert time_slices.entered == 4  # one for each unity of the second ranking, and one to find that there are no more
    assert msgspec.to_builtins(shown.ranking) == expected(live, ADA)


async def test_all_lines_show_the_same_moment(monkeypatch: pytest.MonkeyPatch, bounds: Bounds) -> None:
    """Both unities change in one event while the order of the second is made."""
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    live = live_of(recorded(crowd(5, unities=2)))
    await live.orders.of(RankingId(1), UnityId(1_000))
    last = live.head.sequence + 3

    def change() -> None:
        if live.head.sequence < last:
            go_on(live, recorded([BOTH], after=live.head.sequence))

    AlwaysOver.meanwhile = change
    shown = await found(live, ADA)
    points, fouls = shown.ranking[0].unities
    assert points.total == points.version - 1 > 0
    assert points.version == fouls.version


async def test_a_steady_flow_of_points_holds_nobody_up_for_ever(
    monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """In the end each line is what its version says."""
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "TimeSlice", AlwaysOver)
    live = live_of(recorded(crowd(5, unities=2)))
    ways = count()
    AlwaysOver.meanwhile = lambda: go_on(live, recorded([BOTH], after=live.head.sequence)) if next(ways) % 2 else None
    shown = await found(live, ADA)
    points, _ = shown.ranking[0].unities
    assert points.total == points.version - 1


# ── Over HTTP ───────────────────────────────────────────────────────────────────────────────────────────


async def test_they_change_with_points_and_lists_in_every_process(season: Season, peers_client: Client) -> None:
    client, (ada, ben, pair) = season.client, season.ids

    async def assert_shown() -> None:
        for asked in (client, peers_client):
            all_standings = [
                (await asked.get(f"rankings/{one['id']}/standings.json")).json["ranking"]
                for one in (await asked.get("rankings.json")).json["rankings"]["ranking"]
            ]
            for competitor_id in season.ids:
                answer = await asked.get(f"competitors/{competitor_id}/standings.json")
                assert answer.json.keys() == {"status", "message", "rankings"}
                shown = answer.json["rankings"]
                assert shown["next"] is None
                lines = [
                    (ranking["id"], unity["name"], unity["version"], unity["position"], unity["total"], unity["lines"])
                    for ranking in shown["ranking"]
                    for unity in ranking["unities"]
                ]
                assert lines == [
                    (whole["id"], unity["name"], unity["version"], line["position"], line["total"],
                     len(unity["competitors_ranking"]))
                    for whole in all_standings
                    for unity in whole["unities"]
                    for line in unity["competitors_ranking"]
                    if line["competitor_id"] == competitor_id
                ]  # fmt: skip

    await assert_shown()
    for path, form in (
        ("add.json", {"participants_delta": deltas((ben, season.unity_id, 5), (ada, season.unity_id, -1))}),
        ("participants.json", {"remove": ada}),
        ("add.json", {"participants_delta": deltas((pair, season.unity_id, 6))}),
        ("participants.json", {"add": ada}),
    ):
        assert (await client.put(f"{season.path}/{path}", form)).status == 200
        await assert_shown()


async def test_a_competitor_in_no_ranking_has_none(season: Season) -> None:
    new = (await season.client.post("competitors.json", {"name": "New"})).json["competitor"]["id"]
    answer = await season.client.get(f"competitors/{new}/standings.json")
    assert answer.json == {"status": 200, "message": "ok", "rankings": {"next": None, "ranking": []}}


async def test_a_tag_tells_whether_the_lines_changed(season: Season) -> None:
    path = f"competitors/{season.ids[0]}/standings.json"
    tag = (await season.client.get(path)).headers["ETag"]
    await season.client.post("competitors.json", {"name": "New"})
    assert (await season.client.get(path, {"If-None-Match": tag})).status == 304
    await season.client.put(
        f"{season.path}/add.json", {"participants_delta": deltas((season.ids[1], season.unity_id, 1))}
    )
    assert (await season.client.get(path, {"If-None-Match": tag})).status == 200


async def test_what_is_not_there_is_named(season: Season) -> None:
    client, path = season.client, f"competitors/{season.ids[0]}/standings.json"
    refused(await client.get(f"competitors/{NOBODY}/standings.json"), 404)
    refused(await client.get(f"competitors/{season.ranking_id}/standings.json"), 404)
    refused(await client.get(f"{path}?after={NOBODY}"), 422, "after")
    refused(await client.get(f"{path}?after={season.ids[0]}"), 422, "after")
    refused(await client.get(f"{path}?after=x"), 400, "after")
    refused(await client.get(f"{path}?top=3"), 400, "top")
