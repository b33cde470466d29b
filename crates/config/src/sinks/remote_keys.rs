//! The settings of sinks of kind `writer`.

use std::collections::BTreeSet;

use crate::sinks::kinds::KINDS;

/// The settings that don't depend on the store.
const OWN: &[&str] = &["kind", "from", "max_backlog", "upstream", "sink", "store", "read"];

/// The settings: those that don't depend on the store, and the layout of each store.
pub(crate) fn all() -> Vec<&'static str> {
    let layouts = KINDS.iter().flat_map(|kind| kind.layout()).flat_map(|(_, keys)| *keys);
    let of_stores: BTreeSet<&str> = layouts.copied().collect();
    OWN.iter().copied().chain(of_stores).collect()
}

#[cfg(test)]
mod tmp {
    #[test]
    fn same() {
        let mut a = super::all();
        a.sort();
        let mut b = vec![
            "kind",
            "from",
            "max_backlog",
            "upstream",
            "sink",
            "store",
            "read",
            "table",
            "partition",
            "columns",
            "payload",
            "payload_type",
            "conflict",
            "mode",
            "key",
            "field",
            "by",
            "max_entries",
            "stream",
            "subject",
            "index",
            "data_stream",
            "envelope",
            "codec",
            "format",
            "object",
            "object_from",
            "object_type_from",
            "max_bytes",
            "max_records",
            "max_age",
            "serve",
            "cache_control",
            "revalidate",
            "stale",
            "shard_by",
            "shards",
        ];
        b.sort();
        assert_eq!(a, b);
    }
}
