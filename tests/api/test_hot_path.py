"""The hot path has a budget: how many Python functions one request enters, and how many instructions it executes.

An add of one delta to a ranking of 20 competitors, and two reads, on a service where nobody follows, filters,
classifies or traces anything. A feature that adds to what these do shows itself here: what serves others is paid where
others use it. `counting.py` says how it is counted. To see where the calls go:

    pytest tests/api/test_hot_path.py -s
"""

import asyncio
import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from urllib.parse import urlencode

import asyncpg
import pytest

from tests.api.counting import Counted, CountedService, counted_service
from tests.bounds import Bounds, set_bounds
from tests.desks import HOLD_HEAD, until
from tests.service import deltas, listed

COMPETITORS: Final = 20
WARMING: Final = 40
"""Requests before those that are counted: until then caches fill, and the driver prepares its statements."""
RESULT_MORE_MAX: Final = 8
"""Functions that an add of a result may enter beyond those of an add to a sum."""
SCORED_MOST: Final = 2.3
"""How many times the instructions of EIGHT a SCORED may execute."""
SAME: Final = 4
"""Requests that must be counted alike, with no other below them: the others met a second that begins, a token that is
renewed, or what a service does by the clock."""
COUNTED_MAX: Final = 300

ADD: Final = "an add"
RANKINGS: Final = "a read of rankings.json"
STANDINGS: Final = "a read of standings.json"
BEST: Final = "an add of a result"
EIGHT: Final = "an add with eight deltas"
SCORED: Final = "a result that gives eight lines"
BOUNDS: Final = {
    (3, 11): {ADD: (146, 4642), RANKINGS: (58, 1663), STANDINGS: (110, 2592)},
    (3, 12): {ADD: (149, 4578), RANKINGS: (60, 1582), STANDINGS: (108, 2457)},
    (3, 13): {ADD: (149, 4582), RANKINGS: (60, 1620), STANDINGS: (108, 2480)},
    (3, 14): {ADD: (149, 4802), RANKINGS: (60, 1724), STANDINGS: (108, 2689)},
}
"""The most functions entered and instructions executed, by minor version of Python. They are what was counted last: who
makes it less lowers them."""


@pytest.fixture
def service(dsn: str, bounds: Bounds) -> Iterator[CountedService]:
    bounds(INTERVAL_SECONDS=3_600.0)
    with counted_service(dsn) as service:
        yield service


@pytest.fixture
def requests(service: CountedService) -> dict[str, bytes]:
    """The requests that have a budget."""

    def made(path: str, **form: object) -> dict[str, Any]:
        answered: dict[str, Any] = json.loads(service.answer(service.request("POST", path, urlencode(form).encode())))
        return answered

    ids = [made("competitors.json", name=f"competitor {n}")["competitor"]["id"] for n in range(COMPETITORS)]
    fields = {"name": "Season", "main_unity_name": "points", "participants": listed(ids)}
    ranking = made("rankings.json", **fields)["ranking"]
    path = f"rankings/{ranking['id']}"
    best = made("rankings.json", **fields, main_unity_counts="best")["ranking"]
    award = {"unity": ranking["unities"][0]["id"], "from": "place", "table": [25, 18, 15, 12, 10, 8, 6, 4]}
    scorings = urlencode({"scorings": json.dumps([{"awards": [award]}])}).encode()
    service.answer(service.request("PUT", f"{path}/scoring.json", scorings))
    places = json.dumps({competitor_id: f"{place}" for place, competitor_id in enumerate(ids[:8], start=1)})
    result = {"group_id": 1, "participants": listed(ids[:8]), "result": places}
    return {
        ADD: _add(service, ranking, ids[7]),
        EIGHT: _add(service, ranking, *ids[:8]),
        SCORED: service.request("PUT", "results.json", urlencode(result).encode()),
        BEST: _add(service, best, ids[7]),
        RANKINGS: service.request("GET", "rankings.json"),
        STANDINGS: service.request("GET", f"{path}/standings.json"),
    }


@pytest.mark.one_postgresql("on a distributed database an append has more steps, and nobody counts them yet")
@pytest.mark.parametrize("name", [ADD, RANKINGS, STANDINGS])
def test_a_request_does_no_more_than_its_budget(service: CountedService, requests: dict[str, bytes], name: str) -> None:
    least = least_of(service, requests[name])
    print(f"\n{name}\n{least.table()}")  # noqa: T201

    bounds = BOUNDS.get(sys.version_info[:2])
    if bounds is None:
        pytest.skip("nobody has counted on this version of Python yet")
    entered, instructions = least.totals
    assert entered <= bounds[name][0]
    assert instructions <= bounds[name][1]


@pytest.mark.one_postgresql("on a distributed database an append has more steps, and nobody counts them yet")
def test_an_add_of_a_result_does_little_more(service: CountedService, requests: dict[str, bytes]) -> None:
    of_sum, of_result = least_of(service, requests[ADD]), least_of(service, requests[BEST])
    more, fewer = of_result.entered - of_sum.entered, of_sum.entered - of_result.entered
    print(f"\nfunctions of an add of a result: {more.total()} more, {fewer.total()} fewer: {more}, {fewer}")  # noqa: T201
    assert of_result.totals[0] <= of_sum.totals[0] + RESULT_MORE_MAX


@pytest.mark.one_postgresql("on a distributed database an append has more steps, and nobody counts them yet")
def test_a_result_does_little_more_than_twice_what_an_add_with_its_lines_does(
    service: CountedService, requests: dict[str, bytes]
) -> None:
    add, result = least_of(service, requests[EIGHT]), least_of(service, requests[SCORED])
    print(f"\n{SCORED}\n{result.table()}")  # noqa: T201
    assert result.totals[1] <= SCORED_MOST * add.totals[1]


@pytest.mark.one_postgresql("the same processes refuse there")
def test_a_refusal_does_at_most_a_quarter_of_what_an_add_does(
    service: CountedService, requests: dict[str, bytes], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = least_of(service, requests[ADD])
    with crowd(service, requests[ADD], dsn, monkeypatch):
        refusal = least_of(service, requests[ADD], 503)
    print(f"\na refusal\n{refusal.table()}")  # noqa: T201
    assert all(4 * refused <= added for refused, added in zip(refusal.totals, add.totals, strict=True))


def _add(service: CountedService, ranking: dict[str, Any], *competitors: int) -> bytes:
    """A request that adds to these competitors of the ranking."""
    unity_id = ranking["unities"][0]["id"]
    form = urlencode({"participants_delta": deltas(*[(one, unity_id, 5) for one in competitors])}).encode()
    return service.request("PUT", f"rankings/{ranking['id']}/add.json", form)


def least_of(service: CountedService, request: bytes, status: int = 200) -> Counted:
    """What the request takes, once it is warm."""
    for _ in range(WARMING):
        service.answer(request, status)
    found: list[Counted] = []
    while len(found) < COUNTED_MAX:
        found.append(service.counted(request, status))
        least = min(found, key=lambda counted: counted.totals)
        if [counted.totals for counted in found].count(least.totals) == SAME:
            return least
    pytest.fail(f"no {SAME} of {COUNTED_MAX} requests did the same: {[counted.totals for counted in found]}")


@contextmanager
def crowd(service: CountedService, add: bytes, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Holds the tournament up, with more adds than it is given time for."""
    with asyncio.Runner() as runner, ExitStack() as waiting, monkeypatch.context() as small:
        set_bounds(
            small, BLOCK_REQUESTS_MAX=1, WAITED_SECONDS_MAX=0.0, EXPECTED_SECONDS_MAX=0.0, HELD_FROM=sys.maxsize
        )  # or those that are counted would come too fast
        owner = runner.run(asyncpg.connect(dsn, server_settings={"search_path": "tallybook"}))
        tournament_id = runner.run(owner.fetchval("SELECT tournament_id FROM tournament WHERE slug = $1", service.slug))
        runner.run(owner.execute("BEGIN"))
        runner.run(owner.execute(HOLD_HEAD, tournament_id))
        for number in (1, 2, 3):
            waiting.enter_context(service.send(add))
            runner.run(until(lambda number=number: service.desk and len(service.desk._under_way) == number))
        yield
        runner.run(owner.close())
        set_bounds(small, WAITED_SECONDS_MAX=math.inf)
        runner.run(until(lambda: service.desk and not service.desk._under_way))
