// Small parts that several pages share.

import { send } from "../lib/api.js";
import { parseKeepingPayloads } from "../lib/rawjson.js";
import { link } from "../lib/router.js";
import { matches, outside } from "../lib/ui.js";
import { h } from "../lib/view.js";

/** @typedef {import("../lib/api.js").Options} Options */

/**
 * An answer with payloads as the text that the server sent.
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function getKeepingPayloads(path, options = {}) {
  return parseKeepingPayloads(await (await send("GET", path, undefined, options)).text());
}

/**
 * Arrow keys, Home and End move between the elements `[data-row]` of a list.
 * @param {KeyboardEvent} event
 */
export function moveInRows(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const box = /** @type {HTMLElement} */ (event.currentTarget);
  const rows = /** @type {HTMLElement[]} */ ([...box.querySelectorAll("[data-row]")]);
  const at = rows.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
  const next = to === undefined || at < 0 ? undefined : rows[to];
  if (!next) return;
  event.preventDefault();
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

/** Whether the browser follows a link otherwise: in a new tab or window. @param {MouseEvent} event */
export function opensElsewhere(event) {
  return event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
}

/** Whether there is room for two columns. Reactive; ends with its scope. */
export const wideScreen = () => matches("(min-width: 1100px)");

/**
 * A column of names, each with a link to its page.
 * @param {string} title @param {string} page @param {"type" | "sink"} member
 * @returns {import("../lib/ui.js").Column<{ type: string, sink: string }>}
 */
const names = (title, page, member) => ({
  title,
  cell: (row) => h("a", { href: link(page, row[member]) }, outside(row[member], 80)),
  by: () => "",
  sort: (row) => row[member],
});

/** The first columns of a table of routes. */
export const routeColumns = () => [names("Type", "types", "type"), names("Sink", "sinks", "sink")];
