// One stream of lines a tab. It is closed while the tab is hidden, since browsers open six connections to a host, and opened again when it
// breaks: within 2 s after a cut, at most every 5 s while the server is down.

import { ApiError, get, needsLogin, send } from "./api.js";
import { instance } from "./router.js";
import { batch, effect, onDispose, signal } from "./view.js";

/** @typedef {import("../api").Overview} Overview */
/** @typedef {"opening" | "live" | "broken" | "failed" | "closed"} StreamState */

/** Servers send a line every 10 s at least. */
const SILENCE_MS = 15_000;
const RETRY_MS = 300;
const MAX_RETRY_MS = 5_000;
/** For instances that have no stream. */
const POLL_MS = 3_000;

export const live = {
  /** The last state of the instance that is shown. @type {import("./view.js").Signal<Overview | null>} */
  overview: signal(/** @type {Overview | null} */ (null)),
  isLive: signal(false),
  /** When the last line arrived, in milliseconds; null before the first. @type {import("./view.js").Signal<number | null>} */
  since: signal(/** @type {number | null} */ (null)),
  /** Why there is no stream. @type {import("./view.js").Signal<Error | null>} */
  error: signal(/** @type {Error | null} */ (null)),
};

/** Whether the tab is hidden. */
export const hidden = signal(typeof document !== "undefined" && document.hidden);
/** The time in milliseconds, each second while the tab is visible. */
export const now = signal(Date.now());

/**
 * Reads the lines of one answer until it ends.
 * @param {Response} response
 * @param {(line: any) => void} onLine
 * @param {() => void} onData
 * @param {(text: string) => any} parse
 */
async function readLines(response, onLine, onData, parse) {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onData();
    rest += decoder.decode(value, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    batch(() => {
      for (const line of lines) if (line.trim() !== "") onLine(parse(line));
    });
  }
}

/**
 * Reads a stream of JSON lines until it is closed, and opens it again when it breaks. Beats are left out. A request that the server rejects
 * (4xx) isn't repeated: the state is "failed".
 * @param {string} path
 * @param {(line: any) => void} onLine
 * @param {{ query?: import("./router.js").Query, onState?: (state: StreamState, error?: Error) => void, parse?: (text: string) => any }} [options]
 * @returns {() => void} closes it
 */
export function stream(path, onLine, options = {}) {
  let closed = false;
  let failures = 0;
  /** @type {AbortController | null} */
  let abort = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let watchdog;
  const state = options.onState ?? (() => {});

  const open = async () => {
    const own = new AbortController();
    abort = own;
    const watch = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => own.abort(), SILENCE_MS);
    };
    state("opening");
    watch();
    /** @type {Error | undefined} */
    let reason;
    try {
      const response = await send("GET", path, undefined, {
        signal: own.signal,
        headers: { Accept: "application/x-ndjson" },
        ...(options.query ? { query: options.query } : {}),
      });
      const line = (/** @type {any} */ value) => {
        failures = 0;
        state("live");
        if (!("beat" in value)) onLine(value);
      };
      await readLines(response, line, watch, options.parse ?? JSON.parse);
    } catch (error) {
      reason = error instanceof Error ? error : new Error(String(error));
    }
    clearTimeout(watchdog);
    if (closed || abort !== own) return;
    own.abort();
    if (reason instanceof ApiError && reason.status >= 400 && reason.status < 500 && reason.status !== 429) {
      closed = true;
      state("failed", reason);
      return;
    }
    state("broken", reason);
    timer = setTimeout(open, Math.min(RETRY_MS * 2 ** failures++, MAX_RETRY_MS));
  };
  open();

  return () => {
    if (closed) return;
    closed = true;
    clearTimeout(timer);
    clearTimeout(watchdog);
    abort?.abort();
    state("closed");
  };
}

/**
 * What is wrong with an instance. An older version does not list it: then it follows from the states of its sinks.
 * @param {Overview} overview
 * @returns {import("../api").Finding[]}
 */
export function problemsOf({ problems, sinks, ready, reason }) {
  if (problems) return problems;
  const held = sinks.filter((sink) => ["waiting", "stopped", "failing", "removed"].includes(sink.state));
  return [
    ...(ready
      ? []
      : [{ code: "not_ready", level: /** @type {const} */ ("error"), since: "", text: `not ready: ${reason ?? "no reason is known"}` }]),
    ...held.map((sink) => ({
      code: `sink_${sink.state}`,
      level: /** @type {const} */ ("error"),
      since: sink.since ?? "",
      text: `sink ${sink.sink} is ${sink.state}${sink.reason ? `: ${sink.reason}` : ""}`,
      page: `sinks/${encodeURIComponent(sink.sink)}`,
    })),
  ];
}

/** @param {Overview} overview */
function arrived(overview) {
  live.overview.value = overview;
  live.isLive.value = true;
  live.since.value = Date.now();
  live.error.value = null;
}

/** @param {unknown} [error] */
function broken(error) {
  live.isLive.value = false;
  live.error.value = error instanceof Error ? error : null;
}

/** Asks for the overview every few seconds, for instances without the stream. */
function poll() {
  const abort = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const ask = async () => {
    try {
      arrived(await get("api/overview", { signal: abort.signal }));
    } catch (error) {
      if (!abort.signal.aborted) broken(error);
    }
    if (!abort.signal.aborted) timer = setTimeout(ask, POLL_MS);
  };
  ask();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}

/** Opens the live stream; it follows the instance that is shown, the session, and the visibility of the tab. */
export function startLive() {
  document.addEventListener("visibilitychange", () => {
    hidden.value = document.hidden;
    now.value = Date.now();
  });
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 1000);
  effect(() => {
    instance.value;
    batch(() => {
      live.overview.value = null;
      live.since.value = null;
    });
  });
  effect(() => {
    instance.value;
    if (needsLogin.value || hidden.value) {
      broken();
      return;
    }
    let close = stream("api/live", arrived, {
      onState(state, error) {
        if (state === "failed" && error instanceof ApiError && (error.status === 404 || error.status === 405)) close = poll();
        else if (state === "broken" || state === "failed") broken(error);
      },
    });
    onDispose(() => close());
  });
}
