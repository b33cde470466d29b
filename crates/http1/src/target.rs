//! What a request is about: path and query (RFC 9112 §3.2).

use crate::syntax::is_of_name;

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    const ALL: [(Self, &'static str); 2] = [(Self::Http, "http://"), (Self::Https, "https://")];
}

/// A request's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path; never empty.
    pub path: &'a str,
    /// The text after the `?`.
    pub query: Option<&'a str>,
    /// The scheme, where the target is a whole URL.
    pub(crate) scheme: Option<Scheme>,
    /// The host that the target itself names.
    pub(crate) authority: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Parses a target; `None` if it is invalid. `*` means the server as a whole, and its path is `*`.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority, rest) = match split_scheme(text) {
            Some((scheme, rest)) => {
                let end = rest.find(['/', '?']).unwrap_or(rest.len());
                (Some(scheme), Some(&rest[..end]), &rest[end..])
            }
            None if text.starts_with('/') || text == "*" => (None, None, text),
            None => return None,
        };
        if authority == Some("") || !is_of_uri(text.as_bytes()) {
            return None;
        }
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        Some(Self { path: if path.is_empty() { "/" } else { path }, query, scheme, authority })
    }
}

/// Whether there are only bytes that a URI has, and each `%` begins an escape (RFC 3986 §2). Proxies treat other bytes differently. A `#`
/// is rejected too: a fragment is never sent.
fn is_of_uri(text: &[u8]) -> bool {
    first_foreign(text).is_none()
}

/// The index of the first byte that no URI has there.
fn first_foreign(text: &[u8]) -> Option<usize> {
    text.iter().enumerate().position(|(at, byte)| match byte {
        b'%' => !matches!(text[at + 1..], [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()),
        b'!' | b'$' | b'&'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => false,
        _ => true,
    })
}

/// The error of a target, for its sender.
pub(crate) fn explain(target: &[u8]) -> String {
    let Some(at) = first_foreign(target) else {
        return "the target must begin with `/`, or be a whole URL of http or https".to_owned();
    };
    if target[at] == b'%' {
        return format!(
            "the `%` at byte {at} of the target (from 0) is not followed by two hexadecimal digits: send `%` as %25"
        );
    }
    let foreign = foreign_at(&target[at..]);
    let escaped: String = foreign.iter().map(|byte| format!("%{byte:02X}")).collect();
    let named = match str::from_utf8(foreign) {
        Ok(" ") => "a space (0x20)".to_owned(),
        Ok(text) if !text.contains(char::is_control) && foreign.len() == 1 => {
            format!("`{text}` (0x{:02X})", foreign[0])
        }
        Ok(text) if !text.contains(char::is_control) => format!("`{text}` (its first byte is 0x{:02X})", foreign[0]),
        _ => format!("the byte 0x{:02X}", foreign[0]),
    };
    format!("the target has {named} at byte {at} (from 0), which must be percent-encoded: send it as {escaped}")
}

/// The character at the start of `bytes`, which aren't empty, or its first byte if there is none.
fn foreign_at(bytes: &[u8]) -> &[u8] {
    let is_character = |length: &usize| bytes.get(..*length).is_some_and(|part| str::from_utf8(part).is_ok());
    &bytes[..(1..=4).find(is_character).unwrap_or(1)]
}

/// The received part of the target, if it is the reason that the request line can't be parsed.
pub(crate) fn of_broken_line(bytes: &[u8]) -> Option<&[u8]> {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next()?;
    let start = line.iter().position(|byte| *byte == b' ')? + 1;
    let is_method = line[..start - 1].iter().all(|byte| is_of_name(*byte)) && start > 1;
    let rest = &line[start..];
    let foreign = first_foreign(rest)?;
    // The version follows the space that ends a valid target.
    let version = rest[foreign..].strip_prefix(b" ").unwrap_or_default();
    let ends_there = rest[foreign] == b' ' && (version.starts_with(b"HTTP/") || b"HTTP/".starts_with(version));
    (is_method && foreign > 0 && !ends_there).then_some(rest)
}

fn split_scheme(text: &str) -> Option<(Scheme, &str)> {
    Scheme::ALL.into_iter().find_map(|(scheme, written)| {
        let (start, rest) = text.split_at_checked(written.len())?;
        start.eq_ignore_ascii_case(written).then_some((scheme, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed() {
        for (text, path, query, url) in [
            ("/", "/", None, None),
            ("/a/b?c=d?e", "/a/b", Some("c=d?e"), None),
            ("/?", "/", Some(""), None),
            ("/%2F-._~!$&'()*+,;=:@Az09[]", "/%2F-._~!$&'()*+,;=:@Az09[]", None, None),
            ("*", "*", None, None),
            ("http://a:80/b?c", "/b", Some("c"), Some((Scheme::Http, "a:80"))),
            ("HTTPS://a", "/", None, Some((Scheme::Https, "a"))),
            ("http://a?b", "/", Some("b"), Some((Scheme::Http, "a"))),
        ] {
            let (scheme, authority) = url.unzip();
            assert_eq!(Target::parse(text), Some(Target { path, query, scheme, authority }), "{text}");
        }
        for text in [
            "",
            "a",
            "a/b",
            "a:443",
            "http://",
            "http:///a",
            "ftp://a/",
            "/a#b",
            "*a",
            "/\"",
            "/<",
            "/%",
            "/%a",
            "/%ag",
            "/\\",
            "/^",
            "/`",
            "/|",
            "/{",
            "/\u{e9}",
        ] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }

    #[test]
    fn target_errors_name_the_byte() {
        for (target, says) in [
            (
                &b"/a?b=c|d"[..],
                "the target has `|` (0x7C) at byte 6 (from 0), which must be percent-encoded: send it as %7C",
            ),
            (
                b"/a b",
                "the target has a space (0x20) at byte 2 (from 0), which must be percent-encoded: send it as %20",
            ),
            (b"/\"", "the target has `\"` (0x22) at byte 1 (from 0), which must be percent-encoded: send it as %22"),
            (b"/a#b", "the target has `#` (0x23) at byte 2 (from 0), which must be percent-encoded: send it as %23"),
            (
                b"/\x01",
                "the target has the byte 0x01 at byte 1 (from 0), which must be percent-encoded: send it as %01",
            ),
            (
                b"/\xff/",
                "the target has the byte 0xFF at byte 1 (from 0), which must be percent-encoded: send it as %FF",
            ),
            (
                b"/\xc3",
                "the target has the byte 0xC3 at byte 1 (from 0), which must be percent-encoded: send it as %C3",
            ),
            (
                b"/100%",
                "the `%` at byte 4 of the target (from 0) is not followed by two hexadecimal digits: send `%` as %25",
            ),
            (
                b"/%zz",
                "the `%` at byte 1 of the target (from 0) is not followed by two hexadecimal digits: send `%` as %25",
            ),
            (b"a/b", "the target must begin with `/`, or be a whole URL of http or https"),
        ] {
            assert_eq!(explain(target), says);
        }
        let accented = "the target has `\u{e9}` (its first byte is 0xC3) at byte 1 (from 0), which must be percent-encoded: send it as \
                        %C3%A9";
        assert_eq!(explain("/\u{e9}".as_bytes()), accented);
    }

    #[test]
    fn target_of_a_broken_line_is_found() {
        for (line, target) in [
            (&b"GET /a b HTTP/1.1\r\nHost: x"[..], Some(&b"/a b HTTP/1.1"[..])),
            (b"GET /a b", Some(b"/a b")),
            (b"GET /\xff HTTP/1.1\r\n", Some(b"/\xff HTTP/1.1")),
            (b"GET /\x01", Some(b"/\x01")),
            (b"GET /a HTTP/2.0\r\n", None),
            (b"GET /a HTT", None),
            (b"GET /a ", None),
            (b"GET /a\n", None),
            (b"GET  /a HTTP/1.1", None),
            (b"G(T /a b HTTP/1.1", None),
            (b" /a b HTTP/1.1", None),
            (b"GET", None),
            (b"", None),
        ] {
            assert_eq!(of_broken_line(line), target, "{}", line.escape_ascii());
        }
    }
}
