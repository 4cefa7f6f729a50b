// Keyboard shortcuts beyond those of browsers: search, table rows, navigation.

import { h } from "./dom.js";
import * as routes from "./routes.js";

const ROW = ".row-link, .grid a.file";

export const KEYS = [
  ["/", "Search or filter"],
  ["↑ ↓", "Previous or next row of a table"],
  ["Home End", "First or last row of a table"],
  ["Enter", "Open the row"],
  ["g then o", "Overview"],
  ["g then f", "Find a file"],
  ["t", "Light, dark, or system colours"],
  ["Esc", "Leave the search, or close this"],
  ["?", "These keys"],
];

/** Handle keys; `on` has their actions: `help`, `theme`, `go`. */
export function listen(on) {
  let prefix = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "ArrowDown" && event.target.matches("[data-search]")) move(event, document.querySelector("main .grid"), "first");
      return;
    }
    const afterG = Date.now() - prefix < 1200;
    prefix = 0;
    if (afterG && event.key === "o") on.go(routes.overview());
    else if (afterG && event.key === "f") on.go(routes.files());
    else if (event.key === "g") prefix = Date.now();
    else if (event.key === "/") search(event, on);
    else if (event.key === "?") on.help();
    else if (event.key === "t") on.theme();
    else if (event.key in STEPS) move(event, event.target.closest("table"), STEPS[event.key]);
  });
}

const STEPS = { ArrowDown: "next", ArrowUp: "previous", Home: "first", End: "last" };

function search(event, on) {
  event.preventDefault();
  const field = document.querySelector("[data-search]");
  if (field) {
    field.focus();
    field.select();
  } else on.search();
}

function move(event, table, where) {
  const all = [...(table?.querySelectorAll(ROW) ?? [])];
  const at = all.indexOf(event.target.closest("tr")?.querySelector(ROW) ?? null);
  const next = { next: at + 1, previous: at - 1, first: 0, last: all.length - 1 }[where];
  if (next < 0 || next >= all.length) return;
  event.preventDefault();
  all[next].focus();
}

/** The list of keys, for a dialog. */
export function help(close) {
  return [
    h("h2", { id: "keys-title" }, "Keys"),
    h(
      "dl.keys",
      KEYS.map(([key, what]) =>
        h(
          "div",
          h("dt", key.split(" ").map((each) => (each === "then" ? " then " : h("kbd", each)))),
          h("dd", what),
        ),
      ),
    ),
    h("button.button", { type: "button", onclick: close }, "Close"),
  ];
}
