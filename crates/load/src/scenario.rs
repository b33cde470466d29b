//! Users with sessions: each logs in, thinks, chooses a step by its weight, and measures the answer.
//!
//! The load is an open loop: a user's next step is due a time of thinking after the previous one was *due*, and its latency counts from then. So a
//! server that stalls doesn't lower the load, and the requests that it delays count with their delay.

mod assertion;
mod connection;
mod descriptors;
mod file;
mod lines;
mod plan;
mod reading;
mod report;
mod run;
mod template;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use file::Scenario;
pub use report::ScenarioReport;

use crate::IngestEndpoint;
use crate::bench::BenchCounters;

/// Plays the users for `duration`. Ends early once `stop` is set. The random numbers are those of `seed`.
///
/// # Errors
/// The message says why there is nothing to report. No request was sent.
pub fn run(
    (to, scenario): (&IngestEndpoint, &Scenario),
    (duration, seed): (Duration, u64),
    counters: &BenchCounters,
    stop: &AtomicBool,
) -> anyhow::Result<ScenarioReport> {
    descriptors::ensure(scenario.users)?;
    let measured = run::Run::new((to, scenario), (duration, seed), counters, stop)?.measure();
    Ok(ScenarioReport::new(scenario, &measured))
}
