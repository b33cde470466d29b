// Parts that pages are made of. Text from events, stores and clients is shown by `outside`.

import { ApiError } from "./api.js";
import { diffLines, pretty } from "./diff.js";
import { age, clock, count, number, safe, utc } from "./format.js";
import { now } from "./live.js";
import { computed, h, list, onDispose, signal, untracked, when } from "./view.js";

/** @typedef {import("./view.js").Props} Props */

/**
 * Whether a media query holds. Ends with its scope.
 * @param {string} query "(min-width: 1100px)"
 */
export function matches(query) {
  const media = matchMedia(query);
  const is = signal(media.matches);
  const changed = () => {
    is.value = media.matches;
  };
  media.addEventListener("change", changed);
  onDispose(() => media.removeEventListener("change", changed));
  return is;
}

let ids = 0;
/** A new id for `aria-…` references. */
export const newId = () => `u${++ids}`;

// ----------------------------------------------------------------------------------------------------------------- Text

/**
 * Text from events, stores and clients: isolated from the direction of the text around it, hidden characters as escapes.
 * @param {unknown} text
 * @param {number} [max]
 */
export function outside(text, max = 2048) {
  return h("bdi", { dir: "auto" }, safe(text, max));
}

/**
 * The same, in the monospaced font.
 * @param {unknown} text
 * @param {number} [max]
 */
export function code(text, max = 2048) {
  return h("code", { dir: "auto", class: "bdi" }, safe(text, max));
}

/**
 * A sentence of the server: what is between backquotes is code.
 * @param {string} text
 */
export function prose(text) {
  return h(
    "bdi",
    { dir: "auto" },
    text.split("`").map((part, i) => (i % 2 === 1 ? h("code", null, safe(part, 2048)) : safe(part, 2048))),
  );
}

/**
 * A text as a sentence: with a capital letter and a full stop.
 * @param {string} text
 */
export function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/**
 * A time in local time with UTC as its tooltip.
 * @param {string | null | undefined} at
 * @param {{ exact?: boolean }} [options]
 */
export function time(at, options) {
  return at ? h("time", { datetime: at, title: utc(at), class: "num" }, clock(at, options)) : h("span", { class: "mu" }, "–");
}

/**
 * The age of a time, kept up to date: "4 min".
 * @param {string | null | undefined} at
 */
export function ago(at) {
  return at ? h("time", { datetime: at, title: `${clock(at, { date: true })}, ${utc(at)}`, class: "num" }, () => age(at, now.value)) : "–";
}

// -------------------------------------------------------------------------------------------------------------- Surfaces

/**
 * A titled surface. `note` stands next to the title, `actions` at the right.
 * @param {{ title?: unknown, note?: unknown, actions?: unknown, class?: string, level?: 2 | 3, id?: string }} options
 * @param {...unknown} children
 */
export function card(options, ...children) {
  const id = newId();
  const head =
    options.title || options.actions
      ? h(
          "div",
          { class: "card-head" },
          options.title ? h(options.level === 3 ? "h3" : "h2", { id }, options.title) : null,
          options.note ? h("div", { class: "mu note" }, options.note) : null,
          options.actions ? h("div", { class: "actions" }, options.actions) : null,
        )
      : null;
  return h(
    "section",
    { class: `card ${options.class ?? ""}`, "aria-labelledby": options.title ? id : null, id: options.id ?? null },
    head,
    ...children,
  );
}

/**
 * The head of a page.
 * @param {unknown} title
 * @param {...unknown} children what stands next to it
 */
export function pageHead(title, ...children) {
  return h("div", { class: "page-head" }, h("h1", { tabindex: "-1" }, title), ...children);
}

/** @typedef {"ok" | "warn" | "bad" | "none"} Level */
/** @type {Record<string, [Level, string]>} */
const STATES = {
  active: ["ok", "✓"],
  ok: ["ok", "✓"],
  ready: ["ok", "✓"],
  stored: ["ok", "✓"],
  done: ["ok", "✓"],
  healthy: ["ok", "✓"],
  warn: ["warn", "▲"],
  warning: ["warn", "▲"],
  connecting: ["warn", "▲"],
  stopped: ["warn", "▲"],
  stopping: ["warn", "▲"],
  deferred: ["warn", "▲"],
  pending: ["warn", "▲"],
  removed: ["warn", "▲"],
  ejected: ["warn", "▲"],
  bad: ["bad", "✕"],
  error: ["bad", "✕"],
  failing: ["bad", "✕"],
  failed: ["bad", "✕"],
  waiting: ["bad", "✕"],
  dead: ["bad", "✕"],
  dropped: ["bad", "✕"],
  lost: ["bad", "✕"],
  refused: ["bad", "✕"],
};

/**
 * How serious a state is, and its sign.
 * @param {string} state
 * @returns {[Level, string]}
 */
export function levelOf(state) {
  return STATES[state] ?? ["none", "○"];
}

/**
 * A state as a word with its sign. `state` is a state of the API or a level; `text` is shown instead of the state.
 * @param {string} state
 * @param {unknown} [text]
 */
export function pill(state, text) {
  const [level, sign] = levelOf(state);
  return h("span", { class: `pill ${level}` }, h("span", { "aria-hidden": "true", class: "sign" }, sign), text ?? state);
}

/** A neutral label. @param {...unknown} children */
export const chip = (...children) => h("span", { class: "pill none" }, ...children);

/** @param {unknown} text */
export const empty = (text) => h("p", { class: "empty mu" }, text);

/**
 * What failed, why, and again.
 * @param {unknown} error
 * @param {() => void} [retry]
 */
export function errorBox(error, retry) {
  const text = error instanceof ApiError ? error.detail : error instanceof Error ? error.message : String(error);
  const older =
    error instanceof ApiError && (error.status === 404 || error.status === 405) && !(/** @type {any} */ (error.body)?.looked_in);
  if (older) return empty("This instance does not offer this. It may be an older version, or have another role.");
  return h(
    "div",
    { class: "alert bad", role: "alert" },
    h("span", { "aria-hidden": "true" }, "✕"),
    h(
      "div",
      null,
      outside(text),
      error instanceof ApiError && error.code ? h("span", { class: "mu" }, ` (${error.status} ${safe(error.code)})`) : null,
    ),
    retry ? button("Try again", { onclick: retry, small: true }) : null,
  );
}

/**
 * The content of a resource: built once when the first answer is there; an error above it, a line while it loads.
 * @template T
 * @param {import("./api.js").Resource<T>} resource
 * @param {(data: import("./view.js").Readable<T>) => unknown} render
 */
export function shown(resource, render) {
  const data = /** @type {import("./view.js").Readable<T>} */ (/** @type {unknown} */ (resource.data));
  return [
    () => (resource.error.value ? errorBox(resource.error.value, resource.reload) : null),
    when(
      () => resource.data.value !== null,
      () => render(data),
      () => () => (resource.error.value ? null : h("p", { class: "mu loading" }, "Loading …")),
    ),
  ];
}

// --------------------------------------------------------------------------------------------------------------- Actions

/**
 * A button. `disabledBecause` (text, null, or a function of it): if there is a reason it does nothing and says why. While the promise of
 * `onclick` is pending, further clicks do nothing; its error is shown.
 * @param {unknown} label
 * @param {{ onclick?: (event: Event) => unknown, disabledBecause?: string | null | (() => string | null), kind?: "primary" | "danger" | "quiet",
 *   pressed?: boolean | (() => boolean), small?: boolean, title?: string, props?: Props }} [options]
 */
export function button(label, options = {}) {
  const { disabledBecause } = options;
  const why = computed(() => (typeof disabledBecause === "function" ? disabledBecause() : (disabledBecause ?? null)));
  const busy = signal(false);
  const id = newId();
  const { pressed } = options;
  const click = async (/** @type {Event} */ event) => {
    if (why.peek() !== null || busy.peek()) {
      event.preventDefault();
      return;
    }
    try {
      const result = options.onclick?.(event);
      if (!(result instanceof Promise)) return;
      busy.value = true;
      await result;
    } catch (error) {
      failed(error);
    } finally {
      busy.value = false;
    }
  };
  const node = h(
    "button",
    {
      type: "button",
      class: `btn ${options.kind ?? ""} ${options.small ? "small" : ""}`,
      onclick: click,
      title: () => why.value ?? options.title ?? null,
      "aria-disabled": () => (why.value !== null || busy.value ? "true" : null),
      "aria-busy": () => (busy.value ? "true" : null),
      "aria-describedby": () => (why.value !== null ? id : null),
      ...(pressed === undefined ? {} : { "aria-pressed": () => String(typeof pressed === "function" ? pressed() : pressed) }),
      ...options.props,
    },
    label,
  );
  if (disabledBecause === undefined) return node;
  return h("span", { class: "btn-why" }, node, () => (why.value === null ? null : h("span", { id, class: "sr" }, why.value)));
}

/**
 * A labelled control. The input gets the label's id.
 * @param {unknown} label
 * @param {HTMLElement} input
 * @param {{ help?: unknown, error?: () => string | null, class?: string }} [options]
 */
export function field(label, input, options = {}) {
  if (!input.id) input.id = newId();
  const help = newId();
  if (options.help || options.error) input.setAttribute("aria-describedby", help);
  return h(
    "div",
    { class: `field ${options.class ?? ""}` },
    h("label", { for: input.id }, label),
    input,
    options.help || options.error
      ? h("div", { id: help, class: "help" }, options.help, () => {
          const text = options.error?.();
          return text ? h("span", { class: "bad-text", role: "alert" }, "✕ ", outside(text)) : null;
        })
      : null,
  );
}

/**
 * A choice bound to a signal.
 * @param {import("./view.js").Signal<string>} bound
 * @param {readonly (readonly [value: string, text: string])[] | (() => readonly (readonly [value: string, text: string])[])} options
 * @param {Props} [props]
 */
export function select(bound, options, props) {
  return h(
    "select",
    {
      class: "in",
      onchange: (/** @type {Event} */ e) => {
        bound.value = /** @type {HTMLSelectElement} */ (e.target).value;
      },
      ...props,
    },
    () => {
      const chosen = bound.value;
      const all = typeof options === "function" ? options() : options;
      const missing = all.some(([value]) => value === chosen) ? [] : [/** @type {const} */ ([chosen, chosen])];
      return [...all, ...missing].map(([value, text]) => h("option", { value, selected: value === chosen }, safe(text)));
    },
  );
}

// --------------------------------------------------------------------------------------------------------------- Dialogs

/**
 * Opens a native modal dialog: the browser keeps the focus inside, Esc closes, the focus returns.
 * @param {{ title: unknown, body: unknown, actions?: (close: (result?: unknown) => void) => unknown, wide?: boolean }} options
 * @returns {{ element: HTMLDialogElement, close: (result?: any) => void, closed: Promise<unknown> }}
 */
export function dialog(options) {
  const id = newId();
  /** @type {unknown} */
  let result;
  const close = (/** @type {any} */ value = undefined) => {
    result = value;
    element.close();
  };
  const actions = options.actions?.(close);
  const element = h(
    "dialog",
    { "aria-labelledby": id, class: options.wide ? "wide" : "" },
    h("h2", { id }, options.title),
    h("div", { class: "dialog-body" }, options.body),
    h("div", { class: "dialog-actions" }, actions ?? button("Close", { onclick: () => close() })),
  );
  const closed = new Promise((resolve) => {
    // The page under the dialog is gone: the viewer went back.
    const leave = () => element.close();
    window.addEventListener("hashchange", leave);
    element.addEventListener("close", () => {
      window.removeEventListener("hashchange", leave);
      element.remove();
      resolve(result);
    });
  });
  document.body.append(element);
  element.showModal();
  return { element, close, closed };
}

/**
 * Asks before an action. True: go ahead.
 * @param {{ title: unknown, body: unknown, verb: string, kind?: "primary" | "danger" }} options
 * @returns {Promise<boolean>}
 */
export async function confirm(options) {
  const open = dialog({
    title: options.title,
    body: options.body,
    actions: (close) => [
      button("Cancel", { onclick: () => close(false) }),
      button(options.verb, { kind: options.kind ?? "primary", onclick: () => close(true) }),
    ],
  });
  return (await open.closed) === true;
}

/**
 * Asks before something is discarded: the number must be typed.
 * @param {{ title: unknown, number: number, body: unknown, verb: string, what?: string }} options `what`: "events", "dead letters"
 * @returns {Promise<boolean>}
 */
export async function confirmNumber(options) {
  const typed = signal("");
  const matches = () => typed.value.replace(/[\s,.']/g, "") === String(options.number);
  const input = h("input", {
    class: "in",
    inputmode: "numeric",
    autocomplete: "off",
    autofocus: true,
    oninput: (/** @type {Event} */ e) => {
      typed.value = /** @type {HTMLInputElement} */ (e.target).value;
    },
    onkeydown: (/** @type {KeyboardEvent} */ e) => {
      if (e.key === "Enter" && untracked(matches)) open.close(true);
    },
  });
  const open = dialog({
    title: options.title,
    body: [options.body, field(`Type the number of ${options.what ?? "events"}, ${number(options.number)}, to confirm`, input)],
    actions: (close) => [
      button("Cancel", { onclick: () => close(false) }),
      button(options.verb, {
        kind: "danger",
        disabledBecause: () => (matches() ? null : "The number is not typed yet."),
        onclick: () => close(true),
      }),
    ],
  });
  return (await open.closed) === true;
}

/** @type {HTMLElement | null} */
let toasts = null;

/**
 * A short message, read by screen readers too. Errors stay until they are closed.
 * @param {unknown} text
 * @param {Level} [level]
 */
export function toast(text, level = "ok") {
  if (!toasts) {
    toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite", "aria-label": "Messages" });
    document.body.append(toasts);
  }
  const [, sign] = levelOf(level);
  const one = h(
    "div",
    { class: `toast ${level}` },
    h("span", { "aria-hidden": "true" }, sign),
    h("div", null, text),
    h("button", { type: "button", class: "btn quiet small", "aria-label": "Close the message", onclick: () => one.remove() }, "✕"),
  );
  // A modal dialog makes the rest of the page inert: the message goes into the dialog then.
  (document.querySelector("dialog[open]") ?? toasts).append(one);
  if (level !== "bad") setTimeout(() => one.remove(), 8000);
}

/** Shows why an action failed. @param {unknown} error */
export function failed(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  const text = error instanceof ApiError ? error.detail : error instanceof Error ? error.message : String(error);
  toast(outside(text), "bad");
}

/**
 * Copies a text and says so.
 * @param {string} text
 * @param {string} what
 */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${what}`);
  } catch {
    dialog({ title: `Copy ${what}`, body: h("pre", { class: "wrap", tabindex: "0" }, text) });
  }
}

// ---------------------------------------------------------------------------------------------------------------- Tables

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
 *   empty?: unknown, selected?: (row: T) => boolean, onrow?: (row: T, event: Event) => void, class?: string,
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
        options.columns.map((column) => h("td", { class: column.class ?? null, "data-label": nameOf(column) }, cellOf(column, row))),
      ),
  );
  return h(
    "div",
    { class: `table ${options.class ?? ""}` },
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

/** The name of a column before its value, where the class `by-rows` shows rows under each other. @param {Column<any>} column */
const nameOf = ({ title, class: kind }) => (typeof title === "string" && kind !== "wide" ? title : null);

/**
 * @template T
 * @param {Column<T>} column
 * @param {import("./view.js").Readable<T>} row
 */
function cellOf(column, row) {
  const { by } = column;
  if (!by) return () => column.cell(row.value);
  const value = computed(() => by(row.value));
  return () => {
    value.value;
    return untracked(() => column.cell(row.value));
  };
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

// --------------------------------------------------------------------------------------------------------- Name and value

/**
 * Names and values under each other.
 * @param {readonly (readonly [name: unknown, value: unknown] | null | false)[]} pairs
 */
export function facts(pairs) {
  return h(
    "dl",
    { class: "facts" },
    pairs.map((pair) => (pair ? [h("dt", null, pair[0]), h("dd", null, pair[1])] : null)),
  );
}

/**
 * A large number with its name, and something below it.
 * @param {unknown} name
 * @param {unknown} value
 * @param {...unknown} below
 */
export function tile(name, value, ...below) {
  return h("div", { class: "card tile" }, h("div", { class: "k" }, name), h("div", { class: "v num" }, value), ...below);
}

// ------------------------------------------------------------------------------------------------------------------ JSON

/** Longer texts aren't coloured. */
const MAX_COLOURED = 32768;
const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;

/** @param {string} text */
function coloured(text) {
  if (text.length > MAX_COLOURED) return text;
  /** @type {unknown[]} */
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(TOKEN)) {
    parts.push(text.slice(last, found.index));
    const [all, string, colon] = found;
    if (string && colon) parts.push(h("span", { class: "j-key" }, string), colon);
    else parts.push(h("span", { class: string ? "j-str" : "j-num" }, all));
    last = found.index + all.length;
  }
  parts.push(text.slice(last));
  return parts;
}

/**
 * A JSON value to read. Beyond `max` characters it is cut, with a button for the rest.
 * @param {unknown} value
 * @param {{ label?: string, max?: number }} [options]
 */
export const json = (value, options) => jsonText(pretty(value), options);

/**
 * The same for JSON as text.
 * @param {string} text
 * @param {{ label?: string, max?: number }} [options]
 */
export function jsonText(text, options = {}) {
  const all = signal(false);
  const max = options.max ?? 16384;
  return h(
    "div",
    { class: "json" },
    h("pre", { class: "wrap", tabindex: "0", role: "region", "aria-label": options.label ?? "JSON", dir: "auto" }, () =>
      coloured(safe(text, all.value ? Number.POSITIVE_INFINITY : max)),
    ),
    () => (text.length > max && !all.value ? button("Show all of it", { small: true, onclick: () => (all.value = true) }) : null),
  );
}

/**
 * The difference of two values by lines of their JSON; texts are compared as they are.
 * @param {unknown} before
 * @param {unknown} after
 * @param {string} [label]
 */
export function diff(before, after, label = "Difference") {
  const lines = diffLines(typeof before === "string" ? before : pretty(before), typeof after === "string" ? after : pretty(after));
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - 3), i + 4).some((line) => line.sign !== " "));
  /** @type {unknown[]} */
  const shownLines = [];
  let skipped = 0;
  const skip = () => {
    if (skipped > 0) shownLines.push(h("span", { class: "line mu" }, `  … ${count(skipped, "equal line")}\n`));
    skipped = 0;
  };
  for (const [i, line] of lines.entries()) {
    if (!near[i]) skipped++;
    else {
      skip();
      const kind = line.sign === "+" ? "add" : line.sign === "-" ? "del" : "";
      shownLines.push(h("span", { class: `line ${kind}` }, `${line.sign} ${safe(line.text, 4096)}\n`));
    }
  }
  skip();
  return h(
    "pre",
    { class: "diff wrap", tabindex: "0", role: "region", "aria-label": label },
    lines.some((l) => l.sign !== " ") ? shownLines : "No difference.",
  );
}
