"""Tokens: what they look like, what is kept of them, and how long an answer about one counts."""

import asyncio
import gc
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from api.access import auth
from api.access.auth import (
    BASE62,
    KEPT_SECONDS_MAX,
    RENEWED_SECONDS,
    SECRET_CHARACTERS,
    Guard,
    Scope,
    Token,
    well_formed,
)
from engine.database.pool import Database
from engine.domain.errors import DatabaseUnavailable, Unacceptable, Unauthenticated
from engine.domain.terms import ActorId, TournamentId
from tests.bounds import Bounds
from tests.clock import Clock

secrets = st.text(BASE62, min_size=SECRET_CHARACTERS, max_size=SECRET_CHARACTERS)
UNKNOWN = auth.text_of("0" * SECRET_CHARACTERS)


class Turnstile(Database):
    """The database, where connections taken are counted and can be held up."""

    def __init__(self, database: Database) -> None:
        super().__init__(database._pool, database.epoch)
        self.taken = 0
        self.somebody_waits = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        self.taken += 1
        self.somebody_waits.set()
        await self.open.wait()
        async with super().connection() as connection:
            yield connection


@pytest.fixture
def turnstile(database: Database) -> Turnstile:
    return Turnstile(database)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(turnstile: Turnstile, clock: Clock) -> Guard:
    return Guard(turnstile, clock=clock)


async def made(database: Database, **facts: Any) -> tuple[Token, str]:
    usual: dict[str, Any] = {"name": "scorer", "scope": Scope.WRITE, "tournament_ids": None, "expires_in_days": None}
    async with database.connection() as connection:
        return await auth.create(connection, **usual | facts)


async def revoked(database: Database, token_id: int) -> bool:
    async with database.connection() as connection:
        return await auth.revoke(connection, ActorId(token_id)) is not None


async def refusal(guard: Guard, authorization: str | None) -> str:
    with pytest.raises(Unauthenticated) as caught:
        await guard.token_of(authorization)
    return caught.value.message


# ── The text of a token ─────────────────────────────────────────────────────────────────────────────────


@given(secrets)
def test_every_text_is_well_formed(secret: str) -> None:
    text = auth.text_of(secret)
    assert well_formed(text)
    assert len(text) == 39
    assert text.startswith(f"tb_{secret}")


@given(secrets, st.integers(0, 38), st.characters())
def test_a_single_wrong_character_is_noticed(secret: str, index: int, other: str) -> None:
    text = auth.text_of(secret)
    assume(text[index] != other)
    assert not well_formed(text[:index] + other + text[index + 1 :])


@given(st.text(BASE62, min_size=36, max_size=36))
def test_a_random_text_has_not_the_checksum_by_its_shape_alone(tail: str) -> None:
    assert well_formed(f"tb_{tail}") == (auth.text_of(tail[:30]) == f"tb_{tail}")


def test_the_text_is_spelled_as_it_has_been_since_the_first_token() -> None:
    assert UNKNOWN == "tb_0000000000000000000000000000002KWTDB"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tb_",
        UNKNOWN[:-1],
        f"{UNKNOWN}0",
        f"{UNKNOWN}\n",
        f" {UNKNOWN}",
        UNKNOWN.upper(),
        "tb_" + "\u0660" * 36,
        "\udcff",
    ],
)
def test_other_shapes_are_not_well_formed(text: str) -> None:
    assert not well_formed(text)


# ── Making, listing, revoking ───────────────────────────────────────────────────────────────────────────


async def test_a_new_token_is_as_it_was_asked_for(database: Database) -> None:
    token, text = await made(
        database, name="  Anna's phone ", scope=Scope.READ, tournament_ids=[7, 3, 7], expires_in_days=30
    )
    assert well_formed(text)
    assert (token.name, token.scope, token.tournament_ids) == ("Anna's phone", Scope.READ, frozenset({3, 7}))
    assert token.created_at.utcoffset() == timedelta(0)
    assert token.expires_at == token.created_at + timedelta(days=30)
    assert token.revoked_at is None
    assert token.token_id > 0


async def test_only_the_hash_of_the_text_is_stored(database: Database) -> None:
    token, text = await made(database)
    async with database.connection() as connection:
        row = await connection.fetchrow("SELECT * FROM token WHERE token_id = $1", token.token_id)
    assert row["hash"] == hashlib.sha256(text.encode()).digest()
    assert text[3:] not in repr(row)


async def test_no_two_tokens_have_the_same_text(database: Database) -> None:
    assert len({(await made(database))[1] for _ in range(20)}) == 20


async def test_what_cannot_be_made_is_refused_with_every_fault(database: Database, subtests: pytest.Subtests) -> None:
    for facts, fields in [
        ({"name": " "}, ["name"]),
        ({"name": "x" * 256}, ["name"]),
        ({"name": "a\0b"}, ["name"]),
        ({"expires_in_days": 0}, ["expires_in_days"]),
        ({"expires_in_days": -1}, ["expires_in_days"]),
        ({"expires_in_days": 36_501}, ["expires_in_days"]),
        ({"name": "", "expires_in_days": 0}, ["name", "expires_in_days"]),
    ]:
        with subtests.test(str(facts)):
            with pytest.raises(Unacceptable) as caught:
                await made(database, **facts)
            assert [fault.field for fault in caught.value.faults] == fields


@pytest.mark.parametrize("facts", [{"name": "x" * 255}, {"expires_in_days": 1}, {"expires_in_days": 36_500}])
async def test_the_limits_themselves_are_accepted(database: Database, facts: dict[str, Any]) -> None:
    token, _ = await made(database, **facts)
    assert token.token_id > 0


async def test_tokens_are_listed_from_the_oldest_and_stay_when_revoked(database: Database) -> None:
    first, _ = await made(database, scope=Scope.ADMIN)
    second, _ = await made(database, tournament_ids=[])
    assert await revoked(database, first.token_id)
    async with database.connection() as connection:
        tokens = await auth.listed(connection)
    assert [token.token_id for token in tokens] == [first.token_id, second.token_id]
    assert tokens[0].revoked_at is not None
    assert tokens[1] == second


async def test_only_a_token_that_is_in_force_can_be_revoked(database: Database) -> None:
    token, _ = await made(database)
    answers = [await revoked(database, n) for n in (token.token_id, token.token_id, token.token_id + 1, 0, -1, 2**63)]
    assert answers == [True, False, False, False, False, False]


def test_scopes_grow_from_score_to_admin() -> None:
    assert Scope.SCORE < Scope.READ < Scope.WRITE < Scope.ADMIN
    assert [scope.text for scope in Scope] == ["score", "read", "write", "admin"]


@pytest.mark.parametrize(("bound_to", "allowed"), [(None, True), ([], False), ([4, 5], True), ([4], False)])
async def test_a_token_is_for_the_tournaments_it_is_bound_to(
    database: Database, bound_to: list[int] | None, allowed: bool
) -> None:
    token, _ = await made(database, tournament_ids=bound_to)
    assert token.allows(TournamentId(5)) is allowed


# ── Who is let in ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "bEaReR"])
async def test_a_good_token_is_let_in(guard: Guard, database: Database, scheme: str) -> None:
    token, text = await made(database, tournament_ids=[5])
    assert await guard.token_of(f"{scheme} {text}") == token


async def test_what_is_not_a_token_is_refused_without_a_query(
    guard: Guard, turnstile: Turnstile, subtests: pytest.Subtests
) -> None:
    for header in [
        None,
        "",
        "Bearer",
        "Bearer ",
        UNKNOWN,
        f"Basic {UNKNOWN}",
        f"Bearer  {UNKNOWN}",
        f" Bearer {UNKNOWN}",
        f"Bearer\t{UNKNOWN}",
        f"Bearer {UNKNOWN} ",
        f"Bearer {UNKNOWN}\n",
        f"Bearer {UNKNOWN},{UNKNOWN}",
        f"Bearer {UNKNOWN[:-1]}0",
        f"Bearer TB_{UNKNOWN[3:]}",
        "Bearer tb_\udcff",
        "Bearer tb_" + "0" * 100_000,
    ]:
        with subtests.test(ascii(header)):
            assert guard.kept(header) is None
            await refusal(guard, header)
            assert turnstile.taken == 0


async def test_a_refusal_tells_nothing_about_the_token(turnstile: Turnstile) -> None:
    revoked_token, revoked_text = await made(turnstile)
    await revoked(turnstile, revoked_token.token_id)
    _, expired_text = await made(turnstile, expires_in_days=1)
    guard = Guard(turnstile, now=lambda: datetime.now(UTC) + timedelta(days=2))
    headers = [None, "Bearer x", *(f"Bearer {text}" for text in (UNKNOWN, revoked_text, expired_text))]
    sentences = {await refusal(guard, header) for header in headers}
    assert len(sentences) == 1
    assert "tb_" not in sentences.pop()


# ── How long an answer counts ───────────────────────────────────────────────────────────────────────────


async def test_an_answer_is_kept_for_four_seconds(guard: Guard, turnstile: Turnstile, clock: Clock) -> None:
    token, text = await made(turnstile)
    header, before = f"Bearer {text}", turnstile.taken
    assert guard.kept(header) is None
    await guard.token_of(header)
    clock.seconds += KEPT_SECONDS_MAX - 0.1
    assert guard.kept(header) == await guard.token_of(header) == token
    assert turnstile.taken == before + 1
    clock.seconds += 0.1
    assert guard.kept(header) is None
    assert await guard.token_of(header) == token
    assert turnstile.taken == before + 2


async def test_for_a_token_in_use_nobody_waits_again(guard: Guard, turnstile: Turnstile, clock: Clock) -> None:
    token, text = await made(turnstile)
    header = f"Bearer {text}"
    await guard.token_of(header)
    before = turnstile.taken
    turnstile.open.clear()
    clock.seconds += RENEWED_SECONDS
    assert guard.kept(header) == guard.kept(header) == token
    await turnstile.somebody_waits.wait()
    turnstile.open.set()
    clock.seconds += KEPT_SECONDS_MAX - RENEWED_SECONDS
    assert guard.kept(header) is None, "it is no older than it says"
    assert await guard.token_of(header) == token
    assert turnstile.taken == before + 1
    await revoked(turnstile, token.token_id)
    clock.seconds += RENEWED_SECONDS - 1
    assert guard.kept(header) == token
    await settled(guard)
    assert guard.kept(header) is None


async def settled(guard: Guard) -> None:
    """Returns when all look-ups have been answered."""
    while guard._looking_up.under_way:
        await asyncio.wait(guard._looking_up.under_way.values())


async def test_a_revoked_token_is_refused_once_its_answer_is_too_old(
    guard: Guard, database: Database, clock: Clock
) -> None:
    token, text = await made(database)
    await guard.token_of(f"Bearer {text}")
    await revoked(database, token.token_id)
    clock.seconds += KEPT_SECONDS_MAX
    await refusal(guard, f"Bearer {text}")
    clock.seconds -= KEPT_SECONDS_MAX
    assert guard.kept(f"Bearer {text}") is None, "what has been found bad must not be kept beside it"


async def test_the_age_of_an_answer_counts_from_the_start_of_its_look_up(
    guard: Guard, database: Database, turnstile: Turnstile, clock: Clock
) -> None:
    _, text = await made(database)
    turnstile.open.clear()
    asking = asyncio.create_task(guard.token_of(f"Bearer {text}"))
    await turnstile.somebody_waits.wait()
    clock.seconds += 3
    late = asyncio.create_task(guard.token_of(f"Bearer {text}"))
    turnstile.open.set()
    assert await asking == await late
    assert turnstile.taken == 1
    clock.seconds += 0.9
    assert guard.kept(f"Bearer {text}") is not None
    clock.seconds += 0.1
    assert guard.kept(f"Bearer {text}") is None


async def test_a_bad_answer_is_never_kept(guard: Guard, turnstile: Turnstile) -> None:
    for asked in (1, 2, 3):
        await refusal(guard, f"Bearer {UNKNOWN}")
        assert turnstile.taken == asked


async def test_expiry_is_judged_at_each_use(turnstile: Turnstile) -> None:
    token, text = await made(turnstile, expires_in_days=1)
    assert token.expires_at is not None
    times = [token.expires_at - timedelta(microseconds=1)]
    guard = Guard(turnstile, clock=Clock(), now=lambda: times[-1])
    assert await guard.token_of(f"Bearer {text}") == guard.kept(f"Bearer {text}") == token
    times.append(token.expires_at)
    assert guard.kept(f"Bearer {text}") is None
    await refusal(guard, f"Bearer {text}")


async def test_a_token_that_expires_while_it_is_looked_up_is_refused(turnstile: Turnstile, database: Database) -> None:
    token, text = await made(database, expires_in_days=1)
    assert token.expires_at is not None
    times = [token.created_at]
    guard = Guard(turnstile, now=lambda: times[-1])
    turnstile.open.clear()
    asking = asyncio.create_task(refusal(guard, f"Bearer {text}"))
    await turnstile.somebody_waits.wait()
    times.append(token.expires_at)
    turnstile.open.set()
    await asking


async def test_the_oldest_answer_gives_way(guard: Guard, database: Database, bounds: Bounds) -> None:
    bounds(TOKENS_KEPT_MAX=3)
    headers = [f"Bearer {(await made(database))[1]}" for _ in range(5)]
    for header in headers:
        await guard.token_of(header)
    assert [guard.kept(header) is not None for header in headers] == [False, False, True, True, True]


async def test_an_answer_used_again_is_no_longer_the_oldest(
    guard: Guard, database: Database, clock: Clock, bounds: Bounds
) -> None:
    bounds(TOKENS_KEPT_MAX=2)
    first, second, third = [f"Bearer {(await made(database))[1]}" for _ in range(3)]
    await guard.token_of(first)
    clock.seconds += KEPT_SECONDS_MAX
    for header in (second, first, third):
        await guard.token_of(header)
    assert [guard.kept(header) is not None for header in (first, second, third)] == [True, False, True]


# ── Look-ups that are shared ────────────────────────────────────────────────────────────────────────────


async def test_those_who_ask_at_once_share_one_query(guard: Guard, database: Database, turnstile: Turnstile) -> None:
    token, text = await made(database)
    tokens = await asyncio.gather(*(guard.token_of(f"Bearer {text}") for _ in range(50)))
    assert tokens == [token] * 50
    assert turnstile.taken == 1


async def test_guesses_take_few_connections_and_all_are_refused(turnstile: Turnstile) -> None:
    guard = Guard(turnstile)
    turnstile.open.clear()
    guesses = [asyncio.create_task(refusal(guard, f"Bearer {auth.text_of(f'{n:030}')}")) for n in range(50)]
    await turnstile.somebody_waits.wait()
    assert turnstile.taken <= auth.LOOKUPS_AT_ONCE_MAX
    turnstile.open.set()
    await asyncio.gather(*guesses)


async def test_the_first_who_asks_may_go_away(guard: Guard, database: Database, turnstile: Turnstile) -> None:
    token, text = await made(database)
    turnstile.open.clear()
    first = asyncio.create_task(guard.token_of(f"Bearer {text}"))
    await turnstile.somebody_waits.wait()
    second = asyncio.create_task(guard.token_of(f"Bearer {text}"))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    turnstile.open.set()
    assert await second == token
    assert turnstile.taken == 1


async def test_trouble_with_the_database_is_no_answer(guard: Guard, database: Database) -> None:
    token, text = await made(database)
    async with database.connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE token")  # Look-ups wait for it until their lock_timeout.
        asking = [asyncio.create_task(guard.token_of(f"Bearer {text}")) for _ in range(2)]
        outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [DatabaseUnavailable] * 2
    assert guard.kept(f"Bearer {text}") is None
    assert await guard.token_of(f"Bearer {text}") == token


async def test_trouble_is_not_complained_of_when_all_who_asked_have_gone(
    guard: Guard, database: Database, turnstile: Turnstile
) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    turnstile.open.clear()
    async with database.connection() as connection, connection.transaction():
        await connection.execute("LOCK TABLE token")
        others = asyncio.all_tasks()
        asking = asyncio.create_task(guard.token_of(f"Bearer {UNKNOWN}"))
        await turnstile.somebody_waits.wait()
        asking.cancel()
        turnstile.open.set()
        await asyncio.wait(asyncio.all_tasks() - others)
    del asking
    gc.collect()
    assert complaints == []
