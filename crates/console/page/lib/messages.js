// Short messages of actions.

import { levelOf, outside } from "./text.js";
import { h } from "./view.js";

/** @typedef {import("./text.js").Level} Level */

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
  const text = error instanceof Error ? error.message : String(error);
  toast(outside(text), "bad");
}
