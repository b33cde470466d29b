// The flow of events as a picture and as a table.

import { flow } from "../lib/flow.js";
import { age, bytes, compact, count, millis, number, rate, safe } from "../lib/format.js";
import { link } from "../lib/router.js";
import { button, card, dataTable, matches, pill } from "../lib/ui.js";
import { computed, signal, when } from "../lib/view.js";
import { routeColumns } from "./parts.js";

/** @typedef {import("../api").Overview} Overview */
/** @typedef {import("../api").SinkRate} SinkRate */
/** @typedef {import("../api").TypeRate} TypeRate */
/** @typedef {import("../lib/flow.js").FlowNode} FlowNode */
/** @typedef {import("../lib/flow.js").FlowEdge} FlowEdge */
/** @typedef {import("../lib/view.js").Readable<Overview>} Now */

/** Of each column. */
const MAX_NODES = 8;
/** States in which nothing is delivered. */
const HELD = ["waiting", "stopped", "failing", "removed"];

/** @param {Now} overview */
export function flowCard(overview) {
  const table = signal(false);
  const narrow = matches("(max-width: 820px)");
  const first = overview.peek();
  const graph = computed(() => flowGraph(overview.value ?? first));
  return card(
    {
      title: "Flow",
      note: "rates over the last 10 s; the wider the line, the more events; dashed: held",
      actions: button("Show as a table", { small: true, pressed: () => table.value, onclick: () => (table.value = !table.peek()) }),
    },
    when(
      () => !table.value,
      () => [
        flow(() => graph.value, { label: "Flow from the intake through types and aggregates to sinks" }),
        when(
          () => narrow.value,
          () => flowTable(overview),
        ),
      ],
      () => flowTable(overview),
    ),
  );
}

/** @param {Now} overview */
function flowTable(overview) {
  const rows = computed(() => {
    const states = new Map((overview.value?.sinks ?? []).map((sink) => [sink.sink, sink.state]));
    return (overview.value?.edges ?? []).map((edge) => ({ ...edge, state: states.get(edge.sink) }));
  });
  return dataTable({
    label: "Flow",
    rows: () => rows.value,
    key: (row) => `${row.type} ${row.sink}`,
    window: 30,
    empty: "No event flows.",
    columns: [
      ...routeColumns(),
      { title: "State", cell: (row) => (row.state ? pill(row.state) : "–") },
      { title: "Stored", class: "n", cell: (row) => rate(row.per_s), sort: (row) => row.per_s },
    ],
  });
}

/**
 * The picture has the busiest types, and the sinks that deliver nothing first; the others are one node.
 * @param {Overview} overview
 * @returns {import("../lib/flow.js").FlowGraph}
 */
function flowGraph({ types, types_more, sinks, edges, totals, role }) {
  const sources = types.filter((type) => type.aggregate_of === null);
  const aggregates = types.filter((type) => type.aggregate_of !== null).slice(0, MAX_NODES);
  const shownTypes = top(sources, MAX_NODES, (type) => type.accepted_per_s);
  const shownSinks = top(sinks, MAX_NODES, (sink) => sink.stored_per_s + (HELD.includes(sink.state) ? 1e12 : 0));
  const typeIds = new Set([...shownTypes, ...aggregates].map((type) => type.type));
  const sinkIds = new Set(shownSinks.map((sink) => sink.sink));
  const typeId = (/** @type {string} */ type) => (typeIds.has(type) ? `t ${type}` : "t others");
  const sinkId = (/** @type {string} */ sink) => (sinkIds.has(sink) ? `s ${sink}` : "s others");
  const states = new Map(sinks.map((sink) => [sink.sink, sink.state]));
  const rates = new Map(sources.map((type) => [type.type, type.accepted_per_s]));
  const results = new Set(aggregates.map((type) => type.type));

  /** @type {FlowEdge[]} */
  const all = [
    ...sources.map((type) => ({ from: "intake", to: typeId(type.type), perS: type.accepted_per_s })),
    ...aggregates.map((type) => ({
      from: typeId(type.aggregate_of ?? ""),
      to: typeId(type.type),
      perS: rates.get(type.aggregate_of ?? "") ?? type.accepted_per_s,
      kind: /** @type {const} */ ("aggregate"),
    })),
    ...edges.map((edge) => ({
      from: typeId(edge.type),
      to: sinkId(edge.sink),
      perS: edge.per_s,
      stopped: HELD.includes(states.get(edge.sink) ?? ""),
      ...(results.has(edge.type) ? { kind: /** @type {const} */ ("aggregate") } : {}),
    })),
    ...(role === "writer" && sources.length === 0
      ? sinks.map((sink) => ({ from: "intake", to: sinkId(sink.sink), perS: sink.stored_per_s }))
      : []),
  ];
  return {
    columns: [
      [intakeNode(totals, role)],
      [...shownTypes.map(typeNode), ...others("t others", sources.length - shownTypes.length + types_more, "type", "types")],
      aggregates.map(typeNode),
      [...shownSinks.map(sinkNode), ...others("s others", sinks.length - shownSinks.length, "sink", "sinks")],
    ],
    edges: merged(all),
  };
}

/** One edge for each pair of nodes. @param {FlowEdge[]} edges */
function merged(edges) {
  /** @type {Map<string, FlowEdge>} */
  const all = new Map();
  for (const edge of edges) {
    const key = `${edge.from} ${edge.to}`;
    const known = all.get(key);
    const perS = (known?.perS ?? 0) + edge.perS;
    all.set(key, { ...edge, perS, text: rate(perS) });
  }
  return [...all.values()];
}

/**
 * The `n` largest, in the order in which they came.
 * @template T
 * @param {readonly T[]} items
 * @param {number} n
 * @param {(item: T) => number} by
 */
function top(items, n, by) {
  if (items.length <= n) return [...items];
  const chosen = new Set([...items].sort((a, b) => by(b) - by(a)).slice(0, n - 1));
  return items.filter((item) => chosen.has(item));
}

/** @param {Overview["totals"]} totals @param {Overview["role"]} role @returns {FlowNode} */
function intakeNode(totals, role) {
  const volume = totals.bytes_per_s === null ? "" : `, ${bytes(totals.bytes_per_s, "MB")}/s`;
  const rejected = totals.refused_per_min > 0 ? `${number(Math.round(totals.refused_per_min))}/min rejected` : "";
  return { id: "intake", name: role === "writer" ? "Gateways" : "Intake", lines: [`${rate(totals.accepted_per_s)}${volume}`, rejected] };
}

/** @param {string} id @param {number} n @param {string} what @param {string} page @returns {FlowNode[]} */
const others = (id, n, what, page) => (n > 0 ? [{ id, name: "others", lines: [count(n, what)], href: link(page) }] : []);

/** @param {TypeRate} type @returns {FlowNode} */
function typeNode(type) {
  const rejects = type.refused_per_min > 0;
  return {
    id: `t ${type.type}`,
    name: type.type === "*" ? "other types (*)" : safe(type.type, 80),
    lines: [
      type.aggregate_of === null ? rate(type.accepted_per_s) : `aggregate, ${rate(type.accepted_per_s)}`,
      rejects ? `${number(Math.round(type.refused_per_min))}/min rejected` : "",
    ],
    href: link(type.aggregate_of === null ? "types" : "aggregates", type.type),
    ...(rejects ? { state: "warn" } : {}),
  };
}

/** @param {SinkRate} sink @returns {FlowNode} */
function sinkNode(sink) {
  const waits = sink.pending === null ? "" : `, ${compact(sink.pending)} wait`;
  const calm = !HELD.includes(sink.state);
  return {
    id: `s ${sink.sink}`,
    name: safe(sink.sink, 80),
    lines: [
      calm ? `${rate(sink.stored_per_s)}${waits}` : `${sink.state}${sink.since === null ? "" : ` ${age(sink.since)}`}${waits}`,
      [sink.kind ?? "", sink.batch_p99_ms === null ? "" : `batch ${millis(sink.batch_p99_ms)}`].filter(Boolean).join(", "),
    ],
    state: sink.state,
    href: link("sinks", sink.sink),
  };
}
