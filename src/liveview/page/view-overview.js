// The overview: problems first, then pipelines and tables.

import { spark } from "./charts.js";
import { h } from "./dom.js";
import * as format from "./format.js";
import * as logic from "./logic.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

const PROBLEMS_SHOWN = 5;
const NAMES_SHOWN = 3;

export function title() {
  return "Overview";
}

export function view(ctx) {
  const { overview } = ctx;
  if (!overview.pipelines.length && !overview.tables.length) return [nothingYet()];
  const headline = overview.headline;
  return [
    h(
      "header.lead",
      { key: "lead" },
      h(
        "h1",
        { class: `tone-${w.TONE_OF_HEALTH[headline.health]}` },
        w.icon(w.TONE_OF_HEALTH[headline.health]),
        headline.text,
      ),
      w.wayOut(headline.way_out),
      headline.covers && h("p.caption", w.words(headline.covers)),
    ),
    problems(ctx),
    figures(ctx),
    pipelines(ctx),
    tables(ctx),
  ];
}

function nothingYet() {
  const then = "The configuration has no pipelines and no tables. Add some, and restart the program.";
  return w.alone("nothing", "No pipelines are configured", h("p", then));
}

function figures(ctx) {
  const { pipelines: all } = ctx.overview;
  if (!all.length) return null;
  const sum = logic.totals(all);
  const { complete, incomplete, empty } = sum.yesterday;
  const notKnown = (some) => some > 0 && `${format.exact(some)} not known`;
  const gap = (key) => sum.unknown[key] < all.length && notKnown(sum.unknown[key]);
  return h(
    "dl.figures",
    { key: "figures" },
    w.figure(
      "Rows, 24 h",
      w.number(sum.rows),
      "from ",
      w.listed(w.counted(sum.files, "file"), w.size(sum.bytes), gap("rows_24h")),
    ),
    w.figure(
      "To read",
      sum.waiting === null ? "not known" : w.counted(sum.waiting, "file"),
      w.listed(sum.waitingBytes > 0 && w.size(sum.waitingBytes), gap("waiting_files")),
    ),
    w.figure(
      "To commit",
      sum.entries === null ? "not known" : format.count(sum.entries, "entry", "entries"),
      w.listed(sum.entries > 0 && "journaled, not in the table", gap("uncommitted_entries")),
    ),
    w.figure(
      "Worst freshness, 24 h",
      w.span(sum.worst),
      "now behind: ",
      w.listed(w.span(sum.behind), gap("behind_secs")),
    ),
    w.figure(
      "Yesterday complete",
      complete + incomplete ? `${complete} of ${complete + incomplete}` : format.NONE,
      w.listed(empty > 0 && `no files in ${empty}`, notKnown(all.length - complete - incomplete - empty)),
    ),
    w.figure("Running", String(sum.running), `of ${format.count(all.length, "pipeline")}`),
  );
}

function problems(ctx) {
  const all = ctx.overview.problems;
  if (!all.length) return null;
  const open = ctx.ui.get("problems", false);
  const shown = open ? all : all.slice(0, PROBLEMS_SHOWN);
  return w.section(
    "problems",
    "Problems",
    format.count(all.length, "problem"),
    h("ul.problems", shown.map((each) => w.problem(each.problem, ctx, names(each, ctx)))),
    all.length > PROBLEMS_SHOWN && w.fold(ctx, "problems", `Show all ${all.length}`),
  );
}

function names({ problem, pipelines, tables }, ctx) {
  const links = [...pipelines.map(w.pipelineLink), ...tables.map(w.tableLink)];
  const key = `names ${problem.code} ${pipelines[0] ?? tables[0]}`;
  const rest = links.length - NAMES_SHOWN;
  return [
    w.listed(...(ctx.ui.get(key, false) ? links : links.slice(0, NAMES_SHOWN))),
    rest > 0 && [" ", w.fold(ctx, key, `and ${rest} more`, "show fewer")],
  ];
}

function pipelines(ctx) {
  const all = ctx.overview.pipelines;
  if (!all.length) return null;
  const { q = "", state = "", health = "", sort = "" } = ctx.route.asked;
  const asked = (changes) => ctx.replace(routes.overview({ q, state, health, sort, ...changes }));
  const rows = logic.sorted(logic.filtered(all, q, { state, health }), sort);
  return w.section(
    "pipelines",
    "Pipelines",
    rows.length < all.length ? `${rows.length} of ${all.length}` : String(all.length),
    h(
      "div.tools",
      h("input", {
        type: "search",
        "data-search": true,
        "aria-label": "Filter pipelines and tables",
        placeholder: "Filter by name, source or table",
        value: q,
        oninput: (event) => asked({ q: event.target.value }),
      }),
      chips("State", all, "state", logic.STATES, state, w.stateWord, asked),
      chips("Health", all, "health", logic.HEALTHS, health, (each) => format.sentence(logic.HEALTH_WORDS[each]), asked),
    ),
    w.grid({
      label: "Pipelines",
      rows,
      keyOf: (item) => item.name,
      sort: (key) => logic.sortOf(sort, key),
      onSort: (key) => asked({ sort: logic.nextOrder(sort, key) }),
      onOpen: (item) => ctx.go(routes.pipeline(item.name)),
      columns: [
        {
          title: "Pipeline",
          key: "name",
          wide: true,
          cell: (item) =>
            nameCell(item, routes.pipeline, [
              "→ ",
              item.table && item.table !== item.name ? w.name(item.table) : w.path(item.table_uri),
            ]),
        },
        { title: "State", cell: (item) => stateCell(item, ctx.now) },
        {
          title: "Rows, 24 h",
          key: "rows",
          num: true,
          cell: (item) =>
            h(
              "span.with-spark",
              spark(item.spark, `Rows over the last 24 hours: ${format.exact(item.rows_24h)} in all`),
              w.number(item.rows_24h),
            ),
        },
        { title: "To read", key: "read", num: true, cell: (item) => toReadCell(item) },
        { title: "To commit", key: "commit", num: true, cell: (item) => w.number(item.uncommitted_entries) },
        { title: "Behind", key: "behind", num: true, cell: (item) => w.span(item.behind_secs) },
        {
          title: "Freshness",
          key: "freshness",
          num: true,
          cell: (item) => w.span(item.freshness.median_secs),
        },
        { title: "Worst", key: "worst", num: true, cell: (item) => w.span(item.freshness.worst_secs) },
        { title: "Yesterday", cell: (item) => w.dayBadge(item.yesterday.standing, item.yesterday.sentence) },
        { title: "Last batch", key: "last", num: true, cell: (item) => w.ago(item.last_batch_at, ctx.now) },
      ],
      empty: w.empty(
        "No pipeline matches.",
        h("button.link", { type: "button", onclick: () => asked({ q: "", state: "", health: "" }) }, "Show all"),
      ),
    }),
  );
}

function chips(label, all, mark, values, chosen, word, asked) {
  const counts = logic.per(all, mark, values);
  const there = values.filter((each) => counts[each]);
  if (there.length < 2 && !chosen) return null;
  return h(
    "div.chips",
    { role: "group", "aria-label": label },
    h("span.dim", { "aria-hidden": "true" }, label),
    chip("All", all.length, !chosen, () => asked({ [mark]: "" })),
    there.map((each) =>
      chip(word(each), counts[each], chosen === each, () => asked({ [mark]: chosen === each ? "" : each })),
    ),
  );
}

function chip(label, number, on, click) {
  return h(
    "button.chip",
    { type: "button", "aria-pressed": String(on), onclick: click },
    label,
    " ",
    h("span.num", String(number)),
  );
}

function nameCell(item, address, below) {
  return h(
    "div.name-cell",
    h("span.named", w.healthSign(item.health), w.link(address(item.name), item.name, "row-link")),
    h("span.sub", below),
  );
}

function stateCell(item, now) {
  const batch = item.current_batch;
  const badge = w.stateBadge(item.state);
  if (!batch) {
    const next = item.next_listing_at ? `lists again at ${format.clock(item.next_listing_at, now)}` : null;
    return h("div.state-cell", { title: next }, badge);
  }
  const done = format.percent(batch.read_bytes, batch.bytes);
  return h(
    "div.state-cell",
    badge,
    h("span.mini", h("span.bar", { share: `${done / 100}` }), h("span.num", `${done} %`)),
  );
}

function toReadCell(item) {
  if (item.waiting_files === null)
    return h("span.dim", { title: "The source has not been listed yet" }, format.NONE);
  if (!item.waiting_files) return h("span.dim", "0");
  return h(
    "span",
    w.number(item.waiting_files),
    item.oldest_waiting_secs !== null && h("span.sub", w.span(item.oldest_waiting_secs)),
  );
}

function tables(ctx) {
  const all = ctx.overview.tables;
  if (!all.length) return null;
  const { q = "", state = "", health = "" } = ctx.route.asked;
  const order = ctx.ui.get("tables", "");
  const rows = logic.sorted(logic.filtered(all, q, { state, health }), order);
  return w.section(
    "tables",
    "Tables",
    rows.length < all.length ? `${rows.length} of ${all.length}` : String(all.length),
    w.grid({
      label: "Tables",
      rows,
      keyOf: (item) => item.name,
      sort: (key) => logic.sortOf(order, key),
      onSort: (key) => ctx.ui.set("tables", logic.nextOrder(order, key)),
      onOpen: (item) => ctx.go(routes.table(item.name)),
      columns: [
        { title: "Table", key: "name", wide: true, cell: (item) => nameCell(item, routes.table, w.path(item.uri)) },
        { title: "State", cell: (item) => w.stateBadge(item.state) },
        {
          title: "Version",
          key: "version",
          num: true,
          cell: (item) => h("span.num", format.exact(item.version)),
        },
        {
          title: "Committed",
          key: "committed",
          num: true,
          cell: (item) => w.ago(item.committed_at, ctx.now),
        },
        { title: "Rows", key: "held", num: true, cell: (item) => w.number(item.rows) },
        { title: "Files", key: "files", num: true, cell: (item) => w.number(item.files) },
        {
          title: "Size",
          key: "size",
          num: true,
          cell: (item) =>
            h(
              "span",
              w.size(item.bytes),
              item.size_version !== null &&
                item.size_version !== item.version &&
                h("span.sub", `version ${format.exact(item.size_version)}`),
            ),
        },
        { title: "To commit", key: "entries", num: true, cell: (item) => w.number(item.waiting_entries) },
      ],
      empty: w.empty("No table matches."),
    }),
  );
}
