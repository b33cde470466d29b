// Replay and drop: count first, ask, then start a job that continues without the page.
import { ApiError, post } from "../lib/api.js";
import { button, confirm, confirmNumber, dialog, failed, outside, toast } from "../lib/ui.js";
import { h } from "../lib/view.js";
import { dropPlan, replayPlan, results } from "./words.js";

/** @typedef {"replay" | "drop"} Action */
/** @typedef {import("../api").DeadPlan} DeadPlan */
/** @typedef {import("./dead_state.js").Filter} Filter */

/** The query of an action. Without a filter a drop must name all. @param {Action} action @param {Filter} filter */
function queryOf(action, filter) {
  return action === "drop" && Object.keys(filter).length === 0 ? { all: "true" } : filter;
}

/**
 * Says what a replay or drop will do, asks, and starts it once.
 * @param {Action} action
 * @param {Filter} filter
 * @returns {Promise<boolean>} whether it has started
 */
export async function act(action, filter) {
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
    toast(answer?.job ? `Started as job ${answer.job}. It continues if you close this page.` : results(answer?.sinks ?? []));
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
  return (await open.closed) === true ? act(action, filter) : false;
}

/**
 * One action for each sink of a choice: an event may have dead letters in several sinks, of which only some are chosen.
 * @param {Action} action
 * @param {Iterable<{ sink: string, id: string }>} letters
 */
export async function actOnChoice(action, letters) {
  /** @type {Map<string, string[]>} */
  const sinks = new Map();
  for (const { sink, id } of letters) sinks.set(sink, [...(sinks.get(sink) ?? []), id]);
  let started = false;
  for (const [sink, ids] of sinks) {
    try {
      started = (await act(action, { sink, id: ids.join(",") })) || started;
    } catch (error) {
      failed(error);
    }
  }
  return started;
}
