// The page "Types, try it": rules and rates of types, and a payload step by step.
import { get, resource } from "../lib/api.js";
import { number, rate } from "../lib/format.js";
import { live } from "../lib/live.js";
import { link, route } from "../lib/router.js";
import { button, card, code, dataTable, dialog, empty, facts, json, outside, pageHead, shown } from "../lib/ui.js";
import { computed, effect, h, signal } from "../lib/view.js";
import { tryCard } from "./try.js";

/** @typedef {import("../api").EventType} EventType */
/** @typedef {import("../api").TypeRate} TypeRate */
/** @typedef {{ readonly value: ReadonlyMap<string, TypeRate> }} Rates */

/** The element with the rules of the type. */
const RULES = "type-rules";

export default function typesPage() {
  /** @type {import("../lib/api.js").Resource<import("../api").Types>} */
  const types = resource((signal) => get("api/types", { signal }));
  const chosen = computed(() => route.value.rest);
  const rates = computed(() => new Map((live.overview.value?.types ?? []).map((type) => [type.type, type])));
  const one = (/** @type {readonly EventType[]} */ all) =>
    all.find((type) => type.type === chosen.value || type.aliases.includes(chosen.value)) ?? null;
  let first = true;
  effect(() => {
    chosen.value;
    // On a narrow screen the rules are below the list.
    if (!first && !matchMedia("(min-width: 1100px)").matches) requestAnimationFrame(() => document.getElementById(RULES)?.focus());
    first = false;
  });
  return h(
    "div",
    null,
    pageHead("Types, try it"),
    shown(types, (data) =>
      h(
        "div",
        { class: "split even" },
        h("div", { class: "stack" }, typeTable(data, rates, chosen), () =>
          chosen.value ? rulesCard(one(data.value.types), chosen.value) : null,
        ),
        () => tryCard(chosen.value, one(data.value.types)),
      ),
    ),
  );
}

/** @param {{ readonly value: import("../api").Types }} data @param {Rates} rates @param {{ readonly value: string }} chosen */
function typeTable(data, rates, chosen) {
  const part = signal("");
  const matching = () => {
    const wanted = part.value.trim().toLowerCase();
    return wanted ? data.value.types.filter((type) => type.type.toLowerCase().includes(wanted)) : data.value.types;
  };
  const search = h("input", {
    class: "in",
    type: "search",
    placeholder: "name contains",
    "aria-label": "Filter types by name",
    oninput: (/** @type {Event} */ event) => (part.value = /** @type {HTMLInputElement} */ (event.currentTarget).value),
  });
  const name = (/** @type {EventType} */ type) => [
    h("a", { href: link("types", type.type), "aria-current": () => (chosen.value === type.type ? "true" : null) }, outside(type.type, 120)),
    type.type === "*" ? h("span", { class: "mu" }, " all others") : null,
  ];
  const ofRate = (/** @type {EventType} */ type) => rates.value.get(type.type);
  return card(
    { title: "Types", note: () => number(data.value.types.length), actions: () => (data.value.types.length > 8 ? search : null) },
    dataTable({
      label: "Types",
      window: 12,
      rows: matching,
      key: (type) => type.type,
      selected: (type) => chosen.value === type.type,
      empty: "No type has this name.",
      columns: [
        { title: "Type", cell: name, by: (type) => type, sort: (type) => type.type },
        {
          title: "Events",
          cell: (type) => rate(ofRate(type)?.accepted_per_s),
          class: "n",
          sort: (type) => ofRate(type)?.accepted_per_s ?? -1,
        },
        {
          title: "Rejected",
          cell: (type) => refusedRate(ofRate(type)),
          by: (type) => ofRate(type)?.refused_per_min,
          class: "n",
          sort: (type) => ofRate(type)?.refused_per_min ?? -1,
        },
        { title: "Routes", cell: routes, by: (type) => type },
      ],
    }),
    () => (live.overview.value?.types_more ? h("p", { class: "mu" }, "Rates are of the 50 busiest types.") : null),
  );
}

/** @param {TypeRate | undefined} type */
function refusedRate(type) {
  if (!type) return "–";
  const text = `${number(type.refused_per_min)}/min`;
  return type.refused_per_min > 0 ? h("a", { href: link("refused", "", { type: type.type }) }, text) : text;
}

/** @param {EventType} type */
function routes(type) {
  if (type.routes.length === 0) return h("span", { class: "mu" }, "none");
  return type.routes.map((one, i) => {
    const [to, when] = typeof one === "string" ? [one, null] : [one.to, one.when];
    return [i ? ", " : null, h("a", { href: link("sinks", to) }, outside(to)), when === null ? null : [" if ", code(when, 200)]];
  });
}

const ACKS = /** @type {Record<string, string>} */ ({
  disk: "when the event is durable",
  stored: "when the stores have the event",
  memory: "when the event is in memory",
});

/** @param {EventType | null} type @param {string} name */
function rulesCard(type, name) {
  if (!type)
    return card({ title: ["Type ", outside(name)] }, empty("The configuration has no table for it. The type * applies if there is one."));
  const aggregates = type.aggregates.map((one, i) => [i ? ", " : null, h("a", { href: link("aggregates", one) }, outside(one))]);
  const events = h("a", { href: link("events", "", { type: type.type }) }, "its events");
  const rejections = h("a", { href: link("refused", "", { type: type.type }) }, "its rejections");
  return card(
    { title: ["Type ", outside(type.type)], note: [events, " · ", rejections] },
    facts([
      [
        "Schema",
        type.schema ? [code(type.schema.path), " ", button("show", { small: true, onclick: () => showSchema(type.type) })] : "none",
      ],
      ["Steps", type.transform.length ? type.transform.map((step, i) => [i ? ", " : null, `${i + 1} `, code(step)]) : "none"],
      ["Routes", routes(type)],
      [
        "Id",
        type.id === null ? "from the Idempotency-Key, or created" : type.id === "content" ? "from the content" : ["from ", code(type.id)],
      ],
      ["Event time", type.time ? ["from ", code(type.time)] : "none"],
      ["Answer", ACKS[type.ack] ?? type.ack],
      ["Aggregates", aggregates.length ? aggregates : "none"],
      ["Read back from", type.read ? h("a", { href: link("sinks", type.read) }, outside(type.read)) : "no sink"],
      [
        "Rejected events",
        type.refused_to
          ? ["kept as ", h("a", { href: link("events", "", { type: type.refused_to }) }, outside(type.refused_to))]
          : "are not kept",
      ],
      type.aliases.length ? ["Other names", type.aliases.map((alias, i) => [i ? ", " : null, outside(alias)])] : null,
    ]),
  );
}

/** @param {string} type */
async function showSchema(type) {
  const schema = await get(`api/types/${encodeURIComponent(type)}/schema`);
  dialog({ title: ["Schema of ", outside(type)], body: json(schema, { label: "Schema" }), wide: true });
}
