// A round trip by the client that openapi-generator makes for TypeScript and fetch.
import assert from "node:assert/strict";
import { CompetitorsApi, Configuration, PointsApi, RankingsApi, StandingsApi } from "../generated/typescript-fetch/index.js";

const { TALLYBOOK_ADDRESS: basePath, TALLYBOOK_TOKEN: accessToken, TALLYBOOK_TOURNAMENT: tournament = "" } = process.env;
const configuration = new Configuration({ basePath, accessToken });
const competitors = new CompetitorsApi(configuration);
const large = 2 ** 31;

const ids: number[] = [];
for (const name of ["Ana", "Ben"]) {
  const fields = { name, tags: ["under 12", "junior"] };
  const made = await competitors.registerCompetitor({ tournament, registerCompetitorRequest: fields, idempotencyKey: `f-${name}` });
  ids.push(made.competitor.id);
}
const { ranking } = await new RankingsApi(configuration).createRanking({
  tournament,
  createRankingFields: { name: "Fetch", main_unity_name: "points", participants: ids, main_unity_counts: "best" },
});
const unity_id = ranking.unities[0]!.id;
for (let attempt = 0; attempt < 2; attempt++) {
  const added = await new PointsApi(configuration).addPoints({
    tournament,
    rankingId: ranking.id,
    addPointsFields: { participants_delta: [{ competitor_id: ids[0]!, unities: [{ unity_id, delta: large }] }] },
    idempotencyKey: "f-add",
  });
  assert.equal(added.ranking.unities[0]!.competitors_ranking[0]!.total, large);
}
const window = await new StandingsApi(configuration).showStandings({
  tournament,
  rankingId: ranking.id,
  competitors: ids,
  atTime: "2999-12-31",
});
assert.deepEqual(window.ranking.unities[0]!.competitors_ranking.map((line) => line.competitor_id), ids);
const first = await competitors.listCompetitors({ tournament, perPage: 1, after: 0 });
const second = await competitors.listCompetitors({ tournament, perPage: 1, after: first.competitors.next! });
assert.notEqual(first.competitors.competitor[0]!.id, second.competitors.competitor[0]!.id);
