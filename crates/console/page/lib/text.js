// Text and states. Text from events, stores and clients is shown by `outside`.

import { age, clock, safe, utc } from "./format.js";
import { now } from "./live.js";
import { h, onDispose, signal } from "./view.js";

/** @typedef {"ok" | "warn" | "bad" | "none"} Level */

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
    text.split("`").map((part, i) => (i % 2 === 1 ? h("code", null, safe(part, 800)) : safe(part, 800))),
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
