// One Delta table: what is in it, how it came to be, and what readers must know of it.

import { h } from "./dom.js";
import * as format from "./format.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

export function title(ctx) {
  return ctx.route.name;
}

export function view(ctx) {
  const { name } = ctx.route;
  const told = ctx.overview.tables.find((item) => item.name === name);
  const entry = ctx.documents.get(routes.api("tables", name), told ? `${told.version} ${told.health}` : "");
  const summary = told ?? entry.data?.summary;
  if (!summary) return [h("h1", { key: "title" }, w.name(name)), w.pending(entry, "The table")];
  const detail = entry.data;
  return [
    lead(summary),
    w.problems(summary, ctx),
    summary.version !== null && figures(summary, ctx),
    detail?.note && h("p.caption", { key: "note" }, w.words(format.sentence(detail.note))),
    !detail && w.pending(entry, "The table"),
    detail && (detail.recent_versions.length ? contents(detail, ctx) : !detail.note && notYet(summary)),
  ];
}

function contents(detail, ctx) {
  return [
    versions(detail, ctx),
    w.section(
      "columns",
      "Schema",
      `${format.count(detail.columns.length, "column")}${detail.partition_columns.length ? `, partitioned by ${detail.partition_columns.join(", ")}` : ""}`,
      columns(detail.columns, ctx.narrow),
    ),
    changes(detail, ctx),
    facts(detail),
  ];
}

function notYet({ waiting_entries: entries }) {
  const waiting = entries ? ` ${format.count(entries, "entry", "entries")} to commit.` : "";
  return w.empty(`There is no table yet. The first commit creates it.${waiting}`);
}

function lead(summary) {
  return w.lead(
    "Table",
    summary,
    null,
    h("div", null, h("dt", null, "Place"), h("dd", null, w.path(summary.uri))),
    summary.pipelines.length > 0 &&
      h(
        "div",
        null,
        h("dt", null, summary.pipelines.length === 1 ? "Pipeline" : "Pipelines"),
        summary.pipelines.map((name) => h("dd", null, w.pipelineLink(name))),
      ),
  );
}

function figures(summary, ctx) {
  const each = summary.files ? summary.bytes / summary.files : null;
  return h(
    "dl.figures",
    { key: "figures" },
    w.figure(
      "Version",
      format.exact(summary.version),
      summary.committed_at ? ["committed ", w.ago(summary.committed_at, ctx.now)] : "when is not known",
    ),
    w.figure(
      "Rows",
      w.number(summary.rows),
      summary.rows === null ? "not in the statistics" : "by the log's statistics",
    ),
    w.figure("Size", w.size(summary.bytes), each !== null && [w.size(Math.round(each)), " per file"]),
    w.figure(
      "Files",
      w.number(summary.files),
      summary.size_version === null || summary.size_version === summary.version
        ? "in the current version"
        : [`as of version ${format.exact(summary.size_version)}, `, w.ago(summary.size_at, ctx.now)],
    ),
    w.figure(
      "To commit",
      summary.waiting_entries === null ? "not known" : format.count(summary.waiting_entries, "entry", "entries"),
      summary.waiting_entries === null
        ? "a journal could not be read"
        : summary.waiting_entries
          ? "journaled, not in the table"
          : "every entry is committed",
    ),
  );
}

function versions(detail, ctx) {
  const { name } = detail.summary;
  const asked = ctx.route.asked.version;
  const marks = ctx.ui.get(`older versions ${asked}`, askedBefore(asked, detail.recent_versions));
  const pages = marks.map((before) =>
    ctx.documents.get(`${routes.api("tables", name, "versions")}?before=${before}&limit=50`),
  );
  const all = [...detail.recent_versions, ...pages.flatMap((page) => page.data?.versions ?? [])];
  const rows = [...new Map(all.map((version) => [version.version, version])).values()];
  const lastPage = pages.at(-1);
  const last = rows.at(-1)?.version;
  const more = lastPage ? lastPage.data?.next_before : last > 0 ? last : null;
  return w.section(
    "versions",
    "Versions",
    null,
    w.grid({
      label: "Versions",
      rows,
      keyOf: (version) => version.version,
      rowClass: (version) => (String(version.version) === asked ? "is-open" : ""),
      columns: [
        { title: "Version", num: true, cell: (version) => w.versionLink(name, version.version) },
        { title: "Committed", num: true, cell: (version) => w.clock(version.at, ctx.now) },
        { title: "Operation", cell: (version) => h("bdi", null, version.operation) },
        { title: "By", cell: (version) => by(version) },
        {
          title: "Files",
          num: true,
          cell: (version) =>
            h(
              "span",
              null,
              signed(version.files_added, "+"),
              version.files_removed > 0 && [" ", signed(version.files_removed, "−")],
            ),
        },
        { title: "Rows", num: true, cell: (version) => signed(version.rows_added, "+") },
        {
          title: "Size",
          num: true,
          cell: (version) =>
            version.bytes_added === null
              ? h("span.dim", null, format.NONE)
              : h(
                  "span.num",
                  { title: format.exactBytes(version.bytes_added) },
                  version.bytes_added ? "+" : "",
                  format.bytes(version.bytes_added),
                ),
        },
      ],
    }),
    lastPage?.error && w.pending({ ...lastPage, data: null }, "Older versions"),
    (lastPage?.loading || more) &&
      w.older("Older versions", lastPage?.loading, () =>
        ctx.ui.set(`older versions ${asked}`, [...marks, more]),
      ),
  );
}

/** Return where to go on reading so that a version that a link names is shown. */
function askedBefore(asked, recent) {
  const known = recent.at(-1)?.version ?? 0;
  return asked !== undefined && Number(asked) < known ? [Number(asked) + 1] : [];
}

function by(version) {
  if (version.pipeline)
    return h(
      "span",
      null,
      version.entry === null ? w.name(version.pipeline) : w.pipelineLink(version.pipeline),
      version.entry !== null && [" entry ", w.entryLink(version.pipeline, version.entry)],
    );
  return version.by ? h("bdi", null, version.by) : h("span.dim", null, format.NONE);
}

function signed(value, sign) {
  if (value === null || value === undefined) return h("span.dim", null, format.NONE);
  return h("span.num", { title: format.exact(value) }, value ? `${sign}${format.compact(value)}` : "0");
}

function changes(detail, ctx) {
  return w.section(
    "changes",
    "Schema changes",
    null,
    detail.schema_changes.length
      ? h(
          "ol.changes",
          null,
          detail.schema_changes.map((change) =>
            h(
              "li",
              null,
              h("span.num.dim", null, "v", w.versionLink(detail.summary.name, change.version)),
              h("bdi", null, change.what),
              w.clock(change.at, ctx.now),
            ),
          ),
        )
      : w.empty("No change in the versions that are known."),
  );
}

function facts(detail) {
  const properties = Object.entries(detail.properties);
  return w.section(
    "facts",
    "Features and properties",
    null,
    h(
      "p.features",
      null,
      detail.features.length
        ? detail.features.map((feature) => h("span.tag", { key: feature }, feature))
        : h("span.dim", null, "No table feature is in use."),
    ),
    properties.length > 0 &&
      h(
        "dl.properties",
        null,
        properties.map(([key, value]) =>
          h("div", { key }, h("dt", null, h("code", null, key)), h("dd", null, h("bdi", null, value))),
        ),
      ),
  );
}

function columns(all, narrow) {
  return h(
    "details.fold",
    { open: all.length <= 12 && !narrow },
    h("summary", null, "Names and types"),
    w.grid({
      label: "Columns",
      rows: all,
      keyOf: (column) => column.name,
      columns: [
        {
          title: "Column",
          wide: true,
          cell: (column) =>
            h(
              "span",
              null,
              h("code", null, w.name(column.name)),
              column.partition && h("span.tag", null, "partition"),
            ),
        },
        { title: "Type", cell: (column) => h("code", null, h("bdi", null, column.type)) },
        { title: "Null", cell: (column) => (column.nullable ? h("span.dim", null, "allowed") : "never") },
        { title: "Since version", num: true, cell: (column) => format.exact(column.since_version) },
      ],
    }),
  );
}
