//! The rules of a sink's objects.

use std::fmt;
use std::time::Duration;

use crate::{AttachmentRule, Codec, Line, Prefix, SideFolder};

/// How large objects are, and how they are coded: what delivery must know before it makes a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFormat {
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
    pub apart: Option<AttachmentRule>,
    /// Where their manifests are.
    pub manifests: SideFolder,
}

/// Bytes that a Parquet file takes while it is written.
const PARQUET_BYTES: usize = 16 << 20;

impl ObjectFormat {
    /// When an object ends, and what isn't in it, to be displayed.
    #[must_use]
    pub fn limits(&self) -> impl fmt::Display {
        let Self { line, bytes_max, records_max, age_max, apart, .. } = self;
        let age = humantime::format_duration(*age_max);
        let envelopes = if *line == Line::Envelope { ", in envelopes" } else { "" };
        let apart = apart.as_ref().map_or_else(String::new, |apart| format!(", {} apart", apart.data));
        let records = text::counted(*records_max, "event");
        format!("{bytes_max} bytes, {records}, {age}{envelopes}{apart}")
    }

    /// The codec, the prefix of names and the limits of objects over HTTP, to be displayed.
    #[must_use]
    pub fn summary(&self) -> impl fmt::Display {
        let prefix = if self.prefix == Prefix::NONE { String::new() } else { format!(" {}", self.prefix) };
        let time = if self.prefix.follows_events() { " by the time of events" } else { "" };
        format!("codec {}, objects{prefix}{time} of at most {}", self.codec, self.limits())
    }

    /// Bytes of memory that a writer of objects takes, whatever the budgets are.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        if self.codec == Codec::Parquet { PARQUET_BYTES } else { 0 }
    }
}
