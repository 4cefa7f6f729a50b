// One pipeline: its activity, throughput and freshness, and what needs an operator.

import { freshnessScale, freshnessTrend, throughput, when } from "./charts.js";
import { h } from "./dom.js";
import * as format from "./format.js";
import * as logic from "./logic.js";
import * as routes from "./routes.js";
import { days } from "./days.js";
import { batches, currentBatch } from "./history.js";
import * as w from "./widgets.js";

const HOUR_MS = 3_600_000;
const LISTED = 10;
const SPANS = [
  { hours: 1, word: "1 h", points: 60 },
  { hours: 6, word: "6 h", points: 72 },
  { hours: 24, word: "24 h", points: 96 },
  { hours: 168, word: "7 d", points: 168 },
];

export function title(ctx) {
  return ctx.route.name;
}

export function view(ctx) {
  const { name } = ctx.route;
  const listed = ctx.overview.pipelines.find((item) => item.name === name);
  const entry = ctx.documents.get(routes.api("pipelines", name), stampOf(listed));
  const summary = listed ?? entry.data?.summary;
  if (!summary) return [h("h1", { key: "title" }, w.name(name)), w.pending(entry, "The pipeline")];
  const detail = entry.data;
  return [
    lead(summary),
    w.problems(summary, ctx),
    w.verdictLine(summary.yesterday),
    figures(summary, ctx),
    summary.current_batch && currentBatch(summary.current_batch, ctx),
    h("div.pair", { key: "charts" }, chart(summary, ctx), freshness(summary, ctx)),
    detail?.note && h("p.caption", { key: "note" }, w.words(format.sentence(detail.note))),
    detail ? allCases(detail, ctx) : w.pending(entry, "The pipeline"),
    detail && batches(detail, ctx),
    days(name, summary, ctx),
  ];
}

// Fetch the detail again when one of these changes, not for each progress report of a running batch.
function stampOf(summary) {
  if (!summary) return "";
  return [
    summary.last_entry,
    summary.failed_files,
    summary.held_entries,
    summary.quarantined_lines,
    summary.health,
    summary.uncommitted_entries,
  ].join(" ");
}

function lead(summary) {
  return w.lead(
    "Pipeline",
    summary,
    h("a.button", { href: routes.files({ pipeline: summary.name }) }, "Find a file"),
    w.fact(summary.sources.length === 1 ? "Source" : "Sources", ...summary.sources.map(w.path)),
    w.fact("Table", summary.table ? w.tableLink(summary.table) : w.path(summary.table_uri)),
    h(
      "div",
      { title: "How penguin learns of new entries" },
      h("dt", "Hand-off"),
      h("dd", h("bdi", summary.hand_off)),
    ),
  );
}

function figures(summary, ctx) {
  const next = summary.next_listing_at;
  return h(
    "dl.figures",
    { key: "figures" },
    w.figure(
      "Rows, 24 h",
      w.number(summary.rows_24h),
      w.counted(summary.files_24h, "file"),
      ", ",
      w.size(summary.bytes_24h),
    ),
    w.figure(
      "To read",
      summary.waiting_files === null ? "not known" : w.counted(summary.waiting_files, "file"),
      summary.waiting_files
        ? [
            summary.waiting_bytes !== null && [w.size(summary.waiting_bytes), ", "],
            summary.oldest_waiting_secs !== null && ["oldest ", w.span(summary.oldest_waiting_secs)],
          ]
        : summary.waiting_files === 0
          ? "nothing waits in the source"
          : "the source has not been listed",
    ),
    w.figure(
      "To commit",
      summary.uncommitted_entries === null
        ? "not known"
        : format.count(summary.uncommitted_entries, "entry", "entries"),
      summary.uncommitted_since && [
        summary.uncommitted_rows !== null && [w.counted(summary.uncommitted_rows, "row"), ", "],
        "since ",
        w.clock(summary.uncommitted_since, ctx.now),
      ],
    ),
    w.figure(
      "Last batch",
      w.ago(summary.last_batch_at, ctx.now),
      summary.last_batch !== null
        ? ["entry ", w.entryLink(summary.name, summary.last_batch)]
        : summary.health === "unknown"
          ? "not known"
          : "none yet",
    ),
    w.figure(
      "Next listing",
      summary.state === "running" ? "after this batch" : next ? w.due(next, ctx.now) : "not known",
      summary.state !== "running" && (next ? ["at ", w.clock(next, ctx.now)] : silence(ctx.overview)),
    ),
    w.figure(
      "Not loaded",
      w.number(summary.quarantined_lines),
      "bad lines, ",
      w.number(summary.failed_files),
      " failed, ",
      summary.changed_files > 0 && [w.number(summary.changed_files), " changed, "],
      w.number(summary.held_entries),
      " held",
    ),
  );
}

function silence(overview) {
  const isSilent = overview.programs.some((program) => program.name === "blizzard" && !program.reachable);
  return isSilent && "blizzard does not answer";
}

/** Return the time span of the charts, and the API query for it. */
function spanOf(ctx) {
  const hours = ctx.ui.get("hours", 24);
  const { points, word } = SPANS.find((each) => each.hours === hours);
  return { hours, word, query: `?hours=${hours}&points=${points}` };
}

function spanChoice(ctx) {
  const choices = SPANS.map(({ hours, word }) => [hours, word]);
  return w.segmented("Span", choices, spanOf(ctx).hours, (hours) => ctx.ui.set("hours", hours));
}

function pointer(ctx, key, label) {
  const onHover = (at) => ctx.ui.set(key, at);
  return { label, now: ctx.now, narrow: ctx.narrow, hover: ctx.ui.get(key, null), onHover };
}

function chart(summary, ctx) {
  const kind = ctx.ui.get("chart", "rows");
  const { word, query } = spanOf(ctx);
  // Fetch it again after every entry, and every hour, since the window moves.
  const entry = ctx.documents.get(
    `${routes.api("pipelines", summary.name, "throughput")}${query}`,
    `${summary.last_entry} ${Math.floor(ctx.now / HOUR_MS)}`,
  );
  const kinds = ["rows", "bytes", "files"].map((each) => [each, each]);
  const choices = h(
    "div.choices",
    spanChoice(ctx),
    w.segmented("Measure", kinds, kind, (each) => ctx.ui.set("chart", each)),
  );
  const title = `Throughput, last ${word}`;
  if (!entry.data) return w.section("throughput", title, choices, w.pending(entry, "Throughput"));
  const words = logic.describe(entry.data, kind, ctx.now, (at) => when(at, ctx.now));
  return w.section(
    "throughput",
    title,
    choices,
    throughput(entry.data, kind, pointer(ctx, "hover", words)),
    h("p.caption", words),
  );
}

function trend(summary, ctx) {
  const { word, query } = spanOf(ctx);
  const entry = ctx.documents.get(
    `${routes.api("pipelines", summary.name, "freshness")}${query}`,
    `${summary.last_entry} ${summary.freshness.measured_files} ${Math.floor(ctx.now / HOUR_MS)}`,
  );
  if (!entry.data) return w.pending(entry, "Freshness over time");
  const words = logic.describeFreshness(entry.data, (at) => when(at, ctx.now));
  const options = { ...pointer(ctx, "fresh hover", `Freshness over ${word}. ${words}`), narrow: true };
  return [freshnessTrend(entry.data, options), h("p.caption", words)];
}

function freshness(summary, ctx) {
  const behind = h("p.caption", "Now behind: ", w.span(summary.behind_secs));
  const { median_secs: median, worst_secs: worst, measured_files: files } = summary.freshness;
  const nothing = "No file reached the table in the last 24 h, so there is nothing to measure.";
  const section = (...body) => w.section("freshness", "Freshness", null, ...body);
  if (median === null || worst === null) return section(w.empty(nothing), behind);
  return section(
    h(
      "dl.figures.two",
      w.figure([h("span.dot.median"), "Median"], w.span(median)),
      w.figure([h("span.dot.worst"), "Worst"], w.span(worst)),
    ),
    behind,
    freshnessScale(median, worst),
    h(
      "p.caption",
      `From a file's arrival at the source to its commit; ${format.count(files, "file")} of the last 24 h.`,
    ),
    trend(summary, ctx),
  );
}

function allCases(detail, ctx) {
  const { name } = detail.summary;
  const failed = format.count(detail.summary.failed_files, "file");
  const held = format.count(detail.held.length, "entry", "entries");
  const bad = format.count(
    detail.bad_lines.reduce((sum, group) => sum + group.lines, 0),
    "line",
  );
  return [
    cases(ctx, "failed", "Failed files", failed, detail.failed, (file) => file.path, (file) => [
      h("p.what", w.fileLink(name, file.path)),
      h("p", w.words(format.sentence(file.reason))),
      w.wayOut(file.way_out),
      h(
        "p.facts",
        h("code", file.code),
        ` · ${format.count(file.attempts, "attempt")}`,
        file.since && [" · failing since ", w.clock(file.since, ctx.now)],
        file.next_try_at && [" · next try ", w.due(file.next_try_at, ctx.now)],
      ),
    ]),
    cases(ctx, "held", "Held entries", held, detail.held, (entry) => `${entry.entry} ${entry.reason}`, (entry) => [
      h(
        "p.what",
        entry.entry === null ? "The pipeline" : ["Entry ", w.entryLink(name, entry.entry)],
        h("span.dim", ` · ${format.count(entry.files, "file")}, ${format.count(entry.rows, "row")}`),
      ),
      h("p", w.words(format.sentence(entry.reason))),
      w.wayOut(entry.way_out),
      entry.since && h("p.facts", "held ", w.since(entry.since, ctx.now)),
    ]),
    cases(ctx, "bad", "Bad lines", bad, detail.bad_lines, (group) => `${group.code} ${group.field}`, (group) => [
      h(
        "p.what",
        h("code", group.code),
        group.field && [" in ", h("code", h("bdi", group.field))],
        h("span.dim", ` · ${format.count(group.lines, "line")} in ${format.count(group.files, "file")}`),
      ),
      w.wayOut(group.way_out),
      group.sample_path &&
        h(
          "p.facts",
          "for example ",
          w.fileLink(name, group.sample_path),
          group.sample_line !== null && ` line ${format.exact(group.sample_line)}`,
        ),
    ]),
  ];
}

/** List cases that need an operator, only the first ones until expanded; null without any. */
function cases(ctx, id, title, count, all, keyOf, show) {
  if (!all.length) return null;
  const open = ctx.ui.get(`all ${id}`, false);
  return w.section(
    id,
    title,
    count,
    h(
      "ul.cases",
      all.slice(0, open ? all.length : LISTED).map((one) => h("li", { key: keyOf(one) }, show(one))),
      all.length > LISTED && h("li.cap", { key: "cap" }, w.fold(ctx, `all ${id}`, `Show all ${all.length}`)),
    ),
  );
}
