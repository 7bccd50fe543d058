"""A ranking with its standings: the answer to every change of it, and to queries for now or a past moment."""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol

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
from engine.domain.steps import collected
from engine.domain.terms import CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from engine.domain.times import instant, timestamp_or_none
from engine.log.heads import Head
from engine.process.time_slices import TimeSlices, in_time_slices
from projections.answers.lookup import unity_of
from projections.answers.tables import (
    PositionThen,
    TableQuestion,
    moved,
    tagged_ids,
    tagged_now,
    tagged_then,
    then_of,
    with_moved,
)
from projections.board.board import Board, Ranking, Revisions, Unity
from projections.board.order import OrderedLines, sorted_in_steps, unpacked
from projections.board.selection import Selection
from projections.board.standing import Standing, ordered, placed
from projections.board.sub_table import SubTable, fill
from projections.columns.sorted_integers import SortedIntegers
from projections.live.cache import RenderCache
from projections.live.held import HeldBoard
from projections.live.nested_sets import NestedSets
from projections.live.orders import made_in_time_slices
from projections.past import moments
from projections.past.moments import AtVersion, PastBoard

SHORT_LINES_MAX: Final = 2 * LINES_AT_ONCE_MAX
"""Lines of standings in a short answer, of all unities together. A line takes half as long as a competitor."""
LINES_OF_CHUNK: Final = 250
"""Lines of standings in one chunk of a long answer."""
COMPARED_LINES_OF_CHUNK: Final = 200
"""The same in an answer that compares: it also looks up each competitor's earlier position."""
MADE_LINES_MAX: Final = 10_000
"""Lines of a list, or of a unity, up to which its JSON is kept, and shared by all answers. With more lines, each answer
makes its own, so that the data held while clients read is small compared to the answers."""


# ── Shapes ──────────────────────────────────────────────────────────────────────────────────────────────


class StandingShape(Struct, frozen=True, gc=False):
    """One competitor's line in a unity. `overall`, in a sub-table only: the position in the whole standings. `moved`,
    if requested: places gained since then, negative if lost; null for a competitor outside this table then. `total`
    null: the unity counts results, and none of theirs counts."""

    competitor_id: int
    position: int
    total: int | None
    overall: int | UnsetType = UNSET
    moved: int | None | UnsetType = UNSET


class UnityShape(Struct, kw_only=True):
    """`lines`, in a window only: the total number of lines; in a window of a sub-table, that of the sub-table."""

    name: str
    version: int
    competitors_ranking: list[StandingShape]
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
        self.nested_sets = NestedSets(lambda: then.board)

    def hold(self) -> HeldBoard:
        return HeldBoard(self.board, self.nested_sets.hold(), 0)


def render_standings(view: BoardNow, answer: Answer, of: OfRanking) -> bytes | Later:
    """The ranking with its current standings."""
    ranking_id = of.ranking_id
    return view.cache.rendered(
        ("standings", ranking_id), view.head.sequence, lambda: _short(view, answer, ranking_id, _END), len
    ) or _long(view, answer, ranking_id)


_END: Final = b"]}}"
"""What follows the unities of a RankingShape in the body."""


async def answer_standings(context: RecallContext, answer: Answer, question: TableQuestion) -> TaggedBody | Long:
    """One ranking with its standings or a window of them, now or at a past moment. Raises NotFound if there was no such
    moment or unity, and Unacceptable if the window names a competitor outside the ranking, or too many have the tag."""
    live, ranking_id, moment = context.live, question.ranking_id, question.moment
    if moment is None and question.on is None:
        if question.is_whole:
            return await _whole_now(context, answer, question)
        return await _window_now(context, answer, question)
    if isinstance(moment, AtVersion):
        unity_of(live.board, ranking_id, moment.unity_id)
    head = live.head
    earlier = await _earlier(context, question, head.sequence) if question.is_whole else None
    then = await moments.at(context.past, live.tournament_id, ranking_id, moment, head.sequence, question.on)
    view = PastView(live.tournament_id, then)
    await view.nested_sets.settle()
    if not question.is_whole:
        return await _window_then(view, context, answer, question, then)
    unfinished: bytes | Long = _short(view, answer, ranking_id, b"") if earlier is None else b""
    if not unfinished:
        unfinished = await context.begin(_long(view, answer, ranking_id, earlier))
    return _finished(unfinished, ranking_id, then, head)


async def _whole_now(context: RecallContext, answer: Answer, question: TableQuestion) -> TaggedBody | Long:
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
        head = unfinished.head
    recorded_at = await context.recorded_at(head)
    return _finished(unfinished, ranking_id, PastBoard(live.board, head.sequence, recorded_at), head)


def _finished(unfinished: bytes | Long, ranking_id: RankingId, shown: PastBoard, head: Head) -> TaggedBody | Long:
    """The answer, completed with the moment that it shows. `head`: the end of the log."""
    end = _moment(ranking_id, shown)
    if isinstance(unfinished, bytes):
        return tagged_body(unfinished + end)
    return unfinished.ending(end, etag_of("standings", unfinished.etag, head.digest))


def _moment(ranking_id: RankingId, shown: PastBoard) -> bytes:
    """The end of an answer that shows a moment."""
    shape = PastRankingShape(
        **_fields(ranking_id, shown.board.rankings[ranking_id], b"[]"),
        unities=[],
        sequence=shown.sequence,
        recorded_at=instant(shown.recorded_at),
        on=UNSET if shown.clock is None else instant(shown.clock.on),
    )
    return cut(shape, "unities")[1] + b"}"


# ── Windows ─────────────────────────────────────────────────────────────────────────────────────────────


async def _window_now(context: RecallContext, answer: Answer, question: TableQuestion) -> TaggedBody:
    """Made once for identical requests until the next event."""
    live, ranking_id = context.live, question.ranking_id
    windows, key = live.cache.windows, (answer.key, question)  # the public gets the same under another key
    windows.renew(live.head.sequence)
    known = windows.get(key)
    if known is not None:
        return tagged_body(known)
    await live.nested_sets.settle()
    unity_id = unity_of(live.board, ranking_id, question.unity_id)
    selection = await tagged_now(context, question)
    order = await live.orders.of(ranking_id, unity_id)
    head = live.head
    unfinished = await _window(live, context, answer, question, unity_id, order, selection)
    recorded_at = await context.recorded_at(head)
    body = unfinished + _moment(ranking_id, PastBoard(live.board, head.sequence, recorded_at))
    if windows.stamp == head.sequence:
        windows.keep(key, body)
    return tagged_body(body)


async def _window_then(
    view: PastView, context: RecallContext, answer: Answer, question: TableQuestion, then: PastBoard
) -> TaggedBody:
    ranking_id = question.ranking_id
    unity_id = unity_of(then.board, ranking_id, question.unity_id)
    ranking = then.board.rankings[ranking_id]
    selection = await tagged_then(then.board, question, context.time_slices)
    order = await made_in_time_slices(ranking.participants, ranking.unities[unity_id])
    unfinished = await _window(view, context, answer, question, unity_id, order, selection)
    return tagged_body(unfinished + _moment(ranking_id, then))


async def _window(
    view: BoardNow,
    context: RecallContext,
    answer: Answer,
    question: TableQuestion,
    unity_id: UnityId,
    order: OrderedLines,
    selection: Selection | None,
) -> bytes:
    """The body up to its only unity, with the requested lines of `order`, or of the sub-table of the selected
    competitors. It takes hold of everything that it shows before it gives way to other work. Raises Unacceptable, and
    as `then_of`."""
    ranking_id, head = question.ranking_id, context.live.head
    ranking = view.board.rankings[ranking_id]
    unity = ranking.unities[unity_id]
    shape = UnityShape(
        name=unity.name,
        version=unity.version,
        competitors_ranking=[],
        general=unity.number == 1,
        lines=len(order),
    )
    unfinished = RankingShape(**_fields(ranking_id, ranking, b"[]"), unities=[])
    before, between, _ = cut(unfinished, "competitors", "unities")
    pieces = competitor_pieces(view)
    if selection is None:
        shape.competitors_ranking = [
            StandingShape(line.competitor_id, line.position, unity.notation.shown(line.total))
            for line in question.lines(order)
        ]
    else:
        table = await _sub_table(order, selection, context.time_slices)
        shape.lines = len(table)
        shape.competitors_ranking = [
            StandingShape(
                line.whole.competitor_id, line.position, unity.notation.shown(line.whole.total), line.whole.position
            )
            for line in question.lines(table)
        ]
    then = await then_of(context, question, head.sequence)
    if then is not None:
        position_then = await _positions(then.board, context.time_slices, question, unity_id)
        shape.competitors_ranking = await with_moved(shape.competitors_ranking, position_then)
    end = between + encode(shape)
    competitors = (pieces[CompetitorId(line.competitor_id)] for line in shape.competitors_ranking)
    return b"".join((answer.before, before, b",".join(await in_time_slices(collected(competitors))), end))


async def _sub_table(order: OrderedLines, selection: Selection, time_slices: TimeSlices) -> SubTable[Standing]:
    """The sub-table of the selected competitors, in the state at the call. Raises Unacceptable."""
    table: SubTable[Standing] = SubTable()
    filling = fill(table, order, tagged_ids(selection))
    for _ in filling:
        await time_slices.work(filling)
    return table


# ── Comparison ──────────────────────────────────────────────────────────────────────────────────────────


async def _positions(board: Board, time_slices: TimeSlices, question: TableQuestion, unity_id: UnityId) -> PositionThen:
    """The positions on a board of the past, in the table from which a window is cut. Raises Unacceptable."""
    ranking = board.rankings[question.ranking_id]
    unity = ranking.unities.get(unity_id)
    if unity is None:
        return _nowhere
    selection = await tagged_then(board, question, time_slices)
    order = await made_in_time_slices(ranking.participants, unity)
    if selection is None:
        return lambda competitor_id: order.position(order.line(competitor_id))
    return (await _sub_table(order, selection, time_slices)).position


def _nowhere(_: CompetitorId) -> None:
    """No position: the unity did not exist yet."""


_Line = Callable[[int, int, int], StandingShape]
"""Makes the line of a competitor with this position and total."""


class _Earlier(Struct, frozen=True):
    """The order of each unity that existed earlier, for comparison with whole standings. `moment`: the earlier event,
    and the time by which results had taken place; None: all results."""

    moment: tuple[Sequence, datetime | None]
    orders: Mapping[UnityId, OrderedLines]
    size_bytes: int

    def line(self, unity_id: UnityId) -> _Line:
        """Makes the lines of this unity."""
        order = self.orders.get(unity_id)

        def made(competitor_id: int, position: int, total: int) -> StandingShape:
            then = None if order is None else order.position(order.line(CompetitorId(competitor_id)))
            return StandingShape(competitor_id, position, total, UNSET, moved(position, then))

        return made


async def _earlier(context: RecallContext, question: TableQuestion, head: Sequence) -> _Earlier | None:
    """None: nothing is compared. Raises as `then_of`."""
    then = await then_of(context, question, head)
    if then is None:
        return None
    ranking = then.board.rankings[question.ranking_id]
    orders: dict[UnityId, OrderedLines] = {}
    size_bytes = ranking.participants.size_bytes
    for unity_id, unity in ranking.unities.items():
        order = orders[unity_id] = await made_in_time_slices(ranking.participants, unity)
        size_bytes += order.size_bytes + unity.totals.size_bytes
    return _Earlier((then.sequence, then.on), orders, size_bytes)


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


def _fields(ranking_id: RankingId, ranking: Ranking, competitors: bytes) -> dict[str, Any]:
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
        competitors_ranking=placed(
            StandingShape, ordered(ranking.participants.places, unity.totals.column, unity.sort)
        ),
        general=unity.number == 1,
    )


def _unity_shape_with_results(ranking: Ranking, unity: Unity) -> UnityShape:
    lines = placed(StandingShape, ordered(ranking.participants.places, unity.totals.column, unity.sort))
    return UnityShape(
        name=unity.name,
        version=unity.version,
        competitors_ranking=lines if unity.notation.results is None else _shown(lines, unity.notation.results),
        general=unity.number == 1,
    )


def _shown(lines: list[StandingShape], sort: Sort) -> list[StandingShape]:
    """The lines with results of this sort in place of the stored marks."""
    shift, shown = (-BEYOND if sort is Sort.DESC else BEYOND), []
    for line in lines:  # as `result_of` does; calling it for each line would take as long as all the rest
        total = line.total + shift if line.total else None
        shown.append(msgspec.structs.replace(line, total=total))
    return shown


# ── Long answers ────────────────────────────────────────────────────────────────────────────────────────


def _long(view: BoardNow, answer: Answer, ranking_id: RankingId, earlier: _Earlier | None = None) -> Later:
    """`earlier`: what each line is compared with."""
    compared = () if earlier is None else earlier.moment
    return later(view, ("standings", ranking_id, *compared), lambda view: _take(view, answer, ranking_id, earlier))


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
        yield answer.before + before
        yield from competitors.chunks()
        yield between
        yield from listed(unity.chunks() for unity in unities)

    return make, (*parts, *unities), after + b"}"


def _competitors_part(pieces: CompetitorPieces, ranking: Ranking) -> Made | MadePerAnswer:
    participants, count = ranking.participants.held(), len(ranking.participants)

    def chunks() -> Iterator[bytes]:
        return joined(pieces[competitor_id] for competitor_id in participants)

    if count > MADE_LINES_MAX:
        return MadePerAnswer(chunks, participants.size_bytes)
    return Made(chunks(), PIECE_BYTES * count)


def _unity_part(ranking: Ranking, unity: Unity, compared: _Line | None = None) -> "Made | _LargeUnity":
    """The current shape of the unity. `compared` makes lines with their movement."""
    line: _Line = StandingShape if compared is None else compared
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
        "Show the standings of a ranking or a window of them, now or at one moment of the past",
        operation_id="showStandings",
        question=TableQuestion,
        answer=Answer("ranking", PastRankingShape),
        render=answer_standings,
        fields=(*TABLE_FIELDS, *WINDOW_FIELDS),
        judged=True,
    ),
)
