"""Names in the place of ids: whatever is unique is found by its name, and what is not is refused with the ids."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from api.interface.names import COMPARED_MAX, IDS_LISTED_MAX, UNKNOWN_COMPARED_MAX, Names
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.events import CompetitorRegistered, Recorded
from engine.domain.terms import OPERATOR, CompetitorId, Sequence
from projections.board.board import Board, Revisions, fold
from tests.api.cli.conftest import Tallybook
from tests.service import Season, deltas, register


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


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "command",
    [
        ["standings", "Season", "--unity", "points", "--json"],
        ["history", "Season", "--format", "ndjson", "--unity", "points", "--competitor", "Ada"],
        ["history", "Season", "--format", "ndjson", "--competition", "Ben - Ada"],
        ["explain", "Season", "Ada", "--unity", "points"],
        ["explain", "Season", "Ada", "--json"],
        ["what-if", "Season", "--without-competition", "Ben - Ada", "--unity", "points", "--json"],
        ["what-if", "Season", "--without-competitor", "Ada", "--json"],
        ["void", "Ben - Ada", "--dry-run", "--json"],
        ["competition", "list", "--competitor", "Ada", "--json"],
    ],
)
async def test_a_question_by_names_is_the_question_by_ids(
    tallybook: Tallybook, played: Season, command: list[str]
) -> None:
    async def answer(words: list[str]) -> str:
        head = 2 if words[0] == "competition" else 1
        return await tallybook.done(*words[:head], played.client.tournament, *words[head:])

    ids = by_id(played)
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("command", "reason"),
    [
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
    ],
)
async def test_a_name_that_nothing_has_is_refused(
    tallybook: Tallybook, played: Season, command: list[str], reason: str
) -> None:
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


async def test_a_number_is_an_id_before_it_is_a_name(tallybook: Tallybook, played: Season) -> None:
    slug, (ada, ben, _) = played.client.tournament, played.ids
    await register(played.client, str(ada), "777777")
    assert (await tallybook.done("explain", slug, "Season", str(ada))).startswith("Ada in Season")
    assert (await tallybook.done("explain", slug, "Season", "777777")).startswith("777777 in Season")
    unity = await tallybook.done("unity", "add", slug, "Season", str(played.unity_id))
    assert (await tallybook.done("explain", slug, "Season", str(ben), "--unity", unity)).startswith(
        f"Ben in Season: {played.unity_id}\n"
    )
    assert (await tallybook.done("explain", slug, "Season", str(ben), "--unity", str(played.unity_id))).startswith(
        "Ben in Season: points\n"
    )


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
    turns = 0
    with suppress(NotFound):
        for _ in Names(board_of([f"{'ab' * 100}{n}" for n in range(50)])).competitor_in_steps("ab" * 100):
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
