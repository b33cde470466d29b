//! Containers on a Swift server, each with a proxy before it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use event::EventId;
use objects::{Codec, Line, ObjectFormat, ObjectSink, Prefix, SideFolder};
use sink::Sink;
use testkit::proxy::Proxy;
use testkit::swift::SwiftServer;

use super::lines;

/// Creates a sink that writes objects of this format to a container of the server at this address.
pub type MakeSink = fn(SocketAddr, &str, ObjectFormat) -> Sink;

/// The codecs of objects that have lines.
pub const OF_LINES: [Codec; 3] = [Codec::None, Codec::Gzip, Codec::Zstd];

/// A container with a proxy before it.
pub struct ContainerFixture<'a> {
    /// The server.
    pub server: &'a SwiftServer,
    /// The proxy before it.
    pub proxy: Proxy,
    /// The container's name.
    pub container: String,
    /// The format of its objects.
    pub rules: ObjectFormat,
    make_sink: MakeSink,
}

/// Objects of up to 1 MiB and 1,000 events.
#[must_use]
pub fn rules(codec: Codec, prefix: &str) -> ObjectFormat {
    let prefix = if prefix.is_empty() { Prefix::NONE } else { prefix.parse().unwrap() };
    let (line, age_max) = (Line::Envelope, Duration::from_secs(1));
    let manifests = SideFolder::manifests();
    ObjectFormat { line, codec, bytes_max: 1 << 20, records_max: 1_000, age_max, prefix, apart: None, manifests }
}

/// The object that a manifest of this name describes.
fn object_of(name: &str) -> Option<&str> {
    name.strip_prefix("_manifests/")?.strip_suffix(".manifest.json")
}

impl<'a> ContainerFixture<'a> {
    /// A new container for plain lines.
    #[must_use]
    pub fn new(server: &'a SwiftServer, make_sink: MakeSink) -> Self {
        Self::with(server, make_sink, Codec::None)
    }

    /// A new container for objects of this codec.
    #[must_use]
    pub fn with(server: &'a SwiftServer, make_sink: MakeSink, codec: Codec) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Several test programs may use one server.
        let container = format!("test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let proxy = Proxy::to(server.address());
        Self { server, proxy, container, rules: rules(codec, "of/{day}/"), make_sink }
    }

    /// A new sink that connects through the proxy.
    #[must_use]
    pub fn sink(&self) -> Sink {
        self.sink_by(self.proxy.address())
    }

    /// The store alone, which doesn't connect through the proxy.
    #[must_use]
    pub fn store(&self) -> ObjectSink {
        ObjectSink::of(&self.past_the_proxy()).unwrap().clone()
    }

    /// A sink on the same container that doesn't connect through the proxy.
    #[must_use]
    pub fn past_the_proxy(&self) -> Sink {
        self.sink_by(self.server.address())
    }

    fn sink_by(&self, place: SocketAddr) -> Sink {
        (self.make_sink)(place, &self.container, self.rules.clone())
    }

    /// All events of objects that have a description, with payloads.
    #[must_use]
    pub fn events(&self) -> Vec<(EventId, Vec<u8>)> {
        let client = self.server.client();
        let names = client.list(&self.container);
        let described = names.iter().filter_map(|name| object_of(name));
        let objects = described.map(|name| (name, client.get(&self.container, name).unwrap()));
        objects.flat_map(|(name, bytes)| lines::events(name, &bytes)).collect()
    }

    /// The number of events. Panics if one is stored twice.
    #[must_use]
    pub fn count(&self) -> u64 {
        let mut ids: Vec<_> = self.events().into_iter().map(|(id, _)| id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "each event is there once");
        count as u64
    }

    /// The name of the only object.
    #[must_use]
    pub fn only_object(&self) -> String {
        let names = self.server.client().list(&self.container);
        assert_eq!(names.len(), 2, "{names:?}");
        names.into_iter().find(|name| !name.ends_with(".manifest.json")).unwrap()
    }
}
