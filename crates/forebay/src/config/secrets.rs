//! Passwords within URLs aren't shown with the mistakes beside them.

use std::borrow::Cow;

/// A text as it may be shown: each password in a URL (RFC 3986 §3.2.1) is as many stars as it has bytes, so that every spot
/// stays where it is.
pub(super) fn hidden(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    for (scheme, _) in text.match_indices("://") {
        let start = scheme + "://".len();
        let rest = &text[start..];
        let end = rest.find(|c: char| c.is_whitespace() || "\"'".contains(c)).unwrap_or(rest.len());
        let Some(at) = rest[..end].rfind('@') else { continue };
        let Some(colon) = rest[..at].find(':') else { continue };
        let password = start + colon + 1..start + at;
        let stars = "*".repeat(password.len());
        shown.to_mut().replace_range(password, &stars);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::hidden;

    #[test]
    fn only_passwords_are_hidden_and_nothing_moves() {
        for (text, shown) in [
            ("url = \"postgres://ann:s3cr\u{e9}t@db:5432/x\"\n", "url = \"postgres://ann:*******@db:5432/x\"\n"),
            ("a://u:p@h b://u:a@b@h", "a://u:*@h b://u:***@h"),
            ("a://u:p/@h/x", "a://u:**@h/x"),
            ("http://h:80/x @ y", "http://h:80/x @ y"),
            ("a://u@h:1", "a://u@h:1"),
            ("://", "://"),
        ] {
            assert_eq!(hidden(text), shown);
        }
    }
}
