// JSON to read, and differences.

import { button } from "./actions.js";
import { diffLines, pretty } from "./diff.js";
import { count, safe } from "./format.js";
import { h, signal } from "./view.js";

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
