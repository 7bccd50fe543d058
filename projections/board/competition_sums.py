"""What each competitor got in each competition, in one unity: the sums of the deltas that name a competition.

Pure. Deltas without a competition are free, and not among these. A competition that is voided keeps its sum here, which
its reversals have brought to 0; `Board.voided` tells which do not count.

For each competitor there is one array of pairs: competition, sum, competition, sum …, ascending by competition. Ids
ascend over time, so the pair that changes is nearly always the last one or a new one at the end; any other is found by
bisection. Measured, a pair takes 24 bytes where a competitor has 40 of them, and 220 where each has only one.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from typing import Final, TypeAlias

from engine.domain.terms import CompetitionId, CompetitorId

_Pairs: TypeAlias = "array[int] | list[int]"
_PAIR_BYTES: Final = 18
_COMPETITOR_BYTES: Final = 200


class CompetitionSums(Mapping[CompetitorId, Mapping[CompetitionId, int]]):
    """It has a competitor with a sum, be it 0, in each competition that a delta of theirs named."""

    def __init__(self) -> None:
        self._pairs: dict[CompetitorId, _Pairs] = {}
        self._count = 0

    # ── Questions ───────────────────────────────────────────────────────────────────────────────────────

    def __getitem__(self, competitor_id: CompetitorId) -> Mapping[CompetitionId, int]:
        """A competitor's sums. Raises KeyError for one who has none."""
        pairs = self._pairs[competitor_id]
        return dict(_sums(pairs))

    def __iter__(self) -> Iterator[CompetitorId]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def __eq__(self, other: object) -> bool:
        return self._pairs == other._pairs if isinstance(other, CompetitionSums) else super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr({competitor_id: self[competitor_id] for competitor_id in self})

    def of(self, competitor_id: CompetitorId) -> list[tuple[CompetitionId, int]]:
        """A competitor's competitions, ascending by id, each with the sum; none for one who has none."""
        return _sums(self._pairs.get(competitor_id, ()))

    def sum(self, competitor_id: CompetitorId, competition_id: CompetitionId) -> int | None:
        """A competitor's sum in one competition; None: no delta of theirs named it."""
        pairs = self._pairs.get(competitor_id, ())
        n = _place(pairs, competition_id)
        return pairs[2 * n + 1] if 2 * n < len(pairs) and pairs[2 * n] == competition_id else None

    @property
    def pairs(self) -> Mapping[CompetitorId, _Pairs]:
        """Each competitor's pairs: competition, sum, competition, sum …, ascending by competition. Do not change
        them."""
        return self._pairs

    @property
    def size_bytes(self) -> int:
        """Bytes in memory, estimated."""
        return len(self._pairs) * _COMPETITOR_BYTES + self._count * _PAIR_BYTES

    # ── Changes ─────────────────────────────────────────────────────────────────────────────────────────

    def add(self, competitor_id: CompetitorId, competition_id: CompetitionId, amount: int) -> None:
        """Adds `amount` to what a competitor got in a competition."""
        pairs = self._pairs.get(competitor_id)
        if pairs is None:
            self._pairs[competitor_id] = array("q", (competition_id, amount))
            self._count += 1
        elif pairs[-2] < competition_id:
            pairs.append(competition_id)
            pairs.append(amount)
            self._count += 1
        else:
            self._add_within(competitor_id, pairs, competition_id, amount)

    def put(self, competitor_id: CompetitorId, pairs: _Pairs) -> None:
        """Sets all pairs of a competitor who has none, as `pairs` gives them."""
        self._pairs[competitor_id] = pairs
        self._count += len(pairs) // 2

    def _add_within(
        self, competitor_id: CompetitorId, pairs: _Pairs, competition_id: CompetitionId, amount: int
    ) -> None:
        """Adds to a pair that is there, or to a new one before the last."""
        n = len(pairs) // 2 - 1 if pairs[-2] == competition_id else _place(pairs, competition_id)
        if pairs[2 * n] != competition_id:
            pairs.insert(2 * n, competition_id)
            pairs.insert(2 * n + 1, 0)
            self._count += 1
        try:
            pairs[2 * n + 1] += amount
        except OverflowError:
            wide = self._pairs[competitor_id] = list(pairs)
            wide[2 * n + 1] += amount


def _place(pairs: Items[int], competition_id: CompetitionId) -> int:
    """How many pairs stand before that of a competition."""
    return bisect_left(memoryview(pairs)[::2] if isinstance(pairs, array) else pairs[::2], competition_id)


def _sums(pairs: Items[int]) -> list[tuple[CompetitionId, int]]:
    return list(zip(map(CompetitionId, pairs[::2]), pairs[1::2], strict=True))
