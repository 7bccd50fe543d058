"""A contest as a CLICS scoreboard, 2023-06. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from api.imports.written import Written, WrittenLine, unwritable
from engine.domain.problems import NONE_SOLVED, problem_of
from engine.domain.scoring import ReadResult, choose, read
from engine.domain.terms import CompetitorId

_STATES: Final = ("started", "ended", "frozen", "thawed", "finalized", "end_of_updates")


def scoreboard(written: Written) -> str:
    """Raises Unacceptable."""
    contests = [one for one in written.competitions if one.result]
    if len(contests) != 1:
        raise unwritable(f"it has {len(contests)} contests with results, and not one")
    (contest,) = contests
    scoring = choose(written.ranking.scorings, contest)
    penalties = [] if scoring is None else [award.factor for award in scoring.awards if award.value == "tries"]
    if scoring is None or len(penalties) != 1:
        raise unwritable("it is not scored by solved problems and wrong tries")
    results = read(scoring, contest)
    shown = {
        "event_id": str(written.end),
        "time": _time(written.at),
        "contest_time": _contest_time(max(written.at - contest.started_at, timedelta())),
        "state": {**dict.fromkeys(_STATES), "started": _time(contest.started_at)},
        "rows": [_row(line, results, penalties[0]) for line in sorted(written.lines, key=lambda line: line.position)],
    }
    return msgspec.json.encode(shown).decode() + "\n"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000+00:00")


def _contest_time(since: timedelta) -> str:
    minutes, seconds = divmod(int(since.total_seconds()), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}.000"


def _row(line: WrittenLine, results: Mapping[CompetitorId, ReadResult], penalty: int) -> dict[str, Any]:
    problems, solved, time = list[dict[str, Any]](), 0, 0
    parts = results.get(line.competitor_id, ReadResult()).performance.split()
    for part in filter(NONE_SOLVED.__ne__, parts):
        problem = problem_of(part)
        if problem is None or not problem.label:
            raise unwritable(f"{part!r} does not name a problem")
        judged = {"problem_id": problem.label, "num_judged": problem.wrong, "num_pending": problem.pending}
        if problem.minute is None:
            problems.append({**judged, "solved": False})
            continue
        solved, time = solved + 1, time + problem.minute + penalty * problem.wrong
        problems.append({**judged, "num_judged": problem.wrong + 1, "solved": True, "time": problem.minute})
    return {
        "rank": line.position,
        "team_id": line.key or str(line.competitor_id),
        "score": {"num_solved": solved, "total_time": time},
        "problems": problems,
    }
