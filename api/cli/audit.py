"""Commands that prove that the log is unaltered, and that everything derived from it follows from it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli import printing
from api.cli.telemetry import LogLevelText, Port, shown_metrics
from api.cli.where import HERE, Json, Slug, Where, database_at, known, located
from api.service import systemd
from api.service.lifecycle import stop_on_signals
from engine.database.pool import Database, open_database, unavailable
from engine.domain.errors import LogDisproved, Unreadable
from engine.domain.terms import Sequence
from engine.domain.times import timestamp
from engine.process.telemetry import log_to
from projections.verification import all_tournaments, proof, stored_log, witness
from projections.verification.all_tournaments import ALWAYS_UNCHECKED, PARALLEL_MAX, Plan, Report
from projections.verification.check_proof import NO_PROOF, NOT_PROVEN, checked
from projections.verification.continuous import verify_continuously

FOUND_NONE = "No difference was found."
Flag = Parameter(negative="")
Parallel = Annotated[
    int, Parameter(validator=Number(gte=1, lte=PARALLEL_MAX), help="Tournaments to verify at the same time.")
]
ShareOfCore = Annotated[
    float, Parameter(validator=Number(gt=0, lte=1), help="Share of a core that --forever may take.")
]


async def verify(
    slug: str | None = None,
    /,
    *,
    digests: Path | None = None,
    state: Path | None = None,
    parallel: Parallel = 2,
    forever: Annotated[bool, Flag] = False,
    share: ShareOfCore = 0.1,
    metrics_port: Port | None = None,
    metrics_host: str = "127.0.0.1",
    log_level: LogLevelText = "info",
    explain: Annotated[bool, Flag] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    slug
        Slug of the tournament. Without it, all.
    digests
        File of outside digests, from `tallybook digests`. Only with it can a cut or rewritten log be found.
    state
        File that keeps the progress, so that an interrupted verification continues where it was.
    forever
        Verify tournament after tournament until SIGTERM, the longest unverified first. Findings are log lines and
        metrics.
    metrics_port
        Port of the metrics of --forever, for Prometheus; 0 means any free port. Without it, none.
    metrics_host
        Address of the metrics of --forever.
    explain
        List also what every verification checks, and what none can check.
    """
    plan = Plan(slug=slug, digests=digests, state=state, parallel=parallel)
    async with _database(where, parallel) as database:
        if forever:
            log_to(level=log_level)
            await _verified_continuously(database, plan, share, metrics_host, metrics_port)
            return
        report = await _verified(database, plan, as_json=json)
    if json:
        printing.json(report)
    else:
        _print(report, explain=explain)
    if report.differences_count:
        raise LogDisproved(f"{printing.count(report.differences_count, 'difference')} found.")
    (printing.say if json else printing.line)(FOUND_NONE)


async def digests(slug: str | None = None, /, *, output: Path, json: Json = False, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    slug
        Slug of the tournament. Without it, all.
    output
        File of digests to append to. It is created if there is none.
    """
    async with database_at(where) as database:
        tournament_id = None if slug is None else await known(database, slug)
        async with database.connection() as connection:
            notes = await witness.current_notes(connection, tournament_id)
    await asyncio.to_thread(witness.add, output, notes)
    printing.done(f"{printing.count(len(notes), 'digest')} noted in {output}", notes, as_json=json)


async def prove(slug: Slug, sequence: int, /, *, to: int | None = None, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    to
        Lead to the first block that ends at this sequence or later, such as a block whose digest was noted. Without
        it, to the head.
    """
    async with database_at(where) as database:
        tournament_id = await known(database, slug)
        async with database.connection() as connection, stored_log.one_moment(connection):
            upto = None if to is None else Sequence(to)
            proven = await proof.prove(connection, tournament_id, slug, Sequence(sequence), upto)
    printing.json(proven)


async def check_proof(
    proof: Annotated[
        str, Parameter(help="File that `tallybook prove` wrote; - means standard input.", allow_leading_hyphen=True)
    ],
    trusted: Annotated[
        str,
        Parameter(help="The digest that you know and trust, or a file of digests, from `tallybook digests`."),
    ],
    /,
) -> None:
    try:
        event = checked(proof, trusted)
    except OSError as error:
        raise Unreadable(f"{error.filename} cannot be read: {error.strerror}.") from error
    except NO_PROOF as error:
        raise Unreadable("This is not a proof (cut off?).") from error
    except NOT_PROVEN as error:
        raise LogDisproved(f"NOT proven: {error}.") from error
    printing.json(event)


@asynccontextmanager
async def _database(where: Where, parallel: int) -> AsyncIterator[Database]:
    """Opens the database with a connection for each tournament under way, and one that holds the moment all see."""
    async with (
        located(where) as dsn,
        open_database(dsn, name="tallybook verify", connections_max=parallel + 1) as database,
    ):
        with unavailable():
            yield database


# ── Once ────────────────────────────────────────────────────────────────────────────────────────────────


async def _verified(database: Database, plan: Plan, *, as_json: bool) -> Report:
    from rich.progress import (  # noqa: PLC0415 - only `verify` needs it
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("verifying"),
        BarColumn(),
        TaskProgressColumn(),
        MofNCompleteColumn(),
        TextColumn("events"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=printing.talk(), disable=not printing.talk().is_terminal) as bar:
        task = bar.add_task("", total=None)
        return await all_tournaments.verify_all(
            database,
            plan,
            on_difference=(lambda _: None) if as_json else (lambda difference: printing.line(str(difference))),
            on_events=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _print(report: Report, *, explain: bool) -> None:
    columns = (
        *("tournament", "sequence", "digest", "events", "tables at", "snapshots", "outside digests", "set aside"),
        "differences",
    )
    rows = [
        {
            "tournament": head.slug,
            "sequence": head.sequence,
            "digest": head.digest,
            "events": head.events,
            "tables at": head.tables_at,
            "snapshots": head.snapshots,
            "outside digests": head.digests,
            "set aside": len(head.set_aside),
            "differences": head.differences,
        }
        for head in report.heads
    ]
    printing.rows(rows, columns, as_json=False)
    for head in report.heads:
        for aside in head.set_aside:
            at = timestamp(aside.at)
            printing.line(f"set aside: {head.slug}: event {aside.sequence} ({aside.kind}), by event {aside.by} at {at}")
    for sentence in report.checked if explain else ():
        printing.line(f"checked: {sentence}")
    for sentence in report.unchecked:
        if explain or sentence not in ALWAYS_UNCHECKED:
            printing.line(f"not checked: {sentence}")
    pace = f"{report.seconds:,.1f} s, {report.events_per_second:,.0f} a second{', resumed' if report.resumed else ''}"
    printing.line(f"{printing.count(report.events, 'event')} verified in {pace}")


# ── For ever ────────────────────────────────────────────────────────────────────────────────────────────


async def _verified_continuously(database: Database, plan: Plan, share: float, host: str, port: int | None) -> None:
    with shown_metrics(host, port), stop_on_signals() as stop:
        printing.announce("verifying", "Verifying until stopped. Stop with Ctrl-C.")
        systemd.tell(systemd.IS_READY)
        async with systemd.watched():
            count = await verify_continuously(database, plan, share=share, stop=stop)
    if count:
        raise LogDisproved(f"{printing.count(count, 'difference')} found.")
    printing.announce("no_difference_found", FOUND_NONE)
