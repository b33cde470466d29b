// Replays and drops that run or have run, and the last actions of operators.
import { adminReason, del, get, resource } from "../lib/api.js";
import { count, duration, number, safe } from "../lib/format.js";
import { button, card, chip, code, dataTable, outside, pill, shown, time, toast } from "../lib/ui.js";
import { effect, h, list, signal } from "../lib/view.js";
import { handled, jobLevel, results } from "./words.js";

/** @typedef {import("../api").Job} Job */

const FAST_MS = 1000;
const SLOW_MS = 5000;

/** @param {Job} job */
const runs = (job) => job.ended === null;

/**
 * The jobs of this instance, asked each second while one runs. `onend` is called for each that ends.
 * @param {(job: Job) => void} onend
 * @param {() => unknown} again read to ask again
 */
export function jobFeed(onend, again) {
  const every = signal(SLOW_MS);
  /** Those that are known to have ended; null before the first answer. @type {Set<string> | null} */
  let ended = null;
  /** @type {import("../lib/api.js").Resource<import("../api").Jobs>} */
  const jobs = resource(
    (abort) => {
      again();
      return get("api/jobs", { signal: abort });
    },
    {
      get every() {
        return every.peek();
      },
    },
  );
  effect(() => {
    const all = jobs.data.value?.jobs;
    if (!all) return;
    every.value = all.some(runs) ? FAST_MS : SLOW_MS;
    // The jobs of the first answer that have ended are old.
    if (ended === null) ended = new Set(all.filter((job) => !runs(job)).map((job) => job.job));
    for (const job of all) {
      if (runs(job) || ended.has(job.job)) continue;
      ended.add(job.job);
      onend(job);
    }
  });
  return jobs;
}

/** Why no further action can start; null if it can. @param {import("../lib/api.js").Resource<import("../api").Jobs>} jobs */
export function busyReason(jobs) {
  const job = jobs.data.value?.jobs.find(runs);
  return job ? `A ${job.action} is running. Wait until it ends, or stop it.` : null;
}

/** The jobs that run, with progress. @param {import("../lib/api.js").Resource<import("../api").Jobs>} jobs */
export function runningJobs(jobs) {
  return h(
    "div",
    { "aria-live": "polite", "aria-label": "Running replays and drops", role: "region" },
    list(
      () => (jobs.data.value?.jobs ?? []).filter(runs),
      (job) => job.job,
      (job) => runningJob(job, jobs.reload),
    ),
  );
}

/** @param {{ readonly value: Job }} job @param {() => void} reload */
function runningJob(job, reload) {
  const stop = async () => {
    await del(`api/jobs/${encodeURIComponent(job.value.job)}`);
    toast("Stopping after the batch in flight.");
    reload();
  };
  const stopping = () => (job.value.state === "stopping" ? "It stops after the batch in flight." : adminReason());
  const name = () => `Job ${job.value.job}: ${job.value.action} of ${count(job.value.letters, "dead letter")}`;
  return card(
    { title: name, actions: button("Stop", { kind: "danger", onclick: stop, disabledBecause: stopping }), class: "job" },
    h("progress", { "aria-label": name, max: () => Math.max(1, job.value.letters), value: () => handled(job.value) }),
    h("p", { class: "num" }, () => `${number(handled(job.value))} of ${number(job.value.letters)}: ${results(job.value.sinks)}`),
    h(
      "p",
      { class: "mu" },
      "Started by ",
      () => outside(job.value.by),
      " at ",
      () => time(job.value.started),
      ". It continues if you close this page.",
    ),
  );
}

/** Why sinks failed. @param {Job} job */
export function jobFailure(job) {
  const reasons = job.sinks.filter((sink) => sink.failure);
  return reasons.map((sink) => h("div", null, outside(sink.sink), ": ", code(sink.failure)));
}

/** @param {Job} job */
function jobTime(job) {
  return job.ended ? duration((Date.parse(job.ended) - Date.parse(job.started)) / 1000) : "runs";
}

/** Jobs that ran, the newest first. @param {import("../lib/api.js").Resource<import("../api").Jobs>} jobs */
export function jobTable(jobs) {
  return shown(jobs, (data) =>
    dataTable({
      label: "Replays and drops",
      window: 10,
      rows: () => data.value.jobs,
      key: (job) => job.job,
      empty: "No replay or drop since the start.",
      columns: [
        { title: "Started", cell: (job) => time(job.started) },
        { title: "Job", class: "tight", cell: (job) => `${safe(job.job)} ${job.action}` },
        { title: "By", cell: (job) => outside(job.by) },
        { title: "Filter", cell: (job) => (job.filter ? code(job.filter, 200) : "all"), class: "wide" },
        { title: "State", cell: (job) => (runs(job) ? chip(job.state) : pill(jobLevel(job), job.state)) },
        { title: "Dead letters", cell: (job) => number(job.letters), class: "n" },
        { title: "Outcome", cell: (job) => [results(job.sinks), jobFailure(job)] },
        { title: "Took", cell: jobTime, class: "n" },
      ],
    }),
  );
}

/** Who did what. @param {() => unknown} again read to ask again */
export function actionTable(again) {
  /** @type {import("../lib/api.js").Resource<import("../api").Actions>} */
  const actions = resource((abort) => {
    again();
    return get("api/actions", { signal: abort });
  });
  return shown(actions, (data) =>
    dataTable({
      label: "Actions of operators",
      window: 10,
      rows: () => data.value.actions,
      key: (action, index) => `${action.at} ${action.action} ${action.target} ${data.value.actions.length - index}`,
      empty: "No action since the start.",
      columns: [
        { title: "When", cell: (action) => time(action.at) },
        { title: "By", cell: (action) => outside(action.by) },
        { title: "Action", cell: (action) => outside(action.action) },
        { title: "Target", cell: (action) => code(action.target, 200), class: "wide" },
        { title: "Result", cell: (action) => outside(action.result) },
      ],
    }),
  );
}
