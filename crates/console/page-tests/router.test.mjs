import assert from "node:assert/strict";
import { test } from "node:test";
import { findingLink, link, parse, route } from "../page/lib/router.js";

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

test("parse reads the instance before the page", () => {
  const { instance, page, rest, query } = parse("#/@writer-1:9001/sinks/a%2Fb?tab=lanes");
  assert.deepEqual([instance, page, rest, query.get("tab")], ["writer-1:9001", "sinks", "a/b", "lanes"]);
  assert.deepEqual([parse("#/@w").instance, parse("#/@w").page], ["w", "overview"]);
  assert.equal(parse("#/sinks/@w").instance, null);
});

test("link keeps the instance of the address", () => {
  route.value = parse("#/@[::1]:9001/fleet");
  assert.equal(link("sinks", "a"), "#/@%5B::1%5D:9001/sinks/a");
  assert.equal(parse(link("sinks")).instance, "[::1]:9001");
  assert.equal(findingLink("sinks/a?tab=lanes"), "#/@%5B::1%5D:9001/sinks/a?tab=lanes");
  assert.equal(link("overview", "", {}, null), "#/overview");
  assert.equal(link("overview", "", {}, "w/1"), "#/@w%2F1/overview");
  route.value = parse("");
});
