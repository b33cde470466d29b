// A payload as text. It may have 1 MiB and come from an untrusted sender: it is only ever a text node.
import { h, signal } from "../lib/view.js";
import { bytes, safe } from "../lib/format.js";
import { button, toast } from "../lib/ui.js";
import { indent } from "../lib/rawjson.js";

/** Characters that are shown before "Show all". */
const SHOWN = 16 * 1024;

/** @typedef {{ payload?: unknown, payload_omitted?: true, payload_bytes?: number }} HasPayload */

/** The text of a payload as the server sent it. `undefined` if there is none. @param {HasPayload} event */
export function payloadText(event) {
  return typeof event.payload === "string" ? event.payload : undefined;
}

/** The beginning of a payload on one line, for a row of a list. @param {HasPayload} event */
export function payloadHead(event) {
  const text = payloadText(event);
  if (text === undefined) return `(${bytes(event.payload_bytes ?? 0)}, not shown)`;
  const head = safe(text.slice(0, 200).replace(/\s+/g, " "));
  return text.length > 200 ? `${head}…` : head;
}

/** Copies a text, and says so. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    toast(`The browser doesn't let this page copy. Select the text and copy it.`);
  }
}

/**
 * A text that may be long, in a scrolling box.
 * @param {string} text
 * @param {string} label for screen readers
 */
export function longText(text, label) {
  const all = signal(text.length <= SHOWN);
  const shown = () => safe(all.value ? text : text.slice(0, SHOWN));
  const more = () =>
    all.value
      ? null
      : h("p", { class: "row" }, [
          h("span", { class: "muted" }, `The first ${bytes(SHOWN)} of ${bytes(text.length)}.`),
          button({ onclick: () => (all.value = true) }, "Show all"),
        ]);
  return h("div", {}, h("pre", { class: "payload", tabindex: "0", role: "region", "aria-label": label }, shown), more);
}

/** The payload of an event. @param {HasPayload} event @param {string} [label] */
export function payloadView(event, label = "Payload") {
  const text = payloadText(event);
  if (text === undefined) {
    return h("p", { class: "muted" }, `The payload has ${bytes(event.payload_bytes ?? 0)}. Answers have payloads of at most 1 MiB: read it in its store.`);
  }
  return longText(indent(text), label);
}
