//! Keeps web pages of other origins away from the admin port: they run in the browser of an operator, and so reach ports that their authors
//! can't reach.
//!
//! | header | must be |
//! |---|---|
//! | `Host` | an IP address, `localhost` or an allowed name, unless the request has a bearer token |
//! | `Origin` | that of `Host`, or of an allowed name with https, if there is one |
//! | `Sec-Fetch-Site` | `same-origin` or `none`, if there is one; anything for a link to the page |

use access::{is_known_host, is_own_origin};
use hyper::HeaderMap;
use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use text::escape_control;

/// Browsers say how a request's page is related to the host.
static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
static SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
static SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// A page of this very port, or a user who typed the address. `same-site` isn't enough: another port of the host is that.
const OWN_SITES: [&[u8]; 2] = [b"same-origin", b"none"];
/// Bytes of a value that an answer shows.
const SHOWN_MAX: usize = 64;

/// The settings of these rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BrowserRules {
    /// Whether the port itself speaks TLS.
    pub(crate) has_tls: bool,
    /// The names of `allowed_hosts`.
    pub(crate) allowed_hosts: Vec<String>,
}

impl BrowserRules {
    /// Checks that the request calls this port by one of its names.
    ///
    /// # Errors
    /// It may come from a page whose name was pointed here (DNS rebinding): the text for the client.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), String> {
        let count = headers.get_all(&HOST).iter().count();
        if count > 1 {
            return Err(format!("there are {count} headers Host: send one"));
        }
        if is_known_host(bytes(headers, &HOST).unwrap_or_default(), &self.allowed_hosts) {
            return Ok(());
        }
        let shown = shown(headers, &HOST);
        Err(format!(
            "the header Host is {shown}: use an IP address or `localhost`, list the name in `allowed_hosts` of [admin], or send a bearer token"
        ))
    }

    /// Checks that no page of another origin has sent the request.
    ///
    /// # Errors
    /// Such a page may have sent it: the text for the client.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), String> {
        self.check_sender(headers)?;
        if is_of_own_site(headers) { Ok(()) } else { Err(other_site(headers)) }
    }

    /// The same for the page itself: pages of all hosts may link to it.
    ///
    /// # Errors
    /// Another page may use it as a part of itself: the text for the client.
    pub(super) fn check_link(&self, headers: &HeaderMap) -> Result<(), String> {
        self.check_sender(headers)?;
        let is = |name, value: &[u8]| bytes(headers, name) == Some(value);
        let is_link = is(&SEC_FETCH_MODE, b"navigate") && is(&SEC_FETCH_DEST, b"document");
        if is_link || is_of_own_site(headers) { Ok(()) } else { Err(other_site(headers)) }
    }

    fn check_sender(&self, headers: &HeaderMap) -> Result<(), String> {
        let host = bytes(headers, &HOST).unwrap_or_default();
        let is_own = |origin: &[u8]| is_own_origin(origin, host, self.has_tls) || self.is_allowed(origin);
        if headers.get_all(&ORIGIN).iter().all(|origin| is_own(origin.as_bytes())) {
            return Ok(());
        }
        let shown = shown(headers, &ORIGIN);
        Err(format!(
            "the header Origin is {shown}: pages of other origins may not use this port. If it is that of a proxy, list its name in \
             `allowed_hosts` of [admin]"
        ))
    }

    /// Whether this is the origin of a proxy with TLS, which may have put another name into `Host`.
    fn is_allowed(&self, origin: &[u8]) -> bool {
        let Some(host) = origin.strip_prefix(b"https://") else { return false };
        let name = host.split(|byte| *byte == b':').next().unwrap_or_default();
        self.allowed_hosts.iter().any(|allowed| allowed.trim_end_matches('.').as_bytes().eq_ignore_ascii_case(name))
    }
}

/// An image or a link of another page has no `Origin`, but this header.
fn is_of_own_site(headers: &HeaderMap) -> bool {
    headers.get_all(&SEC_FETCH_SITE).iter().all(|site| OWN_SITES.contains(&site.as_bytes()))
}

fn other_site(headers: &HeaderMap) -> String {
    let shown = shown(headers, &SEC_FETCH_SITE);
    format!(
        "the header Sec-Fetch-Site is {shown}: pages of other origins, also of other ports of this host, may not use this port. Open the page at \
         its own address"
    )
}

fn bytes<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h [u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}

/// The value of a header for an answer: short, and without control characters.
fn shown(headers: &HeaderMap, name: &HeaderName) -> String {
    let Some(value) = bytes(headers, name) else { return "missing".to_owned() };
    let text = String::from_utf8_lossy(value);
    let end = text.floor_char_boundary(SHOWN_MAX);
    let rest = if end < text.len() { "…" } else { "" };
    format!("`{}{rest}`", escape_control(&text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(has_tls: bool) -> BrowserRules {
        BrowserRules { has_tls, allowed_hosts: vec!["console.example.com".into()] }
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn host_must_be_an_address_or_an_allowed_name() {
        for host in
            ["127.0.0.1:9000", "localhost", "[::1]:9000", "10.0.0.1", "console.example.com:1", "CONSOLE.example.com."]
        {
            assert_eq!(rules(false).check_host(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for host in ["evil.example:9000", "", "127.0.0.1.evil.example", "x.console.example.com"] {
            let refused = rules(false).check_host(&headers(&[("host", host)])).unwrap_err();
            assert!(refused.contains(&format!("Host is `{host}`")) && refused.contains("`allowed_hosts`"), "{refused}");
        }
        let refused = rules(false).check_host(&HeaderMap::new()).unwrap_err();
        assert!(refused.contains("Host is missing"), "{refused}");
        let mut two = headers(&[("host", "127.0.0.1")]);
        two.append(HOST, HeaderValue::from_static("127.0.0.1"));
        assert_eq!(rules(false).check_host(&two), Err("there are 2 headers Host: send one".into()));
    }

    #[test]
    fn origin_must_be_that_of_host() {
        for (host, origin, has_tls, is_own) in [
            ("127.0.0.1:9000", "http://127.0.0.1:9000", false, true),
            ("127.0.0.1:9000", "http://127.0.0.1:9000", true, false),
            ("127.0.0.1:9000", "https://127.0.0.1:9000", true, true),
            ("127.0.0.1:9000", "http://127.0.0.1:3000", false, false),
            ("127.0.0.1:9000", "http://localhost:9000", false, false),
            ("127.0.0.1:9000", "http://evil.example", false, false),
            ("127.0.0.1:9000", "null", false, false),
            // A proxy passes the name on, or its own address.
            ("console.example.com", "https://console.example.com", false, true),
            ("console.example.com", "http://console.example.com", false, true),
            ("console.example.com", "http://console.example.com:3000", false, false),
            ("127.0.0.1:9000", "https://console.example.com", false, true),
            ("127.0.0.1:9000", "https://console.example.com:8443", false, true),
            ("127.0.0.1:9000", "http://console.example.com", false, false),
            ("127.0.0.1:9000", "https://console.example.com.evil.example", false, false),
        ] {
            let headers = headers(&[("host", host), ("origin", origin)]);
            assert_eq!(rules(has_tls).check_origin(&headers).is_ok(), is_own, "{host} {origin} {has_tls}");
            assert_eq!(rules(has_tls).check_link(&headers).is_ok(), is_own, "{host} {origin} {has_tls}");
        }
    }

    #[test]
    fn links_of_others_reach_the_page_only() {
        for (site, mode, dest, [is_api, is_page]) in [
            ("same-origin", "cors", "empty", [true, true]),
            ("none", "navigate", "document", [true, true]),
            ("same-site", "cors", "empty", [false, false]),
            ("cross-site", "navigate", "document", [false, true]),
            ("same-site", "navigate", "document", [false, true]),
            ("cross-site", "navigate", "iframe", [false, false]),
            ("cross-site", "no-cors", "script", [false, false]),
            ("", "no-cors", "image", [false, false]),
        ] {
            let headers = headers(&[("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)]);
            let found = [rules(false).check_origin(&headers).is_ok(), rules(false).check_link(&headers).is_ok()];
            assert_eq!(found, [is_api, is_page], "{site} {mode} {dest}");
        }
        assert_eq!(rules(false).check_origin(&HeaderMap::new()), Ok(()), "programs have none of them");
    }

    #[test]
    fn refusal_shows_a_short_escaped_value() {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_bytes(&["\t\u{202e}".as_bytes(), &[b'x'; 4_000]].concat()).unwrap());
        let refused = rules(false).check_origin(&headers).unwrap_err();
        assert!(refused.contains("Origin is `\\t\\u202exxx") && refused.contains("x…`"), "{refused}");
        assert!(refused.len() < 300 && refused.split(' ').count() <= 35, "{refused}");
    }
}
