// The recent days of a pipeline, and whether each is complete.

import { h } from "./dom.js";
import * as format from "./format.js";
import { shortened, weeksOf } from "./logic.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

// File states that get a column only if some day has such files.
const SELDOM = ["held", "changed", "retracted", "discarded", "removed", "altered"];
const WEEKDAYS = ["Mon", "", "Wed", "", "Fri", "", ""];
const COVERS =
  "Complete means that the files that landed on that day (UTC) have no more rows to come. Bad lines may wait in quarantine, and rows are not compared with the table: `blizzard audit` does that.";
const MONTH = 31;
const YEAR = 366;

/** Show the reconciliation of each day: the files that landed, and their states. */
export function days(name, summary, ctx) {
  const year = ctx.ui.get("year", false);
  const entry = ctx.documents.get(
    `${routes.api("pipelines", name, "days")}?limit=${year ? YEAR : MONTH}`,
    [summary.last_entry, summary.uncommitted_entries, summary.failed_files, summary.yesterday.standing].join(" "),
  );
  const spans = [false, true].map((value) => [value, value ? "year" : "month"]);
  const choice = w.segmented("Days", spans, year, (value) => ctx.ui.set("year", value));
  if (!entry.data) return w.section("days", "Days", choice, w.pending(entry, "The days"));
  const all = entry.data.days;
  const tally = (standing) => all.filter((day) => day.standing === standing).length;
  const words = all.length
    ? `${format.count(all.length, "day")}: ${Object.keys(w.STANDINGS)
        .filter(tally)
        .map((standing) => `${tally(standing)} ${w.STANDINGS[standing][1]}`)
        .join(", ")}.`
    : "";
  const isWhole = ctx.ui.get("all days", false);
  const picked = isWhole ? all : shortened(all);
  return w.section(
    "days",
    "Days",
    choice,
    entry.data.note && h("p.caption", h("bdi", entry.data.note)),
    all.length > 0 && calendar(weeksOf(all), words, ctx.now),
    words && h("p.caption", w.words(`${words} ${COVERS}`)),
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
        {
          title: "Landed",
          num: true,
          cell: (day) => [w.number(day.landed), part(day.deleted, "deleted"), part(day.overwritten, "overwritten")],
        },
        ...["in_table", "journaled", "waiting"].map((state) => files(state)),
        {
          title: "Failed",
          num: true,
          cell: (day) => [
            day.failed ? h("span.tone-bad", w.number(day.failed)) : quiet(0),
            part(day.lost, "lost"),
          ],
        },
        ...SELDOM.filter((state) => all.some((day) => day[state])).map((state) => files(state)),
        all.some((day) => day.quarantined_lines) && {
          title: "Bad lines",
          num: true,
          cell: (day) => quiet(day.quarantined_lines),
        },
        { title: "Rows", num: true, cell: (day) => w.number(day.rows) },
        { title: "Size", num: true, cell: (day) => w.size(day.bytes) },
      ].filter(Boolean),
      empty: w.empty("No days yet. The first appears with the first file."),
    }),
    (picked.length < all.length || isWhole) &&
      w.fold(ctx, "all days", `Show all ${all.length} days`, "Show fewer days"),
  );
}

// One column per week and one row per weekday; a month's name is above the week that it begins in.
function calendar(weeks, words, now) {
  const few = weeks.length < 8;
  const label = (week, at) => {
    const first = week.find((day) => day && (at === 0 || day.name.endsWith("-01")));
    if (!first || (!few && [1, 2].includes(at))) return null;
    const text = format.dayMonth(first.name, "UTC");
    return few ? text : text.replace(/^\d+ /, "");
  };
  return h(
    "div.calendar",
    { role: "img", "aria-label": words, class: few ? "few" : "" },
    ["", ...WEEKDAYS].map((name) => h("span.weekday", name)),
    weeks.map((week, at) => [
      h("span.month", label(week, at)),
      week.map((day) =>
        day === null
          ? h("span")
          : h(
              "span.day",
              {
                class: `day-${day.standing}`,
                title: `${format.day(day.name, now)}: ${w.STANDINGS[day.standing][1]}, ${format.exact(day.in_table)} of ${format.exact(day.landed)} files in the table`,
              },
              String(Number(day.name.slice(-2))),
            ),
      ),
    ]),
  );
}

const files = (state) => ({ title: w.FILE_WORDS[state], num: true, cell: (day) => quiet(day[state]) });
const part = (count, word) => count > 0 && h("span.sub", `${format.exact(count)} ${word}`);
const quiet = (value) => (value ? w.number(value) : h("span.dim", "0"));
