// Small charts, drawn by hand as SVG. Geometry first (pure), then the drawing.

import { h } from "./dom.js";
import { bytes, compact, duration, exact, hourMinute } from "./format.js";

/** Return the round number at or above a value where an axis ends: 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= value * 0.999999);
  return step * power;
}

/** Return the same for bytes, where powers of two are round. */
export function roundUpBytes(value) {
  return value > 0 ? 2 ** Math.ceil(Math.log2(value)) : 1;
}

/** Return the outline of columns over a width and a height, as the data of an SVG path. */
export function area(values, width, height, top) {
  if (!values.length) return "";
  const wide = width / values.length;
  const y = (value) => round(height - (top ? (value / top) * height : 0));
  let path = `M0 ${round(height)}`;
  values.forEach((value, at) => {
    path += `V${y(value)}H${round((at + 1) * wide)}`;
  });
  return `${path}V${round(height)}Z`;
}

/** Return where a number of seconds stands between a tenth of a second and a week, from 0 to 1, by powers. */
export function onLogScale(seconds) {
  const low = Math.log10(0.1);
  const high = Math.log10(604_800);
  return Math.min(1, Math.max(0, (Math.log10(Math.max(seconds, 0.1)) - low) / (high - low)));
}

/** Return the times of an axis: full hours on the reader's clock, far enough apart to be read. */
export function hourTicks(start, end, every) {
  const ticks = [];
  const first = new Date(start);
  first.setMinutes(0, 0, 0);
  for (let at = first.getTime(); at <= end; at += 3_600_000) {
    if (at >= start && new Date(at).getHours() % every === 0) ticks.push(at);
  }
  return ticks;
}

const round = (value) => Math.round(value * 100) / 100;

/** Draw what a day was like in the space of a word; its numbers stand beside it. */
export function spark(values, label) {
  const width = 96;
  const height = 22;
  return h(
    "svg.spark",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    h("path.spark-base", { d: `M0 ${height - 0.5}H${width}` }),
    h("path.spark-area", {
      d: area(values, width, height - 2, Math.max(...values, 0)),
      transform: "translate(0 2)",
    }),
  );
}

/** Draw rows, bytes or files over time, with a line under the pointer that tells its time and value. */
export function throughput(series, kind, { label, now, hover, onHover }) {
  const values = series[kind];
  const [width, height] = [960, 168];
  const top = kind === "bytes" ? roundUpBytes(Math.max(...values)) : roundUp(Math.max(...values, 2));
  const show = kind === "bytes" ? bytes : compact;
  const start = Date.parse(series.start);
  const span = values.length * series.step_secs * 1000;
  const x = (at) => round(((at - start) / span) * width);
  const wide = width / values.length;
  const picked = hover !== null && hover < values.length ? hover : null;
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    onHover(
      Math.max(
        0,
        Math.min(values.length - 1, Math.floor(((event.clientX - box.left) / box.width) * values.length)),
      ),
    );
  };
  const lines = [0, 0.5, 1];
  const ticks = hourTicks(
    start + span * 0.03,
    Math.min(start + span * 0.97, now),
    span > 30 * 3_600_000 ? 12 : 3,
  );
  return h(
    "div.chart",
    null,
    h(
      "div.chart-y",
      { "aria-hidden": "true" },
      lines.map((share) => h("span", null, share ? show(top * share) : "0")).reverse(),
    ),
    h(
      "div.chart-plot",
      { onpointermove: point, onpointerleave: () => onHover(null) },
      h(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
        lines.map((share) => h("path.grid", { d: `M0 ${round(height * (1 - share))}H${width}` })),
        ticks.map((at) => h("path.grid.grid-v", { d: `M${x(at)} 0V${height}` })),
        h("path.area", { d: area(values, width, height, top) }),
        picked !== null && h("rect.picked", { x: round(picked * wide), y: 0, width: round(wide), height }),
      ),
      picked !== null &&
        h(
          "p.chart-tip",
          {
            class: picked > values.length / 2 ? "left" : "",
            "aria-hidden": "true",
            share: String((picked + 0.5) / values.length),
          },
          h("b", { title: exact(values[picked]) }, show(values[picked]), kind === "bytes" ? "" : ` ${kind}`),
          h(
            "span",
            null,
            `${hourMinute(start + picked * series.step_secs * 1000)} – ${hourMinute(start + (picked + 1) * series.step_secs * 1000)}`,
          ),
        ),
    ),
    h(
      "div.chart-x",
      { "aria-hidden": "true" },
      ticks.map((at) => h("span", { key: at, share: String((at - start) / span) }, hourMinute(at))),
    ),
  );
}

/** Draw how fresh the table was over time: the worst of each step behind its median. */
export function freshnessTrend(series, label) {
  const [width, height] = [320, 48];
  const worst = series.worst_secs.map((each) => each ?? 0);
  const top = Math.max(...worst, 0);
  const drawn = (values) => area(values.map((each) => each ?? 0), width, height - 2, top);
  return h(
    "svg.trend",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, preserveAspectRatio: "none" },
    h("path.spark-base", { d: `M0 ${height - 0.5}H${width}` }),
    h("path.trend-worst", { d: drawn(worst), transform: "translate(0 2)" }),
    h("path.spark-area", { d: drawn(series.median_secs), transform: "translate(0 2)" }),
  );
}

const MARKS = [
  [1, "1 s"],
  [60, "1 min"],
  [3600, "1 h"],
  [86_400, "1 d"],
];

/** Draw median and worst freshness on a scale from instants to a week. */
export function freshnessScale(median, worst) {
  const width = 320;
  const at = (secs) => round(8 + onLogScale(secs) * (width - 16));
  return h(
    "svg.scale",
    {
      viewBox: `0 0 ${width} 34`,
      role: "img",
      "aria-label": `Freshness: median ${duration(median)}, worst ${duration(worst)}`,
    },
    h("path.scale-line", { d: `M8 10H${width - 8}` }),
    MARKS.map(([secs, name]) => [
      h("path.scale-tick", { d: `M${at(secs)} 6V14` }),
      h("text.scale-text", { x: at(secs), y: 29, "text-anchor": "middle" }, name),
    ]),
    h("path.scale-span", { d: `M${at(median)} 10H${at(worst)}` }),
    h("circle.scale-worst", { cx: at(worst), cy: 10, r: 4.5 }),
    h("circle.scale-median", { cx: at(median), cy: 10, r: 5 }),
  );
}
