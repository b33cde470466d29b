//! The list of all kinds of sinks. To add a store is to add its crate here and in the manifests.

use std::collections::BTreeSet;

use ::sink::SinkKind;
use settings::{InvalidValue, Kind as Values, Setting, Unset, names as names_of, nearest};

use crate::sinks::every_sink;

/// The kinds that a process stores in directly. The first is the default.
pub(crate) static KINDS: &[&SinkKind] = &[
    &sink_sqlite::KIND,
    &sink_directory::KIND,
    &sink_elasticsearch::KIND,
    &sink_nats::KIND,
    &sink_postgres::KIND,
    &sink_redis::KIND,
    &sink_swift::KIND,
    &sink_s3::KIND,
    &sink_webhook::KIND,
    &::sink::NULL,
];

/// The kind of sinks whose stores writers have.
pub(crate) const WRITER: &str = "writer";

/// The settings of sinks of kind `writer` that neither every sink has nor depend on the store.
pub(crate) const OF_WRITER: &[Setting] = &[
    Setting::text("upstream", "the table [`[upstreams.X]`](upstreams.md) that names the writers")
        .required()
        .example("\"back\""),
    Setting::text(
        "sink",
        "the sink's name in the writers' configuration. Two sinks of a gateway can't use the same sink of an upstream",
    )
    .or(Unset::Described("the same name"))
    .example("\"warehouse\""),
    Setting::new(
        "store",
        Values::Text("kind of sink"),
        "the kind of that sink, any but `writer`. The gateway compares it when it connects",
    )
    .required()
    .example("\"postgres\""),
    Setting::new("read", Values::Boolean, "`true`: `GET /events` reads through the writer")
        .or(Unset::Described("`true` for `sqlite`, else `false`"))
        .example("true"),
];

/// The value of `kind`.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A store of this process.
    Store(&'static SinkKind),
    /// A sink of a writer.
    Writer,
}

/// The kind of this name, of those that a process stores in directly.
pub(crate) fn find(name: &str) -> Option<&'static SinkKind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

/// The names of all kinds of sinks.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name).chain([WRITER])
}

/// The settings of sinks of any kind.
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| names_of_all(kind)).chain(writer_keys())
}

/// The settings of sinks of kind `writer`: those that don't depend on the store, and the layout of each store.
pub(crate) fn writer_keys() -> Vec<&'static str> {
    let layouts = KINDS.iter().flat_map(|kind| kind.layout).flat_map(|(_, keys)| *keys);
    let of_stores: BTreeSet<&str> = layouts.copied().collect();
    names_of(every_sink::SETTINGS).chain(names_of(OF_WRITER)).chain(of_stores).collect()
}

fn names_of_all(kind: &SinkKind) -> impl Iterator<Item = &'static str> + use<> {
    kind.all_settings().map(|setting| setting.name)
}

/// The settings of sinks of a kind of store.
pub(crate) fn keys_of_store(kind: &SinkKind) -> impl Iterator<Item = &'static str> + use<> {
    names_of(every_sink::SETTINGS).chain(names_of_all(kind))
}

/// The names of all kinds, for messages.
pub(crate) fn listed() -> String {
    let names: Vec<&str> = names().filter(|name| *name != "null").chain(["null"]).collect();
    names.join(", ")
}

/// The names of the kinds that writers can have for gateways, for messages.
pub(crate) fn stores() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

/// Parses `kind`.
pub(crate) fn parse(text: &str) -> Result<Kind, InvalidValue> {
    if text == WRITER {
        return Ok(Kind::Writer);
    }
    find(text).map(Kind::Store).ok_or_else(|| {
        let wrong = InvalidValue::new("is not a kind of sink", "unknown");
        match nearest(text, names()) {
            Some(near) => wrong.help(format!("did you mean `{near}`?")),
            None => wrong.help(format!("known kinds: {}", listed())),
        }
    })
}
