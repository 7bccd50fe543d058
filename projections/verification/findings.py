"""What checks find. They return or yield it, and one account for each tournament keeps it."""

from typing import Final

from msgspec import Struct, field

from engine.domain.terms import Sequence

TOURNAMENT_DIFFERENCES_MAX: Final = 1_000
"""Differences that are kept for one tournament. Further ones are only counted."""


class Finding(Struct, frozen=True):
    """One violation of a check. `sequence` None: it concerns no particular event."""

    sequence: Sequence | None
    field: str
    message: str


class Unchecked(Struct, frozen=True):
    """What could not be looked at, and why."""

    what: str


Reported = Finding | Unchecked


class Difference(Struct, frozen=True, kw_only=True):
    """A finding, and the slug of the tournament that has it, or "" for none."""

    tournament: str
    sequence: Sequence | None
    field: str
    message: str

    def __str__(self) -> str:
        where = self.tournament or "the database"
        at = "" if self.sequence is None else f" at sequence {self.sequence}"
        return f"{where}{at}: {self.field}: {self.message}"


class Account(Struct):
    """What was found in one tournament. `differences`: the first TOURNAMENT_DIFFERENCES_MAX of `count`."""

    differences: list[Difference] = field(default_factory=list)
    count: int = 0
    unchecked: list[str] = field(default_factory=list)

    def take(self, slug: str, found: Reported) -> Difference | None:
        """Adds what was found. Returns it if it is a difference, and kept."""
        if isinstance(found, Unchecked):
            self.unchecked.append(found.what)
            return None
        self.count += 1
        if len(self.differences) >= TOURNAMENT_DIFFERENCES_MAX:
            return None
        kept = Difference(tournament=slug, sequence=found.sequence, field=found.field, message=found.message)
        self.differences.append(kept)
        return kept
