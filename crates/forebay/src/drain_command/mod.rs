//! `forebay drain`: brings what is in a data directory to its end whose server is gone, so that the directory can be deleted.

mod letters;
mod progress;
mod stays;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use delivery::{AggregateBoard, Delivery, Ledger};
use journal::DataDirectory;
use tokio::time::{Instant, sleep};

use crate::check::EXIT_CONFIGURATION;
use crate::cli::DrainFlags;
use crate::config::{self, Configuration, Environment};
use crate::discovery::UpstreamBoard;
use crate::opened::{Opened, plan_memory, seal};
use crate::role::Role;
use crate::serve::{Signals, end_at_once, runtime_with_signals, shown};
use crate::serve_error::ServeError;
use crate::{log, wiring};
use letters::LettersFile;
use progress::Progress;
use stays::Stays;

/// What the process exits with if something stays in the directory.
const EXIT_STAYS: u8 = 3;
/// How often it is looked at how far delivery is.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the log says how far it is.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Why a directory can't be drained.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DrainError {
    /// There is no such directory.
    #[error("there is no data directory {0}: name one with --data")]
    Missing(PathBuf),
    /// It can't be opened, or its journal failed.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// It can't be used.
    #[error(transparent)]
    Directory(#[from] journal::DirectoryError),
    /// The dead letters can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// What was read or written.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Drains the directory, and gives the process's exit code.
///
/// # Errors
/// [`DrainError`] says what stands in the way. What was stored until then stays stored, and the next run goes on behind it.
pub(crate) fn run(flags: &DrainFlags, role: Option<Role>, environment: &Environment) -> Result<u8, DrainError> {
    if role == Some(Role::Writer) {
        log::fatal(
            "a writer has no journal, and nothing to drain: set FOREBAY_ROLE to the role of the server that is gone",
        );
        return Ok(EXIT_CONFIGURATION);
    }
    let common = flags.common(role);
    let (runtime, (signals, _)) = runtime_with_signals()?;
    let data = &common.data.directory;
    let loaded = config::load(common.config.as_deref(), environment, &common.flags(), data);
    log::start_thread();
    common.warn_of_overlooked();
    let Some(mut configuration) = shown(loaded) else { return Ok(EXIT_CONFIGURATION) };
    log::configure(configuration.log.format, configuration.log.level);
    let letters = flags.dead_letters.as_deref().map(LettersFile::new).transpose()?;
    // Nothing is made of a directory that is none of Forebay's.
    if !data.is_dir() {
        return Err(DrainError::Missing(data.clone()));
    }
    drop(DataDirectory::look(data)?);
    let code = runtime.block_on(drain(&mut configuration, data, (letters, flags.timeout), signals));
    // A DNS look-up may take longer than the end of the process should.
    runtime.shutdown_background();
    code
}

async fn drain(
    configuration: &mut Configuration,
    data: &Path,
    (letters, timeout): (Option<LettersFile>, Duration),
    mut signals: Signals,
) -> Result<u8, DrainError> {
    let memory = plan_memory(configuration, data);
    let sinks = wiring::sinks(configuration, |_, store| wiring::new_driver(store, &memory));
    let Opened { log, delivery, directory } = Opened::start(configuration, data, memory, sinks)?;
    // As long as it lives, writers are looked up.
    let _upstreams = UpstreamBoard::new(configuration);
    let stays = Stays::new(&log, &delivery);
    let end = tokio::select! {
        end = follow(&delivery, timeout) => end,
        () = signals.next() => End::Told,
        reason = log.failed() => return Err(ServeError::JournalFailed(reason).into()),
    };
    match end {
        End::Drained => {}
        End::NoProgress => log::warning(format_args!(
            "nothing was stored for {}: giving up (--timeout)",
            humantime::format_duration(timeout)
        )),
        End::Told => log::info("told to stop: what isn't stored yet stays in the directory"),
    }
    tokio::spawn(end_at_once(signals));
    // On a thread of its own, so that a second signal is heard meanwhile.
    let stopped = tokio::task::spawn_blocking(move || delivery.stop(Duration::ZERO)).await;
    stopped.map_err(|_| ServeError::JournalFailed("stopping was broken off".into()))?;
    seal(&log)?;
    let stays = stays.find(&directory)?;
    if let Some(letters) = letters {
        letters.write(&directory)?;
    }
    stays.print(data)?;
    Ok(if stays.is_empty() { 0 } else { EXIT_STAYS })
}

/// Why delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Drained,
    NoProgress,
    Told,
}

/// Drains until that is done, or until nothing goes on.
async fn follow(delivery: &Delivery, timeout: Duration) -> End {
    let (ledger, aggregates) = (delivery.ledger().clone(), delivery.aggregates().clone());
    delivery.drain();
    let (mut progress, mut tell_at) = (Progress::new(delivery), Instant::now());
    while !delivery.has_ended() {
        if progress.is_stuck_for(delivery) >= timeout {
            return End::NoProgress;
        }
        if tell_at <= Instant::now() {
            tell(&ledger, &aggregates);
            tell_at = Instant::now() + TELL_EVERY;
        }
        sleep(LOOK_EVERY).await;
    }
    End::Drained
}

/// Says how far it is.
fn tell(ledger: &Arc<Ledger>, aggregates: &AggregateBoard) {
    let pending = ledger.pending_by_sink().into_iter().map(|(sink, events)| format!("{events} for {sink}"));
    let pending: Vec<String> = pending.collect();
    let windows: usize = aggregates.aggregates().iter().map(|aggregate| aggregate.figures().windows).sum();
    if !pending.is_empty() || windows > 0 {
        log::info(format_args!("draining: pending events: {}; open windows: {windows}", none_or(&pending)));
    }
}

fn none_or(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}
