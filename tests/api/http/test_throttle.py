"""How often somebody may fail, or ask: counted by a clock of our own, and over HTTP."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.access import auth
from api.access.auth import Scope
from api.http import throttle
from api.http.errors import TooManyRequests
from api.http.shared_times import SharedTimes
from api.http.throttle import WAIT_SECONDS_MAX, Throttle, Times, address_of
from api.service.settings import FAILURES_AT_ONCE_MAX
from tests.bounds import Bounds
from tests.clock import Clock
from tests.service import Client, Season, make_token, serve


def taken(limit: Throttle, key: object, times: int) -> int:
    """How many of `times` attempts the limit admits."""
    count = 0
    for _ in range(times):
        try:
            limit.take(key)
        except TooManyRequests:
            continue
        count += 1
    return count


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_bursts_are_limited_and_then_the_rate(clock: Clock) -> None:
    limit = Throttle("Wait.", at_once=5, per_second=2, clock=clock)
    assert taken(limit, "a", 10) == 5
    clock.seconds += 1
    assert taken(limit, "a", 10) == 2
    clock.seconds += 1_000
    assert taken(limit, "a", 10) == 5


@given(st.integers(1, 20), st.floats(0.1, 50), st.lists(st.floats(0, 3), max_size=60))
def test_no_stretch_of_time_has_more_than_it_may(at_once: int, per_second: float, pauses: list[float]) -> None:
    clock = Clock()
    limit = Throttle("Wait.", at_once=at_once, per_second=per_second, clock=clock)
    let_in: list[float] = []
    for pause in pauses:
        clock.seconds += pause
        let_in += [clock.seconds] * taken(limit, "a", 1)
    for first, began in enumerate(let_in):
        for count, ended in enumerate(let_in[first:], 1):
            assert count <= at_once + (ended - began) * per_second + 1e-3


def test_each_key_is_for_itself(clock: Clock) -> None:
    limit = Throttle("Wait.", at_once=3, per_second=1, clock=clock)
    assert [taken(limit, key, 9) for key in ("a", "b", 1)] == [3, 3, 3]


def test_a_client_that_returns_when_it_should_is_let_in(clock: Clock) -> None:
    limit = Throttle("Wait.", at_once=2, per_second=0.1, clock=clock)
    taken(limit, "a", 2)
    with pytest.raises(TooManyRequests) as refused:
        limit.take("a")
    assert refused.value.retry_after_seconds == 10
    clock.seconds += 9.9
    assert taken(limit, "a", 1) == 0
    clock.seconds += 0.1
    assert taken(limit, "a", 1) == 1


def test_nobody_waits_for_more_than_a_minute(clock: Clock) -> None:
    limit = Throttle("Wait.", at_once=2, per_second=1, clock=clock)
    for _ in range(10_000):
        limit.count("a")
    clock.seconds += WAIT_SECONDS_MAX - 0.1
    assert taken(limit, "a", 1) == 0
    clock.seconds += 0.2
    assert taken(limit, "a", 1) == 1


def test_no_more_keys_are_remembered_than_there_is_room_for(clock: Clock) -> None:
    times = Times(keys_max=3)
    limit = Throttle("Wait.", at_once=1, per_second=1, times=times, clock=clock)
    for key in range(10):
        limit.take(key)
        assert len(times._times) <= 3
    assert [taken(limit, key, 1) for key in (9, 8, 7)] == [0, 0, 0]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([1, 2, "1", "10.0.0.1"]), st.floats(0, 3)), max_size=60))
def test_processes_that_share_a_file_let_in_what_one_would(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[int, int | str, float]]
) -> None:
    clock, path = Clock(), tmp_path_factory.mktemp("shared") / "throttles"

    def limit(times: Times | SharedTimes) -> Throttle:
        return Throttle("Wait.", at_once=3, per_second=1.5, times=times, clock=clock)

    one = limit(Times())
    processes = [limit(SharedTimes(path, "requests")) for _ in range(3)]
    another = SharedTimes(path, "visits")
    for process, key, pause in asked:
        clock.seconds += pause
        assert taken(processes[process], key, 1) == taken(one, key, 1)
        assert another.get(key) == 0


def test_a_full_file_forgets_the_earliest_times(tmp_path: Path, bounds: Bounds) -> None:
    bounds(SLOTS=8)
    times = SharedTimes(tmp_path / "throttles", "requests")
    for key in range(20):
        times.put(key, 100.0 + key)
    assert [times.get(key) for key in range(20)] == [0] * 12 + [112.0 + n for n in range(8)]


class _Asking:
    def __init__(self, remote: str, *forwarded: str) -> None:
        self.remote = remote
        self.headers = self
        self._forwarded = forwarded

    def getall(self, _: str, default: list[str]) -> list[str]:
        return list(self._forwarded) or default


@pytest.mark.parametrize(
    ("remote", "forwarded", "proxies", "address"),
    [
        ("10.0.0.1", [], 0, "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1"], 0, "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1"], 1, "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1"], 1, "1.1.1.1"),
        ("10.0.0.1", ["6.6.6.6", "1.1.1.1,2.2.2.2"], 2, "1.1.1.1"),
        ("10.0.0.1", ["1.1.1.1"], 2, "10.0.0.1"),
        ("10.0.0.1", ["mars"], 1, "10.0.0.1"),
        ("10.0.0.1", [""], 1, "10.0.0.1"),
        ("2001:db8:1:2:3::4", [], 0, "20010db800010002"),
        ("2001:db8:1:2:9::9", [], 0, "20010db800010002"),
        ("::ffff:10.0.0.1", [], 0, "10.0.0.1"),
        ("", [], 0, ""),
    ],
)
def test_the_address_is_the_clients_as_far_as_it_can_be_believed(
    remote: str, forwarded: list[str], proxies: int, address: str
) -> None:
    request: Any = _Asking(remote, *forwarded)
    assert address_of(request, proxies=proxies) == address


# ── Over HTTP ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_client_that_fails_too_often_must_wait_and_costs_no_query(dsn: str, season: Season) -> None:
    async with serve(dsn, failures_at_once=5) as careful:
        known = careful.client(season.client.tournament, season.client.token)
        assert (await known.get("rankings.json")).status == 200
        guesses = [careful.client(known.tournament, auth.text_of(f"{n:030}")) for n in range(20)]
        answers = [await guess.get("rankings.json") for guess in guesses]
        assert [answer.status for answer in answers] == [401] * 5 + [429] * 15
        assert all(1 <= int(answer.headers["Retry-After"]) <= WAIT_SECONDS_MAX for answer in answers[5:])
        assert answers[-1].json["status"] == 429
        assert (await known.get("rankings.json")).status == 200, "who was let in before goes on"
        new = careful.client(known.tournament, await make_token(careful.database))
        assert (await new.get("rankings.json")).status == 429, "who comes new from that address waits with them"
        nobody = careful.client(known.tournament, None)
        assert [(await nobody.send("GET", path)).status for path in ("/healthz", "/readyz")] == [200, 200]


async def test_another_address_is_not_made_to_wait(dsn: str, season: Season) -> None:
    async with serve(dsn, failures_at_once=2, proxies=1) as proxied:
        nobody = proxied.client(season.client.tournament, None)

        async def statuses(forwarded: str) -> list[int]:
            return [(await nobody.get("rankings.json", {"X-Forwarded-For": forwarded})).status for _ in range(3)]

        assert await statuses("1.1.1.1") == [401, 401, 429]
        assert await statuses("1.1.1.2") == [401, 401, 429]
        assert await statuses("6.6.6.6, 1.1.1.2") == [429, 429, 429]


async def test_many_clients_that_are_new_at_once_are_all_let_in(dsn: str, season: Season) -> None:
    async with serve(dsn, failures_at_once=2) as careful:
        same = [careful.client(season.client.tournament, season.client.token) for _ in range(100)]
        others = [careful.client(season.client.tournament, await make_token(careful.database)) for _ in range(20)]
        answers = await asyncio.gather(*(client.get("rankings.json") for client in same + others))
        assert {answer.status for answer in answers} == {200}


async def test_a_token_may_be_given_a_pace(
    dsn: str, season: Season, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        Throttle.__init__.__kwdefaults__ or {}, "clock", clock
    )  # or a busy machine would pay in between
    async with serve(dsn, requests_per_second=3) as paced:
        client = paced.client(season.client.tournament, season.client.token)
        other = paced.client(season.client.tournament, await make_token(paced.database, Scope.READ))

        async def statuses(asking: Client) -> list[int]:
            return [answer.status for answer in await asyncio.gather(*(asking.get("rankings.json") for _ in range(9)))]

        for asking in (client, other):
            assert sorted(await statuses(asking)) == [200] * 3 + [429] * 6
        answer = await client.post("competitors.json", {"name": "Eve"})
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")


def test_the_usual_limit_lets_a_person_make_mistakes() -> None:
    limit = throttle.failures(at_once=FAILURES_AT_ONCE_MAX, shared=None)
    assert taken(limit, "10.0.0.1", 1_000) == FAILURES_AT_ONCE_MAX
