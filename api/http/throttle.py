"""Limits how often a client may do something; beyond that, the answer is 429. Processes of a service count together.

Three things are counted: failed authentication, by the client's address, because each guess of a token with the right
checksum costs a query; and, if the operator limits them, the requests of each token, and those of each address without
a token.
"""

import math
import time
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final

from api.http.errors import TooManyRequests
from api.http.request import HttpRequest
from api.http.shared_times import SharedTimes

FAILURES_PER_SECOND_MAX: Final = 1.0
"""Failed authentications by one address, after FAILURES_AT_ONCE_MAX."""
WAIT_SECONDS_MAX: Final = 60.0
"""The longest wait of a client, however far it exceeded the limit."""
THROTTLE_KEYS_MAX: Final = 10_000
"""Keys that a throttle remembers in memory of its own. Beyond them it drops the oldest one, which then starts from
zero."""
_IPV6_PREFIX_BITS: Final = 64
"""All IPv6 addresses that share this many leading bits count as one client."""


class Times:
    """Times by key, in memory of its own."""

    def __init__(self, *, keys_max: int = THROTTLE_KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._times: dict[Hashable, float] = {}

    def get(self, key: Hashable) -> float:
        """The time of the key; 0: it has none."""
        return self._times.get(key, 0.0)

    def put(self, key: Hashable, at: float) -> None:
        if key not in self._times and len(self._times) >= self._keys_max:
            del self._times[next(iter(self._times))]
        self._times[key] = at


class Throttle:
    """Lets each key do something `at_once` times, and then `per_second` times a second. `clock` counts seconds, the
    same for all processes that share the `times`.

    This is the generic cell rate algorithm (ITU-T I.371). It keeps one time per key, at which everything that the key
    has done will have been paid for. A key that has paid is like one never seen.
    """

    def __init__(
        self,
        message: str,
        *,
        at_once: int,
        per_second: float,
        times: Times | SharedTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._message = message
        self._seconds_each = 1 / per_second
        self._debt_seconds_max = (at_once - 1) / per_second
        self._clock = clock
        self._paid_at = times or Times()

    def take(self, key: Hashable) -> None:
        """Counts one more. Raises TooManyRequests beyond the limit, and counts nothing then."""
        self.refuse(key)
        self.count(key)

    def refuse(self, key: Hashable) -> None:
        """Raises TooManyRequests if one more would exceed the limit."""
        if wait_seconds := self.wait_seconds(key):
            raise TooManyRequests(self._message, math.ceil(wait_seconds))

    def wait_seconds(self, key: Hashable) -> float:
        """The time after which one more would no longer exceed the limit; 0: it would not now."""
        too_early_seconds = self._paid_at.get(key) - self._clock() - self._debt_seconds_max
        return too_early_seconds if too_early_seconds > _ROUNDING_SECONDS else 0.0

    def count(self, key: Hashable) -> None:
        """Counts one more, even beyond the limit: many can be under way before the first of them is counted."""
        now = self._clock()
        paid_at = max(now, self._paid_at.get(key)) + self._seconds_each
        self._paid_at.put(key, min(paid_at, now + self._debt_seconds_max + WAIT_SECONDS_MAX))


_ROUNDING_SECONDS: Final = 1e-9


def failures(*, at_once: int, shared: Path | None) -> Throttle:
    """The throttle of failed authentication, by address. `shared`, as below: the file in which the processes of the
    service count."""
    message = "Too many requests without a valid token came from your address; wait before you send another."
    times = _times("failures", shared)
    return Throttle(message, at_once=at_once, per_second=FAILURES_PER_SECOND_MAX, times=times)


def requests(per_second: int, *, shared: Path | None) -> Throttle:
    """The throttle of the requests of each token."""
    message = f"This token may send {per_second} requests a second; wait before you send another."
    return Throttle(message, at_once=per_second, per_second=per_second, times=_times("requests", shared))


def visits(per_second: int, *, shared: Path | None) -> Throttle:
    """The throttle of the requests without a token, by address."""
    message = f"Your address may send {per_second} requests a second without a token; wait before you send another."
    return Throttle(message, at_once=per_second, per_second=per_second, times=_times("visits", shared))


def _times(name: str, shared: Path | None) -> Times | SharedTimes:
    return Times() if shared is None else SharedTimes(shared, name)


def address_of(request: HttpRequest, *, proxies: int) -> str:
    """The address of the client that sent a request; of an IPv6 address only its first 64 bits, in hexadecimal.

    `proxies`: the number of proxies in front of the service that add their client's address to X-Forwarded-For. That
    many entries, from the right, can be trusted; the leftmost of them is the client. A header with fewer entries, or
    with anything but an address there, is ignored.
    """
    address = request.remote
    if proxies:
        entries = ",".join(request.headers.getall("X-Forwarded-For", [])).split(",")
        if len(entries) >= proxies:
            address = _ip(entries[-proxies].strip()) or address
    return _ip(address) or address


def _ip(text: str) -> str | None:
    try:
        ip = ip_address(text)
    except ValueError:
        return None
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return str(ip.ipv4_mapped)
        return ip.packed[: _IPV6_PREFIX_BITS // 8].hex()
    return str(ip)
