// Format numbers, sizes, times and ages. Pure: the clock and the time zone are arguments.

const EXACT = new Intl.NumberFormat("en");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

export const NONE = "–";

/** Format a number with all its digits: `1,234,567`. */
export function exact(value) {
  return value === null || value === undefined ? NONE : EXACT.format(value);
}

/** Format a number in at most five characters and a unit: `987`, `12.3 k`, `1.23 M`. */
export function compact(value) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  if (size < 10_000) return EXACT.format(Math.round(value));
  for (const [unit, scale] of [
    ["k", 1e3],
    ["M", 1e6],
    ["G", 1e9],
    ["T", 1e12],
  ]) {
    // 999,950 would be shown as `1000 k`; it belongs to the next unit.
    if (size < scale * 999.5 || unit === "T") return `${digits(value / scale)} ${unit}`;
  }
  return NONE;
}

/** Format a number of bytes in units of 1,024: `128 MiB`. */
export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  let amount = value;
  let unit = 0;
  while (Math.abs(amount) >= 1023.5 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${Math.round(amount)} B` : `${digits(amount)} ${UNITS[unit]}`;
}

/** Format the exact number of bytes, for the tooltip of a size: `1,234,567 bytes`. */
export function exactBytes(value) {
  return value === null || value === undefined ? "" : count(value, "byte");
}

/** Format a count: `1 file`, `2 files`. */
export function count(value, one, many) {
  return `${exact(value)} ${value === 1 ? one : (many ?? `${one}s`)}`;
}

/** Capitalize a sentence, unless it starts with a command or a name. */
export function sentence(text) {
  return /^(blizzard|penguin)\b|^\S*[_/.:`=]/.test(text)
    ? text
    : text.charAt(0).toUpperCase() + text.slice(1);
}

/** Format a duration in its two largest units: `0.4 s`, `42 s`, `3 min 12 s`, `2 d 4 h`. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  const secs = Math.max(0, seconds);
  if (secs > 0 && secs < 0.05) return "< 0.1 s";
  if (secs < 9.95) return `${trimmed(secs.toFixed(1))} s`;
  const whole = Math.round(secs);
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return two(whole, MINUTE, "min", 1, "s");
  if (whole < DAY) return two(whole, HOUR, "h", MINUTE, "min");
  return two(whole, DAY, "d", HOUR, "h");
}

/** Format a duration in its largest unit, for ages: `42 s`, `3 min`, `2 h`, `5 d`. */
export function coarse(seconds) {
  const secs = Math.max(0, Math.floor(seconds));
  if (secs < MINUTE) return `${secs} s`;
  if (secs < HOUR) return `${Math.floor(secs / MINUTE)} min`;
  if (secs < 2 * DAY) return `${Math.floor(secs / HOUR)} h`;
  return `${Math.floor(secs / DAY)} d`;
}

/** Format the time since or until an instant; `now` is in milliseconds. */
export function age(at, now) {
  if (!at) return NONE;
  const secs = (now - Date.parse(at)) / 1000;
  if (Number.isNaN(secs)) return NONE;
  if (secs < -1) return `in ${coarse(-secs)}`;
  return secs < 2 ? "just now" : `${coarse(secs)} ago`;
}

/** Format a local time, with the date if that is not today. */
export function clock(at, now, zone) {
  if (!at) return NONE;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return NONE;
  const time = formatted(date, { hour: "2-digit", minute: "2-digit", second: "2-digit" }, zone);
  if (localDay(date, zone) === localDay(new Date(now), zone)) return time;
  return `${dayOf(date, new Date(now), zone)}, ${time.slice(0, 5)}`;
}

/** Format a local time as hours and minutes, for axes. */
export function hourMinute(at, zone) {
  return formatted(new Date(at), { hour: "2-digit", minute: "2-digit" }, zone);
}

/** Format the local day of a time, for axes. */
export function dayMonth(at, zone) {
  return formatted(new Date(at), { day: "numeric", month: "short" }, zone);
}

/** Format a time for a tooltip: local with its date, and in UTC. */
export function exactTime(at, zone) {
  if (!at) return "";
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  const parts = {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  };
  const utc = date
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace("T", " ")
    .replace("Z", " UTC");
  const local = formatted(date, parts, zone);
  return local.endsWith("UTC") ? utc : `${local} (${utc})`;
}

/** Format the day `2026-11-16` as `Mon 16 Nov`, with the year if it is not the current one. */
export function day(text, now) {
  const date = new Date(`${text}T12:00:00Z`);
  if (Number.isNaN(date.getTime())) return text;
  const parts = { weekday: "short", day: "numeric", month: "short" };
  if (text.slice(0, 4) !== new Date(now).toISOString().slice(0, 4)) parts.year = "numeric";
  return formatted(date, parts, "UTC").replace(",", "");
}

/** Return a share as a whole percentage that is 100 only if nothing is missing. */
export function percent(part, whole) {
  if (!whole) return 0;
  const share = Math.round((100 * part) / whole);
  return part < whole ? Math.min(share, 99) : 100;
}

function digits(amount) {
  const size = Math.abs(amount);
  return trimmed(size < 9.995 ? amount.toFixed(2) : size < 99.95 ? amount.toFixed(1) : amount.toFixed(0));
}

function trimmed(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function two(secs, large, name, small, rest) {
  const left = Math.floor((secs % large) / small);
  return left ? `${Math.floor(secs / large)} ${name} ${left} ${rest}` : `${Math.floor(secs / large)} ${name}`;
}

function formatted(date, parts, zone) {
  return new Intl.DateTimeFormat("en-GB", { ...parts, timeZone: zone }).format(date);
}

function localDay(date, zone) {
  return formatted(date, { year: "numeric", month: "2-digit", day: "2-digit" }, zone);
}

function dayOf(date, today, zone) {
  const sameYear = formatted(date, { year: "numeric" }, zone) === formatted(today, { year: "numeric" }, zone);
  const parts = { day: "numeric", month: "short" };
  return formatted(date, sameYear ? parts : { ...parts, year: "numeric" }, zone);
}
