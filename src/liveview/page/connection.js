// All requests to the server: documents, and the stream of changes.

const TOKEN = "blizzard-token";
const SILENCE_MS = 40_000; // The server sends something at least every 15 s.
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const POLL_MS = 10_000;
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
  const answer = await asked(path, "application/json", signal ? AbortSignal.any([signal, limit]) : limit);
  return answer.json();
}

async function asked(path, accept, signal) {
  const headers = { Accept: accept };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  const answer = await fetch(new URL(path, document.baseURI), { headers, signal, cache: "no-store" });
  if (answer.ok) return answer;
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

/** Return a parser of server-sent events: it takes a chunk and returns the events it completes. */
export function events() {
  let rest = "";
  return (piece) => {
    rest += piece;
    const found = [];
    for (;;) {
      const end = /\r?\n\r?\n/.exec(rest);
      if (end === null) return found;
      const event = one(rest.slice(0, end.index));
      rest = rest.slice(end.index + end[0].length);
      if (event !== null) found.push(event);
    }
  };
}

function one(block) {
  let name = "message";
  const data = [];
  for (const line of block.split(/\r?\n/)) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  return data.length ? { name, data: data.join("\n") } : null; // A comment is only a heartbeat.
}

/** Return the wait before an attempt: doubled each time, up to a limit, with jitter. */
export function backoff(attempt, random) {
  return Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.75 + random / 2);
}

/**
 * Follow the stream of overviews until stopped, and reconnect after every failure.
 *
 * `tell` receives `{kind: "overview", overview}`, `{kind: "live"}`, `{kind: "lost", retryAt}` and
 * `{kind: "token"}`. A stream that ends normally is reopened silently.
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
  }

  /** Retry now instead of after the wait. */
  retry() {
    this.#wake?.();
  }

  async #run(stopped) {
    let attempt = 0;
    while (!stopped.aborted) {
      try {
        await this.#follow(stopped, () => {
          attempt = 0;
        });
        await this.#wait(FIRST_WAIT_MS, stopped);
      } catch (error) {
        if (stopped.aborted) return;
        if (error instanceof Refused && error.status === 401) {
          this.#tell({ kind: "token", tried: token.get() !== null });
          this.#stop = null;
          return;
        }
        if (error instanceof Refused && error.status === 503) await this.#poll(stopped);
        else {
          const wait = backoff(attempt, Math.random());
          attempt += 1;
          this.#tell({ kind: "lost", retryAt: Date.now() + wait });
          await this.#wait(wait, stopped);
        }
      }
    }
  }

  async #follow(stopped, heard) {
    const silent = new AbortController();
    let alarm = setTimeout(() => silent.abort(), SILENCE_MS);
    try {
      const answer = await asked(
        "api/v1/live",
        "text/event-stream",
        AbortSignal.any([stopped, silent.signal]),
      );
      const cut = events();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(alarm);
        alarm = setTimeout(() => silent.abort(), SILENCE_MS);
        heard();
        for (const event of cut(value)) {
          if (event.name === "overview") this.#tell({ kind: "overview", overview: JSON.parse(event.data) });
        }
        this.#tell({ kind: "live" });
      }
    } finally {
      clearTimeout(alarm);
    }
  }

  // All streams are in use: fetch the overview once, then try to open a stream again.
  async #poll(stopped) {
    const overview = await fetchDocument("api/v1/overview", stopped).catch(() => null);
    if (stopped.aborted) return;
    if (overview) {
      this.#tell({ kind: "overview", overview });
      this.#tell({ kind: "live", polling: true });
    } else {
      this.#tell({ kind: "lost", retryAt: Date.now() + POLL_MS });
    }
    await this.#wait(POLL_MS, stopped);
  }

  #wait(ms, stopped) {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
      stopped.addEventListener("abort", this.#wake, { once: true });
    });
  }
}
