//! A table that is read.

use event::TypeName;
use event::read::ReadError;

use super::super::columns::{STORED_IN, STORED_NUMBER, THIS_TRANSACTION};
use super::super::config::{PostgresConfig, TableLayout};
use super::super::error::Failure;
use super::reads::{Form, Reads};

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
    /// Its form.
    pub(super) form: Form,
    /// Where to find the type of a row's event.
    pub(super) types: Types,
}

impl Readable {
    /// The configured table; an error if its events have several types, and its rows don't say which.
    pub(super) async fn of(
        reads: &mut Reads<'_>,
        config: &PostgresConfig,
        only_type: Option<&TypeName>,
    ) -> Result<Result<Self, ReadError>, Failure> {
        let types = match (&config.layout, only_type) {
            (TableLayout::Whole { .. }, _) => Types::InRows,
            (TableLayout::Columns { .. }, Some(only)) => Types::All(only.clone()),
            (TableLayout::Columns { .. }, None) => return Ok(Err(ReadError::Untyped(UNTYPED.into()))),
        };
        let mut table = Self { name: config.table.quoted(), form: Form::default(), types };
        match reads.form() {
            Some(form) => table.form = form,
            None => table.inspect(reads).await?,
        }
        Ok(Ok(table))
    }

    /// Finds out the form.
    pub(super) async fn inspect(&mut self, reads: &mut Reads<'_>) -> Result<(), Failure> {
        let row = reads.row(&form_sql(), &[&self.name]).await?;
        self.form = Form { table: row.try_get(0)?, is_jsonb: row.try_get(1)?, is_ordered: row.try_get(2)? };
        reads.keep(self.form);
        Ok(())
    }

    /// The SQL condition that a row is of type `$3`, which is true if that is null.
    pub(super) fn of_type(&self) -> String {
        format!("($3::text is null or {} = $3)", self.type_sql())
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

/// The query for the form of a table.
fn form_sql() -> String {
    format!(
        "select t.oid, exists (select from pg_attribute where attrelid = t.oid and attname = 'payload' \
         and atttypid = 'jsonb'::regtype and not attisdropped), exists (select from pg_attribute a \
         join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum \
         and pg_get_expr(d.adbin, d.adrelid) = '{THIS_TRANSACTION}' \
         join pg_attribute b on b.attrelid = a.attrelid and b.attname = '{STORED_NUMBER}' and b.atttypid = 'bigint'::regtype \
         join pg_index i on i.indrelid = a.attrelid and i.indisvalid and i.indpred is null \
         and i.indkey[0] = a.attnum and i.indkey[1] = b.attnum \
         join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam and m.amname = 'btree' \
         where a.attrelid = t.oid and a.attname = '{STORED_IN}' and a.atttypid = 'bigint'::regtype \
         and a.attnotnull and b.attnotnull) from (select $1::text::regclass::oid) t"
    )
}
