//! What is stored where and how, by the names of settings: what writers of one upstream have in common, and what a gateway's table may
//! say of their sink. Addresses, credentials, sizes of pools and time-outs aren't among it.

use std::collections::BTreeMap;

use ::objects::Line;
use ::objects::ObjectRules;
#[cfg(feature = "elasticsearch")]
use sink_elasticsearch::{Conflict as DocumentConflict, ElasticsearchConfig, Shape, Target};
#[cfg(feature = "nats")]
use sink_nats::NatsConfig;
#[cfg(feature = "postgres")]
use sink_postgres::{Conflict, Layout, Partition, PayloadKind, PostgresConfig};
#[cfg(feature = "redis")]
use sink_redis::RedisConfig;
use sink_remote::RemoteStore;
use sink_sqlite::SqliteConfig;

use super::SinkConfig;

/// Each by its name.
pub(crate) type Parts = BTreeMap<String, String>;

const NONE: &str = "none";

impl SinkConfig {
    /// The sink's parts, as gateways compare them.
    pub(crate) fn parts(&self) -> Parts {
        let parts = match self {
            Self::Sqlite(SqliteConfig { table, .. }) => vec![("table", table.to_string())],
            #[cfg(feature = "elasticsearch")]
            Self::Elasticsearch(config) => elasticsearch(config),
            #[cfg(feature = "postgres")]
            Self::Postgres(config) => postgres(config),
            #[cfg(feature = "nats")]
            Self::Nats(NatsConfig { stream, subject, .. }) => {
                vec![("stream", stream.to_string()), ("subject", subject.to_string())]
            }
            #[cfg(feature = "redis")]
            Self::Redis(RedisConfig { structure, key, .. }) => {
                vec![("mode", structure.to_string()), ("key", key.to_string())]
            }
            // It has no place for a mark, so that its address tells which one it is.
            #[cfg(feature = "webhook")]
            Self::Webhook(config) => vec![("url", config.url.to_string()), ("envelope", format!("{:?}", config.shape))],
            Self::Directory(config) => of_objects(&config.rules, RemoteStore::Directory),
            #[cfg(feature = "swift")]
            Self::Swift(config) => of_objects(&config.rules, RemoteStore::Swift),
            #[cfg(feature = "s3")]
            Self::S3(config) => of_objects(&config.rules, RemoteStore::S3),
            Self::Null | Self::Remote(_) | Self::RemoteObjects(_) => Vec::new(),
        };
        named(parts)
    }
}

pub(in crate::config) fn named(parts: Vec<(&str, String)>) -> Parts {
    parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect()
}

/// What decides over the bytes of objects, and over their names.
pub(in crate::config) fn of_objects(rules: &ObjectRules, store: RemoteStore) -> Vec<(&'static str, String)> {
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

#[cfg(feature = "postgres")]
fn postgres(config: &PostgresConfig) -> Vec<(&'static str, String)> {
    let PostgresConfig { table, layout, partition, conflict, .. } = config;
    let mut parts = vec![
        ("table", table.to_string()),
        ("partition", partition_part(*partition)),
        ("conflict", conflict_part(conflict)),
    ];
    parts.extend(layout_parts(layout));
    parts
}

#[cfg(feature = "postgres")]
pub(in crate::config) fn partition_part(partition: Partition) -> String {
    match partition {
        Partition::None => NONE.to_owned(),
        Partition::Day => "day".to_owned(),
    }
}

#[cfg(feature = "postgres")]
pub(in crate::config) fn conflict_part(conflict: &Conflict) -> String {
    match conflict {
        Conflict::Refuse => NONE.to_owned(),
        Conflict::Ignore => "ignore".to_owned(),
        Conflict::Overwrite => "overwrite".to_owned(),
        Conflict::Newest(pointer) => format!("newest {pointer}"),
    }
}

#[cfg(feature = "postgres")]
pub(in crate::config) fn layout_parts(layout: &Layout) -> [(&'static str, String); 2] {
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
pub(super) fn keeps_escapes(parts: &Parts) -> bool {
    let is = |name: &str, wanted: &str| parts.get(name).is_some_and(|part| part == wanted);
    is("columns", NONE) && is("payload", TEXT)
}

#[cfg(feature = "elasticsearch")]
fn elasticsearch(config: &ElasticsearchConfig) -> Vec<(&'static str, String)> {
    vec![
        ("index", config.index.to_string()),
        ("data_stream", (config.target == Target::DataStream).to_string()),
        ("envelope", (config.shape == Shape::Envelope).to_string()),
        ("conflict", document_conflict_part(config.conflict)),
    ]
}

#[cfg(feature = "elasticsearch")]
pub(in crate::config) fn document_conflict_part(conflict: DocumentConflict) -> String {
    let name = match conflict {
        DocumentConflict::DeadLetter => "dead",
        DocumentConflict::Ignore => "ignore",
        DocumentConflict::Overwrite => "overwrite",
        DocumentConflict::Merge => "merge",
    };
    name.to_owned()
}
