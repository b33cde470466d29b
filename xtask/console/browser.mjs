// Pages of Chromium as a person uses them: clicks on visible text, reads visible text. Errors of a page's console, reports of its content
// security policy and requests to other hosts are faults.
import { chromium } from 'playwright-core';
import { until } from './site.mjs';

/** Every page of the console: its address after `#/`, and the name of its link. */
export const PAGES = [
  ['overview', 'Overview'],
  ['events', 'Events'],
  ['refused', 'Rejected'],
  ['dead', 'Dead letters'],
  ['types', 'Types'],
  ['sinks', 'Sinks'],
  ['aggregates', 'Aggregates'],
  ['tap', 'Tap'],
  ['health', 'Health'],
  ['config', 'Configuration'],
  ['fleet', 'Fleet'],
];

let browser;

export async function openBrowser() {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
  return browser;
}

/** Closes the browser, and with it all pages. */
export function closeBrowser() {
  return browser.close();
}

/** A page with what went wrong in it, and the clicks so far. */
export class Tab {
  faults = [];
  clicks = 0;

  /** Opens a tab without a session. `url` is the console's address. */
  static async open(url, options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    const tab = new Tab();
    Object.assign(tab, { context, url });
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
      });
    });
    tab.watch(await context.newPage());
    return tab;
  }

  watch(page) {
    this.page = page;
    const { host } = new URL(this.url);
    page.on('pageerror', (error) => this.faults.push(`error: ${error.stack ?? error}`));
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) this.faults.push(`${message.type()}: ${message.text()} (${message.location().url})`);
    });
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (['http:', 'https:', 'ws:'].includes(url.protocol) && url.host !== host) this.faults.push(`a request to ${url}`);
    });
    page.on('dialog', (dialog) => {
      this.faults.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
  }

  /** Loads the console at an address after `#/`, and waits for its heading. */
  async go(address = 'overview') {
    await this.page.goto('about:blank');
    await this.page.goto(`${this.url}/#/${address}`);
    await this.settled();
  }

  /** Types a token into the form of a console without a session; later again, if the session has ended. */
  async logIn(token) {
    this.token = token;
    await this.go('overview');
  }

  /** Waits until the page's main part has a heading other than that of the form for a token. */
  async settled() {
    const heading = this.page.getByRole('main').getByRole('heading').first();
    await heading.waitFor({ timeout: 10000 }).catch(async (error) => {
      throw new Error(`no heading at ${this.page.url()}; faults: ${this.faults.join('; ')}; text: ${await this.text()}`, { cause: error });
    });
    if (this.token && (await heading.innerText()) === 'Log in') {
      await this.page.getByLabel('Token').fill(this.token);
      await this.page.keyboard.press('Enter');
      await this.page.getByRole('heading', { name: 'Log in' }).waitFor({ state: 'hidden', timeout: 10000 }).catch(async (error) => {
        throw new Error(`not logged in; faults: ${this.faults.join('; ')}; text: ${await this.text()}`, { cause: error });
      });
      await heading.waitFor();
      // The answers without a session are expected.
      this.faults = this.faults.filter((fault) => !fault.includes('status of 401'));
    }
  }

  /** The visible text. */
  text() {
    return this.page.locator('body').innerText();
  }

  /** Waits until the visible text has all of these. */
  async shows(...patterns) {
    let missing;
    const milliseconds = 10000;
    await until('', async () => {
      const text = await this.text();
      missing = patterns.filter((pattern) => (pattern instanceof RegExp ? !pattern.test(text) : !text.includes(pattern)));
      return missing.length === 0;
    }, milliseconds).catch(async () => {
      throw new Error(`not visible after ${milliseconds} ms: ${missing.join(', ')}; the text is ${JSON.stringify(await this.text())}`);
    });
  }

  /** Clicks a link or a button by its visible text, and counts it. */
  async click(name, role) {
    const roles = role ? [role] : ['link', 'button', 'tab', 'cell'];
    const candidates = roles.map((one) => this.page.getByRole(one, { name }));
    const found = candidates.reduce((all, one) => all.or(one)).filter({ visible: true }).first();
    await found.click({ timeout: 10000 });
    this.clicks += 1;
  }

  async close() {
    await this.context.close();
  }
}
