// Senders from npm, unchanged, each with 1,000 marked events: senders.mjs NAME, with the intake's URL in FOREBAY_URL.
import { setTimeout as pause } from 'node:timers/promises';

const url = process.env.FOREBAY_URL;
const marks = Array.from({ length: 1000 }, (_, number) => `mark-${String(number).padStart(4, '0')}`);
const PAUSE = 20;
const SHORT_PAUSE = 5;

/** Calls `send` with ten marks at a time. */
async function inBatches(send) {
  for (let begin = 0; begin < marks.length; begin += 10) {
    await send(marks.slice(begin, begin + 10));
    await pause(PAUSE);
  }
}

/** Calls `send` with each mark. */
async function oneByOne(send, milliseconds = SHORT_PAUSE) {
  for (const mark of marks) {
    await send(mark);
    await pause(milliseconds);
  }
}

/** Repeats a call as an application does, until it doesn't fail. */
async function untilSent(send) {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      return await send();
    } catch (error) {
      console.log('again after', String(error).slice(0, 200));
      await pause(100);
    }
  }
  throw new Error("a batch wasn't sent in 100 attempts");
}

async function elasticsearch() {
  const { Client } = await import('@elastic/elasticsearch');
  const client = new Client({ node: url });
  await inBatches(async (batch) => {
    const onDocument = (document) => ({ create: { _index: 'logs-app-default', _id: `id-${document.n}` } });
    await untilSent(async () => {
      const stats = await client.helpers.bulk({ datasource: batch.map((n) => ({ n })), onDocument });
      if (stats.failed > 0 || stats.aborted) throw new Error(JSON.stringify(stats));
    });
  });
}

/** The helper of the client sends each batch of the stream once more if the connection breaks. */
async function pinoElasticsearch() {
  const { default: pinoElastic } = await import('pino-elasticsearch');
  const { default: pino } = await import('pino');
  const stream = pinoElastic({ index: 'app', node: url, esVersion: 8, flushBytes: 1000, flushInterval: 100, opType: 'create' });
  for (const name of ['error', 'insertError', 'unknown']) stream.on(name, (error) => console.log(name, String(error).slice(0, 200)));
  const inserted = new Promise((resolve) => { stream.on('insert', resolve); stream.on('error', resolve); });
  const log = pino({ level: 'info' }, stream);
  await inBatches(async (batch) => batch.forEach((order) => log.info({ order }, 'order arrived')));
  stream.end();
  console.log('inserted', JSON.stringify(await inserted));
}

async function opentelemetry(encoding) {
  const { LoggerProvider, BatchLogRecordProcessor } = await import('@opentelemetry/sdk-logs');
  const { OTLPLogExporter } = await import(`@opentelemetry/exporter-logs-otlp-${encoding}`);
  const { diag, DiagConsoleLogger, DiagLogLevel } = await import('@opentelemetry/api');
  diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.WARN);
  const exporter = new OTLPLogExporter({ url: `${url}/v1/logs`, timeoutMillis: 30000, compression: 'gzip' });
  const options = { exporter, maxExportBatchSize: 10, scheduledDelayMillis: 20, exportTimeoutMillis: 40000, maxQueueSize: 2000 };
  const provider = new LoggerProvider({ processors: [new BatchLogRecordProcessor(options)] });
  const log = provider.getLogger('campaign');
  await inBatches(async (batch) => batch.forEach((order) => log.emit({ body: `order ${order}`, severityText: 'INFO', attributes: { order } })));
  await provider.forceFlush();
  await provider.shutdown();
}

async function segment() {
  const { Analytics } = await import('@segment/analytics-node');
  const analytics = new Analytics({ writeKey: 'campaign-key', host: url, flushAt: 10, flushInterval: 100, maxRetries: 10 });
  let lost = 0;
  analytics.on('error', (error) => { lost += 1; console.log('error', error.code, String(error.reason).slice(0, 200)); });
  await inBatches(async (batch) => batch.forEach((order) => analytics.track({ userId: 'user-1', event: 'Order Completed', properties: { order } })));
  await analytics.closeAndFlush({ timeout: 60000 });
  if (lost > 0) throw new Error(`${lost} batches lost`);
}

async function winstonLoki(batching) {
  const { default: winston } = await import('winston');
  const { default: LokiTransport } = await import('winston-loki');
  const transport = new LokiTransport({
    host: url, labels: { job: 'app' }, batching, interval: 0.1, gracefulShutdown: false, timeout: 10000,
    onConnectionError: (error) => console.log('connection error', String(error).slice(0, 200)),
  });
  const log = winston.createLogger({ transports: [transport] });
  await oneByOne(async (mark) => log.info(`order ${mark} arrived`), 10);
  // `waitFlushed` also ends after a failed request, whose events are sent again a minute later.
  const { batcher } = transport;
  while (batcher.batchesSending > 0 || batcher.batch.streams.length > 0) await pause(100);
}

async function pinoLoki() {
  const { pinoLoki: transport } = await import('pino-loki');
  const { default: pino } = await import('pino');
  const stream = transport({ host: url, batching: { interval: 0.05 }, labels: { job: 'app' } });
  const log = pino(stream);
  await oneByOne(async (order) => log.info({ order }, 'order arrived'), 10);
  await pause(500);
}

async function splunkLogging() {
  const { default: splunk } = await import('splunk-logging');
  const log = new splunk.Logger({ token: 'campaign-token', url, maxRetries: 10, maxBatchCount: 10 });
  log.error = (error) => console.log('error', String(error).slice(0, 200));
  await inBatches(async (batch) => batch.forEach((order) => log.send({ message: { order }, metadata: { sourcetype: 'app' } })));
  await pause(10000);
}

async function cloudevents(form) {
  const { CloudEvent, HTTP } = await import('cloudevents');
  const event = (order) => new CloudEvent({ type: 'com.example.order', source: '/shop', data: { order } });
  const post = (body, headers) => untilSent(async () => {
    const answer = await fetch(url, { method: 'POST', body, headers });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  });
  if (form === 'batch') {
    const headers = { 'content-type': 'application/cloudevents-batch+json' };
    await inBatches((batch) => post(JSON.stringify(batch.map(event)), headers));
    return;
  }
  await oneByOne((order) => {
    const { body, headers } = HTTP[form](event(order));
    return post(typeof body === 'string' ? body : JSON.stringify(body), headers);
  });
}

const senders = {
  'elastic-node': elasticsearch,
  'pino-elasticsearch': pinoElasticsearch,
  'opentelemetry-node-json': () => opentelemetry('http'),
  'opentelemetry-node-protobuf': () => opentelemetry('proto'),
  'segment-node': segment,
  'winston-loki': () => winstonLoki(false),
  'winston-loki-batches': () => winstonLoki(true),
  'pino-loki': pinoLoki,
  'splunk-logging': splunkLogging,
  'cloudevents-node-binary': () => cloudevents('binary'),
  'cloudevents-node-structured': () => cloudevents('structured'),
  'cloudevents-node-batch': () => cloudevents('batch'),
};

process.on('unhandledRejection', (error) => console.log('unhandled', String(error).slice(0, 200)));
await senders[process.argv[2]]();
console.log('done');
process.exit(0);
