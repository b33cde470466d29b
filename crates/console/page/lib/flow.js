// The flow of events as a picture: columns of nodes with edges between them.

import { levelOf } from "./text.js";
import { computed, h, list, onDispose, signal, svg, when } from "./view.js";

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
