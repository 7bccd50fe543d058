"""Competitions: their shape, how it is rendered, and the operations on them but for voiding (`voiding.py`)."""

from collections.abc import Iterator
from typing import Final, Protocol

from msgspec import Raw, Struct

from api.http.outgoing import Later, regrouped
from api.interface import paging
from api.interface.competitors import CompetitorPieces, RawCompetitor, competitor_pieces
from api.interface.declarations import Operation, Read, Write
from api.interface.fields import ID, IDS, INTEGER, MOMENT, RESULT, SHORT, Field
from api.interface.lookup import competition_of
from api.interface.paging import PagedShape, PageQuestion
from api.interface.rendering import (
    Answer,
    TaggedBody,
    Taking,
    View,
    cut,
    encode,
    kept_bytes,
    later,
    listed,
    resource,
    short,
    tagged_body,
    timestamp,
    timestamp_or_none,
)
from engine.domain.commands import AddCompetition, ChangeCompetition
from engine.domain.terms import PARTICIPANTS_MAX, CompetitionId
from projections.board.board import Competition

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class ParticipantShape(Struct, kw_only=True):
    competitor_id: int
    competitor: RawCompetitor
    winner: bool
    result: str | None
    created_at: str
    updated_at: str


class CompetitionShape(Struct, kw_only=True):
    """`voided_at` is ours: since when the competition does not count; null: it counts."""

    id: int
    group_id: int
    started_at: str
    location: str
    participants: list[ParticipantShape]
    result: str | dict[int, str] | None
    has_result: bool
    created_at: str
    updated_at: str
    voided_at: str | None


class CompetitionsShape(PagedShape, kw_only=True):
    competition: list[CompetitionShape]


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfCompetition(Protocol):
    """A question or an event about a competition."""

    @property
    def competition_id(self) -> CompetitionId: ...


class CompetitionQuestion(Struct, frozen=True):
    competition_id: CompetitionId


def list_competitions(view: View, answer: Answer, page: PageQuestion) -> TaggedBody | Later:
    """One page of the competitions, in the order of their creation."""

    def around(view: View) -> tuple[bytes, bytes]:
        return page.around(answer, CompetitionsShape, "competition", len(view.board.competitions))

    def render() -> TaggedBody | None:
        found = page.of(view.board.competitions.items())
        pieces = competitor_pieces(view)
        if sum([len(one.participants) for _, one in found]) > pieces.at_once_max:
            return None
        shown = short(b"".join(_competition(pieces, *one)) for one in found)
        return None if shown is None else tagged_body(b",".join(shown).join(around(view)))

    def take(view: View) -> Taking:
        pieces = competitor_pieces(view)
        shown = page.of(view.board.competitions.items())
        before, after = around(view)

        def make() -> Iterator[bytes]:
            yield before
            yield from regrouped(listed(_competition(pieces, *one) for one in shown))

        return make, pieces.parts, after

    if page.is_past_the_end(len(view.board.competitions)):
        return tagged_body(b"".join(around(view)))
    stamp = view.revisions.shown, view.revisions.competitions
    kept = view.cache.rendered(("competitions", page), stamp, render, kept_bytes)
    return kept or later(view, ("competitions", page.page, page.per_page), take)


def show_competition(view: View, answer: Answer, question: CompetitionQuestion) -> TaggedBody | Later:
    """Raises NotFound."""
    competition_id = question.competition_id
    found = competition_of(view.board, competition_id)
    stamp = view.revisions.shown, view.revisions.competitions
    return resource(
        view, ("competition", competition_id), stamp, found, lambda: render_competition(view, answer, question)
    )


def render_competition(view: View, answer: Answer, of: OfCompetition) -> bytes | Later:
    competition_id = of.competition_id
    pieces = competitor_pieces(view)
    competition = view.board.competitions[competition_id]
    if len(competition.participants) <= pieces.at_once_max:
        found = short(_competition(pieces, competition_id, competition))
        if found is not None:
            return answer.body(b"".join(found))

    def take(view: View) -> Taking:
        pieces = competitor_pieces(view)
        competition = view.board.competitions[competition_id]

        def make() -> Iterator[bytes]:
            yield answer.before
            yield from regrouped(_competition(pieces, competition_id, competition))

        return make, pieces.parts, b"}"

    return later(view, ("competition", answer.message, competition_id), take)


def _competition(pieces: CompetitorPieces, competition_id: CompetitionId, competition: Competition) -> Iterator[bytes]:
    """The shape of a competition, piece by piece."""
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
        ),
        "participants",
    )
    yield before
    comma = b""
    for competitor_id in competition.participants:
        participant = ParticipantShape(
            competitor_id=competitor_id,
            competitor=Raw(pieces[competitor_id]),
            winner=competitor_id == competition.winner_id,
            result=performances.get(competitor_id),
            created_at=created_at,
            updated_at=updated_at,
        )
        yield comma + encode(participant)
        comma = b","
    yield after


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────

_STARTED_AT: Final = Field("started_at", MOMENT, "UTC, yyyy-mm-dd HH:ii:ss; when it was created, if it is not said")
_LOCATION: Final = Field("location", SHORT, "where")
_RESULT: Final = Field(
    "result",
    RESULT,
    "with up to two participants, the score; with more, a JSON object of performances by competitor id; or, instead, "
    "fields named result[<competitor id>]",
)
_WINNER: Final = Field("winner", ID, "one of the participants", argument="winner_id")

OPERATIONS: Final[tuple[Operation, ...]] = (
    Read(
        "competitions.json",
        "List the competitions",
        question=PageQuestion,
        answer=Answer("competitions", CompetitionsShape),
        render=list_competitions,
        fields=paging.FIELDS,
    ),
    Read(
        "competitions/{competition_id}.json",
        "Show a competition",
        question=CompetitionQuestion,
        answer=Answer("competition", CompetitionShape),
        render=show_competition,
    ),
    Write(
        "POST",
        "competitions.json",
        "Add a competition",
        command=AddCompetition,
        answer=Answer("competition", CompetitionShape, "added"),
        render=render_competition,
        fields=(
            Field("group_id", INTEGER, "the group of matches that contains it", required=True),
            _STARTED_AT,
            _LOCATION,
            Field(
                "participants",
                IDS,
                f"in this order: ids of competitors, separated by commas, at most {PARTICIPANTS_MAX:,}",
            ),
            _RESULT,
            _WINNER,
        ),
        new_ids={"id": "competition_id"},
    ),
    Write(
        "PUT",
        "competitions/{competition_id}.json",
        "Change a competition; what is absent stays as it is",
        command=ChangeCompetition,
        answer=Answer("competition", CompetitionShape),
        render=render_competition,
        fields=(_STARTED_AT, _LOCATION, _RESULT, _WINNER),
    ),
)
