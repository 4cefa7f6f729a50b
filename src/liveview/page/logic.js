// Order, filters and sentences, derived from the documents. Pure.

import { bytes, coarse, compact, duration } from "./format.js";

const URGENCY = { failing: 0, warning: 1, unknown: 2, ok: 3 };
const ACTIVITY = { failing: 0, running: 1, to_read: 2, to_commit: 3, stopped: 4, unknown: 5, idle: 6 };

export const STATES = ["failing", "running", "to_read", "to_commit", "idle", "stopped", "unknown"];
export const HEALTHS = ["failing", "warning", "unknown", "ok"];

const COLUMNS = {
  name: (item) => item.name.toLowerCase(),
  rows: (item) => item.rows_24h,
  read: (item) => item.waiting_files,
  commit: (item) => item.uncommitted_entries,
  behind: (item) => item.behind_secs,
  freshness: (item) => item.freshness.median_secs,
  worst: (item) => item.freshness.worst_secs,
  last: (item) => (item.last_batch_at ? Date.parse(item.last_batch_at) : null),
  version: (item) => item.version,
  committed: (item) => (item.committed_at ? Date.parse(item.committed_at) : null),
  size: (item) => item.bytes,
  files: (item) => item.files,
  held: (item) => item.rows,
  entries: (item) => item.waiting_entries,
};

/** Return items in an order: `name`, or `-rows` for descending; problems come first by default. */
export function sorted(items, order) {
  const descending = order?.startsWith("-");
  const column = COLUMNS[(order ?? "").replace(/^-/, "")];
  const by = column
    ? (one, other) => compare(column(one), column(other), descending)
    : (one, other) => urgency(one) - urgency(other) || activity(one) - activity(other);
  return [...items].sort((one, other) => by(one, other) || compare(one.name, other.name, false));
}

/** Return the order after a click on a column: first descending for numbers, ascending for names. */
export function nextOrder(order, column) {
  const first = column === "name" ? column : `-${column}`;
  if (order === first) return first.startsWith("-") ? column : `-${column}`;
  return order === (first.startsWith("-") ? column : `-${column}`) ? "" : first;
}

/** Return the `aria-sort` of a column: `ascending`, `descending` or `none`. */
export function sortOf(order, column) {
  return order === column ? "ascending" : order === `-${column}` ? "descending" : "none";
}

/** Return the items with a state and a health whose names contain every word of a search. */
export function filtered(items, search, { state = "", health = "" } = {}) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return items.filter((item) => {
    if ((state && state !== item.state) || (health && health !== item.health)) return false;
    const text = [
      item.name,
      item.table,
      item.table_uri,
      item.uri,
      ...(item.sources ?? []),
      ...(item.pipelines ?? []),
    ]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** Count the items by the value of a key, such as `state` or `health`. */
export function per(items, mark, values) {
  return Object.fromEntries(values.map((value) => [value, items.filter((item) => item[mark] === value).length]));
}

/** Return the sums of the overview; `unknown` counts the pipelines that a sum leaves out. */
export function totals(pipelines) {
  const unknown = {};
  const known = (key) => {
    const values = pipelines.map((item) => item[key]).filter((value) => value !== null && value !== undefined);
    unknown[key] = pipelines.length - values.length;
    return values;
  };
  const most = (values) => (values.length ? Math.max(...values) : null);
  const sum = (key) => {
    const values = known(key);
    return values.length ? values.reduce((all, each) => all + each, 0) : null;
  };
  return {
    rows: sum("rows_24h"),
    files: sum("files_24h"),
    bytes: sum("bytes_24h"),
    waiting: sum("waiting_files"),
    waitingBytes: sum("waiting_bytes"),
    entries: sum("uncommitted_entries"),
    behind: most(known("behind_secs")),
    worst: most(pipelines.map((item) => item.freshness.worst_secs).filter((secs) => secs !== null)),
    running: pipelines.filter((item) => item.state === "running").length,
    yesterday: per(pipelines.map((item) => item.yesterday), "standing", ["complete", "incomplete", "empty"]),
    unknown,
  };
}

/** Estimate the remaining time of a running batch, in words; null if it is too early. */
export function timeLeft(batch, now) {
  const elapsed = (now - Date.parse(batch.started_at)) / 1000;
  const share = batch.bytes ? batch.read_bytes / batch.bytes : 0;
  if (!(elapsed > 3) || share < 0.02 || share >= 1) return null;
  return `about ${coarse(Math.max(1, (elapsed * (1 - share)) / share))} left`;
}

/** Return what screen readers announce when the overview changes: new healths, not numbers. */
export function announcements(before, after) {
  if (!before) return [];
  const said = [];
  for (const kind of ["pipelines", "tables"]) {
    const known = new Map(before[kind].map((item) => [item.name, item]));
    for (const item of after[kind]) {
      const old = known.get(item.name);
      if (old && old.health !== item.health) said.push(`${item.name}: ${HEALTH_WORDS[item.health]}`);
    }
  }
  return said.length > 3 ? [...said.slice(0, 3), `and ${said.length - 3} more`] : said;
}

const OF_ROWS = "Rows are not compared with the table: `blizzard audit` does that.";

/** What a health covers, and what it does not. */
export const HEALTH_COVERS = {
  ok: `Nothing failed, is held, or waits for longer than \`sink.late_after_secs\` allows. ${OF_ROWS}`,
  warning: "Something needs attention, and nothing has failed for good.",
  failing: "Something needs an operator.",
  unknown: "Not everything could be read, so the health is not known.",
};

export const HEALTH_WORDS = {
  ok: "ok",
  warning: "needs attention",
  failing: "failing",
  unknown: "not known",
};

/** Describe a chart: its sum, its peak, and how long it has been zero. */
export function describe(series, kind, now, timeOf) {
  const values = series[kind];
  const total = values.reduce((sum, each) => sum + each, 0);
  if (!total) return `No ${kind} in the last ${coarse(values.length * series.step_secs)}.`;
  const peak = values.indexOf(Math.max(...values));
  const at = Date.parse(series.start) + peak * series.step_secs * 1000;
  const show = kind === "bytes" ? bytes : compact;
  const unit = kind === "bytes" ? "" : ` ${kind}`;
  let quiet = 0;
  while (quiet < values.length && values[values.length - 1 - quiet] === 0) quiet += 1;
  const ending = quiet > 1 ? ` Nothing in the last ${duration((quiet - 1) * series.step_secs)}.` : "";
  return (
    `${show(total)}${unit} in ${coarse(values.length * series.step_secs)}, ` +
    `at most ${show(values[peak])} in ${duration(series.step_secs)} at ${timeOf(at)}.${ending}`
  );
}

/** Describe a freshness series: the steps with commits, and the worst one. */
export function describeFreshness(series, timeOf) {
  const span = coarse(series.worst_secs.length * series.step_secs);
  const worst = Math.max(...series.worst_secs.map((each) => each ?? -1), -1);
  if (worst < 0) return `No file reached the table in the last ${span}.`;
  const steps = series.worst_secs.filter((each) => each !== null).length;
  const at = Date.parse(series.start) + series.worst_secs.indexOf(worst) * series.step_secs * 1000;
  return (
    `Files reached the table in ${steps} of ${series.worst_secs.length} steps of ${duration(series.step_secs)}; ` +
    `the slowest took ${duration(worst)}, at ${timeOf(at)}.`
  );
}

/** Split a path into its folder and its name, and a long name into head and tail. */
export function pathParts(path) {
  const cut = path.replace(/\/+$/, "").lastIndexOf("/") + 1;
  const letters = [...path.slice(cut)];
  const end = letters.length > 28 ? -16 : 0;
  return { folder: path.slice(0, cut), head: letters.slice(0, end).join(""), tail: letters.slice(end).join("") };
}

/** Return the books of a batch as an equation: the first line is the sum of the others. */
export function equation(books) {
  const [whole, ...parts] = books;
  if (!whole || !parts.length) return null;
  const sum = parts.reduce((all, line) => all + line.value, 0);
  return { whole, parts, difference: whole.value - sum };
}

/** Elide the middle of a long text. */
export function middle(text, most = 48) {
  const letters = [...text];
  if (letters.length <= most) return text;
  const head = Math.ceil((most - 1) / 2);
  return `${letters.slice(0, head).join("")}…${letters.slice(head + 1 - most).join("")}`;
}

/** Group days, newest first, into calendar weeks: Monday to Sunday, with null for missing days. */
export function weeksOf(days) {
  const weeks = new Map();
  for (const day of days.filter((each) => /^\d/.test(each.name)).reverse()) {
    const number = Date.parse(day.name) / 86_400_000 + 3; // 1970 began on a Thursday.
    const week = Math.floor(number / 7);
    if (!weeks.has(week)) weeks.set(week, Array(7).fill(null));
    weeks.get(week)[number % 7] = day;
  }
  return [...weeks.values()];
}

/** Return the last seven days and all earlier incomplete ones, thirty at most. */
export function shortened(days) {
  return days.filter((day, at) => at < 7 || day.complete === false).slice(0, 30);
}

function urgency(item) {
  return URGENCY[item.health] ?? 2;
}

function activity(item) {
  return ACTIVITY[item.state] ?? 4;
}

// Unknown values come last in either direction.
function compare(one, other, descending) {
  if (one === other) return 0;
  if (one === null || one === undefined) return 1;
  if (other === null || other === undefined) return -1;
  return (one < other ? -1 : 1) * (descending ? -1 : 1);
}
