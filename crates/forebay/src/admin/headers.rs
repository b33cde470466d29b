//! The headers of every answer of an admin port. Browsers then run only scripts of the port itself, and show no answer within other pages.

use hyper::header::{HeaderName, HeaderValue, VARY};
use hyper::{HeaderMap, header};

/// The page's own scripts and styles, and nothing else. Payloads come from untrusted clients.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
/// Each header, and its value.
const EVERYWHERE: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (VARY, "accept-encoding, origin, sec-fetch-site"),
];

/// Adds them to an answer.
pub(super) fn add(headers: &mut HeaderMap) {
    for (name, value) in EVERYWHERE {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
