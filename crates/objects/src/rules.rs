//! The rules of a sink's objects.

use std::time::Duration;

use crate::{Apart, Codec, Line, Prefix};

/// How large objects are, and how they are coded: what delivery must know before it makes a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRules {
    /// What stands in a line.
    pub line: Line,
    /// How an object is coded.
    pub codec: Codec,
    /// Bytes of lines, or of what would be lines, before they are coded, at which an object ends, unless one event alone is larger.
    pub bytes_max: u64,
    /// Events of an object.
    pub records_max: u64,
    /// How long the first event of an object waits for others.
    pub age_max: Duration,
    /// What their names begin with. For stores without directories.
    pub prefix: Prefix,
    /// What of a payload is an object of its own, if anything is. For stores over HTTP.
    pub apart: Option<Apart>,
}
