// The search for files by part of their names, and the journey of one file.

import { h } from "./dom.js";
import * as format from "./format.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

const AT_ONCE = 4;
const SHORTEST = 2;
const DRAWN = 100;

export const filesTitle = () => "Files";
export const journeyTitle = (ctx) => ctx.route.path.split("/").pop();

/** Search one pipeline, or all of them, a few at a time. */
export function filesView(ctx) {
  const { q = "", pipeline = "" } = ctx.route.asked;
  const names = ctx.overview.pipelines.map((item) => item.name);
  const typed = ctx.ui.get("typed", q);
  return [
    h("header.lead", { key: "lead" }, h("h1", "Where is my file?")),
    h(
      "form.tools.search",
      {
        key: "form",
        role: "search",
        onsubmit: (event) => {
          event.preventDefault();
          ctx.replace(routes.files({ q: typed.trim(), pipeline }));
        },
      },
      h("input", {
        type: "search",
        "data-search": true,
        "aria-label": "Part of the file's name",
        placeholder: "Part of the file's name",
        value: typed,
        autocomplete: "off",
        spellcheck: "false",
        oninput: (event) => {
          ctx.ui.set("typed", event.target.value);
          ctx.later(() => ctx.replace(routes.files({ q: event.target.value.trim(), pipeline })));
        },
      }),
      h(
        "select",
        {
          "aria-label": "Pipeline",
          onchange: (event) => ctx.replace(routes.files({ q: typed.trim(), pipeline: event.target.value })),
        },
        h("option", { key: "all", value: "", selected: pipeline === "" }, "All pipelines"),
        names.map((name) =>
          h("option", { key: `of ${name}`, value: name, selected: name === pipeline }, name),
        ),
      ),
    ),
    q.length < SHORTEST
      ? w.empty(
          names.length
            ? "Type at least two characters of a file's name. Files are found wherever they got to: waiting, failed, held or in the table."
            : "This configuration has no pipelines.",
        )
      : results(q, pipeline ? [pipeline] : names, ctx),
  ];
}

function results(q, names, ctx) {
  const found = [];
  let done = 0;
  let begun = 0;
  const summaries = new Map(ctx.overview.pipelines.map((item) => [item.name, item]));
  for (const name of names) {
    if (begun - done >= AT_ONCE) break;
    const entry = ctx.documents.get(
      `${routes.api("pipelines", name, "files")}${routes.query({ search: q, limit: 50 })}`,
      String(summaries.get(name)?.last_entry),
    );
    begun += 1;
    if (!entry.data && (!entry.error || entry.error.code === "being_read")) continue;
    done += 1;
    found.push({ name, entry });
  }
  const all = found.flatMap(({ name, entry }) =>
    (entry.data?.files ?? []).map((file) => ({ ...file, pipeline: name })),
  );
  const rows = newest(all).slice(0, DRAWN);
  const more = found.filter(({ entry }) => entry.data?.more).map(({ name }) => name);
  const notes = found
    .flatMap(({ name, entry }) => [
      entry.data?.note && `${name}: ${entry.data.note}`,
      entry.error && `${name}: ${entry.error.message}`,
    ])
    .filter(Boolean);
  return h(
    "div.block.results",
    { key: "results" },
    h(
      "p.caption",
      { role: "status" },
      done < names.length
        ? `Searched ${done} of ${names.length} pipelines …`
        : [
            `${format.count(all.length, "file")} with “${q}” in the name.`,
            rows.length < all.length && `The newest ${rows.length} are shown.`,
            more.length > 0 && "There may be more: the search ended early. Type more of the name.",
          ]
            .filter(Boolean)
            .join(" "),
    ),
    notes.map((note) => h("p.caption", h("bdi", note))),
    w.grid({
      label: "Files",
      rows,
      keyOf: (file) => `${file.pipeline} ${file.path}`,
      onOpen: (file) => ctx.go(routes.journey(file.pipeline, file.path)),
      columns: [
        {
          title: "File",
          wide: true,
          cell: (file) =>
            h(
              "div.name-cell",
              h("a.row-link.file", { href: routes.journey(file.pipeline, file.path) }, w.path(file.path)),
              h(
                "span.sub",
                names.length > 1 && [w.name(file.pipeline), file.reason && " · "],
                file.reason && h("bdi", file.reason),
              ),
            ),
        },
        { title: "State", cell: (file) => w.fileBadge(file.state) },
        { title: "Rows", num: true, cell: (file) => w.number(file.rows) },
        { title: "Size", num: true, cell: (file) => w.size(file.bytes) },
        { title: "Entry", num: true, cell: (file) => w.entryLink(file.pipeline, file.entry) },
        {
          title: "Version",
          num: true,
          cell: (file) => w.versionLink(summaries.get(file.pipeline)?.table, file.version),
        },
        { title: "Last change", num: true, cell: (file) => w.clock(file.at, ctx.now) },
      ],
      empty:
        done >= names.length &&
        !more.length &&
        w.empty(
          "No such file. Check the pipeline's sources: a file whose name does not match the source's pattern is never seen.",
        ),
    }),
  );
}

/** Sort files, newest first; those without a time come last. */
export function newest(files) {
  const at = (file) => (file.at ? Date.parse(file.at) : 0);
  return [...files].sort((one, other) => at(other) - at(one));
}

/** Show the state of one file in a sentence and step by step. */
export function journeyView(ctx) {
  const { name, path } = ctx.route;
  const listed = ctx.overview.pipelines.find((item) => item.name === name);
  const entry = ctx.documents.get(
    `${routes.api("pipelines", name, "file")}${routes.query({ path })}`,
    listed ? `${listed.last_entry} ${listed.state} ${listed.failed_files} ${listed.held_entries}` : "",
  );
  const journey = entry.data;
  const steps = journey ? stepsOf(journey, ctx.now) : [];
  return [
    h(
      "header.lead",
      { key: "lead" },
      w.crumbs(w.pipelineLink(name), h("a", { href: routes.files({ pipeline: name }) }, "Files")),
      h("h1.file-name", h("bdi", path)),
    ),
    !journey
      ? w.pending(entry, "The journey")
      : h(
          "div",
          { key: "journey" },
          h(
            "div.answer",
            h("div.answer-top", w.fileBadge(journey.state), numbers(journey)),
            h("p.answer-words", w.words(format.sentence(journey.answer))),
            journey.next.map((way) => h("div.way-out", w.wayOut(way))),
          ),
          w.section(
            "steps",
            "Step by step",
            null,
            steps.length
              ? h(
                  "ol.journey",
                  steps.map((step) =>
                    h(
                      "li",
                      { class: `step-${step.state}` },
                      h("span.step-mark", { "aria-hidden": "true" }, w.icon(STEP_TONES[step.state])),
                      h(
                        "div",
                        h(
                          "p.step-what",
                          w.words(format.sentence(step.what)),
                          step.entry !== undefined && [" ", w.entryLink(name, step.entry)],
                          step.version !== undefined && [" ", w.versionLink(listed?.table, step.version)],
                          h("span.sr", ` (${STEP_WORDS[step.state]})`),
                        ),
                        step.detail && h("p.step-detail", w.words(step.detail)),
                      ),
                      h(
                        "span.step-time",
                        step.at
                          ? [w.clock(step.at, ctx.now), h("span.sub", w.ago(step.at, ctx.now))]
                          : h("span.dim", STEP_WORDS[step.state]),
                      ),
                    ),
                  ),
                )
              : w.empty("Nothing is known of this file."),
          ),
        ),
  ];
}

const STEP_TONES = { done: "ok", now: "run", next: "off", bad: "bad" };
const STEP_WORDS = { done: "done", now: "now", next: "to come", bad: "stopped here" };

const BAD = ["failed", "held", "discarded", "skipped", "missing", "changed", "elsewhere"];
const WAITS = {
  part_read: "the rest of it waits to be read",
  redo: "waits to be read again",
  waiting: "waits to be read",
  journaled: "waits to be committed to the table",
};

/** Return the steps of a file from the answer of `blizzard why`: past ones by time, then future ones. */
export function stepsOf(answer, now) {
  const found = [];
  const add = (state, at, what, detail, link) => {
    const order = state !== "done" ? Infinity : at ? Date.parse(at) : (found.at(-1)?.order ?? 0);
    found.push({ state, at, what, detail, order, ...link });
  };
  const { stored, failure } = answer;
  const isReplaced = answer.state === "changed";
  if (stored && !isReplaced) add("done", stored.modified, "arrived in the source", format.bytes(stored.size));
  for (const read of answer.read) {
    const parts = [
      format.count(read.rows, "row"),
      read.blank && `${format.exact(read.blank)} blank`,
      read.filtered && `${format.exact(read.filtered)} filtered`,
      read.quarantined && `${format.count(read.quarantined, "bad line")} quarantined`,
    ];
    const words = `${format.count(read.lines, read.counted.slice(0, -1))}: ${parts.filter(Boolean).join(", ")}`;
    add("done", read.at, "read and journaled in entry", words, { entry: read.entry });
    if (read.committed && read.version === null) add("done", read.committed_at, "committed to the table");
    else if (read.committed)
      add("done", read.committed_at, "committed to the table as version", null, { version: read.version });
  }
  for (const one of answer.resolved)
    add("done", one.at, `${one.kind} of ${format.count(one.lines, "bad line")} in entry`, null, { entry: one.entry });
  for (const taken of [...answer.erased, answer.retraction].filter(Boolean))
    add("done", taken.at, `${format.count(taken.rows, "row")} taken out of the table in entry`, null, {
      entry: taken.entry,
    });
  if (failure) {
    const attempts = format.count(failure.attempts, "attempt");
    add("bad", failure.failed_at, `failed (${failure.code})`, `${failure.message}; ${attempts}`);
    const isDue = Date.parse(failure.next_try) <= now;
    if (failure.next_try) add("next", failure.next_try, isDue ? "is due to be tried again" : "is tried again");
  } else if (isReplaced && stored) {
    add("bad", stored.modified, "replaced in the source by another object", answer.detail ?? format.bytes(stored.size));
  } else if (BAD.includes(answer.state)) {
    const reason = [null, answer.state].includes(answer.reason) ? "" : ` (${answer.reason})`;
    add("bad", null, `${answer.state}${reason}`, answer.detail);
  }
  const waits = answer.state === "waiting" ? (WAITS[answer.reason] ?? WAITS.waiting) : WAITS[answer.state];
  if (waits) {
    const refused = answer.state === "waiting" && answer.detail !== null;
    const idle = answer.running === false ? "no blizzard is running" : null;
    add(refused ? "bad" : "now", null, waits, refused ? answer.detail : idle);
  }
  return found.sort((one, other) => one.order - other.order || 0);
}

function numbers(answer) {
  if (!answer.read.length) return null;
  const sum = (part) => answer.read.reduce((all, read) => all + part(read), 0);
  const bad = sum((read) => read.quarantined);
  return h(
    "span.dim",
    format.count(sum((read) => read.rows), "row"),
    bad ? `, ${format.count(bad, "bad line")}` : "",
  );
}
