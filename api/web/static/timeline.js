// What took place in a ranking, in order of time, from timeline.json: the places of a slider by dates. Place 0 is
// before all of it.

import { Passage } from "./fold.js";
import { dateText, word } from "./words.js";

const FIRST_TIME = Date.parse("0001-01-01T00:00:00Z"); // of the calendar

export class Timeline {
  #moments;

  constructor(told) {
    this.passage = new Passage(told);
    this.end = told.end; // the last event when it was loaded
    this.#moments = told.moments.map(([on, what]) => ({ on, what, time: Date.parse(on) }));
  }

  get first() {
    return 0;
  }

  get last() {
    return this.#moments.length;
  }

  /** The value of `at` that shows a place. */
  address(place) {
    return place ? this.#moments[place - 1].on : new Date(Math.max(this.#moments[0].time - 1000, FIRST_TIME)).toISOString();
  }

  /** The place that shows what had taken place by `time`, in milliseconds. */
  placeAt(time) {
    return this.#moments.filter((moment) => moment.time <= time).length;
  }

  text(place) {
    const { what, time } = this.#moments[Math.max(place - 1, 0)];
    return word(place ? "after" : "before", { what, day: dateText(new Date(time)) });
  }
}
