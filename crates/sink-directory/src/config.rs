//! The configuration of a sink of kind `directory`.

use std::path::PathBuf;

use objects::ObjectFormat;

/// Which directory, and what its files are like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryConfig {
    /// The directory. It and those above it are made if they are missing.
    pub path: PathBuf,
    /// How large files are.
    pub rules: ObjectFormat,
}
