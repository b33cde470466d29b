//! Keeps web pages away from the admin port. Without tokens every client on loopback may use the port, also another site's page in a
//! browser on this machine.

use access::{is_known_host, is_own_origin};
use hyper::HeaderMap;
use hyper::header::{HOST, ORIGIN};

/// Browsers say how a request's page is related to the host. `same-site` isn't enough: another port of the host is that.
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// A page of this very port, or a user who typed the address.
const OWN_SITES: [&[u8]; 2] = [b"same-origin", b"none"];

/// Why another site's page may have sent the request, if so.
pub(super) fn refuse(headers: &HeaderMap, has_tls: bool) -> Option<&'static str> {
    let bytes = |name: &str| headers.get(name).map(hyper::header::HeaderValue::as_bytes);
    let host = bytes(HOST.as_str()).unwrap_or_default();
    if !is_known_host(host, &[]) {
        return Some(
            "the header Host must be an IP address or `localhost`, because other sites can point a name here. Call http://127.0.0.1, or create \
             a token (forebay token new NAME --scope admin)",
        );
    }
    let is_cross_origin = bytes(ORIGIN.as_str()).is_some_and(|origin| !is_own_origin(origin, host, has_tls));
    // An image or a link of another page has no Origin.
    let is_cross_site = bytes(SEC_FETCH_SITE).is_some_and(|site| !OWN_SITES.contains(&site));
    (is_cross_origin || is_cross_site).then_some(
        "web pages of other hosts may not use this port: send the request from a program outside of a browser",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        refuse(&headers, false).is_some()
    }

    #[test]
    fn browser_that_names_another_site_is_rejected() {
        for (site, is_refused) in
            [("same-origin", false), ("none", false), ("same-site", true), ("cross-site", true), ("", true)]
        {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "127.0.0.1:9000".parse().unwrap());
            headers.insert(SEC_FETCH_SITE, site.parse().unwrap());
            assert_eq!(refuse(&headers, false).is_some(), is_refused, "{site}");
        }
    }

    #[test]
    fn pages_of_others_are_kept_away() {
        for host in ["127.0.0.1:9000", "localhost:9000", "LOCALHOST", "[::1]:9000", "[::1]", "10.0.0.1"] {
            assert!(!refused(host, None) && !refused(host, Some(&format!("http://{host}"))), "{host}");
            assert!(refused(host, Some("http://evil.example")) && refused(host, Some("null")), "{host}");
        }
        for host in ["evil.example:9000", "evil.example", "", "127.0.0.1.evil.example:9000"] {
            assert!(refused(host, None), "{host}");
        }
    }
}
