// Segment's library for pages, unchanged, in Chromium: a page of another origin sends 1,000 marked events, and a few with a token that is
// limited to other types, which Forebay rejects with 403. FOREBAY_URL has the intake's URL, WRITE_KEY and OTHER_KEY the tokens.
import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';

const { FOREBAY_URL, WRITE_KEY, OTHER_KEY, CHROMIUM } = process.env;
const intake = new URL(FOREBAY_URL);
const EVENTS = 1000;
const PROGRESS_MILLISECONDS = 60000;
const library = new URL('node_modules/@segment/analytics-next/dist/umd/', import.meta.url);
const html = '<!doctype html><meta charset="utf-8"><title>A shop</title><script src="/library/index.js"></script>';

const pages = createServer(async (request, response) => {
  const name = request.url.match(/^\/library\/([\w.-]+\.js)$/)?.[1];
  if (name) {
    response.writeHead(200, { 'content-type': 'text/javascript' }).end(await readFile(new URL(name, library)));
  } else {
    response.writeHead(200, { 'content-type': 'text/html' }).end(html);
  }
});
await new Promise((resolve) => pages.listen(0, '127.0.0.1', resolve));

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
const page = await browser.newPage();
page.on('console', (message) => console.log('page:', message.text().slice(0, 200)));
const stored = new Set();
const rejected = [];
page.on('response', (response) => {
  const body = response.request().postData() ?? '';
  const mark = body.match(/mark-\d{4}/)?.[0];
  if (mark && response.ok()) stored.add(mark);
  if (body.includes('of-other-token')) rejected.push(response.status());
});
await page.goto(`http://127.0.0.1:${pages.address().port}/`);

/** Loads the library with a write key, and tracks events. Runs in the page. */
async function track({ writeKey, apiHost, orders, milliseconds }) {
  const settings = { apiKey: writeKey, apiHost, protocol: 'http' };
  const [analytics] = await window.AnalyticsNext.AnalyticsBrowser.load({
    writeKey,
    cdnSettings: { integrations: { 'Segment.io': settings } },
  });
  for (const order of orders) {
    analytics.track('Order Completed', { order });
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
  }
}

const apiHost = `${intake.host}${intake.pathname.replace(/\/$/, '')}/v1`;
const marks = Array.from({ length: EVENTS }, (_, number) => `mark-${String(number).padStart(4, '0')}`);
await page.evaluate(track, { writeKey: WRITE_KEY, apiHost, orders: marks, milliseconds: 10 });
let [most, since] = [0, Date.now()];
while (stored.size < EVENTS && Date.now() - since < PROGRESS_MILLISECONDS) {
  if (stored.size > most) [most, since] = [stored.size, Date.now()];
  await pause(100);
}
await page.evaluate(track, { writeKey: OTHER_KEY, apiHost, orders: ['of-other-token'], milliseconds: 2000 });
await browser.close();
pages.close();
if (stored.size < EVENTS) throw new Error(`${stored.size} of ${EVENTS} events had a success`);
if (rejected.length === 0 || rejected.some((status) => status !== 403)) {
  throw new Error(`a token of other types was answered ${JSON.stringify(rejected)} instead of 403`);
}
console.log('done');
process.exit(0);
