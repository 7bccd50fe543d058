"""The TypeScript client: it is generated from the document of a running service, fits its types, and works."""

import asyncio
import os
from pathlib import Path
from shutil import which
from typing import Final

import pytest

from tests.service import Client, Service

FOLDER: Final = Path(__file__).parents[3] / "clients" / "typescript"

pytestmark = pytest.mark.skipif(
    which("npm") is None or not (FOLDER / "node_modules").is_dir(), reason="`make typescript` installs what it needs"
)


@pytest.mark.timeout(300)
async def test_the_generated_client_fits_its_types_and_makes_a_round_trip(service: Service, client: Client) -> None:
    said = ""
    for script in ("generate", "check", "round-trip"):
        process = await asyncio.create_subprocess_exec(
            *("npm", "run", "--silent", script),
            cwd=FOLDER,
            env=os.environ
            | {
                "TALLYBOOK_OPENAPI": f"{service.url}/openapi.json",
                "TALLYBOOK_ADDRESS": service.url,
                "TALLYBOOK_TOKEN": client.token or "",
                "TALLYBOOK_TOURNAMENT": client.tournament,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await process.communicate())[0].decode()
        assert process.returncode == 0, said
    assert "round trip with Ana: Ladder" in said
