//! What PostgreSQL's errors mean for delivery, with advice for the operator.

use std::time::Duration;

use event::read::ReadError;
use tokio_postgres::error::{DbError, SqlState};

use super::config::PostgresConfig;
use sink::CLAIMED_BY_ANOTHER;
use sink::{Fault, Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server returned an error, or the connection broke.
    Driver(tokio_postgres::Error),
    /// The server rejects each record that was tried, and its code leaves open whether the rows or the table are at
    /// fault.
    NoRowPasses {
        /// The error for the last record.
        error: tokio_postgres::Error,
        /// How many records were tried.
        tried: usize,
    },
    /// The server doesn't begin a COPY. The connection can no longer be used: its driver loses count of the responses.
    NoCopy(tokio_postgres::Error),
    /// The server rejected a record and then accepted it, or rejected it for another reason. Its message.
    Inconsistent(String),
    /// Part of the batch was stored, up to the cursor.
    PartlyStored,
    /// No response for this long.
    NoResponse(Duration),
    /// The sink was closed during the call.
    Closed,
    /// The server closed the connection without an error.
    ServerClosed,
    /// The table or the server doesn't have the required form or settings.
    Misfit(String),
    /// A partition was created or removed during the write.
    PartitionsChanged,
    /// The table is no longer the one that the rows were encoded for. The connection is still good, in a transaction
    /// that must be rolled back.
    Altered,
    /// A lane's cursor is before the position up to which it was stored.
    LostTail {
        /// The cursor.
        position: u64,
        /// The position up to which it was stored.
        stored: u64,
    },
    /// Another process has claimed the lane.
    Claimed,
    /// The connection reaches another database than the batch's: the one with this store id.
    OtherStore(Mark),
    /// The server's response is invalid.
    Unexpected(&'static str),
    /// Forebay's own code is at fault.
    Bug(&'static str),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// What is at fault.
    pub(super) fn fault(&self) -> Fault {
        let Self::Driver(error) = self else { return Fault::Store };
        error.as_db_error().map_or(Fault::Store, |error| fault(error.code()))
    }

    /// Whether both have the same code of the server.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let code = |failure: &Self| match failure {
            Self::Driver(error) => error.code().cloned(),
            _ => None,
        };
        code(self).is_some() && code(self) == code(other)
    }

    /// The server's message about a row: the message and its code, the detail and the hint.
    pub(super) fn message(&self) -> String {
        let Self::Driver(error) = self else { return String::new() };
        let Some(error) = error.as_db_error() else { return error.to_string() };
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        format!("{} ({}){detail}{}", error.message(), error.code().code(), hint(error))
    }

    /// The same failure of a COPY that the server doesn't begin.
    pub(super) fn of_copy(self) -> Self {
        match self {
            Self::Driver(error) if error.as_db_error().is_some() => Self::NoCopy(error),
            other => other,
        }
    }

    /// The same failure of each of `tried` records, with none that passes.
    pub(super) fn of_all(self, tried: usize) -> Self {
        match self {
            Self::Driver(error) => Self::NoRowPasses { error, tried },
            other => other,
        }
    }

    /// Whether a statement that was prepared earlier may not fit the table of now, or was removed by a pooler.
    pub(super) fn may_be_outdated_statement(&self) -> bool {
        let Self::Driver(error) = self else { return false };
        let codes = [SqlState::FEATURE_NOT_SUPPORTED, SqlState::INVALID_SQL_STATEMENT_NAME];
        self.may_be_outdated_table() || error.code().is_some_and(|code| codes.contains(code))
    }

    /// Whether the user isn't allowed to do what was asked.
    pub(super) fn is_permission_denied(&self) -> bool {
        matches!(self, Self::Driver(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE))
    }

    /// Whether no partition accepts a row, or no longer does. The name of the server's function distinguishes this from
    /// constraints, which have the same code.
    pub(super) fn is_partition_mismatch(&self) -> bool {
        let Self::Driver(error) = self else { return false };
        let routine = error.as_db_error().and_then(DbError::routine);
        matches!(routine, Some("ExecFindPartition" | "ExecPartitionCheckEmitError"))
    }

    /// Whether checking the table again may fix it: the server accepts none of the values that were encoded for other
    /// columns.
    pub(super) fn may_be_outdated_table(&self) -> bool {
        match self {
            Self::Altered => true,
            // Names and types, and the error of a type's input function for an unknown form.
            Self::Driver(error) | Self::NoRowPasses { error, .. } => {
                error.code().is_some_and(|code| ["42", "XX"].contains(&code.code().get(..2).unwrap_or("")))
            }
            _ => false,
        }
    }

    /// Whether a partition can't be created now, so the rows go to the default one first. Either another session uses
    /// the table or creates a partition, or a table that isn't a partition has its name.
    pub(super) fn defers_partition(&self) -> bool {
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
            Self::Driver(error) | Self::NoCopy(error) => of_driver(&place, &error),
            Self::NoRowPasses { error, tried } => of_all(of_driver(&place, &error), tried),
            Self::Inconsistent(message) => unavailable(format!(
                "{place}: the server rejected an event, then accepted it or rejected it for another reason. Forebay \
                 resends the batch. The server's message: {message}"
            )),
            Self::PartlyStored => {
                unavailable(format!("{place}: part of the batch is stored. Forebay resends the rest"))
            }
            Self::NoResponse(limit) => unavailable(format!(
                "{place}: no response within {limit:?}. Check the server and the network. Forebay retries, and no \
                 event is lost"
            )),
            Self::Closed => unavailable(format!("{place}: Forebay cancelled the call, because the sink was closed")),
            Self::ServerClosed => unavailable(format!("{place}: the server closed the connection. Forebay reconnects")),
            Self::Misfit(why) => SinkError::Misconfigured(format!("{place}: {why}").into()),
            Self::PartitionsChanged => unavailable(format!(
                "{place}: its partitions have changed during the write. Forebay resends the batch. If this repeats, \
                 add a default partition to the table"
            )),
            Self::Altered => unavailable(format!(
                "{place}: the table was altered repeatedly during the write. Forebay resends the batch"
            )),
            Self::LostTail { position, stored } => unavailable(format!(
                "{place}: the lane's cursor is {position}, but {stored} was stored before: the server was emptied, is \
                 an older copy, or failed over. Forebay reads the cursor again before the next write"
            )),
            Self::OtherStore(mark) => SinkError::OtherStore(mark),
            Self::Claimed => unavailable(format!("{place}: {CLAIMED_BY_ANOTHER}")),
            Self::Bug(what) => {
                unavailable(format!("{place}: {what}. Forebay resends the batch. Please report this as a bug"))
            }
            Self::Unexpected(what) => unavailable(format!(
                "{place}: {what}. Forebay retries; if this persists, check the server and the proxies in front of it"
            )),
        }
    }

    pub(super) fn into_read_error(self, config: &PostgresConfig) -> ReadError {
        ReadError::Unavailable(self.into_sink_error(config).into_reason())
    }
}

fn unavailable(reason: String) -> SinkError {
    SinkError::Unavailable(reason.into())
}

/// The faults of PostgreSQL's errors, by the first characters of their codes: the longest that matches decides. Codes that aren't listed are
/// [`Fault::Unclear`]: triggers, policies and extensions raise what their authors chose.
const FAULTS: [(&str, Fault); 12] = [
    // Data exceptions and violated constraints name a value of the row.
    ("22", Fault::Record),
    ("23", Fault::Record),
    // A sequence of the table has reached its end.
    ("2200H", Fault::Store),
    // The connection, the state of a transaction, serialization and deadlocks, resources, locks, an operator, the system.
    ("08", Fault::Store),
    ("25", Fault::Store),
    ("40", Fault::Store),
    ("53", Fault::Store),
    ("55", Fault::Store),
    ("57", Fault::Store),
    ("58", Fault::Store),
    // The server's own files are damaged.
    ("XX001", Fault::Store),
    ("XX002", Fault::Store),
];

fn fault(code: &SqlState) -> Fault {
    let matching = FAULTS.iter().filter(|(listed, _)| code.code().starts_with(listed));
    matching.max_by_key(|(listed, _)| listed.len()).map_or(Fault::Unclear, |(_, fault)| *fault)
}

fn hint(error: &DbError) -> String {
    error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default()
}

/// Adds what the lane waits for if no event was accepted: the operator, or a later event.
fn of_all(error: SinkError, tried: usize) -> SinkError {
    let reason = error.into_reason();
    let tried = if tried == 1 { "the only event".to_owned() } else { format!("each of {tried} events") };
    SinkError::Misconfigured(
        format!(
            "{reason}. The server rejected {tried} that Forebay tried. The lane waits until the table accepts it, or \
             until a later event is stored, which shows that the table isn't at fault"
        )
        .into(),
    )
}

/// Sorts an error that concerns a whole call.
fn of_driver(place: &str, error: &tokio_postgres::Error) -> SinkError {
    let Some(said) = error.as_db_error() else {
        return of_connection(place, error);
    };
    let (message, code) = (said.message(), said.code());
    let reason = format!("{place}: {message} ({}){}", code.code(), hint(said));
    let Some(advice) = advice(code) else { return unavailable(reason) };
    SinkError::Misconfigured(format!("{reason}: {advice}").into())
}

/// What the operator must do; `None` if the error may be temporary.
fn advice(code: &SqlState) -> Option<&'static str> {
    match code.code().get(..2)? {
        "28" => Some("check that the user of `url` may log in with its password"),
        "3D" => Some("create the database, or name another in `url`"),
        "3F" => Some("create the schema, or name another in `table`"),
        // Two sessions created the table concurrently: the second finds it at the next attempt.
        "42" if *code == SqlState::DUPLICATE_TABLE => None,
        "42" if *code == SqlState::INSUFFICIENT_PRIVILEGE => Some(
            "grant select, insert and update on the table, forebay_cursors and forebay_revisions, and create on the \
             schema; only the owner of a partitioned table can create its partitions",
        ),
        // A table that was dropped is created again at the next attempt.
        "42" => Some("compare the table with docs/guides/stores/postgres.md and alter it, or name another in `table`"),
        _ if fault(code) != Fault::Store => {
            Some("the table rejects what Forebay writes; check its triggers, constraints and generated columns")
        }
        _ => None,
    }
}

/// Why a login can't be bound to the server's certificate.
pub(super) const NO_BINDING: &str = "channel_binding=require: the server's certificate is signed with an algorithm without a hash for it \
    (Ed25519, for example). Use a certificate signed by ECDSA or RSA with SHA-256";

/// The driver's message if channel binding is required and not offered: the login is by trust or MD5, or TLS ends at a proxy.
const NOT_BOUND: &str = "server did not use channel binding";

fn of_connection(place: &str, error: &tokio_postgres::Error) -> SinkError {
    let mut source = std::error::Error::source(error);
    // The operating system's error about a connection needs no "error connecting to server" before it.
    let mut reason = if source.is_some_and(|cause| cause.is::<std::io::Error>()) {
        place.to_owned()
    } else {
        format!("{place}: {error}")
    };
    let mut untrusted = false;
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        untrusted |= inner_text.contains("isn't trusted");
        if !reason.ends_with(&inner_text) {
            reason = format!("{reason}: {inner_text}");
        }
        source = inner.source();
    }
    if reason.ends_with(NO_BINDING) {
        return SinkError::Misconfigured(reason.into());
    }
    if reason.ends_with(NOT_BOUND) {
        let why = format!(
            "{place}: channel_binding=require, but the server offered no channel binding. Give the user of `url` a \
             scram-sha-256 password and a hostssl line in pg_hba.conf, or remove channel_binding from `url`"
        );
        return SinkError::Misconfigured(why.into());
    }
    if untrusted {
        return SinkError::Misconfigured(
            format!("{}, or sslmode=disable in `url`", net::tls::in_configuration(&reason)).into(),
        );
    }
    unavailable(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_fault() {
        let fault = |code: &str| fault(&SqlState::from_code(code));
        for (listed, expected) in FAULTS {
            for rest in ["000", "001", "P02", "0ZZ"] {
                let code = if listed.len() == 2 { format!("{listed}{rest}") } else { listed.to_owned() };
                assert_eq!(fault(&code), expected, "{code}");
            }
        }
        for code in ["P0001", "ZZ001", "45000", "42501", "42P01", "0A000", "XX000", "26000", "3D000", "HV00N", "54000"]
        {
            assert_eq!(fault(code), Fault::Unclear, "{code}");
        }
    }
}
