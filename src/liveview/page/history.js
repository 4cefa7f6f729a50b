// The running batch, and earlier batches with their books.

import { h } from "./dom.js";
import * as format from "./format.js";
import { equation, timeLeft } from "./logic.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

const STAGE_WORDS = {
  discover: "Discover",
  plan: "Plan",
  run: "Read and write",
  journal: "Journal",
  publish: "Publish",
  commit: "Commit",
};
const UNIT_WORDS = { waiting: "waiting", running: "running", done: "done", failed: "failed" };
const UNIT_TONES = { waiting: "off", running: "run", done: "ok", failed: "bad" };
const UNITS_SHOWN = 12;
const LISTED = 10;

/** Show the running batch: its stages, progress and units. */
export function currentBatch(batch, ctx) {
  const done = format.percent(batch.read_bytes, batch.bytes);
  const elapsed = Math.max(0, (ctx.now - Date.parse(batch.started_at)) / 1000);
  const rate = elapsed > 1 && batch.read_bytes ? batch.read_bytes / elapsed : null;
  return w.section(
    "current",
    `Batch ${format.exact(batch.entry)} ${ctx.stale ? "was" : "is"} running`,
    !ctx.stale && ["for ", h("span.num", format.duration(Math.floor(elapsed)))],
    h(
      "ol.stages",
      { "aria-label": "Stages" },
      batch.stages.map((stage) =>
        h(
          "li",
          {
            key: stage.name,
            class: `stage-${stage.state}`,
            "aria-current": stage.state === "running" ? "step" : null,
          },
          h("span.stage-mark", { "aria-hidden": "true" }),
          h("span.stage-name", STAGE_WORDS[stage.name] ?? stage.name, h("span.sr", `, ${stage.state}`)),
          h("span.stage-time.num", stage.seconds === null ? "" : format.duration(stage.seconds)),
        ),
      ),
    ),
    h(
      "div.progress",
      {
        role: "progressbar",
        "aria-label": "Bytes read",
        "aria-valuemin": "0",
        "aria-valuemax": "100",
        "aria-valuenow": String(done),
      },
      h("span.bar", { share: String(done / 100) }),
    ),
    h(
      "p.progress-words",
      h("b.num", `${done} %`),
      " · ",
      w.size(batch.read_bytes),
      " of ",
      w.size(batch.bytes),
      " · ",
      w.number(batch.rows),
      " rows · ",
      format.count(batch.files, "file"),
      rate !== null && !ctx.stale && [" · ", w.size(Math.round(rate)), "/s"],
      !ctx.stale && timeLeft(batch, ctx.now) && ` · ${timeLeft(batch, ctx.now)}`,
    ),
    units(batch, ctx),
  );
}

function units(batch, ctx) {
  if (!batch.units.length) return null;
  const per = Object.fromEntries(
    ["running", "waiting", "done", "failed"].map((state) => [
      state,
      batch.units.filter((unit) => unit.state === state),
    ]),
  );
  const words = Object.entries(per)
    .filter(([, all]) => all.length)
    .map(([state, all]) => `${all.length} ${UNIT_WORDS[state]}`);
  if (batch.units_left_out) words.push(`${format.exact(batch.units_left_out)} more not shown`);
  const order = [...per.done, ...per.failed, ...per.running, ...per.waiting];
  const open = ctx.ui.get("units", false);
  const busy = [...per.failed, ...per.running];
  const all = open ? [...busy, ...per.waiting, ...per.done] : busy.slice(0, UNITS_SHOWN);
  return h(
    "div.units",
    h("p.units-words", "Units: ", words.join(", ")),
    h(
      "div.cells",
      { "aria-hidden": "true" },
      order.map((unit) =>
        h("span.cell", {
          key: unit.id,
          class: `unit-${unit.state}`,
          title: `${unit.id}: ${UNIT_WORDS[unit.state]}`,
          share: String(unit.total_bytes ? unit.read_bytes / unit.total_bytes : 0),
        }),
      ),
    ),
    w.grid({
      label: "Units",
      rows: all,
      keyOf: (unit) => unit.id,
      columns: [
        { title: "Unit", cell: (unit) => h("code", w.name(unit.id)) },
        { title: "State", cell: (unit) => w.badge(UNIT_TONES[unit.state], UNIT_WORDS[unit.state]) },
        batch.units.some((unit) => unit.worker) && {
          title: "Worker",
          cell: (unit) => (unit.worker ? w.name(unit.worker) : w.none),
        },
        {
          title: "Read",
          num: true,
          wide: true,
          cell: (unit) =>
            h(
              "span.mini",
              h("span.bar", { share: String(unit.total_bytes ? unit.read_bytes / unit.total_bytes : 0) }),
              w.size(unit.read_bytes),
            ),
        },
        { title: "Files", num: true, cell: (unit) => w.number(unit.files) },
        { title: "Rows", num: true, cell: (unit) => w.number(unit.rows) },
        { title: "Bad lines", num: true, cell: (unit) => w.number(unit.bad_lines) },
        { title: "Time", num: true, cell: (unit) => w.span(unit.seconds) },
      ].filter(Boolean),
    }),
    batch.units.length > Math.min(busy.length, UNITS_SHOWN) &&
      w.fold(ctx, "units", `Show all ${batch.units.length} units`, "Show only active units"),
  );
}

/** Show the last batches, and older ones on demand; an opened batch shows its books. */
export function batches(detail, ctx) {
  const { name } = detail.summary;
  const path = routes.api("pipelines", name, "batches");
  const asked = ctx.route.asked.entry;
  const older = w.paged(ctx, detail.recent_batches, { path, list: "batches", number: "entry", asked });
  const isCut = older.isRecent && older.rows.length > LISTED && !ctx.ui.get("all batches", false);
  const rows = isCut ? older.rows.slice(0, LISTED) : older.rows;
  const open = ctx.ui.get(`open batch ${asked}`, asked === undefined ? null : Number(asked));
  const toggle = (batch) => ctx.ui.set(`open batch ${asked}`, open === batch.entry ? null : batch.entry);
  return w.section(
    "batches",
    "Batches",
    null,
    w.grid({
      label: "Batches",
      rows,
      keyOf: (batch) => batch.entry,
      onOpen: toggle,
      rowClass: (batch) => (open === batch.entry ? "is-open" : ""),
      extra: (batch) => open === batch.entry && books(batch, ctx),
      columns: [
        {
          title: "Entry",
          cell: (batch) =>
            h(
              "button.entry.row-link",
              { type: "button", "aria-expanded": String(open === batch.entry), onclick: () => toggle(batch) },
              h("span.num", format.exact(batch.entry)),
              batch.kind !== "batch" && [
                " ",
                h("span.tag", { title: batch.kind === "open" ? "Begins the journal" : null }, batch.kind),
              ],
            ),
        },
        { title: "Journaled", num: true, cell: (batch) => w.clock(batch.at, ctx.now) },
        { title: "Took", num: true, cell: (batch) => w.span(batch.seconds) },
        {
          title: "Files",
          num: true,
          cell: (batch) =>
            h(
              "span",
              w.number(batch.files),
              batch.files_failed > 0 &&
                h("span.sub.tone-bad", format.exact(batch.files_failed), " failed"),
            ),
        },
        { title: "Rows", num: true, cell: (batch) => w.number(batch.rows) },
        {
          title: "Bad lines",
          num: true,
          cell: (batch) => (batch.bad_lines ? w.number(batch.bad_lines) : h("span.dim", "0")),
        },
        { title: "Read", num: true, cell: (batch) => w.size(batch.bytes_read) },
        { title: "Written", num: true, cell: (batch) => w.size(batch.bytes_written) },
        {
          title: "Version",
          num: true,
          cell: (batch) =>
            batch.committed_version === null
              ? h("span.dim", batch.data_files ? "not yet" : format.NONE)
              : w.versionLink(detail.summary.table, batch.committed_version),
        },
        { title: "Books", cell: (batch) => balance(batch) },
      ],
      empty: w.empty("No batch has run yet."),
    }),
    isCut ? w.older("Older batches", false, () => ctx.ui.set("all batches", true)) : older.more,
  );
}

function balance(batch) {
  if (batch.kind === "unknown") return w.badge("bad", "Cannot be read");
  if (!batch.books.length) return w.none;
  return batch.balanced ? w.badge("ok", "Balanced") : w.badge("bad", "Differ");
}

function books(batch, ctx) {
  const sum = equation(batch.books);
  return h(
    "div.books",
    batch.error && h("p.tone-bad", w.words(format.sentence(batch.error))),
    sum
      ? h(
          "p.equation",
          term(sum.whole),
          h("span.op", "="),
          sum.parts.map((line, at) => [at > 0 && h("span.op", "+"), term(line)]),
          sum.difference !== 0 &&
            !batch.balanced && [
              h("span.op", "+"),
              h(
                "span.term.tone-bad",
                h("b.num", format.exact(sum.difference)),
                h("span", "not accounted for"),
              ),
            ],
        )
      : batch.books.length
        ? h("p.equation", batch.books.map(term))
        : null,
    h(
      "p.facts",
      format.count(batch.lines, "line"),
      " · ",
      format.count(batch.data_files, "data file"),
      batch.rescued > 0 && ` · ${format.count(batch.rescued, "value")} without a column`,
      batch.committed_at
        ? [" · committed ", w.clock(batch.committed_at, ctx.now), lag(batch)]
        : " · not committed yet",
    ),
  );
}

function lag(batch) {
  if (!batch.at) return "";
  return ` (${format.duration((Date.parse(batch.committed_at) - Date.parse(batch.at)) / 1000)} after its entry)`;
}

const term = (line) =>
  h("span.term", h("b.num", format.exact(line.value)), h("span", line.label));
