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
