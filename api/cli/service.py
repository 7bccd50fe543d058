"""Commands that run the service: `serve`, `worker`, `migrate` and `demo`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number
from slugify import slugify

from api.cli import demo as six_nations
from api.cli import printing
from api.cli.standings_text import print_standings
from api.cli.tokens import make_token
from api.cli.tournaments import open_tournament
from api.cli.where import HERE, Where, address, find, located
from api.desk.desk import open_desk
from api.http.auth import Scope
from api.http.settings import PROXIES_MAX, REQUESTS_PER_SECOND_MAX, Settings
from api.service.lifecycle import stop_on_signals
from api.service.supervisor import PROCESSES_MAX, SideTask, run_service
from api.service.worker_process import work
from engine.database.migrator import migrate as apply_migrations
from engine.database.pool import open_database
from engine.domain.terms import RankingId
from projections.live.tournament import LiveTournament
from projections.verification.witness import keep_noting

PORT_MAX: Final = 65_535
NOTE_SECONDS: Final = 60.0
Port = Annotated[int, Parameter(validator=Number(gte=0, lte=PORT_MAX))]


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
    open_metrics
        Show /metrics without a token.
    requests_per_second
        Requests that each token may send to each process in a second; more are answered 429. Without it, no limit.
    proxies
        Number of proxies in front, each of which adds the address it sees to X-Forwarded-For. The limit on failed
        authentications counts by that address.
    digests_to
        File, kept elsewhere, in which to note the digests of tournaments for `tallybook verify --digests`.
    every
        Seconds between notes of the digests that have changed.
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
            side_task=noting,
        )


async def worker(*, where: Where = HERE) -> None:
    async with located(where, joinable=True) as dsn:
        with stop_on_signals() as stop:
            await work(dsn, stop, on_ready=lambda: printing.say("Keeping the tables. Stop with Ctrl-C."))


async def migrate(*, where: Where = HERE) -> None:
    async with address(where, creates=True) as dsn:
        applied = await apply_migrations(dsn)
    for migration in applied:
        printing.say(f"applied {migration.number:04} {migration.name}")
    if not applied:
        printing.say("nothing to do")


async def demo(*, host: str = "127.0.0.1", port: Port = 8080, where: Where = HERE) -> None:
    """
    Parameters
    ----------
    host
        Address to listen on.
    port
        Port to listen on; 0 means any free port.
    """
    async with located(where, joinable=True, creates=True) as dsn:
        async with open_database(dsn, name="tallybook demo") as database, open_desk(database, ids_reserved=1) as desk:
            slug = slugify(six_nations.TOURNAMENT_NAME)
            tournament_id = await find(database, slug)
            if tournament_id is None:
                printing.say(f"Playing {six_nations.TOURNAMENT_NAME}: {len(six_nations.MATCHES)} matches …")
                tournament_id = (await open_tournament(desk, six_nations.TOURNAMENT_NAME)).tournament_id
            async with desk.live_pool.pinned(tournament_id) as live:
                ranking_id = await six_nations.play(desk, live)
                print_standings(live.board, ranking_id)
            token = await make_token(database, "demo", Scope.ADMIN, [tournament_id], expires_in_days=7)
            say = partial(_say_what_to_try, token[1], slug, ranking_id, live)
        await _serve(dsn, host=host, port=port, processes=1, worker=True, settings=Settings(), on_ready=say)


async def _serve(
    dsn: str,
    *,
    host: str,
    port: int,
    processes: int,
    worker: bool,
    settings: Settings,
    side_task: SideTask | None = None,
    on_ready: Callable[[str], None] = printing.listening,
) -> None:
    async with open_database(dsn, name="tallybook serve", connections_max=1):
        printing.say("The database is ready; starting.")
    with stop_on_signals() as stop:
        await run_service(
            dsn,
            host=host,
            port=port,
            processes=processes,
            worker=worker,
            settings=settings,
            side_task=side_task,
            stop=stop,
            on_ready=on_ready,
        )


def _say_what_to_try(token: str, slug: str, ranking_id: RankingId, live: LiveTournament, address: str) -> None:
    """Prints three requests to try."""
    ranking = live.board.rankings[ranking_id]
    competitor_id, unity_id = next(iter(ranking.participants)), next(iter(ranking.unities))
    at = f"{address}/tournament/{slug}"
    bearer = f"-H 'Authorization: Bearer {token}'"
    delta = f'[{{"competitor_id":{competitor_id},"unities":[{{"unity_id":{unity_id},"delta":"5"}}]}}]'
    printing.say(f"\nA token for a week:\n\n  {token}\n\nTry:\n")
    printing.say(f"  curl {bearer} {at}/rankings.json")
    printing.say(f"  curl {bearer} '{at}/competitions.json?per_page=3'")
    printing.say(
        f"  curl {bearer} -X PUT --data-urlencode 'participants_delta={delta}' {at}/rankings/{ranking_id}/add.json\n"
    )
    printing.listening(address)
