// Requests that the library of GitHub signs, to the intake `github` of webhooks.toml. FOREBAY_URL is the URL of the gateway.
// It prints a line for each case and ends with 1 if one differs.
import { randomUUID } from "node:crypto";
import { sign, verify } from "@octokit/webhooks-methods";

const url = `${process.env.FOREBAY_URL.replace(/\/$/, "")}/hooks/github`;
const run = randomUUID();
let failures = 0;

async function check(name, expected, body, { secret = "gh-secret-1", delivery = "1", type = "application/json", sent = body } = {}) {
  const signature = await sign(secret, body);
  if (!(await verify(secret, body, signature))) throw new Error("the library rejects its own signature");
  const headers = {
    "content-type": type,
    "x-github-delivery": delivery,
    "x-github-event": "push",
    "x-hub-signature-256": signature,
  };
  const response = await fetch(url, { method: "POST", headers, body: sent });
  await response.arrayBuffer();
  failures += response.status === expected ? 0 : 1;
  console.log(`github octokit-${name} expected ${expected} got ${response.status}`);
}

const push = JSON.stringify({ ref: "refs/heads/main", run, message: "Grüße" });
await check("good", 204, push);
await check("again", 204, push);
await check("unsigned-header", 204, push, { delivery: "2" });
await check("forged", 401, push, { sent: push.replace("main", "evil") });
await check("second-secret", 204, JSON.stringify({ run, second: true }), { secret: "gh-secret-2" });
await check("other-secret", 401, push, { secret: "another" });
const form = new URLSearchParams({ payload: JSON.stringify({ run, form: true }) }).toString();
await check("form", 204, form, { type: "application/x-www-form-urlencoded" });
process.exit(failures === 0 ? 0 : 1);
