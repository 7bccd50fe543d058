// A round trip by the client that openapi-generator makes for Go.
package main

import (
	"context"
	"log"
	"os"

	tallybook "github.com/GIT_USER_ID/GIT_REPO_ID"
)

func main() {
	configuration := tallybook.NewConfiguration()
	configuration.Servers = tallybook.ServerConfigurations{{URL: os.Getenv("TALLYBOOK_ADDRESS")}}
	client := tallybook.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), tallybook.ContextAccessToken, os.Getenv("TALLYBOOK_TOKEN"))
	tournament := os.Getenv("TALLYBOOK_TOURNAMENT")
	const large = int64(1) << 31

	ids := []int64{}
	for _, name := range []string{"Ana", "Ben"} {
		fields := tallybook.NewRegisterCompetitorFields(name)
		fields.SetTags([]string{"under 12", "junior"})
		body := tallybook.RegisterCompetitorRequest{RegisterCompetitorFields: fields}
		made, _, err := client.CompetitorsAPI.RegisterCompetitor(ctx, tournament).
			RegisterCompetitorRequest(body).IdempotencyKey("g-" + name).Execute()
		check(err)
		ids = append(ids, made.RegisterCompetitorAnswer.Competitor.Id)
	}
	fields := tallybook.NewCreateRankingFields("Go", "points", ids)
	fields.SetMainUnityCounts("best")
	created, _, err := client.RankingsAPI.CreateRanking(ctx, tournament).CreateRankingFields(*fields).Execute()
	check(err)
	ranking := created.CreateRankingAnswer.Ranking
	unity := tallybook.NewUnityLine(ranking.Unities[0].Id, large)
	line := tallybook.NewCompetitorLines(ids[0], []tallybook.UnityLine{*unity})
	for attempt := 0; attempt < 2; attempt++ { // the second one is a repeat
		points := tallybook.NewAddPointsFields([]tallybook.CompetitorLines{*line})
		added, _, err := client.PointsAPI.AddPoints(ctx, tournament, ranking.Id).
			AddPointsFields(*points).IdempotencyKey("g-add").Execute()
		check(err)
		total := added.AddPointsAnswer.Ranking.Unities[0].CompetitorsRanking[0].Total
		expect(total.Get() != nil && *total.Get() == large)
	}
	window, _, err := client.StandingsAPI.ShowStandings(ctx, tournament, ranking.Id).Competitors(ids).AtTime("2999-12-31").Execute()
	check(err)
	lines := window.Ranking.Unities[0].CompetitorsRanking
	expect(len(lines) == 2 && lines[0].CompetitorId == ids[0] && lines[1].CompetitorId == ids[1])
	first, _, err := client.CompetitorsAPI.ListCompetitors(ctx, tournament).PerPage(1).After(0).Execute()
	check(err)
	second, _, err := client.CompetitorsAPI.ListCompetitors(ctx, tournament).PerPage(1).After(*first.Competitors.Next.Get()).Execute()
	check(err)
	expect(first.Competitors.Competitor[0].Id != second.Competitors.Competitor[0].Id)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func expect(ok bool) {
	if !ok {
		log.Fatal("not what was expected")
	}
}
