// A cache of the documents that views request: each is fetched once, and again when its stamp changes.

import { Refused, fetchDocument } from "./connection.js";

const KEPT = 400;
const LEAST_PAUSE_MS = 2_000;
const TRY_AGAIN_SECS = 10;

export class Documents {
  #held = new Map();
  #changed;
  #refused;

  /** `changed` is called after every response; `refused` if the server requires a token. */
  constructor(changed, refused) {
    this.#changed = changed;
    this.#refused = refused;
  }

  /**
   * Return the state of a document: `{data, error, loading}`.
   *
   * It is fetched on first use and when `stamp` changes, but at most every two seconds. Old data are
   * kept until new data arrive.
   */
  get(path, stamp = "") {
    let entry = this.#held.get(path);
    if (entry === undefined) {
      entry = { data: null, error: null, loading: false, stamp: null, askedAt: 0, again: null };
    } else {
      this.#held.delete(path); // Reinsert it at the end: the first is the least recently used.
    }
    this.#held.set(path, entry);
    if (this.#held.size > KEPT) this.#held.delete(this.#held.keys().next().value);
    if (isRetryDue(entry)) entry.stamp = null;
    if (!entry.loading && entry.stamp !== stamp) this.#ask(path, entry, stamp);
    return entry;
  }

  /** Retry failed documents, now that the server is back. */
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

// A client error is final; any other may be temporary.
function isRetryDue(entry) {
  const final = entry.error instanceof Refused && entry.error.status < 500;
  return (
    entry.error &&
    !final &&
    !entry.loading &&
    Date.now() - entry.askedAt > (entry.error.retryAfter ?? TRY_AGAIN_SECS) * 1000
  );
}
