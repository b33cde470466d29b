// Pictures as SVG. Lines and bars are drawn in a stretched box; their labels are HTML, so they keep their size. Each has a table.

import { clock, number } from "./format.js";
import { button, dataTable, levelOf } from "./ui.js";
import { computed, h, signal, svg } from "./view.js";

/** @typedef {(number | null)[]} Values */
/** @typedef {{ name: string, values: Values }} Series */

/** Lines differ by colour and by dashes. */
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 3", "10 4"];
const HEIGHT = 100;

/** @param {number} index */
const colour = (index) => `var(--c${(index % 6) + 1})`;

/** The smallest of 1, 2, 5 × 10ⁿ that is not below. @param {number} value */
function roundUp(value) {
  if (!(value > 0)) return 1;
  const base = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((n) => n * base).find((n) => n >= value) ?? value;
}

/** @param {Values} values @param {number} max @param {number} height */
function path(values, max, height) {
  let text = "";
  let pen = false;
  for (const [i, value] of values.entries()) {
    if (value === null) {
      pen = false;
      continue;
    }
    text += `${pen ? "L" : "M"}${i} ${(height - (Math.min(value, max) / max) * height).toFixed(2)}`;
    pen = true;
  }
  return text;
}

/** At most `n` points, each the largest of its span: peaks stay visible. @param {Values} values @param {number} n @returns {Values} */
export function thin(values, n) {
  if (values.length <= n) return values;
  const span = values.length / n;
  return Array.from({ length: n }, (_, i) => {
    const part = values.slice(Math.floor(i * span), Math.max(Math.floor(i * span) + 1, Math.floor((i + 1) * span)));
    return part.reduce((a, b) => (a === null ? b : b === null ? a : Math.max(a, b)), null);
  });
}

/**
 * A small line without axes. `label` says what it shows; its last and largest value are added.
 * @param {() => Values} values
 * @param {{ label: string, level?: import("./ui.js").Level | (() => import("./ui.js").Level), format?: (n: number | null) => string }} options
 */
export function sparkline(values, options) {
  const points = computed(() => thin(values(), 120));
  const max = computed(() => Math.max(0, ...points.value.map((v) => v ?? 0)) * 1.1 || 1);
  const format = options.format ?? number;
  const level = () => (typeof options.level === "function" ? options.level() : (options.level ?? "none"));
  return svg(
    "svg",
    {
      class: () => `spark ${level()}`,
      viewBox: () => `0 0 ${Math.max(1, points.value.length - 1)} 24`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": () =>
        `${options.label}: now ${format(points.value.at(-1) ?? null)}, at most ${format(Math.max(0, ...points.value.map((v) => v ?? 0)))}`,
    },
    svg("path", { class: "area", d: () => areaPath(points.value, max.value, 24) }),
    svg("path", { class: "line", d: () => path(points.value, max.value, 24), "vector-effect": "non-scaling-stroke" }),
  );
}

/** @param {Values} values @param {number} max @param {number} height */
function areaPath(values, max, height) {
  const from = values.findIndex((v) => v !== null);
  if (from < 0) return "";
  const filled = values.slice(from).map((v) => v ?? 0);
  const line = filled.map((v, i) => `L${i + from} ${(height - (Math.min(v, max) / max) * height).toFixed(2)}`).join("");
  return `M${from} ${height}${line}L${values.length - 1} ${height}Z`;
}

/**
 * Lines over time with axes, a legend, a readout under the pointer, and a table.
 * @param {{ title: string, series: () => Series[], until: () => string | null, stepS: () => number, format?: (n: number | null) => string,
 *   height?: number }} options
 */
export function lineChart(options) {
  const format = options.format ?? number;
  const table = signal(false);
  const at = signal(/** @type {number | null} */ (null));
  const all = computed(() => {
    const series = options.series().map((one) => ({ ...one, values: thin(one.values, 240) }));
    const points = Math.max(1, ...series.map((one) => one.values.length));
    const most = Math.max(1, ...options.series().map((one) => one.values.length));
    const max = roundUp(Math.max(0, ...series.flatMap((one) => one.values.map((v) => v ?? 0))));
    return { series, points, max, stepS: (options.stepS() * most) / points };
  });
  /** @param {number} index */
  const timeAt = (index) => {
    const until = Date.parse(options.until() ?? "");
    if (Number.isNaN(until)) return "–";
    return clock(new Date(until - (all.value.points - 1 - index) * all.value.stepS * 1000).toISOString());
  };
  const plot = svg(
    "svg",
    {
      viewBox: () => `0 0 ${Math.max(1, all.value.points - 1)} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": () =>
        `${options.title}: ${all.value.series.map((one) => `${one.name} now ${format(one.values.at(-1) ?? null)}`).join(", ")}`,
    },
    [0.25, 0.5, 0.75].map((y) =>
      svg("line", {
        class: "grid",
        x1: 0,
        x2: () => Math.max(1, all.value.points - 1),
        y1: y * HEIGHT,
        y2: y * HEIGHT,
        "vector-effect": "non-scaling-stroke",
      }),
    ),
    () =>
      all.value.series.map((one, i) =>
        svg("path", {
          class: "line",
          d: path(one.values, all.value.max, HEIGHT),
          style: { stroke: colour(i) },
          "stroke-dasharray": DASHES[i % DASHES.length] || null,
          "vector-effect": "non-scaling-stroke",
        }),
      ),
    () =>
      at.value === null
        ? null
        : svg("line", { class: "cursor", x1: at.value, x2: at.value, y1: 0, y2: HEIGHT, "vector-effect": "non-scaling-stroke" }),
  );
  const move = (/** @type {PointerEvent} */ e) => {
    const box = plot.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
    at.value = Math.round(share * (all.peek().points - 1));
  };
  const legend = h("ul", { class: "legend" }, () => {
    const index = at.value ?? all.value.points - 1;
    return [
      ...all.value.series.map((one, i) =>
        h(
          "li",
          null,
          svg(
            "svg",
            { width: 22, height: 8, "aria-hidden": "true" },
            svg("line", {
              x1: 0,
              x2: 22,
              y1: 4,
              y2: 4,
              "stroke-width": 2,
              style: { stroke: colour(i) },
              "stroke-dasharray": DASHES[i % DASHES.length] || null,
            }),
          ),
          one.name === options.title ? "now " : [h("bdi", null, one.name), " "],
          h("b", { class: "num" }, format(one.values[index] ?? null)),
        ),
      ),
      h("li", { class: "mu num" }, at.value === null ? "" : `at ${timeAt(index)}`),
    ];
  });
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", null, h("span", { class: "chart-title" }, options.title), tableSwitch(table), legend),
    () =>
      table.value
        ? historyTable(options.title, () => all.value, timeAt, format)
        : h(
            "div",
            { class: "plot", style: { height: `${options.height ?? 132}px` } },
            h(
              "div",
              { class: "y mu num", "aria-hidden": "true" },
              h("span", null, () => format(all.value.max)),
              h("span", null, () => format(all.value.max / 2)),
              h("span", null, "0"),
            ),
            h("div", { class: "area-box", onpointermove: move, onpointerleave: () => (at.value = null) }, plot),
            h(
              "div",
              { class: "x mu num", "aria-hidden": "true" },
              h("span", null, () => timeAt(0).slice(0, -3)),
              h("span", null, () => timeAt((all.value.points - 1) / 2).slice(0, -3)),
              h("span", null, () => timeAt(all.value.points - 1).slice(0, -3)),
            ),
          ),
  );
}

/** @param {import("./view.js").Signal<boolean>} table */
function tableSwitch(table) {
  return button("Show as a table", {
    small: true,
    kind: "quiet",
    pressed: () => table.value,
    onclick: () => (table.value = !table.peek()),
  });
}

/** @param {string} title @param {() => { series: Series[], points: number }} all @param {(i: number) => string} timeAt @param {(n: number | null) => string} format */
function historyTable(title, all, timeAt, format) {
  const names = all().series.map((one) => one.name);
  return dataTable({
    label: title,
    window: 40,
    columns: [
      { title: "Time", cell: (/** @type {number} */ i) => h("span", { class: "num" }, timeAt(i)) },
      ...names.map((name, n) => ({
        title: h("bdi", null, name),
        class: "n",
        cell: (/** @type {number} */ i) => format(all().series[n]?.values[i] ?? null),
      })),
    ],
    rows: () => Array.from({ length: all().points }, (_, i) => all().points - 1 - i),
    key: (i) => i,
  });
}

/**
 * Horizontal bars with their values: a picture that is its own table.
 * @param {{ label: string, bars: () => { name: unknown, value: number, text?: string, level?: import("./ui.js").Level }[], max?: () => number }} options
 */
export function barChart(options) {
  const max = () => options.max?.() ?? Math.max(0, ...options.bars().map((bar) => bar.value));
  return h(
    "table",
    { class: "bars", "aria-label": options.label },
    h("tbody", null, () =>
      options.bars().map((bar, i) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, bar.level && bar.level !== "none" ? `${levelOf(bar.level)[1]} ` : null, bar.name),
          h(
            "td",
            { class: "bar-cell", "aria-hidden": "true" },
            h(
              "span",
              { class: "bar" },
              h("i", {
                class: bar.level ?? "",
                style: {
                  width: `${max() > 0 ? Math.min(100, (bar.value / max()) * 100) : 0}%`,
                  ...(bar.level ? {} : { background: colour(i) }),
                },
              }),
            ),
          ),
          h("td", { class: "n" }, bar.text ?? number(bar.value)),
        ),
      ),
    ),
  );
}

/**
 * Bars over time as a small picture, for the number of events of each span.
 * @param {() => number[]} values
 * @param {{ label: string }} options
 */
export function histogram(values, options) {
  const max = computed(() => Math.max(1, ...values()));
  return svg(
    "svg",
    {
      class: "histogram",
      viewBox: () => `0 0 ${Math.max(1, values().length)} 40`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": options.label,
    },
    () => values().map((v, i) => svg("rect", { x: i + 0.08, width: 0.84, y: 40 - (v / max.value) * 40, height: (v / max.value) * 40 })),
  );
}
