// Requests to the admin port. Paths are relative to the page ("api/overview", "debug/memory"), so any proxy's prefix works.

import { instance } from "./router.js";
import { effect, onDispose, signal, untracked } from "./view.js";

/** @typedef {import("../api").Session} Session */
/** @typedef {{ signal?: AbortSignal, query?: import("./router.js").Query, here?: boolean, at?: string, headers?: Record<string, string> }} Options */

/** An answer that isn't 2xx, or no answer: then `status` is 0. */
export class ApiError extends Error {
  /** @param {number} status @param {string} code @param {string} detail @param {unknown} [body] */
  constructor(status, code, detail, body) {
    super(detail);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.detail = detail;
    /** The whole answer. */
    this.body = body;
  }
}

/** The viewer. Null before the first answer. @type {import("./view.js").Signal<Session | null>} */
export const session = signal(/** @type {Session | null} */ (null));
/** Whether the port asks for a token now. */
export const needsLogin = signal(false);

const base = typeof document === "undefined" ? "http://localhost/" : new URL(".", document.baseURI).href;
const CHECK_KEY = `forebay-check ${base}`;

/**
 * Whether the viewer's token has a scope. Reactive.
 * @param {import("../api").Scope} scope
 */
export function may(scope) {
  return session.value?.may.includes(scope) ?? false;
}

/** Why the viewer may not act; null if they may. Reactive. For `button({disabledBecause})`. */
export function adminReason() {
  return may("admin") ? null : "This needs a token with the scope admin.";
}

/**
 * @param {string} path
 * @param {Options} [options]
 */
export function address(path, options) {
  // `at` names a peer, whichever instance the pages show.
  const name = options?.here ? null : (options?.at ?? untracked(() => instance.value));
  const url = new URL(name === null ? path : `api/peers/${encodeURIComponent(name)}/${path}`, base);
  for (const [key, value] of Object.entries(options?.query ?? {})) {
    if (value !== null && value !== undefined && value !== "" && value !== false) url.searchParams.set(key, String(value));
  }
  // The server reads `+` as itself.
  url.search = url.search.replaceAll("+", "%20");
  return url.href;
}

/**
 * Sends a request with the session; answers other than 2xx throw.
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {Options} options
 * @returns {Promise<Response>}
 */
export async function send(method, path, body, options) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json", ...options.headers };
  const check = localStorage.getItem(CHECK_KEY);
  if (check && !headers.Authorization) headers["Forebay-Check"] = check;
  if (body !== undefined && !headers["Content-Type"]) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(address(path, options), {
      method,
      headers,
      body: body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body),
      cache: "no-store",
      credentials: "same-origin",
      signal: options.signal ?? null,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "no_answer", "The server did not answer. Check that it runs and that the network reaches it.");
  }
  if (response.ok) return response;
  const problem = (await response.json().catch(() => null)) ?? {};
  if (response.status === 401 && !headers.Authorization) needsLogin.value = true;
  const text =
    [problem.title, problem.detail].filter(Boolean).join(": ") || `The server answered ${response.status} ${response.statusText}`;
  throw new ApiError(response.status, String(problem.code ?? ""), text, problem);
}

/** @param {Response} response */
async function read(response) {
  if (response.status === 204) return null;
  const text = await response.text();
  return text === "" ? null : JSON.parse(text);
}

/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const get = async (path, options = {}) => read(await send("GET", path, undefined, options));
/** @param {string} path @param {unknown} [body] @param {Record<string, string>} [headers] @param {Options} [options] @returns {Promise<any>} */
export const post = async (path, body, headers, options) => read(await send("POST", path, body, { ...options, headers: { ...headers } }));
/** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] @returns {Promise<any>} */
export const put = async (path, body, headers) => read(await send("PUT", path, body, { headers: { ...headers } }));
/** @param {string} path @param {Options} [options] @returns {Promise<any>} */
export const del = async (path, options = {}) => read(await send("DELETE", path, undefined, options));

/** Asks for the viewer. Older versions have no sessions: then all may act, as their port answers without tokens. */
export async function loadSession() {
  try {
    session.value = await get("api/session", { here: true });
    needsLogin.value = false;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) {
      session.value = { name: null, may: ["read", "admin"], needs_token: false, expires: null };
    } else throw error;
  }
}

/**
 * Exchanges a token for a session. The token isn't kept.
 * @param {string} token
 */
export async function login(token) {
  /** @type {Session} */
  const answer = await post("api/session", undefined, { Authorization: `Bearer ${token}` }, { here: true });
  if (answer.check) localStorage.setItem(CHECK_KEY, answer.check);
  session.value = answer;
  needsLogin.value = false;
}

export async function logout() {
  await del("api/session", { here: true }).catch(() => null);
  localStorage.removeItem(CHECK_KEY);
  session.value = null;
  needsLogin.value = true;
}

if (typeof window !== "undefined") {
  // Another tab logged in or out.
  window.addEventListener("storage", (event) => {
    if (event.key === CHECK_KEY) loadSession().catch(() => null);
  });
}

/**
 * An answer that a page shows: `data` is the last one, `error` why the last request failed (null after a success).
 * @template T
 * @typedef {{ data: import("./view.js").Readable<T | null>, error: import("./view.js").Readable<Error | null>,
 *   loading: import("./view.js").Readable<boolean>, reload: () => void }} Resource
 */

/**
 * Fetches now, again when a signal that the function reads before its first `await` changes, and every `every` milliseconds while the page is
 * visible. A slower answer never replaces a later one. Ends with its scope.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T> | null} fetcher null: nothing to ask
 * @param {{ every?: number }} [options]
 * @returns {Resource<T>}
 */
export function resource(fetcher, options = {}) {
  const data = signal(/** @type {T | null} */ (null));
  const error = signal(/** @type {Error | null} */ (null));
  const loading = signal(false);
  const again = signal(0);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const later = () => {
    if (!options.every) return;
    timer = setTimeout(() => (document.hidden ? later() : again.value++), options.every);
  };
  effect(() => {
    again.value;
    const abort = new AbortController();
    onDispose(() => {
      abort.abort();
      clearTimeout(timer);
    });
    const answer = fetcher(abort.signal);
    if (!answer) {
      untracked(() => (data.value = null));
      return;
    }
    loading.value = true;
    answer
      .then(
        (value) => {
          if (abort.signal.aborted) return;
          // An equal answer changes nothing: parts of the page with the focus, a scroll position or a selection stay.
          if (JSON.stringify(value) !== JSON.stringify(data.peek())) data.value = value;
          error.value = null;
        },
        (reason) => {
          if (abort.signal.aborted) return;
          error.value = reason instanceof Error ? reason : new Error(String(reason));
        },
      )
      .finally(() => {
        if (abort.signal.aborted) return;
        loading.value = false;
        later();
      });
  });
  return { data, error, loading, reload: () => again.value++ };
}
