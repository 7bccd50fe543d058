"""Competitions: their shape, how it is rendered, and the operations on them, except voiding (`voiding.py`)."""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from functools import partial
from typing import Final, Protocol

from msgspec import UNSET, Raw, Struct, UnsetType, structs

from api.access.auth import Scope
from api.http.outgoing import Later, regrouped
from api.interface import paging
from api.interface.declarations import Many, Operation, Preview, Read, Recall, Recording, Write
from api.interface.fields import BOOLEAN, ID, IDS, INTEGER, MOMENT, OWN_KEY, RESULT, SHORT, TIME_BEGIN, TIME_END, Field
from api.interface.paging import ListPart, PagedShape, PageQuestion
from api.interface.rendering import (
    Answer,
    BoardNow,
    TaggedBody,
    Taking,
    Timestamp,
    cut,
    items_of,
    kept_bytes,
    later,
    listed,
    resource,
    short,
    tagged_body,
)
from api.interface.resources.competitors import CompetitorPieces, RawCompetitor, competitor_pieces
from api.interface.resources.previews import COMPARED, UNSCORED, unscored_key
from api.interface.resources.standings import RankingShape
from api.interface.shapes import answer_of, answered
from engine.domain.commands import AddCompetition, AddCompetitions, ChangeCompetition, RecordResult, RecordResults
from engine.domain.errors import Fault, Unreadable
from engine.domain.terms import PARTICIPANTS_MAX, CompetitionId, CompetitorId
from engine.domain.times import timestamp, timestamp_or_none
from engine.process.time_slices import TimeSlices
from projections.answers.competition_results import CompetitionResults, CompetitionResultsQuestion
from projections.answers.lookup import competition_of, named
from projections.answers.zones import Day, with_days
from projections.board.board import Competition
from projections.board.selection import CompetitionFilter
from projections.live.tournament import LiveTournament

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class ParticipantShape(Struct, kw_only=True):
    competitor_id: int
    competitor: RawCompetitor
    winner: bool
    result: str | None
    created_at: Timestamp
    updated_at: Timestamp


class CompetitionShape(Struct, kw_only=True):
    """`voided_at`: the time since which the competition does not count; null: it counts. `struck`: the competitors for
    whom it does not count, if there are any. `scale`: the name of the scoring that it uses. `key`: the organiser's own
    id of it. The last five are absent where there is nothing to say."""

    id: int
    group_id: int
    started_at: Timestamp
    location: str
    participants: list[ParticipantShape]
    result: str | dict[int, str] | None
    has_result: bool
    created_at: Timestamp
    updated_at: Timestamp
    voided_at: Timestamp | None
    struck: list[int] | UnsetType = UNSET
    scale: str | UnsetType = UNSET
    round: int | UnsetType = UNSET
    round_name: str | UnsetType = UNSET
    key: str | UnsetType = UNSET


class AddedCompetitionsShape(Struct):
    """Several competitions that one request added or changed, in its order."""

    competition: list[CompetitionShape]


class CompetitionsShape(PagedShape, frozen=True, kw_only=True):
    competition: list[CompetitionShape]


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfCompetition(Protocol):
    """A question or an event about a competition."""

    @property
    def competition_id(self) -> CompetitionId: ...


class CompetitionQuestion(Struct, frozen=True):
    competition_id: CompetitionId


class CompetitionsQuestion(PageQuestion, frozen=True):
    """All competitions, or those that meet every condition that is not None. Raises Unreadable if `since` is later than
    `until`."""

    group_id: int | None = None
    round: int | None = None
    competitor_id: CompetitorId | None = None
    has_result: bool | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.since, Day) or isinstance(self.until, Day):
            return  # `with_days` makes a question of times
        if self.since is not None and self.until is not None and self.since > self.until:
            fault = Fault("from", "must not be later than to")
            raise Unreadable("The query cannot be read; correct the parameters named.", [fault])


async def find_competitions(
    live: LiveTournament, time_slices: TimeSlices, question: CompetitionsQuestion
) -> CompetitionsQuestion | ListPart:
    """The requested part of the competitions; without a filter, the question itself. Raises Unacceptable if the
    competitor or `after` does not exist."""
    question = with_days(live.board, question)
    chosen = CompetitionFilter(
        group_id=question.group_id,
        round=question.round,
        competitor_id=question.competitor_id,
        has_result=question.has_result,
        since=question.since,
        until=question.until,
    )
    if chosen == CompetitionFilter():
        return question
    if chosen.competitor_id is not None:
        named(live.board.competitors, "competitor", "competitor", chosen.competitor_id)
    return await question.selected(live.board.competitions, "competition", chosen, live.selections, time_slices)


def list_competitions(view: BoardNow, answer: Answer, asked: PageQuestion | ListPart) -> TaggedBody | Later:
    """A part of the competitions, in the order of their creation. Raises Unacceptable if `after` does not exist."""

    def part() -> ListPart:
        return asked if isinstance(asked, ListPart) else asked.part(view.board.competitions, "competition")

    def around(part: ListPart) -> tuple[bytes, bytes]:
        return part.around(answer, CompetitionsShape, "competition")

    def items(part: ListPart) -> list[tuple[CompetitionId, Competition]]:
        return [(id_, view.board.competitions[id_]) for id_ in map(CompetitionId, part.ids)]

    def render() -> TaggedBody | None:
        shown = part()
        found = items(shown)
        pieces = competitor_pieces(view)
        if sum([len(one.participants) for _, one in found]) > pieces.at_once_max:
            return None
        made = short(b"".join(_competition(pieces, *one)) for one in found)
        return None if made is None else tagged_body(b",".join(made).join(around(shown)))

    def take() -> Taking:
        shown = part()
        found = items(shown)
        pieces = competitor_pieces(view)
        before, after = around(shown)
        return before, partial(_listed, pieces, found), pieces.parts, after

    if isinstance(asked, PageQuestion) and asked.is_past_the_end(len(view.board.competitions)):
        return tagged_body(b"".join(around(part())))
    key = ("competitions", asked)
    is_kept = isinstance(asked, PageQuestion) and asked.is_page
    stamp = view.revisions.shown, view.revisions.competitions
    kept = view.cache.rendered(key, stamp, render, kept_bytes) if is_kept else render()
    return kept or later(view, key, take)


def show_competition(view: BoardNow, answer: Answer, question: CompetitionQuestion) -> TaggedBody | Later:
    """Raises NotFound."""
    competition_id = question.competition_id
    found = competition_of(view.board, competition_id)
    stamp = view.revisions.shown, view.revisions.competitions
    return resource(
        view, ("competition", competition_id), stamp, found, lambda: render_competition(view, answer, question)
    )


def render_competition(view: BoardNow, answer: Answer, of: OfCompetition) -> bytes | Later:
    competition_id = of.competition_id
    pieces = competitor_pieces(view)
    competition = view.board.competitions[competition_id]
    if len(competition.participants) <= pieces.at_once_max:
        found = short(_competition(pieces, competition_id, competition))
        if found is not None:
            return answer.body(b"".join(found))

    def take() -> Taking:
        pieces = competitor_pieces(view)
        found = competition_id, view.board.competitions[competition_id]
        return answer.before, lambda: regrouped(_competition(pieces, *found)), pieces.parts, b"}"

    return later(view, ("competition", answer.message, competition_id), take)


def render_competitions(view: BoardNow, answer: Answer, of: Items[OfCompetition]) -> bytes | Later:
    found = [(one.competition_id, view.board.competitions[one.competition_id]) for one in of]
    before, after = cut(AddedCompetitionsShape(competition=[]), "competition")
    pieces = competitor_pieces(view)
    if sum([len(one.participants) for _, one in found]) <= pieces.at_once_max:
        shown = short(b"".join(_competition(pieces, *one)) for one in found)
        if shown is not None:
            return answer.body(before + b",".join(shown) + after)

    def take() -> Taking:
        pieces = competitor_pieces(view)
        return answer.before + before, partial(_listed, pieces, found), (pieces.held,), after + b"}"

    return later(view, ("competitions", answer.message, *[one.competition_id for one in of]), take)


def _listed(pieces: CompetitorPieces, found: Iterable[tuple[CompetitionId, Competition]]) -> Iterator[bytes]:
    return regrouped(listed(_competition(pieces, *one) for one in found))


def _competition(pieces: CompetitorPieces, competition_id: CompetitionId, competition: Competition) -> Iterator[bytes]:
    """The shape of a competition, chunk by chunk."""
    created_at, updated_at = timestamp(competition.created_at), timestamp(competition.updated_at)
    performances = competition.result if isinstance(competition.result, dict) else {}
    before, after = cut(
        CompetitionShape(
            id=competition_id,
            group_id=competition.group_id,
            started_at=timestamp(competition.started_at),
            location=competition.location,
            participants=[],
            result=competition.result,  # type: ignore[arg-type] # CompetitorId is an int
            has_result=competition.result is not None,
            created_at=created_at,
            updated_at=updated_at,
            voided_at=timestamp_or_none(competition.voided_at),
            struck=[*competition.struck] or UNSET,
            scale=competition.scale or UNSET,
            round=UNSET if competition.round is None else competition.round,
            round_name=competition.round_name or UNSET,
            key=competition.key or UNSET,
        ),
        "participants",
    )
    yield before
    for start in range(0, len(competition.participants), _PARTICIPANTS_OF_CHUNK):
        shapes = [
            ParticipantShape(
                competitor_id=competitor_id,
                competitor=Raw(pieces[competitor_id]),
                winner=competitor_id == competition.winner_id,
                result=performances.get(competitor_id),
                created_at=created_at,
                updated_at=updated_at,
            )
            for competitor_id in competition.participants[start : start + _PARTICIPANTS_OF_CHUNK]
        ]
        yield (b"," if start else b"") + items_of(shapes)
    yield after


_PARTICIPANTS_OF_CHUNK: Final = 50


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_STARTED_AT: Final = Field(
    "started_at", MOMENT, "to the second, in UTC unless an offset follows; absent: when it was created"
)
_LOCATION: Final = Field("location", SHORT, "where")
_PARTICIPANTS: Final = Field(
    "participants",
    IDS,
    f"in this order: ids of competitors, in a form separated by commas, at most {PARTICIPANTS_MAX:,}",
)
_GROUP: Final = Field("group_id", INTEGER, "the group of matches that contains it")
_RESULT: Final = Field(
    "result",
    RESULT,
    "with up to two participants, the score; with more, a JSON object of performances by competitor id",
)
_WINNER: Final = Field("winner", ID, "one of the participants", argument="winner_id")
_MORE: Final = (
    Field("scale", SHORT, "the name of the scoring that it uses"),
    Field("round", INTEGER, "the number of its round; absent: all competitions of its date are a round"),
    Field("round_name", SHORT, "the name of its round"),
    Field(
        "key",
        OWN_KEY,
        "the organiser's own id for it, such as a match number, without a comma; no two have the same one",
    ),
)
SHOWN_RANKING: Final = Field("ranking", ID, "the standings of this ranking are in the answer, too")
_CHANGED: Final = (_STARTED_AT, _LOCATION, _PARTICIPANTS, _RESULT, _WINNER, _GROUP, *_MORE)

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "competitions.json",
        "List the competitions",
        operation_id="listCompetitions",
        question=CompetitionsQuestion,
        answer=Answer("competitions", CompetitionsShape),
        render=list_competitions,
        fields=(
            *paging.FIELDS,
            Field("group_id", INTEGER, "only of this group"),
            Field("round", INTEGER, "only of the round with this number"),
            Field("competitor", ID, "only in which this one takes part", argument="competitor_id"),
            Field("has_result", BOOLEAN, "only with a result, or only without"),
            Field("from", TIME_BEGIN, "only that start at this time or later", argument="since"),
            Field("to", TIME_END, "only that start at this time or before", argument="until"),
        ),
        find=find_competitions,
        judged=True,
    ),
    Read(
        "competitions/{competition_id}.json",
        "Show a competition",
        operation_id="showCompetition",
        question=CompetitionQuestion,
        answer=Answer("competition", CompetitionShape),
        render=show_competition,
    ),
    Recall(
        "competitions/{competition_id}/results.json",
        "List the results that a competition had, the first one first",
        operation_id="listResults",
        question=CompetitionResultsQuestion,
        answer=answer_of("competition", CompetitionResults),
        render=answered,
    ),
    Write(
        "POST",
        "competitions.json",
        "Add a competition, or several",
        operation_id="addCompetition",
        command=AddCompetition,
        answer=Answer("competition", CompetitionShape, "added"),
        render=render_competition,
        fields=(
            structs.replace(_GROUP, required=True),
            _STARTED_AT,
            _LOCATION,
            _PARTICIPANTS,
            _RESULT,
            _WINNER,
            *_MORE,
        ),
        new_ids={"id": "competition_id"},
        many=Many(AddCompetitions, Answer("competitions", AddedCompetitionsShape, "added"), render_competitions),
        example={"group_id": 1},
    ),
    Write(
        "PUT",
        "competitions/{competition_id}.json",
        "Change a competition; absent fields stay, empty ones are cleared",
        operation_id="changeCompetition",
        command=ChangeCompetition,
        answer=Answer("competition", CompetitionShape),
        render=render_competition,
        fields=_CHANGED,
        example={"location": "Hall 2"},
    ),
    Recording(
        "PUT",
        "results.json",
        "Record a competition with its result, or several: a new one, or the one named or with this key",
        operation_id="recordResult",
        command=RecordResult,
        answer=Answer("competition", CompetitionShape, more={"ranking": RankingShape | UnsetType, **UNSCORED}),
        render=render_competition,
        beside=unscored_key,
        fields=(Field("competition", ID, "which one; absent: the one with this key", argument="of"), *_CHANGED),
        new_ids={"id": "competition_id"},
        many=Many(
            RecordResults,
            Answer("competitions", AddedCompetitionsShape, more={"ranking": RankingShape | UnsetType}),
            render_competitions,
        ),
        example={"group_id": 1, "key": "M1"},
    ),
    Preview(
        "competitions/{competition_id}/preview.json",
        "Show what changing a competition would lead to, such as a supposed result",
        operation_id="previewChangeCompetition",
        command=ChangeCompetition,
        answer=COMPARED,
        fields=_CHANGED,
        scope=Scope.WRITE,
        example={"location": "Hall 2"},
    ),
)
