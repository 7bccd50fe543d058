"""A tournament is deleted by the owner alone, after an export; and that it was there is kept for ever."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
from aiohttp import ClientResponse

from engine.domain.terms import OPERATOR, TournamentId
from projections.tables.worker import Worker
from tests.api.asking import refused
from tests.api.cli.conftest import Tallybook
from tests.desks import until
from tests.poison import append_text
from tests.service import Client, Service, make_token, play_season, serve, slug_of
from tests.tampering import unguarded
from tests.tournaments import open_new_tournament

KEPT = ("deleted_tournament", "token", "session", "migration")
_TABLES = """
    SELECT c.relname
    FROM pg_class AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tournament_id'
    WHERE c.relnamespace = 'tallybook'::regnamespace AND c.relkind = 'r'
"""


@asynccontextmanager
async def played(dsn: str) -> AsyncIterator[tuple[Service, Client, TournamentId]]:
    """A client of a running service, with a tournament of which there is something in every table."""
    async with serve(dsn) as service:
        tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
        client = service.client(await slug_of(service.database, tournament_id), await make_token(service.database))
        season = await play_season(client)
        await client.put("publication.json", {"published": "true"})
        await client.put(f"{season.path}/close.json", headers={"Idempotency-Key": "one"})
        await client.put(f"{season.path}/close.json", headers={"Idempotency-Key": "two"})  # refused
        await client.post("tickets.json")
        await Worker(service.database).catch_up()
        yield service, client, tournament_id


def followed(client: Client) -> AbstractAsyncContextManager[ClientResponse]:
    """The stream of the tournament."""
    address, headers = (
        f"{client._url}/tournament/{client.tournament}/events",
        {"Authorization": f"Bearer {client.token}"},
    )
    return client._session.get(address, headers=headers)


async def rows_of(owner: asyncpg.Connection, tournament_id: TournamentId) -> set[str]:
    """The tables that have rows of the tournament."""
    names = [row[0] for row in await owner.fetch(_TABLES)]
    found = set()
    for name in names:
        if await owner.fetchval(f"SELECT EXISTS (SELECT FROM {name} WHERE tournament_id = $1)", tournament_id):
            found.add(name)
    return found


async def test_nothing_of_it_is_left_but_that_it_was_there(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    file = tmp_path / "season.archive"
    async with played(dsn) as (service, client, tournament_id):
        slug = client.tournament
        await tallybook.done("webhook", "add", slug, "https://example.com/hook")
        bound = await make_token(service.database, tournament_ids=[tournament_id])
        others = await open_new_tournament(service.database, actor=OPERATOR)
        before = await rows_of(owner, others)
        head = await owner.fetchrow("SELECT sequence, digest FROM head WHERE tournament_id = $1", tournament_id)
        await tallybook.done("tournament", "export", slug, "--output", str(file))
        there = await rows_of(owner, tournament_id)
        assert {
            "block",
            "personal",
            "idempotency",
            "refusal",
            "append_lock",
            "webhook",
            "ticket",
            "publication",
        } <= there

        async with followed(client) as stream:
            told = await tallybook.done("tournament", "delete", slug, "--archive", str(file))
            assert "would be deleted" in told
            assert await rows_of(owner, tournament_id) == there
            told = await tallybook.done("tournament", "delete", slug, "--archive", str(file), "--yes")
            assert "is deleted" in told
            async for _ in stream.content:
                pass  # it ends

        assert await rows_of(owner, tournament_id) == {"deleted_tournament"}
        noted = await owner.fetchrow("SELECT * FROM deleted_tournament")
        assert (noted["slug"], noted["sequence"], noted["digest"]) == (slug, *head)
        assert noted["exported"]
        await until(lambda: _is_gone(client))
        assert (await client.post("competitors.json", {"name": "Eve"})).status == 404
        assert (await client.send("GET", f"/board/{slug}")).status == 404
        assert await rows_of(owner, others) == before
        assert await owner.fetchval("SELECT count(*) FROM token WHERE revoked_at IS NOT NULL") == 1
        assert bound
        await Worker(service.database).catch_up()
        assert await rows_of(owner, tournament_id) == {"deleted_tournament"}
    verified = await tallybook("verify")
    assert verified.code == 0, verified.out


@pytest.mark.parametrize("form", [{}, {"parent": "99"}], ids=["accepted before", "refused before"])
@pytest.mark.parametrize("key", [None, "one"])
async def test_the_first_changes_after_a_deletion_are_answered_404(
    dsn: str, tallybook: Tallybook, tmp_path: Path, form: dict[str, str], key: str | None
) -> None:
    file = tmp_path / "old.archive"
    async with serve(dsn) as service:
        tournament_id = await open_new_tournament(service.database, actor=OPERATOR)
        client = service.client(await slug_of(service.database, tournament_id), await make_token(service.database))

        async def changed(number: int) -> int:
            headers = {} if key is None else {"Idempotency-Key": f"{key}-{number}"}
            return (await client.post("competitors.json", {"name": "Eve", **form}, headers=headers)).status

        assert await changed(0) == (422 if form else 200)
        await tallybook.done("tournament", "export", client.tournament, "--output", str(file))
        await tallybook.done("tournament", "delete", client.tournament, "--archive", str(file), "--yes")
        statuses = await asyncio.gather(*(changed(number) for number in range(1, 6)))
        assert 404 in statuses
        assert set(statuses) <= {404, 503}  # 503: it was under way when the first one met the deletion
        assert await changed(6) == 404


async def _is_gone(client: Client) -> bool:
    return (await client.get("competitors.json")).status == 404


async def test_what_is_deleted_over_http_is_gone_for_all_at_once_until_the_operator_restores_it(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    async with played(dsn) as (service, client, tournament_id), serve(dsn) as second:
        slug, again = client.tournament, {"Content-Type": "application/json", "Idempotency-Key": "7"}
        bound = service.client(slug, await make_token(service.database, tournament_ids=[tournament_id]))
        there = second.client(slug, client.token)

        async def seen_by(one: Client) -> list[int]:
            paths = f"/board/{slug}", f"/board/{slug}/tournament.json", f"/tournament/{slug}/events"
            return [
                (await one.get("competitors.json")).status,
                *[(await one.send("HEAD", path)).status for path in paths],
                (await one.post("competitors.json", {"name": "Eve"})).status,
            ]

        assert [await seen_by(one) for one in (client, there, bound)] == [[200] * 5] * 3
        refused(await bound.put("delete.json", {"slug": slug}), 403)
        refused(await client.put("delete.json", {"slug": "summer"}), 422, "slug")
        head = await owner.fetchval("SELECT sequence FROM head WHERE tournament_id = $1", tournament_id)
        async with followed(client) as here, followed(there) as elsewhere:
            answer = await client.put("delete.json", {"slug": slug})
            assert (answer.status, answer.json["tournament"]["stage"]) == (200, "deleted")
            assert "the operator can restore" in answer.json["tournament"]["note"]
            assert [await seen_by(one) for one in (there, client, bound)] == [[404] * 5] * 3
            for stream in here, elsewhere:
                async for _ in stream.content:
                    pass  # it ends
        assert (await client.put("delete.json", {"slug": slug})).status == 404
        assert [
            (await one.send("GET", "/tournaments.json?limit=1")).json["tournaments"] for one in (client, bound)
        ] == [
            [],
            [],
        ]
        name = (await tallybook.json("tournament", "list"))[0]["name"]
        made = await client.send("POST", "/tournaments.json", json.dumps({"name": name}).encode(), again)
        assert made.json["tournament"]["slug"] == f"{slug}-2"

        assert [one["deleted"] for one in await tallybook.json("tournament", "list")] == ["over HTTP", None]
        assert await owner.fetchval("SELECT sequence FROM head WHERE tournament_id = $1", tournament_id) == head + 1
        assert (await tallybook("verify")).code == 0
        await tallybook.done("tournament", "restore", slug)
        assert [await seen_by(one) for one in (there, client, bound)] == [[200, 404, 404, 200, 200]] * 3
        await client.put("publication.json", {"published": "true"})
        assert await seen_by(there) == [200] * 5

        assert (await client.put("delete.json", {"slug": slug})).status == 200
        file = str(tmp_path / "gone.archive")
        await tallybook.done("tournament", "export", slug, "--output", file)
        await tallybook.done("tournament", "delete", slug, "--archive", file, "--yes")
        assert await rows_of(owner, tournament_id) == {"deleted_tournament"}


async def test_only_a_whole_archive_of_just_this_log_is_enough(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    file, cut, changed = (tmp_path / name for name in ("old.archive", "cut.archive", "changed.archive"))
    async with played(dsn) as (service, client, tournament_id):
        slug = client.tournament
        other = await slug_of(service.database, await open_new_tournament(service.database, actor=OPERATOR))
        await tallybook.done("tournament", "export", slug, "--output", str(file))
        lines = file.read_bytes().splitlines(keepends=True)
        cut.write_bytes(b"".join(lines[:-1]))
        changed.write_bytes(b"".join(lines).replace(b"Ada", b"Eva"))
        there = await rows_of(owner, tournament_id)
        for named, given in (slug, cut), (slug, changed), (other, file), ("nobody", file), (slug, tmp_path / "none"):
            refused = await tallybook("tournament", "delete", named, "--archive", str(given), "--yes")
            assert refused.code in (1, 3), refused
        assert (await tallybook("tournament", "delete", slug, "--yes")).code == 1
        await client.post("competitors.json", {"name": "Late"})
        refused = await tallybook("tournament", "delete", slug, "--archive", str(file), "--yes")
        assert refused.code == 1
        assert "export it again" in refused.err
        assert await rows_of(owner, tournament_id) == there


async def test_its_slug_is_never_another_ones_and_the_same_tournament_can_return(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    file = tmp_path / "cup.archive"
    assert await tallybook.done("tournament", "create", "Cup") == "cup"
    await tallybook.done("competitor", "add", "cup", "Ada")
    await tallybook.done("tournament", "export", "cup", "--output", str(file))
    await tallybook.done("tournament", "delete", "cup", "--archive", str(file), "--yes")
    assert await tallybook.done("tournament", "create", "Cup") == "cup-2"
    assert [one["slug"] for one in await tallybook.json("tournament", "list")] == ["cup-2"]
    await tallybook.done("tournament", "import", str(file))
    assert [one["name"] for one in await tallybook.json("competitor", "list", "cup")] == ["Ada"]
    assert (await tallybook("verify")).code == 0
    await tallybook.done("tournament", "delete", "cup", "--archive", str(file), "--yes")
    assert await owner.fetchval("SELECT count(*) FROM deleted_tournament WHERE slug = 'cup'") == 2

    await owner.execute("INSERT INTO deleted_tournament SELECT 77, now(), 'cup-3', 'Cup', 0, '', false")
    assert await tallybook.done("tournament", "create", "Cup 3") == "cup-3-2"


async def test_a_broken_log_is_deleted_without_an_archive_only_if_somebody_says_so(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    async with played(dsn) as (_, client, tournament_id):
        slug = client.tournament
        await append_text(owner, tournament_id, "Nonsense", "{}")
        async with unguarded(owner):
            await owner.execute("DELETE FROM block WHERE tournament_id = $1 AND last_sequence = 3", tournament_id)
        assert (await tallybook("tournament", "export", slug, "--output", str(tmp_path / "a"))).code == 1
        assert (await tallybook("tournament", "delete", slug)).code == 1
        done = await tallybook.json("tournament", "delete", slug, "--without-archive", "--yes")
        assert done["deleted"]
        assert await rows_of(owner, tournament_id) == {"deleted_tournament"}
        await until(lambda: _is_gone(client))
    assert (await tallybook("verify")).code == 0


async def test_verify_with_outside_digests_tells_a_deleted_tournament_from_one_that_is_gone(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection, tmp_path: Path
) -> None:
    digests = tmp_path / "digests"
    for name in ("Cup", "Lost"):
        await tallybook.done("tournament", "create", name)
    await tallybook.done("digests", "--output", str(digests))
    await tallybook.done("tournament", "delete", "cup", "--without-archive", "--yes")
    verified = await tallybook("verify", "--digests", str(digests))
    assert verified.code == 0, verified.out
    assert "deleted on" in verified.out
    lost = await owner.fetchval("SELECT tournament_id FROM tournament WHERE slug = 'lost'")
    async with unguarded(owner):
        for table in ("tournament", "append_lock", "block"):
            await owner.execute(f"DELETE FROM {table} WHERE tournament_id = $1", lost)
    verified = await tallybook("verify", "--digests", str(digests))
    assert verified.code == 1  # LogDisproved, of which `main` makes 3
    assert "and is gone" in verified.out


async def test_nobody_but_the_owner_deletes_and_the_note_is_never_deleted(
    dsn: str, tallybook: Tallybook, owner: asyncpg.Connection
) -> None:
    await tallybook.done("tournament", "create", "Cup")
    for role, statement in (
        ("tallybook_service", "DELETE FROM tournament"),
        ("tallybook_service", "DELETE FROM personal"),
        ("tallybook_service", "INSERT INTO deleted_tournament SELECT 1, now(), 'a', 'a', 0, '', true"),
        (None, "DELETE FROM deleted_tournament"),
        (None, "UPDATE block SET text = ''"),
        (None, "TRUNCATE block"),
    ):
        transaction = owner.transaction()
        await transaction.start()
        if role is not None:
            await owner.execute(f"SET LOCAL ROLE {role}")
        await owner.execute("SET LOCAL tallybook.deleting = 'on'")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await owner.execute(statement)
        await transaction.rollback()
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await owner.execute("DELETE FROM block")
    assert (await tallybook("verify")).code == 0
