//! The ends of the parts of a JSON text. The text was checked: nothing is checked again here. In an unchecked text a
//! wrong end may be found, but never one beyond the text.

/// The offset of the first byte from `at` on that is no white space.
#[must_use]
pub fn skip_blanks(json: &[u8], mut at: usize) -> usize {
    while matches!(json.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// The offset after the value that begins at `at`.
#[must_use]
pub fn value_end(json: &[u8], at: usize) -> usize {
    match json.get(at) {
        Some(b'"') => string_end(json, at).0,
        Some(b'{' | b'[') => container_end(json, at),
        _ => scalar_end(json, at),
    }
}

/// The offset after the string that begins at `at`, and whether there are escapes in it.
#[must_use]
pub fn string_end(json: &[u8], at: usize) -> (usize, bool) {
    let (mut end, mut escaped) = (at + 1, false);
    loop {
        end += text_length(json.get(end..).unwrap_or_default());
        match json.get(end) {
            Some(b'"') => return (end + 1, escaped),
            Some(_) => (end, escaped) = (end + 2, true),
            None => return (json.len(), escaped),
        }
    }
}

/// How many bytes are before the next quote or backslash. Most strings are short: for them, eight bytes at a time are
/// quicker than a search that would be quicker in longer ones.
fn text_length(text: &[u8]) -> usize {
    let (words, _) = text.as_chunks::<WORD>();
    for (number, word) in words.iter().enumerate().take(SHORT) {
        let word = u64::from_le_bytes(*word);
        let found = zero_bytes(word ^ QUOTES) | zero_bytes(word ^ BACKSLASHES);
        if found != 0 {
            return number * WORD + found.trailing_zeros() as usize / 8;
        }
    }
    let from = words.len().min(SHORT) * WORD;
    from + memchr::memchr2(b'"', b'\\', &text[from..]).unwrap_or(text.len() - from)
}

const WORD: usize = 8;
const SHORT: usize = 4;
const EACH: u64 = 0x0101_0101_0101_0101;
const QUOTES: u64 = EACH * b'"' as u64;
const BACKSLASHES: u64 = EACH * b'\\' as u64;

/// The highest bit of the first zero byte, and possibly of some later ones.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(EACH) & !word & (EACH << 7)
}

fn scalar_end(json: &[u8], at: usize) -> usize {
    let is_part = |byte: &u8| !matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
    json.get(at..).map_or(json.len(), |rest| at + rest.iter().take_while(|byte| is_part(byte)).count())
}

fn container_end(json: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at = string_end(json, at).0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    json.len()
}

/// Whether the array or object that begins at `at` has nothing in it; if not, where its first part begins.
#[must_use]
pub fn first_part(json: &[u8], at: usize) -> Option<usize> {
    let first = skip_blanks(json, at + 1);
    (!matches!(json.get(first), None | Some(b'}' | b']'))).then_some(first)
}

/// The offset of the part after the one that ends at `end`.
#[must_use]
pub fn next_part(json: &[u8], end: usize) -> Option<usize> {
    let comma = skip_blanks(json, end);
    (json.get(comma) == Some(&b',')).then(|| skip_blanks(json, comma + 1))
}

/// The offset of the value of the member whose name ends at `end`.
#[must_use]
pub fn member_value(json: &[u8], end: usize) -> usize {
    skip_blanks(json, skip_blanks(json, end) + 1)
}
