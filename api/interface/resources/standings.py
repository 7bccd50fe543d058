"""A ranking with its standings: the answer to every change of it, and to queries for now or a past moment."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from api.http.outgoing import Later, Long, Made, MadePerAnswer, Part, Taken, etag_of, joined
from api.interface.declarations import Operation, Recall, RecallContext
from api.interface.questions import TABLE_FIELDS
from api.interface.rendering import (
    LINES_AT_ONCE_MAX,
    Answer,
    BoardNow,
    Instant,
    TaggedBody,
    Taking,
    Timestamp,
    cut,
    encode,
    items_of,
    later,
    listed,
    tagged_body,
)
from api.interface.resources.competitors import (
    PIECE_BYTES,
    CompetitorPieces,
    RawCompetitors,
    competitor_pieces,
    participants_json,
)
from api.interface.windows import WINDOW_FIELDS
from engine.domain.marks import BEYOND
from engine.domain.terms import CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.domain.times import instant, timestamp_or_none
from engine.log.heads import Head
from engine.process.time_slices import all_of
from projections.answers.standings import StandingLine, Standings, StandingsQuestion
from projections.answers.tables import earlier_of
from projections.board.board import Ranking, Revisions, Unity
from projections.board.order import OrderedLines, sorted_in_steps, unpacked
from projections.board.standing import ordered, placed
from projections.columns.sorted_integers import SortedIntegers
from projections.live.cache import RenderCache, SmallPieces
from projections.live.held import HeldBoard
from projections.live.nested_sets import NestedSets
from projections.past.moments import PastBoard

SHORT_LINES_MAX: Final = 2 * LINES_AT_ONCE_MAX
"""Lines of standings in a short answer, of all unities together. A line takes half as long as a competitor."""
LINES_OF_CHUNK: Final = 250
"""Lines of standings in one chunk of a long answer."""
COMPARED_LINES_OF_CHUNK: Final = 200
"""The same in an answer that compares: it also looks up each competitor's earlier position."""
_STEP_PIECES: Final = 10
"""Competitors of a window that are rendered in one step."""
MADE_LINES_MAX: Final = 10_000
"""Lines of a list, or of a unity, up to which its JSON is kept, and shared by all answers. With more lines, each answer
makes its own, so that the data held while clients read is small compared to the answers."""


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class UnityShape(Struct, kw_only=True):
    """`lines`, in a window only: the total number of lines; in a window of a sub-table, that of the sub-table."""

    name: str
    version: int
    competitors_ranking: list[StandingLine]
    general: bool
    lines: int | UnsetType = UNSET


class RankingShape(Struct, kw_only=True):
    """A ranking with its standings: the answer to every change of a ranking (the modification shape)."""

    id: int
    name: str
    description: str | None
    closed_at: Timestamp | None
    competitors: RawCompetitors
    unities: list[UnityShape]


class PastRankingShape(RankingShape, kw_only=True):
    """The same, as of the event `sequence`. `on`, if requested: only points that had taken place by then count."""

    sequence: int
    recorded_at: Instant
    on: Instant | UnsetType = UNSET


# ── Rendering ───────────────────────────────────────────────────────────────────────────────────────────


class OfRanking(Protocol):
    """A question or an event about a ranking."""

    @property
    def ranking_id(self) -> RankingId: ...


class PastView:
    """A board of the past from which answers are rendered. Nothing of it is kept for other requests."""

    def __init__(self, tournament_id: TournamentId, then: PastBoard) -> None:
        self.tournament_id = tournament_id
        self.head = Head(then.sequence, repr(then.on).encode())  # distinguishes answers
        self.board = then.board
        self.revisions = Revisions()
        self.cache = RenderCache()
        self.nested_sets = NestedSets(then)

    def hold(self) -> HeldBoard:
        return HeldBoard(self.board, self.nested_sets.hold(), 0)


_Line = Callable[[int, int, int], StandingLine]
"""Makes the line of a competitor with this position and total."""
_LINE: Final = cast(_Line, StandingLine)


def render_standings(view: BoardNow, answer: Answer, of: OfRanking) -> bytes | Later:
    """The ranking with its current standings."""
    ranking_id = of.ranking_id
    return view.cache.rendered(
        ("standings", ranking_id), view.head.sequence, lambda: _short(view, answer, ranking_id, _END), len
    ) or _long(view, answer, ranking_id)


_END: Final = b"]}}"
"""What follows the unities of a RankingShape in the body."""


async def answer_standings(context: RecallContext, answer: Answer, question: StandingsQuestion) -> TaggedBody | Long:
    """One ranking with its standings or a window of them. Raises as the question says."""
    is_now = question.moment is None and question.on is None
    if not question.is_whole:
        return await _window(context, answer, question, is_now=is_now)
    if is_now:
        return await _whole_now(context, answer, question)
    live, ranking_id, head = context.live, question.ranking_id, context.live.head
    earlier = await _earlier(context, question, head.sequence)
    then = await context.at(ranking_id, question.moment, question.on)
    view = PastView(live.tournament_id, then)
    await view.nested_sets.settle()
    unfinished: bytes | Long = _short(view, answer, ranking_id, b"") if earlier is None else b""
    if not unfinished:
        unfinished = await context.begin(_long(view, answer, ranking_id, earlier))
    end = _end(ranking_id, then.board.rankings[ranking_id], then.sequence, then.recorded_at, then.on)
    return _finished(unfinished, end, head)


async def _whole_now(context: RecallContext, answer: Answer, question: StandingsQuestion) -> TaggedBody | Long:
    live, ranking_id = context.live, question.ranking_id
    earlier = await _earlier(context, question, live.head.sequence)
    await live.nested_sets.settle()
    head = live.head
    unfinished: bytes | Long = b""
    if earlier is None:
        unfinished = live.cache.rendered(
            ("standings without end", ranking_id), head.sequence, lambda: _short(live, answer, ranking_id, b""), len
        )
    if not unfinished:
        unfinished = await context.begin(_long(live, answer, ranking_id, earlier))
        head = live.head
    recorded_at = await context.recorded_at(head)
    return _finished(unfinished, _end(ranking_id, live.board.rankings[ranking_id], head.sequence, recorded_at), head)


def _finished(unfinished: bytes | Long, end: bytes, head: Head) -> TaggedBody | Long:
    """The answer, completed with the moment that it shows. `head`: the end of the log."""
    if isinstance(unfinished, bytes):
        return tagged_body(unfinished + end)
    return unfinished.ending(end, etag_of("standings", unfinished.etag, head.digest))


def _end(
    ranking_id: RankingId, ranking: Ranking, sequence: Sequence, recorded_at: datetime, on: datetime | None = None
) -> bytes:
    """The end of an answer that shows a moment."""
    shape = PastRankingShape(
        **_fields(ranking_id, ranking, b"[]"),
        unities=[],
        sequence=sequence,
        recorded_at=instant(recorded_at),
        on=UNSET if on is None else instant(on),
    )
    return cut(shape, "unities")[1] + b"}"


async def _window(context: RecallContext, answer: Answer, question: StandingsQuestion, *, is_now: bool) -> TaggedBody:
    """Of the present, it is made once for identical requests until the next event."""
    live = context.live
    windows, key = live.cache.windows, ("standings", question)
    windows.renew(live.head.sequence)
    known = windows.get(key) if is_now else None
    if known is not None:
        return tagged_body(known)
    standings = await question.answered(context)
    shape = await standings_shape(standings, kept=live.cache.small if is_now else None)
    body = answer.body(encode(shape))
    if is_now and windows.stamp == standings.sequence:
        windows.keep(key, body)
    return tagged_body(body)


async def standings_shape(
    standings: Standings, *, kept: SmallPieces[CompetitorId] | None = None, whole: bool = False
) -> PastRankingShape:
    """The shape of a window, or of whole standings. `kept`: keeps the shapes of present competitors."""
    pieces = CompetitorPieces(standings.competitors, RenderCache().small if kept is None else kept)
    competitors = (pieces[competitor_id] for competitor_id in standings.competitor_ids)
    return PastRankingShape(
        **_fields(
            standings.ranking_id,
            standings,
            b"[%b]" % b",".join(await all_of(competitors, _STEP_PIECES)),
        ),
        unities=[
            UnityShape(
                name=unity.name,
                version=unity.version,
                competitors_ranking=unity.lines,
                general=unity.general,
                lines=UNSET if whole else unity.count,
            )
            for unity in standings.unities
        ],
        sequence=standings.sequence,
        recorded_at=instant(standings.recorded_at),
        on=UNSET if standings.on is UNSET else instant(standings.on),
    )


# ── Comparison of whole standings ───────────────────────────────────────────────────────────────────────


class _Earlier(Struct, frozen=True):
    """The order of each unity that existed earlier, for comparison with whole standings. `moment`: the earlier event,
    and the time by which results had taken place; None: all results."""

    moment: tuple[Sequence, datetime | None]
    orders: Mapping[UnityId, OrderedLines]
    size_bytes: int

    def line(self, unity_id: UnityId) -> _Line:
        """Makes the lines of this unity."""
        order = self.orders.get(unity_id)

        def made(competitor_id: int, position: int, total: int) -> StandingLine:
            then = None if order is None else order.position(order.line(CompetitorId(competitor_id)))
            moved = None if then is None else then - position
            return StandingLine(CompetitorId(competitor_id), position, total, UNSET, moved)

        return made


async def _earlier(context: RecallContext, question: StandingsQuestion, head: Sequence) -> _Earlier | None:
    """None: nothing is compared. Raises as `earlier_of`."""
    earlier = await earlier_of(context, question, head)
    if earlier is None:
        return None
    ranking = earlier.board.rankings[question.ranking_id]
    orders: dict[UnityId, OrderedLines] = {}
    size_bytes = ranking.participants.size_bytes
    for unity_id, unity in ranking.unities.items():
        order = orders[unity_id] = await earlier.order(question.ranking_id, unity_id)
        size_bytes += order.size_bytes + unity.totals.size_bytes
    return _Earlier((earlier.head.sequence, earlier.on), orders, size_bytes)


# ── Short answers ───────────────────────────────────────────────────────────────────────────────────────


def _short(view: BoardNow, answer: Answer, ranking_id: RankingId, end: bytes) -> bytes:
    """The body, up to its last unity, and `end`. Empty: too long for a short answer."""
    ranking = view.board.rankings[ranking_id]
    lines = len(ranking.participants) * len(ranking.unities)
    before = _before_unities(view, answer, ranking_id, ranking) if lines <= SHORT_LINES_MAX else b""
    if not before:
        return b""
    unities = [_unity(view, ranking, unity_id, unity) for unity_id, unity in ranking.unities.items()]
    return b"%b%b%b" % (before, b",".join(unities), end)


def _before_unities(view: BoardNow, answer: Answer, ranking_id: RankingId, ranking: Ranking) -> bytes:
    """The body up to its unities, which come last. Points change nothing in it. Empty: too long for a short answer."""

    def render() -> bytes:
        competitors = participants_json(view, ranking_id, ranking)
        return competitors and _body_before_unities(answer, ranking_id, ranking, competitors)

    stamp = view.revisions.participants
    return view.cache.rendered(("before unities", ranking_id), stamp, render, len)


def _body_before_unities(answer: Answer, ranking_id: RankingId, ranking: Ranking, competitors: bytes) -> bytes:
    return answer.before + cut(RankingShape(**_fields(ranking_id, ranking, competitors), unities=[]), "unities")[0]


def _fields(ranking_id: RankingId, ranking: Ranking | Standings, competitors: bytes) -> dict[str, Any]:
    """The fields of a RankingShape before its unities."""
    return {
        "id": ranking_id,
        "name": ranking.name,
        "description": ranking.description,
        "closed_at": timestamp_or_none(ranking.closed_at),
        "competitors": Raw(competitors),
    }


def _unity(view: BoardNow, ranking: Ranking, unity_id: UnityId, unity: Unity) -> bytes:
    """The JSON of a unity. Every change of it raises the version, so the version tells whether kept JSON is current."""
    if len(ranking.unities) == 1:
        return encode(
            _unity_shape(ranking, unity)
        )  # it has just changed: keeping it as well as the whole gains nothing
    return view.cache.rendered(("unity", unity_id), unity.version, lambda: encode(_unity_shape(ranking, unity)), len)


def _unity_shape(ranking: Ranking, unity: Unity) -> UnityShape:
    if ranking.of_results:
        return _unity_shape_with_results(ranking, unity)
    return UnityShape(
        name=unity.name,
        version=unity.version,
        competitors_ranking=placed(_LINE, ordered(ranking.participants.places, unity.totals.column, unity.sort)),
        general=unity.number == 1,
    )


def _unity_shape_with_results(ranking: Ranking, unity: Unity) -> UnityShape:
    lines = placed(_LINE, ordered(ranking.participants.places, unity.totals.column, unity.sort))
    return UnityShape(
        name=unity.name,
        version=unity.version,
        competitors_ranking=lines if unity.notation.results is None else _shown(lines, unity.notation.results),
        general=unity.number == 1,
    )


def _shown(lines: list[StandingLine], sort: Sort) -> list[StandingLine]:
    """The lines with results of this sort in place of the stored marks."""
    shift, shown = (-BEYOND if sort is Sort.DESC else BEYOND), []
    for line in lines:  # as `result_of` does; calling it for each line would take as long as all the rest
        changes: dict[str, Any] = {"total": line.total + shift} if line.total else _UNPLACED
        shown.append(msgspec.structs.replace(line, **changes))
    return shown


_UNPLACED: Final = {"total": None, "placed": False}


# ── Long answers ────────────────────────────────────────────────────────────────────────────────────────


def _long(view: BoardNow, answer: Answer, ranking_id: RankingId, earlier: _Earlier | None = None) -> Later:
    """`earlier`: what each line is compared with."""
    compared = () if earlier is None else earlier.moment
    return later(view, ("standings", ranking_id, *compared), partial(_take, view, answer, ranking_id, earlier))


def _take(view: BoardNow, answer: Answer, ranking_id: RankingId, earlier: _Earlier | None) -> Taking:
    ranking = view.board.rankings[ranking_id]
    pieces = competitor_pieces(view)
    competitors = view.cache.part(
        ("part enrolled", ranking_id), view.revisions.participants, partial(_competitors_part, pieces, ranking)
    )
    parts: tuple[Part, ...] = (*pieces.parts, competitors)
    if earlier is None:
        unities = [
            view.cache.part(("part unity", unity_id), unity.version, partial(_unity_part, ranking, unity))
            for unity_id, unity in ranking.unities.items()
        ]
    else:
        unities = [_unity_part(ranking, unity, earlier.line(i)) for i, unity in ranking.unities.items()]
        parts += (Taken(earlier.size_bytes),)
    shape = RankingShape(**_fields(ranking_id, ranking, b"[]"), unities=[])
    before, between, after = cut(shape, "competitors", "unities")

    def make() -> Iterator[bytes]:
        yield from competitors.chunks()
        yield between
        yield from listed(unity.chunks() for unity in unities)

    return answer.before + before, make, (*parts, *unities), after + b"}"


def _competitors_part(pieces: CompetitorPieces, ranking: Ranking) -> Made | MadePerAnswer:
    participants, count = ranking.participants.held(), len(ranking.participants)

    def chunks() -> Iterator[bytes]:
        return joined(pieces[competitor_id] for competitor_id in participants)

    if count > MADE_LINES_MAX:
        return MadePerAnswer(chunks, participants.size_bytes)
    return Made(chunks(), PIECE_BYTES * count)


def _unity_part(ranking: Ranking, unity: Unity, compared: _Line | None = None) -> "Made | _LargeUnity":
    """The current shape of the unity. `compared` makes lines with their movement."""
    line: _Line = _LINE if compared is None else compared
    chunk = LINES_OF_CHUNK if compared is None else COMPARED_LINES_OF_CHUNK
    places, column, sort = ranking.participants.places[:], unity.totals.column[:], unity.sort
    results = unity.notation.results
    shape = UnityShape(name=unity.name, version=unity.version, competitors_ranking=[], general=unity.number == 1)
    if len(ranking.participants) > MADE_LINES_MAX:
        return _LargeUnity(shape, places, column, unity, line, chunk)

    def chunks() -> Iterator[bytes]:
        lines = ordered(places, column, sort)
        yield b""
        before, after = cut(shape, "competitors_ranking")
        yield before
        above = None
        for start in range(0, len(lines), chunk):
            run = placed(line, lines[start : start + chunk], start + 1, above)
            above = run[-1]
            yield (b"," if start else b"") + items_of(run if results is None else _shown(run, results))
        yield after

    return Made(chunks(), _LINE_BYTES * len(places))


class _LargeUnity:
    """A part for a unity with many lines. The first answer that needs the lines puts them in order, step by step, once.
    Each answer then makes its own chunks, because kept chunks would take several times as much memory as the order."""

    def __init__(
        self, shape: UnityShape, places: Items[int], column: Items[int], unity: Unity, line: _Line, chunk: int
    ) -> None:
        self.size_bytes = _ORDERED_LINE_BYTES * len(places)
        self._around = cut(shape, "competitors_ranking")
        self._line, self._chunk = line, chunk
        self._places, self._sort, self._results = places, unity.sort, unity.notation.results
        self._lines: SortedIntegers | None = None
        self._making = sorted_in_steps(places, column, unity.sort)

    def chunks(self) -> Iterator[bytes]:
        while (lines := self._lines) is None:
            self._step()
            yield b""
        before, after = self._around
        yield before
        above = None
        for start in range(0, len(lines), self._chunk):
            run = unpacked(lines.run(start, start + self._chunk), self._places, self._sort)
            shapes = placed(self._line, run, start + 1, above)
            above = shapes[-1]
            yield (b"," if start else b"") + items_of(
                shapes if self._results is None else _shown(shapes, self._results)
            )
        yield after

    def _step(self) -> None:
        try:
            next(self._making)
        except StopIteration as end:
            if end.value is None:
                raise RuntimeError("what this is made from has failed before") from None
            self._lines = end.value


_LINE_BYTES: Final = 64
"""Bytes of a line, or, before it is made, of the data that it is made from."""
_ORDERED_LINE_BYTES: Final = 40
"""Bytes of a line in order, and of the total that it is made from."""


# ── Operations ──────────────────────────────────────────────────────────────────────────────────────────


STANDINGS: Final = Answer("ranking", RankingShape)
"""The answer to a change of a ranking."""

OPERATIONS: Final[tuple[Operation, ...]] = (
    Recall(
        "rankings/{ranking_id}/standings.json",
        "Show the standings of a ranking or a window of them, now or at a past moment",
        operation_id="showStandings",
        about="standings",
        question=StandingsQuestion,
        answer=Answer("ranking", PastRankingShape),
        render=answer_standings,
        fields=(*TABLE_FIELDS, *WINDOW_FIELDS),
        judged=True,
    ),
)
