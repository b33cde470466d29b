//! `forebay drain`: delivers all events in the data directory of a removed server; the operator can then delete the directory.

mod dead_letters;
mod local_files;
mod progress;
mod remaining;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aggregation::{AggregateBoard, UnusableState, unusable_states};
use anyhow::{anyhow, bail};
use config::{Configuration, Role};
use delivery::Delivery;
use journal::DataDirectory;
use ledger::Ledger;
use settings::Environment;
use tap::Taps;
use tokio::time::{Instant, sleep};

use crate::configuration_report::shown;
use crate::opened::{Opened, plan_memory, seal};
use crate::signals::{end_at_once, runtime_with_signals};
use crate::{compose, log};
use cli::DrainFlags;
use cli::EXIT_CONFIGURATION;
use cli::errors::at;
use cli::signals::Signals;
use dead_letters::Letters;
use discovery::UpstreamBoard;
use progress::Progress;
use remaining::Stays;

/// The exit code if something remains in the directory.
const EXIT_STAYS: u8 = 3;
/// The pause between two checks of delivery's progress.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// The pause between two log lines about the progress.
const LOG_EVERY: Duration = Duration::from_secs(5);

/// Drains the directory. Returns the process's exit code.
///
/// # Errors
/// The message names the cause. The next run resumes at the cursors.
pub(crate) fn run(flags: &DrainFlags, role: Option<Role>, environment: &Environment) -> anyhow::Result<u8> {
    if role == Some(Role::Writer) {
        log::fatal("a writer has no journal to drain: set FOREBAY_ROLE to the role of the removed server");
        return Ok(EXIT_CONFIGURATION);
    }
    let common = flags.common(role);
    let (runtime, (signals, _)) = runtime_with_signals()?;
    let data = common.directory();
    // The command must not create a data directory, or take another program's directory for one.
    if !data.is_dir() {
        let data_shown = data.display();
        if data.exists() {
            bail!("{data_shown} isn't a directory: name a data directory with --data");
        }
        bail!("there is no data directory {data_shown}: name one with --data");
    }
    let loaded = common.load(environment);
    log::start_thread();
    common.warn_of_overlooked();
    let Some(mut configuration) = shown(loaded) else { return Ok(EXIT_CONFIGURATION) };
    log::configure(configuration.log.format, configuration.log.level);
    let unusable = unusable_states(&DataDirectory::look(data)?, &compose::aggregates(&configuration));
    let unusable = unusable.map_err(at(data.join("aggregates")))?;
    if !unusable.is_empty() {
        unusable.iter().for_each(refuse);
        return Ok(EXIT_CONFIGURATION);
    }
    let letters = flags.dead_letters.as_deref().map(|path| Letters::new(path, data)).transpose()?;
    let code = runtime.block_on(drain(&mut configuration, data, letters, flags.timeout, signals));
    // A DNS lookup may take longer than the end of the process should.
    runtime.shutdown_background();
    code
}

/// Reports why a drain would discard the open windows of an aggregate.
fn refuse(state: &UnusableState) {
    let UnusableState { name, path, reason } = state;
    log::fatal(format_args!(
        "aggregate {name} {reason}, and may have open windows: drain with its last configuration. To discard the windows, move {}.* \
         elsewhere.",
        path.display()
    ));
}

async fn drain(
    configuration: &mut Configuration,
    data: &Path,
    letters: Option<Letters>,
    timeout: Duration,
    mut signals: Signals,
) -> anyhow::Result<u8> {
    let memory = plan_memory(configuration, data);
    let sinks = compose::sinks(configuration, |_, store| compose::new_driver(store, &memory));
    let Opened { log, delivery, directory } =
        Opened::start(configuration, data, memory, sinks, (Taps::closed(), None))?;
    // Discovery runs until this is dropped.
    let _upstreams = UpstreamBoard::new(&configuration.upstreams);
    let stays = Stays::new(&log, &delivery);
    let end = tokio::select! {
        end = follow(&delivery, timeout) => end,
        () = signals.next() => End::Signal,
        reason = log.failed() => return Err(anyhow!(reason)),
    };
    match end {
        End::Drained => {}
        End::NoProgress => {
            tracing::warn!(
                "nothing was stored for {}: the drain ends, events remain in the directory. Raise --timeout, or check the stores",
                humantime::format_duration(timeout)
            );
        }
        End::Signal => tracing::info!("stopping: events that aren't stored yet remain in the directory"),
    }
    tokio::spawn(end_at_once(signals));
    // On a blocking thread: the runtime still has to receive a second signal.
    let stopped = tokio::task::spawn_blocking(move || delivery.stop(Duration::ZERO)).await;
    stopped.map_err(|_| {
        anyhow!(
            "BUG: the drain did not stop cleanly; the journal keeps events that aren't stored. Run the drain again, \
             and report this"
        )
    })?;
    seal(&log)?;
    let mut stays = stays.find(&directory)?;
    stays.add(local_files::find(configuration, data).map_err(at(data))?);
    if let Some(Err(error)) = letters.map(|letters| letters.write(&directory)) {
        let message = format!("the dead letters weren't exported: {error}");
        tracing::error!("{message}");
        stays.add(vec![message]);
    }
    stays.print(data)?;
    Ok(if stays.is_empty() { 0 } else { EXIT_STAYS })
}

/// Why delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Drained,
    NoProgress,
    Signal,
}

/// Drains until everything has ended, or until there is no progress for `timeout`.
async fn follow(delivery: &Delivery, timeout: Duration) -> End {
    let (ledger, aggregates) = (delivery.ledger().clone(), delivery.aggregates().clone());
    delivery.drain();
    let (mut progress, mut log_at) = (Progress::new(delivery), Instant::now());
    while !delivery.has_ended() {
        if progress.stalled_for(delivery) >= timeout {
            return End::NoProgress;
        }
        if log_at <= Instant::now() {
            log_progress(&ledger, &aggregates);
            log_at = Instant::now() + LOG_EVERY;
        }
        sleep(CHECK_EVERY).await;
    }
    End::Drained
}

/// Logs the progress.
fn log_progress(ledger: &Arc<Ledger>, aggregates: &AggregateBoard) {
    let pending = ledger.pending_by_sink().into_iter().map(|(sink, events)| format!("{events} for {sink}"));
    let pending: Vec<String> = pending.collect();
    let windows: usize = aggregates.aggregates().iter().map(|aggregate| aggregate.figures().windows).sum();
    if !pending.is_empty() || windows > 0 {
        tracing::info!("draining: pending events: {}; open windows: {windows}", none_or(&pending));
    }
}

fn none_or(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}
