// One published port for a fleet: all instances, one that was killed, one of an older release, the pages of others, and an event of the other
// gateway.
import { closeBrowser, openBrowser, Tab } from './browser.mjs';
import { attempt, check, end, figure, Fleet, OLDER, order, until } from './site.mjs';

const fleet = await Fleet.start();
const posted = await fleet.post('gateway-2', 'order', { price: 4711, item: 'of the other gateway' });
check('an event is accepted', posted.status === 200, JSON.stringify(posted));
await fleet.drained('gateway-2', ['warehouse', 'live']);

await openBrowser();
const tab = await Tab.open(fleet.url('gateway-1'));
await tab.logIn(fleet.tokens.anna);
await tab.click(/^Fleet/, 'link');
const others = ['gateway-2', 'writer-1', 'writer-2', 'writer-3'];
await attempt('all instances are listed', () => tab.shows(...others.map((name) => fleet.processes[name].admin)));

await attempt('a killed writer is shown', async () => {
  const begun = Date.now();
  await order('kill', { name: 'writer-3' });
  await tab.shows(/connection refused|no answer|unreachable/i);
  figure('a killed writer is shown after', (Date.now() - begun) / 1000, 's', { at_most: 10 });
});
if (OLDER) {
  await attempt('an older writer is shown, and works', replaceByOlder);
} else {
  console.log('  skipped: older writer (needs --older PATH)');
  await order('start', { name: 'writer-3' });
}

await attempt('a story of the other gateway is found', async () => {
  await tab.go(`event/${posted.id}`);
  await tab.shows(posted.id, 'order', /stored/i, 'of the other gateway');
});
await attempt('the pages of another instance are shown', async () => {
  await tab.go('fleet');
  await tab.click(new RegExp(fleet.processes['writer-1'].admin.replaceAll('.', '\\.')), 'link');
  await until('the address names the instance', () => tab.page.url().includes('#/@'), 5000);
  await tab.page.reload();
  await tab.settled();
  await tab.shows(/, writer, version/);
  await tab.click(/^Sinks/);
  await tab.shows('warehouse', 'live');
});
await attempt('an unknown instance is an error, and another one can be chosen', async () => {
  await tab.go('@no-such-instance/sinks');
  await tab.shows(/no such peer/);
  await tab.page.getByRole('combobox', { name: 'Instance' }).selectOption('');
  await tab.shows('warehouse', 'live');
  check('this instance is not part of the address', tab.page.url().endsWith('#/sinks'), tab.page.url());
  // The answers 404 are expected.
  tab.faults = tab.faults.filter((fault) => !fault.includes('status of 404'));
});
check('only the published port is asked', tab.faults.length === 0, tab.faults.join('\n'));
await tab.close();

const rights = await fetch(`${fleet.url('gateway-1')}/api/peers`, { headers: { authorization: `Bearer ${fleet.tokens.rob}` } });
const { peers } = await rights.json();
for (const { name } of peers.slice(1)) {
  const path = `/api/peers/${encodeURIComponent(name)}/api/log`;
  const headers = { authorization: `Bearer ${fleet.tokens.rob}`, 'content-type': 'application/json' };
  const answer = await fetch(fleet.url('gateway-1') + path, { method: 'PUT', headers, body: '{"level":"debug"}' });
  check(`a token with read changes nothing at ${name}`, answer.status === 403, answer.status);
}
const elsewhere = await fetch(`${fleet.url('gateway-1')}/api/peers/${encodeURIComponent('http://127.0.0.1:1')}/api/overview`, {
  headers: { authorization: `Bearer ${fleet.tokens.anna}` },
});
check('other hosts than peers are not asked', elsewhere.status === 404, elsewhere.status);
await closeBrowser();
end();

/** Starts the killed writer as a server of an older release. It stays one until the end, so the other checks run with it. */
async function replaceByOlder() {
  await order('start', { name: 'writer-3', program: OLDER });
  const begun = Date.now();
  const [own, older] = [await versionOf('gateway-1'), await versionOf('writer-3')];
  const isLower = older !== undefined && rank(older) < rank(own);
  const [which, shown] = expected(own, older, isLower);
  console.log(`  older writer: ${which}`);
  const row = tab.page.getByRole('row').filter({ hasText: fleet.processes['writer-3'].admin });
  await until(`the row of the older writer has ${shown}`, async () => shown.test(await row.innerText()), 10000);
  figure('an older writer is shown after', (Date.now() - begun) / 1000, 's', { at_most: 10 });
  check('only a lower version is marked as older', /\bolder\b/.test(await row.innerText()) === isLower, await row.innerText());
  await storeByOlder();
}

/** The version that a process's overview has; `undefined` if its release has no overview. */
async function versionOf(name) {
  return fleet.api(name, '/api/overview').then(({ version }) => version, () => undefined);
}

/** A number that grows with the version. */
function rank(version) {
  return version.split(/[.+-]/).slice(0, 3).reduce((sum, part) => sum * 1000 + Number(part), 0);
}

/** Which of the three cases it is, and what its row shows then. */
function expected(own, older, isLower) {
  if (older === undefined) return ['its release has no overview, so its error is shown', /answered \d+|no overview/];
  if (isLower) return [`version ${older}, lower than ${own}`, /\bolder\b/];
  return [`version ${older} as all others, so it is shown without a mark`, /healthy|finding|problem/];
}

/** With the other writers killed, an event goes through the older one. */
async function storeByOlder() {
  const others = ['writer-1', 'writer-2'];
  for (const name of others) await order('kill', { name });
  await attempt('an event goes through it', sendThroughOlder);
  for (const name of others) await order('start', { name });
}

async function sendThroughOlder() {
  const event = await fleet.post('gateway-1', 'order', { price: 4712, item: 'through the older writer' });
  await fleet.drained('gateway-1', ['warehouse', 'live']);
  // The next sample of the progress writes the writer's name.
  const through = await until('the story names a writer', async () => {
    const { sinks } = await fleet.api('gateway-1', `/api/events/${event.id}/story?position=${event.position}`);
    return sinks.find(({ sink, server }) => sink === 'warehouse' && server);
  });
  const isThrough = through.outcome === 'stored' && through.server.includes(fleet.processes['writer-3'].intake);
  check('the story names the older writer', isThrough, JSON.stringify(through));
}
