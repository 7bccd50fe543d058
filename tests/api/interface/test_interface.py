"""The seven operations of the interface, field for field."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from tests.service import Answer, Client, Season, create_ranking, deltas, listed, register, totals

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)

COMPETITOR = {
    "id": int,
    "name": str,
    "tags": [{"name": str}],
    "color": re.compile(r"[0-9A-Fa-f]{6}"),
    "level": int,
    "lft": int,
    "rgt": int,
    "created_at": TIMESTAMP,
    "updated_at": TIMESTAMP,
}
COMPETITION = {
    "id": int,
    "group_id": int,
    "started_at": TIMESTAMP,
    "location": str,
    "participants": [
        {
            "competitor_id": int,
            "competitor": COMPETITOR,
            "winner": bool,
            "result": (str, None),
            "created_at": TIMESTAMP,
            "updated_at": TIMESTAMP,
        }
    ],
    "result": (str, dict, None),
    "has_result": bool,
    "created_at": TIMESTAMP,
    "updated_at": TIMESTAMP,
    "voided_at": (TIMESTAMP, None),  # ours, beside the documented ones
}
LISTED_UNITY = {"id": int, "name": str, "position": int, "general": bool, "sort": re.compile("ASC|DESC")}
LISTED_RANKING = {
    "id": int,
    "name": str,
    "description": (str, None),
    "closed_at": (TIMESTAMP, None),
    "general": bool,
    "position": str,
    "unities": [LISTED_UNITY],
    "competitors": [COMPETITOR],
}
MODIFIED_RANKING = {
    "id": int,
    "name": str,
    "description": (str, None),
    "closed_at": (TIMESTAMP, None),
    "competitors": [COMPETITOR],
    "unities": [
        {
            "name": str,
            "version": int,
            "competitors_ranking": [{"competitor_id": int, "position": int, "total": int}],
            "general": bool,
        }
    ],
}
PAGING = {"page": int, "pages": int, "perpage": int, "total": int}


def misfits(value: Any, shape: Any, at: str = "") -> list[str]:
    """Where a JSON value is not of a shape: keys that are too many or missing, and values of another JSON type."""
    match shape:
        case dict() if isinstance(value, dict):
            found = [f"{at}.{key}" for key in value.keys() ^ shape.keys()]
            return found + [
                m for key in value.keys() & shape.keys() for m in misfits(value[key], shape[key], f"{at}.{key}")
            ]
        case [item] if isinstance(value, list) and isinstance(shape, list):
            return [m for n, one in enumerate(value) for m in misfits(one, item, f"{at}[{n}]")]
        case tuple():
            return [] if any(not misfits(value, one) for one in shape) else [at]
        case re.Pattern():
            return [] if isinstance(value, str) and shape.fullmatch(value) else [at]
        case type() | None:
            return [] if value is None is shape or type(value) is shape else [at]
    return [at]


Ask = Callable[[Season], Awaitable[Answer]]
OPERATIONS: dict[str, tuple[Ask, str, str, Any]] = {
    "list rankings": (
        lambda s: s.client.get("rankings.json"),
        "ok",
        "rankings",
        {"ranking": [LISTED_RANKING]},
    ),
    "create a ranking": (
        lambda s: s.client.post(
            "rankings.json", {"name": "Cup", "main_unity_name": "points", "participants": listed(s.ids)}
        ),
        "added",
        "ranking",
        LISTED_RANKING,
    ),
    "modify a ranking": (
        lambda s: s.client.put(f"{s.path}.json", {"main_unity_name": "points", "participants": listed(s.ids)}),
        "ok",
        "ranking",
        MODIFIED_RANKING,
    ),
    "change participants": (
        lambda s: s.client.put(f"{s.path}/participants.json", {"remove": s.ids[0]}),
        "ok",
        "ranking",
        MODIFIED_RANKING,
    ),
    "add points": (
        lambda s: s.client.put(f"{s.path}/add.json", {"participants_delta": deltas((s.ids[0], s.unity_id, 3))}),
        "ok",
        "ranking",
        MODIFIED_RANKING,
    ),
    "list competitions": (
        lambda s: s.client.get("competitions.json"),
        "ok",
        "competitions",
        PAGING | {"competition": [COMPETITION]},
    ),
    "create a competition": (
        lambda s: s.client.post("competitions.json", {"group_id": 3, "participants": listed(s.ids)}),
        "added",
        "competition",
        COMPETITION,
    ),
    "list competitors": (
        lambda s: s.client.get("competitors.json"),
        "ok",
        "competitors",
        PAGING | {"competitor": [COMPETITOR]},
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_answer_has_the_fields_of_the_interface_and_no_others(season: Season, name: str) -> None:
    ask, message, payload, shape = OPERATIONS[name]
    answer = await ask(season)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json.keys() == {"status", "message", payload}
    assert (answer.json["status"], answer.json["message"]) == (200, message)
    assert misfits(answer.json[payload], shape) == []


def test_the_check_of_shapes_finds_what_does_not_fit() -> None:
    unity = {"id": 1, "name": "points", "position": 1, "general": True, "sort": "DESC"}
    assert misfits([unity], [LISTED_UNITY]) == []
    for wrong in ({"id": "1"}, {"position": True}, {"general": 1}, {"sort": "desc"}, {"name": None}, {"version": 1}):
        assert misfits([unity | wrong], [LISTED_UNITY]) == [f"[0].{next(iter(wrong))}"]
    assert misfits([{}], [LISTED_UNITY]) != []
    assert misfits(unity, [LISTED_UNITY]) != []


async def test_an_embedded_competitor_is_the_one_of_the_list(season: Season) -> None:
    competitors = {c["id"]: c for c in (await season.client.get("competitors.json")).json["competitors"]["competitor"]}
    rankings = (await season.client.get("rankings.json")).json["rankings"]["ranking"]
    competitions = (await season.client.get("competitions.json")).json["competitions"]["competition"]
    embedded = [c for ranking in rankings for c in ranking["competitors"]]
    embedded += [p["competitor"] for competition in competitions for p in competition["participants"]]
    assert len(embedded) == 3 + 1 + 2 + 3 + 3
    assert all(c == competitors[c["id"]] for c in embedded)
    assert all(p["competitor_id"] == p["competitor"]["id"] for c in competitions for p in c["participants"])


# ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_competitor_of_whom_only_the_name_is_known(client: Client) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    competitor = (await client.post("competitors.json", {"name": "  Zoë 🏓  "})).json["competitor"]
    created_at = datetime.fromisoformat(competitor["created_at"]).replace(tzinfo=UTC)
    assert before <= created_at <= datetime.now(UTC)
    assert competitor == {
        "id": competitor["id"],
        "name": "Zoë 🏓",
        "tags": [],
        "color": "000000",
        "level": 0,
        "lft": 1,
        "rgt": 2,
        "created_at": competitor["created_at"],
        "updated_at": competitor["created_at"],
    }


async def test_tags_are_objects_in_the_order_sent(client: Client) -> None:
    answer = await client.post("competitors.json", {"name": "Ada", "tags": "left-handed, U21 ,wild card"})
    assert answer.json["competitor"]["tags"] == [{"name": "left-handed"}, {"name": "U21"}, {"name": "wild card"}]


async def test_level_lft_and_rgt_are_nested_sets(client: Client) -> None:
    async def add(name: str, parent: int | None = None) -> int:
        form = {"name": name} | ({} if parent is None else {"parent": parent})
        added: int = (await client.post("competitors.json", form)).json["competitor"]["id"]
        return added

    club = await add("club")
    guest = await add("guest")
    women = await add("women", club)
    men = await add("men", club)
    await add("Ada", women)
    await add("Ben", men)
    await add("Cleo", women)

    async def bounds() -> dict[str, tuple[int, int, int]]:
        listed = (await client.get("competitors.json")).json["competitors"]["competitor"]
        return {c["name"]: (c["level"], c["lft"], c["rgt"]) for c in listed}

    assert await bounds() == {
        "club": (0, 1, 12),
        "women": (1, 2, 7),
        "Ada": (2, 3, 4),
        "Cleo": (2, 5, 6),
        "men": (1, 8, 11),
        "Ben": (2, 9, 10),
        "guest": (0, 13, 14),
    }
    await client.put(f"competitors/{men}.json", {"parent": guest})
    assert await bounds() == {
        "club": (0, 1, 8),
        "women": (1, 2, 7),
        "Ada": (2, 3, 4),
        "Cleo": (2, 5, 6),
        "guest": (0, 9, 14),
        "men": (1, 10, 13),
        "Ben": (2, 11, 12),
    }


# ── Competitions ────────────────────────────────────────────────────────────────────────────────────────


async def added_competition(client: Client, **form: object) -> Any:
    answer = await client.post("competitions.json", {"group_id": 7} | form)
    assert answer.status == 200
    return answer.json["competition"]


async def test_a_competition_of_which_only_the_group_is_known(client: Client) -> None:
    competition = await added_competition(client)
    assert competition == {
        "id": competition["id"],
        "group_id": 7,
        "started_at": competition["created_at"],
        "location": "",
        "participants": [],
        "result": None,
        "has_result": False,
        "created_at": competition["created_at"],
        "updated_at": competition["created_at"],
        "voided_at": None,
    }


async def test_a_competition_keeps_what_was_sent(client: Client) -> None:
    facts = {"group_id": -5, "started_at": "1987-06-30 23:59:59", "location": "Köln, Halle 2"}
    competition = await added_competition(client, **facts)
    assert {name: competition[name] for name in facts} == facts


async def test_participants_stay_in_the_order_sent(client: Client) -> None:
    ids = await register(client, *"ABCDEFGH")
    order = [ids[n] for n in (5, 0, 7, 2, 6, 1)]
    competition = await added_competition(client, participants=listed(order))
    assert [p["competitor_id"] for p in competition["participants"]] == order
    (again,) = (await client.get("competitions.json")).json["competitions"]["competition"]
    assert again == competition


@pytest.mark.parametrize("participants", [0, 1, 2])
async def test_up_to_two_participants_have_one_score(client: Client, participants: int) -> None:
    ids = (await register(client, "Ada", "Ben"))[:participants]
    competition = await added_competition(client, participants=listed(ids), result="3:1 (1:1)")
    assert (competition["result"], competition["has_result"]) == ("3:1 (1:1)", True)
    assert [p["result"] for p in competition["participants"]] == [None] * participants


@pytest.mark.parametrize("form", ["one field", "pairs"])
async def test_more_than_two_participants_have_a_performance_each(client: Client, form: str) -> None:
    ada, ben, cleo = await register(client, "Ada", "Ben", "Cleo")
    performances = {str(cleo): "9.81 s", str(ada): "10.02 s"}
    sent = {
        "one field": {"result": json.dumps(performances)},
        "pairs": {f"result[{competitor}]": text for competitor, text in performances.items()},
    }
    competition = await added_competition(client, participants=listed([ada, ben, cleo]), **sent[form])
    assert competition["result"] == performances
    assert competition["has_result"] is True
    assert [p["result"] for p in competition["participants"]] == ["10.02 s", None, "9.81 s"]


async def test_a_pair_without_a_performance_takes_nothing_from_the_score(client: Client) -> None:
    ada, ben = await register(client, "Ada", "Ben")
    competition = await added_competition(client, participants=f"{ada},{ben}")
    path = f"competitions/{competition['id']}.json"
    answer = await client.put(path, {"result": "2:1", f"result[{ada}]": ""})
    assert answer.status == 200, answer.json
    assert (await client.get(path)).json["competition"]["result"] == "2:1"


async def test_the_winner_is_marked_among_the_participants(client: Client) -> None:
    ada, ben = await register(client, "Ada", "Ben")
    for winner in (ada, ben):
        competition = await added_competition(client, participants=f"{ada},{ben}", winner=winner)
        assert {p["competitor_id"]: p["winner"] for p in competition["participants"]} == {
            ada: winner == ada,
            ben: winner == ben,
        }
        assert competition["has_result"] is False  # to have won is not to have a result
    competition = await added_competition(client, participants=f"{ada},{ben}", result="1:1")
    assert [p["winner"] for p in competition["participants"]] == [False, False]


async def test_a_result_may_come_later_and_a_competition_move(client: Client) -> None:
    ada, ben = await register(client, "Ada", "Ben")
    before = await added_competition(client, participants=f"{ada},{ben}", location="Court 1")
    change = {"started_at": "2030-01-01 00:00:00", "result": "6:4 6:4", "winner": ben}
    answer = await client.put(f"competitions/{before['id']}.json", change)
    assert (answer.status, answer.json["message"]) == (200, "ok")
    after = answer.json["competition"]
    assert misfits(after, COMPETITION) == []
    assert after["updated_at"] >= before["updated_at"]
    for one in (before, after, *before["participants"], *after["participants"]):
        del one["updated_at"]
    won = before["participants"][1] | {"winner": True}
    assert after == before | {
        "started_at": "2030-01-01 00:00:00",
        "result": "6:4 6:4",
        "has_result": True,
        "participants": [before["participants"][0], won],
    }


# ── Rankings ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_ranking_as_it_is_created(client: Client) -> None:
    ada, ben = await register(client, "Ada", "Ben")
    ranking = await create_ranking(client, [ben, ada])
    assert {name: ranking[name] for name in ranking if name not in ("id", "competitors", "unities")} == {
        "name": "Season",
        "description": None,
        "closed_at": None,
        "general": True,
        "position": "1",
    }
    assert [c["id"] for c in ranking["competitors"]] == [ben, ada]
    (unity,) = ranking["unities"]
    assert unity == {"id": unity["id"], "name": "points", "position": 1, "general": True, "sort": "DESC"}


async def test_the_first_ranking_is_the_general_one_and_positions_count_them(client: Client) -> None:
    (ada,) = await register(client, "Ada")
    for number in range(1, 13):
        ranking = await create_ranking(client, [ada], name=f"No. {number}")
        assert (ranking["position"], ranking["general"]) == (str(number), number == 1)
    listing = (await client.get("rankings.json")).json["rankings"]["ranking"]
    assert [r["position"] for r in listing] == [str(number) for number in range(1, 13)]
    assert [r["general"] for r in listing] == [True] + [False] * 11


async def test_the_main_unity_is_the_general_one_and_positions_count_them(client: Client) -> None:
    (ada,) = await register(client, "Ada")
    path = f"rankings/{(await create_ranking(client, [ada]))['id']}"
    for name, form in {"goals": {}, "fouls": {"sort": "ASC"}, "assists": {"sort": "DESC"}}.items():
        answer = await client.post(f"{path}/unities.json", {"name": name} | form)
        assert answer.json["message"] == "added"
        assert misfits(answer.json["unity"], LISTED_UNITY) == []
    (listing,) = (await client.get("rankings.json")).json["rankings"]["ranking"]
    assert [(u["name"], u["position"], u["general"], u["sort"]) for u in listing["unities"]] == [
        ("points", 1, True, "DESC"),
        ("goals", 2, False, "DESC"),
        ("fouls", 3, False, "ASC"),
        ("assists", 4, False, "DESC"),
    ]
    modified = await client.put(f"{path}.json", {"main_unity_name": "score", "participants": ada})
    assert [(u["name"], u["general"]) for u in modified.json["ranking"]["unities"]] == [
        ("score", True),
        ("goals", False),
        ("fouls", False),
        ("assists", False),
    ]


async def test_modifying_changes_what_is_sent_and_leaves_the_rest(season: Season) -> None:
    async def modified(**form: object) -> tuple[str, str | None, list[int], str]:
        sent = {"main_unity_name": "points", "participants": listed(season.ids)} | form
        ranking = (await season.client.put(f"{season.path}.json", sent)).json["ranking"]
        main = ranking["unities"][0]["name"]
        return ranking["name"], ranking["description"], [c["id"] for c in ranking["competitors"]], main

    assert await modified() == ("Season", "All of it", season.ids, "points")
    assert await modified(name="Year") == ("Year", "All of it", season.ids, "points")
    assert await modified(main_unity_name="score") == ("Year", "All of it", season.ids, "score")
    assert await modified(description="New") == ("Year", "New", season.ids, "points")
    assert await modified(description="") == ("Year", None, season.ids, "points")
    backwards = season.ids[::-1]
    assert await modified(participants=listed(backwards)) == ("Year", None, backwards, "points")


async def test_a_closed_ranking_says_since_when(season: Season) -> None:
    (ranking, _) = (await season.client.get("rankings.json")).json["rankings"]["ranking"]
    assert ranking["closed_at"] is None
    closed_at = (await season.client.put(f"{season.path}/close.json")).json["ranking"]["closed_at"]
    assert TIMESTAMP.fullmatch(closed_at)
    (ranking, _) = (await season.client.get("rankings.json")).json["rankings"]["ranking"]
    assert ranking["closed_at"] == closed_at


async def test_the_list_of_rankings_has_no_pages(client: Client) -> None:
    (ada,) = await register(client, "Ada")
    await asyncio.gather(*(create_ranking(client, [ada]) for _ in range(205)))
    answer = (await client.get("rankings.json")).json["rankings"]
    assert answer.keys() == {"ranking"}
    assert [r["position"] for r in answer["ranking"]] == [str(number) for number in range(1, 206)]


# ── Points ──────────────────────────────────────────────────────────────────────────────────────────────


async def award(season: Season, lines: object, **form: object) -> Answer:
    sent = {"participants_delta": json.dumps(lines)} | form
    return await season.client.put(f"{season.path}/add.json", sent)


DELTAS: list[tuple[str | int, int]] = [
    ("5", 5),
    ("+5", 5),
    ("-5", -5),
    ("0", 0),
    ("-0", 0),
    ("0000000007", 7),
    ("2147483647", 2**31 - 1),
    ("-2147483647", 1 - 2**31),
    (5, 5),
    (-5, -5),
    (2**31 - 1, 2**31 - 1),
]


async def test_a_delta_is_a_signed_whole_number(season: Season) -> None:
    expected = 0
    for delta, gain in DELTAS:
        expected += gain
        line = {"competitor_id": season.ids[0], "unities": [{"unity_id": season.unity_id, "delta": delta}]}
        assert totals(await award(season, [line])) == dict.fromkeys(season.ids, 0) | {season.ids[0]: expected}


async def test_lines_for_the_same_competitor_and_unity_add_up(season: Season) -> None:
    ada, ben, pair = season.ids
    two = [{"unity_id": season.unity_id, "delta": "2"}, {"unity_id": season.unity_id, "delta": "-5"}]
    lines = [{"competitor_id": ada, "unities": two}, {"competitor_id": ada, "unities": two[:1]}]
    assert totals(await award(season, lines)) == {ada: -1, ben: 0, pair: 0}


async def test_totals_go_beyond_what_one_delta_may_be(season: Season) -> None:
    ada = season.ids[0]
    lines = [(ada, season.unity_id, 2**31 - 1)] * 1000
    answer = await season.client.put(f"{season.path}/add.json", {"participants_delta": deltas(*lines)})
    assert totals(answer)[ada] == 1000 * (2**31 - 1)


async def test_a_competition_may_be_named_as_the_cause(season: Season) -> None:
    competition = await added_competition(season.client, participants=listed(season.ids))
    line = {"competitor_id": season.ids[0], "unities": [{"unity_id": season.unity_id, "delta": "1"}]}
    answer = await award(season, [line], competition_id=competition["id"])
    assert (answer.status, totals(answer)[season.ids[0]]) == (200, 1)
    unchanged = (await season.client.get("competitions.json")).json["competitions"]["competition"][-1]
    assert unchanged == competition


async def test_a_standing_is_in_the_order_of_positions_and_then_of_enrolment(season: Season) -> None:
    ids = await register(season.client, *"CDEF")
    ranking = await create_ranking(season.client, ids)
    points = ranking["unities"][0]["id"]
    path = f"rankings/{ranking['id']}"
    fouls = (await season.client.post(f"{path}/unities.json", {"name": "fouls", "sort": "ASC"})).json["unity"]["id"]
    c, d, e, f = ids
    lines = [(competitor, unity, n) for unity in (points, fouls) for competitor, n in ((d, -1), (e, 7), (f, 7))]
    answer = await season.client.put(f"{path}/add.json", {"participants_delta": deltas(*lines)})
    assert standing(answer, 0) == [(1, e, 7), (1, f, 7), (3, c, 0), (4, d, -1)]
    assert standing(answer, 1) == [(1, d, -1), (2, c, 0), (3, e, 7), (3, f, 7)]


def standing(answer: Answer, unity: int) -> list[tuple[int, int, int]]:
    lines = answer.json["ranking"]["unities"][unity]["competitors_ranking"]
    return [(line["position"], line["competitor_id"], line["total"]) for line in lines]


async def test_a_version_counts_what_shaped_the_standing(season: Season) -> None:
    ids, path = season.ids, season.path

    async def versions(answer: Answer) -> list[int]:
        return [unity["version"] for unity in answer.json["ranking"]["unities"]]

    async def modified(**form: object) -> list[int]:
        sent = {"main_unity_name": "points", "participants": listed(ids)} | form
        return await versions(await season.client.put(f"{path}.json", sent))

    assert await modified() == [1, 1]
    line = {"competitor_id": ids[0], "unities": [{"unity_id": season.unity_id, "delta": "0"}] * 3}
    assert await versions(await award(season, [line, line])) == [2, 1]  # one event, however many lines, whatever sum
    assert await modified(name="Year", description="Of the year") == [2, 1]
    assert await modified(main_unity_name="score") == [3, 1]
    assert await modified(participants=listed(ids[::-1])) == [4, 2]
    assert await modified(participants=listed(ids[:1])) == [5, 3]
    assert await versions(await season.client.put(f"{path}/close.json")) == [5, 3]
    assert await versions(await season.client.put(f"{path}/reopen.json")) == [5, 3]
    await added_competition(season.client)
    assert await modified(participants=listed(ids[:1])) == [5, 3]


# ── Pages ───────────────────────────────────────────────────────────────────────────────────────────────

LISTS = {
    "competitors": ("competitor", {"name": "Nobody"}),
    "competitions": ("competition", {"group_id": 1}),
}


async def page(client: Client, name: str, query: str = "") -> tuple[dict[str, int], list[int]]:
    """The four numbers of a page, and the ids on it."""
    answer = await client.get(f"{name}.json{query}")
    assert answer.status == 200
    fields = answer.json[name]
    ids = [item["id"] for item in fields.pop(LISTS[name][0])]
    return fields, ids


@pytest.mark.parametrize("name", LISTS)
async def test_an_empty_list_has_one_empty_page(client: Client, name: str) -> None:
    assert await page(client, name) == ({"page": 1, "pages": 1, "perpage": 100, "total": 0}, [])


@pytest.mark.parametrize("name", LISTS)
async def test_pages_are_cut_from_the_order_of_creation(client: Client, name: str) -> None:
    item, form = LISTS[name]
    answers = await asyncio.gather(*(client.post(f"{name}.json", form) for _ in range(205)))
    answers.sort(key=lambda answer: int(answer.headers["Tallybook-Sequence"]))
    created = [answer.json[item]["id"] for answer in answers]

    def numbers(number: int, pages: int, perpage: int) -> dict[str, int]:
        return {"page": number, "pages": pages, "perpage": perpage, "total": 205}

    assert await page(client, name) == (numbers(1, 3, 100), created[:100])
    assert await page(client, name, "?page=2") == (numbers(2, 3, 100), created[100:200])
    assert await page(client, name, "?page=3") == (numbers(3, 3, 100), created[200:])
    assert await page(client, name, "?page=4") == (numbers(4, 3, 100), [])
    assert await page(client, name, "?per_page=200") == (numbers(1, 2, 200), created[:200])
    assert await page(client, name, "?per_page=201") == (numbers(1, 2, 200), created[:200])
    assert await page(client, name, "?page=2&per_page=1000000000") == (numbers(2, 2, 200), created[200:])
    assert await page(client, name, "?per_page=41&page=5") == (numbers(5, 5, 41), created[164:])
    assert await page(client, name, "?per_page=1&page=205") == (numbers(205, 205, 1), created[204:])
    far = 10**18 - 1
    assert await page(client, name, f"?page={far}") == (numbers(far, 3, 100), [])
    assert await page(client, name, f"?page={far}&per_page={far}") == (numbers(far, 2, 200), [])


# ── Participants ────────────────────────────────────────────────────────────────────────────────────────


async def test_participants_come_at_the_end_and_have_their_totals_back(season: Season) -> None:
    one, *others = season.ids
    await season.client.put(f"{season.path}/add.json", {"participants_delta": deltas((one, season.unity_id, 1_000))})
    answer = await season.client.get(f"{season.path}/standings.json")
    before, total = answer.json["ranking"], totals(answer)[one]

    answer = await season.client.put(f"{season.path}/participants.json", {"remove": one})
    left = answer.json["ranking"]
    assert [competitor["id"] for competitor in left["competitors"]] == others
    assert [unity["version"] for unity in left["unities"]] == [unity["version"] + 1 for unity in before["unities"]]

    answer = await season.client.put(f"{season.path}/participants.json", {"add": one})
    returned = answer.json["ranking"]
    assert [competitor["id"] for competitor in returned["competitors"]] == [*others, one]
    assert returned["unities"][0]["competitors_ranking"][0] == {
        "competitor_id": one,
        "position": 1,
        "total": total,
    }


async def test_information_changes_without_the_list_being_sent(season: Season, owner: asyncpg.Connection) -> None:
    before = (await season.client.get(f"{season.path}.json")).json["ranking"]
    answer = await season.client.put(f"{season.path}/information.json", {"name": " Cup "})
    assert (answer.json["ranking"]["name"], answer.json["ranking"]["description"]) == ("Cup", before["description"])
    answer = await season.client.put(f"{season.path}/information.json", {"description": ""})
    assert (answer.json["ranking"]["name"], answer.json["ranking"]["description"]) == ("Cup", None)
    assert {unity["version"] for unity in answer.json["ranking"]["unities"]} == {1}
    assert answer.json["ranking"]["competitors"] == before["competitors"]
    stored = await stored_of(owner, answer)
    assert stored == {"ranking_id": season.ranking_id, "description": None}


async def test_a_unity_changes_its_name_and_its_sort_alone(season: Season, owner: asyncpg.Connection) -> None:
    one, two, three = season.ids
    main, other = (await season.client.get(f"{season.path}.json")).json["ranking"]["unities"]
    path = f"{season.path}/unities/{main['id']}.json"
    form = {"participants_delta": deltas((one, main["id"], 2), (two, main["id"], -1), (one, other["id"], 1))}
    await season.client.put(f"{season.path}/add.json", form)

    answer = await season.client.put(path, {"sort": "ASC"})
    assert answer.json["unity"] == main | {"sort": "ASC"}
    assert await stored_of(owner, answer) == {"ranking_id": season.ranking_id, "unity_id": main["id"], "sort": "ASC"}
    points, fouls = (await season.client.get(f"{season.path}/standings.json")).json["ranking"]["unities"]
    assert [(line["competitor_id"], line["position"]) for line in points["competitors_ranking"]] == [
        (two, 1),
        (three, 2),
        (one, 3),
    ]
    assert (points["version"], fouls["version"]) == (3, 2)

    for nothing_new in ({"sort": "ASC"}, {"name": main["name"]}, {}):
        assert (await season.client.put(path, nothing_new)).json["unity"] == main | {"sort": "ASC"}
    answer = await season.client.put(path, {"name": "places"})
    assert answer.json["unity"] == main | {"sort": "ASC", "name": "places"}
    points, _ = (await season.client.get(f"{season.path}/standings.json")).json["ranking"]["unities"]
    assert (points["version"], points["name"]) == (4, "places")
    assert (await season.client.get("rankings.json")).json["rankings"]["ranking"][0]["unities"][0] == (
        main | {"sort": "ASC", "name": "places"}
    )


async def stored_of(owner: asyncpg.Connection, answer: Answer) -> Any:
    """The stored body of the event that an answer names."""
    sequence = int(answer.headers["Tallybook-Sequence"])
    return json.loads(await owner.fetchval("SELECT body FROM event WHERE sequence = $1", sequence))


async def test_a_change_of_participants_that_changes_nothing_raises_no_version(season: Season) -> None:
    (stranger,) = await register(season.client, "Stranger")
    before = (await season.client.get(f"{season.path}/standings.json")).json["ranking"]
    answer = await season.client.put(
        f"{season.path}/participants.json", {"add": listed(season.ids[::-1]), "remove": stranger}
    )
    assert answer.status == 200
    for field in ("competitors", "unities"):
        assert answer.json["ranking"][field] == before[field]
