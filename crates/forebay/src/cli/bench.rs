//! The flags of `forebay bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use load::generator::Kind;

use super::SendFlags;

/// Flags of `forebay bench`.
#[derive(Clone, Debug, Args)]
pub(crate) struct BenchFlags {
    #[command(flatten)]
    pub(crate) to: SendFlags,
    /// Connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Requests a second on a fixed schedule; without it each connection sends as soon as it is answered
    ///
    /// Latency then counts from the moment at which a request should have been sent, so that a server that stalls
    /// can't make the load wait for it unseen.
    #[arg(long, value_name = "R", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// How long to send
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = event::length::parse)]
    pub(crate) duration: Duration,
    /// Send batches of so many events; without it each is posted alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: Option<u32>,
    /// Send the lines of this file, again and again, instead of records made here
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "verify"])]
    pub(crate) file: Option<PathBuf>,
    /// The kind of records made here
    #[arg(long, value_name = "KIND", default_value = "access")]
    pub(crate) kind: RecordKind,
    /// Chooses the records; by default those of each run are others
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Give each request an Idempotency-Key
    #[arg(long)]
    pub(crate) key: bool,
    /// Look for every acknowledged event in this SQLite file of the server: each must be there once
    #[arg(long, value_name = "DB")]
    pub(crate) verify: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Kinds of generated records.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RecordKind {
    /// A web server's access log, 335 bytes
    Access,
    /// The end of a job, 114 bytes
    Job,
    /// A server's state, 5 kB, deep
    Nested,
    /// Posts in many scripts, 1 to 4 kB
    Multilingual,
}

impl From<RecordKind> for Kind {
    fn from(kind: RecordKind) -> Self {
        match kind {
            RecordKind::Access => Self::Access,
            RecordKind::Job => Self::JobStatus,
            RecordKind::Nested => Self::Nested,
            RecordKind::Multilingual => Self::Multilingual,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.001..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "a number of requests a second".to_owned())
}
