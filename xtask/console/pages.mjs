// axe on every page in light and dark, wide and narrow; nothing scrolls sideways; all of it by keyboard; a picture of each page.
import { mkdirSync } from 'node:fs';
import { axe, sideways } from './axe.mjs';
import { closeBrowser, openBrowser, PAGES, Tab } from './browser.mjs';
import { attempt, check, end, Fleet, order, pause, PICTURES, sql, until } from './site.mjs';
import { Receiver } from './servers.mjs';

const WIDTHS = [[1280, 800], [390, 844]];
const hook = await Receiver.open();
const fleet = await Fleet.start({ hook: hook.url });
const addresses = await plant();
await openBrowser();
for (const colorScheme of ['light', 'dark']) {
  for (const [width, height] of WIDTHS) await attempt(`${colorScheme}, ${width} px`, () => inspect(colorScheme, width, height));
}
await attempt('zoom', inspectZoomed);
await attempt('the form for a token', inspectLogin);
await attempt('keyboard alone', byKeyboard);
if (PICTURES) await takePictures();
await closeBrowser();
end();

/** Something to show on every page. Returns the addresses of all pages, with one of each kind of detail. */
async function plant() {
  const gateway = 'gateway-1';
  await sql(`alter table events add constraint status check (payload ->> 'item' is distinct from 'coffee')`);
  const items = ['tea', 'cup', 'spoon', 'coffee'];
  for (let round = 0; round < 40; round += 1) {
    const orders = Array.from({ length: 20 }, (_, number) => ({ price: number, item: items[number % (round === 3 ? 4 : 3)] }));
    const visits = Array.from({ length: 50 }, (_, number) => ({ path: `/${items[number % 4]}`, client: `c${number}`, paid: number % 10 === 0 }));
    await fleet.postBatch(gateway, 'order', orders);
    await fleet.postBatch(gateway, 'visit', visits);
    await fleet.postBatch('gateway-2', 'visit', visits.slice(0, 10));
    await pause(100);
  }
  for (let time = 0; time < 4; time += 1) await fleet.post(gateway, 'order', { price: 'much', item: 'tea' });
  await fleet.drained(gateway, ['warehouse', 'live', 'hook']);
  const event = await fleet.post(gateway, 'order', { price: 3, item: 'tea' });
  await order('kill_store', { store: 'redis' });
  await fleet.postBatch(gateway, 'order', [{ price: 4, item: 'tea' }, { price: 5, item: 'cup' }]);
  await pause(2500);
  const [{ id }] = (await fleet.api(gateway, '/api/dead')).letters;
  const details = [`event/${event.id}`, `dead?letter=${encodeURIComponent(`warehouse/${id}`)}`, 'types/order', 'sinks/live', 'sinks/warehouse', 'aggregates/visit.hits'];
  return [...PAGES.map(([address]) => address), ...details];
}

async function inspect(colorScheme, width, height) {
  const tab = await Tab.open(fleet.url('gateway-1'), { colorScheme, viewport: { width, height } });
  await tab.logIn(fleet.tokens.anna);
  for (const address of addresses) {
    const where = `#/${address}, ${colorScheme}, ${width} px`;
    await attempt(`${where} opens`, () => tab.go(address));
    await pause(600);
    const findings = await axe(tab);
    check(`axe finds nothing on ${where}`, findings.length === 0, findings.join('\n    '));
    const over = await sideways(tab);
    check(`${where} doesn't scroll sideways`, over === '', over);
  }
  check(`no errors in the console of the browser, ${colorScheme}, ${width} px`, tab.faults.length === 0, tab.faults.join('\n'));
  await tab.close();
}

/** 200 % zoom of a window of 1280 pixels is a window of 640 pixels. */
async function inspectZoomed() {
  const tab = await Tab.open(fleet.url('gateway-1'), { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 });
  await tab.logIn(fleet.tokens.anna);
  for (const address of addresses) {
    await tab.go(address);
    const over = await sideways(tab);
    check(`#/${address} doesn't scroll sideways at 200 %`, over === '', over);
  }
  await tab.close();
}

/** The form for a token, which has no session. */
async function inspectLogin() {
  for (const colorScheme of ['light', 'dark']) {
    const tab = await Tab.open(fleet.url('gateway-1'), { colorScheme });
    await tab.page.goto(`${tab.url}/`);
    await tab.page.getByLabel(/token/i).first().waitFor();
    const findings = await axe(tab);
    check(`axe finds nothing on the form for a token, ${colorScheme}`, findings.length === 0, findings.join('\n    '));
    await tab.close();
  }
}

/** Every link, button and field of every page gets the focus by Tab, and shows it. */
async function byKeyboard() {
  const tab = await Tab.open(fleet.url('gateway-1'));
  await tab.logIn(fleet.tokens.anna);
  for (const address of addresses) {
    await tab.go(address);
    await pause(600);
    const missed = await missedByTab(tab);
    check(`all of #/${address} is reached by Tab`, missed.length === 0, missed.join(', '));
  }
  await attempt('/ finds an event', async () => {
    await tab.go('overview');
    await tab.page.keyboard.press('/');
    await tab.page.keyboard.type('no such event');
    await tab.page.keyboard.press('Enter');
    await until('the address is that of an event', () => tab.page.url().includes('#/event/'), 5000);
  });
  await attempt('? shows the keys', async () => {
    await tab.go('overview');
    await tab.page.keyboard.press('?');
    await tab.page.getByRole('dialog').waitFor({ timeout: 5000 });
    await tab.page.keyboard.press('Escape');
    await tab.page.getByRole('dialog').waitFor({ state: 'hidden', timeout: 5000 });
  });
  await attempt('a dead letter is replayed by keyboard alone', async () => {
    const { letters } = await fleet.api('gateway-1', '/api/dead');
    await sql('alter table events drop constraint status');
    await tab.go(`dead?letter=${encodeURIComponent(`${letters[0].sink}/${letters[0].id}`)}`);
    await focus(tab, /^replay this one/i);
    await tab.page.keyboard.press('Enter');
    await pause(500);
    await focus(tab, /^replay$/i);
    await tab.page.keyboard.press('Enter');
    await until('one dead letter is gone', async () => (await fleet.api('gateway-1', '/api/dead')).letters.length < letters.length, 10000);
  });
  await tab.close();
}

/** Presses Tab until an element with this text has the focus. */
async function focus(tab, name) {
  for (let press = 0; press < 200; press += 1) {
    await tab.page.keyboard.press('Tab');
    const text = await tab.page.evaluate(() => document.activeElement?.innerText ?? '');
    if (name.test(text)) return;
  }
  throw new Error(`no element ${name} gets the focus`);
}

/** Visible controls that a round of Tab doesn't reach, and those without a visible focus. */
async function missedByTab(tab) {
  await tab.page.evaluate(() => {
    const controls = 'a[href], button, input, select, textarea, summary, [role=button], [role=tab], [contenteditable], [onclick]';
    const shown = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
    window.unreached = new Set([...document.querySelectorAll(controls)].filter((one) => shown(one) && !one.disabled && !one.closest('[inert]')));
    window.unmarked = new Set();
    document.activeElement?.blur();
  });
  for (let press = 0; press < 400; press += 1) {
    await tab.page.keyboard.press('Tab');
    const left = await tab.page.evaluate(() => {
      const one = document.activeElement;
      if (!one || one === document.body) return 0;
      const style = getComputedStyle(one);
      if (style.outlineStyle === 'none' && style.boxShadow === 'none') window.unmarked.add(one);
      window.unreached.delete(one);
      for (const other of window.unreached) if (!other.isConnected || (other.type === 'radio' && other.name === one.name)) window.unreached.delete(other);
      return window.unreached.size;
    });
    if (left === 0) break;
  }
  return tab.page.evaluate(() => {
    const name = (one) => `${one.tagName.toLowerCase()} "${(one.innerText || one.ariaLabel || one.name || '').slice(0, 40)}"`;
    return [...[...window.unreached].slice(0, 8).map(name), ...[...window.unmarked].slice(0, 4).map((one) => `${name(one)} without a visible focus`)];
  });
}

async function takePictures() {
  mkdirSync(PICTURES, { recursive: true });
  const tab = await Tab.open(fleet.url('gateway-1'), { colorScheme: 'light' });
  await tab.logIn(fleet.tokens.anna);
  const names = [...PAGES.map(([address]) => [address, address]), [addresses.find((one) => one.startsWith('event/')), 'event']];
  for (const [address, name] of names) {
    await tab.go(address);
    await fleet.postBatch('gateway-1', 'visit', Array.from({ length: 30 }, () => ({ path: '/tea', client: 'c', paid: false })));
    await pause(2500);
    await tab.page.screenshot({ path: `${PICTURES}/${name}.png` });
  }
  await tab.close();
}
