//! The table as it is: made where it is missing, checked where it is there, and the statements that write it.

use tokio_postgres::types::Oid;
use tokio_postgres::{Row, Statement};

use super::columns::{Content, Field, STORED_IN};
use super::config::{Partition, PostgresConfig, QualifiedName, RowConflictPolicy, TableLayout};
use super::creation::make_missing;
use super::durability;
use super::error::Failure;
use super::kind::ColumnType;
use super::session::Talk;

/// The columns that a new table gets.
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

/// A table that fits, and the statements of one connection.
#[derive(Debug)]
pub(super) struct Table {
    /// Its schema and name: what revisions are kept under.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    pub(super) conflict: RowConflictPolicy,
    /// Whether its rows tell which transaction stored them: one that replaces a row is to say so too.
    pub(super) tells_transactions: bool,
    /// What the names of its partitions begin with, if it is divided by day.
    pub(super) divided: Option<QualifiedName>,
    pub(super) quoted: String,
    pub(super) revisions: String,
    pub(super) read_cursor: Statement,
    pub(super) lock_cursor: Statement,
    pub(super) add_cursor: Statement,
    pub(super) set_cursor: Statement,
    pub(super) copy: Statement,
    /// What the server may lose although it has answered, for the log.
    pub(super) warning: Option<String>,
    look: Statement,
    /// What `look` gave, from which `fields` were made.
    found: Vec<Found>,
}

impl Table {
    /// The columns that no two rows have the same values in.
    pub(super) const fn key(&self) -> &'static str {
        if self.divided.is_some() { "id, event_time" } else { "id" }
    }

    /// The condition that rows `t` and `n` have the same key.
    pub(super) const fn key_clause(&self) -> &'static str {
        if self.divided.is_some() { "t.id = n.id and t.event_time = n.event_time" } else { "t.id = n.id" }
    }

    /// What is set in a row that is replaced by `from`.
    pub(super) fn replaced<'a>(&'a self, fields: impl Iterator<Item = &'a Field>, from: &str) -> String {
        let set = fields.map(|field| format!("{0} = {from}.{0}", field.quoted()));
        let stored_again = self.tells_transactions.then(|| format!("{STORED_IN} = default"));
        set.chain(stored_again).collect::<Vec<_>>().join(", ")
    }

    /// Makes what is missing and looks at what is there.
    pub(super) async fn open(talk: &Talk, config: &PostgresConfig) -> Result<Self, Failure> {
        let fields = wanted(config);
        let (cursors, revisions) = (config.table.beside("forebay_cursors"), config.table.beside("forebay_revisions"));
        make_missing(talk, config, &fields, &cursors, &revisions).await?;
        let quoted = config.table.quoted();
        // Before all else that is asked: of a table that comes in its place meanwhile it is none of the columns.
        let look = talk.wait(talk.client.prepare(COLUMNS)).await?;
        let found = columns(talk, &look, &quoted).await?;
        let name = look_at(talk, config, &quoted).await?;
        let warning = durability::look(talk, config, [&quoted, &cursors, &revisions]).await?;
        let fields = with_types(fields, &found)?;
        let divided = (config.partition == Partition::Day).then(|| config.table.clone());
        let key = if divided.is_some() { "id, event_time" } else { "id" };
        let names: Vec<String> = fields.iter().map(Field::quoted).collect();
        let names = names.join(", ");
        let insert =
            format!("insert into {quoted} ({names}) values ({}) on conflict ({key}) do nothing", nulls(fields.len()));
        // Planned and not run: that tells whether the key is unique.
        talk.order(&format!("explain {insert}")).await.map_err(|failure| not_unique(failure, key))?;
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
            tells_transactions: found.iter().any(|column| column.is_transaction),
            divided,
            quoted,
            revisions,
            warning,
            look,
            found,
        })
    }

    /// Whether the table is the one that was looked at, with the same columns. Behind rows that were written to it in the same
    /// transaction, whose lock keeps everybody from altering it, that is so for them too.
    pub(super) async fn is_same(&self, talk: &Talk) -> Result<bool, Failure> {
        Ok(columns(talk, &self.look, &self.quoted).await? == self.found)
    }

    /// Whether both are one table with the same columns.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.found == other.found
    }
}

fn nulls(count: usize) -> String {
    vec!["null"; count].join(", ")
}

/// The last two are whether it is [`STORED_IN`] by its default, and whether the table is in the write-ahead log.
const COLUMNS: &str = "select a.attrelid, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod), \
    a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '', \
    a.attname = 'stored_in' and a.atthasdef and exists (select from pg_attrdef d where d.adrelid = a.attrelid \
    and d.adnum = a.attnum and pg_get_expr(d.adbin, d.adrelid) = 'txid_current()'), \
    (select c.relpersistence = 'p' from pg_class c where c.oid = a.attrelid) \
    from pg_attribute a where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum";

/// What a divided table may lack.
pub(super) const NO_DEFAULT: &str =
    "it has no default partition for days that get none of their own: create table … partition of … default";

/// What the table is: its kind, its full name, whether it is divided by range of `event_time` alone, whether it has a default
/// partition, and whether any of its partitions isn't a plain table.
const KIND: &str = "select c.relkind::text, n.nspname || '.' || c.relname, \
    coalesce(p.partstrat = 'r' and p.partnatts = 1 and a.attname = 'event_time', false), \
    coalesce(p.partdefid, 0) <> 0, \
    exists (select from pg_inherits i join pg_class d on d.oid = i.inhrelid where i.inhparent = c.oid and d.relkind <> 'r') \
    from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_partitioned_table p on p.partrelid = c.oid \
    left join pg_attribute a on a.attrelid = c.oid and a.attnum = p.partattrs[0] where c.oid = $1::text::regclass";

/// The table's full name.
async fn look_at(talk: &Talk, config: &PostgresConfig, quoted: &str) -> Result<String, Failure> {
    let row = talk.wait(talk.client.query_one(KIND, &[&quoted])).await?;
    let (kind, name): (&str, String) = (row.try_get(0)?, row.try_get(1)?);
    let (is_by_time, has_default, has_others): (bool, bool, bool) = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?);
    let unfit = |why: &str| Err(Failure::Unfit(why.into()));
    match (kind, config.partition) {
        ("r", Partition::None) => Ok(name),
        ("p", Partition::None) => unfit(
            "it is partitioned, and its key can't be the id alone: name a plain table, or say partition = \"day\" if \
             this one is divided by `event_time`",
        ),
        ("r", Partition::Day) => {
            unfit("it isn't partitioned: rename it, so that another is made, or take `partition` out")
        }
        ("p", Partition::Day) if !is_by_time => {
            unfit("it is divided in another way than by range of the column event_time alone: name another table")
        }
        ("p", Partition::Day) if has_others => {
            unfit("some of its partitions are divided themselves, or foreign: detach them, or name another table")
        }
        ("p", Partition::Day) if !has_default => unfit(NO_DEFAULT),
        ("p", Partition::Day) => Ok(name),
        _ => unfit("it is a view, or a foreign table: name a plain table"),
    }
}

/// The columns that the table has now, in their order.
async fn columns(talk: &Talk, look: &Statement, quoted: &str) -> Result<Vec<Found>, Failure> {
    let columns = talk.wait(talk.client.query(look, &[&quoted])).await?;
    Ok(columns.iter().map(Found::of).collect::<Result<_, _>>()?)
}

/// The columns that are written, with the types that they have in the table.
fn with_types(mut fields: Vec<Field>, found: &[Found]) -> Result<Vec<Field>, Failure> {
    let mut found: Vec<&Found> = found.iter().collect();
    let mut wrong = Vec::new();
    for field in &mut fields {
        let Some(at) = found.iter().position(|found| found.name == field.name) else {
            wrong.push(format!("column {} is missing", field.name));
            continue;
        };
        let column = found.swap_remove(at);
        // A part of the key that is rounded wouldn't be found again.
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
    wrong.extend(needed.map(|found| format!("column {} takes no null, and Forebay writes nothing to it", found.name)));
    if wrong.is_empty() {
        return Ok(fields);
    }
    Err(Failure::Unfit(format!("{}: alter the table, or name another in `table`", wrong.join("; "))))
}

/// A column of a table.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    /// The table, which another one of the same name isn't.
    of: Oid,
    name: String,
    oid: Oid,
    type_name: String,
    is_needed: bool,
    /// Whether it holds by default which transaction stored the row.
    is_transaction: bool,
    /// Whether the table is in the write-ahead log: one that is altered to UNLOGGED is another one.
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
            let told = if key == "id" { "its id isn't unique" } else { "id and event_time aren't unique together" };
            Failure::Unfit(format!("{told}: make ({key}) the primary key, or name another table"))
        }
        other => other,
    }
}
