// A view is a tree of plain values; `patch` updates the page to match, and touches only what changed.
//
// So focus, selection, scroll position and opened parts survive every update. Data are never parsed as
// HTML: strings become text nodes.

import { shown } from "./shown.js";

const SVG = "http://www.w3.org/2000/svg";
const SEEN = Symbol("the value that a node shows");

/** Return an element as a value: `h("p.note", {title: "…"}, "text", child)`; attributes are optional. */
export function h(name, ...children) {
  const [tag, ...classes] = name.split(".");
  const [first] = children;
  const attrs = first?.constructor === Object && !("tag" in first) ? children.shift() : {};
  const { key = null, class: more = "", ...rest } = attrs;
  const all = [...classes, ...String(more || "").split(" ")].filter(Boolean).join(" ");
  if (all) rest.class = all;
  for (const read of ["title", "aria-label"]) if (rest[read]) rest[read] = shown(String(rest[read]), "\n");
  return { tag, key, attrs: rest, children: flat(children, tag === "code" ? "\n" : "") };
}

/** Update the children of an element to match some values. */
export function patch(parent, values) {
  children(parent, flat([values]), parent.namespaceURI === SVG);
}

function flat(list, keep = "") {
  return list
    .flat(Infinity)
    .filter((each) => each !== null && each !== undefined && each !== false && each !== "")
    .map((each) => (typeof each === "object" ? each : shown(String(each), keep)));
}

function children(parent, next, inSvg) {
  const keyed = new Map();
  for (const node of parent.childNodes) {
    const key = node[SEEN]?.key;
    if (key !== null && key !== undefined) keyed.set(key, node);
  }
  let at = parent.firstChild;
  for (const value of next) {
    const kept = match(value, at, keyed);
    if (kept === null) {
      parent.insertBefore(create(value, inSvg), at);
    } else {
      if (kept === at) at = at.nextSibling;
      else parent.insertBefore(kept, at);
      update(kept, value, inSvg);
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function match(value, at, keyed) {
  if (typeof value !== "string" && value.key !== null) {
    const node = keyed.get(value.key);
    if (node === undefined || node[SEEN].tag !== value.tag) return null;
    keyed.delete(value.key);
    return node;
  }
  if (!at) return null;
  const seen = at[SEEN];
  if (typeof value === "string") return typeof seen === "string" ? at : null;
  return seen && typeof seen === "object" && seen.key === null && seen.tag === value.tag ? at : null;
}

function create(value, inSvg) {
  if (typeof value === "string") {
    const text = document.createTextNode(value);
    text[SEEN] = value;
    return text;
  }
  const svg = inSvg || value.tag === "svg";
  const node = svg ? document.createElementNS(SVG, value.tag) : document.createElement(value.tag);
  node[SEEN] = { tag: value.tag, key: value.key, attrs: {}, children: [] };
  update(node, value, inSvg);
  return node;
}

function update(node, value, inSvg) {
  const seen = node[SEEN];
  node[SEEN] = value;
  if (typeof value === "string") {
    if (seen !== value) node.data = value;
    return;
  }
  for (const name of Object.keys(seen.attrs)) if (!(name in value.attrs)) set(node, name, null);
  for (const [name, wanted] of Object.entries(value.attrs)) {
    if (seen.attrs[name] !== wanted) set(node, name, wanted);
  }
  children(node, value.children, inSvg || value.tag === "svg");
}

function set(node, name, wanted) {
  if (name.startsWith("on")) node[name] = wanted;
  else if (name === "value") node.value = wanted ?? "";
  else if (name === "checked" || name === "open" || name === "selected") node[name] = Boolean(wanted);
  else if (name === "share") node.style.setProperty("--share", wanted ?? "0");
  else if (wanted === null || wanted === undefined || wanted === false) node.removeAttribute(name);
  else node.setAttribute(name, wanted === true ? "" : String(wanted));
}
