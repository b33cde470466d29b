// The overview: what is wrong, what flows where, and whether every event has an outcome.

import { get, resource } from "../lib/api.js";
import { age, count, duration, number, rate, safe } from "../lib/format.js";
import { live, now, problemsOf } from "../lib/live.js";
import { findingLink, link, parse } from "../lib/router.js";
import { ago, card, dataTable, empty, outside, pageHead, pill, prose, sentence, shown, time } from "../lib/ui.js";
import { computed, h, list, when } from "../lib/view.js";
import { flowCard } from "./overview_flow.js";
import { overviewTiles, pending } from "./overview_tiles.js";
import { routeColumns } from "./parts.js";

/** @typedef {import("../api").Overview} Overview */
/** @typedef {import("../api").Finding} Finding */
/** @typedef {import("../api").History} History */
/** @typedef {import("../lib/view.js").Readable<Overview>} Now */

export default function overviewPage() {
  const history = /** @type {import("../lib/api.js").Resource<History>} */ (
    resource((signal) => get("api/history", { signal, query: { for: "1h" } }), { every: 10_000 })
  );
  const overview = /** @type {Now} */ (/** @type {unknown} */ (live.overview));
  return h(
    "div",
    null,
    pageHead("Overview", () => about(live.overview.value)),
    when(
      () => live.overview.value !== null,
      () => [
        problemList(overview),
        overviewTiles(overview, () => history.data.value),
        flowCard(overview),
        when(
          () => live.overview.value?.role !== "writer",
          () => ledgerCard(overview),
        ),
        actionsCard(),
      ],
      () => empty(() => (live.error.value ? ["No answer yet: ", outside(live.error.value.message)] : "Waiting for the first figures …")),
    ),
  );
}

/** @param {Overview | null} overview */
function about(overview) {
  if (!overview) return null;
  return h("span", { class: "mu" }, outside(overview.instance, 64), `, ${overview.role}, version `, outside(overview.version, 40));
}

// -------------------------------------------------------------------------------------------------------------- Problems

/** @param {Now} overview */
function problemList(overview) {
  const all = computed(() => (overview.value ? [...problemsOf(overview.value), ...overview.value.findings] : []));
  return [
    when(
      () => all.value.length > 0,
      () =>
        h(
          "ul",
          { class: "alerts", "aria-label": "Problems and findings" },
          list(
            () => all.value,
            (one) => `${one.code} ${one.page ?? one.text}`,
            problem,
          ),
        ),
    ),
    when(
      () => all.value.length === 0,
      () =>
        h(
          "div",
          { class: "alert ok" },
          h("span", { "aria-hidden": "true" }, "✓"),
          h("div", null, () => (overview.value ? allWell(overview.value) : null)),
        ),
    ),
  ];
}

/** @param {import("../lib/view.js").Readable<Finding>} finding */
function problem(finding) {
  const bad = () => finding.value.level === "error";
  const text = computed(() => finding.value.text);
  const since = computed(() => finding.value.since);
  // Findings, and problems of older versions, have no page of their own.
  const page = computed(() => finding.value.page ?? "health");
  return h(
    "li",
    { class: () => `alert ${bad() ? "bad" : "warn"}` },
    h("span", { "aria-hidden": "true" }, () => (bad() ? "✕" : "▲")),
    h(
      "div",
      null,
      h("span", { class: "sr" }, () => (bad() ? "Error: " : "Warning: ")),
      () => prose(sentence(text.value)),
      () =>
        since.value ? [" ", h("span", { class: "mu" }, "Since ", time(since.value), ", ", () => age(since.value, now.value), ".")] : null,
      () => [" ", h("a", { href: findingLink(page.value) }, pageName(page.value))],
    ),
  );
}

/** @type {Record<string, string>} */
const PAGE_NAMES = {
  sinks: "Sinks",
  dead: "Dead letters",
  health: "Health",
  refused: "Rejected",
  config: "Configuration",
  fleet: "Fleet",
};

/** What a link to a page of a finding is called. @param {string} address */
function pageName(address) {
  if (address.startsWith("sinks/")) return `Sink ${safe(parse(address).rest, 80)}`;
  return PAGE_NAMES[address.split(/[/?]/)[0] ?? ""] ?? "More";
}

/** @param {Overview} overview */
function allWell({ role, sinks, ledger, totals }) {
  if (role === "writer") return `Healthy: ${count(sinks.length, "sink")} can be written to.`;
  const up = ledger.every((row) => row.adds_up);
  const all = sinks.length === 1 ? "the sink delivers" : `all ${number(sinks.length)} sinks deliver`;
  return `Healthy: ${all}. ${rate(totals.accepted_per_s)} accepted, ${number(pending(sinks))} pending. ${up ? "The ledger adds up: each event is stored, dead, skipped or pending." : ""}`;
}

// ---------------------------------------------------------------------------------------------------------------- Ledger

/** @param {Now} overview */
function ledgerCard(overview) {
  const rows = () => overview.value?.ledger ?? [];
  const sinks = computed(() => new Map((overview.value?.sinks ?? []).map((sink) => [sink.sink, sink])));
  const wrong = computed(() => rows().filter((row) => !row.adds_up).length);
  const zero = (/** @type {number} */ n, level = "") =>
    n === 0 ? h("span", { class: "mu" }, "0") : h("span", { class: level }, number(n));
  const dead = (/** @type {import("../api").LedgerRow} */ row) =>
    row.dead > 0 ? h("a", { href: link("dead", null, { sink: row.sink, type: row.type }) }, number(row.dead)) : zero(0);
  return card(
    {
      title: "Ledger",
      note: "accepted = stored + dead + skipped + lost + pending",
      actions: () =>
        wrong.value === 0 ? pill("ok", "adds up") : pill("bad", `${count(wrong.value, "route does", "routes do")} not add up`),
    },
    dataTable({
      label: "Ledger",
      window: 30,
      empty: "No event has been accepted yet.",
      rows,
      key: (row) => `${row.type} ${row.sink}`,
      columns: [
        ...routeColumns(),
        { title: "State", cell: (row) => pill(sinks.value.get(row.sink)?.state ?? "removed") },
        { title: "Accepted", class: "n", cell: (row) => number(row.accepted), sort: (row) => row.accepted },
        { title: "Stored", class: "n", cell: (row) => number(row.stored), sort: (row) => row.stored },
        { title: "Dead", class: "n", cell: dead, by: (row) => row.dead, sort: (row) => row.dead },
        { title: "Skipped", class: "n", cell: (row) => zero(row.skipped), sort: (row) => row.skipped },
        { title: "Lost", class: "n", cell: (row) => zero(row.lost, "bad-text"), sort: (row) => row.lost },
        { title: "Pending", class: "n", cell: (row) => zero(row.pending), sort: (row) => row.pending },
        { title: "Oldest", class: "n", cell: (row) => (row.pending > 0 ? duration(sinks.value.get(row.sink)?.oldest_s) : "–") },
        {
          title: "Sum",
          class: "tight",
          cell: (row) =>
            row.adds_up ? h("span", { class: "ok-text" }, "✓", h("span", { class: "sr" }, " adds up")) : pill("bad", "differs"),
        },
      ],
    }),
  );
}

// --------------------------------------------------------------------------------------------------------------- Actions

function actionsCard() {
  const answer = /** @type {import("../lib/api.js").Resource<import("../api").Actions>} */ (
    resource((signal) => get("api/actions", { signal }), { every: 30_000 })
  );
  return card(
    { title: "Actions", note: "of operators, the newest first" },
    shown(answer, (data) =>
      dataTable({
        label: "Actions",
        window: 8,
        rows: () => data.value.actions,
        key: (one) => `${one.at} ${one.action} ${one.target}`,
        empty: "None since the start.",
        columns: [
          { title: "When", class: "tight", cell: (one) => [time(one.at), " ", h("span", { class: "mu" }, ago(one.at))] },
          { title: "By", cell: (one) => outside(one.by, 80) },
          { title: "Action", cell: (one) => outside(one.action, 40) },
          { title: "Target", cell: (one) => outside(one.target, 200) },
          { title: "Result", cell: (one) => outside(one.result, 200) },
        ],
      }),
    ),
  );
}
