"""What people type to name a competitor, competition, ranking or unity of a tournament: its id or its name, and of a
competitor or competition the key that the organiser gave it.

A number may be an id or a name. If one has it as its id and another has it as its name, it is refused, and so is a name
that several have; `id:4` is an id alone, `name:4` a name, `key:4` a key. Nothing else decides what a text means
(`meant`), in commands, forms and files. A name that no competitor has is that of the one that had it before.

A competition has no name of its own. Its participants name it, if they are one or two: "Swansea City - Norwich City",
with a hyphen or a dash between them.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Sequence as Items
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Any, Final, TypeVar

from msgspec import Struct

from api.interface.competition_names import BETWEEN, competition_name
from engine.domain.errors import Fault, NotFound, Unacceptable, existing
from engine.domain.ids import parse_id
from engine.domain.names import name_key
from engine.domain.state import Keyed
from engine.domain.steps import Steps, finished
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.answers.lookup import ranking_of
from projections.answers.names import NamesById
from projections.board.board import Board, Competition, Competitor

IDS_LISTED_MAX: Final = 20
"""Ids that a refusal lists of those who share a name."""
SIMILAR_MAX: Final = 3
"""Similar names that a refusal of an unknown one lists."""
COMPARED_MAX: Final = 5_000
"""Names that an unknown one is compared with. Where there are more, a refusal lists no similar ones."""
UNKNOWN_COMPARED_MAX: Final = 10
"""Unknown names of one request or file for which similar ones are sought."""
_SIMILAR_FROM: Final = 0.6
"""As in `difflib.get_close_matches`, which would compare with all names without a pause."""
_T = TypeVar("_T")


class Typed(Struct, frozen=True):
    """What a text may mean: an `id`, and what has this `name_key`, or a `key`; None: not that."""

    id: int | None
    name: str | None
    key: str | None = None


def typed(text: str) -> Typed:
    kind, _, rest = text.strip().partition(":")
    if kind == "id" and (number := parse_id(rest.strip())) is not None:
        return Typed(number, None)
    if kind == "name" and rest.strip():
        return Typed(None, name_key(rest))
    if kind == "key" and rest.strip():
        return Typed(None, None, name_key(rest))
    return Typed(parse_id(text.strip()), name_key(text))


def meant(what: str, said: Typed, own: str | None, named: Items[_T]) -> int | _T | None:
    """The one that is meant, or its id; None: nothing is. `what` it is. `own`: the name of the one with the id that was
    said; None: there is none. `named`: those with the name that was said, or their ids. Raises Unacceptable if several
    may be meant."""
    if own is not None:
        if others := [one for one in named if one != said.id]:
            raise Unacceptable(
                f"{said.id} is the id of {what} {own!r} and the name of {what} {_listed(others)}; write id:{said.id} "
                f"or name:{said.id}."
            )
        return said.id
    if len(named) > 1:
        raise Unacceptable(f"{len(named):,} {what}s are named {said.name!r}; give the id of one: {_listed(named)}.")
    return named[0] if named else None


def _listed(those: Items[object]) -> str:
    more = f" and {len(those) - IDS_LISTED_MAX:,} more" if len(those) > IDS_LISTED_MAX else ""
    return ", ".join(map(str, those[:IDS_LISTED_MAX])) + more


class Names:
    """The names of a board, which does not change meanwhile.

    Each method raises Unacceptable for a text that may mean several, and NotFound for one that means nothing. A number
    that is neither an id nor a name is returned as an id, so that it is refused as over HTTP. Steps read all names
    first, of which there may be a million.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._ids: dict[str, Mapping[str, list[int]]] = {}
        self._compared = 0

    def ranking(self, text: str) -> RankingId:
        those = self._board.rankings
        return RankingId(finished(self._found("ranking", text, those, those.items, lambda one: [one.name])))

    def competitor(self, text: str) -> CompetitorId:
        return finished(self.competitor_in_steps(text))

    def competitor_in_steps(self, text: str) -> Steps[CompetitorId]:
        those = self._board.competitors
        return CompetitorId((yield from self._found("competitor", text, those, those.walk, _names_of_competitor)))

    def enrolled(self, ranking_id: RankingId) -> tuple[CompetitorId, ...]:
        """The competitors of a ranking, in their order. Raises NotFound."""
        return tuple(existing(self._board.rankings, "ranking", ranking_id).participants)

    def text_of(self, competitor_id: CompetitorId) -> str:
        """How a list of competitors, separated by |, names this one: by name, unless it may mean another."""
        name = self._board.competitors[competitor_id].name
        try:
            is_meant = "|" not in name and self.competitor(name) == competitor_id
        except Unacceptable:
            is_meant = False
        return name if is_meant else f"id:{competitor_id}"

    def competitors(self, texts: Iterable[str]) -> tuple[CompetitorId, ...]:
        return tuple(map(self.competitor, texts))

    def performances(self, text: str) -> Steps[dict[CompetitorId, str]]:
        """The performances in a JSON object by the ids or names of participants."""
        try:
            pairs = json.loads(text, object_pairs_hook=tuple)  # keeps a key that is there twice; an array is a list
        except (ValueError, RecursionError):
            pairs = None
        if not isinstance(pairs, tuple) or not all(isinstance(performance, str) for _, performance in pairs):
            raise _misread('must be a JSON object of performances by id or name: {"Ann": "1:02.3", "Bob": "1:03.0"}')
        result: dict[CompetitorId, str] = {}
        for name, performance in pairs:
            result[(yield from self.competitor_in_steps(name))] = performance
            yield
        if len(result) < len(pairs):
            raise _misread("names a competitor more than once")
        return result

    def competition(self, text: str) -> CompetitionId:
        return finished(self.competition_in_steps(text))

    def competition_in_steps(self, text: str) -> Steps[CompetitionId]:
        those, names = self._board.competitions, NamesById(self._board)

        def names_of(one: Competition) -> list[str]:
            return [_with_dashes(competition_name(names, one))]

        return CompetitionId((yield from self._found("competition", _with_dashes(text), those, those.walk, names_of)))

    def unity(self, ranking_id: RankingId, text: str) -> UnityId:
        """Raises NotFound also for a ranking that is not there."""
        those, whose = ranking_of(self._board, ranking_id).unities, f"Ranking {ranking_id}"
        found = finished(self._found("unity", text, those, those.items, lambda one: [one.name], whose))
        if found not in those:
            raise NotFound(f"{whose} has no unity {found}.")
        return UnityId(found)

    def unity_or_main(self, ranking_id: RankingId, text: str | None) -> UnityId:
        """None: the main one. Raises as `unity`."""
        return next(iter(ranking_of(self._board, ranking_id).unities)) if text is None else self.unity(ranking_id, text)

    def _found(
        self,
        what: str,
        text: str,
        those: Mapping[Any, _T],
        items: Callable[[], Iterable[tuple[int, _T]]],
        names_of: Callable[[_T], Items[str]],
        whose: str = "This tournament",
    ) -> Steps[int]:
        said, named = typed(text), list[int]()
        if said.key is not None:
            keyed = those.by_key(said.key) if isinstance(those, Keyed) else None
            if keyed is None:
                raise NotFound(f"{whose} has no {what} with the key {said.key!r}.")
            return int(keyed)
        if said.name is not None:
            if (kind := f"{what} of {whose}") not in self._ids:
                self._ids[kind] = yield from _ids_by_name((one, names_of(it)) for one, it in items())
            named = self._ids[kind].get(said.name, named)
        own = names_of(those[said.id])[0] if said.id in those else None
        if (found := meant(what, said, own, named) or said.id) is None:
            similar = yield from self._similar(said.name or "", self._ids[kind])
            raise NotFound(f"{whose} has no {what} {said.name!r}.{similar}")
        return found

    def _similar(self, unknown: str, names: Collection[str]) -> Steps[str]:
        """A sentence with the most similar names, or nothing. Upper and lower case are alike."""
        self._compared += 1
        if self._compared > UNKNOWN_COMPARED_MAX or len(names) > COMPARED_MAX:
            return ""
        by_folded = {name.casefold(): name for name in names}
        compared, found = SequenceMatcher[str](b=unknown.casefold()), list[tuple[float, str]]()
        for folded in by_folded:
            compared.set_seq1(folded)
            if min(compared.real_quick_ratio(), compared.quick_ratio()) >= _SIMILAR_FROM:
                found.append((compared.ratio(), folded))
            yield
        nearest = nlargest(SIMILAR_MAX, [one for one in found if one[0] >= _SIMILAR_FROM])
        return f" Similar: {', '.join([repr(by_folded[folded]) for _, folded in nearest])}." if nearest else ""


def _misread(reason: str) -> Unacceptable:
    return Unacceptable("The result cannot be read.", [Fault("result", reason)])


def _with_dashes(name: str) -> str:
    """The name of a competition, which may be written with hyphens. Names of participants may hold some, too."""
    return name.replace(" - ", BETWEEN)


def _names_of_competitor(competitor: Competitor) -> list[str]:
    return [competitor.name, *competitor.former]


def _ids_by_name(named: Iterable[tuple[int, Items[str]]]) -> Steps[Mapping[str, list[int]]]:
    """The ids of those with each name. Of the names of one, the first is the present one, which goes before former
    names of others."""
    ids, former = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for item_id, (name, *others) in named:
        if name:
            ids[name_key(name)].append(item_id)
        for other in others:
            former[name_key(other)].append(item_id)
        yield
    for name, those in former.items():
        ids.setdefault(name, those)
        yield
    return ids
