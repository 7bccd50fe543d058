// A round trip by the client that orval makes.
import assert from "node:assert/strict";
import { addPoints, createRanking, listCompetitors, registerCompetitor, showStandings } from "../generated/orval.js";

const { TALLYBOOK_TOKEN: token, TALLYBOOK_TOURNAMENT: tournament = "" } = process.env;
const large = 2 ** 31;
const signed = (key?: string): RequestInit => ({
  headers: { Authorization: `Bearer ${token}`, ...(key ? { "Idempotency-Key": key } : {}) },
});

const ids: number[] = [];
for (const name of ["Ana", "Ben"]) {
  const made = await registerCompetitor(tournament, { name, tags: ["under 12", "junior"] }, signed(`v-${name}`));
  assert(made.status === 200 && "competitor" in made.data);
  ids.push(made.data.competitor.id);
}
const fields = { name: "Orval", main_unity_name: "points", participants: ids, main_unity_counts: "best" as const };
const created = await createRanking(tournament, fields, signed());
assert(created.status === 200 && "ranking" in created.data);
const { id: ranking_id, unities } = created.data.ranking;
const participants_delta = [{ competitor_id: ids[0]!, unities: [{ unity_id: unities[0]!.id, delta: large }] }];
for (let attempt = 0; attempt < 2; attempt++) {
  const added = await addPoints(tournament, ranking_id, { participants_delta }, signed("v-add"));
  assert(added.status === 200 && "ranking" in added.data);
  assert.equal(added.data.ranking.unities[0]!.competitors_ranking[0]!.total, large);
}
const window = await showStandings(tournament, ranking_id, { competitors: ids, at_time: "2999-12-31" }, signed());
assert(window.status === 200);
assert.deepEqual(window.data.ranking.unities[0]!.competitors_ranking.map((line) => line.competitor_id), ids);
const first = await listCompetitors(tournament, { per_page: 1, after: 0 }, signed());
assert(first.status === 200);
const second = await listCompetitors(tournament, { per_page: 1, after: first.data.competitors.next! }, signed());
assert(second.status === 200);
assert.notEqual(first.data.competitors.competitor[0]!.id, second.data.competitors.competitor[0]!.id);
