// The slider over the whole history: each moment is folded here from a passage, which is fetched once.

import { Passage } from "./fold.js";

const REST = 350; // milliseconds without a move before the service is asked for what the fold lacks
const PAUSE_MAX = 1; // seconds that playing waits at most for the next event

const PASSAGES_MAX = 30; // passages kept

export class Past {
  #asked;
  #unity;
  #folds;
  #shown;
  #rested;
  #passages = [];
  #whole = null;
  #fetching = null;
  #wanted = 0;
  #rest = 0;

  /** `asked` fetches JSON. `unity`: the id of the one shown, empty for the classification. `folds`: whether the page
   * can fold passages of this ranking. `shown` is called with the lines of a moment that the page folded. `rested` is
   * called when only the service has the lines, and when the slider rests. */
  constructor({ asked, unity, folds, shown, rested }) {
    this.#asked = asked;
    this.#unity = unity;
    this.#folds = folds;
    this.#shown = shown;
    this.#rested = rested;
  }

  /** Makes the steps of this passage, the whole history, the places of the slider; null: events are its places. */
  goThrough(passage) {
    this.#whole = passage;
  }

  /** Shows the moment after the event, once its passage is loaded. */
  async goTo(sequence) {
    this.#wanted = sequence;
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#rested(sequence), REST);
    const passage = await this.#passageOf(sequence).catch(() => null); // of a large ranking, or a lost connection
    if (this.#wanted !== sequence) return;
    const criteria = passage?.criteriaOf(this.#unity);
    if (criteria) {
      this.#show(passage, criteria, sequence);
    } else {
      clearTimeout(this.#rest);
      await this.#rested(sequence);
    }
  }

  /** Stops showing a moment that is still loading. */
  leave() {
    this.#wanted = 0;
    clearTimeout(this.#rest);
  }

  /** The passage that shows the event; null: the page cannot fold it, or another event has been requested meanwhile. */
  async #passageOf(sequence) {
    if (this.#whole || !this.#folds) return this.#whole;
    const known = this.#passages.find((passage) => passage.has(sequence));
    if (known) return known;
    while (this.#fetching) await this.#fetching.catch(() => null);
    if (this.#wanted !== sequence) return null;
    this.#fetching = this.#asked("passage.json", { at: sequence }).finally(() => (this.#fetching = null));
    const passage = new Passage(await this.#fetching);
    this.#passages = [passage, ...this.#passages].slice(0, PASSAGES_MAX);
    return passage;
  }

  #show(passage, criteria, sequence) {
    passage.goTo(sequence);
    const lines = passage.lines(criteria).map(({ competitor, position, values }) => ({
      position,
      placed: values[0] !== null,
      competitor_id: passage.competitors[competitor].id,
      name: passage.competitors[competitor].name,
      color: passage.competitors[competitor].color,
      values: values.map((value) => (value === null ? null : String(value))),
    }));
    const step = passage.steps.findLast((one) => one.sequence <= sequence);
    const column = (decides) => (number) => ({ ...passage.unities[number], decides });
    const columns = [...criteria.map(column(true)), ...passage.othersOf(criteria).map(column(false))];
    this.#shown(sequence, lines, columns, step ? new Date(step.recordedAt * 1000) : null);
  }

  /** Plays from the moment after `from` up to `end`, `speed()` times as fast as it took place, until `signal` is
   * aborted. `moved` is called with each event reached. */
  async play({ from, end, speed, signal, moved }) {
    let at = from;
    let seconds = 0; // of the history, since the event `at`
    let last = performance.now();
    while (!signal.aborted && at < end) {
      const now = await new Promise(requestAnimationFrame);
      seconds += ((now - last) / 1000) * speed();
      last = now;
      this.#wanted = at + 1;
      const passage = await this.#passageOf(at + 1).catch(() => null);
      if (!passage || signal.aborted) return;
      const before = at;
      [at, seconds] = due(passage, at, seconds, PAUSE_MAX * speed());
      if (at === before) continue;
      moved(at);
      await this.goTo(at);
    }
  }
}

/** The event reached `seconds` after the event `at`, with no pause longer than `most`, and the seconds left over. */
function due(passage, at, seconds, most) {
  const { first, last, steps } = passage;
  if (at < first) return [first, seconds];
  let number = steps.findIndex((step) => step.sequence > at);
  if (number < 0) return [last, seconds];
  for (; number < steps.length; number++) {
    const gap = number > 0 ? Math.max(steps[number].clock - steps[number - 1].clock, 0) : 0;
    const pause = Math.min(gap, most);
    if (pause > seconds) return [at, seconds];
    seconds -= pause;
    at = steps[number].sequence;
  }
  return [at, seconds];
}
