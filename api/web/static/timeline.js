// What took place in a ranking, in order of time, as timeline.json tells it: the places of a slider by dates. Place 0 is
// before all of it.

import { Passage } from "./fold.js";
import { dateText, word } from "./words.js";

export class Timeline {
  #moments;

  constructor(told) {
    this.passage = new Passage(told);
    this.end = told.end; // the last event that was known
    this.#moments = told.moments.map(([on, what]) => ({ on, what, time: Date.parse(on) }));
  }

  get first() {
    return 0;
  }

  get last() {
    return this.#moments.length;
  }

  /** What `at` names the moment of a place by. */
  address(place) {
    return place ? this.#moments[place - 1].on : new Date(this.#moments[0].time - 1000).toISOString();
  }

  /** The place that shows what had taken place by then, in milliseconds. */
  placeAt(time) {
    return this.#moments.filter((moment) => moment.time <= time).length;
  }

  text(place) {
    const { what, time } = this.#moments[Math.max(place - 1, 0)];
    return word(place ? "after" : "before", { what, day: dateText(new Date(time)) });
  }
}
