"""The command for an event that cannot be folded."""

import asyncio

import asyncpg
import pytest

from engine.database.pool import Database
from engine.log import heads, registry
from tests.api.cli.conftest import Tallybook
from tests.desks import open_arena
from tests.poison import append_text, poison
from tests.running import said


async def test_set_aside_tells_what_is_ignored_and_what_must_be_too(
    dsn: str, owner: asyncpg.Connection, database: Database
) -> None:
    tallybook, arena = Tallybook(dsn), await open_arena(database)
    slug = str(await registry.slug_of(owner, arena.tournament_id))
    first = await poison(owner, arena, "unknown unity")
    second = await append_text(owner, arena.tournament_id, "Nonsense", '{"x":"\x1b[31m"}')

    (reason,) = await tallybook.refused("set-aside", slug, str(second))
    assert reason.startswith(f"The first event that cannot be folded is {first} (it names 999999")

    told = await tallybook.done("set-aside", slug, str(first), "--dry-run")
    assert told.startswith(f"event {first} of {slug} would be set aside:\n  PointsAdded {{")
    assert f"1 more event cannot be folded after that; the next one is event {second}:" in told
    assert r"Nonsense {" + '"x":"' + r"\x1b[31m" in told
    assert (await heads.current(owner, [arena.tournament_id]))[arena.tournament_id].sequence == second

    row = await tallybook.json("set-aside", slug, str(first))
    assert (row["set_aside"], row["sequence"], row["kind"]) == (True, first, "PointsAdded")
    assert (row["next"], row["left"]) == (second, 1)

    said = await tallybook("set-aside", slug, str(second))
    assert said.out.startswith(f"event {second} of {slug} is set aside:")
    assert "continues automatically" in said.err
    assert "nothing to set aside" in (await tallybook.refused("set-aside", slug, str(second)))[0]

    told = await tallybook.done("verify", slug)
    assert f"set aside: {slug}: event {first} (PointsAdded), by event {second + 1} at " in told
    assert f"set aside: {slug}: event {second} (Nonsense), by event {second + 2} at " in told
    assert "no tournament 'nowhere'" in (await tallybook.refused("set-aside", "nowhere", "5"))[0]


@pytest.mark.parametrize("words", ["standings {} 3", "history {} 3", "competitor change {} 1 --name Ann"])
async def test_a_command_about_a_stopped_tournament_names_the_event_and_what_to_do(
    dsn: str, owner: asyncpg.Connection, database: Database, words: str
) -> None:
    arena = await open_arena(database)
    slug = str(await registry.slug_of(owner, arena.tournament_id))
    sequence = await poison(owner, arena, "unknown tag")
    refused = await asyncio.to_thread(said, *words.format(slug).split(), TALLYBOOK_DATABASE_URL=dsn)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"Event {sequence} of tournament {arena.tournament_id} cannot be folded, so the tournament is stopped; this "
        f"changed nothing. `tallybook set-aside SLUG {sequence} --dry-run` shows the event; for what to do, see "
        '"An event that no version can fold" in docs/TROUBLE.md.\n'
    )
