//! The shared server, and an index on it, each test's with a proxy in front.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use sink::Sink;
use sink_elasticsearch::{DocumentConflictPolicy, DocumentShape, Elasticsearch, ElasticsearchConfig, IndexTarget};

use testkit::opensearch::OpenSearch;
use testkit::proxy::Proxy;

/// The template of the tests' indices: documents aren't mapped, so any payload is accepted.
const TEMPLATE: &str = r#"{
    "index_patterns": ["fixture-k*"],
    "template": {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"dynamic": false, "properties": {"payload": {"type": "object", "enabled": false}}}
    }
}"#;

/// The template of indices of envelopes: events are found by three members, and the rest isn't mapped.
const ENVELOPES: &str = r#"{
    "index_patterns": ["fixture-e*"],
    "template": {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {"dynamic": false, "properties": {
            "id": {"type": "keyword"}, "type": {"type": "keyword"}, "received_at": {"type": "keyword"},
            "payload": {"type": "object", "enabled": false}
        }}
    }
}"#;

/// The server, if it was fetched.
pub(crate) fn server() -> Option<&'static OpenSearch> {
    static SERVER: OnceLock<Option<&'static OpenSearch>> = OnceLock::new();
    let start = || OpenSearch::shared().inspect(|server| set_up(server));
    *SERVER.get_or_init(start)
}

/// Installs the templates of the tests.
pub(crate) fn set_up(server: &OpenSearch) {
    server.done("PUT", "/_index_template/tests", TEMPLATE);
    server.done("PUT", "/_index_template/envelopes", ENVELOPES);
}

/// An index with a proxy in front of it. It is removed with the fixture.
pub(crate) struct Fixture<'a> {
    pub(crate) server: &'a OpenSearch,
    pub(crate) proxy: Proxy,
    pub(crate) index: String,
    pub(crate) config: ElasticsearchConfig,
}

/// A sink's configuration on a server.
pub(crate) fn config(url: &str, index: &str) -> ElasticsearchConfig {
    ElasticsearchConfig {
        nodes: url.parse().unwrap(),
        api_key: None,
        ca: None,
        index: index.parse().unwrap(),
        target: IndexTarget::Indices,
        shape: DocumentShape::Payload,
        has_timestamp: true,
        template: None,
        conflict: DocumentConflictPolicy::DeadLetter,
        request_bytes: 1 << 20,
        requests_max: NonZeroUsize::new(4).unwrap(),
        gzip: false,
        timeout: Duration::from_secs(60),
        allowed: Default::default(),
    }
}

impl<'a> Fixture<'a> {
    pub(crate) fn new(server: &'a OpenSearch) -> Self {
        Self::named(server, 'k')
    }

    /// An index whose mapping follows from its documents.
    pub(crate) fn dynamic(server: &'a OpenSearch) -> Self {
        Self::named(server, 'd')
    }

    /// An index of envelopes, from which events can be read.
    pub(crate) fn envelopes(server: &'a OpenSearch) -> Self {
        let mut fixture = Self::named(server, 'e');
        fixture.config.shape = DocumentShape::Envelope;
        fixture
    }

    fn named(server: &'a OpenSearch, beginning: char) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let index = format!("fixture-{beginning}{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let proxy = Proxy::to(server.address());
        let config = config(&format!("http://{}", proxy.address()), &index);
        Self { server, proxy, index, config }
    }

    pub(crate) fn sink(&self) -> Sink {
        Sink::new(Elasticsearch::new(self.config.clone()))
    }

    /// A sink on the same index past this fixture's proxy.
    pub(crate) fn past_the_proxy(&self) -> Sink {
        let nodes = format!("http://{}", Proxy::to(self.server.address()).address()).parse().unwrap();
        Sink::new(Elasticsearch::new(ElasticsearchConfig { nodes, ..self.config.clone() }))
    }

    /// The documents of all indices with this one's prefix: index, id and text of each.
    pub(crate) fn documents(&self) -> Vec<(String, String, String)> {
        let pattern = format!("{0},{0}-*", self.index);
        self.server.done("POST", &format!("/{pattern}/_refresh?ignore_unavailable=true"), "");
        let found = self.server.get(&format!("/{pattern}/_search?ignore_unavailable=true&size=10000"));
        let found: Found = serde_json::from_str(&found).unwrap();
        let row = |hit: Hit| (hit.index, hit.id, hit.source.get().to_owned());
        found.hits.hits.into_iter().map(row).collect()
    }

    /// How many documents the index has.
    pub(crate) fn count(&self) -> usize {
        self.server.done("POST", &format!("/{}/_refresh?ignore_unavailable=true", self.index), "");
        let counted = self.server.get(&format!("/{}/_count?ignore_unavailable=true", self.index));
        let counted: Value = serde_json::from_str(&counted).unwrap();
        usize::try_from(counted["count"].as_u64().unwrap()).unwrap()
    }
}

impl Drop for Fixture<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.server.ask("DELETE", &format!("/{0},{0}-*?ignore_unavailable=true", self.index), "");
        }
    }
}

#[derive(serde::Deserialize)]
struct Found {
    hits: Hits,
}

#[derive(serde::Deserialize)]
struct Hits {
    hits: Vec<Hit>,
}

#[derive(serde::Deserialize)]
struct Hit {
    #[serde(rename = "_index")]
    index: String,
    #[serde(rename = "_id")]
    id: String,
    #[serde(rename = "_source")]
    source: Box<serde_json::value::RawValue>,
}
