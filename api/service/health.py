"""Operations that name no tournament: whether the service is alive and ready, and its figures."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Final

import msgspec
from msgspec import Struct

from api.access.auth import Scope
from api.desk.quotas import Quotas
from api.http.reply import Reply
from api.http.router import IncomingRequest, Router
from api.service import figures
from engine.database.pool import Database, durable_elsewhere
from engine.domain.terms import TournamentId
from engine.process import telemetry
from engine.process.version import version
from projections.tables import defects, tables

HEALTH: Final = "/healthz"
READINESS: Final = "/readyz"
METRICS: Final = "/metrics"
TROUBLED_MAX: Final = 20
"""Stopped tournaments, defects, and bounds that are nearly reached, that are named."""
Authenticate = Callable[[IncomingRequest, Scope], Awaitable[object]]
"""Finds the token of a request. Raises Unauthenticated, Forbidden, TooManyRequests and DatabaseUnavailable."""


class Troubled(Struct, frozen=True):
    """A tournament that is stopped, or had a defect recently: the part of the work, and the kind of error. It shows no
    more, because anybody may ask; the log and the tables `stopped` and `defect` have the rest."""

    id: TournamentId
    part: str
    why: str


def add_to(
    router: Router,
    *,
    authenticate: Authenticate,
    database: Database,
    quotas: Quotas,
    open_metrics: bool,
) -> None:
    """Adds these operations. Only the figures need a token, of scope admin, unless `open_metrics`."""

    async def healthy(incoming: IncomingRequest) -> Reply:
        incoming.routine = True
        return Reply(health)

    async def ready(incoming: IncomingRequest) -> Reply:
        """200 even if tournaments are stopped: a balancer must not take the whole service out because of one. 503
        without a database."""
        incoming.routine = True
        async with database.connection() as connection:
            stopped = await tables.stopped_count(connection)
            found = await tables.last_stopped(connection, TROUBLED_MAX)
            failing = await defects.recent(connection, TROUBLED_MAX)
            elsewhere = await durable_elsewhere(connection)
        troubled = [
            *(Troubled(tournament_id, "stopped", f"event {at} cannot be folded") for tournament_id, at in found),
            *(Troubled(one.tournament_id, one.part, one.reason.partition("(")[0]) for one in failing),
        ]
        answer = {"status": 200, "message": "ok", "stopped": stopped, "tournaments": troubled}
        if near := quotas.near[:TROUBLED_MAX]:
            answer["quotas"] = near
        return Reply(msgspec.json.encode(answer | ({"durable_elsewhere": elsewhere} if elsewhere else {})))

    async def metrics(incoming: IncomingRequest) -> Reply:
        if not open_metrics:
            await authenticate(incoming, Scope.ADMIN)
        telemetry.settle()
        exposition = await asyncio.to_thread(import_module, "prometheus_client.exposition")  # with an HTTP server
        return Reply(exposition.generate_latest(figures.registry()), media_type=exposition.CONTENT_TYPE_LATEST)

    health = msgspec.json.encode({"status": 200, "message": "ok", "version": version()})

    router.add("GET", HEALTH, healthy)
    router.add("GET", READINESS, ready)
    router.add("GET", METRICS, metrics)
