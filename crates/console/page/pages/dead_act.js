// Replay and drop: count first, ask, then start a job that continues without the page.
import { ApiError, post } from "../lib/api.js";
import { button, confirm, confirmNumber, dialog, outside, toast } from "../lib/ui.js";
import { h, signal } from "../lib/view.js";
import { dropPlan, replayPlan, results } from "./words.js";

/** @typedef {"replay" | "drop"} Action */
/** @typedef {import("../api").DeadPlan} DeadPlan */
/** @typedef {import("./dead_state.js").Filter} Filter */

/** The query of an action. Without a filter a drop must name all. @param {Action} action @param {Filter} filter */
function queryOf(action, filter) {
  return action === "drop" && Object.keys(filter).length === 0 ? { all: "true" } : filter;
}

/** An action is counted, confirmed or started. Reactive: buttons of others are disabled, since the second of two clicks may hit one. */
export const acting = signal(false);
/** Until the list of jobs has the action that was started. */
const SETTLE_MS = 1000;

/**
 * Says what a replay or drop will do, asks, and starts it once.
 * @param {Action} action
 * @param {Filter} filter
 * @returns {Promise<boolean>} whether it has started
 */
export async function act(action, filter) {
  if (acting.peek()) return false;
  acting.value = true;
  try {
    return await countAskStart(action, filter);
  } finally {
    setTimeout(() => (acting.value = false), SETTLE_MS);
  }
}

/** @param {Action} action @param {Filter} filter @returns {Promise<boolean>} */
async function countAskStart(action, filter) {
  const query = queryOf(action, filter);
  /** @type {DeadPlan} */
  const plan = await post(`api/dead/${action}`, undefined, {}, { query: { ...query, dry_run: true } });
  if (plan.letters === 0) {
    toast("No dead letter matches. They may have been replayed or dropped.", "warn");
    return false;
  }
  if (!(await agreed(action, plan))) return false;
  try {
    const answer = await post(`api/dead/${action}`, undefined, { Prefer: "respond-async" }, { query: { ...query, expect: plan.letters } });
    // The page shows the job while it runs, and a message when it ends.
    if (!answer?.job) toast(results(answer?.sinks ?? []));
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return conflict(action, filter, error);
    throw error;
  }
}

/** @param {Action} action @param {DeadPlan} plan */
function agreed(action, plan) {
  const sentences = action === "replay" ? replayPlan(plan) : dropPlan(plan);
  const body = sentences.map((sentence) => h("p", null, outside(sentence)));
  const [title, verb] = action === "replay" ? ["Replay dead letters", "Replay"] : ["Drop dead letters", "Drop"];
  if (action === "replay") return confirm({ title, body, verb });
  return confirmNumber({ title, body, verb, number: plan.letters, what: "dead letters" });
}

/** Nothing was started: why, and what to do. @param {Action} action @param {Filter} filter @param {ApiError} error */
async function conflict(action, filter, error) {
  const changed = error.code === "changed";
  const text = changed
    ? "Other dead letters match now than when they were counted. Nothing was started: count them again."
    : "Another replay or drop is running. Wait until it ends, or stop it.";
  const open = dialog({
    title: changed ? "The number has changed" : "An action is running",
    body: [h("p", null, text), h("p", { class: "mu" }, outside(error.detail))],
    actions: (close) => [
      button("Close", { onclick: () => close(false) }),
      changed ? button("Count again", { kind: "primary", onclick: () => close(true) }) : null,
    ],
  });
  return (await open.closed) === true ? countAskStart(action, filter) : false;
}
