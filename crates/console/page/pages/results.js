// Results of aggregates: events with a window, a group, and measures.

/** @typedef {import("../api").StoredEvent} StoredEvent */
/** @typedef {{ key: string, start: string, group: string, revision: number, measures: Record<string, unknown> }} Result */

/** Members of a result that are no measures. */
const OTHERS = new Set(["window", "group", "overflow", "part", "withdrawn", "origin", "origins", "revision", "state"]);
/** Lines that can be told apart. */
const LINES = 6;
const POINTS = 240;

/** @param {unknown} value @returns {Record<string, any>} */
const objectOf = (value) => (value !== null && typeof value === "object" ? /** @type {Record<string, any>} */ (value) : {});

/** The group of a result in words: "/status 404". @param {Record<string, any>} payload */
function groupOf(payload) {
  if (payload.overflow) return "all further groups";
  const parts = Object.entries(objectOf(payload.group)).map(
    ([pointer, value]) => `${pointer} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return parts.join(", ") || "all";
}

/** @param {StoredEvent} event @returns {Result} */
export function readResult(event) {
  const payload = objectOf(event.payload);
  const start = String(objectOf(payload.window).start ?? "");
  const group = groupOf(payload);
  const measures = Object.fromEntries(Object.entries(payload).filter(([name]) => !OTHERS.has(name)));
  const key = [start, group, payload.part ?? "", payload.origin ?? ""].join("\u0000") || event.id;
  return { key, start, group, revision: Number(payload.revision ?? 1), measures };
}

/** The newest revision of each result, in their order. @param {Result[]} results */
export function newestRevisions(results) {
  /** @type {Map<string, Result>} */
  const newest = new Map();
  for (const result of results) {
    const known = newest.get(result.key);
    if (!known || known.revision < result.revision) newest.set(result.key, result);
  }
  return [...newest.values()];
}

/** The names of measures that are numbers. @param {Result[]} results */
export function measuresOf(results) {
  const names = results.flatMap((result) => Object.keys(result.measures).filter((name) => typeof result.measures[name] === "number"));
  return [...new Set(names)];
}

/**
 * A line for each of the largest groups.
 * @param {Result[]} results
 * @param {string} measure
 * @param {number} stepS seconds between two windows
 */
export function linesOf(results, measure, stepS) {
  /** @type {Map<string, Map<number, number>>} */
  const groups = new Map();
  for (const { start, group, measures } of results) {
    const [at, value] = [Date.parse(start), measures[measure]];
    if (Number.isNaN(at) || typeof value !== "number") continue;
    const points = groups.get(group) ?? new Map();
    // Several gateways have results of one window.
    points.set(at, (points.get(at) ?? 0) + value);
    groups.set(group, points);
  }
  const times = [...groups.values()].flatMap((points) => [...points.keys()]);
  const last = times.reduce((a, b) => Math.max(a, b), 0);
  const first = times.reduce((a, b) => Math.min(a, b), last);
  const length = Math.min(POINTS, Math.round((last - first) / 1000 / stepS) + 1);
  const sum = (/** @type {Map<number, number>} */ points) => [...points.values()].reduce((a, b) => a + b, 0);
  const largest = [...groups].sort((a, b) => sum(b[1]) - sum(a[1]));
  const series = largest.slice(0, LINES).map(([name, points]) => ({
    name,
    values: Array.from({ length }, (_, i) => points.get(last - (length - 1 - i) * stepS * 1000) ?? null),
  }));
  return { series, until: times.length ? new Date(last).toISOString() : null, stepS, left: Math.max(0, largest.length - LINES) };
}
