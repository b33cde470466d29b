//! What serde_json leaves unchecked, looked for in texts that it has accepted. Each search begins with a
//! filter that the compiler turns into vector instructions; the exact look comes only where the filter finds
//! something.

use event::limits::JSON_DEPTH_MAX;

/// Where the first array or object stands that is deeper than `depth_max`, which is [`JSON_DEPTH_MAX`] or more.
pub(super) fn too_deep(json: &[u8], depth_max: usize) -> Option<usize> {
    // Each level has two bytes, one at either end.
    if json.len() <= 2 * depth_max || openers(json) <= depth_max {
        return None;
    }
    let (mut depth, mut in_string, mut at) = (0_usize, false, 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > depth_max {
                    return Some(at);
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// A whole number of vectors, and few enough bytes that a counter of eight bits can't overflow.
const STRIDE: usize = 64;
const _: () = assert!(STRIDE <= u8::MAX as usize, "a counter of eight bits counts a stride");
const _: () = assert!(STRIDE <= JSON_DEPTH_MAX, "what follows the deepest opener fills the uncounted rest");

/// How many `[` and `{` there are, in strings or not, in all whole strides. The rest needs no look: where a text
/// is too deep, more closers than a rest has bytes follow the last opener that makes it so.
fn openers(json: &[u8]) -> usize {
    let (strides, _) = json.as_chunks::<STRIDE>();
    strides.iter().map(|stride| usize::from(openers_of_stride(stride))).sum()
}

fn openers_of_stride(stride: &[u8; STRIDE]) -> u8 {
    stride.iter().map(|byte| u8::from(is_opener(*byte))).sum()
}

/// `[` and `{` differ in one bit, and no other byte becomes `{` by it.
const fn is_opener(byte: u8) -> bool {
    byte | 0x20 == b'{'
}

/// Where the first escape stands that names half of a surrogate pair without its other half.
pub(super) fn lone_surrogate(json: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'\\', &json[from..]) {
        let at = from + found;
        from = at
            + match escaped_unit(&json[at..]) {
                None => 2,
                Some(0xd800..=0xdbff) => match escaped_unit(&json[at + 6..]) {
                    Some(0xdc00..=0xdfff) => 12,
                    _ => return Some(at),
                },
                Some(0xdc00..=0xdfff) => return Some(at),
                Some(_) => 6,
            };
    }
    None
}

/// The UTF-16 unit that the text begins with, if it begins with a `\u` escape.
fn escaped_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
