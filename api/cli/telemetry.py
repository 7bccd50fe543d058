"""Telemetry of long-running commands: metrics on a port of their own, and a log."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import prometheus_client
from cyclopts import Parameter
from cyclopts.validators import Number

from api.cli import printing
from engine.domain.errors import StartupRefused
from engine.process.telemetry import LogLevel

PORT_MAX: Final = 65_535
Port = Annotated[int, Parameter(validator=Number(gte=0, lte=PORT_MAX))]
LogLevelText = Annotated[LogLevel, Parameter(help="The lowest level of log lines to write.")]


@contextmanager
def shown_metrics(host: str, port: int | None) -> Iterator[None]:
    """Within the context, this process shows its metrics at http://host:port/metrics. `port` 0: any free one; None: it
    does not. Raises StartupRefused if the port cannot be had."""
    if port is None:
        yield
        return
    try:
        server, thread = prometheus_client.start_http_server(port, host)
    except OSError as error:
        raise StartupRefused(
            f"Cannot serve metrics on {host}, port {port}: {error.strerror}; "
            "choose another with --metrics-port or --metrics-host."
        ) from error
    shown_at = f"http://{host}:{server.server_port}/metrics"
    printing.announce("metrics_shown", f"Metrics on {shown_at}", address=shown_at)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
