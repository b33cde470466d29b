//! A reload as JSON: what the admin API answers, and what the command reads and prints.

use serde::{Deserialize, Serialize};

/// A reload, or what one would change.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReloadJson {
    /// Whether the changes are in use. A dry run applies nothing.
    pub applied: bool,
    /// The path of the configuration file, as the server got it.
    #[serde(default)]
    pub file: Option<String>,
    /// A sentence for each table that is added, removed or changed, and for each route with
    /// pending events that is removed; routes of aggregates' results aren't compared.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The warnings of the configuration, as `forebay check` shows them.
    #[serde(default)]
    pub warnings: Option<String>,
}
