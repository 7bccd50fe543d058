"""All that is for people who visit the service: boards, console, documentation."""

from collections.abc import Callable

from api.desk.desk import Desk
from api.http.compression import Compression
from api.http.router import Router
from api.http.throttle import Throttle
from api.interface.handlers import Handlers
from api.web.board import BoardHandlers
from api.web.console.answering import Console
from api.web.console.console import ConsoleHandlers
from api.web.docs import docs
from api.web.files import static_files


def pages_router(
    handlers: Handlers,
    compression: Compression,
    desk: Desk,
    *,
    nothing_at: Callable[[str], str],
    visits: Throttle | None,
    proxies: int,
) -> Router:
    """The router of all pages. Making it takes long: it reads the static files, and makes the documentation.
    `nothing_at`: as for `docs.add_to`."""
    router, static, views = Router(), static_files(), handlers.public_views
    docs.add_to(router, compression, static, views, nothing_at=nothing_at, visits=visits, proxies=proxies)
    BoardHandlers(views, compression, static, visits=visits, proxies=proxies).add_to(router)
    ConsoleHandlers(Console(handlers, desk, static), proxies=proxies).add_to(router)
    return router
