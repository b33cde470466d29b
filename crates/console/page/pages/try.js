// Tries a payload: nothing is stored. Each step is shown with what it changes.
import { send } from "../lib/api.js";
import { count, millis, number } from "../lib/format.js";
import { indent, parseKeepingPayloads } from "../lib/rawjson.js";
import { link } from "../lib/router.js";
import { button, card, chip, code, diff, jsonText, newId, outside, pill, toast } from "../lib/ui.js";
import { h, signal } from "../lib/view.js";
import { getKeepingPayloads } from "./parts.js";
import { payloadText } from "./payload.js";
import { takePayload } from "./try_store.js";

/** @typedef {import("../api").EventType} EventType */
/** @typedef {import("../api").Try} Try */
/** @typedef {Try["steps"][number]} Step */

/** Steps that are shown before "show all". */
const STEPS = 50;

/** The payload and the answer stay when another page was visited. @type {Map<string, string>} */
const texts = new Map();

/** The path of a dry run; without a type of its own the server finds the type. @param {string} type */
const pathOf = (type) => (type && type !== "*" ? `api/try/${encodeURIComponent(type)}` : "api/try");

/** @param {string} type @param {EventType | null} rules */
export function tryCard(type, rules) {
  const text = signal(takePayload() ?? texts.get(type) ?? "");
  const tried = signal(/** @type {{ answer: Try, input: string } | null} */ (null));
  const run = async () => {
    const input = text.peek();
    const response = await send("POST", pathOf(type), input, {});
    tried.value = { answer: parseKeepingPayloads(await response.text()), input };
  };
  const recent = async () => {
    const answer = await getKeepingPayloads("api/events", { query: { type: type === "*" ? "" : type, order: "desc", limit: 1 } });
    const payload = answer.events[0] && payloadText(answer.events[0]);
    if (payload === undefined) toast("No stored event of this type has a payload to try.", "warn");
    else setText(indent(payload));
  };
  const setText = (/** @type {string} */ next) => {
    text.value = next;
    texts.set(type, next);
  };
  const tryButton = button(["Try ", h("kbd", null, "Ctrl ↵")], { kind: "primary", onclick: run });
  const help = newId();
  const area = h("textarea", {
    class: "in m payload",
    rows: 8,
    spellcheck: "false",
    autocapitalize: "off",
    "aria-label": "Payload to try",
    "aria-describedby": help,
    placeholder: '{"path": "/a", "status": 200}',
    value: () => text.value,
    oninput: (/** @type {Event} */ event) => setText(/** @type {HTMLTextAreaElement} */ (event.currentTarget).value),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      tryButton.click();
    },
  });
  const note = chip("nothing is stored");
  return card(
    {
      title: type ? ["Try a payload as ", outside(type)] : "Try a payload",
      note,
      actions: [button("Use a recent one", { onclick: recent }), tryButton],
    },
    h(
      "p",
      { class: "mu", id: help },
      type && type !== "*" ? "The running configuration is used." : "The server finds the type as for an event without a type in its path.",
    ),
    area,
    h("div", { "aria-live": "polite" }, () => (tried.value ? result(tried.value.answer, tried.value.input, rules) : null)),
  );
}

/** @param {string} name @param {number | undefined} microseconds @param {"ok" | "bad"} [level] */
function stage(name, microseconds, level = "ok") {
  if (microseconds === undefined) return null;
  return h(
    "li",
    { class: level },
    h("span", { class: "at mu num" }, millis(microseconds / 1000)),
    level === "ok" ? `${name} ✓` : `${name} ✕`,
  );
}

/** @param {Try} answer @param {string} input @param {EventType | null} rules */
function result(answer, input, rules) {
  const code = answer.refused?.code;
  const all = signal(answer.steps.length <= STEPS);
  const shapes = payloadsBefore(answer.steps, input);
  const shown = () => answer.steps.slice(0, all.value ? answer.steps.length : STEPS).map((step, i) => stepEntry(step, shapes[i] ?? null));
  const rest = () =>
    all.value ? null : button(`Show all ${number(answer.steps.length)} steps`, { small: true, onclick: () => (all.value = true) });
  return [
    answer.type ? h("p", null, "Type ", h("a", { href: link("types", answer.type) }, outside(answer.type))) : null,
    h(
      "ol",
      { class: "tl" },
      stage("JSON", answer.json_microseconds, code === "json" ? "bad" : "ok"),
      stage("Schema", answer.schema_microseconds, code === "schema" ? "bad" : "ok"),
      shown,
      answer.more_steps ? h("li", { class: "none" }, `${count(answer.more_steps, "more step")} ran`) : null,
      answer.filtered.map((one) =>
        h("li", { class: "warn" }, `Step ${one.step}, `, h("b", null, outside(one.operation)), ", removes an event: it is not stored"),
      ),
      answer.stored.map((event) => storedEntry(event, rules)),
      answer.refused ? refusedEntry(answer.refused) : null,
    ),
    rest,
  ];
}

/**
 * The payload before each step, as text; null if it isn't known. After `explode` each part has its own.
 * @param {Step[]} steps @param {string} input
 */
function payloadsBefore(steps, input) {
  /** @type {Map<string, string>} */
  const current = new Map([["", input]]);
  return steps.map((step) => {
    const part = (step.part ?? []).join(".");
    const before = current.get(part) ?? null;
    const after = payloadText(step);
    if (after !== undefined) current.set(part, after);
    return before;
  });
}

const DID = /** @type {Record<Step["did"], ["ok" | "warn" | "bad" | "none", string]>} */ ({
  done: ["ok", ""],
  not_met: ["none", "its condition is not met"],
  skipped: ["none", "skipped"],
  refused: ["bad", "rejects the event"],
  filtered: ["warn", "removes the event"],
  exploded: ["ok", "makes several events of it"],
});

/** Lines to compare: a member that becomes the last one has not changed. @param {string} text */
const linesOf = (text) => indent(text).replace(/,$/gm, "");

/** @param {Step} step @param {string | null} before */
function stepEntry(step, before) {
  const [level, words] = DID[step.did] ?? ["none", step.did];
  const after = payloadText(step);
  const changed = after !== undefined && step.did === "done" && indent(after) !== indent(before ?? "");
  const label = `Changes by step ${step.step}`;
  return h(
    "li",
    { class: level },
    h("span", { class: "at mu num" }, millis(step.microseconds / 1000)),
    `${step.step} `,
    h("b", null, outside(step.operation)),
    step.part?.length ? h("span", { class: "mu" }, ` event ${step.part.map((n) => n + 1).join(".")}`) : null,
    words ? h("span", { class: "mu" }, `: ${words}`) : null,
    step.detail ? h("div", null, code(step.detail, 1024)) : null,
    changed ? (before === null ? jsonText(indent(after), { label }) : diff(linesOf(before), linesOf(after), label)) : null,
    !changed && step.did === "done" ? h("span", { class: "mu" }, ": no change") : null,
    step.did === "exploded" && after !== undefined ? jsonText(indent(after), { label, max: 4096 }) : null,
  );
}

/** @param {readonly unknown[]} names @param {"sinks" | "aggregates"} page */
const links = (names, page) =>
  names.map((name, i) => [i ? ", " : null, h("a", { href: link(page, String(name)) }, h("b", null, outside(name)))]);

/** @param {unknown} value @returns {readonly any[]} */
const arrayOf = (value) => (Array.isArray(value) ? value : []);

/** @param {Try["stored"][number]} event @param {EventType | null} rules */
function storedEntry(event, rules) {
  const [to, skipped, dead] = [arrayOf(event.routes), arrayOf(event.skipped), arrayOf(event.dead)];
  return h(
    "li",
    { class: dead.length ? "bad" : "ok" },
    to.length ? ["would be stored in ", links(to, "sinks")] : "would be accepted, and stored in no sink",
    rules?.aggregates.length ? ["; counted in ", links(rules.aggregates, "aggregates")] : null,
    skipped.length ? h("div", null, "skipped by ", links(skipped, "sinks"), ": the condition is false") : null,
    dead.map((one) => h("div", null, "dead letter in ", links([one.sink], "sinks"), ": ", code(one.detail, 1024))),
    event.time_unread ? h("div", { class: "warn-text" }, "▲ The event time can't be read: ", outside(event.time_unread)) : null,
    h("div", { class: "mu" }, "id ", event.id ? code(event.id) : "created when the event is accepted"),
    h(
      "details",
      null,
      h("summary", null, "The event"),
      jsonText(indent(payloadText(event) ?? "null"), { label: "The event that would be stored" }),
    ),
  );
}

/** @param {{ [member: string]: unknown }} refused */
function refusedEntry(refused) {
  const { status, code: name, detail, pointer, offset } = refused;
  return h(
    "li",
    { class: "bad" },
    pill("refused", "would be rejected"),
    " ",
    code(`${status ?? ""} ${name ?? ""}`),
    h("div", null, outside(detail, 4096)),
    pointer === undefined ? null : h("div", null, "at ", code(pointer)),
    offset === undefined ? null : h("div", null, `at byte ${number(Number(offset))}`),
  );
}
