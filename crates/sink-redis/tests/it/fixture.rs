//! A server for all tests of this process, and keys on it, each test's with a proxy in front.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use event::EventId;
use sink::Sink;
use sink_redis::{Deployment, Redis, RedisConfig, Structure};

use testkit::proxy::Proxy;
use testkit::redis::{RedisReply, RedisServer};

/// The server, if Redis is installed.
pub(crate) fn server() -> Option<&'static RedisServer> {
    static SERVER: OnceLock<Option<RedisServer>> = OnceLock::new();
    SERVER.get_or_init(RedisServer::start).as_ref()
}

/// A stream of no limit.
pub(crate) const STREAM: Structure = Structure::Stream { entries_max: None };

/// Keys with a proxy in front of them.
pub(crate) struct Fixture<'a> {
    pub(crate) server: &'a RedisServer,
    pub(crate) proxy: Proxy,
    /// The prefix of the keys, or the key.
    pub(crate) key: String,
    pub(crate) config: RedisConfig,
}

impl<'a> Fixture<'a> {
    pub(crate) fn new(server: &'a RedisServer, structure: Structure) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let key = format!("k{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let proxy = Proxy::start(&server.socket());
        let pattern = if structure.needs_id() { format!("{key}:{{id}}") } else { key.clone() };
        let config = RedisConfig {
            server: format!("redis://{}", proxy.address()).parse().unwrap(),
            deployment: Deployment::Alone,
            ca: None,
            key: pattern.parse().unwrap(),
            structure,
            timeout: Duration::from_secs(20),
            connections_max: RedisConfig::CONNECTIONS_MAX,
        };
        Self { server, proxy, key, config }
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::new(Redis::new(self.config.clone()))
    }

    /// A sink on the same keys past this fixture's proxy.
    pub(crate) fn past_the_proxy(&self) -> Sink {
        let server = format!("redis://{}", Proxy::start(&self.server.socket()).address()).parse().unwrap();
        Sink::new(Redis::new(RedisConfig { server, ..self.config.clone() }))
    }

    /// The entries of the stream, with ids and payloads.
    pub(crate) fn entries(&self) -> Vec<(EventId, Vec<u8>)> {
        entries(self.server, &self.key)
    }

    /// How many entries the stream has.
    pub(crate) fn count(&self) -> u64 {
        self.server.ask(&["XLEN", &self.key]).number()
    }
}

/// The entries of a stream, with ids and payloads.
pub(crate) fn entries(server: &RedisServer, key: &str) -> Vec<(EventId, Vec<u8>)> {
    let row = |entry: RedisReply| {
        // A result's revision is between the id and the payload.
        let mut fields = entry.list().remove(1).list().into_iter();
        let [name, id] = [fields.next().unwrap(), fields.next().unwrap()];
        let [payload, other] = [fields.next_back().unwrap(), fields.next_back().unwrap()];
        assert_eq!((name.text().as_str(), other.text().as_str()), ("id", "payload"));
        (id.text().parse().unwrap(), payload.bytes())
    };
    server.ask(&["XRANGE", key, "-", "+"]).list().into_iter().map(row).collect()
}

/// Waits until a condition holds, while others continue.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "it doesn't hold after a minute: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
