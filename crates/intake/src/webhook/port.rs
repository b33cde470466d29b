//! A URL with and without its port.

/// The URL without its port; or with the default one, if it has none.
pub(super) fn other_form(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let start = authority.rfind('@').map_or(0, |at| at + 1);
    let (user, host) = authority.split_at(start);
    match host.rsplit_once(':').filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())) {
        Some((host, _)) => Some(format!("{scheme}://{user}{host}{after}")),
        None => {
            let port = if scheme == "https" { 443 } else { 80 };
            Some(format!("{scheme}://{user}{host}:{port}{after}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_added_and_removed() {
        for (url, other) in [
            ("https://a.example/x?y=:1", "https://a.example:443/x?y=:1"),
            ("http://u:1@a.example", "http://u:1@a.example:80"),
            ("https://a.example:8443/x", "https://a.example/x"),
            ("http://[::1]/", "http://[::1]:80/"),
            ("http://a?b", "http://a:80?b"),
        ] {
            assert_eq!(other_form(url).as_deref(), Some(other));
        }
        assert_eq!(other_form("a"), None);
    }
}
