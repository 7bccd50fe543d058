"""The addresses that a webhook may have.

A message must not reach servers that only this machine and its network can reach: otherwise, anybody who may add a
webhook could send requests there. So a webhook connects only to public addresses, unless its operator allows others.

The check is made when the socket is created, with the very address that it will be connected to. No name is looked up a
second time between the check and the connection, so an answer that changes meanwhile (*rebinding*) has no effect. If a
name has several addresses, only the public ones are connected to. `private_fault` applies the same rule earlier, when a
webhook is added.
"""

import asyncio
import socket
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from yarl import URL

URL_CHARACTERS_MAX: Final = 2_000
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_SCHEMES: Final = ("https", "http")
_HOST_CHARACTERS_MAX: Final = 253
_LOOKUP_SECONDS_MAX: Final = 5.0


class PrivateAddress(OSError):
    """The address is not public, and the webhook may not lead there."""


def public_socket(address_info: tuple[int, int, int, str, Any]) -> socket.socket:
    """A socket for this address, as `getaddrinfo` returns it. Raises PrivateAddress."""
    family, kind, protocol, _, (host, *_) = address_info
    if not is_public(host):
        raise PrivateAddress(f"{host} is not a public address")
    return socket.socket(family, kind, protocol)


def is_public(host: str) -> bool:
    """Whether anybody can reach this numeric address. An IPv6 address that stands for an IPv4 address is public if that
    one is."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None:
            return address in _GLOBAL_UNICAST and address.is_global
        address = inner
    return address.is_global and not address.is_multicast


def url_fault(text: str) -> str | None:
    """What is wrong with `text` as the address of a webhook, or None."""
    if len(text) > URL_CHARACTERS_MAX:
        return f"must have at most {URL_CHARACTERS_MAX:,} characters"
    if not text.isascii() or not text.isprintable() or " " in text:
        return "must be an address of printable ASCII characters; write others as browsers send them"
    try:
        url = URL(text)
        port = url.port
    except ValueError as error:
        return f"is not an address: {error}"
    if url.scheme not in _SCHEMES or not url.host or not port:
        return "must begin with https:// or http:// and name a host"
    if not _can_be_looked_up(url.host):
        return "names a host that cannot exist: its name, or a label of it, is empty or too long"
    if url.user is not None or url.password is not None:
        return "must not contain a user name or password; receivers verify the signature instead"
    if url.fragment:
        return "must not contain a fragment, which is never sent"
    return None


async def private_fault(url: str) -> str | None:
    """Why a webhook that may lead only to public addresses could never be delivered at `url`; None: it could. A name
    that cannot be looked up now may have an address later."""
    asked = URL(url)
    try:
        async with asyncio.timeout(_LOOKUP_SECONDS_MAX):
            found = await asyncio.get_running_loop().getaddrinfo(asked.host, asked.port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        return None
    hosts = [str(address[0]) for *_, address in found]
    if any(map(is_public, hosts)):
        return None
    return f"leads to {hosts[0]}, which is not a public address; --allow-private permits that"


def _can_be_looked_up(host: str) -> bool:
    """Whether the DNS allows the length of a name and of each of its labels. Numeric addresses pass."""
    labels = host.removesuffix(".").split(".")
    return len(host) <= _HOST_CHARACTERS_MAX and all(0 < len(label) <= 63 for label in labels)
