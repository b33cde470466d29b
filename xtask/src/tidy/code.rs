//! Rust code without its comments and literals: a rule about code doesn't read sentences about it.

use std::ops::Range;

/// The places of every comment, string and character literal of `text`, in order.
pub(super) fn opaque_parts(text: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    let can_begin = |byte: u8| matches!(byte, b'/' | b'"' | b'\'' | b'b' | b'r');
    while let Some(begin) = text[at..].bytes().position(can_begin).map(|found| at + found) {
        let follows_part = parts.last().is_some_and(|part| part.end == begin);
        let before = if follows_part { None } else { text[..begin].chars().next_back() };
        let length = opaque_length(&text[begin..], before);
        if length > 0 {
            parts.push(begin..begin + length);
        }
        at = begin + length.max(1);
    }
    parts
}

/// `text` with these parts blanked: bytes and lines keep their places.
pub(super) fn without_parts(text: &str, parts: &[Range<usize>]) -> String {
    let mut code = String::with_capacity(text.len());
    let mut copied = 0;
    for part in parts {
        code.push_str(&text[copied..part.start]);
        code.extend(text[part.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        copied = part.end;
    }
    code.push_str(&text[copied..]);
    code
}

/// The bytes of the comment or literal that begins `text`, or 0.
fn opaque_length(text: &str, before: Option<char>) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment_length(text);
    }
    if text.starts_with('"') {
        return string_length(text);
    }
    if text.starts_with('\'') {
        return character_length(text);
    }
    if before.is_some_and(is_word) { 0 } else { raw_string_length(text).unwrap_or(0) }
}

fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
            }
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// 0 for a lifetime, which begins with the same quote.
fn character_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            text[after..].find('\'').map_or(text.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

fn raw_string_length(text: &str) -> Option<usize> {
    let body = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = body.bytes().take_while(|byte| *byte == b'#').count();
    let inside = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = text.len() - inside.len();
    Some(inside.find(&end).map_or(text.len(), |at| begin + at + end.len()))
}

/// Whether a character can be part of an identifier.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The lines, counted from 1, that have `word`, and not only as a part of a longer word.
pub(super) fn lines_with(text: &str, word: &str) -> Vec<usize> {
    let found = text.lines().enumerate().filter(|(_, line)| has_word(line, word));
    found.map(|(number, _)| number + 1).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let joined_before = word.starts_with(is_word) && line[..at].ends_with(is_word);
        let joined_after = word.ends_with(is_word) && line[at + word.len()..].starts_with(is_word);
        !joined_before && !joined_after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x\"y", z)"#, "f(      , z)"),
            (r##"f(r#"a"b"#) + br"c""##, "f(        ) +      "),
            (r"['a', '\'', '\u{1f}', &'b c]", "[   ,     ,         , &'b c]"),
            ("for r in x", "for r in x"),
            ("\"é\";", "    ;"),
            ("\"open\nend", "     \n   "),
        ] {
            assert_eq!(without_parts(text, &opaque_parts(text)), code, "{text}");
        }
    }

    #[test]
    fn part_of_a_longer_word_is_not_found() {
        assert_eq!(lines_with("unsafe_code\nunsafe {\nxunsafe", "unsafe"), [2]);
        assert_eq!(lines_with("a::File::open\nProfile::new", "File::"), [1]);
    }
}
