//! The settings of sinks of kind `writer`: which writers, which of their sinks, and which kind of store.

use ::objects::over_http::settings as over_http;
use ::objects::{ObjectFormat, layout_of, rules_of_files};
use ::sink::SinkKind;
use settings::{Diagnostic, InvalidValue, Section, SettingsReader};
use sink_remote::{RemoteConfig, RemoteObjectsConfig, Writers};

use crate::sinks::kinds;
use crate::sinks::name::SinkName;
use crate::sinks::remote_layout;
use crate::sinks::sink_config::{SinkConfig, parts_of};
use crate::upstreams::Upstreams;

/// Reads them.
pub(crate) fn read(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    upstreams: &Upstreams,
) -> Option<SinkConfig> {
    let help = "name a table [upstreams.NAME], as in upstream = \"back\"";
    let upstream = reader.required(section, "upstream", help, |name| upstreams.find(name).map(|found| found.cloned()));
    let sink = reader.text_or(section, "sink", section.name(), sink);
    let store =
        reader.required(section, "store", "set the kind of the writer's store, as in store = \"postgres\"", store);
    let reads = reader.boolean(section, "read").map(|found| found.value);
    let parts = store.map(|store| remote_layout::read(reader, section, store));
    let objects = store.and_then(|store| objects(reader, section, store));
    let (upstream, sink, store, mut parts) = (upstream??.upstream, sink?, store?, parts?);
    let reads = reads.unwrap_or(store.is_read_by_default);
    let rules = objects.map(|(rules, codec)| {
        parts.extend(parts_of(layout_of(&rules, codec)));
        rules
    });
    let (store, is_fenced, recognises_ids) = (store.name, store.is_fenced, store.recognises_ids);
    let remote = RemoteConfig { upstream, server: None, sink, store, is_fenced, recognises_ids, parts, reads };
    Some(match rules {
        None => SinkConfig::Remote(remote),
        Some(rules) => SinkConfig::RemoteObjects(RemoteObjectsConfig { remote, rules }),
    })
}

/// The rules of objects and the setting of their codec, if the store keeps objects: the gateway makes them.
fn objects(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    store: &SinkKind,
) -> Option<(ObjectFormat, &'static str)> {
    if !store.has_objects() {
        return None;
    }
    if let Some((span, _)) = section.get("read") {
        let title = format!("unused setting `{}` with store = \"{}\"", section.key_path("read"), store.name);
        reader.push(Diagnostic::new(title, span, "set serve = true to give its objects to readers"));
    }
    // Stores over HTTP call the codec `format`.
    Some(if store.has_key("codec") {
        (rules_of_files(reader, section), "codec")
    } else {
        (over_http::rules(reader, section), "format")
    })
}

/// With `mode = "all"`: one sink for each server of the upstream. `None` in mode `one`.
pub(crate) fn copies(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    config: &RemoteConfig,
) -> Option<Vec<(SinkName, RemoteConfig)>> {
    let writers = &config.upstream.config().writers;
    if !config.upstream.config().sends_to_all {
        check_embedded(reader, section, config, writers);
        return None;
    }
    // An upstream without names has been reported already.
    let Writers::Named(servers) = writers else { return Some(Vec::new()) };
    let mut copies = Vec::new();
    for (server, _) in servers {
        match SinkName::new(&format!("{}-{server}", section.name())) {
            Ok(name) => copies.push((name, RemoteConfig { server: Some(server.clone()), ..config.clone() })),
            Err(_) => {
                let title = format!("invalid value for the name of a server with mode = \"all\": `{server}`");
                let label =
                    "expected a-z, 0-9, `_` and `-`; the sink's name, `-` and this have at most 64 bytes together";
                reader.push(Diagnostic::new(title, section.span().clone(), label));
            }
        }
    }
    Some(copies)
}

/// Reports an embedded store with several writers: each writer's store would get a part of the events.
fn check_embedded(reader: &mut SettingsReader<'_>, section: &Section<'_>, config: &RemoteConfig, writers: &Writers) {
    let label = match writers {
        Writers::Listed(list) if list.len() > 1 => format!("and the upstream has {} servers", list.len()),
        Writers::Named(list) if list.len() > 1 => format!("and the upstream has {} servers", list.len()),
        Writers::Dns(_) => "and the upstream finds any number of servers by DNS".to_owned(),
        Writers::Etcd { .. } => "and the upstream finds any number of servers in etcd".to_owned(),
        Writers::Listed(_) | Writers::Named(_) => return,
    };
    if kinds::find(config.store).is_some_and(|kind| kind.is_embedded) {
        let title = format!("conflict: `{}` has one store for each writer", section.key_path("store"));
        let help = "give the upstream one server, let the writers share a store such as postgres, or store everything in each \
                    with mode = \"all\"";
        reader.push(Diagnostic::new(title, section.span().clone(), label).help(help.to_owned()));
    }
}

fn sink(text: &str) -> Result<String, InvalidValue> {
    let wrong =
        || InvalidValue::new("can't be the name of a sink", "expected the sink's name in the writer's configuration");
    SinkName::new(text).map(|name| name.to_string()).map_err(|_| wrong())
}

fn store(text: &str) -> Result<&'static SinkKind, InvalidValue> {
    kinds::find(text).ok_or_else(|| {
        InvalidValue::new("is not a kind of store that a writer can have", format!("known stores: {}", kinds::stores()))
    })
}
