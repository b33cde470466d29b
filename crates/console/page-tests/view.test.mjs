import assert from "node:assert/strict";
import { test } from "node:test";
import { batch, computed, effect, onDispose, scope, signal, untracked } from "../page/lib/view.js";

test("effect runs again when its signal changes", () => {
  const n = signal(1);
  const seen = [];
  const end = effect(() => seen.push(n.value));
  n.value = 2;
  n.value = 2;
  end();
  n.value = 3;
  assert.deepEqual(seen, [1, 2]);
});

test("effect does not run when a computed value is equal", () => {
  const n = signal(1);
  const odd = computed(() => n.value % 2 === 1);
  let runs = 0;
  effect(() => {
    odd.value;
    runs++;
  });
  n.value = 3;
  assert.equal(runs, 1);
  n.value = 4;
  assert.equal(runs, 2);
});

test("computed runs once when two paths lead to it", () => {
  const n = signal(1);
  const left = computed(() => n.value + 1);
  const right = computed(() => n.value * 2);
  let runs = 0;
  const sum = computed(() => {
    runs++;
    return left.value + right.value;
  });
  const seen = [];
  effect(() => seen.push(sum.value));
  n.value = 2;
  assert.deepEqual(seen, [4, 7]);
  assert.equal(runs, 2);
});

test("batch runs effects once", () => {
  const [a, b] = [signal(1), signal(1)];
  const seen = [];
  effect(() => seen.push(a.value + b.value));
  batch(() => {
    a.value = 2;
    b.value = 2;
  });
  assert.deepEqual(seen, [2, 4]);
});

test("effect drops sources that it no longer reads", () => {
  const [which, a, b] = [signal(true), signal("a"), signal("b")];
  const seen = [];
  effect(() => seen.push(which.value ? a.value : b.value));
  which.value = false;
  a.value = "A";
  b.value = "B";
  assert.deepEqual(seen, ["a", "b", "B"]);
});

test("untracked reads do not subscribe", () => {
  const n = signal(1);
  let runs = 0;
  effect(() => {
    untracked(() => n.value);
    runs++;
  });
  n.value = 2;
  assert.equal(runs, 1);
});

test("scope ends its effects and calls onDispose", () => {
  const n = signal(1);
  const seen = [];
  const { dispose } = scope(() => {
    effect(() => seen.push(n.value));
    onDispose(() => seen.push("end"));
  });
  n.value = 2;
  dispose();
  n.value = 3;
  assert.deepEqual(seen, [1, 2, "end"]);
});

test("inner effects end when the outer one runs again", () => {
  const [outer, inner] = [signal(1), signal(1)];
  let runs = 0;
  effect(() => {
    outer.value;
    effect(() => {
      inner.value;
      runs++;
    });
  });
  outer.value = 2;
  inner.value = 2;
  assert.equal(runs, 3);
});

test("error in one effect does not stop others", (t) => {
  t.mock.method(console, "error", () => {});
  const n = signal(0);
  const seen = [];
  effect(() => {
    if (n.value === 1) throw new Error("broken");
  });
  effect(() => seen.push(n.value));
  n.value = 1;
  n.value = 2;
  assert.deepEqual(seen, [0, 1, 2]);
});
