// The groups of dead letters by sink, type and reason, and the filters that apply to all of them.
import { get, resource } from "../lib/api.js";
import { count, number } from "../lib/format.js";
import { ago, card, code, dataTable, field, outside, shown } from "../lib/ui.js";
import { computed, effect, h } from "../lib/view.js";
import { GROUP } from "./dead_state.js";

/** @typedef {import("./dead_state.js").DeadState} DeadState */
/** @typedef {import("../api").DeadGroup} DeadGroup */
/** @typedef {import("../api").DeadGroups} DeadGroups */

const POLL_MS = 5000;

/** @param {{ sink: string, type: string, reason: string }} group */
const keyOf = ({ sink, type, reason }) => `${sink}\u0000${type}\u0000${reason}`;

/** The groups keep the order in which they were seen first: they don't move under the reader. */
function inOrder() {
  /** @type {Map<string, number>} */
  const places = new Map();
  return (/** @type {readonly DeadGroup[]} */ groups) => {
    for (const group of groups) if (!places.has(keyOf(group))) places.set(keyOf(group), places.size);
    return [...groups].sort((a, b) => (places.get(keyOf(a)) ?? 0) - (places.get(keyOf(b)) ?? 0));
  };
}

/** @param {DeadState} state */
export function groupCard(state) {
  // A chosen group stays one row of all groups; a sink or type alone is a filter.
  const query = computed(() => {
    const filter = state.filter();
    if (filter.reason_group) for (const name of GROUP) delete filter[name];
    return JSON.stringify(filter);
  });
  /** @type {import("../lib/api.js").Resource<DeadGroups>} */
  const groups = resource(
    (signal) => {
      state.version.value;
      return get("api/dead/groups", { signal, query: JSON.parse(query.value) });
    },
    { every: POLL_MS },
  );
  const isChosen = (/** @type {DeadGroup} */ group) => {
    const { sink, type, reason_group } = state.filter();
    return reason_group === group.reason && sink === group.sink && type === group.type;
  };
  effect(() => {
    const answer = groups.data.value;
    const filter = state.filter();
    const matching = answer?.groups.filter((group) => !filter.reason_group || isChosen(group)) ?? [];
    const letters = matching.reduce((sum, group) => sum + group.letters, 0);
    state.matching.value = answer ? { letters, atLeast: !filter.reason_group && answer.more > 0 } : null;
  });
  return card(
    { title: "Groups", note: "by sink, type and reason" },
    shown(groups, (data) => groupTable(data, state, isChosen)),
  );
}

/** @param {{ readonly value: DeadGroups }} data @param {DeadState} state @param {(group: DeadGroup) => boolean} isChosen */
function groupTable(data, state, isChosen) {
  const sorted = inOrder();
  const choose = (/** @type {DeadGroup} */ group) =>
    state.change(
      isChosen(group) ? { sink: "", type: "", reason_group: "" } : { sink: group.sink, type: group.type, reason_group: group.reason },
    );
  const reason = (/** @type {DeadGroup} */ group) =>
    h(
      "button",
      { type: "button", class: "as-link", "aria-pressed": () => String(isChosen(group)), onclick: () => choose(group) },
      outside(group.reason || "(no reason)", 300),
    );
  return [
    dataTable({
      label: "Groups of dead letters",
      window: 20,
      rows: () => sorted(data.value.groups),
      key: keyOf,
      selected: isChosen,
      onrow: choose,
      empty: () => (Object.keys(state.filter()).length ? "No dead letter matches." : "There are no dead letters."),
      columns: [
        { title: "Sink", cell: (group) => outside(group.sink) },
        { title: "Type", cell: (group) => outside(group.type) },
        { title: "Reason", cell: reason, class: "wide" },
        { title: "Dead letters", cell: (group) => number(group.letters), class: "n" },
        { title: "Newest", cell: (group) => ago(group.newest), class: "n", hint: "By the receipt of the event" },
      ],
    }),
    () => (data.value.more > 0 ? h("p", { class: "mu" }, `${count(data.value.more, "smaller group")} not shown: add a filter.`) : null),
  ];
}

/** Filters besides the group. @param {DeadState} state */
export function deadFilters(state) {
  const input = (/** @type {string} */ name, /** @type {string} */ placeholder, mono = false) =>
    h("input", {
      class: `in ${mono ? "m" : ""}`,
      name,
      placeholder,
      autocomplete: "off",
      spellcheck: "false",
      value: () => state.filter()[name] ?? "",
    });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    const names = ["sink", "type", "reason", "where", "id"];
    state.change({ reason_group: "", ...Object.fromEntries(names.map((name) => [name, String(form.get(name) ?? "").trim()])) });
  };
  const clear = () =>
    state.change(Object.fromEntries(["sink", "type", "reason_group", "reason", "where", "id", "since", "until"].map((name) => [name, ""])));
  return h(
    "form",
    { class: "row filters", role: "search", "aria-label": "Filter dead letters", onsubmit: submit },
    field("Sink", input("sink", "all")),
    field("Type", input("type", "all")),
    field("Reason contains", input("reason", "any text")),
    field("Condition (CEL)", input("where", "status >= 500", true)),
    field("Id", input("id", "all", true)),
    h("button", { type: "submit", class: "btn primary" }, "Search"),
    () => (Object.keys(state.filter()).length ? h("button", { type: "button", class: "btn", onclick: clear }, "Clear the filters") : null),
    () => {
      const { reason_group } = state.filter();
      return reason_group ? h("p", { class: "mu" }, "Group: ", code(reason_group, 200)) : null;
    },
  );
}
