"""Archives in which one value of one event is another one, while all digests are right: each is refused with its line,
or is a log that requests could have led to."""

import copy
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import asyncpg

from engine.domain.errors import LogDisproved, Unacceptable, Unreadable
from engine.domain.terms import ID_MAX, TournamentId
from engine.log import codec
from projections.verification.archives import enter, exported
from tests.api.cli.test_archives import change_text, compact, lines_of, sealed
from tests.service import Season, Service, create_ranking, deltas, listed
from tests.shares import every

VALUES: Final = (
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999", "2026-01-01T00:00:00"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *(2**64, ID_MAX + 1, ID_MAX, 2**31, 0, -1, -ID_MAX - 1, None, "", [], {}),
)


class _Taken(Exception):
    """The archive was not refused; nothing of it is kept."""


@every(80)
async def test_an_archive_with_any_value_replaced_is_imported_or_refused_with_its_line(
    service: Service, season: Season, clients_tournament: TournamentId, other_owner: asyncpg.Connection, step: int
) -> None:
    await _play(season)
    lines = [line async for line in exported(service.database, clients_tournament, progress=_ignored)]
    parts = [json.loads(line.partition(" ")[2]) for line in lines]
    assert await _refusal(other_owner, parts) is None
    refusals: list[str] = []
    for forged in islice(_forged(parts), 0, None, step):
        refusal = await _refusal(other_owner, forged)
        if refusal is not None:
            assert re.search(r"(line|Line) [0-9]+", refusal), refusal
            refusals.append(refusal)
    assert len(refusals) > 10


async def _play(season: Season) -> None:
    """Points expire by their dates, and by others later."""
    client, ids = season.client, season.ids
    ranking = await create_ranking(client, ids, main_unity_lasts="P52W", main_unity_expires_on="day")
    path = f"rankings/{ranking['id']}"
    best = {"name": "best", "counts": "best", "lasts": "P52W", "expires_on": "week"}
    sums, results = ranking["unities"][0]["id"], (await client.post(f"{path}/unities.json", best)).json["unity"]["id"]
    dates = ["2001-01-01 00:00:00", "9999-01-01 00:00:00"]
    for date, other in zip(dates, reversed(dates), strict=True):
        played = {"group_id": 1, "participants": listed(ids), "started_at": date}
        competition = (await client.post("competitions.json", played)).json["competition"]["id"]
        points = {"participants_delta": deltas((ids[0], sums, 3), (ids[1], results, 4)), "competition_id": competition}
        assert (await client.put(f"{path}/add.json", points)).status == 200
        assert (await client.put(f"competitions/{competition}.json", {"started_at": other})).status == 200
    for change in ("void", "unvoid"):
        assert (await client.put(f"competitions/{competition}/{change}.json")).status == 200
    for change in ("close", "reopen"):
        assert (await client.put(f"{path}/{change}.json")).status == 200


def _forged(parts: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    for number, part in enumerate(parts[1:], start=1):
        bodies = [codec.parts_of(line).body for line in lines_of(part)]
        personals = part.get("personals") or [None] * len(bodies)
        for at, text in enumerate(map(codec.join, bodies, personals)):
            for other in _variants(json.loads(text)):
                if isinstance(other, dict):
                    forged = copy.deepcopy(parts)
                    written = compact(other).decode()
                    change_text(forged[number], at, lambda _, written=written: written)  # type: ignore[misc]
                    yield forged


def _variants(value: Any) -> Iterator[Any]:
    """The value with one of its leaves replaced by each of VALUES."""
    if isinstance(value, dict):
        for name, its in value.items():
            yield from (value | {name: other} for other in _variants(its))
    elif isinstance(value, list):
        for n, its in enumerate(value):
            yield from ([*value[:n], other, *value[n + 1 :]] for other in _variants(its))
    else:
        yield from VALUES


async def _refusal(owner: asyncpg.Connection, parts: list[dict[str, Any]]) -> str | None:
    """What an import of this is refused with; None: it is taken."""
    try:
        async with owner.transaction():
            await enter(owner, sealed(parts), progress=_ignored)
            raise _Taken
    except _Taken:
        return None
    except (LogDisproved, Unreadable, Unacceptable) as error:
        return str(error)


def _ignored(*_: int) -> None:
    pass
