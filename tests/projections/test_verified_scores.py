"""Verification derives again what scorings give: points that a log has without a reason, or lacks, are found."""

from collections.abc import Callable
from typing import Final

import asyncpg
import pytest
from msgspec import Struct
from msgspec.structs import replace

from engine.database.pool import Database
from engine.domain.awards import Award, Scoring
from engine.domain.events import (
    CompetitionAdded,
    CompetitionChanged,
    CompetitorRegistered,
    Delta,
    Event,
    ParticipantsChanged,
    PointsReversed,
    PointsScored,
    Scored,
    ScoringDeclared,
    Total,
    UnityAdded,
)
from engine.domain.terms import CompetitionId, CompetitorId, Counts, Sequence, UnityId
from engine.log import registry
from projections.verification import log_checks
from tests.calls import Calls
from tests.desks import Arena, open_arena, record
from tests.projections.verified import named, verified

TABLE: Final = {"win": 3, "draw": 1, "loss": 0}


class Match(Struct, frozen=True):
    """Ann's match against Bob, which she won 2:1, and what it gave with the event `first`; later she lost it 1:2."""

    arena: Arena
    competition_id: CompetitionId
    declared: ScoringDeclared
    added: CompetitionAdded
    scored: PointsScored
    changed: CompetitionChanged
    first: Sequence = Sequence(0)

    @property
    def reversed(self) -> PointsReversed:
        return PointsReversed(
            ranking_id=self.arena.ranking_id,
            competition_id=self.competition_id,
            deltas=self._lines(-3, 0),
            reverses=self.first,
            replaced=tuple((one, self.arena.unity_id) for one in self.arena.competitors),
        )

    @property
    def scored_again(self) -> PointsScored:
        return replace(self.scored, deltas=self._lines(0, 3), instead_of=self.first)

    def _lines(self, *amounts: int) -> tuple[Delta, ...]:
        both = zip(self.arena.competitors, amounts, strict=True)
        return tuple(Delta(one, self.arena.unity_id, amount) for one, amount in both)

    @classmethod
    async def of(cls, database: Database) -> "Match":
        arena = await open_arena(database)
        async with database.connection() as connection:
            match = CompetitionId((await registry.next_ids(connection, 1))[0])
        award = Award(unity_id=arena.unity_id, value="outcome", table=TABLE)
        ann, bob = arena.competitors
        lines = Delta(ann, arena.unity_id, 3), Delta(bob, arena.unity_id, 0)
        return cls(
            arena=arena,
            competition_id=match,
            declared=ScoringDeclared(ranking_id=arena.ranking_id, scorings=(Scoring(awards=(award,)),)),
            added=CompetitionAdded(
                competition_id=match, group_id=1, participants=(ann, bob), result="2:1", winner_id=ann
            ),
            scored=PointsScored(ranking_id=arena.ranking_id, competition_id=match, deltas=lines),
            changed=CompetitionChanged(competition_id=match, result="1:2", winner_id=bob, scored=True),
        )


FORGED: Final[dict[str, Callable[[Match], list[Event]]]] = {
    "nothing is given": lambda match: [match.added],
    "a line is missing": lambda match: [match.added, replace(match.scored, deltas=match.scored.deltas[:1])],
    "a line is forged": lambda match: [match.added, replace(match.scored, deltas=match._lines(4, 0))],
    "both lines are exchanged": lambda match: [match.added, replace(match.scored, deltas=match._lines(0, 3))],
    "a line does not count": lambda match: [
        match.added,
        replace(match.scored, deltas=match.scored.deltas[1:], silent=match.scored.deltas[:1]),
    ],
    "it is said to be a correction": lambda match: [match.added, replace(match.scored, instead_of=Sequence(3))],
    "it is given twice": lambda match: [match.added, match.scored, match.scored],
}
FORGED_CORRECTIONS: Final[dict[str, Callable[[Match], list[Event]]]] = {
    "nothing is corrected": lambda match: [match.changed],
    "nothing is taken back": lambda match: [match.changed, match.scored_again],
    "nothing is given again": lambda match: [match.changed, match.reversed],
    "it is given instead of another event": lambda match: [
        match.changed,
        match.reversed,
        replace(match.scored_again, instead_of=Sequence(match.first - 1)),
    ],
    "it is given as if for the first time": lambda match: [
        match.changed,
        match.reversed,
        replace(match.scored_again, instead_of=None, since=None),
    ],
    "another event is taken back": lambda match: [
        match.changed,
        replace(match.reversed, reverses=Sequence(match.first - 1)),
        match.scored_again,
    ],
    "one of the lines is taken back": lambda match: [
        match.changed,
        replace(match.reversed, replaced=match.reversed.replaced[:1]),
        match.scored_again,
    ],
    "other amounts are taken back": lambda match: [
        match.changed,
        replace(match.reversed, deltas=match._lines(-2, 0)),
        match.scored_again,
    ],
    "lines are taken back without a correction": lambda match: [match.reversed],
    "points are given without a correction": lambda match: [match.scored_again],
}


@pytest.mark.parametrize("forged", FORGED)
async def test_forged_points_of_a_result_are_found(database: Database, forged: str) -> None:
    match = await Match.of(database)
    async with database.connection() as connection:
        await record(connection, match.arena.tournament_id, match.declared)
        await record(connection, match.arena.tournament_id, *FORGED[forged](match))
    assert named(await verified(database)), forged


@pytest.mark.parametrize("forged", FORGED_CORRECTIONS)
async def test_a_forged_correction_of_a_result_is_found(database: Database, forged: str) -> None:
    match = await _recorded(database)
    async with database.connection() as connection:
        await record(connection, match.arena.tournament_id, *FORGED_CORRECTIONS[forged](match))
    assert named(await verified(database)), forged


async def test_points_that_a_declared_scoring_does_not_give_are_found(database: Database) -> None:
    match = await Match.of(database)
    async with database.connection() as connection:
        await record(connection, match.arena.tournament_id, match.added)
        await record(connection, match.arena.tournament_id, match.declared)
    assert {place for _, place in named(await verified(database))} == {"event.deltas"}


async def test_the_points_of_a_result_and_of_its_correction_are_those_of_the_scoring(database: Database) -> None:
    match = await _recorded(database)
    assert not named(await verified(database))
    async with database.connection() as connection:
        events = match.changed, match.reversed, match.scored_again
        await record(connection, match.arena.tournament_id, *events)
    assert not named(await verified(database))


@pytest.mark.parametrize(
    ("counts", "totals", "found"),
    [
        (Counts.SUM, (2, 5), set()),
        (Counts.SUM, (5, 5), {"event.totals"}),
        (Counts.SUM, (2, 6), {"event.totals"}),
        (Counts.BEST, (2, 3), set()),
        (Counts.BEST, (3, 3), {"event.totals"}),
        (Counts.BEST, (2, 2), {"event.totals"}),
        (Counts.LAST, (2, 3), set()),
        (Counts.LAST, (3, 3), {"event.totals"}),
        (Counts.LAST, (None, 3), {"event.totals"}),
    ],
)
async def test_each_event_of_a_request_names_the_total_after_it(
    database: Database, counts: Counts, totals: tuple[int | None, ...], found: set[str]
) -> None:
    """Ann won 2:1, then 3:1, before a scoring for goals was declared."""
    match = await Match.of(database)
    arena, goals, ann = match.arena, UnityId(3 * 10**6), match.arena.competitors[0]
    matches = {match.competition_id: 2, CompetitionId(2 * 10**6): 3}
    award = Award(unity_id=goals, value="for", outcomes=("win",))
    scored = [
        PointsScored(
            ranking_id=arena.ranking_id,
            competition_id=one,
            deltas=(),
            silent_results=(Scored(ann, goals, amount),),
            totals=(Total(ann, goals, total),),
        )
        for (one, amount), total in zip(matches.items(), totals, strict=True)
    ]
    absent = "none" if counts is Counts.SUM else None
    async with database.connection() as connection:
        unity = UnityAdded(ranking_id=arena.ranking_id, unity_id=goals, name="goals", counts=counts, absent=absent)
        await record(connection, arena.tournament_id, unity)
        for one, amount in matches.items():
            added = replace(match.added, competition_id=one, result=f"{amount}:1")
            await record(connection, arena.tournament_id, added)
        declared = replace(match.declared, scorings=(Scoring(awards=(award,)),))
        await record(connection, arena.tournament_id, declared, *scored)
    assert {place for _, place in named(await verified(database))} == found


async def _recorded(database: Database) -> Match:
    match = await Match.of(database)
    async with database.connection() as connection:
        await record(connection, match.arena.tournament_id, match.declared)
        appended = await record(connection, match.arena.tournament_id, match.added, match.scored)
        assert appended.last_sequence is not None
        since = await _recorded_at(connection, match, appended.last_sequence)
    return replace(match, first=appended.last_sequence, scored=replace(match.scored, since=since))


async def _recorded_at(connection: asyncpg.Connection, match: Match, sequence: Sequence) -> object:
    query = "SELECT recorded_at FROM event WHERE tournament_id = $1 AND sequence = $2"
    return await connection.fetchval(query, match.arena.tournament_id, sequence)


MATCHES: Final = 20


async def test_a_late_entry_has_only_its_own_results_derived_again(database: Database, calls: Calls) -> None:
    """Of those who come, and of those whose result gives points because they come, forged ones are found."""
    match = await Match.of(database)
    arena, later = match.arena, [CompetitionId(10**6 + n) for n in range(MATCHES)]
    async with database.connection() as connection:
        cem, dan = map(CompetitorId, await registry.next_ids(connection, 2))
        came = [CompetitorRegistered(competitor_id=one, name=f"{one}") for one in (cem, dan)]
        await record(connection, arena.tournament_id, *came, match.declared)
        for one in later:
            named_so = {"competition_id": one}
            await record(
                connection, arena.tournament_id, replace(match.added, **named_so), replace(match.scored, **named_so)
            )
        ann, guest = arena.competitors[0], CompetitionId(2 * 10**6)
        played = replace(match.added, competition_id=guest, participants=(ann, dan))
        gave = replace(match.scored, competition_id=guest, deltas=match.scored.deltas[:1])
        await record(connection, arena.tournament_id, played, gave)
        await record(connection, arena.tournament_id, ParticipantsChanged(ranking_id=arena.ranking_id, added=(cem,)))
    derived = calls(log_checks, "scored_lines")
    assert not named(await verified(database))
    assert len(derived) == MATCHES + 1  # each when it was recorded
    async with database.connection() as connection:
        await record(connection, arena.tournament_id, ParticipantsChanged(ranking_id=arena.ranking_id, added=(dan,)))
    assert {place for _, place in named(await verified(database))} == {"event.deltas"}
