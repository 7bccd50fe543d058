// Makes the page of a board live: rows move to their new places, and the slider shows any moment of the past. What the
// page is about stands in data- attributes. Everything here is also there without scripts, as links and forms.

import { showCompetitions } from "./competitions.js";
import { Past } from "./past.js";
import { Present } from "./present.js";
import { Rows } from "./rows.js";
import { localText, timeText } from "./words.js";

const TURN = 15000; // milliseconds of a page on a large screen
const TOLD_MAX = 3; // competitors whose new places are read out

const main = document.querySelector("main");
const told = main.dataset;
const large = document.body.classList.contains("tv");
const board = `/board/${encodeURIComponent(told.slug)}`;
const query = new URLSearchParams(location.search);
const moment = document.getElementById("moment");
const slider = document.getElementById("at");
const pages = document.querySelector(".pages");
const page = Number(told.lines); // lines of a page

let table = null; // the last that the service told
let at = query.has("at") ? Number(told.sequence) : 0; // 0: now
let end = Number(told.end);
let offset = Number(told.offset);

// ── Asking ──────────────────────────────────────────────────────────────────────────────────────────────

async function asked(name, more = {}) {
  const address = new URLSearchParams({ ranking: told.ranking, ...more });
  const response = await fetch(`${board}/${name}?${address}`, { cache: "no-cache" });
  if (!response.ok) throw Object.assign(new Error(name), { status: response.status });
  return response.json();
}

function askedTable() {
  const more = { offset, limit: page };
  if (told.unity) more.unity = told.unity;
  if (query.has("since")) more.since = query.get("since");
  if (at) more.at = at;
  return asked("table.json", more);
}

/** Takes what the service told of the lines of the page. */
function take(answer) {
  if (!at && answer.since !== null && !rows.compares) location.reload(); // nothing has been compared yet
  if (answer.since === null) for (const line of answer.lines) line.moved = undefined;
  const before = table;
  table = answer;
  rows.show(answer.lines, answer.offset, answer.columns);
  if (!at && before && before.sequence !== answer.sequence) tellMoves(before.lines, answer.lines);
  showCompetitions(answer.competitions);
  tellPages(answer.offset, answer.lines.length, answer.count);
  tellEnd(answer.end);
  tellMoment(new Date(answer.recorded_at), answer.state);
}

/** Notes which event is the last one. */
function tellEnd(sequence) {
  end = sequence;
  if (!slider) return;
  slider.max = end;
  slider.value = at || end;
}

// ── Now ─────────────────────────────────────────────────────────────────────────────────────────────────

const present = new Present({
  kinds: told.kinds.split(" "),
  address: () => `${board}/events?after=${end}`,
  fetched: async () => {
    const answer = await askedTable();
    if (!at && ["sequence", "offset", "state"].some((name) => answer[name] !== table?.[name])) take(answer);
  },
  concerns: (data) => [undefined, told.ranking].includes(/"ranking_id":(\d+)/.exec(data)?.[1]),
  passed: tellEnd,
  told: tellState,
  held: (frozen) => !at && frozen !== (table?.state === "frozen"),
});

const rows = new Rows(main.querySelector("table"), {
  address: (id) => {
    const kept = new URLSearchParams();
    if (query.has("ranking")) kept.set("ranking", query.get("ranking"));
    if (told.unity) kept.set("unity", told.unity);
    if (at) kept.set("at", at);
    return `${board}/competitors/${id}${kept.size ? `?${kept}` : ""}`;
  },
  target: document.body.classList.contains("embed") ? "_blank" : "_self", // it may not be framed
});

const STATES = { live: "Live, as of ", frozen: "Frozen since ", final: "Final, as of " };
const lost = document.createElement("strong");

// ── What is said ────────────────────────────────────────────────────────────────────────────────────────

const status = document.createElement("p");
status.setAttribute("role", "status");
status.className = "unseen";
document.body.append(status);

/** Says which moment is shown. Null: its time is not known yet. `state`: of the table of now. */
function tellMoment(date, state) {
  const time = document.createElement("time");
  if (date) {
    time.dateTime = date.toISOString();
    time.textContent = timeText(date) + localText(date);
  }
  moment.replaceChildren(at ? `After event ${at} of ${end}${date ? ", " : ""}` : STATES[state], time, lost);
  for (const one of Object.keys(STATES)) moment.classList.toggle(one, !at && one === state);
  slider?.setAttribute("aria-valuetext", moment.textContent);
}

/** Says which lines are shown, and leads to those above and below. */
function tellPages(first, shown, count) {
  const [above, below] = pages.querySelectorAll("a");
  const lines = shown ? `${first + 1}–${first + shown} of ${count}` : `None of ${count} lines`;
  const ofPages = `Page ${Math.floor(first / page) + 1} of ${Math.max(Math.ceil(count / page), 1)}, `;
  pages.querySelector("span").textContent = (large ? ofPages : "") + lines;
  for (const [link, to, exists] of [[above, Math.max(first - page, 0), first > 0], [below, first + page, first + shown < count]]) {
    const url = new URL(link.href);
    if (to) url.searchParams.set("offset", to);
    else url.searchParams.delete("offset");
    withMoment(url, (href) => (link.href = href));
    link.hidden = !exists;
  }
  pages.hidden = above.hidden && below.hidden;
}

function tellState(answers) {
  if (moment.classList.contains("lost") === !answers) return;
  moment.classList.toggle("lost", !answers);
  lost.textContent = answers ? "" : " · Connection lost; trying again";
  status.textContent = answers ? "The connection is back." : lost.textContent;
}

/** Says who has come to another place. */
function tellMoves(before, now) {
  const places = new Map(before.map((line) => [line.competitor_id, line.position]));
  const moved = now.filter((line) => places.has(line.competitor_id) && places.get(line.competitor_id) !== line.position);
  if (moved.length) {
    status.textContent = moved.slice(0, TOLD_MAX).map((line) => `${line.name} is now in place ${line.position}.`).join(" ");
  }
}

// ── The past ────────────────────────────────────────────────────────────────────────────────────────────

const past = new Past({
  asked,
  unity: told.unity,
  folds: "folds" in told,
  shown: (sequence, folded, columns, time) => {
    const lines = folded.slice(offset, offset + page);
    table = { sequence, lines: [], count: folded.length };
    rows.show(lines, offset, columns);
    tellPages(offset, lines.length, folded.length);
    tellMoment(time);
  },
  rested: async (sequence) => {
    keepAddress();
    const answer = await askedTable().catch(() => null);
    if (!answer) tellState(false);
    else if (at === sequence) take(answer); // the same lines, with movement and form
  },
});

/** Keeps the moment in the address, and in all ways to other tables. */
function keepAddress() {
  for (const link of document.querySelectorAll(".tabs a, .ways a")) withMoment(new URL(link.href), (url) => (link.href = url));
  withMoment(new URL(location.href), (url) => history.replaceState(null, "", url));
}

function withMoment(url, then) {
  if (at) url.searchParams.set("at", at);
  else url.searchParams.delete("at");
  then(url.href);
}

function goTo(sequence) {
  at = sequence >= end ? 0 : sequence;
  if (at) {
    present.stop();
    past.goTo(at);
  } else {
    past.leave();
    table = null;
    keepAddress();
    present.start();
  }
}

function addPlay(form) {
  const button = form.querySelector("button");
  const speed = document.createElement("select");
  speed.setAttribute("aria-label", "Speed");
  for (const times of [1, 10, 60, 600]) speed.add(new Option(`${times} ×`, times, times === 600, times === 600));
  button.textContent = "Play";
  button.after(speed);
  let playing = null;
  const stop = () => {
    playing?.abort();
    playing = null;
    button.textContent = "Play";
  };
  slider.addEventListener("input", () => {
    stop();
    goTo(Number(slider.value));
  });
  form.querySelector("a").addEventListener("click", (event) => {
    event.preventDefault();
    stop();
    slider.value = end;
    goTo(end);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (playing) return stop();
    const mine = (playing = new AbortController());
    button.textContent = "Pause";
    const from = at || 1;
    present.stop();
    at = from;
    await past.play({
      from,
      end,
      speed: () => Number(speed.value),
      signal: mine.signal,
      moved: (sequence) => {
        at = sequence;
        slider.value = sequence;
      },
    });
    if (playing === mine) {
      stop();
      goTo(at);
    }
  });
}

// ── The race ────────────────────────────────────────────────────────────────────────────────────────────

function addRace(form) {
  const section = document.createElement("section");
  section.className = "race";
  section.setAttribute("aria-label", "Race");
  const race = section.appendChild(document.createElement("details"));
  race.appendChild(document.createElement("summary")).textContent = "Race";
  const place = race.appendChild(document.createElement("div"));
  form.after(section);
  race.addEventListener("toggle", async () => {
    if (!race.open) return place.replaceChildren();
    place.textContent = "Drawing …";
    try {
      const { Race, loadStyle } = await import("./race.js");
      const [shape] = await Promise.all([asked("race.json", told.unity ? { unity: told.unity } : {}), loadStyle()]);
      new Race(place, shape, (sequence) => {
        slider.value = sequence;
        slider.dispatchEvent(new Event("input"));
      });
    } catch {
      place.textContent = "The race cannot be drawn: the ranking or its history is too large, or the connection is lost.";
    }
  });
}

// ── Beginning ───────────────────────────────────────────────────────────────────────────────────────────

if (slider) {
  addPlay(slider.form);
  if ("races" in told) addRace(slider.form);
}
if (at) {
  askedTable().then(take, () => location.reload());
} else {
  present.start();
}
if (large) {
  setInterval(() => {
    if (!table || (table.count <= page && !offset)) return;
    offset = offset + page < table.count ? offset + page : 0;
    table = null;
    present.look();
  }, TURN);
}
