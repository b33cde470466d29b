//! What a request is about: path and query (RFC 9112 §3.2).

/// What stands before the `://` of a URL.
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
pub(crate) struct Target<'a> {
    pub(crate) path: &'a str,
    /// What stands behind the `?`.
    pub(crate) query: Option<&'a str>,
    /// The scheme, where the target is a whole URL.
    pub(super) scheme: Option<Scheme>,
    /// The host that the target itself names.
    pub(super) authority: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Reads a target; `None` if it is none. `*` stands for the server as a whole, and its path is `*`.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
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

/// Whether there are only bytes that a URI has, and each `%` begins an escape (RFC 3986 §2). Others are read by each
/// proxy in its own way. A `#` is none: a fragment is never sent.
fn is_of_uri(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => matches!(text[at + 1..], [high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit()),
        b'!' | b'$' | b'&'..=b';' | b'=' | b'?'..=b'[' | b']' | b'_' | b'a'..=b'z' | b'~' => true,
        _ => false,
    })
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
    fn targets_are_taken_apart() {
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
}
