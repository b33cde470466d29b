//! The configuration of a sink of kind `sqlite`.

use std::path::PathBuf;
use std::time::Duration;

use sink::TableName;

/// The file, the table, and how long its rows are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteConfig {
    /// The file. It and the directories above it are created if they are missing.
    pub path: PathBuf,
    /// The table. It is created if it is missing.
    pub table: TableName,
    /// Rows that were accepted longer ago are deleted. `None`: all are kept.
    pub retention: Option<Duration>,
}
