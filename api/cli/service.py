"""Commands that run the service: `serve`, `worker`, `migrate` and `demo`."""

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number
from slugify import slugify

from api.access.auth import Scope
from api.cli import demo as league
from api.cli import printing
from api.cli.standings_text import print_table
from api.cli.telemetry import LogLevelText, Port, shown_metrics
from api.cli.tokens import replace_token
from api.cli.tournaments import open_tournament
from api.cli.where import HERE, Json, Where, address, find, located, tournament_at
from api.desk.desk import Desk, open_desk
from api.service import systemd
from api.service.lifecycle import stop_on_signals
from api.service.settings import (
    MEMORY_MIB_MAX,
    MEMORY_MIB_MIN,
    ORIGIN,
    PROXIES_MAX,
    REQUESTS_PER_SECOND_MAX,
    Settings,
)
from api.service.supervisor import PROCESSES_MAX, SideTask, refuse_unless_free, run_service
from api.service.worker_process import work
from engine.database import migrator
from engine.database.distribution import SHARDS_MAX
from engine.database.pool import open_database
from engine.domain.errors import TallybookError, Unacceptable
from engine.domain.terms import CompetitorId
from engine.process.telemetry import LogLevel, log_to
from projections.answers.board_table import BoardTableQuestion
from projections.answers.rankings import ListedRanking
from projections.answers.view import ask
from projections.tables.sizes import MEMORY_BYTES
from projections.verification import witness

NOTE_SECONDS: Final = 60.0
DEMO: Final = "tallybook demo"
"""The name of the sessions of a demo, and of its token, which replaces that of the demo before."""
LIVE_PAUSE_SECONDS: Final = 4.0
LIVE_CONNECTIONS_MAX: Final = 4
MIB: Final = 1024 * 1024
Memory = Annotated[int, Parameter(validator=Number(gte=MEMORY_MIB_MIN, lte=MEMORY_MIB_MAX))]
RequestsPerSecond = Annotated[
    int | None,
    Parameter(
        validator=Number(gte=1, lte=REQUESTS_PER_SECOND_MAX),
        help="Requests that each token, and each address without a token, may send in a second to all processes of "
        "this service; more are answered 429. Without it, no limit.",
    ),
]
Proxies = Annotated[
    int,
    Parameter(
        validator=Number(gte=0, lte=PROXIES_MAX),
        help="Number of proxies in front, each of which adds the address it sees to X-Forwarded-For. Limits for "
        "addresses count by that one.",
    ),
]
Every = Annotated[
    float, Parameter(validator=Number(gt=0), help="Seconds between notes of the digests that have changed.")
]
OpenMetrics = Annotated[bool, Parameter(negative="", help="Show /metrics without a token.")]
Origins = Annotated[
    list[str] | None,
    Parameter(
        negative="",
        help="Origin, such as https://club.example, whose pages may send tokens from browsers; may be given several "
        "times. What needs no token is for pages of all origins.",
    ),
]
SHARDS: Final = 32
"""Citus moves whole shards, so these bound how many nodes the tournaments can be spread over."""


async def serve(
    *,
    host: str = "127.0.0.1",
    port: Port = 8080,
    processes: Annotated[int, Parameter(validator=Number(gte=1, lte=PROCESSES_MAX))] = 1,
    no_worker: Annotated[bool, Parameter(negative="")] = False,
    open_metrics: OpenMetrics = False,
    requests_per_second: RequestsPerSecond = None,
    proxies: Proxies = 0,
    allow_origin: Origins = None,
    memory: Memory = MEMORY_BYTES // MIB,
    digests_to: Path | None = None,
    every: Every = NOTE_SECONDS,
    log_level: LogLevelText = "info",
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 means any free port.
    processes
        API processes that share the port.
    no_worker
        Do not keep the tables; workers elsewhere do.
    memory
        MiB of memory for tournaments in each process. If the tournaments in use need more, it reads them repeatedly.
    digests_to
        File, kept elsewhere, in which to note the digests of tournaments for `tallybook verify --digests`.
    """
    settings = Settings(
        open_metrics=open_metrics,
        requests_per_second=requests_per_second,
        proxies=proxies,
        memory_bytes=memory * MIB,
        origins=_origins(allow_origin or []),
    )
    async with located(where, joinable=True, creates=True) as dsn:
        await _serve(
            dsn,
            host=host,
            port=port,
            processes=processes,
            worker=not no_worker,
            settings=settings,
            log_level=log_level,
            side_task=None if digests_to is None else _noting(dsn, digests_to, every),
        )


def _noting(dsn: str, path: Path, every: float) -> SideTask:
    """Raises Unacceptable if nothing can be noted there, which `keep_noting` would only log."""
    witness.add(path)
    return partial(witness.keep_noting, dsn, path, every)


def _origins(given: list[str]) -> tuple[str, ...]:
    """Raises Unacceptable if one is not what browsers call an origin."""
    for origin in given:
        if ORIGIN.fullmatch(origin) is None:
            raise Unacceptable(
                f"{origin!r} is not an origin: write scheme and host in small letters, and the port if it is not the "
                "scheme's own, such as https://club.example or http://localhost:3000."
            )
    return tuple(given)


async def worker(
    *,
    metrics_port: Port | None = None,
    metrics_host: str = "127.0.0.1",
    memory: Memory = MEMORY_BYTES // MIB,
    log_level: LogLevelText = "info",
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    metrics_port
        Port of the metrics, for Prometheus; 0 means any free port. Without it, none.
    metrics_host
        Address of the metrics.
    memory
        MiB of memory for tournaments in the worker. If the tournaments in use need more, it reads them repeatedly.
    """
    ready = asyncio.Event()

    def on_ready() -> None:
        printing.announce("keeping_tables", "Keeping the tables. Stop with Ctrl-C.")
        systemd.tell(systemd.IS_READY)
        ready.set()

    async with located(where, joinable=True) as dsn:
        log_to(level=log_level)
        with shown_metrics(metrics_host, metrics_port), stop_on_signals() as stop:
            async with systemd.watched(ready.is_set):
                await work(dsn, stop, memory_bytes=memory * MIB, on_ready=on_ready)


async def migrate(
    *,
    distribute: Annotated[bool, Parameter(negative="")] = False,
    shards: Annotated[int, Parameter(validator=Number(gte=1, lte=SHARDS_MAX))] = SHARDS,
    status: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    distribute
        Distribute the tables of tournaments over the nodes of a Citus cluster, at the address of its coordinator. Stop
        the service before. Can be repeated.
    shards
        Number of shards. It applies only the first time.
    status
        Change nothing: show what is missing, and whether the database is plain or distributed.
    """
    async with address(where, creates=not status) as dsn:
        if status:
            missing, topology = await migrator.status(dsn)
            if json:
                printing.json({"missing": list(map(_called, missing)), "topology": topology})
                return
            for migration in missing:
                printing.say(f"lacks {_called(migration)}")
            printing.line(f"topology: {topology}")
            return
        distributed: list[str] = []
        if distribute:
            applied, distributed = await migrator.migrate_and_distribute(dsn, shards=shards)
        else:
            applied = await migrator.migrate(dsn)
        repaired = await migrator.repair(dsn)
    if json:
        printing.json({"applied": list(map(_called, applied)), "distributed": distributed, "repaired": repaired})
        return
    for migration in applied:
        printing.say(f"applied {_called(migration)}")
    for table in distributed:
        printing.say(f"distributed {table}")
    for what in repaired:
        printing.say(what)
    if not applied and not distributed and not repaired:
        printing.say("nothing to do")


def _called(migration: migrator.Migration) -> str:
    return f"{migration.number:04} {migration.name}"


async def demo(
    *,
    host: str = "127.0.0.1",
    port: Port = 8080,
    live: Annotated[bool, Parameter(negative="")] = False,
    log_requests: Annotated[bool, Parameter(negative="")] = False,
    log_level: LogLevelText = "info",
    where: Where = HERE,
) -> None:
    """
    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 means any free port.
    live
        Serve at once, and play the season slowly in a new tournament: its board moves.
    log_requests
        Log every request, and what the processes do. Without it, only warnings and errors.
    """
    chosen_with = "PORT=, as in make demo PORT=9000" if "MAKELEVEL" in os.environ else "--port"
    refuse_unless_free(host, port, chosen_with=chosen_with)  # before a season is played for nothing
    async with located(where, joinable=True, creates=True) as dsn:
        async with open_database(dsn, name=DEMO) as database, open_desk(database, ids_reserved=1) as desk:
            slug = await (_opened_season(desk) if live else _played_season(desk))
            async with tournament_at(desk, slug) as view:
                (ranking,) = await view.rankings(1)
                competitor_id = next(iter(view.names.in_ranking(ranking.id)))
            token = await replace_token(database, DEMO, Scope.ADMIN, expires_in_days=7)
        await _serve(
            dsn,
            host=host,
            port=port,
            processes=1,
            worker=True,
            settings=Settings(),
            log_level=log_level,
            processes_log_level=log_level if log_requests else "warning",
            side_task=partial(_play_slowly, dsn, slug) if live else None,
            on_ready=partial(_say_what_to_try, token, slug, ranking, competitor_id, live=live),
        )


async def _played_season(desk: Desk) -> str:
    """Plays the season, unless it has been played, and prints its table. Returns the slug of its tournament."""
    slug = slugify(league.TOURNAMENT_NAME)
    if await find(desk.database, slug) is None:
        printing.say(f"Playing {league.TOURNAMENT_NAME}: {len(league.RESULTS)} matches …")
        await open_tournament(desk, league.TOURNAMENT_NAME)
    async with tournament_at(desk, slug) as view:
        ranking_id = await league.play(desk, view)
        print_table(await ask(view, BoardTableQuestion(ranking_id=ranking_id, form=False)))
    return slug


async def _opened_season(desk: Desk) -> str:
    """Opens a season that is still to be played. Returns the slug of its tournament."""
    slug = (await open_tournament(desk, league.LIVE_TOURNAMENT_NAME)).slug
    async with tournament_at(desk, slug) as view:
        await league.open_season(desk, view)
    return slug


async def _play_slowly(dsn: str, slug: str) -> None:
    """Plays an open season while the service runs, and says the results."""
    try:
        async with (
            open_database(dsn, name=DEMO, connections_max=LIVE_CONNECTIONS_MAX) as database,
            open_desk(database, ids_reserved=1) as desk,
            tournament_at(desk, slug) as view,
        ):
            season = await league.open_season(desk, view)  # it is open: this finds its ids
            async for match in league.play_slowly(season, pause_seconds=LIVE_PAUSE_SECONDS):
                printing.say(f"  {match}")
            printing.say("The season is over.")
    except TallybookError as error:
        printing.say(f"The season was cut short: {error.message}")


async def _serve(
    dsn: str,
    *,
    host: str,
    port: int,
    processes: int,
    worker: bool,
    settings: Settings,
    log_level: LogLevel,
    side_task: SideTask | None,
    processes_log_level: LogLevel | None = None,
    on_ready: Callable[[str], None] = printing.listening,
) -> None:
    async with open_database(dsn, name="tallybook serve", connections_max=1):
        pass
    log_to(level=log_level)
    printing.announce("database_ready", "The database is ready; starting.")
    with stop_on_signals() as stop:
        await run_service(
            dsn,
            host=host,
            port=port,
            processes=processes,
            worker=worker,
            settings=settings,
            log_level=processes_log_level or log_level,
            side_task=side_task,
            stop=stop,
            on_ready=on_ready,
        )


def _say_what_to_try(
    token: str, slug: str, ranking: ListedRanking, competitor_id: CompetitorId, address: str, *, live: bool
) -> None:
    """Prints the addresses of board and console, three requests to try, and where there are more."""
    at = f"{address}/tournament/{slug}"
    bearer = f"-H 'Authorization: Bearer {token}'"
    delta = f'[{{"competitor_id":{competitor_id},"unities":[{{"unity_id":{ranking.unities[0].id},"delta":"5"}}]}}]'
    printing.say(f"\nThe board, for everyone, is listed at {address}/:\n\n  {address}/board/{slug}")
    if live:
        printing.say(
            f"\nThe season begins. There is a match every {LIVE_PAUSE_SECONDS:.0f} seconds: open it, and watch."
        )
    printing.say(f"\nA token for a week, or until the next demo:\n\n  {token}\n")
    printing.say(f"Sign in with it:\n\n  {address}/console\n\nTry:\n")
    printing.say(f"  curl {bearer} {at}/rankings.json")
    printing.say(f"  curl {bearer} '{at}/competitions.json?per_page=3'")
    printing.say(
        f"  curl {bearer} -H 'Idempotency-Key: bonus-1' -X PUT --data-urlencode 'participants_delta={delta}' "
        f"{at}/rankings/{ranking.id}/add.json\n"
    )
    printing.say(f"More requests, with examples:\n\n  {address}/docs\n")
    printing.listening(address)
