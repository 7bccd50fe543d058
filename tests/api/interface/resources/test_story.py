"""The story of a small tournament, told over HTTP from its first competitor to its last standing."""

import json

import asyncpg

from engine.database.pool import Database
from projections.tables.worker import Worker
from tests.service import Answer, Client


async def test_the_story_of_a_tournament(client: Client, database: Database, owner: asyncpg.Connection) -> None:  # noqa: PLR0915
    # Four players register.
    ada, ben, cleo, dan = [
        (await client.post("competitors.json", {"name": name})).json["competitor"]["id"]
        for name in ("Ada", "Ben", "Cleo", "Dan")
    ]

    # A ranking of them is made. Its main unity is points, of which more is better; of fouls, less is.
    answer = await client.post(
        "rankings.json",
        {"name": "Club championship", "main_unity_name": "points", "participants": f"{ada},{ben},{cleo},{dan}"},
    )
    assert (answer.status, answer.json["message"]) == (200, "added")
    ranking = f"rankings/{answer.json['ranking']['id']}"
    points = answer.json["ranking"]["unities"][0]["id"]
    answer = await client.post(f"{ranking}/unities.json", {"name": "fouls", "sort": "ASC"})
    fouls = answer.json["unity"]["id"]

    # Ada beats Ben. First the competition is recorded …
    answer = await client.post(
        "competitions.json", {"group_id": 1, "participants": f"{ada},{ben}", "result": "3:1", "winner": ada}
    )
    match = answer.json["competition"]
    assert match["result"] == "3:1"
    assert [(p["competitor_id"], p["winner"]) for p in match["participants"]] == [(ada, True), (ben, False)]

    # … then what it brought them, with the competition as the cause. The answer is the standing that results:
    # everybody in the ranking is on it, and those who have the same share a position.
    answer = await client.put(
        f"{ranking}/add.json",
        {
            "competition_id": match["id"],
            "participants_delta": json.dumps(
                [
                    {
                        "competitor_id": ada,
                        "unities": [{"unity_id": points, "delta": "+3"}, {"unity_id": fouls, "delta": "+2"}],
                    },
                    {"competitor_id": ben, "unities": [{"unity_id": fouls, "delta": "+1"}]},
                ]
            ),
        },
    )
    assert standing(answer, "points") == [(1, ada, 3), (2, ben, 0), (2, cleo, 0), (2, dan, 0)]
    assert standing(answer, "fouls") == [(1, cleo, 0), (1, dan, 0), (3, ben, 1), (4, ada, 2)]

    # Without a competition, points are a free modification. After two in the second position comes the fourth.
    answer = await client.put(f"{ranking}/add.json", {"participants_delta": each(points, {ben: "+1", cleo: "+1"})})
    assert standing(answer, "points") == [(1, ada, 3), (2, ben, 1), (2, cleo, 1), (4, dan, 0)]

    # The version of a unity counts the events that shaped its standings: its creation, the match and, for points, the
    # free modification, which is one event.
    assert versions(answer) == {"points": 3, "fouls": 2}

    # Ben leaves the ranking. He can be given nothing more there, but what he has is not forgotten:
    # when he returns, at the end of the list and so behind those who have the same, he has it back.
    without_ben = {"main_unity_name": "points", "participants": f"{ada},{cleo},{dan}"}
    answer = await client.put(f"{ranking}.json", without_ben)
    assert standing(answer, "points") == [(1, ada, 3), (2, cleo, 1), (3, dan, 0)]

    answer = await client.put(f"{ranking}/add.json", {"participants_delta": each(points, {dan: "+5", ben: "+1"})})
    assert answer.status == 422
    assert answer.json["errors"] == [
        {"field": "participants_delta", "message": f"competitor {ben} is not in this ranking"}
    ]

    ben_returns = {"main_unity_name": "points", "participants": f"{ada},{cleo},{dan},{ben}"}
    answer = await client.put(f"{ranking}.json", ben_returns)
    assert standing(answer, "points") == [(1, ada, 3), (2, cleo, 1), (2, ben, 1), (4, dan, 0)]

    # A request counts whole or not at all: refusing Ben's one refused Dan's five too. Now he gets them. The line is
    # bad, and the scorer, who has put a key on the request, sends it twice: it counts once and is answered twice.
    award, key = {"participants_delta": each(points, {dan: "+5"})}, {"Idempotency-Key": "table-2,round-1"}
    first = await client.put(f"{ranking}/add.json", award, key)
    again = await client.put(f"{ranking}/add.json", award, key)
    assert standing(first, "points") == [(1, dan, 5), (2, ada, 3), (3, cleo, 1), (3, ben, 1)]
    assert again.json == first.json
    assert again.headers["Tallybook-Sequence"] == first.headers["Tallybook-Sequence"]
    assert ("Idempotency-Replayed" in first.headers, again.headers["Idempotency-Replayed"]) == (False, "true")

    # The operator closes the ranking. It refuses what is new, but still knows what it had accepted.
    answer = await client.put(f"{ranking}/close.json")
    assert answer.json["ranking"]["closed_at"] is not None
    assert (await client.put(f"{ranking}/add.json", award)).status == 409
    assert (await client.put(f"{ranking}/add.json", award, key)).headers["Idempotency-Replayed"] == "true"

    # Reopened, it goes on. Ada is docked two points.
    answer = await client.put(f"{ranking}/reopen.json")
    assert answer.json["ranking"]["closed_at"] is None
    last = await client.put(f"{ranking}/add.json", {"participants_delta": each(points, {ada: "-2"})})
    assert standing(last, "points") == [(1, dan, 5), (2, ada, 1), (2, cleo, 1), (2, ben, 1)]
    assert versions(last) == {"points": 7, "fouls": 4}  # the list changed twice: that is both of them

    # The lists tell it all. Who has one already learns, for next to nothing, that it has not changed.
    answer = await client.get("competitors.json")
    assert [c["name"] for c in answer.json["competitors"]["competitor"]] == ["Ada", "Ben", "Cleo", "Dan"]
    answer = await client.get("competitions.json")
    assert answer.json["competitions"]["competition"] == [match]
    answer = await client.get("rankings.json")
    assert [r["name"] for r in answer.json["rankings"]["ranking"]] == ["Club championship"]
    unchanged = await client.get("rankings.json", {"If-None-Match": answer.headers["ETag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")

    # Each accepted request, and nothing else, is an event of the log, numbered without a gap …
    events = await owner.fetch("SELECT sequence, kind FROM event ORDER BY sequence")
    assert [sequence for sequence, _ in events] == list(range(1, int(last.headers["Tallybook-Sequence"]) + 1))
    assert [kind for _, kind in events] == [
        "TournamentOpened",
        *["CompetitorRegistered"] * 4,
        "RankingCreated",
        "UnityAdded",
        "CompetitionAdded",
        *["PointsAdded"] * 2,
        *["RankingModified"] * 2,
        "PointsAdded",
        "RankingClosed",
        "RankingReopened",
        "PointsAdded",
    ]

    # … from which a worker makes tables, for people who prefer SQL. They say the same.
    await Worker(database).catch_up()
    for unity in ("points", "fouls"):
        lines = await owner.fetch(
            "SELECT position, competitor_id, total FROM standing WHERE unity = $1 ORDER BY position, enrolled", unity
        )
        assert [tuple(line) for line in lines] == standing(last, unity)


def standing(answer: Answer, unity: str) -> list[tuple[int, int, int]]:
    """Position, competitor and total of each line in the named unity."""
    (named,) = [u for u in answer.json["ranking"]["unities"] if u["name"] == unity]
    return [(line["position"], line["competitor_id"], line["total"]) for line in named["competitors_ranking"]]


def versions(answer: Answer) -> dict[str, int]:
    return {unity["name"]: unity["version"] for unity in answer.json["ranking"]["unities"]}


def each(unity: int, given: dict[int, str]) -> str:
    """The field participants_delta for one delta in `unity` to each of `given`."""
    return json.dumps(
        [
            {"competitor_id": competitor, "unities": [{"unity_id": unity, "delta": delta}]}
            for competitor, delta in given.items()
        ]
    )
