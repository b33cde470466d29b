// What an operator does about a sink that has stopped, and about routes that were removed from the configuration.

import { ApiError, adminReason, post } from "../lib/api.js";
import { count, number } from "../lib/format.js";
import { button, card, code, confirm, confirmNumber, failed, outside, toast } from "../lib/ui.js";
import { h } from "../lib/view.js";

/** @typedef {import("../api").RoutePlan} RoutePlan */
/** @typedef {import("../lib/router.js").Query} Query */

const ACCEPT = "api/routes/accept";
/** Causes of a stopped lane by the beginning of its reason: what to do, as in the guide. */
const CAUSES = [
  {
    when: /another server has claimed/,
    title: "Another server has claimed this lane in the store",
    cause: "A server runs on a copy of the data directory, or the directory was restored from a backup.",
    steps: ["Stop the other server.", "Then resume the lanes at this server."],
    drop: false,
  },
  {
    when: /the store has positions up to/,
    title: "The store has more than the journal",
    cause: "The journal was restored, or has lost its end.",
    steps: ["Resume the lanes. What the store has counts as stored."],
    drop: false,
  },
  {
    when: /cursor went back/,
    title: "The store's cursor went back",
    cause: "The store was restored from an older copy, or removed.",
    steps: [
      "Restore the newer store, or choose one of the actions below.",
      "Resume resends what the journal still has. Drop continues with the pending events; lost events stay counted as stored.",
    ],
    drop: true,
  },
];
const UNKNOWN = {
  title: "The store and the journal disagree",
  cause: "Read the reason above.",
  steps: ["Correct the cause, then resume the lanes."],
  drop: true,
};

/**
 * Asks for the plan, shows it, and acts on exactly as many events as it says.
 * @param {{ path: string, query: Query, title: string, verb: string, typed: boolean, sentence: (plan: RoutePlan) => unknown, done: (plan: RoutePlan) => string,
 *   reload: () => void }} action
 */
async function planned(action) {
  /** @type {RoutePlan} */
  const plan = await post(action.path, undefined, undefined, { query: { ...action.query, dry_run: "true" } });
  const ask = { title: action.title, body: h("p", null, action.sentence(plan)), verb: action.verb };
  const yes = action.typed && plan.events > 0 ? await confirmNumber({ ...ask, number: plan.events, what: "events" }) : await confirm(ask);
  if (!yes) return;
  try {
    // Events continue to arrive while a lane is stopped: its number is what must not change.
    const expect = action.path === ACCEPT ? plan.lanes : plan.events;
    await post(action.path, undefined, undefined, { query: { ...action.query, expect } });
    toast(action.done(plan));
  } catch (error) {
    if (error instanceof ApiError && error.code === "changed")
      toast(["The number has changed: ", outside(error.detail), " Nothing was done. Try again."], "warn");
    else failed(error);
  }
  action.reload();
}

/** @param {string} sink @param {boolean} resend @param {() => void} reload */
const accept = (sink, resend, reload) =>
  planned({
    path: ACCEPT,
    query: { sink, ...(resend ? { resend: "true" } : {}) },
    title: resend ? `Resume ${sink} and resend?` : `Resume ${sink}?`,
    verb: resend ? "Resume and resend" : "Resume",
    typed: false,
    sentence: (plan) => [
      h("b", null, count(plan.lanes, "lane resumes", "lanes resume")),
      resend
        ? `. Forebay delivers ${count(plan.events, "event")}: all after the saved cursor, also those that the store may have. A store without ids stores these twice.`
        : `. Events up to the store's cursor count as stored. Forebay delivers the ${count(plan.events, "event")} after it.`,
    ],
    done: (plan) => `${count(plan.lanes, "lane resumes", "lanes resume")}: ${count(plan.events, "event")} to deliver.`,
    reload,
  });

/** @param {string} sink @param {string | null} type @param {() => void} reload */
const drop = (sink, type, reload) =>
  planned({
    path: "api/routes/drop",
    query: { sink, type },
    title: `Drop the backlog of ${sink}?`,
    verb: "Drop",
    typed: true,
    sentence: (plan) => [
      h("b", null, `${count(plan.events, "event")} will never be delivered to ${sink}`),
      ". The ledger counts them as skipped.",
      plan.lanes > 0 ? ` ${count(plan.lanes, "stopped lane resumes", "stopped lanes resume")}.` : "",
      " This cannot be undone.",
    ],
    done: (plan) => `${count(plan.events, "event")} dropped.`,
    reload,
  });

/**
 * @param {string} sink
 * @param {() => string} reason
 * @param {() => void} reload
 */
export function stoppedActions(sink, reason, reload) {
  const cause = () => CAUSES.find((one) => one.when.test(reason())) ?? UNKNOWN;
  const command = `forebay route accept ${sink}`;
  return card(
    { title: "Resume the sink", note: () => cause().title },
    h("p", null, () => cause().cause, " The events stay in the journal; none is lost while it is stopped."),
    () =>
      h(
        "ol",
        null,
        cause().steps.map((step) => h("li", null, step)),
      ),
    h(
      "div",
      { class: "row" },
      button("Resume (accept) …", { kind: "primary", disabledBecause: adminReason, onclick: () => accept(sink, false, reload) }),
      button("Resume and resend …", { disabledBecause: adminReason, onclick: () => accept(sink, true, reload) }),
      () =>
        cause().drop
          ? button("Drop the backlog …", { kind: "danger", disabledBecause: adminReason, onclick: () => drop(sink, null, reload) })
          : null,
    ),
    h(
      "p",
      { class: "mu" },
      "Each action shows first how many events it changes, and is logged with the token's name. The command for it: ",
      code(command),
    ),
  );
}

/** @param {import("../api").Route} route @param {() => void} reload */
export function removedActions(route, reload) {
  return button(`Drop ${number(route.pending)} …`, {
    kind: "danger",
    small: true,
    disabledBecause: adminReason,
    title: "The route is no longer in the configuration; add it again to deliver these events",
    onclick: () => drop(route.sink, route.type, reload),
  });
}
