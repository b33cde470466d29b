//! The lab's ports, and HAProxy's configuration.

use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};

pub(super) const GATEWAYS: u16 = 2;
pub(super) const WRITERS: u16 = 3;

/// All ports, by the first of them. `docs/guides/two-services.md` lists them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    first: u16,
}

impl Ports {
    pub(super) const fn from(first: u16) -> Self {
        Self { first }
    }

    fn at(self, offset: u16) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.first.saturating_add(offset)))
    }

    /// The address on which HAProxy accepts events.
    pub(super) fn front(self) -> SocketAddr {
        self.at(0)
    }

    /// The address of HAProxy's statistics.
    fn statistics(self) -> SocketAddr {
        self.at(1)
    }

    /// With `--bus`: the address of NATS.
    pub(super) fn nats(self) -> SocketAddr {
        self.at(2)
    }

    /// With `--bus`: the addresses of etcd, for clients and for peers.
    pub(super) fn etcd(self) -> (SocketAddr, SocketAddr) {
        (self.at(3), self.at(4))
    }

    /// The intake port and the admin port of a gateway.
    pub(super) fn gateway(self, number: u16) -> (SocketAddr, SocketAddr) {
        (self.at(11 + number), self.at(21 + number))
    }

    /// The port for gateways and the admin port of a writer.
    pub(super) fn writer(self, number: u16) -> (SocketAddr, SocketAddr) {
        (self.at(31 + number), self.at(41 + number))
    }

    pub(super) fn all(self) -> impl Iterator<Item = SocketAddr> {
        let pairs = (0..GATEWAYS).map(move |number| self.gateway(number));
        let pairs = pairs.chain((0..WRITERS).map(move |number| self.writer(number)));
        let own = [self.front(), self.statistics(), self.nats(), self.etcd().0, self.etcd().1];
        own.into_iter().chain(pairs.flat_map(|(port, admin)| [port, admin]))
    }

    /// A gateway gets requests as long as it is ready.
    pub(super) fn proxy_config(self) -> String {
        let mut config = format!(
            "defaults\n    mode http\n    timeout connect 2s\n    timeout client 60s\n    timeout server 60s\n\n\
             frontend statistics\n    bind {}\n    stats enable\n    stats uri /\n\n\
             frontend intake\n    bind {}\n    default_backend gateways\n\n\
             backend gateways\n    balance leastconn\n    option httpchk\n    \
             http-check send meth GET uri /readyz hdr Host localhost\n    default-server check inter 500ms fall 1 rise 1\n",
            self.statistics(),
            self.front()
        );
        for number in 0..GATEWAYS {
            // A String accepts any text.
            let _ = writeln!(config, "    server gateway-{} {}", number + 1, self.gateway(number).0);
        }
        config
    }

    /// Prints where to post and where the pages are.
    pub(super) fn print(self, has_bus: bool) {
        println!("post:     curl -i http://{}/ingest/event -d '{{\"hello\": \"world\"}}'", self.front());
        if has_bus {
            println!("services: curl -i http://{0}/prices/tea, http://{0}/orders/ID", self.front());
            println!("NATS:     nats://{}, etcd: http://{}", self.nats(), self.etcd().0);
        }
        println!("HAProxy:  http://{}/", self.statistics());
        for number in 0..GATEWAYS {
            let (intake, admin) = self.gateway(number);
            println!("gateway {}: http://{intake}, admin API and metrics http://{admin}/metrics", number + 1);
        }
        for number in 0..WRITERS {
            let (port, admin) = self.writer(number);
            println!("writer {}:  http://{port}, metrics http://{admin}/metrics", number + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_unique_and_haproxy_has_all_gateways() {
        let ports = Ports::from(8480);
        let all: Vec<SocketAddr> = ports.all().collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 15);
        assert_eq!(all[0], "127.0.0.1:8480".parse().unwrap());
        let config = ports.proxy_config();
        for number in 0..GATEWAYS {
            let line = format!("server gateway-{} {}\n", number + 1, ports.gateway(number).0);
            assert!(config.contains(&line), "{config}");
        }
    }
}
