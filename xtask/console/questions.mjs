// Ten questions of an operator. Each is answered from `/` by at most three clicks on visible text, and the answer is read from visible text.
import { closeBrowser, openBrowser, Tab } from './browser.mjs';
import { check, end, figure, Fleet, newToken, order, pause, sql, until } from './site.mjs';
import { Receiver } from './servers.mjs';

const CLICKS_MAX = 3;

const hook = await Receiver.open();
const fleet = await Fleet.start({ hook: hook.url });
const planted = await plant();
await openBrowser();
const tab = await Tab.open(fleet.url('gateway-1'));
await tab.logIn(fleet.tokens.anna);
for (const [question, steps] of questions()) await ask(question, steps);
check('no errors in the console of the browser', tab.faults.length === 0, tab.faults.join('\n'));
await closeBrowser();
end();

/** The situations that the questions are about. */
async function plant() {
  const gateway = 'gateway-1';
  // What is lost: nothing. Dead letters, of which one is replayed by anna.
  await fleet.post(gateway, 'order', { price: 1, item: 'tea' });
  await fleet.drained(gateway, ['warehouse', 'live']);
  await sql(`alter table events add constraint no_bad check (not payload ? 'bad')`);
  for (const number of [1, 2, 3]) await fleet.post(gateway, 'order', { price: number, bad: true });
  await fleet.drained(gateway, ['warehouse', 'live']);
  const [{ id }] = (await fleet.api(gateway, '/api/dead')).letters;
  await fleet.api(gateway, `/api/dead/replay?sink=warehouse&id=${id}`, { method: 'POST' });
  // What changed: a new type, by a reload.
  await fleet.reload(gateway, (text) => `${text}\n[types.parcel]\nroutes = ["warehouse"]\n`);
  // What is refused, and why nothing comes from the sensor: its prices are texts.
  const sensor = { authorization: `Bearer ${newToken('sensor', 'ingest')}` };
  await pause(2500);
  for (let time = 0; time < 5; time += 1) await fleet.post(gateway, 'order', { price: 'much', item: 'tea' }, sensor);
  // What is slow: the webhook takes a second for each event. It drains, since events stop coming.
  const known = await fleet.post(gateway, 'visit', { path: '/known', client: 'c', paid: false });
  hook.delay = 1000;
  await fleet.postBatch(gateway, 'payment', Array.from({ length: 400 }, (_, number) => ({ number })));
  // What is stuck: Redis is down.
  await order('kill_store', { store: 'redis' });
  await fleet.post(gateway, 'order', { price: 2, item: 'stuck' });
  await order('kill', { name: 'writer-3' });
  await until('the sink live waits', async () => {
    const { sinks } = await fleet.api(gateway, '/api/overview');
    return sinks.some(({ sink, state }) => sink === 'live' && state === 'waiting');
  }, 30000);
  await pause(3000);
  return { known: known.id };
}

/** Each question with its clicks and what the answer must show. */
function questions() {
  return [
    ['what is slow?', async () => {
      await tab.click(/^Sinks/, 'link');
      // The last columns of a row are the time of a batch and the number of dead letters.
      await tab.shows(/hook\twebhook[^]*?\t(\d+(\.\d+)? s|\d{3,} ms)\t\d+/);
    }],
    ['what is lost?', async () => tab.shows(/lost/i, /adds up/i)],
    ['what is stuck?', async () => {
      await tab.shows(/sink live waits/i);
      await tab.click(/sink live/i);
      await tab.shows(/waiting since/, /connection refused/i, /pending/i);
    }],
    ['where is X?', async () => {
      await tab.page.keyboard.press('/');
      await tab.page.keyboard.type(planted.known);
      await tab.page.keyboard.press('Enter');
      await tab.shows(planted.known, 'visit', /warehouse[^]*stored|stored[^]*warehouse/i);
    }],
    ['what is refused and why?', async () => {
      await tab.click(/^Rejected/, 'link');
      await tab.shows('schema', 'order', '/price');
    }],
    ['what drains when?', async () => {
      await tab.click(/^Sinks/, 'link');
      await tab.shows('Drains in', /hook\twebhook[^]*?\/s\t(\d+ (s|min)|not shrinking)/);
    }],
    ['who replayed?', async () => {
      await tab.shows(/token anna\tdead replay/);
    }],
    ['which instance is unhealthy?', async () => {
      await tab.click(/^Fleet/, 'link');
      await tab.shows(fleet.processes['writer-3'].admin, /connection refused|no answer/i);
    }],
    ['what changed?', async () => {
      await tab.click(/^Configuration/, 'link');
      await tab.shows(/token anna[^]*type parcel/);
    }],
    ['why nothing from the sensor?', async () => {
      await tab.click(/^Rejected/, 'link');
      await tab.shows(/schema[^]*order\tsensor[^]*\/price/);
    }],
  ];
}

async function ask(question, steps) {
  await tab.page.goto('about:blank');
  await tab.page.goto(`${tab.url}/`);
  await tab.settled();
  await pause(1500);
  tab.clicks = 0;
  try {
    await steps();
    figure(question, tab.clicks, 'clicks', { at_most: CLICKS_MAX });
  } catch (error) {
    console.log(`  FAILED ${question} ${error.message.slice(0, 3000)}`);
    figure(question, Number.NaN, 'clicks', { at_most: CLICKS_MAX });
  }
}
