"""Chess tournament reports, TRF16 and TRF26: fixed columns, one record a line. Pure.

A game is a competition, whose first participant had White; an unplayed round is one of a single player. Each game
stands in two lines, which must say the same, and the points of a player must be those of their results. Records that a
ranking does not need are left out.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final

from msgspec import Struct

from api.imports.readers.brought import Brought, BroughtRanking, Entrant, FileReader, Meeting, Noticed
from engine.domain.errors import Unreadable

_ROUNDS_MAX: Final = 200
_SCORES: Final = {
    "1": "1:0",
    "w": "1:0",
    "=": "½:½",
    "d": "½:½",
    "0": "0:1",
    "l": "0:1",
    "+": "+:-",
    "-": "-:+",
    "": "",
}
_ANSWERS: Final = {"1": "0", "=": "=", "0": "1", "w": "l", "d": "d", "l": "w", "+": "-", "-": "+", "": ""}
"""What the opponent's line says. Both may also have lost."""
_LOST: Final = "0l-"
_BYES: Final = {"f": "full bye", "u": "bye", "h": "half bye", "z": "zero bye", "-": "zero bye", "": "zero bye"}
_SYSTEM: Final = re.compile(r"([A-Z]) *([0-9]{1,3}(?:\.[0-9]{1,2})?)")
_USUAL: Final = {"W": Fraction(1), "D": Fraction(1, 2), "L": Fraction(0)}
_CODES: Final = {"1": "W", "w": "W", "+": "W", "f": "W", "=": "D", "d": "D", "h": "D", "0": "L", "l": "L", "-": "A"}
_OUTCOMES: Final = {
    "win": "W",
    "draw": "D",
    "loss": "L",
    "loss wo": "A",
    "bye": "P",
    "bye full": "W",
    "bye half": "D",
    "bye zero": "A",
}
_CODES_OF_BYES: Final = {"bye": "P", "full bye": "W", "half bye": "D", "zero bye": "A"}
_READ: Final = re.compile("0[0-9]2|1[0-9]2|2[0-2]2")
"""Records that are read, or say nothing of the ranking."""
_ROUND_ROBIN: Final = re.compile("ROBIN|BERGER|SCHILLER|SCHEVENINGEN")
_ROUND_ROBIN_TEXT: Final = re.compile(r"round.?robin|berger|\bRR\b", re.IGNORECASE | re.ASCII)
EDITION_FROM: Final = "2026/03/01"
"""Tournaments that began earlier have the tie-breaks of 2024."""
_TIEBREAK: Final = re.compile("([A-Z]{2,4})(?:/[CM][0-9]|/L[+-][0-9]{1,2})?")
TIEBREAKS: Final = frozenset(("BH", "FB", "AOB", "SB", "DE", "WIN", "WON", "BPG", "BWG", "PS", "REP", "STD", "KS"))
_OPTIONS: Final = {"C": "cut", "M": "median", "L": "limit"}
_OF_TEAMS: Final = frozenset(("013", "310", "299"))
"""With these records, points may be other than those of the results."""

_Round = tuple[int, str, str]
"""Opponent (0: none), colour and result."""


class _Player(Struct):
    line: int
    entrant: Entrant
    points: Fraction | None
    rounds: list[_Round]


def read_trf(content: bytes) -> Brought:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:  # the specification names no encoding
        text = content.decode("latin-1")
    found = Noticed()
    players, said = _records(text, found)
    points = _USUAL | {code: Fraction(value) for code, value in _SYSTEM.findall(said.get("162", "")[4:])}
    points = {"P": points["W"], "A": points["L"]} | points
    name = said.get("012", "")[4:].strip() or "Chess tournament"
    rounds = max(len(player.rounds) for player in players.values())
    meetings = _meetings(name, players, said, rounds, found)
    if not _OF_TEAMS & said.keys():
        _check_points(players, points, rounds, found)
    found.refuse_if_any()
    entrants = tuple([player.entrant for player in players.values()])
    criteria, is_swiss = _criteria(said, found)
    usual = all(points[code] == amount for code, amount in (*_USUAL.items(), ("P", 1), ("A", 0)))
    table = BroughtRanking(
        name=name,
        like="chess-swiss" if is_swiss else "chess-round-robin",
        criteria=criteria,
        entrants=tuple([one.key for one in entrants]),
        points={} if usual else {outcome: _number(points[code]) for outcome, code in _OUTCOMES.items()},
    )
    return Brought(name=name, entrants=entrants, rankings=(table,), meetings=tuple(meetings), notes=found.notes)


def _records(text: str, found: Noticed) -> tuple[dict[int, _Player], dict[str, str]]:
    """The players by their numbers, and the first of each other record. Raises Unreadable."""
    players, said, taken = dict[int, _Player](), dict[str, str](), set[str]()
    for number, line in enumerate(re.split("\r\n|\r|\n", text), start=1):
        kind = line[:3]
        if kind == "001":
            _take_player(line, number, players, taken, found)
        elif len(line) >= 3 and not line.startswith("###"):
            said.setdefault(kind, line)
            if not _READ.fullmatch(kind):
                found.note(f"record {kind} is left out", f"line {number}")
    if not players:
        found.refuse_if_any()
        raise Unreadable("The file has no player (record 001).")
    return players, said


def _meetings(
    name: str, players: dict[int, _Player], said: dict[str, str], rounds: int, found: Noticed
) -> list[Meeting]:
    dates = [
        "-".join(("20" + date).split("/"))
        for date in re.findall("[0-9]{2}/[0-9]{2}/[0-9]{2}", said.get("132", "")[91:])
    ]
    first = said.get("042", "")[4:].strip().replace("/", "-")
    first = first if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", first) else ""
    return [
        Meeting(
            number=players[pair[0]].line,
            key=f"{name} {number}: {'-'.join(map(str, sorted(pair)))}",
            participants=tuple([players[one].entrant.key for one in pair]),
            score=score,
            date=dates[number - 1] if number <= len(dates) else first,
            round=number,
            location=said.get("022", "")[4:].strip(),
        )
        for number in range(1, rounds + 1)
        for pair, score in _round(number, players, found)
    ]


def _criteria(said: dict[str, str], found: Noticed) -> tuple[tuple[dict[str, Any], ...], bool]:
    """The order that the report says (record 212, or 202 after the points); empty: it says none. And whether it is a
    Swiss tournament: by the coded type, or else by the free text."""
    coded = said.get("192", "")[4:]
    is_swiss = not (_ROUND_ROBIN if coded.strip() else _ROUND_ROBIN_TEXT).search(coded or said.get("092", "")[4:])
    rules = {} if is_swiss else {"pairing": "predetermined"}
    start = said.get("042", "")[4:].strip()
    rules |= {"edition": "2024-08"} if start and start < EDITION_FROM else {}
    order = said.get("212", "")[4:] or said.get("202", "")[4:]
    criteria: list[dict[str, Any]] = [{"unity": "points"}]
    for name in filter(None, (part.strip().upper() for part in order.split(","))):
        tiebreak = _TIEBREAK.fullmatch(name)
        if tiebreak is not None and tiebreak[1] in TIEBREAKS:
            options = {_OPTIONS[kind]: int(number) for kind, number in re.findall("/([CML])([+-]?[0-9]+)", name)}
            criteria.append({"unity": "points", "tiebreak": tiebreak[1], **options, **rules})
        elif name != "PTS":
            found.note(f"tie-break {name} is left out")
    return (tuple(criteria) if order.strip() else ()), is_swiss


def _take_player(line: str, number: int, players: dict[int, _Player], taken: set[str], found: Noticed) -> None:
    where, own, name, points = f"line {number}", line[4:8].strip(), line[14:47].strip(), line[80:84].strip()
    if not _is_number(own) or int(own) == 0 or int(own) in players:
        found.fault(where, "columns 5 to 8 must have a start number of its own")
        return
    if not name:
        found.fault(where, "columns 15 to 47 must have a name")
    if points and not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,2})?", points, re.ASCII):
        found.fault(where, f"columns 81 to 84 must have points, and not {points!r}")
        points = ""
    rounds: list[_Round] = []
    for at in range(91, min(len(line.rstrip()), 91 + 10 * _ROUNDS_MAX), 10):
        opponent, colour, result = (
            line[at : at + 4].strip(),
            line[at + 5 : at + 6].lower(),
            line[at + 7 : at + 8].lower(),
        )
        if not _is_number(opponent or "0") or colour not in "wb- " or line[at + 4 : at + 5].strip():
            found.fault(
                where, f"columns {at + 1} to {at + 8} are not an opponent, a colour and a result; are they aligned?"
            )
            break
        rounds.append((int(opponent or "0"), colour.strip(" -"), result.strip()))
    fide, rating = line[57:68].strip(), line[48:52].strip()
    key = f"FIDE {int(fide)}" if _is_number(fide) and int(fide) else name
    key = f"{key} {int(own)}" if key in taken else key
    taken.add(key)
    rated = int(rating) if _is_number(rating) and int(rating) else None
    entrant = Entrant(key=key, name=name, rating=rated)
    players[int(own)] = _Player(number, entrant, Fraction(points) if points else None, rounds)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _of(player: _Player, number: int) -> _Round:
    """A round of the player; absent: one behind the end of the line."""
    return player.rounds[number - 1] if number <= len(player.rounds) else (0, "", "")


def _round(number: int, players: dict[int, _Player], found: Noticed) -> Iterator[tuple[tuple[int, ...], str]]:
    """The players of each game of a round, White first, with the score; and each unplayed round of one player."""
    for own, player in players.items():
        opponent, colour, result = _of(player, number)
        where = f"line {player.line}, round {number}"
        other = players.get(opponent)
        if opponent == 0:
            if result not in _BYES:
                found.fault(where, f"{result!r} is not a result of a round without an opponent")
            else:
                yield (own,), _BYES[result]
        elif result not in _SCORES:
            found.fault(where, f"{result!r} is not a result of a game")
        elif other is None or other is player:
            found.fault(where, f"there is no opponent {opponent}")
        else:
            back, its_colour, answer = _of(other, number)
            both_lost = result in _LOST and answer in _LOST and bool(result) and bool(answer)
            if back != own or (colour and colour == its_colour) or not (answer == _ANSWERS[result] or both_lost):
                found.fault(where, f"line {other.line} says otherwise about this game")
            elif own < opponent:
                white_first = colour == "w" or its_colour == "b" or not (colour or its_colour)
                score = (
                    ("0:0" if "-" not in result + answer else "-:-")
                    if both_lost
                    else _SCORES[result if white_first else answer]
                )
                yield ((own, opponent) if white_first else (opponent, own)), score


def _check_points(players: dict[int, _Player], points: dict[str, Fraction], rounds: int, found: Noticed) -> None:
    for player in players.values():
        total = Fraction(0)
        for opponent, _, result in (_of(player, number) for number in range(1, rounds + 1)):
            code = _CODES.get(result) if opponent else _CODES_OF_BYES.get(_BYES.get(result, ""))
            total += points[code] if code else 0
        if player.points is not None and total != player.points:
            said = _number(player.points)
            found.fault(f"line {player.line}", f"its results give {_number(total)} points, and it says {said}")


def _number(points: Fraction) -> str:
    return f"{float(points):g}"


TRF: Final = FileReader(
    name="TRF",
    suffixes=(".trf", ".trfx", ".txt"),
    recognises=lambda head: (
        re.search(rb"^(\xef\xbb\xbf)?0[0-9]{2} ", head) is not None
        and re.search(rb"(?:^|[\r\n])001 [ 0-9]{4} ", head) is not None
    ),
    read=read_trf,
)
