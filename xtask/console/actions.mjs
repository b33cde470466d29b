// Every page and action by clicks; an outage and its recovery without a reload; a stopped lane; 5,000 dead letters, of which one is edited,
// three are chosen, and the rest is replayed with a click too many and the tab closed.
import { closeBrowser, openBrowser, PAGES, Tab } from './browser.mjs';
import { attempt, check, end, figure, Fleet, order, pause, sql, until } from './site.mjs';
import { Receiver } from './servers.mjs';

const LETTERS = 5000;
const gateway = 'gateway-1';
const hook = await Receiver.open();
const fleet = await Fleet.start({ hook: hook.url });
await openBrowser();
let tab = await Tab.open(fleet.url(gateway));
await tab.logIn(fleet.tokens.anna);

await attempt('every page', everyPage);
await attempt('an outage', outage);
await attempt('a stopped lane', stoppedLane);
await attempt('dead letters', deadLetters);
await attempt('other actions', otherActions);
check('no errors in the console of the browser', tab.faults.length === 0, tab.faults.join('\n'));
await closeBrowser();
end();

async function everyPage() {
  await fleet.post(gateway, 'order', { price: 1, item: 'tea' });
  for (const [address, name] of PAGES) {
    await attempt(`the page ${name} opens by its link`, async () => {
      await tab.click(new RegExp(`^${name}`), 'link');
      await until(`the address is #/${address}`, () => tab.page.url().includes(`#/${address}`), 5000);
      await tab.settled();
    });
  }
  const faults = tab.faults.splice(0);
  check('no page logs an error', faults.length === 0, faults.join('\n'));
}

/** A store goes and comes back; the page isn't loaded again. */
async function outage() {
  await tab.click(/^Overview/, 'link');
  let loads = 0;
  tab.page.on('load', () => (loads += 1));
  await order('kill_store', { store: 'redis' });
  await fleet.post(gateway, 'order', { price: 2, item: 'waits' });
  await attempt('an outage is shown', () => tab.shows(/sink live waits/i));
  await order('run_store', { store: 'redis' });
  await fleet.drained(gateway, ['live'], 90000);
  await attempt('the recovery is shown', () =>
    until('no sentence about the sink', async () => !/sink live waits/i.test(await tab.text()), 15000));
  check('the page was not loaded again', loads === 0, loads);
}

/** A cursor that was moved on stops its lane; the operator accepts that. */
async function stoppedLane() {
  const counted = async () => Number((await sql('select count(*) from events'))[0][0]);
  const before = await counted();
  await order('stop', { name: gateway });
  await sql('update forebay_cursors set position = position + 100000');
  await order('start', { name: gateway });
  await fleet.post(gateway, 'order', { price: 3, item: 'held' });
  await attempt('a stopped lane is shown', async () => {
    await tab.go('overview');
    await tab.shows(/sink warehouse has stopped/i);
  });
  await attempt('a stopped lane is accepted', async () => {
    await tab.click(/sink warehouse/i, 'link');
    await tab.click(/^resume \(accept\)/i, 'button');
    await confirm(/resume|accept/i);
    await fleet.drained(gateway, ['warehouse'], 30000);
  });
  // Requests during the restart failed, as they must.
  tab.faults.splice(0);
  await attempt('the held event is stored', () => until('one more row', async () => (await counted()) === before + 1, 10000));
}

/** Presses the button of the dialog. `text` is typed before, if it asks for a number. */
async function confirm(name, text) {
  const dialog = tab.page.getByRole('dialog').or(tab.page.getByRole('alertdialog'));
  await dialog.first().waitFor({ timeout: 5000 });
  if (text !== undefined) await dialog.getByRole('textbox').or(dialog.getByRole('spinbutton')).first().fill(String(text));
  await dialog.getByRole('button', { name }).last().click({ timeout: 5000 });
  const said = tab.page.getByRole('status', { name: 'Messages' });
  await said.waitFor({ timeout: 3000 }).catch(() => undefined);
  console.log(`  the page says: ${(await said.allInnerTexts()).join(' ').replaceAll(/\s+/g, ' ')}`);
}

async function deadLetters() {
  await sql(`alter table events add constraint no_bad check (not payload ? 'bad')`);
  for (let from = 0; from < LETTERS; from += 1000) {
    await fleet.postBatch(gateway, 'order', Array.from({ length: 1000 }, (_, number) => ({ price: from + number, item: 'letter', bad: true })));
  }
  await fleet.drained(gateway, ['warehouse', 'live'], 120000);
  await attempt('one dead letter is edited', editOne);
  await sql('alter table events drop constraint no_bad');
  await attempt('a choice is replayed as one job', replayChoice);
  await attempt('the rest is replayed by a filter, with a click too many and the tab closed', replayAll);
  const { jobs } = await fleet.api(gateway, '/api/jobs');
  const replays = jobs.filter(({ action, letters }) => action === 'replay' && letters > 3);
  check('a double click starts one job', replays.length === 1, JSON.stringify(jobs));
  check('the job has ended', replays.every(({ state, ended }) => state === 'done' && ended), JSON.stringify(replays));
  const [[rows, ids]] = await sql(`select count(*), count(distinct (payload ->> 'price')) from events where payload ->> 'item' = 'letter'`);
  figure('dead letters in PostgreSQL', Number(rows), '', { at_least: LETTERS });
  check('each of them is there once', Number(rows) === LETTERS && Number(ids) === LETTERS, `${rows} rows, ${ids} different`);
  const { ledger } = await fleet.api(gateway, '/api/overview');
  check('the ledger adds up', ledger.length > 0 && ledger.every(({ adds_up, lost }) => adds_up && lost === 0), JSON.stringify(ledger));
  check('no dead letter is left', ledger.every(({ dead }) => dead === 0) || (await fleet.api(gateway, '/api/dead')).letters.length === 0);
}

/** Edits the first letter so that the table takes it, and replays it alone. */
async function editOne() {
  await tab.click(/^Dead letters/, 'link');
  await tab.shows('5,000', 'check constraint');
  const [{ id }] = (await fleet.api(gateway, '/api/dead?limit=1')).letters;
  await tab.go(`dead?letter=${encodeURIComponent(`warehouse/${id}`)}`);
  const field = tab.page.getByRole('textbox', { name: /payload/i }).last();
  await field.waitFor({ timeout: 5000 });
  const letter = (await fleet.api(gateway, `/api/dead/${id}`)).letters[0];
  const { bad, ...payload } = letter.payload;
  check('the letter has what its table rejects', bad === true);
  await field.fill(JSON.stringify(payload));
  await tab.click(/save and replay/i, 'button');
  await confirm(/^replay$/i);
  await until('it is in PostgreSQL', async () => (await sql(`select 1 from events where id = '${id}'`)).length === 1, 10000);
}

/** Chooses three of the list, and closes the dialog of their replay. */
async function replayChoice() {
  await tab.go('dead');
  const boxes = tab.page.getByRole('checkbox', { name: /^Choose \w+-/ });
  await boxes.first().waitFor({ timeout: 10000 });
  for (const at of [0, 2, 4]) await boxes.nth(at).check();
  await tab.click(/^replay 3 chosen/i, 'button');
  await confirm(/^replay$/i);
  const chosen = async () => (await fleet.api(gateway, '/api/jobs')).jobs.filter(({ letters }) => letters === 3);
  await until('the job has ended', async () => (await chosen()).some(({ ended }) => ended), 10000);
  const jobs = await chosen();
  check('a choice is one job', jobs.length === 1 && jobs[0].sinks[0].stored === 3, JSON.stringify(jobs));
}

async function replayAll() {
  await tab.go('dead');
  await tab.click(/check constraint/, 'button');
  await tab.click(/^replay all that match/i, 'button');
  const dialog = tab.page.getByRole('dialog').or(tab.page.getByRole('alertdialog'));
  await dialog.first().waitFor({ timeout: 10000 });
  const text = await dialog.first().innerText();
  check('the action says first to how many', text.includes('4,996'), text);
  await dialog.getByRole('button', { name: /^replay$/i }).last().dblclick({ timeout: 5000 });
  await pause(100);
  await tab.close();
  const ended = async () => {
    const { jobs } = await fleet.api(gateway, '/api/jobs');
    return jobs.length > 0 && jobs.every(({ ended: at }) => at);
  };
  await until('the job has ended', ended, 60000);
  tab = await Tab.open(fleet.url(gateway));
  await tab.logIn(fleet.tokens.anna);
  await tab.go('dead');
  await tab.shows(/4,996/, /anna/);
}

/** Drop, try, reload, the level of the log, and the test of a connection. */
async function otherActions() {
  await attempt('a payload is tried', async () => {
    await tab.go('types/order');
    const field = tab.page.getByRole('textbox', { name: /payload/i }).last();
    await field.fill('{"price": "much"}');
    await tab.click(/^try/i, 'button');
    await tab.shows(/price/, /number/);
  });
  await attempt('the connection of a sink is tested', async () => {
    await tab.go('sinks/warehouse');
    await tab.click(/test/i, 'button');
    await tab.shows(/it answered in/);
  });
  await attempt('the configuration is reloaded', async () => {
    await tab.go('config');
    await order('configure', { name: gateway, config: `${fleet.gatewayConfig(['gateway-2', 'writer-1', 'writer-2', 'writer-3'])}\n[types.parcel]\nroutes = ["warehouse"]\n` });
    await tab.click(/^reload/i, 'button');
    await confirm(/reload/i);
    await tab.shows(/parcel/);
  });
  await attempt('letters are dropped after their number is typed', async () => {
    await sql(`alter table events add constraint no_worse check (not payload ? 'worse')`);
    await fleet.postBatch(gateway, 'order', [1, 2, 3].map((price) => ({ price, worse: true })));
    await fleet.drained(gateway, ['warehouse'], 30000);
    await tab.go('dead');
    await tab.click(/check constraint/, 'button');
    await tab.click(/^drop all that match/i, 'button');
    await confirm(/^drop$/i, 3);
    await until('they are gone', async () => (await fleet.api(gateway, '/api/dead')).letters.length === 0, 10000);
  });
  await attempt('all actions are listed with the name of their token', async () => {
    const { actions } = await fleet.api(gateway, '/api/actions');
    const known = new Set(actions.filter(({ by }) => by.includes('anna')).map(({ action }) => action));
    const expected = ['dead replay', 'dead drop', 'dead edit', 'route accept', 'reload'];
    check('each action is there', expected.every((one) => known.has(one)), JSON.stringify([...known]));
  });
}
