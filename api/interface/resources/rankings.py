"""Rankings: their list and creation shape, how it is rendered, and the operations on rankings and unities.

A change of a ranking is answered with its standings (`standings.py`).
"""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Annotated, Final, Literal, Protocol, get_args

import msgspec
from msgspec import Meta, Raw, Struct

from api.access.auth import Scope
from api.http.outgoing import Later, Part, Taken, joined, regrouped
from api.interface import options
from api.interface.declarations import NoQuestion, Operation, Preview, Read, Write
from api.interface.fields import BOOLEAN, DESCRIPTION, IDS, NAME, SORT, Field, one_of
from api.interface.kinds import Kind, KindName, kinds
from api.interface.rendering import (
    LINES_AT_ONCE_MAX,
    Answer,
    BoardNow,
    TaggedBody,
    Taking,
    Timestamp,
    cut,
    encode,
    kept_bytes,
    later,
    listed,
    resource,
    short,
    tagged_body,
)
from api.interface.resources.competitors import RawCompetitors, competitor_pieces, participants_json
from api.interface.resources.previews import COMPARED
from api.interface.resources.standings import STANDINGS, OfRanking, render_standings
from engine.domain.commands import (
    AddUnity,
    ChangeParticipants,
    ChangeRankingInformation,
    ChangeUnity,
    ChangeVisibility,
    CloseRanking,
    CreateRanking,
    ModifyRanking,
    OrderRankings,
    ReopenRanking,
)
from engine.domain.table_zones import ZONES_MAX, ZoneKind
from engine.domain.terms import PARTICIPANTS_MAX, RankingId, UnityId
from engine.domain.times import timestamp_or_none
from projections.answers.lookup import ranking_of
from projections.answers.rankings import ListedUnity, listed_unity
from projections.board.board import Ranking

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class BriefRankingShape(Struct, kw_only=True, omit_defaults=True):
    """The list shape without the competitors. `hidden` is present if the public does not see the ranking,
    `zones` if some are declared."""

    id: int
    name: str
    description: str | None
    closed_at: Timestamp | None
    general: bool
    position: str
    unities: list[ListedUnity]
    hidden: bool = False
    zones: str | None = None


class ListedRankingShape(BriefRankingShape, kw_only=True):
    """The list and creation shape."""

    competitors: RawCompetitors


RawListedRanking = Annotated[
    Raw,
    Meta(
        extra_json_schema={
            "anyOf": [{"$ref": "#/components/schemas/ListedRanking"}, {"$ref": "#/components/schemas/BriefRanking"}]
        }
    ),
]
"""The finished JSON of a ListedRankingShape, or of a BriefRankingShape."""


class RankingsShape(Struct):
    ranking: list[RawListedRanking]


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class RankingsQuestion(Struct, frozen=True):
    """Asks for all rankings, with their competitors or without."""

    omit: Literal["competitors"] | None = None


class RankingQuestion(Struct, frozen=True):
    """As RankingsQuestion, for one ranking."""

    ranking_id: RankingId
    omit: Literal["competitors"] | None = None


class OfUnity(OfRanking, Protocol):
    """An event about a unity."""

    @property
    def unity_id(self) -> UnityId: ...


def list_rankings(view: BoardNow, answer: Answer, question: RankingsQuestion) -> TaggedBody | Later:
    """Every ranking of the tournament."""
    brief = question.omit is not None
    stamp = view.revisions.rankings if brief else view.revisions.participants
    kept = view.cache.rendered(("rankings", brief), stamp, partial(_short_list, view, answer, brief), kept_bytes)
    return kept or _long_list(view, answer, brief)


def _short_list(view: BoardNow, answer: Answer, brief: bool) -> TaggedBody | None:
    """None: it is too long for a short answer."""

    def piece(ranking_id: RankingId, ranking: Ranking) -> bytes:
        if brief:
            return _brief_ranking(view, ranking_id, ranking)
        competitors = participants_json(view, ranking_id, ranking)
        return competitors and _ranking(view, ranking_id, ranking, competitors)

    rankings = view.board.rankings
    lines = 0
    for ranking in rankings.values():
        lines += _RANKING_LINES + len(ranking.unities if brief else ranking.participants)
        if lines > LINES_AT_ONCE_MAX:
            return None
    shown = short(piece(ranking_id, ranking) for ranking_id, ranking in rankings.items())
    if shown is None:
        return None
    before, after = cut(RankingsShape(ranking=[]), "ranking")
    return tagged_body(answer.body(b"%b%b%b" % (before, b",".join(shown), after)))


def _long_list(view: BoardNow, answer: Answer, brief: bool) -> Later:
    def take() -> Taking:
        make, parts = _take(view, view.board.rankings, brief=brief)
        before, after = cut(RankingsShape(ranking=[]), "ranking")
        return answer.before + before, make, parts, after + b"}"

    return later(view, ("rankings", brief), take)


def show_ranking(view: BoardNow, answer: Answer, question: RankingQuestion) -> TaggedBody | Later:
    """The ranking without its standings: everything that a change of it needs, and nothing that points change. So
    clients can cache it while points are added. Raises NotFound."""
    ranking_id = question.ranking_id
    found = ranking_of(view.board, ranking_id)
    if question.omit == "competitors":
        stamp: object = view.revisions.rankings
        return resource(
            view,
            ("brief ranking", ranking_id),
            stamp,
            found,
            lambda: answer.body(_brief_ranking(view, ranking_id, found)),
        )
    stamp = view.revisions.participants
    return resource(view, ("ranking", ranking_id), stamp, found, lambda: render_ranking(view, answer, question))


def render_ranking(view: BoardNow, answer: Answer, of: OfRanking) -> bytes | Later:
    ranking_id = of.ranking_id
    ranking = view.board.rankings[ranking_id]
    competitors = participants_json(view, ranking_id, ranking)
    if competitors:
        return answer.body(_ranking(view, ranking_id, ranking, competitors))

    def take() -> Taking:
        return answer.before, *_take(view, [ranking_id]), b"}"

    return later(view, ("ranking", answer.message, ranking_id), take)


def render_unity(view: BoardNow, answer: Answer, of: OfUnity) -> bytes:
    unity = view.board.rankings[of.ranking_id].unities[of.unity_id]
    return answer.body(encode(listed_unity(of.unity_id, unity)))


def render_brief(view: BoardNow, answer: Answer, of: OfRanking) -> bytes:
    return answer.body(_brief_ranking(view, of.ranking_id, view.board.rankings[of.ranking_id]))


def _render_list(view: BoardNow, answer: Answer, _of: object) -> bytes | Later:
    """Every ranking, without its competitors."""
    short_list = _short_list(view, answer, brief=True)
    return _long_list(view, answer, brief=True) if short_list is None else short_list.body


def _brief_ranking(view: BoardNow, ranking_id: RankingId, ranking: Ranking) -> bytes:
    return encode(_brief(ranking_id, ranking, _unities(ranking), view.board.publication.hidden))


def _ranking(view: BoardNow, ranking_id: RankingId, ranking: Ranking, competitors: bytes) -> bytes:
    brief = _brief(ranking_id, ranking, _unities(ranking), view.board.publication.hidden)
    return encode(_listed(brief, Raw(competitors)))


def _listed(brief: BriefRankingShape, competitors: Raw) -> ListedRankingShape:
    return ListedRankingShape(**msgspec.structs.asdict(brief), competitors=competitors)


def _brief(
    ranking_id: RankingId, ranking: Ranking, unities: list[ListedUnity], hidden: Container[RankingId]
) -> BriefRankingShape:
    return BriefRankingShape(
        id=ranking_id,
        name=ranking.name,
        description=ranking.description,
        closed_at=timestamp_or_none(ranking.closed_at),
        general=ranking.number == 1,
        position=str(ranking.place),
        unities=unities,
        hidden=ranking_id in hidden,
        zones=ranking.zones,
    )


def _unities(ranking: Ranking) -> list[ListedUnity]:
    return [listed_unity(unity_id, unity) for unity_id, unity in ranking.unities.items()]


def _take(
    view: BoardNow, ranking_ids: Iterable[RankingId], *, brief: bool = False
) -> tuple[Callable[[], Iterator[bytes]], tuple[Part, ...]]:
    """Reserves these rankings, and returns a function that makes their shapes, with the reserved parts. `brief`:
    without their competitors."""
    pieces = competitor_pieces(view)
    listed_ids, hidden = list(ranking_ids), view.board.publication.hidden

    def one(ranking_id: RankingId) -> Iterator[bytes]:
        held = pieces.held.ranking(ranking_id)
        unities = [listed_unity(unity_id, unity) for unity_id, unity in held.unities.items()]
        shape = _brief(ranking_id, held.ranking, unities, hidden)
        if brief:
            yield encode(shape)
            return
        before, after = cut(_listed(shape, Raw(b"[]")), "competitors")
        yield before
        yield from joined(pieces[competitor_id] for competitor_id in held.participants)
        yield after

    parts = (*pieces.parts, Taken(_TAKEN_BYTES + 8 * len(listed_ids)))
    return lambda: regrouped(listed(map(one, listed_ids))), parts


_TAKEN_BYTES: Final = 600
_RANKING_LINES: Final = 5
"""A ranking without its competitors and unities takes as long as this many lines."""


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_LIST: Final = f"ids of competitors, in a form separated by commas, at most {PARTICIPANTS_MAX:,}"
_TITLE: Final = Field("name", NAME, "its title; absent: unchanged")
_DESCRIPTION: Final = Field("description", DESCRIPTION, "absent: unchanged; empty: removed")
_LIST_CHANGE: Final = (
    Field("add", IDS, f"competitors already in it stay where they are: {_LIST}", argument="added"),
    Field("remove", IDS, f"their points count again when they return: {_LIST}", argument="removed"),
)
_OMIT: Final = Field("omit", one_of("competitors"), "competitors: leaves them out of each ranking")
_ZONES: Final = (
    f"what places of its table lead to, at most {ZONES_MAX} zones, one a line: places, counted from the bottom if "
    f"negative, one of {', '.join(get_args(ZoneKind))}, and what it is"
)
_MAIN_UNITY_NAME: Final = Field("main_unity_name", NAME, "the name of its main unity", required=True)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "rankings.json",
        "List the rankings",
        operation_id="listRankings",
        question=RankingsQuestion,
        answer=Answer("rankings", RankingsShape),
        render=list_rankings,
        fields=(_OMIT,),
    ),
    Read(
        "rankings/kinds.json",
        "List the well-known kinds of rankings, with unities, scorings and criteria to declare",
        operation_id="listKinds",
        question=NoQuestion,
        answer=Answer("kinds", dict[KindName, Kind]),
        render=lambda _view, answer, _question: tagged_body(answer.body(encode(kinds()))),
    ),
    Read(
        "rankings/{ranking_id}.json",
        "Show a ranking, without its standings",
        operation_id="showRanking",
        question=RankingQuestion,
        answer=Answer("ranking", RawListedRanking),
        render=show_ranking,
        fields=(_OMIT,),
    ),
    Write(
        "POST",
        "rankings.json",
        "Create a ranking",
        operation_id="createRanking",
        command=CreateRanking,
        answer=Answer("ranking", ListedRankingShape, "added"),
        render=render_ranking,
        fields=(
            Field("name", NAME, "its title", required=True),
            _MAIN_UNITY_NAME,
            Field("participants", IDS, _LIST, required=True),
            Field("description", DESCRIPTION, "in brief"),
            Field("main_unity_sort", SORT, "which totals of it are better: the highest (DESC) or the lowest"),
            *options.MAIN_UNITY_FIELDS,
        ),
        new_ids={"id": "ranking_id", "unity_id": "main_unity_id"},
        example={"name": "Cup", "main_unity_name": "points", "participants": [1, 2, 3]},
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}.json",
        "Modify a ranking's information, its list of competitors and the name of its main unity",
        operation_id="modifyRanking",
        command=ModifyRanking,
        answer=STANDINGS,
        render=render_standings,
        fields=(
            _MAIN_UNITY_NAME,
            Field("participants", IDS, f"the new list, in this order: {_LIST}", required=True),
            _TITLE,
            _DESCRIPTION,
        ),
        example={"main_unity_name": "score", "participants": [2, 3]},
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/information.json",
        "Change the name, the description or the zones of a ranking; absent fields stay, empty ones are cleared",
        operation_id="changeRankingInformation",
        command=ChangeRankingInformation,
        answer=STANDINGS,
        render=render_standings,
        fields=(_TITLE, _DESCRIPTION, Field("zones", DESCRIPTION, _ZONES)),
        example={"name": "Season 2026", "zones": "1..2 promotion: First division\n-1 relegation: Third division"},
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/participants.json",
        "Enrol competitors in a ranking, at its end, or remove them from it",
        operation_id="changeParticipants",
        command=ChangeParticipants,
        answer=STANDINGS,
        render=render_standings,
        fields=_LIST_CHANGE,
        example={"add": [1], "remove": [2]},
    ),
    Preview(
        "rankings/{ranking_id}/participants.json",
        "Show what enrolling or removing competitors would lead to",
        operation_id="previewChangeParticipants",
        command=ChangeParticipants,
        answer=COMPARED,
        fields=_LIST_CHANGE,
        scope=Scope.WRITE,
        example={"remove": [2]},
    ),
    Write(
        "POST",
        "rankings/{ranking_id}/unities.json",
        "Add a unity to a ranking",
        operation_id="addUnity",
        command=AddUnity,
        answer=Answer("unity", ListedUnity, "added"),
        render=render_unity,
        fields=(
            Field("name", NAME, "unique in the ranking", required=True),
            Field("sort", SORT, "which totals are better: the highest (DESC) or the lowest"),
            *options.UNITY_FIELDS,
        ),
        new_ids={"id": "unity_id"},
        example={"name": "goals"},
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/unities/{unity_id}.json",
        "Change the name or the sort of a unity, even the main one; absent fields stay",
        operation_id="changeUnity",
        command=ChangeUnity,
        answer=Answer("unity", ListedUnity),
        render=render_unity,
        fields=(
            Field("name", NAME, "unique in the ranking"),
            Field("sort", SORT, "which totals are better from now on: the highest (DESC) or the lowest"),
        ),
        example={"sort": "ASC"},
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/close.json",
        "Close a ranking: nothing in it can change, but it can be hidden and ordered",
        operation_id="closeRanking",
        command=CloseRanking,
        answer=STANDINGS,
        render=render_standings,
        scope=Scope.ADMIN,
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/reopen.json",
        "Reopen a closed ranking",
        operation_id="reopenRanking",
        command=ReopenRanking,
        answer=STANDINGS,
        render=render_standings,
        scope=Scope.ADMIN,
    ),
    Preview(
        "rankings/{ranking_id}/reopen.json",
        "Show what reopening a ranking would lead to: results recorded meanwhile are scored",
        operation_id="previewReopenRanking",
        command=ReopenRanking,
        answer=COMPARED,
    ),
    Write(
        "PUT",
        "rankings/{ranking_id}/visibility.json",
        "Hide a ranking from the public, in past views and during a freeze too; or show it again",
        operation_id="changeVisibility",
        command=ChangeVisibility,
        answer=Answer("ranking", BriefRankingShape),
        render=render_brief,
        fields=(Field("hidden", BOOLEAN, "true: the public does not see it; false: it sees it again", required=True),),
        scope=Scope.ADMIN,
        example={"hidden": True},
    ),
    Write(
        "PUT",
        "rankings.json",
        "Order the rankings: the tournament's lists of them follow this order",
        operation_id="orderRankings",
        command=OrderRankings,
        answer=Answer("rankings", RankingsShape),
        render=_render_list,
        fields=(
            Field(
                "order",
                IDS,
                "ids of rankings, in a form separated by commas: these come first; the others keep their order",
                required=True,
                argument="rankings",
            ),
        ),
        example={"order": [7, 4]},
    ),
)
