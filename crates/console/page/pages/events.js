// The page "Events": events as their store has them, the newest first, with one event's story next to the list.
import { ApiError } from "../lib/api.js";
import { histogram } from "../lib/charts.js";
import { clock, count, millis, number, safe } from "../lib/format.js";
import { go, link, queryParam } from "../lib/router.js";
import { button, card, code, empty, errorBox, outside, pageHead, time } from "../lib/ui.js";
import { h, list, signal, when } from "../lib/view.js";
import { storyById } from "./event.js";
import { eventFeed, MOST_ROWS } from "./events_feed.js";
import { filterForm, filterKey } from "./events_filter.js";
import { moveInRows, opensElsewhere, wideScreen } from "./parts.js";
import { payloadHead } from "./payload.js";

/** @typedef {import("../api").StoredEvent} StoredEvent */
/** @typedef {import("./events_feed.js").Filter} Filter */
/** @typedef {ReturnType<typeof eventFeed>} Feed */

const BARS = 60;

export default function eventsPage() {
  const key = filterKey();
  const tailing = signal(false);
  const mistake = signal(/** @type {string | null} */ (null));
  const tail = button("Live tail", {
    pressed: () => tailing.value,
    onclick: () => (tailing.value = !tailing.peek()),
    title: "Receive events when they are accepted, before their store has them",
  });
  return h("div", null, pageHead("Events"), filterForm({ error: () => mistake.value, children: tail }), () =>
    body(JSON.parse(key.value), tailing, mistake),
  );
}

/**
 * @param {Filter} filter
 * @param {import("../lib/view.js").Signal<boolean>} tailing
 * @param {import("../lib/view.js").Signal<string | null>} mistake the server's error of the condition
 */
function body(filter, tailing, mistake) {
  const feed = eventFeed(filter, () => tailing.value);
  const chosen = queryParam("id");
  const wide = wideScreen();
  const error = () => {
    const reason = feed.failed.value;
    const ofCondition = filter.where !== "" && reason instanceof ApiError && reason.status === 400;
    mistake.value = ofCondition ? reason.detail : null;
    return reason && !ofCondition ? errorBox(reason, feed.load) : null;
  };
  return h(
    "div",
    { class: () => (chosen.value && wide.value ? "split" : null) },
    card({}, error, asked(feed, filter), chart(feed), newer(feed, tailing), table(feed, filter, chosen, wide), further(feed)),
    when(
      () => chosen.value !== "" && wide.value,
      () =>
        card({ title: "One event's story", actions: button("Close", { small: true, onclick: () => (chosen.value = "") }) }, () =>
          storyById({ id: chosen.value, type: feed.rows.peek().find((event) => event.id === chosen.value)?.type ?? filter.type }),
        ),
    ),
  );
}

/** Which store was asked, and how far it looked. @param {Feed} feed @param {Filter} filter */
function asked(feed, filter) {
  return h("p", { class: "mu", "aria-live": "polite" }, () => {
    const answer = feed.asked.value;
    if (!answer) return feed.failed.value ? null : "Asking the store …";
    const looked = `${filter.where ? "compared" : "read"} ${count(feed.lookedAt.value, "event")}`;
    const to = answer.looked_to ? `, ${filter.order === "asc" ? "up" : "back"} to ${clock(answer.looked_to)}` : "";
    const end = answer.next ? "" : ". There are no more";
    return ["From sink ", code(answer.sink), `: ${looked}${to}${end}.`];
  });
}

/** Newer events wait until the reader wants them. @param {Feed} feed @param {{ value: boolean }} tailing */
function newer(feed, tailing) {
  const held = () => {
    const n = feed.held.value.length + feed.heldMore.value;
    if (n === 0) return null;
    return button(`▲ ${count(n, "newer event is", "newer events are")} held back: show`, { small: true, onclick: feed.showHeld });
  };
  const tail = () => (tailing.value ? "Live tail shows a sample of accepted events, at most 50 a second." : null);
  return [h("div", { class: "held", "aria-live": "polite" }, held), h("p", { class: "mu" }, tail)];
}

/** The number of events for each span of time. @param {Feed} feed */
function chart(feed) {
  return () => {
    const times = feed.rows.value.map((event) => Date.parse(event.received_at)).filter((at) => !Number.isNaN(at));
    const [from, to] = [Math.min(...times), Math.max(...times)];
    if (times.length < 2 || from === to) return null;
    const bars = new Array(BARS).fill(0);
    for (const at of times) bars[Math.min(BARS - 1, Math.floor(((at - from) / (to - from)) * BARS))] += 1;
    const [first, last] = [new Date(from).toISOString(), new Date(to).toISOString()];
    const label = `${count(times.length, "loaded event")} from ${clock(first)} to ${clock(last)}; a bar is ${millis((to - from) / BARS)}`;
    return h(
      "figure",
      { class: "chart" },
      histogram(() => bars, { label }),
      h("figcaption", { class: "mu" }, label),
    );
  };
}

/**
 * @param {Feed} feed
 * @param {Filter} filter
 * @param {import("../lib/view.js").Signal<string>} chosen
 * @param {{ peek(): boolean }} wide
 */
function table(feed, filter, chosen, wide) {
  const open = (/** @type {StoredEvent} */ event, /** @type {MouseEvent} */ click) => {
    if (opensElsewhere(click)) return;
    click.preventDefault();
    if (wide.peek()) chosen.value = event.id;
    else go(link("event", event.id, { type: event.type }));
  };
  const row = (/** @type {{ readonly value: StoredEvent }} */ item) => {
    const event = item.value;
    const isChosen = () => chosen.value === event.id;
    const id = h(
      "a",
      {
        href: link("event", event.id, { type: event.type }),
        "data-row": true,
        "aria-current": () => (isChosen() ? "true" : null),
        title: event.id,
      },
      safe(event.id.length > 20 ? `${event.id.slice(0, 13)}…${event.id.slice(-4)}` : event.id),
    );
    return h(
      "tr",
      { class: () => (isChosen() ? "sel click" : "click"), onclick: (/** @type {MouseEvent} */ e) => open(event, e) },
      h("td", { class: "m" }, time(event.received_at, { exact: true })),
      h("td", { class: "m" }, id),
      filter.type ? null : h("td", { class: "short" }, outside(event.type, 80)),
      h("td", { class: "short" }, outside(event.source, 80)),
      h("td", { class: "m head" }, outside(payloadHead(event))),
    );
  };
  const headings = ["Received", "Id", ...(filter.type ? [] : ["Type"]), "Source", "Payload"].map((title) =>
    h("th", { scope: "col" }, title),
  );
  return [
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Events, table", onkeydown: moveInRows },
      h(
        "table",
        { class: "events by-rows" },
        h("thead", null, h("tr", null, headings)),
        h(
          "tbody",
          null,
          list(
            () => feed.rows.value,
            (event) => event.id,
            row,
          ),
        ),
      ),
    ),
    () => (feed.asked.value && feed.rows.value.length === 0 ? empty(nothing(feed)) : null),
  ];
}

/** @param {Feed} feed */
function nothing(feed) {
  return feed.asked.value?.next ? "None so far: look further." : "No event matches. Choose another type or a longer time.";
}

/** @param {Feed} feed */
function further(feed) {
  return () => {
    if (!feed.asked.value?.next) return null;
    const full = feed.rows.value.length >= MOST_ROWS ? `The list has ${number(MOST_ROWS)} rows at most: new ones replace the first.` : null;
    return h("div", { class: "row more" }, button("Look further", { onclick: feed.load }), full && h("span", { class: "mu" }, full));
  };
}
