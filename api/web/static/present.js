// Keeps a page current: when the public stream reports an event, the view is fetched again. Without events, nothing is
// requested. A hidden page does not listen, because a browser has few connections for all pages.

import { Stream } from "./stream.js";

const PAUSE = 1000; // milliseconds between two fetches

export class Present {
  #kinds;
  #address;
  #fetched;
  #concerns;
  #passed;
  #told;
  #held;
  #stream = new Stream(() => this.look());
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
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#stream.close() : this.look()));
    addEventListener("online", () => this.look());
    addEventListener("offline", () => this.#lose());
  }

  start() {
    this.#running = true;
    this.look();
  }

  stop() {
    this.#running = false;
    this.#stream.close();
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
    if (this.#stream.isOpen || !this.#running || document.hidden) return;
    let listens = false;
    const heard = {
      "caught-up": ({ data }) => {
        if (this.#held(JSON.parse(data).frozen === true)) this.#look();
        listens = true;
      },
      erased: () => (listens ? location.reload() : this.#look()), // at first: of earlier
      reset: () => this.#stream.tryAgain(),
      error: () => {
        if (listens) this.#lose();
        else this.#stream.tryAgain(); // the stream has no room for us: look from time to time
      },
    };
    for (const kind of [...this.#kinds, "other"]) {
      heard[kind] = ({ data, lastEventId }) => {
        this.#passed(parseInt(lastEventId, 10));
        if (kind !== "other" && this.#concerns(data)) this.#look();
      };
    }
    heard.CompetitorErased = () => location.reload();
    this.#stream.open(this.#address(), heard);
  }

  #lose() {
    if (!this.#running || document.hidden) return;
    this.#told(false);
    this.#stream.tryAgain();
  }
}
