// One event's story as a timeline: received, rules, durable, the outcome in each sink, aggregates.
import { clock, count, number, safe } from "../lib/format.js";
import { link } from "../lib/router.js";
import { ago, button, code, copy, outside, time } from "../lib/ui.js";
import { h } from "../lib/view.js";
import { payloadText, payloadView } from "./payload.js";
import { tryWith } from "./try_store.js";
import { failuresMeanwhile, LEVELS, openFailure, outcome, payloadOrigin } from "./words.js";

/** @typedef {import("../api").Story} Story */
/** @typedef {import("../api").SinkStory} SinkStory */

/**
 * An entry of the timeline.
 * @param {{ level?: "ok" | "warn" | "bad" | "none" | "info", at?: unknown }} options `at`: a time, at the right
 * @param {...unknown} children
 */
function entry({ level = "info", at = null }, ...children) {
  return h("li", { class: level }, at ? h("span", { class: "at mu" }, at) : null, ...children);
}

/** @param {Story} story */
function received({ received }) {
  return entry(
    { at: received.at && time(received.at, { exact: true }) },
    h("b", null, "Received"),
    received.client ? [" from ", code(received.client)] : null,
    received.source ? [" with the token of ", h("i", null, outside(received.source))] : null,
    received.at ? null : " at an unknown time",
    received.asked_by_key ? ["; found by its key ", code(received.asked_by_key)] : null,
    received.trace ? h("div", { class: "mu" }, "trace ", code(received.trace)) : null,
  );
}

/** @param {Story} story */
function rules({ rules, type }) {
  if (!rules) return null;
  return entry(
    {},
    h("b", null, rules.config ? `Rules of ${clock(rules.config)}` : "Rules"),
    ": ",
    rules.schema ? ["schema ", code(rules.schema)] : "no schema",
    ", ",
    rules.steps.length
      ? [count(rules.steps.length, "step"), ": ", rules.steps.map((step, i) => [i ? ", " : null, code(step)])]
      : "no steps",
    type ? [". ", h("a", { href: link("types", type) }, "The rules now")] : null,
  );
}

/** @param {Story} story */
function durable({ journal }) {
  if (!journal) return entry({ level: "none" }, h("b", null, "Durable"), ": its position in the journal isn't known");
  const [shard, sequence] = journal.position.split(":");
  return entry(
    { level: "ok", at: journal.durable_at && time(journal.durable_at, { exact: true }) },
    h("b", null, "Durable"),
    `: shard ${shard}, sequence ${number(Number(sequence))}`,
    journal.events_in_block ? `, in a block of ${count(journal.events_in_block, "event")}` : null,
    `. The journal ${journal.still_there ? "still has it" : "has freed it"}`,
  );
}

/** What is at the right of a sink's entry. @param {SinkStory} sink */
function sideOf(sink) {
  if (sink.outcome !== "pending") return sink.at ? time(sink.at.to, { exact: true }) : null;
  const open = sink.failures.find((failure) => failure.to === null);
  return open ? ["waits for ", ago(open.from)] : "waits";
}

/** @param {SinkStory} sink @param {Story} story */
function inSink(sink, story) {
  const level = LEVELS[sink.outcome] ?? "none";
  const waits = sink.outcome === "pending" ? openFailure(sink.failures) : "";
  const earlier = failuresMeanwhile(sink.failures);
  const details = [
    waits ? h("div", null, "Failure: ", code(waits)) : null,
    sink.reason ? h("div", null, "Error of the store: ", code(sink.reason)) : null,
    sink.condition ? h("div", null, "Condition: ", code(sink.condition)) : null,
    sink.object ? h("div", null, "Object: ", code(sink.object)) : null,
    sink.server && sink.outcome !== "stored" ? h("div", { class: "mu" }, "Writer: ", code(sink.server)) : null,
    earlier ? h("div", { class: "mu" }, safe(earlier)) : null,
    sink.edits.map((edit) => h("div", { class: "mu" }, "Edited at ", time(edit.at), " by ", outside(edit.by))),
    sink.outcome === "dead" ? h("div", null, h("a", { href: deadLink(sink, story) }, "The dead letter: edit, replay")) : null,
  ];
  return entry(
    { level, at: sideOf(sink) },
    h("a", { href: link("sinks", sink.sink) }, h("b", null, outside(sink.sink))),
    " ",
    outside(outcome(sink)),
    details,
  );
}

/** @param {SinkStory} sink @param {Story} story */
const deadLink = (sink, story) => link("dead", "", { sink: sink.sink, id: story.id, letter: `${sink.sink}/${story.id}` });

/** @param {Story} story */
function inAggregates({ aggregates }) {
  return aggregates.map(({ name, window }) =>
    entry(
      { level: "ok", at: time(window) },
      h("a", { href: link("aggregates", name) }, h("b", null, outside(name))),
      ` counts it in the window that begins at ${clock(window)}`,
    ),
  );
}

/** @param {Story} story */
function addressOf({ id, type, journal }) {
  return link("event", id, { type, position: journal?.position });
}

/**
 * @param {Story} story
 * @param {{ alone?: boolean }} [options] alone: it is the page, and needs no link to itself
 */
export function storyView(story, { alone = false } = {}) {
  const address = addressOf(story);
  const payload = payloadText(story);
  const origin = payloadOrigin(story);
  const again =
    payload !== undefined && story.type
      ? h("a", { href: link("types", story.type), onclick: () => tryWith(payload) }, "Try it again with this payload")
      : null;
  return h(
    "article",
    { class: "story" },
    h(
      "p",
      { class: "m mu break" },
      story.id ? outside(story.id) : "id not known",
      story.type ? [" · ", outside(story.type)] : null,
      story.journal ? ` · position ${story.journal.position}` : null,
    ),
    h(
      "div",
      { class: "row" },
      button("Copy link", { small: true, onclick: () => copy(new URL(address, location.href).href, "the link of the event") }),
      alone ? null : h("a", { href: address, target: "_blank", rel: "noopener" }, "Open in a new tab"),
      again,
    ),
    h(
      "ol",
      { class: "tl" },
      received(story),
      rules(story),
      durable(story),
      story.sinks.map((sink) => inSink(sink, story)),
      inAggregates(story),
    ),
    h("h3", null, "Payload ", h("span", { class: "mu" }, safe(origin))),
    payloadView(story, `Payload ${safe(origin)}`),
    known(story),
  );
}

/** @param {Story} story */
function known(story) {
  const unknown = story.not_known.map((sentence) => h("li", null, outside(sentence)));
  return h(
    "div",
    { class: "mu" },
    h("p", null, "Known from: ", outside(story.known_from.join(", ") || "nothing"), "."),
    unknown.length ? [h("p", null, "Not known:"), h("ul", null, unknown)] : null,
  );
}
