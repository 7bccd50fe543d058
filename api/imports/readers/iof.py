"""Result lists of orienteering, IOF XML 3.0: individual, of several races, and relays. Pure.

A class is a ranking by time, and a race of it is a competition. Scores in a series are rankings of their own. Places
are computed and never read: valid files have places of 0 and -1, and of disqualified runners. A relay's time is that of
the last leg's `OverallResult`, or else the sum of its legs.
"""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final

from api.imports.readers.brought import (
    Brought,
    BroughtRanking,
    Entrant,
    FileReader,
    Meeting,
    Noticed,
    clock,
    taking_part,
    whole,
)
from api.imports.readers.elements import Element, begins_with, elements
from engine.domain.errors import Unreadable

_SKIPPED: Final = frozenset(
    (
        "Address",
        "AssignedFee",
        "Contact",
        "ControlAnswer",
        "ControlCard",
        "Course",
        "Extensions",
        "Fee",
        "Image",
        "Route",
        "ServiceRequest",
        "SplitTime",
    )
)
_NO_PARTICIPANT: Final = {"NotCompeting", "Moved", "MovedUp", "DidNotEnter", "Cancelled"}
_NOT_YET: Final = {"Active", "Inactive", "Finished", ""}
_STATUSES: Final = {
    "MissingPunch": "MP",
    "DidNotFinish": "DNF",
    "Disqualified": "DSQ",
    "DidNotStart": "DNS",
    "OverTime": "OVT",
    "SportingWithdrawal": "DNF",
}
_NO_TIME: Final = "NT"
_SECONDS_MAX: Final = 10**7
_Race = dict[str, str]
"""Performances of a race, by entrant."""


def read_iof(content: bytes) -> Brought:
    found, entrants, tables, meetings = Noticed(), dict[str, Entrant](), list[BroughtRanking](), list[Meeting]()
    *classes, root = elements(content, ("ClassResult",), _SKIPPED)
    if root.name != "ResultList":
        raise Unreadable(f"The file is a {root.name}; only a ResultList has results.")
    if root.attributes.get("status") == "Delta":
        raise Unreadable("The file has only what changed since another one (Delta); bring the whole list.")
    event = root.first("Event") or root
    title = event.said("Name") or "Results"
    races = {race.said("RaceNumber") or "1": race for race in event.each("Race")}
    for number, one in enumerate(classes, start=1):
        name = one.said("Class", "Name") or f"Class {number}"
        runs = _runs(one, entrants, found)
        for offset, like in enumerate(dict.fromkeys(kind for kind, _ in runs)):
            group = number + 10_000 * offset
            own = {race: run for (kind, race), run in runs.items() if kind == like}
            for race, run in sorted(own.items()):
                its = races.get(race, event)
                meetings.append(
                    Meeting(
                        number=one.line,
                        key=f"{title}: {name}{'' if like == 'time' else f' {like}'} {race}",
                        participants=tuple(run),
                        score="|".join(run.values()),
                        date=_start(its) or _start(event),
                        group=group,
                        round=whole(race) if len(own) > 1 else None,
                        round_name=its.said("Name") if its is not event else "",
                    )
                )
            everyone = dict.fromkeys(key for run in own.values() for key in run)
            kind = "race" if like == "time" else "high-score"
            its_name = name if like == "time" else f"{name}: {like}"
            tables.append(BroughtRanking(name=its_name, like=kind, entrants=tuple(everyone), groups=(group,)))
    found.refuse_if_any()
    return Brought(
        name=title,
        entrants=taking_part(entrants, tables),
        rankings=tuple(tables),
        meetings=tuple(meetings),
        notes=found.notes,
    )


def _start(of: Element) -> str:
    day, time = of.said("StartTime", "Date"), of.said("StartTime", "Time")
    return f"{day[:10]} {time}".strip()


def _runs(one: Element, entrants: dict[str, Entrant], found: Noticed) -> dict[tuple[str, str], _Race]:
    """The performances of a class, by "time" or type of score, and race."""
    runs: dict[tuple[str, str], _Race] = {}
    within: set[str] = set()
    for result in (*one.each("PersonResult"), *one.each("TeamResult")):
        key = _entrant(result, within, entrants, found)
        for race, status, time, scores in (
            _of_team(result, found) if result.name == "TeamResult" else _of(result, found)
        ):
            if status in _NO_PARTICIPANT:
                found.note(f"those with the status {status} are left out", result.where)
                continue
            performance = "" if status in _NOT_YET else time if status == "OK" else _STATUSES.get(status, status)
            runs.setdefault(("time", race), {})[key] = performance
            for kind, score in scores:
                if whole(score) is not None:
                    runs.setdefault((kind, race), {})[key] = score
                else:
                    found.note("scores that are not whole numbers are left out", result.where)
    return runs


def _entrant(result: Element, within: set[str], entrants: dict[str, Entrant], found: Noticed) -> str:
    """The key of who has this result in a class. A runner in two classes is one competitor."""
    is_team = result.name == "TeamResult"
    club = result.said("Organisation", "Name")
    name = (
        result.said("Name")
        if is_team
        else " ".join(filter(None, (result.said("Person", "Name", "Given"), result.said("Person", "Name", "Family"))))
    )
    if not name:
        found.fault(result.where, "it has no name")
    own_id = result.first("EntryId") if is_team else result.first("Person", "Id")
    key = ", ".join(filter(None, (name, club)))
    if own_id is not None and own_id.text:
        key = " ".join(filter(None, ("team" if is_team else own_id.attributes.get("type"), own_id.text)))
    bib = result.said("BibNumber") or result.said("Result", "BibNumber")
    if key in within:  # two of the same name
        key = f"{key} {bib or result.line}"
    within.add(key)
    entrants.setdefault(key, Entrant(key=key, name=name, tags=(club,) if club else ()))
    return key


def _of(result: Element, found: Noticed) -> Iterator[tuple[str, str, str, list[tuple[str, str]]]]:
    for own in result.each("Result"):
        scores = [(score.attributes.get("type", "score"), score.text) for score in own.each("Score")]
        yield own.attributes.get("raceNumber", "1"), own.said("Status"), _time(own, found), scores


def _of_team(team: Element, found: Noticed) -> Iterator[tuple[str, str, str, list[tuple[str, str]]]]:
    by_race: dict[str, list[Element]] = {}
    for own in team.each("TeamMemberResult", "Result"):
        by_race.setdefault(own.attributes.get("raceNumber", "1"), []).append(own)
    for race, legs in by_race.items():
        legs.sort(key=lambda own: whole(own.said("Leg")) or 0)
        overall = legs[-1].first("OverallResult")
        statuses = [own.said("Status") for own in legs]
        status = next((one for one in statuses if one != "OK"), "OK")
        if overall is not None and overall.said("Status"):
            yield race, overall.said("Status"), _time(overall, found), []
        elif len({own.said("Leg") for own in legs}) < len(legs):
            found.note("without an OverallResult, legs that are run at the same time have no sum", team.where)
            yield race, status, _NO_TIME, []
        else:
            times = [_milliseconds(own) for own in legs]
            known = [time for time in times if time is not None]
            yield race, status, clock(sum(known)) if len(known) == len(times) else _NO_TIME, []


def _time(own: Element, found: Noticed) -> str:
    milliseconds = _milliseconds(own)
    if milliseconds is None and own.said("Status") == "OK":
        found.note("those with the status OK but without a valid time have no place", own.where)
    return _NO_TIME if milliseconds is None else clock(milliseconds)


def _milliseconds(own: Element) -> int | None:
    """The time, which is in seconds; None: it is missing, negative or infinite."""
    try:
        seconds = Decimal(own.said("Time"))
        return round(seconds * 1000) if 0 <= seconds < _SECONDS_MAX else None
    except (InvalidOperation, ValueError):
        return None


IOF: Final = FileReader(
    name="IOF XML 3.0",
    suffixes=(".xml",),
    recognises=lambda head: begins_with(head, "ResultList") and b"orienteering.org/datastandard/3.0" in head,
    read=read_iof,
)
