// The fold of points, by the rules of the service: totals are sums of deltas; a position is 1 + the number of better
// lines, so equal lines share one and stand in the order of enrolment. Totals can exceed 2^53, so they are BigInt.

const RESULTS = 2n ** 53n; // as in engine/domain/marks.py
const OTHERS_MAX = 12; // as OTHER_COLUMNS_MAX of the service

/** A passage of history, from passage.json: between its first and last event, only points change it. */
export class Passage {
  #steps;
  #totals;
  #folded = 0;

  constructor(told) {
    this.first = told.first;
    this.last = told.last;
    this.competitors = told.competitors.map(([id, name, color]) => ({ id, name, color }));
    this.unities = told.unities.map(({ totals: _, ...unity }) => unity);
    this.criteria = told.criteria;
    this.steps = told.steps.map(([sequence, recordedAt, clock]) => ({ sequence, recordedAt, clock }));
    this.#steps = told.steps;
    this.#totals = told.unities.map((unity) => unity.totals.map(BigInt));
  }

  has(sequence) {
    return this.first <= sequence && sequence <= this.last;
  }

  /** The unities by which a table is ordered, as numbers of this passage; null: the browser cannot order it. */
  criteriaOf(unityId) {
    if (!unityId) return this.criteria;
    const number = this.unities.findIndex((unity) => unity.id === unityId);
    return number < 0 ? null : [number];
  }

  /** Folds forward or back, until the totals are those after the event. */
  goTo(sequence) {
    while (this.#folded < this.#steps.length && this.#steps[this.#folded][0] <= sequence) {
      this.#add(this.#steps[this.#folded++], 1n);
    }
    while (this.#folded > 0 && this.#steps[this.#folded - 1][0] > sequence) {
      this.#add(this.#steps[--this.#folded], -1n);
    }
  }

  #add([, , , deltas], sign) {
    for (const [competitor, unity, delta] of deltas) {
      this.#totals[unity][competitor] += sign * BigInt(delta);
    }
  }

  /** The unities that are shown although they decide nothing, as numbers of this passage. */
  othersOf(criteria) {
    return [...this.unities.keys()].filter((number) => !criteria.includes(number)).slice(0, OTHERS_MAX);
  }

  /** The value to show for a stored total. A result is stored as a mark, shifted past 0 to the better side; null: there
   * is no result. */
  #shown(number, total) {
    const { results } = this.unities[number].notation;
    if (!results) return total;
    return total === 0n ? null : total + (results === "ASC" ? RESULTS : -RESULTS);
  }

  /** The lines of the table in order: number of the competitor, position, values. Values of the criteria come first. */
  lines(criteria) {
    const columns = criteria.map((number) => [this.#totals[number], this.unities[number].sort === "ASC" ? 1 : -1]);
    const shown = [...criteria, ...this.othersOf(criteria)];
    const compared = (one, other) => {
      for (const [totals, sign] of columns) {
        if (totals[one] !== totals[other]) return totals[one] < totals[other] ? -sign : sign;
      }
      return 0;
    };
    const order = [...this.competitors.keys()].sort(compared); // stable: equal lines stay in the order of enrolment
    let position = 0;
    return order.map((competitor, index) => {
      if (index === 0 || compared(order[index - 1], competitor) !== 0) position = index + 1;
      const values = shown.map((number) => this.#shown(number, this.#totals[number][competitor]));
      return { competitor, position, values };
    });
  }
}
