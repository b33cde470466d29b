// The stream of the page "Tap": lines, the newest first, and those that are held back while the reader is in the list.
import { hidden, stream } from "../lib/live.js";
import { parseKeepingPayloads } from "../lib/rawjson.js";
import { batch, effect, onDispose, signal } from "../lib/view.js";

/** @typedef {import("../api").TapLine} TapLine */
/** @typedef {import("../api").TapSum} TapSum */
/** @typedef {import("../lib/live.js").StreamState} StreamState */

/** Lines that the page keeps. */
const MOST_LINES = 500;

/** A writer has only the point `stored`. @param {URLSearchParams} query @param {boolean} writer */
export function filterOf(query, writer) {
  const of = (/** @type {string} */ name) => query.get(name) ?? "";
  const at = of("at") || (writer ? "stored" : "accepted");
  const where = at === "refused" ? "" : of("where");
  const sink = at === "stored" || at === "dead" ? of("sink") : "";
  return { at, type: of("type"), source: of("source"), sink, where, rate: of("rate") || "10" };
}

/** @param {{ readonly value: string }} filter @param {import("../lib/view.js").Signal<boolean>} running */
export function tapFeed(filter, running) {
  const lines = signal(/** @type {readonly TapLine[]} */ ([]));
  const held = signal(/** @type {readonly TapLine[]} */ ([]));
  const sum = signal(/** @type {TapSum | null} */ (null));
  const state = signal(/** @type {StreamState} */ ("closed"));
  const error = signal(/** @type {Error | null} */ (null));
  /** The reader has stopped the list, or is in it. */
  const paused = signal(false);
  const inside = signal(false);
  const holds = () => paused.value || inside.value;

  const show = () => {
    lines.value = [...held.peek(), ...lines.peek()].slice(0, MOST_LINES);
    held.value = [];
  };
  effect(() => {
    if (!holds()) show();
  });
  /** @param {TapLine | TapSum} line */
  const take = (line) => {
    if ("sum" in line) sum.value = line;
    else if (paused.peek() || inside.peek()) held.value = [line, ...held.peek()].slice(0, MOST_LINES);
    else lines.value = [line, ...lines.peek()].slice(0, MOST_LINES);
  };
  effect(() => {
    const query = JSON.parse(filter.value);
    if (!running.value || hidden.value) return;
    batch(() => {
      lines.value = [];
      held.value = [];
      sum.value = null;
      error.value = null;
    });
    const onState = (/** @type {StreamState} */ next, /** @type {Error | undefined} */ reason) => {
      state.value = next;
      error.value = next === "live" ? null : (reason ?? error.peek());
      if (next === "failed") running.value = false;
    };
    onDispose(stream("api/tap", take, { query, onState, parse: parseKeepingPayloads }));
  });
  return { filter, lines, held, sum, state, error, paused, inside, holds };
}
