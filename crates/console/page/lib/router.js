// Addresses: `#/page/rest?filters`, and `#/@instance/page/rest?filters` for the pages of a peer. They hold all that a page shows, so reload, a
// new tab and a proxy's prefix work.

import { batch, computed, signal } from "./view.js";

/** A route's `instance` is the name of a peer; null: this process. @typedef {{ instance: string | null, page: string, rest: string, query: URLSearchParams }} Route */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */

/**
 * Parses the part of an address after `#`.
 * @param {string} hash
 * @returns {Route}
 */
export function parse(hash) {
  const text = hash.replace(/^#?\/?/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const [, at, page = "", rest = ""] = /^(?:@([^/]*)\/?)?([^/]*)\/?(.*)$/s.exec(path) ?? [];
  return {
    instance: at ? decode(at) : null,
    page: decode(page) || "overview",
    rest: decode(rest),
    query: new URLSearchParams(mark < 0 ? "" : text.slice(mark + 1)),
  };
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The address of a page, relative: `#/sinks/search?tab=lanes`. Null, undefined, false and empty filters are left out. Reactive: it keeps the
 * instance that is shown, unless another one is given.
 * @param {string} page
 * @param {string | null} [rest]
 * @param {Query | URLSearchParams} [query]
 * @param {string | null} [at]
 * @returns {string}
 */
export function link(page, rest, query, at = instance.value) {
  const search = query instanceof URLSearchParams ? query : toSearch(query ?? {});
  const tail = rest ? `/${encodeURIComponent(rest)}` : "";
  const filters = search.toString();
  const peer = at ? `@${encodeURIComponent(at).replaceAll("%3A", ":")}/` : "";
  return `#/${peer}${encodeURIComponent(page)}${tail}${filters ? `?${filters}` : ""}`;
}

/** The address of a finding's page, which the server gives as "sinks/search". @param {string} page */
export function findingLink(page) {
  const { page: name, rest, query } = parse(page);
  return link(name, rest, query);
}

/** @param {Query} query */
export function toSearch(query) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== false && value !== "") search.set(name, String(value));
  }
  return search;
}

const hasWindow = typeof window !== "undefined";

/** The current address. @type {import("./view.js").Signal<Route>} */
export const route = signal(parse(hasWindow ? location.hash : ""));
/** The instance that pages show: null is this process, else the name of a peer. */
export const instance = computed(() => route.value.instance);

if (hasWindow) {
  window.addEventListener("hashchange", () => {
    route.value = parse(location.hash);
  });
}

/**
 * Goes to an address as `link` gives it. `replace` leaves no step in the history: for filters.
 * @param {string} address
 * @param {{ replace?: boolean }} [options]
 */
export function go(address, options) {
  if (address === location.hash) return;
  if (options?.replace) {
    history.replaceState(history.state, "", address);
    route.value = parse(address);
  } else location.hash = address;
}

/**
 * A filter of the address as a two-way signal; "" if it is missing. Writing replaces the address.
 * @param {string} name
 * @param {string} [initial] the value if the address has none; it isn't written to the address
 * @returns {import("./view.js").Signal<string>}
 */
export function queryParam(name, initial = "") {
  const read = computed(() => route.value.query.get(name) ?? initial);
  return {
    get value() {
      return read.value;
    },
    set value(next) {
      setQuery({ [name]: next === initial ? "" : next });
    },
    peek: () => route.peek().query.get(name) ?? initial,
  };
}

/**
 * Changes some filters of the current address together; empty values remove them.
 * @param {Query} changes
 */
export function setQuery(changes) {
  const { page, rest, query } = route.peek();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === false || value === "") next.delete(name);
    else next.set(name, String(value));
  }
  batch(() => go(link(page, rest, next), { replace: true }));
}
