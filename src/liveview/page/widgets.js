// The widgets that all views share.

import { h } from "./dom.js";
import * as format from "./format.js";
import { HEALTH_COVERS, HEALTH_WORDS, middle, pathParts } from "./logic.js";
import * as routes from "./routes.js";

const STATE_WORDS = {
  running: "Running",
  idle: "Idle",
  to_read: "To read",
  to_commit: "To commit",
  failing: "Step failed",
  stopped: "Stopped",
  unknown: "Not known",
};
export const FILE_WORDS = {
  in_table: "In the table",
  journaled: "To commit",
  waiting: "To read",
  failed: "Failed",
  changed: "Changed since",
  skipped: "Not read",
  discarded: "Discarded",
  elsewhere: "Elsewhere",
  removed: "Removed",
  rewritten: "Rewritten",
  altered: "Rewritten by others",
  given_up: "Given up",
  orphan: "Orphan",
  deleted: "Deleted",
  foreign: "Written by others",
  held: "Held",
  retracted: "Retracted",
  missing: "Missing",
};
const FILE_TONES = {
  in_table: "ok",
  journaled: "run",
  failed: "bad",
  changed: "warn",
  discarded: "warn",
  removed: "warn",
  altered: "warn",
  held: "warn",
  missing: "bad",
  retracted: "off",
  waiting: "off",
};
const TONES = { running: "run", failing: "bad" };

/** Icons differ in shape, not only in colour. */
const SHAPES = {
  ok: "M3.5 8.5 6.5 11.5 12.5 4.5",
  warn: "M8 2.5 14.5 13.5H1.5ZM8 6.5V9.5M8 11.3V11.8",
  bad: "M4.5 4.5 11.5 11.5M11.5 4.5 4.5 11.5",
  run: "M3 8a5 5 0 1 0 5-5",
  off: "M5 8H11",
};

export function icon(tone) {
  return h(
    "svg.icon",
    { class: `tone-${tone}`, viewBox: "0 0 16 16", "aria-hidden": "true" },
    h("path", { d: SHAPES[tone] }),
  );
}

export const TONE_OF_HEALTH = { ok: "ok", warning: "warn", failing: "bad", unknown: "off" };

/** A word with an icon. */
export const badge = (tone, word, title) =>
  h("span.badge", { class: `tone-${tone}`, title }, icon(tone), word);

export const stateWord = (state) => STATE_WORDS[state] ?? state;

/** The current activity of a pipeline or table; `healthBadge` says whether it is healthy. */
export const stateBadge = (state) => badge(TONES[state] ?? "off", stateWord(state), "Current activity");

/** The health of a pipeline or table, as far as it is known. */
export const healthBadge = (health) =>
  badge(TONE_OF_HEALTH[health], format.sentence(HEALTH_WORDS[health]), HEALTH_COVERS[health]);

/** The health as an icon before a name. */
export const healthSign = (health) =>
  h(
    "span.health-sign",
    { title: `${format.sentence(HEALTH_WORDS[health])}. ${HEALTH_COVERS[health]}` },
    icon(TONE_OF_HEALTH[health]),
    h("span.sr", `${HEALTH_WORDS[health]}: `),
  );

export function fileBadge(state) {
  return badge(FILE_TONES[state] ?? "off", FILE_WORDS[state] ?? state);
}

/** A count, with the exact number in its tooltip: `1 file`, `12.3 k files`. */
export const counted = (value, one) =>
  h("span.num", { title: format.exact(value) }, `${format.compact(value)} ${value === 1 ? one : `${one}s`}`);

export const number = (value) => h("span.num", { title: format.exact(value) }, format.compact(value));
export const size = (value) => h("span.num", { title: format.exactBytes(value) }, format.bytes(value));
export const span = (secs) =>
  h(
    "span.num",
    {
      title: secs === null || secs === undefined ? "" : `${format.exact(Math.round(secs * 10) / 10)} seconds`,
    },
    format.duration(secs),
  );

/** The placeholder for a missing value. */
export const none = h("span.dim", format.NONE);

const time = (at, words) => (at ? h("time.num", { datetime: at, title: format.exactTime(at) }, words) : none);
export const ago = (at, now) => time(at, format.age(at, now));
/** The time until an instant; a past one is due. */
export const due = (at, now) => (Date.parse(at) <= now ? "due now" : ago(at, now));
export const clock = (at, now) => time(at, format.clock(at, now));

export const since = (at, now) => ["since ", clock(at, now), " (", ago(at, now), ")"];

/** A name from data, which may be long, or written from right to left. */
export const name = (text) => h("bdi", { title: text }, middle(text));

/** A sentence from the server; text in backticks is a command or a name to type. */
export const words = (text) =>
  h("bdi", text.split("`").map((part, at) => (at % 2 ? h("code", part) : part)));

/** A path, shortened to fit, but never at its end. */
export function path(text) {
  const { folder, head, tail } = pathParts(text);
  return h(
    "span.path",
    { title: text },
    folder && h("bdi.folder", folder),
    h("bdi.base", head && h("span.head", head), h("span", tail)),
  );
}

/** A text to copy verbatim: a command, or a change of the configuration. */
const block = (text) =>
  h(
    "div.fix",
    { key: text },
    h("pre", h("code", text)),
    h(
      "button.copy",
      { type: "button" },
      h("span.todo", "Copy"),
      h("span.done", "Copied"),
      h("span.sr", `: ${text.replace(/\s+/g, " ")}`),
    ),
  );

/** A way out: advice, then a change of the configuration and commands, each with a copy button. */
export const wayOut = (way) =>
  way && [
    way.advice && h("p.advice", words(format.sentence(way.advice))),
    [way.yaml, ...way.commands].filter(Boolean).map(block),
  ];

/** A link labelled with a name, which may be shortened; screen readers read it whole. */
export const link = (href, text, classes = "") =>
  h("a", { href, class: classes, "aria-label": middle(text) === text ? null : text }, name(text));

export const pipelineLink = (text) => link(routes.pipeline(text), text);
export const tableLink = (text) => link(routes.table(text), text);
/** A link to an entry or a version; only its number if the owner is unknown. */
const numbered = (address, owner, number) => {
  if (number === null || number === undefined) return none;
  return owner ? h("a.num", { href: address(owner, number) }, format.exact(number)) : format.exact(number);
};
export const entryLink = (pipeline, entry) => numbered(routes.entry, pipeline, entry);
export const versionLink = (table, version) => numbered(routes.version, table, version);
export const fileLink = (pipeline, text) => h("a.file", { href: routes.journey(pipeline, text) }, path(text));

/** A labelled figure, with a line of details. */
export function figure(label, value, ...more) {
  return h(
    "div.figure",
    h("dt", label),
    h("dd", h("span.value", value), more.length ? h("span.more", more) : null),
  );
}

/** The non-empty parts, separated by commas. */
export const listed = (...parts) => parts.filter(Boolean).flatMap((part, at) => (at ? [", ", part] : [part]));

/** A problem: what, since when, and the way out. */
export function problem(item, ctx, subject) {
  const tone = item.severity === "error" ? "bad" : "warn";
  return h(
    "li.problem",
    { class: `tone-${tone}` },
    icon(tone),
    h(
      "div",
      h(
        "p.what",
        h("span.sr", item.severity === "error" ? "Error: " : "Warning: "),
        subject && [subject, ": "],
        words(format.sentence(item.message)),
      ),
      wayOut(item.way_out),
      h(
        "p.facts",
        h("code", item.code),
        item.subject && [" · ", h("bdi", item.subject)],
        item.since && [" · ", since(item.since, ctx.now)],
      ),
    ),
  );
}

/** The problems of a pipeline or table, or what its health covers. */
export function problems(summary, ctx) {
  if (!summary.problems.length)
    return h("p.caption", { key: "problems" }, words(`No problems. ${HEALTH_COVERS[summary.health]}`));
  return h(
    "ul.problems.standing",
    { key: "problems", "aria-label": "Problems" },
    summary.problems.map((item) => problem(item, ctx)),
  );
}

/** A term with its values. */
export const fact = (term, ...values) => h("div", h("dt", term), values.map((value) => h("dd", value)));

/** A page with only a title and a short text. */
export const alone = (key, title, ...body) => h("section.block.first-run", { key }, h("h1", title), body);

/** The breadcrumbs from the overview to a view. */
export function crumbs(...steps) {
  const between = () => h("span", { "aria-hidden": "true" }, "/");
  return h(
    "nav.crumbs",
    { "aria-label": "Breadcrumbs" },
    h("a", { href: routes.overview() }, "Overview"),
    steps.flatMap((step) => [between(), step]),
  );
}

/** The header of a pipeline or table: its name, state and locations. */
export function lead(what, summary, action, ...where) {
  return h(
    "header.lead",
    { key: "lead" },
    crumbs(what),
    h(
      "div.title-row",
      h("h1", h("bdi", summary.name)),
      stateBadge(summary.state),
      healthBadge(summary.health),
      action,
    ),
    h("dl.where", where),
  );
}

/** The verdict on yesterday, in a sentence. */
export function verdictLine(verdict) {
  const tone = STANDINGS[verdict.standing][0];
  return h(
    "p.verdict",
    { key: "verdict", class: `tone-${tone}` },
    icon(tone),
    h(
      "span",
      h("span.question", "Is everything of yesterday in? "),
      words(format.sentence(verdict.sentence)),
    ),
  );
}

/** The icon and words of each verdict on a day, which the API and `blizzard files` share. */
export const STANDINGS = {
  complete: ["ok", "complete"],
  incomplete: ["bad", "incomplete"],
  unknown: ["off", "not known"],
  not_over: ["off", "not over yet"],
  empty: ["off", "no files"],
};

/** The verdict on a day. */
export const dayBadge = (standing, title) =>
  badge(STANDINGS[standing][0], format.sentence(STANDINGS[standing][1]), title);

/** A group of buttons with one pressed; `choices` are pairs of value and label. */
export const segmented = (label, choices, chosen, choose) =>
  h(
    "div.segmented",
    { role: "group", "aria-label": label },
    choices.map(([value, word]) =>
      h("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => choose(value) }, word),
    ),
  );

/** A button that expands or collapses a list. */
export function fold(ctx, key, all, fewer = "Show fewer") {
  const open = ctx.ui.get(key, false);
  return h(
    "button.link",
    { type: "button", "aria-expanded": String(open), onclick: () => ctx.ui.set(key, !open) },
    open ? fewer : all,
  );
}

/** A button that shows older rows of the table before it, and focuses the first of them. */
export function older(label, isLoading, show) {
  return h(
    "button.link",
    {
      type: "button",
      "aria-disabled": isLoading ? "true" : null,
      onclick: (event) => {
        if (isLoading) return;
        focusFirstNew(event.currentTarget);
        show();
      },
    },
    isLoading ? `Reading ${label.toLowerCase()} …` : label,
  );
}

function focusFirstNew(button) {
  const block = button.closest("section");
  const rows = () => block.querySelectorAll("tbody > tr:not(.more-row)");
  const known = rows().length;
  const change = new MutationObserver(() => {
    const row = rows()[known];
    if (!row) return;
    change.disconnect();
    if ([button, document.body].includes(document.activeElement)) row.querySelector("a, button").focus();
  });
  change.observe(block, { childList: true, subtree: true });
}

/**
 * The rows of a list in a document, those of older pages, and the button that loads more of them.
 *
 * `list` is the key of the rows in a page, `number` that of a row's number; older pages are loaded up to
 * the `asked` row.
 */
export function paged(ctx, recent, { path, list, number, asked }) {
  const key = `older ${list} ${asked}`;
  const isBefore = asked !== undefined && Number(asked) < (recent.at(-1)?.[number] ?? 0);
  const marks = ctx.ui.get(key, isBefore ? [Number(asked) + 1] : []);
  const pages = marks.map((before) => ctx.documents.get(`${path}?before=${before}&limit=50`));
  const all = [...recent, ...pages.flatMap((page) => page.data?.[list] ?? [])];
  const rows = [...new Map(all.map((row) => [row[number], row])).values()];
  const last = pages.at(-1);
  const next = last ? last.data?.next_before : rows.at(-1)?.[number];
  const more = () => ctx.ui.set(key, [...marks, next]);
  return {
    rows,
    isRecent: !marks.length,
    more: [
      last?.error && pending({ ...last, data: null }, `Older ${list}`),
      (last?.loading || next > 0) && older(`Older ${list}`, last?.loading, more),
    ],
  };
}

/** A block with a heading that is part of the outline. */
export function section(id, title, aside, ...body) {
  return h(
    "section.block",
    { "aria-labelledby": `${id}-title`, key: id },
    h("header", h("h2", { id: `${id}-title` }, title), aside && h("div.aside", aside)),
    body,
  );
}

export const empty = (text, ...more) => h("p.empty", text, more.length ? [" ", more] : null);

/** The placeholder for a document that is loading or could not be loaded. */
export function pending(entry, what) {
  if (entry.error && !entry.data && entry.error.code !== "being_read") {
    return h(
      "div.notice.tone-bad",
      { role: "alert" },
      icon("bad"),
      h(
        "div",
        h(
          "p",
          entry.error.status ? words(format.sentence(entry.error.message)) : `${what} could not be fetched.`,
        ),
        entry.error.wayOut && h("p.advice", words(format.sentence(entry.error.wayOut))),
      ),
    );
  }
  return h("p.loading", { "aria-busy": "true" }, `Reading ${what.toLowerCase()} …`);
}

/**
 * A table with arrow-key navigation, which becomes cards on a phone.
 *
 * `columns` are `{title, cell, num, key, wide}`; with `sort` the titles of columns with a `key` are buttons.
 */
export function grid({ label, columns, rows, keyOf, sort, onSort, extra, onOpen, rowClass, empty: nothing }) {
  if (!rows.length) return nothing ?? null;
  return h(
    "div.grid-frame",
    { key: label },
    h(
      "table.grid",
      { role: "table", "aria-label": label },
      h(
        "thead",
        { role: "rowgroup" },
        h("tr", { role: "row" }, columns.map((column, place) => heading(column, sort, onSort, place === 0))),
      ),
      h(
        "tbody",
        { role: "rowgroup" },
        rows.flatMap((row, at) => {
          const key = keyOf ? keyOf(row) : at;
          const more = extra?.(row);
          return [
            h(
              "tr",
              {
                role: "row",
                key: `row ${key}`,
                class: [onOpen && "opens", rowClass?.(row)].filter(Boolean).join(" "),
                onclick: onOpen ? (event) => opened(event, row, onOpen) : null,
              },
              columns.map((column, place) =>
                h(
                  "td",
                  {
                    role: "cell",
                    "data-label": column.title,
                    class: [column.num && "num", column.wide && "wide", place === 0 && "first"]
                      .filter(Boolean)
                      .join(" "),
                  },
                  column.cell(row),
                ),
              ),
            ),
            more &&
              h(
                "tr.more-row",
                { role: "row", key: `more ${key}` },
                h("td", { role: "cell", colspan: columns.length }, more),
              ),
          ];
        }),
      ),
    ),
  );
}

function heading(column, sort, onSort, first) {
  const order = column.key && onSort ? sort(column.key) : null;
  return h(
    "th",
    {
      role: "columnheader",
      scope: "col",
      class: [column.num && "num", first && "first"].filter(Boolean).join(" "),
      "aria-sort": order && order !== "none" ? order : null,
    },
    order
      ? h(
          "button.sort",
          { type: "button", onclick: () => onSort(column.key) },
          column.title,
          h(
            "span.arrow",
            { "aria-hidden": "true" },
            order === "ascending" ? "↑" : order === "descending" ? "↓" : "",
          ),
        )
      : column.title || h("span.sr", column.label ?? "More"),
  );
}

function opened(event, row, onOpen) {
  if (event.target.closest("a, button, input, summary") || String(getSelection())) return;
  onOpen(row);
}
