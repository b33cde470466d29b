// The difference of two texts by lines.

/** @typedef {{ sign: " " | "+" | "-", text: string }} DiffLine */

/** Beyond this product of lines the middle is shown as replaced as a whole. */
const MAX_CELLS = 4_000_000;

/**
 * The lines of both texts, in order, each common, added or removed.
 * @param {string} before
 * @param {string} after
 * @returns {DiffLine[]}
 */
export function diffLines(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return [
    ...a.slice(0, head).map(common),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(common),
  ];
}

/** @param {string} text @returns {DiffLine} */
const common = (text) => ({ sign: " ", text });
/** @param {string} text @returns {DiffLine} */
const removed = (text) => ({ sign: "-", text });
/** @param {string} text @returns {DiffLine} */
const added = (text) => ({ sign: "+", text });

/** By the longest common subsequence. @param {string[]} a @param {string[]} b @returns {DiffLine[]} */
function middle(a, b) {
  if (a.length * b.length > MAX_CELLS) return [...a.map(removed), ...b.map(added)];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  /** @param {number} i @param {number} j */
  const at = (i, j) => longest[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  /** @type {DiffLine[]} */
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(common(a[i] ?? ""));
      i++;
      j++;
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) lines.push(removed(a[i++] ?? ""));
    else lines.push(added(b[j++] ?? ""));
  }
  return lines;
}

/**
 * JSON with two spaces; a text that isn't JSON as it is.
 * @param {unknown} value
 */
export function pretty(value) {
  return JSON.stringify(value, null, 2) ?? "null";
}
