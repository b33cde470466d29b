//! Settings that a running server can't change.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::num::NonZeroUsize;

use crate::configuration::Configuration;
use crate::gateway::GatewayConfig;

/// A sentence for each setting that is another one in `after`, and that only a start reads.
pub fn needs_restart(before: &Configuration, after: &Configuration, cores: NonZeroUsize) -> Vec<String> {
    let shards = |gateway: &GatewayConfig| gateway.shards_for(cores);
    let tables = [
        changed("gateway.listen", before.gateway.listen, after.gateway.listen),
        changed("gateway.admin", before.gateway.admin, after.gateway.admin),
        turned("gateway.tls", before.gateway.tls.is_some(), after.gateway.tls.is_some()),
        turned("admin.tls", before.admin.tls.is_some(), after.admin.tls.is_some()),
        changed("gateway.memory", memory(&before.gateway), memory(&after.gateway)),
        changed("gateway.token_file", before.gateway.tokens.path().display(), after.gateway.tokens.path().display()),
        changed("gateway.shards", shards(&before.gateway), shards(&after.gateway)),
        table("bus", before.bus.as_ref(), after.bus.as_ref()),
        table("otlp", before.push.otlp.as_ref(), after.push.otlp.as_ref()),
        table("statsd", before.push.statsd.as_ref(), after.push.statsd.as_ref()),
    ]
    .into_iter()
    .flatten();
    tables.chain(ports_of_intakes(before, after)).collect()
}

/// The ports of intakes. An intake without one may come and go.
fn ports_of_intakes(before: &Configuration, after: &Configuration) -> Vec<String> {
    let names: BTreeSet<&String> = before.intakes.keys().chain(after.intakes.keys()).collect();
    let port = |of: &Configuration, name: &String| {
        let listen = of.intakes.get(name).and_then(|intake| intake.listen);
        listen.map_or_else(|| "not set".to_owned(), |listen| listen.to_string())
    };
    let changed = |name| changed(&format!("intakes.{name}.listen"), port(before, name), port(after, name));
    names.into_iter().filter_map(changed).collect()
}

/// A table of which a secret may be another one too, which isn't shown.
fn table<T: PartialEq>(name: &str, before: Option<&T>, after: Option<&T>) -> Option<String> {
    let is_other = before.is_some() == after.is_some() && before != after;
    let other = || format!("`[{name}]` is another one now than when Forebay started: restart Forebay to apply it");
    turned(name, before.is_some(), after.is_some()).or_else(|| is_other.then(other))
}

fn memory(gateway: &GatewayConfig) -> String {
    gateway.memory.map_or_else(|| "the system's limit".to_owned(), |bytes| format!("{bytes} bytes"))
}

fn turned(key: &str, was_on: bool, is_on: bool) -> Option<String> {
    let (now, before) = if is_on { ("is there", "wasn't") } else { ("is gone", "was there") };
    (was_on != is_on)
        .then(|| format!("`[{key}]` {now}, but {before} when Forebay started: restart Forebay to apply it"))
}

fn changed<T: Display>(key: &str, before: T, after: T) -> Option<String> {
    let (before, after) = (before.to_string(), after.to_string());
    let is_other = before != after;
    is_other
        .then(|| format!("`{key}` is {after} now, but was {before} when Forebay started: restart Forebay to apply it"))
}
