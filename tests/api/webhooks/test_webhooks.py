"""Webhooks: each is told of every event, in order, at least once, by one deliverer, and of nothing where it may not
lead."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import HTTPServer
from ipaddress import IPv4Address
from itertools import accumulate
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import asyncpg
import msgspec
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from api.access.auth import Scope
from api.interface.resources.webhooks import TESTS_AT_ONCE_MAX
from api.webhooks import deliverer, totals, webhooks
from api.webhooks.addresses import URL_CHARACTERS_MAX, is_public, public_socket, url_fault
from api.webhooks.deliverer import PAUSES_SECONDS, RETRY_AFTER_SECONDS_MAX, SILENT_SESSION_SECONDS_MAX
from api.webhooks.message import MESSAGE_LINES_MAX, ChangedLine, Message, lines_of, message_of, secret_text
from api.webhooks.webhooks import ListedWebhook, WebhookId, WebhookState
from engine.database.pool import Database, open_database
from engine.domain.errors import Conflict, NotFound, Unacceptable
from engine.domain.events import (
    CompetitionAdded,
    CompetitionVoided,
    CompetitorErased,
    CompetitorRegistered,
    Delta,
    Event,
    ParticipantsChanged,
    Points,
    PointsAdded,
    PointsReversed,
    RankingClosed,
    RankingCreated,
    RankingModified,
    UnityAdded,
)
from engine.domain.terms import (
    DELTA_MAX,
    ID_MAX,
    OPERATOR,
    CompetitionId,
    CompetitorId,
    RankingId,
    Sequence,
    TournamentId,
    UnityId,
)
from engine.log import codec, heads, registry, undecoded
from engine.log.undecoded import Stored
from projections.past import moments
from projections.tables.worker import Worker
from projections.verification.setting_aside import set_aside
from tallybook_client import verify_webhook
from tests.api.receiver import NO_PAUSES, PAGE, Receiver, delivering, documented, receiver_on, verify
from tests.bounds import Bounds
from tests.calls import Calls
from tests.conftest import only_distributed
from tests.desks import ADVISORY_LOCKS, Arena, open_arena, record, until
from tests.histories import any_event
from tests.poison import poison
from tests.running import started
from tests.service import Season, Service, make_token, slug_of
from tests.tampering import moved

NAMED = (
    "ranking_id", "unity_id", "competition_id", "competitor_id", "main_unity_id", "main_unity_name", "name",
)  # fmt: skip
"""What messages repeat of a stored event."""
NEVER = (3_600.0,) * len(PAUSES_SECONDS)


class World:
    """A tournament with a ranking, folded into its tables."""

    def __init__(self, database: Database, owner: asyncpg.Connection, arena: Arena) -> None:
        self.database = database
        self.arena = arena
        self.tournament_id = arena.tournament_id
        self._owner = owner
        self.secrets: dict[WebhookId, str] = {}

    async def happens(self, *amounts: int) -> None:
        """Points are added, and the tables show them."""
        await self.record(
            *(PointsAdded(ranking_id=self.arena.ranking_id, deltas=self.arena.points(n).deltas) for n in amounts)
        )

    async def record(self, *events: Event) -> None:
        for event in events:
            await record(self._owner, self.tournament_id, event)
        await Worker(self.database).catch_up()

    async def head(self) -> int:
        async with self.database.connection() as connection:
            return (await heads.current(connection, [self.tournament_id]))[self.tournament_id].sequence

    async def add(
        self,
        url: str,
        *,
        kinds: set[str] | None = None,
        allows_private: bool = True,
        after: int | None = None,
    ) -> WebhookId:
        async with self.database.connection() as connection:
            webhook_id, _, secret = await webhooks.add_webhook(
                connection,
                self.tournament_id,
                url,
                kinds=kinds,
                allows_private=allows_private,
                after=None if after is None else Sequence(after),
            )
        self.secrets[webhook_id] = secret_text(secret)
        return webhook_id

    async def add_then_private(self, url: str) -> WebhookId:
        """Adds a webhook that may not lead to a private address, though its address is one."""
        webhook_id = await self.add(url)
        await self._owner.execute("UPDATE webhook SET allows_private = false WHERE webhook_id = $1", webhook_id)
        return webhook_id

    async def resume(self, webhook_id: WebhookId, after: int | None = None) -> int:
        async with self.database.connection() as connection:
            return await webhooks.resume_webhook(
                connection, self.tournament_id, webhook_id, after=None if after is None else Sequence(after)
            )

    async def listed(self, webhook_id: WebhookId) -> ListedWebhook:
        async with self.database.connection() as connection:
            found = await webhooks.listed_webhooks(connection, self.tournament_id)
        return next(webhook for webhook in found if webhook.id == webhook_id)

    def has(self, webhook_id: WebhookId, condition: Callable[[ListedWebhook], bool]) -> Callable[[], Awaitable[bool]]:
        async def asked() -> bool:
            return condition(await self.listed(webhook_id))

        return asked


@pytest.fixture
async def world(database: Database, owner: asyncpg.Connection) -> World:
    arena = await open_arena(database)
    await Worker(database).catch_up()
    return World(database, owner, arena)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiver_on() as receiver:
        yield receiver


def figure(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


# ── What is sent ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_webhook_receives_every_event_in_order_signed_with_what_it_names(
    world: World, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url, after=0)
    await world.happens(1, 2, 3)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    head = await world.head()
    assert receiver.sequences == list(range(1, head + 1))
    slug = await slug_of(world.database, world.tournament_id)
    async with world.database.connection() as connection:
        span = undecoded.EventSpan(heads.beginning(world.tournament_id), Sequence(head))
        events = await undecoded.stored(connection, world.tournament_id, span)
    for got, stored in zip(receiver.got, events, strict=True):
        event_id = f"{stored.sequence}-{stored.digest.hex()[:8]}"
        assert verify(world.secrets[webhook_id], got.headers, got.body) == f"{webhook_id}-{event_id}"
        data = got.json["data"]
        body = msgspec.json.decode(stored.body)
        named = {name: body[name] for name in NAMED if name in body}
        if stored.kind == "PointsAdded":
            named["lines"] = ANY
        assert got.json | {"data": {}} == {
            "type": stored.kind,
            "timestamp": stored.recorded_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "data": {},
        }
        assert data == {
            "tournament": slug,
            "tournament_id": world.tournament_id,
            "sequence": stored.sequence,
            "id": event_id,
            **named,
        }
        assert got.headers["Content-Type"] == "application/json"
        assert got.headers["User-Agent"].startswith("tallybook/")
    assert receiver.got[-1].json["data"]["ranking_id"] == world.arena.ranking_id
    assert receiver.under_way_max == 1


async def test_a_new_webhook_receives_only_new_events(world: World, receiver: Receiver) -> None:
    webhook_id = await world.add(receiver.url)
    before = await world.head()
    async with delivering(world.database):
        await world.happens(1, 2)
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert receiver.sequences == [before + 1, before + 2]


def test_the_documented_code_and_ours_agree_with_an_example_of_the_specification() -> None:
    message = Message("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}')
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    key = bytes.fromhex("31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0")
    headers = message.headers([key], 1614265330)
    assert (headers["webhook-signature"], secret_text(key)) == (signature, secret)
    assert verify(secret, headers, message.body, now=1614265330) == message.message_id


def test_the_example_of_the_documentation_is_signed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (head, body) = re.findall(r"^    POST .*\n((?:    [\w-]+: .*\n)+)\n((?:    .*\n)+)", page, re.MULTILINE)[0]
    headers = dict(line.strip().split(": ", 1) for line in head.splitlines())
    (secret,) = re.findall(r"`(whsec_[\w+/=]+)`", page)
    text = "".join(line.strip() for line in body.splitlines()).encode()
    assert verify(secret, headers, text, now=int(headers["webhook-timestamp"])) == headers["webhook-id"]


def _break_body(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return headers, body.replace(b"1", b"2")


def _break_time(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return headers | {"webhook-timestamp": "1614265331"}, body


def _break_id(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return headers | {"webhook-id": "another"}, body


def _break_version(headers: dict[str, str], body: bytes) -> tuple[dict[str, str], bytes]:
    return headers | {"webhook-signature": headers["webhook-signature"].replace("v1", "v2")}, body


@pytest.mark.parametrize("change", [_break_body, _break_time, _break_id, _break_version])
def test_what_is_changed_on_the_way_is_refused(change: Callable[..., Any]) -> None:
    key = b"k" * 32
    message = Message("1-1-00000000", b'{"type":"PointsAdded","data":{"sequence":1}}')
    headers, body = change(message.headers([key], 1614265330), message.body)
    with pytest.raises(ValueError, match="not from Tallybook"):
        verify(secret_text(key), headers, body, now=1614265330)
    with pytest.raises(ValueError, match="old"):
        verify(secret_text(key), message.headers([key], 1614265330), message.body, now=1614265330 + 301)


_WORST = Delta(CompetitorId(ID_MAX), UnityId(ID_MAX), -DELTA_MAX)


@given(any_event())
@example(PointsAdded(ranking_id=RankingId(ID_MAX), deltas=(_WORST,) * MESSAGE_LINES_MAX, reason="x" * 1_000))
@example(PointsAdded(ranking_id=RankingId(ID_MAX), deltas=(_WORST,) * (MESSAGE_LINES_MAX + 1)))
@example(
    RankingCreated(
        ranking_id=RankingId(1),
        name="\U0001f3c6" * 255,
        participants=(),
        main_unity_id=UnityId(1),
        main_unity_name="x" * 255,
    )
)
def test_messages_are_small_whatever_has_happened(event: Event) -> None:
    kind, body = event.tag, codec.text_of(event)
    stored = Stored(Sequence(2**63 - 1), datetime(2026, 5, 2, tzinfo=UTC), OPERATOR, kind, body, b"\xff" * 32)
    lines = [ChangedLine(one.competitor_id, one.unity_id, 0, -(2**63)) for one in lines_of(stored)]
    lines = lines if len(lines) <= MESSAGE_LINES_MAX else []
    message = message_of(2**63 - 1, TournamentId(2**63 - 1), "x" * 255, stored, lines)
    assert len(message.body) < 20_000  # as the specification asks
    assert "." not in message.message_id


class History:
    """Points of all kinds between other events, recorded one after the other, and the lines that they change."""

    def __init__(self, world: World) -> None:
        ann, bob = world.arena.competitors
        main, wins = world.arena.unity_id, UnityId(10**6)
        ranking = world.arena.ranking_id

        def points(*deltas: tuple[CompetitorId, UnityId, int]) -> PointsAdded:
            return PointsAdded(ranking_id=ranking, deltas=tuple(Delta(*delta) for delta in deltas))

        match = CompetitionId(10**6)
        first = msgspec.structs.replace(points((ann, main, 3), (bob, main, -1)), competition_id=match)
        self.events: list[Event] = [
            points((ann, main, 7)),
            UnityAdded(ranking_id=ranking, unity_id=wins, name="Wins"),
            CompetitionAdded(competition_id=match, group_id=1),
            first,
            points((ann, main, 1), (ann, wins, 1), (ann, main, -3)),
            points(*[(bob, main, 2)] * 101),
            ParticipantsChanged(ranking_id=ranking, removed=(bob,)),
            points((ann, wins, 5)),
            CompetitionVoided(competition_id=match),
            PointsReversed(
                ranking_id=ranking,
                competition_id=match,
                reverses=Sequence(9),  # as the fold does not ask
                deltas=tuple(Delta(one.competitor_id, one.unity_id, -one.amount) for one in first.deltas),
            ),
            RankingModified(ranking_id=ranking, participants=(bob, ann), main_unity_name="Goals"),
            points((bob, wins, -4), (bob, main, 1)),
            *(points((ann, main, n)) for n in range(6)),
        ]

    def changes(self) -> list[dict[str, Any]]:
        """What the messages of points say, by a plain sum."""
        totals: dict[tuple[int, int], int] = {}
        said: list[dict[str, Any]] = []
        for event in self.events:
            if isinstance(event, Points):
                lines = []
                for delta in event.deltas:
                    key = delta.competitor_id, delta.unity_id
                    totals[key] = totals.get(key, 0) + delta.amount
                    ids = {"competitor_id": delta.competitor_id, "unity_id": delta.unity_id}
                    lines.append(ids | {"delta": delta.amount, "total": totals[key]})
                said.append({"lines": lines} if len(lines) <= MESSAGE_LINES_MAX else {"lines_left_out": len(lines)})
        return said


@pytest.mark.parametrize("window_events", [totals.WINDOW_EVENTS_MAX, 4])
async def test_points_show_their_lines_and_the_totals_after_them_the_same_at_each_attempt_also_after_a_restart(
    world: World, receiver: Receiver, calls: Calls, bounds: Bounds, window_events: int
) -> None:
    boards = calls(moments, "board_after")
    bounds(WINDOW_EVENTS_MAX=window_events, SERVED_EVENTS_MAX=3)
    history = History(world)
    webhook_id = await world.add(receiver.url, after=0)
    before = await world.head()
    await world.record(*history.events[:4])
    receiver.statuses = [204] * (before + 3) + [500]
    async with delivering(world.database, NEVER):
        await until(world.has(webhook_id, lambda webhook: webhook.failures == 1))
    await world.record(*history.events[4:])
    await world.resume(webhook_id)
    receiver.statuses = [500, 204] * len(history.events)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    bodies: dict[str, set[bytes]] = {}
    for got in receiver.got:
        bodies.setdefault(got.message_id, set()).add(got.body)
    assert [len(same) for same in bodies.values()] == [1] * len(bodies)
    assert len(receiver.got) > len(bodies) + len(history.events) - 4
    said = [msgspec.json.decode(body)["data"] for (body,) in bodies.values()]
    shown = [{key: data[key] for key in ("lines", "lines_left_out") if key in data} for data in said]
    assert [one for one in shown if one] == history.changes()
    if window_events == 4:
        assert boards  # some of it was far behind
    else:
        assert not boards


async def test_a_webhook_that_is_far_behind_reads_the_past_once_for_each_window(
    world: World, receiver: Receiver, calls: Calls, bounds: Bounds
) -> None:
    bounds(WINDOW_EVENTS_MAX=20, SERVED_EVENTS_MAX=5)
    asked = calls(moments, "board_after")
    await world.happens(*range(100))
    webhook_id = await world.add(receiver.url, after=0)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert [got.json["data"]["lines"][0]["total"] for got in receiver.got[-100:]] == list(accumulate(range(100)))
    assert 0 < len(asked) <= 6


async def test_the_documented_receiver_keeps_all_totals_without_a_token(
    world: World, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = documented(1)
    monkeypatch.setattr(example["Receiver"], "log_message", lambda *_: None)
    with HTTPServer(("127.0.0.1", 0), example["Receiver"]) as server, ThreadPoolExecutor() as threads:
        serving = threads.submit(server.serve_forever)
        try:
            webhook_id = await world.add(f"http://127.0.0.1:{server.server_port}/", after=0)
            monkeypatch.setenv("WEBHOOK_SECRET", world.secrets[webhook_id])
            await world.record(UnityAdded(ranking_id=world.arena.ranking_id, unity_id=UnityId(10**6), name="Wins"))
            await world.happens(1, 2, -5)
            async with delivering(world.database):
                await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
                named = dict(example["competitors"])
                ann = next(one for one, name in named.items() if name == "Ann")
                await world.record(CompetitorErased(competitor_id=ann))
                await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
        finally:
            server.shutdown()
            serving.result()
    assert set(named.values()) == {"Ann", "Bob"}
    assert set(example["competitors"].values()) == {"Bob"}
    assert example["unities"] == {world.arena.unity_id: "Points", 10**6: "Wins"}
    rows = await owner.fetch("SELECT unity_id, competitor_id, total FROM total")
    assert example["totals"] == {(row[0], row[1]): row[2] for row in rows if row[2] != 0}


# ── Kinds ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_webhook_with_kinds_receives_these_and_moves_past_the_others(world: World, receiver: Receiver) -> None:
    webhook_id = await world.add(receiver.url, kinds={"RankingClosed", "CompetitorRegistered"})
    await world.happens(1, 2)
    await world.record(CompetitorRegistered(competitor_id=CompetitorId(10**6), name="Zoe"))
    await world.happens(3)
    await world.record(RankingClosed(ranking_id=world.arena.ranking_id))
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert [got.json["type"] for got in receiver.got] == ["CompetitorRegistered", "RankingClosed"]
    assert receiver.got[0].json["data"]["competitor_id"] == 10**6


async def test_the_cursor_of_a_webhook_moves_on_though_nothing_is_for_it(world: World, receiver: Receiver) -> None:
    webhook_id = await world.add(receiver.url, kinds={"CompetitionAdded"}, after=0)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert (receiver.got, (await world.listed(webhook_id)).delivered_at) == ([], None)


# ── Failures ────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_refused_message_is_sent_again_and_nothing_overtakes_it(world: World, receiver: Receiver) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    receiver.statuses = [204, 500, 404, 429, 204, 503]
    await world.happens(1, 2, 3)
    taken, failed = (figure("tallybook_webhook_requests_total", outcome=o) for o in ("taken", "failed"))
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert receiver.sequences == [first] + [first + 1] * 4 + [first + 2] * 2
    assert len({got.message_id for got in receiver.got}) == 3
    listed = await world.listed(webhook_id)
    assert (listed.state, listed.failures, listed.problem) == (WebhookState.ACTIVE, 0, None)
    assert figure("tallybook_webhook_requests_total", outcome="taken") == taken + 3
    assert figure("tallybook_webhook_requests_total", outcome="failed") == failed + 4


def test_the_pauses_are_those_of_the_specification() -> None:
    hours = [timedelta(hours=h) for h in (2, 5, 10, 14, 20, 24)]
    expected = [timedelta(seconds=5), timedelta(minutes=5), timedelta(minutes=30), *hours]
    assert [timedelta(seconds=seconds) for seconds in PAUSES_SECONDS] == expected


@pytest.mark.one_in(3)
@pytest.mark.parametrize("failures", range(len(PAUSES_SECONDS)))
async def test_after_each_failure_the_pause_is_longer(
    world: World, receiver: Receiver, owner: asyncpg.Connection, failures: int
) -> None:
    webhook_id = await world.add(receiver.url)
    receiver.status = 500
    await owner.execute("UPDATE webhook SET failures = $1", failures)
    await world.happens(1)
    async with delivering(world.database, PAUSES_SECONDS):
        await until(world.has(webhook_id, lambda webhook: webhook.failures == failures + 1))
    left = await owner.fetchval("SELECT extract(epoch FROM due_at - now())::float FROM webhook")
    assert PAUSES_SECONDS[failures] - 4 < left <= PAUSES_SECONDS[failures]
    assert len(receiver.got) == 1
    assert (await world.listed(webhook_id)).problem == "answered 500"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("failures", "asked", "seconds"),
    [
        (0, "600", 600),
        (0, timedelta(seconds=600), 600),
        (3, "600", PAUSES_SECONDS[3]),
        (0, timedelta(seconds=-600), PAUSES_SECONDS[0]),
        (0, "9" * 400, RETRY_AFTER_SECONDS_MAX),
        (0, timedelta(days=40), RETRY_AFTER_SECONDS_MAX),
        *((0, wrong, PAUSES_SECONDS[0]) for wrong in ("soon", "-600", "6e2", "inf", "\u0666\u0660\u0660", "")),
        *(
            (0, f"Fri, 31 Dec {time}", PAUSES_SECONDS[0])
            for time in ("9999 99:99:99 GMT", f"{10**20} 00:00:00 GMT", "0001 00:00:00 -0000")
        ),
    ],
    ids=str,
)
async def test_the_pause_is_at_least_what_the_receiver_asks_for_within_a_bound(
    world: World,
    receiver: Receiver,
    owner: asyncpg.Connection,
    failures: int,
    asked: str | timedelta,
    seconds: float,
) -> None:
    webhook_id = await world.add(receiver.url)
    value = asked if isinstance(asked, str) else format_datetime(datetime.now(UTC) + asked, usegmt=True)
    receiver.status, receiver.headers = 503, {"Retry-After": value}
    await owner.execute("UPDATE webhook SET failures = $1", failures)
    await world.happens(1)
    async with delivering(world.database, PAUSES_SECONDS):
        await until(world.has(webhook_id, lambda webhook: webhook.failures == failures + 1))
    pause = await owner.fetchval("SELECT extract(epoch FROM due_at - now())::float FROM webhook")
    assert seconds - 60 < pause <= seconds


async def test_after_the_last_failure_it_is_parked_and_continues_with_that_event_when_resumed(
    world: World, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    receiver.status = 500
    await world.happens(1, 2)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.state == WebhookState.PARKED))
        assert receiver.sequences == [first] * (1 + len(PAUSES_SECONDS))
        receiver.status = 200
        await world.happens(3)
        other = await world.add(receiver.url)
        await world.happens(4)
        await until(world.has(other, lambda webhook: webhook.behind == 0))  # the parked one had its chance meanwhile
        assert receiver.sequences[10:] == [first + 3]
        parked = await world.listed(webhook_id)
        assert (parked.behind, parked.failures, parked.problem) == (4, 10, "answered 500")
        assert await world.resume(webhook_id) == first - 1
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert receiver.sequences[11:] == [first, first + 1, first + 2, first + 3]


async def test_410_switches_it_off(world: World, receiver: Receiver) -> None:
    webhook_id = await world.add(receiver.url)
    receiver.statuses = [410]
    await world.happens(1)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.state == WebhookState.OFF))
        await world.happens(2)
        other = await world.add(receiver.url)
        await world.happens(3)
        await until(world.has(other, lambda webhook: webhook.behind == 0))
        assert [got.message_id.split("-")[0] for got in receiver.got] == [str(webhook_id), str(other)]
        await world.resume(webhook_id)
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_a_failure_and_is_not_followed(world: World, receiver: Receiver, status: int) -> None:
    async with receiver_on() as elsewhere:
        receiver.statuses, receiver.headers = [status], {"Location": elsewhere.url}
        webhook_id = await world.add(receiver.url)
        await world.happens(1)
        async with delivering(world.database, NEVER):
            await until(world.has(webhook_id, lambda webhook: webhook.failures == 1))
        assert elsewhere.got == []
    assert (await world.listed(webhook_id)).problem == f"answered {status}; redirects are not followed"


async def test_a_receiver_that_is_not_there_is_a_failure(world: World) -> None:
    async with receiver_on() as gone:
        webhook_id = await world.add(gone.url)
    await world.happens(1)
    async with delivering(world.database, NEVER):
        await until(world.has(webhook_id, lambda webhook: webhook.failures == 1))
    assert "cannot connect" in str((await world.listed(webhook_id)).problem)


async def test_a_name_that_nobody_has_is_a_failure(world: World) -> None:
    webhook_id = await world.add("http://nobody.invalid/", allows_private=False)
    await world.happens(1)
    async with delivering(world.database, NEVER):
        await until(world.has(webhook_id, lambda webhook: webhook.failures == 1))


async def test_what_speaks_no_http_is_a_failure(world: World) -> None:
    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        plain = await world.add(f"http://127.0.0.1:{port}/")
        encrypted = await world.add(f"https://127.0.0.1:{port}/")
        await world.happens(1)
        async with delivering(world.database, NEVER):
            for webhook_id in (plain, encrypted):
                await until(world.has(webhook_id, lambda webhook: webhook.failures == 1))
    for webhook_id in (plain, encrypted):
        assert "OpenSSH" not in str((await world.listed(webhook_id)).problem)  # nothing that it says is shown


async def test_an_answer_without_an_end_is_not_read(world: World) -> None:
    closed = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
                await writer.drain()
        closed.set()
        writer.close()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        webhook_id = await world.add(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        await world.happens(1)
        async with delivering(world.database, NEVER):
            await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
            await closed.wait()


# ── A slow receiver ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_receiver_that_does_not_answer_holds_up_nobody_else_and_its_request_ends(
    world: World, receiver: Receiver, bounds: Bounds
) -> None:
    async with receiver_on() as slow:
        slow.open.clear()
        slow_id, other_id = await world.add(slow.url), await world.add(receiver.url)
        async with delivering(world.database, NEVER):
            await world.happens(1)
            await until(lambda: slow.under_way == 1)
            await world.happens(2, 3)  # the tables follow meanwhile
            await until(world.has(other_id, lambda webhook: webhook.behind == 0))
            assert (len(slow.got), len(receiver.got)) == (1, 3)
        bounds(ANSWER_SECONDS_MAX=0.2)
        async with delivering(world.database, NEVER):
            await until(world.has(slow_id, lambda webhook: webhook.failures == 1))
        assert "no answer within" in str((await world.listed(slow_id)).problem)
        assert slow.under_way_max <= 2  # the first one may not have noticed yet that nobody waits for its answer
        assert len({got.message_id for got in slow.got}) == 1


async def test_a_turn_is_bounded_so_that_many_slow_receivers_do_not_keep_another_waiting(
    world: World, receiver: Receiver, bounds: Bounds
) -> None:
    bounds(DELIVERED_AT_ONCE_MAX=1)
    first, second = await world.add(receiver.url), await world.add(receiver.url)
    bounds(SERVED_EVENTS_MAX=1)
    await world.happens(1, 2, 3)
    async with delivering(world.database):
        for webhook_id in (first, second):
            await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert [got.message_id.split("-")[0] for got in receiver.got] == [str(first), str(second)] * 3


# ── Several deliverers ──────────────────────────────────────────────────────────────────────────────────


async def test_of_two_deliverers_one_delivers_and_the_other_takes_over(
    world: World, dsn: str, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    async with open_database(dsn, name="other") as other, delivering(other):
        async with delivering(world.database):
            for n in range(10):
                await world.happens(n)
            await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
        assert receiver.sequences == list(range(first, first + 10))
        assert receiver.under_way_max == 1
        await world.happens(10)
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert receiver.sequences == list(range(first, first + 11))


async def test_a_deliverer_whose_session_ends_in_the_middle_is_taken_over_and_the_event_comes_again(
    world: World, dsn: str, owner: asyncpg.Connection, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    receiver.open.clear()
    async with delivering(world.database):
        await world.happens(1, 2)
        await until(lambda: receiver.under_way == 1)
        async with open_database(dsn, name="other") as other, delivering(other):
            await owner.execute(f"SELECT pg_terminate_backend(pid) FROM ({ADVISORY_LOCKS}) AS held")
            await until(lambda: len(receiver.got) == 2)
            receiver.open.set()
            await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    again, *following = receiver.got[1:]
    assert again.message_id == receiver.got[0].message_id
    assert [got.sequence for got in following] == [again.sequence + 1]


async def test_a_deliverer_that_has_ended_keeps_no_lock(world: World, owner: asyncpg.Connection) -> None:
    async with delivering(world.database):
        await until(lambda: _locks(owner))
    assert await _locks(owner) == 0


async def _locks(owner: asyncpg.Connection) -> int:
    return len(await owner.fetch(ADVISORY_LOCKS))


# ── Where it may lead ───────────────────────────────────────────────────────────────────────────────────

PRIVATE = [
    "0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.2.1", "192.168.1.1", "198.18.0.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00::1", "fec0::1", "ff02::1",
    "2001:db8::1", "2001::1", "64:ff9b::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1",
    "2002:7f00:1::", "2002:a00:1::",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "172.32.0.1", "192.167.255.255", "2606:4700:4700::1111", "::ffff:1.1.1.1",
    "2002:101:101::",
]  # fmt: skip


@pytest.mark.parametrize(("host", "public"), [(h, False) for h in PRIVATE] + [(h, True) for h in PUBLIC])
def test_which_addresses_are_public(host: str, public: bool) -> None:
    assert is_public(host) is public


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "1.1.1.1"), (socket.AF_INET6, "2606:4700:4700::1111")])
def test_the_socket_for_a_public_address_is_of_its_kind(family: socket.AddressFamily, host: str) -> None:
    with public_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, 443))) as made:
        assert (made.family, made.type, made.proto) == (family, socket.SOCK_STREAM, socket.IPPROTO_TCP)


@given(st.ip_addresses(v=4))
def test_an_address_that_stands_for_another_is_as_public_as_that_one(address: IPv4Address) -> None:
    six_to_four = f"2002:{int(address) >> 16:x}:{int(address) & 0xFFFF:x}::"
    assert is_public(str(address)) is is_public(f"::ffff:{address}") is is_public(six_to_four)


PRIVATE_HOSTS = ("127.0.0.1", "localhost", "2130706433", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]")


async def test_a_private_address_is_refused_when_added_and_never_connected_to_however_it_is_written(
    world: World, receiver: Receiver
) -> None:
    urls = [receiver.url.replace("127.0.0.1", host) for host in PRIVATE_HOSTS]
    for url in urls:
        with pytest.raises(Unacceptable) as refused:
            await world.add(url, allows_private=False)
        [fault] = refused.value.faults
        assert (fault.field, "is not a public address" in fault.message) == ("url", True)
    added = [await world.add_then_private(url) for url in urls]  # the name meant another address then
    await world.happens(1)
    async with delivering(world.database, NEVER):
        for webhook_id in added:
            await until(world.has(webhook_id, lambda webhook: webhook.failures == 1))
    assert receiver.got == []


class Answering(AbstractResolver):
    """Answers one list of addresses after the other, and the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in answer
        ]

    async def close(self) -> None:
        pass


NOBODYS = "2d00::1"
"""Public, and given to nobody."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("answer", [["127.0.0.1"], ["127.0.0.1", NOBODYS], [NOBODYS, "127.0.0.1"]])
@pytest.mark.parametrize("allows_private", [False, True])
async def test_of_a_name_with_several_addresses_the_private_ones_are_never_connected_to(
    world: World, receiver: Receiver, answer: list[str], allows_private: bool
) -> None:
    url = receiver.url.replace("127.0.0.1", "hook.example")
    webhook_id = await world.add(url, allows_private=allows_private)
    await world.happens(1)
    async with delivering(world.database, NEVER, Answering(answer)):
        await until(world.has(webhook_id, lambda webhook: webhook.failures == 1 or webhook.behind == 0))
    listed = await world.listed(webhook_id)
    assert (len(receiver.got), listed.behind == 0) == ((1, True) if allows_private else (0, False))
    if not allows_private:
        assert "127.0.0.1 is not a public address" in str(listed.problem)


async def test_a_name_that_means_another_address_each_time_it_is_asked_leads_to_no_private_one(
    world: World, receiver: Receiver, bounds: Bounds
) -> None:
    bounds(CONNECTING_SECONDS_MAX=0.2)  # nobody answers at NOBODYS, nor refuses
    url = receiver.url.replace("127.0.0.1", "hook.example")
    webhook_id = await world.add(url, allows_private=False)
    await world.happens(1)
    resolver = Answering([NOBODYS], ["127.0.0.1"], [NOBODYS], ["127.0.0.1"])
    async with delivering(world.database, NO_PAUSES[:3], resolver):
        await until(world.has(webhook_id, lambda webhook: webhook.state == WebhookState.PARKED))
    assert (receiver.got, resolver.asked) == ([], 4)


async def test_a_connection_to_a_private_address_is_not_used_for_a_webhook_that_may_not_lead_there(
    world: World, receiver: Receiver
) -> None:
    allowed = await world.add(receiver.url)
    async with delivering(world.database, NEVER):
        await world.happens(1)
        await until(world.has(allowed, lambda webhook: webhook.behind == 0))
        refused = await world.add_then_private(receiver.url)
        await world.happens(2)
        await until(world.has(refused, lambda webhook: webhook.failures == 1))
        await until(world.has(allowed, lambda webhook: webhook.behind == 0))
    assert {got.message_id.split("-")[0] for got in receiver.got} == {str(allowed)}


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("ftp://example.org/", "must begin with"),
        ("example.org", "must begin with"),
        ("https:///hook", "must begin with"),
        ("https://example.org:99999/", "is not an address"),
        ("https://me@example.org/", "user name or password"),
        ("https://:secret@example.org/", "user name or password"),
        ("https://example.org/#part", "fragment"),
        ("https://" + "x" * 64 + ".org/", "cannot exist"),
        ("https://" + "x." * 127 + "org/", "cannot exist"),
        ("https://example..org/", "cannot exist"),
        ("https://" + "x" * 63 + ".example.org./", None),
        ("https://example.org/a b", "printable"),
        ("https://exämple.org/", "printable"),
        ("https://example.org/\n", "printable"),
        ("https://example.org/" + "x" * (URL_CHARACTERS_MAX - 19), "at most"),
        ("https://example.org/" + "x" * (URL_CHARACTERS_MAX - 20), None),
        ("http://[::1]:8080/hook?for=all", None),
    ],
)
def test_what_is_taken_as_an_address(url: str, fault: str | None) -> None:
    found = url_fault(url)
    assert found == fault if fault is None else fault in str(found)


# ── What operators do meanwhile ─────────────────────────────────────────────────────────────────────────


async def test_what_an_operator_moves_while_a_request_is_under_way_stays_moved(
    world: World, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    await world.happens(1, 2, 3)
    receiver.open.clear()
    async with delivering(world.database):
        await until(lambda: receiver.under_way == 1)
        assert await world.resume(webhook_id, after=first + 1) == first + 1
        receiver.open.set()
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert receiver.sequences == [first, first + 2]


async def test_one_that_is_resumed_while_its_last_attempt_is_under_way_is_not_parked(
    world: World, receiver: Receiver, owner: asyncpg.Connection
) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    await world.happens(1)
    await owner.execute("UPDATE webhook SET failures = $1", len(PAUSES_SECONDS))
    receiver.status = 500
    receiver.open.clear()
    async with delivering(world.database):
        await until(lambda: receiver.under_way == 1)
        await world.resume(webhook_id)
        receiver.open.set()
        await until(lambda: receiver.under_way == 0)
        receiver.status = 200
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert set(receiver.sequences) == {first}


async def test_one_that_is_removed_while_a_request_is_under_way_gets_no_other(world: World, receiver: Receiver) -> None:
    webhook_id, other = await world.add(receiver.url), await world.add(receiver.url)
    await world.happens(1, 2)
    receiver.open.clear()
    async with delivering(world.database):
        await until(lambda: receiver.under_way == 2)
        async with world.database.connection() as connection:
            await webhooks.remove_webhook(connection, world.tournament_id, webhook_id)
        receiver.open.set()
        await until(world.has(other, lambda webhook: webhook.behind == 0))
    ids = [got.message_id.split("-")[0] for got in receiver.got]
    assert (ids.count(str(webhook_id)), ids.count(str(other))) == (1, 2)


async def test_a_replaced_secret_signs_as_well_for_a_day(
    world: World, owner: asyncpg.Connection, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    old = world.secrets[webhook_id]
    async with world.database.connection() as connection:
        new = secret_text(await webhooks.rotate_secret(connection, world.tournament_id, webhook_id))
    async with delivering(world.database):
        await world.happens(1)
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
        await owner.execute(f"UPDATE webhook SET old_secret_until = {moved('old_secret_until', '-24 hours')}")
        await world.happens(2)
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    both, one = receiver.got
    assert verify(old, both.headers, both.body) == verify(new, both.headers, both.body) == both.message_id
    assert verify(new, one.headers, one.body) == one.message_id
    with pytest.raises(ValueError, match="not from Tallybook"):
        verify(old, one.headers, one.body)


async def test_the_number_of_webhooks_is_limited(world: World, bounds: Bounds) -> None:
    bounds(WEBHOOKS_MAX=2)
    first = await world.add("https://example.org/1")
    await world.add("https://example.org/2")
    with pytest.raises(Conflict, match="already 2 webhooks"):
        await world.add("https://example.org/3")
    async with world.database.connection() as connection:
        await webhooks.remove_webhook(connection, world.tournament_id, first)
    await world.add("https://example.org/3")


async def test_faults_are_named_and_nothing_is_added(world: World) -> None:
    with pytest.raises(Unacceptable) as refused:
        await world.add("ftp://example.org/", kinds={"PointsAdded", "Points", "Added"})
    assert [fault.field for fault in refused.value.faults] == ["url", "kinds", "kinds"]
    with pytest.raises(Unacceptable):
        await world.add("https://example.org/", kinds=set())
    with pytest.raises(Conflict, match="nothing follows"):
        await world.add("https://example.org/", after=await world.head() + 1)
    webhook_id = await world.add("https://example.org/", after=await world.head())
    with pytest.raises(Conflict, match="nothing follows"):
        await world.resume(webhook_id, after=await world.head() + 1)
    with pytest.raises(NotFound):
        await world.resume(WebhookId(webhook_id + 1))


# ── Trying one ──────────────────────────────────────────────────────────────────────────────────────────


async def test_a_test_message_is_sent_at_once_whatever_the_state_and_changes_nothing(
    season: Season, service: Service, owner: asyncpg.Connection, receiver: Receiver
) -> None:
    slug, database = season.client.tournament, service.database
    async with database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
        assert tournament_id
        webhook_id, head, secret = await webhooks.add_webhook(
            connection, tournament_id, receiver.url, kinds={"RankingClosed"}, allows_private=True, after=None
        )
    path = f"webhook/{webhook_id}/test.json"
    receiver.statuses = [204, 410]
    for state, answered, problem in ((WebhookState.PARKED, 204, None), (WebhookState.OFF, 410, "answered 410")):
        await owner.execute("UPDATE webhook SET state = $1, failures = 7", state)
        before = await owner.fetchrow("SELECT * FROM webhook")
        answer = await season.client.post(path)
        assert answer.status == 200
        assert answer.json["test"] == {"accepted": problem is None, "answered": answered, "problem": problem}
        assert await owner.fetchrow("SELECT * FROM webhook") == before
        got = receiver.got[-1]
        assert verify(secret_text(secret), got.headers, got.body) == got.message_id
        assert got.json["type"] == got.json["data"]["id"] == "test"
        assert got.sequence == head
        assert verify_webhook(secret_text(secret), got.headers, got.body).data.tournament == slug
    assert len({got.message_id for got in receiver.got}) == 2
    writer = service.client(slug, await make_token(database, Scope.WRITE))
    assert (await writer.post(path)).status == 403
    assert (await season.client.post(f"webhook/{webhook_id + 1}/test.json")).status == 404
    assert (await season.client.post(path, {"url": "https://example.org"})).status == 422
    assert len(receiver.got) == 2


async def test_a_process_waits_for_a_bounded_number_of_tests_at_once(
    season: Season, service: Service, receiver: Receiver
) -> None:
    async with service.database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, season.client.tournament)
        assert tournament_id
        webhook_id, *_ = await webhooks.add_webhook(
            connection, tournament_id, receiver.url, kinds=None, allows_private=True, after=None
        )
    path = f"webhook/{webhook_id}/test.json"
    receiver.open.clear()
    waiting = [asyncio.create_task(season.client.post(path)) for _ in range(TESTS_AT_ONCE_MAX)]
    await until(lambda: receiver.under_way == TESTS_AT_ONCE_MAX)
    assert (await season.client.post(path)).status == 503
    receiver.open.set()
    assert {(await answer).status for answer in waiting} == {200}
    assert (await season.client.post(path)).status == 200


# ── The log and its tables ──────────────────────────────────────────────────────────────────────────────


async def test_nothing_is_sent_of_an_event_that_cannot_be_folded_until_it_is_set_aside(
    world: World, owner: asyncpg.Connection, receiver: Receiver, bounds: Bounds
) -> None:
    bounds(STOPPED_RETRY_SECONDS=0.0)
    webhook_id = await world.add(receiver.url)
    await world.happens(1)
    sequence = await poison(owner, world.arena, "unknown tag")
    await Worker(world.database).catch_up()
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 1))
        assert len(receiver.got) == 1
        await set_aside(world.database, world.tournament_id, sequence)
        await Worker(world.database).catch_up()
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert [got.json["type"] for got in receiver.got] == ["PointsAdded", "set-aside", "EventSetAside"]
    assert receiver.sequences == [sequence - 1, sequence, sequence + 1]


async def test_a_webhook_of_another_log_is_parked(world: World, owner: asyncpg.Connection, receiver: Receiver) -> None:
    webhook_id = await world.add(receiver.url)
    await owner.execute("UPDATE webhook SET digest = sha256(digest)")
    await world.happens(1)
    async with delivering(world.database):
        await until(world.has(webhook_id, lambda webhook: webhook.state == WebhookState.PARKED))
        assert receiver.got == []
        await world.resume(webhook_id, after=await world.head() - 1)
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
    assert len(receiver.got) == 1


# ── Figures ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_figures_say_how_many_there_are_and_how_far_the_slowest_is_behind(
    world: World, receiver: Receiver, bounds: Bounds
) -> None:
    bounds(FIGURES_SECONDS=0.0)
    receiver.status = 410
    await world.add(receiver.url, after=0)
    async with receiver_on() as slow:
        slow.open.clear()
        await world.add(slow.url)
        await world.happens(1, 2, 3)
        async with delivering(world.database):
            await until(lambda: figure("tallybook_webhooks", state="off") == 1)
            assert figure("tallybook_webhooks", state="active") == 1
            assert figure("tallybook_webhooks_behind") == 3
    assert [figure("tallybook_webhooks", state=state) for state in WebhookState] == [0, 0, 0]
    assert figure("tallybook_webhooks_behind") == 0


# ── Processes ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_worker_that_is_killed_after_a_receiver_took_a_message_is_taken_over_and_sends_it_again(
    world: World, dsn: str, tmp_path: Path, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    await world.happens(1, 2, 3, 4)
    told = {"TALLYBOOK_DATABASE_URL": dsn}
    with started(tmp_path, "worker", **told, TALLYBOOK_FAIL_AT="webhook-taken:3") as killed:
        assert await killed.ended() == -signal.SIGKILL
    assert receiver.sequences == [first, first + 1, first + 2]
    with started(tmp_path, "worker", **told) as worker:
        await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
        assert await worker.stopped() == 0
    assert receiver.sequences[3:] == [first + 2, first + 3]
    assert receiver.got[2].message_id == receiver.got[3].message_id


@pytest.mark.long
async def test_a_worker_that_is_paused_is_taken_over_and_sends_nothing_more_when_it_continues(
    world: World, dsn: str, tmp_path: Path, owner: asyncpg.Connection, receiver: Receiver
) -> None:
    webhook_id = await world.add(receiver.url)
    first = await world.head() + 1
    with started(tmp_path, "serve", TALLYBOOK_DATABASE_URL=dsn, TALLYBOOK_PORT="0") as service:
        await service.address()
        await until(lambda: _locks(owner))
        (paused,) = await service.started_pids("worker")
        os.kill(paused, signal.SIGSTOP)
        await world.happens(1, 2)
        async with delivering(world.database):
            await until(world.has(webhook_id, lambda webhook: webhook.behind == 0), SILENT_SESSION_SECONDS_MAX + 20)
            os.kill(paused, signal.SIGCONT)
            await service.has_said("webhooks_interrupted")
            await world.happens(3)
            await until(world.has(webhook_id, lambda webhook: webhook.behind == 0))
        assert await service.stopped() == 0
    assert receiver.sequences == [first, first + 1, first + 2]


@only_distributed
async def test_while_there_is_no_webhook_nobody_asks_all_shards_for_what_is_due(
    database: Database, calls: Calls, bounds: Bounds
) -> None:
    bounds(DUE_IN_ALL_SHARDS_SECONDS=0.01, FIGURES_SECONDS=0.1)
    due, figures = calls(webhooks, "due_webhooks"), calls(webhooks, "webhook_figures")
    delivering_none = asyncio.create_task(deliverer.Deliverer(database).run())
    try:
        await until(lambda: len(figures) >= 3)
    finally:
        delivering_none.cancel()
        await asyncio.wait([delivering_none])
    assert due == []
