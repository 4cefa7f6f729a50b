// Where the reader is: the address after `#`, as a value and back. Pure.

import { shown } from "./shown.js";

/** Return the view that an address names, with its parts: `#/pipelines/orders/file?path=a.ndjson`. */
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
/** Return the address of one entry of a journal, or of one version of a table. */
export const entry = (name, number) => `${pipeline(name)}${query({ entry: number })}`;
export const version = (name, number) => `${table(name)}${query({ version: number })}`;
export const journey = (name, path) => `${pipeline(name)}/file${query({ path: shown(path) })}`;

/** Return `?a=b` of what is asked for, or nothing; what is empty is left out. */
export function query(asked) {
  const kept = Object.entries(asked ?? {}).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  return kept.length ? `?${new URLSearchParams(kept)}` : "";
}

/** Return the path of the API's document: `api("pipelines", "orders", "days")`. */
export function api(...parts) {
  return `api/v1/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // A lone % that somebody typed.
  }
}
