"""What operators and balancers ask: is it alive, is it ready, what are its figures."""

import os
from typing import Final

import msgspec
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from api.auth import Scope
from api.routes import Operations
from engine.database import Database
from projections import tables

HEALTH: Final = "/healthz"
READINESS: Final = "/readyz"
METRICS: Final = "/metrics"


def add_to(router: web.UrlDispatcher, *, operations: Operations, database: Database, open_metrics: bool) -> None:
    """Adds health, readiness and metrics. The first two are open and name no tournament."""

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(body=b'{"status":200,"message":"ok"}', content_type="application/json")

    async def ready(_: web.Request) -> web.Response:
        """200 also where tournaments are stopped: a balancer must not take all away for one. 503 without database."""
        async with database.connection() as connection:
            stopped = await tables.stopped_count(connection)
        body = msgspec.json.encode({"status": 200, "message": "ok", "stopped": stopped})
        return web.Response(body=body, content_type="application/json")

    async def metrics(request: web.Request) -> web.Response:
        if not open_metrics:
            await operations.authenticated(request, Scope.ADMIN)
        return web.Response(body=generate_latest(_registry()), headers={"Content-Type": CONTENT_TYPE_LATEST})

    router.add_get(HEALTH, healthy)
    router.add_get(READINESS, ready)
    router.add_get(METRICS, metrics)


def _registry() -> CollectorRegistry:
    """The figures of all processes that share a directory for them, or of this one."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry
