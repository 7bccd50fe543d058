"""What each door of the service shows of a tournament, compared with the model."""

import csv
import io
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

import asyncpg
import msgspec

from engine.domain.terms import RankingId
from projections.tables.worker import Worker
from projections.verification import archives
from projections.verification.deletion import delete_tournament
from tests.api.web.test_board import lines_of
from tests.projections.verified import of_no_account
from tests.service import Client, Service, listed, slug_of
from tests.spectator import Spectator, follow
from tests.what_counts.model import SHOWN, Moment, Standings
from tests.what_counts.playing import COMPETITORS, UNITIES, Tournament, name_of

_TIME: Final = """
    SELECT recorded_at
    FROM event
    WHERE tournament_id = $1 AND sequence <= $2 AND kind <> 'CompetitorErased'
    ORDER BY sequence DESC
    LIMIT 1
"""
NONE: Final = "\N{EN DASH}"
Places = dict[int, tuple[str, int | None]]
Within = dict[int, dict[int | None, int | None]]
"""By the end of a request, and by competition."""
_HEAD: Final = "SELECT max(sequence) FROM event WHERE tournament_id = $1"
_STANDING: Final = "SELECT unity_id, competitor_id, position, total FROM standing WHERE tournament_id = $1"


class Doors:
    """`client` has a token, `public` has none."""

    def __init__(
        self, service: Service, owner: asyncpg.Connection, tournament: Tournament, client: Client, public: Client
    ) -> None:
        self.service, self.owner, self.tournament = service, owner, tournament
        self.client, self.public = client, public
        self._model = tournament.model

    @classmethod
    async def of(cls, service: Service, owner: asyncpg.Connection, tournament: Tournament, token: str) -> "Doors":
        slug = await slug_of(service.database, tournament.tournament_id)
        return cls(service, owner, tournament, service.client(slug, token), service.client(slug, None))

    # ── Moments ─────────────────────────────────────────────────────────────────────────────────────────

    async def head(self) -> Moment:
        """Now."""
        await self._frozen_at()  # a read, before which everything due expires
        head = await self.owner.fetchval(_HEAD, self.tournament.tournament_id)
        return Moment(upto=head, now=self.tournament.clock.now)

    async def after(self, sequence: int, on: datetime | None = None) -> Moment:
        """After an event of the past."""
        now = await self.owner.fetchval(_TIME, self.tournament.tournament_id, sequence)
        return Moment(upto=sequence, now=now, on=on)

    async def some_moments(self, count: int) -> list[Moment]:
        """Ends of requests, and times."""
        random, found = self.tournament.random, []
        for _ in range(count):
            end = random.choice(self._model.accepted[self.tournament.begun - 1 :]).last
            found.append(await self.after(end, random.choice([None, self._any_time()])))
        return found

    def _any_time(self) -> datetime:
        return self.tournament.clock.now + timedelta(minutes=self.tournament.random.randrange(-40_000, 5_000))

    async def _frozen_at(self) -> int | None:
        frozen: int | None = (await self._json(self.client, "publication.json"))["publication"]["frozen_at"]
        return frozen

    # ── Doors ───────────────────────────────────────────────────────────────────────────────────────────

    async def compare_live(self) -> None:
        head = await self.head()
        for ranking in UNITIES:
            answer = await self._json(self.client, f"rankings/{ranking}/standings.json")
            self._compare("live", standings_of(answer), self._model.standings(ranking, head), head)
            await self._compare_classification(self.client, "live", ranking, head, "")

    async def compare_classified(self) -> None:
        """Whatever decides the order, the table is later shown as it was, also where the ranking was closed. The model
        says nothing of what follows."""
        for ranking in UNITIES:
            await self.tournament.classify(ranking)
        head, shown = await self.head(), []
        for at in "", f"?at_sequence={head.upto}":
            paths = [f"rankings/{ranking}/classification.json{at}" for ranking in UNITIES]
            told = [(await self._json(self.client, path))["classification"] for path in paths]
            shown.append([(one["criteria"], one["standings"]) for one in told])
            await self.tournament.rename(f"After {at}")
        self._compare("as it was", shown[1], shown[0], head)

    async def compare_expiring(self) -> None:
        """What is left at a later time if nothing else happens."""
        head, random = await self.head(), self.tournament.random
        until = head.now + timedelta(minutes=random.randrange(30_000))
        for ranking in UNITIES:
            unity = random.choice([*UNITIES[ranking]])
            expected = self._model.standings(ranking, msgspec.structs.replace(head, now=until))[unity]
            if expected:
                query = f"until={quote(until.isoformat())}&unity={unity}&competitors={listed(expected)}"
                answer = await self._json(self.client, f"rankings/{ranking}/expiring.json?{query}")
                found = {one["competitor_id"]: one["total_then"] for one in answer["expiring"]["expiring"]}
                self._compare("expiring", found, {one: total for one, (_, total) in expected.items()}, head)

    async def compare_changes(self) -> None:
        """How each total came about, by the lines of history and by explanations."""
        head, random = await self.head(), self.tournament.random
        totals = self._model.totals(head)
        for ranking, unities in UNITIES.items():
            for number, unity in unities.items():
                of_unity: dict[int, list[Any]] = {one: [] for one in COMPETITORS}
                query = f"unity={number}&limit={random.choice([7, 1_000])}"
                for line in await self._all(f"rankings/{ranking}/history.json?{query}", "history", "after"):
                    of_unity[line["competitor_id"]].append(line)
                for one, its in of_unity.items():
                    total = totals.get((number, one), unity.of_nothing)
                    before = [unity.of_nothing, *[line["total"] for line in its]]
                    told = [{**line, "total_before": was} for line, was in zip(its, before, strict=False)]
                    within = self._totals_within(its, number, one)
                    self._compare_changes("history", told, within, total, number, one, head)
                    query = f"unity={number}&competitor={one}&limit={random.choice([2, 200, 200])}"
                    steps = await self._all(f"rankings/{ranking}/explain.json?{query}", "steps", "from")
                    self._compare_changes("explained", steps, within, total, number, one, head)

    def _totals_within(self, lines: list[Any], number: int, one: int) -> Within:
        """Where points do not expire, the totals that the model has after each of the competitions that changed one in
        one request. An explanation leaves out what changes nothing."""
        found: Within = {}
        for end, its in groupby(lines, lambda line: self._model.end_of_request(line["sequence"])):
            order = list(dict.fromkeys(line["competition_id"] for line in its))
            if self._model.unity(number).lasts is None and len(order) > 1:
                found[end] = dict(zip(order, self._model.totals_within(end, number, one, order), strict=True))
        return found

    def _compare_changes(
        self, door: str, changes: list[Any], within: Within, total: int | None, number: int, one: int, moment: Moment
    ) -> None:
        """Each total is that after which the next change begins. Of competitions of one request, each has its own. The
        deltas of a competition are what it gives."""
        unity, door = self._model.unity(number), f"{door} {one} in {number}"
        before = [change["total_before"] for change in changes]
        after = [change["total"] for change in changes]
        self._compare(door, [*before, total], [unity.of_nothing, *after], moment)
        found = {
            (end, change["competition_id"]): change["total"]
            for change in changes
            if (end := self._model.end_of_request(change["sequence"])) in within
        }
        expected = {(end, cause): within[end].get(cause, total) for (end, cause), total in found.items()}
        self._compare(f"{door}, within", found, expected, moment)
        deltas = [change["delta"] or 0 for change in changes]
        if unity.counts != "sum":
            assert not any(deltas)
            return
        pairs = zip(before, after, strict=True)
        self._compare(f"{door}, deltas", deltas, [(now or 0) - (was or 0) for was, now in pairs], moment)
        if unity.lasts is None:
            given: dict[int | None, int] = {}
            for change, delta in zip(changes, deltas, strict=True):
                given[change["competition_id"]] = given.get(change["competition_id"], 0) + delta
            gave = {cause: amount for cause, amount in given.items() if amount}
            self._compare(f"{door}, given", gave, self._model.given_by(number, one, moment), moment)

    async def _all(self, path: str, lines: str, follows: str) -> list[Any]:
        """What all pages of an answer list as `lines`. `follows`: the parameter that asks for the next one."""
        found, following = list[Any](), ""
        while True:
            answer = await self._json(self.client, path + following)
            page = answer.get("explanation", answer)
            found += page[lines]
            if page["next"] is None:
                return found
            following = f"&{follows}={page['next']}"

    async def compare_pages(self) -> None:
        """The board as a person sees it has the lines that its script gets."""
        for ranking in sorted(set(UNITIES) - self.tournament.hidden):
            page, told = [await self._get(f"{below}?ranking={ranking}") for below in ("", "/table.json")]
            assert page.status == 200, page.body
            for cells, line in zip(lines_of(page.body.decode()), told.json["lines"], strict=True):
                first, *others = cells[-len(line["values"]) :]
                if first == [line["gained"]]:  # the value before it was left out
                    first = []
                texts = [cell[0].replace("\N{MINUS SIGN}", "-") if cell else None for cell in (first, *others)]
                values = [None if text == NONE else text for text in texts]
                assert (cells[0], values) == ([_place(line)], line["values"])

    async def compare_past(self, moment: Moment) -> None:
        query = f"?at_sequence={moment.upto}{_on(moment)}"
        for ranking in UNITIES:
            answer = await self._json(self.client, f"rankings/{ranking}/standings.json{query}")
            self._compare("past", standings_of(answer), self._model.standings(ranking, moment), moment)
            await self._compare_classification(self.client, "past", ranking, moment, query)

    async def compare_public(self) -> None:
        """What the public sees now: the log up to the public end, which is the end of a request."""
        frozen, end = await self._frozen_at(), await self.head()
        if frozen is not None:
            end = await self.after(frozen)
            self._compare("public end", frozen, self._model.end_of_request(frozen), end)
        for moment in end, msgspec.structs.replace(end, on=self._any_time()):
            for ranking in UNITIES:
                query = f"?ranking={ranking}" + _on(moment)
                if ranking in self.tournament.hidden:
                    assert (await self._get(f"/table.json{query}")).status == 404
                else:
                    await self._compare_table(ranking, moment, query)
                    await self._compare_csv(ranking, moment, query)

    async def compare_public_past(self, moment: Moment) -> None:
        """Not if it is after the public end."""
        frozen = await self._frozen_at()
        if frozen is None or moment.upto <= frozen:
            for ranking in sorted(set(UNITIES) - self.tournament.hidden):
                await self._compare_csv(ranking, moment, f"?ranking={ranking}&at={moment.upto}{_on(moment)}")

    async def compare_streams(self) -> None:
        """Clients that know the tournament by its stream alone show the same."""
        head, frozen = await self.head(), await self._frozen_at()
        await self._compare_stream(f"/tournament/{self.client.tournament}", self.client.token, head, set(UNITIES))
        end = head if frozen is None else await self.after(frozen)
        await self._compare_stream(f"/board/{self.client.tournament}", None, end, set(UNITIES) - self.tournament.hidden)

    async def _compare_stream(self, path: str, token: str | None, end: Moment, rankings: set[RankingId]) -> None:
        spectator = Spectator()
        address = f"{self.service.url}{path}/events?after=0"
        await follow(lambda: address, token, spectator, lambda: spectator.sequence >= end.upto)
        for ranking in rankings:
            lines = spectator.standings(ranking)
            found = {
                unity: {one: (position, total) for position, one, total in lines[ranking, name_of(unity)]}
                for unity in UNITIES[ranking]
            }
            self._compare("stream", found, self._model.standings(ranking, end), end)

    async def compare_tables(self) -> None:
        head = await self.head()
        await Worker(self.tournament.database).catch_up()
        found: dict[int, Standings] = {unity: {} for unities in UNITIES.values() for unity in unities}
        for unity, one, position, total in await self.owner.fetch(_STANDING, self.tournament.tournament_id):
            found[unity][one] = position, total
        expected = {k: v for ranking in UNITIES for k, v in self._model.standings(ranking, head).items()}
        self._compare("tables", found, expected, head)

    async def move(self) -> None:
        """The tournament leaves the database as an archive, and enters it again."""
        exported = archives.exported(self.tournament.database, self.tournament.tournament_id, progress=of_no_account)
        lines = [line.encode() async for line in exported]
        await delete_tournament(self.owner, self.client.tournament, lines)
        await archives.enter(self.owner, lines, progress=of_no_account)

    # ── Comparing ───────────────────────────────────────────────────────────────────────────────────────

    async def _compare_classification(
        self, client: Client, door: str, ranking: RankingId, moment: Moment, query: str
    ) -> None:
        answer = await self._json(client, f"rankings/{ranking}/classification.json{query}")
        lines = answer["classification"]["standings"]
        found = {one["competitor_id"]: (_place(one), one["values"][0]) for one in lines}
        self._compare_classified(door, found, ranking, moment)

    def _compare_classified(self, door: str, found: Places, ranking: RankingId, moment: Moment) -> None:
        """A value that nothing depends on may be left out."""
        expected = _places(self._model.classified(ranking, moment))
        told = {
            one: (at, None if found.get(one, ("", 0))[1] is None else value) for one, (at, value) in expected.items()
        }
        self._compare(f"{door}, classified", found, told, moment)

    async def _compare_csv(self, ranking: RankingId, moment: Moment, query: str) -> None:
        """Of a unity, or of the classification."""
        unity = self.tournament.random.choice([None, *UNITIES[ranking]])
        answer = await self._get("/table.csv" + query + ("" if unity is None else f"&unity={unity}"))
        assert answer.status == 200, answer.body
        _, *rows = csv.reader(io.StringIO(answer.body.decode()))
        lines = {int(row[2]): (row[0], int(row[4]) if row[4] else None) for row in rows}
        if unity is None:
            self._compare_classified("csv", lines, ranking, moment)
        else:
            self._compare("csv", lines, _places(self._model.standings(ranking, moment)[unity]), moment)

    async def _compare_table(self, ranking: RankingId, moment: Moment, query: str) -> None:
        """The classification on the board, the competitions around it, and what it is compared with."""
        answer = await self._get(f"/table.json{query}")
        assert answer.status == 200, answer.body
        told, shown = answer.json, answer.json["competitions"]
        lines = {int(one["competitor_id"]): (_place(one), _number(one["values"][0])) for one in told["lines"]}
        self._compare_classified("board", lines, ranking, moment)
        for part, one in ("latest", self._model.latest(ranking, moment)), ("late", self._model.late(ranking, moment)):
            self._compare(part, shown[part] and int(shown[part]["id"]), one, moment)
        for part, expected in (
            ("results", self._model.gave(ranking, moment)),
            ("fixtures", self._model.fixtures(ranking, self.tournament.hidden, moment)),
        ):
            self._compare(part, [int(one["id"]) for one in shown[part]], expected[:SHOWN], moment)
        since_on = told["since_on"] and datetime.fromisoformat(told["since_on"])
        before = await self._before(ranking, moment)
        self._compare("compared with", None if told["since"] is None else (told["since"], since_on), before, moment)

    async def _before(self, ranking: RankingId, moment: Moment) -> tuple[int, datetime | None] | None:
        """The moment that the table is compared with; None: nobody had points then."""
        before = self._model.before_latest(ranking, moment)
        if before is None:
            return None
        upto, on = before
        then = Moment(upto=upto, now=moment.now, on=on) if on else await self.after(upto)
        unities, totals = UNITIES[ranking], self._model.totals(then)
        had_points = any(
            total or unities[unity].of_nothing is None for (unity, _), total in totals.items() if unity in unities
        )
        return before if had_points else None

    def _compare(self, door: str, found: Any, expected: Any, moment: Moment) -> None:
        assert found == expected, f"seed {self.tournament.seed}, {door}: {moment}: {found} instead of {expected}"

    async def _get(self, below: str) -> Any:
        return await self.public.send("GET", f"/board/{self.public.tournament}{below}")

    async def _json(self, client: Client, path: str) -> Any:
        answer = await client.get(path)
        assert answer.status == 200, (path, answer.body)
        return answer.json


def standings_of(answer: Any) -> dict[int, Standings]:
    lines = [line for unity in answer["ranking"]["unities"] for line in unity["competitors_ranking"]]
    assert all(line.get("placed") is (False if line["total"] is None else None) for line in lines)
    return {
        int(unity["name"].rpartition(" ")[2]): {
            line["competitor_id"]: (line["position"], line["total"]) for line in unity["competitors_ranking"]
        }
        for unity in answer["ranking"]["unities"]
    }


def _place(line: Any) -> str:
    """The place as a page shows it: a dash for a line that is not placed, although it has a position."""
    return str(line["position"]) if line.get("placed", True) else NONE


def _places(standings: Standings) -> Places:
    return {one: (NONE if value is None else str(at), value) for one, (at, value) in standings.items()}


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _on(moment: Moment) -> str:
    return "" if moment.on is None else f"&on={quote(moment.on.isoformat())}"
