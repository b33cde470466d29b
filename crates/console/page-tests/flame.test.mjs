import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFolded, widest } from "../page/lib/flame.js";

test("folded stacks become a tree with sums", () => {
  const root = parseFolded("main;run;step 3\nmain;run 2\nother 5\nbroken line\n");
  assert.equal(root.total, 10);
  assert.equal(root.children.get("main").total, 5);
  assert.equal(root.children.get("main").children.get("run").self, 2);
  assert.equal(root.children.get("other").start, 5);
});

test("recursive function counts once in a stack", () => {
  const [first] = widest(parseFolded("main;f;g;f 4\n"));
  assert.deepEqual(first, { name: "f", self: 4, total: 4 });
});
