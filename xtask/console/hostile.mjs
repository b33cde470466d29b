// Hostile input: payloads, keys, names and reasons are text; other ports, hosts, frames and half sessions get nothing.
import { request } from 'node:http';
import { closeBrowser, openBrowser, Tab } from './browser.mjs';
import { attempt, check, end, figure, Fleet, newToken, order, pause, revokeToken, sql, until } from './site.mjs';
import { Receiver, strangerPage } from './servers.mjs';

const SCRIPT = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script><svg onload="window.hacked=1">`;
const BIDI = 'user\u202etxt.exe\u2066\u0007\u001b[31m';
const MARKUP = `"'--></style></title>${SCRIPT}`;

const hook = await Receiver.open();
const fleet = await Fleet.start({ hook: hook.url });
await plant();
await openBrowser();
await attempt('every page shows text', browse);
await attempt('other origins get nothing', refuseOthers);
await attempt('half a session gets nothing', refuseHalves);
await attempt('a revoked token ends its streams', endRevoked);
await attempt('a token with read changes nothing', refuseRead);
await closeBrowser();
end();

/** Events, refusals and dead letters with markup in every part that a stranger chooses. */
async function plant() {
  await sql(`create function reject() returns trigger language plpgsql as $$ begin
    if new.payload ? 'reject' then raise exception using message = new.payload ->> 'reject', errcode = '23514'; end if; return new; end $$`);
  await sql('create trigger rejects before insert on events for each row execute function reject()');
  const events = [SCRIPT, BIDI, MARKUP, 'x'.repeat(1000 * 1000)];
  for (const text of events) {
    const key = { 'idempotency-key': encodeURIComponent(text.slice(0, 60)) };
    const answer = await fleet.post('gateway-1', 'visit', { path: text, [text.slice(0, 100)]: text.slice(0, 100), client: 'c', paid: false }, key);
    check('a hostile event is accepted', answer.status === 200, JSON.stringify(answer));
    await fleet.post('gateway-1', 'order', { price: text.slice(0, 200), [text.slice(0, 100)]: 1 });
    await fleet.post('gateway-1', text.slice(0, 60).replaceAll(/[^\x20-\x7e]/g, '').replaceAll(/[\s/?#%]/g, '_'), {});
    await fleet.post('gateway-1', 'visit', { path: '/', client: 'c', paid: false, reject: text.slice(0, 500) });
  }
  hook.status = 422;
  hook.reason = MARKUP;
  await fleet.post('gateway-1', 'payment', { text: SCRIPT });
  await fleet.drained('gateway-1', ['warehouse', 'live']);
}

/** Every page shows it as text. */
async function browse() {
  const tab = await Tab.open(fleet.url('gateway-1'));
  await tab.logIn(fleet.tokens.anna);
  const { letters } = await fleet.api('gateway-1', '/api/dead');
  const stored = await sql(`select id from events where type = 'visit'`);
  check('a store\'s reasons with markup are dead letters', letters.length >= 3, letters.length);
  const pages = ['overview', 'events', 'refused', 'dead', 'types', 'types/visit', 'sinks', 'sinks/warehouse', 'sinks/hook', 'tap', 'config', 'health', 'fleet'];
  const addresses = [
    ...pages,
    ...stored.map(([id]) => `event/${id}`),
    ...letters.map(({ sink, id }) => `dead?letter=${encodeURIComponent(`${sink}/${id}`)}`),
    `events?type=${encodeURIComponent(SCRIPT)}&where=${encodeURIComponent(MARKUP)}`,
    `event/${encodeURIComponent(SCRIPT)}`,
    `sinks/${encodeURIComponent(MARKUP)}`,
    encodeURIComponent(SCRIPT),
  ];
  for (const address of addresses) {
    await attempt(`#/${address} opens`, () => tab.go(address));
    await pause(300);
    const marks = await tab.page.evaluate(() => ({
      hacked: window.hacked,
      elements: document.querySelectorAll('img[src="x"], script:not([src]), [onload], [onerror]').length,
      title: document.title,
    }));
    check(`#/${address.slice(0, 60)} runs nothing`, marks.hacked === undefined && marks.elements === 0, JSON.stringify(marks));
    const text = await tab.text();
    check(`#/${address.slice(0, 60)} shows no mark that reorders text`, !/[\u202a-\u202e\u2066-\u2069]/.test(text));
  }
  await tab.go('events');
  await attempt('markup of a payload is visible as text', () => tab.shows('<img src=x onerror='));
  await tab.go('dead');
  await attempt('markup of a reason is visible as text', () => tab.shows('<img src=x onerror='));
  check('no report, no error, no request elsewhere', tab.faults.filter((fault) => !/status of 40[04]/.test(fault)).length === 0, tab.faults.join('\n'));
  await tab.close();
}

/** The status of a request with any headers. */
function status(url, headers = {}, method = 'GET') {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (answer) => {
      answer.destroy();
      resolve(answer.statusCode);
    });
    sent.on('error', reject).end();
  });
}

/** Pages of other origins, other names of the host, and frames; against a server without tokens too. */
async function refuseOthers() {
  const config = '[types."*"]\nroutes = ["none"]\n\n[sinks.none]\nkind = "null"\n';
  const open = await order('launch', { name: 'open', role: 'serve', config, files: {} });
  for (const [what, admin] of [['with tokens', fleet.processes['gateway-1'].admin], ['without tokens', open.admin]]) {
    const bearer = what === 'with tokens' ? { authorization: `Bearer ${fleet.tokens.anna}` } : {};
    const url = `http://${admin}`;
    for (const path of ['/', '/api/overview', '/api/session']) {
      if (what === 'without tokens') {
        const rebound = await status(url + path, { host: `evil.example:${admin.split(':')[1]}` });
        check(`${what}: another name of the host is refused ${path}`, rebound >= 400, rebound);
      }
      for (const site of ['same-site', 'cross-site']) {
        if (path === '/') continue;
        const answered = await status(url + path, { ...bearer, 'sec-fetch-site': site });
        check(`${what}: ${site} is refused ${path}`, answered === 403, answered);
      }
    }
    const own = await status(`${url}/api/overview`, { ...bearer, 'sec-fetch-site': 'same-origin' });
    check(`${what}: the same origin is answered`, own === 200, own);
    await refusePage(what, url);
  }
}

async function refusePage(what, url) {
  const html = `<!doctype html><title>stranger</title><iframe src="${url}/"></iframe>`;
  const page = await strangerPage(html);
  const tab = await Tab.open(page);
  const statuses = [];
  tab.page.on('response', (answer) => answer.url().startsWith(url) && statuses.push(`${answer.status()} ${answer.request().method()} ${answer.url()}`));
  await tab.page.goto(page);
  await pause(500);
  const frame = tab.page.frames()[1];
  const text = await frame?.evaluate(() => document.body?.innerText ?? '').catch(() => '');
  check(`${what}: a frame shows nothing`, !/Forebay|Overview/.test(text ?? ''), text);
  const read = await tab.page.evaluate(async (target) => {
    const tries = [];
    for (const options of [{}, { credentials: 'include' }, { mode: 'no-cors', credentials: 'include' }, { mode: 'no-cors', method: 'POST' }]) {
      tries.push(await fetch(`${target}/api/overview`, options).then((answer) => answer.text(), () => ''));
      tries.push(await fetch(`${target}/api/reload`, { ...options, method: 'POST' }).then((answer) => answer.text(), () => ''));
    }
    return tries.join('');
  }, url);
  check(`${what}: another port of the host reads nothing`, read === '', read);
  check(`${what}: its requests are refused`, statuses.filter((one) => one.includes('/api/')).every((one) => /^40[13]/.test(one)), statuses.join('\n'));
  await tab.close();
}

async function session(token) {
  const url = fleet.url('gateway-1');
  const ask = () => fetch(`${url}/api/session`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  // A process reads the file of tokens every two seconds.
  const answer = await until('the token is known', () => ask().then((one) => one.ok && one), 5000);
  const cookie = answer.headers.getSetCookie().map((one) => one.split(';')[0]).join('; ');
  check('a session has a cookie that scripts cannot read', /HttpOnly/i.test(answer.headers.get('set-cookie') ?? '') && /SameSite=Strict/i.test(answer.headers.get('set-cookie') ?? ''), answer.headers.get('set-cookie'));
  const { check: half } = await answer.json();
  return { url, cookie, half };
}

async function refuseHalves() {
  const { url, cookie, half } = await session(fleet.tokens.anna);
  const ask = (headers) => status(`${url}/api/overview`, headers);
  const answers = [await ask({ cookie, 'forebay-check': half }), await ask({ cookie }), await ask({ 'forebay-check': half }), await ask({ cookie, 'forebay-check': `${half.slice(0, -1)}x` })];
  check('a session needs both halves', answers.join() === '200,401,401,401', answers.join());
  const rebound = await status(`${url}/api/overview`, { cookie, 'forebay-check': half, host: 'evil.example' });
  check('a session is refused under another name of the host', rebound >= 400, rebound);
  const other = await status(`${fleet.url('gateway-2')}/api/overview`, { cookie, 'forebay-check': half });
  check('another port takes no session of this one', other === 401, other);
  const out = await fetch(`${url}/api/session`, { method: 'DELETE', headers: { cookie, 'forebay-check': half } });
  check('a session ends by logging out', out.ok && (await ask({ cookie, 'forebay-check': half })) === 401, out.status);
}

/** An open stream ends soon after its token is revoked. */
async function endRevoked() {
  const { url, cookie, half } = await session(newToken('eve', 'read'));
  const open = await fetch(`${url}/api/live`, { headers: { cookie, 'forebay-check': half } });
  const reader = open.body.getReader();
  check('a session reads a stream', open.status === 200 && !(await reader.read()).done, open.status);
  revokeToken('eve');
  const begun = Date.now();
  const limit = pause(15000).then(() => false);
  const ended = (async () => {
    while (!(await reader.read()).done);
    return true;
  })().catch(() => true);
  const isOver = await Promise.race([ended, limit]);
  figure('a stream ends after its token is revoked', isOver ? (Date.now() - begun) / 1000 : Number.NaN, 's', { at_most: 5 });
  const later = await status(`${url}/api/overview`, { cookie, 'forebay-check': half });
  check('its session has ended', later === 401, later);
}

/** A token with `read` changes nothing. */
async function refuseRead() {
  const [{ id }] = (await fleet.api('gateway-1', '/api/dead')).letters;
  const changes = [
    ['PUT', `/api/dead/${id}?sink=warehouse`], ['POST', '/api/dead/replay?sink=warehouse'], ['POST', '/api/dead/drop?sink=warehouse'],
    ['POST', '/api/routes/drop?sink=live'], ['POST', '/api/routes/accept?sink=live'], ['POST', '/api/reload'],
    ['PUT', '/api/log'], ['POST', '/debug/profile'], ['POST', '/debug/heap'], ['POST', '/api/report'],
    ['POST', '/api/sinks/warehouse/test'], ['DELETE', '/api/jobs/1'],
  ];
  const { url, cookie, half } = await session(fleet.tokens.rob);
  for (const [method, path] of changes) {
    const bearer = await status(url + path, { authorization: `Bearer ${fleet.tokens.rob}` }, method);
    const halves = await status(url + path, { cookie, 'forebay-check': half }, method);
    check(`a token with read is refused ${method} ${path}`, bearer === 403 && halves === 403, `${bearer} with the token, ${halves} with the session`);
  }
}
