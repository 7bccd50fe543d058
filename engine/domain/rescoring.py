"""The points that scorings give for new, corrected and earlier results: only the lines that differ.

Pure. A result is scored in each ranking by itself (`scoring.py`). What it gives now is compared with what it gave
before. Lines that differ are taken back, with one PointsReversed for each event that gave some of them, and given again
by one PointsScored.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET, Struct, field

from engine.domain.awards import Scoring
from engine.domain.commands import (
    ChangeCompetition,
    ChangeParticipants,
    Command,
    DeclareScoring,
    ModifyRanking,
    ReopenRanking,
)
from engine.domain.counting import GivenBack, KnownResults, TotalOf, TotalsOfResults, totals_of_named
from engine.domain.errors import Conflict, Unacceptable
from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    Delta,
    Event,
    ParticipantsChanged,
    PointsReversed,
    PointsScored,
    RankingModified,
    RankingReopened,
    Recorded,
    Result,
    Scored,
    ScoringDeclared,
)
from engine.domain.lines import LineName, Rule, rule_of
from engine.domain.scoring import NotRead, ScoredAmounts, ScoredCompetition, choose, wanted
from engine.domain.state import CompetitionState, ParticipantsState, RankingState, ResultLine, State, UnityState
from engine.domain.steps import Steps, finished
from engine.domain.terms import (
    RESCORED_LINES_MAX,
    SCORED_LINES_MAX,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    UnityId,
)

_NOT_RECORDED: Final = Sequence(0)
_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)


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


_OfRanking = ScoringDeclared | ParticipantsChanged | RankingModified | RankingReopened
"""The events after which all results of a ranking may give other points."""


def _changed(state: State, event: _OfRanking) -> ChangedRanking:
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


def is_scored(state: State) -> bool:
    """Whether results give points in any ranking."""
    return any(ranking.scorings for ranking in state.rankings.values())


def new_scores(state: State, added: Iterable[CompetitionAdded], now: datetime | None) -> list[Event]:
    """What new competitions give in the open rankings. `now`: what was due by then has expired; None: nothing expires.
    Raises Unacceptable beyond SCORED_LINES_MAX lines."""
    events: list[Event] = []
    for ranking_id, ranking in state.rankings.items():
        if ranking.scorings and ranking.closed_at is None:
            rule = rule_of(state, ranking_id)
            for one in added:
                dated = rule.dating(one.competition_id, one.started_at)
                its = _Scores(dated, ranking, one.competition_id, one, None, now)
                events += its.events(None)
    _refuse_beyond(SCORED_LINES_MAX, _lines_in(events))
    return events


def may_rescore(state: State, command: Command) -> bool:
    """Whether results may give other points after the command."""
    match command:
        case ChangeCompetition():
            return is_scored(state) and any(getattr(command, one) is not UNSET for one in SCORED_FIELDS)
        case DeclareScoring():
            return True
        case ReopenRanking() | ChangeParticipants() | ModifyRanking():
            ranking = state.rankings.get(command.ranking_id)
            return ranking is not None and bool(ranking.scorings)
        case _:
            return False


def rescored(
    state: State, event: Event, given: GivenLines, known: KnownResults, now: datetime | None
) -> Steps[tuple[Event, ...]]:
    """What scorings give and take back after an event that `may_rescore`; `given`: before it, for its competition or in
    its ranking. Raises Conflict if a competition gave points in a closed ranking that would change, Unacceptable beyond
    SCORED_LINES_MAX lines of a competition or RESCORED_LINES_MAX of a ranking, and LacksResults."""
    match event:
        case CompetitionChanged():
            return tuple(_of_competition(state, event, given, known, now))
        case ScoringDeclared() | ParticipantsChanged() | RankingModified() | RankingReopened():
            return (yield from _of_ranking(state, event, given, known, now))
        case _:
            return ()


def _of_competition(
    state: State, event: CompetitionChanged, given: GivenLines, known: KnownResults, now: datetime | None
) -> list[Event]:
    competition_id, events, closed = event.competition_id, list[Event](), list[str]()
    competition = _corrected(state.competitions[competition_id], event)
    for ranking_id, ranking in state.rankings.items():
        before = given.of(ranking_id, competition_id)
        if ranking.scorings or before is not None:
            its = _Scores(rule_of(state, ranking_id), ranking, competition_id, competition, before, now)
            if ranking.closed_at is None:
                events += its.events(known)
            elif before is not None and before.lines and its.differ:
                closed.append(str(ranking_id))
    if closed:
        raise Conflict(
            f"Competition {competition_id} gave points in closed rankings; reopen them first: {', '.join(closed)}."
        )
    _refuse_beyond(SCORED_LINES_MAX, _lines_in(events))
    return events


def _of_ranking(
    state: State, event: _OfRanking, given: GivenLines, known: KnownResults, now: datetime | None
) -> Steps[tuple[Event, ...]]:
    ranking, rule = _changed(state, event), rule_of(state, event.ranking_id).reopening()
    events, lines = list[Event](), 0
    for competition_id, competition in state.competitions.items():
        before = given.of(event.ranking_id, competition_id)
        its = [*_Scores(rule, ranking, competition_id, competition, before, now).events(known)]
        lines += _lines_in(its)
        _refuse_beyond(RESCORED_LINES_MAX, lines)
        events += its
        yield
    return tuple(events)


def _refuse_beyond(most: int, lines: int) -> None:
    if lines > most:
        raise Unacceptable(f"This would give or take back {lines:,} lines of points; at most {most:,} can be at once.")


def _lines_in(events: Iterable[Event]) -> int:
    """The lines that scorings give and take back in these events."""
    return sum(
        [
            len(one.replaced) if isinstance(one, PointsReversed) else len(one.given) + len(one.given_results)
            for one in events
            if isinstance(one, PointsScored | PointsReversed)
        ]
    )


class _Scores:
    """What a competition gives in a ranking, and gave `before` (None: nothing)."""

    def __init__(
        self,
        rule: Rule,
        ranking: RankingState | ChangedRanking,
        competition_id: CompetitionId,
        competition: ScoredCompetition,
        before: GivenBy | None,
        now: datetime | None,
    ) -> None:
        self._rule, self._competition_id, self._before, self._now = rule, competition_id, before, now
        self._of_results = ranking.of_results
        lines = scored_lines(ranking, competition)
        given = {} if before is None else before.lines
        self._taken = {one: line for one, line in given.items() if lines.get(one) != line.amount}
        self._new = {one: amount for one, amount in lines.items() if one not in given or one in self._taken}

    @property
    def differ(self) -> bool:
        return bool(self._taken or self._new)

    def events(self, known: KnownResults | None) -> Iterator[Event]:
        """The events. `known`: needed if it gave something before. Raises LacksResults."""
        taken: dict[Sequence, list[LineName]] = {}
        for named, line in sorted(self._taken.items()):
            taken.setdefault(line.sequence, []).append(named)
        rule = self._rule.replacing({sequence: frozenset(named) for sequence, named in taken.items()})
        totals = {} if self._before is None or known is None else self._totals(rule, known)
        for sequence, replaced in sorted(taken.items()):
            yield self._reversed(sequence, replaced, totals)
        if self._new:
            yield self._scored(rule, totals)

    def _reversed(self, sequence: Sequence, replaced: list[LineName], totals: TotalsOfResults) -> Event:
        assert self._before is not None
        counting = [one for one in replaced if self._counts(self._rule, sequence, one)]
        return PointsReversed(
            ranking_id=self._rule.ranking_id,
            competition_id=self._competition_id,
            deltas=tuple([Delta(*one, -self._taken[one].amount) for one in counting if one[1] not in self._of_results]),
            reverses=sequence,
            totals=tuple([totals[one[::-1]] for one in counting if one[1] in self._of_results]),
            replaced=tuple(replaced),
            instead_of=None if sequence == self._before.first else self._before.first,
        )

    def _scored(self, rule: Rule, totals: TotalsOfResults) -> Event:
        lines = {one: self._counts(rule, _NOT_RECORDED, one) for one in sorted(self._new)}
        before = self._before

        def of(*, results: bool, counting: bool) -> Iterator[tuple[CompetitorId, UnityId, int]]:
            for one, counts in lines.items():
                if (one[1] in self._of_results) is results and counts is counting:
                    yield *one, self._new[one]

        at_once, silent = [Scored(*one) for one in of(results=True, counting=True)], of(results=True, counting=False)
        return PointsScored(
            ranking_id=rule.ranking_id,
            competition_id=self._competition_id,
            deltas=tuple([Delta(*one) for one in of(results=False, counting=True)]),
            results=tuple(at_once if before is None else ()),
            instead_of=None if before is None else before.first,
            since=None if before is None else before.since,
            silent=tuple([Delta(*one) for one in of(results=False, counting=False)]),
            silent_results=(*(() if before is None else at_once), *[Scored(*one) for one in silent]),
            totals=() if before is None else tuple([totals[one.unity_id, one.competitor_id] for one in at_once]),
        )

    def _counts(self, rule: Rule, sequence: Sequence, named: LineName) -> bool:
        since = self._now or _ANY_TIME if self._before is None else self._before.since
        return rule.counts(sequence, since, self._competition_id, *named, self._now)

    def _totals(self, rule: Rule, known: KnownResults) -> TotalsOfResults:
        """The totals afterwards of all whose results change."""
        assert self._before is not None
        back: GivenBack = {}
        for number, one in enumerate(self._new):
            if one[1] in self._of_results and self._counts(rule, _NOT_RECORDED, one):
                first, since = self._before.first, self._before.since
                line = ResultLine(_NOT_RECORDED, first, number, self._new[one], since, self._competition_id)
                back[one[::-1]] = [line]
        named: dict[TotalOf, RankingId] = {
            one[::-1]: rule.ranking_id for one in (*self._taken, *self._new) if one[1] in self._of_results
        }
        return finished(totals_of_named(known, named, {rule.ranking_id: rule}, self._now, back))


def scored_lines(ranking: RankingState | ChangedRanking, competition: ScoredCompetition) -> ScoredAmounts:
    """What the result gives: nothing if no scoring is for it, or none can read it."""
    scoring = choose(ranking.scorings, competition)
    try:
        return {} if scoring is None else wanted(scoring, competition, ranking)
    except NotRead:
        return {}
