"""What is asked of services that run as processes of their own, and what their figures say."""

import re
from typing import Final

from tests.desks import Arena
from tests.service import Answer, Client, deltas

FIGURE: Final = re.compile(r"^(tallybook_\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)
"""A line of `/metrics`: the name and the value."""


async def add(client: Client, arena: Arena, delta: int = 1, key: str | None = None) -> Answer:
    """Gives points to the first competitor."""
    form = {"participants_delta": deltas((arena.competitors[0], arena.unity_id, delta))}
    headers = {} if key is None else {"Idempotency-Key": key}
    return await client.put(f"rankings/{arena.ranking_id}/add.json", form, headers)


def total(answer: Answer) -> int:
    """The first competitor's, in an answer to `add`."""
    assert answer.status == 200, answer.body
    (unity,) = answer.json["ranking"]["unities"]
    totals = {line["competitor_id"]: line["total"] for line in unity["competitors_ranking"]}
    return int(totals[min(totals)])
