// Stories of 200 events out of many, asked after the journal freed their segments. In between, Redis and PostgreSQL are down for a while, and
// later the gateway's clock jumps by an hour. PostgreSQL's doesn't: it has the machine's.
import { check, end, EVENTS, figure, Fleet, order, pause, quantile, sql, until } from './site.mjs';

const STORIES = 200;
const BATCH = 1000;
const HOUR = 3600_000;
/** How much later than PostgreSQL the progress may notice an event. */
const LATE = 1000;
/** Wider bounds than a lane's samples give without a jump of the clock. */
const WIDE = HOUR / 2;
/** Events around the jump: the progress knows only that they were stored between a time before it and one after it. */
const BEFORE_JUMP = 8;
const AFTER_JUMP = 4;
const TYPES = `
[types.hit]
routes = ["warehouse", { to = "live", when = "shown == true" }]
`;
const PADDING = 'x'.repeat(400);
const EVERY = Math.ceil(EVENTS / STORIES);
const isMarked = (number) => number % EVERY === 0 && number < EVENTS;
/**
 * A row that the table rejects is a dead letter of the warehouse: one of ten marked events, and few of the others, since a batch that has one is
 * stored in parts.
 */
const isDead = (number) => (isMarked(number) ? (number / EVERY + Math.floor(number / EVERY / 10)) % 10 === 3 : number % 1000 === 7);
const isShown = (number) => number % 3 !== 0;
const payload = (number) => ({ n: number, shown: isShown(number), bad: isDead(number), padding: PADDING });

const fleet = await Fleet.start({ types: TYPES, gateways: 1, hasMovedClock: true });
await sql(`alter table events add constraint no_bad check (payload ->> 'bad' = 'false')`);

/** Events whose stories are asked: number, id, position, and whether Redis was down when they came. */
const asked = [];
let isRedisDown = false;
let redisBackAt = 0;
/** The machine's times before and after the jump. */
const jump = { from: Infinity, to: Infinity };

/** Posts a marked event alone, since only its answer has an id and a position. */
async function postMarked(number) {
  const answer = await fleet.post('gateway-1', 'hit', payload(number));
  check('a marked event is accepted', answer.status === 200, JSON.stringify(answer));
  asked.push({ number, id: answer.id, position: answer.position, postedAt: Date.now(), isRedisDown });
}

async function postPart(first, last) {
  for (let from = first; from < last; from += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, last - from) }, (_, index) => from + index);
    const marked = numbers.filter(isMarked);
    const answer = await fleet.postBatch('gateway-1', 'hit', numbers.filter((number) => !marked.includes(number)).map(payload));
    if (answer.status !== 200) throw new Error(`a batch was answered ${answer.status}`);
    for (const number of marked) await postMarked(number);
  }
}

/** Sets the gateway's clock an hour ahead while it delivers single events. */
async function moveClock() {
  const numbers = Array.from({ length: BEFORE_JUMP + AFTER_JUMP }, (_, index) => EVENTS + index);
  for (const number of numbers.slice(0, BEFORE_JUMP)) await postMarked(number);
  jump.from = Date.now();
  await order('move_clock', { hours: 1 });
  // The clock counts whole milliseconds.
  jump.to = Date.now() + 1;
  for (const number of numbers.slice(BEFORE_JUMP)) await postMarked(number);
  const isAhead = ({ at }) => Math.abs(Date.parse(at) - Date.now() - HOUR) < 60000;
  await until("the gateway's clock is an hour ahead", async () => isAhead(await fleet.api('gateway-1', '/api/overview')));
}

const begun = Date.now();
const reached = (what) => console.log(`  ${what} after ${((Date.now() - begun) / 1000).toFixed(0)} s`);
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
await postPart((EVENTS * 5) / 8, (EVENTS * 3) / 4);
await fleet.drained('gateway-1', ['warehouse', 'live'], 300000);
reached('three quarters of the events are stored');
await moveClock();
await postPart((EVENTS * 3) / 4, EVENTS);
await fleet.drained('gateway-1', ['warehouse', 'live'], 300000);
reached(`${EVENTS} events are stored`);

const story = (event, position) => fleet.api('gateway-1', `/api/events/${event.id}/story${position ? `?position=${event.position}` : ''}`);
// The journal keeps what a failover of the store may need for a minute, and frees whole segments: later ones must follow.
const filler = (count, text) => Array.from({ length: count }, () => ({ filler: true, shown: false, bad: false, text }));
for (let part = 0; part < 20; part += 1) await fleet.postBatch('gateway-1', 'hit', filler(BATCH, PADDING.repeat(25)));
await until('the journal has freed the segments', async () => {
  await fleet.postBatch('gateway-1', 'hit', filler(10, PADDING));
  await pause(500);
  return (await story(asked.at(-1), true)).journal?.still_there === false;
}, 200000).catch((error) => check('segments are freed', false, error.message));
reached('the segments are freed');

const ids = asked.map(({ id }) => `'${id}'`).join(', ');
const rows = await sql(`select id, extract(epoch from stored_at) * 1000 from events where id in (${ids})`);
const storedAt = new Map(rows.map(([id, time]) => [id, Number(time)]));
const milliseconds = [];
/** Of stories with a position: how far known times are off, and how many times are known only as bounds before and after the jump. */
const off = [];
let around = 0;
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
    const outside = Math.min(...gatewayTimes(time).map((own) => Math.max(from - own, own - to, 0)));
    check('the bounds hold the time of PostgreSQL', outside <= LATE, `${shown(warehouse)}, PostgreSQL ${new Date(time).toISOString()}`);
    if (isGiven && to - from > WIDE) around += 1;
    else if (isGiven && warehouse.at) off.push(outside, Math.min(...gatewayTimes(time).map((own) => Math.abs((from + to) / 2 - own))));
  }
  if (live.outcome === 'stored' && event.isRedisDown) {
    check('an event of the outage is stored after it', bounds(live)[1] >= redisBackAt - 1000, shown(live));
    if (isGiven) check('its failures are listed', live.failures.length > 0, shown(live));
  }
}

/** What the gateway's clock may have been when the machine's was `time`: PostgreSQL's is a little before that of the lane's progress. */
function gatewayTimes(time) {
  const isBefore = time <= jump.to;
  const isAfter = time + LATE >= jump.from;
  return [...(isBefore ? [time] : []), ...(isAfter ? [time + HOUR] : [])];
}

function bounds({ at }) {
  return at ? [Date.parse(at.from), Date.parse(at.to)] : [Number.NaN, Number.NaN];
}

const known = off.length / 2;
console.log(`  with a position, ${known} times are known; ${around} are known as bounds around the jump`);
check('times are known except around the jump', around <= STORIES / 10, around);
figure('times around the jump, as bounds', around, '', { at_least: 1 });
figure('times known by a position', known, '', { at_least: (STORIES * 3) / 8 });
figure('stories asked', asked.length, '', { at_least: STORIES });
figure('time of PostgreSQL, largest difference', Math.max(...off) / 1000, 's', { at_most: 1 });
figure('story, p95', quantile(milliseconds, 0.95), 'ms', { at_most: 200 });
end();
