// The figures at the top of the overview, with the last hour as a line.

import { sparkline } from "../lib/charts.js";
import { bytes, compact, duration, millis, number, percent, rate } from "../lib/format.js";
import { link } from "../lib/router.js";
import { tile } from "../lib/ui.js";
import { h, when } from "../lib/view.js";

/** @typedef {import("../api").Overview} Overview */
/** @typedef {import("../api").SinkRate} SinkRate */
/** @typedef {import("../api").History} History */

/** @param {readonly SinkRate[]} sinks */
export const pending = (sinks) => sinks.reduce((sum, sink) => sum + (sink.pending ?? 0), 0);
/** @param {readonly SinkRate[]} sinks */
const deadLetters = (sinks) => sinks.reduce((sum, sink) => sum + (sink.dead ?? 0), 0);
/** In seconds. @param {readonly SinkRate[]} sinks */
const oldest = (sinks) => sinks.reduce((most, sink) => Math.max(most, sink.oldest_s ?? 0), 0);

/** @param {() => unknown} text */
const under = (text) => h("div", { class: "under" }, text);

/**
 * @param {import("../lib/view.js").Readable<Overview>} overview
 * @param {() => History | null} history
 */
export function overviewTiles(overview, history) {
  const last = overview.peek();
  const state = () => overview.value ?? last;
  return h("div", { class: "tiles" }, flowTiles(state, history), hostTiles(state));
}

/** @param {() => Overview} state @param {() => History | null} history */
function flowTiles(state, history) {
  const totals = () => state().totals;
  const writer = () => state().role === "writer";
  /**
   * @param {keyof History["totals"]} name
   * @param {string} label
   * @param {{ level?: () => import("../lib/ui.js").Level, format?: (n: number | null) => string }} [more]
   */
  const spark = (name, label, more = {}) =>
    when(
      () => (history()?.totals[name] ?? []).some((value) => value !== null),
      () => sparkline(() => history()?.totals[name] ?? [], { label: `${label} in the last hour`, ...more }),
    );
  const dead = () => deadLetters(state().sinks);
  const wait = () => oldest(state().sinks);
  return [
    tile(
      () => (writer() ? "Stored" : "Accepted"),
      () => rate(totals().accepted_per_s),
      under(
        () => `${compact(totals().accepted)} in total${totals().bytes_per_s === null ? "" : `, ${bytes(totals().bytes_per_s, "MB")}/s`}`,
      ),
      spark("accepted_per_s", "Accepted per second"),
    ),
    tile(
      () => (writer() ? "Request, p99" : "Post, p99"),
      () => millis(totals().post_p99_ms),
      under(() => (totals().events_a_commit === null ? "" : `${number(Math.round(totals().events_a_commit ?? 0))} events a commit`)),
      spark("post_p99_ms", "Duration of posts, p99", { format: millis }),
    ),
    when(
      () => !writer(),
      () => [
        tile(
          h("a", { href: link("sinks") }, "Pending"),
          () => number(pending(state().sinks)),
          under(() => (wait() >= 1 ? `the oldest waits ${duration(wait())}` : "none waits long")),
          spark("pending", "Pending events", { level: () => (wait() > 60 ? "bad" : "none") }),
        ),
        tile(
          h("a", { href: link("dead") }, "Dead letters"),
          () => number(dead()),
          under(() => (dead() > 0 ? "to replay or drop" : "none")),
          spark("dead", "Dead letters", { level: () => (dead() > 0 ? "bad" : "none") }),
        ),
      ],
    ),
    tile(
      h("a", { href: link("refused") }, "Rejected"),
      () => [number(Math.round(totals().refused_per_min)), h("small", null, " a minute")],
      under(() => (totals().refused_per_min > 0 ? "requests and records" : "none")),
      spark("refused_per_min", "Rejected per minute", { level: () => (totals().refused_per_min > 0 ? "warn" : "none") }),
    ),
  ];
}

/** @param {() => number | null} share from 0 to 1 @param {() => string} level */
const meter = (share, level) =>
  h(
    "div",
    { class: "meter", "aria-hidden": "true" },
    h("i", { class: level, style: { width: () => `${Math.min(100, (share() ?? 0) * 100)}%` } }),
  );

/** @param {number | undefined} part @param {number | undefined} whole */
const shareOf = (part, whole) => (part === undefined || !whole ? null : part / whole);

/** @param {() => Overview} state */
function hostTiles(state) {
  const host = () => state().host;
  const fsync = () => state().totals.fsync_p99_ms;
  const throttled = () => (host().throttled ?? 0) > 0.01;
  const cpu = () => shareOf(host().cpu, host().cpu_limit);
  const memory = () => shareOf(host().rss_bytes, host().memory_limit);
  return [
    when(
      () => fsync() !== null || host().disk_free_bytes !== undefined,
      () =>
        tile(
          h("a", { href: link("health") }, "Disk, fdatasync p99"),
          () => millis(fsync()),
          under(() => (host().disk_free_bytes === undefined ? "" : `${bytes(host().disk_free_bytes)} free`)),
        ),
    ),
    when(
      () => host().cpu !== undefined,
      () =>
        tile(
          h("a", { href: link("health") }, "CPU"),
          () => [number(host().cpu), h("small", null, host().cpu_limit === undefined ? " CPUs" : ` of ${number(host().cpu_limit)}`)],
          under(() => (throttled() ? `throttled ${percent(host().throttled)} of the time` : "not throttled")),
          when(
            () => cpu() !== null,
            () => meter(cpu, () => (throttled() ? "warn" : "")),
          ),
        ),
    ),
    when(
      () => host().rss_bytes !== undefined,
      () =>
        tile(
          h("a", { href: link("health") }, "Memory"),
          () => [bytes(host().rss_bytes), h("small", null, host().memory_limit === undefined ? "" : ` of ${bytes(host().memory_limit)}`)],
          under(() => (memory() === null ? "no limit" : `${percent(memory())} of the limit`)),
          when(
            () => memory() !== null,
            () => meter(memory, () => ((memory() ?? 0) > 0.9 ? "bad" : "")),
          ),
        ),
    ),
  ];
}
