"""The page of the problems of a contest."""

import gzip
import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from engine.domain.problems import TriedProblem, problem_of
from tests.api.web.season import Championship

LABELS = st.text("ABCxyz09", max_size=8)
COUNTS = st.integers(0, 9_999)
SOLVED = st.builds(TriedProblem, label=LABELS, minute=st.integers(0, 999_999), wrong=COUNTS)
OPEN = st.builds(TriedProblem, label=LABELS, wrong=COUNTS, pending=COUNTS)


@given(problem=SOLVED | OPEN)
def test_a_problem_is_read_as_it_is_written(problem: TriedProblem) -> None:
    assert problem_of(str(problem)) == problem


async def contest_of(championship: Championship, results: dict[str, str]) -> str:
    """The page of a contest with these performances, to which its board leads."""
    board = (await championship.get(f"?ranking={await championship.hold_contest(results)}")).body.decode()
    (below,) = re.findall('href="/board/[^"/]*(/problems[^"]*)"', board)
    answer = await championship.get(unescape(below))
    assert answer.status == 200
    return answer.body.decode()


def rows(page: str) -> list[list[str]]:
    found = re.findall("<tr>(.*?)</tr>", page)
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", row)] for row in found]


async def test_a_contest_shows_minutes_tries_the_first_and_what_is_not_judged_yet(championship: Championship) -> None:
    page = await contest_of(
        championship,
        {"Wales": "B:30 A:43+2 C:-3 D:?2", "Italy": "A:20 C:-1?1", "France": "B:31+1 AA:5 -", "England": "-"},
    )
    assert rows(page) == [
        ["Team", "Solved", "Pen", "A", "B", "C", "D", "AA"],
        ["1 France", "2", "56", "", "31 +1", "", "", "★ 5"],
        ["2 Wales", "2", "113", "43 +2", "★ 30", "\N{MINUS SIGN}3", "?2", ""],
        ["3 Italy", "1", "20", "★ 20", "", "\N{MINUS SIGN}1 ?1", "", ""],
        ["4 England", "0", "0", "", "", "", "", ""],
        ["Solved / tried", "", "2/2", "2/2", "0/2", "0/1", "1/1"],
    ]
    assert "/problems" not in (await championship.get()).body.decode()  # a league has none


async def test_a_contest_of_120_teams_and_13_problems_is_less_than_60_kb(championship: Championship) -> None:
    await championship.enroll(f"University of Somewhere {number}" for number in range(120))
    names = [name for name in championship.teams if name.startswith("University")]
    results = {
        name: " ".join(f"{label}:{(37 * at + 11 * place) % 300}+{at % 4}" for at, label in enumerate("ABCDEFGHIJKLM"))
        for place, name in enumerate(names)
    }
    page = await contest_of(championship, results)
    assert [len(row) for row in rows(page)] == [16] * 121 + [15]
    assert len(gzip.compress(page.encode())) < 60_000
