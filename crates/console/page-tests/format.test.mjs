import assert from "node:assert/strict";
import { test } from "node:test";
import { age, bytes, clock, compact, count, duration, millis, number, percent, rate, safe } from "../page/lib/format.js";

test("numbers have separators and few digits", () => {
  assert.equal(number(18204118), "18,204,118");
  assert.equal(number(0.497), "0.5");
  assert.equal(number(12.34), "12.3");
  assert.equal(number(null), "–");
  assert.equal(compact(18204118), "18.2 M");
  assert.equal(rate(879.2), "879/s");
  assert.equal(percent(0.38), "38 %");
  assert.equal(count(1, "event"), "1 event");
  assert.equal(count(52, "event"), "52 events");
});

test("bytes have binary and decimal units", () => {
  assert.equal(bytes(74448896), "71 MiB");
  assert.equal(bytes(1140221, "MB"), "1.1 MB");
  assert.equal(bytes(12), "12 B");
});

test("durations have the two largest units", () => {
  assert.equal(duration(0.44), "0.4 s");
  assert.equal(duration(269), "4 min 29 s");
  assert.equal(duration(3600), "1 h");
  assert.equal(duration(7800), "2 h 10 min");
  assert.equal(duration(86400 * 3 + 3600 * 4 + 59), "3 d 4 h");
  assert.equal(duration(3601), "1 h");
  assert.equal(millis(84), "84 ms");
  assert.equal(millis(0.4), "400 µs");
  assert.equal(millis(1250), "1.3 s");
});

test("times are local, with the date of another day", () => {
  const now = new Date(2026, 10, 26, 12, 0, 0).getTime();
  const today = new Date(2026, 10, 26, 10, 4, 11, 402).toISOString();
  assert.equal(clock(today, { now }), "10:04:11");
  assert.equal(clock(today, { now, exact: true }), "10:04:11.402");
  assert.equal(clock(new Date(2026, 10, 25, 18, 2, 0).toISOString(), { now }), "2026-11-25 18:02:00");
  const midnight = new Date(2026, 10, 26, 0, 1, 0).getTime();
  assert.equal(clock(new Date(2026, 10, 25, 23, 58, 0).toISOString(), { now: midnight }), "23:58:00");
  assert.equal(clock("nonsense"), "–");
  assert.equal(age(today, now), "1 h");
});

test("safe escapes hidden characters", () => {
  assert.equal(safe("a\u202Eb"), "a\\u202eb");
  assert.equal(safe("\u2066x\u2069\u200b\ufeff"), "\\u2066x\\u2069\\u200b\\ufeff");
  assert.equal(safe("nul \u0000 esc \u001b[31m"), "nul \\u0000 esc \\u001b[31m");
  assert.equal(safe("\u{e0041}"), "\\u{e0041}");
  assert.equal(safe("line\n\ttab äöü 漢字 שלום"), "line\n\ttab äöü 漢字 שלום");
  assert.equal(safe("\ud800"), "\\ud800");
  assert.equal(safe("abcdef", 3), "abc … (3 more characters)");
});
