// Small charts, drawn by hand as SVG. Geometry first (pure), then the drawing.

import { h } from "./dom.js";
import { bytes, clock, compact, count, dayMonth, duration, exact, hourMinute } from "./format.js";

/** Return the end of an axis for a value: the next 1, 2, 2.5 or 5 times a power of ten. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((each) => each * power >= value * 0.999999);
  return step * power;
}

/** Return the end of an axis of bytes: the next power of two. */
export function roundUpBytes(value) {
  return value > 0 ? 2 ** Math.ceil(Math.log2(value)) : 1;
}

/** Return the end of an axis of seconds: a time whose half is round, too. */
export function roundUpSeconds(value) {
  const steps = [1, 60, 3600].flatMap((unit) => [1, 2, 4, 10, 20, 30].map((each) => each * unit));
  return steps.find((each) => each >= value && each < 86_400) ?? roundUp(value / 86_400) * 86_400;
}

/** Return the outline of a column chart as an SVG path, with gaps for nulls. */
export function area(values, width, height, top) {
  const wide = width / values.length;
  const y = (value) => round(height - (top ? (value / top) * height : 0));
  const isKnown = (at) => (values[at] ?? null) !== null;
  return values
    .map((value, at) => {
      if (!isKnown(at)) return "";
      const begin = isKnown(at - 1) ? "" : `M${round(at * wide)} ${round(height)}`;
      const end = isKnown(at + 1) ? "" : `V${round(height)}Z`;
      return `${begin}V${y(value)}H${round((at + 1) * wide)}${end}`;
    })
    .join("");
}

/** Return the position of a duration on a logarithmic scale from 0.1 s (0) to a week (1). */
export function onLogScale(seconds) {
  const low = Math.log10(0.1);
  const high = Math.log10(604_800);
  return Math.min(1, Math.max(0, (Math.log10(Math.max(seconds, 0.1)) - low) / (high - low)));
}

/** Return the ticks of a time axis: every `every` minutes of the local day. */
export function timeTicks(start, end, every) {
  const ticks = [];
  const first = new Date(start);
  first.setMinutes(0, 0, 0);
  for (let at = first.getTime(); at <= end; at += 900_000) {
    const date = new Date(at);
    if (at >= start && (date.getHours() * 60 + date.getMinutes()) % every === 0) ticks.push(at);
  }
  return ticks;
}

/** Return the minutes between the ticks of a time axis; a narrow one has fewer ticks. */
export function tickMinutes(hours, narrow) {
  const [, wide, few] = [
    [1.5, 15, 30],
    [8, 60, 120],
    [30, 180, 360],
    [Infinity, 1440, 2880],
  ].find(([most]) => hours <= most);
  return narrow ? few : wide;
}

const round = (value) => Math.round(value * 100) / 100;

/** Draw a sparkline of a day; its numbers are beside it. */
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

/** Format a time for axes and tooltips, with its day if that is not today. */
export function when(at, now) {
  return new Date(at).toDateString() === new Date(now).toDateString() ? hourMinute(at) : clock(at, now);
}

/**
 * Draw values over time, and the time and values of the step under the pointer or chosen by arrow keys.
 *
 * `layers` are `{name, values}`, from back to front; `tip` returns the values of a step in words.
 */
function plot(series, { label, now, narrow, hover, onHover, top, show, layers, tip }) {
  const [width, height] = [960, 168];
  const steps = layers[0].values.length;
  const start = Date.parse(series.start);
  const span = steps * series.step_secs * 1000;
  const x = (at) => round(((at - start) / span) * width);
  const wide = width / steps;
  const picked = hover !== null && hover < steps ? hover : null;
  const point = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = Math.floor(((event.clientX - box.left) / box.width) * steps);
    onHover(Math.max(0, Math.min(steps - 1, at)));
  };
  const lines = [0, 0.5, 1];
  const hours = span / 3_600_000;
  const edge = span * (narrow ? 0.07 : 0.03);
  const ticks = timeTicks(start + edge, Math.min(start + span - edge, now), tickMinutes(hours, narrow));
  const word = (at) => (hours > 30 ? dayMonth(at) : hourMinute(at));
  const timeOf = (step) => when(start + step * series.step_secs * 1000, now);
  const spanOf = (step) => `${timeOf(step)} – ${timeOf(step + 1)}`;
  return h(
    "div.chart",
    h(
      "div.chart-y",
      { "aria-hidden": "true" },
      lines.map((share) => h("span", share ? show(top * share) : "0")).reverse(),
    ),
    h(
      "div.chart-plot",
      { onpointermove: point, onpointerdown: point, onpointerleave: () => onHover(null) },
      h(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
        lines.map((share) => h("path.grid", { d: `M0 ${round(height * (1 - share))}H${width}` })),
        ticks.map((at) => h("path.grid.grid-v", { d: `M${x(at)} 0V${height}` })),
        layers.map(({ name, values }) =>
          h("path", { class: name, d: area(values, width, height, top) }),
        ),
        picked !== null && h("rect.picked", { x: round(picked * wide), y: 0, width: round(wide), height }),
      ),
      h("input.sr", {
        type: "range",
        max: steps - 1,
        value: picked ?? steps - 1,
        "aria-label": "Step of the chart",
        "aria-valuetext": [...tip(picked ?? steps - 1), spanOf(picked ?? steps - 1)].join(", "),
        onfocus: () => onHover(steps - 1),
        oninput: (event) => onHover(Number(event.target.value)),
        onblur: () => onHover(null),
      }),
      picked !== null &&
        h(
          "p.chart-tip",
          {
            class: picked > steps / 2 ? "left" : "",
            "aria-hidden": "true",
            share: String((picked + 0.5) / steps),
          },
          tip(picked).map((text) => h("b", text)),
          h("span", spanOf(picked)),
        ),
    ),
    h(
      "div.chart-x",
      { "aria-hidden": "true" },
      ticks.map((at) => h("span", { key: at, share: String((at - start) / span) }, word(at))),
    ),
  );
}

/** Draw rows, bytes or files over time. */
export function throughput(series, kind, options) {
  const values = series[kind];
  const isBytes = kind === "bytes";
  return plot(series, {
    ...options,
    top: isBytes ? roundUpBytes(Math.max(...values)) : roundUp(Math.max(...values, 2)),
    show: isBytes ? bytes : compact,
    layers: [{ name: "area", values }],
    tip: (at) => [isBytes ? bytes(values[at]) : `${exact(values[at])} ${kind}`],
  });
}

/** Draw freshness over time: the worst value of each step behind its median. */
export function freshnessTrend(series, options) {
  const { worst_secs: worst, median_secs: median, files } = series;
  return plot(series, {
    ...options,
    top: roundUpSeconds(Math.max(...worst.map((each) => each ?? 0), 1)),
    show: duration,
    layers: [
      { name: "area worst", values: worst },
      { name: "area", values: median },
    ],
    tip: (at) =>
      files[at]
        ? [`median ${duration(median[at])}`, `worst ${duration(worst[at])}`, count(files[at], "file")]
        : ["no file"],
  });
}

const MARKS = [
  [1, "1 s"],
  [60, "1 min"],
  [3600, "1 h"],
  [86_400, "1 d"],
];

/** Draw median and worst freshness on a logarithmic scale up to a week. */
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
