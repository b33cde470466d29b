//! The halves of a session in a request: a cookie, which the browser sends to every port of the host, and a header.

use access::{Now, OpenSession, SessionId, Sessions, TokenSet};
use hyper::HeaderMap;
use hyper::header::{COOKIE, HeaderName, HeaderValue};

/// The header with the half of a session that only its own pages have.
const CHECK: HeaderName = HeaderName::from_static("forebay-check");
/// Cookies of one name that are tried. Another port of the host may have added some.
const COOKIES_MAX: usize = 256;

/// The halves of a session that a request shows. One of them may be missing.
pub(super) struct Halves<'h> {
    cookies: Vec<&'h [u8]>,
    check: &'h [u8],
}

impl<'h> Halves<'h> {
    /// Those of a request; `None` if it has neither.
    pub(super) fn of(headers: &'h HeaderMap, cookie: &str) -> Option<Self> {
        let pairs = headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
        let values = pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(cookie.as_bytes())?.strip_prefix(b"="));
        let cookies: Vec<&[u8]> = values.take(COOKIES_MAX).collect();
        let check = headers.get(CHECK).map(HeaderValue::as_bytes);
        (check.is_some() || !cookies.is_empty()).then(|| Self { cookies, check: check.unwrap_or_default() })
    }

    /// The session of both halves.
    pub(super) fn find(&self, sessions: &Sessions, tokens: &TokenSet, now: Now) -> Option<(SessionId, OpenSession)> {
        self.cookies.iter().find_map(|cookie| sessions.find(cookie, self.check, tokens, now))
    }
}
