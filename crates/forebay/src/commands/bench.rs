//! `forebay bench`: hands the flags to crate `load`, and shows the result.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::bench::{self, BenchError, BenchOptions, Events, Report};

use crate::cli::{BenchFlags, CaError, WrongToken};
use crate::commands::interrupt;
use crate::commands::output::Output;
use crate::log;

/// What `bench` exits with when something was not sent in time, not answered 200, or isn't stored once.
const EXIT_NOT_CLEAN: u8 = 3;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchCommandError {
    /// The token can't be sent.
    #[error(transparent)]
    Token(#[from] WrongToken),
    /// Nobody can be trusted.
    #[error(transparent)]
    Ca(#[from] CaError),
    /// Nothing could be measured.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The operating system refused something.
    #[error("can't {what}: {source}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// [`BenchCommandError`] says why there is no result.
pub(crate) fn run(flags: &BenchFlags) -> Result<u8, BenchCommandError> {
    let system = |what| move |source| BenchCommandError::System { what, source };
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::sets(stop.clone()).map_err(system("wait for signals"))?;
    let seed = flags.seed.unwrap_or_else(bench::any_seed);
    let mut shown = Ok(());
    let show = |text: &dyn Display| write!(Output::lock(), "{text}");
    // People see the figures while the store is looked into; programs get one object at the end.
    let show_figures = |report: &Report| {
        if !flags.json {
            shown = show(report);
        }
    };
    let report = bench::run(&options(flags, seed)?, &stop, show_figures)?;
    shown.map_err(system("write to the standard output"))?;
    if flags.json {
        show(&(report.to_json() + "\n")).map_err(system("write to the standard output"))?;
    } else {
        let verdict = report.verified.map_or_else(String::new, |verdict| verdict.to_string());
        show(&(verdict + &report.conclusion())).map_err(system("write to the standard output"))?;
    }
    warn(&report, stop.load(Ordering::Relaxed));
    Ok(if report.is_clean() { 0 } else { EXIT_NOT_CLEAN })
}

/// Says how the figures are to be taken.
fn warn(report: &Report, was_stopped: bool) {
    if was_stopped {
        log::warning("stopped before the end; these are the figures until then");
    }
    if let Some(failure) = &report.failure {
        log::error(failure);
    }
    if report.verified.is_some_and(|verdict| verdict.is_all_lost()) && !was_stopped {
        log::warning("none of the events is in the store: is it the one that their type is routed to?");
    }
}

fn options(flags: &BenchFlags, seed: u64) -> Result<BenchOptions, BenchCommandError> {
    Ok(BenchOptions {
        server: flags.to.server()?,
        event_type: flags.to.event_type.clone(),
        token: flags.to.token()?,
        connections: usize::from(flags.connections),
        rate: flags.rate,
        duration: flags.duration,
        batch: flags.batch,
        events: flags.file.clone().map_or_else(|| Events::Generated(flags.kind.into()), Events::File),
        has_keys: flags.key,
        seed,
        verify: flags.verify.clone(),
    })
}
