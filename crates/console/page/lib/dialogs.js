// Dialogs: what is about to happen, and to how much.

import { button, field } from "./actions.js";
import { number } from "./format.js";
import { toast } from "./messages.js";
import { newId } from "./text.js";
import { h, signal, untracked } from "./view.js";

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
