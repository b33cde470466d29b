// Cards, heads of pages, and the states of what is loaded.

import { button } from "./actions.js";
import { ApiError } from "./api.js";
import { safe } from "./format.js";
import { empty, newId, outside } from "./text.js";
import { h, when } from "./view.js";

/**
 * A titled surface. `note` is next to the title, `actions` are at the right.
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
 * @param {...unknown} children they are next to the title
 */
export function pageHead(title, ...children) {
  return h("div", { class: "page-head" }, h("h1", { tabindex: "-1" }, title), ...children);
}

/**
 * What failed, why, and again.
 * @param {unknown} error
 * @param {() => void} [retry]
 */
export function errorBox(error, retry) {
  const text = error instanceof Error ? error.message : String(error);
  const older =
    error instanceof ApiError &&
    (error.status === 404 || error.status === 405) &&
    error.code !== "peer" &&
    !(/** @type {any} */ (error.body)?.looked_in);
  if (older) return empty("This instance does not have this. Its version may be older, or its role may differ.");
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
