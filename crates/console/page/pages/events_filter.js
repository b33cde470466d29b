// The filters of the page "Events". The address holds them.

import { get, resource } from "../lib/api.js";
import { safe } from "../lib/format.js";
import { route, setQuery } from "../lib/router.js";
import { newId } from "../lib/ui.js";
import { computed, effect, h, signal, when } from "../lib/view.js";

/** Ranges of receipt times. The server reads durations. @type {[string, string][]} */
const RANGES = [
  ["15m", "last 15 min"],
  ["1h", "last hour"],
  ["24h", "last 24 h"],
  ["7d", "last 7 days"],
  ["", "any time"],
];
/** The value of the select for two times. */
const BETWEEN = "between";

/** The filter in the address, as text: it changes only if the filter does. */
export function filterKey() {
  return computed(() => {
    const { query } = route.value;
    const of = (/** @type {string} */ name) => query.get(name) ?? "";
    /** @type {import("./events_feed.js").Filter} */
    const filter = {
      type: of("type"),
      source: of("source"),
      since: of("since"),
      until: of("until"),
      where: of("where"),
      order: of("order") === "asc" ? "asc" : "desc",
      key: of("key"),
    };
    return JSON.stringify(filter);
  });
}

/** All names of types, as suggestions of an input. @param {string} id of the datalist */
export function typeSuggestions(id) {
  const types = resource(() => get("api/types").catch(() => ({ types: [] })));
  return h("datalist", { id }, () =>
    (types.data.value?.types ?? []).map((/** @type {{ type: string }} */ type) => h("option", { value: type.type })),
  );
}

/**
 * An input for a condition, and the server's error for the line below it.
 * @param {{ value: () => string, error: () => string | null }} options
 */
export function conditionField({ value, error }) {
  const id = newId();
  const input = h("input", {
    class: "in m grow",
    name: "where",
    "aria-label": "Condition (CEL)",
    placeholder: "condition: status >= 500",
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    maxlength: "8192",
    value,
    "aria-invalid": () => (error() ? "true" : null),
    "aria-describedby": () => (error() ? id : null),
  });
  const message = when(error, () => h("pre", { id, class: "wrap bad-text", role: "alert" }, () => safe(error())));
  return { input, message };
}

/** A local time for `datetime-local`. @param {string} time RFC 3339 */
function localTime(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? "" : new Date(at.getTime() - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

/** RFC 3339 of a local time; empty if there is none. @param {FormDataEntryValue | null} local */
function utcTime(local) {
  const at = new Date(String(local ?? ""));
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

/** @param {string} name @param {string} label */
function timeField(name, label) {
  return h(
    "label",
    { class: "row" },
    label,
    h("input", { class: "in", type: "datetime-local", step: "1", name, value: () => localTime(route.value.query.get(name) ?? "") }),
  );
}

/** The filters of a form. @param {FormData} form */
function filtersOf(form) {
  const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
  const between = text("range") === BETWEEN;
  return {
    type: text("type"),
    source: text("source"),
    where: text("where"),
    order: text("order") === "asc" ? "asc" : "",
    since: between ? utcTime(form.get("since")) : text("range"),
    until: between ? utcTime(form.get("until")) : "",
    key: "",
    id: "",
  };
}

/** The select of times, and two fields for times between which it is. @param {(event: Event) => void} apply */
function timeFilter(apply) {
  const between = signal(false);
  effect(() => {
    const { query } = route.value;
    between.value = Boolean(query.get("until")) || !RANGES.some(([value]) => value === (query.get("since") ?? ""));
  });
  const changed = (/** @type {Event} */ event) => {
    // The address decides about the fields: it changes when the form is applied.
    if (/** @type {HTMLSelectElement} */ (event.currentTarget).value === BETWEEN) between.value = true;
    else apply(event);
  };
  const value = () => (between.value ? BETWEEN : (route.value.query.get("since") ?? ""));
  const ranges = RANGES.map(([range, text]) => h("option", { value: range }, text));
  const select = h(
    "select",
    { class: "in", name: "range", "aria-label": "Time of receipt", value, onchange: changed },
    ranges,
    h("option", { value: BETWEEN }, "between two times"),
  );
  return [
    select,
    when(
      () => between.value,
      () => [timeField("since", "from"), timeField("until", "to")],
    ),
  ];
}

/** @param {{ error: () => string | null, children?: unknown }} options */
export function filterForm({ error, children }) {
  const query = (/** @type {string} */ name) => () => route.value.query.get(name) ?? "";
  const apply = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.currentTarget).form?.requestSubmit();
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    setQuery(filtersOf(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))));
  };
  const order = () => (route.value.query.get("order") === "asc" ? "asc" : "desc");
  const { input, message } = conditionField({ value: query("where"), error });
  return h(
    "form",
    { role: "search", "aria-label": "Filter events", onsubmit: submit },
    h(
      "div",
      { class: "row filters" },
      h("input", {
        class: "in",
        name: "type",
        size: "14",
        list: "events-types",
        placeholder: "type: all",
        "aria-label": "Type",
        autocomplete: "off",
        value: query("type"),
        onchange: apply,
      }),
      typeSuggestions("events-types"),
      h("input", {
        class: "in",
        name: "source",
        placeholder: "source: all",
        "aria-label": "Source",
        autocomplete: "off",
        size: "12",
        value: query("source"),
        onchange: apply,
      }),
      timeFilter(apply),
      h(
        "select",
        { class: "in", name: "order", "aria-label": "Order", value: order, onchange: apply },
        h("option", { value: "desc" }, "newest first"),
        h("option", { value: "asc" }, "oldest first"),
      ),
      input,
      h("button", { type: "submit", class: "btn primary" }, "Search"),
      children,
    ),
    message,
  );
}
