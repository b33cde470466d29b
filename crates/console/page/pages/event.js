// The page of one event: its story, found by id, key or position.
import { ApiError, get, resource } from "../lib/api.js";
import { safe } from "../lib/format.js";
import { live } from "../lib/live.js";
import { go, instance, link, route } from "../lib/router.js";
import { button, card, code, field, outside, pageHead, shown } from "../lib/ui.js";
import { computed, h } from "../lib/view.js";
import { typeSuggestions } from "./events_filter.js";
import { getKeepingPayloads } from "./parts.js";
import { storyView } from "./story.js";

/** @typedef {import("../api").Story} Story */
/** @typedef {{ id?: string, key?: string, position?: string, type?: string, source?: string }} Asked */

const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
/** Types that are tried for a key. */
const MOST_TYPES = 8;
const POSITION = /^\d+:\d+$/;

/**
 * The address of the event that a text names: an id, a position, else a key.
 * @param {string} text
 * @param {string} [type]
 * @param {string} [source] of the token that has sent the key
 */
export function findLink(text, type = "", source = "") {
  const wanted = text.trim();
  if (UUID.test(wanted)) return link("event", wanted.toLowerCase(), { type });
  if (POSITION.test(wanted)) return link("event", "", { position: wanted, type });
  return link("event", "", { key: wanted, type, source });
}

/** Which instance to ask, and until when. @typedef {{ signal: AbortSignal, here?: boolean, at?: string }} Target */
/** A story, and the other instance that knows it. @typedef {{ story: Story, elsewhere: import("../api").Peer | null }} Found */

/** @param {Asked} asked @param {Target} to @returns {Promise<Story>} */
function ask({ id, key, position, type, source }, to) {
  if (id) return getKeepingPayloads(`api/events/${encodeURIComponent(id)}/story`, { ...to, query: { type, position } });
  if (key) return type ? askByKey(key, type, source, to) : askAllTypes(key, source, to);
  return getKeepingPayloads(`api/events/${encodeURIComponent(position ?? "")}/story`, { ...to, query: { type } });
}

/** Asks the shown instance, then all other gateways at the same time. A position belongs to one gateway. @param {Asked} asked @param {AbortSignal} signal @returns {Promise<Found>} */
async function askFleet(asked, signal) {
  const first = await ask(asked, { signal }).catch(notFound);
  if (!(first instanceof ApiError)) return { story: first, elsewhere: null };
  const found = asked.position ? null : await askOthers(asked, signal);
  if (found) return found;
  throw first;
}

/** @param {Asked} asked @param {AbortSignal} signal @returns {Promise<Found | null>} */
async function askOthers(asked, signal) {
  /** @type {import("../api").Peer[]} */
  const peers = (await get("api/peers", { signal, here: true }).catch(() => null))?.peers ?? [];
  const isShown = (/** @type {import("../api").Peer} */ peer) => (peer.this ? instance.peek() === null : instance.peek() === peer.name);
  const others = peers.filter((peer) => !isShown(peer) && peer.error === null && peer.role !== "writer");
  const answers = others.map(async (peer) => {
    const story = await ask(asked, peer.this ? { signal, here: true } : { signal, at: peer.name }).catch(() => null);
    return story && { story, elsewhere: peer };
  });
  return (await Promise.all(answers)).find((found) => found !== null) ?? null;
}

/** @param {string} key @param {string} type @param {string | undefined} source @param {Target} to @returns {Promise<Story>} */
const askByKey = (key, type, source, to) => getKeepingPayloads("api/events/by-key/story", { ...to, query: { key, type, source } });

/**
 * A key belongs to a type: without one the busiest are tried.
 * @param {string} key @param {string | undefined} source @param {Target} to @returns {Promise<Story>}
 */
async function askAllTypes(key, source, to) {
  const busiest = (live.overview.peek()?.types ?? []).filter((type) => type.aggregate_of === null).map((type) => type.type);
  let last = await askByKey(key, "", source, to).catch(notFound);
  for (const type of busiest.slice(0, MOST_TYPES)) {
    if (!(last instanceof ApiError)) return last;
    last = await askByKey(key, type, source, to).catch(notFound);
  }
  if (last instanceof ApiError) throw last;
  return last;
}

/** @param {unknown} error @returns {ApiError} */
function notFound(error) {
  if (error instanceof ApiError && error.status === 404) return error;
  throw error;
}

/** The story of an event, while it loads, and what was looked at if it isn't found. @param {Asked} asked @param {{ alone?: boolean }} [options] */
export function storyById(asked, options) {
  const story = resource((signal) => askFleet(asked, signal));
  const isMissing = () => {
    const error = story.error.value;
    return error instanceof ApiError && error.status === 404 && lookedIn(error) ? error : null;
  };
  return h("div", null, () => {
    const error = isMissing();
    if (error) return missing(asked, error, story.reload);
    return shown(story, (data) => () => {
      const { story: known, elsewhere } = data.value;
      return [elsewhere ? h("p", null, "Instance ", otherLink(elsewhere, known), " has this event.") : null, storyView(known, options)];
    });
  });
}

/** The links of a story go to the instance that is shown: this one goes to the instance that has it. @param {import("../api").Peer} peer @param {Story} story */
function otherLink(peer, { id, type }) {
  const name = peer.overview?.instance ?? peer.name;
  return h("a", { href: link("event", id, { type }, peer.this ? null : peer.name) }, safe(name));
}

/** @param {ApiError} error @returns {string[] | null} */
function lookedIn(error) {
  const places = /** @type {{ looked_in?: unknown } | undefined} */ (error.body)?.looked_in;
  return Array.isArray(places) ? places.map(String) : null;
}

/** @param {Asked} asked @param {ApiError} error @param {() => void} again */
function missing({ id, key, position, type }, error, again) {
  const name = id ? "id" : key ? "key" : "position";
  return h(
    "div",
    { role: "status" },
    h(
      "p",
      null,
      h("b", null, "No event found"),
      ` with the ${name} `,
      code(id || key || position),
      type ? [" of type ", code(type)] : null,
      ".",
    ),
    h("p", null, outside(error.detail)),
    h("p", null, "Looked in:"),
    h(
      "ul",
      null,
      (lookedIn(error) ?? []).map((place) => h("li", null, outside(place))),
    ),
    h(
      "p",
      { class: "mu" },
      "A key belongs to a type and to the source of its token: enter both; without a type, the busiest are tried. A rejected event has no story: see ",
      h("a", { href: link("refused") }, "the last rejections"),
      ".",
    ),
    button("Look again", { onclick: again }),
  );
}

/** The field that finds an event. @param {Asked} asked */
function finder(asked) {
  const text = h("input", {
    class: "in m",
    name: "find",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    value: asked.id || asked.key || asked.position || "",
  });
  const type = h("input", {
    class: "in",
    name: "type",
    list: "event-types",
    autocomplete: "off",
    placeholder: "all",
    value: asked.type ?? "",
  });
  const source = h("input", { class: "in", name: "source", size: 12, autocomplete: "off", placeholder: "none", value: asked.source ?? "" });
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (text.value.trim()) go(findLink(text.value, type.value.trim(), source.value.trim()));
  };
  return h(
    "form",
    { class: "row filters", role: "search", "aria-label": "Find an event", onsubmit: find },
    field("Id, key or position", text, { class: "grow" }),
    field("Type", type),
    field("Source of the key", source),
    typeSuggestions("event-types"),
    h("button", { type: "submit", class: "btn primary" }, "Find"),
  );
}

export default function eventPage() {
  const asked = computed(() => {
    const { rest, query } = route.value;
    const of = (/** @type {string} */ name) => query.get(name) ?? "";
    // The header's field finds by any of them.
    const isId = rest === "" || UUID.test(rest);
    const isPosition = POSITION.test(rest);
    const key = isId || isPosition ? of("key") : rest;
    const position = isPosition ? rest : of("position");
    return JSON.stringify({ id: isId ? rest : "", key, position, type: of("type"), source: of("source") });
  });
  return h("div", null, () => {
    const wanted = /** @type {Asked} */ (JSON.parse(asked.value));
    const any = wanted.id || wanted.key || wanted.position;
    return [
      pageHead(
        "One event",
        wanted.type
          ? h("a", { href: link("events", "", { type: wanted.type }) }, "events of ", safe(wanted.type))
          : h("a", { href: link("events") }, "all events"),
      ),
      card({}, finder(wanted)),
      any
        ? card({ title: "Story" }, storyById(wanted, { alone: true }))
        : card(
            {},
            h(
              "p",
              { class: "mu" },
              "Enter the id of an event, its key (the Idempotency-Key, or the id in its payload), or its position such as 0:18204118.",
            ),
          ),
    ];
  });
}
