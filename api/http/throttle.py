"""How often somebody may do something: 429 for what is more. In memory, so each process of a service counts for itself.

Two things are counted: failed authentication by the client's address, because each guess of a token that has the
right checksum costs a query; and, where the operator asks for it, the requests of each token.
"""

import math
import time
from collections.abc import Callable, Hashable
from ipaddress import IPv6Address, ip_address
from typing import Final

from aiohttp import web

from api.http.settings import FAILURES_AT_ONCE_MAX
from engine.domain.errors import TooManyRequests

FAILURES_PER_SECOND_MAX: Final = 1.0
"""Failed authentications by one address, after FAILURES_AT_ONCE_MAX."""
WAIT_SECONDS_MAX: Final = 60.0
"""Nobody has to wait longer, however much was too much."""
KEYS_MAX: Final = 10_000
"""Who is remembered at once by a throttle; beyond them the one seen first is forgotten, and begins anew."""
_IPV6_PREFIX_BITS: Final = 64
"""Of an IPv6 address, what one client is given as a whole."""


class Throttle:
    """Lets each key do something `at_once` times, and then `per_second` times a second. `clock` counts seconds.

    This is the generic cell rate algorithm (ITU-T I.371): of a key only the time is kept at which all that it has done
    will have been paid for. A key that has paid is as one that was never seen.
    """

    def __init__(
        self,
        message: str,
        *,
        at_once: int,
        per_second: float,
        keys_max: int = KEYS_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._message = message
        self._seconds_each = 1 / per_second
        self._debt_seconds_max = (at_once - 1) / per_second
        self._keys_max = keys_max
        self._clock = clock
        self._paid_at: dict[Hashable, float] = {}

    def take(self, key: Hashable) -> None:
        """Counts one more. Raises TooManyRequests, and counts nothing, where it is one too many."""
        self.refuse(key)
        self.count(key)

    def refuse(self, key: Hashable) -> None:
        """Raises TooManyRequests where one more would be one too many."""
        too_early_seconds = self._paid_at.get(key, 0.0) - self._clock() - self._debt_seconds_max
        if too_early_seconds > _ROUNDING_SECONDS:
            raise TooManyRequests(self._message, math.ceil(too_early_seconds))

    def count(self, key: Hashable) -> None:
        """Counts one more, whether it may be or not: many can be under way before the first of them is counted."""
        now = self._clock()
        paid_at = max(now, self._paid_at.get(key, now)) + self._seconds_each
        if key not in self._paid_at and len(self._paid_at) >= self._keys_max:
            del self._paid_at[next(iter(self._paid_at))]
        self._paid_at[key] = min(paid_at, now + self._debt_seconds_max + WAIT_SECONDS_MAX)


_ROUNDING_SECONDS: Final = 1e-9


def failures(*, at_once: int = FAILURES_AT_ONCE_MAX) -> Throttle:
    """For failed authentication, by address."""
    message = "Too many requests without a good token came from your address; wait before you send another."
    return Throttle(message, at_once=at_once, per_second=FAILURES_PER_SECOND_MAX)


def requests(per_second: int) -> Throttle:
    """For the requests of each token."""
    message = f"This token may send {per_second} requests a second; wait before you send another."
    return Throttle(message, at_once=per_second, per_second=per_second)


def address_of(request: web.BaseRequest, *, proxies: int) -> str:
    """The address that a request comes from, as far as it is the same client's; the first 64 bits of an IPv6 one.

    `proxies` is how many there are in front of the service that add the address they see to X-Forwarded-For: so many
    of its entries, from the right, can be believed, and the leftmost of these is the client. A header that is shorter,
    or holds something else there, is not believed at all.
    """
    address = request.remote or ""
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
