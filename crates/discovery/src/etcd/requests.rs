//! The requests: leases, and the keys under the prefix.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Client, EtcdError};

/// The most keys of a prefix that a request returns.
const ENTRIES_MAX: usize = 1000;

/// A lease's id. etcd writes it as a decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct LeaseId(String);

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys under the prefix, and their values.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Each key with its value, in the order of the keys, without values that are not base64.
    pub(crate) values: Vec<(String, Vec<u8>)>,
    /// Whether there are more keys than the limit.
    pub(crate) has_more: bool,
}

#[derive(Deserialize)]
struct Range {
    #[serde(default)]
    kvs: Vec<KeyValue>,
    #[serde(default)]
    more: bool,
}

#[derive(Deserialize)]
struct KeyValue {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
struct Granted {
    #[serde(rename = "ID")]
    id: LeaseId,
}

#[derive(Deserialize)]
struct KeptAlive {
    result: Lease,
}

#[derive(Deserialize)]
struct Lease {
    /// Seconds that are left. Absent if etcd doesn't know the lease.
    #[serde(rename = "TTL", default)]
    ttl: Option<String>,
}

/// An answer whose content is ignored.
#[derive(Deserialize)]
struct Done {}

impl Client {
    /// All keys and values under the prefix.
    pub(crate) async fn entries(&mut self) -> Result<Entries, EtcdError> {
        let mut body = self.range();
        body["limit"] = json!(ENTRIES_MAX.to_string());
        let Range { kvs, more } = self.call("/v3/kv/range", &body).await?;
        let text = |key: &str| String::from_utf8_lossy(&STANDARD.decode(key).unwrap_or_default()).into_owned();
        let entry = |entry: &KeyValue| Some((text(&entry.key), STANDARD.decode(&entry.value).ok()?));
        let values = kvs.iter().filter_map(entry).collect();
        Ok(Entries { values, has_more: more })
    }

    /// Whether this key exists.
    pub(crate) async fn has(&mut self, key: &str) -> Result<bool, EtcdError> {
        let body = json!({ "key": STANDARD.encode(key), "keys_only": true });
        let Range { kvs, .. } = self.call("/v3/kv/range", &body).await?;
        Ok(!kvs.is_empty())
    }

    /// Writes a key that ends with the lease.
    pub(crate) async fn put(&mut self, key: &str, value: &str, lease: &LeaseId) -> Result<(), EtcdError> {
        let body = json!({ "key": STANDARD.encode(key), "value": STANDARD.encode(value), "lease": lease.0 });
        self.call("/v3/kv/put", &body).await.map(|Done {}| ())
    }

    /// Creates a lease of this length. etcd counts in seconds, and its shortest lease has two.
    pub(crate) async fn grant(&mut self, length: Duration) -> Result<LeaseId, EtcdError> {
        let body = json!({ "TTL": length.as_secs().to_string() });
        self.call("/v3/lease/grant", &body).await.map(|Granted { id }| id)
    }

    /// Renews a lease. `false`: etcd does not know it.
    pub(crate) async fn keep_alive(&mut self, lease: &LeaseId) -> Result<bool, EtcdError> {
        let KeptAlive { result } = self.call("/v3/lease/keepalive", &json!({ "ID": lease.0 })).await?;
        Ok(result.ttl.is_some_and(|left| left.parse().is_ok_and(|left: i64| left > 0)))
    }

    /// Ends a lease, and its keys with it.
    pub(crate) async fn revoke(&mut self, lease: &LeaseId) -> Result<(), EtcdError> {
        self.call("/v3/lease/revoke", &json!({ "ID": lease.0 })).await.map(|Done {}| ())
    }

    /// The keys under the prefix, as requests name them.
    pub(super) fn range(&self) -> Value {
        let prefix = self.config().prefix.as_bytes();
        // The prefix ends with a slash. The byte after it ends the range.
        let mut end = prefix.to_vec();
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        json!({ "key": STANDARD.encode(prefix), "range_end": STANDARD.encode(end) })
    }
}
