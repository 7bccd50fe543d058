// The rows of the table on its page. They move to their new places.

import { html, nothing, render } from "./lit-html/lit-html.js";
import { repeat } from "./lit-html/directives/repeat.js";
import { NO_COLOR, numberText, readNumber, word, wordParts } from "./words.js";

const NONE = "–"; // for a missing total, and the place of who has none
const NAME_LONG = 36; // characters, as in the service
const MOVE = { duration: 700, easing: "cubic-bezier(.2, .8, .2, 1)" };
const GLOW = { duration: 1600, easing: "ease-out" };
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

export class Rows {
  #head;
  #body;
  #beside;
  #columns = [];
  #order = [];
  #shown = false;
  #address;
  #target;
  #here;
  #zones; // as the legend below the table has them
  #lines = [];
  #notes = [];
  #offset = 0;

  /** `address`: returns the address of a competitor's explanation; `target`: where it opens; `here`: the competitor
   * whose line is highlighted. */
  constructor(table, { address, target, here }) {
    this.#head = table.tHead.rows[0];
    this.#body = table.tBodies[0];
    this.#beside = {
      moved: this.#head.querySelector(".moved") !== null,
      form: this.#head.querySelector(".form") !== null,
    };
    this.#address = address;
    this.#target = target;
    this.#here = here;
    this.#zones = [...table.parentElement.querySelectorAll(".zones li")];
  }

  /** Whether the page has what the lines need: movement, if they are `compared`, recent results, and zones. */
  fit(lines, compared) {
    if (lines.some(({ zone }) => zone !== undefined && !this.#zones[zone])) return false;
    return (this.#beside.moved || !compared) && (this.#beside.form || !lines.some(({ form }) => form.length));
  }

  /** Shows these lines, after `offset` others, with values in these `columns`, and footnotes. */
  show(lines, offset, columns, notes = []) {
    const still = STILL.matches || document.hidden;
    const before = still ? new Map() : this.#tops();
    const values = new Map(this.#lines.map((line) => [line.competitor_id, line.values[0]]));
    this.#lines = lines;
    this.#offset = offset;
    this.#notes = notes;
    this.#name(columns);
    if (!this.#shown) this.#body.replaceChildren(); // what came with the page
    this.#note();
    this.#shown = true;
    this.#draw();
    if (still) return;
    for (const row of this.#rows()) {
      const id = row.dataset.competitor;
      row.getAnimations().forEach((animation) => animation.cancel());
      const top = before.get(id);
      const moved = top === undefined ? 0 : top - row.offsetTop;
      if (moved) {
        row.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], MOVE);
      }
      const value = row.querySelector(".first");
      if (values.has(id) && values.get(id) !== value.dataset.value) {
        value.animate([{ backgroundColor: "var(--glow)" }, { backgroundColor: "transparent" }], GLOW);
      }
    }
  }

  /** Names the columns of values. */
  #name(columns) {
    const cells = [...this.#head.querySelectorAll(".value")];
    this.#columns = columns;
    const place = (number) => columns[number].place ?? number;
    this.#order = [...columns.keys()].sort((one, other) => place(one) - place(other));
    const shorts = this.#order.map((number) => columns[number].short);
    if (cells.map((cell) => cell.textContent).join("\n") === shorts.join("\n")) return;
    for (const cell of cells) cell.remove();
    for (const number of this.#order) {
      const { name, short } = columns[number];
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = this.#valueClass(number);
      const text = cell.appendChild(document.createElement(short === name ? "bdi" : "abbr"));
      text.textContent = short;
      if (short !== name) text.title = name;
      this.#head.append(cell);
    }
  }

  #valueClass(number) {
    if (number === 0) return "value first";
    const decides = this.#columns[number].decides ? (number === 1 ? " decides second" : " decides") : "";
    return `value${decides}${number === this.#order[0] ? " lead" : ""}`;
  }

  #rows() {
    return this.#body.querySelectorAll("tr[data-competitor]");
  }

  /** Where each row is seen, even while it moves, relative to the top of the table. */
  #tops() {
    const rows = [...this.#rows()];
    if (!rows.length) return new Map();
    const origin = this.#body.getBoundingClientRect().top - this.#body.offsetTop;
    return new Map(rows.map((row) => [row.dataset.competitor, row.getBoundingClientRect().top - origin]));
  }

  #draw() {
    const focused = this.#body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    const id = focused?.dataset.competitor;
    render(repeat(this.#lines, (line) => line.competitor_id, (line, place) => this.#row(place, line)), this.#body);
    if (id && !this.#body.contains(document.activeElement)) {
      this.#body.querySelector(`tr[data-competitor="${id}"] a`)?.focus({ preventScroll: true });
    }
  }

  #zone(line) {
    return this.#zones[line.zone];
  }

  /** Writes the footnotes below the table. */
  #note() {
    const table = this.#body.parentElement;
    table.parentElement.querySelector(".notes")?.remove();
    if (!this.#notes.length) return;
    const list = Object.assign(document.createElement("ol"), { className: "notes", type: "a" });
    const names = new Map(this.#lines.map(({ competitor_id, name }) => [competitor_id, name]));
    render(this.#notes.map(({ competitor_id, amount, reason }) => html`<li>${wordParts("deducted", {
      name: html`<bdi>${names.get(competitor_id)}</bdi>`, amount, reason: html`<bdi>${reason}</bdi>` })}</li>`), list);
    table.after(list);
  }

  /** The marks of the footnotes to a value. */
  #marks(line, number) {
    const its = this.#notes.filter((one) => one.competitor_id === line.competitor_id && one.column === number);
    if (!its.length) return nothing;
    return html`<sup><span class="unseen"> ${word("note")} </span>${its.map(({ mark }) => mark).join(" ")}</sup>`;
  }

  /** A value, or a dash for a missing total; nothing for what the order did not need. */
  #text(line, number) {
    const [value, { decides, notation }] = [line.values[number], this.#columns[number]];
    if (value !== null) return numberText(value, notation);
    return decides && (number > 0 || line.placed !== false) ? "" : NONE;
  }

  #row(place, line) {
    return html`<tr data-competitor=${line.competitor_id} id=${`line-${line.competitor_id}`}
      class=${line.competitor_id === this.#here ? "here" : nothing} aria-rowindex=${this.#offset + place + 2}>
      <td class=${`position ${this.#zone(line)?.className ?? ""}`.trim()}>${line.placed === false ? NONE : line.position}${
        this.#zone(line) ? html`<span class="unseen">, <bdi>${this.#zone(line).querySelector("bdi").textContent}</bdi></span>` : nothing}</td>
      ${this.#beside.moved ? html`<td class="moved">${line.placed === false ? nothing : movedText(line.moved)}</td>` : nothing}
      <th scope="row" class="name"><span class="who">${dot(line.color)}<a
        href=${this.#address(line.competitor_id)} target=${this.#target}
        class=${line.name.length > NAME_LONG ? "long" : nothing}><bdi>${line.name}</bdi></a></span></th>
      ${this.#beside.form ? html`<td class="form"><ol>${line.form?.map((sum) => html`<li>${readNumber(sum)}</li>`)}</ol></td>` : nothing}
      ${this.#order.map((number) => html`<td class=${this.#valueClass(number)} data-value=${
        line.values[number] ?? ""}>${this.#text(line, number)}${this.#marks(line, number)}${
        number === 0 && line.gained ? html`<span class="gained"> ${readNumber(line.gained)}</span>` : nothing}</td>`)}
    </tr>`;
  }
}

/** The colour of a competitor, if they have one. */
function dot(color) {
  if (color === NO_COLOR) return nothing;
  return html`<svg class="dot" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="7" fill=${
    `#${color}`}></circle></svg>`;
}

/** Movement by sign and by word; undefined: it is not known yet. */
function movedText(places) {
  if (places === undefined) return nothing;
  if (places === null) return html`<span class="new">${word("new")}</span>`;
  if (places === 0) {
    return html`<span class="same"><span class="sign" aria-hidden="true">–</span><span class="unseen">${word("unchanged")}</span></span>`;
  }
  const [sign, way] = places > 0 ? ["▲", "up"] : ["▼", "down"];
  return html`<span class=${way}><span class="sign" aria-hidden="true">${sign}</span>${Math.abs(places)}<span
    class="unseen"> ${word(way)}</span></span>`;
}
