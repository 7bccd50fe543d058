"""The checks of a tournament's blocks, one after another: chain, times, keys, lengths, and the reversals of voidings.

The chain is recomputed from the stored bytes, link by link. A broken link is reported, and the next one is computed
from the stored digest. So each place of tampering is reported once, without all blocks after it.

This file does not read the database. `one_tournament.py` reads the blocks, and compares everything derived from the
log.
"""

from collections.abc import Callable, Container, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from operator import attrgetter
from typing import Final, Literal, get_args

from msgspec import UNSET, Struct, field

from engine.domain.counting import total_of_results
from engine.domain.events import (
    CompetitionChanged,
    CompetitionUnvoided,
    CompetitionVoided,
    CompetitorErased,
    CompetitorsStruck,
    CompetitorsUnstruck,
    Delta,
    Event,
    EventSetAside,
    Naming,
    Points,
    PointsAdded,
    PointsExpired,
    PointsReversed,
    RankingReopened,
    Recorded,
    Revaluation,
    TournamentOpened,
    changed_by,
)
from engine.domain.expirations import LinesByRanking
from engine.domain.lines import part_of, rule_of
from engine.domain.marks import mark_after
from engine.domain.rejudging import RULES, impossible
from engine.domain.terms import REVERSED_LINES_MAX, ActorId, CompetitionId, CompetitorId, RankingId, Sequence, UnityId
from engine.log import codec, digest
from engine.log.digest import EventColumns
from projections.board.board import Board, Revisions, add_points, add_results, expire_points, fold, reverse_points
from projections.board.differences import differences
from projections.board.results import Results
from projections.verification.progress import TOURNAMENT_DIFFERENCES_MAX, CausedSum, Difference, Progress
from projections.verification.stored_log import RegisteredTournament, StoredBlock

_SUM_MASK: Final = 2**63 - 1
_SET_ASIDE: Final = "\0"
"""Replaces the tag of an event that was set aside. No PostgreSQL text can hold it."""
_POINTS: Final = (PointsAdded, PointsReversed, PointsExpired)  # isinstance is faster than with a union
_NAMING: Final = frozenset(kind.tag for kind in get_args(Naming))
_NOBODY: Final = ActorId(0)
_ANY_TIME: Final = digest.moment(0)
_ORDER: Final = attrgetter("unity_id", "competitor_id", "amount")


class DifferenceCollector:
    """Collects the differences of one tournament in its progress."""

    def __init__(self, progress: Progress, slug: str, on_difference: Callable[[Difference], None]) -> None:
        self._progress = progress
        self._slug = slug
        self._on_difference = on_difference

    def add(self, sequence: Sequence | None, field: str, message: str) -> None:
        """Counts a difference. Keeps the first TOURNAMENT_DIFFERENCES_MAX, and calls `on_difference` for each of
        them."""
        self._progress.differences_count += 1
        if len(self._progress.differences) < TOURNAMENT_DIFFERENCES_MAX:
            found = Difference(tournament=self._slug, sequence=sequence, field=field, message=message)
            self._progress.differences.append(found)
            self._on_difference(found)


class DueReversals(Struct):
    """The points of a competition that must still be reversed because of `event`, the event `sequence`. `by_lines`:
    some of its lines may not be due, so they are compared one by one. Otherwise `count` and `sum` suffice, as in
    CausedSum."""

    sequence: Sequence
    event: Revaluation
    by_lines: bool
    count: int
    sum: int
    lines: int = 0
    """The number of lines reversed so far."""

    @property
    def sign(self) -> int:
        """-1: points are taken back; 1: they are restored."""
        return -1 if isinstance(self.event, CompetitionVoided | CompetitorsStruck) else 1

    @property
    def struck(self) -> bool | None:
        """The field `struck` of its reversals."""
        if isinstance(self.event, CompetitionVoided | CompetitionUnvoided):
            return None
        return isinstance(self.event, CompetitorsStruck)


class ExpiredInBlock(Struct, frozen=True):
    """The expiries of the last block, by their sequences; perhaps there are none. `first`: the sequence of the first
    one. `causes`: the events of the block before that. `before`: if the last of them is a CompetitionChanged or a
    RankingReopened, the date of the competition, or the closing of the ranking, before it."""

    first: Sequence
    causes: list[Event]
    before: datetime | None
    events: dict[Sequence, PointsExpired]


class _BlockFacts(Struct):
    """Facts about a block's events that the fold does not provide. `doubtful`: one of the events cannot be decoded or
    folded, or was set aside. `changes`: events after which points may expire, with `before` as in ExpiredInBlock.
    `parts`: the points of a request in several rankings, until all are there."""

    structural: bool
    doubtful: bool = False
    created: list[int] = field(default_factory=list)
    due: dict[CompetitionId, DueReversals] = field(default_factory=dict)
    expired: dict[Sequence, PointsExpired] = field(default_factory=dict)
    changes: dict[Sequence, tuple[Event, datetime | None]] = field(default_factory=dict)
    parts: list[PointsAdded] = field(default_factory=list)


class BlockChecks:
    """Use `check` for each block that follows `progress`, in order. `board` is the board of the progress.

    `ignored`: the events that were set aside. `faults`: for each EventSetAside that set nothing aside, the reason.
    After each block, the caller handles four lists and clears them:

    - `unreversed`: reversals that the block lacks. The caller reports them.
    - `undone`: events that undo or redo points. The caller calls `check_undone` for each.
    - `expired`: expiries. The caller calls `check_expired` for each, with what expires by the rule.
    - `reversed_results`: events that name totals. The caller calls `check_totals` for each. By then `results` must have
      the results of their rankings; from then on they are kept current.
    """

    def __init__(self, progress: Progress, tournament: RegisteredTournament, collector: DifferenceCollector) -> None:
        assert progress.board is not None
        self.progress = progress
        self.board: Board = progress.board
        self.ignored: frozenset[Sequence] = frozenset()
        self.faults: Mapping[Sequence, str] = {}
        self.unreversed: list[DueReversals] = []
        self.undone: list[tuple[Sequence, PointsReversed]] = []
        self.expired: list[ExpiredInBlock] = []
        self.reversed_results: list[tuple[Sequence, PointsReversed | PointsExpired]] = []
        self.results: dict[RankingId, Results] = {}
        self._tournament = tournament
        self._differ = collector.add
        self._revisions = Revisions()

    def check(self, block: StoredBlock, keys: Mapping[str, Sequence]) -> None:
        """Checks the next block, folds its events, and moves the progress to its end. `keys`: the recorded sequences of
        the keys of its events."""
        progress, columns, first, last = self.progress, block.columns(), block.first_sequence, block.last_sequence
        facts: _BlockFacts | None = None
        if first != progress.sequence + 1 or last < first:
            self._differ(
                Sequence(progress.sequence + 1),
                "block.first_sequence",
                f"the block that ends at {last} begins at {first}: the blocks do not follow each other",
            )
        if block.rules != RULES:
            self._differ(first, "block.rules", f"is {block.rules}; this program judges by version {RULES} of the rules")
        if block.text is None or block.recorded_us is None:
            self._differ(first, "event.sequence", f"there is no event at all in the block from {first} to {last}")
        else:
            if not block.timely:
                self._differ(first, "event.recorded_at", f"is not that of the block from {first} to {last}")
            if progress.recorded_us is not None and block.recorded_us < progress.recorded_us:
                self._differ(first, "event.recorded_at", "is before that of the event before it")
            size = len(block.text) + sum(len(personal.encode()) for personal in block.personals or () if personal)
            # The size still includes erased fields, whose length is no longer known.
            if block.size != size and not (block.size > size and _lacks_some(block, columns)):
                self._differ(first, "block.bytes", f"is {block.size}; its text and personal fields have {size}")
            recomputed = digest.chain(progress.digest, block.text)
            if recomputed != block.digest:
                self._differ(
                    first,
                    "block.digest",
                    f"of the block from {first} to {last} is {block.digest.hex()}; its events give {recomputed.hex()}",
                )
            if columns is None:
                self._differ(first, "event", f"something is NULL in the block from {first} to {last}")
                progress.foldable = False
            else:
                if block.personals is not None or not _NAMING.isdisjoint(columns.kinds):
                    self._check_personal_fields(block, columns)
                facts = self._fold(block, columns)
                if facts.parts:
                    self._differ(last, "event.part", "is not the last one of its request")
                if (facts.expired or facts.changes) and self.board.expiries:
                    self._note_expired(facts, columns)
                if columns.keys is not None:
                    self._check_keys(columns.first_sequence, columns.keys, keys)
            progress.recorded_us = block.recorded_us
        if facts is None:
            progress.structure_sequence = last if block.structure_sequence is None else block.structure_sequence
        else:
            self._check_facts(block, facts)
        progress.digest = block.digest
        progress.sequence = last
        progress.blocks += 1
        progress.events += block.count

    def _fold(self, block: StoredBlock, columns: EventColumns) -> _BlockFacts:
        """Folds the events of a block, and returns further facts about them."""
        progress, board, sums, kinds = self.progress, self.board, self.progress.sums, columns.kinds
        decode, encode, sequence = codec.decode, codec.text_of, columns.first_sequence
        facts = _BlockFacts(structural=sequence == 1)  # `open_tournament` stores its block as structural
        if not digest.is_moment(columns.recorded_us):
            self._differ(sequence, "event.recorded_at", "is outside the years 1 to 9999")
            progress.foldable = False
        progress.caused += sum(map(codec.is_caused, kinds, columns.bodies))
        if self.ignored:
            kinds = self._without_ignored(sequence, kinds)
        elif sequence == 1 and kinds[0] != "TournamentOpened":
            self._differ(sequence, "event.kind", f"is {kinds[0]!r}: the first event opens the tournament")
        for kind, text in zip(kinds, block.texts(columns), strict=True):
            fault: str | None = None
            try:
                event = decode(kind, text)
                if encode(event) != text:
                    self._differ(sequence, "event.body", "is not written as the service writes it")
                if progress.foldable and (fault := impossible(board, sequence, event)):
                    self._differ(sequence, "event.body", fault)
                    progress.foldable = _names_only_what_exists(board, event)
                if facts.parts or (isinstance(event, PointsAdded) and event.part is not None):
                    self._follow_parts(facts, sequence, event, columns)
                if not isinstance(event, _POINTS):
                    self._fold_other(facts, sequence, columns.recorded_us, event)
                elif progress.foldable:
                    # as `fold` does, but it needs a time: making one takes a tenth of all
                    if isinstance(event, PointsAdded):
                        add_points(board, sequence, event)
                        if event.results:
                            self._add_results(sequence, digest.moment(columns.recorded_us), event)
                    elif isinstance(event, PointsExpired):
                        expire_points(board, sequence, event)
                    else:
                        reverse_points(board, sequence, event)
            except codec.Undecodable as error:
                self._note_undecodable(facts, sequence, kind, error)
            except LookupError as error:
                facts.doubtful = True
                if fault is None:
                    self._differ(sequence, "event.body", f"names {error}, which does not exist")
                progress.foldable = False
            else:
                if isinstance(event, _POINTS):
                    for delta in event.deltas:  # counted apart from the fold
                        of_unity = sums.get(delta.unity_id)
                        if of_unity is None:
                            of_unity = sums[delta.unity_id] = {}
                        of_unity[delta.competitor_id] = of_unity.get(delta.competitor_id, 0) + delta.amount
                    self._note_points(facts, sequence, event)
            sequence = Sequence(sequence + 1)
        return facts

    def _note_undecodable(self, facts: _BlockFacts, sequence: Sequence, kind: str, error: codec.Undecodable) -> None:
        facts.doubtful = True
        facts.parts.clear()
        if kind != _SET_ASIDE:
            self._differ(sequence, "event.body", f"cannot be decoded: {error}")
            self.progress.foldable = False

    def _follow_parts(self, facts: _BlockFacts, sequence: Sequence, event: Event, columns: EventColumns) -> None:
        """Checks that the points of a request in several rankings are all there, one after another."""
        parts, n = facts.parts, sequence - columns.first_sequence
        if not isinstance(event, PointsAdded) or event.part is None:
            self._differ(sequence, "event.part", f"is absent, after part {len(parts)} of a request")
            parts.clear()
            return
        number, count = event.part
        follows = number == len(parts) + 1
        if parts and follows:
            first = parts[0]
            follows = (
                first.part == (1, count)
                and (event.competition_id, event.reason) == (first.competition_id, first.reason)
                and event.ranking_id not in [one.ranking_id for one in parts]
                and columns.actors[n] == columns.actors[n - 1]
                and (columns.keys is None or columns.keys[n] == columns.keys[n - 1])
            )
        if not follows and not facts.doubtful:
            self._differ(sequence, "event.part", f"is {number} of {count}, which does not follow what is before it")
        if follows and number < count:
            parts.append(event)
        else:
            parts.clear()

    def _note_expired(self, facts: _BlockFacts, columns: EventColumns) -> None:
        """Notes the expiries of a block, which end it, and changes after which nothing expires."""
        first = min(facts.expired, default=Sequence(columns.first_sequence + len(columns.kinds)))
        count = first - columns.first_sequence
        if facts.doubtful or not self.progress.foldable:
            self.progress.unchecked.append(f"what expires before the event {first}: an event cannot be folded")
            return
        if len(facts.expired) != len(columns.kinds) - count:
            self._differ(first, "event.kind", "is an expiry, and other events follow it in its block")
            return
        _, before = facts.changes.pop(Sequence(first - 1), (None, None))
        causes = list(map(codec.decode, columns.kinds[:count], columns.bodies))
        self.expired.append(ExpiredInBlock(first, causes, before, facts.expired))
        for sequence, (event, its_before) in facts.changes.items():
            self.expired.append(ExpiredInBlock(Sequence(sequence + 1), [event], its_before, {}))

    def _check_personal_fields(self, block: StoredBlock, columns: EventColumns) -> None:
        """Checks the personal fields of the block's events against the commitments in their bodies."""
        personals = [None] * len(columns.bodies) if block.personals is None else block.personals
        stored = zip(columns.kinds, columns.bodies, personals, strict=True)
        for number, (kind, body, personal) in enumerate(stored, start=columns.first_sequence):
            if personal is None and kind not in _NAMING:
                continue
            try:
                event = codec.decode(kind, codec.join(body, personal))
            except codec.Undecodable:
                continue  # `_fold` reports it
            sequence = Sequence(number)
            if isinstance(event, Naming) and event.commitment is not UNSET:
                self.progress.lacking.setdefault(event.competitor_id, sequence)
            elif codec.part(event, codec.text_of(event), (personal or "")[: codec.SALT_DIGITS]) != (
                body,
                personal or "",
            ):
                self._differ(sequence, "event.personal", "is not what its body has a commitment to")

    def _note_points(self, facts: _BlockFacts, sequence: Sequence, event: Points) -> None:
        foldable = self.progress.foldable
        if foldable and len(changed_by(event)) > len(event.deltas):
            self._count_marks(sequence, event)
        if isinstance(event, PointsReversed):
            self._note_reversal(facts, sequence, event)
        elif isinstance(event, PointsExpired):
            facts.structural = True
            facts.expired[sequence] = event
        elif event.competition_id is not None and foldable:
            self._count_caused(event.competition_id, sequence, event, 1)

    def _add_results(self, sequence: Sequence, recorded_at: datetime, event: PointsAdded) -> None:
        add_results(self.board, sequence, recorded_at, event)
        if (results := self.results.get(event.ranking_id)) is not None:
            results.note(self.board.rankings[event.ranking_id].unities, sequence, recorded_at, event)

    def _count_marks(self, sequence: Sequence, event: Points) -> None:
        """Applies the event to totals of results, independently of the fold."""
        unities, sums = self.board.rankings[event.ranking_id].unities, self.progress.sums
        if not isinstance(event, PointsAdded):
            self.reversed_results.append((sequence, event))
            for line in event.totals:
                sums.setdefault(line.unity_id, {})[line.competitor_id] = unities[line.unity_id].notation.kept(
                    line.total
                )
            return
        for result in event.results:
            unity, of_unity = unities[result.unity_id], sums.setdefault(result.unity_id, {})
            before = of_unity.get(result.competitor_id, 0)
            of_unity[result.competitor_id] = mark_after(before, result.amount, unity.counts, unity.sort)

    def check_totals(self, sequence: Sequence, event: PointsReversed | PointsExpired) -> None:
        """Checks the totals that an event of the last block names, by `results`."""
        assert self.progress.recorded_us is not None
        results, rule = self.results[event.ranking_id], rule_of(self.board, event.ranking_id)
        now = rule.by(digest.moment(self.progress.recorded_us))
        for line in event.totals:
            unity_id, competitor_id = line.unity_id, line.competitor_id
            expected = total_of_results(results, rule, unity_id, competitor_id, now)
            if line.total != expected:
                named = f"competitor {competitor_id} in unity {unity_id}"
                self._differ(sequence, "event.totals", f"of {named} is {line.total}; their results give {expected}")

    def _without_ignored(self, first: Sequence, kinds: list[str]) -> list[str]:
        """The tags of a block's events, with _SET_ASIDE, which cannot be decoded, for each event that was set aside."""
        aside = {sequence for sequence in self.ignored if first <= sequence < first + len(kinds)}
        self.progress.ignored += sorted(aside)
        return [_SET_ASIDE if n in aside else kind for n, kind in enumerate(kinds, start=first)]

    def _fold_other(self, facts: _BlockFacts, sequence: Sequence, recorded_us: int, event: Event) -> None:
        """Folds an event that changes no points. Raises LookupError as the fold does."""
        if self.progress.foldable:
            for name in event.creates:
                facts.created.append(getattr(event, name))
            if isinstance(event, CompetitionChanged) and event.started_at is not UNSET:
                facts.changes[sequence] = event, self.board.competitions[event.competition_id].date
            elif isinstance(event, RankingReopened):
                facts.changes[sequence] = event, self.board.rankings[event.ranking_id].closed_at
            fold(self.board, self._revisions, Recorded(sequence, digest.moment(recorded_us), _NOBODY, None, event))
        if event.structural:
            facts.structural = True
        match event:
            case TournamentOpened():
                self._compare_registry(sequence, event)
            case CompetitorErased():
                self.progress.erased.append(event.competitor_id)
            case EventSetAside():
                if sequence in self.faults:
                    self._differ(sequence, "event.body", self.faults[sequence])
            case CompetitionVoided() | CompetitionUnvoided() | CompetitorsStruck() | CompetitorsUnstruck() if (
                self.progress.foldable
            ):
                self._revalue(facts, sequence, event)

    # ── Reversals ────────────────────────────────────────────────────────────────────────

    def _revalue(self, facts: _BlockFacts, sequence: Sequence, event: Revaluation) -> None:
        """Notes that the rest of the block must reverse points of the competition."""
        competition_id = event.competition_id
        if competition_id in facts.due:
            self._differ(sequence, "event.body", f"changes for whom competition {competition_id} counts a second time")
        caused = self.progress.caused_sums.get(competition_id, CausedSum())
        by_lines = (
            isinstance(event, CompetitorsStruck | CompetitorsUnstruck)
            or competition_id in self.board.struck
            or bool(self.board.expiries)
        )
        facts.due[competition_id] = DueReversals(sequence, event, by_lines, caused.count, caused.sum)

    def _count_caused(
        self, competition_id: CompetitionId, sequence: Sequence, event: PointsAdded, times: Literal[1, -1]
    ) -> None:
        """Adds points to those that their competition caused, or subtracts them."""
        caused = self.progress.caused_sums.get(competition_id)
        if caused is None:
            caused = self.progress.caused_sums[competition_id] = CausedSum()
        caused.count += times
        caused.sum = (caused.sum + times * hash_of_points(self.progress.salt, sequence, event, 1)) & _SUM_MASK

    def _note_reversal(self, facts: _BlockFacts, sequence: Sequence, event: PointsReversed) -> None:
        facts.structural = True
        if not self.progress.foldable:
            return
        if event.undone is None:
            self._take_off(facts, sequence, event)
        else:
            self.undone.append((sequence, event))

    def check_undone(
        self,
        sequence: Sequence,
        event: PointsReversed,
        request: Mapping[Sequence, PointsAdded],
        together: Container[Sequence],
        recorded_at: datetime | None = None,
    ) -> None:
        """Checks an event of the last block that undoes or redoes points. `request`: all points of the request that
        added the reversed ones. `together`: the events that the block undoes or redoes. `recorded_at`: if points
        expire, when the request was recorded."""
        points = request.get(event.reverses)
        if points is None:
            self._differ(sequence, "event.reverses", f"event {event.reverses} adds no points")
            return
        rule = rule_of(self.board, points.ranking_id).undoing([event.reverses], undone=False)
        now = None if recorded_at is None else self.recorded_at
        counting = part_of(points, rule.lines(event.reverses, recorded_at or _ANY_TIME, points, now))
        if event.competition_id != points.competition_id or not is_reversed(event, counting, -1 if event.undone else 1):
            self._differ(sequence, "event.reverses", f"event {event.reverses} is reversed by other lines")
        for other in request:
            if other not in together:
                wrong = f"event {event.reverses} is reversed without event {other} of the same request"
                self._differ(sequence, "event.reverses", wrong)
        if points.competition_id is not None:
            self._count_caused(points.competition_id, event.reverses, points, -1 if event.undone else 1)

    def check_expired(self, found: ExpiredInBlock, boundary: datetime, expected: LinesByRanking) -> None:
        """Checks expiries of the last block. `boundary`, `expected`: by the rule."""
        left = dict(expected)
        for sequence, event in found.events.items():
            if event.boundary != boundary:
                self._differ(sequence, "event.boundary", f"is {event.boundary}; by the time of its block, {boundary}")
            deltas, named = left.pop(event.ranking_id, ((), []))
            totals = [(line.unity_id, line.competitor_id) for line in event.totals]
            if sorted(event.deltas, key=_ORDER) != sorted(deltas, key=_ORDER) or sorted(totals) != sorted(named):
                self._differ(sequence, "event.deltas", f"are not those of the points that expire with it by {boundary}")
        for ranking_id in left:
            wrong = f"points of ranking {ranking_id} expire, or count again, but no event says so"
            self._differ(Sequence(found.first - (not found.events)), "event.deltas", wrong)

    @property
    def recorded_at(self) -> datetime | None:
        """When the last block was recorded; None: there is none."""
        return None if self.progress.recorded_us is None else digest.moment(self.progress.recorded_us)

    def _take_off(self, facts: _BlockFacts, sequence: Sequence, event: PointsReversed) -> None:
        """Subtracts the reversed points from those due to be reversed."""
        competition_id = event.competition_id
        due = None if competition_id is None else facts.due.get(competition_id)
        if due is None or event.struck != due.struck:
            wrong = f"reverses points of competition {competition_id}, for which nothing in this block is a reason"
            self._differ(sequence, "event.body", wrong)
            return
        lines = len(changed_by(event))
        if due.lines <= REVERSED_LINES_MAX < due.lines + lines:
            wrong = f"reverses more than {REVERSED_LINES_MAX:,} lines of competition {competition_id} at once"
            self._differ(sequence, "event.body", wrong)
        due.lines += lines
        if due.by_lines:
            return
        due.count -= 1
        due.sum = (due.sum - hash_of_points(self.progress.salt, event.reverses, event, due.sign)) & _SUM_MASK

    def _check_facts(self, block: StoredBlock, facts: _BlockFacts) -> None:
        """Checks the block's columns about its events, and that it reversed all due points."""
        progress, first, last = self.progress, block.first_sequence, block.last_sequence
        structure = last if facts.structural else progress.structure_sequence
        if block.structure_sequence is None:
            if progress.structure_kept:
                self._differ(first, "block.structure_sequence", "is NULL, and in a block before it it is not")
            structure = last
        elif facts.doubtful and block.structure_sequence in (last, progress.structure_sequence):
            structure = block.structure_sequence
        elif block.structure_sequence != structure:
            wrong = f"is {block.structure_sequence}; the last structural block up to it ends at {structure}"
            self._differ(first, "block.structure_sequence", wrong)
        progress.structure_sequence = structure
        progress.structure_kept = progress.structure_kept or block.structure_sequence is not None
        if block.created is not None:
            missing, more = set(facts.created) - set(block.created), set(block.created) - set(facts.created)
            if missing or (more and block.whole and not facts.doubtful and progress.foldable):
                wrong = f"is {block.created}; its events create {facts.created}"
                self._differ(first, "block.created", wrong)
        for due in facts.due.values():
            if due.by_lines or due.count or due.sum:
                if facts.doubtful:
                    sentence = f"what the event {due.sequence} had reversed: an event of its block was set aside"
                    progress.unchecked.append(sentence)
                else:
                    self.unreversed.append(due)

    # ── The registry and keys ───────────────────────────────────────────────────────────────────────────────

    def _compare_registry(self, sequence: Sequence, event: Event) -> None:
        """Compares the event that opens the tournament with the registry."""
        if sequence != 1:
            self._differ(sequence, "event.kind", "opens the tournament, which is already open")
        expected = TournamentOpened(name=self._tournament.name, slug=self._tournament.slug)
        for unlike in differences(event, expected):
            self._differ(sequence, f"tournament.{unlike.path}", f"is {unlike.found}, not {unlike.expected}")

    def _check_keys(self, first: Sequence, used: Items[str | None], keys: Mapping[str, Sequence]) -> None:
        """Checks the keys of a block: the events of a request are consecutive, and its first sequence is recorded."""
        before: str | None = None
        for sequence, key in enumerate(used, start=first):
            if key is not None and key != before:
                self.progress.keys += 1
                if key not in keys:
                    self._differ(Sequence(sequence), "idempotency.idempotency_key", f"{key!r} is not remembered")
                elif keys[key] != sequence:
                    self._differ(Sequence(sequence), "idempotency.sequence", f"of {key!r} is {keys[key]}")
            before = key


def _names_only_what_exists(board: Board, event: Event) -> bool:
    """Whether everything that points name exists. Their fold does not look for all of it; later checks do."""
    if not isinstance(event, _POINTS):
        return True
    return (event.competition_id is None or event.competition_id in board.competitions) and all(
        line.competitor_id in board.competitors for line in changed_by(event)
    )


def _lacks_some(block: StoredBlock, columns: EventColumns | None) -> bool:
    """Whether the personal fields of an event may have been erased."""
    if columns is None:
        return False
    personals = [None] * len(columns.kinds) if block.personals is None else block.personals
    return any(kind in _NAMING and not personal for kind, personal in zip(columns.kinds, personals, strict=False))


def is_reversed(event: PointsReversed, points: PointsAdded, sign: int) -> bool:
    """Whether `event` has exactly the lines of these points, with each amount multiplied by `sign`, and a total for
    each competitor with a result."""
    deltas = [Delta(line.competitor_id, line.unity_id, sign * line.amount) for line in points.deltas]
    return (
        event.ranking_id == points.ranking_id
        and list(event.deltas) == deltas
        and _with_totals(event) == _with_totals(points)
    )


def _with_totals(event: Points) -> list[tuple[UnityId, CompetitorId]]:
    """The unities and competitors whose totals it changes by results, each once."""
    lines = event.results if isinstance(event, PointsAdded) else event.totals
    return list(dict.fromkeys((line.unity_id, line.competitor_id) for line in lines))


def hash_of_points(salt: int, sequence: Sequence, event: Points, sign: int) -> int:
    """The hash of the lines of `event`, as lines of the event `sequence`, with each amount multiplied by `sign` (1 or
    -1). Such hashes are added up modulo 2⁶³.

    Amounts are made odd, because -1 and -2 have the same hash. Hashes are squared, because the hash of a tuple is
    nearly linear in its last item: if two events exchanged their amounts, the sum would stay the same more often than
    not.
    """
    double = 2 * sign
    if len(event.deltas) == 1 == len(changed_by(event)):  # as nearly always
        (line,) = event.deltas
        odd = line.amount * double + 1
        hashed = hash((salt, sequence, event.ranking_id, line.competitor_id, line.unity_id, odd))
        return hashed * hashed
    lines = [n for d in event.deltas for n in (d.competitor_id, d.unity_id, d.amount * double + 1)]
    hashed = hash((salt, sequence, event.ranking_id, *lines, *_with_totals(event)))
    return hashed * hashed
