// Health: what slowed the process down, its memory and shards, profiles on demand, the log.

import { get, resource } from "../lib/api.js";
import { barChart } from "../lib/charts.js";
import { bytes, duration, millis, number, percent } from "../lib/format.js";
import { live } from "../lib/live.js";
import { ago, button, card, code, copy, dataTable, facts, outside, pageHead, prose, sentence, shown, time } from "../lib/ui.js";
import { h, list, when } from "../lib/view.js";
import { logCard } from "./health_log.js";
import { profileCard } from "./health_profile.js";

/** @typedef {import("../api").Health} Health */
/** @typedef {import("../api").Memory} Memory */
/** @typedef {import("../api").Shards} Shards */
/** @template T @typedef {import("../lib/api.js").Resource<T>} Resource */

const POLL_MS = 5000;

export default function healthPage() {
  const health = /** @type {Resource<Health>} */ (resource((signal) => get("api/health", { signal }), { every: POLL_MS }));
  const isServer = () => live.overview.value?.role !== "writer";
  return h(
    "div",
    null,
    pageHead("Health, profile"),
    shown(health, (data) => [
      findings(() => data.value.findings),
      h(
        "div",
        { class: "cards equal" },
        cpuCard(() => data.value.host),
        diskCard(() => data.value.host),
      ),
    ]),
    h("div", { class: "cards equal" }, memoryCard(), when(isServer, shardsCard)),
    profileCard(),
    logCard(),
    reportCard(),
  );
}

/** @param {() => import("../api").Finding[]} all */
function findings(all) {
  return when(
    () => all().length === 0,
    () =>
      h(
        "div",
        { class: "alert ok" },
        h("span", { "aria-hidden": "true" }, "✓"),
        h("div", null, "Nothing slowed this process down in the last minute."),
      ),
    () =>
      h(
        "ul",
        { class: "alerts", "aria-label": "Findings" },
        list(
          all,
          (one) => one.code,
          (one) =>
            h(
              "li",
              { class: () => `alert ${one.value.level === "error" ? "bad" : "warn"}` },
              h("span", { "aria-hidden": "true" }, () => (one.value.level === "error" ? "✕" : "▲")),
              h(
                "div",
                null,
                () => prose(sentence(one.value.text)),
                () =>
                  one.value.since ? h("span", { class: "mu" }, " Since ", time(one.value.since), ", ", ago(one.value.since), ". ") : " ",
                h("code", { class: "mu" }, () => one.value.code),
              ),
            ),
        ),
      ),
  );
}

/** @param {() => import("../api").Host} host */
function cpuCard(host) {
  const limit = () => host().cpu_limit;
  return card(
    { title: "CPU", note: "in the last minute" },
    barChart({
      label: "CPU in the last minute",
      max: () => 1,
      bars: () => [
        {
          name: limit() === undefined ? "used, in CPUs" : `used, of ${number(limit())} CPUs`,
          value: (host().cpu ?? 0) / (limit() ?? Math.max(1, host().cpu ?? 1)),
          text: number(host().cpu),
        },
        {
          name: "throttled by the container's limit",
          value: host().throttled ?? 0,
          text: percent(host().throttled),
          level: (host().throttled ?? 0) >= 0.05 ? "bad" : "none",
        },
      ],
    }),
    h("p", { class: "mu" }, () =>
      limit() === undefined ? "The container has no CPU limit." : "Findings show other waits: CPUs that others use, the disk, memory.",
    ),
  );
}

/** @param {() => import("../api").Host} host */
function diskCard(host) {
  const totals = () => live.overview.value?.totals;
  return card(
    { title: "Disk and posts", note: "over the last 10 s" },
    facts([
      ["fdatasync, p99", () => millis(totals()?.fsync_p99_ms)],
      ["Post, p99", () => millis(totals()?.post_p99_ms)],
      ["Events a commit", () => number(totals()?.events_a_commit)],
      ["Free for the data directory", () => bytes(host().disk_free_bytes)],
    ]),
  );
}

function memoryCard() {
  const answer = /** @type {Resource<Memory>} */ (resource((signal) => get("debug/memory", { signal }), { every: POLL_MS }));
  return card(
    {
      title: "Memory",
      note: () => {
        const now = answer.data.value;
        return now
          ? `${bytes(now.resident_bytes)} resident${now.limit_bytes === null ? ", no limit" : ` of ${bytes(now.limit_bytes)}`}`
          : null;
      },
    },
    shown(answer, (data) => [
      h("div", { class: "bar tall", "aria-hidden": "true" }, () => memoryParts(data.value)),
      dataTable({
        label: "Owners of memory",
        rows: () => data.value.owners,
        key: (row) => row.owner,
        window: 40,
        sort: { column: 1, down: true },
        columns: [
          {
            title: "Owner",
            cell: (row) => [
              h("span", {
                class: `swatch s${1 + (data.value.owners.findIndex((one) => one.owner === row.owner) % 6)}`,
                "aria-hidden": "true",
              }),
              outside(row.owner, 80),
            ],
          },
          { title: "In use", class: "n", cell: (row) => bytes(row.bytes), sort: (row) => row.bytes },
          { title: "At most", class: "n", cell: (row) => (row.max_bytes > 0 ? bytes(row.max_bytes) : "–"), sort: (row) => row.max_bytes },
          {
            title: "Share",
            class: "n",
            cell: (row) => (row.max_bytes > 0 ? percent(row.bytes / row.max_bytes) : "–"),
            sort: (row) => (row.max_bytes > 0 ? row.bytes / row.max_bytes : null),
          },
        ],
      }),
      () =>
        data.value.heap
          ? h(
              "p",
              { class: "mu" },
              `Allocated: ${bytes(data.value.heap.used_bytes)}; free for allocations: ${bytes(data.value.heap.free_bytes)}.`,
            )
          : null,
    ]),
  );
}

/** Each owner's part of the limit, or of what is resident. @param {Memory} memory */
function memoryParts({ owners, limit_bytes, resident_bytes }) {
  const whole = Math.max(limit_bytes ?? 0, resident_bytes ?? 0, 1);
  const owned = owners.reduce((sum, one) => sum + one.bytes, 0);
  const rest = Math.max(0, (resident_bytes ?? 0) - owned);
  return [
    ...owners.map((one, i) => h("i", { class: `s${1 + (i % 6)}`, style: { width: `${(one.bytes / whole) * 100}%` } })),
    h("i", { class: "rest", style: { width: `${(rest / whole) * 100}%` } }),
  ];
}

function shardsCard() {
  const answer = /** @type {Resource<Shards>} */ (resource((signal) => get("debug/shards", { signal }), { every: POLL_MS }));
  const long = (/** @type {"arriving" | "processing" | "answering"} */ state) => (/** @type {Shards["shards"][number]} */ row) =>
    row.long_requests ? number(row.long_requests[state]) : h("span", { class: "warn-text" }, "busy");
  return card(
    { title: "Shards", note: "requests that take more than a second, by the state they are in" },
    shown(answer, (data) => [
      dataTable({
        label: "Shards",
        rows: () => data.value.shards,
        key: (row) => row.shard,
        columns: [
          { title: "Shard", cell: (row) => row.shard },
          { title: "Connections", class: "n", cell: (row) => number(row.connections), sort: (row) => row.connections },
          { title: "In flight", class: "n", cell: (row) => bytes(row.bytes_in_flight), sort: (row) => row.bytes_in_flight },
          { title: "Arriving", class: "n", cell: long("arriving") },
          { title: "Processing", class: "n", cell: long("processing") },
          { title: "Answering", class: "n", cell: long("answering") },
          {
            title: "Longest",
            class: "n",
            cell: (row) => (row.long_requests && row.long_requests.longest_seconds > 0 ? duration(row.long_requests.longest_seconds) : "–"),
          },
        ],
      }),
      h(
        "p",
        { class: "mu" },
        "Arriving: waits for the client, which has sent a part. Processing: waits for the disk, a store, or memory. Answering: waits for the client to read.",
      ),
    ]),
  );
}

/** The command that writes a report, with the file of the process that is shown. */
function reportCard() {
  const config = /** @type {Resource<import("../api").Config>} */ (resource((signal) => get("api/config", { signal })));
  const command = () => {
    const file = config.data.value?.file;
    if (!file) return "forebay report";
    return `forebay report --config ${/^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`}`;
  };
  return card(
    { title: "Report", actions: button("Copy the command", { small: true, onclick: () => copy(command(), "the command") }) },
    h(
      "p",
      null,
      "For a bug report, run ",
      () => code(command()),
      ". The archive has settings with stars instead of secrets, metrics, findings and log lines. It has no payloads.",
    ),
  );
}
