// Every page of one server without tokens: it opens, logs no error, and the overview has no finding of axe.
import { axe } from './axe.mjs';
import { closeBrowser, openBrowser, PAGES, Tab } from './browser.mjs';
import { attempt, check, end, order } from './site.mjs';

const config = '[types."*"]\nroutes = ["local"]\n\n[sinks.local]\nkind = "sqlite"\n';
const server = await order('launch', { name: 'server', role: 'serve', config, files: {} });
const answer = await fetch(`http://${server.intake}/ingest/event/order`, { method: 'POST', body: '{"price": 3}' });
check('an event is accepted', answer.ok, answer.status);

await openBrowser();
const tab = await Tab.open(`http://${server.admin}`);
for (const [address, name] of PAGES) {
  await attempt(`the page ${name} opens`, () => tab.go(address));
  await attempt(`the page ${name} has its name as a heading`, () =>
    tab.page.getByRole('main').getByRole('heading', { name: new RegExp(name, 'i') }).first().waitFor({ timeout: 30000 }),
  );
}
await tab.go('overview');
const findings = await axe(tab);
check('axe finds nothing on Overview', findings.length === 0, findings.join('\n'));
check('no errors in the console of the browser', tab.faults.length === 0, tab.faults.join('\n'));
await closeBrowser();
end();
