"""A message as a webhook gets it, signed."""

import json
from collections.abc import Iterable

from api.webhooks.message import Message

KEY = bytes(range(32))
SENT_AT = 1_777_741_511
BODY = json.dumps(
    {
        "type": "PointsAdded",
        "timestamp": "2026-05-02T17:05:11.123456Z",
        "data": {"tournament": "cup", "tournament_id": 1, "sequence": 4711, "id": "4711-1f0c2a9e", "ranking_id": 8},
    }
).encode()


def sent(body: bytes = BODY, keys: Iterable[bytes] = (KEY,)) -> dict[str, str]:
    """The headers of a message with this body."""
    return {
        name: of for name, of in Message("17-4711-1f0c2a9e", body).headers(keys, SENT_AT).items() if "webhook" in name
    }
