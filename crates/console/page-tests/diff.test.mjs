import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLines } from "../page/lib/diff.js";

const text = (lines) => lines.map((line) => line.sign + line.text).join("|");

test("diff marks added and removed lines", () => {
  assert.equal(text(diffLines("a\nb\nc", "a\nx\nc")), " a|-b|+x| c");
  assert.equal(text(diffLines("a\nb", "a\nb")), " a| b");
  assert.equal(text(diffLines("a", "a\nb")), " a|+b");
  assert.equal(text(diffLines("a\nb\nc\nd", "b\nd\ne")), "-a| b|-c| d|+e");
});

test("diff of large texts replaces the middle", () => {
  const many = (letter) => Array.from({ length: 3000 }, (_, i) => `${letter}${i}`).join("\n");
  assert.equal(diffLines(`head\n${many("a")}`, `head\n${many("b")}`).filter((line) => line.sign === " ").length, 1);
});
