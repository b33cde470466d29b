import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsOf } from "../page/lib/live.js";
import { findingLink } from "../page/lib/router.js";

test("problems of an older version follow from sinks", () => {
  const sinks = [
    { sink: "search", state: "waiting", since: "2026-11-26T10:00:02Z", reason: "connection refused" },
    { sink: "local", state: "active", since: null, reason: null },
  ];
  const [problem, ...more] = problemsOf({ ready: true, reason: null, sinks });
  assert.equal(problem.text, "sink search is waiting: connection refused");
  assert.equal(more.length, 0);
});

test("problems of the server are kept", () => {
  const problems = [{ code: "x", level: "error", since: "", text: "y" }];
  assert.equal(problemsOf({ problems, ready: false, reason: "stops", sinks: [] }), problems);
});

test("link of a finding keeps its filters", () => {
  assert.equal(findingLink("sinks/search"), "#/sinks/search");
  assert.equal(findingLink("dead?sink=a"), "#/dead?sink=a");
  assert.equal(findingLink("javascript:alert(1)"), "#/javascript%3Aalert(1)");
});
