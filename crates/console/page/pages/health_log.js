// The level of the log, and its last lines.

import { adminReason, get, put, resource } from "../lib/api.js";
import { duration, safe } from "../lib/format.js";
import { now } from "../lib/live.js";
import { button, card, field, pill, select, shown, time, toast } from "../lib/ui.js";
import { computed, effect, h, list, signal } from "../lib/view.js";

/** @typedef {import("../api").Log} Log */

const LEVELS = /** @type {const} */ ([
  ["debug", "debug"],
  ["info", "info"],
  ["warning", "warning"],
  ["error", "error"],
]);
const TIMES = /** @type {const} */ ([
  ["10m", "for 10 min"],
  ["1h", "for 1 h"],
  ["24h", "for 24 h"],
]);
const MAX_LINES = 300;

export function logCard() {
  const answer = /** @type {import("../lib/api.js").Resource<Log>} */ (resource((signal) => get("api/log", { signal }), { every: 5000 }));
  const level = signal("debug");
  const time = signal("10m");
  const set = async () => {
    const log = /** @type {Log} */ (await put("api/log", { level: level.peek(), for: time.peek() }));
    toast(`The level of the log is ${log.level}.`);
    answer.reload();
  };
  return card(
    {
      title: "Log",
      note: () => levelNow(answer.data.value),
      actions: [
        select(level, LEVELS, { "aria-label": "Level" }),
        select(time, TIMES, { "aria-label": "How long" }),
        button("Set the level", { onclick: set, disabledBecause: adminReason }),
      ],
    },
    shown(answer, (data) => lines(() => data.value.lines ?? [])),
  );
}

/** @param {Log | null} log */
function levelNow(log) {
  if (!log) return null;
  if (!log.until) return ["level ", log.level];
  const { until } = log;
  return [
    pill("warn", `level ${log.level}`),
    " until ",
    time(until),
    () => `, ${duration((Date.parse(until) - now.value) / 1000)} left; then ${log.configured}`,
  ];
}

/** @param {() => string[]} all the oldest first */
function lines(all) {
  const search = signal("");
  const matching = computed(() => {
    const text = search.value.trim().toLowerCase();
    return all()
      .filter((line) => text === "" || line.toLowerCase().includes(text))
      .slice(-MAX_LINES);
  });
  const input = h("input", {
    class: "in",
    type: "search",
    oninput: (/** @type {Event} */ e) => (search.value = /** @type {HTMLInputElement} */ (e.target).value),
  });
  const box = h(
    "pre",
    { class: "log wrap", tabindex: "0", role: "region", "aria-label": "Last lines of the log" },
    list(
      () => matching.value,
      (line) => line,
      (one) => h("span", { class: `line ${levelClass(one.peek())}`, dir: "auto" }, safe(one.peek(), 4000)),
    ),
    () => (matching.value.length === 0 ? "No line." : null),
  );
  followEnd(box, () => matching.value);
  return h("div", { class: "stack" }, field("Show lines that contain", input), box);
}

/** Keeps the end in view, unless the reader has scrolled away from it. @param {HTMLElement} box @param {() => unknown} changes */
function followEnd(box, changes) {
  let atEnd = true;
  box.addEventListener("scroll", () => {
    atEnd = box.scrollTop + box.clientHeight > box.scrollHeight - 20;
  });
  effect(() => {
    changes();
    if (atEnd) requestAnimationFrame(() => box.scrollTo(0, box.scrollHeight));
  });
}

/** @param {string} line */
function levelClass(line) {
  const head = line.slice(0, 64);
  if (/\bERROR\b|"level":"error"/i.test(head)) return "bad-text";
  return /\bWARN/i.test(head) ? "warn-text" : "";
}
