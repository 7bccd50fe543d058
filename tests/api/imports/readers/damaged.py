"""Files that are damaged in random ways: bytes cut, flipped and doubled, and values of other types in their places."""

import json
import random
import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

FILES: Final = Path(__file__).parent / "files"
_ODD: Final = (None, True, 0, -1, 10**30, 1e308, "", "x", "-1", "INF", "٣", "9" * 40, "2026-02-30", [], {}, [[]], ["x"])
_VALUE: Final = re.compile(rb'"[^"<>]{1,60}"|(?<=>)[^<>]{1,60}(?=<)')
_ELEMENT: Final = re.compile(rb"<(\w+)[^<>]*?(?:/>|>[^<]*</\1>)", re.DOTALL)


def damaged(name: str, seed: int) -> bytes:
    """The file of that name, damaged: always in the same way for a seed."""
    chance = random.Random(f"{name} {seed}")
    content = (FILES / name).read_bytes()
    if content.startswith(b"PK") and chance.random() < 0.7:
        return _repacked(content, chance)
    return _changed(content, chance)


def _repacked(content: bytes, chance: random.Random) -> bytes:
    """With one of its members changed, and checksums that are right."""
    packed = BytesIO()
    with zipfile.ZipFile(BytesIO(content)) as archive, zipfile.ZipFile(packed, "w") as other:
        names = archive.namelist()
        chosen = chance.choice([name for name in names if archive.read(name)])
        for name in names:
            its = archive.read(name)
            other.writestr(zipfile.ZipInfo(name), _changed(its, chance) if name == chosen else its)
    return packed.getvalue()


def _changed(content: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.5:
        return chance.choice((_cut, _flipped, _doubled))(content, chance)
    if content.lstrip()[:1] in (b"{", b"["):
        return "\n".join(_json(line, chance) for line in _documents(content)).encode()
    return _xml(content, chance)


def _cut(content: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + (content[end:] if chance.random() < 0.5 else b"")


def _flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randrange(1, 6)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _doubled(content: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:]


def _documents(content: bytes) -> list[str]:
    text = content.decode()
    try:
        json.loads(text)
    except ValueError:
        return text.splitlines()
    return [text]


def _json(text: str, chance: random.Random) -> str:
    value = json.loads(text)
    if chance.random() < 0.7 if len(text) < 1000 else False:
        return text
    holders = [*_holders(value)]
    for _ in range(chance.randrange(1, 3)):
        if holders:
            holder, key = chance.choice(holders)
            if chance.random() < 0.2 and isinstance(holder, dict):
                holder.pop(key, None)
            elif not isinstance(holder, dict) or key in holder:
                holder[key] = chance.choice(_ODD)
    return json.dumps(value)


def _holders(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(part, (dict, list)):
            yield from _holders(part)


def _xml(content: bytes, chance: random.Random) -> bytes:
    pattern = chance.choice((_VALUE, _ELEMENT))
    found = [*pattern.finditer(content)]
    if not found:
        return _flipped(content, chance)
    one = chance.choice(found)
    odd = chance.choice((b"", b"x", b"-1", b"INF", b"99999999999999999999", "٣".encode(), b"2026-02-30", b"1e400"))
    if pattern is _ELEMENT:
        odd = chance.choice((b"", one[0] * 2, b"<a>" * 60 + b"</a>" * 60))
    elif one[0].startswith(b'"'):
        odd = b'"' + odd + b'"'
    return content[: one.start()] + odd + content[one.end() :]
