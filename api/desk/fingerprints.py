"""What distinguishes requests with the same idempotency key. Pure."""

import struct
from collections.abc import Mapping
from hashlib import sha256

from engine.domain.terms import OPERATION_BYTES


def fingerprint(method: str, path: str, form: Mapping[str, str]) -> bytes:
    """32 bytes that distinguish requests with the same idempotency key. They must never change.

    SHA-256 of method, path, and the names and values of the fields in the order of their names. Each is UTF-8 after its
    length in bytes as a big-endian int32. The first OPERATION_BYTES are those of the SHA-256 of method and path alone,
    because they stay when somebody whom the fields name is erased.
    """
    parts = [method, path]
    for name in sorted(form):
        parts += name, form[name]
    # "surrogatepass": a path may contain text that is not UTF-8, and this function need not refuse it.
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    texts = [struct.pack(">i", len(part)) + part for part in encoded]
    operation, whole = sha256(b"".join(texts[:2])), sha256(b"".join(texts))
    return operation.digest()[:OPERATION_BYTES] + whole.digest()[OPERATION_BYTES:]
