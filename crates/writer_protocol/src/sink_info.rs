//! A writer's description of a sink, which gateways compare.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sink::Mark;

use crate::object::ObjectLimits;

/// A writer's description of one of its sinks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkInfo {
    /// The kind of store, as configurations name it.
    pub kind: String,
    /// Whether events can be read back from it.
    pub reads: bool,
    /// A warning: what the store may lose although it has answered.
    pub warning: Option<String>,
    /// The store's mark, as 32 hexadecimal digits, if it can keep one.
    pub mark: Option<String>,
    /// Where and how it stores, by the names of settings: the table, its columns, keys, subjects. They are equal in all writers of an
    /// upstream.
    pub parts: BTreeMap<String, String>,
    /// The largest objects that it accepts, if it stores objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectLimits>,
}

impl SinkInfo {
    /// The store's mark.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.mark.as_deref()?.parse().ok()
    }

    /// A hash of the kind and the parts, as 16 hexadecimal digits. Sinks that store alike have the same one.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = serde_json::to_vec(&(&self.kind, &self.parts)).unwrap_or_default();
        format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&text))
    }

    /// The first part that differs from `other`: its name, its value here and in `other`. An absent part is `none`.
    #[must_use]
    pub fn difference<'a>(&'a self, other: &'a Self) -> Option<(&'a str, &'a str, &'a str)> {
        if self.kind != other.kind {
            return Some(("kind", &self.kind, &other.kind));
        }
        let of = |info: &'a Self, name: &str| info.parts.get(name).map_or("none", String::as_str);
        let names = self.parts.keys().chain(other.parts.keys());
        let mut parts = names.map(|name| (name.as_str(), of(self, name), of(other, name)));
        parts.find(|(_, here, there)| here != there)
    }
}
