"""A read ends, with an answer that is right, however often the tournament changes under it.

A structural change is recorded each time a chunk of the log has been read, so no number of further tries would help.
"""

import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Final

import pytest

from api.desk.desk import Desk
from api.desk.remembered import Slugs
from api.http.outgoing import Outgoing
from api.interface import handlers
from api.interface.declarations import RecallContext
from api.interface.public.view import PublicViews
from engine.domain.terms import Sequence, TournamentId
from engine.process.time_slices import TimeSlices
from projections.past.past import Past
from tests.api.public_boards import Board, change
from tests.service import Season, Service, create_ranking, deltas

CHANGES_MAX: Final = 40
"""Then the tournament rests, so that a read that would never end does, and the test says so."""


class Meanwhile:
    """Makes a change after each chunk of the log. `made`: their number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, make: Callable[[int], Awaitable[object]]) -> None:
        self.made = 0
        chunk = Past._chunk

        async def overtaken(*given: Any) -> Any:
            events = await chunk(*given)
            if self.made < CHANGES_MAX:
                self.made += 1
                await make(self.made)
            return events

        monkeypatch.setattr(Past, "_chunk", overtaken)


def striking(season: Season) -> Callable[[int], Awaitable[object]]:
    """Strikes a competitor from a competition, and takes that back, by turns."""

    async def strike_or_unstrike(number: int) -> None:
        path = f"competitions/{season.competition_id}/{'strike' if number % 2 else 'unstrike'}.json"
        answer = await season.client.put(path, {"competitors": season.ids[0]})
        assert answer.status == 200, answer.body

    return strike_or_unstrike


async def make_ranking(season: Season, **options: str) -> tuple[str, int]:
    """The path of a ranking in which the competition gave points, and the event that was last."""
    made = await create_ranking(season.client, season.ids, name="Rolling", **options)
    path, unity = f"rankings/{made['id']}", made["unities"][0]["id"]
    criteria = json.dumps([{"unity": unity, "best": 1}])
    await season.client.put(f"{path}/classification.json", {"criteria": criteria})
    for who, points in zip(season.ids, (5, 3, 1), strict=True):
        form = {"participants_delta": deltas((who, unity, points)), "competition_id": season.competition_id}
        answer = await season.client.put(f"{path}/add.json", form)
        assert answer.status == 200
    return path, int(answer.headers["Tallybook-Sequence"])


EXPIRING: Final = {"main_unity_lasts": "P1D", "main_unity_expires_on": "day"}


@pytest.mark.parametrize("options", [{}, EXPIRING], ids=["lasting", "expiring"])
@pytest.mark.parametrize("named", ["form", "classification"])
async def test_a_read_of_competitions_ends_while_they_change(
    season: Season, monkeypatch: pytest.MonkeyPatch, named: str, options: dict[str, str]
) -> None:
    path, acknowledged = await make_ranking(season, **options)
    with monkeypatch.context() as patched:
        meanwhile = Meanwhile(patched, striking(season))
        answer = await season.client.get(f"{path}/{named}.json")
    assert answer.status == 200, answer.body
    assert 0 < meanwhile.made < CHANGES_MAX
    shown = answer.json[named]
    assert shown["sequence"] > acknowledged
    then = await season.client.get(f"{path}/{named}.json?at_sequence={shown['sequence']}")
    assert then.json[named] == shown


async def test_points_to_defend_are_shown_while_competitions_change(
    season: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = await make_ranking(season, **EXPIRING)
    with monkeypatch.context() as patched:
        meanwhile = Meanwhile(patched, striking(season))
        answer = await season.client.get(f"{path}/expiring.json?until=2100-01-01")
    assert answer.status == 200, answer.body
    assert 0 < meanwhile.made < CHANGES_MAX
    shown = answer.json["expiring"]
    struck = (await season.client.get(f"{path}/standings.json?at_sequence={shown['sequence']}")).json["ranking"]
    (unity,) = struck["unities"]
    totals = {line["competitor_id"]: line["total"] for line in unity["competitors_ranking"]}
    assert {line["competitor_id"]: line["total"] for line in shown["expiring"]} == totals
    assert {line["total_then"] for line in shown["expiring"]} == {0}


async def test_a_board_is_shown_while_competitions_change(
    season: Season, board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = await make_ranking(season, **EXPIRING)
    await change(season.client, published="true")
    with monkeypatch.context() as patched:
        meanwhile = Meanwhile(patched, striking(season))
        answer = await board.get(f"table.json?ranking={path.partition('/')[2]}")
    assert answer.status == 200, answer.body
    assert 0 < meanwhile.made < CHANGES_MAX


async def test_nothing_is_read_again_because_a_name_changes(season: Season, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = await make_ranking(season, **EXPIRING)

    async def rename(number: int) -> None:
        await season.client.put(f"competitors/{season.ids[0]}.json", {"name": f"Ada {number}"})

    with monkeypatch.context() as patched:
        meanwhile = Meanwhile(patched, rename)
        assert (await season.client.get(f"{path}/expiring.json?until=2100-01-01")).status == 200
    assert meanwhile.made == 1


async def test_a_board_is_shown_while_what_the_public_sees_changes(
    season: Season, board: Board, service: Service, clients_tournament: TournamentId
) -> None:
    await change(season.client, published="true")
    views = PublicViews(service.desk, Slugs(service.database), Outgoing(TimeSlices()))
    rendered: list[Sequence] = []

    async def render(context: RecallContext) -> Sequence:
        rendered.append(context.live.head.sequence)
        if len(rendered) < CHANGES_MAX:
            hides = {"hidden": "true" if len(rendered) % 2 else "false"}
            assert (await season.client.put(f"{season.path}/visibility.json", hides)).status == 200
        return context.live.head.sequence

    shown = await views.answer(board.slug, render)
    assert len(rendered) < CHANGES_MAX
    assert shown == rendered[-1]


async def test_a_preview_shows_what_was_added_between_its_judging_and_its_comparing(
    season: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = await make_ranking(season)
    judged, preview = list[object](), Desk.preview
    (unity,) = (await season.client.get(f"{path}.json")).json["ranking"]["unities"]

    async def noted(*given: Any) -> Any:
        judged.append(await preview(*given))
        return judged[-1]

    async def overtaken(_: float) -> None:
        if len(judged) == 1:
            judged.append(None)
            lines = deltas((season.ids[0], unity["id"], 9))
            form = {"participants_delta": lines, "competition_id": season.competition_id}
            assert (await season.client.put(f"{path}/add.json", form)).status == 200

    with monkeypatch.context() as patched:
        patched.setattr(Desk, "preview", noted)
        patched.setattr(handlers, "asyncio", SimpleNamespace(sleep=overtaken))
        shown = await season.client.get(f"competitions/{season.competition_id}/void.json")
    assert shown.status == 200, shown.body
    assert len(judged) == 3
    assert shown.json == (await season.client.get(f"competitions/{season.competition_id}/void.json")).json
