//! The rules of a sink's objects.

use std::fmt;
use std::time::Duration;

use crate::{AttachmentRule, Codec, Line, Prefix, SideFolder};

/// The size and encoding of objects: what delivery must know before it creates a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectFormat {
    /// The content of a line.
    pub line: Line,
    /// The codec of an object.
    pub codec: Codec,
    /// The bytes of lines, before they are encoded, at which an object ends, unless one event alone is larger. For
    /// other formats: of the equivalent lines.
    pub bytes_max: u64,
    /// The maximum of events in an object.
    pub records_max: u64,
    /// How long the first event of an object waits for others.
    pub age_max: Duration,
    /// The prefix of their names. For stores without directories.
    pub prefix: Prefix,
    /// Which part of a payload is a separate object, if any. For stores over HTTP.
    pub apart: Option<AttachmentRule>,
    /// Where their manifests are.
    pub manifests: SideFolder,
}

/// Bytes of memory that a Parquet file needs while it is written.
const PARQUET_BYTES: usize = 16 << 20;

impl ObjectFormat {
    /// The limits of an object and its attachments, for display.
    #[must_use]
    pub fn limits(&self) -> impl fmt::Display {
        let Self { line, bytes_max, records_max, age_max, apart, .. } = self;
        let age = humantime::format_duration(*age_max);
        let envelopes = if *line == Line::Envelope { ", in envelopes" } else { "" };
        let apart = apart.as_ref().map_or_else(String::new, |apart| format!(", {} apart", apart.data));
        let records = text::counted(*records_max, "event");
        format!("{bytes_max} bytes, {records}, {age}{envelopes}{apart}")
    }

    /// The codec, the prefix of names and the limits of objects over HTTP, for display.
    #[must_use]
    pub fn summary(&self) -> impl fmt::Display {
        let prefix = if self.prefix == Prefix::NONE { String::new() } else { format!(" {}", self.prefix) };
        let time = if self.prefix.follows_events() { " by the time of events" } else { "" };
        format!("codec {}, objects{prefix}{time} of at most {}", self.codec, self.limits())
    }

    /// Bytes of memory that a writer of objects needs in addition to the budgets.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        if self.codec == Codec::Parquet { PARQUET_BYTES } else { 0 }
    }
}
