// The last result above the table, results and fixtures below it, as competitions.py writes them.

import { html, nothing, render } from "./lit-html/lit-html.js";
import { dateText, readNumber, whenText, word } from "./words.js";

const SIDES_LONG = 60; // characters, as in the service

const latest = document.getElementById("latest");
const section = document.getElementById("competitions");
const [results, fixtures] = [...(section?.querySelectorAll("h2") ?? [])].map(({ textContent }) => textContent);
const written = new Set(); // parts whose first content came with the page

let address; // of the page of a competition

/** Shows the competitions of table.json. `to`: returns the address of the page of one. */
export function showCompetitions(told, to) {
  address = to;
  show(latest, told.latest, () => [
    titled(word("latest"), told.latest),
    told.latest.entered_late ? where(told.latest) : nothing,
    told.late ? latePart(told.late) : nothing,
  ]);
  const characters = told.latest?.sides.reduce((sum, { name }) => sum + name.length, 0);
  latest?.classList.toggle("long", characters > SIDES_LONG);
  show(section, told.results.length || told.fixtures.length, () => [
    list(results, told.results),
    list(fixtures, told.fixtures),
  ]);
}

function show(part, some, content) {
  if (!part) return;
  if (!written.has(part)) part.replaceChildren();
  written.add(part);
  part.hidden = !some;
  render(some ? content() : nothing, part);
}

function latePart(one) {
  return html`<span class="late">${titled(word("late"), one)}${where({ ...one, entered_late: null })}</span>`;
}

function titled(title, one) {
  return html`<strong>${title}</strong> ${text(one)}`;
}

function list(title, competitions) {
  return html`<div ?hidden=${!competitions.length}><h2>${title}</h2><ol>${competitions.map(
    (one) => html`<li>${text(one)}${where(one)}</li>`,
  )}</ol></div>`;
}

function text({ id, sides, result, ended, others }) {
  const names = sides.map(side);
  const who = names.length === 2 && !others && sides.every(({ performance }) => performance === null)
    ? html`${names[0]} ${result ? html`<b>${result}</b>` : "–"} ${names[1]}${ended ? `, ${ended}` : nothing}`
    : html`${apart(names)}${others ? word("and_more", { number: others }) : nothing}`;
  const given = sides
    .filter(({ gained, performance }) => gained !== null && gained !== performance)
    .map(({ name, gained }) => html`<bdi>${name}</bdi> ${readNumber(gained)}`);
  return html`<a href=${address(id)} class="who-met">${who}</a>${given.length ? html`<span class="gave">${apart(given)}</span>` : nothing}`;
}

function side({ name, won, performance }) {
  const words = html`<bdi>${name}</bdi>${performance === null ? nothing : ` ${performance}`}`;
  return won ? html`<strong>${words}</strong>` : words;
}

function apart(parts) {
  return parts.map((part, number) => (number ? html`, ${part}` : part));
}

function where({ round, round_name, took_place, location, entered_late }) {
  const said = [
    round_name ? html`<bdi>${round_name}</bdi>` : round !== null && word("round", { number: round }),
    took_place && html`<time datetime=${took_place}>${whenText(new Date(took_place))}</time>`,
    location && html`<bdi>${location}</bdi>`,
    entered_late && word("entered_late", { day: dateText(new Date(entered_late)) }),
  ];
  return html`<span class="where">${apart(said.filter(Boolean))}</span>`;
}
