// What surrounds each page: the header with the state of the instance, and the list of pages with counts.

import { get, logout, resource, session } from "./api.js";
import { age, count, number } from "./format.js";
import { live, now, problemsOf } from "./live.js";
import { go, instance, link, route } from "./router.js";
import { button, outside, pill, select } from "./ui.js";
import { computed, effect, h, signal, when } from "./view.js";

/**
 * A page of the console. `key` opens it; a writer has only those with `writer`.
 * @typedef {{ page: string, key: string, title: string, group: number, writer?: boolean, load: () => Promise<{ default: () => Node }>,
 *   badge?: () => Node | null }} Page
 */

/** How many problems the instance has; null before its first answer. */
export const problems = computed(() => (live.overview.value ? problemsOf(live.overview.value).length : null));

/** What is seen of the fleet; empty without peers. Asked every 10 s, for the choice of the instance. */
function peers() {
  const answer = resource((abort) => (session.value ? get("api/peers", { signal: abort, here: true }) : null), { every: 10_000 });
  return () => /** @type {import("../api").Peer[]} */ (answer.data.value?.peers ?? []);
}

function stateLink() {
  const state = computed(() => {
    const n = problems.value;
    if (n === null) return null;
    const findings = live.overview.value?.findings.length ?? 0;
    if (n > 0) return `bad ${count(n, "problem")}`;
    return findings > 0 ? `warn healthy, ${count(findings, "finding")}` : "ok healthy";
  });
  return () => {
    const [level = "", text = ""] = state.value?.split(/ (.*)/) ?? [];
    return state.value === null
      ? null
      : h("a", { href: link("overview"), class: "plain", "aria-label": `State: ${text}` }, pill(level, text));
  };
}

function liveState() {
  return h("span", { class: "pill none", role: "status" }, () => {
    if (live.isLive.value) return [h("span", { class: "live-dot on", "aria-hidden": "true" }), "live"];
    const since = live.since.value;
    return [
      h("span", { "aria-hidden": "true" }, "○"),
      since === null ? "connecting …" : () => `not live for ${age(new Date(since).toISOString(), now.value)}`,
    ];
  });
}

/** @returns {HTMLElement} */
function themeSwitch() {
  const theme = signal(localStorage.getItem("forebay-theme") ?? "auto");
  /** @type {Record<string, [sign: string, next: string]>} */
  const choices = { auto: ["◐", "light"], light: ["☀", "dark"], dark: ["☾", "auto"] };
  effect(() => {
    if (theme.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    localStorage.setItem("forebay-theme", theme.value);
  });
  const choice = () => choices[theme.value] ?? ["◐", "light"];
  return button(() => choice()[0], {
    kind: "quiet",
    onclick: () => {
      theme.value = choice()[1];
    },
    props: { "aria-label": () => `Colours: ${theme.value}. Change to ${choice()[1]}`, title: () => `Colours: ${theme.value}` },
  });
}

function viewer() {
  return () => {
    const now = session.value;
    if (!now?.needs_token || now.name === null) return null;
    return [
      h("span", { class: "where", title: now.may.includes("admin") ? "Scope admin" : "Scope read" }, outside(now.name, 64)),
      button("Log out", { small: true, kind: "quiet", onclick: logout }),
    ];
  };
}

/** @param {() => import("../api").Peer[]} all */
function instanceChoice(all) {
  const bound = {
    get value() {
      return instance.value ?? "";
    },
    set value(name) {
      go(link(route.peek().page, "", {}, name || null));
    },
    peek: () => instance.peek() ?? "",
  };
  const names = computed(() =>
    JSON.stringify(all().map((peer, i) => [i === 0 ? "" : peer.name, i === 0 ? `${peer.name} (this)` : peer.name])),
  );
  return when(
    () => all().length > 1 || instance.value !== null,
    () => select(bound, () => JSON.parse(names.value), { "aria-label": "Instance" }),
    () =>
      h("span", { class: "where" }, () => {
        const overview = live.overview.value;
        return overview ? [outside(overview.instance, 64), ` · ${overview.role} ${overview.version}`] : null;
      }),
  );
}

/**
 * @param {{ onMenu: () => void, menuOpen: () => boolean, find: HTMLInputElement, title: () => string }} options
 */
export function header(options) {
  const form = h(
    "form",
    {
      class: "find",
      role: "search",
      onsubmit: (/** @type {Event} */ e) => {
        e.preventDefault();
        const text = options.find.value.trim();
        if (text === "") return;
        options.find.value = "";
        options.find.blur();
        go(link("event", text));
      },
    },
    options.find,
    h("kbd", { "aria-hidden": "true" }, "/"),
  );
  return h(
    "header",
    { class: "top" },
    h(
      "a",
      { class: "brand", href: () => link("overview"), "aria-label": "Forebay, overview" },
      h("img", { src: "icon.svg", alt: "", width: 24, height: 24 }),
      h("span", null, "Forebay"),
    ),
    h("div", { class: "who" }, instanceChoice(peers()), stateLink()),
    form,
    liveState(),
    h("div", { class: "who" }, viewer(), themeSwitch()),
    button([() => options.title(), " ▾"], {
      onclick: options.onMenu,
      props: {
        class: "btn menu-button",
        "aria-expanded": () => String(options.menuOpen()),
        "aria-controls": "pages",
        "aria-label": () => `Pages; now: ${options.title()}`,
      },
    }),
  );
}

/** The field that finds an event. */
export function findField() {
  return h("input", {
    class: "in",
    type: "search",
    placeholder: "Find an event: id, key, position",
    "aria-label": "Find an event by id, key or position",
    autocomplete: "off",
    spellcheck: "false",
  });
}

/** Counts next to the pages. */
export const badges = {
  refused() {
    const n = live.overview.value?.totals.refused_per_min ?? 0;
    return n > 0 ? h("span", { class: "pill warn", title: "rejected in a minute" }, `${number(Math.round(n))}/min`) : null;
  },
  dead() {
    const n = (live.overview.value?.sinks ?? []).reduce((sum, sink) => sum + (sink.dead ?? 0), 0);
    return n > 0 ? h("span", { class: "pill bad" }, number(n)) : null;
  },
  sinks() {
    const n = (live.overview.value?.sinks ?? []).filter((sink) => !["active", "unused"].includes(sink.state)).length;
    return n > 0 ? h("span", { class: "pill bad", title: "sinks that do not deliver" }, `✕ ${n}`) : null;
  },
  health() {
    const n = live.overview.value?.findings.length ?? 0;
    return n > 0 ? h("span", { class: "pill warn", title: "findings" }, `▲ ${n}`) : null;
  },
};

/**
 * @param {() => Page[]} pages
 * @param {{ open: () => boolean, close: () => void }} menu
 */
export function navigation(pages, menu) {
  const current = () => (route.value.page === "event" ? "events" : route.value.page);
  const item = (/** @type {Page} */ page) =>
    h(
      "li",
      null,
      h(
        "a",
        {
          href: () => link(page.page),
          "aria-current": () => (current() === page.page ? "page" : null),
          "aria-keyshortcuts": page.key,
          onclick: menu.close,
        },
        h("span", null, page.title),
        () => page.badge?.() ?? h("kbd", { "aria-hidden": "true" }, page.key),
      ),
    );
  return h("nav", { class: () => (menu.open() ? "side open" : "side"), id: "pages", "aria-label": "Pages" }, () => {
    const all = pages();
    return [0, 1, 2].map((group) => {
      const some = all.filter((page) => page.group === group);
      return some.length > 0 ? h("ul", null, some.map(item)) : null;
    });
  });
}
