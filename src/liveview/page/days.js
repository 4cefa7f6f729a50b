// The days of a pipeline: "is everything of yesterday in?"

import { h } from "./dom.js";
import * as format from "./format.js";
import { shortened } from "./logic.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

// States of files that a day has a column for only where it is needed.
const SELDOM = [
  ["Lost", "lost"],
  ["Held", "held"],
  ["Changed", "changed"],
  ["Retracted", "retracted"],
  ["Discarded", "discarded"],
  ["Removed", "removed"],
  ["Altered", "altered"],
  ["Deleted", "deleted"],
  ["Overwritten", "overwritten"],
  ["Bad lines", "quarantined_lines"],
];
const COVERS =
  "Complete: of the files that landed on that day, in UTC, nothing more is to come. Bad lines may wait in quarantine, and rows are not compared with the table: `blizzard audit` does that.";
const MONTH = 31;
const YEAR = 366;

/** Show the reconciliation of each day: what landed against what is in the table. */
export function days(name, summary, ctx) {
  const year = ctx.ui.get("year", false);
  const entry = ctx.documents.get(
    `${routes.api("pipelines", name, "days")}?limit=${year ? YEAR : MONTH}`,
    [summary.last_entry, summary.uncommitted_entries, summary.failed_files, summary.yesterday.standing].join(" "),
  );
  const choice = h(
    "div.segmented",
    { role: "group", "aria-label": "Days" },
    [
      ["month", false],
      ["year", true],
    ].map(([label, value]) =>
      h(
        "button",
        { type: "button", "aria-pressed": String(year === value), onclick: () => ctx.ui.set("year", value) },
        label,
      ),
    ),
  );
  if (!entry.data) return w.section("days", "Days", choice, w.pending(entry, "The days"));
  const all = entry.data.days;
  const tally = (standing) => all.filter((day) => day.standing === standing).length;
  const word = (day) => w.STANDINGS[day.standing][1];
  const words = all.length
    ? `${format.count(all.length, "day")}: ${Object.keys(w.STANDINGS)
        .filter(tally)
        .map((standing) => `${tally(standing)} ${w.STANDINGS[standing][1]}`)
        .join(", ")}.`
    : "";
  const picked = ctx.ui.get("all days", false) ? all : shortened(all);
  return w.section(
    "days",
    "Days",
    choice,
    entry.data.note && h("p.caption", null, h("bdi", null, entry.data.note)),
    all.length > 0 &&
      h(
        "div.calendar",
        { role: "img", "aria-label": words },
        [...all].reverse().map((day) =>
          h("span.day", {
            key: day.name,
            class: `day-${day.standing}`,
            title: `${format.day(day.name, ctx.now)}: ${word(day)}, ${format.exact(day.in_table)} of ${format.exact(day.landed)} files in the table`,
          }),
        ),
      ),
    words && h("p.caption", null, w.words(`${words} ${COVERS}`)),
    w.grid({
      label: "Days",
      rows: picked,
      keyOf: (day) => day.name,
      columns: [
        {
          title: "Day",
          cell: (day) =>
            h("time", { datetime: day.name, title: `${day.name}, in UTC` }, format.day(day.name, ctx.now)),
        },
        { title: "Verdict", cell: (day) => w.dayBadge(day.standing) },
        { title: "Landed", num: true, cell: (day) => w.number(day.landed) },
        { title: "In the table", num: true, cell: (day) => w.number(day.in_table) },
        { title: "To commit", num: true, cell: (day) => quiet(day.journaled) },
        { title: "To read", num: true, cell: (day) => quiet(day.waiting) },
        {
          title: "Failed",
          num: true,
          cell: (day) => (day.failed ? h("span.tone-bad", null, w.number(day.failed)) : quiet(0)),
        },
        ...SELDOM.filter(([, key]) => all.some((day) => day[key])).map(([title, key]) => ({
          title,
          num: true,
          cell: (day) => quiet(day[key]),
        })),
        { title: "Rows", num: true, cell: (day) => w.number(day.rows) },
        { title: "Size", num: true, cell: (day) => w.size(day.bytes) },
      ],
      empty: w.empty("No day is known yet: the first one is there when the first file is."),
    }),
    (picked.length < all.length || ctx.ui.get("all days", false)) &&
      h(
        "button.link",
        {
          type: "button",
          "aria-expanded": String(ctx.ui.get("all days", false)),
          onclick: () => ctx.ui.set("all days", !ctx.ui.get("all days", false)),
        },
        ctx.ui.get("all days", false) ? "Show fewer days" : `Show all ${all.length} days`,
      ),
  );
}

const quiet = (value) => (value ? w.number(value) : h("span.dim", null, "0"));
