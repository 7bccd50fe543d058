"""Scorings from the command line: of a kind, of a file, for some groups, and none."""

import re
from pathlib import Path

import pytest

from tests.api.cli.conftest import Tallybook


@pytest.fixture
async def league(tallybook: Tallybook) -> str:
    """The slug of a tournament of two clubs, with a match that no ranking has scored."""
    slug = await tallybook.done("tournament", "create", "League")
    for club in ("Ajax", "Brest"):
        await tallybook.done("competitor", "add", slug, club)
    await tallybook.done("ranking", "create", slug, "Table")
    await tallybook.done("competition", "add", slug, "Ajax", "Brest", "--result", "2:1")
    return slug


async def points(tallybook: Tallybook, slug: str) -> list[int]:
    (unity,) = (await tallybook.json("standings", slug, "Table"))["unities"]
    return [line["total"] for line in sorted(unity["competitors_ranking"], key=lambda line: line["competitor_id"])]


async def test_the_scoring_of_a_kind_is_declared_after_a_look_at_who_moves(tallybook: Tallybook, league: str) -> None:
    assert "Ajax" in await tallybook.done("scoring", "declare", league, "Table", "football", "--dry-run")
    assert await points(tallybook, league) == [0, 0]
    said = await tallybook("scoring", "declare", league, "Table", "football")
    assert (said.code, said.err.split(" ", 2)[2]) == (0, "has 1 scoring\n")
    assert await points(tallybook, league) == [3, 0]
    await tallybook.done("competition", "add", league, "Ajax", "Brest", "--result", "rained off")
    shown = await tallybook("scoring", "show", league, "Table")
    assert "3 for win, 1 for draw, 0 for loss" in shown.out
    assert "gives nothing: 'rained off' is in none of the forms that count." in " ".join(shown.err.split())
    assert (await tallybook("scoring", "declare", league, "Table")).code == 0
    assert await points(tallybook, league) == [0, 0]


async def test_a_scoring_of_a_file_names_unities_and_can_be_for_some_groups(
    tallybook: Tallybook, league: str, tmp_path: Path
) -> None:
    (file := tmp_path / "scoring.json").write_text('[{"awards": [{"unity": "points", "from": "for", "factor": 10}]}]')
    for group, totals in (("1", [20, 10]), ("2", [0, 0])):
        declared = await tallybook("scoring", "declare", league, "Table", str(file), "--group", group)
        assert (declared.code, await points(tallybook, league)) == (0, totals), declared.err
    for content, fault in (
        ("{}", "The file must be a JSON array of scorings"),
        ('[{"awards": [{"unity": "points", "from": "luck"}]}]', "Invalid enum value 'luck'"),
        ('[{"awards": [{"unity": "goals", "from": "for"}]}]', "has no unity 'goals'"),
    ):
        file.write_text(content)
        refused = await tallybook.refused("scoring", "declare", league, "Table", str(file))
        assert fault in " ".join(refused)
    assert await tallybook.refused("scoring", "declare", league, "Table", "medals") == [
        "The ranking has none of the unities of medals: gold, silver, bronze."
    ]


async def test_a_corrected_result_is_explained_in_one_sentence(tallybook: Tallybook, league: str) -> None:
    await tallybook.done("scoring", "declare", league, "Table", "football")
    await tallybook.done("competition", "change", league, "Ajax - Brest", "--started-at", "2026-03-09 15:00:00")
    await tallybook.done("competition", "result", league, "Ajax - Brest", "0:0")
    await tallybook.done("competition", "result", league, "Ajax - Brest", "3:1")
    said = await tallybook.done("explain", league, "Table", "Ajax")
    assert re.search(r"3 for the win over Brest, 3:1, on 9 Mar(ch)? 2026 \(corrected on [^)]* from 0:0\)", said), said
    assert "1 for the draw with Brest, 0:0, on 9" in said
    assert "was corrected" not in said
    await tallybook.done("void", league, "Ajax - Brest")
    await tallybook.done("competition", "result", league, "Ajax - Brest", "5:0")
    await tallybook.done("unvoid", league, "Ajax - Brest")
    said = await tallybook.done("explain", league, "Table", "Ajax")
    assert re.search(r"by Ajax – Brest 3:1, group 1, was reversed", said), said  # noqa: RUF001 - a dash
    assert re.search(r"by Ajax – Brest 5:0, group 1, counts again", said), said  # noqa: RUF001
    shown = await tallybook.done("competition", "history", league, "Ajax - Brest")
    assert [text in shown for text in ("2:1", "0:0", "3:1")] == [True] * 3
    assert "correction of" in await tallybook.done("history", league, "Table")


async def test_a_correction_that_changes_no_points_is_explained_with_the_result_in_force(
    tallybook: Tallybook, league: str
) -> None:
    await tallybook.done("scoring", "declare", league, "Table", "football")
    await tallybook.done("points", "add", league, "Table", "Ajax=1", "--competition", "Ajax - Brest")
    before = (await tallybook.json("explain", league, "Table", "Ajax"))["to"]["sequence"]
    await tallybook.done("competition", "result", league, "Ajax - Brest", "3:1")
    earlier = await tallybook.done("explain", league, "Table", "Ajax", "--to", f"{before}")
    assert "3 for the win over Brest, 2:1" in earlier
    assert "corrected" not in earlier
    said = await tallybook.done("explain", league, "Table", "Ajax")
    assert re.search(r"3 for the win over Brest, 3:1, on [^(]* \(corrected on [^)]* from 2:1\)", said), said
    assert re.search(r"\+1 by Ajax – Brest 3:1, group 1 \(corrected on [^)]* from 2:1\)", said), said  # noqa: RUF001


async def test_a_result_that_gives_no_points_says_why(tallybook: Tallybook, league: str) -> None:
    await tallybook.done("scoring", "declare", league, "Table", "football")
    result, match = ("competition", "result", league, "Ajax - Brest"), ("Ajax", "Brest", "--group", "1")
    for command in (
        (*result, "2;1", "--dry-run", "--json"),
        (*result, "2;1"),
        ("competition", "change", league, "Ajax - Brest", "--result", "gewonnen", "--json"),
        ("competition", "record", league, *match, "--key", "M7", "--result", "4:1 forfait"),
    ):
        said = await tallybook(*command)
        assert said.code == 0, said.err
        assert "no points in Table: '" in said.err, command
        assert "Forms that count: a score of two numbers, such as 2:1" in " ".join(said.err.split()), command
        assert "no points" not in said.out, command
    assert "no points" not in (await tallybook(*result[:3], "1", "2:1")).err
    assert await points(tallybook, league) == [0, 0]


async def test_a_match_is_recorded_with_its_result_and_corrected_by_its_key(tallybook: Tallybook, league: str) -> None:
    await tallybook.done("scoring", "declare", league, "Table", "football")
    record = "competition", "record", league
    new = await tallybook.done(*record, "Brest", "Ajax", "--group", "1", "--key", "M7", "--result", "1:0")
    assert await points(tallybook, league) == [3, 3]
    assert await tallybook.done(*record, "--key", "M7", "--result", "1:1", "--location", "Cork") == new
    assert await points(tallybook, league) == [4, 1]
    assert "group_id" in " ".join(await tallybook.refused(*record, "Brest", "Ajax", "--key", "M8"))


async def test_a_winner_with_the_lower_score_is_refused_unless_a_word_says_why(
    tallybook: Tallybook, league: str
) -> None:
    record = "competition", "record", league
    named = "--winner", "Ajax"
    await tallybook.done("competition", "result", league, "Ajax - Brest", "0:1", *named)  # no result gives points yet
    await tallybook.done("scoring", "declare", league, "Table", "football")
    for command in (
        ("competition", "result", league, "Ajax - Brest", "1:2", *named),
        ("competition", "change", league, "Ajax - Brest", *named),
        ("competition", "add", league, "Brest", "Ajax", "--result", "2:1", *named),
        (*record, "Brest", "Ajax", "--group", "1", "--key", "M7", "--result", "+:-", *named),
    ):
        assert "has the lower score" in " ".join(await tallybook.refused(*command)), command
    await tallybook.done(*record, "Brest", "Ajax", "--group", "1", "--key", "M7", "--result", "2:1 wo", *named)
    refused = await tallybook.refused(*record, "--key", "M7", "--result", "2:1", *named)
    assert "has the lower score" in " ".join(refused)
    assert await points(tallybook, league) == [6, 0]
