"""What the results that `playing.py` asks for give by scorings: as the documentation says, as naively as possible.

A scoring is the object that is sent.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from math import floor
from typing import Any

from msgspec import Struct

Amounts = dict[tuple[int, int], int]
"""By competitor and unity."""
_OF_TWO = ("outcome", "for", "against")


class Unreadable(Exception):
    """The result gives nothing."""


class Competition(Struct, frozen=True, kw_only=True):
    """What is scored. `result`: a text, or one for each participant."""

    participants: tuple[int, ...] = ()
    result: str | dict[int, str] | None = None
    winner: int | None = None
    group: int = 1
    scale: str = ""


class _Reading(Struct):
    outcome: str | None = None
    word: str = ""
    score: tuple[int, int] | None = None
    performance: str = ""
    status: str = ""


def given(
    scorings: Iterable[Mapping[str, Any]], one: Competition, listed: Collection[int], ever: Collection[int]
) -> Amounts:
    """`listed`: who is in the ranking; `ever`: and who was."""
    for scoring in scorings:
        groups, name = scoring.get("groups"), scoring.get("name", "")
        if (name == one.scale) if one.scale else (one.group in groups if groups else not name):
            try:
                return _given(scoring, one, listed, ever)
            except Unreadable:
                return {}
    return {}


def of_score(one: Competition) -> int | None:
    """Who of two won by the score."""
    if len(one.participants) != 2 or not isinstance(one.result, str):
        return None
    if one.result == "+:-":
        return one.participants[0]
    score = re.match(r"(\d):(\d)", one.result)
    return None if score is None or score[1] == score[2] else one.participants[score[1] < score[2]]


def tells_the_winner(one: Competition) -> bool:
    """Whether it is a score of two without a word, or a forfeit."""
    return isinstance(one.result, str) and re.fullmatch(r"\d:\d|[+-]:-", one.result) is not None


def _given(scoring: Mapping[str, Any], one: Competition, listed: Collection[int], ever: Collection[int]) -> Amounts:
    found, readings = Amounts(), _read(scoring, one)
    if not readings:
        return {}
    for award in scoring["awards"]:
        said, statuses = {c: r for c, r in readings.items() if c in ever}, award.get("statuses", {})
        sharing = {c: r for c, r in readings.items() if c in listed} if "among" in award else readings
        places = _places(scoring, sharing, ranked="among" in award) if award["from"] == "place" else {}
        its = {c: _amount(award, r, places.get(c), len(listed)) for c, r in said.items()}
        if "absent" in statuses and "outcomes" not in award:
            its |= {c: _of_status(award, "absent", len(listed)) for c in listed if c not in said}
        for c, amount in its.items():
            if amount is not None:
                found[c, award["unity"]] = found.get((c, award["unity"]), 0) + amount
    return found


def _amount(award: Mapping[str, Any], reading: _Reading, place: range | None, entries: int) -> int | None:
    factor, table, outcome = award.get("factor", 1), award.get("table"), reading.outcome
    if outcome not in award.get("outcomes", [outcome]):
        return None
    if reading.status in award.get("statuses", {}):
        return _of_status(award, reading.status, entries)
    match award["from"]:
        case "outcome" if outcome is None:
            return None
        case "outcome":
            for key in (f"{outcome} {reading.word}", outcome):
                if table is None or key in table:
                    return factor if table is None else table[key]
            if outcome == "bye":
                return None
            raise Unreadable
        case "for" | "against":
            return None if reading.score is None else factor * reading.score[award["from"] == "against"]
        case "place":
            return None if place is None else _mean(award, place if award.get("ties") == "mean" else place[:1])
        case _:
            if reading.performance and not reading.performance.isdecimal():
                raise Unreadable
            return factor * int(reading.performance) if reading.performance else None


def _of_status(award: Mapping[str, Any], status: str, entries: int) -> int | None:
    said: Any = award["statuses"][status]
    return _mean(award, range(entries + 1, entries + 2)) if said == "entries+1" else said


def _mean(award: Mapping[str, Any], places: range) -> int | None:
    """Of the amounts of these places, to the nearest, halves away from zero."""
    table, factor = award.get("table"), award.get("factor", 1)
    if isinstance(table, dict):
        of = [table.get(str(place)) for place in places]
        if not any(amount is not None for amount in of):
            return None
        amounts = [amount or 0 for amount in of]
    elif table is not None:
        amounts = [table[place - 1] if place <= len(table) else 0 for place in places]
    else:
        amounts = [factor * place for place in places]
    mean = Fraction(sum(amounts), len(amounts))
    return floor(abs(mean) + Fraction(1, 2)) * (1 if mean >= 0 else -1)


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────


def _read(scoring: Mapping[str, Any], one: Competition) -> dict[int, _Reading]:
    who, result, winner = one.participants, one.result, one.winner
    values, sent = {award["from"] for award in scoring["awards"]}, scoring.get("order", "sent") == "sent"
    if not who or (not result and winner is None):
        return {}
    said: Mapping[int, str] | None = None
    if isinstance(result, dict):
        said = result
    elif result and "|" in result and len(who) == 2:
        said = dict(zip(who, result.split("|"), strict=True))
    else:
        of_two = _of_two(who, result or "", winner)
        if of_two is not None:
            if values.isdisjoint(_OF_TWO):
                raise Unreadable
            return of_two
        if len(who) != 1:
            raise Unreadable
        said = {who[0]: result or ""}
    if values <= set(_OF_TWO) and ("outcome" not in values or sent):
        raise Unreadable
    known = {"dns", "dnf"}.union(*(award.get("statuses", {}) for award in scoring["awards"]))
    readings = {
        c: _Reading(status=text.lower()) if text.lower() in known else _Reading(performance=text)
        for c, text in said.items()
    }
    if "place" in values or ("outcome" in values and not sent):
        first = [c for c, place in _places(scoring, readings, ranked=True).items() if place[0] == 1]
    else:
        first = []
    if winner is not None:
        first = [winner]
    for c, reading in readings.items() if first else ():
        reading.outcome = "loss" if c not in first else "win" if len(first) == 1 else "draw"
    return readings


def _of_two(who: tuple[int, ...], text: str, winner: int | None) -> dict[int, _Reading] | None:
    """A score, a forfeit, a word, a bye, or only a winner."""
    if len(who) == 1 and text == "bye":
        return {who[0]: _Reading(outcome="bye")}
    if len(who) == 2 and text in ("+:-", "-:-"):
        signs = {"+": "win", "-": "loss"}
        return {c: _Reading(outcome=signs[sign], word="wo") for c, sign in zip(who, text.split(":"), strict=True)}
    readings = {c: _Reading(word=text) for c in who}
    if len(who) == 2 and (score := re.fullmatch(r"(\d):(\d) ?(pen|wo|)", text)):
        text, one, other = score[3], int(score[1]), int(score[2])
        readings = {who[0]: _Reading(word=text, score=(one, other)), who[1]: _Reading(word=text, score=(other, one))}
        if winner is None and one != other:
            winner = who[0] if one > other else who[1]
    elif text not in ("", "wo"):
        return None
    if text == "pen" and winner is None:
        raise Unreadable
    for c, reading in readings.items():
        if winner is None:
            reading.outcome = "loss" if text == "wo" else "draw"
        else:
            reading.outcome = "win" if c == winner else "loss"
    return readings


def _places(scoring: Mapping[str, Any], readings: Mapping[int, _Reading], *, ranked: bool) -> dict[int, range]:
    """Those that each fills, with whom it shares them. `ranked`: counted, even if they were sent."""
    order, numbers = scoring.get("order", "sent"), dict[int, int]()
    for c, reading in readings.items():
        if reading.performance:
            if not reading.performance.isdecimal():
                raise Unreadable
            numbers[c] = -int(reading.performance) if order == "high" else int(reading.performance)
    found = {}
    for c, number in numbers.items():
        place = 1 + sum(other < number for other in numbers.values()) if ranked or order != "sent" else number
        found[c] = range(place, place + [*numbers.values()].count(number))
    return found
