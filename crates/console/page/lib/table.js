// Tables and lists that do not move under the reader.

import { button } from "./actions.js";
import { number } from "./format.js";
import { empty } from "./text.js";
import { append, computed, effect, h, list, onDispose, scope, signal } from "./view.js";

/**
 * A column: `cell` gives what it shows of a row; `sort` makes the heading a button; `class` is "n" for numbers, "m" for the monospaced font.
 * A cell is built again when its row changes; with `by` only when this value changes. Cells with links and buttons have it: an element that is
 * replaced loses the focus, and a click on it.
 * @template T
 * @typedef {{ title: unknown, cell: (row: T) => unknown, by?: (row: T) => unknown, sort?: (row: T) => string | number | null, class?: string,
 *   hint?: string }} Column
 */

/**
 * A table whose rows are kept by their keys. It shows a window of `window` rows (200) with a button for more.
 * @template T
 * @param {{ label: string, columns: Column<T>[], rows: () => readonly T[], key: (row: T, index: number) => string | number, window?: number,
 *   empty?: unknown, selected?: (row: T) => boolean, onrow?: (row: T, event: Event) => void,
 *   sort?: { column: number, down?: boolean } }} options
 */
export function dataTable(options) {
  const size = options.window ?? 200;
  const limit = signal(size);
  const sorting = signal(/** @type {{ column: number, down: boolean } | null} */ (options.sort ? { down: false, ...options.sort } : null));
  /** @type {Map<string | number, { row: T, text: string }>} */
  let before = new Map();
  /** Rows that are equal to those before stay the same objects, so that their cells aren't built again. @param {readonly T[]} rows */
  const kept = (rows) => {
    const next = new Map();
    const same = rows.map((row, i) => {
      const key = options.key(row, i);
      const text = JSON.stringify(row);
      const old = before.get(key);
      const one = old?.text === text ? old.row : row;
      next.set(key, { row: one, text });
      return one;
    });
    before = next;
    return same;
  };
  const sorted = computed(() => {
    const rows = options.rows();
    const by = sorting.value;
    const of = by ? options.columns[by.column]?.sort : undefined;
    if (!by || !of) return rows;
    return [...rows].sort((a, b) => compare(of(a), of(b)) * (by.down ? -1 : 1));
  });
  const head = options.columns.map((column, index) => heading(column, index, sorting));
  const body = list(
    () => kept(sorted.value.slice(0, limit.value)),
    options.key,
    (row) =>
      h(
        "tr",
        {
          class: () => [options.selected?.(row.value) ? "sel" : "", options.onrow ? "click" : ""].join(" ").trim() || null,
          onclick: options.onrow
            ? (/** @type {Event} */ e) => {
                if (!(/** @type {Element} */ (e.target).closest("a,button,input,select,label"))) options.onrow?.(row.peek(), e);
              }
            : null,
        },
        cellsOf(options.columns, row),
      ),
  );
  return h(
    "div",
    { class: "table by-rows" },
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `${options.label}, table`, hidden: () => sorted.value.length === 0 },
      h("table", null, h("thead", null, h("tr", null, head)), h("tbody", null, body)),
    ),
    () => (sorted.value.length === 0 ? empty(options.empty ?? "None.") : null),
    () =>
      sorted.value.length > limit.value
        ? h(
            "div",
            { class: "row more" },
            h("span", { class: "mu" }, `${number(limit.value)} of ${number(sorted.value.length)} rows`),
            button("Show more", { small: true, onclick: () => (limit.value += size) }),
          )
        : null,
  );
}

/** The name of a column before its value, if the window is so narrow that `by-rows` shows rows under each other. @param {Column<any>} column */
const nameOf = ({ title, class: kind }) => (typeof title === "string" && kind !== "wide" ? title : null);

/** No value of `by` is this. @type {unknown} */
const NEVER = Symbol("never");

/**
 * The cells of a row. One effect fills them all, and leaves those whose text or `by` is the same.
 * @template T
 * @param {Column<T>[]} columns
 * @param {import("./view.js").Readable<T>} row
 */
function cellsOf(columns, row) {
  const cells = columns.map((column) => ({
    column,
    td: h("td", { class: column.class ?? null, "data-label": nameOf(column) }),
    by: NEVER,
    end: () => {},
  }));
  onDispose(() => {
    for (const cell of cells) cell.end();
  });
  effect(() => {
    for (const cell of cells) fill(cell, row.value);
  });
  return cells.map((cell) => cell.td);
}

/**
 * @template T
 * @param {{ column: Column<T>, td: HTMLElement, by: unknown, end: () => void }} cell
 * @param {T} row
 */
function fill(cell, row) {
  const { column, td } = cell;
  if (column.by) {
    const by = column.by(row);
    if (Object.is(by, cell.by)) return;
    cell.by = by;
  }
  cell.end();
  const part = scope(() => {
    const content = column.cell(row);
    if (typeof content === "string" || typeof content === "number") return String(content);
    const holder = document.createDocumentFragment();
    append(holder, content);
    return holder;
  }, !column.by);
  cell.end = part.dispose;
  const { node } = part;
  if (typeof node !== "string") replace(td, node);
  else if (td.firstChild !== td.lastChild || !(td.firstChild instanceof Text)) td.textContent = node;
  else if (td.firstChild.data !== node) td.firstChild.data = node;
}

/** Replaces the content of a cell. If a control in it has the focus, the control at the same index gets it. @param {HTMLElement} td @param {Node} node */
function replace(td, node) {
  const controls = () => [...td.querySelectorAll("a, button, input, select")];
  const at = td.contains(document.activeElement) ? controls().findIndex((one) => one === document.activeElement) : -1;
  td.replaceChildren(node);
  if (at >= 0) /** @type {HTMLElement | undefined} */ (controls()[at])?.focus({ preventScroll: true });
}

/** @param {string | number | null} a @param {string | number | null} b */
function compare(a, b) {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}

/**
 * @template T
 * @param {Column<T>} column
 * @param {number} index
 * @param {import("./view.js").Signal<{ column: number, down: boolean } | null>} sorting
 */
function heading(column, index, sorting) {
  if (!column.sort) return h("th", { scope: "col", class: column.class ?? null, title: column.hint ?? null }, column.title);
  const state = () => (sorting.value?.column === index ? (sorting.value.down ? "descending" : "ascending") : null);
  const sign = () => (state() === null ? "" : state() === "descending" ? " ▾" : " ▴");
  const click = () => {
    const first = column.class?.includes("n") ?? false;
    const by = sorting.peek();
    sorting.value = { column: index, down: by?.column === index ? !by.down : first };
  };
  return h(
    "th",
    { scope: "col", class: column.class ?? null, "aria-sort": state, title: column.hint ?? null },
    h("button", { type: "button", class: "sort", onclick: click }, column.title, h("span", { "aria-hidden": "true" }, sign)),
  );
}

/**
 * A list that doesn't move under the reader: rows that are newer than those shown are held back and counted. `bar` has the button that shows
 * them. Items come newest first. While `follow` gives true nothing is held back. When the value of `of` (the filters) changes, all is shown.
 * @template T
 * @param {{ items: () => readonly T[], key: (item: T) => string | number, what: string, follow?: () => boolean, of?: () => unknown }} options
 *   `what`: "events"
 * @returns {{ rows: () => readonly T[], held: () => number, show: () => void, bar: Node }}
 */
export function heldBack(options) {
  const version = signal(0);
  /** What is shown; null: all. @type {readonly T[] | null} */
  let snapshot = null;
  /** @type {unknown} */
  let shownOf;
  const split = computed(() => {
    version.value;
    const items = options.items();
    const of = options.of?.();
    const same = snapshot !== null && Object.is(of, shownOf) && !options.follow?.();
    shownOf = of;
    const rows = same && snapshot ? keepShown(snapshot, items, options.key) : { rows: items, held: 0 };
    snapshot = rows.rows.length > 0 ? rows.rows : null;
    return rows;
  });
  const show = () => {
    snapshot = null;
    version.value++;
  };
  const bar = h("div", { class: "held", "aria-live": "polite" }, () => {
    const { held } = split.value;
    return held === 0
      ? null
      : button(`▲ ${number(held)} newer ${options.what} ${held === 1 ? "is" : "are"} held back: show`, { small: true, onclick: show });
  });
  return { rows: () => split.value.rows, held: () => split.value.held, show, bar };
}

/**
 * The rows that were shown, in their newest form, and what is older; newer ones are counted.
 * @template T
 * @param {readonly T[]} before
 * @param {readonly T[]} items
 * @param {(item: T) => string | number} key
 */
function keepShown(before, items, key) {
  const known = new Set(before.map(key));
  const first = items.findIndex((item) => known.has(key(item)));
  return first < 0 ? { rows: before, held: items.length } : { rows: items.slice(first), held: first };
}
