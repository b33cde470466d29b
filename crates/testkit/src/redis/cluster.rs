//! A cluster of three masters with a replica each.

use crate::ports::free_port;
use crate::redis::{RedisReply, RedisServer};
use crate::wait::wait_until;

const MASTERS: usize = 3;
const LAST_SLOT: u16 = 16_383;

/// The nodes; all end with their test. Node `n + 3` is the replica of node `n` in the beginning.
pub struct Cluster {
    pub nodes: Vec<RedisServer>,
    /// Their addresses.
    pub ports: Vec<u16>,
}

impl Cluster {
    /// A cluster whose nodes announce the ports that `announced` returns for theirs, and in which a node that sends
    /// nothing for so many milliseconds counts as dead. `None`, and a message, if Redis isn't installed.
    pub fn start(timeout: u32, announced: impl Fn(u16) -> u16) -> Option<Self> {
        let ports: Vec<u16> = (0..2 * MASTERS).map(|_| free_port()).collect();
        let bus_ports: Vec<String> = ports.iter().map(|_| free_port().to_string()).collect();
        let (mut nodes, timeout) = (Vec::new(), timeout.to_string());
        for (port, bus) in ports.iter().zip(&bus_ports) {
            let (port, announced) = (port.to_string(), announced(*port).to_string());
            let durable = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];
            let cluster = ["--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", &timeout];
            let replicas = ["--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no"];
            let places = ["--port", &port, "--cluster-announce-ip", "127.0.0.1", "--cluster-announce-port", &announced];
            nodes.push(RedisServer::start_with(&[&durable[..], &cluster, &replicas, &places].concat())?);
        }
        let cluster = Self { nodes, ports };
        cluster.join(&bus_ports);
        Some(cluster)
    }

    fn join(&self, bus_ports: &[String]) {
        let Self { nodes, ports } = self;
        for (number, node) in nodes.iter().enumerate() {
            node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            if number < MASTERS {
                let edge = |number: usize| usize::from(LAST_SLOT + 1) * number / MASTERS;
                let (first, last) = (edge(number).to_string(), (edge(number + 1) - 1).to_string());
                node.ask(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
            nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &ports[number].to_string(), &bus_ports[number]]);
        }
        let knows_all = |node: &RedisServer| {
            let info = node.ask(&["CLUSTER", "INFO"]).text();
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:6")
        };
        wait_until("all nodes know each other", || nodes.iter().all(knows_all));
        for number in 0..MASTERS {
            let (master, replica) = (self.id(number), &nodes[number + MASTERS]);
            wait_until("a replica takes its master", || {
                replica.client().try_ask(&["CLUSTER", "REPLICATE", &master]).is_ok()
            });
        }
        let is_following =
            |node: &RedisServer| node.ask(&["INFO", "replication"]).text().contains("master_link_status:up");
        wait_until("the replicas follow", || nodes[MASTERS..].iter().all(is_following));
        let has_replicas = |node: &RedisServer| {
            node.ask(&["CLUSTER", "SLOTS"]).list().into_iter().all(|range| range.list().len() == 4)
        };
        wait_until("all nodes know all replicas", || nodes.iter().all(has_replicas));
    }

    /// The other one of a master and its replica.
    pub fn other(&self, node: usize) -> usize {
        (node + MASTERS) % self.nodes.len()
    }

    /// A node's name of forty digits.
    pub fn id(&self, node: usize) -> String {
        self.nodes[node].ask(&["CLUSTER", "MYID"]).text()
    }

    /// Which slot a key has.
    pub fn slot(&self, key: &str) -> u64 {
        self.ask(&["CLUSTER", "KEYSLOT", key]).number()
    }

    /// The node that serves a key, according to this node.
    pub fn owner_as_seen_by(&self, node: usize, key: &str) -> Option<usize> {
        let slot = self.slot(key);
        let ranges = self.nodes[node].client().try_ask(&["CLUSTER", "SLOTS"]).ok()?.list();
        let mut ranges = ranges.into_iter().map(RedisReply::list);
        let mut range = ranges.find(|range| (range[0].clone().number()..=range[1].clone().number()).contains(&slot))?;
        let id = range.remove(2).list().remove(2).text();
        (0..self.nodes.len()).find(|number| self.nodes[*number].answers() && self.id(*number) == id)
    }

    /// The answer of the node that serves a key.
    pub fn ask(&self, words: &[&str]) -> RedisReply {
        self.try_ask(words).unwrap_or_else(|| panic!("nobody answers {words:?}"))
    }

    /// The same; `None` without an answer.
    pub fn try_ask(&self, words: &[&str]) -> Option<RedisReply> {
        let mut running = self.nodes.iter().filter(|node| node.answers());
        running.find_map(|node| node.client().try_ask(words).ok())
    }

    /// All keys that match, on all masters.
    pub fn keys(&self, pattern: &str) -> Vec<String> {
        let is_master =
            |node: &&RedisServer| node.answers() && node.ask(&["ROLE"]).list()[0].clone().text() == "master";
        let keys = |node: &RedisServer| node.ask(&["KEYS", pattern]).list().into_iter().map(RedisReply::text);
        self.nodes.iter().filter(is_master).flat_map(keys).collect()
    }
}
