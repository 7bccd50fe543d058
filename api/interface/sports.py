"""The words of a sport, in the languages of boards (`sports.json`): what it calls competitors, competitions and those
to come, and the columns of its tables, in their order.

No ranking remembers its kind, so it is known by its unities and scorings: a ranking that was made otherwise, but scores
like football, is of football.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from api.interface.kinds import Kind, kinds
from engine.domain.awards import Scoring
from engine.domain.terms import UnityId

_COMPETITOR: Final = "competitor"
_COMPETITION: Final = "competition"
PLACE: Final = re.compile(r"\{(\w+)\}", re.ASCII)
"""A place in a text."""
_TELLING: Final = 4
"""Unities whose names say the kind, whatever is scored."""
_LOOKED_AT: Final = 100
"""Rankings among which a sport is sought."""


class SportColumn(Struct, frozen=True):
    """What a column is called: in a table, and in full."""

    short: str
    text: str


class Sport(Struct, frozen=True):
    """What a sport calls competitors and competitions: the names of terms."""

    competitor: str = _COMPETITOR
    competition: str = _COMPETITION

    def __call__(self, text: str, language: str = "en") -> str:
        """The text, with its words in the places of {team}, {teams}, {match}, {matches}, and these with a capital, and
        of {Fixtures}, a heading. Other places stay."""
        places = _places(self.competitor, self.competition, language)
        return PLACE.sub(lambda found: places.get(found[1], found[0]), text)


ANY_SPORT: Final = Sport()
"""One that is not known."""


class _Unity(Protocol):
    @property
    def name(self) -> str: ...


class _Ranking(Protocol):
    @property
    def unities(self) -> Mapping[UnityId, _Unity]: ...
    @property
    def scorings(self) -> tuple[Scoring, ...]: ...


def kind_of(ranking: _Ranking) -> Kind | None:
    """The kind that the ranking is of, if it has its unities and scores like it; the names of many are enough."""
    ids = {unity.name: unity_id for unity_id, unity in ranking.unities.items()}
    found = _by_unities().get(frozenset(ids), [])
    alike = [kind for kind in found if kind.scorings and kind.scorings_with(ids) == ranking.scorings]
    return next(iter(alike or (found if len(ids) >= _TELLING else [])), None)


def sport_of(rankings: Iterable[_Ranking]) -> Sport:
    """The sport of the first ranking that is of a kind."""
    for ranking in islice(rankings, _LOOKED_AT):
        if (kind := kind_of(ranking)) is not None:
            return Sport(kind.competitor, kind.competition)
    return ANY_SPORT


def column_of(unity: str, language: str) -> SportColumn | None:
    """What a language calls the column of a unity with this name; None: no kind has one."""
    found = _table()["columns"].get(unity)
    return None if found is None else SportColumn(*found[language].split("|"))


def in_order(unities: Iterable[str]) -> list[int]:
    """The numbers of the columns as tables of sports have them: what was played first, points last. All numbers, in
    their order, if a column is of no sport."""
    names, known = [*unities], [*_table()["columns"]]
    numbers = [*range(len(names))]
    return sorted(numbers, key=lambda number: known.index(names[number])) if set(names) <= {*known} else numbers


@cache
def _by_unities() -> Mapping[frozenset[str], list[Kind]]:
    found: dict[frozenset[str], list[Kind]] = {}
    for kind in kinds().values():
        found.setdefault(frozenset(unity.name for unity in kind.unities), []).append(kind)
    return found


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    return msgspec.json.decode(
        Path(__file__).with_name("sports.json").read_bytes(), type=dict[str, dict[str, dict[str, str]]]
    )


@cache
def _places(competitor: str, competition: str, language: str) -> Mapping[str, str]:
    terms = _table()["terms"]
    words = [one for term in (competitor, competition) for one in terms[term][language].split("|")]
    places = dict(zip(("team", "teams", "match", "matches", "fixtures"), words, strict=True))
    return places | {name.capitalize(): word[:1].upper() + word[1:] for name, word in places.items()}
