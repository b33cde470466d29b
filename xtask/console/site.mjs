// The running system of a script: processes that `cargo xtask console` starts on order, and the figures of the table at the end.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

export const { BINARY, FOLDER, OLDER, PICTURES } = process.env;
export const EVENTS = Number(process.env.EVENTS);
export { pause };

const waiting = [];
const answers = createInterface({ input: process.stdin });
answers.on('line', (line) => waiting.shift()(JSON.parse(line)));

/** Orders something of the program that started this script. */
export async function order(what, fields = {}) {
  const answered = new Promise((resolve) => waiting.push(resolve));
  process.stdout.write(`@${JSON.stringify({ order: { do: what, ...fields } })}\n`);
  const answer = await answered;
  if (answer.error) throw new Error(`${what} ${fields.name ?? ''}: ${answer.error}`);
  return answer.process ?? answer.text ?? answer.rate ?? answer.ports;
}

/** Rows of PostgreSQL, each a list of columns. */
export async function sql(text) {
  const rows = await order('sql', { sql: text });
  return rows === '' ? [] : rows.split('\n').map((row) => row.split('|'));
}

/** A row of the table. `bar` has `at_most` or `at_least`. */
export function figure(what, measured, unit, bar) {
  const row = Array.isArray(measured) ? { rounds: measured } : { measured };
  process.stdout.write(`@${JSON.stringify({ figure: { what, unit, ...row, ...bar } })}\n`);
}

let failed = 0;
let checked = 0;
/** Failures by the name of their check. Only the first ones of each are printed. */
const failures = new Map();
const SHOWN_MAX = 3;

/** A condition that must hold. Failures are counted in the table. */
export function check(what, holds, detail = '') {
  checked += 1;
  if (holds) return;
  failed += 1;
  const times = (failures.get(what) ?? 0) + 1;
  failures.set(what, times);
  if (times <= SHOWN_MAX) console.log(`  FAILED ${what}${detail === '' ? '' : `: ${String(detail).slice(0, 2000)}`}`);
}

/** The same for a step that fails by an error. Returns its result. */
export async function attempt(what, step) {
  try {
    const result = await step();
    checked += 1;
    return result;
  } catch (error) {
    check(what, false, error.message);
    return undefined;
  }
}

/** Ends the script with its last row. */
export function end() {
  console.log(`  ${checked} checks`);
  for (const [what, times] of failures) if (times > SHOWN_MAX) console.log(`  FAILED ${times} times: ${what}`);
  figure('checks that failed', failed, '', { at_most: 0 });
  answers.close();
}

/** Waits until `holds` returns a true value, which is returned. */
export async function until(what, holds, milliseconds = 20000) {
  const begun = Date.now();
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() - begun > milliseconds) throw new Error(`waited ${milliseconds} ms until ${what}`);
    await pause(50);
  }
}

export function median(figures) {
  const sorted = figures.toSorted((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)];
}

/** The value below which this share of the figures is. */
export function quantile(figures, share) {
  const sorted = figures.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)];
}

const tokens = join(FOLDER, 'tokens.json');

/** Creates a token for all processes. */
export function newToken(name, scopes, secret) {
  const more = secret ? ['--secret', secret] : [];
  return execFileSync(BINARY, ['token', 'new', name, '--scope', scopes, '--file', tokens, ...more], { stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();
}

export function revokeToken(name) {
  execFileSync(BINARY, ['token', 'revoke', name, '--file', tokens], { stdio: 'ignore' });
}

export const ORDER_SCHEMA = JSON.stringify({
  type: 'object',
  required: ['price'],
  properties: { price: { type: 'number', minimum: 0 }, item: { type: 'string' } },
});

const TYPES = `
[types.order]
schema = "order.json"
refused_to = "refused"
routes = ["warehouse", "live"]

[types.visit]
routes = ["warehouse", { to = "hook", when = "paid == true" }]
transform = [{ hash = "/client" }]

[types.visit.aggregate.hits]
window = "10s"
group_by = ["/path"]
measures = { requests = "count" }
lateness = "0s"
routes = ["live"]

[types.payment]
routes = ["hook"]

[types.refused]
routes = ["warehouse"]
`;

/** The table that Forebay would create, with the time at which PostgreSQL wrote each row. */
const TABLE = `create table events (id uuid primary key, type text, source text, received_at timestamptz, payload jsonb,
  stored_in bigint not null default txid_current(), stored_number bigserial, stored_at timestamptz default clock_timestamp());
  create index on events (stored_in, stored_number)`;

/** Two gateways, three writers, PostgreSQL and Redis. The first gateway's console has all others as peers. */
export class Fleet {
  processes = {};
  tokens = {};

  /** Starts all. `hook` is the webhook's URL, `types` more of the gateways' configuration. `hasMovedClock`: later orders move the clock of the gateways. */
  static async start({ hook = 'http://127.0.0.1:1/', types = TYPES, shards = 2, gateways = 2, table = TABLE, hasMovedClock = false } = {}) {
    const fleet = new Fleet();
    Object.assign(fleet, { hook, types, shards, hasMovedClock });
    fleet.makeTokens();
    const postgres = await order('run_store', { store: 'postgres' });
    fleet.redis = await order('run_store', { store: 'redis' });
    fleet.postgres = postgres.replace(/^payload_type.*$/m, '');
    await sql(table);
    for (const name of ['writer-1', 'writer-2', 'writer-3']) await fleet.launch(name, 'writer', fleet.writerConfig());
    if (gateways > 1) await fleet.launch('gateway-2', 'gateway', fleet.gatewayConfig([]), { 'order.json': ORDER_SCHEMA });
    await fleet.launch('gateway-1', 'gateway', fleet.gatewayConfig(Object.keys(fleet.processes)), { 'order.json': ORDER_SCHEMA });
    return fleet;
  }

  makeTokens() {
    this.tokens.shop = newToken('shop', 'ingest');
    this.tokens.deliver = newToken('gateways', 'deliver');
    this.tokens.anna = newToken('anna', 'read,admin');
    this.tokens.rob = newToken('rob', 'read');
    newToken('console', 'read,admin', join(FOLDER, 'console.token'));
  }

  async launch(name, role, config, files = {}) {
    this.processes[name] = await order('launch', { name, role, config, files, has_moved_clock: this.hasMovedClock && role === 'gateway' });
    return this.processes[name];
  }

  writerConfig() {
    return `[writer]\ntoken_file = "../tokens.json"\n\n[sinks.warehouse]\n${this.postgres}\n[sinks.live]\n${this.redis}\n`;
  }

  gatewayConfig(peers) {
    const writers = ['writer-1', 'writer-2', 'writer-3'].map((name) => `"http://${this.processes[name].intake}"`);
    const listed = peers.map((name) => `"http://${this.processes[name].admin}"`);
    const console_ = `\n[console.peers]\nservers = [${listed.join(', ')}]\ntoken_file = "../console.token"\n`;
    return `[gateway]\nshards = ${this.shards}\ntoken_file = "../tokens.json"\n
[upstreams.back]\nservers = [${writers.join(', ')}]\ntoken = "${this.tokens.deliver}"\n${this.types}
[sinks.warehouse]\nkind = "writer"\nupstream = "back"\nstore = "postgres"\nread = true
[sinks.live]\nkind = "writer"\nupstream = "back"\nstore = "redis"
[sinks.hook]\nkind = "webhook"\nurl = "${this.hook}"\n${peers.length > 0 ? console_ : ''}`;
  }

  /** Rewrites the configuration of a gateway by a function of its text, and has it reloaded. */
  async reload(name, change) {
    const peers = name === 'gateway-1' ? Object.keys(this.processes).filter((other) => other !== name) : [];
    await order('configure', { name, config: change(this.gatewayConfig(peers)) });
    return this.api(name, '/api/reload', { method: 'POST' });
  }

  url(name) {
    return `http://${this.processes[name].admin}`;
  }

  /** The JSON of an answer of an admin port, asked with anna's token. */
  async api(name, path, options = {}) {
    const headers = { authorization: `Bearer ${this.tokens.anna}`, ...options.headers };
    const answer = await fetch(this.url(name) + path, { ...options, headers });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }

  /** Posts one event. Returns the status, and the answer's JSON if there is one. */
  async post(name, type, payload, headers = {}) {
    const own = { authorization: `Bearer ${this.tokens.shop}`, accept: 'application/json', ...headers };
    const body = typeof payload === 'string' ? payload : JSON.stringify(payload);
    const answer = await fetch(`http://${this.processes[name].intake}/ingest/event/${type}`, { method: 'POST', body, headers: own });
    const text = await answer.text();
    return { status: answer.status, ...(text.startsWith('{') ? JSON.parse(text) : {}) };
  }

  /** Posts payloads as one batch. Returns the answer. */
  async postBatch(name, type, payloads) {
    const headers = { authorization: `Bearer ${this.tokens.shop}`, 'content-type': 'application/x-ndjson' };
    const body = payloads.map((payload) => JSON.stringify(payload)).join('\n');
    const answer = await fetch(`http://${this.processes[name].intake}/ingest/batch/${type}`, { method: 'POST', body, headers });
    return { status: answer.status, ...(await answer.json()) };
  }

  /** Waits until no event of these sinks is pending at a gateway. */
  async drained(name, sinks, milliseconds = 60000) {
    const pending = async () => {
      const { routes } = await this.api(name, '/api/routes');
      return routes.filter((route) => sinks.includes(route.sink)).reduce((sum, route) => sum + route.pending, 0);
    };
    await until(`${sinks} of ${name} have no backlog`, async () => (await pending()) === 0, milliseconds);
  }
}

/** A file next to the processes' folders. */
export function writeFile(name, text) {
  const path = join(FOLDER, name);
  writeFileSync(path, text);
  return path;
}
