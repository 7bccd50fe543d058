"""Event feeds and scoreboards of programming contests, CLICS 2023-06 and 2026-01. Pure.

The contest is one competition, whose performances are the solved problems of each team: `A:43 B:120+2` is A in minute
43, and B in minute 120 after two wrong tries. The last state of the feed counts, so a rejudging or a revealed verdict
corrects. Where the official JSON schemas contradict the text of the specification, this follows the text.

A scoreboard has neither names nor what a wrong try costs: teams are named by their ids, and the times of its rows tell
the cost.
"""

import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as Items
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from api.imports.readers.brought import Brought, BroughtRanking, Entrant, FileReader, Meeting, Noticed, decoded, text_of
from engine.domain.errors import Fault, Unreadable
from engine.domain.problems import NONE_SOLVED, TriedProblem

_MINUTE: Final = 60_000
_RELATIVE: Final = re.compile(r"(-?)([0-9]{1,6}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,3}))?")
_MINUTES_PENALTY: Final = 20
MINUTES_PENALTY_MAX: Final = 10_000
SCORED_BY_POINTS: Final = "The contest is scored by points; only contests of solved problems are read."


def solved(label: str, milliseconds: int, wrong: int) -> str:
    """A solved problem as part of a performance, with the wrong tries before it: `B:120+2`."""
    return str(TriedProblem(label=label, minute=milliseconds // _MINUTE, wrong=wrong))


def penalty_minutes(milliseconds: int) -> int:
    """The penalty of a wrong try. Raises Unreadable."""
    minutes, rest = divmod(milliseconds, _MINUTE)
    if rest or not 0 <= minutes <= MINUTES_PENALTY_MAX:
        raise Unreadable("The penalty of a wrong try must be whole minutes.")
    return minutes


class _Event(Struct):
    type: str
    data: Any
    id: str | None | UnsetType = UNSET


class _Try(Struct, frozen=True):
    """`at`: in milliseconds. `solves` None: it is not judged yet. `penalty`: whether it counts if it does not solve."""

    problem: str
    at: int
    solves: bool | None = None
    penalty: bool = False


def _performance(tries: Items[_Try], label: Callable[[str], str]) -> str:
    """The performance of a team whose tries these are, in their order: the solved problems, then the others."""
    wrong, pending, done = Counter[str](), Counter[str](), dict[str, str]()
    for one in tries:
        if one.problem in done:
            continue
        if one.solves:
            done[one.problem] = solved(label(one.problem), one.at, wrong[one.problem])
        elif one.solves is None:
            pending[one.problem] += 1
        elif one.penalty:
            wrong[one.problem] += 1
    tried = dict.fromkeys(one.problem for one in tries if one.problem not in done)
    left = [TriedProblem(label=label(one), wrong=wrong[one], pending=pending[one]) for one in tried]
    return " ".join([*done.values(), *[str(one) for one in left if one.wrong or one.pending]]) or NONE_SOLVED


def _made(
    name: str,
    penalty: int,
    key: str,
    start: str,
    teams: dict[str, Entrant],
    runs: dict[str, str],
    found: Noticed,
    criteria: tuple[dict[str, Any], ...] = (),
) -> Brought:
    found.refuse_if_any()
    contest = Meeting(
        number=1, key=key, participants=tuple(runs), score="|".join(runs.values()), date=start, round_name=name
    )
    table = BroughtRanking(name=name, like="icpc", entrants=tuple(teams), factors={"tries": penalty}, criteria=criteria)
    return Brought(
        name=name,
        entrants=tuple(teams.values()),
        rankings=(table,),
        meetings=(contest,) if runs else (),
        notes=found.notes,
    )


def read_feed(content: bytes) -> Brought:
    found, things, contest = Noticed(), dict[str, dict[str, dict[str, Any]]](), dict[str, Any]()
    for number, line in enumerate(text_of(content).split("\n"), start=1):
        if line.strip():
            event: _Event = decoded(line, _Event, f"line {number}")
            if event.type == "contest":
                contest = _object(event.data or {}, number)
            elif isinstance(event.id, str):
                its = things.setdefault(event.type, {})
                its.pop(event.id, None) if event.data is None else its.update({event.id: _object(event.data, number)})
            elif isinstance(event.data, list):  # the collection as a whole
                many = [_object(one, number) for one in event.data]
                things[event.type] = {str(one.get("id")): one for one in many}
    if not contest:
        raise Unreadable("The feed has no contest.")
    if contest.get("scoreboard_type", "pass-fail") != "pass-fail":
        raise Unreadable(SCORED_BY_POINTS)
    said = contest.get("penalty_time", _MINUTES_PENALTY)  # minutes, or since 2026 a time
    penalty = penalty_minutes(said * _MINUTE if isinstance(said, int) else _relative(said, "contest, penalty_time"))
    teams = _teams(contest, things, found)
    tries = _tries(things, found)
    labels = {key: str(one.get("label") or key) for key, one in things.get("problems", {}).items()}
    runs = {key: _performance(tries.get(key, []), lambda problem: labels.get(problem, problem)) for key in teams}
    name = str(contest.get("formal_name") or contest.get("name") or "Contest")
    start = re.sub("([+-][0-9]{2})$", r"\1:00", str(contest.get("start_time") or ""))  # +02 is an offset there
    return _made(name, penalty, str(contest.get("id") or name), start, teams, runs, found)


def _object(data: Any, number: int) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise Unreadable("The file cannot be brought.", [Fault(f"line {number}, data", "must be an object")])
    return data


def _teams(contest: dict[str, Any], things: dict[str, dict[str, Any]], found: Noticed) -> dict[str, Entrant]:
    main, teams = contest.get("main_scoreboard_group_id"), dict[str, Entrant]()
    for key, team in things.get("teams", {}).items():
        if team.get("hidden") is True or (main is not None and main not in (team.get("group_ids") or [])):
            found.note("hidden teams, and teams outside the main scoreboard, are left out")
            continue
        of = things.get("organizations", {}).get(str(team.get("organization_id")), {})
        club = str(of.get("name") or "").replace(",", " ")
        name = str(team.get("display_name") or team.get("name") or key)
        teams[key] = Entrant(key=key, name=name, tags=(club,) if club else ())
    return teams


def _tries(things: dict[str, dict[str, Any]], found: Noticed) -> dict[str, list[_Try]]:
    """The tries of each team, in the order of their submission. Without `current`, the latest judgement of a
    submission counts."""
    types = things.get("judgement-types", {})
    verdicts: dict[str, dict[str, Any]] = {}
    for judgement in things.get("judgements", {}).values():
        if judgement.get("current") is not False:
            its = verdicts.get(str(judgement.get("submission_id")))
            if its is None or _when(its) <= _when(judgement):
                verdicts[str(judgement.get("submission_id"))] = judgement
    tries: dict[str, list[_Try]] = {}
    for key, one in things.get("submissions", {}).items():
        verdict = verdicts.get(key, {})
        kind = types.get(str(verdict.get("judgement_type_id") or verdict.get("simplified_judgement_type_id")))
        if one.get("team_id") is None:
            continue
        at = _relative(one.get("contest_time"), f"submission {key}, contest_time")
        if kind is None:
            found.note("submissions without a verdict count when the feed has it", f"submission {key}")
        if at >= 0:
            judged = () if kind is None else (kind.get("solved") is True, kind.get("penalty") is True)
            tries.setdefault(str(one["team_id"]), []).append(_Try(str(one.get("problem_id")), at, *judged))
    for its_tries in tries.values():
        its_tries.sort(key=lambda its: its.at)
    return tries


def _when(judgement: dict[str, Any]) -> int:
    return _relative(judgement.get("start_contest_time", "0:00:00"), f"judgement {judgement.get('id')}")


def _relative(text: Any, where: str) -> int:
    """Milliseconds. Raises Unreadable."""
    found = _RELATIVE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise Unreadable("The file cannot be brought.", [Fault(where, f"{text!r} is not a time such as 1:22:48.427")])
    size = (int(found[2]) * 3600 + int(found[3]) * 60 + int(found[4])) * 1000 + int((found[5] or "").ljust(3, "0"))
    return -size if found[1] else size


# ── Scoreboards ──────────────────────────────────────────────────────────────────────────────────────────


class _Problem(Struct):
    problem_id: str
    num_judged: int = 0
    num_pending: int = 0
    solved: bool = False
    time: int | str | None = None


class _Score(Struct):
    num_solved: int
    total_time: int | str


class _Row(Struct):
    rank: int | None
    team_id: str
    score: _Score
    problems: list[_Problem] = []


class _Scoreboard(Struct):
    rows: list[_Row]


BY_PENALTY: Final = ({"unity": "solved"}, {"unity": "penalty"})
"""The order where who solved their last problem earlier does not stand ahead."""


def read_scoreboard(content: bytes) -> Brought:
    board: _Scoreboard = decoded(content, _Scoreboard, "the file")
    found, teams, runs = Noticed(), dict[str, Entrant](), dict[str, str]()
    last_of: dict[int | None, set[int]] = {}
    costs: set[tuple[int, int]] = set()
    for number, row in enumerate(board.rows, start=1):
        where = f"row {number}"
        if row.team_id in teams:
            found.fault(where, f"team {row.team_id!r} stands in an earlier row")
        teams[row.team_id] = Entrant(key=row.team_id, name=row.team_id)
        done = [
            (_minutes(one.time, where), max(one.num_judged - 1, 0), one.problem_id)
            for one in row.problems
            if one.solved
        ]
        parts = [solved(label, at * _MINUTE, wrong) for at, wrong, label in sorted(done)]
        parts += [
            str(TriedProblem(label=one.problem_id, wrong=one.num_judged, pending=one.num_pending))
            for one in row.problems
            if not one.solved and (one.num_judged or one.num_pending)
        ]
        runs[row.team_id] = " ".join(parts) or NONE_SOLVED
        if len(done) != row.score.num_solved:
            found.fault(where, "its problems are not those that num_solved counts")
        last_of.setdefault(row.rank, set()).add(max(done, default=(0, 0, ""))[0])
        wrong = sum(tries for _, tries, _ in done)
        costs.add((_minutes(row.score.total_time, where) - sum(at for at, _, _ in done), wrong))
    penalty = _cost(costs, found)
    criteria = BY_PENALTY if any(len(its) > 1 for its in last_of.values()) else ()
    return _made("Contest", penalty, "contest", "", teams, runs, found, criteria)


def _minutes(time: int | str | None, where: str) -> int:
    """Since 2026 it is a text. Raises Unreadable."""
    return time if isinstance(time, int) else _relative(time, where) // _MINUTE


def _cost(costs: set[tuple[int, int]], found: Noticed) -> int:
    """The minutes of a wrong try, of the minutes of some teams, each with the number of these tries."""
    penalty = next((minutes // wrong for minutes, wrong in costs if wrong), _MINUTES_PENALTY)
    if any(minutes != penalty * wrong for minutes, wrong in costs):
        found.fault("total_time", "it is not that of the problems with the same minutes for each wrong try")
    return penalty_minutes(penalty * _MINUTE)


SCOREBOARD: Final = FileReader(
    name="CLICS scoreboard",
    suffixes=(".json",),
    recognises=lambda head: b'"rows"' in head and b'"team_id"' in head and b'"rank"' in head,
    read=read_scoreboard,
)
CLICS: Final = FileReader(
    name="CLICS event feed",
    suffixes=(".ndjson", ".json"),
    recognises=lambda head: (
        head.lstrip().startswith(b"{")
        and b'"type"' in (first := head.lstrip().split(b"\n", 1)[0])
        and b'"data"' in first
    ),
    read=read_feed,
)
