// Stories of 200 events out of many, asked after the journal freed their segments. In between, Redis and PostgreSQL are down for a while.
import { check, end, EVENTS, figure, Fleet, order, pause, quantile, sql, until } from './site.mjs';

const STORIES = 200;
const BATCH = 1000;
const TYPES = `
[types.hit]
routes = ["warehouse", { to = "live", when = "shown == true" }]
`;
const PADDING = 'x'.repeat(400);
/** A row that the table rejects is a dead letter of the warehouse. */
const isDead = (number) => number % 20 === 7;
const isShown = (number) => number % 3 !== 0;
const payload = (number) => ({ n: number, shown: isShown(number), bad: isDead(number), padding: PADDING });

const fleet = await Fleet.start({ types: TYPES, gateways: 1 });
await sql(`alter table events add constraint no_bad check (payload ->> 'bad' = 'false')`);

/** Events whose stories are asked: number, id, position, and whether Redis was down when they came. */
const asked = [];
let isRedisDown = false;
let redisBackAt = 0;

/** Posts a marked event alone, since only its answer has an id and a position. */
async function postMarked(number) {
  const answer = await fleet.post('gateway-1', 'hit', payload(number));
  check('a marked event is accepted', answer.status === 200, JSON.stringify(answer));
  asked.push({ number, id: answer.id, position: answer.position, postedAt: Date.now(), isRedisDown });
}

async function postPart(first, last) {
  const every = Math.ceil(EVENTS / STORIES);
  for (let from = first; from < last; from += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, last - from) }, (_, index) => from + index);
    const marked = numbers.filter((number) => number % every === 0 && number / every < STORIES);
    const answer = await fleet.postBatch('gateway-1', 'hit', numbers.filter((number) => !marked.includes(number)).map(payload));
    if (answer.status !== 200) throw new Error(`a batch was answered ${answer.status}`);
    for (const number of marked) await postMarked(number);
  }
}

const begun = Date.now();
await postPart(0, EVENTS / 4);
await order('kill_store', { store: 'redis' });
isRedisDown = true;
await postPart(EVENTS / 4, EVENTS / 2);
await order('kill_store', { store: 'postgres' });
await postPart(EVENTS / 2, (EVENTS * 5) / 8);
await pause(3000);
await order('run_store', { store: 'postgres' });
await order('run_store', { store: 'redis' });
redisBackAt = Date.now();
isRedisDown = false;
await postPart((EVENTS * 5) / 8, EVENTS);
await fleet.drained('gateway-1', ['warehouse', 'live'], 240000);
console.log(`  ${EVENTS} events are stored after ${((Date.now() - begun) / 1000).toFixed(0)} s`);

const story = (event, position) => fleet.api('gateway-1', `/api/events/${event.id}/story${position ? `?position=${event.position}` : ''}`);
// The journal keeps what a failover of the store may need for a minute, and frees whole segments: later ones must follow.
const filler = (count, text) => Array.from({ length: count }, () => ({ filler: true, shown: false, bad: false, text }));
for (let part = 0; part < 20; part += 1) await fleet.postBatch('gateway-1', 'hit', filler(BATCH, PADDING.repeat(25)));
await until('the journal has freed the segments', async () => {
  await fleet.postBatch('gateway-1', 'hit', filler(10, PADDING));
  await pause(500);
  return (await story(asked.at(-1), true)).journal?.still_there === false;
}, 200000).catch((error) => check('segments are freed', false, error.message));

const rows = await sql(`select id, extract(epoch from stored_at) * 1000 from events where payload ? 'n'`);
const storedAt = new Map(rows.map(([id, time]) => [id, Number(time)]));
const milliseconds = [];
const off = [];
for (const [index, event] of asked.entries()) {
  // The position of every second one is given; the others are known by their id alone.
  const isGiven = index % 2 === 0;
  const before = performance.now();
  const told = await story(event, isGiven).catch((error) => check(`event ${event.number} has a story`, false, error.message));
  milliseconds.push(performance.now() - before);
  if (told) compare(event, told, isGiven);
}

function compare(event, told, isGiven) {
  const of = (name) => told.sinks.find((one) => one.sink === name) ?? { outcome: 'missing' };
  const shown = (one) => `${JSON.stringify(one)} of event ${event.number}, position ${isGiven ? event.position : 'not given'}`;
  const [warehouse, live] = [of('warehouse'), of('live')];
  check('the outcome of warehouse is right', warehouse.outcome === (isDead(event.number) ? 'dead' : 'stored'), shown(warehouse));
  check('the outcome of live is right', live.outcome === (isShown(event.number) ? 'stored' : 'skipped'), shown(live));
  const time = storedAt.get(event.id);
  if (warehouse.outcome === 'stored' && time !== undefined) {
    const [from, to] = bounds(warehouse);
    // PostgreSQL writes a row's time before its transaction ends, and so does the lane's clock later.
    check('the bounds hold the time of PostgreSQL', from <= time + 1000 && time <= to + 1000, `${shown(warehouse)}, PostgreSQL ${new Date(time).toISOString()}`);
    if (isGiven && warehouse.at) off.push(Math.max(from - time, time - to, 0), Math.abs((from + to) / 2 - time));
  }
  if (live.outcome === 'stored' && event.isRedisDown) {
    check('an event of the outage is stored after it', bounds(live)[1] >= redisBackAt - 1000, shown(live));
    if (isGiven) check('its failures are listed', live.failures.length > 0, shown(live));
  }
}

function bounds({ at }) {
  return at ? [Date.parse(at.from), Date.parse(at.to)] : [Number.NaN, Number.NaN];
}

figure('stories asked', asked.length, '', { at_least: STORIES });
figure('time of PostgreSQL, largest difference', Math.max(...off) / 1000, 's', { at_most: 1 });
figure('story, p95', quantile(milliseconds, 0.95), 'ms', { at_most: 200 });
end();
