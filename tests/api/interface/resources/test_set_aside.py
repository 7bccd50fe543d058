"""What is shown of points whose competition was set aside: a later version added it, and gave its points."""

import json
from typing import NamedTuple

import asyncpg
import pytest

from engine.domain.events import Delta, PointsAdded, Scored
from engine.domain.terms import CompetitionId, CompetitorId, RankingId, TournamentId, UnityId
from projections.verification.setting_aside import set_aside
from tests.api.public_boards import Board, change
from tests.desks import record
from tests.poison import append_text
from tests.service import Client, Season, Service, create_ranking

UNKNOWN = CompetitionId(2**31)


class Shown(NamedTuple):
    """A ranking with such points, its unities, and the event that gave them."""

    ranking: int
    unities: list[int]
    given: int


@pytest.fixture
async def shown(service: Service, season: Season, owner: asyncpg.Connection, clients_tournament: TournamentId) -> Shown:
    client, ids = season.client, season.ids
    ranking = await create_ranking(client, ids, main_unity_lasts="P36500D", main_unity_expires_on="day")
    below = f"rankings/{ranking['id']}"
    others = [{"name": "wins"}, {"name": "best", "counts": "best"}]
    unities = [ranking["unities"][0]["id"]]
    unities += [(await client.post(f"{below}/unities.json", form)).json["unity"]["id"] for form in others]
    criteria = [{"unity": unities[0], "best": 2}, {"unity": unities[1], "among": "tied"}, {"unity": unities[1]}]
    declared = await client.put(f"{below}/classification.json", {"criteria": json.dumps(criteria)})
    assert declared.status == 200, declared.body
    await change(client, published="true")
    added = f'{{"competition_id":{UNKNOWN},"group_id":1,"of_a_later_version":1}}'
    await set_aside(
        service.database,
        clients_tournament,
        await append_text(owner, clients_tournament, "CompetitionAdded", added),
    )
    ann, bob = map(CompetitorId, ids[:2])
    points, wins, best = map(UnityId, unities)
    appended = await record(
        owner,
        clients_tournament,
        PointsAdded(
            ranking_id=RankingId(ranking["id"]),
            competition_id=UNKNOWN,
            deltas=(Delta(ann, points, 5), Delta(bob, wins, 2)),
            results=(Scored(ann, best, 7),),
        ),
    )
    assert appended.last_sequence is not None
    return Shown(ranking["id"], unities, appended.last_sequence)


async def test_every_question_about_such_points_is_answered(
    client: Client, season: Season, board: Board, shown: Shown
) -> None:
    ranking, unities, head = shown
    ann = season.ids[0]
    moments = ["", f"&at_sequence={head}", "&on=2999-01-01"]
    asked = {
        f"{question}.json?{query}{moment}"
        for question in ("standings", "classification", "form")
        for query in ("", f"top=2&since={head - 1}")
        for moment in moments
        if not (question == "form" and "since" in query)
    }
    asked |= {f"{question}.json?" for question in ("history", "leaders")}
    asked |= {f"expiring.json?until=2999-01-01&unity={unity}" for unity in unities}
    asked |= {f"explain.json?competitor={ann}&unity={unity}{on}" for unity in unities for on in ("", "&on=2999-01-01")}
    asked |= {f"leaders.json?clock={clock}&unity={unity}" for clock in ("log", "world") for unity in unities}
    pages = ["table.json", "table.csv", "race.json", "timeline.json", "tv", "embed", "leaders", f"competitors/{ann}"]
    pages = [f"{page}?ranking={ranking}{more}" for page in pages for more in ("", *(f"&unity={u}" for u in unities))]
    pages = [page for page in pages if not (page.startswith("timeline") and "unity" in page)]
    pages += [f"table.json?ranking={ranking}&{more}" for more in ("on=2999-01-01", f"at={head}", f"since={head - 1}")]
    pages += [f"passage.json?ranking={ranking}&at={head}"]
    answers = {page: await board.get(page) for page in pages}
    for path in asked:
        answers[f"with a token: {path}"] = await client.get(f"rankings/{ranking}/{path}")
        answers[path] = await board.get(f"rankings/{ranking}/{path}")
    assert {path: answer.body for path, answer in answers.items() if answer.status != 200} == {}


async def test_such_points_can_be_undone_and_redone(client: Client, season: Season, shown: Shown) -> None:
    ranking, _, given = shown
    path = f"rankings/{ranking}/reverse.json"
    for sequence in given, given + 1:
        for answer in (
            await client.get(f"{path}?sequence={sequence}"),
            await client.put(path, {"sequence": sequence}),
        ):
            assert answer.status == 200, answer.body
