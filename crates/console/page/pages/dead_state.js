// What the parts of the page "Dead letters" share: the filter in the address, the choice, and when to ask again.

import { queryParam, route, setQuery } from "../lib/router.js";
import { computed, signal } from "../lib/view.js";

/** @typedef {import("../api").DeadLetter} DeadLetter */
/** @typedef {{ [name: string]: string }} Filter */
/** @typedef {ReturnType<typeof deadState>} DeadState */

/** Filters that belong to a group. */
export const GROUP = /** @type {const} */ (["sink", "type", "reason_group"]);
const FREE = /** @type {const} */ (["id", "reason", "where", "since", "until"]);

/** The key of a dead letter: an event may have one in each sink. @param {{ sink: string, id: string }} letter */
export const letterKey = ({ sink, id }) => `${sink}/${id}`;

/** The element with the open dead letter. */
export const OPEN = "open-letter";

export function deadState() {
  /** The filter as text: it changes only if the filter does. */
  const key = computed(() => {
    /** @type {Filter} */
    const filter = {};
    for (const name of [...GROUP, ...FREE]) {
      const value = route.value.query.get(name);
      if (value) filter[name] = value;
    }
    return JSON.stringify(filter);
  });
  return {
    /** The filter of the dead letters that the page shows. Reactive. @returns {Filter} */
    filter: () => JSON.parse(key.value),
    key,
    /** The dead letters that are chosen, by their keys. */
    chosen: signal(/** @type {ReadonlyMap<string, DeadLetter>} */ (new Map())),
    /** "SINK/ID" of the one that is open. */
    open: queryParam("letter"),
    /** Grows when dead letters may have changed. */
    version: signal(0),
    /** How many match, as the groups say; null before their first answer. */
    matching: signal(/** @type {{ letters: number, atLeast: boolean } | null} */ (null)),
    /** @param {Filter} change */
    change: (change) => setQuery({ ...change, letter: "" }),
  };
}
