"""Names in the place of ids: whatever is unique is found by its name, and what is not is refused with the ids."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.interface.names import COMPARED_MAX, IDS_LISTED_MAX, UNKNOWN_COMPARED_MAX, Names
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.events import CompetitorRegistered, Recorded
from engine.domain.terms import OPERATOR, CompetitorId, Sequence
from projections.board.board import Board, Revisions, fold
from tests.api.cli.conftest import Tallybook
from tests.service import Season, deltas, register, totals


@pytest.fixture
async def played(season: Season) -> Season:
    """Ada has 3 points by a competition between her and Ben, and Ben has 2 without one."""
    ada, ben, _ = season.ids
    duel = {"group_id": 3, "participants": f"{ben},{ada}", "result": "0:1"}
    cause = (await season.client.post("competitions.json", duel)).json["competition"]["id"]
    for line, fields in (((ada, season.unity_id, 3), {"competition_id": cause}), ((ben, season.unity_id, 2), {})):
        await season.client.put(f"{season.path}/add.json", {"participants_delta": deltas(line)} | fields)
    return replace(season, competition_id=cause)


def by_id(season: Season) -> dict[str, str]:
    """The ids of what the names mean."""
    return {
        "Season": str(season.ranking_id),
        "Ada": str(season.ids[0]),
        "points": str(season.unity_id),
        "Ben - Ada": str(season.competition_id),
    }


async def test_a_question_by_names_is_the_question_by_ids(
    tallybook: Tallybook, played: Season, subtests: pytest.Subtests
) -> None:
    async def answer(words: list[str]) -> str:
        head = 2 if words[0] == "competition" else 1
        return await tallybook.done(*words[:head], played.client.tournament, *words[head:])

    ids = by_id(played)
    for command in [
        ["standings", "Season", "--unity", "points", "--json"],
        ["history", "Season", "--format", "ndjson", "--unity", "points", "--competitor", "Ada"],
        ["history", "Season", "--format", "ndjson", "--competition", "Ben - Ada"],
        ["explain", "Season", "Ada", "--unity", "points"],
        ["explain", "Season", "Ada", "--json"],
        ["what-if", "Season", "--without-competition", "Ben - Ada", "--unity", "points", "--json"],
        ["what-if", "Season", "--without-competitor", "Ada", "--json"],
        ["void", "Ben - Ada", "--dry-run", "--json"],
        ["competition", "list", "--competitor", "Ada", "--json"],
    ]:
        with subtests.test(str(command)):
            by_name = await answer(command)
            assert by_name == await answer([ids.get(word, word) for word in command])
            assert by_name != ""


async def test_changes_are_made_by_name_too(tallybook: Tallybook, played: Season) -> None:
    slug = played.client.tournament
    child = await tallybook.json("competitor", "add", slug, "Eve", "--parent", "Ada")
    everybody = {one["id"]: one for one in await tallybook.json("competitor", "list", slug)}
    assert everybody[child["id"]]["parent"] == played.ids[0]
    assert "sequence" in await tallybook.json("void", slug, "Ben – Ada")  # noqa: RUF001 - as explanations write it
    assert "sequence" in await tallybook.json("unvoid", slug, "Ben - Ada")
    await tallybook.done("unity", "add", slug, "Season", "cards")
    await tallybook.done("ranking", "reopen", slug, "Of Ben alone")
    await tallybook.done("ranking", "close", slug, "Of Ben alone")


async def test_a_name_that_several_have_is_refused_with_their_ids(tallybook: Tallybook, played: Season) -> None:
    slug = played.client.tournament
    namesakes = [played.ids[0], *await register(played.client, "Ada", "Ada")]
    listed = ", ".join(map(str, namesakes))
    refusal = [f"3 competitors are named 'Ada'; give the id of one: {listed}."]
    for command in (
        ["explain", slug, "Season", "Ada"],
        ["history", slug, "Season", "--competitor", "Ada"],
        ["points", "add", slug, "Season", "Ada=1"],
        ["competitor", "add", slug, "Eve", "--parent", "Ada"],
    ):
        assert await tallybook.refused(*command) == refusal
    # The voided duel is of Ada and Ben, in that order.
    again = await tallybook.json("competition", "add", slug, str(played.ids[1]), str(played.ids[0]))
    (reason,) = await tallybook.refused("void", slug, "Ben - Ada")
    assert reason == (
        "2 competitions are named 'Ben – Ada'; "  # noqa: RUF001 - as explanations write it
        f"give the id of one: {played.competition_id}, {again['id']}."
    )
    second = await tallybook.json("ranking", "create", slug, "Season", "Ben")
    (reason,) = await tallybook.refused("standings", slug, "Season")
    assert reason == f"2 rankings are named 'Season'; give the id of one: {played.ranking_id}, {second['id']}."


async def test_a_name_that_nothing_has_is_refused(
    tallybook: Tallybook, played: Season, subtests: pytest.Subtests
) -> None:
    for command, reason in [
        (["explain", "Season", "Zoë"], "This tournament has no competitor 'Zoë'."),
        (["standings", "Saison"], "This tournament has no ranking 'Saison'. Similar: 'Season'."),
        (["explain", "Season", "ADA "], "This tournament has no competitor 'ADA'. Similar: 'Ada'."),
        (["standings", "Season", "--unity", "Point"], "has no unity 'Point'. Similar: 'points'."),
        (["standings", "Season", "--unity", "cards"], "has no unity 'cards'."),
        (["standings", "Season", "--unity", "999999"], "has no unity 999999."),
        (["void", "Ada – Eve"], "no competition 'Ada – Eve'. Similar: 'Ada – Ben'."),  # noqa: RUF001
        (["void", ""], "This tournament has no competition ''."),
        (["explain", "Season", "999999"], "This tournament has no competitor 999999."),
        (["explain", "Season", "0"], "This tournament has no competitor '0'."),
    ]:
        with subtests.test(str(command)):
            said = (await tallybook.refused(command[0], played.client.tournament, *command[1:]))[0]
            assert said.endswith(reason)


async def test_names_of_participants_may_hold_hyphens(tallybook: Tallybook, season: Season) -> None:
    slug, client = season.client.tournament, season.client
    club, ben = await register(client, "Ajax - U19", "Brest")
    both = "Ajax - U19 - Brest", "Ajax - U19 \N{EN DASH} Brest"
    for participants, names in (f"{club},{ben}", both), (f"{club}", ("Ajax - U19",)):
        form = {"group_id": 1, "participants": participants}
        competition = (await client.post("competitions.json", form)).json["competition"]["id"]
        for name in names:
            changed = await tallybook("competition", "change", slug, name, "--location", name)
            assert changed.code == 0, changed.err
            assert (await client.get(f"competitions/{competition}.json")).json["competition"]["location"] == name


@pytest.fixture
async def numbered(played: Season) -> Season:
    """Everybody is called by the id of another: Ada by that of Ben, Ben by that of Pair, and Pair by that of Ada."""
    for one, other in zip(played.ids, (*played.ids[1:], played.ids[0]), strict=True):
        assert (await played.client.put(f"competitors/{one}.json", {"name": str(other)})).status == 200
    return played


BY_NUMBER: Final = [
    ["points", "add", "{slug}", "Season", "{ben}=1"],
    ["competitor", "change", "{slug}", "{ben}", "--color", "c0ffee"],
    ["competitor", "change", "{slug}", "id:{pair}", "--parent", "{ben}"],
    ["competitor", "add", "{slug}", "Eve", "--parent", "{ben}"],
    ["competitor", "erase", "{slug}", "{ben}"],
    ["competitor", "erase", "{slug}", "{ben}", "--dry-run"],
    ["competitor", "export", "{slug}", "{ben}"],
    ["competition", "add", "{slug}", "id:{pair}", "{ben}"],
    ["competition", "change", "{slug}", "{duel}", "--winner", "{ben}"],
    ["competition", "result", "{slug}", "{race}", '{{"{ben}": "9.8"}}'],
    ["competition", "list", "{slug}", "--competitor", "{ben}"],
    ["strike", "{slug}", "{duel}", "{ben}"],
    ["ranking", "create", "{slug}", "Cup", "{ben}"],
    ["participants", "remove", "{slug}", "Season", "{ben}"],
    ["explain", "{slug}", "Season", "{ben}"],
    ["explain", "{slug}", "Season", "id:{ben}", "--around", "{ben}"],
    ["standings", "{slug}", "Season", "--around", "{ben}"],
    ["history", "{slug}", "Season", "--competitor", "{ben}"],
    ["what-if", "{slug}", "Season", "--without-competitor", "{ben}"],
]


async def test_a_number_that_is_an_id_and_the_name_of_another_is_refused_with_both(
    tallybook: Tallybook, numbered: Season, subtests: pytest.Subtests
) -> None:
    ada, ben, pair = numbered.ids
    named = {"slug": numbered.client.tournament, "ben": ben, "pair": pair}
    races = (await numbered.client.get("competitions.json?group_id=2")).json["competitions"]["competition"]
    named |= {"duel": numbered.competition_id, "race": races[0]["id"]}
    reason = f"{ben} is the id of competitor '{pair}' and the name of competitor {ada}; write id:{ben} or name:{ben}."
    before = await tallybook.json("tournament", "list")
    for command in BY_NUMBER:
        with subtests.test(" ".join(command)):
            assert await tallybook.refused(*(word.format(**named) for word in command)) == [reason]
    assert await tallybook.json("tournament", "list") == before


async def test_a_number_is_said_to_be_an_id_or_a_name(tallybook: Tallybook, numbered: Season) -> None:
    slug, (ada, ben, pair) = numbered.client.tournament, numbered.ids
    for text, credited in ((f"id:{ben}", ben), (f"name:{ben}", ada), (f" name: {ada} ", pair), ("id:777", None)):
        before = totals(await numbered.client.get(f"{numbered.path}/standings.json"))
        done = await tallybook("points", "add", slug, "Season", f"{text}=7")
        after = totals(await numbered.client.get(f"{numbered.path}/standings.json"))
        assert {one: total - before[one] for one, total in after.items() if total != before[one]} == (
            {} if credited is None else {credited: 7}
        ), done
    assert (await tallybook.refused("explain", slug, "Season", "name:777"))[0].endswith("has no competitor '777'.")
    await tallybook.done("competitor", "change", slug, f"name:{ben}", "--name", "id:7")
    assert "\nid:7 in Season" in "\n" + await tallybook.done("explain", slug, "Season", "name:id:7")
    await tallybook.done("competitor", "erase", slug, f"name:{pair}")
    assert (await numbered.client.get(f"competitors/{ben}.json")).json["competitor"]["name"] == f"#{ben}"


async def test_a_number_that_is_only_an_id_or_only_a_name_needs_no_more(tallybook: Tallybook, played: Season) -> None:
    slug, ada = played.client.tournament, played.ids[0]
    await register(played.client, "777777")
    await played.client.put(f"competitors/{ada}.json", {"name": str(ada)})
    assert (await tallybook.done("explain", slug, "Season", str(ada))).startswith(f"{ada} in Season")
    assert (await tallybook.done("explain", slug, "Season", "777777")).startswith("777777 in Season")


async def test_numbers_of_rankings_unities_and_competitions_are_refused_alike(
    tallybook: Tallybook, played: Season
) -> None:
    slug, points = played.client.tournament, played.unity_id
    second = await tallybook.json("ranking", "create", slug, str(played.ranking_id), "Ben", "--unity", "goals")
    assert await tallybook.refused("standings", slug, str(played.ranking_id)) == [
        f"{played.ranking_id} is the id of ranking 'Season' and the name of ranking {second['id']}; write "
        f"id:{played.ranking_id} or name:{played.ranking_id}."
    ]
    assert "goals" in await tallybook.done("standings", slug, f"name:{played.ranking_id}")
    unity = await tallybook.done("unity", "add", slug, "Season", str(points))
    told = f"{points} is the id of unity 'points' and the name of unity {unity}; write id:{points} or name:{points}."
    for command in (
        ["explain", slug, "Season", "Ben", "--unity", str(points)],
        ["points", "add", slug, "Season", "Ben=1", "--unity", str(points)],
        ["classification", "declare", slug, "Season", f"{points}:best=3"],
    ):
        assert await tallybook.refused(*command) == [told]
    await tallybook.done("classification", "declare", slug, "Season", f"name:{points}:best=3", f"id:{points}")
    declared = (await played.client.get(f"{played.path}/classification.json")).json["classification"]["criteria"]
    assert [one["unity"] for one in declared] == [int(unity), points]
    solo = str(played.competition_id)
    await tallybook.done("competitor", "add", slug, solo)
    run = await tallybook.json("competition", "add", slug, f"name:{solo}")
    assert await tallybook.refused("void", slug, solo) == [
        f"{solo} is the id of competition 'Ben \N{EN DASH} Ada' and the name of competition {run['id']}; write "
        f"id:{solo} or name:{solo}."
    ]
    await tallybook.done("void", slug, f"name:{solo}")
    assert (await played.client.get(f"competitions/{run['id']}.json")).json["competition"]["voided_at"] is not None


async def test_a_name_is_found_in_every_form_of_unicode(tallybook: Tallybook, played: Season) -> None:
    slug, composed, decomposed = played.client.tournament, "Zo\u00eb \u00c5", "Zoe\u0308 A\u030a"
    for kept, sought in ((composed, decomposed), (decomposed, composed)):
        await played.client.put(f"competitors/{played.ids[0]}.json", {"name": kept})
        await tallybook.done("ranking", "rename", slug, str(played.ranking_id), kept)
        await tallybook.done("unity", "change", slug, kept, str(played.unity_id), "--name", kept)
        explained = await tallybook.done("explain", slug, kept, kept, "--unity", kept)
        assert await tallybook.done("explain", slug, sought, sought, "--unity", sought) == explained
        assert "sequence" in await tallybook.json(
            "competition", "change", slug, f"Ben - {sought}", "--location", "Hall"
        )


async def test_a_key_names_a_competitor_or_a_competition_and_nothing_else(tallybook: Tallybook, played: Season) -> None:
    slug, (ada, ben, _) = played.client.tournament, played.ids
    for who, key in ((ada, str(ben)), (ben, "Team \u00e9")):
        await tallybook.done("competitor", "change", slug, f"id:{who}", "--key", key)
    await tallybook.done("points", "add", slug, "Season", f"key:{ben}=1")
    await tallybook.done("points", "add", slug, "Season", "key: Team e\u0301 =2")
    match = await tallybook.done("competition", "add", slug, f"key:{ben}", "key:Team \u00e9", "--key", "M 1")
    await tallybook.done("competition", "result", slug, "key:M 1", "2:1", "--winner", f"key:{ben}")
    shown = (await played.client.get(f"competitions/{match.strip()}.json")).json["competition"]
    assert [one["competitor_id"] for one in shown["participants"] if one["winner"]] == [ada]
    assert (shown["key"], shown["participants"][1]["competitor"]["key"]) == ("M 1", "Team \u00e9")
    for command, told in (
        (("competitor", "erase", slug, "key:M 1"), "This tournament has no competitor with the key 'M 1'."),
        (("standings", slug, "key:M 1"), "This tournament has no ranking with the key 'M 1'."),
    ):
        assert await tallybook.refused(*command) == [told]


async def test_a_name_that_nobody_has_means_the_competitor_that_had_it_before(
    tallybook: Tallybook, played: Season
) -> None:
    slug, (ada, ben, _) = played.client.tournament, played.ids
    for name in ("FC Town", "FC City", "FC Town", "FC United"):
        await tallybook.done("competitor", "change", slug, f"id:{ada}", "--name", name)
    for name in ("FC Town", "FC City", "Ada", "FC United"):
        await tallybook.done("points", "add", slug, "Season", f"{name}=1")
    standings = await tallybook.done("standings", slug, "Season", "--json")
    assert f'"id":{ada}' in standings.replace(" ", "")
    await tallybook.done("competitor", "change", slug, f"id:{ben}", "--name", "FC City")
    explained = await tallybook.done("explain", slug, "Season", f"id:{ben}")
    assert await tallybook.done("explain", slug, "Season", "FC City") == explained, "a present name goes before"
    await tallybook.done("competitor", "change", slug, f"id:{ben}", "--name", "FC Else")
    assert await tallybook.refused("explain", slug, "Season", "FC City") == [
        f"2 competitors are named 'FC City'; give the id of one: {ada}, {ben}."
    ]
    await tallybook.done("competitor", "erase", slug, f"id:{ada}")
    told = "This tournament has no competitor 'FC Town'."
    assert await tallybook.refused("explain", slug, "Season", "FC Town") == [told]


@given(st.lists(st.sampled_from(["1", "2", "3", "7", "Ann"]), min_size=1, max_size=4), st.sampled_from("1237"))
def test_a_text_means_the_one_that_it_is_the_id_or_the_name_of_or_is_refused(names: list[str], text: str) -> None:
    """Ids are places in the list, from 1."""
    board = board_of(names)
    by_id = {int(text)} & set(range(1, len(names) + 1))
    by_name = {place for place, name in enumerate(names, start=1) if name == text}
    for said, those in ((text, by_id | by_name), (f"id:{text}", by_id), (f"name:{text}", by_name)):
        if len(those) > 1:
            with pytest.raises(Unacceptable) as refusal:
                Names(board).competitor(said)
            assert all(re.search(rf"\b{one}\b", refusal.value.message) for one in those)
        elif those or not said.startswith("name:"):
            assert {Names(board).competitor(said)} == (those or {int(text)})
        else:
            with pytest.raises(NotFound):
                Names(board).competitor(said)


def board_of(names: Iterable[str]) -> Board:
    board, now = Board(), datetime.now(UTC)
    for n, name in enumerate(names, 1):
        registered = CompetitorRegistered(competitor_id=CompetitorId(n), name=name)
        fold(board, Revisions(), Recorded(Sequence(n), now, OPERATOR, None, registered))
    return board


def test_a_refusal_lists_the_most_similar_names_first() -> None:
    names = ["Ann Smith", "Anna Smith", "Ann Smyth", "Anne Smith", "Bob"]
    with pytest.raises(NotFound, match=r"no competitor 'anna smit'. Similar: 'Anna Smith', '[^']+', '[^']+'\.$"):
        Names(board_of(names)).competitor("anna smit")


def test_an_unknown_name_is_not_compared_with_too_many_others() -> None:
    others = [str(n) for n in range(COMPARED_MAX - 1)]
    with pytest.raises(NotFound, match=r"'ann'\. Similar: 'Ann'\.$"):
        Names(board_of(["Ann", *others])).competitor("ann")
    with pytest.raises(NotFound, match=r"no competitor 'ann'\.$"):
        Names(board_of(["Ann", *others, "Bob"])).competitor("ann")


def test_others_get_their_turn_between_two_names_that_are_compared() -> None:
    turns, names = 0, Names(board_of([f"{'ab' * 100}{n}" for n in range(50)]))
    assert sum(1 for _ in names.competitor_in_steps(f"{'ab' * 100}7")) == 50, "all are read"
    with suppress(NotFound):
        for _ in names.competitor_in_steps("ab" * 100):
            turns += 1
    assert turns == 50


def test_no_more_than_some_unknown_names_are_compared() -> None:
    names, refusals = Names(board_of(["Ann"])), list[str]()
    for _ in range(UNKNOWN_COMPARED_MAX + 2):
        with pytest.raises(NotFound) as refusal:
            names.competitor("ann")
        refusals.append(refusal.value.message)
    assert ["Similar" in message for message in refusals] == [True] * UNKNOWN_COMPARED_MAX + [False] * 2


def test_a_refusal_lists_some_ids_and_counts_the_others() -> None:
    def board(count: int) -> Board:
        return board_of(["Ann"] * count)

    with pytest.raises(Unacceptable, match=rf"give the id of one: .*, {IDS_LISTED_MAX}\.$"):
        Names(board(IDS_LISTED_MAX)).competitor("Ann")
    with pytest.raises(Unacceptable, match=rf"1,020 competitors .*, {IDS_LISTED_MAX} and 1,000 more\.$"):
        Names(board(IDS_LISTED_MAX + 1_000)).competitor("Ann")
    assert Names(board(1)).competitor(" Ann ") == 1
    with pytest.raises(NotFound):
        Names(board(1)).competitor("ann")
