//! Ports for servers that tests, benchmarks and campaigns start. Used by several crates; it needs nothing but std.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that outgoing connections are given, of which one could be taken between the search and the start of a server, or
/// while a server is down that shall come back; and a client that knocks while none listens is never connected to itself.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;
/// Processes begin so many ports apart.
const OF_A_PROCESS: u32 = 64;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port of 127.0.0.1 that nothing listens on, and that this process was never given before.
pub fn free_port() -> u16 {
    let begin = std::process::id().wrapping_mul(OF_A_PROCESS);
    for _ in 0..COUNT {
        let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or(0);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free from {FIRST} to {}", FIRST + COUNT)
}

/// Such a port with its address.
pub fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}
