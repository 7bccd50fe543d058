"""Tournaments go to another database as they were, and what is not as it was stays outside."""

import io
import json
import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec
import pytest

from api.cli import archives as archives_command
from api.desk.desk import Desk, open_desk
from engine.database.pool import Database, open_database
from engine.domain.commands import RegisterCompetitor
from engine.domain.errors import LogDisproved, Unreadable
from engine.domain.events import CompetitorRegistered
from engine.domain.terms import OPERATOR, CompetitorId
from engine.log import archive, codec, digest, registry
from projections.tables.worker import Worker
from projections.verification.archives import IDS_FOLLOWED_MAX
from tests.api.cli.conftest import Tallybook
from tests.bounds import Bounds
from tests.conftest import Administrator
from tests.desks import open_arena
from tests.poison import poison
from tests.tampering import tamper

LOG_TABLES = ("tournament", "block", "topic", "personal", "idempotency")
CUP = f"tallybook_cup_{os.getpid()}"
"""The database that tests with a `slug` have a copy of."""
LISTS = (("competitor", "list"), ("competition", "list"), ("ranking", "list"))


@pytest.fixture
def other(other_dsn: str) -> Tallybook:
    return Tallybook(other_dsn)


@pytest.fixture(scope="session")
def template_slug(administrator: Administrator) -> Iterator[str]:
    """The slug of the tournament in the template CUP: to play it takes ten times longer than to copy it."""
    yield administrator.make_template(CUP, _play)
    administrator.drop(CUP)


@pytest.fixture
def templates() -> dict[str, str]:
    return {"slug": CUP}


@pytest.fixture
def slug(template_slug: str) -> str:
    """A tournament with something of everything: names in any script, keys, results, a voided competition, a closed
    ranking."""
    return template_slug


async def _play(dsn: str) -> str:
    tallybook = Tallybook(dsn)
    slug = await tallybook.done("tournament", "create", "Cup")
    for name in ("Zoë 🏆", 'Q"uote\\', "\u2028Line"):
        await tallybook.done("competitor", "add", slug, name)
    zoe, quote, _ = [str(one["id"]) for one in await tallybook.json("competitor", "list", slug)]
    await tallybook.done("ranking", "create", slug, "Season")
    await tallybook.done("unity", "add", slug, "Season", "fouls", "--sort", "ASC")
    match = await tallybook.done("competition", "add", slug, zoe, quote, "--result", "2:1")
    await tallybook.done("points", "add", slug, "Season", f"{zoe}=3", f"{quote}=0", "--competition", match)
    await tallybook.done("points", "add", slug, "Season", f"{quote}=-7", "--unity", "fouls")
    await tallybook.done("unity", "add", slug, "Season", "best", "--counts", "best")
    await tallybook.done("points", "add", slug, "Season", f"{zoe}=9", "--unity", "best", "--competition", match)
    await tallybook.done("void", slug, match)
    async with open_database(dsn, name="test") as database, open_desk(database) as desk:
        await register(desk, slug, CompetitorId(await desk.new_id()), key="one")
    await tallybook.done("ranking", "create", slug, "Closed", zoe)
    await tallybook.done("ranking", "close", slug, "Closed")
    return slug


async def register(desk: Desk, slug: str, competitor_id: CompetitorId, key: str) -> CompetitorId:
    """The id under which Eve is registered by the request of this key."""
    async with desk.database.connection() as connection:
        tournament_id = await registry.tournament_named(connection, slug)
    assert tournament_id is not None
    async with desk.live_pool.pinned(tournament_id) as live:
        command = RegisterCompetitor(competitor_id=competitor_id, name="Eve")
        receipt = await desk.submit(
            live, command, actor=OPERATOR, idempotency_key=key, fingerprint=sha256(key.encode()).digest()
        )
    registered: CompetitorId = receipt.event.competitor_id  # type: ignore[union-attr]
    return registered


@pytest.fixture
async def exported(tallybook: Tallybook, slug: str, tmp_path: Path) -> Path:
    file = tmp_path / "cup.archive"
    assert await tallybook.done("tournament", "export", slug, "--output", str(file)) == ""
    return file


async def stored(owner: asyncpg.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the log."""
    return {table: sorted(map(tuple, await owner.fetch(f"SELECT t::text FROM {table} AS t"))) for table in LOG_TABLES}


async def is_empty(owner: asyncpg.Connection) -> bool:
    tables = (*LOG_TABLES, "append_lock", "refusal")
    return [await owner.fetchval(f"SELECT count(*) FROM {table}") for table in tables] == [0] * len(tables)


# ── As it was ───────────────────────────────────────────────────────────────────────────────────────────


async def test_every_stored_field_arrives_and_verify_with_digests_noted_before_finds_nothing(
    tallybook: Tallybook,
    other: Tallybook,
    owner: asyncpg.Connection,
    other_owner: asyncpg.Connection,
    slug: str,
    exported: Path,
    tmp_path: Path,
) -> None:
    notes = tmp_path / "digests"
    await tallybook.done("digests", "--output", str(notes))
    entered = await other.json("tournament", "import", str(exported))
    (noted,) = [json.loads(line) for line in notes.read_text().splitlines()]
    assert entered == {
        "id": noted["tournament"],
        "slug": slug,
        "name": "Cup",
        "sequence": noted["sequence"],
        "digest": noted["digest"],
    }
    assert await stored(other_owner) == await stored(owner)
    async with open_database(other.dsn, name="test") as database:
        await Worker(database).catch_up()
    report = await other.json("verify", "--digests", str(notes))
    assert (report["differences_count"], [head["digests"] for head in report["heads"]]) == (0, [1])
    for question in (["standings", slug, "Season"], ["competition", "list", slug], ["ranking", "list", slug]):
        assert await other.json(*question) == await tallybook.json(*question)


async def test_an_archive_of_what_came_by_archive_is_the_same(other: Tallybook, exported: Path, tmp_path: Path) -> None:
    assert await other.done("tournament", "import", str(exported)) == "cup"
    again = tmp_path / "again.archive"
    await other.done("tournament", "export", "cup", "--output", str(again))
    assert bytes_of(again) == bytes_of(exported)
    assert (await other.done("tournament", "export", "cup")).encode() + b"\n" == bytes_of(exported)


async def test_the_log_continues_where_it_was_and_knows_its_keys(
    other: Tallybook, desk: Desk, other_owner: asyncpg.Connection, slug: str, exported: Path
) -> None:
    await other.done("tournament", "import", str(exported))
    listed = await other.json("competitor", "list", slug)
    async with open_database(other.dsn, name="test") as database, open_desk(database) as other_desk:
        new_id = CompetitorId(await other_desk.new_id())
        assert await register(other_desk, slug, new_id, key="one") == listed[-1]["id"]
        assert await register(other_desk, slug, new_id, key="two") == new_id
    assert new_id == max(await ids(other_owner))
    assert len(await other.json("competitor", "list", slug)) == len(listed) + 1
    assert (await other("verify")).code == 0


async def ids(owner: asyncpg.Connection) -> list[int]:
    """All ids that blocks created."""
    return [row[0] for row in await owner.fetch("SELECT unnest(created) FROM block")]


async def test_what_was_set_aside_stays_set_aside_and_a_stopped_tournament_stays_where_it_is(
    tallybook: Tallybook,
    other: Tallybook,
    owner: asyncpg.Connection,
    other_owner: asyncpg.Connection,
    database: Database,
    tmp_path: Path,
) -> None:
    arena = await open_arena(database)
    slug, file = str(await registry.slug_of(owner, arena.tournament_id)), tmp_path / "arena.archive"
    poisoned = await poison(owner, arena, "unknown unity")
    await tallybook.done("tournament", "export", slug, "--output", str(file))
    (reason,) = await other.refused("tournament", "import", str(file))
    assert f"{slug} at sequence {poisoned}: event.body: could not be made: " in reason
    assert await is_empty(other_owner)

    await tallybook.done("set-aside", slug, str(poisoned))
    await tallybook.done("tournament", "export", slug, "--output", str(file))
    await other.done("tournament", "import", str(file))
    assert f"set aside: {slug}: event {poisoned} (PointsAdded)" in await other.done("verify", slug)
    assert await other.json("standings", slug, str(arena.ranking_id)) == await tallybook.json(
        "standings", slug, str(arena.ranking_id)
    )


async def test_the_refusal_of_an_archive_with_a_poisoned_event_ends_with_one_full_stop(
    tallybook: Tallybook, other: Tallybook, owner: asyncpg.Connection, database: Database, tmp_path: Path
) -> None:
    arena = await open_arena(database)
    slug, file = str(await registry.slug_of(owner, arena.tournament_id)), tmp_path / "arena.archive"
    await poison(owner, arena, "unknown ranking")
    await tallybook.done("tournament", "export", slug, "--output", str(file))
    (reason,) = await other.refused("tournament", "import", str(file))
    assert reason.endswith("could not be made: This tournament has no ranking 999999.")


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_changed_byte_anywhere_is_refused_and_its_line_named(exported: Path) -> None:
    content = bytes_of(exported)
    for position in range(len(content)):
        changed = bytearray(content)
        changed[position] ^= 1
        number = content.count(b"\n", 0, position) + 1
        with pytest.raises(LogDisproved, match=rf"^Line {number} of the archive is altered or damaged\."):
            list(archive.read(io.BytesIO(changed)))


async def test_a_changed_archive_changes_nothing(
    other: Tallybook, other_owner: asyncpg.Connection, exported: Path
) -> None:
    content = bytes_of(exported)
    lines = content.splitlines(keepends=True)
    last = f"Line {len(lines)} of the archive is altered or damaged."
    fourth = "Line 4 of the archive is altered or damaged."
    broken = {
        "a changed byte": (content[:-20] + b"x" + content[-19:], last),
        "a lost line": (b"".join(lines[:3] + lines[4:]), fourth),
        "lines in another order": (b"".join([*lines[:3], lines[4], lines[3], *lines[5:]]), fourth),
        "half a line": (content[:-30], last),
        "a lost end": (b"".join(lines[:4]), "The archive ends with event 3; it was written up to event 17."),
        "nothing": (b"", "The file is not an archive of a tournament."),
        "something else": (b"name\nAnn\n", "Line 1 of the archive is altered or damaged. Is it an archive at all?"),
    }
    for what, (text, reason) in broken.items():
        exported.write_bytes(text)  # noqa: ASYNC240
        assert await other.refused("tournament", "import", str(exported)) == [reason], what
        assert await is_empty(other_owner), what
    (reason,) = await other.refused("tournament", "import", "nowhere")
    assert reason == "The file cannot be read: No such file or directory."


def bytes_of(file: Path) -> bytes:
    return file.read_bytes()


def forged(file: Path, line: int, forge: Callable[[dict[str, Any]], None]) -> None:
    """Changes what a line says, and recomputes all sums."""
    parts = [json.loads(text.partition(b" ")[2]) for text in file.read_bytes().splitlines()]
    forge(parts[line - 1])
    before, out = "0" * 64, b""
    for part in parts:
        text = msgspec.json.encode(part)
        before = sha256(before.encode() + text).hexdigest()
        out += before.encode() + b" " + text + b"\n"
    file.write_bytes(out)


def rechained(file: Path, forge: Callable[[list[dict[str, Any]]], None]) -> None:
    """Changes what the lines say, and makes all digests and sums again: what a thorough forger does."""
    parts = [json.loads(text.partition(b" ")[2]) for text in file.read_bytes().splitlines()]
    forge(parts)
    file.write_bytes(b"".join(sealed(parts)))


def sealed(parts: list[dict[str, Any]]) -> list[bytes]:
    """The lines that say this, with all digests and sums made again."""
    manifest, *blocks = parts
    chained = digest.genesis(manifest["tournament_id"])
    for block in blocks:
        chained = digest.chain(chained, block["text"].encode())
        block["digest"] = chained.hex()
    manifest["digest"] = chained.hex()
    before, lines = "0" * 64, []
    for part in parts:
        text = compact(part)
        before = sha256(before.encode() + text).hexdigest()
        lines.append(before.encode() + b" " + text + b"\n")
    return lines


def compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def in_body(kind: str, **changes: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Changes fields of the first event of this kind."""

    def forge(parts: list[dict[str, Any]]) -> None:
        for part in parts[1:]:
            kinds = [json.loads(line)[0] for line in lines_of(part)]
            if kind in kinds:
                at = kinds.index(kind)
                change_text(part, at, lambda text: compact(json.loads(text) | changes).decode())
                return
        raise AssertionError(f"there is no {kind}")

    return forge


def change_text(part: dict[str, Any], at: int, change: Callable[[str], str]) -> None:
    """Changes the text of an event of a line, with a new commitment if the line has personal fields."""
    lines, personals = lines_of(part), part.get("personals")
    line = codec.parts_of(lines[at])
    if personals is None:
        body = change(line.body)
    else:
        some = CompetitorRegistered(competitor_id=CompetitorId(1), name="")
        body, personals[at] = codec.part(some, change(codec.join(line.body, personals[at])), "5a" * 32)
    lines[at] = codec.line_with(line.kind, line.actor, line.key, body)
    part["text"] = "\n".join([part["text"].partition("\n")[0], *lines])


def lines_of(part: dict[str, Any]) -> list[str]:
    """The lines of the events of a line."""
    _, *lines = part["text"].split("\n")
    return lines


def in_text(change: Callable[[str], str]) -> Callable[[list[dict[str, Any]]], None]:
    """Changes the text of the block in the third line."""

    def forge(parts: list[dict[str, Any]]) -> None:
        parts[2]["text"] = change(parts[2]["text"])

    return forge


def at_time(recorded_us: int, text: str) -> str:
    """The text of a block with another time."""
    before, after = text.split("\n", 1)
    return f"{before.split()[0]} {recorded_us}\n{after}"


def in_last(kind: str, **changes: Any) -> Callable[[list[dict[str, Any]]], None]:
    """Changes fields of the last event of this kind."""

    def forge(parts: list[dict[str, Any]]) -> None:
        in_body(kind, **changes)([parts[0], *reversed(parts[1:])])

    return forge


def in_time_to_come(parts: list[dict[str, Any]]) -> None:
    for part in parts[1:]:
        recorded_us = int(part["text"].split()[1])
        part["text"] = at_time(recorded_us + 10**15, part["text"])


def with_a_field_twice(parts: list[dict[str, Any]]) -> None:
    change_text(parts[2], 0, lambda text: text[:-1] + ',"name":"Zo"}')


FORGED: Final[dict[str, tuple[Callable[[list[dict[str, Any]]], None], str]]] = {
    "a parent that is not there": (in_body("CompetitorRegistered", parent_id=999_999), "is not in this tournament"),
    "a colour that closes a style": (in_body("CompetitorRegistered", color="red}</style>"), "6 hexadecimal"),
    "NUL in a name": (in_body("CompetitorRegistered", name="a\0b"), "control character U+0000"),
    "a name that reorders": (in_body("CompetitorRegistered", name="a\u202eb"), "control character U+202E"),
    "an id of 0": (in_body("CompetitorRegistered", competitor_id=0), "cannot be decoded"),
    "an id below 0": (in_body("CompetitorRegistered", competitor_id=-7), "cannot be decoded"),
    "an id beyond 64 bits": (in_body("CompetitorRegistered", competitor_id=2**70), "cannot be decoded"),
    "a list with an unknown competitor": (in_body("RankingCreated", participants=[999_999]), "is not in this"),
    "a field twice": (with_a_field_twice, "is not written as the service writes it"),
    "a slug that leads elsewhere": (in_body("TournamentOpened", slug="../etc"), "The slug must be"),
    "a time after the year 9999": (in_text(lambda text: at_time(2**62, text)), "outside the years 1 to 9999"),
    "a time before the year 1": (in_text(lambda text: at_time(-(2**62), text)), "outside the years 1 to 9999"),
    "a time to come": (in_time_to_come, "ahead of the clock of the database"),
    "an actor below 0": (in_text(lambda text: text.replace(",0,", ",-1,")), "not an id"),
    "an actor beyond 64 bits": (in_text(lambda text: text.replace(",0,", f",{2**70},")), "not an id"),
    "a line without an actor": (in_text(lambda text: text.replace(",0,", ",")), "cannot be decoded"),
    "a text without a place": (in_text(lambda text: text.partition("\n")[2]), "cannot be read"),
    "NUL in a text": (in_text(lambda text: text + "\0"), "U+0000"),
    "answers beyond 64 bits": (lambda parts: parts[2].update(answers=[2**70]), "cannot be read"),
    "rules that are not known": (lambda parts: parts[2].update(rules=2), "judges by version 1 of the rules"),
    "ids beyond 64 bits": (lambda parts: parts[2].update(created=[2**70]), "cannot be read"),
    "a date without a zone": (
        in_body("CompetitionAdded", started_at="2026-05-02T15:00:00"),
        "line 8, cup at",
    ),
    "a date of another zone": (in_body("CompetitionAdded", started_at="0001-01-01T00:00:00+14:00"), "is not in UTC"),
    "a date in the year 0": (in_body("CompetitionAdded", started_at="0000-12-31T23:59:59Z"), "cannot be decoded"),
    "a date in the year 10000": (in_body("CompetitionAdded", started_at="10000-01-01T00:00:00Z"), "cannot be decoded"),
    "a cause that is not there": (in_last("PointsAdded", competition_id=2**62), "is not in this tournament"),
    "a cause beyond 64 bits": (in_last("PointsAdded", competition_id=2**70), "cannot be decoded"),
    "a fingerprint in no digits": (lambda parts: parts[2].update(keys=[["k", "xy", 2]]), "cannot be read"),
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("forge", "reason"), FORGED.values(), ids=FORGED.keys())
async def test_a_log_that_could_not_have_been_made_is_refused_though_all_digests_are_right(
    other: Tallybook,
    other_owner: asyncpg.Connection,
    exported: Path,
    forge: Callable[[list[dict[str, Any]]], None],
    reason: str,
) -> None:
    rechained(exported, forge)
    (said,) = await other.refused("tournament", "import", str(exported))
    assert reason in said
    assert await is_empty(other_owner)


def test_a_line_longer_than_any_block_is_refused_without_being_read_whole(tmp_path: Path, bounds: Bounds) -> None:
    file = tmp_path / "endless"
    file.write_bytes(b"x" * 10_000)
    bounds(ARCHIVE_LINE_BYTES_MAX=200)
    lines = archives_command.lines_of(file)
    with pytest.raises(Unreadable, match="Line 1 of the archive is longer than 200 bytes"):
        list(archive.read(lines))
    assert len(next(archives_command.lines_of(file))) == 201


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("line", "forge", "reason"),
    [
        (1, lambda m: m.update(name="Bowl"), "tournament.name: is 'Bowl', not 'Cup'"),
        (1, lambda m: m.update(format="tallybook archive 9"), "the archive is 'tallybook archive 9'"),
        (1, lambda m: m.update(more=1), "Line 1 of the archive cannot be read"),
        (
            3,
            lambda b: b.update(text=b["text"].replace("_id", "_ib")),
            "Line 3 of the archive: its",
        ),
        (
            3,
            lambda b: b.update(personals=[b["personals"][0].replace("Zo", "Ze")]),
            "line 3, cup at sequence 2: personal.text: is not what the body has a commitment to",
        ),
        (3, lambda b: b.pop("personals"), "line 3, cup at sequence 2: personal: is missing"),
        (3, lambda b: b["personals"].append(None), "Line 3 of the archive cannot be read: its personal fields"),
        (3, lambda b: b.update(created=[b["created"][0] + 1]), "block.created: is"),
        (3, lambda b: b.update(structure_sequence=2), "block.structure_sequence: is 2"),
        (3, lambda b: b["keys"].append(["x", "00", 2]), "idempotency: 2 keys are remembered; the events have 1"),
    ],
)
async def test_what_does_not_follow_from_the_log_is_refused_though_all_sums_are_right(
    other: Tallybook,
    other_owner: asyncpg.Connection,
    exported: Path,
    line: int,
    forge: Callable[[dict[str, Any]], None],
    reason: str,
) -> None:
    forged(exported, line, forge)
    (said,) = await other.refused("tournament", "import", str(exported))
    assert reason in said
    assert await is_empty(other_owner)


async def test_what_is_here_already_is_refused(
    tallybook: Tallybook, other: Tallybook, other_owner: asyncpg.Connection, slug: str, exported: Path
) -> None:
    (reason,) = await tallybook.refused("tournament", "import", str(exported))
    assert reason.endswith("is already in this database.")
    await other.done("tournament", "create", "Cup")
    (reason,) = await other.refused("tournament", "import", str(exported))
    assert reason == "Another tournament of this database has the slug 'cup', which cannot change."
    assert await other_owner.fetchval("SELECT count(*) FROM event") == 1


async def test_an_archive_whose_ids_all_are_those_of_another_tournament_too_enters_and_neither_notices(
    other: Tallybook, slug: str, exported: Path
) -> None:
    bowl = await other.done("tournament", "create", "Bowl")
    for name in ("Ann", "Bob", "Cid"):
        await other.done("competitor", "add", bowl, name)
    await other.done("ranking", "create", bowl, "Season")
    await other.done("unity", "add", bowl, "Season", "fouls")
    match = await other.done("competition", "add", bowl, "Ann", "Bob")
    await other.done("points", "add", bowl, "Season", "Ann=1", "Bob=2", "--competition", match)
    before = [await other.json(*asked, bowl) for asked in LISTS]
    await other.done("tournament", "import", str(exported))
    ids = [{one["id"] for one in await other.json("competitor", "list", one)} for one in (slug, bowl)]
    assert ids[1] <= ids[0]
    assert [await other.json(*asked, bowl) for asked in LISTS] == before
    await other.done("points", "add", slug, "Season", "Zoë 🏆=5")
    await other.done("points", "add", bowl, "Season", "Cid=7")
    async with open_database(other.dsn, name="test") as database:
        await Worker(database).catch_up()
    await other.done("verify")
    points = (await other.json("standings", bowl, "Season"))["unities"][0]["competitors_ranking"]
    assert sorted(line["total"] for line in points) == [1, 2, 7]


@pytest.mark.parametrize(("new_id", "next_id"), [(IDS_FOLLOWED_MAX, IDS_FOLLOWED_MAX + 1), (2**63 - 1, None)])
async def test_new_ids_come_after_those_of_an_archive_unless_those_are_too_large(
    tallybook: Tallybook,
    other: Tallybook,
    owner: asyncpg.Connection,
    other_owner: asyncpg.Connection,
    desk: Desk,
    slug: str,
    tmp_path: Path,
    new_id: int,
    next_id: int | None,
) -> None:
    drawn: int = await owner.fetchval("SELECT last_value FROM resource_id")
    file = tmp_path / "large.archive"
    await register(desk, slug, CompetitorId(new_id), key="large")
    await tallybook.done("tournament", "export", slug, "--output", str(file))
    await other.done("tournament", "import", str(file))
    assert await other_owner.fetchval("SELECT nextval('resource_id')") == (next_id or drawn + 1)
    added = await other.json("competitor", "add", slug, "Next")
    assert added["id"] == (next_id or drawn + 1) + 1


async def test_an_archive_of_one_id_keeps_a_new_database_from_giving_that_id_again(
    other: Tallybook, other_owner: asyncpg.Connection, tallybook: Tallybook, tmp_path: Path
) -> None:
    slug = await tallybook.done("tournament", "create", "Bowl")
    await tallybook.done("competitor", "add", slug, "Ann")
    file = tmp_path / "bowl.archive"
    await tallybook.done("tournament", "export", slug, "--output", str(file))
    await other.done("tournament", "import", str(file))
    await other.done("competitor", "add", slug, "Bob")
    assert [one["id"] for one in await other.json("competitor", "list", slug)] == [1, 2]


async def test_ids_that_are_ahead_stay_ahead(other: Tallybook, other_owner: asyncpg.Connection, exported: Path) -> None:
    await other_owner.execute("SELECT setval('resource_id', 123456)")
    await other.done("tournament", "import", str(exported))
    assert await other_owner.fetchval("SELECT nextval('resource_id')") == 123457


async def test_a_log_that_does_not_make_its_digests_is_not_exported(
    tallybook: Tallybook, owner: asyncpg.Connection, slug: str, tmp_path: Path
) -> None:
    await tamper(owner, "UPDATE block SET text = replace(text, '_id', '_ib') WHERE last_sequence = 2")
    file = tmp_path / "cup.archive"
    (reason,) = await tallybook.refused("tournament", "export", slug, "--output", str(file))
    assert reason == "The events from 2 to 2 of cup do not match their digest; `tallybook verify cup` says more."
    assert os.listdir(tmp_path) == []


async def test_only_the_owner_may_import(owner: asyncpg.Connection) -> None:
    right = "SELECT has_function_privilege($1, 'import_block'::regproc, 'EXECUTE')"
    assert [await owner.fetchval(right, role) for role in ("public", "tallybook_service")] == [False, False]


# ── Where a new database begins to count ────────────────────────────────────────────────────────────────


async def test_a_new_database_counts_from_one_and_gives_tournaments_random_ids(tallybook: Tallybook) -> None:
    opened = [await tallybook.json("tournament", "create", "Cup") for _ in range(2)]
    assert opened[0]["id"] != opened[1]["id"]
    for one in opened:
        assert 2**32 < one["id"] < 2**52  # one in a million is not
    added = [await tallybook.json("competitor", "add", one["slug"], "Ann") for one in opened]
    assert [one["id"] for one in added] == [1, 2]
