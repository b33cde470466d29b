//! The connection of a read, and what it keeps for the next one: prepared statements, and the form of the table.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::super::error::Failure;
use super::super::session::Talk;

/// The table is inspected again after this time. The server itself prepares a statement again after an alteration, and
/// a statement that no longer fits fails. So an older form is harmless: an index may be gone, or a `text` column may have
/// become `jsonb`.
const FORM_AGE_MAX: Duration = Duration::from_secs(5);

/// What a connection keeps between reads.
#[derive(Default)]
pub(in super::super) struct Kept {
    /// By their SQL, of which there are few: all that varies is a parameter.
    statements: HashMap<String, Statement>,
    form: Option<(Form, Instant)>,
}

/// The form of a table.
#[derive(Clone, Copy, Default)]
pub(super) struct Form {
    /// The table's number. A later table of the same name has another.
    pub(super) table: u32,
    /// Whether payloads are `jsonb`, whose text may be far longer than the value.
    pub(super) is_jsonb: bool,
    /// Whether its rows record the insertion order, with an index.
    pub(super) is_ordered: bool,
}

/// A connection that reads.
pub(in super::super) struct Reads<'a> {
    pub(super) talk: &'a Talk,
    kept: &'a mut Kept,
}

impl<'a> Reads<'a> {
    pub(in super::super) const fn new(talk: &'a Talk, kept: &'a mut Kept) -> Self {
        Self { talk, kept }
    }

    /// The rows of a statement that is prepared once for a connection.
    pub(super) async fn rows(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        let talk = self.talk;
        let statement = match self.kept.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = talk.wait(talk.client.prepare(sql)).await?;
                self.kept.statements.insert(sql.to_owned(), statement.clone());
                statement
            }
        };
        talk.wait(talk.client.query(&statement, parameters)).await
    }

    /// The only row of such a statement.
    pub(super) async fn row(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Row, Failure> {
        self.rows(sql, parameters).await?.pop().ok_or(Failure::Unexpected("the server returned no row"))
    }

    /// The form of the table, if it was found a short time ago.
    pub(super) fn form(&self) -> Option<Form> {
        let (form, found) = self.kept.form.as_ref()?;
        (found.elapsed() < FORM_AGE_MAX).then_some(*form)
    }

    /// Keeps the form. The statements of another table of the same name are prepared again: the server does not notice
    /// if a schema that is searched earlier now has the name.
    pub(super) fn keep(&mut self, form: Form) {
        if self.kept.form.as_ref().is_some_and(|(before, _)| before.table != form.table) {
            self.kept.statements.clear();
        }
        self.kept.form = Some((form, Instant::now()));
    }
}
