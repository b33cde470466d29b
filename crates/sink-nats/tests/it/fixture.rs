//! A server for all tests of this process, and a stream on it, each test's with a proxy in front.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use event::EventId;
use sink::Sink;
use sink_nats::{Creation, Nats, NatsConfig};

use testkit::nats::NatsServer;
use testkit::proxy::Proxy;

/// The server, if NATS was built.
pub(crate) fn server() -> Option<&'static NatsServer> {
    static SERVER: OnceLock<Option<NatsServer>> = OnceLock::new();
    SERVER.get_or_init(NatsServer::start).as_ref()
}

/// A stream with a proxy in front of it.
pub(crate) struct Fixture<'a> {
    pub(crate) server: &'a NatsServer,
    pub(crate) proxy: Proxy,
    pub(crate) stream: String,
    pub(crate) config: NatsConfig,
}

impl<'a> Fixture<'a> {
    pub(crate) fn new(server: &'a NatsServer) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let stream = format!("S{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let proxy = Proxy::to(server.address());
        let config = NatsConfig {
            servers: format!("nats://{}", proxy.address()).parse().unwrap(),
            credentials: None,
            ca: None,
            stream: stream.parse().unwrap(),
            subject: format!("{stream}.{{type}}").parse().unwrap(),
            creation: Some(Creation { replicas: 1, age_max: None }),
            timeout: Duration::from_secs(20),
            connections_max: NatsConfig::CONNECTIONS_MAX,
        };
        Self { server, proxy, stream, config }
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::new(Nats::new(self.config.clone()))
    }

    /// A sink on the same stream past this fixture's proxy.
    pub(crate) fn past_the_proxy(&self) -> Sink {
        let servers = format!("nats://{}", self.server.address()).parse().unwrap();
        Sink::new(Nats::new(NatsConfig { servers, ..self.config.clone() }))
    }

    /// The messages of events, with ids and payloads, in the stream's order.
    pub(crate) fn messages(&self) -> Vec<(EventId, Vec<u8>)> {
        let messages = self.server.client().messages(&self.stream, &format!("{}.>", self.stream));
        let row = |message: testkit::nats::NatsMessage| {
            let id = message.header("Nats-Msg-Id").unwrap();
            // A result's id is followed by its revision.
            (id[..36].parse().unwrap(), message.payload)
        };
        messages.into_iter().map(row).collect()
    }

    /// How many messages the stream has, including those of cursors.
    pub(crate) fn count(&self) -> u64 {
        self.server.client().count(&self.stream).unwrap_or(0)
    }

    /// The subjects of the stream, as JSON.
    pub(crate) fn subjects(&self) -> String {
        format!("[\"{0}.>\",\"forebay.cursors.{0}.>\"]", self.stream)
    }

    /// The configuration of a stream as the sink creates it, with other settings appended: members of JSON, each with a
    /// comma before it.
    pub(crate) fn description(&self, settings: &str) -> String {
        let usual = [
            ("retention", "\"limits\""),
            ("discard", "\"new\""),
            ("storage", "\"file\""),
            ("num_replicas", "1"),
            ("allow_atomic", "true"),
            ("allow_rollup_hdrs", "true"),
            ("allow_msg_ttl", "true"),
            ("allow_direct", "true"),
        ];
        let usual: String = usual
            .iter()
            .filter(|(name, _)| !settings.contains(&format!("\"{name}\"")))
            .map(|(name, value)| format!(",\"{name}\":{value}"))
            .collect();
        format!("{{\"name\":\"{}\",\"subjects\":{}{usual}{settings}}}", self.stream, self.subjects())
    }
}
