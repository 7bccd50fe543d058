"""Which points count, and what the totals of results are after a change.

Pure. Points count unless they are undone, their competition is voided, their competitor is struck from it, or they have
expired.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from datetime import datetime
from typing import Final, Literal

import msgspec

from engine.domain import commands, events
from engine.domain.events import Delta, Total
from engine.domain.state import RankingState, ResultLine, ResultsState, State
from engine.domain.steps import Steps
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, Sequence, UnityId


class ExpiryTimes(msgspec.Struct, frozen=True, kw_only=True):
    """What judging needs if points expire. `now`: in the state, everything due by then has expired. `given`: points
    that the command may make count or stop counting, each with the time at which it was recorded.
    """

    now: datetime
    given: Mapping[Sequence, tuple[datetime, events.PointsAdded]] = msgspec.field(default_factory=dict)


class LacksResults(Exception):
    """The `results` of these rankings must be read before the command can be judged."""

    def __init__(self, ranking_ids: Iterable[RankingId]) -> None:
        super().__init__()
        self.ranking_ids = tuple(ranking_ids)


class Afterwards(msgspec.Struct, frozen=True, kw_only=True):
    """What a change makes count or stop counting: a competition, for `only` these competitors if they are given, or the
    events `sequences`. `counts`: whether they count afterwards. `now`: the time up to which results have expired
    afterwards; None: the change expires none. `dates`: dates of competitions that are in force only afterwards."""

    competition_id: CompetitionId | None = None
    only: Container[CompetitorId] | None = None
    sequences: Container[Sequence] = ()
    counts: bool = True
    now: datetime | None = None
    dates: Mapping[CompetitionId, datetime | None] = msgspec.field(default_factory=dict)


AS_NOW: Final = Afterwards()


def declared_date(state: State, competition_id: CompetitionId | None) -> datetime | None:
    """The declared date of the competition. None: it has none, or there is no competition."""
    competition = None if competition_id is None else state.competitions.get(competition_id)
    return None if competition is None else competition.date


def is_voided(state: State, competition_id: CompetitionId) -> bool:
    """Whether the competition of points is voided. One that the state does not have is not: it was set aside."""
    competition = state.competitions.get(competition_id)
    return competition is not None and competition.voided_at is not None


def took_place_at(
    state: State,
    recorded_at: datetime,
    competition_id: CompetitionId | None,
    dates: Mapping[CompetitionId, datetime | None] = {},
) -> datetime:
    """The time at which points recorded at `recorded_at` took place. `dates`: dates of competitions that override those
    in `state`."""
    if competition_id is not None and competition_id in dates:
        return dates[competition_id] or recorded_at
    return declared_date(state, competition_id) or recorded_at


def now_of(ranking: RankingState, now: datetime) -> datetime:
    """The time up to which due points have expired in the ranking: not after its closing, because nothing expires in a
    closed ranking."""
    return now if ranking.closed_at is None else min(now, ranking.closed_at)


def over_by(ranking: RankingState, took_place: datetime, now: datetime) -> set[UnityId]:
    """The unities of the ranking in which points that took place at `took_place` have expired by `now`."""
    expiries = {unity_id: ranking.unities[unity_id].expiry for unity_id in ranking.special}
    return {one for one, expiry in expiries.items() if expiry is not None and expiry.is_over(took_place, now)}


def of_lines(points: events.PointsAdded, wanted: Callable[[Delta], bool]) -> events.PointsAdded:
    """The points, with the wanted lines only."""
    return msgspec.structs.replace(
        points,
        deltas=tuple([delta for delta in points.deltas if wanted(delta)]),
        results=tuple([delta for delta in points.results if wanted(delta)]),
    )


def counting_of(state: State, points: events.PointsAdded) -> events.PointsAdded:
    """The points, with only the lines that a voiding or striking does not prevent from counting."""
    if points.competition_id is None:
        return points
    if is_voided(state, points.competition_id):
        return of_lines(points, lambda _: False)
    struck = state.struck.get(points.competition_id, ())
    return of_lines(points, lambda line: line.competitor_id not in struck) if struck else points


def cause_of_given(
    recorded: events.Recorded,
    undone: Container[Sequence],
    struck: Mapping[CompetitionId, Container[CompetitorId]],
    voided: Container[CompetitionId] = (),
) -> CompetitionId | None:
    """The competition for which the event gave points that count, or that did until they expired. None: it gave none,
    because it is undone, the competition is `voided`, or all its competitors are struck."""
    event = recorded.event
    if not isinstance(event, events.PointsAdded) or event.competition_id is None:
        return None
    if recorded.sequence in undone or event.competition_id in voided:
        return None
    gone = struck.get(event.competition_id, ())
    return event.competition_id if any(line.competitor_id not in gone for line in events.changed_by(event)) else None


def unexpired(state: State, recorded_at: datetime, points: events.PointsAdded, now: datetime) -> events.PointsAdded:
    """The points, recorded at `recorded_at`, without the lines that have expired by `now`."""
    ranking = state.rankings[points.ranking_id]
    if not ranking.special:
        return points
    over = over_by(ranking, took_place_at(state, recorded_at, points.competition_id), now_of(ranking, now))
    return of_lines(points, lambda line: line.unity_id not in over)


def total_of_results(
    state: State,
    ranking_id: RankingId,
    results: ResultsState,
    unity_id: UnityId,
    competitor_id: CompetitorId,
    afterwards: Afterwards,
    given_back: Iterable[ResultLine] = (),
) -> int | None:
    """The total of a competitor in a unity that counts results, from the ranking's `results`; None: no result counts.
    `given_back`: results that count afterwards but not now."""
    undone, competition_id = state.rankings[ranking_id].undone, afterwards.competition_id
    expiry = None if afterwards.now is None else state.rankings[ranking_id].unities[unity_id].expiry
    for one in results.of(unity_id, competitor_id, given_back):
        if one.sequence in afterwards.sequences:
            if not afterwards.counts:
                continue
        elif one.sequence in undone:
            continue
        if one.competition_id is not None:
            voided = is_voided(state, one.competition_id)
            struck = competitor_id in state.struck.get(one.competition_id, ())
            if one.competition_id == competition_id:
                if afterwards.only is None:
                    voided = not afterwards.counts
                elif competitor_id in afterwards.only:
                    struck = not afterwards.counts
            if voided or struck:
                continue
        if expiry is not None:
            assert afterwards.now is not None
            took_place = took_place_at(state, one.recorded_at, one.competition_id, afterwards.dates)
            if expiry.is_over(took_place, afterwards.now):
                continue
        return one.result
    return None


TotalOf = tuple[UnityId, CompetitorId]
"""Names a total: its unity and its competitor."""
TotalsOfResults = Mapping[TotalOf, Total]


def totals_after(
    state: State, points: commands.CausedPoints, afterwards: Afterwards, starting: commands.CausedPoints
) -> Steps[TotalsOfResults]:
    """The totals of all competitors with a result in `points`, the events whose lines start or stop counting.
    `starting`: the events whose lines start. Raises LacksResults."""
    rankings: dict[TotalOf, RankingId] = {}
    for one in points.values():
        for d in one.results:
            rankings[d.unity_id, d.competitor_id] = one.ranking_id
        yield
    given_back: dict[TotalOf, list[ResultLine]] = {}
    for sequence, one in starting.items():
        give_back(given_back, sequence, one.results)
        yield
    return (yield from totals_of_named(state, rankings, afterwards, given_back))


def give_back(given_back: dict[TotalOf, list[ResultLine]], sequence: Sequence, results: Iterable[Delta]) -> None:
    """Adds the results of an event to those that count afterwards but not now."""
    for number, result in enumerate(results):
        line = sequence, number, result.amount
        given_back.setdefault((result.unity_id, result.competitor_id), []).append(line)


def totals_of_named(
    state: State,
    rankings: Mapping[TotalOf, RankingId],
    afterwards: Afterwards,
    given_back: Mapping[TotalOf, list[ResultLine]],
) -> Steps[TotalsOfResults]:
    """As `totals_after`, for unities and competitors in the rankings named."""
    results = {one: state.rankings[one].results for one in rankings.values()}
    if missing := [ranking_id for ranking_id, its in results.items() if its is None]:
        raise LacksResults(missing)
    totals = {}
    for (unity_id, competitor_id), ranking_id in rankings.items():
        its, back = results[ranking_id], given_back.get((unity_id, competitor_id), ())
        assert its is not None
        total = total_of_results(state, ranking_id, its, unity_id, competitor_id, afterwards, back)
        totals[unity_id, competitor_id] = Total(competitor_id, unity_id, total)
        yield
    return totals


def totals_of(results: Iterable[Delta], totals: TotalsOfResults) -> tuple[Total, ...]:
    """The totals of the competitors and unities that these results name, each once."""
    return tuple([totals[named] for named in dict.fromkeys((d.unity_id, d.competitor_id) for d in results)])


def signed(sign: Literal[-1, 1], deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    """The deltas, or their opposites if `sign` is -1."""
    return tuple([Delta(d.competitor_id, d.unity_id, sign * d.amount) for d in deltas])


def closed_among(state: State, ranking_ids: Iterable[RankingId]) -> str:
    """The ids of the closed rankings among these, as text."""
    touched = dict.fromkeys(ranking_ids)
    return ", ".join([str(ranking_id) for ranking_id in touched if state.rankings[ranking_id].closed_at is not None])
