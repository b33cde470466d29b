// The events of the page "Events": pages from the store, the newest first, and newer ones that are held back.
import { batch, onDispose, signal } from "../lib/view.js";
import { getKeepingPayloads } from "./payload.js";
import { stream } from "../lib/live.js";

/** @typedef {import("../api").StoredEvent} StoredEvent */
/** @typedef {import("../api").Events} Events */
/** @typedef {{ type: string, source: string, since: string, until: string, where: string, order: string, key: string }} Filter */

/** Rows that the page has at most: further pages replace the first rows. */
export const MOST_ROWS = 1000;
/** Newer events that are kept; more are only counted. */
const MOST_HELD = 500;
const PAGE = 100;
const POLL_MS = 5000;

/** @param {Record<string, string | number | null | undefined>} values */
export function queryOf(values) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== "" && value !== null && value !== undefined) query.set(name, String(value));
  return query.toString();
}

/** @param {Filter} filter */
export function eventFeed(filter) {
  const rows = signal(/** @type {StoredEvent[]} */ ([]));
  const held = signal(/** @type {StoredEvent[]} */ ([]));
  const heldMore = signal(0);
  const asked = signal(/** @type {Events | null} */ (null));
  const lookedAt = signal(0);
  const removed = signal(0);
  const busy = signal(false);
  const failed = signal(/** @type {Error | null} */ (null));
  /** @type {Set<string>} */
  const seen = new Set();
  let ended = false;

  /** @param {string | null} cursor */
  async function load(cursor) {
    if (busy.value) return;
    busy.value = true;
    try {
      const { live: _, ...rest } = /** @type {any} */ (filter);
      const answer = /** @type {Events} */ (await getKeepingPayloads(`events?${queryOf({ ...rest, limit: PAGE, cursor })}`));
      if (ended) return;
      batch(() => take(answer));
    } catch (error) {
      if (!ended) failed.value = /** @type {Error} */ (error);
    } finally {
      busy.value = false;
    }
  }

  /** @param {Events} answer */
  function take(answer) {
    failed.value = null;
    asked.value = answer;
    lookedAt.value += answer.looked_at;
    const fresh = answer.events.filter((event) => !seen.has(event.id));
    for (const event of fresh) seen.add(event.id);
    const all = [...rows.value, ...fresh];
    removed.value += Math.max(0, all.length - MOST_ROWS);
    rows.value = all.slice(-MOST_ROWS);
  }

  /** Keeps newer events, the newest first, without moving the list. @param {StoredEvent[]} newer */
  function hold(newer) {
    const fresh = newer.filter((event) => !seen.has(event.id));
    for (const event of fresh) seen.add(event.id);
    if (fresh.length === 0) return;
    const all = [...fresh, ...held.value];
    heldMore.value += Math.max(0, all.length - MOST_HELD);
    held.value = all.slice(0, MOST_HELD);
  }

  /** Puts the held events on top of the list. */
  function showHeld() {
    batch(() => {
      const all = [...held.value, ...rows.value];
      rows.value = all.slice(0, MOST_ROWS);
      held.value = [];
      heldMore.value = 0;
    });
  }

  async function poll() {
    if (document.hidden || ended || failed.value || filter.order === "asc" || filter.until) return;
    const newest = (held.value[0] ?? rows.value[0])?.received_at;
    const since = newest ?? filter.since;
    try {
      const answer = /** @type {Events} */ (await getKeepingPayloads(`events?${queryOf({ ...filter, since, order: "desc", limit: PAGE, live: null })}`));
      if (!ended) hold(answer.events);
    } catch {
      // The next poll asks again. The shell shows that the page isn't live.
    }
  }

  /** @type {(() => void) | null} */
  let closeTail = null;
  /** Receives events when they are accepted instead of asking the store. @param {boolean} on */
  function tail(on) {
    closeTail?.();
    closeTail = null;
    if (!on) return;
    const path = `tap?${queryOf({ at: "accepted", type: filter.type, source: filter.source, where: filter.where, rate: 50 })}`;
    closeTail = stream(path, (/** @type {any} */ line) => {
      if (line.n === undefined || !line.id) return;
      hold([{ id: line.id, type: line.type, source: line.source, received_at: line.time, payload: line.payload ?? line.payload_head }]);
    });
  }

  const timer = setInterval(() => closeTail || poll(), POLL_MS);
  onDispose(() => {
    ended = true;
    clearInterval(timer);
    closeTail?.();
  });
  load(null);
  return { rows, held, heldMore, asked, lookedAt, removed, busy, failed, showHeld, tail, further: () => load(asked.value?.next ?? null) };
}
