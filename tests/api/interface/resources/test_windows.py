"""Windows of standings over HTTP: each against the whole standings at the same moment."""

import asyncio
import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.interface.fields import read_query
from api.interface.windows import WINDOW_FIELDS
from engine.domain.errors import Unacceptable
from engine.domain.steps import finished
from engine.domain.terms import CompetitorId, Sort
from projections.answers.windows import SPAN_MAX, WINDOW_LINES_MAX, Window
from projections.board.order import OrderedLines
from projections.board.standing import Standing
from projections.board.sub_table import SOUGHT_AT_ONCE_MAX, UnityLines
from projections.columns.enrolment import Enrolment, Totals
from projections.live import orders
from tests.api.asking import NOBODY, refused
from tests.api.crowds import append, crowd, points
from tests.bounds import Bounds
from tests.histories import unhurried
from tests.positions import standings
from tests.service import Client, Season, create_ranking, deltas, listed, register
from tests.shares import every

# ── The question ────────────────────────────────────────────────────────────────────────────────────────

who: Final = st.integers(1, 12).map(CompetitorId)


def order_of(enrolled: Iterable[CompetitorId], totals: Mapping[CompetitorId, int], sort: Sort) -> OrderedLines:
    enrolment = Enrolment(enrolled)
    return OrderedLines(enrolment, Totals(enrolment, totals), sort)


def cut(order: OrderedLines, window: Window) -> list[Standing]:
    return finished(window.lines(UnityLines(order)))


@unhurried
@given(
    st.lists(who, unique=True),
    st.dictionaries(who, st.integers(-2, 2)),
    st.sampled_from(Sort),
    st.integers(0, 14),
    st.integers(1, 14),
    st.lists(who, unique=True),
)
def test_a_window_is_a_part_of_the_standings(
    enrolled: list[CompetitorId],
    totals: dict[CompetitorId, int],
    sort: Sort,
    start: int,
    count: int,
    asked: list[CompetitorId],
) -> None:
    whole = standings(enrolled, totals, sort)
    order = order_of(enrolled, totals, sort)
    assert cut(order, Window(top=count)) == whole[:count]
    assert cut(order, Window(offset=start)) == whole[start:]
    assert cut(order, Window(limit=count)) == whole[:count]
    assert cut(order, Window(offset=start, limit=count)) == whole[start : start + count]
    line_of = {line.competitor_id: line for line in whole}
    if line_of.keys() >= set(asked):
        assert cut(order, Window(competitors=tuple(asked))) == [line_of[c] for c in asked]
    else:
        with pytest.raises(Unacceptable) as refusal:
            cut(order, Window(competitors=tuple(asked)))
        assert len(refusal.value.faults) == len(set(asked) - line_of.keys())
    for offset, line in enumerate(whole):
        found = cut(order, Window(around=line.competitor_id, span=start))
        assert found == whole[max(offset - start, 0) : offset + start + 1]


def test_the_lines_of_a_window_are_limited() -> None:
    totals = {CompetitorId(n): n for n in range(1, 1_101)}
    order = order_of(totals, totals, Sort.DESC)
    ids = ",".join(str(n) for n in range(1, WINDOW_LINES_MAX + 1))
    for query in ([("top", "1000")], [("offset", "0")], [("limit", "1000")], [("competitors", ids)], [("unity", "1")]):
        assert len(cut(order, Window(**read_query(query, WINDOW_FIELDS)))) == WINDOW_LINES_MAX
    around = Window(**read_query([("around", "550"), ("span", str(SPAN_MAX))], WINDOW_FIELDS))
    assert len(cut(order, around)) == 2 * SPAN_MAX + 1 <= WINDOW_LINES_MAX


UNREADABLE: Final = [
    ("top=0", ["top"]),
    ("top=1001", ["top"]),
    ("limit=1001", ["limit"]),
    ("limit=0", ["limit"]),
    ("offset=-1", ["offset"]),
    ("around=1&span=500", ["span"]),
    ("around=1&span=-1", ["span"]),
    ("around=1", ["around"]),
    ("span=1", ["span"]),
    ("competitors=", ["competitors"]),
    ("competitors=1,1", ["competitors"]),
    ("competitors=" + ",".join(map(str, range(1, 1_002))), ["competitors"]),
    ("unity=0", ["unity"]),
    ("top=1&offset=1", ["top", "offset"]),
    ("top=1&around=1&span=1", ["top", "around", "span"]),
    ("competitors=1&limit=1&offset=0", ["competitors", "offset", "limit"]),
    ("top=1&at_sequence=1&version=1:1", ["at_sequence", "version"]),
]


async def test_what_makes_no_sense_is_400_and_named(season: Season, subtests: pytest.Subtests) -> None:
    for query, fields in UNREADABLE:
        with subtests.test(query):
            refused(await season.client.get(f"{season.path}/standings.json?{query}"), 400, *fields)


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────


async def shown(client: Client, path: str, *query: str) -> Any:
    answer = await client.get(f"{path}/standings.json?{'&'.join(query)}")
    assert answer.status == 200, answer.body
    return answer.json["ranking"]


def cut_out(whole: Any, number: int, lines: list[Any]) -> Any:
    """What a window with these lines shows of the whole answer. Competitors come in the order of the lines."""
    unity = whole["unities"][number]
    by_id = {competitor["id"]: competitor for competitor in whole["competitors"]}
    count = len(unity["competitors_ranking"])
    return whole | {
        "competitors": [by_id[line["competitor_id"]] for line in lines],
        "unities": [unity | {"competitors_ranking": lines, "lines": count}],
    }


async def assert_windows(client: Client, path: str, unities: list[int], *moment: str) -> None:
    """Every window of every unity, against the whole."""
    whole = await shown(client, path, *moment)
    for number, unity_id in enumerate(unities):
        lines = whole["unities"][number]["competitors_ranking"]
        named = [*moment, f"unity={unity_id}"] if number else moment
        assert await shown(client, path, *named, "top=2") == cut_out(whole, number, lines[:2])
        assert await shown(client, path, *named, "offset=1&limit=2") == cut_out(whole, number, lines[1:3])
        assert await shown(client, path, *named, "limit=1000") == cut_out(whole, number, lines)
        assert await shown(client, path, *named, f"offset={2**63 - 1}") == cut_out(whole, number, [])
        for offset, line in enumerate(lines):
            around = await shown(client, path, *named, f"around={line['competitor_id']}&span=1")
            assert around == cut_out(whole, number, lines[max(offset - 1, 0) : offset + 2])
        asked = lines[::-1]
        ids = listed(line["competitor_id"] for line in asked)
        assert await shown(client, path, *named, f"competitors={ids}") == cut_out(whole, number, asked)
        await assert_sub_tables(client, path, whole, number, *named)


async def assert_sub_tables(client: Client, path: str, whole: Any, number: int, *named: str) -> None:
    """Every window of every sub-table, against the whole: positions are counted among those who have the tag."""
    for tag in ("junior", "local", "nobody"):
        having = {competitor["id"] for competitor in whole["competitors"] if {"name": tag} in competitor["tags"]}
        lines = [line for line in whole["unities"][number]["competitors_ranking"] if line["competitor_id"] in having]
        lines = [
            line
            | {
                "overall": line["position"],
                "position": 1 + sum(other["position"] < line["position"] for other in lines),
            }
            for line in lines
        ]

        def expected(of: list[Any], count: int = len(lines)) -> Any:
            told = cut_out(whole, number, of)
            return told | {"unities": [told["unities"][0] | {"lines": count}]}

        asked = [*named, f"tag={tag}"]
        assert await shown(client, path, *asked) == expected(lines)
        assert await shown(client, path, *asked, "top=1") == expected(lines[:1])
        assert await shown(client, path, *asked, "offset=1&limit=2") == expected(lines[1:3])
        for offset, line in enumerate(lines):
            around = await shown(client, path, *asked, f"around={line['competitor_id']}&span=1")
            assert around == expected(lines[max(offset - 1, 0) : offset + 2])
            one = await shown(client, path, *asked, f"competitors={line['competitor_id']}")
            assert one == expected([line])


@every(3)
async def test_every_window_is_a_part_of_the_whole_at_every_moment(
    season: Season, peers_client: Client, step: int
) -> None:
    """After points, lists, names, tags, sorts and voided competitions; by the process that wrote, and by another."""
    client, path, (ada, ben, pair) = season.client, season.path, season.ids
    unity_ids = [unity["id"] for unity in (await client.get("rankings.json")).json["rankings"]["ranking"][0]["unities"]]
    points, fouls = unity_ids
    cause = season.competition_id
    moments = []
    for competitor_id, tags in ((ada, "junior,local"), (ben, "local"), (pair, "junior")):
        await client.put(f"competitors/{competitor_id}.json", {"tags": tags})
    for change, form in (
        ("/add.json", {"participants_delta": deltas((ada, points, 3), (ben, points, 3), (pair, fouls, -1))}),
        ("/add.json", {"participants_delta": deltas((pair, points, 5), (pair, points, 2)), "competition_id": cause}),
        ("", {"main_unity_name": "score", "participants": listed([ben, ada])}),
        ("/add.json", {"participants_delta": deltas((ada, points, 4)), "competition_id": cause}),
        (f"/unities/{points}.json", {"sort": "ASC"}),
        (f"/unities/{fouls}.json", {"sort": "DESC", "name": "fair play"}),
        ("/add.json", {"participants_delta": deltas((ada, points, 7), (ben, fouls, 1))}),
        (f"/unities/{points}.json", {"sort": "DESC"}),
        ("/information.json", {"name": "Cup", "description": ""}),
        ("", {"main_unity_name": "score", "participants": listed([pair, ben, ada])}),
        ("void", {}),
        ("/add.json", {"participants_delta": deltas((ben, fouls, 9), (ben, points, 2**31 - 1))}),
        ("unvoid", {}),
        ("tags", {"tags": "local"}),
    ):
        target = f"competitions/{cause}/{change}.json" if "void" in change else f"{path}{change or '.json'}"
        target = f"competitors/{pair}.json" if change == "tags" else target
        answer = await client.put(target, form)
        assert answer.status == 200, answer.body
        moments.append(answer.headers["Tallybook-Sequence"])
        await assert_windows(client, path, unity_ids)
        await assert_windows(peers_client, path, unity_ids)
    for sequence in moments[::step]:
        await assert_windows(client, path, unity_ids, f"at_sequence={sequence}")
    await assert_windows(client, path, unity_ids, f"version={points}:3")


async def test_a_window_waits_for_the_bounds_of_its_competitors(season: Season, bounds: Bounds) -> None:
    """Of many competitors, some below others, the bounds are made step by step, while the answer is sent."""
    client, path, (_, ben, pair) = season.client, season.path, season.ids
    expected = cut_out(await shown(client, path), 0, [{"competitor_id": pair, "position": 1, "total": 0}])
    bounds(LINES_AT_ONCE_MAX=0)
    for moment in ("", f"&at_sequence={expected['sequence']}"):
        assert await shown(client, path, f"competitors={pair}{moment}") == expected
    await client.put(f"competitors/{ben}.json", {"name": "Benedict"})  # all bounds are made again
    first = await client.get(f"{path}/standings.json?competitors={pair}")
    assert first.json["ranking"] == expected | {
        name: first.json["ranking"][name] for name in ("sequence", "recorded_at")
    }
    await client.put(f"competitors/{ben}.json", {"name": "Ben"})
    changed = await client.get(f"{path}/standings.json?competitors={ben}")
    assert changed.headers["ETag"] != first.headers["ETag"]
    assert [competitor["name"] for competitor in changed.json["ranking"]["competitors"]] == ["Ben"]


async def test_a_window_names_what_is_not_there(season: Season) -> None:
    client, path, (ada, ben, _) = season.client, season.path, season.ids
    other = await create_ranking(client, [ben], name="Other")
    for query in (f"unity={NOBODY}", f"unity={other['unities'][0]['id']}&top=1", f"unity={NOBODY}&at_sequence=99999"):
        refused(await client.get(f"{path}/standings.json?{query}"), 404)
    there = f"rankings/{other['id']}"
    head = (await shown(client, there))["sequence"]
    for moment in ("", f"&at_sequence={head}"):
        refused(await client.get(f"{there}/standings.json?around={ada}&span=1{moment}"), 422, "around")
        refused(await client.get(f"{there}/standings.json?competitors={ben},{ada}{moment}"), 422, "competitors")
    refused(await client.get(f"{there}/standings.json?competitors={ada},{NOBODY}"), 422, "competitors", "competitors")


async def test_a_competitor_without_the_tag_is_not_in_its_sub_table(season: Season) -> None:
    client, path, (ada, ben, _) = season.client, season.path, season.ids
    await client.put(f"competitors/{ada}.json", {"tags": "Junior"})
    for moment in ("", f"&at_sequence={(await shown(client, path))['sequence']}"):
        of = f"{path}/standings.json?tag=Junior{moment}"
        (fault,) = refused(await client.get(f"{of}&around={ben}&span=1"), 422, "around")
        assert fault == f"competitor {ben} is not among the competitors of the ranking that have this tag"
        refused(await client.get(f"{of}&competitors={ada},{ben},{NOBODY}"), 422, "competitors", "competitors")
    assert (await shown(client, path, "tag=junior"))["unities"][0]["lines"] == 0
    refused(await client.get(f"{path}/standings.json?tag="), 400, "tag")
    refused(await client.get(f"{path}/standings.json?tag={'x' * 256}"), 400, "tag")


async def test_the_lines_of_a_sub_table_are_limited(dsn: str, client: Client, bounds: Bounds) -> None:
    """Also of more than are looked up one by one."""
    most = SOUGHT_AT_ONCE_MAX + 1
    await append(dsn, client.tournament, [*crowd(most, tags=("all",)), points(competitor=2)])
    bounds(SUB_TABLE_COMPETITORS_MAX=most)
    unity = (await shown(client, "rankings/1", "tag=all&top=2"))["unities"][0]
    assert unity["lines"] == most
    assert [tuple(line.values()) for line in unity["competitors_ranking"]] == [(2, 1, 1, 1), (1, 2, 0, 2)]
    bounds(SUB_TABLE_COMPETITORS_MAX=most - 1)
    (fault,) = refused(await client.get("rankings/1/standings.json?tag=all&top=3"), 422, "tag")
    assert fault == "is that of 501 competitors; a sub-table can be asked for of at most 500"


async def test_a_window_embeds_its_competitors_and_no_others_up_to_the_bound(dsn: str, client: Client) -> None:
    await append(dsn, client.tournament, crowd(WINDOW_LINES_MAX + 5))
    for query, lines in (
        ("top=1000", range(1, 1_001)),
        ("unity=1000", range(1, 1_001)),
        ("offset=3", range(4, 1_004)),
        ("offset=995&limit=1000", range(996, 1_006)),
        ("around=503&span=499", range(4, 1_003)),
        ("competitors=1005,1,503", (1_005, 1, 503)),
    ):
        ranking = await shown(client, "rankings/1", query)
        (unity,) = ranking["unities"]
        assert [line["competitor_id"] for line in unity["competitors_ranking"]] == [*lines]
        assert [competitor["id"] for competitor in ranking["competitors"]] == [*lines]
        assert unity["lines"] == WINDOW_LINES_MAX + 5


async def test_a_window_has_a_tag_that_changes_with_it(season: Season) -> None:
    client, path = season.client, f"{season.path}/standings.json?top=1"
    first = await client.get(path)
    again = await client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")
    await client.put(f"{season.path}/add.json", {"participants_delta": deltas((season.ids[1], season.unity_id, 1))})
    changed = await client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert changed.status == 200
    assert changed.json["ranking"]["unities"][0]["competitors_ranking"][0]["competitor_id"] == season.ids[1]


async def test_windows_are_whole_while_orders_are_made_and_lines_move(
    client: Client, monkeypatch: pytest.MonkeyPatch, bounds: Bounds
) -> None:
    """Orders are made in steps and dropped after few changes; whoever asks meanwhile gets the state after the sequence
    that the answer names, each total once."""
    bounds(MADE_AT_ONCE_MAX=0)
    monkeypatch.setattr(orders, "_CHANGED_SPARE", 1)
    ids = await register(client, *(f"Competitor {n}" for n in range(1, 41)))
    ranking = await create_ranking(client, ids)
    path, unity_id = f"rankings/{ranking['id']}", ranking["unities"][0]["id"]
    draw = random.Random(15)

    async def change() -> None:
        for _ in range(60):
            line = (draw.choice(ids), unity_id, draw.randint(-3, 3))
            answer = await client.put(f"{path}/add.json", {"participants_delta": deltas(line)})
            assert answer.status == 200

    async def ask() -> list[Any]:
        return [await shown(client, path, "offset=3&limit=20") for _ in range(60)]

    _, *found = await asyncio.gather(change(), ask(), ask(), ask())
    for window in {window["sequence"]: window for windows in found for window in windows}.values():
        whole = await shown(client, path, f"at_sequence={window['sequence']}")
        lines = whole["unities"][0]["competitors_ranking"]
        assert window == cut_out(whole, 0, lines[3:23])
