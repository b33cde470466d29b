//! The common part of reasons that differ only in values.

/// What values are replaced by.
const VALUE: char = '…';
/// Bytes of a group's reason at most. The rest is cut off.
const REASON_BYTES_MAX: usize = 512;
const QUOTES: [char; 3] = ['\'', '"', '`'];

/// A reason with `…` instead of each quoted part and each word with a digit. A word has alphabetic characters, digits, `-` and `_`.
pub(crate) fn group_reason(reason: &str) -> String {
    let (mut group, mut rest) = (String::with_capacity(reason.len().min(REASON_BYTES_MAX)), reason);
    while let Some(first) = rest.chars().next() {
        let end = if is_of_word(first) {
            let word = rest.find(|character| !is_of_word(character)).map_or(rest, |end| &rest[..end]);
            if word.bytes().any(|byte| byte.is_ascii_digit()) {
                group.push(VALUE)
            } else {
                group.push_str(word)
            }
            word.len()
        } else {
            let quoted = if can_open(first, &group) { quoted(rest, first) } else { None };
            match quoted {
                Some(end) => {
                    group.push(first);
                    group.push(VALUE);
                    group.push(first);
                    end
                }
                None => {
                    group.push(first);
                    first.len_utf8()
                }
            }
        };
        rest = &rest[end..];
        if group.len() > REASON_BYTES_MAX {
            group.truncate(group.floor_char_boundary(REASON_BYTES_MAX));
            break;
        }
    }
    group
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_')
}

/// Whether a quote begins here: an apostrophe within a word doesn't.
fn can_open(quote: char, before: &str) -> bool {
    QUOTES.contains(&quote) && !before.ends_with(is_of_word)
}

/// The end of the quoted part that `text` begins with, with both quotes.
fn quoted(text: &str, quote: char) -> Option<usize> {
    text[quote.len_utf8()..].find(quote).map(|length| length + 2 * quote.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_reason_hides_values() {
        for (reason, group) in [
            ("no bad ones (the table rejects the event)", "no bad ones (the table rejects the event)"),
            ("NOT NULL failed: events.col7", "NOT NULL failed: events.…"),
            ("can't parse 'a b' as \"long\", at `x`", "can't parse '…' as \"…\", at `…`"),
            ("id 2651fa94-4d60-8482-855f-ec6e00000007 at 2026-11-21T10:04:11Z", "id … at …:…:…"),
            ("HTTP 410 Gone: it's \"open", "HTTP … Gone: it's \"open"),
            ("über 3,5 €", "über …,… €"),
            ("", ""),
        ] {
            assert_eq!(group_reason(reason), group, "{reason}");
            assert_eq!(group_reason(group), group, "a group's reason is its own group");
        }
    }

    #[test]
    fn group_reason_is_bounded() {
        let long = "é ".repeat(REASON_BYTES_MAX);
        let group = group_reason(&long);
        assert!(group.len() <= REASON_BYTES_MAX && long.starts_with(&group), "{}", group.len());
        assert!(group_reason(&"x".repeat(5_000)).len() <= REASON_BYTES_MAX);
    }
}
