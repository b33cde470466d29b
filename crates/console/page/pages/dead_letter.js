// One dead letter: why it was rejected, its payload as text to edit, and what can be done with it.
import { ApiError, adminReason, resource, send } from "../lib/api.js";
import { compactJson, indent, mistake } from "../lib/rawjson.js";
import { link } from "../lib/router.js";
import { button, card, code, diff, facts, failed, newId, outside, pill, shown, time, toast } from "../lib/ui.js";
import { computed, h, signal, when } from "../lib/view.js";
import { act } from "./dead_act.js";
import { getKeepingPayloads } from "./parts.js";
import { payloadText } from "./payload.js";

/** @typedef {import("./dead_state.js").DeadState} DeadState */
/** @typedef {import("../api").DeadLetter} DeadLetter */

/** Edits that aren't saved, by the keys of their dead letters: another one can be opened meanwhile. @type {Map<string, string>} */
const drafts = new Map();

/** @param {string} key "SINK/ID" */
function parts(key) {
  const slash = key.lastIndexOf("/");
  return { sink: key.slice(0, slash), id: key.slice(slash + 1) };
}

/** @param {string} key @param {DeadState} state @param {() => string | null} busy why no action can start now */
export function oneLetter(key, state, busy) {
  const { sink, id } = parts(key);
  const letter = resource(async (signal) => {
    state.version.value;
    const answer = await getKeepingPayloads(`api/dead/${encodeURIComponent(id)}`, { signal, query: { sink } });
    return /** @type {DeadLetter} */ (answer.letters[0]);
  });
  const gone = () => letter.error.value instanceof ApiError && letter.error.value.code === "letter";
  const close = button("Close", { small: true, onclick: () => closeLetter(key, state) });
  return card({ title: h("span", { class: "m break" }, outside(id)), note: pill("dead", "dead letter"), actions: close }, () =>
    gone()
      ? h(
          "p",
          { role: "status" },
          "This dead letter isn't there any longer: it was replayed or dropped. ",
          h("a", { href: link("event", id) }, "The event's story"),
        )
      : shown(letter, (data) => () => content(data.value, key, state, busy, letter.reload)),
  );
}

/** The focus returns to the dead letter's row. @param {string} key @param {DeadState} state */
function closeLetter(key, state) {
  state.open.value = "";
  const row = document.querySelector(`[data-letter="${CSS.escape(key)}"]`);
  if (row instanceof HTMLElement) row.focus();
}

/** @param {DeadLetter} letter @param {string} key @param {DeadState} state @param {() => string | null} busy @param {() => void} reload */
function content(letter, key, state, busy, reload) {
  return [
    h("p", null, "Rejected by ", h("a", { href: link("sinks", letter.sink) }, outside(letter.sink)), ": ", code(letter.reason, 4096)),
    facts([
      ["Type", outside(letter.type)],
      ["Received", [time(letter.received, { exact: true }), letter.client ? [" from ", code(letter.client)] : null]],
      letter.source ? ["Source", outside(letter.source)] : null,
      letter.event_time ? ["Event time", time(letter.event_time, { exact: true })] : null,
      [
        "Position",
        [
          code(letter.position),
          " · ",
          h("a", { href: link("event", letter.id, { type: letter.type, position: letter.position }) }, "the event's story"),
        ],
      ],
    ]),
    editor(letter, key, state, busy, reload),
  ];
}

/** @param {DeadLetter} letter @param {string} key @param {DeadState} state @param {() => string | null} busy @param {() => void} reload */
function editor(letter, key, state, busy, reload) {
  const before = indent(payloadText(letter) ?? "null");
  const text = signal(drafts.get(key) ?? before);
  const error = computed(() => mistake(text.value));
  const edited = computed(() => compactJson(text.value) !== compactJson(before));
  const errorId = newId();
  const area = h("textarea", {
    class: "in m payload",
    rows: Math.min(20, Math.max(6, before.split("\n").length + 1)),
    spellcheck: "false",
    autocapitalize: "off",
    "aria-label": "Payload",
    "aria-invalid": () => (error.value ? "true" : null),
    "aria-describedby": errorId,
    readonly: () => adminReason() !== null,
    value: () => text.value,
    oninput: (/** @type {Event} */ event) => {
      text.value = /** @type {HTMLTextAreaElement} */ (event.currentTarget).value;
      if (edited.peek()) drafts.set(key, text.peek());
      else drafts.delete(key);
    },
  });
  const save = async () => {
    await send("PUT", `api/dead/${encodeURIComponent(letter.id)}`, compactJson(text.peek()), { query: { sink: letter.sink } });
    drafts.delete(key);
  };
  const query = { sink: letter.sink, id: letter.id };
  /** @param {"replay" | "drop"} action */
  const run = async (action) => {
    if (await act(action, query)) state.version.value++;
  };
  const saveOnly = async () => {
    await save();
    toast("Saved. The store gets this payload with the next replay.");
    reload();
  };
  const saveAndReplay = async () => {
    await save();
    try {
      await run("replay");
    } catch (reason) {
      failed(reason);
    }
    reload();
  };
  const invalid = () => (error.value ? "The payload isn't JSON." : null);
  const why = () => adminReason() ?? busy();
  return h(
    "div",
    { class: "stack" },
    h(
      "h3",
      null,
      "Payload ",
      h("span", { class: "mu" }, () => (edited.value ? "edited, not saved yet" : "as the next replay sends it")),
    ),
    area,
    h("div", { id: errorId, class: "bad-text", "aria-live": "polite" }, () =>
      error.value ? ["✕ Not JSON: ", outside(error.value)] : null,
    ),
    when(
      () => edited.value && !error.value,
      () => () => diff(before, indent(text.value), "Changes of the payload"),
    ),
    h("div", { class: "row" }, () =>
      edited.value
        ? [
            button("Save and replay this one", { kind: "primary", disabledBecause: () => why() ?? invalid(), onclick: saveAndReplay }),
            button("Save", { disabledBecause: () => adminReason() ?? invalid(), onclick: saveOnly }),
            button("Undo the edit", {
              onclick: () => {
                drafts.delete(key);
                text.value = before;
              },
            }),
          ]
        : [
            button("Replay this one", { kind: "primary", disabledBecause: why, onclick: () => run("replay") }),
            button("Drop …", { kind: "danger", disabledBecause: why, onclick: () => run("drop") }),
          ],
    ),
    h("p", { class: "mu" }, `A replay sends the event to ${letter.sink} under its id. Schema and steps of its type don't run again.`),
  );
}
