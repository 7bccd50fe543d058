"""An operator's settings of the HTTP front. Imports no HTTP, so the command line starts faster."""

import re
from typing import Final

from msgspec import Struct

from api.http.limits import CLIENT_CONNECTIONS_MAX
from api.http.outgoing import UNSENT_BYTES_MAX
from projections.tables.sizes import MEMORY_BYTES

FAILURES_AT_ONCE_MAX: Final = 60
"""Failed authentications by one address before it has to wait."""
REQUESTS_PER_SECOND_MAX: Final = 1_000_000
PROXIES_MAX: Final = 10
MEMORY_MIB_MIN: Final = 16
MEMORY_MIB_MAX: Final = 1024 * 1024
ORIGIN: Final = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?", re.ASCII)
"""An origin as browsers send it: scheme, host, and the port if it is not that of the scheme."""


class Settings(Struct, frozen=True, kw_only=True):
    """`requests_per_second`: for each token; None: no limit. `proxies`: the number of trusted proxies in front of the
    service, see `throttle.address_of`. `memory_bytes`: of tournaments in the memory of each process, estimated.
    `origins`: of pages that may send a token and read the answer."""

    open_metrics: bool = False
    requests_per_second: int | None = None
    proxies: int = 0
    memory_bytes: int = MEMORY_BYTES
    failures_at_once: int = FAILURES_AT_ONCE_MAX
    connections: int = CLIENT_CONNECTIONS_MAX
    unsent_bytes: int = UNSENT_BYTES_MAX
    origins: tuple[str, ...] = ()
