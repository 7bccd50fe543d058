// The race: a line through time for each competitor, by position or by total. Drawn on request.

import uPlot from "./uplot/uPlot.esm.js";
import { NO_COLOR, dayText, numberText, word } from "./words.js";

const HEIGHT_MIN = 460;
const LABEL = 150; // pixels at the right, for names
const LINE = 16; // pixels between two names
const BELOW = 70; // pixels above and below the lines
const NEAR = 30; // pixels within which the pointer highlights a line
const ALIKE = 90; // distance of two colours, at most 441, below which dashes distinguish them
const HUES = ["1f77b4", "d1495b", "2a9d4b", "9467bd", "e07a1f", "17a2b8", "8c6d31", "d63fa4"]; // of those without a colour
const DASHES = [undefined, [8, 4], [2, 3], [10, 3, 2, 3]];
const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000, 36000, 86400, 360000, 3600000]; // seconds
const CONTRAST_MIN = 3; // of a line against the paper, as WCAG 2 asks; a fainter colour is drawn darker, or lighter

/** Draws the answer of race.json into `place`. `chosen` is called with the event and the time of a clicked moment. */
export class Race {
  #place;
  #told;
  #chosen;
  #by = "positions";
  #plot = null;
  #focused = null;
  #picture = document.createElement("div");

  constructor(place, told, chosen) {
    this.#place = place;
    this.#told = told;
    this.#chosen = chosen;
    this.#picture.className = "picture";
    this.#picture.setAttribute("role", "img");
    place.replaceChildren(this.#choices(), this.#picture, this.#legend());
    new ResizeObserver(() => this.#fit()).observe(this.#picture);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    this.#draw();
  }

  #choices() {
    const choices = document.createElement("div");
    choices.className = "choices";
    for (const [by, text] of [["positions", word("places")], ["totals", this.#told.name]]) {
      const button = choices.appendChild(document.createElement("button"));
      button.type = "button";
      button.textContent = text;
      button.setAttribute("aria-pressed", by === this.#by);
      button.addEventListener("click", () => {
        this.#by = by;
        for (const one of choices.querySelectorAll("[aria-pressed]")) one.setAttribute("aria-pressed", one === button);
        this.#draw();
      });
    }
    const whole = choices.appendChild(document.createElement("button"));
    whole.type = "button";
    whole.textContent = word("whole_history");
    whole.addEventListener("click", () => this.#draw());
    return choices;
  }

  /** A button for each competitor, which highlights the line. */
  #legend() {
    const list = document.createElement("ul");
    list.className = "legend";
    this.#told.competitors.forEach(([, name], number) => {
      const button = list.appendChild(document.createElement("li")).appendChild(document.createElement("button"));
      button.type = "button";
      button.appendChild(document.createElement("bdi")).textContent = name;
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        this.#focused = this.#focused === number ? null : number;
        for (const [other, one] of [...list.querySelectorAll("button")].entries()) {
          one.setAttribute("aria-pressed", other === this.#focused);
        }
        this.#focus();
      });
    });
    return list;
  }

  #draw() {
    this.#plot?.destroy();
    const { competitors, sequences, clocks } = this.#told;
    const rows = this.#told[this.#by];
    const byPlace = this.#by === "positions";
    const paint = paints();
    const strokes = strokesOf(competitors.map(([, , color]) => color), paint);
    const written = (number) => numberText(number, byPlace ? {} : this.#told.notation);
    const last = competitors.map(([, name], number) => {
      const value = rows[number].at(-1) ?? null;
      return `${name} ${value === null ? "–" : written(value)}`;
    });
    this.#picture.setAttribute("aria-label", word("over_time", { what: byPlace ? word("places") : this.#told.name, lines: last.join(", ") }));
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: paint.muted, font, grid: { stroke: paint.faint, width: 1 }, ticks: { show: false } };
    const most = rows.flat().reduce((one, other) => Math.max(one, other ?? 0), 1);
    this.#plot = new uPlot(
      {
        width: Math.max(this.#picture.clientWidth, 280),
        height: this.#height,
        padding: [12, this.#labelWidth, 0, 0],
        legend: { show: false },
        cursor: { focus: { prox: NEAR }, points: { show: false }, y: false },
        focus: { alpha: 0.2 },
        scales: {
          x: { time: false },
          y: byPlace ? { dir: -1, range: [0.5, most + 0.5] } : {},
        },
        axes: [
          { ...axis, values: (_, splits) => splits.map((one) => (clocks[one] ? dayText(new Date(clocks[one])) : "")), space: 90 },
          {
            ...axis,
            size: byPlace ? 34 : 60,
            splits: byPlace ? () => places(most) : undefined,
            incrs: byPlace ? undefined : steps(this.#told.notation),
            values: (_, splits) => splits.map((one) => (Number.isInteger(one) ? written(one) : "")),
          },
        ],
        series: [{}, ...competitors.map((_, number) => ({
          stroke: strokes[number].color,
          dash: strokes[number].dash,
          width: 2.5,
          points: { show: false },
          paths: byPlace ? uPlot.paths.spline() : uPlot.paths.linear(),
        }))],
        hooks: { draw: [(plot) => this.#name(plot, rows, font, paint)] },
      },
      [sequences.map((_, number) => number), ...rows],
      this.#picture,
    );
    this.#plot.over.addEventListener("click", () => {
      const number = this.#plot.cursor.idx;
      if (number !== null && number !== undefined) this.#chosen(sequences[number], clocks[number]);
    });
    this.#focus();
  }

  /** High enough for every name. */
  get #height() {
    return Math.max(HEIGHT_MIN, this.#told.competitors.length * LINE + BELOW);
  }

  get #labelWidth() {
    return this.#picture.clientWidth < 600 ? LABEL * 0.75 : LABEL;
  }

  #focus() {
    this.#plot.setSeries(this.#focused === null ? null : this.#focused + 1, { focus: true });
  }

  #fit() {
    const width = this.#picture.clientWidth;
    if (width && this.#plot && Math.abs(this.#plot.width - width) > 1) this.#plot.setSize({ width, height: this.#height });
  }

  /** Writes the name of each competitor at the end of their line, without overlaps. */
  #name(plot, rows, font, paint) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const until = Math.min(plot.scales.x.max, rows[0].length - 1);
    const names = this.#told.competitors
      .map(([, name], number) => ({ name, number, value: rows[number][Math.round(until)] }))
      .filter(({ value }) => value !== null && value !== undefined)
      .map((one) => ({ ...one, y: plot.valToPos(one.value, "y", true) }))
      .sort((one, other) => one.y - other.y);
    const last = bbox.top + bbox.height;
    let above = -Infinity;
    ctx.save();
    ctx.font = font.replace("12px", `500 ${12 * ratio}px`);
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const [place, one] of names.entries()) {
      above = Math.max(Math.min(one.y, last - (names.length - 1 - place) * LINE * ratio), above + LINE * ratio);
      ctx.globalAlpha = this.#focused === null || this.#focused === one.number ? 1 : 0.25;
      ctx.fillStyle = paint.ink;
      ctx.fillText(cut(ctx, one.name, (this.#labelWidth - 14) * ratio), bbox.left + bbox.width + 10 * ratio, above);
    }
    ctx.restore();
  }
}

/** Loads the style of the drawing, which belongs to the library. */
export function loadStyle() {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = new URL("./uplot/uPlot.min.css", import.meta.url);
  document.head.append(link);
  return new Promise((loaded) => link.addEventListener("load", loaded, { once: true }));
}

/** The name, cut to fit, with an ellipsis if something was cut off. */
function cut(ctx, name, width) {
  if (ctx.measureText(name).width <= width) return name;
  const letters = [...new Intl.Segmenter().segment(name)].map(({ segment }) => segment);
  while (letters.length && ctx.measureText(`${letters.join("")}…`).width > width) letters.pop();
  return `${letters.join("")}…`;
}

function places(most) {
  const step = Math.ceil(most / 12);
  const found = [1];
  for (let place = step === 1 ? 2 : step; place <= most; place += step) found.push(place);
  return found;
}

/** Steps of an axis of totals: whole numbers, or, for times, those of a clock. */
function steps({ time }) {
  if (time) return CLOCK.map((seconds) => seconds * (time === "ms" ? 1000 : 1));
  return [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((one) => one * 10 ** power));
}

function paints() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["ink", "muted", "faint", "paper"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** The colour of a competitor, mixed with the ink until it stands out from the paper. */
function legible(color, paint) {
  let [mixed, ink, paper] = [color, paint.ink.slice(1), paint.paper.slice(1)].map(channels);
  for (let part = 0; contrast(mixed, paper) < CONTRAST_MIN && part < 1; part += 0.1) {
    mixed = channels(color).map((one, number) => one + (ink[number] - one) * part);
  }
  return mixed;
}

/** The colour and dashes of the line of each competitor. Lines of nearly the same colour have different dashes. */
export function strokesOf(competitors, paint) {
  const hues = competitors.map((color, number) => (color === NO_COLOR ? HUES[number % HUES.length] : color));
  const colors = hues.map((color) => legible(color, paint));
  return colors.map((color, number) => {
    const alike = colors.slice(0, number).filter((other) => Math.hypot(...other.map((one, n) => one - color[n])) < ALIKE);
    return { color: `rgb(${color.map(Math.round).join(" ")})`, dash: DASHES[alike.length % DASHES.length] };
  });
}

function channels(color) {
  return [0, 2, 4].map((start) => parseInt(color.slice(start, start + 2), 16));
}

/** As WCAG 2 defines it. */
function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color) {
  const [red, green, blue] = color.map((one) => (one <= 10 ? one / 3294 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
