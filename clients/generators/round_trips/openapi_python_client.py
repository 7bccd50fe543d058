"""A round trip by the client that openapi-python-client makes."""

import os

from tallybook_client import AuthenticatedClient
from tallybook_client import models as m
from tallybook_client.api.competitors import list_competitors, register_competitor
from tallybook_client.api.points import add_points
from tallybook_client.api.rankings import create_ranking
from tallybook_client.api.standings import show_standings

tournament = os.environ["TALLYBOOK_TOURNAMENT"]
with AuthenticatedClient(base_url=os.environ["TALLYBOOK_ADDRESS"], token=os.environ["TALLYBOOK_TOKEN"]) as client:
    ids = []
    for name in ("Ana", "Ben"):
        fields = m.RegisterCompetitorFields(name=name, tags=["under 12", "junior"])
        made = register_competitor.sync(tournament, client=client, body=fields, idempotency_key=f"o-{name}")
        assert isinstance(made, m.RegisterCompetitorAnswer)
        ids.append(made.competitor.id)
    created = create_ranking.sync(
        tournament,
        client=client,
        body=m.CreateRankingFields(
            name="Client",
            main_unity_name="points",
            participants=ids,
            main_unity_counts=m.CreateRankingFieldsMainUnityCountsType0.BEST,
        ),
    )
    assert isinstance(created, m.CreateRankingAnswer)
    ranking = created.ranking
    line = m.CompetitorLines(competitor_id=ids[0], unities=[m.UnityLine(unity_id=ranking.unities[0].id, delta=2**31)])
    for _ in range(2):  # the second time, it is a repeat
        points = m.AddPointsFields(participants_delta=[line], reason="two pages")
        added = add_points.sync(tournament, ranking.id, client=client, body=points, idempotency_key="o-add")
        assert isinstance(added, m.AddPointsAnswer)
        assert added.ranking.unities[0].competitors_ranking[0].total == 2**31
    window = show_standings.sync(tournament, ranking.id, client=client, competitors=ids, at_time="2999-12-31")
    assert isinstance(window, m.ShowStandingsAnswer)
    assert [line.competitor_id for line in window.ranking.unities[0].competitors_ranking] == ids
    first = list_competitors.sync(tournament, client=client, per_page=1, after=0)
    second = list_competitors.sync(tournament, client=client, per_page=1, after=first.competitors.next_)
    assert first.competitors.competitor[0].id != second.competitors.competitor[0].id
