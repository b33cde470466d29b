//! The journal of a data directory and the delivery from it, for a server and for `forebay drain`.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use config::Configuration;
use delivery::{Delivery, Options, SinkSetup};
use eventlog::{EventLog, LogOptions, LostFrom};
use journal::disk::OsDisk;
use journal::{DataDirectory, Finding};
use ledger::SavedLedger;
use limits::memory::Budgets;
use spans::SpanQueue;
use tap::Taps;

use crate::memory_plan::Plan;
use crate::process::disk_size;
use crate::{allocator, compose, memory_plan};
use cli::errors::{unreadable, unusable};

/// An open data directory from which events are delivered.
pub(crate) struct Opened {
    pub(crate) log: Arc<EventLog>,
    pub(crate) delivery: Delivery,
    /// Its lock is released last.
    pub(crate) directory: DataDirectory,
}

impl Opened {
    /// Opens the journal and starts to deliver from it.
    ///
    /// # Errors
    /// The message names the cause.
    pub(crate) fn start(
        configuration: &Configuration,
        data: &Path,
        memory: Budgets,
        sinks: Vec<SinkSetup>,
        (taps, spans): (&'static Taps, Option<&'static SpanQueue>),
    ) -> anyhow::Result<Self> {
        let directory = DataDirectory::open(Arc::new(OsDisk), data).map_err(unusable)?;
        let saved = SavedLedger::load(&directory)?;
        saved.findings().iter().for_each(|finding| tracing::warn!("{finding}"));
        let shards = shards(configuration, &directory, &saved)?;
        check_disk(configuration, &directory, shards, &sinks)?;
        let log_options = saved.log_options(shards);
        let report = |shard, finding: &Finding| tracing::warn!(shard, "journal: {finding}");
        let log_options = LogOptions { keep_free: configuration.journal.keep_free, memory, report, ..log_options };
        let log = Arc::new(EventLog::open(&directory, &log_options)?);
        warn_of_oddities(&log, &directory, shards);
        let delivery = Delivery::start(
            &log,
            &directory,
            compose::delivery(configuration, sinks),
            saved,
            Options { memory, taps, spans, ..Options::new() },
        )?;
        Ok(Self { log, delivery, directory })
    }
}

/// Seals the journal. Nothing may be appended to it afterwards.
///
/// # Errors
/// The disk failed: the next start recovers the journal.
pub(crate) fn seal(log: &EventLog) -> anyhow::Result<()> {
    log.shards().iter().try_for_each(|shard| Ok(shard.close()?))
}

/// Divides the available memory into budgets, and logs messages about them for the operator.
pub(crate) fn plan_memory(configuration: &mut Configuration, data: &Path) -> Budgets {
    // A directory with more shards than configured keeps them.
    let there =
        DataDirectory::look(data).ok().and_then(|directory| directory.shards_on_disk().ok()).unwrap_or_default();
    let plan = Plan::of(configuration, configured_shards(configuration).max(there).into());
    if let Some(warning) = plan.warning() {
        tracing::warn!("{warning}");
    }
    if let Some(summary) = plan.summary() {
        tracing::info!("{summary}");
    }
    if plan.is_limited() {
        allocator::give_back_at_once();
    }
    memory_plan::limit_aggregates(configuration, &plan.budgets);
    plan.budgets
}

/// Logs the losses that the operator hasn't accepted, including those that earlier starts found, and files that aren't journals.
fn warn_of_oddities(log: &EventLog, directory: &DataDirectory, shards: u16) {
    for loss in log.losses().open_ones() {
        if let LostFrom::Shard(shard) = loss.from {
            tracing::warn!(shard, "{}", loss.message());
        }
    }
    for path in directory.strays(shards).unwrap_or_default() {
        tracing::warn!(
            "{} is not the journal of a shard and is ignored: move it out of the data directory",
            path.display()
        );
    }
}

fn configured_shards(configuration: &Configuration) -> u16 {
    let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    configuration.gateway.shards_for(cores).get()
}

/// The number of shards: as configured, and no fewer than the directory has or had, because each journal has to be delivered.
fn shards(configuration: &Configuration, directory: &DataDirectory, saved: &SavedLedger) -> anyhow::Result<u16> {
    let wanted = configured_shards(configuration);
    let there = directory.shards_on_disk().map_err(unreadable(directory.path()))?;
    let counted = u16::try_from(saved.counted_up_to().len()).unwrap_or(u16::MAX);
    Ok(wanted.max(there).max(counted))
}

/// Accepts a disk of unknown size.
fn check_disk(
    configuration: &Configuration,
    directory: &DataDirectory,
    shards: u16,
    sinks: &[SinkSetup],
) -> anyhow::Result<()> {
    let bytes_all = directory.disk().space(directory.path()).map_or(0, |space| space.bytes_all);
    let stores = sinks.iter().filter(|setup| setup.sink.capabilities().on_this_disk).count() as u64;
    disk_size::check(directory.path(), bytes_all, configuration.journal.keep_free, shards, stores)
}
