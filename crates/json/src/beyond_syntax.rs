//! Checks that serde_json doesn't make, on texts that it has accepted. Each search begins with a filter in vector
//! instructions; the exact check runs only if the filter finds something.

/// The offset of the first array or object that is deeper than `depth_max`.
#[must_use]
pub fn too_deep(json: &[u8], depth_max: usize) -> Option<usize> {
    // Each level begins with one of these; in strings they count as well, which only costs the exact check.
    memchr::memchr2_iter(b'[', b'{', json).nth(depth_max)?;
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

/// The offset of the first escape after `from` that names half of a surrogate pair without its other half.
pub(super) fn lone_surrogate(json: &[u8], mut from: usize) -> Option<usize> {
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
