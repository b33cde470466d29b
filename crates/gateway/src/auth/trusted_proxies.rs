//! The client of a request that came through proxies. Forwarding headers are used only from trusted proxies; others could forge them.

use std::net::IpAddr;

use ipnet::IpNet;

use super::forwarded::{self, Hop};

/// The proxies that are trusted.
#[derive(Debug, Default)]
pub(crate) struct TrustedProxies(Box<[IpNet]>);

/// The hops of one header, read from left to right: each proxy appends the address of its client.
#[derive(Debug, Default)]
struct Chain {
    is_there: bool,
    client: Option<IpAddr>,
    is_untrusted: bool,
}

impl Chain {
    /// The rightmost untrusted address is the client: it may have forged everything to its left. Without one, the client is the leftmost
    /// trusted proxy.
    fn push(&mut self, hop: Hop, proxies: &TrustedProxies) {
        self.is_there = true;
        match hop {
            Hop::Address(address) if !proxies.has(address) => (self.client, self.is_untrusted) = (Some(address), true),
            Hop::Address(address) => self.client = self.client.or(Some(address)),
            Hop::Unknown => (self.client, self.is_untrusted) = (None, false),
        }
    }
}

impl TrustedProxies {
    pub(crate) fn new(networks: Vec<IpNet>) -> Self {
        Self(networks.into())
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request that came from `peer` with this head. If two headers contradict each other, a proxy passed one of them on
    /// unchanged, and neither is used.
    pub(crate) fn client(&self, peer: IpAddr, head: &[u8]) -> IpAddr {
        if !self.has(peer) {
            return peer;
        }
        let [mut listed, mut forwarded] = [Chain::default(), Chain::default()];
        forwarded::hops(head, &mut |header, hop| match header {
            forwarded::Header::XForwardedFor => listed.push(hop, self),
            forwarded::Header::Forwarded => forwarded.push(hop, self),
        });
        let client = match (listed.is_there, forwarded.is_there) {
            (true, true) => listed.client.filter(|client| forwarded.client == Some(*client)),
            (true, false) => listed.client,
            (false, _) => forwarded.client,
        };
        client.unwrap_or(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(peer: &str, headers: &[&str]) -> String {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|network| network.parse().unwrap());
        let head = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", headers.join("\r\n"));
        TrustedProxies::new(networks.into()).client(peer.parse().unwrap(), head.as_bytes()).to_string()
    }

    #[test]
    fn rightmost_untrusted_address_is_the_client() {
        for (headers, expected) in [
            (&["X-Forwarded-For: 203.0.113.7"][..], "203.0.113.7"),
            (&["x-forwarded-for: 1.1.1.1, 203.0.113.7 ,10.2.2.2"], "203.0.113.7"),
            (&["X-Forwarded-For: 1.1.1.1", "X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 10.2.2.2"], "203.0.113.7"),
            (&["X-Forwarded-For: 10.3.3.3, 10.2.2.2"], "10.3.3.3"),
            (&["X-Forwarded-For: 203.0.113.7:4711"], "203.0.113.7"),
            (&["X-Forwarded-For: 2001:db8::7"], "2001:db8::7"),
            (&["X-Forwarded-For: [2001:db8::7]:80"], "2001:db8::7"),
            (&["X-Forwarded-For: ::ffff:203.0.113.7"], "203.0.113.7"),
            (&["Forwarded: for=1.1.1.1, For=203.0.113.7;proto=http, for=10.2.2.2"], "203.0.113.7"),
            (&["Forwarded: proto=https;for=\"[2001:db8::7]:4711\";by=10.1.1.1"], "2001:db8::7"),
            (&["Forwarded: for=203.0.113.7;host=\"a,for=1.1.1.1;\\\"b\""], "203.0.113.7"),
            (&["Forwarded: for=203.0.113.7", "X-Forwarded-For: 203.0.113.7"], "203.0.113.7"),
            (&["Forwarded: for=1.1.1.1;x=\"", "Forwarded: for=203.0.113.7, for=10.2.2.2"], "203.0.113.7"),
            (&["Forwarded: for=[2001:db8::7]:80 ; proto=https ,, for=10.2.2.2,"], "2001:db8::7"),
            (&["X-Forwarded-For: \", 203.0.113.7"], "203.0.113.7"),
            (&["X-Forwarded-For: 1.1.1.1\\\", 203.0.113.7"], "203.0.113.7"),
        ] {
            assert_eq!(client("10.1.1.1", headers), expected, "{headers:?}");
            assert_eq!(client("fd00::1", headers), expected, "{headers:?}");
            assert_eq!(client("192.0.2.1", headers), "192.0.2.1", "an untrusted peer is ignored: {headers:?}");
        }
    }

    #[test]
    fn unknown_client_is_the_last_trusted_proxy() {
        for (headers, expected) in [
            (&[][..], "10.1.1.1"),
            (&["X-Forwarded-For:"], "10.1.1.1"),
            (&["X-Forwarded-For: unknown"], "10.1.1.1"),
            (&["X-Forwarded-For: 203.0.113.7, unknown"], "10.1.1.1"),
            (&["X-Forwarded-For: 203.0.113.7, nonsense, 10.2.2.2"], "10.2.2.2"),
            (&["Forwarded: for=_hidden"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1, by=10.1.1.1"], "10.1.1.1"),
            (&["Forwarded: for=\"1.1.1.1"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;x=\", for=203.0.113.7"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;x=\", for=\"[2001:db8::7]\""], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;x=\"\\, for=\"[2001:db8::7]\""], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;x=\"a\"b, for=203.0.113.7"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;, for=203.0.113.7"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;for=2.2.2.2"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1 for=2.2.2.2"], "10.1.1.1"),
            (&["Forwarded: for = 1.1.1.1"], "10.1.1.1"),
            (&["Forwarded: 1.1.1.1"], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1;x=(, for=203.0.113.7"], "10.1.1.1"),
            (&["Forwarded: for=203.0.113.7", "Forwarded: for=1.1.1.1;x=\""], "10.1.1.1"),
            (&["Forwarded: for=1.1.1.1", "X-Forwarded-For: 203.0.113.7"], "10.1.1.1"),
            (&["X-Forwarded-Host: 1.1.1.1", "X-Real-IP: 1.1.1.1"], "10.1.1.1"),
        ] {
            assert_eq!(client("10.1.1.1", headers), expected, "{headers:?}");
        }
    }

    proptest! {
        #[test]
        fn no_header_panics(value in "[ -~]{0,60}") {
            client("10.1.1.1", &[&format!("Forwarded: {value}")]);
            client("10.1.1.1", &[&format!("X-Forwarded-For: {value}")]);
        }

        /// A proxy appends what it saw; the client wrote the rest.
        #[test]
        fn client_cannot_choose_its_address(written in "[a-z0-9.=;:,\"\\\\ ]{0,40}|(for=6\\.6\\.6\\.6|[;,]|x=|\"|\\\\){0,8}") {
            for appended in ["for=203.0.113.7", "for=\"203.0.113.7:80\";by=\"10.1.1.1\""] {
                let seen = client("10.1.1.1", &[&format!("Forwarded: {written}, {appended}")]);
                prop_assert!(["203.0.113.7", "10.1.1.1"].contains(&&*seen), "{}, {}: {}", written, appended, seen);
            }
            prop_assert_eq!(client("10.1.1.1", &[&format!("X-Forwarded-For: {written}, 203.0.113.7")]), "203.0.113.7");
        }
    }
}
