//! Which web pages may use a port without a token. An untrusted page runs in the browser of a user on this machine, and so reaches ports
//! that its author can't reach.

use core::net::IpAddr;

/// Allows every host.
const ANY: &str = "*";

/// Whether a request with this `Host` is intended for this server: an IP address, `localhost`, or one of `names`. An attacker may let any
/// other name resolve to a loopback address (DNS rebinding); the browser then treats the attacker's page as one of this server.
#[must_use]
pub fn is_known_host(host: &[u8], names: &[String]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let name = without_dot(without_port(host));
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known == ANY || without_dot(known).eq_ignore_ascii_case(name))
}

/// Whether a page of this `Origin` came from the host that the request goes to. A proxy may use TLS with the browser but not with this
/// server: the scheme must be https only if the request itself `has_tls`.
#[must_use]
pub fn is_own_origin(origin: &[u8], host: &[u8], has_tls: bool) -> bool {
    let (Ok(origin), Ok(host)) = (str::from_utf8(origin), str::from_utf8(host)) else { return false };
    let Some((scheme, origin)) = origin.split_once("://") else { return false };
    let port = match scheme {
        "http" if !has_tls => ":80",
        "https" => ":443",
        _ => return false,
    };
    let without_default = |text| str::strip_suffix(text, port).unwrap_or(text);
    !host.is_empty() && without_default(origin).eq_ignore_ascii_case(without_default(host))
}

fn without_port(host: &str) -> &str {
    let parts = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    parts.map_or(host, |(name, _)| name)
}

/// Removes the dot of the root, in which a name may end.
fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_known_names_are_own_hosts() {
        let names = ["events.example".to_owned(), "Other.Example.".to_owned()];
        for host in [
            "127.0.0.1:8080",
            "127.0.0.1",
            "10.0.0.1",
            "localhost:8080",
            "LOCALHOST",
            "localhost.",
            "localhost.:8080",
            "[::1]:8080",
            "[::1]",
            "[::ffff:127.0.0.1]:80",
        ] {
            assert!(is_known_host(host.as_bytes(), &[]), "{host}");
            assert!(is_known_host(host.as_bytes(), &names), "{host}");
        }
        for host in ["events.example", "EVENTS.example:443", "events.example.", "other.example:1"] {
            assert!(is_known_host(host.as_bytes(), &names) && !is_known_host(host.as_bytes(), &[]), "{host}");
        }
        for host in [
            "",
            ":8080",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example:8080",
            "127.0.0.1..",
            "localhost.evil.example",
            "evil.localhost",
            "events.example.evil.example",
            "x.events.example",
            "[::1",
            "::1]",
            "localhost:x",
            "localhost:80:80",
            "*",
        ] {
            assert!(!is_known_host(host.as_bytes(), &names), "{host}");
            assert!(is_known_host(host.as_bytes(), &[ANY.to_owned()]), "{host}");
        }
        assert!(!is_known_host(b"\xff", &[ANY.to_owned()]));
    }

    #[test]
    fn origin_is_own_if_host_is_equal() {
        for (origin, host) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://[::1]:8080", "[::1]:8080"),
            ("http://a.example", "A.example"),
            ("http://a.example", "a.example:80"),
            ("https://a.example", "a.example:443"),
            ("https://a.example:8443", "a.example:8443"),
        ] {
            let is_own = |has_tls| is_own_origin(origin.as_bytes(), host.as_bytes(), has_tls);
            assert_eq!((is_own(false), is_own(true)), (true, origin.starts_with("https")), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "null"),
            ("", ""),
            ("http://", ""),
            ("http://evil.example", "127.0.0.1:8080"),
            ("http://127.0.0.1:3000", "127.0.0.1:8080"),
            ("http://localhost:8080", "127.0.0.1:8080"),
            ("http://a.example", "a.example:443"),
            ("http://a.example.evil.example", "a.example"),
            ("file://a", "a"),
            ("moz-extension://a", "a"),
            ("http://a.example, http://a.example", "a.example"),
        ] {
            assert!(!is_own_origin(origin.as_bytes(), host.as_bytes(), false), "{origin} {host}");
        }
    }
}
