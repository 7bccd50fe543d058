"""Case 76: points that expire while those who must see to it die. The clock of the log is in the case's hands.

The checker takes nothing from the product. By the documentation, points count until the first boundary of a minute at
which they are as old as the unity lasts; unless their competition is voided.
"""

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct

from engine.process.failpoints import VARIABLE, Point
from tests.faults.clients import Answer, Caller, NotSent
from tests.faults.history import Outcome
from tests.faults.replaced import look_whole
from tests.faults.stage import Stage
from tests.faults.table import Trial, case
from tests.told_clock import ToldClock, told_clock

LASTS: Final = timedelta(minutes=90)
BOUNDARY: Final = timedelta(minutes=1)
ANSWER_SECONDS_MAX: Final = 40.0
_HERE: Final = Path(__file__).parent
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
    told = {"PYTHONPATH": f"{_HERE / 'startup'}:{_HERE.parents[1]}", "TOLD_CLOCK_OF_TESTS": "1"}
    variables = [told, told | {VARIABLE: f"{Point.APPEND_SENT}:6"}]
    async with trial.stage(tournaments=1, variables=variables) as stage:
        play = await _Play.begun(trial, stage)
        for n in range(rounds):
            await play.round(n)
        await play.rest_expired()
        await play.clock_given_back()
        await stage.caught_up()
        added, expired, voids = await play.look_through_log()
        trial.show(expired > 0, "nothing has expired")
        await look_whole(trial, stage.cluster)
        trial.outcomes[Outcome.OK] += play.asked
        deaths = sum(service.deaths for service in stage.services)
    trial.show(deaths > 0, "no service died")
    trial.tell(f"{rounds} rounds, {deaths} deaths of services; {added} lines added, {voids} voids, {expired} expiries")


class _Play:
    """One tournament with a ranking whose points expire. `asked`: how many changes were acknowledged."""

    def __init__(self, trial: Trial, stage: Stage, clock: ToldClock, ranking: dict[str, Any]) -> None:
        self.asked = 0
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

    async def round(self, n: int) -> None:
        """Changes through both services at once, while time passes and somebody dies; then both are read."""
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
            await self._kill(n)
        await self._compare(f"round {n}")

    async def rest_expired(self) -> None:
        """Time passes until nothing is left, however few rounds there were."""
        await self._set(self._now + timedelta(days=1))
        await self._compare("the end")

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

    async def _set(self, now: datetime) -> None:
        self._now = now
        await self._stage.cluster.execute("UPDATE told SET now = $1", self._now)

    async def _kill(self, n: int) -> None:
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
        # What is voided meanwhile refuses points: that is no fault.
        self._trial.look("I10", answer.status in (200, 409, 422), f"{method} {path} was answered {answer.status}")
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

    async def clock_given_back(self) -> None:
        async with self._stage.cluster.owner() as owner:
            self._definition._owner = owner
            await self._definition.give_back()

    async def look_through_log(self) -> tuple[int, int, int]:
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
