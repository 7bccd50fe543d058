"""What clients asked for and what they were told: the one thing, with the database, that a run is judged against.

Every attempt is written down: when it began and ended, by which service, with which key, what was asked, and the
outcome, which is *ok* (2xx), *no* (4xx, 503, or never sent: certainly not applied by this attempt) or *unknown* (500,
cut, timeout).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

Line = tuple[int, int, int]
"""Competitor, unity, amount."""


class Kind(StrEnum):
    ADD = "add"
    COMPETITION = "competition"
    REVISE = "revise"
    LIST = "list"
    REGISTER = "register"
    RANKING = "ranking"
    UNITY = "unity"
    CLOSE = "close"
    REOPEN = "reopen"
    VOID = "void"
    UNVOID = "unvoid"
    ERASE = "erase"


class Outcome(StrEnum):
    OK = "ok"
    NO = "no"
    UNKNOWN = "unknown"


class Asked(Struct, frozen=True, gc=False):
    """One thing that a client wants. Asked for again it is the same. `mark`: what its event can be known by, even
    without a key; for a revision the text, for an add its first amount, for what has a name a part of that. `target`:
    the competition, the ranking or the competitor that it is about; 0: none, or that of the arena."""

    number: int
    client: int
    tournament: int
    kind: Kind
    key: str | None
    lines: tuple[Line, ...] = ()
    mark: int = 0
    target: int = 0


class Shown(Struct, frozen=True, gc=False):
    """A standing as an answer showed it: of each unity, by its place, the version and the totals by competitor."""

    versions: tuple[int, ...]
    totals: tuple[tuple[tuple[int, int], ...], ...]


class Attempt(Struct, gc=False):
    asked: Asked
    service: int
    began: float
    ended: float = 0.0
    outcome: Outcome = Outcome.UNKNOWN
    status: int = 0
    sequence: int = 0
    replayed: bool = False
    shown: Shown | None = None
    count: int = -1
    """Of competitions, as a list showed it."""
    made: int = 0
    """The id of what was created, as the answer said it."""
    why: str = ""


class Replacement(Struct, frozen=True, gc=False):
    """The database was put back to what it was: what was done from `began` on may be lost, until it was there again,
    at `done`."""

    began: float
    done: float


class History:
    """All attempts, in the order in which they began."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.last_ok: dict[int, float] = {}
        """By service: when the last attempt began that it answered with ok."""
        self.replacements: list[Replacement] = []
        self.made: dict[tuple[int, Kind], list[int]] = {}
        """By tournament and kind: ids of competitions and rankings that were created, as far as clients know."""

    def begin(self, asked: Asked, service: int, now: float) -> Attempt:
        attempt = Attempt(asked, service, now)
        self.attempts.append(attempt)
        return attempt

    def end(self, attempt: Attempt, now: float) -> None:
        attempt.ended = now
        if attempt.outcome is Outcome.OK:
            self.last_ok[attempt.service] = max(attempt.began, self.last_ok.get(attempt.service, 0.0))

    def replaced(self, began: float, done: float) -> None:
        """The database was put back; what clients knew of is forgotten, because they cannot know what is left of it."""
        self.replacements.append(Replacement(began, done))
        self.made.clear()

    @property
    def whole_since(self) -> float:
        """Since when nothing was lost."""
        return max((one.done for one in self.replacements), default=0.0)

    def sure(self, attempt: Attempt) -> bool:
        """Whether what the attempt saw is still so: nothing was put back to before it since."""
        return all(attempt.began >= one.done or attempt.ended <= one.began for one in self.replacements)

    def outcomes(self) -> Counter[Outcome]:
        return Counter(attempt.outcome for attempt in self.attempts)

    def ok(self) -> Iterator[Attempt]:
        return (attempt for attempt in self.attempts if attempt.outcome is Outcome.OK)

    def deltas_acknowledged(self) -> int:
        """Lines of adds that were acknowledged, each add once."""
        return sum(len(asked.lines) for asked in {a.asked.number: a.asked for a in self.ok()}.values())

    def write(self, path: Path) -> None:
        path.write_bytes(b"\n".join(map(msgspec.json.encode, self.attempts)))


# ── What an answer says ─────────────────────────────────────────────────────────────────────────────────


class _Standing(Struct):
    competitor_id: int
    total: int


class _Unity(Struct):
    version: int
    competitors_ranking: list[_Standing]


class _Ranking(Struct):
    unities: list[_Unity]


class _Changed(Struct):
    ranking: _Ranking


_decode: Final = msgspec.json.Decoder(_Changed).decode


def shown_by(body: bytes) -> Shown:
    unities = _decode(body).ranking.unities
    return Shown(
        tuple(unity.version for unity in unities),
        tuple(tuple(sorted((s.competitor_id, s.total) for s in unity.competitors_ranking)) for unity in unities),
    )


def sums(asked: Iterable[Asked]) -> Counter[tuple[int, int]]:
    """By unity and competitor."""
    found: Counter[tuple[int, int]] = Counter()
    for one in asked:
        for competitor, unity, amount in one.lines:
            found[unity, competitor] += amount
    return found


def seconds_of(values: list[float]) -> str:
    """Their median and their greatest, for people."""
    if not values:
        return "-"
    ordered = sorted(values)
    return f"p50 {ordered[len(ordered) // 2]:.1f} s, max {ordered[-1]:.1f} s"


def percentile(attempts: list[Attempt], share: float) -> float:
    """Of the seconds that attempts took which ended with ok; 0 where there are none."""
    waits = sorted(a.ended - a.began for a in attempts if a.outcome is Outcome.OK)
    return waits[min(len(waits) - 1, int(share * len(waits)))] if waits else 0.0
