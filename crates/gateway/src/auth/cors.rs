//! Which web pages may post events and read the responses: the CORS headers (<https://fetch.spec.whatwg.org>).

use std::sync::Arc;

/// The headers that scripts may set in addition to those that every browser allows. Segment's library sets `X-Retry-Count` on retries.
const HEADERS: &str = "authorization, content-encoding, content-type, forebay-ack, forebay-atomic, forebay-type, \
                       idempotency-key, if-none-match, x-api-key, x-retry-count";
/// The headers of responses that scripts see in addition to those that every browser shows.
const EXPOSED: &str = "content-disposition, content-encoding, content-range, etag, location, retry-after";
/// How long a browser may remember: longer than most do.
const MAX_AGE_SECONDS: u32 = 7200;
/// Beacons always have credentials, and browsers block them without this line. It must never be sent to every origin: a page of any host
/// could then use the passwords that a browser remembers.
const CREDENTIALS: &str = "access-control-allow-credentials: true\r\n";
/// What a preflight asks for.
pub(crate) struct Preflight {
    /// The methods of the path.
    pub(crate) methods: &'static str,
    /// Headers that the path takes in addition to those of all paths.
    pub(crate) headers: Vec<Box<str>>,
}

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
            let text = format!(
                "access-control-allow-origin: {origin}\r\n{}access-control-expose-headers: {EXPOSED}\r\n",
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

    /// The header lines of a response to `origin`, if it is allowed.
    pub(crate) fn lines(&self, origin: &[u8], preflight: Option<&Preflight>) -> Option<Arc<str>> {
        let lines = self.of(origin)?;
        Some(match preflight {
            None => lines.clone(),
            Some(Preflight { methods, headers }) => {
                let more: String = headers.iter().flat_map(|name| [", ", name]).collect();
                format!(
                    "{lines}access-control-allow-methods: {methods}\r\naccess-control-allow-headers: {HEADERS}{more}\r\n\
                     access-control-max-age: {MAX_AGE_SECONDS}\r\n"
                )
                .into()
            }
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
        let plain = format!(
            "access-control-allow-origin: http://b:81\r\naccess-control-allow-credentials: true\r\n\
             access-control-expose-headers: {EXPOSED}\r\n"
        );
        assert_eq!(cors.lines(b"http://b:81", None).as_deref(), Some(&*plain));
        let asked = Preflight { methods: "OPTIONS, POST", headers: vec!["accept-version".into(), "x".into()] };
        let preflight = cors.lines(b"http://b:81", Some(&asked)).unwrap();
        assert!(preflight.starts_with(&plain));
        for line in ["methods: OPTIONS, POST\r\n", "x-api-key, x-retry-count, accept-version, x\r\n"] {
            assert!(preflight.contains(line), "{preflight}");
        }
        for origin in [&b"http://b"[..], b"http://b:811", b"https://b:81", b"null", b"*", b"", b"https://a.example/"] {
            assert_eq!(cors.lines(origin, None), None);
            assert_eq!(cors.lines(origin, Some(&asked)), None);
        }
        let any = Cors::new(&["*".to_owned()]).unwrap();
        let lines = any.lines(b"null", None).unwrap();
        assert!(lines.starts_with("access-control-allow-origin: *\r\n") && any.allows(b"null"));
        assert!(!lines.contains("credentials"), "{lines}");
    }
}
