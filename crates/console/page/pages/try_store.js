// The payload that the next visit of "Types, try it" begins with. It is too long for an address.

/** @type {string | null} */
let kept = null;

/** @param {string} payload */
export function tryWith(payload) {
  kept = payload;
}

/** The payload, once. */
export function takePayload() {
  const payload = kept;
  kept = null;
  return payload;
}
