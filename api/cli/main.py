"""The command line: the other front door, through the same desk.

Data goes to standard output, talk to standard error. Exit codes: 0 done, 1 refused with a reason, 2 usage,
3 what is stored was disproved: `verify` or `prove` found a difference, 130 interrupted.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Final, Literal

import cyclopts
from asyncpg import Connection
from cyclopts import App, Parameter
from cyclopts.validators import Number
from slugify import slugify

from api.cli import demo as six_nations
from api.cli import printing
from api.cli.audit import digests, prove, verify
from api.cli.imports import Interrupted, register_competitors
from api.cli.past import chart, explain, history, standings
from api.cli.rebuild import rebuild_tables
from api.cli.setting_aside import set_event_aside
from api.cli.void import unvoid, void, what_if
from api.cli.where import HERE, Json, Where, address, database_at, desk_at, find, known, located, tournament_at
from api.desk.desk import Desk, open_desk
from api.http import auth
from api.http.auth import Scope
from api.http.settings import PROXIES_MAX, REQUESTS_PER_SECOND_MAX, Settings
from api.service.process import stop_on_signals
from api.service.processes import PROCESSES_MAX, Beside, run_service
from api.service.worker_process import work
from engine.database.migrator import migrate as apply_migrations
from engine.database.pool import DATABASE_TROUBLE, Database, open_database
from engine.domain.commands import AddUnity, CloseRanking, Command, RegisterCompetitor, ReopenRanking
from engine.domain.errors import LogDisproved, NotFound, OutcomeUnknown, TallybookError, Unacceptable
from engine.domain.terms import (
    OPERATOR,
    ActorId,
    CompetitorId,
    RankingId,
    Sequence,
    Sort,
    TournamentId,
    UnityId,
    name_fault,
)
from engine.log import log
from engine.process.telemetry import log_json
from projections.live.live import Live
from projections.verification.witness import keep_noting

app = App(
    name="tallybook",
    help="Event-sourced rankings of tournaments.",
    version=version("tallybook"),
    config=cyclopts.config.Env("TALLYBOOK_", command=False),
    result_action="return_value",
)
tournament_app = App(name="tournament", help="Open and list tournaments.")
competitor_app = App(name="competitor", help="Register, import and list competitors.")
unity_app = App(name="unity", help="Add unities to rankings.")
ranking_app = App(name="ranking", help="Close, reopen and list rankings.")
token_app = App(name="token", help="Make, list and revoke tokens.")
for part in (tournament_app, competitor_app, unity_app, ranking_app, token_app):
    app.command(part)
for command in (standings, history, explain, chart, void, unvoid, what_if, verify, digests, prove):
    app.command(command)
app.command(rebuild_tables, name="rebuild")
app.command(set_event_aside, name="set-aside")

SLUG_CHARACTERS_MAX: Final = 100
SLUG_ATTEMPTS_MAX: Final = 1_000
PORT_MAX: Final = 65_535
NOTE_SECONDS: Final = 60.0
INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""
Port = Annotated[int, Parameter(validator=Number(gte=0, lte=PORT_MAX))]
Names = Annotated[list[str] | None, Parameter(negative="")]


# ── The service ─────────────────────────────────────────────────────────────────────────────────────────


@app.command
async def serve(
    *,
    host: str = "127.0.0.1",
    port: Port = 8080,
    processes: Annotated[int, Parameter(validator=Number(gte=1, lte=PROCESSES_MAX))] = 1,
    no_worker: Annotated[bool, Parameter(negative="")] = False,
    open_metrics: Annotated[bool, Parameter(negative="")] = False,
    requests_per_second: Annotated[int | None, Parameter(validator=Number(gte=1, lte=REQUESTS_PER_SECOND_MAX))] = None,
    proxies: Annotated[int, Parameter(validator=Number(gte=0, lte=PROXIES_MAX))] = 0,
    digests_to: Path | None = None,
    every: Annotated[float, Parameter(validator=Number(gt=0))] = NOTE_SECONDS,
    where: Where = HERE,
) -> None:
    """Answer the interface over HTTP until SIGTERM or Ctrl-C.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0: any free one.
    processes
        API processes that share the port.
    no_worker
        Leave the tables to workers elsewhere.
    open_metrics
        Show /metrics without a token.
    requests_per_second
        How many each token may send to each process; more are answered 429.
    proxies
        How many proxies in front add the address they see to X-Forwarded-For. Whoever fails to authenticate too
        often is told by it.
    digests_to
        File to note the digests of heads in, for `tallybook verify --digests`; keep it elsewhere.
    every
        Seconds between such notes; of heads that have changed.
    """
    settings = Settings(open_metrics=open_metrics, requests_per_second=requests_per_second, proxies=proxies)
    async with located(where, joinable=True, creates=True) as dsn:
        noting = None if digests_to is None else partial(keep_noting, dsn, digests_to, every)
        await _serve(
            dsn,
            host=host,
            port=port,
            processes=processes,
            worker=not no_worker,
            settings=settings,
            beside=noting,
        )


@app.command
async def worker(*, where: Where = HERE) -> None:
    """Keep the tables, and nothing else, until SIGTERM or Ctrl-C."""
    async with located(where, joinable=True) as dsn:
        with stop_on_signals() as stop:
            await work(dsn, stop, on_ready=lambda: printing.say("Keeping the tables. Stop with Ctrl-C."))


@app.command
async def migrate(*, where: Where = HERE) -> None:
    """Bring the database's schema up to date. Needs a login that may create schemas and roles."""
    async with address(where, creates=True) as dsn:
        applied = await apply_migrations(dsn)
    for migration in applied:
        printing.say(f"applied {migration.number:04} {migration.name}")
    if not applied:
        printing.say("nothing to do")


@app.command
async def demo(*, host: str = "127.0.0.1", port: Port = 8080, where: Where = HERE) -> None:
    """Play a season of rugby, show its table and how to ask for it, and serve.

    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0: any free one.
    """
    async with located(where, joinable=True, creates=True) as dsn:
        async with open_database(dsn, name="tallybook demo") as database, open_desk(database, ids_reserved=1) as desk:
            slug = slugify(six_nations.NAME)
            tournament_id = await find(database, slug)
            if tournament_id is None:
                printing.say(f"Playing {six_nations.NAME}: {len(six_nations.MATCHES)} matches …")
                tournament_id = (await _open_tournament(desk, six_nations.NAME)).tournament_id
            async with desk.lives.pinned(tournament_id) as live:
                ranking_id = await six_nations.play(desk, live)
                printing.standings(live, ranking_id)
            token = await _make_token(database, "demo", Scope.ADMIN, [tournament_id], expires_in_days=7)
            say = partial(printing.demo, token[1], slug, ranking_id, live)
        await _serve(dsn, host=host, port=port, processes=1, worker=True, settings=Settings(), on_ready=say)


async def _serve(
    dsn: str,
    *,
    host: str,
    port: int,
    processes: int,
    worker: bool,
    settings: Settings,
    beside: Beside | None = None,
    on_ready: printing.OnReady = printing.listening,
) -> None:
    async with open_database(dsn, name="tallybook serve", connections_max=1):
        printing.say("The database is sound; starting.")
    with stop_on_signals() as stop:
        await run_service(
            dsn,
            host=host,
            port=port,
            processes=processes,
            worker=worker,
            settings=settings,
            beside=beside,
            stop=stop,
            on_ready=on_ready,
        )


# ── Tournaments ─────────────────────────────────────────────────────────────────────────────────────────


@tournament_app.command(name="create")
async def create_tournament(name: str, /, *, json: Json = False, where: Where = HERE) -> None:
    """Open a tournament. Its slug, the name in its address, is made from NAME."""
    async with desk_at(where, creates=True) as desk:
        registered = await _open_tournament(desk, name)
    if json:
        printing.json({"id": registered.tournament_id, "name": registered.name, "slug": registered.slug})
    else:
        printing.line(registered.slug)


@tournament_app.command(name="list")
async def list_tournaments(*, json: Json = False, where: Where = HERE) -> None:
    """List all tournaments."""
    async with database_at(where) as database, database.connection() as connection:
        rows = [
            {"id": t.tournament_id, "slug": t.slug, "name": t.name, "events": t.sequence}
            for t in await log.tournaments(connection)
        ]
    printing.rows(rows, ("id", "slug", "name", "events"), as_json=json)


# ── Competitors ─────────────────────────────────────────────────────────────────────────────────────────


@competitor_app.command(name="add")
async def add_competitor(
    slug: str,
    name: str,
    /,
    *,
    tag: Names = None,
    color: str | None = None,
    parent: int | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """Register a competitor.

    Parameters
    ----------
    tag
        A tag; may be given several times.
    color
        Six hexadecimal characters, without #.
    parent
        Id of the competitor above it in the hierarchy.
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        competitor_id = CompetitorId(await desk.new_id())
        await _do(
            desk,
            live,
            RegisterCompetitor(
                competitor_id=competitor_id,
                name=name,
                tags=tuple(tag or ()),
                color=color,
                parent_id=None if parent is None else CompetitorId(parent),
            ),
        )
    if json:
        printing.json({"id": competitor_id, "name": name.strip()})
    else:
        printing.line(str(competitor_id))


@competitor_app.command(name="import")
async def import_competitors(slug: str, file: Path, /, *, json: Json = False, where: Where = HERE) -> None:
    """Register the competitors of a .csv or .ndjson FILE, in its order.

    Columns: name, then optionally tags (separated by |), color, parent (a name or id). Where a line is wrong, every
    such line is named and nobody is registered.

    Where it is cut off, by Ctrl-C, a kill or a lost database, those who are registered stay, and the same command again
    registers the others: nobody twice. A line counts as registered if an import into this tournament, of this file or
    another, has registered one of the same name, tags, color and parent; lines of a file that say the same are as many
    competitors. So lines may be added and corrected, and the file imported again; but whoever was registered by a line
    that says something else now stays as they are, beside whom the new line registers. Somebody else of the same name,
    tags, color and parent is registered by `tallybook competitor add`.
    """
    with ExitStack() as listening:  # also while everything is closed: what is said then is heard
        try:
            async with desk_at(where) as desk, tournament_at(desk, slug) as live:
                stop = listening.enter_context(stop_on_signals())
                with printing.progress("importing") as advance:
                    imported = await register_competitors(desk, live, file, stop=stop, progress=advance)
        except asyncio.CancelledError:  # Ctrl-C, before it was listened for
            printing.say("Interrupted before this command registered anybody.")
            raise
    if json:
        printing.json(imported)
    else:
        printing.imported(imported.registered, imported.already_registered)


@competitor_app.command(name="list")
async def list_competitors(slug: str, /, *, json: Json = False, where: Where = HERE) -> None:
    """List the competitors of a tournament in the order of their registration."""
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        rows: list[dict[str, object]] = [
            {"id": i, "name": c.name, "tags": list(c.tags), "color": c.color, "parent": c.parent_id}
            for i, c in live.board.competitors.items()
        ]
    printing.rows(rows, ("id", "name", "tags", "color", "parent"), as_json=json)


# ── Rankings and unities ────────────────────────────────────────────────────────────────────────────────


@unity_app.command(name="add")
async def add_unity(
    slug: str,
    ranking_id: int,
    name: str,
    /,
    *,
    sort: Literal["ASC", "DESC"] = "DESC",
    json: Json = False,
    where: Where = HERE,
) -> None:
    """Add a unity to a ranking.

    Parameters
    ----------
    sort
        Which totals are better: the higher (DESC) or the lower (ASC).
    """
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        unity_id = UnityId(await desk.new_id())
        await _do(desk, live, AddUnity(ranking_id=RankingId(ranking_id), unity_id=unity_id, name=name, sort=Sort(sort)))
    if json:
        printing.json({"id": unity_id, "name": name.strip(), "sort": sort})
    else:
        printing.line(str(unity_id))


@ranking_app.command(name="close")
async def close_ranking(slug: str, ranking_id: int, /, *, where: Where = HERE) -> None:
    """Close a ranking: every change is refused until it is reopened."""
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        await _do(desk, live, CloseRanking(ranking_id=RankingId(ranking_id)))
    printing.say(f"ranking {ranking_id} is closed")


@ranking_app.command(name="reopen")
async def reopen_ranking(slug: str, ranking_id: int, /, *, where: Where = HERE) -> None:
    """Reopen a closed ranking."""
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        await _do(desk, live, ReopenRanking(ranking_id=RankingId(ranking_id)))
    printing.say(f"ranking {ranking_id} is open")


@ranking_app.command(name="list")
async def list_rankings(slug: str, /, *, json: Json = False, where: Where = HERE) -> None:
    """List the rankings of a tournament and their unities."""
    async with desk_at(where) as desk, tournament_at(desk, slug) as live:
        rows = [printing.ranking_row(ranking_id, ranking) for ranking_id, ranking in live.board.rankings.items()]
    printing.rows(rows, ("id", "name", "unities", "competitors", "closed_at"), as_json=json)


# ── Tokens ──────────────────────────────────────────────────────────────────────────────────────────────


@token_app.command(name="create")
async def create_token(
    name: str,
    /,
    *,
    scope: Literal["read", "write", "admin"],
    tournament: Names = None,
    expires_in_days: int | None = None,
    json: Json = False,
    where: Where = HERE,
) -> None:
    """Make a token and show it, once.

    Parameters
    ----------
    scope
        read < write < admin.
    tournament
        Slug of a tournament it is bound to; may be given several times; without: all.
    expires_in_days
        After so many days it is no longer good; without: never.
    """
    async with database_at(where) as database:
        slugs = tournament or []
        bound = [await known(database, slug) for slug in slugs] if slugs else None
        token, text = await _make_token(database, name, Scope[scope.upper()], bound, expires_in_days=expires_in_days)
    if json:
        printing.json(
            {
                "id": token.token_id,
                "token": text,
                "scope": scope,
                "tournaments": tournament,
                "expires_at": printing.moment(token.expires_at),
            }
        )
    else:
        printing.say("Keep it; it is not shown again.")
        printing.line(text)


@token_app.command(name="list")
async def list_tokens(*, json: Json = False, where: Where = HERE) -> None:
    """List all tokens, the revoked ones too; never their texts."""
    async with database_at(where) as database, database.connection() as connection:
        slugs = {t.tournament_id: t.slug for t in await log.tournaments(connection)}
        rows = [printing.token_row(token, slugs) for token in await auth.listed(connection)]
    columns = ("id", "name", "scope", "tournaments", "created_at", "expires_at", "revoked_at")
    printing.rows(rows, columns, as_json=json)


@token_app.command(name="revoke")
async def revoke_token(token_id: int, /, *, where: Where = HERE) -> None:
    """Take a token out of use, within five seconds everywhere."""
    async with database_at(where) as database, database.connection() as connection:
        if not await auth.revoke(connection, ActorId(token_id)):
            raise NotFound(f"There is no token {token_id} in use.")
    printing.say(f"token {token_id} is revoked")


# ── What the commands have in common ────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _writing(database: Database) -> AsyncIterator[Connection]:
    """A connection for a write that goes past the desk: if it is lost, nobody knows what became of it."""
    async with database.connection() as connection:
        try:
            yield connection
        except DATABASE_TROUBLE as error:
            raise OutcomeUnknown from error


async def _open_tournament(desk: Desk, name: str) -> log.Registered:
    """Opens a tournament under the first free slug of its name: slug, slug-2, slug-3 …"""
    name = name.strip()
    fault = name_fault(name)
    if fault:
        raise Unacceptable(f"The name {fault}.")
    stem = slugify(name, max_length=SLUG_CHARACTERS_MAX)
    if not stem:
        raise Unacceptable("Nothing of this name is left for its address; use letters or digits in it.")
    tournament_id = TournamentId(await desk.new_id())
    async with _writing(desk.database) as connection:
        for number in range(1, SLUG_ATTEMPTS_MAX + 1):
            slug = stem if number == 1 else f"{stem}-{number}"
            if await log.open_tournament(connection, tournament_id, name=name, slug=slug, actor=OPERATOR):
                return log.Registered(tournament_id, slug, name, Sequence(1))
    raise Unacceptable(f"There are {SLUG_ATTEMPTS_MAX} tournaments of this name; choose another.")


async def _make_token(
    database: Database,
    name: str,
    scope: Scope,
    tournament_ids: list[TournamentId] | None,
    *,
    expires_in_days: int | None,
) -> tuple[auth.Token, str]:
    async with _writing(database) as connection:
        return await auth.create(
            connection, name=name, scope=scope, tournament_ids=tournament_ids, expires_in_days=expires_in_days
        )


async def _do(desk: Desk, live: Live, command: Command) -> None:
    await desk.submit(live, command, actor=OPERATOR)


def code_of(error: TallybookError) -> int:
    """The exit code of a command that raised this."""
    match error:
        case LogDisproved():
            return 3
        case Interrupted():
            return INTERRUPTED
    return 1


def main() -> None:
    """Runs the command of `sys.argv` and exits with its code."""
    printing.in_any_encoding()
    log_json()
    try:
        app(exit_on_error=False)
    except cyclopts.CycloptsError:
        sys.exit(2)
    except TallybookError as error:
        printing.refused(error)
        sys.exit(code_of(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
