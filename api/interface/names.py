"""Names in the place of ids: which competitor, competition, ranking or unity of a tournament an argument means.

A number means what has it as its id. Any other text means what has it as its name, and so does a number that is no id
here. A name that several have is refused, with their ids.

A competition has no name of its own. Its participants name it, if they are one or two: "Swansea City - Norwich City",
with a hyphen or a dash between them.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import SequenceMatcher
from functools import cached_property
from heapq import nlargest
from typing import Final, TypeVar

from api.interface.competition_names import BETWEEN, competition_name
from engine.domain.errors import NotFound, Unacceptable
from engine.domain.ids import parse_id
from engine.domain.steps import Steps, finished
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, UnityId
from projections.answers.lookup import ranking_of
from projections.answers.names import NamesById
from projections.board.board import Board

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
_K = TypeVar("_K", bound=int)


class Names:
    """The names of a board, which does not change meanwhile.

    Each method raises Unacceptable for a name that several have, and NotFound for one that nothing has. A number that
    is neither an id nor a name is returned as an id, so that it is refused as over HTTP.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._compared = 0

    def ranking(self, text: str) -> RankingId:
        rankings = self._board.rankings
        named = _ids_by_name((i, r.name) for i, r in rankings.items())
        return RankingId(finished(self._meant("ranking", text, rankings, lambda: named)))

    def competitor(self, text: str) -> CompetitorId:
        return finished(self.competitor_in_steps(text))

    def competitor_in_steps(self, text: str) -> Steps[CompetitorId]:
        meant = yield from self._meant("competitor", text, self._board.competitors, lambda: self._competitors)
        return CompetitorId(meant)

    def read_competitors(self, texts: Iterable[str]) -> Steps[None]:
        """Reads the names of all competitors in steps, if one of the texts may be a name: there may be a million."""
        for text in texts:
            yield
            if parse_id(text) not in self._board.competitors:
                competitors = self._board.competitors.run(1, len(self._board.competitors))
                self._competitors = yield from _ids_by_name_steps((one, its.name) for one, its in competitors)
                return

    def competitors(self, texts: Iterable[str]) -> tuple[CompetitorId, ...]:
        return tuple(map(self.competitor, texts))

    def competition(self, text: str) -> CompetitionId:
        competitions = self._board.competitions
        meant = self._meant("competition", _with_dashes(text), competitions, lambda: self._competitions)
        return CompetitionId(finished(meant))

    def unity(self, ranking_id: RankingId, text: str) -> UnityId:
        """Raises NotFound also for a ranking that is not there."""
        unities = ranking_of(self._board, ranking_id).unities
        number = parse_id(text)
        if number in unities:
            return UnityId(number)
        for unity_id, unity in unities.items():
            if unity.name == text.strip():
                return unity_id
        similar = "" if number else finished(self._similar(text, [unity.name for unity in unities.values()]))
        raise NotFound(f"Ranking {ranking_id} has no unity {text if number else repr(text)}.{similar}")

    def unity_or_main(self, ranking_id: RankingId, text: str | None) -> UnityId:
        """None: the main one. Raises as `unity`."""
        return next(iter(ranking_of(self._board, ranking_id).unities)) if text is None else self.unity(ranking_id, text)

    @cached_property
    def _competitors(self) -> Mapping[str, list[CompetitorId]]:
        return _ids_by_name((competitor_id, c.name) for competitor_id, c in self._board.competitors.items())

    @cached_property
    def _competitions(self) -> Mapping[str, list[CompetitionId]]:
        return _ids_by_name(
            (i, _with_dashes(name))
            for i, c in self._board.competitions.items()
            if (name := competition_name(NamesById(self._board), c))
        )

    def _meant(
        self, what: str, text: str, those: Mapping[_K, object], named: Callable[[], Mapping[str, list[_K]]]
    ) -> Steps[int]:
        number = parse_id(text)
        if number is not None and number in those:
            return number
        name, all_named = text.strip(), named()
        ids = all_named.get(name, [])
        if len(ids) > 1:
            listed = ", ".join(map(str, ids[:IDS_LISTED_MAX]))
            more = f" and {len(ids) - IDS_LISTED_MAX:,} more" if len(ids) > IDS_LISTED_MAX else ""
            raise Unacceptable(f"{len(ids):,} {what}s are named {name!r}; give the id of one: {listed}{more}.")
        if ids:
            return ids[0]
        if number is not None:
            return number
        similar = yield from self._similar(name, all_named)
        raise NotFound(f"This tournament has no {what} {name!r}.{similar}")

    def _similar(self, unknown: str, names: Collection[str]) -> Steps[str]:
        """A sentence with the most similar names, or nothing. Upper and lower case are alike."""
        self._compared += 1
        if self._compared > UNKNOWN_COMPARED_MAX or len(names) > COMPARED_MAX:
            return ""
        by_folded = {name.casefold(): name for name in names if name}
        compared, found = SequenceMatcher[str](b=unknown.casefold()), list[tuple[float, str]]()
        for folded in by_folded:
            compared.set_seq1(folded)
            if min(compared.real_quick_ratio(), compared.quick_ratio()) >= _SIMILAR_FROM:
                found.append((compared.ratio(), folded))
            yield
        nearest = nlargest(SIMILAR_MAX, [one for one in found if one[0] >= _SIMILAR_FROM])
        return f" Similar: {', '.join([repr(by_folded[folded]) for _, folded in nearest])}." if nearest else ""


def _with_dashes(name: str) -> str:
    """The name of a competition, which may be written with hyphens. Names of participants may hold some, too."""
    return name.replace(" - ", BETWEEN)


def _ids_by_name(named: Iterable[tuple[_K, str]]) -> Mapping[str, list[_K]]:
    return finished(_ids_by_name_steps(named))


def _ids_by_name_steps(named: Iterable[tuple[_K, str]]) -> Steps[Mapping[str, list[_K]]]:
    ids: defaultdict[str, list[_K]] = defaultdict(list)
    for item_id, name in named:
        ids[name].append(item_id)
        yield
    return ids
