//! Sends events as fast as they are answered, or at a fixed rate, and measures how long each takes.
//!
//! One thread with epoll: what the load itself costs is taken from the server where both share a machine.

mod client;
mod payload;
mod report;
mod run;
mod verify;

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use report::Report;
pub use verify::StoreCheck;

use anyhow::{anyhow, bail};
use generator::Kind;

use crate::Server;
use payload::Payloads;
use run::Run;
use verify::Verifier;

/// What to send, and how.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// The server.
    pub server: Server,
    /// The type of the events; without it the server decides.
    pub event_type: Option<String>,
    /// What shows the server that the sender may.
    pub token: Option<String>,
    /// Connections that are kept open.
    pub connections: usize,
    /// Requests a second on a fixed schedule; without it each connection sends as soon as it is answered.
    pub rate: Option<f64>,
    /// How long to send.
    pub duration: Duration,
    /// Events of a request; without it each is posted alone.
    pub batch: Option<u32>,
    /// What the events are.
    pub events: Events,
    /// Whether each request has an `Idempotency-Key`.
    pub has_keys: bool,
    /// Chooses the generated records, and is part of the keys.
    pub seed: u64,
    /// The SQLite file of the server, in which every acknowledged event must be found once.
    pub verify: Option<PathBuf>,
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Events {
    /// Records made here; all differ.
    Generated(Kind),
    /// The lines of a file, again and again.
    File(PathBuf),
}

/// Measures, and shows the figures when the load has ended; then the store is looked into, where that is asked for, and the
/// report is complete. Ends early once `stop` is set.
///
/// # Errors
/// The message says why there is nothing to report. Nothing was sent.
pub fn run(options: &BenchOptions, stop: &AtomicBool, show: impl FnOnce(&Report)) -> anyhow::Result<Report> {
    let verifier = match (&options.verify, &options.events) {
        (None, _) => None,
        (Some(path), Events::Generated(kind)) => Some(Verifier::new(path, *kind, options.seed, stop)?),
        (Some(_), Events::File(_)) => {
            bail!("only generated events can be verified: lines of a file come more than once")
        }
    };
    let payloads = Payloads::new(&options.events, options.seed)?;
    let measured = Run::new(options, payloads, stop)?.measure();
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
#[must_use]
pub fn any_seed() -> u64 {
    u64::try_from(clock::since_1970().as_nanos()).unwrap_or(u64::MAX)
}

/// The operating system refused something.
fn cannot<E: Display>(what: &'static str) -> impl FnOnce(E) -> anyhow::Error {
    move |error| anyhow!("can't {what}: {error}")
}
