//! The changes of a reload, for the operator.

use std::collections::BTreeMap;

use gateway::BridgeRule;
use sink_remote::{Upstream, UpstreamConfig};

use crate::configuration::Configuration;
use crate::event_types::event_type::TypeConfig;

/// A sentence for each table that `after` adds, removes or changes, in the order of the documentation. A type counts as changed if its
/// schema or a lookup table has other content.
#[must_use]
pub fn changes(before: &Configuration, after: &Configuration) -> Vec<String> {
    let tables = [
        ("gateway", before.gateway != after.gateway),
        ("admin", before.admin != after.admin),
        ("console", before.console != after.console),
        ("journal", before.journal != after.journal),
        ("log", before.log != after.log),
        ("bus", before.bus != after.bus),
        ("otlp", before.push.otlp != after.push.otlp),
        ("statsd", before.push.statsd != after.push.statsd),
    ];
    let tables = tables.into_iter().filter(|(_, is_changed)| *is_changed);
    let mut changes: Vec<String> = tables.map(|(table, _)| format!("`[{table}]` has changed")).collect();
    changes.extend(compare("type", &types(before), &types(after)));
    changes.extend(compare("sink", &before.sinks, &after.sinks));
    changes.extend(compare("upstream", &upstreams(before), &upstreams(after)));
    changes.extend(compare("bridge", &bridges(before), &bridges(after)));
    changes.extend(compare("intake", &before.intakes, &after.intakes));
    changes
}

/// Bridges by their methods and path: those of two are different.
fn bridges(of: &Configuration) -> BTreeMap<String, &BridgeRule> {
    of.bridges.iter().map(|bridge| (bridge.name(), bridge)).collect()
}

fn types(of: &Configuration) -> BTreeMap<&str, &TypeConfig> {
    let named = of.types.iter().map(|(name, config)| (name.as_str(), config));
    named.chain(of.other_types.iter().map(|config| ("*", config))).collect()
}

fn upstreams(of: &Configuration) -> BTreeMap<&str, &UpstreamConfig> {
    of.upstreams.iter().map(Upstream::config).map(|config| (config.name.as_str(), config)).collect()
}

fn compare<K: Ord + ToString, V: PartialEq>(
    what: &str,
    before: &BTreeMap<K, V>,
    after: &BTreeMap<K, V>,
) -> Vec<String> {
    let present = after.iter().filter_map(|(name, now)| match before.get(name) {
        None => Some((name, "is new")),
        Some(known) => (known != now).then_some((name, "has changed")),
    });
    let removed = before.keys().filter(|name| !after.contains_key(name)).map(|name| (name, "is removed"));
    present.chain(removed).map(|(name, change)| format!("{what} {} {change}", name.to_string())).collect()
}
