// The page "Rejected": the last rejections, where in the payload, and what to do.
import { get, resource } from "../lib/api.js";
import { count, number, safe } from "../lib/format.js";
import { link, queryParam, setQuery } from "../lib/router.js";
import { button, card, chip, code, dataTable, heldBack, outside, pageHead, prose, select, shown, time } from "../lib/ui.js";
import { h } from "../lib/view.js";

/** @typedef {import("../api").Refused} Refused */
/** @typedef {import("../api").Refusal} Refusal */
/** @typedef {Refused["counts"][number]} Count */
/** @typedef {{ readonly value: Refused }} Data */
/** @typedef {{ code: import("../lib/view.js").Signal<string>, type: import("../lib/view.js").Signal<string>, source: import("../lib/view.js").Signal<string> }} Filter */

const POLL_MS = 3000;

export default function refusedPage() {
  /** @type {Filter} */
  const filter = { code: queryParam("code"), type: queryParam("type"), source: queryParam("source") };
  /** @type {import("../lib/api.js").Resource<Refused>} */
  const answer = resource((signal) => get("api/refused", { signal }), { every: POLL_MS });
  return h(
    "div",
    null,
    pageHead("Rejected"),
    h(
      "p",
      { class: "mu" },
      "Rejected events and requests. Payloads aren't kept here: a type with refused_to keeps its rejected events under another type.",
    ),
    shown(answer, (data) => [
      filters(filter, data),
      card({ title: "Last rejections" }, () => rejections(data, filter)),
      card({ title: "Counts since the start" }, counts(data)),
    ]),
  );
}

/** @param {Filter} filter @param {Data} data */
function filters(filter, data) {
  /** @param {"code" | "type" | "source"} name @param {string} label */
  const one = (name, label) => {
    const options = () => {
      const values = [...new Set(data.value.counts.map((row) => row[name]))].filter(Boolean).sort();
      return [/** @type {const} */ (["", `${label}: all`]), ...values.map((value) => /** @type {const} */ ([value, value]))];
    };
    return select(filter[name], options, { "aria-label": label });
  };
  const none = () =>
    filter.code.value || filter.type.value || filter.source.value
      ? button("Clear the filters", { small: true, onclick: () => setQuery({ code: "", type: "", source: "" }) })
      : null;
  return h("div", { class: "row filters" }, one("code", "Code"), one("type", "Type"), one("source", "Source"), none);
}

/** @param {Refusal} row */
const keyOf = (row) => [row.at, row.code, row.type, row.source, row.client, row.pointer, row.line].join("\u0000");

/** Where in the request. @param {Refusal} row */
function place({ pointer, line }) {
  if (pointer === null && line === null) return h("span", { class: "mu" }, "–");
  return [
    pointer === null ? null : code(pointer || "the whole payload"),
    pointer !== null && line !== null ? ", " : null,
    line === null ? null : `line ${number(line)}`,
  ];
}

/** @param {Refusal} row */
function remedy(row) {
  const tried = row.type !== "" && row.type !== "other" ? h("a", { href: link("types", row.type) }, "Try it") : null;
  const kept = row.refused_to
    ? h("a", { href: link("events", "", { type: row.refused_to }) }, "Kept as ", h("i", null, safe(row.refused_to)))
    : null;
  return [h("div", null, prose(row.help)), tried || kept ? h("div", null, tried, tried && kept ? " · " : null, kept) : null];
}

/** A name, or a dash. @param {string} name */
const named = (name) => (name ? outside(name) : h("span", { class: "mu" }, "–"));

/** Built again for another filter: what is held back belongs to one. @param {Data} data @param {Filter} filter */
function rejections(data, filter) {
  const wanted = { code: filter.code.value, type: filter.type.value, source: filter.source.value };
  const matches = (/** @type {Refusal} */ row) =>
    (!wanted.code || row.code === wanted.code) &&
    (!wanted.type || row.type === wanted.type) &&
    (!wanted.source || row.source === wanted.source);
  const held = heldBack({ items: () => data.value.refused.filter(matches), key: keyOf, what: "rejections" });
  return [
    held.bar,
    dataTable({
      label: "Last rejections",
      window: 50,
      rows: held.rows,
      key: keyOf,
      empty: Object.values(wanted).some(Boolean) ? "None of the last rejections matches." : "Nothing was rejected since the start.",
      columns: [
        { title: "When", cell: (row) => time(row.at) },
        { title: "Code", cell: (row) => chip(outside(row.code)) },
        { title: "Type", cell: (row) => named(row.type) },
        { title: "Source", cell: (row) => named(row.source) },
        { title: "Client", cell: (row) => code(row.client) },
        { title: "Where", cell: place, hint: "The JSON pointer to the value at fault, and the line of the batch, from 1" },
        { title: "What to do", cell: remedy, class: "wide" },
      ],
    }),
    () =>
      data.value.left_out > 0
        ? h(
            "p",
            { class: "mu" },
            `${count(data.value.left_out, "rejection")} ${data.value.left_out === 1 ? "isn't" : "aren't"} listed because too many came at a time. The counts have all.`,
          )
        : null,
    h("p", { class: "mu" }, "The list keeps the last 256."),
  ];
}

/** @param {Data} data */
function counts(data) {
  /** @param {Count} row */
  const show = (row) => button("show", { small: true, onclick: () => setQuery({ code: row.code, type: row.type, source: row.source }) });
  return dataTable({
    label: "Rejections since the start by code, type and source",
    window: 50,
    rows: () => data.value.counts,
    key: (row) => `${row.code}\u0000${row.type}\u0000${row.source}`,
    sort: { column: 3, down: true },
    empty: "None.",
    columns: [
      { title: "Code", cell: (row) => chip(outside(row.code)), sort: (row) => row.code },
      { title: "Type", cell: (row) => named(row.type), sort: (row) => row.type },
      { title: "Source", cell: (row) => named(row.source), sort: (row) => row.source },
      { title: "Count", cell: (row) => number(row.count), sort: (row) => row.count, class: "n" },
      { title: h("span", { class: "sr" }, "Filter"), cell: show },
    ],
  });
}
