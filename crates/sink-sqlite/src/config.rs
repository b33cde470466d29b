//! The configuration of a sink of kind `sqlite`.

use std::path::PathBuf;
use std::time::Duration;

use sink::TableName;

/// Which file, which table in it, and how long its rows are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteConfig {
    /// The file. It and the directories above it are made if they are missing.
    pub path: PathBuf,
    /// The table. It is made if it is missing.
    pub table: TableName,
    /// Rows that were accepted longer ago are deleted. `None`: all are kept.
    pub retention: Option<Duration>,
}
