"""Addresses of databases, with the parameters that libpq takes, as providers print them.

The driver takes some of these parameters itself, and would send all others to the server. So an address is put into the
driver's terms first: a parameter is kept, or left out, or refused where leaving it out would make a connection less
safe, as `docs/HOSTED.md` says.
"""

import asyncio
import configparser
import os
import re
import ssl
from collections import deque
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import asyncpg
from asyncpg import Connection

from engine.domain.errors import StartupRefused
from engine.process.logs import Logger

_TAKEN: Final = {
    "host", "port", "dbname", "user", "password", "passfile", "options", "sslmode", "sslnegotiation", "sslcert",
    "sslkey", "sslpassword", "sslrootcert", "sslcrl", "ssl_min_protocol_version", "ssl_max_protocol_version",
    "krbsrvname", "gsslib",
}  # fmt: skip
"""What the driver takes as libpq does."""
_LEFT_OUT: Final = {
    "application_name", "fallback_application_name", "client_encoding", "connect_timeout", "keepalives",
    "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "hostaddr",
    "load_balance_hosts", "max_protocol_version", "gssdelegation", "sslcompression", "sslsni", "sslkeylogfile",
}  # fmt: skip
"""What no connection of the service depends on: it has names, bounds and settings of its own."""
_LEFT_OUT_IF: Final = {
    "target_session_attrs": ("any", "read-write", "primary", "prefer-standby"),
    "channel_binding": ("disable", "prefer"),
    "gssencmode": ("disable", "prefer"),
    "sslcertmode": ("allow",),
    "min_protocol_version": ("3.0",),
    "replication": ("false", "off", "no", "0"),
    "requiressl": ("0",),
    "sslcrldir": (),
    "requirepeer": (),
    "require_auth": (),
    "scram_client_key": (),
    "scram_server_key": (),
    "oauth_issuer": (),
    "oauth_client_id": (),
    "oauth_client_secret": (),
    "oauth_scope": (),
}
"""What can be left out only if it has one of these values, or none."""
_DEMANDED_BY: Final = {
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "sslcertmode": "PGSSLCERTMODE",
    "sslcrldir": "PGSSLCRLDIR",
    "requirepeer": "PGREQUIREPEER",
    "require_auth": "PGREQUIREAUTH",
    "min_protocol_version": "PGMINPROTOCOLVERSION",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
}
"""The environment variables that libpq obeys where the address lacks a parameter."""
_STRICTEST: Final = "verify-full"
_NAME: Final = re.compile("[a-z_]+")
_SETTING: Final = re.compile(r"\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))\s*", re.ASCII)
_ANOTHER_HOST: Final = (
    OSError,
    asyncpg.TargetServerAttributeNotMatched,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
)
"""The errors of one host after which the next one is tried."""
_PLACE: Final = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+))(?::(\d+))?", re.ASCII)

_logger: Final = Logger()


def in_drivers_terms(address: str) -> str:
    """The address for the driver. Logs what is left out of it. Raises StartupRefused."""
    if "://" not in address and "=" in address:
        address, found = "postgresql://", _settings(address)
    else:
        address, _, query = address.partition("?")
        found = _parameters(query)
    if "service" in found:
        found = _of_service(found.pop("service"), found.pop("servicefile", None)) | found
    found = {name: value for name, of in _DEMANDED_BY.items() if (value := os.environ.get(of))} | found
    if found.get("ssl") == "true":
        found = {"sslmode": "require"} | found
        del found["ssl"]
    if "hostaddr" in found and not (_host_of(address) or found.get("host")):
        found["host"] = found.pop("hostaddr")
    if found.get("sslrootcert") == "system":
        found |= _by_the_systems_certificates(found.get("sslmode", _STRICTEST))
    left_out = [name for name, value in found.items() if _is_left_out(name, value)]
    if left_out:
        _logger.warning("address_parameters_left_out", parameters=left_out)
    kept = "&".join(f"{name}={quote(value, safe='/,')}" for name, value in found.items() if name not in left_out)
    return f"{address}?{kept}" if kept else address


class Hosts:
    """Connects to the hosts of an address, one after another, starting with the one that answered last, so that an
    unreachable host delays only one connection."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._hosts = deque(_hosts_of(dsn))

    async def connect(self, *_: str, timeout: float, **options: Any) -> Connection:  # noqa: ASYNC109 - as the driver's
        """As the driver's function, at the address, or at the `host` of the options. Each of several hosts has its
        share of the time."""
        if "host" in options or len(self._hosts) < 2:
            return await asyncpg.connect(self._dsn, timeout=timeout, **options)
        trouble: Exception | None = None
        for tried in tuple(self._hosts):  # meanwhile, other connections may rotate them
            try:
                return await asyncpg.connect(
                    self._dsn, host=tried[0], port=tried[1], timeout=timeout / len(self._hosts), **options
                )
            except (*_ANOTHER_HOST, asyncio.CancelledError) as error:
                if tried == self._hosts[0]:
                    self._hosts.rotate(-1)
                if isinstance(error, asyncio.CancelledError):
                    raise
                if trouble is None or isinstance(trouble, asyncpg.TargetServerAttributeNotMatched):
                    trouble = error
        assert trouble is not None
        raise trouble


def _is_left_out(name: str, value: str) -> bool:
    """Raises StartupRefused."""
    if name in _TAKEN:
        return False
    if name not in _LEFT_OUT | _LEFT_OUT_IF.keys():
        raise StartupRefused(f"The database address has the parameter {name!r}, which libpq does not know; remove it.")
    if not value or name in _LEFT_OUT or value in _LEFT_OUT_IF[name]:
        return True
    if name == "target_session_attrs":
        raise StartupRefused(f"The database address asks for {value!r}, but the service needs the primary; change it.")
    raise StartupRefused(
        f"The database address sets {name} to a value that this program does not support; remove it if a connection is "
        "secure without it, for example with sslmode=verify-full."
    )


def _parameters(query: str) -> dict[str, str]:
    """The parameters of an address, in which a plus is a plus."""
    found = {}
    for pair in filter(None, query.split("&")):
        name, has_value, value = pair.partition("=")
        if not has_value or not _NAME.fullmatch(name):  # it may be a part of a password, so it is not shown
            raise StartupRefused(
                "The database address has a parameter without a value or a valid name; "
                "write ? and & in a password as %3F and %26."
            )
        found[name] = unquote(value)
    if "database" in found:
        found["dbname"] = found.pop("database")
    return found


def _settings(address: str) -> dict[str, str]:
    """The parameters of an address in libpq's other form, `host=db dbname=tallybook`."""
    found, position = {}, 0
    while position < len(address):
        setting = _SETTING.match(address, position)
        if setting is None:
            raise StartupRefused("The database address must be postgresql://… or a list of name=value pairs.")
        name, quoted, plain = setting.groups()
        found[name] = re.sub(r"\\(.)", r"\1", plain if quoted is None else quoted)
        position = setting.end()
    return found


def _of_service(service: str, file: str | None) -> dict[str, str]:
    place = Path(file or os.environ.get("PGSERVICEFILE") or Path.home() / ".pg_service.conf")
    services = configparser.ConfigParser(interpolation=None)
    try:
        services.read_string(place.read_text())
        return dict(services[service])
    except (OSError, ValueError, KeyError, configparser.Error) as error:
        raise StartupRefused(f"The service {service!r} named in the database address is not in {place}.") from error


def _by_the_systems_certificates(sslmode: str) -> dict[str, str]:
    """As in libpq, `sslrootcert=system` requires full verification. Raises StartupRefused."""
    if sslmode != _STRICTEST:
        raise StartupRefused("The database address has sslrootcert=system, which needs sslmode=verify-full.")
    known = ssl.get_default_verify_paths()
    for file in (known.cafile, f"{known.capath}/ca-certificates.crt"):
        if file is not None and Path(file).exists():
            return {"sslmode": _STRICTEST, "sslrootcert": file}
    raise StartupRefused("The system's certificates were not found; name their file in sslrootcert.")


def _host_of(address: str) -> str:
    return address.partition("://")[2].partition("/")[0].rpartition("@")[2]


def _hosts_of(dsn: str) -> list[tuple[str, int]]:
    """The hosts of an address in the driver's terms, with their ports; empty: it names none, or is not readable."""
    address, _, query = dsn.partition("?")
    found = _parameters(query)
    ports = found.get("port") or os.environ.get("PGPORT", "5432")
    if named := _host_of(address):
        places = [_PLACE.fullmatch(place) for place in named.split(",")]
        hosts = [unquote(place[1] or place[2]) if place else "" for place in places]
        ports = ",".join(place[3] or ports if place else "" for place in places)
    else:
        hosts = found.get("host", "").split(",")
    numbers = ports.split(",")
    are_ports = all(number.isascii() and number.isdecimal() for number in numbers)
    if not all(hosts) or not are_ports or len(numbers) not in {1, len(hosts)}:
        return []
    return [(host, int(numbers[n % len(numbers)])) for n, host in enumerate(hosts)]
