//! What is stored where and how, by the names of settings: what writers of one upstream have in common, and what a gateway's table may
//! say of their sink. Addresses, credentials, sizes of pools and time-outs aren't among it.

use std::collections::BTreeMap;

use ::objects::Line;
use ::objects::ObjectRules;
use sink_elasticsearch::{Conflict as DocumentConflict, ElasticsearchConfig, Shape, Target};
use sink_postgres::{Conflict, Layout, Partition, PayloadKind, PostgresConfig};
use sink_remote::RemoteStore;

/// Each by its name.
pub(crate) type Parts = BTreeMap<String, String>;

const NONE: &str = "none";

pub(crate) fn named(parts: Vec<(&str, String)>) -> Parts {
    parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()
}

/// What decides over the bytes of objects, and over their names.
pub(crate) fn of_objects(rules: &ObjectRules, store: RemoteStore) -> Vec<(&'static str, String)> {
    let ObjectRules { line, codec, prefix, apart, .. } = rules;
    let part = |part: Option<&str>| part.unwrap_or(NONE).to_owned();
    let apart = apart.as_ref();
    vec![
        (if store == RemoteStore::Directory { "codec" } else { "format" }, codec.to_string()),
        ("object", prefix.to_string()),
        ("envelope", (*line == Line::Envelope).to_string()),
        ("object_from", part(apart.map(|apart| &*apart.data))),
        ("object_type_from", part(apart.and_then(|apart| apart.content_type.as_deref()))),
    ]
}

pub(crate) fn postgres(config: &PostgresConfig) -> Vec<(&'static str, String)> {
    let PostgresConfig { table, layout, partition, conflict, .. } = config;
    let mut parts = vec![
        ("table", table.to_string()),
        ("partition", partition_part(*partition)),
        ("conflict", conflict_part(conflict)),
    ];
    parts.extend(layout_parts(layout));
    parts
}

pub(crate) fn partition_part(partition: Partition) -> String {
    match partition {
        Partition::None => NONE.to_owned(),
        Partition::Day => "day".to_owned(),
    }
}

pub(crate) fn conflict_part(conflict: &Conflict) -> String {
    match conflict {
        Conflict::Refuse => NONE.to_owned(),
        Conflict::Ignore => "ignore".to_owned(),
        Conflict::Overwrite => "overwrite".to_owned(),
        Conflict::Newest(pointer) => format!("newest {pointer}"),
    }
}

pub(crate) fn layout_parts(layout: &Layout) -> [(&'static str, String); 2] {
    let kind = |payload: PayloadKind| if payload == PayloadKind::Text { TEXT } else { "jsonb" }.to_owned();
    let (columns, payload) = match layout {
        Layout::Whole { payload } => (NONE.to_owned(), kind(*payload)),
        Layout::Columns { columns, payload } => {
            let column = |column: &sink_postgres::Column| {
                let kind = column.kind.map(|kind| format!(" {}", kind.name())).unwrap_or_default();
                format!("{} {}{kind}", column.name, column.pointer)
            };
            let columns: Vec<String> = columns.iter().map(column).collect();
            (columns.join(", "), payload.map_or_else(|| NONE.to_owned(), kind))
        }
    };
    [("columns", columns), ("payload", payload)]
}

const TEXT: &str = "text";

/// Whether a table of PostgreSQL with these parts keeps payloads byte for byte, and nothing else of them. One that isn't known doesn't.
pub(crate) fn keeps_escapes(parts: &Parts) -> bool {
    let is = |name: &str, wanted: &str| parts.get(name).is_some_and(|part| part == wanted);
    is("columns", NONE) && is("payload", TEXT)
}

pub(crate) fn elasticsearch(config: &ElasticsearchConfig) -> Vec<(&'static str, String)> {
    vec![
        ("index", config.index.to_string()),
        ("data_stream", (config.target == Target::DataStream).to_string()),
        ("envelope", (config.shape == Shape::Envelope).to_string()),
        ("conflict", document_conflict_part(config.conflict)),
    ]
}

pub(crate) fn document_conflict_part(conflict: DocumentConflict) -> String {
    let name = match conflict {
        DocumentConflict::DeadLetter => "dead",
        DocumentConflict::Ignore => "ignore",
        DocumentConflict::Overwrite => "overwrite",
        DocumentConflict::Merge => "merge",
    };
    name.to_owned()
}
