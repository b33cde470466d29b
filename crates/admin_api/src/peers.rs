//! The processes of a fleet as JSON.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The answer of [`PEERS`](crate::paths::PEERS).
#[derive(Debug, Deserialize, Serialize)]
pub struct PeersJson {
    /// The process that answers comes first.
    pub peers: Vec<PeerJson>,
}

/// One process.
#[derive(Debug, Deserialize, Serialize)]
pub struct PeerJson {
    /// Host and port, for paths below [`PEERS`](crate::paths::PEERS). The name of the host for the process that answers.
    pub name: String,
    /// Whether it is the process that answers.
    pub this: bool,
    pub url: String,
    pub role: Option<String>,
    /// When it answered last.
    pub seen: Option<String>,
    /// Why it doesn't answer now.
    pub error: Option<String>,
    /// Its last [overview](crate::overview::OverviewJson), unchanged: its release may be another one.
    pub overview: Option<Box<RawValue>>,
}
