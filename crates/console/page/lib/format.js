// Numbers, times and text from outside, for people.

const whole = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });
const one = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });
const two = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 2 });

/** Shown for a value that wasn't measured. */
export const NONE = "–";

/**
 * 18,204,118; small fractions keep up to two digits.
 * @param {number | null | undefined} n
 */
export function number(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return NONE;
  if (Number.isInteger(n) || Math.abs(n) >= 100) return whole.format(n);
  return Math.abs(n) >= 10 ? one.format(n) : two.format(n);
}

/**
 * 18.2 M, 53.1 k: for places with little room.
 * @param {number | null | undefined} n
 */
export function compact(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return NONE;
  const size = Math.abs(n);
  if (size >= 1e9) return `${one.format(n / 1e9)} G`;
  if (size >= 1e6) return `${one.format(n / 1e6)} M`;
  if (size >= 1e4) return `${one.format(n / 1e3)} k`;
  return number(n);
}

/**
 * 879/s.
 * @param {number | null | undefined} n
 */
export function rate(n) {
  return n === null || n === undefined ? NONE : `${number(n)}/s`;
}

/**
 * 1.1 MB (decimal, for rates and sizes of data), 71 MiB (binary, for memory and disks).
 * @param {number | null | undefined} n
 * @param {"MB" | "MiB"} [unit]
 */
export function bytes(n, unit = "MiB") {
  if (n === null || n === undefined || !Number.isFinite(n)) return NONE;
  const step = unit === "MB" ? 1000 : 1024;
  const names = unit === "MB" ? ["B", "kB", "MB", "GB", "TB", "PB"] : ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let i = 0;
  let value = n;
  while (Math.abs(value) >= step && i < names.length - 1) {
    value /= step;
    i++;
  }
  return `${i === 0 || value >= 100 ? whole.format(value) : one.format(value)} ${names[i]}`;
}

/**
 * 38 %, of a fraction.
 * @param {number | null | undefined} fraction
 */
export function percent(fraction) {
  if (fraction === null || fraction === undefined || !Number.isFinite(fraction)) return NONE;
  const value = fraction * 100;
  return `${value > 0 && value < 1 ? two.format(value) : whole.format(value)} %`;
}

/**
 * 84 ms, 1.2 s.
 * @param {number | null | undefined} ms
 */
export function millis(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return NONE;
  if (ms < 1) return `${whole.format(ms * 1000)} µs`;
  return ms < 1000 ? `${ms < 10 ? one.format(ms) : whole.format(ms)} ms` : duration(ms / 1000);
}

/**
 * 0.4 s, 4 min 29 s, 2 h 10 min, 3 d 4 h: the two largest units.
 * @param {number | null | undefined} seconds
 */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NONE;
  const s = Math.max(0, seconds);
  if (s < 10) return `${one.format(s)} s`;
  const total = Math.round(s);
  /** @type {[number, string][]} */
  const units = [
    [Math.floor(total / 86400), "d"],
    [Math.floor((total % 86400) / 3600), "h"],
    [Math.floor((total % 3600) / 60), "min"],
    [total % 60, "s"],
  ];
  const first = units.findIndex(([n]) => n > 0);
  return units
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => `${whole.format(n)} ${unit}`)
    .join(" ");
}

/**
 * The age of a time: "4 min". `now` is in milliseconds.
 * @param {string | null | undefined} time
 * @param {number} [now]
 */
export function age(time, now = Date.now()) {
  const at = time ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(at)) return NONE;
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/** @param {number} n @param {number} [width] */
const pad = (n, width = 2) => String(n).padStart(width, "0");

/**
 * The local time, with the date if it is neither today nor within 12 hours: 10:04:11, 2026-11-25 18:02:00. `exact` adds milliseconds.
 * @param {string | null | undefined} time RFC 3339
 * @param {{ exact?: boolean, now?: number, date?: boolean }} [options]
 */
export function clock(time, options = {}) {
  const at = time ? new Date(time) : null;
  if (!at || Number.isNaN(at.getTime())) return NONE;
  const now = new Date(options.now ?? Date.now());
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  const today = `${now.getFullYear()}-${pad(now.getMonth() + 1)}-${pad(now.getDate())}`;
  const text = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}${options.exact ? `.${pad(at.getMilliseconds(), 3)}` : ""}`;
  const near = day === today || Math.abs(now.getTime() - at.getTime()) < 12 * 3600 * 1000;
  return near && !options.date ? text : `${day} ${text}`;
}

/**
 * RFC 3339 in UTC, for tooltips.
 * @param {string | number | Date} time
 */
export function utc(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? String(time) : at.toISOString();
}

// Controls except line feed and tab; zero-width and bidirectional marks; line and paragraph separators; tags; lone surrogates.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Cs}/gu;

/**
 * Text from an event, a store or a client: characters that can't be seen or that turn the text around are shown as escapes. At most `max`
 * characters; more is cut and counted.
 * @param {unknown} text
 * @param {number} [max]
 */
export function safe(text, max = 65536) {
  let value = typeof text === "string" ? text : String(text ?? "");
  let rest = "";
  if (value.length > max) {
    rest = ` … (${whole.format(value.length - max)} more characters)`;
    value = value.slice(0, max);
  }
  return value.replace(HIDDEN, escapeCharacter) + rest;
}

/** @param {string} character */
function escapeCharacter(character) {
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/**
 * "1 event", "2 events".
 * @param {number} n
 * @param {string} singular
 * @param {string} [plural]
 */
export function count(n, singular, plural = `${singular}s`) {
  return `${number(n)} ${n === 1 ? singular : plural}`;
}
