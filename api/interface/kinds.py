"""Well-known kinds of rankings, as data (`kinds.json`): unities, scorings and criteria, by the names of unities.

The amounts in scorings are in the smallest unit of their unity, as everywhere.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from engine.domain.events import Criterion
from engine.domain.options import UnityOptions
from engine.domain.scoring import Scoring
from engine.domain.terms import Sort, UnityId


class KindUnity(UnityOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    sort: Sort = Sort.DESC


class RankingKind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`about`: a sentence on what counts. `results`: examples of what a competition's result says of a participant, or
    of two. `unities`: the main one first. `scorings` and `criteria` name unities in the field `unity`."""

    about: str
    results: tuple[str, ...]
    unities: Annotated[tuple[KindUnity, ...], Meta(min_length=1)]
    scorings: tuple[dict[str, Any], ...]
    criteria: tuple[dict[str, Any], ...] = ()

    def scorings_with(self, ids: Mapping[str, UnityId]) -> tuple[Scoring, ...]:
        """The scorings of a ranking whose unities have these ids, by name."""
        return msgspec.convert(_with_ids(self.scorings, ids), tuple[Scoring, ...])

    def criteria_with(self, ids: Mapping[str, UnityId]) -> tuple[Criterion, ...]:
        """The criteria of the classification; empty: only the main unity decides."""
        return msgspec.convert(_with_ids(self.criteria, ids), tuple[Criterion, ...])


@cache
def kinds() -> Mapping[str, RankingKind]:
    """All kinds, by the names by which they are asked for."""
    text = files("api.interface").joinpath("kinds.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, RankingKind])


def _with_ids(value: Any, ids: Mapping[str, UnityId]) -> Any:
    """The same with `unity_id` for each `unity`."""
    if isinstance(value, dict):
        pairs = ((k, v) if k != "unity" else ("unity_id", ids[v]) for k, v in value.items())
        return {key: _with_ids(part, ids) for key, part in pairs}
    return [_with_ids(part, ids) for part in value] if isinstance(value, (list, tuple)) else value
