// Signals and elements. A signal holds a value; functions given to `h` as properties or children run again when a signal that they read
// changes. Every effect belongs to the scope in which it was created, and ends with it.

/**
 * A value that can be read; reading `value` inside an effect subscribes to it.
 * @template T
 * @typedef {{ readonly value: T, peek(): T }} Readable
 */
/**
 * @template T
 * @typedef {{ value: T, peek(): T }} Signal
 */
/** @typedef {string | number | bigint | boolean | null | undefined | Node | (() => unknown) | readonly unknown[]} Child */
/** @typedef {{ [name: string]: any }} Props */

const CLEAN = 0;
const CHECK = 1;
const DIRTY = 2;

/** The cell that is computed now: cells that are read become its sources. @type {Cell | null} */
let observer = null;
/** Functions to call when the scope that is built now ends. @type {(() => void)[] | null} */
let owner = null;
let batches = 0;
/** @type {Cell[]} */
let queue = [];

/** A node of the graph: a signal (no function), a computed value, or an effect. */
class Cell {
  /** @type {any} */
  value = undefined;
  /** @type {(() => any) | null} */
  fn;
  state = CLEAN;
  isEffect;
  /** @type {Set<Cell>} */
  observers = new Set();
  /** @type {Set<Cell>} */
  sources = new Set();
  /** @type {(() => void)[]} */
  owned = [];

  /** @param {(() => any) | null} fn @param {any} value @param {boolean} isEffect */
  constructor(fn, value, isEffect) {
    this.fn = fn;
    this.value = value;
    this.isEffect = isEffect;
    if (fn) {
      this.state = DIRTY;
      owner?.push(() => this.dispose());
    }
  }

  read() {
    if (observer) {
      observer.sources.add(this);
      this.observers.add(observer);
    }
    this.refresh();
    return this.value;
  }

  /** @param {any} value */
  write(value) {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const one of this.observers) one.mark(DIRTY);
    if (batches === 0) flush();
  }

  /** @param {number} state */
  mark(state) {
    if (this.state >= state) return;
    const wasClean = this.state === CLEAN;
    this.state = state;
    if (!wasClean) return;
    if (this.isEffect) queue.push(this);
    for (const one of this.observers) one.mark(CHECK);
  }

  refresh() {
    if (this.state === CHECK) {
      for (const source of this.sources) {
        source.refresh();
        if (/** @type {number} */ (this.state) === DIRTY) break;
      }
    }
    if (this.state === DIRTY) this.run();
    this.state = CLEAN;
  }

  run() {
    const { fn } = this;
    if (!fn) return;
    this.release();
    const [outerObserver, outerOwner] = [observer, owner];
    observer = this;
    owner = this.owned;
    this.state = CLEAN;
    try {
      const value = fn();
      if (!this.isEffect && !Object.is(value, this.value)) {
        this.value = value;
        for (const one of this.observers) one.state = DIRTY;
      }
    } finally {
      observer = outerObserver;
      owner = outerOwner;
    }
  }

  /** Ends what the last run has created and read. */
  release() {
    const owned = this.owned;
    this.owned = [];
    for (let i = owned.length - 1; i >= 0; i--) owned[i]?.();
    for (const source of this.sources) source.observers.delete(this);
    this.sources.clear();
  }

  dispose() {
    this.release();
    this.fn = null;
    this.state = CLEAN;
  }
}

function flush() {
  batches++;
  try {
    for (let rounds = 0; queue.length > 0; rounds++) {
      if (rounds > 100) throw new Error("effects change the signals that they read");
      const now = queue;
      queue = [];
      for (const cell of now) {
        try {
          cell.refresh();
        } catch (error) {
          console.error(error);
        }
      }
    }
  } finally {
    batches--;
  }
}

/**
 * A value that can change. Reads inside effects subscribe; a write runs them.
 * @template T
 * @param {T} value
 * @returns {Signal<T>}
 */
export function signal(value) {
  const cell = new Cell(null, value, false);
  return {
    get value() {
      return cell.read();
    },
    set value(next) {
      cell.write(next);
    },
    peek: () => cell.value,
  };
}

/**
 * A value that follows from others; computed when it is read, once for each change.
 * @template T
 * @param {() => T} fn
 * @returns {Readable<T>}
 */
export function computed(fn) {
  const cell = new Cell(fn, undefined, false);
  return {
    get value() {
      return cell.read();
    },
    peek: () => untracked(() => cell.read()),
  };
}

/**
 * Runs a function now, and again when a signal that it read changes.
 * @param {() => void} fn
 * @returns {() => void} ends it
 */
export function effect(fn) {
  const cell = new Cell(fn, undefined, true);
  cell.refresh();
  return () => cell.dispose();
}

/**
 * Runs a function whose writes take effect together.
 * @template T
 * @param {() => T} fn
 * @returns {T}
 */
export function batch(fn) {
  batches++;
  try {
    return fn();
  } finally {
    batches--;
    if (batches === 0) flush();
  }
}

/**
 * Runs a function whose reads subscribe to nothing.
 * @template T
 * @param {() => T} fn
 * @returns {T}
 */
export function untracked(fn) {
  const outer = observer;
  observer = null;
  try {
    return fn();
  } finally {
    observer = outer;
  }
}

/**
 * Calls a function when the current scope ends: a page that is left, a row that is removed, an effect that runs again.
 * @param {() => void} fn
 */
export function onDispose(fn) {
  owner?.push(fn);
}

/**
 * Builds a part of the page whose effects end together. Its reads subscribe to nothing, unless it is `tracked`.
 * @template T
 * @param {() => T} fn
 * @param {boolean} [tracked]
 * @returns {{ node: T, dispose: () => void }}
 */
export function scope(fn, tracked = false) {
  /** @type {(() => void)[]} */
  const owned = [];
  const outer = owner;
  owner = owned;
  try {
    const node = tracked ? fn() : untracked(fn);
    return {
      node,
      dispose() {
        for (const end of owned.splice(0).reverse()) end();
      },
    };
  } finally {
    owner = outer;
  }
}

// ------------------------------------------------------------------------------------------------------------- Elements

/** Set as properties, since the attribute is only their first value. */
const PROPERTIES = new Set(["value", "checked", "indeterminate", "selected", "muted"]);

/** @param {Element} element @param {string} name @param {any} value */
function setProp(element, name, value) {
  if (PROPERTIES.has(name)) {
    const target = /** @type {any} */ (element);
    if (target[name] !== value) target[name] = value ?? "";
  } else if (value === false || value === null || value === undefined) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** @param {HTMLElement | SVGElement} element @param {Record<string, any>} style */
function setStyle(element, style) {
  for (const [name, value] of Object.entries(style)) {
    const css = name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
    if (typeof value === "function") effect(() => element.style.setProperty(css, String(value() ?? "")));
    else if (value !== null && value !== undefined) element.style.setProperty(css, String(value));
  }
}

/** @param {HTMLElement | SVGElement} element @param {Props} props */
function setProps(element, props) {
  let late = /** @type {[string, any][]} */ ([]);
  for (const [name, value] of Object.entries(props)) {
    if (name === "ref") value(element);
    else if (name === "style") setStyle(element, value);
    else if (name.startsWith("on")) {
      if (value) element.addEventListener(name.slice(2), value);
    } else if (PROPERTIES.has(name)) late.push([name, value]);
    else if (typeof value === "function") effect(() => setProp(element, name, value()));
    else setProp(element, name, value);
  }
  return () => {
    // The value of a <select> needs its options first.
    for (const [name, value] of late) {
      if (typeof value === "function") effect(() => setProp(element, name, value()));
      else setProp(element, name, value);
    }
    late = [];
  };
}

/**
 * An HTML element. Properties: `class`, `onclick` and other listeners, `style` as an object, `ref` (gets the element), attributes; a function
 * as a value is reactive. Children: text, nodes, arrays, and functions that give one of them.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...unknown} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  const late = props ? setProps(element, props) : null;
  for (const child of children) append(element, child);
  late?.();
  return element;
}

/**
 * The same for SVG.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Props | null} [props]
 * @param {...unknown} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, props, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (props) setProps(element, props)();
  for (const child of children) append(element, child);
  return element;
}

/** Adds a child as `h` does. @param {Node} parent @param {unknown} child */
export function append(parent, child) {
  if (child === null || child === undefined || child === false || child === true) return;
  if (Array.isArray(child)) for (const one of child) append(parent, one);
  else if (child instanceof Node) parent.appendChild(child);
  else if (typeof child === "function") parent.appendChild(dynamic(/** @type {() => unknown} */ (child)));
  else parent.appendChild(document.createTextNode(String(child)));
}

/** A pair of markers in the tree; what is between them changes. */
function region() {
  const start = document.createComment("");
  const end = document.createComment("");
  const fragment = document.createDocumentFragment();
  fragment.append(start, end);
  return { start, end, fragment };
}

/** @param {Comment} start @param {Comment} end */
function clear(start, end) {
  while (start.nextSibling && start.nextSibling !== end) start.nextSibling.remove();
}

/** @param {() => unknown} fn */
function dynamic(fn) {
  const { start, end, fragment } = region();
  /** @type {Text | null} */
  let text = null;
  effect(() => {
    const value = fn();
    if (typeof value === "string" || typeof value === "number") {
      if (text) {
        if (text.data !== String(value)) text.data = String(value);
        return;
      }
      clear(start, end);
      text = document.createTextNode(String(value));
      end.parentNode?.insertBefore(text, end);
      return;
    }
    text = null;
    clear(start, end);
    const holder = document.createDocumentFragment();
    append(holder, value);
    end.parentNode?.insertBefore(holder, end);
  });
  return fragment;
}

/**
 * One of two parts, built again only when the condition changes between true and false.
 * @param {() => unknown} condFn
 * @param {() => unknown} thenFn
 * @param {() => unknown} [elseFn]
 * @returns {Node}
 */
export function when(condFn, thenFn, elseFn) {
  const is = computed(() => Boolean(condFn()));
  return dynamic(() => {
    const yes = is.value;
    return untracked(() => (yes ? thenFn() : elseFn?.()));
  });
}

/**
 * A list whose elements are kept and moved by their keys. `renderFn` runs once for each key and gets a signal of the item.
 * @template T
 * @param {() => readonly T[]} itemsFn
 * @param {(item: T, index: number) => string | number} keyFn
 * @param {(item: Readable<T>, index: Readable<number>) => Element} renderFn
 * @returns {Node}
 */
export function list(itemsFn, keyFn, renderFn) {
  const { end, fragment } = region();
  /** @typedef {{ item: Signal<T>, index: Signal<number>, node: Element, dispose: () => void }} Entry */
  /** @type {Map<string, Entry>} */
  let entries = new Map();
  onDispose(() => {
    for (const entry of entries.values()) entry.dispose();
  });
  effect(() => {
    const items = itemsFn();
    untracked(() =>
      batch(() => {
        /** @type {Map<string, Entry>} */
        const next = new Map();
        for (const [i, item] of items.entries()) {
          let key = String(keyFn(item, i));
          while (next.has(key)) key += "\u0000";
          let entry = entries.get(key);
          if (entry) {
            entry.item.value = item;
            entry.index.value = i;
          } else {
            const [one, index] = [signal(item), signal(i)];
            entry = { item: one, index, ...detached(() => renderFn(one, index)) };
          }
          next.set(key, entry);
        }
        for (const [key, entry] of entries) {
          if (next.has(key)) continue;
          entry.dispose();
          entry.node.remove();
        }
        const parent = end.parentNode;
        let after = /** @type {Node} */ (end);
        for (const entry of [...next.values()].reverse()) {
          if (entry.node.nextSibling !== after || entry.node.parentNode !== parent) parent?.insertBefore(entry.node, after);
          after = entry.node;
        }
        entries = next;
      }),
    );
  });
  return fragment;
}

/** A scope that no outer scope ends. @template T @param {() => T} fn */
function detached(fn) {
  const outer = owner;
  owner = null;
  try {
    return scope(fn);
  } finally {
    owner = outer;
  }
}
