"""The public reads of a published tournament, without a token.

The same functions answer as for requests with a token, but separate shapes show the answers. A shape names everything
that it shows, except the options of a unity, which are all public: a field added to another answer becomes public only
when it is added here. Never public: the sender of a request, keys, tokens, and anything beyond the public end. Names,
colours and tags are those at the public end.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from api.http.compression import Compression
from api.http.outgoing import Long
from api.http.reply import REVALIDATED, Reply
from api.http.router import Handler, IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.http.times import instant, instant_or_none
from api.interface.declarations import Enveloped, NoQuestion, Operation, Recall, RecallContext
from api.interface.fields import Fields, read_query
from api.interface.lookup import ranking_of, unity_of
from api.interface.public.view import PublicViews
from api.interface.questions import TableQuestion, with_days
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from api.interface.resources import classifications, expiring, history, leaders, recent_results, standings
from api.interface.resources.classifications import (
    ClassificationLineShape,
    ClassificationShape,
    Criteria,
    NeighboursShape,
    criteria_shape,
)
from api.interface.resources.expiring import ExpiringLineShape, ExpiringQuestion, ExpiringShape
from api.interface.resources.history import ExplainQuestion, ExplanationPlaceShape, HistoryQuestion, OvertakingShape
from api.interface.resources.leaders import (
    ClockDifferenceShape,
    LeadersQuestion,
    LeadersShape,
    ReignShape,
    TimeAtTopShape,
)
from api.interface.resources.rankings import unity_shape
from api.interface.resources.recent_results import CompetitorFormShape, FormQuestion, FormShape
from api.interface.resources.standings import PastRankingShape, StandingShape, recorded_at_head
from api.interface.resources.tournaments import SLUG_CHARACTERS_LOGGED
from api.interface.windows import WINDOW_LINES_MAX
from engine.domain.options import UnityOptions
from engine.domain.terms import SCORE_PARTICIPANTS_MAX, CompetitionId, CompetitorId, RankingId
from projections.board.board import Board, Competition
from projections.board.classification import in_force
from projections.past import moments

PUBLIC: Final = "/board/{tournament}/"
"""The path of all public requests."""

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class PublicCompetitorShape(Struct, frozen=True):
    id: int
    name: str
    color: str
    tags: tuple[str, ...]


class PublicCompetitionShape(Struct, frozen=True):
    """`participants` and `result` are those of a duel; null for a competition of more than two."""

    id: int
    started_at: Instant
    location: str
    participants: tuple[int, ...] | None
    result: str | None
    voided: bool


class PublicNamesShape(Struct, kw_only=True):
    """The competitors that an answer names, each once, as they are at the public end."""

    competitors: list[PublicCompetitorShape]


class PublicCausesShape(PublicNamesShape, kw_only=True):
    """As PublicNamesShape, with the competitions that the answer names."""

    competitions: list[PublicCompetitionShape]


class BriefPublicRankingShape(Struct):
    id: int
    name: str


class PublicTournamentShape(Struct, kw_only=True):
    """`sequence`: the public end; `recorded_at`: when that event was recorded."""

    name: str
    sequence: int
    recorded_at: Instant
    rankings: list[BriefPublicRankingShape]


class PublicUnityShape(UnityOptions, frozen=True):
    id: int
    name: str
    sort: str
    general: bool


class PublicRankingShape(Struct, kw_only=True):
    """`lines`: the number of its competitors. `criteria`: those in force for its classification; `declared`: whether
    they were declared; if not, they are the main unity alone."""

    id: int
    name: str
    description: str | None
    closed_at: Instant | None
    lines: int
    unities: list[PublicUnityShape]
    criteria: Criteria
    declared: bool


class PublicStandingsShape(PublicNamesShape, kw_only=True):
    unity_id: int
    sequence: int
    recorded_at: Instant
    lines: int
    standings: list[StandingShape]
    on: Instant | UnsetType = UNSET


class PublicClassificationShape(PublicNamesShape, kw_only=True):
    criteria: Criteria
    sequence: int
    recorded_at: Instant
    lines: int
    standings: list[ClassificationLineShape]
    on: Instant | UnsetType = UNSET


class PublicFormShape(PublicCausesShape, kw_only=True):
    unity_id: int
    sequence: int
    recorded_at: Instant
    lines: int
    form: list[CompetitorFormShape]
    on: Instant | UnsetType = UNSET


class PublicLeadersShape(PublicNamesShape, kw_only=True):
    unity_id: int
    clock: str
    sequence: int
    recorded_at: Instant
    until: Instant | None
    lines: int
    reigns: list[ReignShape]
    led: int
    times: list[TimeAtTopShape]
    differing: int
    differences: list[ClockDifferenceShape]


class PublicExpiringShape(PublicNamesShape, kw_only=True):
    unity_id: int
    sequence: int
    recorded_at: Instant
    until: Instant
    lines: int
    expiring: list[ExpiringLineShape]


class PublicLineShape(Struct, kw_only=True):
    """A line of history, without its sender."""

    sequence: int
    recorded_at: Instant
    competitor_id: int | None
    unity_id: int | None
    competition_id: int | None
    delta: int | None
    result: int | None = None
    total: int | None
    position_before: int | None
    position_after: int | None
    reverses: int | None
    reversal: str | None
    reason: str | None
    criteria: Criteria | UnsetType = UNSET


class PublicHistoryShape(PublicCausesShape, kw_only=True):
    lines: list[PublicLineShape]
    next: str | None


class PublicStepShape(Struct, kw_only=True):
    """A step of an explanation, without its sender."""

    sequence: int
    recorded_at: Instant
    cause: str
    competition_id: int | None
    reverses: int | None
    reversal: str | None
    reason: str | None
    delta: int | None
    result: int | None = None
    total: int | None
    position_before: int | None
    position_after: int | None
    overtakings: list[OvertakingShape]
    overtakings_left_out: int
    took_place: Instant | UnsetType = UNSET


class PublicStepsShape(Struct, kw_only=True):
    competitor_id: int
    unity_id: int
    start: ExplanationPlaceShape = field(name="from")
    end: ExplanationPlaceShape = field(name="to")
    steps: list[PublicStepShape]
    classification: NeighboursShape | None
    next: int | None
    on: Instant | UnsetType = UNSET


class PublicExplanationShape(PublicCausesShape, kw_only=True):
    explanation: PublicStepsShape


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────

_Q = TypeVar("_Q")
_T = TypeVar("_T")


class _OfRanking(Struct, frozen=True):
    ranking_id: RankingId


async def _told(
    context: RecallContext,
    answering: Callable[[RecallContext, Answer, _Q], Awaitable[TaggedBody | Long]],
    question: _Q,
    shape: type[_T],
) -> _T:
    """The answer that a token would get, as the fields of this shape. Raises the same refusals."""
    answer = Answer("told", shape)
    answered = await answering(context, answer, question)
    assert isinstance(answered, TaggedBody)  # a window or a page is short
    return cast(_T, answer.payload(answered.body))


async def _tournament(context: RecallContext, _question: NoQuestion) -> Struct:
    live, board = context.live, context.live.board
    head = live.head
    name = await moments.name(context.past, live.tournament_id, head.sequence)
    rankings = [
        BriefPublicRankingShape(ranking_id, ranking.name)
        for ranking_id, ranking in board.rankings.items()
        if ranking_id not in context.hidden
    ]
    recorded_at = await recorded_at_head(context, head)
    return PublicTournamentShape(name=name, sequence=head.sequence, recorded_at=instant(recorded_at), rankings=rankings)


async def _ranking(context: RecallContext, question: _OfRanking) -> Struct:
    ranking = ranking_of(context.live.board, question.ranking_id)
    return PublicRankingShape(
        id=question.ranking_id,
        name=ranking.name,
        description=ranking.description,
        closed_at=instant_or_none(ranking.closed_at),
        lines=len(ranking.participants),
        unities=[
            msgspec.convert(unity_shape(unity_id, unity), PublicUnityShape, from_attributes=True)
            for unity_id, unity in ranking.unities.items()
        ],
        criteria=criteria_shape(in_force(ranking)),
        declared=bool(ranking.criteria),
    )


async def _standings(context: RecallContext, question: TableQuestion) -> Struct:
    """Without a window, the first lines of the main unity."""
    if question.is_whole:
        question = msgspec.structs.replace(question, limit=WINDOW_LINES_MAX)
    shown = await _told(context, standings.answer_standings, question, PastRankingShape)
    (unity,) = shown.unities
    assert unity.lines is not UNSET  # as in every window
    return PublicStandingsShape(
        unity_id=unity_of(context.live.board, question.ranking_id, question.unity_id),
        sequence=shown.sequence,
        recorded_at=shown.recorded_at,
        on=shown.on,
        lines=unity.lines,
        standings=unity.competitors_ranking,
        competitors=_competitors(context.live.board, [line.competitor_id for line in unity.competitors_ranking]),
    )


async def _classification(context: RecallContext, question: TableQuestion) -> Struct:
    shown = await _told(context, classifications.answer_classification, question, ClassificationShape)
    return PublicClassificationShape(
        criteria=shown.criteria,
        sequence=shown.sequence,
        recorded_at=shown.recorded_at,
        on=shown.on,
        lines=shown.lines,
        standings=shown.standings,
        competitors=_competitors(context.live.board, [line.competitor_id for line in shown.standings]),
    )


async def _form(context: RecallContext, question: FormQuestion) -> Struct:
    shown = await _told(context, recent_results.answer_form, question, FormShape)
    competitions = [one.competition_id for line in shown.competitors for one in line.competitions]
    return PublicFormShape(
        unity_id=shown.unity_id,
        sequence=shown.sequence,
        recorded_at=shown.recorded_at,
        on=shown.on,
        lines=shown.lines,
        form=shown.competitors,
        **_causes(context.live.board, [line.competitor_id for line in shown.competitors], competitions),
    )


async def _leaders(context: RecallContext, question: LeadersQuestion) -> Struct:
    shown = await _told(context, leaders.answer_leaders, question, LeadersShape)
    groups = [*(one.competitors for one in shown.reigns), *(one.log + one.world for one in shown.differences)]
    named = [*(one.competitor_id for one in shown.competitors), *(who for group in groups for who in group)]
    return PublicLeadersShape(
        unity_id=shown.unity_id,
        clock=shown.clock,
        sequence=shown.sequence,
        recorded_at=shown.recorded_at,
        until=shown.until,
        lines=shown.lines,
        reigns=shown.reigns,
        led=shown.led,
        times=shown.competitors,
        differing=shown.differing,
        differences=shown.differences,
        competitors=_competitors(context.live.board, named),
    )


async def _expiring(context: RecallContext, question: ExpiringQuestion) -> Struct:
    shown = await _told(context, expiring.answer_expiring, question, ExpiringShape)
    return PublicExpiringShape(
        unity_id=shown.unity_id,
        sequence=shown.sequence,
        recorded_at=shown.recorded_at,
        until=shown.until,
        lines=shown.lines,
        expiring=shown.competitors,
        competitors=_competitors(context.live.board, [line.competitor_id for line in shown.competitors]),
    )


class _HistoryPage(Struct):
    told: list[PublicLineShape]
    next: str | None


async def _history(context: RecallContext, question: HistoryQuestion) -> Struct:
    answered = await history.answer_history(context, Answer("told", list[PublicLineShape]), question)
    page = msgspec.json.decode(answered.body, type=_HistoryPage)
    named = [line.competitor_id for line in page.told]
    return PublicHistoryShape(
        lines=page.told,
        next=page.next,
        **_causes(context.live.board, named, [line.competition_id for line in page.told]),
    )


async def _explanation(context: RecallContext, question: ExplainQuestion) -> Struct:
    shown = await _told(context, history.answer_explanation, question, PublicStepsShape)
    named = [shown.competitor_id, *(who for s in shown.steps for o in s.overtakings for who in (o.who, o.whom))]
    if shown.classification is not None:
        named += [line.competitor_id for line in shown.classification.standings or ()]
    causes = _causes(context.live.board, named, [step.competition_id for step in shown.steps])
    return PublicExplanationShape(explanation=shown, **causes)


def _causes(board: Board, competitors: Iterable[int | None], competitions: Iterable[int | None]) -> dict[str, Any]:
    """The fields of a PublicCausesShape: these competitors and competitions, and the participants of the duels."""
    causes = [CompetitionId(one) for one in dict.fromkeys(competitions) if one is not None]
    found = [_competition(*one) for one in board.competitions.held(causes)]
    duellists = [competitor_id for one in found for competitor_id in one.participants or ()]
    named = [competitor_id for competitor_id in competitors if competitor_id is not None]
    return {"competitors": _competitors(board, [*named, *duellists]), "competitions": found}


def _competitors(board: Board, competitor_ids: Iterable[int]) -> list[PublicCompetitorShape]:
    found = []
    for competitor_id in dict.fromkeys(competitor_ids):
        competitor = board.competitors[CompetitorId(competitor_id)]
        found.append(PublicCompetitorShape(competitor_id, competitor.name, competitor.color, competitor.tags))
    return found


def _competition(competition_id: CompetitionId, competition: Competition) -> PublicCompetitionShape:
    return PublicCompetitionShape(
        competition_id,
        instant(competition.started_at),
        competition.location,
        competition.participants if len(competition.participants) <= SCORE_PARTICIPANTS_MAX else None,
        competition.result if isinstance(competition.result, str) else None,
        competition.voided_at is not None,
    )


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────


class PublicRead(Enveloped, frozen=True, kw_only=True):
    """Answers a public request. `question`: made from the ids in the path and the `fields` of the query."""

    question: Callable[..., Any]
    render: Callable[[RecallContext, Any], Awaitable[Struct]]


def _fields(operations: tuple[Operation, ...], path: str) -> Fields:
    """The fields of the operation of this path, without the actor."""
    (recall,) = [one for one in operations if isinstance(one, Recall) and one.path == path]
    return tuple([field for field in recall.fields if field.name != "actor"])


_RANKING: Final = "rankings/{ranking_id}"

PUBLIC_READS: Final[tuple[PublicRead, ...]] = (
    PublicRead(
        f"{_RANKING}/standings.json",
        "The standings of a unity or a window of them, now or at one moment of the past",
        operation_id="showPublicStandings",
        question=TableQuestion,
        answer=Answer("standings", PublicStandingsShape),
        render=_standings,
        fields=_fields(standings.OPERATIONS, f"{_RANKING}/standings.json"),
    ),
    PublicRead(
        f"{_RANKING}/classification.json",
        "The classification of a ranking or a window of it, now or at one moment of the past",
        operation_id="showPublicClassification",
        question=TableQuestion,
        answer=Answer("classification", PublicClassificationShape),
        render=_classification,
        fields=_fields(classifications.OPERATIONS, f"{_RANKING}/classification.json"),
    ),
    PublicRead(
        f"{_RANKING}/form.json",
        "What competitors got in their last competitions, now or at one moment of the past",
        operation_id="showPublicForm",
        question=FormQuestion,
        answer=Answer("form", PublicFormShape),
        render=_form,
        fields=_fields(recent_results.OPERATIONS, f"{_RANKING}/form.json"),
    ),
    PublicRead(
        f"{_RANKING}/history.json",
        "The deltas of a ranking, with time, competition and reason, and the declarations of its classification",
        operation_id="listPublicHistory",
        question=HistoryQuestion,
        answer=Answer("history", PublicHistoryShape),
        render=_history,
        fields=_fields(history.OPERATIONS, f"{_RANKING}/history.json"),
    ),
    PublicRead(
        f"{_RANKING}/explain.json",
        "Why a competitor has this position and total",
        operation_id="explainPublic",
        question=ExplainQuestion,
        answer=Answer("explained", PublicExplanationShape),
        render=_explanation,
        fields=_fields(history.OPERATIONS, f"{_RANKING}/explain.json"),
    ),
    PublicRead(
        f"{_RANKING}/leaders.json",
        "Who led from when to when, and how long each competitor did",
        operation_id="showPublicLeaders",
        question=LeadersQuestion,
        answer=Answer("leaders", PublicLeadersShape),
        render=_leaders,
        fields=_fields(leaders.OPERATIONS, f"{_RANKING}/leaders.json"),
    ),
    PublicRead(
        f"{_RANKING}/expiring.json",
        "What competitors will lose when points expire",
        operation_id="showPublicExpiring",
        question=ExpiringQuestion,
        answer=Answer("expiring", PublicExpiringShape),
        render=_expiring,
        fields=_fields(expiring.OPERATIONS, f"{_RANKING}/expiring.json"),
    ),
    PublicRead(
        f"{_RANKING}.json",
        "A ranking, its unities and the criteria of its classification",
        operation_id="showPublicRanking",
        question=_OfRanking,
        answer=Answer("ranking", PublicRankingShape),
        render=_ranking,
    ),
    PublicRead(
        "tournament.json",
        "The tournament: its name, its rankings, and how far its log reaches for the public",
        operation_id="showPublicTournament",
        question=NoQuestion,
        answer=Answer("tournament", PublicTournamentShape),
        render=_tournament,
    ),
)


def add_to(
    router: Router, compression: Compression, views: PublicViews, *, visits: Throttle | None, proxies: int
) -> None:
    """Adds these operations. `visits` counts the requests of each address, if they are counted."""

    def handler(operation: PublicRead) -> Handler:
        async def handle(incoming: IncomingRequest) -> Reply:
            slug = incoming.parameters["tournament"]
            incoming.facts["tournament"] = slug[:SLUG_CHARACTERS_LOGGED]
            if visits is not None:
                visits.take(address_of(incoming.request, proxies=proxies))
            question = _question(operation, incoming)
            answered = await views.answer(slug, lambda context: _answered(operation, context, question))
            return await compression.reply(incoming.request, answered.body, etag=answered.etag, kept=REVALIDATED)

        return handle

    for operation in PUBLIC_READS:
        router.add("GET", PUBLIC + operation.path, handler(operation))


def _question(operation: PublicRead, incoming: IncomingRequest) -> Any:
    """The question. It is read before the tournament is looked up, so a refusal does not reveal whether the tournament
    exists."""
    asked = read_query(incoming.request.query, operation.fields)
    return operation.question(**asked, **incoming.ids)


async def _answered(operation: PublicRead, context: RecallContext, question: Any) -> TaggedBody:
    """The answer, made once for identical requests until the next event. Raises the errors of `render`, and
    NotFound."""
    live = context.live
    question = with_days(live.board, question)
    if operation.question is not NoQuestion:
        ranking_of(live.board, question.ranking_id)
        context.refuse_hidden(question.ranking_id)
    windows, key = live.cache.windows, ("public", operation.path, question, context.hidden)
    windows.renew(live.head.sequence)
    known = windows.get(key)
    if known is not None:
        return tagged_body(known)
    head = live.head
    body = operation.answer.body(encode(await operation.render(context, question)))
    if live.head == head and windows.stamp == head.sequence:
        windows.keep(key, body)
    return tagged_body(body)
