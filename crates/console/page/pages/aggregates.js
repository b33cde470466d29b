// The page "Aggregates": state, and the latest results as lines and as a table.
import { get, resource } from "../lib/api.js";
import { lineChart } from "../lib/charts.js";
import { bytes, count, duration, number } from "../lib/format.js";
import { link, queryParam, route } from "../lib/router.js";
import { ago, card, code, dataTable, empty, facts, outside, pageHead, pill, select, shown, time } from "../lib/ui.js";
import { computed, h } from "../lib/view.js";
import { linesOf, measuresOf, newestRevisions, readResult } from "./results.js";

/** @typedef {import("../api").Aggregate} Aggregate */
/** @typedef {import("../api").Aggregates} Aggregates */
/** @typedef {import("../api").AggregateResults} AggregateResults */
/** @typedef {import("./results.js").Result} Result */

const POLL_MS = 5000;

export default function aggregatesPage() {
  /** @type {import("../lib/api.js").Resource<Aggregates>} */
  const all = resource((signal) => get("api/aggregates", { signal }), { every: POLL_MS });
  const wanted = computed(() => route.value.rest);
  return h(
    "div",
    null,
    pageHead("Aggregates"),
    shown(all, (data) => {
      const chosen = computed(() => wanted.value || (data.value.aggregates[0]?.name ?? ""));
      return [card({ title: "State" }, stateTable(data, chosen)), () => (chosen.value ? oneAggregate(chosen.value, data) : null)];
    }),
  );
}

/** @param {{ readonly value: Aggregates }} data @param {{ readonly value: string }} chosen */
function stateTable(data, chosen) {
  return dataTable({
    label: "Aggregates",
    window: 50,
    rows: () => data.value.aggregates,
    key: (one) => one.name,
    selected: (one) => one.name === chosen.value,
    empty: "No type has an aggregate.",
    columns: [
      { title: "Aggregate", by: (one) => one.name, cell: (one) => h("a", { href: link("aggregates", one.name) }, outside(one.name)) },
      { title: "Of", by: (one) => one.of, cell: (one) => h("a", { href: link("types", one.of) }, outside(one.of)) },
      { title: "Window", cell: (one) => duration(one.window_s), class: "n" },
      {
        title: "Complete up to",
        cell: (one) => (one.watermark ? time(one.watermark) : "no event yet"),
        hint: "The watermark: results of windows up to here are complete",
      },
      { title: "Lag", cell: (one) => count(one.lag, "event"), class: "n", hint: "Events of the journal that it hasn't read yet" },
      { title: "Groups", cell: (one) => number(one.groups), class: "n" },
      { title: "Memory", cell: memory, class: "n" },
      {
        title: "Late",
        cell: (one) => (one.late ? pill("warn", number(one.late)) : "0"),
        class: "n",
        hint: "Events that came after their window had closed",
      },
    ],
  });
}

/** @param {Aggregate} one */
const memory = (one) => `${bytes(one.bytes)} of ${bytes(one.bytes_max)}`;

/** @param {string} name @param {{ readonly value: Aggregates }} data */
function oneAggregate(name, data) {
  const one = computed(() => data.value.aggregates.find((aggregate) => aggregate.name === name) ?? null);
  if (!one.value)
    return card({ title: outside(name) }, empty("There is no aggregate of this name. It may have been removed from the configuration."));
  /** @type {import("../lib/api.js").Resource<AggregateResults>} */
  const answer = resource((signal) => get(`api/aggregates/${encodeURIComponent(name)}/results`, { signal }), { every: POLL_MS });
  return card(
    { title: outside(name), note: h("a", { href: link("events", "", { type: name }) }, "its results as events") },
    () => state(one.value),
    shown(answer, (results) => {
      const rows = computed(() => newestRevisions(results.value.results.map(readResult)));
      return [
        () =>
          results.value.sink === null
            ? empty("No sink of its routes can be read: results are not shown here.")
            : h("p", { class: "mu" }, "From sink ", code(results.value.sink), ", the newest 200."),
        () => (rows.value.length ? null : empty("No result yet. The first comes when the watermark reaches the end of a window.")),
        chart(rows, one),
        resultTable(rows),
      ];
    }),
  );
}

/** @param {Aggregate | null} one */
function state(one) {
  if (!one) return null;
  return facts([
    ["Groups by", one.by.length ? one.by.map((pointer, i) => [i ? ", " : null, code(pointer)]) : "nothing: one group"],
    ["Complete up to", one.watermark ? [time(one.watermark), " (", ago(one.watermark), " ago)"] : "no event yet"],
  ]);
}

/** @param {{ readonly value: Result[] }} rows @param {{ readonly value: Aggregate | null }} one */
function chart(rows, one) {
  const measure = queryParam("measure");
  const measures = computed(() => measuresOf(rows.value));
  const shownMeasure = () => measure.value || (measures.value[0] ?? "");
  const hasLines = computed(() => new Set(rows.value.map((row) => row.start)).size > 1 && measures.value.length > 0);
  return () => {
    if (!hasLines.value) return null;
    const lines = computed(() => linesOf(rows.value, shownMeasure(), one.value?.window_s ?? 60));
    return [
      select(measure, () => measures.value.map((name) => [name === measures.value[0] ? "" : name, name]), { "aria-label": "Measure" }),
      lineChart({
        title: "Results by window and group",
        series: () => lines.value.series,
        until: () => lines.value.until,
        stepS: () => lines.value.stepS,
        height: 180,
      }),
      () =>
        lines.value.left ? h("p", { class: "mu" }, `${count(lines.value.left, "smaller group")} not drawn: the table has them.`) : null,
    ];
  };
}

/** @param {{ readonly value: Result[] }} rows */
function resultTable(rows) {
  const table = computed(() => [...new Set(rows.value.flatMap((row) => Object.keys(row.measures)))].slice(0, 8).join("\u0000"));
  return () => {
    const names = table.value ? table.value.split("\u0000") : [];
    return dataTable({
      label: "Latest results",
      window: 30,
      rows: () => rows.value,
      key: (row) => row.key,
      empty: "None.",
      columns: [
        { title: "Window", cell: (row) => (row.start ? time(row.start) : "–") },
        { title: "Group", cell: (row) => outside(row.group, 200) },
        ...names.map((name) => ({ title: outside(name, 60), class: "n", cell: (/** @type {Result} */ row) => value(row.measures[name]) })),
        { title: "Revision", cell: (row) => number(row.revision), class: "n" },
      ],
    });
  };
}

/** @param {unknown} one */
const value = (one) =>
  typeof one === "number" ? number(one) : one === undefined ? "–" : outside(typeof one === "string" ? one : JSON.stringify(one), 80);
