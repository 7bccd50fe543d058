// The rows of the table: those in view, and some around them, however many there are. They move to their new places.

import { html, nothing, render } from "./lit-html/lit-html.js";
import { repeat } from "./lit-html/directives/repeat.js";
import { NO_COLOR, numberText } from "./words.js";

const ALL_LINES_MAX = 200; // so many are all there, for those who search or print
const SPARE_LINES = 15;
const MOVE = { duration: 700, easing: "cubic-bezier(.2, .8, .2, 1)" };
const GLOW = { duration: 1600, easing: "ease-out" };
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

export class Rows {
  #head;
  #body;
  #columns;
  #shown = false;
  #address;
  #target;
  #lines = [];
  #count = 0;
  #height;
  #wanted;
  #first = 0;
  #last = 0;

  /** `address` of the explanation of a competitor, `target` where it opens. `wanted` is called with the range of lines
   * that are in view and not there. */
  constructor(table, { address, target, wanted }) {
    this.#head = table.tHead.rows[0];
    this.#body = table.tBodies[0];
    this.#columns = {
      moved: this.#head.querySelector(".moved") !== null,
      form: this.#head.querySelector(".form") !== null,
    };
    this.#height = this.#body.rows[0]?.getBoundingClientRect().height || 52;
    this.#address = address;
    this.#target = target;
    this.#wanted = wanted;
    let drawing = 0;
    const later = () => {
      drawing ||= requestAnimationFrame(() => {
        drawing = 0;
        if (this.#shown) this.#draw();
      });
    };
    addEventListener("scroll", later, { passive: true });
    addEventListener("resize", later, { passive: true });
  }

  /** The first line in view. */
  get first() {
    return this.#first;
  }

  /** The line before which those in view end. */
  get last() {
    return this.#last;
  }

  /** Whether there is a column for movement. */
  get compares() {
    return this.#columns.moved;
  }

  /** Shows these lines, an array by place from 0 that may have gaps, of `count` lines with values in these `columns`. */
  show(lines, count, columns) {
    const still = STILL.matches || document.hidden;
    const before = still ? new Map() : this.#tops();
    const values = new Map();
    this.#lines.forEach((line) => values.set(line.competitor_id, line.values[0]));
    this.#lines = lines;
    this.#count = count;
    this.#name(columns);
    if (!this.#shown) this.#body.replaceChildren(); // what came without scripts
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
    if (cells.map((cell) => cell.textContent).join("\n") === columns.join("\n")) return;
    for (const cell of cells) cell.remove();
    columns.forEach((name, number) => {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.className = valueClass(number);
      cell.textContent = name;
      this.#head.append(cell);
    });
  }

  #rows() {
    return this.#body.querySelectorAll("tr[data-competitor]");
  }

  /** Where each row is seen, on its way too, against the top of the table. */
  #tops() {
    const rows = [...this.#rows()];
    if (!rows.length) return new Map();
    const origin = this.#body.getBoundingClientRect().top - this.#body.offsetTop;
    return new Map(rows.map((row) => [row.dataset.competitor, row.getBoundingClientRect().top - origin]));
  }

  #draw() {
    const top = this.#body.getBoundingClientRect().top;
    const whole = this.#count <= ALL_LINES_MAX;
    const first = whole ? 0 : Math.floor(-top / this.#height) - SPARE_LINES;
    const last = whole ? this.#count : Math.ceil((innerHeight - top) / this.#height) + SPARE_LINES;
    this.#first = Math.min(Math.max(first, 0), this.#count);
    this.#last = Math.min(Math.max(last, this.#first), this.#count);
    const lines = [];
    for (let place = this.#first; place < this.#last; place++) lines.push([place, this.#lines[place]]);
    const focused = this.#body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    const id = focused?.dataset.competitor;
    render(
      html`${this.#gap(this.#first)}${repeat(
        lines,
        ([place, line]) => line?.competitor_id ?? -1 - place,
        ([place, line]) => this.#row(place, line),
      )}${this.#gap(this.#count - this.#last)}`,
      this.#body,
    );
    if (id && !this.#body.contains(document.activeElement)) {
      this.#body.querySelector(`tr[data-competitor="${id}"] a`)?.focus({ preventScroll: true });
    }
    const missing = lines.filter(([, line]) => !line).map(([place]) => place);
    if (missing.length) this.#wanted(missing[0], missing.at(-1) + 1);
  }

  /** Room for lines that are not there. */
  #gap(lines) {
    if (!lines) return nothing;
    return html`<tr class="gap" aria-hidden="true"><td colspan=${this.#head.cells.length} height=${lines * this.#height}></td></tr>`;
  }

  #row(place, line) {
    if (!line) {
      return html`<tr aria-rowindex=${place + 2}><td class="position">…</td><td colspan=${this.#head.cells.length - 1}></td></tr>`;
    }
    return html`<tr data-competitor=${line.competitor_id} aria-rowindex=${place + 2}>
      <td class="position">${line.position}</td>
      ${this.#columns.moved ? html`<td class="moved">${movedText(line.moved)}</td>` : nothing}
      <th scope="row" class="name"><span class="who">${dot(line.color)}<a
        href=${this.#address(line.competitor_id)} target=${this.#target}><bdi>${line.name}</bdi></a></span></th>
      ${this.#columns.form ? html`<td class="form"><ol>${line.form?.map((sum) => html`<li>${numberText(sum)}</li>`)}</ol></td>` : nothing}
      ${line.values.map((value, number) => html`<td class=${valueClass(number)} data-value=${
        value ?? ""}>${value === null ? "" : numberText(value)}</td>`)}
    </tr>`;
  }
}

/** The colour of a competitor, if they have one. */
function dot(color) {
  if (color === NO_COLOR) return nothing;
  return html`<svg class="dot" viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="7" fill=${
    `#${color}`}></circle></svg>`;
}

function valueClass(number) {
  return number === 0 ? "value first" : "value";
}

/** Movement by sign and by word; undefined: it is not known yet. */
function movedText(places) {
  if (places === undefined) return nothing;
  if (places === null) return html`<span class="new">new</span>`;
  if (places === 0) {
    return html`<span class="same"><span class="sign" aria-hidden="true">–</span><span class="unseen">unchanged</span></span>`;
  }
  const [sign, way] = places > 0 ? ["▲", "up"] : ["▼", "down"];
  return html`<span class=${way}><span class="sign" aria-hidden="true">${sign}</span>${Math.abs(places)}<span
    class="unseen"> ${way}</span></span>`;
}
