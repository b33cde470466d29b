// Buttons and fields.

import { safe } from "./format.js";
import { failed } from "./messages.js";
import { newId, outside } from "./text.js";
import { computed, h, signal } from "./view.js";

/** @typedef {import("./view.js").Props} Props */

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
