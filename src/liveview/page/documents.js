// Documents that views ask for while they are drawn: fetched once, and again when their stamp changes.

import { Refused, fetchDocument } from "./connection.js";

const KEPT = 400;
const LEAST_PAUSE_MS = 2_000;
const TRY_AGAIN_SECS = 10;

export class Documents {
  #held = new Map();
  #changed;
  #refused;

  /** `changed` is called when something arrived; `refused` when the token is asked for. */
  constructor(changed, refused) {
    this.#changed = changed;
    this.#refused = refused;
  }

  /**
   * Return what is known of a document: `{data, error, loading}`.
   *
   * It is fetched where it never was, and again when `stamp` is another one than the time before, though
   * not more often than every two seconds. What was known stays until something newer is there.
   */
  get(path, stamp = "") {
    let entry = this.#held.get(path);
    if (entry === undefined) {
      entry = { data: null, error: null, loading: false, stamp: null, askedAt: 0, again: null };
    } else {
      this.#held.delete(path); // What was used last goes last.
    }
    this.#held.set(path, entry);
    if (this.#held.size > KEPT) this.#held.delete(this.#held.keys().next().value);
    if (worthAnotherTry(entry)) entry.stamp = null;
    if (!entry.loading && entry.stamp !== stamp) this.#ask(path, entry, stamp);
    return entry;
  }

  /** Ask again for what could not be had, now that the server is back. */
  mend() {
    for (const entry of this.#held.values()) {
      if (entry.error) entry.stamp = null;
    }
  }

  forget() {
    this.#held.clear();
  }

  #ask(path, entry, stamp) {
    const pause = entry.askedAt + LEAST_PAUSE_MS - Date.now();
    if (pause > 0) {
      entry.again ??= setTimeout(() => {
        entry.again = null;
        this.#changed();
      }, pause);
      return;
    }
    entry.loading = true;
    entry.askedAt = Date.now();
    entry.stamp = stamp;
    fetchDocument(path)
      .then((data) => {
        entry.data = data;
        entry.error = null;
      })
      .catch((error) => {
        entry.error = error;
        if (error instanceof Refused && error.status === 401) this.#refused();
      })
      .finally(() => {
        entry.loading = false;
        this.#changed();
      });
  }
}

// No document of that name, or a wrong question, stays so; everything else may pass.
function worthAnotherTry(entry) {
  const final = entry.error instanceof Refused && entry.error.status < 500;
  return (
    entry.error &&
    !final &&
    !entry.loading &&
    Date.now() - entry.askedAt > (entry.error.retryAfter ?? TRY_AGAIN_SECS) * 1000
  );
}
