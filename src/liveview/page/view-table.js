// One Delta table: its size, versions, schema, features and properties.

import { h } from "./dom.js";
import * as format from "./format.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

export function title(ctx) {
  return ctx.route.name;
}

export function view(ctx) {
  const { name } = ctx.route;
  const listed = ctx.overview.tables.find((item) => item.name === name);
  const entry = ctx.documents.get(routes.api("tables", name), listed ? `${listed.version} ${listed.health}` : "");
  const summary = listed ?? entry.data?.summary;
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
    w.fact("Place", w.path(summary.uri)),
    summary.pipelines.length > 0 &&
      w.fact(summary.pipelines.length === 1 ? "Pipeline" : "Pipelines", ...summary.pipelines.map(w.pipelineLink)),
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
      summary.committed_at ? ["committed ", w.ago(summary.committed_at, ctx.now)] : "commit time not known",
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
  const path = routes.api("tables", name, "versions");
  const older = w.paged(ctx, detail.recent_versions, { path, list: "versions", number: "version", asked });
  return w.section(
    "versions",
    "Versions",
    null,
    w.grid({
      label: "Versions",
      rows: older.rows,
      keyOf: (version) => version.version,
      rowClass: (version) => (String(version.version) === asked ? "is-open" : ""),
      columns: [
        { title: "Version", num: true, cell: (version) => w.versionLink(name, version.version) },
        { title: "Committed", num: true, cell: (version) => w.clock(version.at, ctx.now) },
        { title: "Operation", cell: (version) => h("bdi", version.operation) },
        { title: "By", cell: (version) => by(version) },
        {
          title: "Files",
          num: true,
          cell: (version) =>
            h(
              "span",
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
              ? w.none
              : h(
                  "span.num",
                  { title: format.exactBytes(version.bytes_added) },
                  version.bytes_added ? "+" : "",
                  format.bytes(version.bytes_added),
                ),
        },
      ],
    }),
    older.more,
  );
}

function by(version) {
  if (version.pipeline)
    return h(
      "span",
      version.entry === null ? w.name(version.pipeline) : w.pipelineLink(version.pipeline),
      version.entry !== null && [" entry ", w.entryLink(version.pipeline, version.entry)],
    );
  return version.by ? h("bdi", version.by) : w.none;
}

function signed(value, sign) {
  if (value === null || value === undefined) return w.none;
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
          detail.schema_changes.map((change) =>
            h(
              "li",
              h("span.num.dim", "v", w.versionLink(detail.summary.name, change.version)),
              h("bdi", change.what),
              w.clock(change.at, ctx.now),
            ),
          ),
        )
      : w.empty("No schema change in the known versions."),
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
      detail.features.length
        ? detail.features.map((feature) => h("span.tag", { key: feature }, feature))
        : h("span.dim", "No table feature is in use."),
    ),
    properties.length > 0 &&
      h("dl.properties", properties.map(([key, value]) => w.fact(h("code", key), h("bdi", value)))),
  );
}

function columns(all, narrow) {
  return h(
    "details.fold",
    { open: all.length <= 12 && !narrow },
    h("summary", "Names and types"),
    w.grid({
      label: "Columns",
      rows: all,
      keyOf: (column) => column.name,
      columns: [
        {
          title: "Column",
          wide: true,
          cell: (column) =>
            h("span", h("code", w.name(column.name)), column.partition && h("span.tag", "partition")),
        },
        { title: "Type", cell: (column) => h("code", h("bdi", column.type)) },
        { title: "Null", cell: (column) => (column.nullable ? h("span.dim", "allowed") : "never") },
      ],
    }),
  );
}
