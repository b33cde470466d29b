// Sinks and routes: the list, and one sink with its lanes, failures, settings and the actions that it needs.

import { adminReason, get, post, resource } from "../lib/api.js";
import { lineChart } from "../lib/charts.js";
import { duration, millis, number, rate } from "../lib/format.js";
import { live, now } from "../lib/live.js";
import { link, route } from "../lib/router.js";
import { ago, button, card, chip, code, dataTable, empty, errorBox, facts, outside, pageHead, pill, shown, time } from "../lib/ui.js";
import { computed, h, signal, when } from "../lib/view.js";
import { removedActions, stoppedActions } from "./sinks_actions.js";

/** @typedef {import("../api").Sink} Sink */
/** @typedef {import("../api").SinkRate} SinkRate */
/** @typedef {import("../api").History} History */
/** @typedef {import("../api").Route} Route */

const POLL_MS = 5000;

export default function sinksPage() {
  const history = /** @type {import("../lib/api.js").Resource<History>} */ (
    resource((signal) => get("api/history", { signal, query: { for: "1h" } }), { every: 10_000 })
  );
  const name = computed(() => route.value.rest);
  return h("div", null, () => (name.value ? onePage(name.value, () => history.data.value) : listPage(() => history.data.value)));
}

// ------------------------------------------------------------------------------------------------------------------ List

const writer = computed(() => live.overview.value?.role === "writer");
const isWriter = () => writer.value;

/** @param {() => History | null} history */
function listPage(history) {
  const rates = () => live.overview.value?.sinks ?? [];
  return h(
    "div",
    { class: "page" },
    pageHead("Sinks, routes"),
    card(
      { title: "Sinks" },
      dataTable({
        label: "Sinks",
        rows: rates,
        key: (sink) => sink.sink,
        window: 100,
        empty: () => (live.overview.value ? "No sink is configured." : "Waiting for the first figures …"),
        columns: [
          {
            title: "Sink",
            cell: (sink) => h("a", { href: link("sinks", sink.sink) }, outside(sink.sink, 80)),
            by: () => "",
            sort: (sink) => sink.sink,
          },
          { title: "Kind", cell: (sink) => sink.kind ?? "–", sort: (sink) => sink.kind },
          { title: "State", cell: stateCell, sort: (sink) => sink.state },
          { title: "Pending", class: "n", cell: (sink) => number(sink.pending), sort: (sink) => sink.pending },
          { title: "Oldest", class: "n", cell: (sink) => duration(sink.oldest_s), sort: (sink) => sink.oldest_s },
          { title: "Stored", class: "n", cell: (sink) => rate(sink.stored_per_s), sort: (sink) => sink.stored_per_s },
          { title: "Drains in", class: "n", cell: drains, sort: (sink) => sink.drains_in_s },
          { title: "Batch, p99", class: "n", cell: (sink) => millis(sink.batch_p99_ms), sort: (sink) => sink.batch_p99_ms },
          { title: "Dead", class: "n", cell: deadCell, by: (sink) => sink.dead, sort: (sink) => sink.dead },
        ],
      }),
    ),
    hourCard(history),
    when(
      () => !isWriter(),
      () => routesCard(""),
    ),
  );
}

/** @param {SinkRate} sink */
function stateCell(sink) {
  if (!sink.reason) return pill(sink.state);
  return h(
    "div",
    null,
    pill(sink.state),
    " ",
    sink.since ? h("span", { class: "mu" }, ago(sink.since)) : null,
    h("div", { class: "reason" }, outside(sink.reason, 300)),
  );
}

/** @param {SinkRate} sink */
function drains(sink) {
  if (sink.pending === null || sink.pending === 0) return "–";
  return sink.drains_in_s === null ? h("span", { class: "mu" }, sink.pending < 100 ? "–" : "not shrinking") : duration(sink.drains_in_s);
}

/** @param {SinkRate} sink */
const deadCell = (sink) => (sink.dead ? h("a", { href: link("dead", null, { sink: sink.sink }) }, number(sink.dead)) : number(sink.dead));

/** The pending events of the busiest sinks in the last hour. @param {() => History | null} history */
function hourCard(history) {
  return when(
    () => (history()?.sinks.length ?? 0) > 0,
    () => {
      const sinks = () => history()?.sinks ?? [];
      const pendingKnown = () => sinks().some((sink) => sink.pending.some((value) => value !== null));
      const most = () =>
        [...sinks()].sort((a, b) => Math.max(0, ...b.pending.map(Number)) - Math.max(0, ...a.pending.map(Number))).slice(0, 6);
      const chart = (/** @type {string} */ title, /** @type {"pending" | "stored_per_s"} */ member) =>
        lineChart({
          title,
          series: () => most().map((sink) => ({ name: sink.sink, values: sink[member] })),
          until: () => history()?.until ?? null,
          stepS: () => history()?.step_s ?? 5,
        });
      return card(
        { title: "Last hour" },
        h(
          "div",
          { class: "cards" },
          chart("Stored per second", "stored_per_s"),
          when(pendingKnown, () => chart("Pending events", "pending")),
        ),
      );
    },
  );
}

/** @param {string} sink only its routes; "" for all */
function routesCard(sink) {
  const answer = /** @type {import("../lib/api.js").Resource<import("../api").Routes>} */ (
    resource((signal) => get("api/routes", { signal }), { every: POLL_MS })
  );
  const rows = () => (answer.data.value?.routes ?? []).filter((one) => sink === "" || one.sink === sink);
  return card(
    { title: "Routes", note: sink === "" ? "of all types" : "to this sink" },
    shown(answer, () => [
      dataTable({
        label: "Routes",
        rows,
        key: (one) => `${one.type} ${one.sink}`,
        window: 50,
        empty: "None.",
        columns: [
          {
            title: "Type",
            cell: (one) => h("a", { href: link("types", one.type) }, outside(one.type, 80)),
            by: () => "",
            sort: (one) => one.type,
          },
          ...(sink === ""
            ? [
                {
                  title: "Sink",
                  cell: (/** @type {Route} */ one) => h("a", { href: link("sinks", one.sink) }, outside(one.sink, 80)),
                  by: () => "",
                  sort: (/** @type {Route} */ one) => one.sink,
                },
              ]
            : []),
          {
            title: "State",
            cell: (one) => [
              pill(one.state),
              one.since && one.state !== "active" ? [" ", h("span", { class: "mu" }, ago(one.since))] : null,
            ],
            sort: (one) => one.state,
          },
          { title: "Pending", class: "n", cell: (one) => number(one.pending), sort: (one) => one.pending },
          { title: "Stored", class: "n", cell: (one) => number(one.stored), sort: (one) => one.stored },
          {
            title: "Dead",
            class: "n",
            cell: (one) =>
              one.dead > 0 ? h("a", { href: link("dead", null, { sink: one.sink, type: one.type }) }, number(one.dead)) : "0",
            by: (one) => one.dead,
            sort: (one) => one.dead,
          },
          { title: "Deferred", class: "n", cell: (one) => number(one.deferred), sort: (one) => one.deferred },
          { title: "Skipped", class: "n", cell: (one) => number(one.skipped), sort: (one) => one.skipped },
          {
            title: "Lost",
            class: "n",
            cell: (one) => (one.lost > 0 ? h("span", { class: "bad-text" }, number(one.lost)) : "0"),
            sort: (one) => one.lost,
          },
          {
            title: "Action",
            class: "tight",
            by: (one) => `${one.state} ${one.pending}`,
            cell: (one) => (one.state === "removed" && one.pending > 0 ? removedActions(one, answer.reload) : null),
          },
        ],
      }),
      () => lastRejections(rows()),
    ]),
  );
}

/** The newest dead letter and deferred event of each route. @param {Route[]} routes */
function lastRejections(routes) {
  const all = routes.flatMap((one) => [
    ...(one.last_dead ? [{ ...one.last_dead, what: "Last dead letter", one }] : []),
    ...(one.last_deferred ? [{ ...one.last_deferred, what: "Last deferred event", one }] : []),
  ]);
  if (all.length === 0) return null;
  return h(
    "ul",
    { class: "mu plain-list" },
    all
      .slice(0, 20)
      .map(({ what, at, reason, one }) =>
        h("li", null, `${what} of `, outside(one.type, 80), " in ", outside(one.sink, 80), ", ", time(at), ": ", outside(reason, 500)),
      ),
  );
}

// ------------------------------------------------------------------------------------------------------------------- One

/** @param {string} name @param {() => History | null} history */
function onePage(name, history) {
  const answer = /** @type {import("../lib/api.js").Resource<Sink>} */ (
    resource((signal) => get(`api/sinks/${encodeURIComponent(name)}`, { signal }), { every: POLL_MS })
  );
  const rates = computed(() => live.overview.value?.sinks.find((sink) => sink.sink === name) ?? null);
  const state = () => answer.data.value ?? rates.value;
  const reason = computed(() => state()?.reason ?? "");
  return h(
    "div",
    { class: "page" },
    h("div", { class: "crumbs" }, h("a", { href: link("sinks") }, "Sinks, routes")),
    pageHead(outside(name, 80), () => (state() ? [pill(state()?.state ?? ""), state()?.kind ? chip(state()?.kind) : null] : null)),
    () => stateBox(state()),
    when(
      () => state()?.state === "stopped" && !isWriter(),
      () => stoppedActions(name, () => reason.value, answer.reload),
    ),
    h("div", { class: "cards" }, figuresCard(name, rates, answer), sinkChart(name, history)),
    shown(answer, (data) => [
      when(
        () => data.value.calls !== null,
        () => callsCard(() => data.value),
      ),
      failuresCard(name, () => data.value),
      when(
        () => data.value.lanes.length > 0,
        () => lanesCard(() => data.value),
      ),
      when(
        () => data.value.servers.length > 0,
        () => writersCard(() => data.value),
      ),
      settingsCard(() => data.value),
    ]),
    when(
      () => !isWriter(),
      () => routesCard(name),
    ),
  );
}

/** @param {Sink | SinkRate | null} sink */
function stateBox(sink) {
  if (!sink?.reason) return null;
  const bad = sink.state === "waiting" || sink.state === "failing";
  return h(
    "div",
    { class: `alert ${bad ? "bad" : "warn"}` },
    h("span", { "aria-hidden": "true" }, bad ? "✕" : "▲"),
    h(
      "div",
      null,
      `It is ${sink.state}`,
      sink.since ? [" since ", time(sink.since), ", ", ago(sink.since)] : null,
      ": ",
      code(sink.reason, 2000),
    ),
  );
}

/**
 * @param {string} name
 * @param {import("../lib/view.js").Readable<SinkRate | null>} rates
 * @param {import("../lib/api.js").Resource<Sink>} answer
 */
function figuresCard(name, rates, answer) {
  const of = (/** @type {(sink: SinkRate) => unknown} */ show) => () => (rates.value ? show(rates.value) : "–");
  return card({ title: "Now", actions: testButton(name) }, () =>
    facts([
      ["Stored", of((sink) => rate(sink.stored_per_s))],
      ["Batch, p99", of((sink) => millis(sink.batch_p99_ms))],
      ...(isWriter() ? [] : serverFacts(of, answer)),
    ]),
  );
}

/**
 * @param {(show: (sink: SinkRate) => unknown) => () => unknown} of
 * @param {import("../lib/api.js").Resource<Sink>} answer
 * @returns {[string, () => unknown][]}
 */
const serverFacts = (of, answer) => [
  ["Pending", of((sink) => number(sink.pending))],
  ["Oldest", of((sink) => duration(sink.oldest_s))],
  ["Drains in", of(drains)],
  ["Dead letters", of(deadCell)],
  ["Last writer", of((sink) => (sink.server ? code(sink.server, 200) : "–"))],
  ["Retries", () => number((answer.data.value?.lanes ?? []).reduce((sum, lane) => sum + lane.retries, 0))],
];

/** @param {string} name */
function testButton(name) {
  const result = signal(/** @type {import("../api").SinkTest | Error | null} */ (null));
  const test = async () => {
    result.value = null;
    try {
      result.value = await post(`api/sinks/${encodeURIComponent(name)}/test`);
    } catch (error) {
      result.value = error instanceof Error ? error : new Error(String(error));
    }
  };
  return [
    h("span", { role: "status" }, () => {
      const now = result.value;
      if (now === null) return null;
      if (now instanceof Error) return errorBox(now);
      return now.ok
        ? pill("ok", `it answered in ${millis(now.took_ms)}`)
        : h("span", { class: "bad-text" }, "✕ ", outside(now.reason ?? "no answer", 500));
    }),
    button("Test the connection", { small: true, onclick: test, disabledBecause: adminReason }),
  ];
}

/** @param {string} name @param {() => History | null} history */
function sinkChart(name, history) {
  const mine = () => history()?.sinks.find((sink) => sink.sink === name);
  return when(
    () => mine() !== undefined,
    () => {
      const line = (/** @type {string} */ title, /** @type {"pending" | "stored_per_s"} */ member) =>
        when(
          () => (mine()?.[member] ?? []).some((value) => value !== null),
          () =>
            lineChart({
              title,
              series: () => [{ name: title, values: mine()?.[member] ?? [] }],
              until: () => history()?.until ?? null,
              stepS: () => history()?.step_s ?? 5,
              height: 84,
            }),
        );
      return card({ title: "Last hour" }, line("Stored per second", "stored_per_s"), line("Pending", "pending"));
    },
  );
}

/** @param {string} name @param {() => Sink} sink */
function failuresCard(name, sink) {
  return card(
    { title: "Last failures", note: "the newest first" },
    dataTable({
      label: `Failures of ${name}`,
      rows: () => sink().failures,
      key: (one) => `${one.from} ${one.server} ${one.reason}`,
      window: 20,
      empty: "None is known.",
      columns: [
        { title: "From", class: "tight", cell: (one) => time(one.from) },
        { title: "To", class: "tight", cell: (one) => (one.to === null ? h("b", null, "now") : time(one.to)) },
        {
          title: "For",
          class: "n",
          cell: (one) => duration(((one.to === null ? now.value : Date.parse(one.to)) - Date.parse(one.from)) / 1000),
        },
        { title: "Tries", class: "n", cell: (one) => number(one.tries) },
        { title: "Reason", class: "text", cell: (one) => code(one.reason, 1000) },
        { title: "Writer", cell: (one) => (one.server ? code(one.server, 200) : "–") },
      ],
    }),
  );
}

/** @param {() => Sink} sink */
function lanesCard(sink) {
  return card(
    { title: "Lanes", note: "one for each shard" },
    dataTable({
      label: "Lanes",
      rows: () => sink().lanes,
      key: (lane) => lane.lane,
      window: 64,
      columns: [
        { title: "Lane", cell: (lane) => code(lane.lane, 80) },
        { title: "State", cell: (lane) => [pill(lane.state), " ", h("span", { class: "mu" }, ago(lane.since))] },
        { title: "Backlog", class: "n", cell: (lane) => number(lane.backlog), sort: (lane) => lane.backlog },
        { title: "Oldest", class: "n", cell: (lane) => ago(lane.oldest) },
        { title: "Batches", class: "n", cell: (lane) => number(lane.batches) },
        { title: "Retries", class: "n", cell: (lane) => number(lane.retries), sort: (lane) => lane.retries },
        { title: "Reason", class: "text", cell: (lane) => (lane.reason ? outside(lane.reason, 500) : h("span", { class: "mu" }, "–")) },
      ],
    }),
  );
}

/** @param {() => Sink} sink */
function writersCard(sink) {
  return card(
    { title: "Writers", note: "that get its batches" },
    dataTable({
      label: "Writers",
      rows: () => sink().servers,
      key: (server) => `${server.upstream} ${server.server}`,
      columns: [
        { title: "Writer", cell: (server) => code(server.server, 200) },
        { title: "Upstream", cell: (server) => outside(server.upstream, 80) },
        { title: "State", cell: (server) => pill(server.state === "available" ? "ok" : server.state, server.state) },
        { title: "Last success", cell: (server) => (server.last_success ? [ago(server.last_success), " ago"] : "–") },
        {
          title: "Reason",
          class: "text",
          cell: (server) =>
            outside(
              [server.reason, ...server.ejected_for.map((one) => `${one.sink}: ${one.reason}`)].filter(Boolean).join("; ") || "–",
              500,
            ),
        },
      ],
    }),
  );
}

/** @param {() => Sink} sink */
function callsCard(sink) {
  const calls = () => sink().calls ?? { calls: 0, failed: 0, gateways: [] };
  return card(
    { title: "Calls", note: () => `${number(calls().calls)} since the start, ${number(calls().failed)} failed` },
    dataTable({
      label: "Gateways",
      rows: () => calls().gateways,
      key: (one) => one.name,
      empty: "No gateway has called.",
      columns: [
        { title: "Gateway", cell: (one) => outside(one.name, 120) },
        { title: "Last call", cell: (one) => [time(one.last), " ", h("span", { class: "mu" }, ago(one.last))] },
      ],
    }),
  );
}

/** @param {() => Sink} sink */
function settingsCard(sink) {
  return card({ title: "Settings", note: "stars instead of secrets", actions: h("a", { href: link("config") }, "Configuration") }, () =>
    sink().settings.length === 0 ? empty("None.") : facts(sink().settings.map((one) => [h("code", null, one.name), code(one.value, 500)])),
  );
}
