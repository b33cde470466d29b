// JSON as text. `JSON.parse` changes payloads: it rounds long numbers, drops duplicate members, and rewrites `1.50` as `1.5`. So the console
// keeps the payload of an event as the text that the server sent, and only indents it.

/** The index after the string that begins at `start`. @param {string} text @param {number} start */
function endOfString(text, start) {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return at + 1;
  }
}

/** The index after the value that begins at `start`. @param {string} text @param {number} start */
function endOfValue(text, start) {
  const first = text[start];
  if (first === '"') return endOfString(text, start);
  if (first !== "{" && first !== "[") {
    const end = /[,}\]\s]/g;
    end.lastIndex = start;
    return end.exec(text)?.index ?? text.length;
  }
  const mark = /["{}[\]]/g;
  mark.lastIndex = start;
  let depth = 0;
  for (let found = mark.exec(text); found; found = mark.exec(text)) {
    if (found[0] === '"') mark.lastIndex = endOfString(text, found.index);
    else if (found[0] === "{" || found[0] === "[") depth++;
    else if (--depth === 0) return mark.lastIndex;
  }
  return text.length;
}

/** The index of the next character that is no white space. @param {string} text @param {number} start */
function skipBlank(text, start) {
  let at = start;
  while (/\s/.test(text[at] ?? "x")) at++;
  return at;
}

/**
 * An answer of the server, with each member `payload` as the text that the server sent.
 * @param {string} text
 * @returns {any}
 */
export function parseKeepingPayloads(text) {
  /** @type {string[]} */
  const parts = [];
  let copied = 0;
  let at = text.indexOf('"');
  while (at >= 0) {
    let next = endOfString(text, at);
    if (next - at === 9 && text.startsWith('"payload"', at)) {
      const colon = skipBlank(text, next);
      if (text[colon] === ":") {
        const start = skipBlank(text, colon + 1);
        next = endOfValue(text, start);
        parts.push(text.slice(copied, start), JSON.stringify(text.slice(start, next)));
        copied = next;
      }
    }
    at = text.indexOf('"', next);
  }
  parts.push(text.slice(copied));
  return JSON.parse(parts.join(""));
}

/** The scalars, and containers without content, stay on one line. @type {RegExp} */
const TOKEN = /"|[{[]\s*[}\]]|[{}[\]:,]|[^\s"{}[\]:,]+/g;

/**
 * Indents JSON by two blanks. Digits, escapes and duplicate members stay unchanged. A text that isn't JSON comes back unchanged.
 * @param {string} text
 */
export function indent(text) {
  if (mistake(text) !== null) return text;
  /** @type {string[]} */
  const out = [];
  let depth = 0;
  const line = () => out.push("\n", "  ".repeat(depth));
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(text); found; found = TOKEN.exec(text)) {
    const token = found[0];
    if (token === '"') {
      const end = endOfString(text, found.index);
      out.push(text.slice(found.index, end));
      TOKEN.lastIndex = end;
    } else if (token === "{" || token === "[") {
      out.push(token);
      depth++;
      line();
    } else if (token === "}" || token === "]") {
      depth--;
      line();
      out.push(token);
    } else if (token === ",") {
      out.push(token);
      line();
    } else if (token === ":") out.push(": ");
    else out.push(/^[{[]/.test(token) ? token.replace(/\s/g, "") : token);
  }
  return out.join("");
}

/**
 * Why a text isn't JSON, or null if it is.
 * @param {string} text
 * @returns {string | null}
 */
export function mistake(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const position = / at position (\d+)/.exec(reason);
    if (!position) return reason;
    const before = text.slice(0, Number(position[1])).split("\n");
    const column = (before.at(-1) ?? "").length + 1;
    return `line ${before.length}, column ${column}: ${reason.replace(/(?: in JSON)? at position \d+.*$/, "")}`;
  }
}

/**
 * JSON without white space between its tokens. A text that isn't JSON comes back unchanged.
 * @param {string} text
 */
export function compactJson(text) {
  if (mistake(text) !== null) return text;
  /** @type {string[]} */
  const out = [];
  for (let at = 0; at < text.length; ) {
    const end = text[at] === '"' ? endOfString(text, at) : nextQuote(text, at);
    const part = text.slice(at, end);
    out.push(text[at] === '"' ? part : part.replace(/\s+/g, ""));
    at = end;
  }
  return out.join("");
}

/** @param {string} text @param {number} start */
function nextQuote(text, start) {
  const at = text.indexOf('"', start);
  return at < 0 ? text.length : at;
}
