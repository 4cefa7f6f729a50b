// "Is everything of yesterday in?", and the days before.

import { h } from "./dom.js";
import * as format from "./format.js";
import * as routes from "./routes.js";
import * as w from "./widgets.js";

const MONTH = 31;
const YEAR = 366;
const WORDS = { true: "complete", false: "incomplete", null: "not known" };

/** The answer in a plain sentence. */
export function verdictLine(verdict) {
  const tone = verdict.complete === true ? "ok" : verdict.complete === false ? "bad" : "off";
  return h("p.verdict", { key: "verdict", class: `tone-${tone}` }, w.icon(tone),
    h("span", null, h("span.question", null, "Is everything of yesterday in? "), w.words(verdict.sentence)));
}

/** Show the reconciliation of each day: what landed against what is in the table. */
export function days(name, summary, ctx) {
  const year = ctx.ui.get("year", false);
  const entry = ctx.documents.get(`${routes.api("pipelines", name, "days")}?limit=${year ? YEAR : MONTH}`, String(summary.last_entry));
  const choice = h("div.segmented", { role: "group", "aria-label": "Days" },
    [["month", false], ["year", true]].map(([label, value]) => h("button", { type: "button", "aria-pressed": String(year === value), onclick: () => ctx.ui.set("year", value) }, label)));
  if (!entry.data) return w.section("days", "Days", choice, w.pending(entry, "The days"));
  const all = entry.data.days;
  const gaps = all.filter((day) => day.complete === false);
  const words = all.length ? `${format.count(all.length, "day")}: ${all.filter((day) => day.complete === true).length} complete, ${gaps.length} incomplete, ${all.filter((day) => day.complete === null).length} not known.` : "";
  const picked = ctx.ui.get("all days", false) ? all : shortened(all);
  return w.section("days", "Days", choice,
    entry.data.note && h("p.caption", null, h("bdi", null, entry.data.note)),
    all.length > 0 && h("div.calendar", { role: "img", "aria-label": words }, [...all].reverse().map((day) =>
      h("span.day", { key: day.day, class: `day-${WORDS[String(day.complete)].replace(" ", "-")}`, title: `${format.day(day.day, ctx.now)}: ${WORDS[String(day.complete)]}, ${format.exact(day.in_table)} of ${format.exact(day.landed)} files in the table` }))),
    words && h("p.caption", null, words),
    w.grid({
      label: "Days", rows: picked, keyOf: (day) => day.day,
      columns: [
        { title: "Day", cell: (day) => h("time", { datetime: day.day, title: `${day.day}, in UTC` }, format.day(day.day, ctx.now)) },
        { title: "Verdict", cell: (day) => verdictBadge(day.complete) },
        { title: "Landed", num: true, cell: (day) => w.number(day.landed) },
        { title: "In the table", num: true, cell: (day) => w.number(day.in_table) },
        { title: "Journaled", num: true, cell: (day) => quiet(day.journaled) },
        { title: "Waiting", num: true, cell: (day) => quiet(day.waiting) },
        { title: "Failed", num: true, cell: (day) => (day.failed ? h("span.tone-bad", null, w.number(day.failed)) : quiet(0)) },
        { title: "Rows", num: true, cell: (day) => w.number(day.rows) },
        { title: "Size", num: true, cell: (day) => w.size(day.bytes) },
      ],
      empty: w.empty("No day is known yet: the first one is there when the first file is."),
    }),
    (picked.length < all.length || ctx.ui.get("all days", false)) && h("button.link", { type: "button", "aria-expanded": String(ctx.ui.get("all days", false)), onclick: () => ctx.ui.set("all days", !ctx.ui.get("all days", false)) },
      ctx.ui.get("all days", false) ? "Show fewer days" : `Show all ${all.length} days`));
}

/** Return the last week, and every day before it that is not complete, up to thirty. */
export function shortened(all) {
  return all.filter((day, at) => at < 7 || day.complete === false).slice(0, 30);
}

/** The verdict of a day in a word. */
export function verdictBadge(complete, title) {
  const [tone, word] = complete === true ? ["ok", "Complete"] : complete === false ? ["bad", "Incomplete"] : ["off", "Not known"];
  return w.badge(tone, word, title);
}

const quiet = (value) => (value ? w.number(value) : h("span.dim", null, "0"));
