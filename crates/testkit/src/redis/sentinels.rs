//! A master, its replica, and three sentinels that watch them.

use crate::ports::free_port;
use crate::redis::RedisServer;
use crate::wait::wait_until;

/// The sentinels' name for the master.
pub const NAME: &str = "live";

/// The servers; all end with their test.
pub struct Watched {
    pub servers: [RedisServer; 2],
    pub ports: [u16; 2],
    pub sentinels: [RedisServer; 3],
    pub sentinel_ports: [u16; 3],
}

impl Watched {
    /// The first server is the master. `None`, and a message, if Redis isn't installed.
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
            (0..3).all(|sentinel| {
                let of = |field| watched.says(sentinel, field);
                (of("num-other-sentinels"), of("num-slaves")) == ("2".to_owned(), "1".to_owned())
            })
        });
        Some(watched)
    }

    /// Which of the servers this sentinel takes for the master.
    pub fn master(&self, sentinel: usize) -> usize {
        usize::from(self.says(sentinel, "port") != self.ports[0].to_string())
    }

    /// The number of the latest failover that this sentinel knows.
    pub fn failover(&self, sentinel: usize) -> u64 {
        self.says(sentinel, "config-epoch").parse().unwrap()
    }

    fn says(&self, sentinel: usize, field: &str) -> String {
        self.sentinels[sentinel].ask(&["SENTINEL", "MASTER", NAME]).field(field).text()
    }
}

/// Whether a server is a replica that has all that its master had when it began to follow.
pub fn is_following(server: &RedisServer) -> bool {
    server.ask(&["INFO", "replication"]).text().contains("master_link_status:up")
}
