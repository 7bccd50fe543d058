"""Proofs of inclusion: checked by the script as it is handed out, a process that knows nothing of Tallybook."""

import codecs
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec
import pytest
from hypothesis import given, settings

from engine.database.pool import Database
from engine.domain.errors import LogDisproved, NotFound
from engine.domain.events import Event
from engine.domain.terms import Sequence, TournamentId
from projections.verification import proof, stored_log, witness
from projections.verification.proof import Proof
from tests.desks import head_of
from tests.projections.written import block_sizes, on_the_database, rich_histories, written
from tests.tampering import LAST, Stage, line_changed, line_removed, tamper

SCRIPT: Final = Path(__file__).parents[2] / "projections" / "verification" / "check_proof.py"


async def proven(
    database: Database, tournament_id: TournamentId, sequence: int, to: int | None = None, slug: str = "cup"
) -> Proof:
    async with database.connection() as connection, stored_log.one_moment(connection):
        upto = None if to is None else Sequence(to)
        return await proof.prove(connection, tournament_id, slug, Sequence(sequence), upto)


def checked(folder: Path, given_proof: object, known: str) -> subprocess.CompletedProcess[str]:
    """What the script says of the proof, by a digest or a file that is known."""
    path = folder / "proof.json"
    path.write_bytes(given_proof if isinstance(given_proof, bytes) else msgspec.json.encode(given_proof))
    return subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), str(path), known],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
    )


def proven_event(given_proof: Proof, known: str) -> dict[str, Any]:
    """As the script does it, without a process of its own."""
    script: dict[str, Any] = {"__name__": "check_proof"}
    exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), script)
    event: dict[str, Any] = script["proven_event"](msgspec.to_builtins(given_proof), known)
    return event


_EVENT = "SELECT actor, kind, idempotency_key, body FROM event WHERE tournament_id = $1 AND sequence = $2"


async def test_the_script_proves_every_event_of_a_log_and_prints_it(
    database: Database, owner: asyncpg.Connection, staged: Stage, tmp_path: Path
) -> None:
    head = await head_of(database, staged.tournament_id)
    for sequence in range(1, LAST + 1):
        said = checked(tmp_path, await proven(database, staged.tournament_id, sequence), head.digest.hex())
        assert (said.returncode, said.stderr) == (0, "")
        event = json.loads(said.stdout)
        row = await owner.fetchrow(_EVENT, staged.tournament_id, sequence)
        assert event.pop("recorded_at").endswith("+00:00")
        assert event == {
            "sequence": sequence,
            "actor": row["actor"],
            "kind": row["kind"],
            "idempotency_key": row["idempotency_key"],
            "body": json.loads(row["body"]),
        }


@settings(on_the_database, max_examples=5)
@given(history=rich_histories, sizes=block_sizes)
async def test_every_event_of_any_history_can_be_proved_up_to_every_block_behind_it(
    database: Database, history: list[Event], sizes: list[int]
) -> None:
    tournament_id = await written(database, history, sizes)
    async with database.connection() as connection, stored_log.one_moment(connection):
        digests = {
            b.last_sequence: b.digest.hex() for b in await stored_log.blocks(connection, tournament_id, Sequence(0))
        }
        for sequence in range(1, len(history) + 2):
            whole = await proof.prove(connection, tournament_id, "cup", Sequence(sequence))
            assert whole.digest_sequence == len(history) + 1
            assert proven_event(whole, digests[whole.digest_sequence])["sequence"] == sequence
        for to in range(1, len(history) + 2):
            part = await proof.prove(connection, tournament_id, "cup", Sequence(1), Sequence(to))
            assert part.digest_sequence == min(end for end in digests if end >= to)
            assert proven_event(part, digests[part.digest_sequence])["kind"] == "TournamentOpened"


async def test_a_file_of_outside_digests_is_enough_to_check_by(
    database: Database, staged: Stage, tmp_path: Path
) -> None:
    notes = tmp_path / "digests.ndjson"
    async with database.connection() as connection:
        witness.append(notes, await witness.current_notes(connection))
    with notes.open("a") as file:
        file.write('{"tournament":1,"slu')
    good = await proven(database, staged.tournament_id, 5)
    assert checked(tmp_path, good, str(notes)).returncode == 0
    notes.write_bytes(codecs.BOM_UTF8 + notes.read_bytes())
    assert checked(tmp_path, codecs.BOM_UTF8 + msgspec.json.encode(good), str(notes)).returncode == 0
    early = await proven(database, staged.tournament_id, 5, to=6)
    said = checked(tmp_path, early, str(notes))
    assert (said.returncode, said.stderr) == (
        1,
        "NOT proven: no digests of sequence 6 were noted; `prove --to` takes a noted one\n",
    )
    with notes.open("a") as file:
        file.write(
            "\n" + notes.read_text().splitlines()[0].removeprefix("\ufeff").replace(good.digest, "00" * 32) + "\n"
        )
    assert checked(tmp_path, good, str(notes)).returncode == 1


async def test_no_proof_that_was_tampered_with_holds(database: Database, staged: Stage, tmp_path: Path) -> None:
    good: dict[str, Any] = msgspec.to_builtins(await proven(database, staged.tournament_id, 7))
    known = good["digest"]
    assert checked(tmp_path, good, known).returncode == 0
    forged = {
        "another delta": {"block": good["block"].replace(",3]]", ",4]]")},
        "another event": {"sequence": 10},
        "an event before its block": {"sequence": 6},
        "no number": {"sequence": "7"},
        "another beginning": {"previous_digest": "00" * 32},
        "a short beginning": {"previous_digest": "00"},
        "a block left out": {"later": good["later"][1:]},
        "blocks swapped": {"later": good["later"][::-1]},
        "another hash": {"later": ["00" * 32, *good["later"][1:]]},
        "a hash too many": {"later": [*good["later"], "00" * 32]},
        "no list": {"later": 7},
        "no text": {"block": None},
        "another text of the same events": {"block": good["block"].replace(",", ", ", 1)},
    }
    for name, change in forged.items():
        assert (good | change) != good, name
        said = checked(tmp_path, good | change, known)
        assert (said.returncode, said.stdout) == (1, ""), name
        assert said.stderr.startswith("NOT proven: "), name
    assert checked(
        tmp_path, good | {"block": good["block"].replace(",3]]", ",4]]"), "digest": "00" * 32}, known
    ).returncode
    assert checked(tmp_path, good, "00" * 32).returncode == 1
    assert checked(tmp_path, b"nonsense", known).returncode == 1
    assert checked(tmp_path, b"[" * 100_000, known).returncode == 1
    assert checked(tmp_path, good, str(tmp_path / "nowhere")).returncode == 1


def test_the_script_explains_itself(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, str(SCRIPT)], check=False, capture_output=True, text=True)
    assert said.returncode == 2
    assert "check_proof.py PROOF.json DIGEST" in said.stderr
    assert len(SCRIPT.read_text().splitlines()) < 80


BLOCK = "WHERE tournament_id = $1 AND last_sequence = "


@pytest.mark.parametrize(
    "statement",
    [
        line_changed(7, "replace(line, ',3]]', ',4]]')"),
        line_changed(12, "replace(line, ',0,', ',5,')"),
        line_changed(10, "''"),
        line_removed(8),
        f"DELETE FROM block {BLOCK} 10",
        f"UPDATE block SET digest = sha256(digest) {BLOCK} 11",
        f"UPDATE block SET first_sequence = 8 {BLOCK} 9",
    ],
)
async def test_nothing_is_proved_by_a_log_that_does_not_verify(
    database: Database, owner: asyncpg.Connection, staged: Stage, statement: str
) -> None:
    await tamper(owner, statement, staged.tournament_id)
    with pytest.raises(LogDisproved, match="nothing is proved"):
        await proven(database, staged.tournament_id, 7)


@pytest.mark.parametrize(("sequence", "to"), [(0, None), (-1, None), (LAST + 1, None), (5, LAST + 1)])
async def test_what_is_not_in_the_log_is_not_found(
    database: Database, staged: Stage, sequence: int, to: int | None
) -> None:
    with pytest.raises(NotFound):
        await proven(database, staged.tournament_id, sequence, to)
