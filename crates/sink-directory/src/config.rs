//! The configuration of a sink of kind `directory`.

use std::path::PathBuf;

use objects::ObjectFormat;

/// The directory, and the rules of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryConfig {
    /// The directory. It and those above it are created if they are missing.
    pub path: PathBuf,
    /// The limits of files.
    pub rules: ObjectFormat,
}
