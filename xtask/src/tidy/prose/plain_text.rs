//! Text without what isn't prose: code spans, link targets, addresses, tags, escapes and placeholders. Lines stay where they are.

/// Replaces a code span or a placeholder, and counts as one word.
const MARK: char = '`';

/// A text of Markdown, or of a comment.
pub(super) fn of_markdown(text: &str) -> String {
    plain(text, markdown_length)
}

/// The text of a string literal between its quotes.
pub(super) fn of_literal(text: &str) -> String {
    plain(text, |rest| escape_length(rest).or_else(|| placeholder_length(rest)).or_else(|| markdown_length(rest)))
}

/// The text of a raw string literal.
pub(super) fn of_raw_literal(text: &str) -> String {
    plain(text, |rest| placeholder_length(rest).or_else(|| markdown_length(rest)))
}

/// What a text begins with: bytes to leave out, and whether they count as a word.
type Hidden = Option<(usize, bool)>;

fn plain(text: &str, hidden: impl Fn(&str) -> Hidden) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut at = 0;
    let can_begin = |byte: u8| matches!(byte, b'`' | b']' | b'<' | b'h' | b'\\' | b'{');
    while let Some(begin) = text[at..].bytes().position(can_begin).map(|found| at + found) {
        plain.push_str(&text[at..begin]);
        let rest = &text[begin..];
        let Some((length, is_word)) = hidden(rest) else {
            plain.push_str(&rest[..1]);
            at = begin + 1;
            continue;
        };
        let is_escape = rest.starts_with('\\');
        plain.extend(is_word.then_some(MARK).or(is_escape.then_some(' ')));
        plain.extend(rest[..length].chars().filter(|c| *c == '\n'));
        at = begin + length;
    }
    plain.push_str(&text[at..]);
    plain
}

fn markdown_length(rest: &str) -> Hidden {
    match rest.as_bytes() {
        [b'`', ..] => code_span_length(rest),
        // The bracket ends the link's text and goes with the target.
        [b']', b'(', ..] => rest.find(')').map(|end| (end + 1, false)),
        [b'<', b'!', b'-', ..] => rest.find("-->").map(|end| (end + 3, false)),
        [b'<', ..] => {
            let end = rest.find(|c: char| c == '>' || c.is_whitespace())?;
            (end > 1 && rest[end..].starts_with('>')).then_some((end + 1, false))
        }
        [b'h', b't', b't', b'p', ..] => {
            let is_address = ["http://", "https://"].iter().any(|scheme| rest.starts_with(scheme));
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            is_address.then_some((end, false))
        }
        _ => None,
    }
}

fn code_span_length(rest: &str) -> Hidden {
    let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
    let mut at = ticks;
    while let Some(begin) = rest[at..].find('`').map(|begin| at + begin) {
        let run = rest[begin..].bytes().take_while(|byte| *byte == b'`').count();
        if run == ticks {
            return Some((begin + run, true));
        }
        at = begin + run;
    }
    None
}

fn escape_length(rest: &str) -> Hidden {
    let escaped = rest.strip_prefix('\\')?.chars().next()?;
    match escaped {
        'u' => rest.find('}').map(|end| (end + 1, false)),
        'x' => Some((4.min(rest.len()), false)),
        _ => Some((1 + escaped.len_utf8(), false)),
    }
}

fn placeholder_length(rest: &str) -> Hidden {
    let inside = rest.strip_prefix('{')?;
    if inside.starts_with('{') {
        return Some((2, false));
    }
    let end = inside.find(['{', '}', '\n', '"'])?;
    inside[end..].starts_with('}').then_some((end + 2, end > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_loses_code_and_targets() {
        for (text, plain) in [
            ("a `b c` d", "a ` d"),
            ("a ``b ` c`` d", "a ` d"),
            ("a `b\nc` d", "a `\n d"),
            ("an `open", "an `open"),
            ("[a](b/c.md#d) e", "[a e"),
            ("[`a`](b) c", "[` c"),
            ("a <https://b/c> <i>d</i> e < f > g", "a  d e < f > g"),
            ("a https://b.c/d?e f", "a  f"),
            ("an http://b.c d <> http e", "an  d <> http e"),
            ("a<!-- b\nc -->d", "a\nd"),
        ] {
            assert_eq!(of_markdown(text), plain, "{text}");
        }
    }

    #[test]
    fn literal_loses_escapes_and_placeholders() {
        for (text, plain) in [
            (r"a\nb \u{1f}c \x1fd", "a b  c  d"),
            ("a \\\n   b", "a  \n   b"),
            ("{} a {told} b {told:>5}", " a ` b `"),
            ("{{told}} a", "told}} a"),
            ("{told {told} {a\n}", "{told ` {a\n}"),
        ] {
            assert_eq!(of_literal(text), plain, "{text}");
        }
        assert_eq!(of_raw_literal(r"a\nb {told} `c` d"), r"a\nb ` ` d");
    }
}
