"""The board: the state that commands are judged against and answers are made from, and the fold that changes it. It
has the names, participants, totals and versions of one tournament.

Pure: no clock, no I/O. The board is folded in place, because it has one owner. Competitors, competitions and rankings
are frozen and replaced; lists of participants and unities are changed in place. Competitors and competitions are
packed, because there may be a million of them. Everything except the rankings is in the order of creation, which is the
order of the log.

VERSIONS. A unity has version 1 when it is created. Every event that names the unity in a delta, or changes its name,
its sort or its ranking's list of competitors, raises the version by one. No event raises it by more, and a modification
that changes none of these does not raise it.

REVISED. A competitor, competition or ranking records the sequence of the last event that changed its own fields,
participants or unities. Points do not count, nor do things that answers embed in it; a change to equal values does. So
a client knows from events alone whether it has seen the current state, without comparing values.

NUMBER. The place of a competitor, competition, ranking or unity in the order of creation, from 1.

PLACE. The place of a ranking in lists of rankings, from 1. It equals its number until an event orders the rankings.
"""

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from collections.abc import Sequence as Items
from datetime import datetime
from typing import Final, Protocol, TypeVar, assert_never, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from engine.domain import events
from engine.domain.awards import Scoring
from engine.domain.errors import LogUnreadable
from engine.domain.events import Criterion, PointsAdded, Recorded, Result
from engine.domain.expiry import Expiry
from engine.domain.lines import LineName, declared_date, rule_of
from engine.domain.marks import mark_after
from engine.domain.names import name_key
from engine.domain.notation import WHOLE, Notation
from engine.domain.options import UnityOptions, expiry_of, notation_of, options_of, options_of_main_unity
from engine.domain.rescoring import scored_lines
from engine.domain.scoring import PARTICIPANTS_AT_ONCE
from engine.domain.steps import finished
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, Sort, TournamentId, UnityId
from projections.board.competition_sums import CompetitionSums, WhatCounts
from projections.board.publication import Publication, PublicationEvent
from projections.board.results import Results
from projections.columns.enrolment import Enrolment, Totals, add_deltas
from projections.columns.packed import Packed

FOLD_VERSION: Final = 12
"""Raised whenever the same log would give a different board or different rows. Tables and snapshots of another version
are not read, but made again."""


FORMER_NAMES_MAX: Final = 10
"""Former names by which a competitor is found."""


CompetitorEvent = events.Naming | events.CompetitorErased
"""The events that change competitors."""
CompetitionEvent = events.CompetitionAdded | events.CompetitionChanged | events.Revaluation
"""The events that change competitions."""
RankingEvent = (
    events.RankingCreated
    | events.RankingModified
    | events.RankingInformationChanged
    | events.ParticipantsChanged
    | events.UnityAdded
    | events.UnityChanged
    | events.ClassificationDeclared
    | events.ScoringDeclared
    | events.RankingClosed
    | events.RankingReopened
    | events.RankingHidden
    | events.RankingShown
    | events.RankingsOrdered
)
"""The events that change rankings, apart from their points."""


class Competitor(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """`revised`: the sequence of the last event that changed it; `updated_at`: when that was recorded. Competitions and
    rankings have the same fields. `erased`: the event that erased it; 0: a later event erases it, and its personal
    fields are already gone from the log; None: it is not erased. `key`: the organiser's own id; None: it has none.
    `former`: the last names that it had before, the newest last."""

    number: int
    name: str
    tags: tuple[str, ...]
    color: str
    parent_id: CompetitorId | None
    created_at: datetime
    updated_at: datetime
    revised: Sequence
    erased: Sequence | None = None
    key: str | None = None
    former: tuple[str, ...] = ()


class Competition(Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """`date`: the declared one; None: none was declared. `result`: a score; with more than two participants, the
    existing performances, in the order of the participants. `struck`: the competitors for whom it does not count,
    ascending. `scale`: the name of the scoring that it uses; empty: none is named. `key`: as a competitor has one."""

    number: int
    group_id: int
    date: datetime | None
    location: str
    participants: tuple[CompetitorId, ...]
    result: Result | None
    winner_id: CompetitorId | None
    voided_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    revised: Sequence
    struck: tuple[CompetitorId, ...] = ()
    scale: str = ""
    round: int | None = None
    round_name: str = ""
    key: str | None = None

    @property
    def started_at(self) -> datetime:
        """Its declared date, or else when it was created."""
        return self.date or self.created_at

    @property
    def in_round(self) -> int | str | None:
        """The number of its round or, without one, the name; None: all competitions of its date are a round."""
        return self.round_name or None if self.round is None else self.round


class Unity(UnityOptions, kw_only=True, frozen=False):  # type: ignore[misc] # a mutable one inherits a frozen one
    """`totals` holds the totals of all competitors that were ever in the ranking's list.

    Points change `totals` and `version` in place. A new name or sort replaces the unity, and the new one keeps both. So
    a reference to the old one still shows its old name and sort. `notation` and `expiry` are made of its options
    (`unity_with`), because they are often read. If the unity counts results, `totals` has marks
    (`engine/domain/marks.py`), and the notation converts them to results.
    """

    number: int
    name: str
    sort: Sort
    notation: Notation = WHOLE
    expiry: Expiry | None = None
    version: int = 1
    totals: Totals

    @property
    def better(self) -> int:
        """The sign (1 or -1) by which totals are multiplied so that the better one is the smaller."""
        return -1 if self.sort is Sort.DESC else 1


class Ranking(Struct, frozen=True, kw_only=True):
    """`unities` has the main one first; `participants` are in their order. `criteria`: the declared classification;
    empty: none. `scorings`: what results give; empty: nothing. `undone` maps each event whose points are undone to the
    event that undid them, by sequence. `replaced`: the lines that corrections of results have replaced, as a `Rule` has
    them. `of_results`: the unities that count results. `special`: these, and those whose points expire. `zones`: what
    places lead to, as declared (`engine/domain/table_zones.py`).

    A change replaces the ranking, so a reference kept across a fold still shows the old fields. But both share
    `participants`, and the dictionaries `unities`, `undone` and `replaced`, which are changed in place.
    """

    number: int
    place: int
    name: str
    description: str | None
    closed_at: datetime | None = None
    participants: Enrolment
    unities: dict[UnityId, Unity]
    criteria: tuple[Criterion, ...] = ()
    scorings: tuple[Scoring, ...] = ()
    undone: dict[Sequence, Sequence] = field(default_factory=dict)
    replaced: dict[Sequence, dict[LineName, Sequence]] = field(default_factory=dict)
    of_results: frozenset[UnityId] = frozenset()
    special: frozenset[UnityId] = frozenset()
    updated_at: datetime
    revised: Sequence
    zones: str | None = None

    @property
    def expires(self) -> bool:
        """Whether points expire in any of its unities."""
        return any(self.unities[one].expiry is not None for one in self.special)


class Revisions(Struct):
    """Counts of changes to competitors, competitions and rankings since this board was made. They show whether a
    rendered answer is still valid.

    Not part of the fold's result: counting starts when the board comes into memory.
    """

    competitors: int = 0
    competitions: int = 0
    rankings: int = 0
    competitors_changed: int = 0
    """How often an existing competitor was changed."""
    erased: int = 0
    """How often a competitor was erased."""
    parents: int = 0
    """How often a competitor gained or lost a parent."""
    ignored: set[Sequence] = field(default_factory=set)
    """Sequences of the events that were folded as set aside."""
    set_aside: set[Sequence] = field(default_factory=set)
    """Sequences that the folded events named as set aside."""

    @property
    def shown(self) -> tuple[int, int]:
        """The stamp of answers that show existing competitors. A new competitor with a parent moves the bounds of
        others; a new root does not."""
        return self.competitors_changed, self.parents

    @property
    def participants(self) -> tuple[int, int, int]:
        """The stamp of answers that show the competitors of rankings."""
        return self.competitors_changed, self.parents, self.rankings


class Board(Struct, kw_only=True):
    """`voided`: the competitions that do not count, for fast look-up; `voided_at` says the same. `struck`: by
    competition, the competitors for whom it does not count; `Competition.struck` says the same. `publication`: what the
    public sees. `expiries`: the unities whose points expire, each with its ranking."""

    competitors: Packed[CompetitorId, Competitor] = field(default_factory=lambda: Packed(Competitor))
    competitions: Packed[CompetitionId, Competition] = field(default_factory=lambda: Packed(Competition))
    rankings: dict[RankingId, Ranking] = field(default_factory=dict)
    voided: set[CompetitionId] = field(default_factory=set)
    struck: dict[CompetitionId, frozenset[CompetitorId]] = field(default_factory=dict)
    publication: Publication = Publication()
    expiries: dict[UnityId, tuple[RankingId, Expiry]] = field(default_factory=dict)


class HasBoard(Protocol):
    """What has a board, possibly another one later."""

    @property
    def board(self) -> Board: ...


def board_like(board: Board) -> Board:
    """An empty board for content that is nearly equal to `board`. Equal items are shared."""
    return Board(
        competitors=Packed(Competitor, like=board.competitors),
        competitions=Packed(Competition, like=board.competitions),
    )


def fold(board: Board, revisions: Revisions, recorded: Recorded) -> None:
    """Folds one event into `board`, in place. Raises LookupError if it names what does not exist."""
    event = recorded.event
    match event:
        case PointsAdded():
            add_points(board, event)
            if event.totals:
                replace_totals(board, event)
            if event.results:
                add_results(board, event)
        case events.PointsReversed():
            reverse_points(board, recorded.sequence, event)
        case events.PointsExpired():
            turn_points(board, event)
        case events.TournamentOpened() | events.TournamentRenamed():
            pass  # the log has the name (`name_at` in engine/log/reading.py)
        case events.EventSetAside() | events.Ignored():
            _note_set_aside(revisions, recorded.sequence, event)
        case _ if isinstance(event, CompetitorEvent):
            revisions.competitors += 1
            _fold_competitor(board, revisions, event, recorded)
        case _ if isinstance(event, CompetitionEvent):
            revisions.competitions += 1
            _fold_competition(board, event, recorded)
        case _ if isinstance(event, RankingEvent):
            revisions.rankings += 1
            _fold_ranking(board, event, recorded)
        case _ if isinstance(event, PublicationEvent):
            board.publication = board.publication.after(recorded.sequence, event)
        case _:
            assert_never(event)


def _fold_competitor(board: Board, revisions: Revisions, event: CompetitorEvent, recorded: Recorded) -> None:
    match event:
        case events.CompetitorRegistered():
            revisions.parents += event.parent_id is not None
            board.competitors[event.competitor_id] = Competitor(
                number=len(board.competitors) + 1,
                name=event.name,
                tags=event.tags,
                color=event.color,
                parent_id=event.parent_id,
                created_at=recorded.recorded_at,
                updated_at=recorded.recorded_at,
                revised=recorded.sequence,
                key=event.key,
            )
            if event.commitment is not UNSET:
                _erase(board, event.competitor_id)
        case events.CompetitorChanged():
            revisions.competitors_changed += 1
            _change_competitor(board, revisions, event, recorded)
        case events.CompetitorErased():
            revisions.erased += 1
            revisions.competitors_changed += 1
            revisions.parents += board.competitors[event.competitor_id].parent_id is not None
            _erase(board, event.competitor_id)
            board.competitors[event.competitor_id] = msgspec.structs.replace(
                board.competitors[event.competitor_id],
                updated_at=recorded.recorded_at,
                revised=recorded.sequence,
                erased=recorded.sequence,
            )
        case _:
            assert_never(event)


def _fold_competition(board: Board, event: CompetitionEvent, recorded: Recorded) -> None:
    match event:
        case events.CompetitionAdded():
            board.competitions[event.competition_id] = Competition(
                number=len(board.competitions) + 1,
                group_id=event.group_id,
                date=event.started_at,
                location=event.location,
                participants=event.participants,
                result=_in_order(event.result, event.participants),
                winner_id=event.winner_id,
                created_at=recorded.recorded_at,
                updated_at=recorded.recorded_at,
                revised=recorded.sequence,
                scale=event.scale,
                round=event.round,
                round_name=event.round_name,
                key=event.key,
            )
        case events.CompetitionChanged():
            _change_competition(board, event, recorded)
        case events.CompetitionVoided() | events.CompetitionUnvoided():
            _void(board, event, recorded)
        case events.CompetitorsStruck() | events.CompetitorsUnstruck():
            _strike(board, event, recorded)
        case _:
            assert_never(event)


def _fold_ranking(board: Board, event: RankingEvent, recorded: Recorded) -> None:
    match event:
        case events.RankingCreated():
            _create_ranking(board, event, recorded)
        case events.RankingModified():
            _modify_ranking(board, event, recorded)
        case events.ParticipantsChanged():
            _change_participants(board, event, recorded)
        case events.UnityChanged():
            _change_unity(board, event, recorded)
        case events.UnityAdded():
            _add_unity(board, event, recorded)
        case events.RankingHidden() | events.RankingShown():
            _revise(board, event.ranking_id, recorded)
            board.publication = board.publication.after(recorded.sequence, event)
        case events.RankingsOrdered():
            _order_rankings(board, event, recorded)
        case _:
            ranking = board.rankings[event.ranking_id]
            _revise(board, event.ranking_id, recorded, **_own_fields(ranking, event, recorded.recorded_at))


def folding(tournament_id: TournamentId, board: Board, run: Iterable[Recorded]) -> Generator[Recorded, None, None]:
    """Folds a run of events into `board`, in place, and yields each once the board shows it. Raises LogUnreadable."""
    revisions = Revisions()
    for recorded in run:
        try:
            fold(board, revisions, recorded)
        except Exception as error:  # a defect stops this tournament only
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error
        yield recorded


def fold_all(
    tournament_id: TournamentId, board: Board, run: Items[Recorded], revisions: Revisions | None = None
) -> None:
    """As `folding`, for the whole run at once. `revisions` counts the changes; None: they are not needed, because no
    rendered answers are kept."""
    revisions = Revisions() if revisions is None else revisions
    if add_all(board, [recorded.event for recorded in run]):
        return
    for recorded in run:
        try:
            fold(board, revisions, recorded)
        except Exception as error:
            raise LogUnreadable.unfoldable(tournament_id, recorded.sequence, error) from error


def add_all(board: Board, given: Items[events.Event]) -> bool:
    """Folds points, as `fold` does one after another, in less time. False, and nothing is folded: they are not all
    PointsAdded of one ranking, without results, or name what does not exist."""
    points = cast(Items[events.PointsAdded], given)
    if {*map(type, points)} != _PLAIN or any(one.results for one in points):
        return False
    ranking_ids = {one.ranking_id for one in points}
    ranking = board.rankings.get(ranking_ids.pop())
    if ranking is None or ranking_ids:
        return False
    deltas = [delta for one in points for delta in one.deltas]
    unity_ids = [delta.unity_id for delta in deltas]
    if len(deltas) > len(points):
        unity_ids = [unity_id for one in points for unity_id in {delta.unity_id for delta in one.deltas}]
    versions = Counter(unity_ids)
    if not versions.keys() <= ranking.unities.keys():
        return False
    add_deltas(ranking.unities, deltas)
    for unity_id, count in versions.items():
        ranking.unities[unity_id].version += count
    return True


_PLAIN: Final = {events.PointsAdded}


def add_points(board: Board, event: events.Points) -> None:
    """Folds points, as `fold` does. `board` needs only the ranking of `event`."""
    ranking = board.rankings[event.ranking_id]
    unities = ranking.unities
    deltas = event.deltas
    if len(deltas) == 1:  # nearly always; the general code takes as long as the rest of the function
        delta = deltas[0]
        unity = unities[delta.unity_id]
        unity.totals.add(delta.competitor_id, delta.amount)
        unity.version += 1
    elif deltas:
        for unity_id in add_deltas(unities, deltas):
            unities[unity_id].version += 1


def add_results(board: Board, event: events.PointsAdded) -> None:
    """Folds the results of points, as `fold` does after `add_points`."""
    ranking = board.rankings[event.ranking_id]
    for delta in event.results:
        take_result(ranking, delta)
    if not event.deltas and len(event.results) == 1:  # as in `add_points`
        ranking.unities[event.results[0].unity_id].version += 1
    else:
        _raise_versions(ranking, event.deltas, event.results)


def take_result(ranking: Ranking, result: events.Delta) -> None:
    """Updates the total by a new result."""
    unity = ranking.unities[result.unity_id]
    before = unity.totals.get(result.competitor_id)
    after = mark_after(before, result.amount, unity.counts, unity.sort)
    if after != before:
        unity.totals.add(result.competitor_id, after - before)


def _raise_versions(
    ranking: Ranking, before: Iterable[events.Delta], more: Iterable[events.Delta | events.Total]
) -> None:
    """Raises the versions of the unities in the lines `more`, except those in the lines `before`."""
    for unity_id in {line.unity_id for line in more} - {line.unity_id for line in before}:
        ranking.unities[unity_id].version += 1


def reverse_points(board: Board, sequence: Sequence, event: events.PointsReversed) -> None:
    """As `add_points`, for reversals."""
    turn_points(board, event)
    undone = board.rankings[event.ranking_id].undone
    if event.undone:
        undone[event.reverses] = sequence
    elif event.undone is not None:
        undone.pop(event.reverses, None)
    if event.replaced:
        replaced = board.rankings[event.ranking_id].replaced.setdefault(events.origin(sequence, event), {})
        replaced.update(dict.fromkeys(event.replaced, sequence))


def turn_points(board: Board, event: events.PointsReversed | events.PointsExpired) -> None:
    """As `add_points`, for points that stop or start to count: also replaces the totals that the event names."""
    add_points(board, event)
    replace_totals(board, event)


def replace_totals(board: Board, event: events.Points) -> None:
    """As `turn_points`, after `add_points`."""
    ranking = board.rankings[event.ranking_id]
    for line in event.totals:
        unity = ranking.unities[line.unity_id]
        unity.totals.add(line.competitor_id, unity.notation.kept(line.total) - unity.totals.get(line.competitor_id))
    _raise_versions(ranking, event.deltas, event.totals)


class Moved(Struct, frozen=True):
    """What an event other than points moves in the orders of a ranking: the lines of these competitors, or all; in
    every unity, or one."""

    ranking_id: RankingId
    unity_id: UnityId | None = None
    competitors: tuple[CompetitorId, ...] | None = None


def moved_by(board: Board, event: events.Event) -> Moved | None:
    """What the event moves; None: nothing that it is known to. The board is the one before it."""
    match event:
        case events.ParticipantsChanged():
            return Moved(event.ranking_id, competitors=(*event.removed, *event.added))
        case events.RankingModified():
            ranking = board.rankings.get(event.ranking_id)
            if ranking is not None and tuple(ranking.participants) != event.participants:
                return Moved(event.ranking_id)
        case events.UnityChanged():
            ranking = board.rankings.get(event.ranking_id)
            unity = None if ranking is None else ranking.unities.get(event.unity_id)
            if unity is not None and event.sort not in (UNSET, unity.sort):
                return Moved(event.ranking_id, event.unity_id)
    return None


def update_of_results(
    board: Board, ranking_id: RankingId, recorded: Recorded
) -> Callable[[Results], bool | None] | None:
    """How the event that was just folded updates the results of a ranking that were read before it; None: not at all.
    The update returns False, and changes nothing, if they must be read again."""
    event = recorded.event
    match event:
        case events.PointsScored():
            return lambda results: _follow_scored(board, results, recorded, event)
        case events.PointsAdded() if event.results:
            return lambda results: note_results(board, results, recorded.sequence, recorded.recorded_at, event)
        case events.PointsReversed() if event.totals:
            counts = counts_after(board, event)
            return lambda results: results.turn(event.reverses, event.totals, counts=counts)
        case events.PointsExpired():
            return lambda results: results.expire(event.boundary)
        case events.CompetitionChanged() if event.redates and board.rankings[ranking_id].expires:
            return lambda results: not results.has_of(event.competition_id)
        case _:
            return None


def note_results(
    board: Board, results: Results, sequence: Sequence, recorded_at: datetime, event: events.Points
) -> None:
    """Adds the results of an event, counting or not. They age by the present date of their competition."""
    took_place = declared_date(board, event.competition_id) or event.since or recorded_at
    results.note(sequence, recorded_at, event, took_place)


def _follow_scored(board: Board, results: Results, recorded: Recorded, event: events.PointsScored) -> None:
    """Adds the results of an event that was just folded: those that count."""
    note_results(board, results, recorded.sequence, recorded.recorded_at, event)
    counting = {(line.unity_id, line.competitor_id) for line in events.changed_by(event)}
    results.leave_out(recorded.sequence, lambda delta: (delta.unity_id, delta.competitor_id) in counting)


def counts_after(board: Board, event: events.PointsReversed) -> bool:
    """Whether the lines that the event reverses count after it."""
    if event.undone is not None:
        return not event.undone
    if event.struck is not None:
        return not event.struck
    return not event.replaced and event.competition_id not in board.voided


def update_of_sums(
    board: Board, ranking_id: RankingId, recorded: Recorded
) -> Callable[[CompetitionSums], bool | None] | None:
    """As `update_of_results`, for sums of competitions."""
    event, expires = recorded.event, board.rankings[ranking_id].expires
    match event:
        case events.PointsReversed() | events.PointsScored() if _is_correction(event) and not expires:
            return lambda sums: _count_correction(board, sums, recorded, event)
        case events.PointsAdded() | events.PointsReversed() | events.PointsExpired():
            return lambda sums: count_in(sums, recorded.sequence, recorded.recorded_at, event, expires=expires)
        case events.ClassificationDeclared():
            return lambda sums: reached_first(event.criteria) <= sums.first
        case events.CompetitorsStruck() | events.CompetitorsUnstruck():
            return lambda _: False  # sums leave out struck competitors
        case events.CompetitionChanged() if event.redates and expires:
            return lambda sums: event.competition_id not in sums.given
        case _:
            made = event.made_unity
            return None if made is None else lambda sums: sums.declare(made)


def _is_correction(event: events.PointsReversed | events.PointsScored) -> bool:
    """Whether the event corrects points of a result, only in sums, and in lines that count."""
    if isinstance(event, events.PointsReversed):
        return bool(event.replaced) and len(event.deltas) == len(event.replaced)
    return event.instead_of is not None and not (event.silent or event.silent_results or event.totals)


def _count_correction(
    board: Board, sums: CompetitionSums, recorded: Recorded, event: events.PointsReversed | events.PointsScored
) -> bool:
    """Counts a part of a correction in the sums. Returns False if they must be read again: it leaves a competitor
    without a line, changes when totals were reached, or takes long to score."""
    competition = None if event.competition_id is None else board.competitions.get(event.competition_id)
    if (
        competition is None
        or event.competition_id not in sums.given
        or any(d.unity_id in sums.first for d in event.deltas)
        or len(competition.participants) > PARTICIPANTS_AT_ONCE
    ):
        return False
    if event.replaced:  # given again in the same block, or they have no sum
        given = finished(scored_lines(board.rankings[event.ranking_id], competition))
        if not all(line in given for line in event.replaced):
            return False
    sums.count(recorded.sequence, recorded.recorded_at, event)
    return True


def count_in(
    sums: CompetitionSums, sequence: Sequence, recorded_at: datetime, points: events.Points, *, expires: bool
) -> bool:
    """Counts the event in the sums. Returns False if they must be read again, because they leave out lines that do not
    count, even as a sum of 0. `expires`: whether points of the ranking do."""
    if isinstance(points, events.PointsReversed):
        is_void = points.undone is None and points.struck is None and not points.replaced  # it leaves a sum of 0
        if not is_void or expires or any(line.unity_id in sums.first for line in events.changed_by(points)):
            return False
    elif isinstance(points, events.PointsExpired) or (
        isinstance(points, events.PointsScored) and (points.instead_of or points.silent or points.silent_results)
    ):
        return False
    sums.count(sequence, recorded_at, points)
    return True


def what_counts(board: Board, ranking_id: RankingId, now: datetime | None) -> WhatCounts:
    """The lines that sums of a ranking are made of. Apart from dates, later changes of the board do not affect it.
    `now`: the time up to which due points have expired; None: nothing expires."""
    ranking = board.rankings[ranking_id]
    rule = msgspec.structs.replace(
        rule_of(board, ranking_id),
        undone=frozenset(ranking.undone),
        replaced=copied_replaced(ranking),
        voided=frozenset(board.voided),
        struck=board.struck.copy(),
    )
    return WhatCounts(rule, now if ranking.expires else None, reached_first(ranking.criteria))


def copied_replaced(ranking: Ranking) -> dict[Sequence, dict[LineName, Sequence]]:
    """A copy of what corrections have replaced."""
    return {place: lines.copy() for place, lines in ranking.replaced.items()}


ReplacedLines = dict[Sequence, list[tuple[CompetitorId, UnityId, Sequence]]]
"""What corrections have replaced, as it is stored."""


def replaced_lines(ranking: Ranking) -> ReplacedLines:
    return {place: sorted([(*one, by) for one, by in its.items()]) for place, its in sorted(ranking.replaced.items())}


def replaced_by(stored: ReplacedLines) -> dict[Sequence, dict[LineName, Sequence]]:
    return {place: {(one, unity_id): by for one, unity_id, by in its} for place, its in stored.items()}


def reached_first(criteria: Iterable[Criterion]) -> frozenset[UnityId]:
    """The unities in which a competitor who reached the total earlier stands ahead."""
    return frozenset([criterion.unity_id for criterion in criteria if criterion.first])


def _revise(board: Board, ranking_id: RankingId, recorded: Recorded, **changes: object) -> None:
    """Applies `changes` to the ranking, and marks it as revised by `recorded`."""
    board.rankings[ranking_id] = msgspec.structs.replace(
        board.rankings[ranking_id], updated_at=recorded.recorded_at, revised=recorded.sequence, **changes
    )


def _void(board: Board, event: events.CompetitionVoided | events.CompetitionUnvoided, recorded: Recorded) -> None:
    competition = board.competitions[event.competition_id]
    if isinstance(event, events.CompetitionVoided):
        voided_at = recorded.recorded_at
        board.voided.add(event.competition_id)
    else:
        voided_at = None
        board.voided.discard(event.competition_id)
    board.competitions[event.competition_id] = msgspec.structs.replace(
        competition, voided_at=voided_at, updated_at=recorded.recorded_at, revised=recorded.sequence
    )


def _strike(board: Board, event: events.CompetitorsStruck | events.CompetitorsUnstruck, recorded: Recorded) -> None:
    competition = board.competitions[event.competition_id]
    named = frozenset(event.competitors)
    struck = tuple([one for one in competition.struck if one not in named])
    if isinstance(event, events.CompetitorsStruck):
        struck += event.competitors
    board.competitions[event.competition_id] = msgspec.structs.replace(
        competition, struck=tuple(sorted(struck)), updated_at=recorded.recorded_at, revised=recorded.sequence
    )
    note_struck(board, event.competition_id, struck)


def note_struck(board: Board, competition_id: CompetitionId, struck: Collection[CompetitorId]) -> None:
    """Brings `board.struck` into line with the competition's `struck`."""
    if struck:
        board.struck[competition_id] = frozenset(struck)
    else:
        board.struck.pop(competition_id, None)


def _note_set_aside(revisions: Revisions, sequence: Sequence, event: events.EventSetAside | events.Ignored) -> None:
    if isinstance(event, events.Ignored):
        revisions.ignored.add(sequence)
    else:
        revisions.set_aside.add(event.sequence)


def _change_competitor(board: Board, revisions: Revisions, event: events.CompetitorChanged, recorded: Recorded) -> None:
    revisions.parents += event.parent_id is not UNSET
    competitor = board.competitors[event.competitor_id]
    if competitor.erased is not None or event.commitment is not UNSET:
        _erase(board, event.competitor_id)
        return
    board.competitors[event.competitor_id] = msgspec.structs.replace(
        competitor,
        name=_set(event.name, competitor.name),
        tags=_set(event.tags, competitor.tags),
        color=_set(event.color, competitor.color),
        parent_id=_set(event.parent_id, competitor.parent_id),
        updated_at=recorded.recorded_at,
        revised=recorded.sequence,
        key=_set(event.key, competitor.key),
        former=_former(competitor, _set(event.name, competitor.name)),
    )


def _former(competitor: Competitor, name: str) -> tuple[str, ...]:
    """The former names of the competitor, which has this one now."""
    former = {name_key(one): one for one in (*competitor.former, competitor.name)}
    former.pop(name_key(name), None)
    return tuple(former.values())[-FORMER_NAMES_MAX:]


def erase(board: Board, competitor_ids: Iterable[CompetitorId]) -> list[CompetitorId]:
    """Erases those whom events after this board erase: the log has forgotten their names already. So the board is the
    same whether it was folded before or after those events were appended. Skips those whom the board does not have, and
    who are erased already. Returns the others."""
    competitors = board.competitors
    erased = [one for one in competitor_ids if one in competitors and competitors[one].erased is None]
    for competitor_id in erased:
        _erase(board, competitor_id)
    return erased


def _erase(board: Board, competitor_id: CompetitorId) -> None:
    board.competitors[competitor_id] = forgotten(competitor_id, board.competitors[competitor_id])


def forgotten(competitor_id: CompetitorId, competitor: Competitor) -> Competitor:
    """The competitor, erased before the event that does so."""
    return msgspec.structs.replace(
        competitor,
        name=f"#{competitor_id}",
        tags=(),
        color=events.COLOR_DEFAULT,
        parent_id=None,
        updated_at=competitor.created_at,
        revised=Sequence(0),
        erased=Sequence(0),
        key=None,
        former=(),
    )


def _change_competition(board: Board, event: events.CompetitionChanged, recorded: Recorded) -> None:
    competition = board.competitions[event.competition_id]
    participants = _set(event.participants, competition.participants)
    board.competitions[event.competition_id] = msgspec.structs.replace(
        competition,
        group_id=_set(event.group_id, competition.group_id),
        participants=participants,
        date=_set(event.started_at, competition.date),
        location=_set(event.location, competition.location),
        result=_in_order(_set(event.result, competition.result), participants),
        winner_id=_set(event.winner_id, competition.winner_id),
        scale=_set(event.scale, competition.scale),
        round=_set(event.round, competition.round),
        round_name=_set(event.round_name, competition.round_name),
        updated_at=recorded.recorded_at,
        revised=recorded.sequence,
        key=_set(event.key, competition.key),
    )


def _create_ranking(board: Board, event: events.RankingCreated, recorded: Recorded) -> None:
    enrolment = Enrolment(event.participants)
    main = unity_with(
        options_of_main_unity(event),
        number=1,
        name=event.main_unity_name,
        sort=event.main_unity_sort,
        totals=Totals(enrolment),
    )
    board.rankings[event.ranking_id] = Ranking(
        number=len(board.rankings) + 1,
        place=len(board.rankings) + 1,
        name=event.name,
        description=event.description,
        participants=enrolment,
        unities={event.main_unity_id: main},
        of_results=counting_results({event.main_unity_id: main}),
        special=special({event.main_unity_id: main}),
        updated_at=recorded.recorded_at,
        revised=recorded.sequence,
    )
    note_expiry(board, event.ranking_id, event.main_unity_id)


def _modify_ranking(board: Board, event: events.RankingModified, recorded: Recorded) -> None:
    ranking = board.rankings[event.ranking_id]
    main, *others = ranking.unities.values()
    list_changed = ranking.participants.replace(event.participants)
    if list_changed or event.main_unity_name != main.name:
        main.version += 1
    for unity in others:
        unity.version += list_changed
    ranking.unities[next(iter(ranking.unities))] = msgspec.structs.replace(main, name=event.main_unity_name)
    _revise(board, event.ranking_id, recorded, **_information(ranking, event))


def _own_fields(
    ranking: Ranking,
    event: (
        events.RankingInformationChanged
        | events.ClassificationDeclared
        | events.ScoringDeclared
        | events.RankingClosed
        | events.RankingReopened
    ),
    now: datetime,
) -> Mapping[str, object]:
    """The ranking's own fields that `event` changes, with their new values."""
    match event:
        case events.RankingInformationChanged():
            return {**_information(ranking, event), "zones": _set(event.zones, ranking.zones)}
        case events.ClassificationDeclared():
            named = [i for one in event.criteria for i in (one.unity_id, one.divisor) if i is not None]
            if missing := [unity_id for unity_id in named if unity_id not in ranking.unities]:
                raise KeyError(missing[0])
            return {"criteria": event.criteria}
        case events.ScoringDeclared():
            for award in [award for scoring in event.scorings for award in scoring.awards]:
                if award.unity_id not in ranking.unities:
                    raise KeyError(award.unity_id)
            return {"scorings": event.scorings}
        case events.RankingClosed():
            return {"closed_at": now}
        case events.RankingReopened():
            return {"closed_at": None}


def _order_rankings(board: Board, event: events.RankingsOrdered, recorded: Recorded) -> None:
    named = set(event.rankings)
    others = [ranking_id for ranking_id in board.rankings if ranking_id not in named]
    for place, ranking_id in enumerate([*event.rankings, *others], start=1):
        _revise(board, ranking_id, recorded, place=place)
        board.rankings[ranking_id] = board.rankings.pop(ranking_id)  # to the end


def _information(
    ranking: Ranking, event: events.RankingModified | events.RankingInformationChanged
) -> dict[str, str | None]:
    """Name and description of the ranking after `event`."""
    return {"name": _set(event.name, ranking.name), "description": _set(event.description, ranking.description)}


def _add_unity(board: Board, event: events.UnityAdded, recorded: Recorded) -> None:
    _revise(board, event.ranking_id, recorded)
    ranking = board.rankings[event.ranking_id]
    ranking.unities[event.unity_id] = unity_with(
        event,
        number=len(ranking.unities) + 1,
        name=event.name,
        sort=event.sort,
        totals=Totals(ranking.participants),
    )
    note_expiry(board, event.ranking_id, event.unity_id)
    if event.counts_results or event.lasts is not None:
        board.rankings[event.ranking_id] = msgspec.structs.replace(
            ranking, of_results=counting_results(ranking.unities), special=special(ranking.unities)
        )


def unity_with(options: UnityOptions, *, number: int, name: str, sort: Sort, version: int = 1, totals: Totals) -> Unity:
    """A unity with these options."""
    return Unity(
        number=number,
        name=name,
        sort=sort,
        notation=notation_of(options, sort),
        expiry=expiry_of(options),
        version=version,
        totals=totals,
        **options_of(options),
    )


def counting_results(unities: Mapping[UnityId, Unity]) -> frozenset[UnityId]:
    """The unities that count results."""
    return frozenset([unity_id for unity_id, unity in unities.items() if unity.counts_results])


def special(unities: Mapping[UnityId, Unity]) -> frozenset[UnityId]:
    """The unities that count results, or whose points expire."""
    return frozenset([u for u, unity in unities.items() if unity.counts_results or unity.expiry is not None])


def note_expiry(board: Board, ranking_id: RankingId, unity_id: UnityId) -> None:
    """Enters the unity's expiry in `board.expiries`, if it has one."""
    expiry = board.rankings[ranking_id].unities[unity_id].expiry
    if expiry is not None:
        board.expiries[unity_id] = ranking_id, expiry
        board.expiries = dict(sorted(board.expiries.items()))  # the same however the board was made


def _change_unity(board: Board, event: events.UnityChanged, recorded: Recorded) -> None:
    _revise(board, event.ranking_id, recorded)
    unities = board.rankings[event.ranking_id].unities
    unity = unities[event.unity_id]
    name, sort = _set(event.name, unity.name), _set(event.sort, unity.sort)
    version = unity.version + ((name, sort) != (unity.name, unity.sort))
    unities[event.unity_id] = msgspec.structs.replace(unity, name=name, sort=sort, version=version)


def _change_participants(board: Board, event: events.ParticipantsChanged, recorded: Recorded) -> None:
    ranking = board.rankings[event.ranking_id]
    left = [ranking.participants.remove(competitor_id) for competitor_id in event.removed]
    came = [ranking.participants.enrol(competitor_id) for competitor_id in event.added]
    if any(left) or any(came):
        for unity in ranking.unities.values():
            unity.version += 1
    _revise(board, event.ranking_id, recorded)


def _in_order(result: Result | None, participants: tuple[CompetitorId, ...]) -> Result | None:
    """The result, with performances in the order of the participants: tables do not keep the order they were sent
    in."""
    if not isinstance(result, dict):
        return result
    return {competitor_id: result[competitor_id] for competitor_id in participants if competitor_id in result}


_T = TypeVar("_T")


def _set(said: _T | UnsetType, before: _T) -> _T:
    """`said`, or `before` if `said` is UNSET."""
    return before if said is UNSET else said
