// Sentences about events, dead letters and jobs. Pure functions: no page and no request.
import { clock, count, number } from "../lib/format.js";

/** @typedef {import("../api").SinkStory} SinkStory */
/** @typedef {import("../api").Failure} Failure */
/** @typedef {import("../api").DeadPlan} DeadPlan */
/** @typedef {import("../api").DeadOutcome} DeadOutcome */
/** @typedef {import("../api").Job} Job */

/** With tenths of a second only. @param {string} time */
const tenths = (time) => clock(time, { exact: true }).slice(0, -2);

/** When an outcome was, as exactly as it is known. @param {{ from: string, to: string }} bounds */
export function bounds({ from, to }) {
  const apart = Date.parse(to) - Date.parse(from);
  const exact = { exact: true };
  if (!(apart > 1)) return `at ${clock(to, exact)}`;
  if (apart < 100) return `between ${clock(from, exact)} and ${clock(to, exact)}`;
  return `between ${tenths(from)} and ${tenths(to)}`;
}

/** "3 failures until then, the last: timed out after 30 s". @param {Failure[]} failures */
export function failuresMeanwhile(failures) {
  const ended = failures.filter((failure) => failure.to !== null);
  const last = ended[0];
  if (!last) return "";
  const tries = ended.reduce((sum, failure) => sum + failure.tries, 0);
  return `${count(tries, "failed try", "failed tries")} of its lane before that; the last reason: ${last.reason}`;
}

/** Why a lane waits now: "connection refused, 24 tries". @param {Failure[]} failures */
export function openFailure(failures) {
  const open = failures.find((failure) => failure.to === null);
  return open ? `${open.reason}, ${count(open.tries, "try", "tries")}` : "";
}

/** What a sink did with an event, after the sink's name. @param {SinkStory} story */
export function outcome(story) {
  const when = story.at ? ` ${bounds(story.at)}` : "";
  const through = story.server ? `, through ${story.server}` : "";
  switch (story.outcome) {
    case "stored":
      return `stored it${when || ", at an unknown time"}${through}`;
    case "pending":
      if (!story.before_it) return "hasn't got it yet";
      return `hasn't got it yet: ${count(story.before_it, "event")} of its lane ${story.before_it === 1 ? "comes" : "come"} first`;
    case "deferred":
      return "rejected it for now; its lane sends it again";
    case "dead":
      return `rejected it${when}${through}: it is a dead letter`;
    case "dropped":
      return `rejected it${when}; its dead letter was dropped`;
    case "skipped":
      return "skipped it: the condition of its route is false";
    case "lost":
      return "doesn't get it: the journal lost it";
    default:
      return "may have it: the outcome isn't known";
  }
}

/** Which payload a story has: that of the first part that has one. @param {import("../api").Story} story */
export function payloadOrigin({ known_from, sinks }) {
  const [, place, sink] = known_from.map((from) => /^(journal|store|dead letters of|quarantine)(?: (.*))?$/.exec(from)).find(Boolean) ?? [];
  if (place === "journal") return "as accepted: after the steps of its type";
  const edited = sinks.some((one) => one.sink === sink && one.edits.length > 0) ? ", after an edit" : "";
  if (place === "dead letters of") return `of the dead letter in ${sink}${edited}`;
  return sink ? `as stored in ${sink}${edited}` : "as stored";
}

/** How serious an outcome is. @type {Record<SinkStory["outcome"], "ok" | "warn" | "bad" | "none">} */
export const LEVELS = {
  stored: "ok",
  pending: "warn",
  deferred: "warn",
  dead: "bad",
  dropped: "bad",
  skipped: "none",
  lost: "bad",
  unknown: "none",
};

/** @param {string[]} names */
export function listed(names) {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** What a replay will do. @param {DeadPlan} plan */
export function replayPlan(plan) {
  const sinks = plan.sinks.filter((sink) => sink.letters > 0);
  const goes = plan.letters === 1 ? "goes" : "go";
  const ids = plan.letters === 1 ? "its id" : "their ids";
  const first = `${count(plan.letters, "dead letter")} ${goes} to ${listed(sinks.map((sink) => sink.sink))} again under ${ids}.`;
  const again = sinks.filter((sink) => sink.repeatable === "again").map((sink) => sink.sink);
  if (again.length === 0) return [first, plan.letters === 1 ? "It can't be stored twice." : "None can be stored twice."];
  return [first, `If a replay is repeated, ${listed(again)} may get events twice: the receiver must recognise their ids.`];
}

/** What a drop will do. @param {DeadPlan} plan */
export function dropPlan(plan) {
  const sinks = listed(plan.sinks.filter((sink) => sink.letters > 0).map((sink) => sink.sink));
  const are = plan.letters === 1 ? "is" : "are";
  const they = plan.letters === 1 ? "It stays" : "They stay";
  return [`${count(plan.letters, "dead letter")} of ${sinks} ${are} deleted permanently.`, `${they} counted as dead in the ledger.`];
}

/** "118 stored, 2 rejected again". @param {DeadOutcome[]} sinks */
export function results(sinks) {
  const sum = (/** @type {"stored" | "refused" | "dropped" | "edited" | "left"} */ key) =>
    sinks.reduce((total, sink) => total + sink[key], 0);
  const parts = [
    [sum("stored"), "stored"],
    [sum("refused"), "rejected again"],
    [sum("dropped"), "dropped"],
    [sum("edited"), "edited"],
    [sum("left"), "left for later"],
  ].filter(([sum]) => sum);
  if (parts.length === 0) return "nothing yet";
  return parts.map(([sum, word]) => `${number(Number(sum))} ${word}`).join(", ");
}

/** How serious the result of a job is: it failed, or some dead letters are left. @param {Job} job @returns {"ok" | "warn" | "bad"} */
export function jobLevel({ state, letters, sinks }) {
  if (state === "failed" || sinks.some((sink) => sink.failure)) return "bad";
  return sinks.reduce((sum, sink) => sum + sink.stored + sink.dropped, 0) < letters ? "warn" : "ok";
}

/** Dead letters that a job has handled. @param {Job} job */
export function handled(job) {
  return job.sinks.reduce((sum, sink) => sum + sink.stored + sink.refused + sink.dropped + sink.left, 0);
}
