"""Cases 36 to 38: what was changed behind the service's back, what rots, and what is restored; found by `tallybook
verify`.
"""

import asyncio
import subprocess
from pathlib import Path
from typing import Final

from assurance.faults.clients import MIXED
from assurance.faults.cluster import LOST, Cluster
from assurance.faults.history import Kind
from assurance.faults.resources import judged_with_loss
from assurance.faults.stage import Stage
from assurance.faults.table import Trial, case
from engine.database.pool import open_database
from engine.domain.terms import TournamentId
from projections.tables.worker import Worker
from tests.poison import cut_tail
from tests.running import Said, said
from tests.tampering import forget_what_was_made, line_changed, line_removed, rechain, tamper, unguarded

DIFFERENCE: Final = 3
"""Exit code of `verify` where it found something."""


async def verify(there: Cluster, *options: str) -> Said:
    return await asyncio.to_thread(said, "verify", *options, TALLYBOOK_DATABASE_URL=there.dsn)


async def _played(trial: Trial, stage: Stage) -> None:
    async with stage.load(pause_seconds=0.01, mix=MIXED | {Kind.ERASE: 0}):  # which a cut log would lack
        await asyncio.sleep(trial.seconds(10, least=2))
    await stage.settled()
    await stage.caught_up()


async def _outside(stage: Stage) -> Path:
    """Digests that are kept elsewhere."""
    kept = stage.folder / "digests"
    told = await asyncio.to_thread(said, "digests", "--output", str(kept), TALLYBOOK_DATABASE_URL=stage.cluster.dsn)
    assert told.code == 0, told.err
    return kept


_MIDDLE: Final = """(
    SELECT sequence
    FROM event
    WHERE tournament_id = $1 AND kind = 'PointsAdded' AND body ~ '[1-9]\\]\\]'
    ORDER BY sequence
    OFFSET 3
    LIMIT 1
)"""
_IN_COMPANY: Final = """(
    SELECT first_sequence
    FROM block
    WHERE tournament_id = $1 AND last_sequence > first_sequence
    ORDER BY last_sequence
    LIMIT 1
)"""
_BLOCK_IN_THE_MIDDLE: Final = """(
    SELECT last_sequence FROM block WHERE tournament_id = $1 AND last_sequence > 20 ORDER BY last_sequence LIMIT 1
)"""
_ALL_DELTAS: Final = """
    UPDATE block
    SET text = regexp_replace(text, '^(\\["Points(?:Added|Reversed)",.*[1-9])\\]\\]', '\\1' || '1]]', 'gn')
    WHERE tournament_id = $1
"""
TAMPERINGS: Final = {
    "a delta changed": line_changed(_MIDDLE, r"regexp_replace(line, '([1-9])\]\]', '\1' || '1]]')"),
    "an event taken from a block": line_removed(_IN_COMPANY),
    "a block taken from the middle": (
        f"DELETE FROM block WHERE tournament_id = $1 AND last_sequence = {_BLOCK_IN_THE_MIDDLE}"
    ),
    "an actor changed": line_changed(_MIDDLE, r"regexp_replace(line, ',([0-9]+),', ',1\1,')"),
    "a time changed": (
        "UPDATE block SET recorded_at = recorded_at - interval '1 s' "
        f"WHERE tournament_id = $1 AND last_sequence = {_BLOCK_IN_THE_MIDDLE}"
    ),
    "a key changed": (
        """UPDATE block SET text = regexp_replace(text, '^(\\["[A-Za-z]+",[0-9]+,")', '\\1forged-') """
        """WHERE tournament_id = $1 AND text ~ '^\\["[A-Za-z]+",[0-9]+,"'"""
    ),
    "a digest changed": "UPDATE block SET digest = sha256(digest) WHERE tournament_id = $1 AND last_sequence = 1",
    "personal fields changed": "UPDATE personal SET text = text || ' ' WHERE tournament_id = $1",
    "personal fields taken": "DELETE FROM personal WHERE tournament_id = $1",
    "topics taken": "DELETE FROM topic WHERE tournament_id = $1",
    "a total in the tables changed": "UPDATE total SET total = total + 1 WHERE tournament_id = $1",
}

_KEPT: Final = ("block", "topic", "personal", "append_lock", "idempotency", "tournament")


@case(
    36,
    "Tampering by SQL",
    "as owner, past the triggers: rows changed or taken; the tail cut off; all rewritten with fitting chain and tables",
    "each found, no false alarm; a cut or rewritten log only by digests kept outside",
)
async def tampering(trial: Trial) -> None:
    found = 0
    async with trial.stage(tournaments=2, workers=1) as stage:
        await _played(trial, stage)
        kept = await _outside(stage)
        clean = await verify(stage.cluster, "--digests", str(kept))
        trial.look("I8", clean.code == 0, f"a false alarm: {clean.out} {clean.err[-1500:]}")
        for program in stage.programs:
            await program.end()
        tournament_id = stage.arenas[0].tournament_id
        backup = await stage.cluster.base_backup(trial.folder / "backup")
        original = stage.cluster
        for name, statement in TAMPERINGS.items():
            async with original.owner() as owner:
                await tamper(owner, statement, tournament_id)
            told = await verify(original)
            found += told.code == DIFFERENCE
            trial.look("I8", told.code == DIFFERENCE, f"{name} was not found: {told.code} {told.out} {told.err[-300:]}")
            await original.stop()
            original = await _fresh(trial, backup)
        for name in ("cut off", "rewritten"):
            async with original.owner() as owner:
                if name == "cut off":
                    last = await owner.fetchval(_BLOCK_IN_THE_MIDDLE, tournament_id)
                    await cut_tail(owner, TournamentId(tournament_id), last)
                else:
                    await tamper(owner, _ALL_DELTAS, tournament_id)
                    await rechain(owner, TournamentId(tournament_id))
                async with unguarded(owner):
                    await forget_what_was_made(owner, TournamentId(tournament_id))
            async with open_database(original.dsn, name="worker") as database:
                await Worker(database).catch_up()
            alone = await verify(original)
            trial.look("I8", alone.code == 0, f"a log {name} is not whole in itself: {alone.out} {alone.err}")
            told = await verify(original, "--digests", str(kept))
            found += told.code == DIFFERENCE
            trial.look("I8", told.code == DIFFERENCE, f"a log {name} was not found: {told.out} {told.err}")
            await original.stop()
            original = await _fresh(trial, backup)
        refused = 0
        async with original.owner(role="tallybook_service") as service:
            for table in _KEPT:
                try:
                    await service.execute(f"DELETE FROM {table}")
                except LOST:
                    refused += 1
        trial.look("I8", refused == len(_KEPT), f"the service's role was refused {refused} times")
        await original.stop()
        trial.outcomes.update(stage.history.outcomes())
        trial.deltas += stage.history.deltas_acknowledged()
    trial.tell(
        f"found {found} of {len(TAMPERINGS) + 2}; no alarm on the log as it was; the service's role refused "
        f"{refused} of {len(_KEPT)} deletions"
    )


async def _fresh(trial: Trial, backup: Cluster) -> Cluster:
    """The backup, copied and started."""
    directory = trial.folder / f"copy-{len(list(trial.folder.glob('copy-*')))}"
    subprocess.run(["cp", "-a", str(backup.data_dir), str(directory)], check=True)
    there = Cluster(directory, backup.settings)
    await there.start()
    return there


@case(
    37,
    "Bit rot",
    "a bit flipped in the heap file of the log, checksums on; PostgreSQL started on it",
    "`verify` fails; the backup verifies",
)
async def bit_rot(trial: Trial) -> None:
    found = 0
    rounds = trial.times(10, least=2)
    async with trial.stage(tournaments=2, workers=1) as stage:
        await _played(trial, stage)
        await stage.cluster.execute("CHECKPOINT")
        backup = await stage.cluster.base_backup(trial.folder / "backup")
        (row,) = await stage.cluster.fetch("SELECT pg_relation_filepath('block') AS path")
        for program in stage.programs:
            await program.end()
    for n in range(rounds):
        directory = trial.folder / f"rotten-{n}"
        subprocess.run(["cp", "-a", str(backup.data_dir), str(directory)], check=True)
        heap = directory / "postgres" / row["path"]
        with heap.open("r+b") as file:
            place = trial.random.randrange(heap.stat().st_size)
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 1 << trial.random.randrange(8)]))
        there = Cluster(directory, backup.settings)
        await there.start()
        told = await verify(there)
        found += told.code != 0
        await there.stop()
    trial.look("I8", found == rounds, f"found {found} of {rounds}")
    there = await _fresh(trial, backup)
    told = await verify(there)
    trial.look("I8", told.code == 0, f"the restored log does not verify: {told.out} {told.err}")
    await there.stop()
    trial.outcomes.update(stage.history.outcomes())
    trial.deltas += stage.history.deltas_acknowledged()
    trial.tell(f"{found} of {rounds} flipped bits found; the backup verifies")


@case(
    38,
    "Restore",
    "a base backup taken under load replaces the database; services go on",
    "digests kept outside name what is missing; I3, I5, I7, I8, I10-I12",
)
async def restored(trial: Trial) -> None:
    async with trial.stage(tournaments=2) as stage:
        async with stage.load():
            await asyncio.sleep(trial.seconds(5, least=1))
            backup = await stage.cluster.base_backup(trial.folder / "backup")
            await asyncio.sleep(trial.seconds(5, least=1))
        await stage.settled()
        await stage.caught_up()
        kept = await _outside(stage)
        before = {
            a.slug: n
            for a, n in zip(
                stage.arenas,
                [r["sequence"] for r in await stage.cluster.fetch("SELECT sequence FROM head ORDER BY tournament_id")],
                strict=True,
            )
        }
        await stage.cluster.kill()
        await backup.start()
        original, stage.cluster = stage.cluster, backup
        for one in [*stage.back, *stage.tables]:
            one.reset_all()
        told = await verify(backup, "--digests", str(kept))
        trial.look("I8", told.code == DIFFERENCE, f"what is missing was not found: {told.out} {told.err}")
        after = {
            a.slug: n
            for a, n in zip(
                stage.arenas,
                [r["sequence"] for r in await backup.fetch("SELECT sequence FROM head ORDER BY tournament_id")],
                strict=True,
            )
        }
        async with stage.load(clients=4):
            await stage.resume()
        await stage.caught_up()
        clean = await verify(backup)
        trial.look("I8", clean.code == 0, f"the restored log does not verify: {clean.out} {clean.err}")
        verdicts, lost = await judged_with_loss(stage)
        trial.take(stage, verdicts)
        missing = sum(before.values()) - sum(after.values())
        trial.tell(
            f"{missing} events after the backup are gone ({lost} acknowledged changes); `verify` with outside "
            f"digests fails"
        )
        await original.stop()
        for program in stage.programs:
            await program.end()
        await backup.stop()
        await original.start()
        stage.cluster = original
