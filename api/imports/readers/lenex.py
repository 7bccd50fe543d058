"""Results of swimming meets, LENEX 3: `.lef`, or packed as `.lxf`. Pure.

An age group of an event is a ranking by time. Placed is who has a place above 0 in its `RANKINGS`, and nothing else: a
time without a place, or no status with a time of zero, are common. A result may count in several age groups. Finals
stand before their preliminaries. A relay of a club is a competitor.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from api.imports.readers.archives import member
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
from api.imports.readers.elements import Element, begins_with, root_of
from engine.domain.errors import Unreadable

_SKIPPED: Final = frozenset(
    (
        "CONTACT",
        "ENTRIES",
        "FACILITY",
        "FEES",
        "HANDICAP",
        "HEATS",
        "OFFICIALS",
        "POOL",
        "QUALIFY",
        "RECORDLISTS",
        "RELAYPOSITIONS",
        "SPLITS",
        "TIMESTANDARDLISTS",
        "TIMESTANDARDREFS",
    )
)
_TIME: Final = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})\.([0-9]{2})")
_OUT_OF_COMPETITION: Final = "EXH"
_UNPLACED: Final = "NP"
_GENDERS: Final = {"F": "women", "M": "men", "X": "mixed"}
_ROUNDS: Final = {"PRE": "preliminaries", "SEM": "semifinals", "QUA": "quarterfinals", "SOP": "swim-off"}


class _Swim:
    """A result. `swimmer`: the key of the athlete or relay."""

    def __init__(self, result: Element, swimmer: str) -> None:
        self.swimmer, self.status = swimmer, result.attributes.get("status", "").upper()
        found = _TIME.fullmatch(result.attributes.get("swimtime", ""))
        hours, minutes, seconds, hundredths = map(int, found.groups()) if found else (0, 0, 0, 0)
        self.milliseconds = ((hours * 60 + minutes) * 60 + seconds) * 1000 + hundredths * 10


def read_lenex(content: bytes) -> Brought:
    if content.startswith(b"PK"):
        content = member(content, lambda name: name.lower().endswith(".lef"))
    root = root_of(content, _SKIPPED)
    if root.name != "LENEX":
        raise Unreadable(f"The root element is {root.name}, not LENEX.")
    meets = [*root.each("MEETS", "MEET")]
    title = meets[0].attributes.get("name", "") or "Meet" if meets else "Meet"
    found, entrants, tables, meetings = Noticed(), dict[str, Entrant](), list[BroughtRanking](), list[Meeting]()
    for meet in meets:
        of_meet = f"{meet.attributes.get('name', '')}: " if len(meets) > 1 else ""
        swims, of_events = _swims(meet, title, entrants, found)
        for session, event in _finals_first(meet):
            for age_group, run in _runs(event, swims, of_events, found):
                number = len(tables) + 1
                meetings.append(_meeting(meet, session, event, age_group, run, number))
                name = of_meet + _title(event, age_group)
                tables.append(BroughtRanking(name=name, like="race", entrants=tuple(run), groups=(number,)))
    found.refuse_if_any()
    return Brought(
        name=title,
        entrants=taking_part(entrants, tables),
        rankings=tuple(tables),
        meetings=tuple(meetings),
        notes=found.notes,
    )


def _runs(
    event: Element, swims: dict[str, _Swim], of_events: dict[str, dict[str, None]], found: Noticed
) -> Iterator[tuple[Element, dict[str, str]]]:
    """The age groups of an event in which somebody swam, with their performances by entrant."""
    groups = [*event.each("AGEGROUPS", "AGEGROUP")]
    for age_group in groups:
        placed = _placed(age_group, swims, found)
        if len(groups) == 1:  # those without any ranking belong to the only one
            others = of_events.get(event.attributes.get("eventid", ""), {})
            placed = {**placed, **{key: 0 for key in others if key not in placed}}
        run = {
            swims[key].swimmer: _performance(swims[key], place, age_group, found)
            for key, place in placed.items()
            if swims[key].status != _OUT_OF_COMPETITION
        }
        if run:
            yield age_group, run


def _meeting(
    meet: Element, session: Element, event: Element, age_group: Element, run: dict[str, str], number: int
) -> Meeting:
    its_key = (meet.attributes.get("name", ""), event.attributes.get("eventid", ""))
    return Meeting(
        number=age_group.line,
        key=" ".join((*its_key, age_group.attributes.get("agegroupid", ""))).strip(),
        participants=tuple(run),
        score="|".join(run.values()),
        date=_date(session, event),
        group=number,
        round_name=_ROUNDS.get(event.attributes.get("round", ""), ""),
        location=meet.attributes.get("city", ""),
    )


def _swims(
    meet: Element, of_file: str, entrants: dict[str, Entrant], found: Noticed
) -> tuple[dict[str, _Swim], dict[str, dict[str, None]]]:
    """The results of the meet by id, and their ids by event."""
    swims: dict[str, _Swim] = {}
    of_events: dict[str, dict[str, None]] = {}
    for club in meet.each("CLUBS", "CLUB"):
        name = club.attributes.get("name", "").replace(",", " ").strip()
        for swimmer in (*club.each("ATHLETES", "ATHLETE"), *club.each("RELAYS", "RELAY")):
            full, key = _relay(swimmer, name, of_file) if swimmer.name == "RELAY" else _athlete(swimmer, of_file)
            if key in entrants and entrants[key].name != full:
                key = f"{key} {full}"
            if not full:
                found.fault(swimmer.where, "it has no name")
            for result in swimmer.each("RESULTS", "RESULT"):
                entrants.setdefault(key, Entrant(key=key, name=full, tags=(name,) if name else ()))
                its_id = result.attributes.get("resultid", "")
                if not its_id or its_id in swims:
                    found.fault(result.where, "it must have a resultid of its own")
                swims[its_id] = _Swim(result, key)
                of_events.setdefault(result.attributes.get("eventid", ""), {})[its_id] = None
    return swims, of_events


def _athlete(athlete: Element, of_file: str) -> tuple[str, str]:
    """The name and the key."""
    own = athlete.attributes
    full = " ".join(filter(None, (own.get("firstname", ""), own.get("nameprefix", ""), own.get("lastname", ""))))
    return full, own.get("license") or f"{of_file} {own.get('athleteid') or full}"


def _relay(relay: Element, club: str, of_file: str) -> tuple[str, str]:
    """The name and the key. A club's teams of different ages or genders may have the same number."""
    own = relay.attributes
    full = own.get("name") or f"{club} {own.get('number', '')}".strip()
    which = [own.get(name, "") for name in ("gender", "agemin", "agemax", "agetotalmin", "agetotalmax")]
    return full, " ".join(filter(None, (f"{of_file} relay {club} {own.get('number', '')}", *which)))


def _finals_first(meet: Element) -> Iterator[tuple[Element, Element]]:
    """The events, with their sessions; each final right before its preliminaries."""
    events = {
        event.attributes.get("eventid", ""): (session, event)
        for session in meet.each("SESSIONS", "SESSION")
        for event in session.each("EVENTS", "EVENT")
    }
    final_of = {event.attributes.get("preveventid", ""): its_id for its_id, (_, event) in events.items()}
    done: set[str] = set()
    for its_id in events:
        chain = [its_id]
        while (final := final_of.get(chain[0])) is not None and final not in chain:
            chain.insert(0, final)
        yield from (events[one] for one in chain if one not in done)
        done.update(chain)


def _placed(age_group: Element, swims: dict[str, _Swim], found: Noticed) -> dict[str, int]:
    """The places of an age group, by result; 0: none."""
    places: dict[str, int] = {}
    for ranking in age_group.each("RANKINGS", "RANKING"):
        result, place = ranking.attributes.get("resultid", ""), ranking.attributes.get("place", "")
        if result not in swims:
            found.note("places of unknown results are left out", ranking.where)
        else:
            places[result] = whole(place) or 0
    timed = sorted(
        (place, swims[key].milliseconds) for key, place in places.items() if place and swims[key].milliseconds
    )
    if any(time > later for (_, time), (_, later) in pairwise(timed)):
        found.note("places that the times do not give, such as those of swim-offs, are left out", age_group.where)
    return places


def _performance(swim: _Swim, place: int, age_group: Element, found: Noticed) -> str:
    if place > 0 and swim.milliseconds:
        return clock(swim.milliseconds)
    if place > 0:
        found.note("places without a time are left out", age_group.where)
    return swim.status or _UNPLACED


def _date(session: Element, event: Element) -> str:
    day, time = (
        session.attributes.get("date", ""),
        event.attributes.get("daytime", session.attributes.get("daytime", "")),
    )
    return f"{day} {time}".strip() if day else ""


def _title(event: Element, age_group: Element) -> str:
    style = event.first("SWIMSTYLE")
    own = {} if style is None else style.attributes
    times = f"{own['relaycount']} × " if own.get("relaycount", "1") != "1" else ""  # noqa: RUF001 - a sign
    swum = own.get("name") or f"{times}{own.get('distance', '')} m {own.get('stroke', '').lower()}".strip()
    lowest, highest = age_group.attributes.get("agemin", "-1"), age_group.attributes.get("agemax", "-1")
    ages = "" if lowest == highest == "-1" else lowest if lowest == highest else f"{lowest}–{highest}"  # noqa: RUF001
    ages = (
        f"{highest} and under"
        if lowest == "-1" != highest
        else f"{lowest} and over"
        if highest == "-1" != lowest
        else ages
    )
    parts = (
        swum,
        _GENDERS.get(age_group.attributes.get("gender") or event.attributes.get("gender", ""), ""),
        age_group.attributes.get("name") or ages,
        _ROUNDS.get(event.attributes.get("round", ""), ""),
    )
    return " ".join(filter(None, parts)) or f"Event {event.attributes.get('number', '')}"


LENEX: Final = FileReader(
    name="LENEX",
    suffixes=(".lef", ".lxf"),
    recognises=lambda head: (head.startswith(b"PK") and b".lef" in head.lower()) or begins_with(head, "LENEX"),
    read=read_lenex,
)
