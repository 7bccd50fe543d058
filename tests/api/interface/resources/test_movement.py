"""Movement over HTTP: each line against the whole table at the moment that it is compared with."""

from contextlib import AbstractContextManager, nullcontext
from itertools import cycle
from typing import Any

import pytest

from api.http.outgoing import Later, Long
from api.interface.declarations import RecallContext
from api.interface.rendering import Answer
from api.interface.resources import standings
from api.interface.resources.classifications import answer_classification
from engine.domain.terms import RankingId, Sequence, TournamentId
from engine.process.time_slices import TimeSlices
from projections.answers.classification import ClassificationQuestion
from projections.answers.standings import StandingsQuestion
from projections.past.past import Past
from tests.api.asking import refused
from tests.api.crowds import all_long
from tests.service import Client, Season, Service, deltas, listed
from tests.shares import every

Lines = list[dict[str, Any]]


async def told(client: Client, address: str, *query: str) -> Any:
    answer = await client.get(f"{address}?{'&'.join(query)}")
    assert answer.status == 200, answer.body
    return answer.json.get("ranking") or answer.json["classification"]


def tables(shown: Any) -> list[Lines]:
    """The lines that an answer has, of each unity of standings."""
    return [unity["competitors_ranking"] for unity in shown["unities"]] if "unities" in shown else [shown["standings"]]


async def assert_moved(client: Client, address: str, table: list[str], window: list[str], since: str) -> None:
    """What `window` shows of the table, with and without a moment to compare with. Asked twice: the second time, a
    window of now is one that was kept."""
    plain = await told(client, address, *table, *window)
    named = [part for part in table if not part.startswith("at_sequence")]
    then = tables(await told(client, address, *named, f"at_sequence={since}"))
    for _ in range(2):
        compared = await told(client, address, *table, *window, f"since={since}")
        for number, (lines, before) in enumerate(zip(tables(compared), tables(plain), strict=True)):
            # A unity that there was not yet is not among those of the moment: they come in the order of creation.
            known = then[number] if number < len(then) else []
            positions = {line["competitor_id"]: line["position"] for line in known}
            assert [line.pop("moved") for line in lines] == [
                positions[line["competitor_id"]] - line["position"] if line["competitor_id"] in positions else None
                for line in before
            ]
        assert compared == plain
        assert await told(client, address, *table, *window) == plain


async def change(season: Season, path: str, **form: object) -> str:
    """The sequence after a change."""
    answer = await season.client.put(path, form)
    assert answer.status == 200, answer.body
    return str(answer.headers["Tallybook-Sequence"])


async def play(season: Season) -> list[str]:
    """Points, tags, lists, sorts and a unity change. Returns some moments."""
    client, path, (ada, ben, pair) = season.client, season.path, season.ids
    points = season.unity_id
    for who, tags in ((ada, "junior"), (ben, "junior"), (pair, "local")):
        await change(season, f"competitors/{who}.json", tags=tags)
    moments = [await change(season, f"{path}/add.json", participants_delta=deltas((ada, points, 3), (ben, points, 3)))]
    await change(season, f"{path}/participants.json", remove=ada)
    await change(season, f"competitors/{pair}.json", tags="junior,local")
    moments.append(await change(season, f"{path}/add.json", participants_delta=deltas((pair, points, 9))))
    dora = (await client.post("competitors.json", {"name": "Dora", "tags": "junior"})).json["competitor"]["id"]
    await change(season, f"{path}/participants.json", add=listed([ada, dora]))
    await change(season, f"{path}/unities/{points}.json", sort="ASC")
    cards = await client.post(f"{path}/unities.json", {"name": "cards"})
    assert cards.status == 200, cards.body
    moments.append(await change(season, f"{path}/add.json", participants_delta=deltas((ben, points, 4))))
    await change(season, f"{path}/unities/{points}.json", sort="DESC")
    return moments


@pytest.mark.one_in(3)
@pytest.mark.parametrize("made_lines_max", [None, standings.MADE_LINES_MAX, 0])
async def test_each_line_of_whole_standings_tells_how_it_has_moved(season: Season, made_lines_max: int | None) -> None:
    """Also if everything is made in as many chunks as can be, and if nothing of it is kept."""
    moments = await play(season)
    address = f"{season.path}/standings.json"
    making: AbstractContextManager[None] = nullcontext() if made_lines_max is None else all_long(made_lines_max)
    with making:
        for since in moments:
            for shown in ([], *[[f"at_sequence={moment}"] for moment in moments]):
                await assert_moved(season.client, address, shown, [], since)


@pytest.mark.parametrize("kind", ["standings", "classification"])
@every(2)
async def test_each_line_of_every_window_tells_how_it_has_moved(
    season: Season, peers_client: Client, kind: str, step: int
) -> None:
    """In the process that wrote and in another one, in turn, now and at a moment, forwards and backwards. In a
    sub-table it is the places among those who had the tag then."""
    moments = await play(season)
    clients = cycle((season.client, peers_client))
    first = season.ids[0]
    named = [[], ["tag=junior"], ["tag=nobody"]]
    if kind == "standings":
        unities = (await season.client.get(f"{season.path}.json")).json["ranking"]["unities"]
        named += [[f"unity={unity['id']}"] for unity in unities[:2]]
    for since in moments[::step]:
        for table in named:
            for moment in ([], [f"at_sequence={moments[0]}"], [f"at_sequence={moments[2]}"]):
                for window in (["top=2"], ["offset=1"], [f"around={first}&span=1"], [f"competitors={first}"]):
                    if table != ["tag=nobody"] or window in (["top=2"], ["offset=1"]):
                        shown = [*table, *moment]
                        await assert_moved(next(clients), f"{season.path}/{kind}.json", shown, window, since)


async def test_in_a_unity_that_there_was_not_yet_nobody_has_moved(season: Season) -> None:
    before, *_ = await play(season)
    cards = (await season.client.get(f"{season.path}.json")).json["ranking"]["unities"][2]["id"]
    for window in ("", "&top=2", "&tag=junior"):
        shown = await told(season.client, f"{season.path}/standings.json", f"unity={cards}&since={before}{window}")
        assert {line["moved"] for lines in tables(shown) for line in lines} == {None}


@pytest.mark.parametrize("kind", ["standings", "classification"])
async def test_a_moment_to_compare_with_must_be_there(season: Season, kind: str) -> None:
    address = f"{season.path}/{kind}.json"
    head = (await told(season.client, address))["sequence"]
    for window in ("", "&top=1", f"&top=1&at_sequence={head}", f"&at_sequence={head}"):
        for since in ("since=1", f"since={head + 1}", "since_time=1999-12-31"):
            refused(await season.client.get(f"{address}?{since}{window}"), 404)
        both = f"{address}?since=1&since_time=2999-12-31%2023:59:59{window}"
        refused(await season.client.get(both), 400, "since", "since_time")
        refused(await season.client.get(f"{address}?since=0{window}"), 400, "since")
        shown = await told(season.client, address, f"since_time=2999-12-31{window}")
        assert {line["moved"] for lines in tables(shown) for line in lines} == {0}


async def test_whole_standings_have_a_tag_that_changes_with_what_they_are_compared_with(season: Season) -> None:
    moments = await play(season)
    address = f"{season.path}/standings.json"
    first = await season.client.get(f"{address}?since={moments[0]}")
    again = await season.client.get(f"{address}?since={moments[0]}", {"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    for other in (f"?since={moments[1]}", ""):
        assert (await season.client.get(f"{address}{other}")).headers["ETag"] != first.headers["ETag"]


@pytest.mark.parametrize(
    ("answering", "asking"),
    [(standings.answer_standings, StandingsQuestion), (answer_classification, ClassificationQuestion)],
)
async def test_what_was_read_of_the_log_to_compare_with_must_still_be_there_when_the_answer_is_made(
    service: Service, season: Season, clients_tournament: TournamentId, answering: Any, asking: Any
) -> None:
    since = Sequence(int((await play(season))[0]))

    async def begin(later: Later) -> Long:
        return later()

    async with service.desk.live_pool.pinned(clients_tournament) as live:
        for top in None, 1:
            for moment in None, since:
                context = RecallContext(live, Past(service.database), TimeSlices(), begin=begin)
                question = asking(ranking_id=RankingId(season.ranking_id), top=top, since=moment)
                await answering(context, Answer("ranking", object), question)
                assert context.log_is_read is (moment is not None)
