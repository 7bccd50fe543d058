"""Competitions from files: what rows mean, which points they give, and how a line is known again."""

import asyncio
import re
from typing import Any
from unicodedata import normalize

import pytest
from msgspec.structs import replace

from api.desk.desk import Desk
from api.imports.competitions import IMPORT_COMPETITIONS_MAX, Competitions, read_competitions
from api.imports.dates import DateOrder
from api.imports.played import FORM_OF_DATES
from api.imports.rows import read_csv
from api.imports.undoing import plan_undoing, undo_import
from api.interface.kinds import KindName, kinds
from api.interface.names import Names
from engine.domain.awards import Scoring
from engine.domain.commands import DeclareScoring
from engine.domain.errors import Unreadable
from engine.domain.terms import OPERATOR, RankingId, TournamentId
from engine.log import registry
from tests.api.cli.conftest import Tallybook
from tests.api.imports.importing import Importing
from tests.api.imports.league import CLUBS, League
from tests.desks import recorded

BEFORE = r" now; [1-9][0-9]* of the file's [0-9]+ competitions were imported before"
NOTHING = re.compile(rf"Nothing was imported(?:{BEFORE})?; correct these lines\.")
DASHED = "1\N{EN DASH}3"


class Import(Importing, League):
    """Imports files into rankings of the league. `tallybook`: the command line, for everything else."""

    def __init__(self, desk: Desk, tournament_id: TournamentId, tallybook: Tallybook, slug: str) -> None:
        super().__init__(desk, tournament_id, _read)
        self.tallybook = tallybook
        self.slug = slug

    async def score(self, ranking: str, *scorings: Scoring, like: KindName = "football", **more: Any) -> None:
        """Declares scorings, or those of a kind with `more` fields."""
        async with self.live() as live:
            ranking_id = Names(live.board).ranking(ranking)
            ids = {unity.name: unity_id for unity_id, unity in live.board.rankings[ranking_id].unities.items()}
        of_kind = [replace(one, **more) for one in kinds()[like].scorings_with(ids)]
        await self.submit(DeclareScoring(ranking_id=ranking_id, scorings=scorings or tuple(of_kind)))

    async def outcome(self, content: str) -> tuple[int, int, int]:
        """How many lines made something now, corrected something, and did neither."""
        outcome = await self(content)
        return outcome.made, outcome.corrected, outcome.already

    async def undo(self, name: str) -> None:
        async with self.live() as live:
            planned = await plan_undoing(self.desk, live, name)
            stop, ignore = asyncio.Event(), lambda *_: None
            await undo_import(self.desk, live, planned, actor=OPERATOR, stop=stop, progress=ignore)

    async def faults(self, content: str, **how: Any) -> list[str]:
        first, *faults = await self.refused(content, **how)
        assert NOTHING.fullmatch(first)
        return faults

    async def asked(self, content: str) -> list[str]:
        first, *questions = await self.refused(content)
        assert first == "Nothing was imported. If these lines are right, add --yes."
        return questions


def _read(
    content: bytes,
    names: Names,
    ranking: str = "Table",
    leave_out: bool = False,
    dates: DateOrder | None = None,
) -> Competitions:
    return read_competitions(read_csv(content), names.ranking(ranking), leave_out=leave_out, dates=dates)


@pytest.fixture
async def imported(desk: Desk, tallybook: Tallybook, slug: str) -> Import:
    async with desk.database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
    assert tournament_id is not None
    return Import(desk, tournament_id, tallybook, slug)


# ── What a file may hold ────────────────────────────────────────────────────────────────────────────────


async def test_a_score_gives_points_and_goals(imported: Import) -> None:
    rows = [
        "date,participants,score",
        "2024-03-01,Ajax|Brest,2:1",
        "2024-03-02,Celtic|Ajax,0 - 0",
        f"2024-03-03,Brest|Celtic,{DASHED}",
    ]
    assert await imported.counts("\n".join(rows)) == (3, 0)
    assert await imported.table() == {
        "points": {"Ajax": 4, "Celtic": 4, "Brest": 0, "Dynamo": 0},
        "goal difference": {"Celtic": 2, "Ajax": 1, "Dynamo": 0, "Brest": -3},
        "goals for": {"Celtic": 3, "Ajax": 2, "Brest": 2, "Dynamo": 0},
        "goals against": {"Dynamo": 0, "Ajax": 1, "Celtic": 1, "Brest": 5},
    }
    first, second, third = await imported.listed()
    names = {name: int(i) for one in (first, second) for i, name in one["participants"].items()}
    assert (first["started_at"], first["group_id"], first["location"]) == ("2024-03-01T00:00:00.000000Z", 1, "")
    assert [one["result"] for one in (first, second, third)] == ["2:1", "0 - 0", DASHED]
    assert [one["winner"] for one in (first, second, third)] == [names["Ajax"], None, names["Celtic"]]


async def test_a_group_and_a_place_are_read_from_their_columns(imported: Import) -> None:
    rows = [
        "date;group;location;participants;score",
        "2024-03-01 18:30;7;Hall 2;Ajax|Brest;2:1",
        "2024-03-02;;;Ajax|Celtic;1:1",
    ]
    await imported("\n".join(rows))
    first, second = await imported.listed()
    assert (first["started_at"], first["group_id"], first["location"]) == ("2024-03-01T18:30:00.000000Z", 7, "Hall 2")
    assert (second["group_id"], second["location"]) == (1, "")


async def test_columns_give_points_of_their_unities(imported: Import) -> None:
    """A race of three, two who did not finish, and a game whose score says nothing of points."""
    rows = [
        '"date","participants","score","points","goals for"',
        "2024-03-01,Dynamo|Ajax|Brest,1:02.3||1:04.0,25|0|15,",
        "2024-03-02, Ajax | Celtic ,6:4 3:6 7:5,+2|-1,|3",
        "2024-03-03,Celtic,won by default,,9",
        "2024-03-04,Ajax|Brest|Celtic,,,",
        "2024-03-05,Brest,,,1",
    ]
    assert await imported.counts("\n".join(rows)) == (5, 0)
    table = await imported.table()
    assert table["points"] == {"Dynamo": 25, "Brest": 15, "Ajax": 2, "Celtic": -1}
    assert table["goals for"] == {"Celtic": 12, "Brest": 1, "Ajax": 0, "Dynamo": 0}
    race, game, default, empty, without = await imported.listed()
    assert without["result"] is None
    names = {name: i for one in (race, game) for i, name in one["participants"].items()}
    assert race["result"] == {names["Dynamo"]: "1:02.3", names["Brest"]: "1:04.0"}
    assert [one["result"] for one in (game, default, empty)] == ["6:4 3:6 7:5", "won by default", None]
    assert {one["winner"] for one in (race, game, default, empty)} == {None}
    lines = await imported.tallybook.done("history", imported.slug, "Table", "--format", "ndjson")
    assert len(lines.splitlines()) == 3 + 2 + 1 + 1 + 1


async def test_a_column_is_stronger_than_what_the_score_would_give(imported: Import) -> None:
    await imported("date,participants,score,points\n2024-03-01,Ajax|Brest,0:1,5|4\n")
    table = await imported.table()
    assert (table["points"]["Ajax"], table["points"]["Brest"]) == (5, 4)
    assert (table["goals for"]["Ajax"], table["goals for"]["Brest"]) == (0, 1)


async def test_a_fixture_has_no_result_and_gives_no_points_until_a_later_file_has_its_score(imported: Import) -> None:
    calendar = [
        "date,location,participants,score",
        "2024-03-01,,Ajax|Brest,2:1",
        "2024-03-02,Hall 2,Celtic|Dynamo,",
        "2024-03-03,,Ajax|Brest|Celtic,",
    ]
    assert await imported.counts("\n".join(calendar)) == (3, 0)
    before = await imported.listed()
    assert [(one["result"], one["winner"]) for one in before[1:]] == [(None, None), (None, None)]
    assert (await imported.table())["points"] == {"Ajax": 3, "Brest": 0, "Celtic": 0, "Dynamo": 0}
    calendar[2] += "0:4"
    for counts in ((1, 2), (0, 3)):
        assert await imported.counts("\n".join(calendar)) == counts
    after = await imported.listed()
    assert [one["id"] for one in after] == [one["id"] for one in before]
    assert (after[1]["result"], after[1]["location"]) == ("0:4", "Hall 2")
    assert after[1]["participants"][str(after[1]["winner"])] == "Dynamo"
    table = await imported.table()
    assert table["points"] == {"Ajax": 3, "Dynamo": 3, "Brest": 0, "Celtic": 0}
    assert table["goals for"] == {"Dynamo": 4, "Ajax": 2, "Brest": 1, "Celtic": 0}
    for score in ("1:4", ""):
        (fault,) = await imported.faults("\n".join(calendar).replace("0:4", score))
        assert fault.startswith(
            f"line 3: competition {before[1]['id']} was imported with another score or winner (event "
        )
    race = "date,participants,score,points\n2024-03-03,Ajax|Brest|Celtic,9.8|DNF|9.7,2||3\n"
    assert await imported.counts(race) == (1, 0)
    assert [one["id"] for one in await imported.listed()] == [one["id"] for one in before]


async def test_results_are_recorded_in_the_order_of_the_file_also_those_of_fixtures(imported: Import) -> None:
    """Who was first to reach a total depends on it."""
    pairs = ("Ajax|Brest", "Celtic|Dynamo", "Dynamo|Ajax", "Brest|Celtic")
    fixtures = [f"2024-03-{day:02},{pairs[day % 4]}," for day in range(1, 25)]
    await imported("\n".join(["date,participants,score", *fixtures]))
    before = await imported.length()
    ids = [one["id"] for one in await imported.listed()]
    played = [f"{one}1:0" for one in fixtures]
    played.insert(12, "2024-04-01,Ajax|Celtic,0:0")
    assert await imported.counts("\n".join(["date,participants,score", *played])) == (25, 0)
    new = (await imported.listed())[-1]["id"]
    events = (await recorded(imported.desk.database, imported.tournament_id))[before:]
    order = [one.said_result.competition_id for one in events if one.said_result is not None]
    assert order == [*ids[:12], new, *ids[12:]]


async def test_a_column_names_the_winner_whom_the_score_does_not_say(imported: Import) -> None:
    await imported.tallybook.done("competitor", "change", imported.slug, "Celtic", "--key", "C")
    rows = [
        "date,participants,score,winner",
        "2024-03-01,Ajax|Brest,2:2 pen,Brest",
        "2024-03-02,key:C|Dynamo,0:0 wo,Celtic",
        "2024-03-03,Ajax|Celtic,,key:C",
        "2024-03-04,Ajax|Dynamo,1:0,",
        "2024-03-05,Brest|Dynamo,,",
    ]
    for counts in ((5, 0), (0, 5)):
        assert await imported.counts("\n".join(rows)) == counts
    shown = await imported.listed()
    winners = [one["participants"].get(str(one["winner"])) for one in shown]
    assert winners == ["Brest", "Celtic", "Celtic", "Ajax", None]
    assert (await imported.table())["points"] == {"Celtic": 6, "Ajax": 3, "Brest": 3, "Dynamo": 0}
    (changed,) = await imported.faults("\n".join(rows).replace("pen,Brest", "pen,Ajax"))
    assert changed.startswith(
        f"line 2: it was imported as competition {shown[0]['id']}, with another score, winner or "
    )
    rows[5] += "Dynamo"
    completed = await imported("\n".join(rows))
    assert (completed.made, completed.already) == (1, 4)
    assert (await imported.table())["points"]["Dynamo"] == 3
    assert completed.name is not None
    await imported.undo(completed.name)
    assert (await imported.listed())[4]["winner"] is None
    assert await imported.counts("\n".join(rows)) == (1, 4)
    assert (await imported.table())["points"]["Dynamo"] == 3


async def test_a_file_whose_column_repeats_the_winner_of_the_score_is_the_same_file(imported: Import) -> None:
    assert await imported.counts(DAY_ONE) == (2, 0)
    rows = [f"{row},{winner}" for row, winner in zip(DAY_ONE.splitlines(), ("winner", "Ajax", ""), strict=True)]
    assert await imported.counts("\n".join(rows)) == (0, 2)


async def test_a_line_with_a_key_corrects_the_winner_but_not_against_the_score(imported: Import) -> None:
    file = "key,date,participants,score,winner\nM1,2024-03-01,Ajax|Brest,{}\n"
    for line, points in (("2:2 pen,Brest", (0, 3)), (",Ajax", (3, 0)), ("3:3 pen,Brest", (0, 3)), ("0:1,", (0, 3))):
        outcome = await imported(file.format(line))
        assert outcome.made + outcome.corrected == 1
        table = (await imported.table())["points"]
        assert (table["Ajax"], table["Brest"]) == points
    assert await imported.faults(file.format(",Ajax")) == [
        "line 2, winner: has the lower score; leave it out, or add a word such as wo"
    ]


async def test_a_winner_who_cannot_have_won_is_a_wrong_line(imported: Import) -> None:
    rows = [
        "date,participants,score,winner",
        "2024-03-01,Ajax|Brest,2:2 pen,",
        "2024-03-02,Ajax|Brest,2:2 pen,Celtic",
        "2024-03-03,Ajax|Brest,2:1,Brest",
        "2024-03-04,Ajax|Brest,2:1,Zenit",
        "2024-03-05,Ajax|Zenit,2:1,Zenit",
        "2024-03-06,Ajax|Brest|Celtic,,Dynamo",
    ]
    zenit = "This tournament has no competitor 'Zenit'."
    assert await imported.faults("\n".join(rows)) == [
        "line 2, winner: name the winner: a shoot-out always has one",
        "line 3, winner: 'Celtic' is not a participant",
        "line 4, winner: has the lower score; leave it out, or add a word such as wo",
        f"line 5, winner: {zenit}",
        f"line 6, participants: {zenit}",
        "line 6, winner: has the lower score; leave it out, or add a word such as wo",
        "line 7, winner: 'Dynamo' is not a participant",
    ]
    await imported.tallybook.done("ranking", "create", imported.slug, "Regatta", "--like", "sailing")
    race = "date,participants,score,winner\n2024-03-01,Ajax|Brest|Celtic|Dynamo,3|3|1|4,{}\n"
    assert await imported.faults(race.format("Dynamo"), ranking="Regatta") == [
        "line 2, winner: is not first in the result; leave it empty, or correct the result"
    ]
    assert await imported.counts(race.format("Celtic"), ranking="Regatta") == (1, 0)


async def test_the_score_of_a_fixture_that_got_a_result_by_hand_is_refused(imported: Import) -> None:
    fixture = "date,participants,score\n2024-03-01,Ajax|Brest,"
    await imported(fixture)
    (listed,) = await imported.listed()
    match = str(listed["id"])
    await imported.tallybook.done("competition", "result", imported.slug, match, "2:1")
    assert await imported.counts(fixture) == (0, 1)
    assert await imported.faults(fixture + "2:1") == [
        f"line 2, score: competition {match} got a result by hand; leave this line out, or take that result back first"
    ]
    await imported.tallybook.done("competition", "change", imported.slug, match, "--result", "")
    assert await imported.counts(fixture + "2:1") == (1, 0)


async def test_what_was_awarded_and_a_bye_are_read_as_such(imported: Import) -> None:
    rows = ["date,participants,score", "2024-03-01,Ajax|Brest,3:0 wo", "2024-03-02,Celtic|Ajax,0-3 (Awarded)"]
    await imported("\n".join([*rows, "2024-03-03,Dynamo,bye"]))
    table = await imported.table()
    assert table["points"] == {"Ajax": 6, "Brest": 0, "Celtic": 0, "Dynamo": 0}
    assert table["goals for"]["Ajax"] == 6
    assert [one["result"] for one in await imported.listed()] == ["3:0 wo", "0-3 (Awarded)", "bye"]
    faults = await imported.faults("\n".join([rows[0], "2024-03-05,Ajax|Brest,bye", "2024-03-06,Ajax,wo"]))
    assert [fault.partition(":")[0] for fault in faults] == ["line 2, score", "line 3, score"]
    assert await imported.counts(f"{rows[0]}\n2024-03-04,Celtic|Dynamo,0:0 wo\n") == (1, 0)
    assert (await imported.table())["points"] == table["points"], "both have lost"


async def test_two_rankings_with_the_same_teams_on_one_day_are_two_competitions_if_they_are_in_two_groups(
    imported: Import,
) -> None:
    await imported.tallybook.done("ranking", "create", imported.slug, "Youth")
    await imported.score("Table", groups=(1,))
    await imported.score("Youth", groups=(2,))
    rows = "date,group,participants,score\n2024-03-01,{},Ajax|Brest,{}\n"
    assert await imported.counts(rows.format(1, "2:1")) == (1, 0)
    assert await imported.counts(rows.format(2, "0:5"), ranking="Youth") == (1, 0)
    assert [(one["group_id"], one["result"]) for one in await imported.listed()] == [(1, "2:1"), (2, "0:5")]
    assert ((await imported.table())["points"]["Ajax"], (await imported.table("Youth"))["points"]["Brest"]) == (3, 3)
    assert await imported.counts(rows.format(1, "2:1")) == (0, 1)
    assert len(await imported.listed()) == 2


async def test_a_round_is_a_number_or_a_name_and_tells_two_competitions_apart(imported: Import) -> None:
    rows = "date,round,scale,participants,score\n2024-03-01,{},{},Ajax|Brest,2:1\n"
    for in_round, scale in (("7", ""), ("Final", "double")):
        assert await imported.counts(rows.format(in_round, scale)) == (1, 0)
        assert await imported.counts(rows.format(in_round, scale)) == (0, 1)
    found = [(one["round"], one["round_name"], one["scale"]) for one in await imported.listed()]
    assert found == [(7, "", ""), (None, "Final", "double")]


async def test_numbers_as_names_are_refused_where_they_are_ids_and_taken_with_a_word_before_them(
    imported: Import,
) -> None:
    """Cars called 4, 2, 1, 3: each by the id of another."""
    ids = {one["name"]: one["id"] for one in await imported.tallybook.json("competitor", "list", imported.slug)}
    for name, other in zip(CLUBS, (*CLUBS[1:], CLUBS[0]), strict=True):
        await imported.tallybook.done(
            "competitor", "change", imported.slug, f"id:{ids[name]}", "--name", f"{ids[other]}"
        )
    ajax, brest, celtic, dynamo = map(ids.__getitem__, CLUBS)
    file = "date,participants,score\n2024-03-01,{}|{},2:1\n"
    assert (await imported.faults(file.format(brest, f"id:{dynamo}")))[0] == (
        f"line 2, participants: {brest} is the id of competitor '{celtic}' and the name of competitor {ajax}; write "
        f"id:{brest} or name:{brest}."
    )
    assert await imported.counts(file.format(f"name:{brest}", f"id:{dynamo}")) == (1, 0)
    assert (await imported.table())["points"][str(brest)] == 3
    assert await imported.counts(file.format(f"id:{ajax}", f"name:{ajax}")) == (0, 1), "they are the same two"


async def test_a_line_is_the_same_whether_its_accents_are_composed_or_not(imported: Import) -> None:
    await imported.tallybook.done("competitor", "add", imported.slug, "Fene\u0301r")
    await imported.tallybook.done("participants", "add", imported.slug, "Table", "Fen\u00e9r")
    await imported.tallybook.done("unity", "add", imported.slug, "Table", "b\u00f4nus")
    rows = "date,participants,score,location,b\u00f4nus\n2024-03-01,Ajax|Fen\u00e9r,2:1,K\u00f6ln,1|2\n"
    assert await imported.counts(rows) == (1, 0)
    assert await imported.counts(normalize("NFD", rows)) == (0, 1)
    assert (await imported.table())["points"]["Ajax"] == 3


QUESTION = (
    "Does 01/08/2015 18:30 have the day or the month first? Say so for the whole file: --dates day-first or --dates "
    "month-first."
)


@pytest.mark.parametrize(
    ("dates", "read"),
    [
        ("01/08/2015 18:30", {"day-first": "2015-08-01T18:30", "month-first": "2015-01-08T18:30"}),
        ("13/02/2015", {None: "2015-02-13T00:00", "day-first": "2015-02-13T00:00"}),
        ("2/13/2015", {None: "2015-02-13T00:00", "month-first": "2015-02-13T00:00"}),
        ("5/5/2015", {None: "2015-05-05T00:00", "day-first": "2015-05-05T00:00", "month-first": "2015-05-05T00:00"}),
        ("1.8.2015 18:30", {None: "2015-08-01T18:30", "month-first": "2015-08-01T18:30"}),
    ],
)
async def test_dates_are_read_in_the_order_that_they_show_or_that_is_said(
    imported: Import, dates: str, read: dict[DateOrder | None, str]
) -> None:
    content = f"date,participants,score\n{dates},Ajax|Brest,2:1\n"
    if None not in read:
        assert await imported.refused(content) == [QUESTION]
    for order, expected in read.items():
        await imported(content, dates=order)
        assert (await imported.listed())[-1]["started_at"].startswith(expected), order
    assert len(await imported.listed()) == len({*read.values()})


async def test_one_date_that_shows_the_order_is_enough_for_the_file(imported: Import) -> None:
    rows = ["date,participants,score", "01/08/2015,Ajax|Brest,2:1", "13/08/2015,Brest|Ajax,2:1"]
    await imported("\n".join(rows))
    assert [one["started_at"][:10] for one in await imported.listed()] == ["2015-08-01", "2015-08-13"]
    assert await imported.faults("\n".join([*rows, "08/14/2015,Ajax|Brest,2:1", "31/02/2015,Ajax|Brest,2:1"])) == [
        "line 4, date: there is no such day as '08/14/2015'",
        "line 5, date: there is no such day as '31/02/2015'",
    ]
    assert await imported.faults("\n".join(rows), dates="month-first") == [
        "line 3, date: there is no such day as '13/08/2015'"
    ]


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────


async def test_every_wrong_line_is_named_by_its_number_and_nothing_is_imported(imported: Import) -> None:
    await imported.tallybook.done("competitor", "add", imported.slug, "Eve")
    rows = [
        "date,group,participants,score",
        "2024-03-01,1,Ajax|Brest,2:1",
        "2024-02-30,1,Ajax|Brest,2:1",
        ",one,Ajax|Zenit,2-x",
        "",
        "2024-03-01,1,Ajax|Brest|Celtic,2:1",
        "2024-03-01,1,Ajax|Ajax,2:1",
        "2024-03-01,1,Ajax|Eve,2:1",
        "2024-03-01,1,Ajax|Brest,won",
        "2024-03-01,1,Ajax|99999999,2:1",
    ]
    forms = (
        "is in none of the forms that count. Forms that count: a score of two numbers, such as 2:1; one of these words "
        "after it, or with a winner: aet, pen, wo, walkover, awarded; bye, half bye or zero bye."
    )
    faults = await imported.faults("\n".join(rows))
    assert faults == [
        "line 3, date: there is no such day as '2024-02-30'",
        f"line 4, date: '' must be {FORM_OF_DATES}",
        "line 4, group: 'one' is not a whole number",
        "line 4, participants: This tournament has no competitor 'Zenit'.",
        f"line 4, score: '2-x' {forms}",
        "line 6, score: must have a performance for each participant, separated by |",
        "line 7, participants: 'Ajax' is named more than once",
        f"line 9, score: 'won' {forms}",
        "line 10, participants: This tournament has no competitor 99999999.",
    ]


@pytest.mark.parametrize("participants", ["Ajax|Zenit", "Zenit|Ajax", "Ajax|Eve", "Zenit|Zenit"])
async def test_a_name_that_means_nobody_or_several_is_the_only_fault_of_its_line(
    imported: Import, participants: str
) -> None:
    for _ in range(2):
        await imported.tallybook.done("competitor", "add", imported.slug, "Eve")
    content = f"date,participants,score,goals for\n2024-03-01,{participants},2:1,2|1\n"
    (fault,) = await imported.faults(content)
    assert fault.startswith("line 2, participants: ")


async def test_names_and_points_are_both_refused_if_both_are_wrong(imported: Import) -> None:
    content = "date,participants,score,points\n2024-03-01,Ajax|Zenit,2:1,3|x\n2024-03-01,Zenit|Ajax,2:1,3\n"
    assert await imported.faults(content) == [
        "line 2, participants: This tournament has no competitor 'Zenit'.",
        "line 2, points: 'x' must be a whole number, in digits only",
        "line 3, participants: This tournament has no competitor 'Zenit'.",
        "line 3, points: must have points for each participant, separated by |",
    ]


async def test_a_score_that_some_unities_cannot_hold_is_one_fault(imported: Import) -> None:
    content = "date,participants,score\n2024-03-01,Ajax|Brest,1½:½\n"
    (fault,) = await imported.faults(content)
    assert fault.startswith("line 2, score: '1.5' cannot count in the unity 'goal difference': it must be a whole")


SPOILT = [
    *("02-Jan", "Jan-02", "2-Feb", "1-Mrz", "02. Jan", "02. Jan.", "3/Dez", "2015-01-02", "2015-01-02 00:00:00"),
    *("02/01/2015", "02.01.2015", "21:19:00", "1:00:00", "09:19:00 PM"),
]


async def test_what_spreadsheets_make_of_scores_is_said_and_never_stored(imported: Import) -> None:
    for columns, points in (("", ""), (",points", ",3|0")):
        rows = [f"2024-03-01,Ajax|Brest,{score}{points}" for score in SPOILT]
        assert await imported.faults("\n".join([f"date,participants,score{columns}", *rows])) == [
            f"line {number}, score: {score!r} is what a spreadsheet makes of a score such as 2-1 or 21:19; format the "
            "column as text there, and type the score again"
            for number, score in enumerate(SPOILT, start=2)
        ]


async def test_times_and_words_that_are_performances_are_stored(imported: Import) -> None:
    rows = [
        "date,participants,score,points",
        "2024-03-01,Ajax,21:19:00,3",
        "2024-03-02,Ajax|Brest,21:19:00|21:20:00,3|0",
        "2024-03-03,Ajax|Brest|Celtic,21:19:00|Marshal|21:20,3|0|1",
        "2024-03-04,Ajax|Brest,21:19:01,3|0",
        "2024-03-05,Ajax|Brest,won in May,3|0",
    ]
    assert await imported.counts("\n".join(rows)) == (5, 0)


async def test_a_draw_is_half_a_point_where_points_have_decimals(imported: Import) -> None:
    await imported.tallybook.done("ranking", "create", imported.slug, "Chess", "--like", "chess")
    await imported.tallybook.done("unity", "add", imported.slug, "Chess", "time", "--time", "s", "--sort", "ASC")
    rows = ["date,participants,score,time", "2024-03-01,Ajax|Brest,½:½,2:03:17|1:59:40", "2024-03-02,Ajax|Celtic,1:0,"]
    await imported.score("Table", groups=(2,))
    await imported("\n".join(rows), ranking="Chess")
    told = (await imported.tallybook("standings", imported.slug, "Chess")).out.splitlines()
    unities = len(kinds()["chess"].unities)
    assert [line.split()[-2] for line in told if "Ajax" in line][::unities] == ["1.5", "2:03:17"]
    csv = (await imported.tallybook.done("history", imported.slug, "Chess", "--format", "csv")).splitlines()
    assert {line.split(",")[8] for line in csv[1:]} >= {"0.5", "1.0", "2:03:17"}


async def test_points_in_a_column_may_have_commas_and_halves(imported: Import) -> None:
    await imported.tallybook.done("ranking", "create", imported.slug, "Chess", "--decimals", "1")
    await imported.tallybook.done("unity", "add", imported.slug, "Chess", "laps", "--time", "ms", "--sort", "ASC")
    rows = ["date;participants;score;points;laps", "2024-03-01;Ajax|Brest;;1,5|½;9,58|10,1"]
    await imported("\n".join(rows), ranking="Chess")
    table = await imported.table("Chess")
    assert [table["points"][name] for name in ("Ajax", "Brest")] == [15, 5]
    assert [table["laps"][name] for name in ("Ajax", "Brest")] == [9_580, 10_100]


async def test_a_score_may_have_halves(imported: Import) -> None:
    scores = ["½:½", "1/2-1/2", "0.5:0.5", "1½-½", "1:0", '"2,5:1,50"']
    rows = ["date,group,participants,score"]
    rows += [f"2024-03-0{day},2,Ajax|Brest,{score}" for day, score in enumerate(scores, start=1)]
    await imported.tallybook.done("ranking", "create", imported.slug, "Chess", "--like", "chess")
    await imported.score("Table", groups=(1,))
    await imported("\n".join(rows), ranking="Chess")
    table = await imported.table("Chess")
    assert [table["points"][name] for name in ("Ajax", "Brest")] == [45, 15]
    assert [one["winner"] is None for one in await imported.listed()] == [True, True, True, False, False, False]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("points", "fault"),
    [
        ("3", "must have points for each participant, separated by |"),
        ("3|0|0", "must have points for each participant, separated by |"),
        ("3|x", "'x' must be a whole number, in digits only"),
        ("1.5|0", "'1.5' must be a whole number, in digits only"),
        ("99999999999|0", "'99999999999' is not within ±2147483647"),
        ("2147483648|0", "'2147483648' is not within ±2147483647"),
    ],
)
async def test_points_in_a_column_are_one_for_each(imported: Import, points: str, fault: str) -> None:
    rows = ["date,participants,score,points", f"2024-03-01,Ajax|Brest,2:1,{points}"]
    assert await imported.faults("\n".join(rows)) == [f"line 2, points: {fault}"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "The first line must name the columns"),
        ("date,participants\n", "The first line must name the columns"),
        ("date,participants,score,date\n", "The first line must name the columns"),
        ("date,participants,score,corners\n", "has no unity 'corners'."),
    ],
)
async def test_a_file_that_is_none_is_refused(imported: Import, content: str, reason: str) -> None:
    assert reason in (await imported.refused(content))[0]


async def test_columns_that_are_not_unities_are_named_and_left_out_on_request(imported: Import) -> None:
    content = "date;participants;referee;score;goal for;\n2024-03-01;Ajax|Brest;Ann;2:1;x;\n"
    (reason,) = await imported.refused(content)
    assert re.sub("[0-9]+", "1", reason) == (
        "Ranking 1 has no unity 'referee'. Ranking 1 has no unity 'goal for'. Similar: 'goals for', 'goal difference'. "
        "Correct the first line, or leave such columns out (--leave-out)."
    )
    assert await imported.counts(content, leave_out=True) == (1, 0)
    assert await imported.counts("date,participants,score\n2024-03-01,Ajax|Brest,2:1\n") == (0, 1)


async def test_two_columns_of_one_unity_are_refused(imported: Import) -> None:
    (reason,) = await imported.refused("date,participants,score,goals for,name:goals for\n")
    assert reason == "Two columns give points in the unity 'name:goals for'; leave one out."


async def test_competitions_are_counted_as_a_league_table_has_them(imported: Import) -> None:
    counts = ("played", "won", "drawn", "lost")
    for unity in counts:
        await imported.tallybook.done("unity", "add", imported.slug, "Table", unity)
    rows = (
        "date,participants,score",
        "2024-03-01,Ajax|Brest,2:1",
        "2024-03-02,Brest|Celtic,0:0",
        "2024-03-03,Celtic|Ajax,1:4",
    )
    await imported.score("Table")
    await imported("\n".join(rows))
    table = await imported.table()
    assert {name: tuple(table[unity][name] for unity in ("points", *counts)) for name in CLUBS} == {
        "Ajax": (6, 2, 2, 0, 0),
        "Brest": (1, 2, 0, 1, 1),
        "Celtic": (1, 2, 0, 1, 1),
        "Dynamo": (0, 0, 0, 0, 0),
    }


async def test_a_file_of_too_many_lines_is_refused() -> None:
    for count, refused in ((IMPORT_COMPETITIONS_MAX, False), (IMPORT_COMPETITIONS_MAX + 1, True)):
        file = read_csv(b"date,participants,score\n" + b"2024-03-01,Ajax|Brest,2:1\n" * count)
        if refused:
            with pytest.raises(Unreadable, match=f"more than {IMPORT_COMPETITIONS_MAX:,} lines"):
                read_competitions(file, RankingId(1))
        else:
            assert len(read_competitions(file, RankingId(1)).rows) == count


async def test_a_closed_ranking_gets_no_points_and_columns_for_it_are_refused(
    imported: Import,
) -> None:
    await imported.tallybook.done("ranking", "close", imported.slug, "Table")
    (reason,) = await imported.refused("date,participants,score,points\n2024-03-01,Ajax|Brest,2:1,5|4\n")
    assert "is closed; reopen it first" in reason
    assert await imported.counts("date,participants,score\n2024-03-01,Ajax|Brest,2:1\n") == (1, 0)
    assert (await imported.table())["points"]["Ajax"] == 0


# ── Nothing twice ───────────────────────────────────────────────────────────────────────────────────────

DAY_ONE = "date,participants,score\n2024-03-01,Ajax|Brest,2:1\n2024-03-01,Celtic|Dynamo,0:0\n"
DAY_TWO = "2024-03-08,Brest|Ajax,1:1\n"


async def test_a_file_may_grow_and_be_imported_again(imported: Import) -> None:
    assert await imported.counts(DAY_ONE) == (2, 0)
    table, events = await imported.table(), await imported.length()
    assert await imported.counts(DAY_ONE) == (0, 2)
    again = DAY_ONE.replace(",", ";").replace("\n", "\r\n").replace("2:1", " 2:1 ")
    assert await imported.counts(again) == (0, 2)
    assert (await imported.table(), await imported.length()) == (table, events)
    assert await imported.counts(DAY_ONE + DAY_TWO) == (1, 2)
    assert (await imported.table())["points"] == {"Ajax": 4, "Brest": 1, "Celtic": 1, "Dynamo": 1}


async def test_two_games_of_the_same_two_at_the_same_time_are_two(imported: Import) -> None:
    assert await imported.counts(DAY_ONE + "2024-03-01,Ajax|Brest,2:1\n") == (3, 0)
    assert (await imported.table())["points"]["Ajax"] == 6


async def test_a_club_is_the_same_by_id_and_by_name(imported: Import) -> None:
    await imported(DAY_ONE)
    ids = {one["name"]: one["id"] for one in await imported.tallybook.json("competitor", "list", imported.slug)}
    by_id = DAY_ONE.replace("Ajax", str(ids["Ajax"]))
    assert await imported.counts(by_id) == (0, 2)


async def test_a_line_that_has_another_score_or_other_points_by_now_is_refused(imported: Import) -> None:
    await imported(DAY_ONE)
    match = (await imported.listed())[0]["id"]
    (scored,) = await imported.faults(DAY_ONE.replace("2:1", "2:2") + DAY_TWO)
    assert scored == (
        f"line 2: it was imported as competition {match}, with another score, winner or location; undo that "
        "import first, or correct that competition and leave this line out"
    )
    with_points = "date,participants,score,points\n2024-03-01,Ajax|Brest,2:1,{}|0\n"
    assert await imported.counts(with_points.format(5)) == (1, 0)
    (fault,) = await imported.faults(with_points.format(6))
    assert fault.startswith(f"line 2: competition {match} was imported with other points (event ")
    rest = "date,participants,score\n2024-03-01,Celtic|Dynamo,0:0\n" + DAY_TWO
    assert await imported.counts(rest) == (1, 1)


async def test_another_ranking_gets_points_of_the_same_competitions(imported: Import) -> None:
    await imported(DAY_ONE)
    await imported.tallybook.done("ranking", "create", imported.slug, "Old rules")
    with_points = "date,participants,score,points\n2024-03-01,Ajax|Brest,2:1,2|0\n"
    for counts in ((1, 0), (0, 1)):
        assert await imported.counts(with_points, ranking="Old rules") == counts
    assert len(await imported.listed()) == 2
    assert (await imported.table("Old rules"))["points"]["Ajax"] == 2
    assert (await imported.table())["points"]["Ajax"] == 3


async def test_in_another_zone_of_the_tournament_a_file_is_the_same(imported: Import) -> None:
    """A time without a zone is found by what was typed, not by what it means where the tournament is now."""
    season = "date,participants,score\n2024-03-01 15:00,Ajax|Brest,2:1\n2024-07-01,Celtic|Dynamo,0:0\n"
    assert await imported.counts(season) == (2, 0)
    table = await imported.table()
    for zone in ("Europe/Berlin", "Asia/Tokyo"):
        await imported.tallybook.done("tournament", "present", imported.slug, "--zone", zone)
        assert await imported.counts(season) == (0, 2)
    assert await imported.counts(season.replace("15:00", "15:00Z")) == (0, 2)
    assert await imported.table() == table


NEAR = re.compile(
    r"line 2, date: There is a competition of the same two on 2024-03-01( [0-9:]{5})?\. Is this another one\?"
)
HEAD = "date,participants,score\n"


@pytest.mark.parametrize("corrected", ["2024-03-01 15:00", "2024-03-02", "2024-03-03", "2024-02-28"])
async def test_a_match_with_a_corrected_kick_off_is_a_second_match_only_for_the_sure(
    imported: Import, corrected: str
) -> None:
    await imported(DAY_ONE)
    file = f"{HEAD}{corrected},Ajax|Brest,2:1\n2024-03-01,Celtic|Dynamo,0:0\n{DAY_TWO}"
    (question,) = await imported.asked(file)
    assert NEAR.fullmatch(question), question
    assert (await imported(file, sure=True)).made == 2
    assert await imported.counts(file) == (0, 3)


async def test_a_match_entered_by_hand_is_not_imported_a_second_time(imported: Import) -> None:
    added = "--started-at", "2024-03-01 15:00", "--group", "1"
    match = await imported.tallybook.done("competition", "add", imported.slug, "Brest", "Ajax", *added)
    for date in ("2024-03-01 15:00", "2024-03-01"):
        (question,) = await imported.asked(f"{HEAD}{date},Ajax|Brest,2:1\n")
        assert NEAR.fullmatch(question), question
    await imported.tallybook.done("void", imported.slug, match.strip())
    assert await imported.counts(f"{HEAD}2024-03-01,Ajax|Brest,2:1\n") == (1, 0)


async def test_a_result_of_a_later_day_is_asked_about_but_no_fixture(imported: Import) -> None:
    fixture = f"{HEAD}9990-03-01,Ajax|Brest,\n"
    assert await imported.counts(fixture) == (1, 0)
    for played in (fixture.replace(",\n", ",2:1\n"), f"key,{HEAD}M1,9990-05-01,Celtic|Dynamo,0:0\n"):
        (question,) = await imported.asked(played)
        assert question == "line 2, date: This competition is still to come. Has it been played?"
        assert (await imported(played, sure=True)).made == 1
    assert (await imported.asked(f"key,{HEAD}M1,9990-05-01,Celtic|Dynamo,1:0\n"))[0] == question
    assert (await imported.table())["points"] == {"Ajax": 3, "Brest": 0, "Celtic": 1, "Dynamo": 1}


async def test_matches_that_a_group_a_round_or_days_tell_apart_are_several(imported: Import) -> None:
    await imported(DAY_ONE)
    for column, text in (("group", "2"), ("round", "2"), ("round", "Cup")):
        assert await imported.counts(f"date,participants,score,{column}\n2024-03-02,Ajax|Brest,2:1,{text}\n") == (1, 0)
    assert await imported.counts(f"{HEAD}2024-03-04,Ajax|Brest,2:1\n") == (1, 0)
    assert await imported.counts(f"{HEAD}2024-02-26,Brest|Ajax,2:1\n") == (1, 0)


async def test_two_matches_of_the_same_two_within_two_days_are_several_in_one_file(imported: Import) -> None:
    series = f"{HEAD}2024-03-01,Ajax|Brest,2:1\n2024-03-02,Ajax|Brest,0:1\n"
    assert await imported.counts(series) == (2, 0)
    assert await imported.counts(f"{series}2024-03-03,Brest|Ajax,0:1\n") == (1, 2)


async def test_a_club_renamed_in_mid_season_is_one_club_in_a_file_with_both_names(imported: Import) -> None:
    await imported(DAY_ONE)
    await imported.tallybook.done("competitor", "change", imported.slug, "Ajax", "--name", "FC Ajax")
    assert await imported.counts(f"{DAY_ONE}2024-03-08,Brest|FC Ajax,0:1\n") == (1, 2)
    assert (await imported.table())["points"] == {"FC Ajax": 6, "Brest": 0, "Celtic": 1, "Dynamo": 1}
    assert len(await imported.tallybook.json("competitor", "list", imported.slug)) == len(CLUBS)


async def test_after_an_import_was_undone_its_corrected_file_is_imported(imported: Import) -> None:
    name = (await imported(DAY_ONE)).name
    await imported.undo(str(name))
    assert await imported.counts(DAY_ONE.replace("2024-03-01", "2024-03-02")) == (2, 0)
    assert (await imported.table())["points"]["Ajax"] == 3


# ── Keys ────────────────────────────────────────────────────────────────────────────────────────────────

KEYED = "key,date,location,participants,score,points\n"


async def test_a_corrected_score_of_a_line_with_a_key_moves_the_table(imported: Import) -> None:
    file = "key,date,participants,score\nM1,2024-03-01,Ajax|Brest,{}\n"
    for score, points in (("2:1", (3, 0)), ("2:2", (1, 1)), ("0:1", (0, 3)), ("2:1", (3, 0))):
        assert (await imported(file.format(score))).ids == [(await imported.listed())[0]["id"]]
        table = (await imported.table())["points"]
        assert (table["Ajax"], table["Brest"]) == points
    assert len(await imported.listed()) == 1


async def test_a_line_with_a_key_corrects_date_place_and_score(imported: Import) -> None:
    first = f"{KEYED}M1,2024-03-01,Hall 1,Ajax|Brest,2:1,\nM2,2024-03-02,,Celtic|Dynamo,,\n"
    assert await imported.outcome(first) == (2, 0, 0)
    assert await imported.outcome(first) == (0, 0, 2)
    corrected = f"{KEYED} M1 ,2024-03-09 15:00,Hall 2,Ajax|Brest,1:1,\nM2,2024-03-02,,Celtic|Dynamo,0:3,\n"
    assert await imported.outcome(corrected) == (0, 2, 0)
    assert await imported.outcome(corrected) == (0, 0, 2)
    match, other = await imported.listed()
    assert (match["started_at"], match["location"]) == ("2024-03-09T15:00:00.000000Z", "Hall 2")
    assert (match["key"], match["result"], match["winner"]) == ("M1", "1:1", None)
    assert (other["result"], str(other["winner"])) == ("0:3", next(reversed(other["participants"])))
    events = await imported.length()
    assert await imported.outcome(first.replace(",2:1", ",")) == (0, 1, 1), "what is empty corrects nothing"
    assert await imported.length() == events + 1
    again = await imported.listed()
    assert (again[0]["location"], again[0]["result"]) == ("Hall 1", "1:1")
    assert await imported.outcome(corrected) == (0, 1, 1), "as often as files differ"


async def test_a_competition_with_a_key_that_was_added_by_hand_is_the_one_of_the_line(imported: Import) -> None:
    await imported.tallybook.done("competition", "add", imported.slug, "Ajax", "Brest", "--key", "M1")
    assert await imported.outcome(f"{KEYED}M1,2024-03-01,,Ajax|Brest,2:1,3|0\n") == (0, 1, 0)
    (match,) = await imported.listed()
    assert (match["started_at"], match["result"]) == ("2024-03-01T00:00:00.000000Z", "2:1")
    assert (await imported.table())["points"]["Ajax"] == 3


async def test_on_a_day_without_a_time_a_line_leaves_the_time_that_is_known(imported: Import) -> None:
    added = "--key", "M1", "--started-at", "2024-03-01 22:30"
    await imported.tallybook.done("competition", "add", imported.slug, "Ajax", "Brest", *added)
    assert await imported.outcome(f"{KEYED}M1,2024-03-01,,Ajax|Brest,,\n") == (0, 0, 1)
    await imported.tallybook.done("tournament", "present", imported.slug, "--zone", "Europe/Berlin")
    assert await imported.outcome(f"{KEYED}M1,2024-03-01,,Ajax|Brest,,\n") == (0, 0, 1), "23:30 there"


async def test_a_file_that_gets_keys_gives_them_to_the_same_matches(imported: Import) -> None:
    lines = "{}2024-03-01,,Ajax|Brest,2:1,{}\n{}2024-03-01 15:00,,Celtic|Dynamo,0:0,\n"
    assert await imported.outcome(KEYED.removeprefix("key,") + lines.format("", "", "")) == (2, 0, 0)
    keyed = KEYED + lines.format("M1,", "", "M2,")
    for changed in (keyed.replace("M1,2024-03-01", "M1,2024-03-02"), KEYED + lines.format("M1,", "5|0", "M2,")):
        (question,) = await imported.asked(changed)
        assert NEAR.fullmatch(question), question
    assert await imported.outcome(keyed) == (0, 2, 0)
    assert [one["key"] for one in await imported.listed()] == ["M1", "M2"]


async def test_keys_tell_matches_of_the_same_day_apart(imported: Import) -> None:
    for key in ("M1", "M2"):
        assert await imported.outcome(f"{KEYED}{key},2024-03-01,,Ajax|Brest,2:1,\n") == (1, 0, 0)
    both = f"{KEYED}M1,2024-03-01,,Ajax|Brest,2:1,\nM1,2024-03-02,,Ajax|Brest,2:1,\n"
    assert await imported.faults(both) == ["line 3, key: an earlier line has this key"]
    match = (await imported.listed())[0]["id"]
    assert await imported.faults(f"{KEYED}M1,2024-03-01,,Celtic|Brest,2:1,\n") == [
        f"line 2, participants: competition {match} has the key 'M1' and other participants, or in another order; "
        "correct them first, or give this line another key"
    ]


async def test_an_import_with_keys_is_undone_and_its_corrected_file_is_imported(imported: Import) -> None:
    name = (await imported(f"{KEYED}M1,2024-03-01,,Ajax|Brest,2:1,3|0\n")).name
    corrected = await imported(f"{KEYED}M1,2024-03-01,Hall 2,Ajax|Brest,2:1,3|0\n")
    assert (corrected.made, corrected.corrected, corrected.name) == (0, 1, name)
    await imported.undo(str(name))
    assert (await imported.table())["points"]["Ajax"] == 0
    assert await imported.outcome(f"{KEYED}M1,2024-03-05,,Ajax|Brest,2:1,2|0\n") == (1, 0, 0)
    assert (await imported.table())["points"]["Ajax"] == 2
    assert [one["key"] for one in await imported.listed()] == [None, "M1"]
