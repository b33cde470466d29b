// The fleet: all instances that this one knows. Choosing one shows its pages through this port.

import { get, resource } from "../lib/api.js";
import { bytes, count, duration, millis, number, rate } from "../lib/format.js";
import { problemsOf } from "../lib/live.js";
import { instance, link } from "../lib/router.js";
import { ago, card, code, dataTable, empty, outside, pageHead, pill, shown } from "../lib/ui.js";
import { computed, h, when } from "../lib/view.js";

/** @typedef {import("../api").Peer} Peer */
/** @typedef {import("../api").Overview} Overview */

export default function fleetPage() {
  const answer = /** @type {import("../lib/api.js").Resource<import("../api").Peers>} */ (
    resource((signal) => get("api/peers", { signal, here: true }), { every: 5000 })
  );
  const peers = () => answer.data.value?.peers ?? [];
  return h(
    "div",
    null,
    pageHead("Fleet", () => (peers().length > 1 ? h("span", { class: "mu" }, summary(peers())) : null)),
    shown(answer, () => [
      when(
        () => peers().length > 1,
        () => card({ title: "Instances", note: "each asked by this one; choose one to see its pages" }, table(peers)),
        () =>
          card(
            { title: "One instance" },
            empty("No other instance is configured. To see a fleet here, list its admin ports in the configuration:"),
            h(
              "pre",
              { tabindex: "0" },
              '[console.peers]\nservers = ["http://gateway-2:9000", "http://writer-1:9001"]\ntoken_file = "console.token"\n',
            ),
          ),
      ),
    ]),
  );
}

/** @param {Peer[]} peers */
function summary(peers) {
  const silent = peers.filter((peer) => peer.error !== null).length;
  const wrong = peers.filter((peer) => peer.error === null && problems(peer.overview) > 0).length;
  if (silent + wrong === 0) return `all ${number(peers.length)} instances are healthy`;
  return [wrong > 0 ? `${count(wrong, "instance")} with problems` : "", silent > 0 ? `${number(silent)} without an answer` : ""]
    .filter(Boolean)
    .join(", ");
}

/** @param {Overview | null} overview */
const problems = (overview) => (overview ? problemsOf(overview).length : 0);

/** @param {() => Peer[]} peers */
function table(peers) {
  /** The newest version; others are older. */
  const newest = computed(() =>
    peers().reduce((most, peer) => (newer(peer.overview?.version ?? "", most) ? (peer.overview?.version ?? most) : most), ""),
  );
  const total = (/** @type {"pending" | "dead"} */ member) => (/** @type {Peer} */ peer) => {
    const known = (peer.overview?.sinks ?? []).map((sink) => sink[member]).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  };
  const oldest = (/** @type {Peer} */ peer) => {
    const known = (peer.overview?.sinks ?? []).flatMap((sink) => (sink.oldest_s === null ? [] : [sink.oldest_s]));
    return known.length === 0 ? null : Math.max(...known);
  };
  const name = (/** @type {Peer} */ peer) => [
    h("a", { href: link("overview", "", {}, at(peer)) }, outside(peer.name, 120)),
    peer.this ? h("span", { class: "mu" }, " (this)") : null,
    h("div", { class: "reason" }, code(peer.url, 200)),
  ];
  return dataTable({
    label: "Instances",
    rows: peers,
    key: (peer) => peer.name,
    window: 100,
    selected: (peer) => instance.value === at(peer),
    columns: [
      { title: "Instance", cell: name, by: () => "", sort: (peer) => peer.name },
      { title: "Role", cell: (peer) => peer.role ?? "–", sort: (peer) => peer.role },
      { title: "State", class: "text", cell: stateCell, sort: (peer) => (peer.error ? 1e6 : problems(peer.overview)) },
      { title: "Version", cell: (peer) => versionCell(peer, newest.value), sort: (peer) => peer.overview?.version ?? null },
      {
        title: "Rate",
        class: "n",
        cell: (peer) => rate(peer.overview?.totals.accepted_per_s),
        sort: (peer) => peer.overview?.totals.accepted_per_s ?? null,
      },
      { title: "Pending", class: "n", cell: (peer) => number(total("pending")(peer)), sort: total("pending") },
      { title: "Oldest", class: "n", cell: (peer) => duration(oldest(peer)), sort: oldest },
      { title: "Dead", class: "n", cell: (peer) => number(total("dead")(peer)), sort: total("dead") },
      {
        title: "p99",
        class: "n",
        cell: (peer) => millis(peer.overview?.totals.post_p99_ms),
        sort: (peer) => peer.overview?.totals.post_p99_ms ?? null,
      },
      { title: "CPU", class: "n", cell: cpuCell, sort: (peer) => peer.overview?.host.cpu ?? null },
      {
        title: "Disk free",
        class: "n",
        cell: (peer) => bytes(peer.overview?.host.disk_free_bytes),
        sort: (peer) => peer.overview?.host.disk_free_bytes ?? null,
      },
    ],
  });
}

/** The peer's name in addresses. @param {Peer} peer */
const at = (peer) => (peer.this ? null : peer.name);

/** @param {Peer} peer */
function stateCell(peer) {
  if (peer.error !== null) {
    return [
      pill("bad", peer.seen ? h("span", null, "no answer for ", ago(peer.seen)) : "no answer yet"),
      h("div", { class: "reason" }, outside(peer.error, 300)),
    ];
  }
  if (!peer.overview) return pill("none", "not asked yet");
  const n = problems(peer.overview);
  if (n > 0)
    return [pill("bad", count(n, "problem")), h("div", { class: "reason" }, outside(problemsOf(peer.overview)[0]?.text ?? "", 200))];
  const findings = peer.overview.findings.length;
  return findings > 0 ? pill("warn", count(findings, "finding")) : pill("ok", "healthy");
}

/** @param {Peer} peer @param {string} newest */
function versionCell(peer, newest) {
  const version = peer.overview?.version;
  if (!version) return "–";
  return newer(newest, version)
    ? h("span", { title: `The newest in the fleet is ${newest}` }, outside(version, 40), " ", pill("warn", "older"))
    : outside(version, 40);
}

/** @param {Peer} peer */
function cpuCell({ overview }) {
  if (overview?.host.cpu === undefined) return "–";
  const { cpu, cpu_limit: limit, throttled } = overview.host;
  const slow = (throttled ?? 0) > 0.05 ? h("div", { class: "warn-text" }, "▲ throttled") : null;
  return [`${number(cpu)}${limit === undefined ? "" : ` of ${number(limit)}`}`, slow];
}

/** Whether a version is newer: 1.10.0 is newer than 1.9.2. @param {string} a @param {string} b */
function newer(a, b) {
  const parts = (/** @type {string} */ version) => version.split(/[.+-]/).map((part) => Number.parseInt(part, 10) || 0);
  const [x, y] = [parts(a), parts(b)];
  for (let i = 0; i < 3; i++) if ((x[i] ?? 0) !== (y[i] ?? 0)) return (x[i] ?? 0) > (y[i] ?? 0);
  return false;
}
