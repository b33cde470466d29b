//! Sends events as fast as they are answered, or at a fixed rate, and measures how long each takes.
//!
//! One thread with epoll: on a shared machine, the cost of the load reduces what is left for the server.

pub(crate) mod answer;
pub(crate) mod client;
mod payload;
mod report;
pub(crate) mod run;
pub(crate) mod stream;
mod verify;

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

pub use report::Report;
pub use verify::StoreCheck;

use anyhow::anyhow;
use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use generator::RecordKind;

use crate::IngestEndpoint;
use run::Run;
use verify::Verifier;

/// The options of a bench, as on the command line.
#[derive(Clone, Debug, Args)]
pub struct BenchOptions {
    /// Connections, each with one request at a time
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
    /// Requests a second on a fixed schedule; without it, each connection sends without pause
    ///
    /// Latency then counts from the time at which a request was due, which includes the time that a stalled server delays later
    /// requests.
    #[arg(long, value_name = "R", value_parser = rate)]
    pub rate: Option<f64>,
    /// Play the users of this file (TOML), instead of sending events over --connections
    #[arg(long, value_name = "FILE", conflicts_with_all = ["connections", "rate", "batch", "file", "kind", "key", "verify", "event_type"])]
    pub scenario: Option<PathBuf>,
    /// How long to send; with --scenario 60s, if not set
    #[arg(long, value_name = "TIME", default_value = "10s", default_value_if("scenario", ArgPredicate::IsPresent, "60s"), value_parser = text::duration::parse)]
    pub duration: Duration,
    /// Send batches of this many events [default: one event a request]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub batch: Option<u32>,
    /// Send the lines of this file repeatedly, instead of generated records
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "verify"])]
    pub file: Option<PathBuf>,
    /// The kind of generated records
    #[arg(long, value_name = "KIND", default_value = "access")]
    pub kind: RecordKindName,
    /// The seed of the generated records [default: another one for each run]
    #[arg(long, value_name = "N", default_value_t = any_seed(), hide_default_value = true)]
    pub seed: u64,
    /// Give each request an Idempotency-Key
    #[arg(long)]
    pub key: bool,
    /// Check that this SQLite file of the server has each acknowledged event once
    #[arg(long, value_name = "DB")]
    pub verify: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Kinds of generated records.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RecordKindName {
    /// A web server's access log, 335 bytes
    Access,
    /// The end of a job, 114 bytes
    Job,
    /// A server's state, 5 kB, deep
    Nested,
    /// Posts in many scripts, 1 to 4 kB
    Multilingual,
}

impl From<RecordKindName> for RecordKind {
    fn from(kind: RecordKindName) -> Self {
        match kind {
            RecordKindName::Access => Self::Access,
            RecordKindName::Job => Self::JobStatus,
            RecordKindName::Nested => Self::Nested,
            RecordKindName::Multilingual => Self::Multilingual,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.001..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "expected a number of requests a second, from 0.001 to 10,000,000".to_owned())
}

/// The progress of a run, for display.
#[derive(Debug, Default)]
pub struct BenchCounters {
    /// Events of requests that were answered 200. With a scenario: requests that were answered as expected.
    pub events: AtomicU64,
    /// Requests that were answered otherwise or not at all.
    pub failed: AtomicU64,
}

/// Measures, and shows the figures when the load has ended. Then it checks the store, if requested, and completes the
/// report. Ends early once `stop` is set.
///
/// # Errors
/// The message says why there is nothing to report. Nothing was sent.
pub fn run(
    (to, options): (&IngestEndpoint, &BenchOptions),
    counters: &BenchCounters,
    stop: &AtomicBool,
    show: impl FnOnce(&Report),
) -> anyhow::Result<Report> {
    let verifier = options.verify.as_ref().map(|path| Verifier::new(path, options.kind.into(), options.seed, stop));
    let verifier = verifier.transpose()?;
    let measured = Run::new((to, options), counters, stop)?.measure();
    let mut report = Report::new(&measured, options);
    show(&report);
    match verifier.map(|verifier| verifier.verify(&measured.acknowledged, stop)) {
        Some(Ok(check)) => report.verified = Some(check),
        Some(Err(error)) => drop(report.failure.get_or_insert_with(|| error.to_string())),
        None => {}
    }
    Ok(report)
}

/// A seed that no other run has: the time of its start.
fn any_seed() -> u64 {
    u64::try_from(clock::since_1970().as_nanos()).unwrap_or(u64::MAX)
}

/// The error of a failed operation.
fn cannot<E: Display>(what: &'static str) -> impl FnOnce(E) -> anyhow::Error {
    move |error| anyhow!("can't {what}: {error}")
}
