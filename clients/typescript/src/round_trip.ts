// A ranking made, scored and read through the generated client. The types hold what is sent and answered against the
// document; this holds both against a service: TALLYBOOK_ADDRESS, TALLYBOOK_TOKEN, TALLYBOOK_TOURNAMENT.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createClient } from "./generated/client/index.js";
import {
  addPoints,
  createRanking,
  listCompetitors,
  registerCompetitor,
  showStandings,
  voidCompetition,
} from "./generated/index.js";

function needed(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}

const client = createClient({ baseUrl: needed("TALLYBOOK_ADDRESS"), auth: () => needed("TALLYBOOK_TOKEN") });
const tournament = needed("TALLYBOOK_TOURNAMENT");
const keyed = () => ({ "Idempotency-Key": randomUUID() });

const registered = await registerCompetitor({
  client,
  path: { tournament },
  headers: keyed(),
  body: { name: "Ana", tags: ["junior"] },
  throwOnError: true,
});
assert("competitor" in registered.data);
const ana = registered.data.competitor;

const created = await createRanking({
  client,
  path: { tournament },
  headers: { ...keyed(), Prefer: "return=minimal" },
  body: { name: "Ladder", main_unity_name: "points", participants: [ana.id] },
  throwOnError: true,
});
assert("unity_id" in created.data);
const { id: ranking_id, unity_id } = created.data;

const headers = keyed();
for (const replayed of [null, "true"]) {
  const added = await addPoints({
    client,
    path: { tournament, ranking_id },
    headers,
    body: { participants_delta: [{ competitor_id: ana.id, unities: [{ unity_id, delta: 3 }] }] },
    throwOnError: true,
  });
  assert.equal(added.response.headers.get("Idempotency-Replayed"), replayed);
}

const shown = await showStandings({
  client,
  path: { tournament, ranking_id },
  query: { competitors: [ana.id], at_time: new Date(Date.now() + 60_000).toISOString() },
  throwOnError: true,
});
assert.deepEqual(shown.data.ranking.unities[0]?.competitors_ranking, [{ competitor_id: ana.id, position: 1, total: 3 }]);

for (let after = 0, page = 0; page < 2; page++) {
  const query = { per_page: 1, after };
  const listed = await listCompetitors({ client, path: { tournament }, query, throwOnError: true });
  assert.equal(listed.data.competitors.competitor.length, page === 0 ? 1 : 0);
  after = listed.data.competitors.next ?? ana.id;
}

const refused = await voidCompetition({ client, path: { tournament, competition_id: 1 }, headers: keyed() });
assert.equal(refused.error?.status, 404);
console.log(`round trip with ${ana.name}: ${shown.data.ranking.name}, ${shown.data.ranking.recorded_at}`);
