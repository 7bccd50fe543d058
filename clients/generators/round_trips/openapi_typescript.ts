// A round trip by openapi-fetch with the types that openapi-typescript makes.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "../generated/openapi-typescript.js";

const { TALLYBOOK_ADDRESS: baseUrl, TALLYBOOK_TOKEN: token, TALLYBOOK_TOURNAMENT: tournament = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });
const large = 2 ** 31;

const ids: number[] = [];
for (const name of ["Ana", "Ben"]) {
  const made = await client.POST("/tournament/{tournament}/competitors.json", {
    params: { path: { tournament }, header: { "Idempotency-Key": `t-${name}` } },
    body: { name, tags: ["under 12", "junior"] },
  });
  assert(made.data && "competitor" in made.data);
  ids.push(made.data.competitor.id);
}
const created = await client.POST("/tournament/{tournament}/rankings.json", {
  params: { path: { tournament } },
  body: { name: "Types", main_unity_name: "points", participants: ids, main_unity_counts: "best" },
});
assert(created.data && "ranking" in created.data);
const { id: ranking_id, unities } = created.data.ranking;
const participants_delta = [{ competitor_id: ids[0]!, unities: [{ unity_id: unities[0]!.id, delta: large }] }];
for (let attempt = 0; attempt < 2; attempt++) {
  const added = await client.PUT("/tournament/{tournament}/rankings/{ranking_id}/add.json", {
    params: { path: { tournament, ranking_id }, header: { "Idempotency-Key": "t-add" } },
    body: { participants_delta },
  });
  assert(added.data && "ranking" in added.data);
  assert.equal(added.data.ranking.unities[0]!.competitors_ranking[0]!.total, large);
}
const window = await client.GET("/tournament/{tournament}/rankings/{ranking_id}/standings.json", {
  params: { path: { tournament, ranking_id }, query: { competitors: ids, at_time: "2999-12-31" } },
});
assert.deepEqual(window.data?.ranking.unities[0]!.competitors_ranking.map((line) => line.competitor_id), ids);
const pages = "/tournament/{tournament}/competitors.json";
const first = await client.GET(pages, { params: { path: { tournament }, query: { per_page: 1, after: 0 } } });
const after = first.data!.competitors.next!;
const second = await client.GET(pages, { params: { path: { tournament }, query: { per_page: 1, after } } });
assert.notEqual(first.data!.competitors.competitor[0]!.id, second.data!.competitors.competitor[0]!.id);
