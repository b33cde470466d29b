// One event's story as a timeline: received, rules, durable, the outcome in each sink, aggregates.
import { h } from "../lib/view.js";
import { age, safe, time } from "../lib/format.js";
import { link } from "../lib/router.js";
import { copy, payloadText, payloadView } from "./payload.js";
import { MARKS, bounds, clock, counted, failuresMeanwhile, openFailure, outcome } from "./words.js";
import { button } from "../lib/ui.js";
import { tryWith } from "./try_store.js";

/** @typedef {import("../api").Story} Story */
/** @typedef {import("../api").SinkStory} SinkStory */

/**
 * An entry of the timeline.
 * @param {{ mark?: string, sign?: string, side?: any }} at
 * @param {...any} children
 */
function entry({ mark = "", sign = "", side = null }, ...children) {
  return h(
    "li",
    { class: `tl-item ${mark}` },
    side && h("span", { class: "tl-side mono" }, side),
    sign && h("span", { class: "tl-sign", "aria-hidden": "true" }, sign),
    ...children,
  );
}

/** @param {Story} story */
function received({ received }) {
  return entry(
    { side: received.at && time(received.at) },
    h("b", {}, "Received"),
    received.client ? [" from ", h("code", {}, safe(received.client))] : null,
    received.source ? [" with the token of ", h("i", {}, safe(received.source))] : received.at ? ", without a source" : "",
    received.at ? null : " at an unknown time",
    received.asked_by_key ? ["; found by its key ", h("code", {}, safe(received.asked_by_key))] : null,
    received.trace ? h("div", { class: "muted" }, "trace ", h("code", {}, safe(received.trace))) : null,
  );
}

/** @param {Story} story */
function rules({ rules, type }) {
  if (!rules) return null;
  const steps = rules.steps.map((step) => h("li", {}, h("code", {}, safe(step))));
  return entry(
    {},
    h("b", {}, rules.config ? `Rules of ${clock(rules.config, 0)}` : "Rules"),
    ": ",
    rules.schema ? ["schema ", h("code", {}, safe(rules.schema)), ", "] : "no schema, ",
    steps.length ? counted(steps.length, "step") : "no steps",
    type ? [" · ", h("a", { href: link("types", type) }, "try them on a payload")] : null,
    steps.length ? h("ol", { class: "steps" }, steps) : null,
  );
}

/** @param {Story} story */
function durable({ journal }) {
  if (!journal) return entry({ mark: "none", sign: "?" }, h("b", {}, "Durable"), ": its position in the journal isn't known");
  const [shard, sequence] = journal.position.split(":");
  return entry(
    { mark: "ok", sign: "✓", side: journal.durable_at && time(journal.durable_at) },
    h("b", {}, "Durable"),
    `: shard ${shard}, sequence ${Number(sequence).toLocaleString("en-US")}`,
    journal.events_in_block ? `, in a block of ${counted(journal.events_in_block, "event")}` : "",
    h("div", { class: "muted" }, journal.still_there ? "The journal still has it." : "The journal has freed it."),
  );
}

/** What is at the right of a sink's entry. @param {SinkStory} sink */
function side(sink) {
  if (sink.outcome === "pending") {
    const open = sink.failures.find((failure) => failure.to === null);
    return open ? ["waits since ", age(open.from)] : "waits";
  }
  return sink.at ? time(sink.at.to) : null;
}

/** @param {SinkStory} sink @param {Story} story */
function inSink(sink, story) {
  const [sign, mark] = MARKS[sink.outcome] ?? ["?", "none"];
  const waits = sink.outcome === "pending" ? openFailure(sink.failures) : "";
  const earlier = failuresMeanwhile(sink.failures);
  return entry(
    { mark, sign, side: side(sink) },
    h("a", { href: link("sinks", sink.sink) }, h("b", {}, safe(sink.sink))),
    " ",
    safe(outcome(sink)),
    waits && h("div", {}, "It waits: ", h("code", {}, safe(waits))),
    sink.reason && h("div", {}, "The store's error: ", h("code", {}, safe(sink.reason))),
    sink.condition && h("div", {}, "Condition: ", h("code", {}, safe(sink.condition))),
    sink.object && h("div", {}, "Object: ", h("code", {}, safe(sink.object))),
    earlier && h("div", { class: "muted" }, safe(earlier)),
    sink.edits.map((edit) => h("div", { class: "muted" }, "edited ", time(edit.at), " by ", safe(edit.by))),
    sink.outcome === "dead" ? h("div", {}, h("a", { href: link("dead", "", { sink: sink.sink, id: story.id }) }, "Edit and replay the dead letter")) : null,
  );
}

/** @param {Story} story */
function inAggregates({ aggregates }) {
  return aggregates.map(({ name, window }) =>
    entry({ mark: "ok", sign: "✓", side: time(window) }, h("a", { href: link("aggregates", name) }, h("b", {}, safe(name))), ` counts it in the window that begins at ${clock(window, 0)}`),
  );
}

/**
 * @param {Story} story
 * @param {{ alone?: boolean }} [options] alone: the story is the page
 */
export function storyView(story, { alone = false } = {}) {
  const address = link("event", story.id, { ...(story.type ? { type: story.type } : {}), ...(story.journal ? { position: story.journal.position } : {}) });
  const payload = payloadText(story);
  return h(
    "article",
    { class: "story", "aria-label": "One event's story" },
    h(
      "div",
      { class: "row" },
      alone ? null : h("h2", {}, "One event's story"),
      h("span", { class: "spring" }),
      alone ? null : h("a", { href: address, target: "_blank", rel: "noopener" }, "Open in a new tab"),
      button({ onclick: () => copy(new URL(address, location.href).href, "Link") }, "Copy link"),
    ),
    h("p", { class: "mono muted break" }, safe(story.id), story.type ? [" · ", safe(story.type)] : null, story.journal ? ` · position ${story.journal.position}` : null),
    h("ol", { class: "tl" }, received(story), rules(story), durable(story), story.sinks.map((sink) => inSink(sink, story)), inAggregates(story)),
    h(
      "div",
      { class: "row" },
      h("h3", {}, "Payload as stored"),
      h("span", { class: "spring" }),
      payload !== undefined && story.type ? h("a", { href: link("types", story.type), onclick: () => tryWith(payload) }, "Try it again with this payload") : null,
    ),
    payloadView(story, "Payload as stored"),
    known(story),
  );
}

/** @param {Story} story */
function known(story) {
  return h(
    "div",
    { class: "muted" },
    h("p", {}, "Known from: ", safe(story.known_from.join(", ") || "nothing"), "."),
    story.not_known.length ? [h("p", {}, "Not known:"), h("ul", {}, story.not_known.map((sentence) => h("li", {}, safe(sentence))))] : null,
  );
}

/** The title of a tab with this story. @param {Story} story */
export function storyTitle(story) {
  return `${story.type ?? "event"} ${story.id.slice(0, 8)}…${story.id.slice(-4)}`;
}

export { bounds };
