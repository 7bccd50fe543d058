"""A ranking of games as a chess tournament report, TRF26. Pure.

The columns are those that `api/imports/readers/trf.py` reads. Players have their numbers in the order of the list.
"""

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from msgspec import structs

from api.imports.readers.trf import EDITION_FROM, TIEBREAKS
from api.imports.written import Written, WrittenLine, unwritable
from engine.domain.events import Criterion
from engine.domain.scoring import ReadResult, choose, read, was_played
from engine.domain.terms import CompetitorId, UnityId
from projections.board.board import Competition, Ranking
from projections.board.classification import in_force

_ROUNDS_MAX: Final = 99
_CODES: Final = {"win": "1+", "draw": "==", "loss": "0-"}
"""By outcome: of a game that was played, and of one that was not."""
_BYES: Final = {"": "U", "full": "F", "half": "H", "zero": "Z"}
_SYSTEM: Final = {"W": "win", "D": "draw", "L": "loss", "A": "loss wo", "P": "bye"}
_ALIKE: Final = {"win wo": "win", "bye full": "win", "bye half": "draw", "bye zero": "loss wo"}
"""Outcomes that give as much as others in every report."""
_FIDE: Final = re.compile(r"FIDE ([0-9]{1,11})", re.ASCII)

_Rounds = list[dict[CompetitorId, tuple[int, str, str]]]
"""For each round: opponent (0: none), colour and result of each player."""


def report(written: Written) -> str:
    """Raises Unacceptable."""
    main = next(iter(written.ranking.unities))
    rounds = _rounds(written)
    days = _days(written)
    order, kind = _order(in_force(written.ranking), main, min(days.values(), default=None))
    lines = [f"012 {written.name}", f"062 {len(written.lines)}", f"092 {kind}"]
    if days:
        lines.append(f"042 {min(days.values()):%Y/%m/%d}")
    if len(days) == len(rounds) and all(2000 <= day.year < 2100 for day in days.values()):
        lines.append(f"{'132':91}" + "  ".join([f"{days[number]:%y/%m/%d}" for number in sorted(days)]))
    lines += [f"162  {_system(written.ranking, main)}", f"212 {order}"]
    for number, line in enumerate(written.lines, start=1):
        lines.append(_player(written.ranking, main, number, line, rounds))
    return "\n".join([*lines, ""])


def _rounds(written: Written) -> _Rounds:
    numbers = {line.competitor_id: number for number, line in enumerate(written.lines, start=1)}
    rounds: _Rounds = []
    for competition in written.competitions:
        number = competition.round or 0
        if not 1 <= number <= _ROUNDS_MAX or competition.struck or not 1 <= len(competition.participants) <= 2:
            raise unwritable("a competition is no game in one of the rounds from 1 to 99, or has struck competitors")
        rounds += [{} for _ in range(number - len(rounds))]
        for competitor_id, (opponent, colour, result) in _seats(written.ranking, competition):
            if competitor_id not in numbers or opponent not in (None, *numbers):
                raise unwritable("a player is no longer in the ranking")
            if competitor_id in rounds[number - 1]:
                raise unwritable(f"a player has two games in round {number}")
            rounds[number - 1][competitor_id] = (0 if opponent is None else numbers[opponent], colour, result)
    return rounds


def _seats(
    ranking: Ranking, competition: Competition
) -> Iterator[tuple[CompetitorId, tuple[CompetitorId | None, str, str]]]:
    scoring, participants = choose(ranking.scorings, competition), competition.participants
    assert scoring is not None  # or it would not be among those that are written
    results = read(scoring, competition)
    for place, competitor_id in enumerate(participants):
        found = results.get(competitor_id, ReadResult())
        if len(participants) == 2:
            code = "" if found.outcome is None else _CODES[found.outcome][not was_played(scoring, found)]
            yield competitor_id, (participants[1 - place], "wb"[place], code)
        elif found.outcome == "bye":
            yield competitor_id, (None, "-", _BYES[found.word])


def _days(written: Written) -> dict[int, date]:
    """By round: the day of its first game, in the zone of the tournament."""
    days: dict[int, date] = {}
    for competition in written.competitions:
        if competition.date is not None and competition.round is not None:
            day = competition.date.astimezone(written.zone).date()
            days[competition.round] = min(day, days.get(competition.round, day))
    return days


def _order(criteria: tuple[Criterion, ...], main: UnityId, start: date | None) -> tuple[str, str]:
    """The order of the players and the kind of tournament, as a report says them."""
    first, *others = criteria
    names = ["PTS"]
    if first != Criterion(unity_id=main):
        raise unwritable("it is not ordered by points first")
    for one in others:
        options = [f"/C{one.cut}"] * bool(one.cut) + [f"/M{one.median}"] * bool(one.median)
        options += [f"/L{one.limit:+}"] * bool(one.limit)
        plain = structs.replace(one, cut=0, median=0, limit=0, pairing=None, edition=None)
        if (
            one.tiebreak not in TIEBREAKS
            or len(options) > 1
            or plain != Criterion(unity_id=main, tiebreak=one.tiebreak)
        ):
            raise unwritable("it is ordered by something else than points and the usual tie-breaks")
        names.append("".join([one.tiebreak, *options]))
    pairings, editions = {one.pairing or "swiss" for one in others}, {one.edition for one in others}
    edition = "2024-08" if start is not None and f"{start:%Y/%m/%d}" < EDITION_FROM else "2026-03"
    if len(pairings) > 1 or not editions <= {edition, None}:
        raise unwritable("its tie-breaks are of other regulations than those of its date")
    return ",".join(names), "Individual: Round-Robin" if "predetermined" in pairings else "Individual: Swiss-System"


def _system(ranking: Ranking, main: UnityId) -> str:
    awards = [award for scoring in ranking.scorings for award in scoring.awards]
    table = awards[0].table if [award.value for award in awards] == ["outcome"] else None
    if not isinstance(table, dict):
        raise unwritable("its points are other than by win, draw and loss")

    def amount(outcome: str) -> int:
        return table.get(outcome, table.get(outcome.partition(" ")[0], 0))

    if any(amount(one) != amount(other) for one, other in _ALIKE.items()) or min(table.values()) < 0:
        raise unwritable("its points are other than such files can say")
    notation = ranking.unities[main].notation
    return "    ".join([f"{code} {notation.text(amount(outcome))}" for code, outcome in _SYSTEM.items()])


def _player(ranking: Ranking, main: UnityId, number: int, line: WrittenLine, rounds: _Rounds) -> str:
    unity = ranking.unities[main]
    points, fide = unity.notation.text(unity.totals.get(line.competitor_id, 0)), _FIDE.fullmatch(line.key)
    if len(points) > 4:
        raise unwritable(f"{points} are too many points")
    played = [one.get(line.competitor_id) for one in rounds]
    cells = [" " * 8 if one is None else f"{one[0] or '0000':>4} {one[1]} {one[2]:1}" for one in played]
    return (
        f"001 {number:>4}      {line.name[:33]:33}          {fide[1] if fide else '':>11}            {points:>4} "
        f"{line.position:>4}  {'  '.join(cells)}"
    ).rstrip()
