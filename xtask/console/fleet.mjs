// One published port for a fleet: all instances, one that was killed, the pages of others, and an event of the other gateway.
import { closeBrowser, openBrowser, Tab } from './browser.mjs';
import { attempt, check, end, figure, Fleet, order, until } from './site.mjs';

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
await order('start', { name: 'writer-3' });

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
