"""The checks of what a tournament's events say: that each could have been made, and what they give together.

This file does not read the database. What can only be told from the log before a block is noted in `BlockFacts`;
`log_checks.py` checks it.
"""

import secrets
from collections.abc import Collection, Container, Iterable, Iterator
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import chain, takewhile
from typing import Final, Literal, cast

from msgspec import UNSET, Struct, field

from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    CompetitionUnvoided,
    CompetitionVoided,
    CompetitorErased,
    CompetitorRegistered,
    CompetitorsStruck,
    CompetitorsUnstruck,
    Delta,
    Event,
    EventSetAside,
    Points,
    PointsAdded,
    PointsExpired,
    PointsReversed,
    PointsScored,
    RankingReopened,
    Recorded,
    Revaluation,
    ScoringDeclared,
    TournamentOpened,
    changed_by,
    origin,
)
from engine.domain.lines import LineName
from engine.domain.marks import mark_after
from engine.domain.rejudging import all_possible, impossible
from engine.domain.rescoring import RescoringEvent, concerned, is_scored
from engine.domain.terms import (
    OPERATOR,
    REVERSED_LINES_MAX,
    ActorId,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    UnityId,
)
from engine.log import codec, digest
from engine.log.codec import BlockContent
from projections.board.board import (
    Board,
    Revisions,
    add_all,
    add_points,
    add_results,
    fold,
    replace_totals,
    reverse_points,
    turn_points,
)
from projections.board.differences import differences
from projections.board.results import Results
from projections.verification.findings import Finding, Reported, Unchecked
from projections.verification.setting_aside import SetAside
from projections.verification.stored_log import RegisteredTournament, StoredBlock

_SUM_MASK: Final = 2**63 - 1
"""Replaces the tag of an event that was set aside. No PostgreSQL text can hold it."""
_POINTS: Final = (PointsAdded, PointsReversed, PointsExpired)  # isinstance is faster than with a union
_NOBODY: Final = ActorId(0)

Sums = dict[UnityId, dict[CompetitorId, int]]


class CausedSum(Struct, array_like=True):
    """The points that one competition caused: the number of events that gave them, and the sum of their hashes."""

    count: int = 0
    sum: int = 0


class FoldState(Struct, kw_only=True):
    """What the events verified so far give, next to their board. `foldable`: every one could be folded, but for those
    `ignored` because they are set aside. `sums`: their deltas, added up apart from the fold. `caused_sums`: the points
    that each competition caused, by hashes that nobody can foresee without `salt`. `erased`: the competitors that
    events erased."""

    foldable: bool = True
    ignored: list[Sequence] = field(default_factory=list)
    sums: Sums = field(default_factory=dict)
    salt: int = field(default_factory=lambda: secrets.randbits(60))
    caused_sums: dict[CompetitionId, CausedSum] = field(default_factory=dict)
    erased: list[CompetitorId] = field(default_factory=list)

    def count_caused(
        self, competition_id: CompetitionId, sequence: Sequence, event: PointsAdded, times: Literal[-1, 1]
    ) -> None:
        """Adds points to those that their competition caused (1), or subtracts them (-1)."""
        caused = self.caused_sums.get(competition_id)
        if caused is None:
            caused = self.caused_sums[competition_id] = CausedSum()
        caused.count += times
        caused.sum = (caused.sum + times * hash_of_points(self.salt, sequence, event, 1)) & _SUM_MASK


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
    """The expiries of a block, by their sequences; perhaps there are none. `first`: the sequence of the first one.
    `causes`: the events of the block before that. `before`: if the last of them is a CompetitionChanged or a
    RankingReopened, the date of the competition, or the closing of the ranking, before it. `replaced`: the lines that
    are taken back after them, with the event that gave them, by the place in the log."""

    first: Sequence
    causes: list[Event]
    before: datetime | None
    events: dict[Sequence, PointsExpired]
    replaced: dict[Sequence, dict[LineName, Sequence]] = {}


class BlockFacts(Struct):
    """What the fold of one block tells.

    `structural`: an event changes structure. `may_be_structural`: one does if it had a key, which is erased.
    `doubtful`: one cannot be decoded or folded, or was set aside. `created`: ids that they create. `due`: reversals
    that the block lacks, by competition. `reversing`: events that undo or redo points, or name totals. `expired`:
    expiries. `changes`: events after which points may expire, with `before` as in ExpiredInBlock. `expirations`: both,
    as they have to be compared with the rule. `parts`: the points of a request in several rankings, until all are
    there. `topics`: those of its events that have some. `scores`: of competitions whose
    result or points change; `scored_again`: the last change in rankings after which results may give other points, and
    which.
    """

    structural: bool = False
    may_be_structural: bool = False
    doubtful: bool = False
    created: list[int] = field(default_factory=list)
    due: dict[CompetitionId, DueReversals] = field(default_factory=dict)
    reversing: list[tuple[Sequence, PointsScored | PointsReversed | PointsExpired]] = field(default_factory=list)
    expired: dict[Sequence, PointsExpired] = field(default_factory=dict)
    changes: dict[Sequence, tuple[Event, datetime | None]] = field(default_factory=dict)
    parts: list[PointsAdded] = field(default_factory=list)
    topics: list[tuple[Sequence, tuple[int, ...]]] = field(default_factory=list)
    expirations: tuple[ExpiredInBlock, ...] = ()
    scores: dict[CompetitionId, "ScoresInBlock"] = field(default_factory=dict)
    scored_again: dict[RankingId, "RescoredRanking"] = field(default_factory=dict)

    @property
    def needs_log(self) -> bool:
        """Whether `LogChecks` has to check something."""
        return bool(self.due or self.reversing or self.expirations or self.scores or self.scored_again)

    def note_scores(
        self, board: Board, competition_id: CompetitionId, sequence: Sequence, recorded_us: int, event: Event
    ) -> None:
        """Notes an event on which the points of a competition depend, or that gives or takes back such points."""
        if isinstance(event, PointsScored | PointsReversed) or is_scored(board):
            its = self.scores.setdefault(competition_id, ScoresInBlock(isinstance(event, CompetitionAdded), sequence))
            its.events.append(Recorded(sequence, digest.moment(recorded_us), OPERATOR, None, event))

    def note_scored_again(self, board: Board, sequence: Sequence, event: RescoringEvent) -> None:
        """Notes an event after which results may give other points in its ranking. `board`: before it."""
        if isinstance(event, ScoringDeclared) or board.rankings[event.ranking_id].scorings:
            its, before = concerned(board, event), self.scored_again.get(event.ranking_id)
            if before is not None:
                its = None if its is None or before.concerned is None else its | before.concerned
            self.scored_again[event.ranking_id] = RescoredRanking(sequence, its)


class RescoredRanking(Struct, frozen=True):
    """A change after which results may give other points. `concerned`: of these competitors; None: of all."""

    sequence: Sequence
    concerned: frozenset[CompetitorId] | None


class ScoresInBlock(Struct):
    """The events of a block that give or change points of a competition. `is_new`: the block adds the competition."""

    is_new: bool
    first: Sequence
    events: list[Recorded] = field(default_factory=list)


class FoldChecks:
    """Folds the events of blocks, one block after another, into `board` and `folded`.

    `ignored`: the events that were set aside. `results`: those of some rankings, which are kept current.
    """

    def __init__(
        self, board: Board, folded: FoldState, tournament: RegisteredTournament, set_asides: Collection[SetAside]
    ) -> None:
        self.board = board
        self.folded = folded
        self.ignored = frozenset([s.sequence for s in set_asides if s.fault is None and s.sequence is not None])
        self._faults = {s.by: s.fault for s in set_asides if s.fault is not None}
        self.results: dict[RankingId, Results] = {}
        self._tournament = tournament
        self._revisions = Revisions()

    def check(self, block: StoredBlock, content: BlockContent, facts: BlockFacts) -> Iterator[Reported]:
        """Folds the events of a block, and enters facts about them."""
        folded, board, topics_of = self.folded, self.board, codec.topics_of
        sequence = content.first_sequence
        facts.structural = sequence == 1  # `open_tournament` stores its block as structural
        if not digest.is_moment(content.recorded_us):
            yield Finding(sequence, "event.recorded_at", "is outside the years 1 to 9999")
            folded.foldable = False
        events, unlike = self._decoded(block, content)
        if sequence == 1 and not self.ignored and not isinstance(events[0], TournamentOpened):
            yield Finding(sequence, "event.kind", f"is {content.parts[0].kind!r}: the first event opens the tournament")
        for event in events:
            fault: str | None = None
            try:
                if isinstance(event, codec.Undecodable):
                    raise event
                if topics := topics_of(event):
                    facts.topics.append((sequence, topics))
                if sequence in unlike:
                    yield Finding(sequence, "event.body", "is not written as the service writes it")
                if folded.foldable and (fault := impossible(board, sequence, event)):
                    yield Finding(sequence, "event.body", fault)
                    folded.foldable = _names_only_what_exists(board, event)
                if (facts.parts or (isinstance(event, PointsAdded) and event.part is not None)) and (
                    wrong := _part_fault(facts, sequence, event, content)
                ):
                    yield Finding(sequence, "event.part", wrong)
                if not isinstance(event, _POINTS):
                    yield from self._fold_other(facts, sequence, content.recorded_us, event)
                elif wrong := self._fold_points(facts, sequence, content.recorded_us, event):
                    yield Finding(sequence, "event.body", wrong)
            except codec.Undecodable as error:
                facts.doubtful = True
                facts.parts.clear()
                if sequence not in self.ignored:
                    yield Finding(sequence, "event.body", f"cannot be decoded: {error}")
                    folded.foldable = False
            except LookupError as error:
                facts.doubtful = True
                if fault is None:
                    yield Finding(sequence, "event.body", f"names {error}, which does not exist")
                folded.foldable = False
            sequence = Sequence(sequence + 1)
        if facts.parts:
            yield Finding(block.last_sequence, "event.part", "is not the last one of its request")
        if (facts.expired or facts.changes) and board.expiries:
            yield from self._note_expirations(facts, content.first_sequence, events)
        if facts.due:
            yield from self._leave_due(facts)

    def fold_plain(self, plain: Items[Event], first: Sequence) -> bool:
        """Folds points with only a ranking and deltas in one step, the first of which has the sequence `first`. False,
        and nothing is folded: something may be wrong with one of them."""
        folded, board, points = self.folded, self.board, cast(Items[PointsAdded], plain)
        if (
            not folded.foldable
            or first == 1
            or any(first <= sequence < first + len(points) for sequence in self.ignored)
            or not all_possible(board, points)
        ):
            return False
        if not add_all(board, points):  # they are of several rankings
            for event in points:
                add_points(board, event)
        self._count(chain.from_iterable([event.deltas for event in points]))
        return True

    def _count(self, deltas: Iterable[Delta]) -> None:
        """Counts deltas apart from the fold."""
        sums = self.folded.sums
        for delta in deltas:
            unity_id, competitor_id = delta.unity_id, delta.competitor_id
            of_unity = sums.get(unity_id)
            if of_unity is None:
                of_unity = sums[unity_id] = {}
            of_unity[competitor_id] = of_unity.get(competitor_id, 0) + delta.amount

    def _decoded(
        self, block: StoredBlock, content: BlockContent
    ) -> tuple[list[Event | codec.Undecodable], Container[Sequence]]:
        """The events of a block, or why one of them is none: it cannot be decoded, or was set aside. And those that are
        not written as the service writes them."""
        first = content.first_sequence
        aside = {sequence for sequence in self.ignored if first <= sequence <= block.last_sequence}
        if content.entries is not None and block.personals is None and not aside:
            return [entry.event for entry in content.entries], ()
        self.folded.ignored += sorted(aside)
        events: list[Event | codec.Undecodable] = []
        unlike = set[Sequence]()
        stored = zip(content.lines, content.parts, block.texts(content), strict=True)
        for number, (line, parts, text) in enumerate(stored, first):
            sequence = Sequence(number)
            try:
                if sequence in aside:
                    raise codec.Undecodable("set aside")
                event = codec.decode(parts.kind, text)
                written = codec.line_with(parts.kind, parts.actor, parts.key, parts.body)
                if codec.text_of(event) != text or written != line:
                    unlike.add(sequence)
                events.append(event)
            except codec.Undecodable as error:
                events.append(error)
        return events, unlike

    def _fold_points(self, facts: BlockFacts, sequence: Sequence, recorded_us: int, event: Points) -> str | None:
        """Folds points, counts them apart from the fold as well, and returns what is wrong with reversals. Raises
        LookupError as the fold does."""
        folded, board = self.folded, self.board
        foldable = folded.foldable
        is_plain = type(event) is PointsAdded and not event.results  # nearly always
        if foldable:  # as `fold` does, but it needs a time: making one takes a tenth of all
            if is_plain:
                add_points(board, event)
            elif isinstance(event, PointsAdded):
                add_points(board, event)
                if event.totals:
                    replace_totals(board, event)
                if event.given_results:
                    self._add_results(sequence, digest.moment(recorded_us), event)
            elif isinstance(event, PointsExpired):
                turn_points(board, event)
            else:
                reverse_points(board, sequence, event)
        self._count(event.deltas)
        if foldable and not is_plain and len(changed_by(event)) > len(event.deltas):
            self._count_marks(event)
        if isinstance(event, PointsAdded):
            if event.competition_id is not None and foldable:
                folded.count_caused(event.competition_id, sequence, event, 1)
                if isinstance(event, PointsScored):
                    facts.note_scores(board, event.competition_id, sequence, recorded_us, event)
                    if event.totals:
                        facts.reversing.append((sequence, event))
            return None
        facts.structural = True
        if isinstance(event, PointsExpired):
            facts.expired[sequence] = event
        if not foldable:
            return None
        undoes = isinstance(event, PointsReversed) and event.undone is not None
        if undoes or event.totals:
            facts.reversing.append((sequence, event))
        if isinstance(event, PointsReversed) and event.replaced:
            assert event.competition_id is not None
            facts.note_scores(board, event.competition_id, sequence, recorded_us, event)
            return None
        return self._take_off(facts, event) if isinstance(event, PointsReversed) and not undoes else None

    def _add_results(self, sequence: Sequence, recorded_at: datetime, event: PointsAdded) -> None:
        if event.results:
            add_results(self.board, event)
        if (results := self.results.get(event.ranking_id)) is not None:
            results.note(sequence, recorded_at, event)

    def _count_marks(self, event: Points) -> None:
        """Applies the event to totals of results, independently of the fold."""
        unities, sums = self.board.rankings[event.ranking_id].unities, self.folded.sums
        for line in event.totals:
            sums.setdefault(line.unity_id, {})[line.competitor_id] = unities[line.unity_id].notation.kept(line.total)
        for result in event.results:
            unity, of_unity = unities[result.unity_id], sums.setdefault(result.unity_id, {})
            before = of_unity.get(result.competitor_id, 0)
            of_unity[result.competitor_id] = mark_after(before, result.amount, unity.counts, unity.sort)

    def _fold_other(self, facts: BlockFacts, sequence: Sequence, recorded_us: int, event: Event) -> Iterator[Finding]:
        """Folds an event that changes no points. Raises LookupError as the fold does."""
        foldable, board = self.folded.foldable, self.board
        if foldable:
            for name in event.creates:
                facts.created.append(getattr(event, name))
            if isinstance(event, CompetitionChanged) and event.started_at is not UNSET:
                facts.changes[sequence] = event, board.competitions[event.competition_id].date
            elif isinstance(event, RankingReopened):
                facts.changes[sequence] = event, board.rankings[event.ranking_id].closed_at
            if isinstance(event, RescoringEvent):
                facts.note_scored_again(board, sequence, event)
            fold(board, self._revisions, Recorded(sequence, digest.moment(recorded_us), _NOBODY, None, event))
        if event.structural:
            facts.structural = True
        match event:
            case CompetitorRegistered() if event.commitment is not UNSET:
                facts.may_be_structural = True
            case TournamentOpened():
                if sequence != 1:
                    yield Finding(sequence, "event.kind", "opens the tournament, which is already open")
                registered = TournamentOpened(name=self._tournament.name, slug=self._tournament.slug)
                for unlike in differences(event, registered):
                    yield Finding(sequence, f"tournament.{unlike.path}", f"is {unlike.found}, not {unlike.expected}")
            case CompetitorErased():
                self.folded.erased.append(event.competitor_id)
            case EventSetAside():
                if sequence in self._faults:
                    yield Finding(sequence, "event.body", self._faults[sequence])
            case CompetitionVoided() | CompetitionUnvoided() | CompetitorsStruck() | CompetitorsUnstruck() if foldable:
                if event.competition_id in facts.due:
                    wrong = f"changes for whom competition {event.competition_id} counts a second time"
                    yield Finding(sequence, "event.body", wrong)
                self._revalue(facts, sequence, event)
            case CompetitionAdded() | CompetitionChanged() if foldable:
                facts.note_scores(board, event.competition_id, sequence, recorded_us, event)

    def _note_expirations(
        self, facts: BlockFacts, block_first: Sequence, events: Items[Event | codec.Undecodable]
    ) -> Iterator[Reported]:
        """Notes the expiries of the block, which end it but for what is scored again, and changes after which nothing
        expires."""
        scored = [*takewhile(lambda one: not isinstance(one, codec.Undecodable) and one.scores, reversed(events))]
        end = len(events) - len(scored)
        first = min(facts.expired, default=Sequence(block_first + end))
        count = first - block_first
        if facts.doubtful or not self.folded.foldable:
            yield Unchecked(f"what expires before the event {first}: an event cannot be folded")
            return
        if len(facts.expired) != end - count:
            yield Finding(first, "event.kind", "is an expiry, and other events follow it in its block")
            return
        _, before = facts.changes.pop(Sequence(first - 1), (None, None))
        causes = [event for event in events[:count] if not isinstance(event, codec.Undecodable)]
        replaced: dict[Sequence, dict[LineName, Sequence]] = {}
        for one in scored:
            if isinstance(one, PointsReversed):
                its = replaced.setdefault(origin(first, one), {})
                its.update(dict.fromkeys(one.replaced, one.reverses))
        facts.expirations = (
            ExpiredInBlock(first, causes, before, facts.expired, replaced),
            *[ExpiredInBlock(Sequence(at + 1), [event], its, {}) for at, (event, its) in facts.changes.items()],
        )

    def _leave_due(self, facts: BlockFacts) -> Iterator[Unchecked]:
        """Leaves of what had to be reversed what was not, or has to be compared line by line."""
        facts.due = {one: due for one, due in facts.due.items() if due.by_lines or due.count or due.sum}
        if facts.doubtful:
            for due in facts.due.values():
                yield Unchecked(f"what the event {due.sequence} had reversed: an event of its block was set aside")
            facts.due.clear()

    def _revalue(self, facts: BlockFacts, sequence: Sequence, event: Revaluation) -> None:
        """Notes that the rest of the block must reverse points of the competition."""
        caused = self.folded.caused_sums.get(event.competition_id, CausedSum())
        by_lines = (
            isinstance(event, CompetitorsStruck | CompetitorsUnstruck)
            or event.competition_id in self.board.struck
            or bool(self.board.expiries)
            or any(ranking.scorings or ranking.replaced for ranking in self.board.rankings.values())
        )
        facts.due[event.competition_id] = DueReversals(sequence, event, by_lines, caused.count, caused.sum)

    def _take_off(self, facts: BlockFacts, event: PointsReversed) -> str | None:
        """Subtracts the reversed points from those due to be reversed. Returns what is wrong with them."""
        competition_id = event.competition_id
        due = None if competition_id is None else facts.due.get(competition_id)
        if due is None or event.struck != due.struck:
            return f"reverses points of competition {competition_id}, for which nothing in this block is a reason"
        before = due.lines
        due.lines += len(changed_by(event))
        if not due.by_lines:
            due.count -= 1
            due.sum = (due.sum - hash_of_points(self.folded.salt, event.reverses, event, due.sign)) & _SUM_MASK
        if before <= REVERSED_LINES_MAX < due.lines:
            return f"reverses more than {REVERSED_LINES_MAX:,} lines of competition {competition_id} at once"
        return None


def _part_fault(facts: BlockFacts, sequence: Sequence, event: Event, content: BlockContent) -> str | None:
    """What is wrong with the event, if it is one of the points of a request in several rankings, which must all be
    there, one after another."""
    parts, n, sent = facts.parts, sequence - content.first_sequence, content.sent
    if not isinstance(event, PointsAdded) or event.part is None:
        fault = f"is absent, after part {len(parts)} of a request"
        parts.clear()
        return fault
    number, count = event.part
    follows = number == len(parts) + 1
    if parts and follows:
        first = parts[0]
        follows = (
            first.part == (1, count)
            and (event.competition_id, event.reason) == (first.competition_id, first.reason)
            and event.ranking_id not in [one.ranking_id for one in parts]
            and (sent[n].actor, sent[n].key) == (sent[n - 1].actor, sent[n - 1].key)
        )
    if follows and number < count:
        parts.append(event)
    else:
        parts.clear()
    if follows or facts.doubtful:
        return None
    return f"is {number} of {count}, which does not follow what is before it"


def _names_only_what_exists(board: Board, event: Event) -> bool:
    """Whether everything that points name exists. Their fold does not look for all of it; later checks do."""
    if not isinstance(event, _POINTS):
        return True
    return (event.competition_id is None or event.competition_id in board.competitions) and all(
        line.competitor_id in board.competitors for line in changed_by(event)
    )


def with_totals(event: Points) -> list[tuple[UnityId, CompetitorId]]:
    """The unities and competitors whose totals it changes by results, each once."""
    named = [(line.unity_id, line.competitor_id) for lines in (event.results, event.totals) for line in lines]
    return list(dict.fromkeys(named))


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
    hashed = hash((salt, sequence, event.ranking_id, *lines, *with_totals(event)))
    return hashed * hashed
