"""The search for what is left of somebody: in which forms a text gives them away, and where it could lie."""

import base64
import json
from collections.abc import AsyncIterator
from hashlib import sha256

import asyncpg


def forms_of(text: str) -> dict[str, bytes]:
    """How a text can lie somewhere, and what could be compared with a guess."""
    encoded = text.encode()
    return {
        f"{text} as it is": encoded,
        f"{text} in JSON": json.dumps(text)[1:-1].encode(),
        f"{text} in base64": base64.b64encode(encoded).rstrip(b"=")[:-1],
        f"{text} in hexadecimal": encoded.hex().encode(),
        f"SHA-256 of {text}": sha256(encoded).hexdigest().encode(),
    }


def found_in(said: bytes, forms: dict[str, bytes]) -> list[str]:
    """What of it is in some bytes, which may be in hexadecimal."""
    return [what for what, form in forms.items() if form in said or form.hex().encode() in said]


async def rows(owner: asyncpg.Connection) -> AsyncIterator[tuple[str, bytes]]:
    """Every row of every table, as text, with the name of its table."""
    for (table,) in await owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'tallybook'"):
        for (row,) in await owner.fetch(f"SELECT t::text FROM tallybook.{table} AS t"):
            yield table, row.replace(r"\\", "\\").encode()
