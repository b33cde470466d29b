//! The headers of a request that the steps of some type ask for: they are kept until its body is there.

use std::sync::Arc;

/// Names in small letters, with their values. Most requests have none, and most configurations ask for none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Headers(Option<Arc<Vec<Header>>>);

type Header = (Box<str>, String);

impl Headers {
    /// Those of `head` that are wanted; names are in small letters. What is no text is left out, and several lines are one
    /// with commas (RFC 9110 §5.3).
    pub(crate) fn of(wanted: &[Box<str>], head: &[u8]) -> Self {
        if wanted.is_empty() {
            return Self::default();
        }
        let mut found: Vec<Header> = Vec::new();
        for line in head.split(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            let Some(name) = wanted.iter().find(|wanted| name.eq_ignore_ascii_case(wanted.as_bytes())) else {
                continue;
            };
            let Ok(value) = str::from_utf8(value) else { continue };
            match found.iter_mut().find(|(known, _)| known == name) {
                Some((_, before)) => *before = format!("{before}, {value}"),
                None => found.push((name.clone(), value.to_owned())),
            }
        }
        Self((!found.is_empty()).then(|| Arc::new(found)))
    }

    /// The value of a header.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.as_ref()?.iter().find(|(known, _)| **known == *name);
        found.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_headers_are_found_whatever_their_case() {
        let head =
            b"POST / HTTP/1.1\r\nX-Request-ID:  r 1 \r\nx-trace: a\r\nOther: 1\r\nX-Trace: b\r\nbad: \xff\r\n\r\n";
        let headers = Headers::of(&["x-request-id", "x-trace", "bad", "absent"].map(Into::into), head);
        let found = ["x-request-id", "x-trace", "bad", "absent", "other"].map(|name| headers.get(name));
        assert_eq!(found, [Some("r 1"), Some("a, b"), None, None, None]);
        assert!(Headers::of(&[], head).get("other").is_none());
    }
}
