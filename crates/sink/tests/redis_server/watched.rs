//! A master, its replica, and three sentinels that watch them.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use crate::redis_server::{RedisServer, free_port, wait_until};

/// What the sentinels call the master.
pub const NAME: &str = "live";

/// The servers; all end with their test.
pub struct Watched {
    pub servers: [RedisServer; 2],
    pub ports: [u16; 2],
    pub sentinels: [RedisServer; 3],
    pub sentinel_ports: [u16; 3],
}

impl Watched {
    /// The first server is the master. `None`, and a message, where Redis isn't installed.
    pub fn start() -> Option<Self> {
        let ports = [free_port(), free_port()];
        let start = |port: u16, more: &[&str]| {
            let port = port.to_string();
            let settings = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
            RedisServer::start_with(&[&settings, &["--port", &port][..], more].concat())
        };
        let master = start(ports[0], &[])?;
        let replica = start(ports[1], &["--replicaof", "127.0.0.1", &ports[0].to_string()])?;
        wait_until("the replica follows", || is_following(&replica));
        let sentinel_ports = [free_port(), free_port(), free_port()];
        let lines = |port| {
            format!(
                "port {port}\nsentinel monitor {NAME} 127.0.0.1 {} 2\nsentinel down-after-milliseconds {NAME} 1000\n\
                 sentinel failover-timeout {NAME} 4000\n",
                ports[0]
            )
        };
        let sentinels = sentinel_ports.map(|port| RedisServer::sentinel(&lines(port)).unwrap());
        let watched = Self { servers: [master, replica], ports, sentinels, sentinel_ports };
        wait_until("the sentinels know each other and the replica", || {
            watched.sentinels.iter().all(|sentinel| {
                let of = |name| sentinel.ask(&["SENTINEL", "MASTER", NAME]).field(name).text();
                (of("num-other-sentinels"), of("num-slaves")) == ("2".to_owned(), "1".to_owned())
            })
        });
        Some(watched)
    }

    /// Which of the servers this sentinel takes for the master.
    pub fn master(&self, sentinel: usize) -> usize {
        let port = self.sentinels[sentinel].ask(&["SENTINEL", "MASTER", NAME]).field("port").text();
        usize::from(port != self.ports[0].to_string())
    }
}

/// Whether a server is a replica that has all that its master had when it began to follow.
pub fn is_following(server: &RedisServer) -> bool {
    server.ask(&["INFO", "replication"]).text().contains("master_link_status:up")
}
