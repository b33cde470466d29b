// The configuration as it runs, and the file as it is now. It is never written here.

import { ApiError, adminReason, get, post, resource } from "../lib/api.js";
import { count, number, safe } from "../lib/format.js";
import { live } from "../lib/live.js";
import {
  ago,
  button,
  card,
  code,
  confirm,
  dataTable,
  dialog,
  empty,
  field,
  outside,
  pageHead,
  pill,
  prose,
  select,
  shown,
  time,
  toast,
} from "../lib/ui.js";
import { computed, h, list, signal, when } from "../lib/view.js";

/** @typedef {import("../api").Config} Config */
/** @typedef {Config["mistakes"][number]} Mistake */
/** @typedef {import("../api").Reload} Reload */

const MAX_LINES = 5000;

export default function configPage() {
  const config = /** @type {import("../lib/api.js").Resource<Config>} */ (
    resource((signal) => get("api/config", { signal }), { every: 10_000 })
  );
  return h(
    "div",
    null,
    pageHead("Configuration", () => (config.data.value?.file ? code(config.data.value.file, 400) : null)),
    shown(config, (data) => [
      stateRow(() => data.value, config.reload),
      fileCard(() => data.value),
      when(
        () => (data.value.settings?.length ?? 0) > 0,
        () => settingsCard(() => data.value),
      ),
      variablesCard(() => data.value),
    ]),
    historyCard(),
  );
}

/** @param {Config} config */
const mistakes = (config) => config.mistakes ?? [];

/** Whether the file can be loaded, and the button for it. @param {() => Config} config @param {() => void} again */
function stateRow(config, again) {
  const why = () => {
    const reason = adminReason();
    if (reason) return reason;
    if (live.overview.value?.role === "writer") return "A writer reads its configuration only at its start: restart it.";
    const n = mistakes(config()).length;
    return n > 0 ? `The file has ${count(n, "mistake")}: correct ${n === 1 ? "it" : "them"} first.` : null;
  };
  const state = () => {
    const { error, changed } = config();
    const n = mistakes(config()).length;
    if (error) return ["bad", h("span", null, "The file cannot be read: ", outside(error))];
    if (n > 0) return ["bad", `The file has ${count(n, "mistake")}. The running configuration is unchanged.`];
    if (changed) return ["warn", "The file differs from the running configuration. Reload to apply it."];
    return [
      "ok",
      config().file
        ? "The file is correct, and is the running configuration."
        : "There is no configuration file: all settings are defaults, variables or flags.",
    ];
  };
  return h(
    "div",
    { class: () => `alert ${state()[0]}` },
    h("span", { "aria-hidden": "true" }, () => ({ ok: "✓", warn: "▲" })[/** @type {string} */ (state()[0])] ?? "✕"),
    h(
      "div",
      null,
      () => state()[1],
      () =>
        config().loaded ? h("span", { class: "mu" }, " Loaded at ", time(config().loaded), ", ", ago(config().loaded), " ago.") : null,
    ),
    button("Reload …", { kind: "primary", disabledBecause: why, onclick: () => reload(again) }),
  );
}

/** What a reload changes, or would change. @param {Reload} result @param {string} none */
const changesOf = ({ changes, warnings }, none) => [
  changes.length === 0
    ? empty(none)
    : h(
        "ul",
        null,
        changes.map((one) => h("li", null, outside(one))),
      ),
  warnings ? h("pre", { class: "wrap", tabindex: "0" }, safe(warnings)) : null,
];

/** Says what a reload would change, asks, and reloads. @param {() => void} again */
async function reload(again) {
  try {
    const plan = /** @type {Reload} */ (await post("api/reload", undefined, {}, { query: { dry_run: true } }));
    const body = [
      h(
        "p",
        null,
        "Forebay reads the file again and applies all changes, or none if the file has a mistake. Requests are not interrupted.",
      ),
      changesOf(plan, "There is nothing to change: the file has the settings of the running configuration."),
    ];
    if (!(await confirm({ title: "Reload the configuration?", body, verb: "Reload" }))) return;
    const result = /** @type {Reload} */ (await post("api/reload"));
    if (result.changes.length === 0 && !result.warnings) toast("Reloaded: nothing has changed.");
    else dialog({ title: "Reloaded", body: changesOf(result, "Nothing has changed.") });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    dialog({
      title: "Not reloaded: nothing has changed",
      body: h("pre", { class: "wrap", tabindex: "0", dir: "auto" }, safe(error.detail)),
      wide: true,
    });
  }
  again();
}

// ------------------------------------------------------------------------------------------------------------------ File

/** @param {() => Config} config */
function fileCard(config) {
  return card({ title: "File", note: "as it is now, with stars instead of secrets" }, () => {
    const { text, file } = config();
    const loose = mistakes(config()).filter((one) => one.line === null);
    return [
      loose.map((one) => h("p", { class: "bad-text" }, "✕ ", h("b", null, prose(one.title)), ": ", prose(one.text))),
      text === null ? empty(file === null ? "There is no file." : "The file cannot be read.") : source(text, mistakes(config())),
    ];
  });
}

/** The text with numbers of lines, and each mistake under its spot. @param {string} text @param {Mistake[]} wrong */
function source(text, wrong) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  const digits = String(lines.length).length;
  return h(
    "pre",
    { class: "source", tabindex: "0", role: "region", "aria-label": "Configuration file" },
    lines.slice(0, MAX_LINES).map((line, i) => {
      const here = wrong.filter((one) => one.line === i + 1);
      return [
        h(
          "span",
          { class: here.length > 0 ? "line del" : "line" },
          h("span", { class: "gutter", "aria-hidden": "true" }, String(i + 1).padStart(digits)),
          h("span", { class: tomlClass(line) }, safe(line, 4000)),
          "\n",
        ),
        here.map((one) => caret(one, line, digits)),
      ];
    }),
    lines.length > MAX_LINES ? h("span", { class: "line mu" }, `… ${number(lines.length - MAX_LINES)} more lines`) : null,
  );
}

/** @param {Mistake} mistake @param {string} line @param {number} digits */
function caret(mistake, line, digits) {
  const column = Math.max(1, mistake.column ?? 1);
  const word = /^["'\w.-]+/.exec(line.slice(column - 1))?.[0].length ?? 1;
  return h(
    "span",
    { class: "line mistake" },
    h("span", { class: "gutter", "aria-hidden": "true" }, " ".repeat(digits)),
    h("span", { "aria-hidden": "true" }, " ".repeat(column - 1), "^".repeat(word), " "),
    h("b", null, safe(mistake.title)),
    ": ",
    safe(mistake.text),
    "\n",
  );
}

/** @param {string} line */
function tomlClass(line) {
  if (/^\s*\[/.test(line)) return "t-table";
  return /^\s*#/.test(line) ? "mu" : "";
}

// -------------------------------------------------------------------------------------------------------------- Settings

const ORIGINS = /** @type {const} */ ([
  ["", "all origins"],
  ["file", "file"],
  ["environment", "environment"],
  ["flag", "flag"],
  ["default", "default"],
]);

/** @param {() => Config} config */
function settingsCard(config) {
  const search = signal("");
  const origin = signal("");
  const rows = computed(() => {
    const text = search.value.trim().toLowerCase();
    return config().settings.filter(
      (one) =>
        (origin.value === "" || one.from === origin.value) && (text === "" || `${one.name} ${one.value}`.toLowerCase().includes(text)),
    );
  });
  const input = h("input", {
    class: "in",
    type: "search",
    oninput: (/** @type {Event} */ e) => (search.value = /** @type {HTMLInputElement} */ (e.target).value),
  });
  return card(
    { title: "Settings in effect", note: "and where each comes from" },
    h("div", { class: "row filters" }, field("Search settings", input), field("From", select(origin, ORIGINS))),
    dataTable({
      label: "Settings",
      rows: () => rows.value,
      key: (one) => one.name,
      window: 60,
      empty: "No setting matches.",
      columns: [
        { title: "Setting", cell: (one) => code(one.name, 200), sort: (one) => one.name },
        { title: "Value", class: "text", cell: (one) => code(one.value, 400) },
        {
          title: "From",
          cell: (one) =>
            one.from === "default"
              ? h("span", { class: "mu" }, "default")
              : [one.from, one.line === null ? null : h("span", { class: "mu" }, `, line ${one.line}`)],
          sort: (one) => one.from,
        },
      ],
    }),
  );
}

/** @param {() => Config} config */
function variablesCard(config) {
  return when(
    () => config().variables.length > 0,
    () =>
      card(
        { title: "Environment", note: "variables of Forebay at the start" },
        h(
          "pre",
          { class: "wrap", tabindex: "0" },
          list(
            () => config().variables,
            (one) => one,
            (one) => h("span", { class: "line" }, () => safe(one.value, 1000)),
          ),
        ),
      ),
  );
}

function historyCard() {
  const answer = /** @type {import("../lib/api.js").Resource<import("../api").ConfigHistory>} */ (
    resource((signal) => get("api/config/history", { signal }), { every: 30_000 })
  );
  return card(
    { title: "History", note: "of the running configuration, the newest first" },
    shown(answer, (data) =>
      dataTable({
        label: "History",
        rows: () => data.value.history,
        key: (one) => one.at,
        window: 20,
        empty: "No change is known.",
        columns: [
          { title: "When", class: "tight", cell: (one) => [time(one.at), " ", h("span", { class: "mu" }, ago(one.at))] },
          { title: "By", cell: (one) => outside(one.by, 80) },
          {
            title: "Changes",
            class: "text",
            cell: (one) =>
              one.changes.length === 0 ? pill("none", "none") : one.changes.map((text) => h("div", null, outside(text, 500))),
          },
        ],
      }),
    ),
  );
}
