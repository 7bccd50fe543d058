// Makes the page of a board live: rows move to their new places, and the slider shows any moment of the past. The
// page describes itself in data- attributes. Everything here also works without scripts, through links and forms.

import { showCompetitions } from "./competitions.js";
import { Past } from "./past.js";
import { Present } from "./present.js";
import { Rows } from "./rows.js";
import { Timeline } from "./timeline.js";
import { dateText, localText, timeText, word, wordParts } from "./words.js";

const TURN = 15000; // milliseconds that a large screen shows one page
const TOLD_MAX = 3; // competitors whose new places are read out

const main = document.querySelector("main");
const told = main.dataset;
const large = document.body.classList.contains("tv");
const board = `/board/${encodeURIComponent(told.slug)}`;
const query = new URLSearchParams(location.search);
const moment = document.getElementById("moment");
const slider = document.getElementById("at");
const pages = document.querySelectorAll(".pages"); // links to other lines
const page = Number(told.lines); // lines of a page

const lang = document.documentElement.lang;
const spoken = lang === "en" && !query.has("lang") ? {} : { lang };

let table = null; // the last answer of the service
let asking = Object.fromEntries([...query].filter(([name]) => ["at", "on"].includes(name))); // empty: now
let timeline = null; // of a slider by dates, once it is loaded
let loading = null;
let end = Number(told.end);
let offset = Number(told.offset);

// ── Asking ──────────────────────────────────────────────────────────────────────────────────────────────

async function asked(name, more = {}) {
  const address = new URLSearchParams({ ranking: told.ranking, ...spoken, ...more });
  const response = await fetch(`${board}/${name}?${address}`, { cache: "no-cache" });
  if (!response.ok) throw Object.assign(new Error(name), { status: response.status });
  return response.json();
}

/** The address of the page of a competitor or a competition. */
function addressOf(kind, id, more = {}) {
  const kept = [...query].filter(([name]) => ["ranking", "lang"].includes(name));
  const address = new URLSearchParams([...kept, ...Object.entries(more)]);
  return `${board}/${kind}/${id}${address.size ? `?${address}` : ""}`;
}

function askedTable() {
  const more = { offset, limit: page };
  if (told.unity) more.unity = told.unity;
  for (const name of ["since", "tag", "find"]) if (query.get(name)) more[name] = query.get(name);
  return asked("table.json", { ...more, ...asking });
}

/** All names in an answer. */
function namesOf({ lines, competitions }) {
  return JSON.stringify([lines.map(({ competitor_id, name }) => [competitor_id, name]), competitions]);
}

function isNow() {
  return !Object.keys(asking).length;
}

/** The places of the slider: events of the log, or steps of the timeline. */
function places() {
  return timeline ?? { first: 1, last: end, address: String };
}

/** Shows an answer of the service. */
function take(answer) {
  const begun = answer.offset === Number(told.offset); // the lines that the page came with
  if (isNow() && begun && !rows.fit(answer.lines, answer.since !== null)) location.reload(); // the first competitions
  if (answer.since === null) for (const line of answer.lines) line.moved = undefined;
  const before = table;
  table = answer;
  rows.show(answer.lines, answer.offset, answer.columns, answer.footnotes);
  if (isNow() && before && before.sequence !== answer.sequence) tellMoves(before.lines, answer.lines);
  showCompetitions(answer.competitions, (id) => addressOf("competitions", id));
  tellPages(answer.offset, answer.lines.length, answer.count);
  tellEnd(answer.end);
  tellMoment(momentOf(answer), new Date(answer.recorded_at), answer.state);
}

/** Notes which event is the last one. */
function tellEnd(sequence) {
  end = told.end = sequence;
  if (!slider || slider.type !== "range") return;
  slider.max = places().last;
  if (isNow()) slider.value = slider.max;
}

// ── Now ─────────────────────────────────────────────────────────────────────────────────────────────────

const present = new Present({
  kinds: told.kinds.split(" "),
  address: () => `${board}/events?after=${end}`,
  fetched: async () => {
    const answer = await askedTable();
    if (!isNow()) return;
    if (["sequence", "offset", "state"].some((name) => answer[name] !== table?.[name])) take(answer);
    else if (namesOf(answer) !== namesOf(table)) location.reload(); // a freeze holds back the event of an erasure
  },
  concerns: (data) => [undefined, told.ranking].includes(/"ranking_id":(\d+)/.exec(data)?.[1]),
  passed: tellEnd,
  told: tellState,
  held: (frozen) => isNow() && frozen !== (table?.state === "frozen"),
});

const rows = new Rows(main.querySelector("table"), {
  address: (id) => addressOf("competitors", id, told.unity ? { unity: told.unity, ...asking } : asking),
  here: query.get("line"),
  target: document.body.classList.contains("embed") ? "_blank" : "_self", // an explanation may not be framed
});

const STATES = ["live", "frozen", "final"];
const lost = document.createElement("strong");

// ── Texts ───────────────────────────────────────────────────────────────────────────────────────────────

const status = document.createElement("p");
status.setAttribute("role", "status");
status.className = "unseen";
document.body.append(status);

/** The moment of the past in an answer, in words. */
function momentOf({ on, last, sequence }) {
  const ofLast = last && { what: last.name, day: dateText(new Date(last.date)) };
  if (on && timeline?.last) return timeline.text(timeline.placeAt(Date.parse(on)));
  if (on) return ofLast ? word("after", ofLast) : word("on_day", { day: dateText(new Date(on)) });
  return word(ofLast ? "after_event_last" : "after_event", { number: sequence, end, ...ofLast });
}

/** Shows which moment is in view. `words`: a moment of the past, in words; `date`: when it was recorded; null: not
 * known yet. `state`: that of the current table. */
function tellMoment(words, date, state) {
  const time = document.createElement("time");
  if (date) {
    time.dateTime = date.toISOString();
    time.textContent = timeText(date) + localText(date);
  }
  const shown = isNow() ? wordParts(state, { time }) : date ? wordParts("recorded", { moment: words, time }) : [words];
  moment.replaceChildren(...shown, lost);
  for (const one of STATES) moment.classList.toggle(one, isNow() && one === state);
  if (!slider) return;
  slider.setAttribute("aria-valuetext", moment.textContent);
  slider.labels[0].textContent = isNow() ? word("history") : word("history_of", { moment: words });
}

/** Shows which lines are in view, with links to those above and below. */
function tellPages(first, shown, count) {
  const lines = word(shown ? "span" : "no_lines", { first: first + 1, last: first + shown, count });
  const [number, of] = [Math.floor(first / page) + 1, Math.max(Math.ceil(count / page), 1)];
  for (const nav of pages) {
    const [above, below] = nav.querySelectorAll("a");
    nav.querySelector("span").textContent = large ? word("page", { page: number, pages: of, lines }) : lines;
    tellLink(above, Math.max(first - page, 0), first > 0);
    tellLink(below, first + page, first + shown < count);
    nav.hidden = above.hidden && below.hidden;
  }
}

function tellLink(link, first, exists) {
  const url = new URL(link.href);
  if (first) url.searchParams.set("offset", first);
  else url.searchParams.delete("offset");
  withMoment(url, (href) => (link.href = href));
  link.hidden = !exists;
}

function tellState(answers) {
  if (moment.classList.contains("lost") === !answers) return;
  moment.classList.toggle("lost", !answers);
  lost.textContent = answers ? "" : ` · ${word("lost")}`;
  status.textContent = answers ? word("back_again") : lost.textContent;
}

/** Announces the competitors who have moved. */
function tellMoves(before, now) {
  const places = new Map(before.map((line) => [line.competitor_id, line.position]));
  const moved = now.filter((line) => line.placed !== false && places.has(line.competitor_id) && places.get(line.competitor_id) !== line.position);
  if (moved.length) {
    status.textContent = moved.slice(0, TOLD_MAX).map((line) => word("moved_to", line)).join(" ");
  }
}

// ── The past ────────────────────────────────────────────────────────────────────────────────────────────

const past = new Past({
  asked,
  unity: told.unity,
  folds: "folds" in told,
  shown: (place, folded, columns, time) => {
    const lines = folded.slice(offset, offset + page);
    table = { lines: [], count: folded.length };
    rows.show(lines, offset, columns);
    tellPages(offset, lines.length, folded.length);
    tellMoment(timeline ? timeline.text(place) : word("after_event", { number: place, end }), time);
  },
  rested: async () => {
    keepAddress();
    const then = asking;
    const answer = await askedTable().catch(() => null);
    if (!answer) tellState(false);
    else if (asking === then) take(answer); // the same lines, with movement and form
  },
});

/** Keeps the moment in the address, and in all links to what has one. */
function keepAddress() {
  for (const link of document.querySelectorAll(".tabs a, thead a, .ways a:not(.timeless)")) {
    withMoment(new URL(link.href), (url) => (link.href = url));
  }
  withMoment(new URL(location.href), (url) => history.replaceState(null, "", url));
}

function withMoment(url, then) {
  for (const name of ["at", "on"]) url.searchParams.delete(name);
  for (const [name, text] of Object.entries(asking)) url.searchParams.set(name, text);
  then(url.href);
}

function goTo(place) {
  if (timeline && timeline.end < end) loadTimeline(); // for the next move
  asking = place >= places().last ? {} : { at: places().address(place) };
  if (!isNow()) {
    present.stop();
    past.goTo(place);
  } else {
    past.leave();
    table = null;
    keepAddress();
    present.start();
  }
}

/** Loads what took place, in order of time. `timeline` is null if nothing did. */
function loadTimeline() {
  loading ??= asked("timeline.json").then(
    (shape) => {
      timeline = shape.moments.length ? new Timeline(shape) : null;
      past.goThrough(timeline?.passage ?? null);
      loading = null;
    },
    () => (loading = null),
  );
  return loading;
}

/** Turns the date field into a slider, if there are dates, and adds everything that needs a slider. */
async function beginPast() {
  if ("dated" in told) {
    await loadTimeline();
    if (!timeline) return;
    slider.type = "range";
    slider.min = 0;
    slider.max = timeline.last;
    slider.value = isNow() ? timeline.last : timeline.placeAt(Date.parse(told.on));
  }
  addPlay(slider.form);
  if ("races" in told) addRace(slider.form);
}

function addPlay(form) {
  const button = form.querySelector("button");
  const speed = document.createElement("select");
  speed.setAttribute("aria-label", word("speed"));
  for (const times of [1, 10, 60, 600]) speed.add(new Option(`${times} ×`, times, times === 600, times === 600));
  button.textContent = word("play");
  button.after(speed);
  let playing = null;
  const stop = () => {
    playing?.abort();
    playing = null;
    button.textContent = word("play");
  };
  slider.addEventListener("input", () => {
    stop();
    goTo(Number(slider.value));
  });
  form.querySelector("a").addEventListener("click", (event) => {
    event.preventDefault();
    stop();
    slider.value = slider.max;
    goTo(places().last);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (playing) return stop();
    const mine = (playing = new AbortController());
    button.textContent = word("pause");
    const from = isNow() ? places().first : Number(slider.value);
    present.stop();
    const moved = (place) => {
      asking = { at: places().address(place) };
      slider.value = place;
    };
    moved(from);
    await past.play({ from, end: places().last, speed: () => Number(speed.value), signal: mine.signal, moved });
    if (playing === mine) {
      stop();
      goTo(Number(slider.value));
    }
  });
}

// ── The race ────────────────────────────────────────────────────────────────────────────────────────────

function addRace(form) {
  const section = document.createElement("section");
  section.className = "race";
  section.setAttribute("aria-label", word("race"));
  const race = section.appendChild(document.createElement("details"));
  race.appendChild(document.createElement("summary")).textContent = word("race");
  const place = race.appendChild(document.createElement("div"));
  form.after(section);
  race.addEventListener("toggle", async () => {
    if (!race.open) return place.replaceChildren();
    place.textContent = word("drawing");
    try {
      const { Race, loadStyle } = await import("./race.js");
      const [shape] = await Promise.all([asked("race.json", told.unity ? { unity: told.unity } : {}), loadStyle()]);
      new Race(place, shape, (sequence, clock) => {
        if (shape.by_date && !timeline) {
          asking = { at: new Date(clock).toISOString() };
          withMoment(new URL(location.href), (href) => location.assign(href));
          return;
        }
        slider.value = timeline ? timeline.placeAt(clock) : sequence;
        slider.dispatchEvent(new Event("input"));
      });
    } catch {
      place.textContent = word("no_race");
    }
  });
}

// ── Beginning ───────────────────────────────────────────────────────────────────────────────────────────

if (!isNow()) {
  const then = asking;
  askedTable().then(
    (answer) => asking === then && take(answer),
    () => location.reload(),
  );
} else {
  present.start();
}
if (slider) beginPast();
if (large) {
  setInterval(() => {
    if (!table || (table.count <= page && !offset)) return;
    offset = offset + page < table.count ? offset + page : 0;
    table = null;
    present.look();
  }, TURN);
}
