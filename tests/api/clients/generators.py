"""Clients that generators make from the document of a running service: each compiles, and makes a round trip.

    python -m tests.api.clients.generators [<name> …]      as `make generators`, which installs what it needs

A round trip registers competitors, adds points, repeats that, reads a window, and reads the next page. Then a proxy
compares every request of the documented story, and every answer, with the document.
"""

import asyncio
import os
import shutil
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from api.cli.tournaments import open_tournament
from tests.api.examples import fresh, told
from tests.service import Service, make_token

FOLDER: Final = Path(__file__).parents[3] / "clients/generators"
MADE: Final = FOLDER / "generated"
TRIPS: Final = FOLDER / "round_trips"
_BIN: Final = FOLDER / ".venv/bin"
_PYTHON: Final = str(_BIN / "python")
_NODE: Final = FOLDER / "node_modules/.bin"
_TSC: Final = (
    *(str(_NODE / "tsc"), "--strict", "--skipLibCheck", "--rootDir", ".", "--outDir", "built"),
    *("--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable"),
)
_PROXY_SECONDS_MAX: Final = 60
VALIDATOR: Final = "gopkg.in/validator.v2"


def _openapi_generator(kind: str, *properties: str) -> tuple[str, ...]:
    options = [f"--additional-properties={','.join(properties)}"] if properties else []
    made = ("-i", "generated/openapi.json", "-g", kind, "-o", f"generated/{kind}", *options)
    return (str(_BIN / "openapi-generator-cli"), "generate", *made)


class Generator(Struct, frozen=True):
    """`commands` generate, compile and make the round trip. `places`: where to find what was generated, for Python.
    `remarks`: its own mistakes, or what is not tried."""

    commands: tuple[tuple[str, ...], ...]
    places: str = ""
    remarks: tuple[str, ...] = ()


GENERATORS: Final = {
    "openapi-generator-python": Generator(
        (
            _openapi_generator("python"),
            (_PYTHON, "-m", "compileall", "-q", "generated/python"),
            (_PYTHON, str(TRIPS / "openapi_generator_python.py")),
        ),
        places="python",
        remarks=("it checks a pattern by re.match, where $ is also before a last line break",),
    ),
    "openapi-generator-typescript-fetch": Generator(
        (
            _openapi_generator("typescript-fetch", "importFileExtension=.js", "modelPropertyNaming=original"),
            (*_TSC, "round_trips/typescript_fetch.ts"),
            ("node", "built/round_trips/typescript_fetch.js"),
        ),
        remarks=("of an anyOf of objects it makes one type that requires the properties of all",),
    ),
    "openapi-generator-go": Generator(
        (
            _openapi_generator("go", "packageName=tallybook"),
            ("go", "mod", "edit", "-replace", f"{VALIDATOR}=../{VALIDATOR}"),
            ("go", "vet", "."),
            ("go", "build", "-o", "round_trip", "./cmd"),
            ("generated/go/round_trip",),
        ),
        remarks=(f"for the oneOf of a body, it needs {VALIDATOR}; the one of Debian is taken",),
    ),
    "openapi-generator-java": Generator(
        (_openapi_generator("java"),),
        remarks=("generated only: it needs jackson-datatype-jsr310, which Debian does not have",),
    ),
    "openapi-python-client": Generator(
        (
            (
                str(_BIN / "openapi-python-client"),
                *("generate", "--path", "generated/openapi.json", "--meta", "none", "--overwrite"),
                *("--output-path", "generated/openapi-python-client/tallybook_client"),
            ),
            (_PYTHON, "-m", "compileall", "-q", "generated/openapi-python-client"),
            (_PYTHON, str(TRIPS / "openapi_python_client.py")),
        ),
        places="openapi-python-client",
    ),
    "orval": Generator(
        (
            (str(_NODE / "orval"), "--config", "orval.config.mjs"),
            (*_TSC, "round_trips/orval.ts"),
            ("node", "built/round_trips/orval.js"),
        ),
    ),
    "openapi-typescript": Generator(
        (
            (str(_NODE / "openapi-typescript"), "generated/openapi.json", "-o", "generated/openapi-typescript.ts"),
            (*_TSC, "round_trips/openapi_typescript.ts"),
            ("node", "built/round_trips/openapi_typescript.js"),
        ),
    ),
}


async def _run(command: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Raises SystemExit with what the command said if it failed."""
    there = MADE / "go" if command[0] == "go" else FOLDER
    process = await asyncio.create_subprocess_exec(*command, cwd=there, env=environment, stdout=PIPE, stderr=STDOUT)
    said = (await process.communicate())[0].decode()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{said}")


async def _try(generator: Generator, environment: dict[str, str]) -> None:
    for command in generator.commands:
        if command[:2] == ("go", "mod"):
            (MADE / "go/cmd").mkdir()
            shutil.copy(TRIPS / "main.go", MADE / "go/cmd")
            shutil.copytree(Path("/usr/share/gocode/src") / VALIDATOR, MADE / VALIDATOR)
            (MADE / VALIDATOR / "go.mod").write_text(f"module {VALIDATOR}\n")
        await _run(command, environment | {"PYTHONPATH": str(MADE / generator.places)})


async def _try_all(service: Service, names: list[str]) -> None:
    shutil.rmtree(MADE, ignore_errors=True)
    MADE.mkdir()
    opened = await open_tournament(service.desk, "Round trips")
    (MADE / "openapi.json").write_bytes((await service.client("", None).send("GET", "/openapi.json")).body)
    environment = os.environ | {
        "PATH": f"{_BIN}:{os.environ['PATH']}",
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
        "TALLYBOOK_ADDRESS": service.url,
        "TALLYBOOK_TOURNAMENT": opened.slug,
        "TALLYBOOK_TOKEN": await make_token(service.database, tournament_ids=[opened.tournament_id]),
    }
    for name in names:
        if name != "prism":
            await _try(GENERATORS[name], environment)
            print(f"{name}: good", *[f"\n    {remark}" for remark in GENERATORS[name].remarks])


async def _prism(service: Service) -> None:
    """The documented story through a proxy that answers with what does not fit the document, if anything does not."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (str(_NODE / "prism"), "proxy", "--errors", "-p", str(port), "generated/openapi.json", service.url)
    process = await asyncio.create_subprocess_exec(*command, cwd=FOLDER, stdout=PIPE, stderr=STDOUT)
    try:
        async with asyncio.timeout(_PROXY_SECONDS_MAX):
            assert process.stdout
            while b"listening" not in await process.stdout.readline():
                assert process.returncode is None
        steps = [step async for step in told(service, f"http://127.0.0.1:{port}", streams=False)]
    finally:
        process.terminate()
        await process.communicate()
    wrong = [f"{step.command}\n{step.body}" for step in steps if "stoplight.io/prism/errors" in step.body]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"prism: good, in {len(steps)} steps of the story")


async def _main(names: list[str]) -> None:
    async with fresh() as service:
        await _try_all(service, names)
        if "prism" in names:
            await _prism(service)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:] or [*GENERATORS, "prism"]))
