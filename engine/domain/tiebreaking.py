"""How tie-breaks over opponents may be declared, and by which edition of FIDE's regulations they are computed.

Pure. The values are computed in `projections/board/tiebreaks.py`.
"""

from collections.abc import Iterator
from collections.abc import Sequence as Items
from datetime import UTC, datetime
from itertools import islice
from typing import Final, get_args

from msgspec.structs import replace

from engine.domain.errors import Fault
from engine.domain.events import Criterion
from engine.domain.scoring import choose, worth
from engine.domain.state import RankingState, State
from engine.domain.terms import CUTS_MAX, TiebreakCode, TiebreakEdition

DATES_LOOKED_AT_MAX: Final = 1_000
"""Competitions whose dates decide on the edition: the first ones."""
_SINCE: Final[dict[TiebreakEdition, datetime]] = {
    "2024-08": datetime(2024, 8, 1, tzinfo=UTC),
    "2026-03": datetime(2026, 3, 1, tzinfo=UTC),
}
_NEWEST: Final[TiebreakEdition] = "2026-03"
_ONLY_FOR: Final[dict[str, tuple[TiebreakCode, ...]]] = {
    "cut": ("BH", "FB", "SB", "PS", "ARO"),
    "median": ("BH", "FB", "ARO"),
    "limit": ("KS",),
    "edition": get_args(TiebreakCode),
    "pairing": get_args(TiebreakCode),
}
_SWISS_ONLY: Final = ("BH", "FB", "AOB")


def with_editions(state: State, ranking: RankingState, criteria: Items[Criterion]) -> tuple[Criterion, ...]:
    """The criteria, their tie-breaks with the edition that was in force at the first competition, or the newest; with
    none if that is too long ago."""
    if all(one.tiebreak is None or one.edition is not None for one in criteria):
        return tuple(criteria)
    first = _first_date(state, ranking)
    in_force = [edition for edition, since in _SINCE.items() if first is None or since <= first]
    edition = in_force[-1] if in_force else None
    return tuple(
        [replace(one, edition=one.edition or edition) if one.tiebreak is not None else one for one in criteria]
    )


def tiebreak_faults(ranking: RankingState, criterion: Criterion) -> Iterator[Fault]:
    """Those of a criterion `with_editions`, in a ranking that has its unity."""
    code = criterion.tiebreak
    for name, codes in _ONLY_FOR.items():
        if getattr(criterion, name) and code not in codes:
            yield Fault(name, f"is only for the tie-breaks {', '.join(codes)}")
    if code is None:
        return
    if criterion.best is not None or criterion.among is not None or criterion.first or criterion.drop:
        yield Fault("tiebreak", "must be sent without best, drop, among and first")
    if criterion.cut and criterion.median:
        yield Fault("median", "must be sent without cut")
    for name, least in (("cut", 0), ("median", 0), ("limit", -CUTS_MAX)):
        if not least <= getattr(criterion, name) <= CUTS_MAX:
            yield Fault(name, f"must be from {least} to {CUTS_MAX}")
    if not (ranking.scorings if code == "ARO" else worth(ranking.scorings, criterion.unity_id, "win") is not None):
        yield Fault("tiebreak", "needs a scoring that gives points for wins in this unity")
    if criterion.edition is None:
        yield Fault(
            "edition", f"must be sent, as the first competition is older than {min(_SINCE)}: {', '.join(_SINCE)}"
        )
    if code in _SWISS_ONLY and criterion.pairing == "predetermined" and criterion.edition == _NEWEST:
        yield Fault("tiebreak", "is only for Swiss tournaments")


def _first_date(state: State, ranking: RankingState) -> datetime | None:
    """The date of the first competition that the ranking scores; None: it is not known."""
    dates = [
        one.date
        for one in islice(state.competitions.values(), DATES_LOOKED_AT_MAX)
        if one.date is not None and choose(ranking.scorings, one) is not None
    ]
    return min(dates, default=None)
