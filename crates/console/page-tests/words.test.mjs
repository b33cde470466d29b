import assert from "node:assert/strict";
import { test } from "node:test";
import { bounds, dropPlan, jobLevel, outcome, payloadOrigin, replayPlan, results } from "../page/pages/words.js";

const story = { sink: "s", outcome: "stored", at: null, before_it: null, failures: [], server: null, object: null, condition: null, reason: null, edits: [] };
const outcomeOf = { sink: "s", stored: 0, refused: 0, dropped: 0, edited: 0, left: 0, failure: null };

test("bounds are as exact as they are known", () => {
  const day = new Date(2026, 0, 2, 10, 4, 11);
  const at = (ms) => new Date(day.getTime() + ms).toISOString();
  assert.equal(bounds({ from: at(402), to: at(402) }), "at 2026-01-02 10:04:11.402");
  assert.equal(bounds({ from: at(400), to: at(450) }), "between 2026-01-02 10:04:11.400 and 2026-01-02 10:04:11.450");
  assert.equal(bounds({ from: at(200), to: at(700) }), "between 2026-01-02 10:04:11.2 and 2026-01-02 10:04:11.7");
});

test("outcomes are sentences", () => {
  assert.equal(outcome({ ...story, server: "writer-1" }), "stored it, at an unknown time, through writer-1");
  assert.equal(outcome({ ...story, outcome: "pending", before_it: 18411 }), "hasn't got it yet: 18,411 events of its lane come first");
  assert.equal(outcome({ ...story, outcome: "pending", before_it: 1 }), "hasn't got it yet: 1 event of its lane comes first");
});

test("plans name the number, the sinks, and repetitions", () => {
  const once = { letters: 118, sinks: [{ sink: "warehouse", letters: 118, repeatable: "once" }] };
  assert.equal(replayPlan(once).join(" "), "118 dead letters go to warehouse again under their ids. None can be stored twice.");
  const again = { letters: 1, sinks: [{ sink: "hook", letters: 1, repeatable: "again" }] };
  assert.match(replayPlan(again).join(" "), /^1 dead letter goes to hook again under its id\. .*hook may get events twice/);
  assert.match(dropPlan(once)[0], /^118 dead letters of warehouse are deleted permanently/);
});

test("results leave zeros out", () => {
  assert.equal(results([{ ...outcomeOf, stored: 118 }, { ...outcomeOf, refused: 2 }]), "118 stored, 2 rejected again");
  assert.equal(results([]), "nothing yet");
});

test("jobs that left some are no success", () => {
  const job = { state: "done", letters: 3, sinks: [{ ...outcomeOf, stored: 3 }] };
  assert.equal(jobLevel(job), "ok");
  assert.equal(jobLevel({ ...job, sinks: [{ ...outcomeOf, stored: 2, refused: 1 }] }), "warn");
  assert.equal(jobLevel({ ...job, state: "stopped", sinks: [{ ...outcomeOf, dropped: 1 }] }), "warn");
  assert.equal(jobLevel({ ...job, sinks: [{ ...outcomeOf, stored: 3, failure: "timed out" }] }), "bad");
  assert.equal(jobLevel({ ...job, state: "failed", sinks: [] }), "bad");
});

test("payload of a story has an origin", () => {
  const edits = [{ at: "2026-01-02T10:04:11Z", by: "anna" }];
  const origin = (...known_from) => payloadOrigin({ known_from, sinks: [{ ...story, sink: "search", edits }] });
  assert.equal(origin("journal", "store search"), "as accepted: after the steps of its type");
  assert.equal(origin("ids of clients", "store search"), "as stored in search, after an edit");
  assert.equal(origin("store warehouse", "dead letters of search"), "as stored in warehouse");
  assert.equal(origin("dead letters of search"), "of the dead letter in search, after an edit");
});
