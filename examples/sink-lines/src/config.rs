//! The configuration of a sink of kind `lines`.

use std::path::PathBuf;

/// Which file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesConfig {
    /// The file.
    pub path: PathBuf,
}
