"""What a file of another program would make, in the words of its reader: competitors, rankings, competitions. Pure.

Everything has a key: its id in the file, or else what distinguishes it there. By their keys, the next state of the same
file corrects what an earlier one brought.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from engine.domain.errors import Fault, Unreadable
from engine.domain.notation import Notation

FILE_BYTES_MAX: Final = 64 * 2**20
"""Bytes of a file that is brought."""
DEFECTS_SHOWN: Final = 20
NOTES_SHOWN: Final = 20


class Entrant(Struct, frozen=True, kw_only=True):
    """A competitor. Of a person only this much is kept. `tags`: the club."""

    key: str
    name: str
    tags: tuple[str, ...] = ()
    rating: int | None = None


class Meeting(Struct, frozen=True, kw_only=True):
    """A competition. `number`: the line of the file that names it. `participants`, `winner`: keys of entrants. `score`:
    as in files of competitions: a score, or the performance of each participant, separated by `|`; empty: it is still
    to be played. `date`: a day or time, with or without an offset."""

    number: int
    key: str
    participants: tuple[str, ...]
    score: str = ""
    winner: str = ""
    date: str = ""
    group: int = 1
    round: int | None = None
    round_name: str = ""
    location: str = ""


class BroughtRanking(Struct, frozen=True, kw_only=True):
    """A ranking. `like`: the kind of ranking that it is created as; empty: the file does not tell. `groups`: of the
    competitions that it scores. `points`: what an outcome gives in the main unity, as the table of an award names it,
    if it is other than in the kind; `factors` by what awards read, likewise. `criteria`: in the form of those of kinds;
    empty: those of the kind."""

    name: str
    entrants: tuple[str, ...]
    groups: tuple[int, ...] = (1,)
    like: str = ""
    points: dict[str, str] = {}
    factors: dict[str, int] = {}
    criteria: tuple[dict[str, Any], ...] = ()


class Brought(Struct, frozen=True, kw_only=True):
    """What a file would make. `name`: of the tournament. `notes`: what is left out of it, and why, a sentence each."""

    name: str
    entrants: tuple[Entrant, ...]
    rankings: tuple[BroughtRanking, ...]
    meetings: tuple[Meeting, ...]
    notes: tuple[str, ...] = ()


class FileReader(Struct, frozen=True, kw_only=True):
    """A reader. `name`: of the format, as people call it. `suffixes`: of files that may have it. `recognises`: whether
    a file that begins with these bytes has it. `read` raises Unreadable, naming lines or elements."""

    name: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    read: Callable[[bytes], Brought]


class Noticed:
    """Collects what is wrong with a file, and what is left out of it."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._count = 0
        self._notes: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._unplayed: list[str] = []

    def fault(self, where: str, what: str) -> None:
        self._count += 1
        if len(self._faults) < DEFECTS_SHOWN:
            self._faults.append(Fault(where, what))

    def note(self, what: str, where: str = "") -> None:
        """Notes that something is left out: each kind of thing once, with its number and where it first is."""
        self._notes[what] += 1
        self._first.setdefault(what, where)

    def unplayed(self, match: str, why: str) -> None:
        """Notes of a match that its score is left out, and why."""
        self._unplayed.append(f"{match} is recorded without its result, because it was {why}")

    def refuse_if_any(self) -> None:
        if self._faults:
            more = f" ({self._count:,} in all)" if self._count > len(self._faults) else ""
            raise Unreadable(f"The file cannot be brought; correct these places{more}.", self._faults)

    @property
    def notes(self) -> tuple[str, ...]:
        shown = bounded(self._unplayed, "matches are recorded without their results")
        for what, count in self._notes.most_common(NOTES_SHOWN):
            places = ", ".join(filter(None, (self._first[what], f"{count:,} times" if count > 1 else "")))
            shown.append(f"{what} ({places})" if places else what)
        return tuple(shown)


def taking_part(entrants: Mapping[str, Entrant], tables: Iterable[BroughtRanking]) -> tuple[Entrant, ...]:
    """Those of the entrants, by key, that stand in a ranking."""
    keys = {key for table in tables for key in table.entrants}
    return tuple([entrant for key, entrant in entrants.items() if key in keys])


def bounded(sentences: list[str], rest: str) -> list[str]:
    """The first NOTES_SHOWN sentences, and how many more there are: what `rest` says of these."""
    more = len(sentences) - NOTES_SHOWN
    return sentences[:NOTES_SHOWN] + ([f"{more:,} more {rest}"] if more > 0 else [])


def text_of(content: bytes) -> str:
    """The text of a file, in UTF-8. Raises Unreadable."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"The file is not UTF-8 (at byte {error.start}); save it as UTF-8.") from error


def decoded(text: str | bytes, kind: Any, where: str) -> Any:
    """The JSON as `kind`. Raises Unreadable."""
    try:
        return msgspec.json.decode(text, type=kind, strict=False)
    except RecursionError:
        raise Unreadable("The file cannot be brought.", [Fault(where, "it is nested too deeply")]) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Unreadable("The file cannot be brought.", [Fault(where, str(error))]) from error


def whole(text: str) -> int | None:
    """The number; None: the text is not one of at most nine digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


clock: Final = Notation(time="ms").text
"""A time in milliseconds, as competitions have it: `1:02:03.4`."""
