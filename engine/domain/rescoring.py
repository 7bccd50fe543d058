"""The points that scorings give for new, corrected and earlier results: only the lines that differ.

Pure. A result is scored in each ranking by itself (`scoring.py`). What it gives now is compared with what it gave
before. Lines that differ are taken back, with one PointsReversed for each event that gave some of them, and given again
by one PointsScored.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from itertools import chain
from typing import Final

from msgspec import UNSET, Struct, field

from engine.domain.awards import Scoring
from engine.domain.commands import (
    ChangeCompetition,
    ChangeParticipants,
    Command,
    DeclareScoring,
    ModifyRanking,
    RecordResults,
    ReopenRanking,
)
from engine.domain.counting import (
    KnownResults,
    TotalOf,
    TotalsInOrder,
    Turns,
    closed_among,
    signed,
    take_turn,
    totals_in_order,
)
from engine.domain.errors import Conflict, Unacceptable
from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    Delta,
    Event,
    ParticipantsChanged,
    Points,
    PointsReversed,
    PointsScored,
    RankingModified,
    RankingReopened,
    Recorded,
    Result,
    Scored,
    ScoringDeclared,
)
from engine.domain.lines import NOT_RECORDED, LineName, Rule, rule_of
from engine.domain.scoring import NotRead, ScoredAmounts, ScoredCompetition, choose, counts_enrolled, wanted_in_steps
from engine.domain.state import CompetitionState, ParticipantsState, RankingState, ResultLine, State, UnityState
from engine.domain.steps import Steps, finished
from engine.domain.terms import (
    FIRST_TIME,
    RESCORED_LINES_MAX,
    SCORED_LINES_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    UnityId,
)


class GivenLine(Struct, frozen=True, gc=False):
    """A line that a scoring gave with the event `sequence`, and no correction has replaced."""

    sequence: Sequence
    amount: int


class GivenBy(Struct):
    """What the scorings of a ranking have given for a competition, since the event `first`, recorded at `since`."""

    first: Sequence
    since: datetime
    lines: dict[LineName, GivenLine] = field(default_factory=dict[LineName, GivenLine])


class GivenLines:
    """What scorings have given. Takes the events that give such points in the order of the log, and those that replace
    lines in any order after the events that gave them."""

    def __init__(self) -> None:
        self._by: dict[tuple[RankingId, CompetitionId], GivenBy] = {}

    def of(self, ranking_id: RankingId, competition_id: CompetitionId) -> GivenBy | None:
        """What was given for a competition in a ranking; None: nothing ever was."""
        return self._by.get((ranking_id, competition_id))

    def take(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, PointsScored) and event.competition_id is not None:
            of = event.ranking_id, event.competition_id
            its = self._by.setdefault(of, GivenBy(recorded.sequence, recorded.recorded_at))
            for line in (*event.given, *event.given_results):
                its.lines[line.competitor_id, line.unity_id] = GivenLine(recorded.sequence, line.amount)
        elif isinstance(event, PointsReversed) and event.replaced and event.competition_id is not None:
            by = self._by.get((event.ranking_id, event.competition_id))
            lines = {} if by is None else by.lines
            for named in event.replaced:
                if named in lines and lines[named].sequence == event.reverses:
                    del lines[named]


def given_amounts(given: GivenBy | None) -> ScoredAmounts:
    """The amounts of all lines."""
    return {} if given is None else {named: line.amount for named, line in given.lines.items()}


SCORED_FIELDS: Final = ("result", "winner_id", "participants", "group_id", "scale")
"""The fields of a competition on which its points depend."""


class CorrectedCompetition(Struct, frozen=True):
    """A competition as it is after a change."""

    group_id: int
    participants: tuple[CompetitorId, ...]
    result: Result | None
    winner_id: CompetitorId | None
    scale: str


def _corrected(competition: CompetitionState, event: CompetitionChanged) -> CorrectedCompetition:

    def now(name: str) -> object:
        said = getattr(event, name, UNSET)
        return getattr(competition, name) if said is UNSET else said

    return CorrectedCompetition(**{name: now(name) for name in CorrectedCompetition.__struct_fields__})  # type: ignore[arg-type]


def scored_by(events: Iterable[Event]) -> set[tuple[CompetitionId | None, RankingId]]:
    """The competitions for which these events give points by scorings, each with its ranking."""
    return {(one.competition_id, one.ranking_id) for one in events if isinstance(one, PointsScored)}


def competitions_of(
    known: Mapping[CompetitionId, CompetitionState], events: Iterable[Event]
) -> dict[CompetitionId, ScoredCompetition]:
    """The competitions whose points these events decide, as they are afterwards; `known` may show that already."""
    found = dict[CompetitionId, ScoredCompetition]()
    for event in events:
        if isinstance(event, CompetitionAdded):
            found[event.competition_id] = event
        elif isinstance(event, CompetitionChanged) and event.scored:
            found[event.competition_id] = _corrected(known[event.competition_id], event)
    return found


class ChangedList(Struct, frozen=True):
    """The participants of a ranking after a change: those who are in it `now`, in this order."""

    before: ParticipantsState
    now: dict[CompetitorId, None]

    def __len__(self) -> int:
        return len(self.now)

    def __iter__(self) -> Iterator[CompetitorId]:
        return iter(self.now)

    def __contains__(self, competitor_id: object) -> bool:
        return competitor_id in self.now

    def lookup(self) -> Container[CompetitorId]:
        return self.now

    def row(self, competitor_id: CompetitorId) -> int | None:
        return 0 if competitor_id in self.now else self.before.row(competitor_id)


class ChangedRanking(Struct, frozen=True):
    """A ranking with other scorings or participants."""

    scorings: tuple[Scoring, ...]
    participants: ParticipantsState
    unities: Mapping[UnityId, UnityState]
    of_results: Collection[UnityId]


RescoringEvent = ScoringDeclared | ParticipantsChanged | RankingModified | RankingReopened
"""The events after which all results of a ranking may give other points."""


def _changed(state: State, event: RescoringEvent) -> ChangedRanking:
    """The ranking of the event after it."""
    ranking = state.rankings[event.ranking_id]
    participants = ranking.participants
    if isinstance(event, RankingModified):
        participants = ChangedList(participants, dict.fromkeys(event.participants))
    elif isinstance(event, ParticipantsChanged):
        now = dict.fromkeys((*participants, *event.added))
        for one in event.removed:
            now.pop(one, None)
        participants = ChangedList(participants, now)
    scorings = event.scorings if isinstance(event, ScoringDeclared) else ranking.scorings
    return ChangedRanking(scorings, participants, ranking.unities, ranking.of_results)


def concerned(state: State, event: RescoringEvent) -> frozenset[CompetitorId] | None:
    """The competitors whose results may give other points in the ranking after the event; None: all results may. The
    others give what they gave."""
    ranking = state.rankings[event.ranking_id]
    if isinstance(event, ParticipantsChanged):
        changed = frozenset((*event.added, *event.removed))
    elif isinstance(event, RankingModified):
        changed = frozenset(ranking.participants).symmetric_difference(event.participants)
    else:
        return None
    return None if changed and any(map(counts_enrolled, ranking.scorings)) else changed


def competitions_with(state: State, competitors: frozenset[CompetitorId]) -> Steps[list[CompetitionId]]:
    """The competitions in which one of these takes part."""
    found = []
    for competition_id, competition in state.competitions.items() if competitors else ():
        if not competitors.isdisjoint(competition.participants):
            found.append(competition_id)
        yield
    return found


def is_scored(state: State) -> bool:
    """Whether results give points in any ranking."""
    return any(ranking.scorings for ranking in state.rankings.values())


def new_scores(state: State, added: Collection[CompetitionAdded], now: datetime | None) -> list[Event]:
    """What new competitions give in the open rankings. `now`: what was due by then has expired; None: nothing expires.
    Raises Unacceptable beyond SCORED_LINES_MAX lines."""
    _refuse_long(state, [one.participants for one in added])
    scores = [
        _Scores(rule, ranking, one.competition_id, lines, None, now)
        for ranking_id, ranking in state.rankings.items()
        if ranking.scorings and ranking.closed_at is None
        for rule in [rule_of(state, ranking_id).dating({one.competition_id: one.started_at for one in added})]
        for one in added
        for lines in [finished(scored_lines(ranking, one))]
    ]
    _refuse_beyond(SCORED_LINES_MAX, scores)
    return [event for one in scores for event in one.events(None)]


def _refuse_long(state: State, competitions: Iterable[Collection[CompetitorId]]) -> None:
    """Raises Unacceptable if scoring a competition with these participants takes too many steps, before the first."""
    scored = [ranking.scorings for ranking in state.rankings.values() if ranking.scorings]
    awards = sum([max([len(one.awards) for one in scorings]) for scorings in scored])
    for participants in competitions:
        if (steps := awards * len(participants)) > RESCORED_LINES_MAX:
            raise Unacceptable(
                f"Scoring it would take {steps:,} steps, one for each participant and award; at most "
                f"{RESCORED_LINES_MAX:,} are possible."
            )


def may_rescore(state: State, command: Command) -> bool:
    """Whether results may give other points after the command."""
    match command:
        case ChangeCompetition():
            return is_scored(state) and any(getattr(command, one) is not UNSET for one in SCORED_FIELDS)
        case RecordResults():
            return is_scored(state)
        case DeclareScoring():
            return True
        case ReopenRanking() | ChangeParticipants() | ModifyRanking():
            ranking = state.rankings.get(command.ranking_id)
            if ranking is None or not ranking.scorings:
                return False
            return not isinstance(command, ModifyRanking) or tuple(ranking.participants) != command.participants
        case _:
            return False


def rescored(
    state: State, decided: Items[Event], given: GivenLines, known: KnownResults, now: datetime | None
) -> Steps[tuple[Event, ...]]:
    """As `Rescoring.events`."""
    return (yield from Rescoring(state, decided, given, now).events(known))


class Rescoring:
    """What scorings give and take back after the events of a command that `may_rescore`, which are not recorded yet.
    `given`: before them, for their competitions, or for `competitions` of their ranking. `now`: what was due by then
    has expired; None: nothing expires.

    Takes what is recorded meanwhile, so that a stream of results does not make all be scored again for each of them."""

    def __init__(self, state: State, decided: Items[Event], given: GivenLines, now: datetime | None) -> None:
        self._state, self._given, self._now = state, given, now
        self._ranking = decided[0] if isinstance(decided[0], RescoringEvent) else None
        self._concerned = None if self._ranking is None else concerned(state, self._ranking)
        self._only: dict[CompetitionId, None] | None = None  # in the order of creation
        self._changed = {
            one.competition_id: one for one in decided if isinstance(one, CompetitionAdded | CompetitionChanged)
        }
        self._dates = {one: its.started_at for one, its in self._changed.items() if isinstance(its, CompetitionAdded)}
        self._scores: dict[CompetitionId, _Scores | None] = {}  # in the order of creation; None: no change
        self._stale: dict[CompetitionId, None] | None = None  # to be scored again; None: all
        self._events: tuple[Event, ...] | None = None

    def competitions(self) -> Steps[Items[CompetitionId] | None]:
        """Those of the ranking whose results may give other points; None: all."""
        if self._concerned is None:
            return None
        self._only = dict.fromkeys((yield from competitions_with(self._state, self._concerned)))
        return [*self._only]

    def take(self, recorded: Recorded) -> bool:
        """Takes an event that was recorded and folded into the state. Returns False if that does not suffice."""
        event, competition_id = recorded.event, getattr(recorded.event, "competition_id", None)
        if isinstance(event, Points) and (event.results or event.totals):
            self._events = None
        if isinstance(event, Points) and not event.structural and not event.scores:
            return True
        if competition_id is None:
            return not event.structural
        if self._ranking is None:
            return competition_id not in self._changed
        if self._concerned is not None and self._only is not None and competition_id not in self._only:
            if self._concerned.isdisjoint(self._state.competitions[competition_id].participants):
                return True
            if not event.creates:
                return False  # it was not known what it gave
            self._only[competition_id] = None
        self._given.take(recorded)
        self._events = None
        if self._stale is not None:
            self._stale[competition_id] = None
        return True

    def events(self, known: KnownResults) -> Steps[tuple[Event, ...]]:
        """The events that say so. Raises Conflict if a competition gave points in a closed ranking that would change,
        Unacceptable beyond SCORED_LINES_MAX lines of competitions or RESCORED_LINES_MAX of a ranking, and
        LacksResults."""
        if self._events is None:
            if self._ranking is None:
                self._events = yield from self._of_competitions(known)
            else:
                self._events = yield from self._of_ranking(self._ranking, known)
        return self._events

    def _of_competitions(self, known: KnownResults) -> Steps[tuple[Event, ...]]:
        scores = list[_Scores]()
        for event in self._changed.values():
            scores += yield from self._of_competition(event)
            yield
        _refuse_beyond(SCORED_LINES_MAX, scores)
        corrected = {one.rule.ranking_id for one in scores if one.before is not None}
        totals = yield from _totals([one for one in scores if one.rule.ranking_id in corrected], known, self._now)
        return tuple(
            [event for one in scores for event in one.events(totals if one.rule.ranking_id in corrected else None)]
        )

    def _of_competition(self, event: CompetitionAdded | CompetitionChanged) -> Steps[list["_Scores"]]:
        state, competition_id, scores, closed = self._state, event.competition_id, list[_Scores](), list[RankingId]()
        competition = (
            event if isinstance(event, CompetitionAdded) else _corrected(state.competitions[competition_id], event)
        )
        _refuse_long(state, [competition.participants])
        for ranking_id, ranking in state.rankings.items():
            before = self._given.of(ranking_id, competition_id)
            if ranking.scorings or before is not None:
                lines = yield from scored_lines(ranking, competition)
                rule = rule_of(state, ranking_id).dating(self._dates)
                its = _Scores(rule, ranking, competition_id, lines, before, self._now)
                if ranking.closed_at is None:
                    scores.append(its)
                elif before is not None and before.lines and its.size:
                    closed.append(ranking_id)
        if named := closed_among(state, closed):
            raise Conflict(f"Competition {competition_id} gave points in closed rankings; reopen them first: {named}.")
        return scores

    def _of_ranking(self, event: RescoringEvent, known: KnownResults) -> Steps[tuple[Event, ...]]:
        state, ranking = self._state, _changed(self._state, event)
        rule = rule_of(state, event.ranking_id).reopening()
        stale: Collection[CompetitionId] | None = self._only if self._stale is None else self._stale
        if stale is None:
            stale = yield from self.competitions()
        for competition_id in state.competitions if stale is None else [*stale]:
            before = self._given.of(event.ranking_id, competition_id)
            lines = yield from scored_lines(ranking, state.competitions[competition_id])
            its = _Scores(rule, ranking, competition_id, lines, before, self._now)
            self._scores[competition_id] = its if its.size else None
            yield
        self._stale = {}
        scores = [one for one in self._scores.values() if one is not None]
        _refuse_beyond(RESCORED_LINES_MAX, scores)
        totals = yield from _totals(scores, known, self._now)
        made = list[Event]()
        for one in scores:
            made += one.events(totals)
            yield
        return tuple(made)


def _refuse_beyond(most: int, scores: Iterable["_Scores"]) -> None:
    if (lines := sum([one.size for one in scores])) > most:
        raise Unacceptable(
            f"This would give or take back {lines:,} lines of points; at most {most:,} are possible at once."
        )


def _totals(scores: Items["_Scores"], known: KnownResults, now: datetime | None) -> Steps[TotalsInOrder]:
    """The totals of all results that change. Raises LacksResults."""
    scores = [one for one in scores if one.of_results]
    turns, rules = Turns(), {one.rule.ranking_id: one.rule for one in scores}
    taken: dict[RankingId, dict[Sequence, dict[LineName, Sequence]]] = {ranking_id: {} for ranking_id in rules}
    for number, one in enumerate(scores):
        if one.before is not None:
            taken[one.rule.ranking_id][one.before.first] = dict.fromkeys(chain(*one.taken.values()), NOT_RECORDED)
        one.turn_results(turns, Sequence(NOT_RECORDED + number))
        yield
    after = {ranking_id: rule.replacing(taken[ranking_id]) for ranking_id, rule in rules.items()}
    return (yield from totals_in_order(known, turns, after, now))


class _Scores:
    """What a competition gives in a ranking, and gave `before` (None: nothing). `taken`: the lines that are taken back,
    by the event that gave them. `size`: their number, with that of the new ones. `of_results`: the unities that count
    results."""

    def __init__(
        self,
        rule: Rule,
        ranking: RankingState | ChangedRanking,
        competition_id: CompetitionId,
        lines: ScoredAmounts,
        before: GivenBy | None,
        now: datetime | None,
    ) -> None:
        self.rule, self.before = rule, before
        self._competition_id, self._now, self.of_results = competition_id, now, ranking.of_results
        self._events: tuple[Event, ...] | None = None
        self._given = {} if before is None else before.lines
        self._new = {
            one: amount
            for one, amount in sorted(lines.items())
            if one not in self._given or self._given[one].amount != amount
        }
        self.taken: dict[Sequence, set[LineName]] = {}
        for one, line in self._given.items():
            if lines.get(one) != line.amount:
                self.taken.setdefault(line.sequence, set()).add(one)
        self.size = len(self._new) + sum(map(len, self.taken.values()))

    def turn_results(self, turns: Turns, sequence: Sequence) -> None:
        """Adds the results that stop and start counting with each of the events. `sequence`: of the one that gives
        results."""
        for gave, replaced in sorted(self.taken.items()):
            lines = self._results(gave, {one: self._given[one].amount for one in replaced})
            take_turn(turns, self.rule.ranking_id, lines, starting=False)
        take_turn(turns, self.rule.ranking_id, self._results(sequence, self._new), starting=True)

    def _results(self, sequence: Sequence, lines: Mapping[LineName, int]) -> Iterator[tuple[TotalOf, ResultLine]]:
        """Those of these lines that count if the event gives them."""
        first = sequence if self.before is None else self.before.first
        counting = self._counting(sequence, lines)
        for number, (one, result) in enumerate(lines.items()):
            if one[1] in self.of_results and one in counting:
                yield one[::-1], ResultLine(sequence, first, number, result, self._since, self._competition_id)

    def events(self, totals: TotalsInOrder | None) -> tuple[Event, ...]:
        """`totals`: those afterwards; None: they follow from the results, because nothing is corrected."""
        if self._events is None or self.of_results:
            self._events = tuple(self._made(totals))
        return self._events

    def _made(self, totals: TotalsInOrder | None) -> Iterator[Event]:
        for sequence, replaced in sorted(self.taken.items()):
            yield self._reversed(sequence, sorted(replaced), totals)
        if self._new:
            yield self._scored(totals)

    def _reversed(self, sequence: Sequence, replaced: list[LineName], totals: TotalsInOrder | None) -> Event:
        assert self.before is not None
        assert totals is not None
        its = self._counting(sequence, self.taken[sequence])
        counting = [Delta(*one, self._given[one].amount) for one in replaced if one in its]
        sums = [one for one in counting if one.unity_id not in self.of_results]
        return PointsReversed(
            ranking_id=self.rule.ranking_id,
            competition_id=self._competition_id,
            deltas=signed(-1, sums),
            reverses=sequence,
            totals=totals.after_next([one for one in counting if one.unity_id in self.of_results]),
            replaced=tuple(replaced),
            instead_of=None if sequence == self.before.first else self.before.first,
        )

    def _scored(self, totals: TotalsInOrder | None) -> Event:
        sums: list[Delta] = []
        silent: list[Delta] = []
        results: list[Scored] = []
        silent_results: list[Scored] = []
        of_results, counting = self.of_results, self._counting(NOT_RECORDED, self._new)
        for one, amount in self._new.items():
            if one[1] in of_results:
                (results if one in counting else silent_results).append(Scored(*one, amount))
            else:
                (sums if one in counting else silent).append(Delta(*one, amount))
        before = self.before
        return PointsScored(
            ranking_id=self.rule.ranking_id,
            competition_id=self._competition_id,
            deltas=tuple(sums),
            results=tuple(results) if totals is None else (),
            instead_of=None if before is None else before.first,
            since=None if before is None else before.since,
            silent=tuple(silent),
            silent_results=tuple(silent_results if totals is None else results + silent_results),
            totals=() if totals is None else totals.after_next(results),
        )

    @property
    def _since(self) -> datetime:
        return self._now or FIRST_TIME if self.before is None else self.before.since

    def _counting(self, sequence: Sequence, lines: Collection[LineName]) -> Container[LineName]:
        """Those of these lines that count if the event gives them."""
        place, its = sequence if self.before is None else self.before.first, self._competition_id
        if self.rule.all_count(sequence, place, its, self._now):
            return lines
        return {one for one in lines if self.rule.counts(sequence, place, self._since, its, *one, self._now)}


def scored_lines(ranking: RankingState | ChangedRanking, competition: ScoredCompetition) -> Steps[ScoredAmounts]:
    """What the result gives: nothing if no scoring is for it, or none can read it."""
    scoring = choose(ranking.scorings, competition)
    try:
        return {} if scoring is None else (yield from wanted_in_steps(scoring, competition, ranking))
    except NotRead:
        return {}
