//! Ports for servers that tests, benchmarks and campaigns start. Used by several crates; it needs nothing but std.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports of outgoing connections. One of those could be in use by the start of a server, or while a restarted server is down; and
/// a client that connects to a port without a listener could be connected to itself.
const FIRST: u16 = 15_000;
const COUNT: u16 = 17_000;
/// Processes begin so many ports apart.
const OF_A_PROCESS: u32 = 64;

static NEXT: AtomicU32 = AtomicU32::new(0);
/// The reservations of this process. They end with it, however it ends.
static RESERVED: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Reserves a port of 127.0.0.1 that nothing listens on, for the life of this process. Other processes that use this function skip it,
/// also while no server listens on it.
pub fn reserve(port: u16) -> bool {
    // Only one process has an abstract name at a time, and no file is left.
    let name = net::SocketAddr::from_abstract_name(format!("forebay-test-port-{port}")).unwrap();
    let Ok(reservation) = UnixListener::bind_addr(&name) else { return false };
    if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err() {
        return false;
    }
    RESERVED.lock().unwrap().push(reservation);
    true
}

/// A port of 127.0.0.1 that nothing listens on, and that no other process of tests is given while this one runs.
pub fn free_port() -> u16 {
    let begin = std::process::id().wrapping_mul(OF_A_PROCESS);
    for _ in 0..COUNT {
        let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).unwrap_or(0);
        if reserve(port) {
            return port;
        }
    }
    panic!("no port is free from {FIRST} to {}", FIRST + COUNT)
}

/// Such a port with its address.
pub fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_port_is_given_once() {
        let port = free_port();
        assert!(!reserve(port), "it is reserved already");
        assert_ne!(free_port(), port);
    }
}
