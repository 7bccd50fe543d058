"""Commands about classifications say the same as HTTP does."""

import re
from typing import Any

import pytest

from tests.api.cli.conftest import Tallybook
from tests.api.service import Season
from tests.api.test_classification import League


@pytest.fixture
async def league(season: Season) -> League:
    return await League(season).play()


def of(league: League) -> tuple[str, str]:
    return league.client.tournament, league.path.split("/")[1]


async def test_what_is_declared_on_the_command_line_is_shown_as_over_http(tallybook: Tallybook, league: League) -> None:
    async def over_http(query: str = "") -> Any:
        return (await league.client.get(f"{league.path}/classification.json{query}")).json["classification"]

    before = (await over_http())["sequence"]
    said = await tallybook(
        "classification", "declare", *of(league), "points:best=18", f"{league.fouls}", "points:among=tied"
    )
    assert said.err == f"ranking {of(league)[1]} is classified by points, best 18; fouls; points among the tied\n"
    shown = await over_http()
    assert shown["criteria"] == [
        {"unity": league.points, "best": 18},
        {"unity": league.fouls},
        {"unity": league.points, "among": "tied"},
    ]
    assert await tallybook.json("classification", "show", *of(league)) == shown
    then = await tallybook.json("classification", "show", *of(league), "--at-sequence", str(before))
    assert then == await over_http(f"?at_sequence={before}")
    table = await tallybook.done("classification", "show", *of(league))
    assert re.search(r"2 +│ Ben +│ 3 +│ 4 +│ +│ fouls", table), table
    await tallybook("classification", "declare", *of(league))
    assert (await over_http())["criteria"] == [{"unity": league.points}]


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        ("cards", r"Ranking \d+ has no unity 'cards'\."),
        ("points:worst=1", r"Ranking \d+ has no unity 'points:worst=1'\."),
        ("points:best=1:best=2", r"The criterion 'points:best=1:best=2' says the same thing twice\."),
        ("999999", r"Ranking \d+ has no unity 999999\."),
    ],
)
async def test_a_criterion_that_is_none_is_refused(
    tallybook: Tallybook, league: League, criterion: str, reason: str
) -> None:
    (said,) = await tallybook.refused("classification", "declare", *of(league), criterion)
    assert re.fullmatch(reason, said)


async def test_an_explanation_ends_with_what_decides_the_classification(tallybook: Tallybook, league: League) -> None:
    silent = await tallybook.done("explain", *of(league), str(league.ben))
    assert "classification" not in silent
    undeclared = (await league.client.get(f"{league.path}/classification.json")).json["classification"]["sequence"]
    await league.declare({"unity": league.points}, {"unity": league.fouls})
    assert (await tallybook.done("explain", *of(league), str(league.ben))).endswith(
        "\n\nIn the classification, Ben stands 2nd.\n"
        "Ada stands above Ben by fouls, 0 to 4.\n"
        "Ben stands above Pair by points, 3 to 0."
    )
    await league.declare({"unity": league.points}, {"unity": league.points, "among": "tied"})
    assert (await tallybook.done("explain", *of(league), str(league.ada))).endswith(
        "\n\nIn the classification, Ada stands 2nd.\n"
        "Ben stands above Ada by points among the tied.\n"
        "Ada stands above Pair by points, 3 to 0."
    )
    assert await tallybook.done("explain", *of(league), str(league.ben), "--to", str(undeclared)) == silent
