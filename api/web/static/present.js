// Keeps a page current: when the public stream reports an event, the view is fetched again. Without events, nothing is
// requested. A hidden page does not listen, because a browser has few connections for all pages.

const PAUSE = 1000; // milliseconds between two fetches, and before the connection is tried again
const PAUSE_MAX = 10000;

export class Present {
  #kinds;
  #address;
  #fetched;
  #concerns;
  #passed;
  #told;
  #held;
  #source = null;
  #timer = 0;
  #pause = PAUSE;
  #running = false;
  #looking = false;
  #wanted = false;
  #goOn = () => {};

  /** `kinds`: the events that change the view, if `concerns` says so of their data. `address`: returns the address of
   * the stream after the view. `fetched`: fetches and shows the view. `passed` is called with the sequence of each
   * event, `told` with whether the service answers; `held` with whether a freeze holds the log, and returns whether the
   * view differs from that. */
  constructor({ kinds, address, fetched, concerns, passed, told, held }) {
    this.#kinds = kinds;
    this.#address = address;
    this.#fetched = fetched;
    this.#concerns = concerns;
    this.#passed = passed;
    this.#told = told;
    this.#held = held;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.look()));
    addEventListener("online", () => this.look());
    addEventListener("offline", () => this.#lose());
  }

  start() {
    this.#running = true;
    this.look();
  }

  stop() {
    this.#running = false;
    this.#close();
  }

  /** Fetches the view now. */
  look() {
    this.#goOn();
    this.#look();
  }

  /** Fetches the view, at a limited rate, and then listens for events after it. */
  async #look() {
    this.#wanted = true;
    if (this.#looking) return;
    this.#looking = true;
    while (this.#wanted && this.#running && !document.hidden) {
      this.#wanted = false;
      try {
        await this.#fetched();
        this.#told(true);
        this.#listen();
      } catch (error) {
        if (error.status === 404) return location.reload(); // no longer public
        this.#lose();
      }
      await new Promise((goOn) => {
        this.#goOn = goOn;
        setTimeout(goOn, PAUSE);
      });
    }
    this.#looking = false;
  }

  #listen() {
    if (this.#source || !this.#running || document.hidden) return;
    const source = (this.#source = new EventSource(this.#address()));
    let listens = false;
    source.addEventListener("caught-up", ({ data }) => {
      if (this.#held(JSON.parse(data).frozen === true)) this.#look();
      listens = true;
      this.#pause = PAUSE;
    });
    for (const kind of [...this.#kinds, "other"]) {
      source.addEventListener(kind, ({ data, lastEventId }) => {
        this.#passed(parseInt(lastEventId, 10));
        if (kind !== "other" && this.#concerns(data)) this.#look();
      });
    }
    source.addEventListener("CompetitorErased", () => location.reload());
    source.addEventListener("erased", () => (listens ? location.reload() : this.#look())); // at first: of earlier
    source.addEventListener("reset", () => this.#tryAgain());
    source.addEventListener("error", () => {
      if (listens) this.#lose();
      else this.#tryAgain(); // the stream has no room for us: look from time to time
    });
  }

  #lose() {
    if (!this.#running || document.hidden) return;
    this.#told(false);
    this.#tryAgain();
  }

  /** Looks and listens again after a pause, each time a longer one. The pause varies, so that pages do not all return
   * at once. */
  #tryAgain() {
    this.#close();
    this.#timer = setTimeout(() => this.look(), this.#pause * (0.5 + Math.random()));
    this.#pause = Math.min(this.#pause * 2, PAUSE_MAX);
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }
}
