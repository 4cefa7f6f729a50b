// Parse and format routes: the part of the URL after `#`. Pure.

import { shown } from "./shown.js";

/** Parse a route into its view and parameters: `#/pipelines/orders/file?path=a.ndjson`. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const asked = Object.fromEntries(new URLSearchParams(query));
  const parts = path.split("/").filter(Boolean).map(decoded);
  const [room, name, below] = parts;
  if (parts.length === 0) return { view: "overview", asked };
  if (room === "files" && parts.length === 1) return { view: "files", asked };
  if (room === "pipelines" && parts.length === 2) return { view: "pipeline", name, asked };
  if (room === "pipelines" && parts.length === 3 && below === "file" && asked.path) {
    return { view: "journey", name, path: asked.path, asked };
  }
  if (room === "tables" && parts.length === 2) return { view: "table", name, asked };
  return { view: "missing", asked };
}

export const overview = (asked) => `#/${query(asked)}`;
export const files = (asked) => `#/files${query(asked)}`;
export const pipeline = (name) => `#/pipelines/${encodeURIComponent(name)}`;
export const table = (name) => `#/tables/${encodeURIComponent(name)}`;
/** Return the route to an entry of a journal, or to a version of a table. */
export const entry = (name, number) => `${pipeline(name)}${query({ entry: number })}`;
export const version = (name, number) => `${table(name)}${query({ version: number })}`;
export const journey = (name, path) => `${pipeline(name)}/file${query({ path: shown(path) })}`;

/** Format a query, without empty values; an empty text if none is left. */
export function query(asked) {
  const kept = Object.entries(asked ?? {}).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  return kept.length ? `?${new URLSearchParams(kept)}` : "";
}

/** Return the API path of a document: `api("pipelines", "orders", "days")`. */
export function api(...parts) {
  return `api/v1/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // A stray % that was typed.
  }
}
