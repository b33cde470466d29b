//! A configuration for the tests of this folder.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::{DocumentConflictPolicy, DocumentShape, ElasticsearchConfig, IndexTarget};

pub(super) fn config() -> ElasticsearchConfig {
    ElasticsearchConfig {
        nodes: "http://127.0.0.1:9".parse().unwrap(),
        api_key: None,
        ca: None,
        index: "of-{type}".parse().unwrap(),
        target: IndexTarget::Indices,
        shape: DocumentShape::Payload,
        has_timestamp: true,
        template: None,
        conflict: DocumentConflictPolicy::default(),
        request_bytes: 1 << 20,
        requests_max: NonZeroUsize::MIN,
        gzip: false,
        timeout: Duration::from_secs(5),
        allowed: Default::default(),
    }
}
