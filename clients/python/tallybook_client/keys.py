"""Idempotency keys that grow with time: the service keeps them in an index, and neighbours share its pages."""

import secrets
import time
from uuid import UUID


def new_key() -> str:
    """A new UUID of version 7 (RFC 9562, section 5.7): 48 bits of Unix time in ms, and 74 random ones."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76  # the version
    value = value & ~(0x3 << 62) | 0x2 << 62  # the variant
    return str(UUID(int=value))
