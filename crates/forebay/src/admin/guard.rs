//! Keeps web pages away from the admin API. Without tokens, whoever reaches the port on loopback may use it, and a
//! page from elsewhere, in the browser of somebody on this machine, reaches it as well.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{HOST, ORIGIN};

/// Why the request isn't for us, if it isn't; our own pages have this scheme.
pub(super) fn refuse(headers: &HeaderMap, scheme: &str) -> Option<&'static str> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = text(HOST).unwrap_or_default();
    // A stranger's name that leads to a loopback address (DNS rebinding) would make the stranger's page one of ours.
    if !is_own_name(host) {
        return Some("the header Host must have an IP address or localhost: names of others may lead here too");
    }
    match text(ORIGIN) {
        Some(origin) if origin.strip_prefix(scheme) != Some(host) => Some("pages of others may not use this port"),
        _ => None,
    }
}

fn is_own_name(host: &str) -> bool {
    let without_port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = without_port.map_or(host, |(name, _)| name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
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
        refuse(&headers, "http://").is_some()
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
