// An event stream that is opened again whenever it fails. A browser does so only if the connection is cut off. If the
// answer is an error, such as 503 where too many listen, it gives up, and tells no script of its Retry-After.

const PAUSE = 1000; // milliseconds before the stream is opened again
const PAUSE_MAX = 10000;

export class Stream {
  #again;
  #source = null;
  #timer = 0;
  #pause = PAUSE;

  /** `again` is called after each pause. It opens the stream. */
  constructor(again) {
    this.#again = again;
  }

  get isOpen() {
    return this.#source !== null;
  }

  /** `heard`: a function for each kind of event. For "error", one that calls `tryAgain`. */
  open(address, heard) {
    this.#source = new EventSource(address);
    this.#source.addEventListener("caught-up", () => (this.#pause = PAUSE));
    for (const [kind, hear] of Object.entries(heard)) this.#source.addEventListener(kind, hear);
  }

  /** Closes the stream until the end of a pause, each time a longer one. The pause varies, so that pages do not all
   * return at once. */
  tryAgain() {
    this.close();
    this.#timer = setTimeout(this.#again, this.#pause * (0.5 + Math.random()));
    this.#pause = Math.min(this.#pause * 2, PAUSE_MAX);
  }

  close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}
