// A flame graph of folded stacks: "main;run;step 12" in each line. Frames are HTML boxes; the table has the same figures.

import { number, percent, safe } from "./format.js";
import { button, dataTable } from "./ui.js";
import { computed, h, signal } from "./view.js";

/** @typedef {{ name: string, total: number, self: number, depth: number, start: number, parent: Frame | null, children: Map<string, Frame> }} Frame */
/** @typedef {{ name: string, self: number, total: number }} FunctionShare */

/** Narrower frames, as a share of the picture, aren't drawn. */
const MIN_SHARE = 0.0015;
const MAX_FRAMES = 3000;
const COLOURS = 7;

/**
 * The tree of the stacks.
 * @param {string} text
 * @returns {Frame}
 */
export function parseFolded(text) {
  /** @type {Frame} */
  const root = { name: "all", total: 0, self: 0, depth: 0, start: 0, parent: null, children: new Map() };
  for (const line of text.split("\n")) {
    const space = line.lastIndexOf(" ");
    const weight = Number(line.slice(space + 1));
    if (space < 1 || !(weight > 0)) continue;
    let frame = root;
    root.total += weight;
    for (const name of line.slice(0, space).split(";")) {
      let child = frame.children.get(name);
      if (!child) {
        child = { name, total: 0, self: 0, depth: frame.depth + 1, start: 0, parent: frame, children: new Map() };
        frame.children.set(name, child);
      }
      child.total += weight;
      frame = child;
    }
    frame.self += weight;
  }
  arrange(root);
  return root;
}

/** Siblings by name, next to each other. @param {Frame} frame */
function arrange(frame) {
  let start = frame.start;
  for (const child of [...frame.children.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    child.start = start;
    start += child.total;
    arrange(child);
  }
}

/**
 * Functions by their own time. A recursive function counts once in a stack.
 * @param {Frame} root
 * @returns {FunctionShare[]}
 */
export function widest(root) {
  /** @type {Map<string, FunctionShare>} */
  const all = new Map();
  const visit = (/** @type {Frame} */ frame, /** @type {Set<string>} */ above) => {
    const share = all.get(frame.name) ?? { name: frame.name, self: 0, total: 0 };
    share.self += frame.self;
    const outermost = !above.has(frame.name);
    if (outermost) {
      share.total += frame.total;
      above.add(frame.name);
    }
    all.set(frame.name, share);
    for (const child of frame.children.values()) visit(child, above);
    if (outermost) above.delete(frame.name);
  };
  for (const child of root.children.values()) visit(child, new Set());
  return [...all.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

/** The frames to draw, the upper ones first. @param {Frame} top */
function visibleFrames(top) {
  /** @type {Frame[]} */
  const frames = [];
  for (let above = top.parent; above; above = above.parent) frames.unshift(above);
  const level = [top];
  while (level.length > 0 && frames.length < MAX_FRAMES) {
    const frame = /** @type {Frame} */ (level.shift());
    frames.push(frame);
    for (const child of frame.children.values()) if (child.total / top.total >= MIN_SHARE) level.push(child);
  }
  return frames;
}

/** By the crate, so that a crate has one colour. @param {string} name */
function colourOf(name) {
  let hash = 0;
  for (const letter of name.split("::")[0] ?? "") hash = (hash * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return hash % COLOURS;
}

/**
 * @param {Frame} root
 * @param {{ unit: string, format?: (n: number) => string }} options `unit`: "samples"
 */
export function flameGraph(root, options) {
  const top = signal(root);
  const at = signal(root);
  const search = signal("");
  const format = options.format ?? number;
  const found = computed(() => search.value.trim().toLowerCase());
  const hit = (/** @type {Frame} */ frame) => found.value !== "" && frame.name.toLowerCase().includes(found.value);
  const frames = computed(() => visibleFrames(top.value));
  const depth = computed(() => Math.max(...frames.value.map((frame) => frame.depth)) + 1);
  const describe = (/** @type {Frame} */ frame) =>
    `${safe(frame.name, 400)}: ${format(frame.total)} ${options.unit}, ${percent(frame.total / root.total)}`;
  const zoom = (/** @type {Frame} */ frame) => {
    top.value = frame;
    at.value = frame;
  };
  const box = (/** @type {Frame} */ frame) => {
    const above = frame.depth < top.value.depth;
    const left = above ? 0 : (frame.start - top.value.start) / top.value.total;
    const width = above ? 1 : frame.total / top.value.total;
    return h(
      "div",
      {
        class: () => `frame f${colourOf(frame.name)}${hit(frame) ? " hit" : found.value ? " dim" : ""}${at.value === frame ? " at" : ""}`,
        style: { left: `${left * 100}%`, width: `${width * 100}%`, top: `${frame.depth * 20}px` },
        title: describe(frame),
        onclick: () => zoom(frame),
        onpointerenter: () => (at.value = frame),
      },
      width > 0.02 ? safe(frame.name, 200) : null,
    );
  };
  return h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "row" },
      h("input", {
        class: "in",
        type: "search",
        placeholder: "Search functions",
        "aria-label": "Search functions in the flame graph",
        oninput: (/** @type {Event} */ e) => (search.value = /** @type {HTMLInputElement} */ (e.target).value),
      }),
      h("span", { class: "mu", role: "status" }, () => (found.value ? `${percent(shareOf(root, found.value))} match` : "")),
      h("span", { class: "spring" }),
      () => (top.value === root ? null : button("Show all", { small: true, onclick: () => zoom(root) })),
    ),
    h(
      "div",
      {
        class: "flame",
        tabindex: "0",
        role: "group",
        "aria-label": "Flame graph. Arrow keys move between functions, Enter enlarges one, Backspace shows the one above",
        style: { height: () => `${depth.value * 20}px` },
        onkeydown: (/** @type {KeyboardEvent} */ e) => move(e, at, zoom),
      },
      () => frames.value.map(box),
    ),
    h("p", { class: "mu num", role: "status" }, () => describe(at.value)),
    functionTable(root, format, options.unit, (name) => zoom(widestFrame(root, name) ?? root)),
  );
}

/** The share of the samples with a function whose name contains the text. @param {Frame} root @param {string} text */
function shareOf(root, text) {
  /** @type {(frame: Frame) => number} */
  const sum = (frame) =>
    frame.name.toLowerCase().includes(text) ? frame.total : [...frame.children.values()].reduce((all, child) => all + sum(child), 0);
  return root.total === 0 ? 0 : [...root.children.values()].reduce((all, child) => all + sum(child), 0) / root.total;
}

/** @param {Frame} root @param {string} name @returns {Frame | null} */
function widestFrame(root, name) {
  /** @type {Frame | null} */
  let best = null;
  const visit = (/** @type {Frame} */ frame) => {
    if (frame.name === name && frame.total > (best?.total ?? 0)) best = frame;
    for (const child of frame.children.values()) visit(child);
  };
  visit(root);
  return best;
}

/**
 * @param {KeyboardEvent} event
 * @param {import("./view.js").Signal<Frame>} at
 * @param {(frame: Frame) => void} zoom
 */
function move(event, at, zoom) {
  const frame = at.peek();
  const siblings = [...(frame.parent?.children.values() ?? [frame])].sort((a, b) => a.start - b.start);
  const index = siblings.indexOf(frame);
  const children = [...frame.children.values()].sort((a, b) => b.total - a.total);
  /** @type {Record<string, Frame | null | undefined>} */
  const to = { ArrowDown: children[0], ArrowUp: frame.parent, ArrowRight: siblings[index + 1], ArrowLeft: siblings[index - 1] };
  if (event.key in to) {
    event.preventDefault();
    at.value = to[event.key] ?? frame;
  } else if (event.key === "Enter") zoom(frame);
  else if (event.key === "Backspace" && frame.parent) zoom(frame.parent);
}

/** @param {Frame} root @param {(n: number) => string} format @param {string} unit @param {(name: string) => void} zoom */
function functionTable(root, format, unit, zoom) {
  const rows = widest(root).slice(0, 400);
  return dataTable({
    label: "Widest functions",
    rows: () => rows,
    key: (row) => row.name,
    window: 12,
    empty: "There are no samples: the process was idle.",
    sort: { column: 1, down: true },
    columns: [
      {
        title: "Function",
        cell: (row) =>
          h(
            "button",
            { type: "button", class: "sort m", onclick: () => zoom(row.name), title: "Enlarge it in the flame graph" },
            h("bdi", null, safe(row.name, 300)),
          ),
      },
      { title: "Itself", class: "n", cell: (row) => percent(row.self / root.total), sort: (row) => row.self },
      { title: "With what it calls", class: "n", cell: (row) => percent(row.total / root.total), sort: (row) => row.total },
      { title: unit, class: "n", cell: (row) => format(row.self) },
    ],
  });
}
