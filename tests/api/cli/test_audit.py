"""The commands that prove, as their users have them: lines, JSON, files and exit codes."""

import asyncio
import json
import signal
from pathlib import Path
from urllib.request import urlopen

import asyncpg
import pytest

from engine.database.pool import Database
from engine.log import heads, tails
from tests.desks import record, until
from tests.running import Said, said, started
from tests.tampering import LAST, Stage, line_changed, stage, tamper


@pytest.fixture
async def staged(database: Database) -> Stage:
    return await stage(database)


async def ran(dsn: str, *arguments: str) -> Said:
    return await asyncio.to_thread(said, *arguments, TALLYBOOK_DATABASE_URL=dsn)


_FORGE = "UPDATE total SET total = 77 WHERE tournament_id = $1 AND total = 3"

# ── verify ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_verify_says_what_it_checked_what_not_how_fast_and_up_to_which_heads(
    dsn: str, database: Database, staged: Stage
) -> None:
    verified = await ran(dsn, "verify", "--explain")
    assert (verified.code, verified.err) == (0, "")
    async with database.connection() as connection:
        head = (await heads.current(connection, [staged.tournament_id]))[staged.tournament_id]
    lines = verified.out.splitlines()
    (row,) = [line for line in lines if staged.slug in line]
    assert head.digest.hex() in row
    assert f"│ {head.sequence} " in row
    assert any(line.startswith("checked: the chain of digests") for line in lines)
    assert any(line.startswith("not checked: fingerprints") for line in lines)
    assert lines[-2].startswith(f"{LAST} events verified in ")
    assert lines[-2].endswith(" a second")
    assert lines[-1] == "No difference was found."
    assert "checked:" not in (await ran(dsn, "verify")).out


async def test_verify_names_each_difference_in_a_line_and_exits_with_3(
    dsn: str, owner: asyncpg.Connection, staged: Stage
) -> None:
    await tamper(owner, _FORGE, staged.tournament_id)
    arena = staged.arena
    verified = await ran(dsn, "verify", staged.slug)
    path = f"tables.rankings[{arena.ranking_id}].unities[{arena.unity_id}].totals[{arena.competitors[0]}]"
    assert verified.code == 3
    assert verified.out.splitlines()[0] == f"{staged.slug} at sequence {LAST}: {path}: is 77, not 3"
    assert verified.err == "1 difference found.\n"


async def test_verify_tells_it_as_json(dsn: str, owner: asyncpg.Connection, staged: Stage) -> None:
    clean = (await ran(dsn, "verify", "--json")).json
    assert set(clean) == {
        *("heads", "differences", "differences_count", "checked", "unchecked"),
        *("events", "seconds", "events_per_second", "resumed"),
    }
    assert (clean["heads"][0]["sequence"], clean["differences"]) == (LAST, [])
    await tamper(owner, _FORGE, staged.tournament_id)
    verified = await ran(dsn, "verify", "--json")
    assert verified.code == 3
    (difference,) = verified.json["differences"]
    assert (difference["tournament"], difference["sequence"]) == (staged.slug, LAST)
    assert difference["field"].startswith("tables.rankings[")


async def test_verify_of_what_is_not_there_is_refused(dsn: str, staged: Stage, tmp_path: Path) -> None:
    empty, torn = tmp_path / "empty", tmp_path / "torn"
    empty.touch()
    torn.write_text('{"tournament":1,')
    for arguments in (
        ("nobody",),
        ("--digests", str(tmp_path / "nowhere")),
        ("--digests", str(empty)),
        ("--digests", str(torn)),
        ("--state", str(tmp_path / "nowhere" / "state")),
        ("nobody", "--forever"),
    ):
        verified = await ran(dsn, "verify", *arguments)
        assert (verified.code, verified.out) == (1, ""), arguments
    assert (await ran(dsn, "verify", "--parallel", "0")).code == 2
    assert (await ran(dsn, "verify", "--share", "0", "--forever")).code == 2


async def test_a_verification_that_had_to_give_up_continues_with_its_state(
    dsn: str, owner: asyncpg.Connection, staged: Stage, tmp_path: Path
) -> None:
    """Somebody keeps it from looking at snapshots."""
    state = ("--state", str(tmp_path / "state"))
    async with owner.transaction():
        await owner.execute("LOCK TABLE snapshot IN ACCESS EXCLUSIVE MODE")
        verified = await ran(dsn, "verify", *state)  # gives up after lock_timeout
        assert verified.code == 1
    verified = await ran(dsn, "verify", "--json", *state)
    assert verified.code == 0
    assert (verified.json["resumed"], verified.json["heads"][0]["sequence"]) == (True, LAST)


# ── verify --forever ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
async def test_verify_forever_ends_well_at_sigterm(
    dsn: str, staged: Stage, tmp_path: Path, how: signal.Signals
) -> None:
    options = ("--forever", "--share", "0.5", "--metrics-port", "0")
    with started(tmp_path, "verify", *options, TALLYBOOK_DATABASE_URL=dsn) as running:
        await running.has_said('"tournament_verified"')
        address = (await running.logged("metrics_shown"))["address"]
        with await asyncio.to_thread(urlopen, address) as answer:
            metrics = answer.read().decode()
        assert "tallybook_differences_total 0.0" in metrics
        assert "tallybook_verified_tournaments_total" in metrics
        running.send(how)
        assert await running.ended() == 0
        assert running.log[-1]["event"] == "no_difference_found"


async def test_verify_forever_continues_after_a_finding_and_exits_with_3_at_sigterm(
    dsn: str, owner: asyncpg.Connection, staged: Stage, tmp_path: Path
) -> None:
    await tamper(owner, _FORGE, staged.tournament_id)
    with started(tmp_path, "verify", "--forever", "--share", "1", TALLYBOOK_DATABASE_URL=dsn) as running:
        await until(lambda: sum(line["event"] == "tournament_verified" for line in running.log) >= 2)
        running.send(signal.SIGTERM)
        assert await running.ended() == 3
        (found, *_) = [line for line in running.log if line["event"] == "difference_found"]
        assert (found["tournament"], found["sequence"], found["level"]) == (staged.slug, LAST, "error")


# ── digests ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_digests_are_appended_a_line_for_each_tournament(dsn: str, database: Database, tmp_path: Path) -> None:
    slugs = [(await stage(database)).slug for _ in range(2)]
    file = tmp_path / "digests.ndjson"
    assert (await ran(dsn, "digests", "--output", str(file))).code == 0
    one = await ran(dsn, "digests", slugs[1], "--output", str(file))
    assert (one.code, one.out, one.err) == (0, "", f"1 digest noted in {file}\n")
    notes = [json.loads(line) for line in file.read_text().splitlines()]
    assert [note["slug"] for note in notes] == [*slugs, slugs[1]]
    assert set(notes[0]) == {"tournament", "slug", "sequence", "digest", "recorded_at", "noted_at"}
    verified = await ran(dsn, "verify", "--digests", str(file), "--json")
    assert verified.code == 0
    assert [head["digests"] for head in verified.json["heads"]] == [1, 1]


async def test_digests_of_nobody_or_to_nowhere_or_to_a_file_of_others_are_refused(
    dsn: str, staged: Stage, tmp_path: Path
) -> None:
    assert (await ran(dsn, "digests", "nobody", "--output", str(tmp_path / "file"))).code == 1
    assert (await ran(dsn, "digests", "--output", str(tmp_path / "no" / "file"))).code == 1
    (tmp_path / "mine").write_text("mine\n")
    refused = await ran(dsn, "digests", "--output", str(tmp_path / "mine"))
    assert (refused.code, (tmp_path / "mine").read_text()) == (1, "mine\n")
    assert "is not a file of digests; nothing was added" in refused.err


async def test_a_service_notes_digests_of_heads_that_change(
    dsn: str, database: Database, staged: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "elsewhere" / "digests.ndjson"
    file.parent.mkdir()
    options = ("--port", "0", "--digests-to", str(file), "--every", "0.05")
    with started(tmp_path, "serve", *options, TALLYBOOK_DATABASE_URL=dsn) as running:
        await running.address()
        await until(lambda: any(line["event"] == "digests_noted" for line in running.log))
        file.parent.rename(tmp_path / "away")
        await until(lambda: any(line["event"] == "digests_failed" for line in running.log))
        (tmp_path / "away").rename(file.parent)
        async with database.connection() as connection:
            tail = await tails.tail(connection, staged.tournament_id, heads.beginning(staged.tournament_id))
            await record(connection, staged.tournament_id, tail.events[-1].event)
        await until(lambda: sum(line["event"] == "digests_noted" for line in running.log) == 2)
        assert await running.stopped() == 0
    notes = [json.loads(line)["sequence"] for line in file.read_text().splitlines()]
    assert notes == [LAST, LAST + 1]
    assert (await ran(dsn, "verify", "--digests", str(file))).code == 0


async def test_a_service_refuses_to_start_if_it_cannot_note_digests(dsn: str, tmp_path: Path) -> None:
    async def refusal(file: Path) -> str:
        with started(
            tmp_path, "serve", "--port", "0", "--digests-to", str(file), TALLYBOOK_DATABASE_URL=dsn
        ) as running:
            assert await running.ended() == 1
            return running.err

    nowhere, mine = tmp_path / "no" / "file", tmp_path / "mine"
    mine.write_text("mine\n")
    assert await refusal(nowhere) == f"{nowhere} cannot be written: No such file or directory.\n"
    assert await refusal(mine) == (
        f"{mine} is not a file of digests; nothing was added.\n  line 1: it is not a noted digest\n"
    )


# ── prove ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_prove_prints_a_proof_as_json(dsn: str, staged: Stage) -> None:
    proof = (await ran(dsn, "prove", staged.slug, "7")).json
    assert set(proof) == {
        *("format", "tournament", "slug", "sequence", "previous_sequence", "previous_digest"),
        *("block", "later", "digest", "digest_sequence"),
    }
    assert (proof["sequence"], proof["digest_sequence"], len(proof["later"])) == (7, LAST, 3)
    part = (await ran(dsn, "prove", staged.slug, "7", "--to", "10")).json
    assert (part["digest_sequence"], len(part["later"])) == (10, 1)


async def test_prove_exits_with_3_where_the_log_does_not_verify_and_with_1_where_there_is_nothing(
    dsn: str, owner: asyncpg.Connection, staged: Stage
) -> None:
    assert (await ran(dsn, "prove", staged.slug, "99")).code == 1
    assert (await ran(dsn, "prove", "nobody", "1")).code == 1
    await tamper(owner, line_changed(10, "replace(line, ',0,', ',5,')"), staged.tournament_id)
    proved = await ran(dsn, "prove", staged.slug, "7")
    assert (proved.code, proved.out) == (3, "")
    assert "nothing is proved" in proved.err


# ── check-proof ─────────────────────────────────────────────────────────────────────────────────────────


async def test_check_proof_prints_the_event_that_is_proven_and_asks_no_database(
    dsn: str, staged: Stage, tmp_path: Path
) -> None:
    file, notes = tmp_path / "proof.json", tmp_path / "digests"
    file.write_text((await ran(dsn, "prove", staged.slug, "7")).out)
    await ran(dsn, "digests", "--output", str(notes))
    for known in (json.loads(file.read_text())["digest"], str(notes)):
        checked = said("check-proof", str(file), known, cwd=tmp_path)
        assert (checked.code, checked.err, checked.json["sequence"]) == (0, "", 7)
    assert said("check-proof", "-", str(notes), stdin=file).json == checked.json


async def test_check_proof_exits_with_3_for_what_is_not_proven_and_with_1_for_what_cannot_be_read(
    dsn: str, staged: Stage, tmp_path: Path
) -> None:
    file = tmp_path / "proof.json"
    file.write_text((await ran(dsn, "prove", staged.slug, "7")).out)
    forged = said("check-proof", str(file), "00" * 32)
    assert (forged.code, forged.out) == (3, "")
    assert forged.err.startswith("NOT proven: it leads to the digest ")
    assert said("check-proof", str(file), "0" * 63).err == f"{'0' * 63} cannot be read: No such file or directory.\n"
    for text in ("nonsense", file.read_text()[:-40], "{}", "\x80", "[" * 100_000):
        file.write_text(text, encoding="latin-1")
        assert said("check-proof", str(file), "00" * 32) == Said(1, "", "This is not a proof (cut off?).\n"), text
    nowhere = str(tmp_path / "nowhere")
    assert said("check-proof", nowhere, "00" * 32) == Said(
        1, "", f"{nowhere} cannot be read: No such file or directory.\n"
    )
