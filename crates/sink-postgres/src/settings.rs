//! The settings of sinks of kind `postgres`: the server, the table and its columns.

use sink::{ALLOW_UNSAFE, AllowedRisks, Destination, Folders, JsonLimits, NONE, Sink, SinkKind, StoreConfig};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use crate::durability;
use crate::{
    Column, Partition, PayloadKind, PoolLimits, Pooler, Postgres, PostgresConfig, PostgresServers, QualifiedName,
    RowConflictPolicy, TableLayout,
};
use settings::client::{self, ca, connections_max, timeout};
use settings::{
    Diagnostic, InvalidValue, Kind, POINTER, Section, Setting, SettingsReader, SourceSpan, TEXTS, URL, Unset, names,
    parsed, pointer,
};
use sink::TableName;

const SETTINGS: &[Setting] = &[
    SERVER,
    client::CA,
    Setting::text("table", "the table, or a schema and a table, as `logs.access`; names as for SQLite. Two sinks can't share one")
        .or(Unset::Text(TABLE)),
    Setting::choice(
        "partition",
        &["day"],
        "`day`: a table that Forebay creates has a [partition for each day](../../guides/stores/postgres.md#daily-partitions) of the events' \
         time; its name has at most 54 bytes",
    )
    .example("\"day\""),
    Setting::new(
        "columns",
        Kind::Names(&Kind::Either(&[POINTER, Kind::Table(COLUMN)])),
        "values of payloads as separate columns: a name with a JSON pointer, or with `{ pointer = \"/time\", type = \"timestamptz\" }`",
    )
    .example("{ status = { pointer = \"/status\", type = \"integer\" } }"),
    Setting::flag("payload", "with `columns`: `true` adds a column `payload`"),
    Setting::choice(
        "payload_type",
        &["jsonb", TEXT],
        "the type of `payload` in a table that Forebay creates: `text` keeps the bytes",
    )
    .or(Unset::Text("jsonb")),
    Setting::new(
        "conflict",
        Kind::Either(&[Kind::Choice(&["ignore", "overwrite"]), Kind::Table(CONFLICT)]),
        "for an event whose id belongs to a different row; with `{ newest = \"/pointer\" }` the greater value there wins \
         ([conflicting ids](../../guides/stores/postgres.md#conflicting-ids))",
    )
    .or(Unset::Described("a dead letter"))
    .example("\"ignore\""),
    Setting { text: "how long the server may take for one statement, a lock included", ..client::TIMEOUT },
    CONNECTIONS,
    READERS,
    IDLE_TIMEOUT,
    MAX_LIFETIME,
    POOLER,
    Setting::new(
        "shard_by",
        POINTER,
        "the JSON pointer of the member that chooses [the database](../../guides/stores/postgres.md#databases-for-some-tenants)",
    )
    .or(Unset::Described("one database"))
    .example("\"/tenant\""),
    Setting::new(
        "shards",
        Kind::Names(&Kind::Table(SHARD)),
        "other databases, each a table `[sinks.X.shards.NAME]`; settings that it lacks are the sink's, with at most 2 `max_readers`. Each is the sink `X-NAME`",
    )
    .example("{ acme = { url = \"postgres://acme/events\" } }"),
    Setting::new(
        ALLOW_UNSAFE,
        Kind::List(&Kind::Choice(&durability::NAMES)),
        "settings of the store that are accepted although [a crash loses stored events](../../concepts/guarantees.md#unsafe-store-settings)",
    )
    .example("[\"unlogged\"]"),
];
const SERVER: Setting = Setting::new(
    "url",
    URL,
    "`postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Separate several hosts by commas; Forebay uses the first that accepts writes. `sslmode` is \
     `prefer`, `disable` or `require`",
)
.required()
.example("\"postgres://forebay:${PG_PASSWORD}@db/events\"");
const CONNECTIONS: Setting = Setting {
    default: Unset::Described("as many as lanes; 16 for a writer"),
    text: "[connections](../../guides/stores/postgres.md#connections) to the database that write, at most",
    ..client::MAX_CONNECTIONS
};
const READERS: Setting = Setting::integer(
    "max_readers",
    (1, limits::STORE_READERS_MAX as i64),
    "[connections](../../guides/stores/postgres.md#connections) to the database that [read](../http-read.md), at most",
)
.or(Unset::Integer(PoolLimits::READERS.get() as i64));
const AGES: (Duration, Duration) = (limits::STORE_CONNECTION_AGE_MIN, limits::STORE_CONNECTION_AGE_MAX);
const IDLE_TIMEOUT: Setting = Setting::duration("idle_timeout", AGES, "an unused connection is closed after this time")
    .or(Unset::Duration(PoolLimits::IDLE));
const MAX_LIFETIME: Setting = Setting::duration("max_lifetime", AGES, "no connection is used for longer")
    .or(Unset::Duration(PoolLimits::LIFETIME));
const POOLER: Setting = Setting::choice(
    "pooler",
    &["session"],
    "`session`: a [pooler](../../guides/stores/postgres.md#poolers) that keeps a session's server is in front of the database",
)
.or(Unset::Described("detected"))
.example("\"session\"");
/// The settings of a shard (a database); it inherits the others from the sink.
const SHARD: &[Setting] = &[
    SERVER.or(Unset::None),
    client::CA,
    Setting::new("values", TEXTS, "the values of `shard_by` whose events go to the database")
        .or(Unset::Described("the name"))
        .example("[\"acme\"]"),
    CONNECTIONS,
    READERS.or(Unset::Integer(PoolLimits::READERS_OF_SHARD.get() as i64)),
    IDLE_TIMEOUT,
    MAX_LIFETIME,
    POOLER,
];
/// The settings of a rule for existing ids.
const CONFLICT: &[Setting] =
    &[Setting::new("newest", POINTER, "the value that decides").required().example("\"/version\"")];
/// Those of a column.
const COLUMN: &[Setting] = &[
    Setting::new("pointer", POINTER, "the value").required().example("\"/status\""),
    Setting::text("type", "the column's type").example("\"integer\""),
];
const TABLE: &str = "events";
/// The column that a table is partitioned by.
const EVENT_TIME: &str = "event_time";
/// Columns that Forebay fills.
const FILLED_COLUMNS: &[&str] = &["id", "received_at", "payload"];

/// Reads the settings except the shards; a relative `ca` starts at `folder`.
fn read(reader: &mut SettingsReader<'_>, section: &Section<'_>, folder: &Path) -> Option<PostgresConfig> {
    let server = server(reader, section);
    let ca = ca(reader, section, folder);
    let table = reader.text_or(section, "table", TABLE, table);
    let timeout = timeout(reader, section);
    let connections = connections(reader, section, PoolLimits::default());
    let partition = reader.text(section, "partition", partition);
    let layout = layout(reader, section);
    let conflict = conflict(reader, section, &layout);
    if let Some(partition) = &partition {
        check_partitioned(reader, section, &partition.span, (table.as_ref(), &layout, &conflict));
    }
    let partition = partition.map(|found| found.value).unwrap_or_default();
    let allowed = AllowedRisks::read(reader, section, &durability::NAMES);
    Some(PostgresConfig {
        server: server?,
        ca,
        table: table?,
        layout,
        partition,
        conflict,
        timeout,
        connections,
        allowed,
    })
}

/// Reads the layout from a gateway's table for a writer's sink.
fn read_layout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<(&'static str, String)> {
    let table = reader.text_or(section, "table", TABLE, table);
    let partition = reader.text(section, "partition", partition).map(|found| found.value).unwrap_or_default();
    let layout = layout(reader, section);
    let conflict = conflict(reader, section, &layout);
    let mut parts = vec![("partition", partition_part(partition)), ("conflict", conflict_part(&conflict))];
    parts.extend(table.map(|table| ("table", table.to_string())));
    parts.extend(layout_parts(&layout));
    parts
}

fn partition(text: &str) -> Result<Partition, InvalidValue> {
    match text {
        "day" => Ok(Partition::Day),
        _ => Err(InvalidValue::new("isn't a supported partitioning", "expected \"day\"")),
    }
}

/// Reports settings that a partitioned table can't have.
fn check_partitioned(
    reader: &mut SettingsReader<'_>,
    section: &Section<'_>,
    span: &SourceSpan,
    (table, layout, conflict): (Option<&QualifiedName>, &TableLayout, &RowConflictPolicy),
) {
    let mut push = |title: String, why: &str, help: &str| {
        reader.push(Diagnostic::new(title, span.clone(), why.to_owned()).help(help.to_owned()));
    };
    if table.is_some_and(|table| !table.fits_day_suffix()) {
        let title = format!("`{}` is too long for a partitioned table", section.key_path("table"));
        push(title, "a partition's name is the table's name and a day", "use a name of at most 54 bytes");
    }
    if matches!(conflict, RowConflictPolicy::Overwrite | RowConflictPolicy::Newest(_)) {
        let title =
            format!("`{}` replaces rows, which a partitioned table doesn't support", section.key_path("conflict"));
        push(
            title,
            "rows are identified by id and time, so a row with another time isn't replaced",
            "remove `conflict` or `partition`",
        );
    }
    if let TableLayout::Columns { columns, .. } = layout
        && columns.iter().any(|column| column.name.as_str() == EVENT_TIME)
    {
        let title = format!("`{}` has a column `{EVENT_TIME}`", section.key_path("columns"));
        push(title, "a partitioned table has its own column of this name", "rename this column");
    }
}

/// The server, which is required.
fn server(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Option<PostgresServers> {
    let help = "add the server, as in url = \"postgres://USER:PASSWORD@HOST/DATABASE\"";
    reader.required(section, "url", help, parsed("is not the URL of a PostgreSQL server"))
}

/// How many connections there are, and for how long; missing settings are those of `otherwise`.
fn connections(reader: &mut SettingsReader<'_>, section: &Section<'_>, otherwise: PoolLimits) -> PoolLimits {
    PoolLimits {
        max: connections_max(reader, section).or(otherwise.max),
        readers: reader.count(section, &READERS).map_or(otherwise.readers, |found| found.value),
        idle: reader.duration(section, &IDLE_TIMEOUT).map_or(otherwise.idle, |found| found.value),
        lifetime: reader.duration(section, &MAX_LIFETIME).map_or(otherwise.lifetime, |found| found.value),
        pooler: reader.text(section, "pooler", pooler).map_or(otherwise.pooler, |found| found.value),
    }
}

fn pooler(text: &str) -> Result<Pooler, InvalidValue> {
    match text {
        "session" => Ok(Pooler::Session),
        _ => Err(InvalidValue::new(
            "isn't a supported kind of pooler",
            "expected \"session\": a pooler that keeps one server process for a session",
        )),
    }
}

fn table(text: &str) -> Result<QualifiedName, InvalidValue> {
    text.parse().map_err(|error: sink::InvalidTableName| {
        InvalidValue::new("isn't a valid table name", error.to_string())
            .help("use a table, or a schema and a table: logs.access")
    })
}

fn payload_kind(text: &str) -> Result<PayloadKind, InvalidValue> {
    match text {
        "jsonb" => Ok(PayloadKind::Jsonb),
        "text" => Ok(PayloadKind::Text),
        _ => Err(InvalidValue::new("isn't a type for payloads", "expected \"jsonb\" or \"text\"")),
    }
}

/// The rule for an event whose id exists already.
fn conflict(reader: &mut SettingsReader<'_>, section: &Section<'_>, layout: &TableLayout) -> RowConflictPolicy {
    let entry = section.entry("conflict").and_then(|(key, value)| Some((key, value.get_ref().as_table()?)));
    let Some((key, entries)) = entry else {
        return reader.text(section, "conflict", conflict_rule).map(|found| found.value).unwrap_or_default();
    };
    let rule = Section::child(section, key, entries);
    reader.check_keys(&rule, names(CONFLICT));
    let Some(newest) = required_pointer(reader, &rule, "newest") else { return RowConflictPolicy::default() };
    if let TableLayout::Columns { columns, payload: None } = layout
        && columns.iter().all(|column| column.pointer != newest)
    {
        let title = format!("`{}` isn't in the table", rule.key_path("newest"));
        let mistake = Diagnostic::new(title, rule.span().clone(), "no column holds it, and there is no payload");
        reader.push(mistake.help("add a column with this pointer, or payload = true".to_owned()));
    }
    RowConflictPolicy::Newest(newest)
}

fn conflict_rule(text: &str) -> Result<RowConflictPolicy, InvalidValue> {
    match text {
        "ignore" => Ok(RowConflictPolicy::Ignore),
        "overwrite" => Ok(RowConflictPolicy::Overwrite),
        _ => Err(InvalidValue::new(
            "isn't a rule for existing ids",
            "expected \"ignore\", \"overwrite\" or { newest = \"/pointer\" }",
        )),
    }
}

fn layout(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> TableLayout {
    let kind = reader.text(section, "payload_type", payload_kind).map(|found| found.value).unwrap_or_default();
    let payload = reader.boolean(section, "payload");
    let columns = columns(reader, section);
    if !columns.is_empty() {
        let wanted = payload.is_some_and(|payload| payload.value);
        return TableLayout::Columns { columns, payload: wanted.then_some(kind) };
    }
    if let Some(payload) = payload.filter(|payload| !payload.value) {
        let title = format!("`{}` leaves nothing to store", section.key_path("payload"));
        let mistake = Diagnostic::new(title, payload.span, "without `columns`, only the payload is stored");
        reader.push(mistake.help("name columns, as in columns = { status = \"/status\" }".to_owned()));
    }
    TableLayout::Whole { payload: kind }
}

fn columns(reader: &mut SettingsReader<'_>, section: &Section<'_>) -> Vec<Column> {
    let table = reader.table(section, "columns");
    let mut columns = Vec::new();
    // In the order written, which is that of the table that is created.
    let mut entries: Vec<_> = table.entries().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let name: &str = key.get_ref();
        let checked = match TableName::new(name) {
            Ok(_) if FILLED_COLUMNS.contains(&name) => Err("Forebay fills this column".to_owned()),
            checked => checked.map_err(|error| error.to_string().replace("table name", "column name")),
        };
        if let Err(why) = &checked {
            let title = format!("`{}` isn't a valid column name", table.key_path(name));
            reader.push(Diagnostic::new(title, table.span_of(key), why.clone()));
        }
        let (pointer, kind) = match value.get_ref().as_table() {
            Some(entries) => {
                let column = Section::child(&table, key, entries);
                reader.check_keys(&column, names(COLUMN));
                let kind = reader.text(&column, "type", parsed("isn't a column type")).map(|found| found.value);
                (required_pointer(reader, &column, "pointer"), kind)
            }
            None => (reader.text(&table, name, pointer::parse).map(|found| found.value), None),
        };
        if let (Ok(name), Some(pointer)) = (checked, pointer) {
            columns.push(Column { name, pointer, kind });
        }
    }
    columns
}

fn required_pointer(reader: &mut SettingsReader<'_>, section: &Section<'_>, key: &str) -> Option<json::JsonPointer> {
    let help = format!("set the pointer to its values, as in {key} = \"/status\"");
    reader.required(section, key, &help, pointer::parse)
}

fn layout_of(config: &PostgresConfig) -> Vec<(&'static str, String)> {
    let PostgresConfig { table, layout, partition, conflict, .. } = config;
    let mut parts = vec![
        ("table", table.to_string()),
        ("partition", partition_part(*partition)),
        ("conflict", conflict_part(conflict)),
    ];
    parts.extend(layout_parts(layout));
    parts
}

fn partition_part(partition: Partition) -> String {
    match partition {
        Partition::None => NONE.to_owned(),
        Partition::Day => "day".to_owned(),
    }
}

fn conflict_part(conflict: &RowConflictPolicy) -> String {
    match conflict {
        RowConflictPolicy::Reject => NONE.to_owned(),
        RowConflictPolicy::Ignore => "ignore".to_owned(),
        RowConflictPolicy::Overwrite => "overwrite".to_owned(),
        RowConflictPolicy::Newest(pointer) => format!("newest {pointer}"),
    }
}

fn layout_parts(layout: &TableLayout) -> [(&'static str, String); 2] {
    let kind = |payload: PayloadKind| if payload == PayloadKind::Text { TEXT } else { "jsonb" }.to_owned();
    let (columns, payload) = match layout {
        TableLayout::Whole { payload } => (NONE.to_owned(), kind(*payload)),
        TableLayout::Columns { columns, payload } => {
            let column = |column: &Column| {
                let kind = column.kind.map(|kind| format!(" {}", kind.name())).unwrap_or_default();
                format!("{} {}{kind}", column.name, column.pointer)
            };
            // Two configurations with the same columns have the same layout, in any order of the columns.
            let mut columns: Vec<String> = columns.iter().map(column).collect();
            columns.sort();
            (columns.join(", "), payload.map_or_else(|| NONE.to_owned(), kind))
        }
    };
    [("columns", columns), ("payload", payload)]
}

const TEXT: &str = "text";

/// Sinks of kind `postgres`.
pub static KIND: SinkKind = SinkKind {
    settings: &[SETTINGS],
    urls: &["url"],
    is_fenced: true,
    layout: &[
        ("table", &["table"]),
        ("partition", &["partition"]),
        ("conflict", &["conflict"]),
        ("columns", &["columns", "payload", "payload_type"]),
        ("payload", &["columns", "payload", "payload_type"]),
        ("shards", &["shard_by", "shards"]),
    ],
    read_layout,
    json_limits_of,
    ..SinkKind::new("postgres", |reader, section, folders| {
        Some(Box::new(read(reader, section, folders.configuration)?))
    })
};

fn json_limits_of(layout: &BTreeMap<String, String>) -> JsonLimits {
    let is = |name: &str, wanted: &str| layout.get(name).is_some_and(|part| part == wanted);
    JsonLimits { rejects_nul: !(is("columns", NONE) && is("payload", TEXT)), ..JsonLimits::default() }
}

impl StoreConfig for PostgresConfig {
    fn kind(&self) -> &'static SinkKind {
        &KIND
    }

    fn build(&self) -> Sink {
        Sink::new(Postgres::new(self.clone()))
    }

    fn destination(&self) -> Option<Destination> {
        let id = vec![self.kind().name.to_owned(), self.server.to_string(), self.table.to_string()];
        Some(Destination { id, what: "table", another: "another `url` or `table`" })
    }

    fn layout(&self) -> sink::Layout {
        layout_of(self)
    }

    fn can_read(&self) -> bool {
        self.is_readable()
    }

    fn why_not_read(&self) -> &'static str {
        "its table has `columns` and no payloads: set `payload = true`, and add the column `payload` if the table \
         exists already"
    }

    fn holds_types(&self) -> bool {
        matches!(self.layout, TableLayout::Whole { .. })
    }

    /// Neither jsonb nor text can hold U+0000, and only payloads that are stored byte for byte as text keep its escape.
    fn json_limits(&self) -> JsonLimits {
        JsonLimits { rejects_nul: !self.keeps_escapes(), ..JsonLimits::default() }
    }

    fn read_shard(
        &self,
        reader: &mut SettingsReader<'_>,
        section: &Section<'_>,
        folders: Folders<'_>,
    ) -> Option<Box<dyn StoreConfig>> {
        reader.check_keys(section, names(SHARD));
        let server = server(reader, section);
        let ca = ca(reader, section, folders.configuration).or_else(|| self.ca.clone());
        let connections = connections(reader, section, self.connections.of_shard());
        Some(Box::new(Self { server: server?, ca, connections, ..self.clone() }))
    }

    fn with_connections_max(&self, max: NonZeroUsize) -> Option<Box<dyn StoreConfig>> {
        let connections = PoolLimits { max: self.connections.max.or(Some(max)), ..self.connections };
        Some(Box::new(Self { connections, ..self.clone() }))
    }
}

impl fmt::Display for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres {}, table {}", self.server, self.table)
    }
}
