//! Targets and hosts.

use super::probe::{Probe, bad, begun};

/// Targets that are in none of the four forms, or not in one that their method has (RFC 9112 §3.2; RFC 3986 §2).
const TARGETS: &[&str] = &[
    "POST ingest/event",
    "POST x/ingest/event",
    "POST x",
    "POST x:80",
    "POST *",
    "POST *x",
    "POST */ingest/event",
    "OPTIONS *?",
    "CONNECT x:80",
    "CONNECT /ingest/event",
    "CONNECT http://x/",
    "POST http:/ingest/event",
    "POST http:ingest/event",
    "POST http:///ingest/event",
    "POST http://:80/ingest/event",
    "POST ftp://x/ingest/event",
    "POST //x:y@/ingest/event#",
    "POST http://x@x/ingest/event",
    "POST http://a:b@x/ingest/event",
    "POST http://x:y/ingest/event",
    "POST http://x\\@y/ingest/event",
    "POST http://[x/ingest/event",
    "POST http://[]/ingest/event",
    "POST http://x/ingest/event#a",
    "POST /ingest/event#a",
    "POST /ingest/event\0",
    "POST /ingest/event\u{1}",
    "POST /ingest/event\u{7f}",
    "POST /ingest/event?\u{e9}",
    "POST /ingest/event?a=\"b\"",
    "POST /ingest/event?<a>",
    "POST /ingest\\event",
    "POST /ingest/event?a^b",
    "POST /ingest/event?`a`",
    "POST /ingest/event?{a}",
    "POST /ingest/event?a|b",
    "POST /ingest/event?%",
    "POST /ingest/event?%2",
    "POST /ingest/event?%zz",
    "POST /ingest/%u0065vent",
];

/// No host, several hosts, and invalid hosts (RFC 9112 §3.2, RFC 3986 §3.2.2).
const HOSTS: &[&str] = &[
    "X: y",
    "Host: x\r\nHost: x",
    "Host: x\r\nHost: y",
    "Host: x\r\nX: y\r\nhost:",
    "Host: x y",
    "Host: x\ty",
    "Host: x/y",
    "Host: x?y",
    "Host: x#y",
    "Host: x\\y",
    "Host: x@y",
    "Host: x:y",
    "Host: x:1:2",
    "Host: x:-1",
    "Host: http://x",
    "Host: \"x\"",
    "Host: <x>",
    "Host: x\u{e9}",
    "Host: x\0",
    "Host: %zz",
    "Host: [",
    "Host: []",
    "Host: [::1",
    "Host: [::1]x",
    "Host: [x]",
    "Host: [:::]",
    "Host: [1.2.3.4]",
    "Host: [::1%25lo]",
    "Host : x",
    " Host: x",
    "Host:\r\n x",
];

pub(super) fn refused() -> Vec<Probe> {
    let targets = TARGETS.iter().map(|start| bad("RFC 9112 §3.2", begun(&format!("{start} HTTP/1.1\r\nHost: x"))));
    let hosts = HOSTS.iter().map(|host| bad("RFC 9112 §3.2", begun(&format!("POST /ingest/event HTTP/1.1\r\n{host}"))));
    let mut probes: Vec<_> = targets.chain(hosts).collect();
    // A client must send the same in both (RFC 9112 §3.2): if they differ, two parsers may use different ones.
    for (target, host) in [("http://y", "x"), ("http://x:80", "x"), ("http://x", "x:80"), ("http://x", "")] {
        let start = format!("POST {target}/ingest/event HTTP/1.1\r\nHost: {host}");
        probes.push(bad("RFC 9112 §3.2", begun(&start)));
    }
    probes.push(bad("RFC 9112 §3.2.2", begun("POST http://x/ingest/event HTTP/1.1")));
    probes
}
