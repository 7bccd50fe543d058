"""Checks a proof of `tallybook prove`, with nothing but Python's standard library, and prints the proven event.

    python check_proof.py PROOF.json DIGEST            the digest, 64 hexadecimal characters, that you know and trust
    python check_proof.py PROOF.json digests.ndjson    a file that `tallybook digests` or `serve --digests-to` wrote

- is standard input. Exit codes: 0 proven, 1 not proven, with a reason, 2 usage. Proven is: the log that had this digest
holds this event. This file needs nothing of Tallybook, and Python 3.9 or later; `tallybook check-proof` runs it, too.
"""

import json
import sys
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from typing import Any

NOT_PROVEN = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
NO_PROOF = (json.JSONDecodeError, UnicodeDecodeError, KeyError, RecursionError)  # another file, or one cut off


def checked(file: str, known: str) -> dict[str, Any]:
    """The event that the proof in this file proves. Raises one of NOT_PROVEN, OSError if a file cannot be read."""
    with sys.stdin if file == "-" else open(file, encoding="utf-8-sig") as opened:
        proof = json.load(opened)
    return proven_event(proof, known_digest(known, proof))


def known_digest(known: str, proof: dict[str, Any]) -> str:
    """The digest to trust: as given, or the file's of the tournament and the sequence that the proof leads to."""
    if len(known) == 64 and not set(known.lower()) - set("0123456789abcdef"):
        return known.lower()
    noted, at = set(), (proof["tournament"], proof["digest_sequence"])
    with open(known, encoding="utf-8-sig", errors="replace") as file:
        for line in file:
            try:
                note = json.loads(line)
                if (note["tournament"], note["sequence"]) == at:
                    noted.add(note["digest"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that a crash cut off
    if len(noted) != 1:
        raise ValueError(f"{len(noted) or 'no'} digests of sequence {at[1]} were noted; `prove --to` takes a noted one")
    return str(noted.pop())


def proven_event(proof: dict[str, Any], trusted: str) -> dict[str, Any]:
    """The event, if the proof leads to the trusted digest. Raises ValueError where it does not."""
    digest = bytes.fromhex(proof["previous_digest"])
    for text_hash in [sha256(proof["block"].encode()).digest(), *map(bytes.fromhex, proof["later"])]:
        if len(digest) != 32 or len(text_hash) != 32:
            raise ValueError("a digest and a hash have 32 bytes")
        digest = sha256(digest + text_hash).digest()
    if digest.hex() != trusted:
        raise ValueError(f"it leads to the digest {digest.hex()}, not to {trusted}")
    head, *lines = proof["block"].split("\n")
    first, recorded_us = map(int, head.split())
    place = proof["sequence"] - first
    if not 0 <= place < len(lines):
        raise ValueError(f"its block holds the events {first} to {first + len(lines) - 1}, not {proof['sequence']}")
    recorded_at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=recorded_us)
    kind, actor, key, body = json.loads(lines[place])
    event = {"sequence": first + place, "recorded_at": recorded_at.isoformat(), "actor": actor}
    return event | {"kind": kind, "idempotency_key": key, "body": body}


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        event = checked(*arguments)
    except NOT_PROVEN as error:
        print("This is not a proof (cut off?)." if type(error) in NO_PROOF else f"NOT proven: {error}", file=sys.stderr)
        return 1
    print(json.dumps(event, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
