//! The shared server, and containers on it, each test's with a proxy before it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use event::EventId;
use net::http_client::Endpoint;
use objects::Line;
use objects::{Codec, ObjectFormat, ObjectSink, Prefix, SideFolder};
use sink::Sink;
use sink_s3::S3Config;
use sink_swift::{Auth, SwiftConfig};

use crate::lines;
use testkit::proxy::Proxy;
use testkit::swift::{KEY, SwiftServer, USER};

/// The server, if Swift is installed.
pub(crate) fn server() -> Option<&'static SwiftServer> {
    SwiftServer::shared()
}

/// What is spoken with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Swift,
    S3,
}

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Swift, Protocol::S3];
/// Those of objects that have lines.
pub(crate) const OF_LINES: [Codec; 3] = [Codec::None, Codec::Gzip, Codec::Zstd];

/// A container with a proxy before it.
pub(crate) struct Fixture<'a> {
    pub(crate) server: &'a SwiftServer,
    pub(crate) proxy: Proxy,
    pub(crate) container: String,
    pub(crate) protocol: Protocol,
    pub(crate) rules: ObjectFormat,
}

pub(crate) fn rules(codec: Codec, prefix: &str) -> ObjectFormat {
    let prefix = if prefix.is_empty() { Prefix::NONE } else { prefix.parse().unwrap() };
    let (line, age_max) = (Line::Envelope, Duration::from_secs(1));
    let manifests = SideFolder::manifests();
    ObjectFormat { line, codec, bytes_max: 1 << 20, records_max: 1_000, age_max, prefix, apart: None, manifests }
}

/// The object that a manifest of this name describes.
pub(crate) fn object_of(name: &str) -> Option<&str> {
    name.strip_prefix("_manifests/")?.strip_suffix(".manifest.json")
}

/// `TempAuth` behind this address.
pub(crate) fn tempauth(place: impl std::fmt::Display, user: &str) -> Auth {
    let url = format!("http://{place}/auth/v1.0").parse().unwrap();
    Auth::TempAuth { url, user: user.to_owned(), key: KEY.into() }
}

impl<'a> Fixture<'a> {
    pub(crate) fn new(server: &'a SwiftServer, protocol: Protocol) -> Self {
        Self::with(server, protocol, Codec::None)
    }

    pub(crate) fn with(server: &'a SwiftServer, protocol: Protocol, codec: Codec) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let container = format!("test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let proxy = Proxy::to(server.address());
        Self { server, proxy, container, protocol, rules: rules(codec, "of/{day}/") }
    }

    pub(crate) fn sink(&self) -> Sink {
        self.sink_by(self.proxy.address())
    }

    /// The store alone, past this fixture's proxy.
    pub(crate) fn store(&self) -> ObjectSink {
        let place = self.server.address();
        ObjectSink::of(&self.sink_by(place)).unwrap().clone()
    }

    /// A sink on the same container past this fixture's proxy.
    pub(crate) fn past_the_proxy(&self) -> Sink {
        self.sink_by(self.server.address())
    }

    fn sink_by(&self, place: std::net::SocketAddr) -> Sink {
        match self.protocol {
            Protocol::Swift => sink_swift::sink(self.swift(tempauth(place, USER))),
            Protocol::S3 => sink_s3::sink(self.s3(format!("http://{place}").parse().unwrap())),
        }
    }

    pub(crate) fn swift(&self, auth: Auth) -> SwiftConfig {
        let (container, rules) = (self.container.parse().unwrap(), self.rules.clone());
        SwiftConfig { auth, container, rules, ca: None, timeout: Duration::from_secs(20) }
    }

    pub(crate) fn s3(&self, url: Endpoint) -> S3Config {
        S3Config {
            url,
            is_in_host: false,
            region: "us-east-1".to_owned(),
            bucket: self.container.parse().unwrap(),
            access_key: USER.to_owned(),
            secret_key: KEY.into(),
            rules: self.rules.clone(),
            ca: None,
            timeout: Duration::from_secs(20),
        }
    }

    /// All events of objects that have a description, with payloads.
    pub(crate) fn events(&self) -> Vec<(EventId, Vec<u8>)> {
        let client = self.server.client();
        let names = client.list(&self.container);
        let described = names.iter().filter_map(|name| object_of(name));
        let objects = described.map(|name| (name, client.get(&self.container, name).unwrap()));
        objects.flat_map(|(name, bytes)| lines::events(name, &bytes)).collect()
    }

    /// How many events there are; fails where one is there twice.
    pub(crate) fn count(&self) -> u64 {
        let mut ids: Vec<_> = self.events().into_iter().map(|(id, _)| id).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "each event is there once");
        count as u64
    }

    /// The name of the only object.
    pub(crate) fn only_object(&self) -> String {
        let names = self.server.client().list(&self.container);
        assert_eq!(names.len(), 2, "{names:?}");
        names.into_iter().find(|name| !name.ends_with(".manifest.json")).unwrap()
    }
}
