// The entry: header, pages, keys. A page is built when its address is shown, and disposed when another one is.

import { loadSession, login, needsLogin, session } from "./lib/api.js";
import { startKeys } from "./lib/keys.js";
import { live, startLive } from "./lib/live.js";
import { instance, link, route } from "./lib/router.js";
import { badges, findField, header, navigation, problems } from "./lib/shell.js";
import { button, empty, errorBox, field, outside, pageHead } from "./lib/ui.js";
import { computed, effect, h, scope, signal, untracked } from "./lib/view.js";

/** @type {import("./lib/shell.js").Page[]} */
const PAGES = [
  { page: "overview", key: "o", title: "Overview", group: 0, writer: true, load: () => import("./pages/overview.js") },
  { page: "events", key: "e", title: "Events", group: 0, load: () => import("./pages/events.js") },
  { page: "refused", key: "r", title: "Rejected", group: 0, load: () => import("./pages/refused.js"), badge: badges.refused },
  { page: "dead", key: "d", title: "Dead letters", group: 0, load: () => import("./pages/dead.js"), badge: badges.dead },
  { page: "types", key: "t", title: "Types, try it", group: 1, load: () => import("./pages/types.js") },
  { page: "sinks", key: "s", title: "Sinks, routes", group: 1, writer: true, load: () => import("./pages/sinks.js"), badge: badges.sinks },
  { page: "aggregates", key: "a", title: "Aggregates", group: 1, load: () => import("./pages/aggregates.js") },
  { page: "tap", key: "p", title: "Tap", group: 1, writer: true, load: () => import("./pages/tap.js") },
  {
    page: "health",
    key: "h",
    title: "Health, profile",
    group: 2,
    writer: true,
    load: () => import("./pages/health.js"),
    badge: badges.health,
  },
  { page: "config", key: "c", title: "Configuration", group: 2, writer: true, load: () => import("./pages/config.js") },
  { page: "fleet", key: "f", title: "Fleet", group: 2, writer: true, load: () => import("./pages/fleet.js") },
];
/** Pages without an entry in the list. @type {Record<string, () => Promise<{ default: () => Node }>>} */
const OTHERS = { event: () => import("./pages/event.js") };

const isWriter = computed(() => live.overview.value?.role === "writer");
const visible = () => PAGES.filter((page) => !isWriter.value || page.writer);

/** The title of the current page. */
const title = () => PAGES.find((page) => page.page === route.value.page)?.title ?? (route.value.page === "event" ? "Event" : "Not found");

function loginView() {
  const reason = signal(/** @type {string | null} */ (null));
  const token = h("input", { class: "in", type: "password", autocomplete: "off", required: true, id: "token" });
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    const value = token.value.trim();
    token.value = "";
    try {
      await login(value);
    } catch (error) {
      reason.value = error instanceof Error ? error.message : String(error);
      token.focus();
    }
  };
  queueMicrotask(() => token.focus());
  return h(
    "div",
    { class: "login card" },
    h("h1", null, "Log in"),
    h("p", { class: "mu" }, "This admin port needs a token with the scope read or admin. Create one with:"),
    h("pre", { class: "wrap", tabindex: "0" }, "forebay token new NAME --scope admin"),
    h(
      "form",
      { onsubmit: submit },
      field("Token", token, { help: "The console does not keep the token.", error: () => reason.value }),
      button("Log in", { kind: "primary", props: { type: "submit" } }),
    ),
  );
}

/** @param {string} page */
function notFound(page) {
  return h(
    "div",
    { class: "page" },
    pageHead("Not found"),
    empty(["There is no page ", outside(page, 80), "."]),
    h("a", { href: link("overview") }, "Overview"),
  );
}

/** Shows the page of the address. @param {HTMLElement} main */
function showPages(main) {
  const page = computed(() => route.value.page);
  let first = true;
  /** @type {(() => void) | null} */
  let leave = null;
  let shown = 0;
  /** @param {() => Node} build */
  const show = (build) => {
    leave?.();
    const next = scope(() => {
      try {
        return build();
      } catch (error) {
        console.error(error);
        return errorBox(error);
      }
    });
    leave = next.dispose;
    main.replaceChildren(next.node);
    if (next.node instanceof Element) next.node.classList.add("page");
    if (!first) {
      window.scrollTo(0, 0);
      main.querySelector("h1")?.focus({ preventScroll: true });
    }
    first = false;
  };
  effect(() => {
    const name = page.value;
    instance.value;
    const turn = ++shown;
    if (needsLogin.value) {
      untracked(() => show(loginView));
      return;
    }
    const load = PAGES.find((one) => one.page === name)?.load ?? OTHERS[name];
    if (!load) {
      untracked(() => show(() => notFound(name)));
      return;
    }
    load().then(
      (module) => turn === shown && show(module.default),
      (error) => turn === shown && show(() => errorBox(error)),
    );
  });
}

function start() {
  const menuOpen = signal(false);
  const menu = { open: () => menuOpen.value, close: () => (menuOpen.value = false) };
  const find = findField();
  const main = h("main", { id: "main", tabindex: "-1" });
  document.body.replaceChildren(
    h(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (/** @type {Event} */ e) => {
          e.preventDefault();
          main.focus();
        },
      },
      "Skip to content",
    ),
    header({ onMenu: () => (menuOpen.value = !menuOpen.peek()), menuOpen: menu.open, find, title }),
    navigation(visible, menu),
    main,
  );
  effect(() => {
    const n = problems.value ?? 0;
    document.title = `${n > 0 ? `(${n}) ` : ""}${title()} · ${live.overview.value?.instance ?? "Forebay"}`;
  });
  startKeys({ pages: visible, find: () => find.focus() });
  startLive();
  showPages(main);
  // Again when the server is back: without a session nothing can be changed.
  effect(() => {
    if (live.isLive.value || session.peek() === null) untracked(() => loadSession().catch(() => null));
  });
}

start();
