// The page "Tap": a live sample of events at one point of their path.
import { ApiError } from "../lib/api.js";
import { bytes, clock, count, millis, number, safe, utc } from "../lib/format.js";
import { live } from "../lib/live.js";
import { link, queryParam, route, setQuery } from "../lib/router.js";
import { button, card, chip, empty, errorBox, outside, pageHead, pill, select } from "../lib/ui.js";
import { computed, h, list, signal } from "../lib/view.js";
import { conditionField, typeSuggestions } from "./events_filter.js";
import { payloadHead } from "./payload.js";
import { filterOf, tapFeed } from "./tap_feed.js";

/** @typedef {import("../api").TapLine} TapLine */
/** @typedef {ReturnType<typeof tapFeed>} Feed */

/** @type {[TapLine["at"], string][]} */
const POINTS = [
  ["accepted", "accepted: after the steps, durable"],
  ["received", "received: before the steps"],
  ["refused", "rejected"],
  ["stored", "stored by a sink"],
  ["dead", "dead letters"],
];
const RATES = /** @type {const} */ ([1, 10, 50, 200]);

export default function tapPage() {
  const running = signal(true);
  const filter = computed(() => JSON.stringify(filterOf(route.value.query, live.overview.value?.role === "writer")));
  return h(
    "div",
    null,
    pageHead("Tap"),
    h("p", { class: "mu" }, "A sample of events while they pass. Nothing is kept: events that passed before aren't shown."),
    () => view(tapFeed(filter, running), running),
  );
}

/** @param {Feed} feed @param {import("../lib/view.js").Signal<boolean>} running */
function view(feed, running) {
  const mistake = () => {
    const reason = feed.error.value;
    return reason instanceof ApiError && reason.status === 400 && JSON.parse(feed.filter.value).where ? reason.detail : null;
  };
  return [
    filters(feed, running, mistake),
    card(
      { title: "Events", note: () => stateChip(feed, running) },
      () => failure(feed, mistake),
      summary(feed),
      heldBar(feed),
      lineList(feed),
    ),
  ];
}

/** @param {Feed} feed @param {() => string | null} mistake */
function failure(feed, mistake) {
  const reason = feed.error.value;
  if (!reason || mistake()) return null;
  if (reason instanceof ApiError && reason.status === 503)
    return h("p", { class: "warn-text", role: "alert" }, "▲ At most 4 taps are open at a time. This one begins when another ends.");
  return errorBox(reason);
}

/** @param {Feed} feed @param {import("../lib/view.js").Signal<boolean>} running */
function stateChip(feed, running) {
  if (!running.value) return chip("stopped");
  if (feed.state.value === "live") return pill("ok", "live");
  return feed.state.value === "opening" ? chip("opening …") : pill("warn", "not live: opened again soon");
}

/** @param {Feed} feed @param {import("../lib/view.js").Signal<boolean>} running @param {() => string | null} mistake */
function filters(feed, running, mistake) {
  const query = (/** @type {string} */ name) => () => route.value.query.get(name) ?? "";
  const at = () => JSON.parse(feed.filter.value).at;
  const writer = () => live.overview.value?.role === "writer";
  const { input, message } = conditionField({ value: query("where"), error: mistake });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    setQuery({ type: text("type"), where: text("where") });
    running.value = true;
  };
  const apply = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.currentTarget).form?.requestSubmit();
  const point = {
    get value() {
      return at();
    },
    set value(value) {
      setQuery({ at: value });
    },
    peek: at,
  };
  const points = () => (writer() ? POINTS.filter(([value]) => value === "stored") : POINTS);
  const rates = RATES.map((n) => /** @type {const} */ ([String(n), `${n}/s`]));
  return h(
    "form",
    { role: "search", "aria-label": "What is sampled", onsubmit: submit },
    h(
      "div",
      { class: "row filters" },
      select(point, points, { "aria-label": "Point" }),
      h("input", {
        class: "in",
        name: "type",
        list: "tap-types",
        placeholder: "type: all",
        "aria-label": "Type",
        autocomplete: "off",
        value: query("type"),
        onchange: apply,
      }),
      typeSuggestions("tap-types"),
      () => (at() === "refused" ? null : input),
      select(queryParam("rate", "10"), rates, { "aria-label": "Lines a second" }),
      () =>
        running.value
          ? button("Stop", { onclick: () => (running.value = false) })
          : button("Start", { kind: "primary", onclick: () => (running.value = true) }),
      button("Pause", { pressed: () => feed.paused.value, onclick: () => (feed.paused.value = !feed.paused.peek()) }),
    ),
    message,
  );
}

/** The line `sum` in words. @param {Feed} feed */
function summary(feed) {
  return h("p", { class: "mu" }, () => {
    const sum = feed.sum.value;
    if (!sum) return null;
    const { passed, looked_at, matched, shown, dropped } = sum;
    const sampled = looked_at < passed ? `, of which ${number(looked_at)} were sampled` : "";
    const more = dropped ? ` ${number(dropped)} more match: raise the rate, or add a condition.` : "";
    return `In the ${safe(sum.sum)} ${count(passed, "event")} passed${sampled}; ${number(matched)} ${matched === 1 ? "matches" : "match"}, ${number(shown)} ${shown === 1 ? "is" : "are"} shown.${more}`;
  });
}

/** @param {Feed} feed */
function heldBar(feed) {
  const text = () =>
    `${count(feed.held.value.length, "newer line is", "newer lines are")} held back${feed.paused.value ? "" : " while you are in the list"}`;
  return h("div", { class: "held mu" }, () => (feed.holds() && feed.held.value.length ? text() : null));
}

/** @param {Feed} feed */
function lineList(feed) {
  const inside = (/** @type {boolean} */ is) => () => (feed.inside.value = is);
  // Rejections have no payload here.
  const payloadHeading = () => (JSON.parse(feed.filter.value).at === "refused" ? null : h("th", { scope: "col" }, "Payload"));
  const box = h(
    "div",
    {
      class: "scroll",
      tabindex: "0",
      role: "region",
      "aria-label": "Sampled events, table",
      onpointerenter: inside(true),
      onpointerleave: inside(false),
      onfocusin: inside(true),
      onfocusout: inside(false),
    },
    h(
      "table",
      { class: "events by-rows" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Time", "Type", "Source", "About"].map((title) => h("th", { scope: "col" }, title)),
          payloadHeading,
        ),
      ),
      h(
        "tbody",
        null,
        list(
          () => feed.lines.value,
          (line) => `${line.n} ${line.time}`,
          (line) => row(line.value),
        ),
      ),
    ),
  );
  return [box, () => (feed.lines.value.length === 0 ? empty("Nothing has passed yet.") : null)];
}

/** @param {TapLine} line */
function row(line) {
  const when = h("time", { datetime: line.time, title: utc(line.time), class: "num m" }, clock(line.time, { exact: true }));
  const linked = line.id ? h("a", { href: link("event", line.id, { type: line.type, position: line.position }) }, when) : when;
  return h(
    "tr",
    null,
    h("td", null, linked),
    h("td", { class: "short" }, outside(line.type, 80)),
    h("td", { class: "short" }, outside(line.source, 80)),
    h("td", null, about(line)),
    h(
      "td",
      { class: "m head" },
      line.payload === undefined && line.payload_head === undefined
        ? ""
        : outside(payloadHead({ payload: line.payload ?? line.payload_head })),
    ),
  );
}

/** What happened to it. @param {TapLine} line */
function about(line) {
  const parts = [
    line.sink ? outside(line.sink, 80) : null,
    line.after_ms === undefined ? null : `after ${millis(line.after_ms)}`,
    line.code ? chip(outside(line.code)) : null,
    line.pointer === undefined ? null : outside(line.pointer || "the whole payload", 120),
    line.line === undefined ? null : `line ${number(line.line)}`,
    line.reason ? outside(line.reason, 200) : null,
    line.bytes === undefined ? null : bytes(line.bytes),
  ].filter((part) => part !== null);
  return parts.map((part, i) => [i ? " " : null, part]);
}
