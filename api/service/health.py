"""What is not about a tournament: whether the service is alive, whether it is ready, its figures, and its
documentation."""

from typing import Final

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from api.http.auth import Scope
from api.http.exchange import Reply, Visit
from api.http.router import Router
from api.interface import docs, openapi
from api.interface.handlers import Handlers
from api.service import figures
from engine.database.pool import Database
from engine.process import telemetry
from projections.tables import tables

HEALTH: Final = "/healthz"
READINESS: Final = "/readyz"
METRICS: Final = "/metrics"
DESCRIPTION: Final = "/openapi.json"
DOCUMENTATION: Final = "/docs"


def add_to(router: Router, *, operations: Handlers, database: Database, open_metrics: bool) -> None:
    """Adds these operations. Only the figures need a token, of scope admin, unless `open_metrics`. The others name no
    tournament."""

    async def healthy(_: Visit) -> Reply:
        return Reply(b'{"status":200,"message":"ok"}')

    async def ready(_: Visit) -> Reply:
        """200 even if tournaments are stopped: a balancer must not take all away because of one. 503 without a
        database."""
        async with database.connection() as connection:
            stopped = await tables.stopped_count(connection)
        return Reply(msgspec.json.encode({"status": 200, "message": "ok", "stopped": stopped}))

    async def metrics(visit: Visit) -> Reply:
        if not open_metrics:
            await operations.authenticated(visit, Scope.ADMIN)
        telemetry.settle()
        return Reply(generate_latest(figures.registry()), media_type=CONTENT_TYPE_LATEST)

    async def description(_: Visit) -> Reply:
        return Reply(openapi.document())

    async def documentation(_: Visit) -> Reply:
        return Reply(docs.page(), media_type="text/html; charset=utf-8", headers=docs.HEADERS)

    router.add("GET", HEALTH, healthy)
    router.add("GET", READINESS, ready)
    router.add("GET", METRICS, metrics)
    router.add("GET", DESCRIPTION, description)
    router.add("GET", DOCUMENTATION, documentation)
    openapi.document()  # now, and not for a request: it takes longer than one may
    docs.page()
