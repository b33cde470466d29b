//! A table that is read.

use event::TypeName;
use event::read::{Query, ReadError};

use super::super::config::{PostgresConfig, TableLayout};
use super::super::error::Failure;
use super::super::session::Talk;

/// The message for a table that stores no types and gets events of several types.
const UNTYPED: &str = "the sink's `columns` store no event type, and events of several types use the sink: give each \
    type a sink with its own table, or remove `columns`";

/// Where to find the type of a row's event.
pub(super) enum Types {
    /// In the columns `type` and `source`.
    InRows,
    /// Rows of a table with `columns` store neither: all are of this type, and have no source.
    All(TypeName),
}

/// A table that is read.
pub(super) struct Readable {
    /// Its name in SQL.
    pub(super) name: String,
    /// Whether payloads are `jsonb`, whose text may be far longer than the value.
    pub(super) is_jsonb: bool,
    /// Where to find the type of a row's event.
    pub(super) types: Types,
}

impl Readable {
    /// Checks the payload column.
    pub(super) async fn inspect(
        talk: &Talk,
        config: &PostgresConfig,
        query: &Query,
    ) -> Result<Result<Self, ReadError>, Failure> {
        let types = match (&config.layout, &query.only_type) {
            (TableLayout::Whole { .. }, _) => Types::InRows,
            (TableLayout::Columns { .. }, Some(only)) => Types::All(only.clone()),
            (TableLayout::Columns { .. }, None) => return Ok(Err(ReadError::Untyped(UNTYPED.into()))),
        };
        let name = config.table.quoted();
        let sql = "select exists (select from pg_attribute where attrelid = $1::text::regclass and attname = 'payload' \
                   and atttypid = 'jsonb'::regtype and not attisdropped)";
        let is_jsonb = talk.wait(talk.client.query_one(sql, &[&name])).await?.try_get(0)?;
        Ok(Ok(Self { name, is_jsonb, types }))
    }

    /// The SQL condition that a row is of type `$1`, which is true if that is null.
    pub(super) fn of_type(&self) -> String {
        format!("($1::text is null or {} = $1)", self.type_sql())
    }

    /// The type of a row's event, as SQL. A type's name has nothing to escape.
    pub(super) fn type_sql(&self) -> String {
        match &self.types {
            Types::InRows => "type".to_owned(),
            Types::All(name) => format!("'{}'::text", name.as_str()),
        }
    }

    /// The source of a row's event, as SQL.
    pub(super) const fn source_sql(&self) -> &'static str {
        match self.types {
            Types::InRows => "source",
            Types::All(_) => "''::text",
        }
    }
}
