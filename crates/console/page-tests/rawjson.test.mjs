import assert from "node:assert/strict";
import { test } from "node:test";
import { compactJson, indent, mistake, parseKeepingPayloads } from "../page/lib/rawjson.js";

test("payloads keep digits, escapes and duplicate members", () => {
  const payload = String.raw`{"n": 12345678901234567890, "payload": 1.50, "a": 1, "a": 2, "s": "}\"]\\"}`;
  const answer = parseKeepingPayloads(`{"letters": [{"id": "payload", "payload": ${payload}, "more": 1}, {"payload" : "te\\"xt"}, {"payload":7}]}`);
  assert.deepEqual(
    answer.letters.map((letter) => letter.payload),
    [payload, '"te\\"xt"', "7"],
  );
  assert.equal(answer.letters[0].id, "payload");
  assert.equal(answer.letters[0].more, 1);
});

test("indent changes only white space", () => {
  const text = String.raw`{"a":1.50,"b":[1,{"c":[ ]}],"d":"x,:{}\" y","e":{}}`;
  assert.equal(indent(text), '{\n  "a": 1.50,\n  "b": [\n    1,\n    {\n      "c": []\n    }\n  ],\n  "d": "x,:{}\\" y",\n  "e": {}\n}');
  assert.equal(compactJson(indent(text)), text.replace("[ ]", "[]"));
  assert.equal(indent("no JSON"), "no JSON");
});

test("a mistake has line and column", () => {
  assert.match(mistake('{\n "a": 1,\n}') ?? "", /^line 3, column 1: /);
  assert.equal(mistake("[1]"), null);
});
