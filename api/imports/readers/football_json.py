"""Seasons and cups in football.json, as openfootball publishes them. Pure.

A club has no id there: its name is its key, and a match is known by its round and clubs, so that it can be moved. With
groups, each group is a ranking; the matches of the knock-out rounds give no points. The score is that after 90 minutes
(`ft`), in cups after extra time (`et`), and the penalties (`p`) say who won.
"""

import re
from collections import Counter, defaultdict
from typing import Any, Final

from msgspec import Struct

from api.imports.readers.brought import Brought, BroughtRanking, Entrant, FileReader, Meeting, Noticed, decoded

_OFFSET: Final = re.compile(r"([0-9]{1,2}:[0-9]{2})\s*UTC([+-])([0-9]{1,2})(?::?([0-9]{2}))?", re.ASCII)
_NUMBER: Final = re.compile(
    r"(?:matchday|round|spieltag|jornada|giornata|journ[ée]e)\s+([0-9]{1,4})", re.IGNORECASE | re.ASCII
)
_PLAYED: Final = ("", "played", "awarded", "finished")
"""Statuses of matches whose score counts."""
_KNOCK_OUT: Final = 1_000


class _Match(Struct):
    team1: Any
    team2: Any
    date: str = ""
    time: str = ""
    round: str = ""
    group: str = ""
    ground: Any = ""
    status: str | None = None
    score: Any = None
    score1: int | None = None
    score2: int | None = None


class _Round(Struct):
    matches: list[_Match]
    name: str = ""


class _Season(Struct):
    name: str
    matches: list[_Match] = []
    rounds: list[_Round] = []


def _name(team: Any) -> str:
    """Older files have objects for clubs."""
    return str(team.get("name", "") if isinstance(team, dict) else team or "").strip()


def _goals(match: _Match) -> tuple[str, int]:
    """The score, and by which participant it was won; -1: neither. Raises ValueError."""
    score = match.score if match.score is not None else {"ft": [match.score1, match.score2]}
    score = {"ft": score} if isinstance(score, list) else score
    pairs: dict[str, tuple[int, int]] = {}
    for part in ("ft", "et", "p"):
        if (pair := score.get(part) if isinstance(score, dict) else None) is not None and pair != [None, None]:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and 0 <= n < 1000 for n in pair)):
                raise ValueError(f"{part} must be two numbers of goals")
            pairs[part] = (pair[0], pair[1])
    if not pairs:
        return "", -1
    if "ft" not in pairs:
        raise ValueError("ft is missing")
    home, away = pairs.get("et", pairs["ft"])
    word = " awarded" if (match.status or "").lower() == "awarded" else ""
    word = " pen" if "p" in pairs else " aet" if "et" in pairs else word
    decisive = pairs.get("p", (home, away))
    if "p" in pairs and decisive[0] == decisive[1]:
        raise ValueError("p must have a winner")
    return f"{home}:{away}{word}", -1 if decisive[0] == decisive[1] else int(decisive[0] < decisive[1])


def _date(match: _Match) -> str:
    """`13:00 UTC-6` is thirteen o'clock at -06:00."""
    if (found := _OFFSET.fullmatch(match.time.strip())) is not None:
        return f"{match.date} {found[1]:0>5}{found[2]}{found[3]:0>2}:{found[4] or '00'}"
    return f"{match.date} {match.time}".strip() if match.date else ""


def read_football_json(content: bytes) -> Brought:
    season: _Season = decoded(content, _Season, "the file")
    matches = list(season.matches)
    for one in season.rounds:
        for match in one.matches:
            match.round = match.round or one.name
        matches += one.matches
    found = Noticed()
    groups: dict[str, int] = {name: n for n, name in enumerate(sorted({m.group for m in matches if m.group}), start=1)}
    by_group: dict[int, dict[str, None]] = defaultdict(dict)
    alike: Counter[str] = Counter()
    meetings = []
    for number, match in enumerate(matches, start=1):
        group = groups.get(match.group, _KNOCK_OUT if groups else 1)
        meeting = _meeting(match, number, group, f"{season.name}, {match.round or match.group}", alike, found)
        if meeting is not None:
            meetings.append(meeting)
            by_group[group] |= dict.fromkeys(meeting.participants)
    found.refuse_if_any()
    if _KNOCK_OUT in by_group:
        found.note("matches of knock-out rounds are recorded, and give no points")
    tables = [
        BroughtRanking(name=name, like="football", entrants=tuple(by_group[n]), groups=(n,))
        for name, n in groups.items()
    ]
    teams = tuple(dict.fromkeys(team for meeting in meetings for team in meeting.participants))
    table = BroughtRanking(name=season.name, like="football", entrants=teams)
    return Brought(
        name=season.name,
        entrants=tuple([Entrant(key=team, name=team) for team in teams]),
        rankings=tuple(tables) or (table,),
        meetings=tuple(meetings),
        notes=found.notes,
    )


def _meeting(
    match: _Match, number: int, group: int, in_round: str, alike: Counter[str], found: Noticed
) -> Meeting | None:
    """None: it cannot be read. `alike`: the matches of the same two before it in a round."""
    home, away = pair = _name(match.team1), _name(match.team2)
    if not home or not away or home == away:
        found.fault(f"match {number}", "team1 and team2 must be two clubs")
        return None
    try:
        score, winner = _goals(match)
    except ValueError as error:
        found.fault(f"match {number}, score", str(error))
        return None
    if score and (status := (match.status or "").lower()) not in _PLAYED:
        day = f" on {match.date}" if match.date else ""
        found.unplayed(f"{home} - {away}{day}, {score},", status)
        score, winner = "", -1
    alike[same := f"{in_round}: {home} - {away}"] += 1
    ground = match.ground.get("name", "") if isinstance(match.ground, dict) else match.ground or ""
    numbered = _NUMBER.fullmatch(match.round.strip())
    return Meeting(
        number=number,
        key=same if alike[same] == 1 else f"{same} {alike[same]}",
        participants=pair,
        score=score,
        winner=pair[winner] if winner >= 0 else "",
        date=_date(match),
        group=group,
        round=int(numbered[1]) if numbered else None,
        round_name=match.round.strip(),
        location=str(ground).strip(),
    )


FOOTBALL_JSON: Final = FileReader(
    name="football.json",
    suffixes=(".json",),
    recognises=lambda head: b'"team1"' in head and b'"matches"' in head,
    read=read_football_json,
)
