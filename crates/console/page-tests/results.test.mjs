import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, measuresOf, newestRevisions, readResult } from "../page/pages/results.js";

const result = (minute, status, hits, revision = 1, origin = "a") =>
  readResult({
    id: `${minute} ${status} ${revision}`,
    payload: { window: { start: `2026-11-21T10:0${minute}:00Z` }, group: { "/status": status }, hits, first: "/a", origin, revision },
  });

test("the newest revision of a result counts", () => {
  const rows = newestRevisions([result(1, 200, 5, 1), result(1, 200, 7, 2), result(1, 404, 1)]);
  assert.deepEqual(
    rows.map((row) => [row.group, row.measures.hits]),
    [
      ["/status 200", 7],
      ["/status 404", 1],
    ],
  );
  assert.deepEqual(measuresOf(rows), ["hits"]);
});

test("lines have gaps, and add the results of gateways", () => {
  const { series, until } = linesOf([result(1, 200, 5), result(3, 200, 6), result(3, 200, 1, 1, "b"), result(3, 404, 1)], "hits", 60);
  assert.equal(until, "2026-11-21T10:03:00.000Z");
  assert.deepEqual(series, [
    { name: "/status 200", values: [5, null, 7] },
    { name: "/status 404", values: [null, null, 1] },
  ]);
});
