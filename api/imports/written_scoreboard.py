"""A contest as a CLICS scoreboard, 2023-06. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from api.imports.written import Written, WrittenLine, unwritable
from engine.domain.scoring import ReadResult, choose, read
from engine.domain.terms import CompetitorId

_SOLVED: Final = re.compile(r"([A-Za-z0-9]{1,8}):([0-9]{1,6})(?:\+([0-9]{1,4}))?")
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
    """Tries at a problem that is not solved are not kept."""
    problems, time = [], 0
    for token in results.get(line.competitor_id, ReadResult()).performance.replace("-", " ").split():
        if (solved := _SOLVED.fullmatch(token)) is None:
            raise unwritable(f"{token!r} does not name a problem")
        minute, wrong = int(solved[2]), int(solved[3] or 0)
        time += minute + penalty * wrong
        problems.append(
            {"problem_id": solved[1], "num_judged": wrong + 1, "num_pending": 0, "solved": True, "time": minute}
        )
    return {
        "rank": line.position,
        "team_id": line.key or str(line.competitor_id),
        "score": {"num_solved": len(problems), "total_time": time},
        "problems": problems,
    }
