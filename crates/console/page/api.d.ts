// The contract of the admin port: each answer of `/api` that the console reads. A test compares the answers of running servers with these
// types: `/** GET path */` above a type names the requests that it answers. Times are RFC 3339 in UTC. Numbers are JSON numbers below 2^53.

export type Time = string;

/** Every error. */
export interface Problem {
  status: number;
  code: string;
  detail: string;
}

// ---------------------------------------------------------------------------------------------------------------- Access

export type Scope = "read" | "admin";

/** GET /api/session, POST /api/session */
export interface Session {
  /** The name of the token; null if none is needed. */
  name: string | null;
  may: Scope[];
  /** Whether the port needs a token now. */
  needs_token: boolean;
  /** The half of the session for the header `Forebay-Check`. Only the answer to `POST` has it. */
  check?: string;
  /** Null without a session. */
  expires: Time | null;
}

/** GET /api/actions */
export interface Actions {
  /** The newest first, at most 256. */
  actions: Action[];
}
export interface Action {
  at: Time;
  /** "token anna", "loopback without token", "SIGHUP". */
  by: string;
  /** "dead replay", "dead drop", "dead edit", "route accept", "route drop", "reload", "log level", "profile". */
  action: string;
  /** The filter, sink or file. */
  target: string;
  /** "118 stored, 2 refused". */
  result: string;
}

// -------------------------------------------------------------------------------------------------------------- Overview

/** GET /api/overview, GET /api/live */
export interface Overview {
  n: number;
  at: Time;
  instance: string;
  role: "serve" | "gateway" | "writer";
  version: string;
  origin: string | null;
  ready: boolean;
  reason: string | null;
  /** What is wrong, the worst first: sinks, writers, ledger, dead letters, readiness. */
  problems: Finding[];
  /** What slowed the process down in the last minute. */
  findings: Finding[];
  totals: Totals;
  types: TypeRate[];
  types_more: number;
  sinks: SinkRate[];
  edges: Edge[];
  ledger: LedgerRow[];
  host: Host;
}
export interface Finding {
  code: string;
  level: "warning" | "error";
  since: Time | "";
  text: string;
  /** The address of the console's page about it, after `#/`: "sinks/search". */
  page?: string;
}
export interface Totals {
  accepted: number;
  accepted_per_s: number;
  bytes_per_s: number | null;
  refused_per_min: number;
  post_p99_ms: number | null;
  fsync_p99_ms: number | null;
  events_a_commit: number | null;
}
export interface TypeRate {
  type: string;
  accepted_per_s: number;
  refused_per_min: number;
  aggregate_of: string | null;
}
export type SinkState = "active" | "connecting" | "waiting" | "stopped" | "removed" | "failing" | "unused";
export interface SinkRate {
  sink: string;
  kind: string | null;
  state: SinkState;
  since: Time | null;
  reason: string | null;
  pending: number | null;
  oldest_s: number | null;
  stored_per_s: number;
  drains_in_s: number | null;
  batch_p99_ms: number | null;
  dead: number | null;
  server: string | null;
}
export interface Edge {
  type: string;
  sink: string;
  per_s: number;
}
export interface LedgerRow {
  type: string;
  sink: string;
  accepted: number;
  stored: number;
  dead: number;
  skipped: number;
  lost: number;
  pending: number;
  adds_up: boolean;
}
export interface Host {
  cpu?: number;
  cpu_limit?: number;
  throttled?: number;
  rss_bytes?: number;
  memory_limit?: number;
  disk_free_bytes?: number;
}

/** GET /api/history */
export interface History {
  /** Seconds between two points. */
  step_s: number;
  /** The time of the last point. The last value of each list is of this time; null where nothing was measured. */
  until: Time;
  totals: {
    accepted_per_s: (number | null)[];
    refused_per_min: (number | null)[];
    pending: (number | null)[];
    dead: (number | null)[];
    post_p99_ms: (number | null)[];
  };
  /** The 16 busiest. */
  types: { type: string; accepted_per_s: (number | null)[] }[];
  /** The 16 busiest. A writer's have only rates. */
  sinks: { sink: string; stored_per_s: (number | null)[]; pending: (number | null)[]; dead: (number | null)[] }[];
}

// ---------------------------------------------------------------------------------------------------------------- Events

/** GET /api/events/ID */
export interface StoredEvent {
  id: string;
  type: string;
  source: string;
  received_at: Time;
  payload?: unknown;
  payload_omitted?: true;
  payload_bytes?: number;
}

/** GET /api/events */
export interface Events {
  events: StoredEvent[];
  /** For the next page, as `cursor`; null at the end. A page may have a cursor and no events. */
  next: string | null;
  /** The sink that was asked. */
  sink: string;
  /** Events that were compared with the condition; without one those of the page. */
  looked_at: number;
  /** The receipt of the last event that was read: how far the page looked. Null if there was none. */
  looked_to: Time | null;
}

// A position, SHARD:SEQUENCE, may replace the id; by-key/story?key=&type=&source= asks by key.
/** GET /api/events/ID/story */
export interface Story {
  /** Empty if only its position is known. */
  id: string;
  type: string | null;
  /** "journal", "store warehouse", "progress", "dead letters of search", "quarantine refused". */
  known_from: string[];
  received: {
    at: Time | null;
    source: string | null;
    /** The client's address: only while the journal has the event, or a dead letter. */
    client: string | null;
    /** The key by which it was asked for. */
    asked_by_key: string | null;
    trace: string | null;
  };
  /** Null if its position isn't known. */
  journal: {
    position: string;
    durable_at: Time | null;
    events_in_block: number | null;
    still_there: boolean;
  } | null;
  rules: { config: Time | null; schema: string | null; steps: string[] } | null;
  sinks: SinkStory[];
  aggregates: { name: string; window: Time }[];
  payload?: unknown;
  payload_omitted?: true;
  payload_bytes?: number;
  /** Sentences. */
  not_known: string[];
}
export interface SinkStory {
  sink: string;
  outcome: "stored" | "pending" | "deferred" | "dead" | "dropped" | "skipped" | "lost" | "unknown";
  /** When; bounds if only they are known. Null: not known. */
  at: { from: Time; to: Time } | null;
  /** Events of the lane that come first, if it is pending. */
  before_it: number | null;
  /** Failures of the lane between the receipt and the outcome. */
  failures: Failure[];
  /** The writer that stored it, or else that of the last failed attempt. Null: not known, or the gateway writes to the store itself. */
  server: string | null;
  object: string | null;
  /** The false condition of a skipped event. */
  condition: string | null;
  reason: string | null;
  edits: { at: Time; by: string }[];
}
export interface Failure {
  from: Time;
  to: Time | null;
  tries: number;
  reason: string;
  server: string | null;
}
/** Where an event was looked for that isn't found. */
export interface NotFound extends Problem {
  looked_in: string[];
}

// --------------------------------------------------------------------------------------------------------------- Refused

/** GET /api/refused */
export interface Refused {
  /** The newest first, at most 256 are kept. */
  refused: Refusal[];
  /** Counts since the start of the process. */
  counts: { code: string; type: string; source: string; count: number }[];
  /** Rejections that aren't in the list because too many came at a time. */
  left_out: number;
}
export interface Refusal {
  at: Time;
  code: string;
  type: string;
  source: string;
  client: string;
  pointer: string | null;
  line: number | null;
  /** What to do, a sentence. */
  help: string;
  /** The type under which the event was stored instead. */
  refused_to: string | null;
}

// ---------------------------------------------------------------------------------------------------------- Dead letters

/** GET /api/dead, GET /api/dead/ID */
export interface DeadLetters {
  letters: DeadLetter[];
  more: boolean;
  lost: number;
  /** For the next page, as `cursor`; null at the end. By sink; the newest of each come first with `order=desc`. */
  next: string | null;
}
export interface DeadLetter {
  sink: string;
  id: string;
  type: string;
  source: string;
  client: string | null;
  received: Time;
  event_time: Time | null;
  position: string;
  reason: string;
  payload?: unknown;
}

/** GET /api/dead/groups */
export interface DeadGroups {
  groups: DeadGroup[];
  /** Groups beyond the 200 largest. */
  more: number;
}
export interface DeadGroup {
  sink: string;
  type: string;
  /** Quoted parts and words with digits are `…`. Pass it as `reason_group` to the other requests. */
  reason: string;
  letters: number;
  /** By the time of their receipt. */
  oldest: Time;
  newest: Time;
}

// `id` names one event, or up to 1,000 whose ids are separated by commas.
/** POST /api/dead/replay?dry_run=true, POST /api/dead/drop?dry_run=true */
export interface DeadPlan {
  letters: number;
  sinks: {
    sink: string;
    letters: number;
    /** "once": the store recognises events that it has; "again": it may store them twice. */
    repeatable: "once" | "again";
  }[];
}

/** POST /api/dead/replay, POST /api/dead/drop, PUT /api/dead/ID */
export interface DeadOutcomes {
  sinks: DeadOutcome[];
}
export interface DeadOutcome {
  sink: string;
  stored: number;
  refused: number;
  dropped: number;
  edited: number;
  left: number;
  failure: string | null;
}

/** POST with `Prefer: respond-async`: 202 */
export interface JobStarted {
  job: string;
}
/** GET /api/jobs */
export interface Jobs {
  /** The newest first, at most 64. */
  jobs: Job[];
}
/** GET /api/jobs/ID, DELETE /api/jobs/ID */
export interface Job {
  job: string;
  action: "replay" | "drop";
  /** The filter, for the operator: of many ids the first three. */
  filter: string;
  by: string;
  started: Time;
  ended: Time | null;
  state: "running" | "stopping" | "done" | "stopped" | "failed";
  /** Dead letters that it is to handle. */
  letters: number;
  sinks: DeadOutcome[];
}

// ----------------------------------------------------------------------------------------------------------------- Sinks

/** GET /api/sinks */
export interface Sinks {
  sinks: Sink[];
}
/** GET /api/sinks/NAME */
export interface Sink {
  sink: string;
  kind: string | null;
  state: SinkState;
  since: Time | null;
  reason: string | null;
  /** As in the configuration, with stars instead of secrets. */
  settings: { name: string; value: string }[];
  /** A writer has none. */
  lanes: LaneState[];
  /** The newest first, at most 64 of each lane. */
  failures: Failure[];
  /** The writers that the sink's batches go to. */
  servers: WriterServer[];
  /** Of a writer: its calls since the start, and the gateways that made them. */
  calls: { calls: number; failed: number; gateways: { name: string; last: Time }[] } | null;
}
export interface LaneState {
  lane: string;
  shard: number;
  state: string;
  since: Time;
  reason: string | null;
  backlog: number;
  oldest: Time | null;
  batches: number;
  retries: number;
}
export interface WriterServer {
  upstream: string;
  server: string;
  state: string;
  last_success: Time | null;
  reason: string | null;
  ejected_for: { sink: string; reason: string }[];
}
/** POST /api/sinks/NAME/test */
export interface SinkTest {
  ok: boolean;
  /** The error message of the store. */
  reason: string | null;
  took_ms: number;
}

/** GET /api/routes */
export interface Routes {
  routes: Route[];
}
export interface Route {
  type: string;
  sink: string;
  state: string;
  reason: string | null;
  since: Time | null;
  pending: number;
  stored: number;
  dead: number;
  skipped: number;
  deferred: number;
  last_deferred: { at: Time; reason: string } | null;
  lost: number;
  last_dead: { at: Time; reason: string } | null;
}
/**
 * POST /api/routes/drop?dry_run=true, POST /api/routes/accept?dry_run=true. `expect` is `events` for drop and `lanes` for accept: events
 * continue to arrive while a lane is stopped.
 */
export interface RoutePlan {
  /** Events that are discarded (drop), or delivered next (accept). */
  events: number;
  /** Lanes that resume. */
  lanes: number;
}

// ------------------------------------------------------------------------------------------------------ Types, aggregates

/** GET /api/types */
export interface Types {
  types: EventType[];
}
export interface EventType {
  type: string;
  aliases: string[];
  lowercase: boolean;
  id: string | null;
  partial: string;
  time: string | null;
  ack: string;
  ack_memory: boolean;
  routes: (string | { to: string; when: string })[];
  unstorable: "accept" | "reject" | "repair";
  aggregates: string[];
  read: string | null;
  refused_to?: string;
  schema: { path: string; formats: boolean } | null;
  transform: string[];
}

/** POST /api/try, POST /api/try/TYPE */
export interface Try {
  type?: string;
  json_microseconds: number;
  schema_microseconds?: number;
  steps: {
    step: number;
    operation: string;
    part?: number[];
    did: "done" | "not_met" | "skipped" | "refused" | "filtered" | "exploded";
    detail?: string;
    microseconds: number;
    payload?: unknown;
  }[];
  more_steps?: number;
  ids_microseconds?: number;
  stored: { id: string | null; time_unread?: string; payload: unknown; [way: string]: unknown }[];
  filtered: { step: number; operation: string }[];
  refused?: { [member: string]: unknown };
}

/** GET /api/aggregates */
export interface Aggregates {
  aggregates: Aggregate[];
}
export interface Aggregate {
  name: string;
  /** The type whose events it aggregates. */
  of: string;
  window_s: number;
  by: string[];
  /** Results are complete up to this event time; null before the first event. */
  watermark: Time | null;
  /** Events of the journal that it hasn't read yet. */
  lag: number;
  groups: number;
  bytes: number;
  bytes_max: number;
  late: number;
}
/** GET /api/aggregates/NAME/results */
export interface AggregateResults {
  /** The newest first, at most 200, as their store has them. */
  results: StoredEvent[];
  sink: string | null;
}

// ------------------------------------------------------------------------------------------------------------------- Tap

/** A line of GET /api/tap. */
export interface TapLine {
  n: number;
  at: "received" | "accepted" | "refused" | "stored" | "dead";
  time: Time;
  sink?: string;
  id?: string;
  type: string;
  source: string;
  position?: string;
  after_ms?: number;
  code?: string;
  reason?: string;
  pointer?: string;
  line?: number;
  bytes?: number;
  payload?: unknown;
  payload_head?: string;
}
export interface TapSum {
  sum: string;
  passed: number;
  looked_at: number;
  matched: number;
  shown: number;
  dropped: number;
}
/** A line of every stream, every 10 s. */
export interface Beat {
  beat: Time;
}

// ---------------------------------------------------------------------------------------------------------------- Health

/** GET /api/health */
export interface Health {
  findings: Finding[];
  host: Host;
}
/** GET /debug/memory */
export interface Memory {
  resident_bytes: number | null;
  limit_bytes: number | null;
  heap: { used_bytes: number; free_bytes: number } | null;
  owners: { owner: string; bytes: number; max_bytes: number }[];
}
/** GET /debug/shards */
export interface Shards {
  shards: {
    shard: number;
    connections: number;
    bytes_in_flight: number;
    long_requests: { arriving: number; processing: number; answering: number; longest_seconds: number } | null;
  }[];
}
/** GET /api/log, PUT /api/log */
export interface Log {
  level: "debug" | "info" | "warning" | "error";
  configured: string;
  until?: Time;
  lines?: string[];
}

// --------------------------------------------------------------------------------------------------------- Configuration

/** GET /api/config */
export interface Config {
  file: string | null;
  /** The file as it is now, with stars instead of secrets. */
  text: string | null;
  error: string | null;
  variables: string[];
  /** Where each setting of the running configuration comes from. */
  settings: { name: string; value: string; from: "file" | "environment" | "flag" | "default"; line: number | null }[];
  /** What a reload would find in the file now; empty: it is correct. */
  mistakes: { line: number | null; column: number | null; title: string; text: string }[];
  /** Whether the file differs from the running configuration. */
  changed: boolean;
  /** When the running configuration was loaded. */
  loaded: Time;
}
/** GET /api/config/history */
export interface ConfigHistory {
  /** The newest first, at most 64. */
  history: { at: Time; by: string; changes: string[] }[];
}
/** POST /api/reload?dry_run= */
export interface Reload {
  /** False in a dry run. */
  applied: boolean;
  file: string | null;
  changes: string[];
  warnings: string | null;
}

// ----------------------------------------------------------------------------------------------------------------- Fleet

/** GET /api/peers */
export interface Peers {
  /** This process first. */
  peers: Peer[];
}
export interface Peer {
  /** Host and port: requests to `/api/peers/NAME/api/…` go there. Of the process that answers: the name of its host. */
  name: string;
  /** Empty for the process that answers. */
  url: string;
  /** Whether it is the process that answers. */
  this: boolean;
  role: string | null;
  /** Its last answer. */
  seen: Time | null;
  error: string | null;
  /** Null until its first answer. */
  overview: Overview | null;
}
