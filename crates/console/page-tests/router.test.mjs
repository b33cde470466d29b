import assert from "node:assert/strict";
import { test } from "node:test";
import { link, parse } from "../page/lib/router.js";

test("parse splits page, rest and filters", () => {
  const route = parse("#/events/a%2Fb%3Fc?type=access&where=a%20%3D%3D%201");
  assert.equal(route.page, "events");
  assert.equal(route.rest, "a/b?c");
  assert.equal(route.query.get("where"), "a == 1");
});

test("parse gives the overview without a page", () => {
  assert.equal(parse("").page, "overview");
  assert.equal(parse("#/").page, "overview");
});

test("parse keeps malformed escapes", () => {
  assert.equal(parse("#/sinks/100%").rest, "100%");
});

test("link and parse agree", () => {
  const address = link("event", "key/with?marks#and spaces", { type: "a&b", empty: "", none: null });
  const route = parse(address);
  assert.equal(route.rest, "key/with?marks#and spaces");
  assert.deepEqual([...route.query], [["type", "a&b"]]);
});
