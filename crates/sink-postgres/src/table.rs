//! The table: created if it is missing, checked if it exists, and the statements that write to it.

use tokio_postgres::types::Oid;
use tokio_postgres::{Row, Statement};

use super::columns::{Content, Field, STORED_IN};
use super::config::{Partition, PostgresConfig, QualifiedName, RowConflictPolicy, TableLayout};
use super::creation::create_missing;
use super::durability;
use super::error::Failure;
use super::kind::ColumnType;
use super::session::Talk;

/// The columns of a new table.
fn wanted(config: &PostgresConfig) -> Vec<Field> {
    let id = Field::new("id", Content::Id, ColumnType::Uuid);
    let mut times = vec![Field::new("received_at", Content::ReceivedAt, ColumnType::Timestamptz)];
    if config.partition == Partition::Day {
        times.push(Field::new("event_time", Content::EventTime, ColumnType::Timestamptz));
    }
    match &config.layout {
        TableLayout::Whole { payload } => {
            let mut fields = vec![
                id,
                Field::new("type", Content::Type, ColumnType::Text),
                Field::new("source", Content::Source, ColumnType::Text),
            ];
            fields.extend(times);
            fields.push(Field::new("payload", Content::Payload, payload.kind()));
            fields
        }
        TableLayout::Columns { columns, payload } => {
            let mut fields = vec![id];
            fields.extend(times);
            fields.extend(columns.iter().map(|column| {
                let kind = column.kind.unwrap_or(ColumnType::Jsonb);
                Field::new(column.name.as_str(), Content::Member(column.pointer.clone()), kind)
            }));
            fields.extend(payload.map(|payload| Field::new("payload", Content::Payload, payload.kind())));
            fields
        }
    }
}

/// A table that passed all checks, and the statements of one connection.
#[derive(Debug)]
pub(super) struct Table {
    /// Its schema and name: the key of its revisions.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    pub(super) conflict: RowConflictPolicy,
    /// Whether its rows record which transaction stored them: a replaced row must record it too.
    pub(super) records_transaction: bool,
    /// The prefix of its partitions' names, if it is partitioned by day.
    pub(super) partitioned: Option<QualifiedName>,
    pub(super) quoted: String,
    pub(super) revisions: String,
    pub(super) read_cursor: Statement,
    pub(super) lock_cursor: Statement,
    pub(super) add_cursor: Statement,
    pub(super) set_cursor: Statement,
    pub(super) copy: Statement,
    /// What the server may lose although it has confirmed the write, for the log.
    pub(super) warning: Option<String>,
    inspect: Statement,
    /// The result of `inspect`, from which `fields` were created.
    found: Vec<Found>,
}

impl Table {
    /// The columns of the key.
    pub(super) const fn key(&self) -> &'static str {
        if self.partitioned.is_some() { "id, event_time" } else { "id" }
    }

    /// The condition that rows `t` and `n` have the same key.
    pub(super) const fn key_clause(&self) -> &'static str {
        if self.partitioned.is_some() { "t.id = n.id and t.event_time = n.event_time" } else { "t.id = n.id" }
    }

    /// The assignments for a row that is replaced by `from`.
    pub(super) fn replaced<'a>(&'a self, fields: impl Iterator<Item = &'a Field>, from: &str) -> String {
        let set = fields.map(|field| format!("{0} = {from}.{0}", field.quoted()));
        let stored_again = self.records_transaction.then(|| format!("{STORED_IN} = default"));
        set.chain(stored_again).collect::<Vec<_>>().join(", ")
    }

    /// Creates missing tables and checks existing ones.
    pub(super) async fn open(talk: &Talk, config: &PostgresConfig) -> Result<Self, Failure> {
        let fields = wanted(config);
        let (cursors, revisions) =
            (config.table.in_schema("forebay_cursors"), config.table.in_schema("forebay_revisions"));
        create_missing(talk, config, &fields, &cursors, &revisions).await?;
        let quoted = config.table.quoted();
        // Prepared first: if another table replaces this one in the meantime, the statement finds none of its columns.
        let inspect = talk.wait(talk.client.prepare(COLUMNS)).await?;
        let found = columns(talk, &inspect, &quoted).await?;
        let name = check_kind(talk, config, &quoted).await?;
        let warning = durability::check(talk, config, [&quoted, &cursors, &revisions]).await?;
        let fields = with_types(fields, &found)?;
        let partitioned = (config.partition == Partition::Day).then(|| config.table.clone());
        let key = if partitioned.is_some() { "id, event_time" } else { "id" };
        let names: Vec<String> = fields.iter().map(Field::quoted).collect();
        let names = names.join(", ");
        let insert =
            format!("insert into {quoted} ({names}) values ({}) on conflict ({key}) do nothing", nulls(fields.len()));
        // Planned and not run, which shows whether the key is unique.
        talk.execute(&format!("explain {insert}")).await.map_err(|failure| not_unique(failure, key))?;
        let place = "where origin = $1 and shard = $2 and sink = $3";
        let prepare = async |sql: String| talk.wait(talk.client.prepare(&sql)).await;
        Ok(Self {
            read_cursor: prepare(format!("select position, claim from {cursors} {place}")).await?,
            lock_cursor: prepare(format!("select position, claim, pg_backend_pid() from {cursors} {place} for update"))
                .await?,
            add_cursor: prepare(format!(
                "insert into {cursors} (origin, shard, sink, position) values ($1, $2, $3, 0) on conflict do nothing"
            ))
            .await?,
            set_cursor: prepare(format!("update {cursors} set position = $4, claim = $5, set_at = now() {place}"))
                .await?,
            copy: prepare(format!("copy {quoted} ({names}) from stdin (format binary)")).await?,
            name,
            fields,
            conflict: config.conflict.clone(),
            records_transaction: found.iter().any(|column| column.is_transaction),
            partitioned,
            quoted,
            revisions,
            warning,
            inspect,
            found,
        })
    }

    /// Whether the table is the one that was checked, with the same columns. If it is checked after rows were written
    /// in the same transaction, the answer holds for these too, because their lock keeps the table from being altered.
    pub(super) async fn is_same(&self, talk: &Talk) -> Result<bool, Failure> {
        Ok(columns(talk, &self.inspect, &self.quoted).await? == self.found)
    }

    /// Whether both are one table with the same columns.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.found == other.found
    }
}

fn nulls(count: usize) -> String {
    vec!["null"; count].join(", ")
}

/// The last two are whether it is [`STORED_IN`] by its default, and whether the table is logged in the write-ahead log.
const COLUMNS: &str = "select a.attrelid, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod), \
    a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '', \
    a.attname = 'stored_in' and a.atthasdef and exists (select from pg_attrdef d where d.adrelid = a.attrelid \
    and d.adnum = a.attnum and pg_get_expr(d.adbin, d.adrelid) = 'txid_current()'), \
    (select c.relpersistence = 'p' from pg_class c where c.oid = a.attrelid) \
    from pg_attribute a where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum";

/// The message for a partitioned table without a default partition.
pub(super) const NO_DEFAULT_PARTITION: &str =
    "it has no default partition for days without a partition: run create table … partition of … default";

/// The kind of the table, its full name, whether it is partitioned by range of `event_time` alone, whether it has a
/// default partition, and whether any of its partitions isn't a plain table.
const KIND: &str = "select c.relkind::text, n.nspname || '.' || c.relname, \
    coalesce(p.partstrat = 'r' and p.partnatts = 1 and a.attname = 'event_time', false), \
    coalesce(p.partdefid, 0) <> 0, \
    exists (select from pg_inherits i join pg_class d on d.oid = i.inhrelid where i.inhparent = c.oid and d.relkind <> 'r') \
    from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_partitioned_table p on p.partrelid = c.oid \
    left join pg_attribute a on a.attrelid = c.oid and a.attnum = p.partattrs[0] where c.oid = $1::text::regclass";

/// The table's full name.
async fn check_kind(talk: &Talk, config: &PostgresConfig, quoted: &str) -> Result<String, Failure> {
    let row = talk.wait(talk.client.query_one(KIND, &[&quoted])).await?;
    let (kind, name): (&str, String) = (row.try_get(0)?, row.try_get(1)?);
    let (is_by_time, has_default, has_others): (bool, bool, bool) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    let unfit = |why: &str| Err(Failure::Misfit(why.into()));
    match (kind, config.partition) {
        ("r", Partition::None) => Ok(name),
        ("p", Partition::None) => unfit(
            "it is partitioned, so its key can't be the id alone: name a plain table, or set partition = \"day\" if it \
             is partitioned by `event_time`",
        ),
        ("r", Partition::Day) => {
            unfit("it isn't partitioned: rename it so Forebay creates a partitioned one, or remove `partition`")
        }
        ("p", Partition::Day) if !is_by_time => {
            unfit("it isn't partitioned by range of event_time alone: name another table")
        }
        ("p", Partition::Day) if has_others => {
            unfit("some of its partitions are partitioned or foreign tables: detach them, or name another table")
        }
        ("p", Partition::Day) if !has_default => unfit(NO_DEFAULT_PARTITION),
        ("p", Partition::Day) => Ok(name),
        _ => unfit("it is a view or a foreign table: name a plain table"),
    }
}

/// The current columns of the table, in order.
async fn columns(talk: &Talk, inspect: &Statement, quoted: &str) -> Result<Vec<Found>, Failure> {
    let columns = talk.wait(talk.client.query(inspect, &[&quoted])).await?;
    Ok(columns.iter().map(Found::of).collect::<Result<_, _>>()?)
}

/// The columns that Forebay writes, with their types in the table.
fn with_types(mut fields: Vec<Field>, found: &[Found]) -> Result<Vec<Field>, Failure> {
    let mut found: Vec<&Found> = found.iter().collect();
    let mut wrong = Vec::new();
    for field in &mut fields {
        let Some(at) = found.iter().position(|found| found.name == field.name) else {
            wrong.push(format!("column {} is missing", field.name));
            continue;
        };
        let column = found.swap_remove(at);
        // A rounded part of the key wouldn't be found again.
        let rounds = field.content == Content::EventTime && column.type_name != "timestamp with time zone";
        match ColumnType::of_oid(column.oid).filter(|kind| field.may_be(*kind) && !rounds) {
            Some(kind) => (field.kind, field.declared) = (kind, column.type_name.clone()),
            None => {
                let (name, is) = (&field.name, &column.type_name);
                wrong.push(format!("column {name} can't be {is} (it can be {})", field.possible_types()));
            }
        }
    }
    let needed = found.iter().filter(|found| found.is_needed);
    wrong.extend(
        needed.map(|found| {
            format!("column {} has no default and rejects null, and Forebay doesn't write it", found.name)
        }),
    );
    if wrong.is_empty() {
        return Ok(fields);
    }
    Err(Failure::Misfit(format!("{}: alter the table, or name another in `table`", wrong.join("; "))))
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// The table's number: another table of the same name has another.
    of: Oid,
    name: String,
    oid: Oid,
    type_name: String,
    is_needed: bool,
    /// Whether it records by default which transaction stored the row.
    is_transaction: bool,
    /// Whether the table is logged in the write-ahead log: after an alteration to UNLOGGED it counts as another table.
    is_logged: bool,
}

impl Found {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            of: row.try_get(0)?,
            name: row.try_get(1)?,
            oid: row.try_get(2)?,
            type_name: row.try_get(3)?,
            is_needed: row.try_get(4)?,
            is_transaction: row.try_get(5)?,
            is_logged: row.try_get(6)?,
        })
    }
}

fn not_unique(failure: Failure, key: &str) -> Failure {
    let is_that = |error: &tokio_postgres::Error| {
        error.code() == Some(&tokio_postgres::error::SqlState::INVALID_COLUMN_REFERENCE)
    };
    match failure {
        Failure::Driver(error) if is_that(&error) => {
            let problem = if key == "id" { "its id isn't unique" } else { "id and event_time aren't unique together" };
            Failure::Misfit(format!("{problem}: make ({key}) the primary key, or name another table"))
        }
        other => other,
    }
}
