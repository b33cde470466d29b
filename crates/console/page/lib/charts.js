// Pictures as SVG. Lines and bars are drawn in a stretched box; their labels are HTML, so they keep their size. Each has a table.

import { clock, number } from "./format.js";
import { link } from "./router.js";
import { button, dataTable, levelOf } from "./ui.js";
import { computed, h, list, onDispose, signal, svg, when } from "./view.js";

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
  return button("As a table", { small: true, kind: "quiet", pressed: () => table.value, onclick: () => (table.value = !table.peek()) });
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

// ------------------------------------------------------------------------------------------------------------------ Flow

/**
 * A node of the flow: `lines` are shown under its name.
 * @typedef {{ id: string, name: string, lines: string[], state?: string, href?: string }} FlowNode
 * @typedef {{ from: string, to: string, perS: number, text?: string, stopped?: boolean, kind?: "aggregate" }} FlowEdge
 * @typedef {{ columns: FlowNode[][], edges: FlowEdge[] }} FlowGraph
 */

const NODE = 54;
const GAP = 14;

/**
 * Columns of nodes with edges between them; the width of an edge is its rate. Nodes are kept while their figures change.
 * @param {() => FlowGraph} graph
 * @param {{ label: string }} options
 */
export function flow(graph, options) {
  const width = signal(0);
  const layout = computed(() => place(graph(), width.value));
  const box = h(
    "div",
    { class: "flow" },
    when(
      () => width.value > 0,
      () =>
        svg(
          "svg",
          { width: () => layout.value.width, height: () => layout.value.height, role: "group", "aria-label": options.label },
          list(
            () => layout.value.edges,
            (edge) => `${edge.from} ${edge.to}`,
            flowEdge,
          ),
          list(
            () => layout.value.nodes,
            (place) => place.node.id,
            flowNode,
          ),
        ),
    ),
  );
  const observer = new ResizeObserver((entries) => {
    const next = Math.floor(entries[0]?.contentRect.width ?? 0);
    if (next > 0) width.value = next;
  });
  observer.observe(box);
  onDispose(() => observer.disconnect());
  return box;
}

/** @typedef {{ x: number, y: number, width: number, node: FlowNode }} Place */
/** @typedef {FlowEdge & { path: string, stroke: string, level: string }} PlacedEdge */

/**
 * @param {FlowGraph} graph
 * @param {number} width
 * @returns {{ width: number, height: number, nodes: Place[], edges: PlacedEdge[] }}
 */
function place(graph, width) {
  const columns = graph.columns.filter((column) => column.length > 0);
  const rows = Math.max(1, ...columns.map((column) => column.length));
  const height = rows * (NODE + GAP);
  const nodeWidth = Math.min(248, (width - (columns.length - 1) * 60) / columns.length);
  const step = columns.length > 1 ? (width - nodeWidth) / (columns.length - 1) : 0;
  /** @type {Map<string, Place>} */
  const places = new Map();
  for (const [c, column] of columns.entries()) {
    // A column in the middle that others' edges pass is placed at the bottom.
    const low = c > 1 && c < columns.length - 1;
    const slot = low ? NODE + GAP : height / column.length;
    const top = low ? height - column.length * slot : 0;
    for (const [r, node] of column.entries())
      places.set(node.id, { x: c * step, y: top + slot * (r + 0.5) - NODE / 2, width: nodeWidth, node });
  }
  const most = Math.max(1, ...graph.edges.map((edge) => edge.perS));
  const edges = graph.edges.flatMap((edge) => {
    const [from, to] = [places.get(edge.from), places.get(edge.to)];
    if (!from || !to) return [];
    const [x1, y1, x2, y2] = [from.x + nodeWidth, from.y + NODE / 2, to.x, to.y + NODE / 2];
    const middle = (x1 + x2) / 2;
    const level = edge.stopped && to.node.state ? levelOf(to.node.state)[0] : "";
    const stroke = (1.5 + 10 * Math.sqrt(edge.perS / most)).toFixed(1);
    return [{ ...edge, path: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, stroke, level }];
  });
  return { width, height, nodes: [...places.values()], edges };
}

/** @param {import("./view.js").Readable<PlacedEdge>} edge */
function flowEdge(edge) {
  return svg(
    "path",
    {
      class: () => `edge ${edge.value.kind ?? ""} ${edge.value.stopped ? `stopped ${edge.value.level}` : ""}`,
      d: () => edge.value.path,
      "stroke-width": () => edge.value.stroke,
    },
    svg("title", null, () => edge.value.text ?? ""),
  );
}

/** @param {import("./view.js").Readable<Place>} place */
function flowNode(place) {
  const node = () => place.value.node;
  const letters = (/** @type {number} */ size) => Math.floor((place.value.width - 22) / size);
  const level = () => (node().state ? levelOf(node().state ?? "") : /** @type {const} */ (["none", ""]));
  const words = () => [node().name, ...node().lines].filter(Boolean).join("\n");
  const parts = [
    svg(
      "rect",
      { class: () => `node ${level()[0]}`, width: () => place.value.width - 2, height: NODE - 2, x: 1, y: 1, rx: 8 },
      svg("title", null, words),
    ),
    svg(
      "text",
      { x: 12, y: 19, class: "name" },
      svg("tspan", { class: () => `sign ${level()[0]}` }, () => (level()[1] ? `${level()[1]} ` : "")),
      () => shorten(node().name, letters(7.4)),
    ),
    [0, 1].map((i) => svg("text", { x: 12, y: 34 + i * 13, class: "line-text" }, () => shorten(node().lines[i] ?? "", letters(6.3)))),
  ];
  const transform = () => `translate(${place.value.x.toFixed(1)} ${place.value.y.toFixed(1)})`;
  return node().href ? svg("a", { href: () => node().href, transform }, parts) : svg("g", { transform }, parts);
}

/** @param {string} text @param {number} letters */
const shorten = (text, letters) => (text.length > letters ? `${text.slice(0, Math.max(1, letters - 1))}…` : text);

/** The address of a finding's page, which the server gives as "sinks/search". @param {string} page */
export const findingLink = (page) =>
  page.includes("/") ? link(page.slice(0, page.indexOf("/")), page.slice(page.indexOf("/") + 1)) : link(page);
