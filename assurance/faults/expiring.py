"""Cases 76 and 81: points expire while those who must see to it die, or the database is replaced. The case sets the
clock of the log.

The checker takes nothing from the product. By the documentation, points count until the first boundary of a minute at
which they are as old as the unity lasts; unless their competition is voided.
"""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import pytest
from msgspec import Struct

from assurance.faults.clients import Answer, Caller, NotSent
from assurance.faults.history import Outcome
from assurance.faults.replaced import WAYS, ended_with, look_whole
from assurance.faults.resources import synchronous_standby, taken_over
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, case
from engine.process.failpoints import VARIABLE, Point
from tests.told_clock import IN_PROCESSES, ToldClock, told_clock

LASTS: Final = timedelta(minutes=90)
BOUNDARY: Final = timedelta(minutes=1)
ANSWER_SECONDS_MAX: Final = 40.0
_EVENTS: Final = """
    SELECT e.sequence, e.recorded_at, e.kind, e.body, b.sequence IS NOT NULL AS is_last
    FROM event AS e
    LEFT JOIN (SELECT last_sequence AS sequence FROM block WHERE tournament_id = $1) AS b USING (sequence)
    WHERE e.tournament_id = $1
    ORDER BY e.sequence
"""
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)


class Added(Struct, frozen=True):
    """A line of points, and until when it counts."""

    competitor: int
    amount: int
    competition: int | None
    until: datetime


@case(
    76,
    "Boundaries",
    "points expire each minute; the clock passes boundaries, stands at one, goes back an hour; voids meanwhile; a "
    "service dies at each sixth append; the other, a worker or PostgreSQL is killed",
    "what is due expires once, before anything else is recorded; reads show nothing expired; `verify` clean",
)
async def boundaries(trial: Trial) -> None:
    rounds = trial.times(100, least=6)
    variables = [IN_PROCESSES, IN_PROCESSES | {VARIABLE: f"{Point.APPEND_SENT}:6"}]
    async with trial.stage(tournaments=1, variables=variables) as stage:
        play = await _Play.begun(trial, stage)
        for n in range(rounds):
            await play.round(n, partial(play.kill, n))
        added, expired, voids = await play.ended()
        deaths = sum(service.deaths for service in stage.services)
    trial.show(deaths > 0, "no service died")
    trial.tell(f"{rounds} rounds, {deaths} deaths of services; {added} lines added, {voids} voids, {expired} expiries")


@case(
    81,
    "Boundaries, the database replaced",
    "as case 76, but a synchronous standby takes over while points come due, or the database is put back to before "
    "they expired, and the clock goes on",
    "what the log that is left has due expires once, before anything else is recorded; a read shows nothing that has "
    "expired; `verify` clean",
)
async def boundaries_of_another_log(trial: Trial) -> None:
    count = trial.times(20, least=1)
    async with (
        AsyncExitStack() as stack,
        trial.stage(tournaments=1, variables=[IN_PROCESSES, IN_PROCESSES]) as stage,
        ended_with(stack, stage),
    ):
        play = await _Play.begun(trial, stage)
        play.answers.add(404)
        for n in range(0, 3 * count, 3):
            await play.through_failover(n)
            await play.through_restore(n + 1)
        added, expired, voids = await play.ended()
    trial.show(expired >= count, f"only {expired} expiries are left")
    trial.tell(
        f"{count} failovers, {count} restores; {added} lines left that were added, {voids} voids, {expired} expiries"
    )


class _Play:
    """One tournament with a ranking whose points expire. `asked`: how many changes were acknowledged. `answers`: the
    statuses that are no fault."""

    def __init__(self, trial: Trial, stage: Stage, clock: ToldClock, ranking: dict[str, Any]) -> None:
        self.asked = 0
        self.answers = {200, 409, 422}
        self._trial = trial
        self._random = trial.random
        self._stage = stage
        self._now = clock.now
        self._definition = clock
        arena = stage.arenas[0]
        self._below = f"/tournament/{arena.slug}"
        self._tournament_id, self._competitors = arena.tournament_id, arena.competitors
        self._ranking, self._unity = ranking["id"], ranking["unities"][0]["id"]
        self._competitions: list[int] = []

    @classmethod
    async def begun(cls, trial: Trial, stage: Stage) -> "_Play":
        with pytest.MonkeyPatch.context() as patch:
            async with stage.cluster.owner() as owner:
                clock = await told_clock(owner, patch)
                await clock.set(datetime.now(UTC).replace(second=30, microsecond=0) + timedelta(hours=1))
        arena, caller = stage.arenas[0], stage.caller(0)
        form: dict[str, object] = {
            "name": "Rolling",
            "main_unity_name": "points",
            "participants": ",".join(map(str, arena.competitors)),
            "main_unity_lasts": "PT1H30M",
            "main_unity_expires_on": "minute",
        }
        answer = await _known(caller, "POST", f"/tournament/{arena.slug}/rankings.json", form, "rolling")
        caller.close()
        return cls(trial, stage, clock, json.loads(answer.body)["ranking"])

    async def round(self, n: int, fault: Callable[[], Awaitable[object]]) -> None:
        """Changes through both services at once, while time passes and `fault` happens; then both are read."""
        await self._pass_time()
        if n % 4 == 0:
            answer = await self._ask(0, "POST", "competitions.json", {"group_id": 1}, f"competition-{n}")
            self._competitions.append(json.loads(answer.body)["competition"]["id"])
        async with asyncio.TaskGroup() as tasks:
            for service in range(2):
                for m in range(2):
                    tasks.create_task(self._add(service, f"add-{n}-{service}-{m}"))
            if n % 5 == 4 and self._competitions:
                competition = self._competitions.pop(self._random.randrange(len(self._competitions)))
                tasks.create_task(self._ask(0, "PUT", f"competitions/{competition}/void.json", {}, f"void-{n}"))
            await self._pass_time()
            await fault()
        await self._compare(f"round {n}")

    async def through_failover(self, n: int) -> None:
        """A round in which points come due while a standby takes over that has all that was acknowledged."""
        primary, other = self._stage.cluster, await synchronous_standby(self._trial, self._stage)

        async def take_over() -> None:
            await self._let_all_come_due()
            await taken_over(self._stage, other)

        await self._add(0, f"due-{n}")
        await self.round(n, take_over)
        shutil.rmtree(primary.data_dir / "postgres", ignore_errors=True)

    async def through_restore(self, n: int) -> None:
        """A round in which points expire, after which the database is put back to before it, amid the changes of the
        next."""
        await self._add(0, f"due-{n}")
        async with AsyncExitStack() as stack:
            restore = await self._random.choice(WAYS)(self._stage, stack)

            async def put_back() -> None:
                await restore()
                await self._set(self._now)

            await self.round(n, self._let_all_come_due)
            await self.round(n + 1, put_back)
        rows = await self._rows()
        left = {json.loads(row["body"])["competition_id"] for row in rows if row["kind"] == "CompetitionAdded"}
        self._competitions = [one for one in self._competitions if one in left]

    async def ended(self) -> tuple[int, int, int]:
        """Time passes until nothing is left, however few rounds there were; then the whole log is looked through. What
        `_look_through_log` returns."""
        await self._set(self._now + timedelta(days=1))
        await self._compare("the end")
        async with self._stage.cluster.owner() as owner:
            self._definition._owner = owner
            await self._definition.give_back()
        added, expired, voids = await self._look_through_log()
        self._trial.show(expired > 0, "nothing has expired")
        await self._stage.caught_up()
        await look_whole(self._trial, self._stage.cluster)
        self._trial.outcomes[Outcome.OK] += self.asked
        return added, expired, voids

    async def _compare(self, when: str) -> None:
        shown = await asyncio.gather(*(self._shown(service) for service in range(2)))
        expected = await self._expected()
        for one in shown:
            self._trial.look("I9", one == expected, f"{when}: a read shows {one}, not {expected}, at {self._now}")

    async def _pass_time(self) -> None:
        """To just a boundary, to the last moment before one, or somewhere; at times back by an hour."""
        minutes = self._random.choice((0, 1, 7, 30, 90, -60))
        now = self._now + timedelta(minutes=minutes)
        boundary = now - (now - _FIRST) % BOUNDARY
        after = self._random.choice(
            (timedelta(), BOUNDARY - timedelta.resolution, timedelta(seconds=self._random.random()))
        )
        await self._set(boundary + after)

    async def _let_all_come_due(self) -> None:
        await self._set(self._now + LASTS + BOUNDARY)

    async def _set(self, now: datetime) -> None:
        self._now = now
        await self._stage.cluster.execute("UPDATE told SET now = $1", self._now)

    async def kill(self, n: int) -> None:
        stage = self._stage
        match n % 3:
            case 0:
                stage.services[0].kill()
            case 1:
                await stage.cluster.kill()
                await stage.cluster.start()
            case _:
                stage.workers[n % 2].kill()
                await stage.workers[n % 2].again()

    async def _add(self, service: int, key: str) -> None:
        unities = [{"unity_id": self._unity, "delta": self._random.randint(1, 9)}]
        line = {"competitor_id": self._random.choice(self._competitors), "unities": unities}
        form: dict[str, object] = {"participants_delta": json.dumps([line])}
        if self._competitions and self._random.random() < 0.5:
            form["competition_id"] = self._random.choice(self._competitions)
        await self._ask(service, "PUT", f"rankings/{self._ranking}/add.json", form, key)

    async def _ask(self, service: int, method: str, path: str, form: dict[str, object], key: str) -> Answer:
        caller = self._stage.caller(service)
        try:
            answer = await _known(caller, method, f"{self._below}/{path}", form, key)
        finally:
            caller.close()
        self.asked += answer.status == 200
        # What is voided or lost meanwhile takes no points: that is no fault.
        self._trial.look("I10", answer.status in self.answers, f"{method} {path} was answered {answer.status}")
        return answer

    async def _shown(self, service: int) -> dict[int, int]:
        answer = await self._ask(service, "GET", f"rankings/{self._ranking}/standings.json", {}, "")
        lines = json.loads(answer.body)["ranking"]["unities"][0]["competitors_ranking"]
        return {line["competitor_id"]: line["total"] for line in lines if line["total"]}

    async def _expected(self) -> dict[int, int]:
        """What counts now, by the log's points alone."""
        rows = await self._rows()
        log = _Counted(self._unity)
        for row in rows:
            log.take(row["kind"], json.loads(row["body"]), row["recorded_at"])
        return log.counting(max(self._now, rows[-1]["recorded_at"]))

    async def _rows(self) -> list[Any]:
        return await self._stage.cluster.fetch(_EVENTS, self._tournament_id)

    async def _look_through_log(self) -> tuple[int, int, int]:
        """Whether after each block the points that were taken back are just those that had expired by then. How many
        lines were added, and how many voids and expiries there are."""
        log, totals, expired, voids = _Counted(self._unity), dict[int, int](), 0, 0
        for row in await self._rows():
            body = json.loads(row["body"])
            log.take(row["kind"], body, row["recorded_at"])
            expired += row["kind"] == "PointsExpired"
            voids += row["kind"] == "CompetitionVoided"
            if row["kind"] in ("PointsAdded", "PointsReversed", "PointsExpired"):
                for competitor, unity, amount in body["deltas"]:
                    if unity == self._unity:
                        totals[competitor] = totals.get(competitor, 0) + amount
            if row["is_last"]:
                counting = log.counting(row["recorded_at"])
                right = {one: total for one, total in totals.items() if total} == counting
                self._trial.look("I7", right, f"after event {row['sequence']}: {totals}, what counts is {counting}")
        return len(log.added), expired, voids


class _Counted:
    """What counts, from what was added and voided."""

    def __init__(self, unity: int) -> None:
        self.added: list[Added] = []
        self._unity = unity
        self._voided: set[int] = set()

    def take(self, kind: str, body: dict[str, Any], recorded_at: datetime) -> None:
        if kind == "CompetitionVoided":
            self._voided.add(body["competition_id"])
        elif kind == "PointsAdded":
            old_enough = recorded_at + LASTS
            until = old_enough + (_FIRST - old_enough) % BOUNDARY
            for competitor, unity, amount in body["deltas"]:
                if unity == self._unity:
                    self.added.append(Added(competitor, amount, body.get("competition_id"), until))

    def counting(self, now: datetime) -> dict[int, int]:
        totals: dict[int, int] = {}
        for one in self.added:
            if one.until > now and one.competition not in self._voided:
                totals[one.competitor] = totals.get(one.competitor, 0) + one.amount
        return {competitor: total for competitor, total in totals.items() if total}


async def _known(caller: Caller, method: str, path: str, form: dict[str, object], key: str) -> Answer:
    """The first answer that says what became of it."""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        while True:
            with suppress(NotSent, OSError, EOFError):
                answer = await caller.ask(method, path, form or None, key or None)
                if answer.status not in (500, 503):
                    return answer
            await asyncio.sleep(0.05)
