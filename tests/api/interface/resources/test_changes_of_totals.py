"""Each event of a request changes a total by itself, and every door says so."""

import json
from collections.abc import Sequence as Items
from itertools import chain
from typing import Final

import pytest

from api.webhooks.totals import Windows
from engine.domain.marks import BEYOND
from engine.domain.terms import Sequence
from engine.log import heads, undecoded
from projections.answers.totals import PastTotals
from projections.tables.worker import Worker
from tests.api.interface.resources.test_absent import make
from tests.api.interface.resources.test_results import give
from tests.api.public_boards import Board, change
from tests.projections.verified import verified
from tests.service import Season, Service
from tests.spectator import Spectator, follow

MATCHES: Final = [0, 1], [0, 0, 1, 1], [0, 1], [0, 1], [0], [0], [0, 0, 0], [0, 0, 0]
"""Which of two matches changes a total, event by event of each request."""
DELTAS: Final = [5, 9], [-5, 7, -9, 3], [-7, -3], [7, 3], [4], [6], [-7, -4, -6], [7, 4, 6]
TOTALS: Final[dict[str, Items[Items[int | None]]]] = {
    "sum": ([5, 14], [9, 16, 7, 10], [3, None], [7, 10], [14], [20], [13, 9, 3], [10, 14, 20]),
    "best": ([5, 9], [9, 9, 7, 7], [3, None], [7, 7], [7], [7], [6, 6, 3], [7, 7, 7]),
    "last": ([5, 9], [9, 9, 7, 3], [3, None], [7, 3], [4], [6], [6, 6, 3], [3, 4, 6]),
}
EXPLAINED: Final[dict[str, list[tuple[int, int | None]]]] = {
    "sum": [
        *[(0, 5), (1, 14), (0, 16), (1, 10), (0, 3), (1, None), (0, 7), (1, 10)],
        *[(0, 14), (0, 20), (0, 13), (0, 9), (0, 3), (0, 10), (0, 14), (0, 20)],
    ],
    "best": [(0, 5), (1, 9), (1, 7), (0, 3), (1, None), (0, 7), (0, 6), (0, 3), (0, 7)],
    "last": [(0, 5), (1, 9), (1, 3), (1, None), (0, 7), (1, 3), (0, 4), (0, 6), (0, 3), (0, 4), (0, 6)],
}
"""By a match, to a total: corrections as one step, and nothing that changes nothing."""


@pytest.mark.parametrize("counts", ["sum", "best", "last"])
async def test_each_competition_of_one_request_has_its_own_change_of_a_total(
    service: Service, season: Season, board: Board, counts: str
) -> None:
    """Results scored at once, corrected at once, then without a scoring, and with it again; two gifts for one of them,
    which is voided and unvoided."""
    client, (ada, bob, cid) = season.client, season.ids
    fields = {"main_unity_absent": "none" if counts == "sum" else "", "main_unity_counts": counts}
    path, goals = await make(season, main_unity_name="goals", main_unity_sort="DESC", **fields)
    matches = []
    for other, result in (bob, "5:0"), (cid, "9:0"):
        form = {"group_id": 1, "participants": f"{ada},{other}", "result": result}
        matches.append((await client.post("competitions.json", form)).json["competition"]["id"])
    await change(client, published="true")
    begun, number = await board.sequence(), int(path.removeprefix("rankings/"))

    async def score(*scorings: object) -> None:
        answer = await client.put(f"{path}/scoring.json", {"scorings": json.dumps(scorings)})
        assert answer.status == 200, answer.body

    goals_scored = {"awards": [{"unity": goals, "from": "for"}]}
    await score(goals_scored)
    items = [{"competition": one, "result": result} for one, result in zip(matches, ("7:0", "3:0"), strict=True)]
    assert (await client.put("results.json", {"items": json.dumps(items)})).status == 200
    await score()
    await score(goals_scored)
    for delta in 4, 6:
        await give(client, path, (ada, goals, delta), competition_id=matches[0])
    for verb in "void", "unvoid":
        assert (await client.put(f"competitions/{matches[0]}/{verb}.json")).status == 200
    told = (await client.get(f"{path}/explain.json?competitor={ada}&unity={goals}")).json["explanation"]["steps"]
    steps = [step for step in told if step["competition_id"] in matches and step["total_before"] != step["total"]]
    assert [(matches.index(step["competition_id"]), step["total"]) for step in steps] == EXPLAINED[counts]
    assert [step["total_before"] for step in told[1:]] == [step["total"] for step in told[:-1]]
    lines = (await client.get(f"{path}/history.json?competitor={ada}&unity={goals}")).json["history"]
    deltas = [*chain(*DELTAS)] if counts == "sum" else [None] * len(lines)
    its = [matches[which] for which in chain(*MATCHES)]
    expected = [*zip(its, deltas, chain(*TOTALS[counts]), strict=True)]
    assert [(line["competition_id"], line["delta"], line["total"]) for line in lines] == expected
    after = {line["sequence"]: line["total"] for line in lines}

    for token, door in (client.token, "tournament"), (None, "board"):
        spectator, last = Spectator(), await board.sequence()
        address = f"{service.url}/{door}/{client.tournament}/events?after=0"
        await follow(lambda where=address: where, token, spectator, lambda who=spectator, end=last: who.sequence >= end)
        sent = [(data["sequence"], line) for _, data in spectator.told for line in data.get("totals", ())]
        totals = {sequence: total for sequence, (one, unity, total) in sent if (one, unity) == (ada, goals)}
        assert len(totals) == len(after) - 2  # the gifts are results
        assert totals.items() <= after.items()
    race = (await board.get(f"race.json?ranking={number}")).json
    raced = dict(zip(race["sequences"], race["totals"][0], strict=True))
    assert {sequence: raced[sequence] for sequence in after} == after
    mark = 0
    for sequence, _, _, changes in (await board.get(f"passage.json?ranking={number}&at={begun}")).json["steps"]:
        if its := [int(amount) for one, _, amount in changes if one == 0]:
            mark += sum(its)
            assert (mark - BEYOND if mark else None) == after[sequence]
    assert await _in_messages(service, board, last, (ada, goals)) == [
        (sequence, delta, total) for sequence, (_, delta, total) in zip(after, expected, strict=True)
    ]
    await Worker(service.database).catch_up()
    assert not (await verified(service.database)).differences


async def _in_messages(
    service: Service, board: Board, last: int, of: tuple[int, int]
) -> list[tuple[int, int | None, int | None]]:
    """The changes that messages to a webhook tell of a competitor in a unity."""
    database = service.database
    async with database.connection() as connection:
        tournament = await connection.fetchval("SELECT tournament_id FROM tournament WHERE slug = $1", board.slug)
        begin = heads.beginning(tournament)
        events = await undecoded.stored(connection, tournament, undecoded.EventSpan(begin, Sequence(last)))
    window = await Windows(database.connection, PastTotals(database)).window(tournament, begin, (), Sequence(last))
    return [
        (stored.sequence, line.delta, line.total)
        for stored in events
        for line in window.lines_after(stored)
        if (line.competitor_id, line.unity_id) == of
    ]
