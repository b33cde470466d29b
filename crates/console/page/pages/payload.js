// A payload as text. It may have 1 MiB and come from an untrusted sender: it is only ever a text node.

import { bytes, safe } from "../lib/format.js";
import { indent } from "../lib/rawjson.js";
import { jsonText } from "../lib/ui.js";
import { h } from "../lib/view.js";

/** @typedef {{ payload?: unknown, payload_omitted?: true, payload_bytes?: number }} HasPayload */

/** The text of a payload as the server sent it; `undefined` if there is none. @param {HasPayload} event */
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

/** The payload of an event. @param {HasPayload} event @param {string} [label] */
export function payloadView(event, label = "Payload") {
  const text = payloadText(event);
  if (text === undefined)
    return h("p", { class: "mu" }, `The payload has ${bytes(event.payload_bytes ?? 0)}: too long for an answer. Read it in its store.`);
  return jsonText(indent(text), { label });
}
