// The events of the page "Events": pages from the store, and newer events that are held back.

import { hidden, stream } from "../lib/live.js";
import { parseKeepingPayloads } from "../lib/rawjson.js";
import { batch, effect, onDispose, signal } from "../lib/view.js";
import { getKeepingPayloads } from "./parts.js";

/** @typedef {import("../api").StoredEvent} StoredEvent */
/** @typedef {import("../api").Events} Events */
/** @typedef {{ type: string, source: string, since: string, until: string, where: string, order: string, key: string }} Filter */

/** Rows that the page has at most: further pages replace the first rows. */
export const MOST_ROWS = 1000;
/** Newer events that are kept; more are only counted. */
const MOST_HELD = 500;
const PAGE = 100;
const POLL_MS = 5000;

/**
 * @param {Filter} filter
 * @param {() => boolean} tailing whether accepted events are received as they come, instead of asking the store. Reactive
 */
export function eventFeed(filter, tailing) {
  const rows = signal(/** @type {readonly StoredEvent[]} */ ([]));
  const held = signal(/** @type {readonly StoredEvent[]} */ ([]));
  /** Held events beyond those that are kept. */
  const heldMore = signal(0);
  const asked = signal(/** @type {Events | null} */ (null));
  const lookedAt = signal(0);
  const busy = signal(false);
  const failed = signal(/** @type {Error | null} */ (null));
  /** @type {Set<string>} */
  const seen = new Set();
  const abort = new AbortController();
  onDispose(() => abort.abort());

  /** @param {Record<string, string | number | null>} change @returns {Promise<Events>} */
  const ask = (change) => {
    const { key, type, source, ...times } = filter;
    const query = key ? { key, type, source } : { type, source, ...times };
    return getKeepingPayloads("api/events", { signal: abort.signal, query: { ...query, limit: PAGE, ...change } });
  };

  /** @param {readonly StoredEvent[]} events */
  const unseen = (events) => {
    const fresh = events.filter((event) => !seen.has(event.id));
    for (const event of fresh) seen.add(event.id);
    return fresh;
  };

  async function load() {
    if (busy.peek()) return;
    busy.value = true;
    try {
      const answer = await ask({ cursor: asked.peek()?.next ?? null });
      batch(() => {
        failed.value = null;
        asked.value = answer;
        lookedAt.value += answer.looked_at;
        rows.value = [...rows.peek(), ...unseen(answer.events)].slice(-MOST_ROWS);
      });
    } catch (error) {
      if (!abort.signal.aborted) failed.value = /** @type {Error} */ (error);
    } finally {
      busy.value = false;
    }
  }

  /** Keeps newer events, the newest first. @param {readonly StoredEvent[]} newer */
  function hold(newer) {
    const all = [...unseen(newer), ...held.peek()];
    batch(() => {
      heldMore.value += Math.max(0, all.length - MOST_HELD);
      held.value = all.slice(0, MOST_HELD);
    });
  }

  /** Puts the held events on top of the list. */
  function showHeld() {
    batch(() => {
      rows.value = [...held.peek(), ...rows.peek()].slice(0, MOST_ROWS);
      held.value = [];
      heldMore.value = 0;
    });
  }

  async function poll() {
    if (busy.peek() || !asked.peek()) return;
    const newest = held.peek()[0] ?? rows.peek()[0];
    try {
      hold((await ask({ since: newest?.received_at ?? filter.since, order: "desc", cursor: null })).events);
    } catch {
      // The next poll asks again; the shell says that the page isn't live.
    }
  }

  effect(() => {
    // Old pages and pages from the oldest on get no newer events.
    if (hidden.value || filter.order === "asc" || filter.until || filter.key || failed.value) return;
    if (tailing()) onDispose(tail(filter, hold));
    else {
      const timer = setInterval(poll, POLL_MS);
      onDispose(() => clearInterval(timer));
    }
  });
  load();
  return { rows, held, heldMore, asked, lookedAt, busy, failed, showHeld, load };
}

/** Receives a sample of accepted events. @param {Filter} filter @param {(events: StoredEvent[]) => void} hold */
function tail(filter, hold) {
  const { type, source, where } = filter;
  return stream(
    "api/tap",
    (/** @type {any} */ line) => {
      if (!line.id) return;
      hold([{ id: line.id, type: line.type, source: line.source, received_at: line.time, payload: line.payload ?? line.payload_head }]);
    },
    { query: { at: "accepted", type, source, where, rate: 50 }, parse: parseKeepingPayloads },
  );
}
