// The dead letters that match the filter, in pages, with a choice that survives a change of the page.
import { adminReason, get, resource } from "../lib/api.js";
import { count, number, safe } from "../lib/format.js";
import { button, card, code, dataTable, outside, shown, time } from "../lib/ui.js";
import { effect, h, signal, untracked } from "../lib/view.js";
import { act } from "./dead_act.js";
import { letterKey, OPEN } from "./dead_state.js";
import { listed } from "./words.js";

/** @typedef {import("./dead_state.js").DeadState} DeadState */
/** @typedef {import("../api").DeadLetter} DeadLetter */
/** @typedef {import("../api").DeadLetters} DeadLetters */

const PAGE = 50;

/**
 * @param {DeadState} state
 * @param {() => string | null} busy why no action can start now
 */
export function letterCard(state, busy) {
  /** The cursors of the pages up to this one; the first page has none. */
  const cursors = signal(/** @type {(string | null)[]} */ ([null]));
  effect(() => {
    state.key.value;
    cursors.value = [null];
    state.chosen.value = new Map();
  });
  /** @type {import("../lib/api.js").Resource<DeadLetters>} */
  const letters = resource((abort) => {
    state.version.value;
    return get("api/dead", { signal: abort, query: { ...state.filter(), order: "desc", limit: PAGE, cursor: cursors.value.at(-1) } });
  });
  const title = () => {
    const matching = state.matching.value;
    return matching ? `${matching.atLeast ? "At least " : ""}${count(matching.letters, "dead letter")}` : "Dead letters";
  };
  return card(
    {
      title,
      note: "by sink, the newest first",
      actions: () => (state.chosen.value.size ? `${number(state.chosen.value.size)} chosen` : null),
    },
    actions(state, busy),
    shown(letters, (data) => [() => table(data, state), pages(data, cursors), lost(data)]),
  );
}

/** @param {DeadState} state @param {() => string | null} busy */
function actions(state, busy) {
  const why = () => adminReason() ?? busy();
  const none = () => why() ?? (state.matching.value?.letters === 0 ? "No dead letter matches." : null);
  const all = () => (Object.keys(state.filter()).length ? "all that match" : "all");
  /** @param {"replay" | "drop"} action */
  const onAll = async (action) => {
    if (await act(action, untracked(state.filter))) state.version.value++;
  };
  /** @param {"replay" | "drop"} action */
  const onChoice = async (action) => {
    const letters = [...state.chosen.peek().values()];
    const id = letters.map((letter) => letter.id).join(",");
    if (letters[0] && (await act(action, { sink: letters[0].sink, id }))) {
      state.chosen.value = new Map();
      state.version.value++;
    }
  };
  const mixed = () => {
    const sinks = new Set([...state.chosen.value.values()].map((letter) => letter.sink));
    return why() ?? (sinks.size > 1 ? `Choose dead letters of one sink: these are of ${listed([...sinks])}.` : null);
  };
  const chosen = () => {
    const n = state.chosen.value.size;
    if (n === 0) return null;
    return [
      button(`Replay ${number(n)} chosen …`, { kind: "primary", disabledBecause: mixed, onclick: () => onChoice("replay") }),
      button(`Drop ${number(n)} chosen …`, { kind: "danger", disabledBecause: mixed, onclick: () => onChoice("drop") }),
      button("Choose none", { onclick: () => (state.chosen.value = new Map()) }),
    ];
  };
  const several = () =>
    state.chosen.value.size
      ? null
      : [
          button(() => `Replay ${all()} …`, { kind: "primary", disabledBecause: none, onclick: () => onAll("replay") }),
          button(() => `Drop ${all()} …`, { kind: "danger", disabledBecause: none, onclick: () => onAll("drop") }),
        ];
  return h("div", { class: "row" }, chosen, several, () => (mixed() ? h("span", { class: "mu" }, safe(mixed())) : null));
}

/** @param {{ readonly value: DeadLetters }} data @param {DeadState} state */
function table(data, state) {
  const { chosen } = state;
  const filter = state.filter();
  /** @param {readonly DeadLetter[]} letters @param {boolean} on */
  const choose = (letters, on) => {
    const next = new Map(chosen.peek());
    for (const letter of letters) {
      if (on) next.set(letterKey(letter), letter);
      else next.delete(letterKey(letter));
    }
    chosen.value = next;
  };
  const isOn = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.currentTarget).checked;
  const onPage = () => data.value.letters.filter((letter) => chosen.value.has(letterKey(letter))).length;
  const whole = h("input", {
    type: "checkbox",
    "aria-label": "Choose all on this page",
    checked: () => onPage() > 0 && onPage() === data.value.letters.length,
    indeterminate: () => onPage() > 0 && onPage() < data.value.letters.length,
    onchange: (/** @type {Event} */ event) => choose(data.value.letters, isOn(event)),
  });
  const box = (/** @type {DeadLetter} */ letter) =>
    h("input", {
      type: "checkbox",
      "aria-label": `Choose ${letter.id}`,
      checked: () => chosen.value.has(letterKey(letter)),
      onchange: (/** @type {Event} */ event) => choose([letter], isOn(event)),
    });
  const open = (/** @type {DeadLetter} */ letter) => {
    state.open.value = letterKey(letter);
    // On a narrow screen it is above the list.
    document.getElementById(OPEN)?.focus();
  };
  const id = (/** @type {DeadLetter} */ letter) =>
    h(
      "button",
      {
        type: "button",
        class: "as-link m nowrap",
        title: letter.id,
        "data-letter": letterKey(letter),
        "aria-pressed": () => String(state.open.value === letterKey(letter)),
        onclick: () => open(letter),
      },
      `${letter.id.slice(0, 13)}…${letter.id.slice(-4)}`,
    );
  return dataTable({
    label: "Dead letters",
    rows: () => data.value.letters,
    key: letterKey,
    selected: (letter) => state.open.value === letterKey(letter),
    onrow: open,
    empty: "No dead letter matches.",
    columns: [
      { title: whole, cell: box, class: "tight" },
      { title: "Received", cell: (letter) => time(letter.received) },
      { title: "Id", cell: id },
      ...(filter.sink ? [] : [{ title: "Sink", cell: (/** @type {DeadLetter} */ letter) => outside(letter.sink) }]),
      ...(filter.type ? [] : [{ title: "Type", cell: (/** @type {DeadLetter} */ letter) => outside(letter.type) }]),
      { title: "Reason", cell: (letter) => code(letter.reason, 160), class: "wide" },
    ],
  });
}

/** @param {{ readonly value: DeadLetters }} data @param {import("../lib/view.js").Signal<(string | null)[]>} cursors */
function pages(data, cursors) {
  return () => {
    const { next } = data.value;
    const at = cursors.value.length;
    if (!next && at === 1) return null;
    return h(
      "div",
      { class: "row more" },
      button("‹ newer", {
        small: true,
        disabledBecause: at === 1 ? "This is the first page." : null,
        onclick: () => (cursors.value = cursors.peek().slice(0, -1)),
      }),
      h("span", { class: "mu", "aria-live": "polite" }, `page ${number(at)}`),
      button("older ›", {
        small: true,
        disabledBecause: next ? null : "This is the last page.",
        onclick: () => (cursors.value = [...cursors.peek(), next]),
      }),
    );
  };
}

/** @param {{ readonly value: DeadLetters }} data */
function lost(data) {
  return () =>
    data.value.lost > 0
      ? h(
          "p",
          { class: "warn-text" },
          `▲ ${count(data.value.lost, "position")} of the dead letters ${data.value.lost === 1 ? "is" : "are"} lost: a segment is damaged or missing.`,
        )
      : null;
}
