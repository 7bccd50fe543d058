"""A round trip by the client that openapi-generator makes for Python."""

import os

from openapi_client import ApiClient, CompetitorsApi, Configuration, PointsApi, RankingsApi, StandingsApi
from openapi_client import models as m

tournament = os.environ["TALLYBOOK_TOURNAMENT"]
configuration = Configuration(host=os.environ["TALLYBOOK_ADDRESS"], access_token=os.environ["TALLYBOOK_TOKEN"])
with ApiClient(configuration) as client:
    competitors, ids = CompetitorsApi(client), []
    for name in ("Ana", "Ben"):
        fields = m.RegisterCompetitorFields(name=name, tags=["under 12", "junior"])
        made = competitors.register_competitor(
            tournament, m.RegisterCompetitorRequest(fields), idempotency_key=f"p-{name}"
        )
        ids.append(made.actual_instance.competitor.id)
    fields = m.CreateRankingFields(name="Python", main_unity_name="points", participants=ids, main_unity_counts="best")
    ranking = RankingsApi(client).create_ranking(tournament, fields).actual_instance.ranking
    line = m.CompetitorLines(competitor_id=ids[0], unities=[m.UnityLine(unity_id=ranking.unities[0].id, delta=2**31)])
    points = m.AddPointsFields(participants_delta=[line], reason="two pages")
    for _ in range(2):  # the second time, it is a repeat
        added = PointsApi(client).add_points(tournament, ranking.id, points, idempotency_key="p-add")
        assert added.actual_instance.ranking.unities[0].competitors_ranking[0].total == 2**31
    window = StandingsApi(client).show_standings(tournament, ranking.id, competitors=ids, at_time="2999-12-31")
    assert [line.competitor_id for line in window.ranking.unities[0].competitors_ranking] == ids
    first = competitors.list_competitors(tournament, per_page=1, after=0).competitors
    second = competitors.list_competitors(tournament, per_page=1, after=first.next).competitors
    assert first.competitor[0].id != second.competitor[0].id
