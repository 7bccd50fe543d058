"""Asks for every operation by its example; what nobody has, and what a refusal looks like."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

import asyncpg
import pytest

from api.access import auth
from api.interface.declarations import Read, Write
from tests.api.rendered import BY_NAME
from tests.service import (
    FORM,
    Answer,
    Client,
    Form,
    Season,
    deltas,
    listed,
)

NOWHERE = "there-is-no-such-tournament"
NOBODY = 2**62
"""An id that nothing has."""
TAGGED = [name for name, operation in BY_NAME.items() if isinstance(operation, Read)]
READS = [name for name, operation in BY_NAME.items() if not isinstance(operation, Write)]
WRITES = [name for name, operation in BY_NAME.items() if isinstance(operation, Write)]
OPERATIONS = READS + WRITES
POSSIBLE = [name for name in WRITES if name not in {"PUT restore.json", "PUT delete.json"}]
"""Changes that a tournament `with_points` accepts one after the other, in this order. Others need an archived one, or
leave none."""
every_write = pytest.mark.parametrize("name", POSSIBLE)


async def with_points(season: Season) -> Season:
    """The season after an event that adds points, and one that strikes the second competitor from a competition."""
    await season.client.put(f"competitions/{season.competition_id}/strike.json", {"competitors": season.ids[1]})
    form = {"participants_delta": deltas((season.ids[0], season.unity_id, 0))}
    added = await season.client.put(f"{season.path}/add.json", form)
    return replace(season, added=int(added.headers["Tallybook-Sequence"]))


def path_of(name: str, season: Season) -> str:
    """The path of an operation, relative to the tournament's, for what there is in `season`."""
    return name.split()[1].format(
        ranking_id=season.closed_ranking_id if "reopen" in name else season.ranking_id,
        unity_id=season.unity_id,
        competitor_id=season.ids[0],
        competition_id=season.voided_competition_id if "unvoid" in name else season.competition_id,
        webhook_id=1,
    )


def text_of(value: object) -> str:
    """What a form or a query has for a value of JSON."""
    if isinstance(value, list) and not any(isinstance(item, dict) for item in value):
        return ",".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def example_of(name: str) -> dict[str, object]:
    """That of the operation, as a form or a query has it: what `with_points` accepts."""
    return {field: text_of(value) for field, value in BY_NAME[name].example.items()} if name in BY_NAME else {}


def query_of(name: str) -> str:
    """The query of an operation, with its question mark; empty where it needs none."""
    return "?" + urlencode(example) if (example := example_of(name)) else ""


async def ask(
    name: str, season: Season, client: Client, headers: dict[str, str] | None = None, /, **more: object
) -> Answer:
    """Has `client` send what is accepted."""
    path = path_of(name, season)
    if name in READS:
        return await client.get(path + query_of(name), headers)
    form = example_of(name) | more
    if "slug" in form:
        form["slug"] = client.tournament
    return await (client.post if name.startswith("POST") else client.put)(path, form, headers)


def keyed(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key}


def refused(answer: Answer, status: int, *fields: str) -> list[str]:
    """Asserts that this is a refusal in the envelope, about just these fields; returns what it says of them."""
    assert answer.status == status, answer.body
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json.keys() == {"status", "message", "errors"}
    assert answer.json["status"] == status
    assert re.fullmatch(r"[A-Z].+\.", answer.json["message"])
    assert all(fault.keys() == {"field", "message"} for fault in answer.json["errors"])
    assert [fault["field"] for fault in answer.json["errors"]] == list(fields)
    return [fault["message"] for fault in answer.json["errors"]]


class Log:
    """How many events there are, of all tournaments."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def length(self) -> int:
        length: int = await self._connection.fetchval("SELECT count(*) FROM event")
        return length


BAD = {
    "none": None,
    "empty": "",
    "another scheme": "Basic dXNlcjpwYXNz",
    "no token": "Bearer ",
    "no scheme": auth.text_of("0" * 30),
    "unknown": f"Bearer {auth.text_of('0' * 30)}",
    "a wrong checksum": f"Bearer {auth.text_of('0' * 30)[:-1]}~",
    "too much": f"Bearer {auth.text_of('0' * 30)} {auth.text_of('0' * 30)}",
    "not ASCII": "Bearer tb_é",
}
# Where ids stand: in the path, and wherever a form names somebody. `it` is what is asked about.
PLACES: dict[str, Callable[[Season, int], tuple[str, Form]]] = {
    "PUT the ranking": lambda s, it: (f"rankings/{it}.json", {"main_unity_name": "p", "participants": s.ids[0]}),
    "PUT points of the ranking": lambda s, it: (
        f"rankings/{it}/add.json",
        {"participants_delta": deltas((s.ids[0], s.unity_id, 1))},
    ),
    "POST to the ranking": lambda _, it: (f"rankings/{it}/unities.json", {"name": "goals"}),
    "PUT closing the ranking": lambda _, it: (f"rankings/{it}/close.json", {}),
    "PUT reopening the ranking": lambda _, it: (f"rankings/{it}/reopen.json", {}),
    "PUT the competitor": lambda _, it: (f"competitors/{it}.json", {"name": "Mine now"}),
    "PUT the competition": lambda _, it: (f"competitions/{it}.json", {"location": "Here"}),
    "PUT the result of the competition": lambda _, it: ("results.json", {"competition": it, "result": "2:1"}),
    "POST into a new ranking": lambda s, it: (
        "rankings.json",
        {"name": "Cup", "main_unity_name": "points", "participants": f"{s.ids[0]},{it}"},
    ),
    "PUT into a ranking": lambda s, it: (
        f"{s.path}.json",
        {"main_unity_name": "points", "participants": f"{s.ids[0]},{it}"},
    ),
    "PUT who comes into a ranking": lambda s, it: (f"{s.path}/participants.json", {"add": f"{s.ids[0]},{it}"}),
    "PUT who leaves a ranking": lambda s, it: (f"{s.path}/participants.json", {"remove": f"{s.ids[0]},{it}"}),
    "PUT the participants of a ranking": lambda s, it: (f"rankings/{it}/participants.json", {"add": s.ids[0]}),
    "POST into a competition": lambda s, it: (
        "competitions.json",
        {"group_id": 1, "participants": f"{s.ids[0]},{it}"},
    ),
    "POST as winner": lambda s, it: (
        "competitions.json",
        {"group_id": 1, "participants": listed(s.ids), "winner": it},
    ),
    "POST as having a result": lambda s, it: (
        "competitions.json",
        {"group_id": 1, "participants": listed(s.ids), "result": json.dumps({it: "1"})},
    ),
    "POST as having one of results": lambda s, it: (
        "competitions.json",
        {"group_id": 1, "participants": listed(s.ids), f"result[{it}]": "1"},
    ),
    "PUT as struck": lambda s, it: (f"competitions/{s.competition_id}/strike.json", {"competitors": it}),
    "PUT as winner": lambda s, it: (f"competitions/{s.competition_id}.json", {"winner": it}),
    "POST as parent": lambda _, it: ("competitors.json", {"name": "Dan", "parent": it}),
    "PUT as parent": lambda s, it: (f"competitors/{s.ids[0]}.json", {"parent": it}),
    "PUT points to the competitor": lambda s, it: (
        f"{s.path}/add.json",
        {"participants_delta": deltas((s.ids[0], s.unity_id, 1), (it, s.unity_id, 1))},
    ),
    "PUT points in the unity": lambda s, it: (
        f"{s.path}/add.json",
        {"participants_delta": deltas((s.ids[0], s.unity_id, 1), (s.ids[0], it, 1))},
    ),
    "PUT the order of rankings": lambda _, it: ("rankings.json", {"order": it}),
    "PUT points for the competition": lambda s, it: (
        f"{s.path}/add.json",
        {"participants_delta": deltas((s.ids[0], s.unity_id, 1)), "competition_id": it},
    ),
}


def posting(client: Client, *lines: str) -> bytes:
    head = [
        f"POST /tournament/{client.tournament}/competitors.json HTTP/1.1",
        "Host: a",
        f"Authorization: Bearer {client.token}",
        f"Content-Type: {FORM}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode()
