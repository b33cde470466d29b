// Keys: one letter goes to a page, "/" finds an event, "?" shows them. None while the viewer types.

import { go, link } from "./router.js";
import { dialog } from "./ui.js";
import { h } from "./view.js";

/** @typedef {{ key: string, page: string, title: string }} PageKey */

/** @param {EventTarget | null} target */
function typing(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/**
 * @param {{ pages: () => PageKey[], find: () => void }} options the pages that the viewer has
 */
export function startKeys(options) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape" && typing(event.target)) {
      /** @type {HTMLElement} */ (event.target).blur();
      return;
    }
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    if (event.key === "/") {
      event.preventDefault();
      options.find();
    } else if (event.key === "?") showKeys(options.pages());
    else {
      const page = options.pages().find((one) => one.key === event.key);
      if (page) {
        event.preventDefault();
        go(link(page.page));
      }
    }
  });
}

/** @param {PageKey[]} pages */
export function showKeys(pages) {
  const row = (/** @type {string} */ key, /** @type {string} */ text) => [h("dt", null, h("kbd", null, key)), h("dd", null, text)];
  dialog({
    title: "Keys",
    body: h(
      "dl",
      { class: "facts keys" },
      row("/", "Find an event by id, key or position"),
      row("?", "Show the keys"),
      row("Esc", "Close a dialog, leave a field"),
      pages.map((page) => row(page.key, page.title)),
    ),
  });
}
