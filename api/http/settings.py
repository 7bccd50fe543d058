"""An operator's settings of the HTTP front, and its limits. Imports no HTTP, so the command line starts faster."""

from typing import Final

from msgspec import Struct

from api.http.outgoing import UNSENT_BYTES_MAX
from projections.tables.sizes import MEMORY_BYTES

CLIENT_CONNECTIONS_MAX: Final = 12_000
"""Connections of one process, if its file descriptors suffice. Beyond them, a silent client is disconnected for a new
one."""
UNACCEPTED_MAX: Final = 4_096
"""Connections that may wait until a process accepts them. Linux has the same limit by default (net.core.somaxconn), and
lets all others try again after a second."""
FAILURES_AT_ONCE_MAX: Final = 60
"""Failed authentications by one address before it has to wait."""
REQUESTS_PER_SECOND_MAX: Final = 1_000_000
PROXIES_MAX: Final = 10
MEMORY_MIB_MIN: Final = 16
MEMORY_MIB_MAX: Final = 1024 * 1024


class Settings(Struct, frozen=True, kw_only=True):
    """`requests_per_second`: for each token; None: no limit. `proxies`: the number of trusted proxies in front of the
    service, see `throttle.address_of`. `memory_bytes`: of tournaments in the memory of each process, estimated."""

    open_metrics: bool = False
    requests_per_second: int | None = None
    proxies: int = 0
    memory_bytes: int = MEMORY_BYTES
    failures_at_once: int = FAILURES_AT_ONCE_MAX
    connections: int = CLIENT_CONNECTIONS_MAX
    unsent_bytes: int = UNSENT_BYTES_MAX
