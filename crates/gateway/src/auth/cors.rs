//! Which web pages may post events and read the responses: the CORS headers (<https://fetch.spec.whatwg.org>).

use std::sync::Arc;

/// The headers that scripts may set in addition to those that every browser allows.
const HEADERS: &str =
    "authorization, content-encoding, content-type, forebay-ack, forebay-atomic, forebay-type, idempotency-key";
/// How long a browser may remember: longer than most do.
const MAX_AGE_SECONDS: u32 = 7200;
/// Beacons always have credentials, and browsers block them without this line. It must never be sent to every origin: a page of any host
/// could then use the passwords that a browser remembers.
const CREDENTIALS: &str = "access-control-allow-credentials: true\r\n";
/// Every origin.
const ANY: &str = "*";

/// The allowed origins, with the header lines of a response to them.
#[derive(Debug)]
pub(crate) struct Cors {
    allowed: Box<[(Box<str>, Arc<str>)]>,
}

impl Cors {
    /// `None` if no origin is allowed.
    pub(crate) fn new(origins: &[String]) -> Option<Self> {
        let lines = |origin: &String| {
            // Scripts see few headers by default.
            let text = format!(
                "access-control-allow-origin: {origin}\r\n{}access-control-expose-headers: retry-after\r\n",
                if origin == ANY { "" } else { CREDENTIALS }
            );
            (origin.as_str().into(), text.into())
        };
        let allowed: Box<[_]> = origins.iter().map(lines).collect();
        (!allowed.is_empty()).then_some(Self { allowed })
    }

    /// Whether pages of this origin may send requests.
    pub(crate) fn allows(&self, origin: &[u8]) -> bool {
        self.of(origin).is_some()
    }

    fn of(&self, origin: &[u8]) -> Option<&Arc<str>> {
        let matches = |allowed: &str| allowed == ANY || allowed.as_bytes() == origin;
        self.allowed.iter().find(|(allowed, _)| matches(allowed)).map(|(_, lines)| lines)
    }

    /// The header lines of a response to `origin`, if it is allowed. A preflight gets these methods.
    pub(crate) fn lines(&self, origin: &[u8], preflight: Option<&str>) -> Option<Arc<str>> {
        let lines = self.of(origin)?;
        Some(match preflight {
            None => lines.clone(),
            Some(methods) => format!(
                "{lines}access-control-allow-methods: {methods}\r\naccess-control-allow-headers: {HEADERS}\r\n\
                 access-control-max-age: {MAX_AGE_SECONDS}\r\n"
            )
            .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_origins_get_cors_headers() {
        assert!(Cors::new(&[]).is_none());
        let cors = Cors::new(&["https://a.example".to_owned(), "http://b:81".to_owned()]).unwrap();
        let plain = "access-control-allow-origin: http://b:81\r\naccess-control-allow-credentials: true\r\n\
                     access-control-expose-headers: retry-after\r\n";
        assert_eq!(cors.lines(b"http://b:81", None).as_deref(), Some(plain));
        let preflight = cors.lines(b"http://b:81", Some("OPTIONS, POST")).unwrap();
        assert!(
            preflight.starts_with(plain) && preflight.contains("\r\naccess-control-allow-methods: OPTIONS, POST\r\n")
        );
        for origin in [&b"http://b"[..], b"http://b:811", b"https://b:81", b"null", b"*", b"", b"https://a.example/"] {
            assert_eq!(cors.lines(origin, None), None);
            assert_eq!(cors.lines(origin, Some("OPTIONS, POST")), None);
        }
        let any = Cors::new(&["*".to_owned()]).unwrap();
        let lines = any.lines(b"null", None).unwrap();
        assert!(lines.starts_with("access-control-allow-origin: *\r\n") && any.allows(b"null"));
        assert!(!lines.contains("credentials"), "{lines}");
    }
}
