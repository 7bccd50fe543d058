"""The public reads of a published tournament, without a token.

The questions are those of requests with a token. The public sees every field of their answers that is not NOT_PUBLIC
(`engine/domain/terms.py`), all options of a unity, and nothing else that is not named here. Never public: the sender of
a request, keys, tokens, and anything beyond the public end. Names, colours and tags are those at the public end.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from api.http.compression import Compression
from api.http.reply import REVALIDATED, Reply
from api.http.router import Handler, IncomingRequest, Router
from api.http.throttle import Throttle, address_of
from api.interface.declarations import Enveloped, NoQuestion, Public, Recall, RecallContext
from api.interface.fields import read_query
from api.interface.operations import OPERATIONS
from api.interface.public.named import (
    PublicNamesShape,
    competitors_named,
    named,
    public_answer_of,
)
from api.interface.public.view import PublicViews
from api.interface.questions import TABLE_FIELDS
from api.interface.rendering import Answer, Instant, TaggedBody, encode, tagged_body
from api.interface.resources.tournaments import SLUG_CHARACTERS_LOGGED
from api.interface.windows import WINDOW_FIELDS
from engine.domain.options import UnityOptions
from engine.domain.terms import RankingId
from engine.domain.times import instant, instant_or_none
from projections.answers.criteria import Criteria, criteria_shape
from projections.answers.lookup import ranking_of
from projections.answers.rankings import listed_unity
from projections.answers.standings import StandingLine, StandingsQuestion
from projections.answers.view import ask, kind_of
from projections.answers.windows import WINDOW_LINES_MAX
from projections.answers.zones import with_days
from projections.board.classification import in_force
from projections.past import moments

PUBLIC: Final = "/board/{tournament}/"
"""The path of all public requests."""

# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


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
    they were declared; if not, they are the main unity alone. `zones`: what places of the table lead to."""

    id: int
    name: str
    description: str | None
    closed_at: Instant | None
    lines: int
    unities: list[PublicUnityShape]
    criteria: Criteria
    declared: bool
    zones: str | None


class PublicStandingsShape(PublicNamesShape, kw_only=True):
    unity_id: int
    sequence: int
    recorded_at: Instant
    lines: int
    standings: list[StandingLine]
    on: Instant | UnsetType = UNSET


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class _OfRanking(Struct, frozen=True):
    ranking_id: RankingId


async def _tournament(context: RecallContext, _question: NoQuestion) -> Struct:
    live, board = context.live, context.live.board
    head = live.head
    name = await moments.name(context.past, live.tournament_id, head.sequence)
    rankings = [
        BriefPublicRankingShape(ranking_id, ranking.name)
        for ranking_id, ranking in board.rankings.items()
        if ranking_id not in context.hidden
    ]
    recorded_at = await context.recorded_at(head)
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
            msgspec.convert(listed_unity(unity_id, unity), PublicUnityShape, from_attributes=True)
            for unity_id, unity in ranking.unities.items()
        ],
        criteria=criteria_shape(in_force(ranking)),
        declared=bool(ranking.criteria),
        zones=ranking.zones,
    )


async def _standings(context: RecallContext, question: StandingsQuestion) -> Struct:
    """Without a window, the first lines of the main unity."""
    if question.is_whole:
        question = msgspec.structs.replace(question, limit=WINDOW_LINES_MAX)
    shown = await ask(context, question)
    (unity,) = shown.unities
    named = competitors_named(context.live.board, [line.competitor_id for line in unity.lines])
    return PublicStandingsShape(
        unity_id=unity.unity_id,
        sequence=shown.sequence,
        recorded_at=instant(shown.recorded_at),
        on=UNSET if shown.on is UNSET else instant(shown.on),
        lines=unity.count,
        standings=unity.lines,
        competitors=[*named],
    )


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────


class PublicRead(Enveloped, frozen=True, kw_only=True):
    """Answers a public request. `question`: made from the ids in the path and the `fields` of the query."""

    question: Callable[..., Any]
    render: Callable[[RecallContext, Any], Awaitable[Struct | Raw]]


def _public(recall: Recall, public: Public) -> PublicRead:
    return PublicRead(
        recall.path,
        public.summary,
        operation_id=public.operation_id,
        question=recall.question,
        answer=public_answer_of(recall.answer.key, kind_of(recall.question)),
        render=named,
        fields=tuple([field for field in recall.fields if field.name != "actor"]),
        example=recall.example,
    )


PUBLIC_READS: Final[tuple[PublicRead, ...]] = (
    PublicRead(
        "rankings/{ranking_id}/standings.json",
        "The standings of a unity or a window of them, now or at a past moment",
        operation_id="showPublicStandings",
        question=StandingsQuestion,
        answer=Answer("standings", PublicStandingsShape),
        render=_standings,
        fields=(*TABLE_FIELDS, *WINDOW_FIELDS),
    ),
    *[_public(one, one.public) for one in OPERATIONS if isinstance(one, Recall) and one.public is not None],
    PublicRead(
        "rankings/{ranking_id}.json",
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
