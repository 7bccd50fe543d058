"""Random commands for a tournament whose points expire; the model receives those that are accepted."""

from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Sequence as Items
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

import msgspec

from api.desk.case import Receipt
from api.desk.desk import Desk
from engine.database.pool import Database
from engine.domain import commands
from engine.domain.awards import Scoring
from engine.domain.commands import Command
from engine.domain.errors import Refusal
from engine.domain.events import Criterion, Delta, Event, PointsReversed, PointsScored
from engine.domain.expiry import ExpiresOn
from engine.domain.terms import (
    OPERATOR,
    CompetitionId,
    CompetitorId,
    Counts,
    RankingId,
    Sequence,
    Sort,
    TournamentId,
    UnityId,
)
from projections.verification.erasures import erase_in_log
from tests.desks import submit
from tests.told_clock import ToldClock
from tests.tournaments import open_new_tournament
from tests.what_counts import results
from tests.what_counts.model import MONDAY, Accepted, Change, Competition, Line, Model, State, Unity

_T = TypeVar("_T")

COMPETITORS: Final = tuple(map(CompetitorId, (101, 102, 103, 104)))
SEASON, ROLLING = RankingId(201), RankingId(202)
_DAY: Final = timedelta(days=1)
UNITIES: Final = {
    SEASON: {
        301: Unity(),
        302: Unity(lasts=timedelta(days=3), on=_DAY),
        303: Unity(counts="best", lasts=timedelta(days=2), on=_DAY),
        304: Unity(counts="last", lasts=timedelta(hours=20)),
        307: Unity(absent=True),
        308: Unity(absent=True, descending=False, lasts=timedelta(days=4), on=_DAY),
    },
    ROLLING: {
        305: Unity(lasts=timedelta(weeks=2), on=timedelta(weeks=1)),
        306: Unity(counts="best", descending=False),
        309: Unity(absent=True, descending=False),
        310: Unity(counts="last"),
    },
}
RANKINGS: Final = tuple(UNITIES)
_BOUNDARIES: Final = {timedelta(minutes=1): ExpiresOn.MINUTE, _DAY: ExpiresOn.DAY, timedelta(weeks=1): ExpiresOn.WEEK}


_OF_GAMES: Final = [
    Criterion(unity_id=UnityId(1), tiebreak=code, edition="2026-03") for code in ("BH", "SB", "WIN", "WON", "PS", "REP")
]
_OTHERS: Final = [
    Criterion(unity_id=UnityId(1), among="tied"),
    Criterion(unity_id=UnityId(1), best=2),
    Criterion(unity_id=UnityId(1), drop=((2, 1),)),
    Criterion(unity_id=UnityId(1), first=True),
]


def name_of(unity: int) -> str:
    return f"Unity {unity}"


class Tournament:
    """A tournament that several desks serve, and the model of it. `hidden`: the rankings that the public does not see.
    `submitted`, `refused`: numbers of commands. `begun`: the number of those that began it."""

    def __init__(self, desks: Items[Desk], database: Database, clock: ToldClock, seed: int) -> None:
        self.database, self.clock, self.seed, self.random = database, clock, seed, Random(seed)
        self.model = Model(UNITIES)
        self.hidden: set[RankingId] = set()
        self.submitted = self.refused = self.begun = 0
        self.tournament_id = TournamentId(0)
        self._desks = desks
        self._undone_by: dict[int, int] = {}  # by the event that added the points
        self._erased: set[CompetitorId] = set()
        self._declared: dict[RankingId, list[list[dict[str, Any]]]] = {one: [] for one in RANKINGS}

    async def begin(self) -> None:
        await self.clock.set(MONDAY + timedelta(seconds=30))
        self.tournament_id = await open_new_tournament(self.database, actor=OPERATOR)
        for one in COMPETITORS:
            await self._do(commands.RegisterCompetitor(competitor_id=one, name=f"Number {one}"))
        for ranking in RANKINGS:
            await self._create(ranking)
        await self._do(commands.ChangePublication(published=True))
        for ranking in self._some(RANKINGS):
            await self._declare(ranking)
        await self._add_competitions()
        self.begun = len(self.model.accepted)

    async def step(self) -> None:
        """One of all that can happen."""
        (ask,) = self.random.choices([ask for ask, _ in _ASKED], [weight for _, weight in _ASKED])
        await ask(self)

    # ── Means ───────────────────────────────────────────────────────────────────────────────────────────

    async def _do(self, command: Command, change: Change | None = None, named: Items[int] = ()) -> Receipt | None:
        """Tells the model of the command, if it is accepted; None: it was refused."""
        receipt = await self._submit(command)
        if receipt is not None:
            self._accept(receipt.sequence, receipt.last_sequence, change, receipt.events, named)
        return receipt

    def _accept(
        self, first: int, last: int, change: Change | None, events: Iterable[Event] = (), named: Items[int] = ()
    ) -> None:
        scored = {
            (event.ranking_id, event.competition_id or 0): number
            for number, event in enumerate(events, start=first)
            if isinstance(event, PointsScored)
        }
        self.model.accept(Accepted(first, last, self.clock.now, change, scored, named))

    async def _submit(self, command: Command) -> Receipt | None:
        self.submitted += 1
        try:
            return await submit(self.random.choice(self._desks), self.tournament_id, command)
        except Refusal:
            self.refused += 1
            return None

    @property
    def _now(self) -> State:
        return self.model.state(None)

    def _some(self, those: Items[_T], *, at_least: int = 1) -> tuple[_T, ...]:
        return tuple(self.random.sample(those, self.random.randint(at_least, len(those))))

    def _a_competition(self) -> CompetitionId:
        """An existing one, if there are any."""
        return CompetitionId(self.random.choice([*self._now.competitions] or [500]))

    def _a_date(self) -> datetime | None:
        """None, just now, or a time of some weeks before or some days after."""
        later = self.clock.now + timedelta(minutes=self.random.randrange(-30_000, 5_000))
        return self.random.choice([None, None, self.clock.now, *[later] * 4])

    # ── Commands ────────────────────────────────────────────────────────────────────────────────────────

    async def classify(self, ranking: RankingId) -> None:
        """By criteria of which the model does not know, in a unity that gets points for wins. Perhaps closes the
        ranking, and adds results."""
        unity = self.random.choice([one for one, its in UNITIES[ranking].items() if its.counts == "sum"])
        if ranking in self._now.closed:
            await self._close_or_reopen(ranking)
        wins = {"unity": unity, "from": "outcome", "table": {"win": 3, "draw": self.random.randrange(2)}}
        await self._score(ranking, [{"name": "", "order": "high", "awards": [wins]}])
        chain = Criterion(unity_id=UnityId(unity)), *self.random.sample(_OF_GAMES, 2), self.random.choice(_OTHERS)
        criteria = tuple([msgspec.structs.replace(one, unity_id=UnityId(unity)) for one in chain])
        await self._do(commands.DeclareClassification(ranking_id=ranking, criteria=criteria))
        if self.random.random() < 0.5:
            await self._close_or_reopen(ranking)
        for _ in range(3):
            await self._add_competitions()

    async def rename(self, name: str) -> None:
        await self._do(commands.RenameTournament(name=name))

    async def _create(self, ranking: RankingId) -> None:
        """Creates a ranking with its unities, and has it classified by the best results in one of them, then by who
        reached the total there first."""
        listed, (main, *others) = self._some(COMPETITORS, at_least=2), UNITIES[ranking]
        options = {f"main_unity_{name}": value for name, value in _options(UNITIES[ranking][main]).items()}
        created = commands.CreateRanking(
            ranking_id=ranking,
            name=f"Ranking {ranking}",
            participants=listed,
            main_unity_id=UnityId(main),
            main_unity_name=name_of(main),
            **options,
        )
        await self._do(created, _enrolled(ranking, listed))
        for one in others:
            options = _options(UNITIES[ranking][one])
            unity = commands.AddUnity(ranking_id=ranking, unity_id=UnityId(one), name=name_of(one), **options)
            await self._do(unity)
        best = self.random.choice([one for one, unity in UNITIES[ranking].items() if unity.counts == "sum"])
        number, drops = self.random.choice([(1, ()), (3, ()), (None, ((2, 1), (4, 2))), (2, ((3, 2),))])
        counted = Criterion(unity_id=UnityId(best), best=number, drop=drops)
        criteria = counted, Criterion(unity_id=UnityId(best), first=True)
        declared = commands.DeclareClassification(ranking_id=ranking, criteria=criteria)
        await self._do(declared, lambda state: state.best.update({ranking: (best, number, drops)}))

    async def _pass_time(self) -> None:
        """Some, or until a boundary at which something may expire, or until just before it."""
        if self.random.random() < 0.4:
            unity = self.random.choice([one for its in UNITIES.values() for one in its.values() if one.lasts])
            boundary = self.clock.now - (self.clock.now - MONDAY) % unity.on + unity.on
            await self.clock.set(boundary - self.random.choice([timedelta(), timedelta(seconds=1)]))
        else:
            await self.clock.pass_by(minutes=self.random.choice([0, 0.25, 1, 17, 90, 600, 1_440, 5_000, 20_000]))

    async def _add_competitions(self) -> None:
        """One, or two at once."""
        items, added = list[commands.AddCompetition](), dict[int, Competition]()
        for number in range(500 + len(self._now.competitions), 500 + len(self._now.competitions) + self._one_or_two()):
            date, said = self._a_date(), self._a_result(self._who())
            added[number] = Competition(created_at=self.clock.now, date=date, **said)
            items.append(commands.AddCompetition(competition_id=CompetitionId(number), started_at=date, **_sent(said)))
        command = items[0] if len(items) == 1 else commands.AddCompetitions(items=tuple(items))
        await self._do(command, lambda state: state.competitions.update(added))

    def _who(self) -> tuple[CompetitorId, ...]:
        pair = tuple(self.random.sample(COMPETITORS, 2))
        return self.random.choice([(), *[pair] * 4, *[self._some(COMPETITORS)] * 4])

    def _one_or_two(self) -> int:
        return self.random.choice([1, 1, 1, 2])

    def _a_result(self, who: tuple[CompetitorId, ...]) -> dict[str, Any]:
        """The fields of a competition on which its points depend, with a result that many scorings can read."""
        random = self.random
        winner = random.choice([None] * 3 + [random.choice([*who, None])])
        result: str | dict[int, str] | None = None
        if len(who) > 2 and random.random() < 0.7:
            result = {one: self._a_performance() for one in self._some(who)}
        elif len(who) == 2:
            score = f"{random.randrange(4)}:{random.randrange(4)}"
            performances = f"{self._a_performance()}|{self._a_performance()}"
            result = random.choice(
                [
                    None,
                    *[score] * 6,
                    f"{score} pen",
                    f"{score} wo",
                    "wo",
                    "+:-",
                    "-:-",
                    "rained off",
                    *[performances] * 3,
                ]
            )
        elif who:
            result = random.choice([None, "bye", "bye", self._a_performance(), "rained off"])
        scale = random.choice(["", "", "", "cup"])
        return {"participants": who, "result": result, "winner": winner, "group": self._a_group(), "scale": scale}

    def _a_performance(self) -> str:
        return self.random.choice([*"1234512345123451234512345", "DNF", "dns", "DNF", "fell"])

    def _a_group(self) -> int:
        return self.random.choice([1, 1, 1, 2])

    async def _correct(self) -> None:
        """Corrects what a competition's points depend on, in all or some of it."""
        one = self._a_competition()
        known = self._now.competitions.get(one)
        if known is None:
            return
        if self.random.random() < 0.3:
            said = self._a_result(self._who())
        else:
            said = self._a_result(known.participants)
            said = {name: said[name] for name in self._some([*said]) if name != "participants"}

        await self._do(commands.ChangeCompetition(competition_id=one, **_sent(said)), partial(_corrected, one, said))

    async def _record_round(self) -> None:
        """Corrects some competitions and adds others, in one request."""
        known, new = self._now.competitions, 500 + len(self._now.competitions)
        items = list[tuple[commands.RecordResult, Change]]()
        for one in self.random.sample([*known], min(len(known), self.random.choice([0, 1, 2]))):
            said = self._a_result(known[one].participants)
            said = {name: said[name] for name in self._some([*said]) if name != "participants"}
            item = commands.RecordResult(of=one, competition_id=CompetitionId(new), **_sent(said))
            items.append((item, partial(_corrected, CompetitionId(one), said)))
        for number in range(new, new + self._one_or_two()):
            date, said = self._a_date(), self._a_result(self._who())
            item = commands.RecordResult(competition_id=CompetitionId(number), started_at=date, **_sent(said))
            items.append((item, partial(_added, {number: Competition(created_at=self.clock.now, date=date, **said)})))
        self.random.shuffle(items)

        def change(state: State) -> None:
            for _, each in items:
                each(state)

        sent = tuple(item for item, _ in items)
        await self._do(commands.RecordResults(items=sent), change, [one.of or one.competition_id for one in sent])

    async def _declare_scorings(self) -> None:
        await self._declare(self.random.choice(RANKINGS))

    async def _declare(self, ranking: RankingId) -> None:
        """Declares scorings, or none; now and then those that were declared before."""
        names = self.random.choice([*[("",), ("", "cup"), ("cup", "")] * 3, ()])
        scorings = [self._a_scoring(ranking, name) for name in names]
        if self.random.random() < 0.3:
            scorings = self.random.choice([*self._declared[ranking], scorings])
        await self._score(ranking, scorings)

    async def _score(self, ranking: RankingId, scorings: list[dict[str, Any]]) -> None:
        declared = msgspec.json.decode(msgspec.json.encode(scorings), type=tuple[Scoring, ...])
        command = commands.DeclareScoring(ranking_id=ranking, scorings=declared)
        if await self._do(command, lambda state: state.scorings.update({ranking: scorings})):
            self._declared[ranking].append(scorings)

    def _a_scoring(self, ranking: RankingId, name: str) -> dict[str, Any]:
        random = self.random
        kinds, order = random.choice([[True], [False], [True, False]]), random.choice(["low", "high", "sent"])
        unities = [*self._some([*UNITIES[ranking]])]
        unities += [one for one, unity in UNITIES[ranking].items() if unity.counts == "sum" and random.random() < 0.3]
        awards = [self._an_award(one, order, of_two=random.choice(kinds)) for one in unities]
        scoring: dict[str, Any] = {"name": name, "order": order, "awards": awards}
        if random.random() < 0.15:
            scoring["groups"] = [self._a_group()]
        return scoring

    def _an_award(self, unity: int, order: str, *, of_two: bool) -> dict[str, Any]:
        random, some = self.random, self._amount
        award: dict[str, Any] = {"unity": unity}
        if random.random() < 0.3:
            award["factor"] = random.choice([-1, 2, 3])
        if of_two:
            award["from"] = random.choice(["outcome", "outcome", "for", "against"])
            if random.random() < 0.2:
                award["outcomes"] = random.sample(["win", "draw", "loss", "bye"], 2)
        else:
            award["from"] = random.choice(["place", "place", "performance", "place" if order == "sent" else "outcome"])
            if random.random() < 0.5:
                award["statuses"] = {"dnf": some(), "absent": some()}
            if award["from"] == "place":
                award |= random.choice([{}, {"ties": "mean"}]) | random.choice([{}, {"among": "enrolled"}])
                places = [{"table": [some() for _ in range(3)]}, {"table": {"1": some(), "3": some()}}]
                award |= random.choice([{}, *places, {"statuses": {"dns": "entries+1", "absent": "entries+1"}}])
        if award["from"] == "outcome" and random.random() < 0.8:
            award["table"] = {"win": some(), "draw": some(), "loss": some()}
            award["table"] |= random.choice([{}, {"bye": some()}, {"win pen": some()}])
        return award

    def _amount(self) -> int:
        return self.random.randint(-3, 9)

    async def _add_points(self) -> None:
        """In one ranking, or in several at once; also for competitors who take no part in the competition."""
        cause = None if self.random.random() < 0.3 else self._a_competition()
        rankings = self.random.choice([[SEASON], [ROLLING], [SEASON, ROLLING], [ROLLING, SEASON]])
        given = [commands.RankingDeltas(ranking, self._deltas(ranking)) for ranking in rankings]
        command: Command = commands.AddPointsToRankings(rankings=tuple(given), competition_id=cause)
        if len(given) == 1:
            command = commands.AddPoints(ranking_id=rankings[0], deltas=given[0].deltas, competition_id=cause)
        recorded_at, receipt = self.clock.now, await self._submit(command)
        if receipt is None:
            return
        added = [
            Line(
                request=receipt.sequence,
                sequence=sequence,
                recorded_at=recorded_at,
                ranking=one.ranking_id,
                competition=cause,
                competitor=delta.competitor_id,
                unity=delta.unity_id,
                amount=delta.amount,
            )
            for sequence, one in enumerate(given, start=receipt.sequence)
            for delta in one.deltas
        ]
        self._accept(receipt.sequence, receipt.last_sequence, lambda state: state.lines.extend(added))

    def _deltas(self, ranking: RankingId) -> tuple[Delta, ...]:
        listed, unities = self._now.lists[ranking] or COMPETITORS, [*UNITIES[ranking]]
        return tuple(
            Delta(
                CompetitorId(self.random.choice(listed)),
                UnityId(self.random.choice(unities)),
                self._amount(),
            )
            for _ in range(self.random.randint(1, 4))
        )

    async def _undo(self) -> None:
        """Undoes all points of a request, or redoes them, by the event of any of its rankings."""
        if not self._now.lines:
            return
        line = self.random.choice(self._now.lines)
        is_undone = line.request in self._now.undone
        sequence = self._undone_by[line.sequence] if is_undone else line.sequence
        command = commands.ReversePoints(ranking_id=RankingId(line.ranking), sequence=Sequence(sequence))
        receipt = await self._do(command, lambda state: state.undone.symmetric_difference_update({line.request}))
        if receipt is not None:
            for number, event in enumerate(receipt.events, start=receipt.sequence):
                assert isinstance(event, PointsReversed)
                self._undone_by[event.reverses] = number

    async def _void(self) -> None:
        one = self._a_competition()
        kind = commands.UnvoidCompetition if one in self._now.voided else commands.VoidCompetition
        await self._do(kind(competition_id=one), lambda state: state.voided.symmetric_difference_update({one}))

    async def _strike(self) -> None:
        one, who = self._a_competition(), self._some(COMPETITORS)
        struck = tuple(competitor for competitor in who if (one, competitor) in self._now.struck)
        kind = commands.UnstrikeCompetitors if struck else commands.StrikeCompetitors
        named = {(one, competitor) for competitor in struck or who}
        await self._do(
            kind(competition_id=one, competitors=struck or who),
            lambda state: state.struck.symmetric_difference_update(named),
        )

    async def _redate(self) -> None:
        """Also to the moment at which the competition was created."""
        one, date = self._a_competition(), self._a_date()
        if (known := self._now.competitions.get(one)) is not None and self.random.random() < 0.2:
            date = known.created_at

        def change(state: State) -> None:
            state.competitions[one] = msgspec.structs.replace(state.competitions[one], date=date)

        await self._do(commands.ChangeCompetition(competition_id=one, started_at=date), change)

    async def _close(self) -> None:
        await self._close_or_reopen(self.random.choice(RANKINGS))

    async def _close_or_reopen(self, ranking: RankingId) -> None:
        at = self.clock.now
        if ranking in self._now.closed:
            await self._do(commands.ReopenRanking(ranking_id=ranking), lambda state: state.closed.pop(ranking))
        else:
            await self._do(commands.CloseRanking(ranking_id=ranking), lambda state: state.closed.update({ranking: at}))

    async def _enrol(self) -> None:
        ranking, who = self.random.choice(RANKINGS), self._some(COMPETITORS)[:2]
        listed = self._now.lists[ranking]
        if set(who) <= set(listed) and self.random.random() < 0.7:
            command = commands.ChangeParticipants(ranking_id=ranking, removed=who)
            after = [one for one in listed if one not in who]
        else:
            command = commands.ChangeParticipants(ranking_id=ranking, added=who)
            after = [*listed, *[one for one in who if one not in listed]]
        await self._do(command, _enrolled(ranking, after))

    async def _publish(self) -> None:
        """Freezes at any event, reveals, hides or shows."""
        head = self.model.accepted[-1].last
        near = Sequence(self.random.randint(head - 4, head))
        ranking = self.random.choice(RANKINGS)
        hidden = commands.ChangeVisibility(ranking_id=ranking, hidden=ranking not in self.hidden)
        changes: list[Command] = [
            commands.ChangePublication(freeze="now"),
            commands.ChangePublication(freeze=near),
            commands.ChangePublication(reveal=near),
            commands.ChangePublication(reveal="next"),
            commands.ChangePublication(reveal="all"),
            hidden,
        ]
        command = self.random.choice(changes)
        if await self._do(command) and command is hidden:
            self.hidden ^= {ranking}

    async def _erase(self) -> None:
        """By an operator, whose event nothing expires before."""
        if not self._erased:
            one = self.random.choice(COMPETITORS)
            sequence = await erase_in_log(self.database, self.tournament_id, one)
            self._erased.add(one)
            self._accept(sequence, sequence, None)


def _enrolled(ranking: RankingId, listed: Items[int]) -> Change:
    def change(state: State) -> None:
        state.lists[ranking] = [*listed]
        state.ever.setdefault(ranking, set()).update(listed)

    return change


_NAMES: Final = {"winner": "winner_id", "group": "group_id"}


def _corrected(one: CompetitionId, said: dict[str, Any], state: State) -> None:
    """If the correction names no winner, the previous one stays unless the new result alone decides who won, or that
    nobody did."""
    before = state.competitions[one]
    after = state.competitions[one] = msgspec.structs.replace(before, **said)
    if "winner" not in said and after.result != before.result and any(state.scorings.values()):
        follows = before.winner in (None, results.of_score(before))
        if follows or after.result is None or results.tells_the_winner(after):
            state.competitions[one] = msgspec.structs.replace(after, winner=results.of_score(after))


def _added(those: dict[int, Competition], state: State) -> None:
    state.competitions.update(those)


def _sent(said: dict[str, Any]) -> dict[str, Any]:
    """Fields of a competition, as commands call them."""
    return {_NAMES.get(name, name): value for name, value in said.items()}


def _options(unity: Unity) -> dict[str, Any]:
    options: dict[str, Any] = {"counts": Counts(unity.counts), "sort": Sort.DESC if unity.descending else Sort.ASC}
    options["absent"] = "none" if unity.absent else None
    if unity.lasts is not None:
        options["lasts"] = f"PT{unity.lasts // timedelta(minutes=1)}M"
        options["expires_on"] = _BOUNDARIES[unity.on]
    return options


_ASKED: Final[list[tuple[Callable[[Tournament], Awaitable[None]], int]]] = [
    (Tournament._add_points, 9),
    (Tournament._add_competitions, 6),
    (Tournament._correct, 6),
    (Tournament._record_round, 4),
    (Tournament._declare_scorings, 2),
    (Tournament._pass_time, 6),
    (Tournament._undo, 3),
    (Tournament._void, 3),
    (Tournament._strike, 3),
    (Tournament._redate, 3),
    (Tournament._enrol, 2),
    (Tournament._close, 1),
    (Tournament._publish, 3),
    (Tournament._erase, 1),
]
"""What is asked for, and how often."""
