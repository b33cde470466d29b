// The parts of pages, from the modules that have them.

/** @typedef {import("./text.js").Level} Level */
/**
 * @template T
 * @typedef {import("./table.js").Column<T>} Column
 */

export { button, field, select } from "./actions.js";
export { confirm, confirmNumber, copy, dialog } from "./dialogs.js";
export { diff, json, jsonText } from "./json.js";
export { failed, toast } from "./messages.js";
export { card, errorBox, facts, pageHead, shown, tile } from "./surfaces.js";
export { dataTable, heldBack } from "./table.js";
export { ago, chip, code, empty, levelOf, matches, newId, outside, pill, prose, sentence, time } from "./text.js";
