"""Takes back what an import of competitions added.

The competitions that it added are voided, unless they hold points of others: then only a result that gives points is
cleared. Its points elsewhere are undone, and its results of other competitions cleared. Each is a separate request,
judged by what counts at that moment. So an interrupted undoing continues when it runs again, and a completed one finds
nothing to do. What an organiser has already voided, undone or corrected stays as it is; if that is all, one request
still records in the log that the import was undone.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from api.desk.desk import Desk
from api.desk.fingerprints import fingerprint
from api.imports.importer import IMPORT_REQUESTS_MAX, BrokenOff, Interrupted, chunks
from engine.domain.commands import ChangeCompetition, NamedEvent, ReversePoints, VoidCompetition
from engine.domain.counting import Caused, Known, LacksResults, TotalOf, totals_of_named
from engine.domain.errors import Forbidden, NotFound, Refusal, TallybookError
from engine.domain.events import Event, Points, Recorded, SaidResult, origin
from engine.domain.judging import decide
from engine.domain.lines import NOT_RECORDED, LineName, rule_of
from engine.domain.rescoring import GivenLines, given_amounts, may_rescore, rescored
from engine.domain.reversals import holds_others
from engine.domain.steps import Steps, finished
from engine.domain.terms import ActorId, CompetitionId, RankingId, Sequence
from engine.log import import_runs, reading
from engine.process.time_slices import in_time_slices
from projections.live.given_results import read_results
from projections.live.tournament import LiveTournament
from projections.live.tries import Tries

_TakingBack = VoidCompetition | ReversePoints | ChangeCompetition
DIVIDED_ATTEMPTS_MAX: Final = 3
"""Attempts to plan an undoing with pauses for other work. If the tournament changes in each of them, the next one makes
none."""


class Undoing(Struct, frozen=True, kw_only=True):
    """The effects of undoing the import `name`: its `commands`, judged as `events`. `voided`: the competitions that it
    voids. `kept`: those that the import added, and that hold points of others. `points`: the number of the import's
    events with points that it takes back; `results`: of those that it clears. If nothing counts, the only command is a
    change that changes nothing, but records that the import was undone; without commands, that is recorded."""

    name: str
    commands: tuple[_TakingBack, ...]
    events: tuple[Event, ...]
    voided: tuple[CompetitionId, ...]
    kept: tuple[CompetitionId, ...]
    points: int
    results: int


class _Added(Struct, frozen=True):
    """What an import added: competitions, `results` of these and others, and the points that it `gave`. `actors`: its
    senders."""

    competitions: frozenset[CompetitionId]
    results: dict[CompetitionId, SaidResult]
    gave: Caused
    actors: frozenset[ActorId]

    @property
    def all_competitions(self) -> Collection[CompetitionId]:
        return self.competitions.union(self.results)


async def plan_undoing(desk: Desk, live: LiveTournament, name: str, *, only_of: ActorId | None = None) -> Undoing:
    """The effects of undoing the import now. `only_of`: refuse the import unless this actor sent all of it; None:
    accept any sender.

    Raises NotFound and Forbidden, and Conflict if a ranking that it touches is closed.
    """
    added = await _added(desk, live, name)
    if only_of is not None and added.actors != {only_of}:
        raise Forbidden(f"Import {name} came from another sender; undoing it needs a token of scope admin.")
    attempts, tries = 0, Tries()
    with closing(_Planning(desk, live, name, added)) as planning:
        while True:
            try:
                if (planned := await planning.attempt(divided=attempts < DIVIDED_ATTEMPTS_MAX)) is not None:
                    break
                attempts += 1
            except LacksResults as lack:
                await read_results(desk.live_pool, live, lack.ranking_ids)
                tries.again()
    return planned if planned.commands else replace(planned, commands=await _record(desk, live, name, added))


class _Planning:
    """`attempt` plans against the live, which may change meanwhile."""

    def __init__(self, desk: Desk, live: LiveTournament, name: str, added: _Added) -> None:
        self._desk, self._live, self._name, self._added = desk, live, name, added
        self._since: list[Recorded] = []  # points of the import's competitions, folded since an attempt began
        self._changed = False
        live.followers.append(self._follow)

    def close(self) -> None:
        self._live.followers.remove(self._follow)

    def _follow(self, recorded: Recorded) -> None:
        """Notes whether the event may lead to another plan. Points without results for something else do not."""
        event = recorded.event
        self._changed |= event.structural
        if isinstance(event, Points):
            self._changed |= bool(event.results)
            if event.competition_id in self._added.all_competitions:
                self._since.append(recorded)
                self._changed = True
        elif (said := event.said_result) is not None:
            self._changed |= said.competition_id in self._added.results

    async def attempt(self, *, divided: bool) -> Undoing | None:
        """The plan. None: something has changed, so it may be wrong. Unless `divided`, others wait meanwhile. Raises
        LacksResults, and Conflict if a ranking is closed."""
        await self._desk.live_pool.make_current(self._live)
        self._since.clear()
        caused, given = await _caused(self._desk, self._live, self._added)
        for recorded in self._since:
            caused.take(recorded)
            given.take(recorded)
        self._changed = False
        steps = self._planned(caused, given)
        if not divided:
            return finished(steps)
        try:
            planned = await in_time_slices(steps)
        except Refusal:
            if not self._changed:
                raise
        return None if self._changed else planned

    def _planned(self, caused: Caused, given: GivenLines) -> Steps[Undoing]:
        added, board = self._added, self._live.board
        own = frozenset(added.gave.points)
        voids, kept = [], []
        for competition_id in sorted(added.competitions):
            if board.competitions[competition_id].voided_at is None:
                void = VoidCompetition(competition_id=competition_id, caused=caused.of(competition_id), only=own)
                if holds_others(board, void):
                    kept.append(competition_id)
                else:
                    voids.append(void)
            yield
        voided = {void.competition_id for void in voids}
        reversals, of_voided = [], 0
        for sequence, points in sorted(added.gave.points.items()):
            if sequence not in board.rankings[points.ranking_id].undone and points.competition_id is not None:
                if points.competition_id in voided:
                    of_voided += 1
                elif board.competitions[points.competition_id].voided_at is None:
                    named = NamedEvent(points, ActorId(0), {sequence: points})
                    reversals.append(ReversePoints(ranking_id=points.ranking_id, sequence=sequence, named=named))
            yield
        keyed = [void.competition_id for void in voids if board.competitions[void.competition_id].key is not None]
        freed = [ChangeCompetition(competition_id=one, key=None) for one in keyed]  # the next import needs the keys
        results = []
        for competition_id, said in sorted(added.results.items()):
            competition = board.competitions[competition_id]
            stays = competition_id in added.competitions and not any(
                competition_id in kept and given_amounts(given.of(one, competition_id)) for one in board.rankings
            )
            if said.stands(competition.result, competition.winner_id) and competition.voided_at is None and not stays:
                results.append(ChangeCompetition(competition_id=competition_id, result=None, winner_id=None))
            yield
        taking_back: tuple[_TakingBack, ...] = (*results, *reversals, *freed, *voids)
        recorded_at = added.gave.recorded_at | caused.recorded_at
        events = yield from _foreseen(self._live, taking_back, recorded_at, given)
        return Undoing(
            name=self._name,
            commands=taking_back,
            events=events,
            voided=tuple([void.competition_id for void in voids]),
            kept=tuple(kept),
            points=len(reversals) + of_voided,
            results=len(results),
        )


async def _caused(desk: Desk, live: LiveTournament, added: _Added) -> tuple[Caused, GivenLines]:
    """The points of the competitions of an import up to the live's head, and what scorings have given."""
    caused, given, upto, ids = Caused(), GivenLines(), live.head.sequence, sorted(added.all_competitions)
    async for events in reading.all_points_of_competitions(desk.database.connection, live.tournament_id, ids, upto):
        for recorded in events:
            caused.take(recorded)
            given.take(recorded)
    return caused, given


def _foreseen(
    live: LiveTournament,
    commands: Iterable[_TakingBack],
    recorded_at: Mapping[Sequence, datetime],
    given: GivenLines,
) -> Steps[tuple[Event, ...]]:
    """The events that the commands lead to, one after the other. Raises LacksResults, and as `decide`."""
    board = live.board
    sequences: set[Sequence] = set()
    named: dict[TotalOf, RankingId] = {}
    rankings: set[RankingId] = set()
    for command in commands:
        match command:
            case VoidCompetition():
                points = command.caused
            case ReversePoints():
                points = None if command.named is None else command.named.points
            case ChangeCompetition():
                points = None
        for sequence, its in (points or {}).items():
            sequences.add(sequence)
            named |= {(line.unity_id, line.competitor_id): its.ranking_id for line in its.results}
            rankings.add(its.ranking_id)
        yield
    known = Known(results=live.results, now=live.expired_by, recorded_at=recorded_at)
    decided: list[Event] = []
    replaced: dict[RankingId, dict[Sequence, dict[LineName, Sequence]]] = {one: {} for one in rankings}
    for command in commands:
        decided += decide(board, command, known)
        if may_rescore(board, command):
            decided += yield from rescored(board, decided[-1:], given, live.results, live.expired_by)
        yield
    for event in decided:
        if isinstance(event, Points) and event.replaced:
            lines = replaced.setdefault(event.ranking_id, {}).setdefault(origin(NOT_RECORDED, event), {})
            lines.update(dict.fromkeys(event.replaced, NOT_RECORDED))
            named |= {(one.unity_id, one.competitor_id): event.ranking_id for one in event.totals}
    # Each command is judged as if it were the only one. The totals of results are those after all of them.
    after = {
        one: rule_of(board, one).undoing(sequences, undone=True).replacing(lines) for one, lines in replaced.items()
    }
    totals = yield from totals_of_named(live.results, named, after, None, {})
    for number, event in enumerate(decided):
        if isinstance(event, Points) and event.totals:
            its_totals = tuple([totals[one.unity_id, one.competitor_id] for one in event.totals])
            decided[number] = replace(event, totals=its_totals)
        yield
    return tuple(decided)


async def undo_import(
    desk: Desk,
    live: LiveTournament,
    undoing: Undoing,
    *,
    actor: ActorId,
    stop: asyncio.Event,
    progress: Callable[[int, int], None],
) -> None:
    """Executes the plan. Raises Interrupted once `stop` is set and the requests under way are settled, and BrokenOff
    after any failure."""
    commands, head = undoing.commands, live.head.sequence
    for start in range(0, len(commands), IMPORT_REQUESTS_MAX):
        if stop.is_set():
            raise Interrupted(_so_far(start, len(commands)))
        chunk = commands[start : start + IMPORT_REQUESTS_MAX]
        outcomes = await asyncio.gather(
            *(_submit(desk, live, command, undoing.name, head, actor) for command in chunk), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, TallybookError):
                raise BrokenOff(_so_far(start, len(commands)), outcome) from outcome
            if outcome is not None:
                raise outcome
        progress(start + len(chunk), len(commands))


async def _submit(
    desk: Desk,
    live: LiveTournament,
    command: _TakingBack,
    name: str,
    head: Sequence,
    actor: ActorId,
) -> None:
    """Submits a command. Its key differs for each undoing, because an organiser may have made it count again in
    between."""
    what = command.sequence if isinstance(command, ReversePoints) else command.competition_id
    form = {"import": name, "command": type(command).__name__, "of": str(what), "planned at": str(head)}
    said = fingerprint("UNDO", "import", form)
    match command:  # the desk looks up what they need
        case VoidCompetition():
            command = replace(command, caused=None)
        case ReversePoints():
            command = replace(command, named=None)
    await desk.submit(
        live,
        command,
        actor=actor,
        idempotency_key=f"undo-{said.hex()}",
        fingerprint=import_runs.undoing_fingerprint_of(said, name),
    )


def _so_far(done: int, total: int) -> str:
    return f"{done} of {total} parts of the import are taken back. Undo it again to take back the rest."


async def _added(desk: Desk, live: LiveTournament, name: str) -> _Added:
    """Raises NotFound."""
    competitions: set[CompetitionId] = set()
    results: dict[CompetitionId, SaidResult] = {}
    gave = Caused()
    actors: set[ActorId] = set()
    async with desk.database.connection() as connection:
        keys = await import_runs.keys_of(connection, live.tournament_id, name)
        for chunk in chunks(keys, reading.IDEMPOTENCY_KEYS_MAX):
            for used in (await reading.keyed(connection, live.tournament_id, chunk)).values():
                actors.add(used.recorded.actor)
                event = used.recorded.event
                if event.made_competition is not None:
                    competitions.add(event.made_competition)
                if (said := event.said_result) is not None and not said.is_empty:
                    results[said.competition_id] = said
                gave.take(used.recorded)
    if not keys:
        raise NotFound(f"This tournament has no import {name!r}; `tallybook import list` shows them.")
    return _Added(frozenset(competitions), results, gave, frozenset(actors))


async def _record(desk: Desk, live: LiveTournament, name: str, added: _Added) -> tuple[ChangeCompetition, ...]:
    """The command that records that the import was undone, unless that is recorded."""
    async with desk.database.connection() as connection:
        if await import_runs.undone_among(connection, live.tournament_id, [name]):
            return ()
    of_points = [points.competition_id for points in added.gave.points.values() if points.competition_id is not None]
    competitions = sorted({*added.competitions, *added.results, *of_points})
    return tuple([ChangeCompetition(competition_id=one) for one in competitions[:1]])
