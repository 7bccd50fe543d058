"""The checks of events that need the log before them: what they reverse, what expires with them, and totals of results.

They read it again, because memory holds only a board and sums. All are about the block that was folded last.
"""

from collections import Counter
from collections.abc import AsyncIterator, Container, Iterator
from collections.abc import Sequence as Items
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from operator import attrgetter
from typing import Final, Literal

import msgspec
from asyncpg import Connection
from msgspec import UNSET

from engine.domain.counting import Turns, running_totals, signed, take_turn, total_of_results
from engine.domain.errors import LogForked
from engine.domain.events import (
    CompetitionChanged,
    CompetitionUnvoided,
    CompetitionVoided,
    Delta,
    PointsAdded,
    PointsExpired,
    PointsReversed,
    PointsScored,
    RankingReopened,
    Recorded,
    Revaluation,
    origin,
    root,
)
from engine.domain.expirations import Expiration, LinesByRanking, Redating, lines_at_once
from engine.domain.lines import part_of, rule_of
from engine.domain.marks import mark_after
from engine.domain.rescoring import GivenLines, competitions_with, given_amounts, scored_lines
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, TournamentId, UnityId
from engine.log import digest, reading
from projections.board.board import Competition, Ranking, counts_after
from projections.board.expiring import expiring_intervals
from projections.board.results import Last, Results, is_last, note_given
from projections.tables.dated import took_place_between
from projections.verification.block_checks import Blocks
from projections.verification.findings import Finding
from projections.verification.fold_checks import (
    BlockFacts,
    DueReversals,
    ExpiredInBlock,
    FoldChecks,
    RescoredRanking,
    ScoresInBlock,
    with_totals,
)

UNREVERSED_MAX: Final = 10
"""Events that are named in one difference."""
_BEGINNING: Final = Sequence(0)
_ANY_TIME: Final = digest.moment(0)
_ORDER: Final = attrgetter("unity_id", "competitor_id", "amount")


class LogChecks:
    """The checks of a tournament, over a connection within `stored_log.one_moment`. `blocks` are at the end of what
    `folding` has folded."""

    def __init__(
        self, connection: Connection, tournament_id: TournamentId, blocks: Blocks, folding: FoldChecks
    ) -> None:
        self._connection = connection
        self._tournament_id = tournament_id
        self._blocks = blocks
        self._folding = folding

    async def of_block(self, facts: BlockFacts) -> AsyncIterator[Finding]:
        """Checks what the last block left open."""
        for due in facts.due.values():
            if wrong := await self._reversal_fault(due):
                yield Finding(due.sequence, "event.reverses", f"of competition {due.event.competition_id}: {wrong}")
        undone = {
            sequence: event
            for sequence, event in facts.reversing
            if isinstance(event, PointsReversed) and event.undone is not None
        }
        together = {event.reverses for event in undone.values()}
        for sequence, undoing in undone.items():
            async for finding in self._undone(sequence, undoing, together):
                yield finding
        for finding in self._total_faults(facts, await self._turns_of(facts)):
            yield finding
        if facts.expirations:
            async for finding in self._expired(facts.expirations):
                yield finding
        for competition_id, scores in facts.scores.items():
            async for finding in self._scored(competition_id, scores):
                yield finding
        for ranking_id, again in facts.scored_again.items():
            async for finding in self._scored_again(ranking_id, again):
                yield finding

    @property
    def _now(self) -> datetime:
        """The time of the last block."""
        assert self._blocks.recorded_us is not None
        return digest.moment(self._blocks.recorded_us)

    # ── Reversals ───────────────────────────────────────────────────────────────────────────────────────

    async def _reversal_fault(self, due: DueReversals) -> str | None:
        """Which points should have been reversed but were not, and which were reversed without a reason."""
        upto, wanted = self._blocks.sequence, dict[Sequence, PointsAdded]()
        taken: list[PointsReversed] = []
        competition_id = due.event.competition_id
        async for recorded in reading.points_of(self._connection, self._tournament_id, competition_id, upto):
            event = recorded.event
            if isinstance(event, PointsAdded):
                points = self._to_reverse(due.event, recorded, event)
                if points.deltas or points.results:
                    wanted[recorded.sequence] = points
            elif isinstance(event, PointsReversed) and recorded.sequence > due.sequence and event.undone is None:
                taken.append(event)
        names = Counter([event.reverses for event in taken])
        wrong = [f"event {sequence} is not reversed" for sequence in wanted if sequence not in names]
        wrong += [f"event {sequence} is reversed {n} times" for sequence, n in names.items() if n > 1]
        wrong += [f"event {s} is reversed, which gave no points that count" for s in names if s not in wanted]
        wrong += [
            f"event {event.reverses} is reversed by other lines"
            for event in taken
            if event.reverses in wanted and not _is_reversed(event, wanted[event.reverses], due.sign)
        ]
        more = [f"and {len(wrong) - UNREVERSED_MAX} more"] if len(wrong) > UNREVERSED_MAX else []
        return "; ".join(wrong[:UNREVERSED_MAX] + more) or None

    def _to_reverse(self, event: Revaluation, recorded: Recorded, points: PointsAdded) -> PointsAdded:
        """Those of the points that start or stop counting by `event`, which is in the last block."""
        rule = rule_of(self._folding.board, points.ranking_id)
        if isinstance(event, CompetitionVoided | CompetitionUnvoided):
            return part_of(points, rule.voiding(event.competition_id, voided=False).of(recorded, self._now))
        lines = rule.striking(event.competition_id, event.competitors, struck=False).of(recorded, self._now)
        return part_of(points, [line for line in lines if line.delta.competitor_id in event.competitors])

    async def _undone(
        self, sequence: Sequence, event: PointsReversed, together: Container[Sequence]
    ) -> AsyncIterator[Finding]:
        """Compares an event that undoes or redoes points with the points that it reverses. `together`: the events that
        the block undoes or redoes."""
        board, request, recorded_at = self._folding.board, dict[Sequence, PointsAdded](), None
        try:
            request = await reading.points_of_request(self._connection, self._tournament_id, event.reverses)
            if request and board.expiries:
                named = await reading.event_at(self._connection, self._tournament_id, event.reverses)
                recorded_at = named.recorded_at
        except LogForked:
            request = {}  # it is not there
        points = request.get(event.reverses)
        if points is None:
            yield Finding(sequence, "event.reverses", f"event {event.reverses} adds no points")
            return
        rule = rule_of(board, points.ranking_id).undoing([event.reverses], undone=False)
        now = None if recorded_at is None else self._now
        counting = part_of(points, rule.lines(event.reverses, recorded_at or _ANY_TIME, points, now))
        sign: Literal[-1, 1] = -1 if event.undone else 1
        if event.competition_id != points.competition_id or not _is_reversed(event, counting, sign):
            yield Finding(sequence, "event.reverses", f"event {event.reverses} is reversed by other lines")
        for other in request:
            if other not in together:
                wrong = f"event {event.reverses} is reversed without event {other} of the same request"
                yield Finding(sequence, "event.reverses", wrong)
        if points.competition_id is not None:
            self._folding.folded.count_caused(points.competition_id, event.reverses, points, sign)

    # ── What scorings give ──────────────────────────────────────────────────────────────────────────────

    async def _scored(self, competition_id: CompetitionId, scores: ScoresInBlock) -> AsyncIterator[Finding]:
        """Compares what scorings have given for a competition with what its result gives by them, and the events of the
        block that gave it with the rule."""
        board, given = self._folding.board, GivenLines()
        competition = board.competitions[competition_id]
        if not scores.is_new:
            upto = Sequence(scores.first - 1)
            async for recorded in reading.points_of(self._connection, self._tournament_id, competition_id, upto):
                given.take(recorded)
        for recorded in scores.events:
            for fault in self._line_faults(recorded, given):
                yield Finding(recorded.sequence, "event.deltas", fault)
        for ranking_id, ranking in board.rankings.items():
            if ranking.closed_at is None and (
                wrong := _unlike(given, ranking_id, ranking, competition_id, competition)
            ):
                yield Finding(scores.first, "event.deltas", wrong)

    async def _scored_again(self, ranking_id: RankingId, again: RescoredRanking) -> AsyncIterator[Finding]:
        """As `_scored`, for the competitions that such a change in the ranking concerns."""
        board, given, of = self._folding.board, GivenLines(), self._tournament_id
        only = None if again.concerned is None else finished(competitions_with(board, again.concerned))
        async for events in reading.all_scored(self._connected, of, self._blocks.sequence, only):
            for recorded in events:
                given.take(recorded)
        for competition_id in board.competitions if only is None else only:
            competition = board.competitions[competition_id]
            wrong = _unlike(given, ranking_id, board.rankings[ranking_id], competition_id, competition)
            if wrong is not None:
                yield Finding(again.sequence, "event.deltas", wrong)

    def _line_faults(self, recorded: Recorded, given: GivenLines) -> Iterator[str]:
        """Compares the lines that an event gives or takes back with those that count by the rule. `given`: what was
        given before it, which takes the event."""
        event, now = recorded.event, self._now
        if not isinstance(event, PointsScored | PointsReversed) or event.competition_id is None:
            return
        rule, before = rule_of(self._folding.board, event.ranking_id), given.of(event.ranking_id, event.competition_id)
        if isinstance(event, PointsScored):
            first = (None, None) if before is None else (before.first, before.since)
            if (event.instead_of, event.since) != first:
                yield f"are given instead of event {event.instead_of} of {event.since}, not {first[0]} of {first[1]}"
            its_names = {(line.competitor_id, line.unity_id) for line in (*event.given, *event.given_results)}
            if before is not None and not its_names.isdisjoint(before.lines):
                yield "are given again before they are taken back"
            counting = part_of(event, rule.of(recorded, now))
            if counting.deltas != event.deltas or with_totals(counting) != with_totals(event):
                yield "are not those of its lines that count"
        else:
            lines = {} if before is None else before.lines
            its = {one: lines[one] for one in event.replaced if one in lines and lines[one].sequence == event.reverses}
            place = origin(recorded.sequence, event)
            earlier = rule.replacing({place: dict.fromkeys(event.replaced, event.reverses)})
            since = _ANY_TIME if before is None else before.since
            counted = [
                Delta(*one, -line.amount)
                for one, line in its.items()
                if earlier.counts(event.reverses, place, since, event.competition_id, *one, now)
            ]
            sums = tuple([one for one in counted if (one.unity_id, one.competitor_id) not in with_totals(event)])
            if len(its) < len(event.replaced) or sums != event.deltas or len(sums) + len(event.totals) != len(counted):
                yield f"do not take back the lines that it replaces of event {event.reverses}"
        given.take(recorded)

    # ── Totals of results ───────────────────────────────────────────────────────────────────────────────

    async def _results_of(self, ranking_id: RankingId) -> Results:
        """The results of the ranking, which the fold keeps current from now on."""
        kept = self._folding.results
        if ranking_id not in kept:
            results = Results(self._folding.board.rankings[ranking_id].unities)
            async for events in reading.chunks(self._connected, self._tournament_id, _BEGINNING, self._blocks.sequence):
                for recorded in events:
                    note_given(results, ranking_id, recorded)
            kept[ranking_id] = results
        return kept[ranking_id]

    async def _turns_of(self, facts: BlockFacts) -> Turns:
        """The results that start or stop counting with the events of the block that name totals. Those that expire do
        so before all others."""
        board, turns = self._folding.board, Turns()
        for sequence, event in facts.reversing:
            if event.totals:
                results = await self._results_of(event.ranking_id)
                if not isinstance(event, PointsExpired):
                    named = {(line.unity_id, line.competitor_id) for line in event.totals}
                    lines = [one for one in results.given_by(root(sequence, event)) if one[0] in named]
                    starting = isinstance(event, PointsScored) or counts_after(board, event)
                    take_turn(turns, event.ranking_id, lines, starting=starting)
        return turns

    def _total_faults(self, facts: BlockFacts, turns: Turns) -> Iterator[Finding]:
        """Compares the totals that the events of the block name with the totals of the results, as they turn."""
        board, kept, now = self._folding.board, self._folding.results, self._now
        running = {
            named: running_totals(kept[ranking_id], rule_of(board, ranking_id), *named, now, its)
            for named, (ranking_id, its) in turns.items()
        }
        before = {named: next(totals) for named, totals in running.items()}
        scored = {
            (line.unity_id, line.competitor_id) for _, event in facts.reversing for line in event.totals if event.scores
        }
        for sequence, event in facts.reversing:
            for line in event.totals:
                unity_id, competitor_id = named = line.unity_id, line.competitor_id
                if named not in running:
                    results, rule = kept[event.ranking_id], rule_of(board, event.ranking_id)
                    expected = total_of_results(results, rule, *named, now)
                elif not isinstance(event, PointsExpired):
                    expected = next(running[named], None)
                elif named in scored:
                    continue  # results were scored again after they expired
                else:
                    expected = before[named]
                if line.total != expected:
                    of = f"competitor {competitor_id} in unity {unity_id}"
                    yield Finding(sequence, "event.totals", f"of {of} is {line.total}; their results give {expected}")

    # ── Expiry ──────────────────────────────────────────────────────────────────────────────────────────

    async def _expired(self, expirations: Items[ExpiredInBlock]) -> AsyncIterator[Finding]:
        """Compares the expiries of the block with what expires by the rule."""
        finest = min([expiry for _, expiry in self._folding.board.expiries.values()], key=lambda one: one.on.length)
        boundary = finest.boundary(self._now)
        for found in expirations:
            try:
                expected = await self._expiring(found, boundary)
            except LogForked:
                return  # reported: an event is missing
            for finding in _expiry_faults(found, boundary, expected):
                yield finding

    async def _expiring(self, found: ExpiredInBlock, boundary: datetime) -> LinesByRanking:
        """The lines that expire with the expiries of the block, because of what is before them there. Raises
        LogForked."""
        board, tournament_id, upto = self._folding.board, self._tournament_id, Sequence(found.first - 1)
        cause = found.causes[-1] if found.causes else None
        match cause:
            case PointsAdded():
                request = found.causes[-1 if cause.part is None else -cause.part[1] :]
                added = [points for points in request if isinstance(points, PointsAdded)]  # others are reported
                return lines_at_once(board, cause.competition_id, added, boundary)
            case CompetitionChanged() if cause.started_at is not UNSET:
                back = Redating(board, cause.competition_id, found.before, boundary)
                async for recorded in reading.points_of(self._connection, tournament_id, cause.competition_id, upto):
                    back.take(recorded)
                return {one: (signed(-1, deltas), named) for one, (deltas, named) in back.lines().items()}
            case RankingReopened():
                began, rankings = min(boundary, found.before or boundary), [cause.ranking_id]
            case None:
                began = await reading.last_judged_at(self._connection, tournament_id, upto)
                rankings = [one for one, ranking in board.rankings.items() if ranking.closed_at is None]
            case _:
                return {}
        state = msgspec.structs.replace(board, rankings={**board.rankings, **dict(self._before_replacing(found))})
        expiration = Expiration(state, began, boundary, rankings)
        for after, by in expiring_intervals(board, began, boundary, rankings):
            async for events in took_place_between(self._connected, tournament_id, board, after, by, upto):
                for recorded in events:
                    expiration.take(recorded)
        return expiration.lines()

    def _before_replacing(self, found: ExpiredInBlock) -> Iterator[tuple[RankingId, Ranking]]:
        """The ranking that was reopened, with the lines that were replaced after that."""
        if found.replaced and isinstance(cause := found.causes[-1], RankingReopened):
            ranking = self._folding.board.rankings[cause.ranking_id]
            earlier = {place: {**ranking.replaced[place], **lines} for place, lines in found.replaced.items()}
            earlier = {**ranking.replaced, **earlier}
            yield cause.ranking_id, msgspec.structs.replace(ranking, replaced=earlier)

    async def unexpired_totals(self) -> AsyncIterator[Finding]:
        """Compares the totals of unities whose points expire with the totals of the points that count by the rule."""
        board, last = self._folding.board, self._blocks.sequence
        if not board.expiries or not self._folding.folded.foldable:
            return
        now = await reading.last_judged_at(self._connection, self._tournament_id, last)
        rules = {ranking_id: rule_of(board, ranking_id) for ranking_id in board.rankings}
        sums: dict[UnityId, dict[CompetitorId, int]] = {unity_id: {} for unity_id in board.expiries}
        last_ones: Last = {}
        async for events in reading.chunks(self._connected, self._tournament_id, _BEGINNING, last):
            for recorded in events:
                event = recorded.event
                if not isinstance(event, PointsAdded) or (ranking_id := event.ranking_id) not in rules:
                    continue
                for line in rules[ranking_id].of(recorded, now):
                    if line.expires_at is not None:
                        its = line.delta
                        unity, of_unity = board.rankings[ranking_id].unities[its.unity_id], sums[its.unity_id]
                        if not is_last(last_ones, unity.counts, origin(recorded.sequence, event), its):
                            continue
                        before = of_unity.get(its.competitor_id, 0)
                        of_unity[its.competitor_id] = (
                            mark_after(before, its.amount, unity.counts, unity.sort)
                            if unity.counts_results
                            else before + its.amount
                        )
        for unity_id, (ranking_id, _) in board.expiries.items():
            unity = board.rankings[ranking_id].unities[unity_id]
            for competitor_id in sorted(unity.totals.keys() | sums[unity_id]):  # no total: it is 0
                total = unity.totals.get(competitor_id, 0)
                if total != (expected := sums[unity_id].get(competitor_id, 0)):
                    made = f"is {unity.notation.shown(total)}; what counts gives {unity.notation.shown(expected)}"
                    wrong = f"the total of competitor {competitor_id} in unity {unity_id} {made}"
                    yield Finding(None, "event.deltas", wrong)

    def _connected(self) -> AbstractAsyncContextManager[Connection]:
        return nullcontext(self._connection)


def _unlike(
    given: GivenLines, ranking_id: RankingId, ranking: Ranking, competition_id: CompetitionId, competition: Competition
) -> str | None:
    """How what was given for a competition differs from what its result gives."""
    found = given_amounts(given.of(ranking_id, competition_id))
    expected = finished(scored_lines(ranking, competition))
    if found == expected:
        return None
    differing = sorted(one for one in found.keys() | expected.keys() if found.get(one) != expected.get(one))
    (competitor_id, unity_id), more = differing[0], len(differing) - 1
    line = f"{found.get(differing[0])} to competitor {competitor_id} in unity {unity_id}"
    return (
        f"of ranking {ranking_id} give {line} for competition {competition_id}, whose result gives "
        f"{expected.get(differing[0])}" + (f"; and {more} more" if more else "")
    )


def _is_reversed(event: PointsReversed, points: PointsAdded, sign: int) -> bool:
    """Whether `event` has exactly the lines of these points, with each amount multiplied by `sign`, and a total for
    each competitor with a result."""
    deltas = [Delta(line.competitor_id, line.unity_id, sign * line.amount) for line in points.deltas]
    return (
        event.ranking_id == points.ranking_id
        and list(event.deltas) == deltas
        and with_totals(event) == with_totals(points)
    )


def _expiry_faults(found: ExpiredInBlock, boundary: datetime, expected: LinesByRanking) -> Iterator[Finding]:
    """What is wrong with these expiries. `boundary`, `expected`: by the rule."""
    left = dict(expected)
    for sequence, event in found.events.items():
        if event.boundary != boundary:
            yield Finding(sequence, "event.boundary", f"is {event.boundary}; by the time of its block, {boundary}")
        deltas, named = left.pop(event.ranking_id, ((), []))
        totals = [(line.unity_id, line.competitor_id) for line in event.totals]
        if sorted(event.deltas, key=_ORDER) != sorted(deltas, key=_ORDER) or sorted(totals) != sorted(named):
            yield Finding(sequence, "event.deltas", f"are not those of the points that expire with it by {boundary}")
    for ranking_id in left:
        wrong = f"points of ranking {ranking_id} expire, or count again, but no event says so"
        yield Finding(Sequence(found.first - (not found.events)), "event.deltas", wrong)
