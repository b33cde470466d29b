// Size of the page, first paint, clicks on a large configuration, streams that nginx cuts, the rate while streams are read, idle memory.
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { closeBrowser, openBrowser, Tab } from './browser.mjs';
import { attempt, check, end, figure, median, order, pause, until } from './site.mjs';
import { nginx } from './servers.mjs';

const TIMES = 20;
const NULL_SINK = '[types."*"]\nroutes = ["none"]\n\n[sinks.none]\nkind = "null"\n';

const small = await order('launch', { name: 'small', role: 'serve', config: NULL_SINK, files: {} });
await pause(3000);
figure('idle memory', residentMegabytes(small.pid), 'MB', { at_most: 14.5 });
await openBrowser();
await attempt('the size', () => measureSize(small));
await attempt('the rate', () => measureRate(small));
const large = await order('launch', { name: 'large', role: 'serve', config: largeConfig(), files: {} });
await Promise.all(Array.from({ length: 1000 }, (_, number) => post(large, `type-${number}`)));
await attempt('the first paint', () => measurePaint(large));
await attempt('a click', () => measureClick(large));
await attempt('a cut', () => measureCut(large));
await closeBrowser();
end();

function residentMegabytes(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1000;
}

function largeConfig() {
  const sinks = Array.from({ length: 64 }, (_, number) => `[sinks.sink-${number}]\nkind = "null"\n`);
  const types = Array.from({ length: 1000 }, (_, number) => `[types.type-${number}]\nroutes = ["sink-${number % 64}"]\n`);
  return [...sinks, ...types].join('\n');
}

async function post(server, type) {
  const answer = await fetch(`http://${server.intake}/ingest/event/${type}`, { method: 'POST', body: '{"n": 1}' });
  if (!answer.ok) throw new Error(`an event was answered ${answer.status}`);
}

/** All that a browser fetches for the first page, as compressed on the wire. */
async function measureSize(server) {
  const tab = await Tab.open(`http://${server.admin}`);
  const files = new Set();
  tab.page.on('response', (answer) => {
    if (!answer.url().includes('/api/')) files.add(answer.url().split('#')[0]);
  });
  for (const address of ['overview', 'events', 'dead', 'sinks', 'types', 'tap', 'health', 'config', 'fleet', 'refused', 'aggregates']) await tab.go(address);
  await tab.close();
  let bytes = 0;
  for (const file of files) bytes += await wireBytes(file);
  console.log(`  ${files.size} files`);
  figure('all files of the page, compressed', bytes / 1000, 'kB', { at_most: 100 });
}

function wireBytes(url) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { headers: { 'accept-encoding': 'gzip, deflate, br, zstd' } }, async (answer) => {
      let bytes = 0;
      for await (const piece of answer) bytes += piece.length;
      resolve(bytes);
    });
    sent.on('error', reject).end();
  });
}

/** The time until the first contentful paint, each in a context without a cache. */
async function measurePaint(server) {
  const times = [];
  for (let time = 0; time < TIMES; time += 1) {
    const tab = await Tab.open(`http://${server.admin}`);
    await tab.go('overview');
    const painted = () => tab.page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    times.push(await until('the page is painted', painted, 5000));
    await tab.close();
  }
  figure('first paint', median(times), 'ms', { at_most: 200 });
}

/** The time from a click until the next page has its heading and has been painted. */
async function measureClick(server) {
  const tab = await Tab.open(`http://${server.admin}`);
  await tab.go('overview');
  const times = [];
  const names = ['Types', 'Sinks', 'Overview', 'Dead letters', 'Types'];
  for (let time = 0; time < TIMES; time += 1) {
    const name = names[time % names.length];
    await pause(200);
    times.push(await tab.page.evaluate(async (text) => {
      const link = [...document.querySelectorAll('nav a')].find((one) => one.innerText.trim().startsWith(text));
      const begun = performance.now();
      const before = document.querySelector('main').innerText;
      link.click();
      await new Promise((resolve) => {
        const look = () => {
          const main = document.querySelector('main');
          const heading = main.querySelector('h1')?.innerText ?? '';
          if (heading.startsWith(text) && main.innerText !== before) requestAnimationFrame(() => setTimeout(resolve));
          else if (performance.now() - begun > 5000) resolve();
          else setTimeout(look);
        };
        look();
      });
      return performance.now() - begun;
    }, name));
  }
  figure('a click, 1,000 types and 64 sinks', median(times), 'ms', { at_most: 100 });
  check('no errors in the console of the browser', tab.faults.length === 0, tab.faults.join('\n'));
  await tab.close();
}

/** nginx ends a stream; the page opens it again. */
async function measureCut(server) {
  const proxy = await nginx(server.admin);
  const tab = await Tab.open(proxy.url.replace(/\/$/, ''));
  const streams = [];
  tab.page.on('request', (sent) => sent.url().includes('/api/live') && streams.push(Date.now()));
  await attempt('the page works under a prefix', () => tab.go('overview'));
  await until('a stream is open', () => streams.length > 0, 5000).catch((error) => check('a stream', false, error.message));
  await pause(2000);
  const before = streams.length;
  const times = [];
  for (let round = 0; round < 3; round += 1) {
    const known = streams.length;
    proxy.cut();
    const begun = Date.now();
    await until('it is opened again', () => streams.length > known, 10000).catch((error) => check('a stream that is cut', false, error.message));
    await attempt('the page is live again', () => tab.shows(/\nlive\n/));
    times.push((Date.now() - begun) / 1000);
    await pause(1500);
  }
  check('the stream was open before', before > 0);
  figure('live again after a cut by nginx', Math.max(...times), 's', { at_most: 2 });
  await tab.close();
  proxy.stop();
}

/** Rates alternately while ten streams and a tap are read, and while none is. */
async function measureRate(server) {
  const rounds = [];
  const load = () => order('load', { intake: server.intake, milliseconds: 2000 });
  await load();
  for (let round = 0; round < 7; round += 1) {
    const streams = await Promise.all([...Array(10).fill('/api/live'), '/api/tap?at=accepted'].map((path) => read(`http://${server.admin}${path}`)));
    const watched = await load();
    streams.forEach((stream) => stream.destroy());
    await pause(200);
    rounds.push([watched, await load()]);
  }
  figure('rate while ten streams and a tap are read', rounds, 'requests/s', { at_least: 0.97 });
}

function read(url) {
  return new Promise((resolve, reject) => {
    const sent = request(url, (answer) => {
      check(`${url} is a stream`, answer.statusCode === 200, answer.statusCode);
      answer.resume();
      resolve(answer);
    });
    sent.on('error', reject).end();
  });
}
