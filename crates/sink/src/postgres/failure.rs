//! What PostgreSQL's errors mean for delivery, in words for the person who must act.

use std::io;
use std::time::Duration;

use event::read::ReadError;
use tokio_postgres::error::SqlState;

use super::config::PostgresConfig;
use crate::SinkError;

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
    /// A lane's cursor is before what was stored.
    LostTail {
        /// The cursor.
        position: u64,
        /// Up to where it was stored.
        stored: u64,
    },
    /// The operating system gave no thread.
    NoThread(io::Error),
    /// What the server answered makes no sense.
    Odd(&'static str),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// Why a row isn't taken, if the server refuses one for what is in it, so that its neighbours may pass.
    pub(super) fn of_a_row(&self) -> Option<String> {
        let Self::Driver(error) = self else { return None };
        let error = error.as_db_error()?;
        // Data exceptions, broken constraints, what a trigger raises, and more than an index or a value can hold.
        let class = error.code().code().get(..2)?;
        if !["22", "23", "P0", "54"].contains(&class) {
            return None;
        }
        let detail = error.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
        Some(format!("{}{detail}", error.message()))
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
            Self::LostTail { position, stored } => unavailable(format!(
                "{place} has a lane up to position {position}, and {stored} was stored: it is another server now, or an \
                 older copy; the lane's place is to be asked for again"
            )),
            Self::NoThread(error) => {
                unavailable(format!("{place}: no thread to read with ({error}): raise the limit on threads"))
            }
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
            "grant what is missing: select, insert and update on the table and on Forebay's own two, create on the schema",
        ),
        // A table that vanished is made again with the next try.
        "42" => Some("make the table what the manual says, or name another in `table`"),
        "22" | "23" | "P0" | "54" | "0A" => {
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
