//! The log of a process as JSON: its level, and its last lines.

use serde::{Deserialize, Serialize};

/// The state of the log.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LogJson {
    /// The lowest level that is written: `debug`, `info`, `warning` or `error`.
    pub level: String,
    /// The level of the configuration, which `level` returns to.
    pub configured: String,
    /// When it returns, in RFC 3339; `None` if it is the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The last lines, the oldest first. An answer to a change has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<String>>,
}

/// Another level for some time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LogChangeJson {
    pub level: String,
    /// A duration: `10m`.
    #[serde(rename = "for", default = "usual_duration")]
    pub duration: String,
}

/// How long another level lasts if nothing else is said.
#[must_use]
pub fn usual_duration() -> String {
    "10m".to_owned()
}
