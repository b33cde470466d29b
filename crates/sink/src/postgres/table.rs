//! The table as it is: made where it is missing, checked where it is there, and the statements that write it.

use tokio_postgres::types::Oid;
use tokio_postgres::{Row, Statement};

use super::config::{Conflict, Layout, PostgresConfig};
use super::failure::Failure;
use super::kind::Kind;
use super::session::Talk;
use pipeline::pointer::JsonPointer;

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Id,
    Type,
    Source,
    ReceivedAt,
    Payload,
    Member(JsonPointer),
}

/// A column with what it holds and the type that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) content: Content,
    pub(super) kind: Kind,
    /// The type as the table declares it, with lengths and digits: `numeric(10,2)`.
    pub(super) declared: String,
}

impl Field {
    fn new(name: &str, content: Content, kind: Kind) -> Self {
        Self { name: name.to_owned(), content, kind, declared: kind.name().to_owned() }
    }

    /// The name as it stands in SQL: a checked name has nothing to escape.
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.name)
    }

    /// The types that this content may have.
    fn may_be(&self, kind: Kind) -> bool {
        match self.content {
            Content::Id => kind == Kind::Uuid,
            Content::Type | Content::Source => matches!(kind, Kind::Text | Kind::Varchar),
            Content::ReceivedAt => kind == Kind::Timestamptz,
            Content::Payload => matches!(kind, Kind::Jsonb | Kind::Json | Kind::Text),
            Content::Member(_) => true,
        }
    }
}

/// The columns that a new table gets.
fn wanted(layout: &Layout) -> Vec<Field> {
    let id = Field::new("id", Content::Id, Kind::Uuid);
    let received_at = Field::new("received_at", Content::ReceivedAt, Kind::Timestamptz);
    match layout {
        Layout::Whole { payload } => vec![
            id,
            Field::new("type", Content::Type, Kind::Text),
            Field::new("source", Content::Source, Kind::Text),
            received_at,
            Field::new("payload", Content::Payload, payload.kind()),
        ],
        Layout::Columns { columns, payload } => {
            let mut fields = vec![id, received_at];
            fields.extend(columns.iter().map(|column| {
                let kind = column.kind.unwrap_or(Kind::Jsonb);
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
    pub(super) conflict: Conflict,
    pub(super) quoted: String,
    pub(super) revisions: String,
    pub(super) read_cursor: Statement,
    pub(super) lock_cursor: Statement,
    pub(super) add_cursor: Statement,
    pub(super) set_cursor: Statement,
    pub(super) copy: Statement,
}

/// Two that make tables at the same time wait for each other; the number is only Forebay's own.
const MAKING: i64 = 0x666f_7265_6261_7900;

impl Table {
    /// Makes what is missing and looks at what is there.
    pub(super) async fn open(talk: &Talk, config: &PostgresConfig) -> Result<Self, Failure> {
        let fields = wanted(&config.layout);
        let (cursors, revisions) = (config.table.beside("forebay_cursors"), config.table.beside("forebay_revisions"));
        make_missing(talk, config, &fields, &cursors, &revisions).await?;
        let quoted = config.table.quoted();
        let (name, fields) = look_at(talk, &quoted, fields).await?;
        let names: Vec<String> = fields.iter().map(Field::quoted).collect();
        let names = names.join(", ");
        let insert =
            format!("insert into {quoted} ({names}) values ({}) on conflict (id) do nothing", nulls(fields.len()));
        // Planned and not run: that tells whether the id is unique.
        talk.order(&format!("explain {insert}")).await.map_err(not_unique)?;
        let place = "where origin = $1 and shard = $2 and sink = $3";
        let prepare = async |sql: String| talk.wait(talk.client.prepare(&sql)).await;
        Ok(Self {
            read_cursor: prepare(format!("select position from {cursors} {place}")).await?,
            lock_cursor: prepare(format!("select position from {cursors} {place} for update")).await?,
            add_cursor: prepare(format!(
                "insert into {cursors} (origin, shard, sink, position) values ($1, $2, $3, 0) on conflict do nothing"
            ))
            .await?,
            set_cursor: prepare(format!("update {cursors} set position = $4, set_at = now() {place}")).await?,
            copy: prepare(format!("copy {quoted} ({names}) from stdin (format binary)")).await?,
            name,
            fields,
            conflict: config.conflict.clone(),
            quoted,
            revisions,
        })
    }

    /// Whether somebody has given a column another type since the table was looked at.
    pub(super) async fn has_changed(&self, talk: &Talk) -> Result<bool, Failure> {
        let (_, fields) = look_at(talk, &self.quoted, self.fields.clone()).await?;
        Ok(fields != self.fields)
    }
}

fn nulls(count: usize) -> String {
    vec!["null"; count].join(", ")
}

/// Asks before it makes: who may not make tables may still write to those that are there.
async fn make_missing(
    talk: &Talk,
    config: &PostgresConfig,
    fields: &[Field],
    cursors: &str,
    revisions: &str,
) -> Result<(), Failure> {
    let table = config.table.quoted();
    let asked = format!(
        "select to_regclass('{table}') is not null and to_regclass('{cursors}') is not null \
         and to_regclass('{revisions}') is not null"
    );
    let row = talk.wait(talk.client.query_one(&asked, &[])).await?;
    if row.try_get(0)? {
        return Ok(());
    }
    let column = |field: &Field| {
        let key = if field.content == Content::Id { " primary key" } else { "" };
        format!("{} {}{key}", field.quoted(), field.kind.name())
    };
    let columns: Vec<String> = fields.iter().map(column).collect();
    talk.order(&format!(
        "begin; select pg_advisory_xact_lock({MAKING});
         create table if not exists {table} ({});
         create table if not exists {cursors} (origin bytea not null, shard integer not null, sink text not null,
             position bigint not null, set_at timestamptz, primary key (origin, shard, sink)) with (fillfactor = 50);
         create table if not exists {revisions} (\"table\" text not null, id uuid not null, revision bigint not null,
             primary key (\"table\", id));
         commit",
        columns.join(", ")
    ))
    .await
}

const COLUMNS: &str = "select a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod), \
    a.attnotnull and not a.atthasdef and a.attidentity = '' and a.attgenerated = '' \
    from pg_attribute a where a.attrelid = $1::text::regclass and a.attnum > 0 and not a.attisdropped";

/// The table's full name, and the columns with the types that they have in it.
async fn look_at(talk: &Talk, quoted: &str, mut fields: Vec<Field>) -> Result<(String, Vec<Field>), Failure> {
    let what = "select c.relkind = 'r', n.nspname || '.' || c.relname from pg_class c \
         join pg_namespace n on n.oid = c.relnamespace where c.oid = $1::text::regclass";
    let row = talk.wait(talk.client.query_one(what, &[&quoted])).await?;
    if !row.try_get::<_, bool>(0)? {
        let why = "it is a view, or a partitioned or foreign table: name a plain table, whose key can be the id alone";
        return Err(Failure::Unfit(why.into()));
    }
    let name = row.try_get(1)?;
    let columns = talk.wait(talk.client.query(COLUMNS, &[&quoted])).await?;
    let mut found = columns.iter().map(Found::of).collect::<Result<Vec<_>, _>>()?;
    let mut wrong = Vec::new();
    for field in &mut fields {
        let Some(at) = found.iter().position(|found| found.name == field.name) else {
            wrong.push(format!("column {} is missing", field.name));
            continue;
        };
        let column = found.swap_remove(at);
        match Kind::of_oid(column.oid).filter(|kind| field.may_be(*kind)) {
            Some(kind) => (field.kind, field.declared) = (kind, column.type_name),
            None => wrong.push(format!("column {} can't be {}", field.name, column.type_name)),
        }
    }
    let needed = found.iter().filter(|found| found.is_needed);
    wrong.extend(needed.map(|found| format!("column {} takes no null, and Forebay writes nothing to it", found.name)));
    if wrong.is_empty() {
        return Ok((name, fields));
    }
    Err(Failure::Unfit(format!("{}: alter the table, or name another in `table`", wrong.join("; "))))
}

struct Found {
    name: String,
    oid: Oid,
    type_name: String,
    is_needed: bool,
}

impl Found {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self { name: row.try_get(0)?, oid: row.try_get(1)?, type_name: row.try_get(2)?, is_needed: row.try_get(3)? })
    }
}

fn not_unique(failure: Failure) -> Failure {
    let is_that = |error: &tokio_postgres::Error| {
        error.code() == Some(&tokio_postgres::error::SqlState::INVALID_COLUMN_REFERENCE)
    };
    match failure {
        Failure::Driver(error) if is_that(&error) => {
            Failure::Unfit("its id isn't unique: make it the primary key, or name another table".into())
        }
        other => other,
    }
}
