"""Standard ranklists (srk) of programming contests. Pure.

Official teams are one ranking, and if others took part, all teams are another. A result `?` is unknown yet. Times have
units. Users without a row did not take part.
"""

from typing import Any, Final

from msgspec import Struct

from api.imports.readers.brought import Brought, BroughtRanking, Entrant, FileReader, Meeting, Noticed, decoded
from api.imports.readers.clics import BY_PENALTY, SCORED_BY_POINTS, penalty_minutes, solved
from engine.domain.errors import Unreadable
from engine.domain.problems import NONE_SOLVED, TriedProblem

_MINUTE: Final = 60_000
_UNITS: Final = {"ms": 1, "s": 1000, "min": _MINUTE, "h": 60 * _MINUTE, "d": 24 * 60 * _MINUTE}
_SOLVED: Final = ("AC", "FB")
_PENDING: Final = "?"
_WITHOUT_PENALTY: Final = ["FB", "AC", _PENDING, "NOUT", "CE", "UKE", None]
_PENALTY: Final = [20, "min"]


class _Status(Struct):
    result: str | None = None
    time: Any = None
    tries: int | None = None
    solutions: list[Any] = []


class _User(Struct):
    name: Any
    id: str = ""
    official: bool = True
    organization: Any = None


class _Row(Struct):
    user: _User
    statuses: list[_Status]


class _Problem(Struct):
    alias: str | None = None


class _Contest(Struct):
    title: Any
    startAt: str = ""  # noqa: N815 - its name there


class _Ranklist(Struct):
    contest: _Contest
    problems: list[_Problem]
    rows: list[_Row]
    sorter: dict[str, Any] | None = None


def _text(said: Any) -> str:
    """Texts may be in several languages."""
    return str(said.get("fallback", "") if isinstance(said, dict) else said or "").strip()


def _milliseconds(time: Any) -> int:
    """Raises ValueError."""
    match time:
        case [int() | float() as amount, str() as unit] if unit in _UNITS and 0 <= amount < 1e9:
            return round(amount * _UNITS[unit])
    raise ValueError(f'{time!r} is not a time such as [79, "min"]')


def read_srk(content: bytes) -> Brought:
    ranklist: _Ranklist = decoded(content, _Ranklist, "the file")
    penalty, free = _rules(ranklist)
    found, entrants, runs, official = Noticed(), dict[str, Entrant](), dict[str, str](), list[str]()
    labels = [problem.alias or f"P{n}" for n, problem in enumerate(ranklist.problems, start=1)]
    for number, row in enumerate(ranklist.rows, start=1):
        name = _text(row.user.name)
        key = row.user.id or name
        if not name or key in entrants:
            found.fault(f"row {number}", "its user must have a name and an id of its own")
            continue
        club = _text(row.user.organization).replace(",", " ")
        entrants[key] = Entrant(key=key, name=name, tags=(club,) if club else ())
        official += [key] if row.user.official else []
        try:
            its = [_solved(*pair, free) for pair in zip(labels, row.statuses, strict=False)]
        except ValueError as error:
            found.fault(f"row {number}", str(error))
            continue
        runs[key] = " ".join(filter(None, its)) or NONE_SOLVED
        if any(status.result == _PENDING for status in row.statuses):
            found.note("results ? count when the file has them", f"row {number}")
    found.refuse_if_any()
    title, start = _text(ranklist.contest.title) or "Contest", ranklist.contest.startAt
    rules: dict[str, Any] = {"like": "icpc", "factors": {"tries": penalty}, "criteria": BY_PENALTY}
    tables = [BroughtRanking(name=title, entrants=tuple(official), **rules)]
    if len(official) < len(entrants):
        tables.append(BroughtRanking(name=f"{title}: all", entrants=tuple(entrants), **rules))
    score = "|".join(runs.values())
    contest = Meeting(
        number=1, key=f"{title} {start}", participants=tuple(runs), score=score, date=start, round_name=title
    )
    return Brought(
        name=title,
        entrants=tuple(entrants.values()),
        rankings=tuple(tables),
        meetings=(contest,) if runs else (),
        notes=found.notes,
    )


def _rules(ranklist: _Ranklist) -> tuple[int, list[Any]]:
    """The penalty of a wrong try, and the results that have none. Raises Unreadable."""
    sorter = ranklist.sorter or {}
    if sorter.get("algorithm", "ICPC") != "ICPC":
        raise Unreadable(SCORED_BY_POINTS)
    said = sorter.get("config")
    config: dict[str, Any] = said if isinstance(said, dict) else {}
    free = config.get("noPenaltyResults")
    try:
        penalty = penalty_minutes(_milliseconds(config.get("penalty", _PENALTY)))
    except ValueError as error:
        raise Unreadable(f"The penalty of a wrong try: {error}.") from error
    return penalty, free if isinstance(free, list) else _WITHOUT_PENALTY


def _solved(label: str, status: _Status, free: list[Any]) -> str:
    """The problem as part of a performance; empty: it was not tried. The result decides, as it may have been rejudged;
    the solutions tell the wrong tries before it. Raises ValueError."""
    if status.result not in _SOLVED:
        return _not_solved(label, status, free)
    wrong = max((status.tries or 1) - 1, 0)
    time = status.time
    for before, solution in enumerate(status.solutions):
        if not isinstance(solution, dict):
            raise ValueError(f"{solution!r} is not a solution")
        if solution.get("result") in _SOLVED:
            time = solution.get("time") if time is None else time
            wrong = sum(one.get("result") not in free for one in status.solutions[:before])
            break
    return solved(label, _milliseconds(time), wrong)


def _not_solved(label: str, status: _Status, free: list[Any]) -> str:
    said = [one.get("result") for one in status.solutions if isinstance(one, dict)]
    wrong = sum(one not in free and one != _PENDING for one in said)
    pending = said.count(_PENDING)
    if not said and status.tries:
        wrong, pending = (0, status.tries) if status.result == _PENDING else (status.tries, 0)
    return str(TriedProblem(label=label, wrong=wrong, pending=pending)) if wrong or pending else ""


SRK: Final = FileReader(
    name="srk ranklist",
    suffixes=(".json",),
    recognises=lambda head: b'"type"' in head and b'"general"' in head and b'"contest"' in head,
    read=read_srk,
)
