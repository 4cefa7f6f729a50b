// All requests to the server.

const TOKEN = "blizzard-token";
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const POLL_MS = 2_000;
const ANSWER_MS = 30_000;

/** An error response of the server, with the way out. */
export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.wayOut = error.way_out ?? null;
    this.retryAfter = error.retryAfter ?? null;
  }
}

/** The token; it is kept until the tab is closed, and sent in a header, never in a URL. */
export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

/** Return a document of the API; throw `Refused`, or `TypeError` without a response. */
export async function fetchDocument(path, signal) {
  const limit = AbortSignal.timeout(ANSWER_MS);
  const headers = { Accept: "application/json" };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  const answer = await fetch(new URL(path, document.baseURI), {
    headers,
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    cache: "no-store",
  });
  if (answer.ok) return answer.json();
  throw new Refused(answer.status, await reason(answer));
}

async function reason(answer) {
  const retryAfter = Number(answer.headers.get("Retry-After")) || null;
  try {
    const { error } = await answer.json();
    if (error?.message) return { ...error, retryAfter };
  } catch {
    // Not from our server, but a proxy's page, for example.
  }
  return {
    code: `http_${answer.status}`,
    message: `The server answered with status ${answer.status}.`,
    retryAfter,
  };
}

/** Return the wait before an attempt: doubled each time, up to a limit, with jitter. */
export function backoff(attempt, random) {
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.75 + random / 2);
}

/**
 * Fetch the overview every two seconds until stopped; retry with growing waits after a failure.
 *
 * `tell` receives `{kind: "overview", overview}`, `{kind: "lost", retryAt}` and `{kind: "token"}`.
 */
export class Live {
  #tell;
  #stop = null;
  #wake = null;

  constructor(tell) {
    this.#tell = tell;
  }

  start() {
    if (this.#stop) return;
    this.#stop = new AbortController();
    this.#run(this.#stop.signal);
  }

  stop() {
    this.#stop?.abort();
    this.#stop = null;
    this.#wake?.();
  }

  /** Retry now instead of after the wait. */
  retry() {
    this.#wake?.();
  }

  async #run(stopped) {
    let attempt = 0;
    while (!stopped.aborted) {
      let wait = POLL_MS;
      try {
        const overview = await fetchDocument("api/v1/overview", stopped);
        if (stopped.aborted) return;
        attempt = 0;
        this.#tell({ kind: "overview", overview });
      } catch (error) {
        if (stopped.aborted) return;
        if (error instanceof Refused && error.status === 401) {
          this.#tell({ kind: "token", tried: token.get() !== null });
          this.#stop = null;
          return;
        }
        wait = backoff(attempt, Math.random());
        attempt += 1;
        this.#tell({ kind: "lost", retryAt: Date.now() + wait });
      }
      await this.#wait(wait);
    }
  }

  #wait(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
