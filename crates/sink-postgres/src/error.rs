//! What PostgreSQL's errors mean for delivery, in words for the person who must act.

use std::time::Duration;

use event::read::ReadError;
use tokio_postgres::error::{DbError, SqlState};

use super::config::PostgresConfig;
use sink::CLAIMED_BY_ANOTHER;
use sink::{Fault, Mark, SinkError};

/// Why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server said so, or the connection broke.
    Driver(tokio_postgres::Error),
    /// The server refuses each record that was tried, and its code leaves open whether the rows or the table are at fault.
    NoRowPasses {
        /// What it said of the last.
        error: tokio_postgres::Error,
        /// How many records were tried.
        tried: usize,
    },
    /// The server doesn't begin a COPY. The connection can't be used any more: its driver loses count of the answers.
    NoCopy(tokio_postgres::Error),
    /// The server refused a record and then took it, or refused it for another reason. Its words.
    Unsteady(String),
    /// A part of the batch was stored, up to where the cursor is.
    InPart,
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
    /// The connection leads to another database than the batch is for: to the one with this mark.
    OtherStore(Mark),
    /// What the server answered makes no sense.
    Odd(&'static str),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Failure {
    /// What it is about.
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

    /// The server's words about a row: the message and its code, the detail and the hint.
    pub(super) fn words(&self) -> String {
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
            Self::Driver(error) | Self::NoRowPasses { error, .. } => {
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
            Self::Driver(error) | Self::NoCopy(error) => of_driver(&place, &error),
            Self::NoRowPasses { error, tried } => of_all(of_driver(&place, &error), tried),
            Self::Unsteady(words) => unavailable(format!(
                "{place}: an event was refused and then not for the same reason, and the batch is sent again: {words}"
            )),
            Self::InPart => unavailable(format!("{place}: a part of the batch is stored, and the rest is sent again")),
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
            Self::OtherStore(mark) => SinkError::OtherStore(mark),
            Self::Claimed => unavailable(format!("{place}: {CLAIMED_BY_ANOTHER}")),
            Self::Odd(what) => unavailable(format!("{place}: {what}, which is a bug: please report it")),
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

/// What a lane waits for that has found no event to pass: a person, or the next event.
fn of_all(error: SinkError, tried: usize) -> SinkError {
    let told = error.into_reason();
    let none = if tried == 1 { "the only event".to_owned() } else { format!("each of {tried} events") };
    SinkError::Misconfigured(
        format!(
            "{told}. The server refuses {none} that was tried: the lane waits until the table takes it, or until a later event passes \
             and shows that the table isn't at fault"
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
    let told = format!("{place}: {message} ({}){}", code.code(), hint(said));
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
        _ if fault(code) != Fault::Store => Some(
            "the table doesn't take what is written to it; look at its triggers, constraints and generated columns",
        ),
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
    // What the system says of a connection needs no "error connecting to server" before it.
    let mut told = if source.is_some_and(|cause| cause.is::<std::io::Error>()) {
        place.to_owned()
    } else {
        format!("{place}: {error}")
    };
    let mut untrusted = false;
    while let Some(inner) = source {
        let inner_words = inner.to_string();
        untrusted |= inner_words.contains("isn't trusted");
        if !told.ends_with(&inner_words) {
            told = format!("{told}: {inner_words}");
        }
        source = inner.source();
    }
    if told.ends_with(NO_BINDING) {
        return SinkError::Misconfigured(told.into());
    }
    if told.ends_with(NOT_BOUND) {
        let why = format!(
            "{place}: channel_binding=require: the server accepted the login without channel binding. Give the user of `url` a \
             scram-sha-256 password and a line for it in pg_hba.conf, over TLS, or take channel_binding out of `url`"
        );
        return SinkError::Misconfigured(why.into());
    }
    if untrusted {
        return SinkError::Misconfigured(
            format!("{}, or sslmode=disable in `url`", net::tls::in_configuration(&told)).into(),
        );
    }
    unavailable(told)
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
