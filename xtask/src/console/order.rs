//! The lines between a script and this program: a script's line that begins with `@` is an order or a figure in JSON, and an order is
//! answered by a line of JSON.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::figure::Figure;

/// The beginning of such a line.
pub(super) const MARK: char = '@';

/// A line of a script.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// To be done now, and answered.
    Order(Order),
    /// A row of the table at the end.
    Figure(Figure),
}

/// A role of a process.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Serve,
    Gateway,
    Writer,
}

/// What a script orders.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do", deny_unknown_fields)]
pub(super) enum Order {
    /// Starts a process in an empty folder with these other files, and waits until it is ready. `MoveClock` moves its wall
    /// clock if `has_moved_clock` is set.
    Launch {
        name: String,
        role: Role,
        config: String,
        files: BTreeMap<String, String>,
        #[serde(default)]
        has_moved_clock: bool,
    },
    /// Sets the wall clock of all processes with a moved clock so many hours ahead of this machine's, now.
    MoveClock { hours: u8 },
    /// Kills a process, as a power button does.
    Kill { name: String },
    /// Stops a process in an orderly way.
    Stop { name: String },
    /// Starts a process again, with this configuration and this program if there is one.
    Start { name: String, config: Option<String>, program: Option<PathBuf> },
    /// Replaces the configuration file.
    Configure { name: String, config: String },
    /// Starts an empty store, or starts it again over its data.
    RunStore { store: Store },
    /// Kills a store.
    KillStore { store: Store },
    /// Runs SQL in PostgreSQL.
    Sql { sql: String },
    /// Single posts by `wrk`: 64 connections for so many milliseconds.
    Load { intake: SocketAddr, milliseconds: u64 },
    /// Free ports.
    Ports { count: usize },
}

/// A store.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Store {
    Postgres,
    Redis,
}

/// The answer to an order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// A running process.
    Process { intake: SocketAddr, admin: SocketAddr, pid: u32, data: PathBuf, folder: PathBuf },
    /// The settings of a store's sink, or rows as lines.
    Text(String),
    /// A rate a second.
    Rate(f64),
    /// Free ports.
    Ports(Vec<u16>),
    /// It is done.
    Done,
    /// It failed, and why.
    Error(String),
}
