//! A reload as JSON: what the admin API answers, and what the command reads and prints.

use serde::{Deserialize, Serialize};

/// A reload that was applied.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReloadJson {
    pub applied: bool,
    /// The path of the configuration file, as the server got it.
    #[serde(default)]
    pub file: Option<String>,
    /// A sentence for each table that was added, removed or changed.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The warnings of the configuration, as `forebay check` shows them.
    #[serde(default)]
    pub warnings: Option<String>,
}
