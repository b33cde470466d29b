//! What PostgreSQL's errors mean for delivery, in words for the person who must act.

use std::time::Duration;

use event::read::ReadError;
use tokio_postgres::error::{DbError, SqlState};

use super::config::PostgresConfig;
use crate::SinkError;
use crate::claim::OF_ANOTHER;

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server said so, or the connection broke.
    Driver(tokio_postgres::Error),
    /// No answer for so long.
    Silent(Duration),
    /// The sink was closed meanwhile.
    Closed,
    /// The server closed the connection without a word.
    Ended,
    /// The table isn't what it must be.
    Unfit(String),
    /// A partition was made or taken away while rows were written.
    Divided,
    /// The table isn't the one any more that the rows were made for. The connection is still good, in a transaction that is to be given up.
    Altered,
    /// A lane's cursor is before what was stored.
    LostTail {
        /// The cursor.
        position: u64,
        /// Up to where it was stored.
        stored: u64,
    },
    /// Another process has claimed the lane.
    Claimed,
    /// What the server answered makes no sense.
    Odd(&'static str),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// Why a row isn't taken, if the server may refuse one for what is in it, so that its neighbours may pass.
    pub(super) fn of_a_row(&self) -> Option<String> {
        let Self::Driver(error) = self else { return None };
        let error = error.as_db_error()?;
        if !is_of_a_row(error.code()) {
            return None;
        }
        let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        Some(format!("{}{detail}", error.message()))
    }

    /// Whether the user isn't allowed to do what was asked.
    pub(super) fn is_of_rights(&self) -> bool {
        matches!(self, Self::Driver(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE))
    }

    /// Whether no partition takes a row, or one that doesn't take it any more. The server's own function tells it from
    /// constraints, which have the same code.
    pub(super) fn is_of_partitions(&self) -> bool {
        let Self::Driver(error) = self else { return false };
        let routine = error.as_db_error().and_then(DbError::routine);
        matches!(routine, Some("ExecFindPartition" | "ExecPartitionCheckEmitError"))
    }

    /// Whether another look at the table may mend it: the server takes none of the values that were made for other columns.
    pub(super) fn may_be_of_an_older_table(&self) -> bool {
        match self {
            Self::Altered => true,
            // Names and types, and what a type's own function says to a form that it doesn't know.
            Self::Driver(error) => {
                error.code().is_some_and(|code| ["42", "XX"].contains(&code.code().get(..2).unwrap_or("")))
            }
            _ => false,
        }
    }

    /// Whether a partition can't be made now, so that rows go to the default one meanwhile: somebody reads or makes one, or a table that
    /// is none of the partitions has its name.
    pub(super) fn leaves_default(&self) -> bool {
        let Self::Driver(error) = self else { return false };
        let codes = [
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::QUERY_CANCELED,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::DUPLICATE_TABLE,
        ];
        error.code().is_some_and(|code| codes.contains(code))
    }

    pub(super) fn into_sink_error(self, config: &PostgresConfig) -> SinkError {
        let place = format!("PostgreSQL {}, table {}", config.server, config.table);
        match self {
            Self::Driver(error) => of_driver(&place, &error),
            Self::Silent(limit) => unavailable(format!(
                "{place}: no answer for {limit:?}: look at the server and at the network; nothing is lost meanwhile"
            )),
            Self::Closed => unavailable(format!("{place}: the connection was closed here")),
            Self::Ended => unavailable(format!("{place}: the server closed the connection")),
            Self::Unfit(why) => SinkError::Misconfigured(format!("{place}: {why}").into()),
            Self::Divided => unavailable(format!(
                "{place}: its partitions have changed while rows were written, and the batch is sent again; where this \
                 stays, see to it that the table has a default partition"
            )),
            Self::Altered => unavailable(format!(
                "{place}: it was altered again and again while rows were written, and the batch is sent again"
            )),
            Self::LostTail { position, stored } => unavailable(format!(
                "{place} has a lane up to position {position}, and {stored} was stored: it is another server now, or an \
                 older copy; the lane's place is to be asked for again"
            )),
            Self::Claimed => unavailable(format!("{place}: {OF_ANOTHER}")),
            Self::Odd(what) => unavailable(format!("{place}: {what}, which is a bug: please report it")),
        }
    }

    pub(super) fn into_read_error(self, config: &PostgresConfig) -> ReadError {
        let (SinkError::Unavailable(reason) | SinkError::Misconfigured(reason)) = self.into_sink_error(config);
        ReadError::Unavailable(reason)
    }
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}

/// Classes of errors that concern a connection, a transaction, the server or the table, whatever row is written.
const NOT_OF_A_ROW: [&str; 25] = [
    "00", "01", "02", "03", // no errors, and a statement that isn't done
    "08", "0A", "0B", "0L", "0P", // connections, what the server can't do, who may grant
    "24", "25", "26", "28", "2B", "2D", // cursors, transactions, names of statements, who may log in
    "34", "3B", "3D", "3F", // names, savepoints
    "40", // serialization and deadlocks
    "53", "55", "57", "58", // resources, locks, an operator, the system
    "72", // a snapshot that is too old
];
/// More of them, of which the first letter tells: configuration files, foreign servers, the server's own faults.
const NOT_OF_A_ROW_BY_LETTER: [char; 3] = ['F', 'H', 'X'];

/// Whether a row may be at fault. Triggers and constraints raise what their authors chose, so it is whatever isn't known
/// to be something else: what one row raises may hold up no other.
fn is_of_a_row(code: &SqlState) -> bool {
    let code = code.code();
    let Some(class) = code.get(..2) else { return false };
    // Rights and names: the table, not a row. A policy and a view's `with check option` look at rows.
    let is_of_the_table = class == "42";
    !is_of_the_table && !NOT_OF_A_ROW.contains(&class) && !code.starts_with(NOT_OF_A_ROW_BY_LETTER)
}

/// Sorts an error that concerns a whole call.
fn of_driver(place: &str, error: &tokio_postgres::Error) -> SinkError {
    let Some(said) = error.as_db_error() else {
        return of_connection(place, error);
    };
    let (message, code) = (said.message(), said.code());
    let told = format!("{place}: {message} ({})", code.code());
    let Some(advice) = advice(code) else { return unavailable(told) };
    SinkError::Misconfigured(format!("{told}: {advice}").into())
}

/// What a person must do; nothing where it may pass by itself.
fn advice(code: &SqlState) -> Option<&'static str> {
    match code.code().get(..2)? {
        "28" => Some("see to it that the user of `url` may log in with its password"),
        "3D" => Some("make the database, or name another in `url`"),
        "3F" => Some("make the schema, or name another in `table`"),
        // Tables that are made by two at once: whoever comes second finds them.
        "42" if *code == SqlState::DUPLICATE_TABLE => None,
        "42" if *code == SqlState::INSUFFICIENT_PRIVILEGE => Some(
            "grant what is missing: select, insert and update on the table and on Forebay's own two, create on the schema; \
             who isn't the owner of a divided table can't make its partitions",
        ),
        // A table that vanished is made again with the next try.
        "42" => Some("make the table what the manual says, or name another in `table`"),
        class if class == "0A" || is_of_a_row(code) => {
            Some("the table doesn't take what is written to it; look at its triggers and constraints")
        }
        _ => None,
    }
}

fn of_connection(place: &str, error: &tokio_postgres::Error) -> SinkError {
    let mut told = format!("{place}: {error}");
    let mut source = std::error::Error::source(error);
    let mut untrusted = false;
    while let Some(inner) = source {
        let inner_words = inner.to_string();
        untrusted |= inner_words.contains("isn't trusted");
        if !told.ends_with(&inner_words) {
            told = format!("{told}: {inner_words}");
        }
        source = inner.source();
    }
    if untrusted {
        return SinkError::Misconfigured(
            format!("{told}; in this configuration: the setting `ca`, or sslmode=disable in `url`").into(),
        );
    }
    unavailable(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_may_raise_is_told_from_what_it_can_not() {
        let of_a_row = |code: &str| is_of_a_row(&SqlState::from_code(code));
        for code in ["22P02", "23514", "P0001", "P0004", "54000", "21000", "44000", "ZZ001", "45000", "99999", "38001"]
        {
            assert!(of_a_row(code), "{code}");
        }
        for code in ["08006", "25006", "26000", "28P01", "3D000", "40001", "40P01", "42501", "42P01", "53100", "53300"]
        {
            assert!(!of_a_row(code), "{code}");
        }
        for code in ["55P03", "57014", "57P01", "58030", "XX000", "XX001", "F0000", "HV00N", "72000", "0A000"] {
            assert!(!of_a_row(code), "{code}");
        }
    }
}
