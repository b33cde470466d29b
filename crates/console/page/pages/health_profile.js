// Profiles of CPU time and allocations, recorded when the operator asks for one.

import { adminReason, send } from "../lib/api.js";
import { flameGraph, parseFolded } from "../lib/flame.js";
import { bytes, clock, number } from "../lib/format.js";
import { button, card, empty, errorBox, select } from "../lib/ui.js";
import { h, signal } from "../lib/view.js";

/** @typedef {{ what: string, text: string, seconds: number, at: string }} Profile */

const CHOICES = /** @type {const} */ ([
  ["profile", "CPU time"],
  ["heap", "Allocations"],
]);
const SECONDS = /** @type {const} */ ([
  ["2", "2 s"],
  ["10", "10 s"],
  ["30", "30 s"],
  ["60", "60 s"],
]);

export function profileCard() {
  const what = signal("profile");
  const seconds = signal("10");
  const left = signal(0);
  const profile = signal(/** @type {Profile | null} */ (null));
  const error = signal(/** @type {unknown} */ (null));

  const record = async () => {
    const chosen = { what: what.peek(), seconds: Number(seconds.peek()) };
    left.value = chosen.seconds;
    const timer = setInterval(() => (left.value = Math.max(0, left.peek() - 1)), 1000);
    error.value = null;
    try {
      const response = await send("POST", `debug/${chosen.what}`, undefined, { query: { seconds: chosen.seconds, format: "folded" } });
      profile.value = { ...chosen, text: await response.text(), at: new Date().toISOString() };
    } catch (reason) {
      error.value = reason;
    } finally {
      clearInterval(timer);
      left.value = 0;
    }
  };
  const controls = [
    select(what, CHOICES, { "aria-label": "What to record" }),
    select(seconds, SECONDS, { "aria-label": "How long" }),
    button(() => (left.value > 0 ? `Recording, ${left.value} s` : "Record"), {
      kind: "primary",
      onclick: record,
      disabledBecause: adminReason,
    }),
  ];
  return card(
    { title: "Profile", note: "which functions use the CPU, or allocate", actions: controls },
    () => (error.value ? errorBox(error.value) : null),
    () =>
      profile.value
        ? picture(profile.value)
        : empty("Record one while the process is slow: an idle process has no samples. It has names of functions, no payloads."),
  );
}

/** @param {Profile} profile */
function picture(profile) {
  const root = parseFolded(profile.text);
  const heap = profile.what === "heap";
  const weight = heap ? bytes(root.total) : `${number(root.total)} samples`;
  return [
    h(
      "div",
      { class: "row" },
      h("span", { class: "mu" }, `${heap ? "Allocations" : "CPU time"} of ${profile.seconds} s until ${clock(profile.at)}: ${weight}`),
      button("Save as folded stacks", { small: true, onclick: () => save(profile) }),
    ),
    root.total === 0
      ? empty("There are no samples: the process was idle.")
      : flameGraph(root, heap ? { unit: "allocated", format: bytes } : { unit: "samples" }),
  ];
}

/** @param {Profile} profile */
function save(profile) {
  const url = URL.createObjectURL(new Blob([profile.text], { type: "text/plain" }));
  h("a", { href: url, download: `${profile.what}-${profile.at.replace(/[:.]/g, "-")}.txt` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
