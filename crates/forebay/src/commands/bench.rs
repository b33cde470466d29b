//! `forebay bench`: hands the flags to crate `load`, and shows the result.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::bench::{self, Report};

use crate::cli::BenchFlags;
use crate::commands::interrupt;
use crate::commands::output::print;
use crate::errors::cannot;
use crate::log;

/// What `bench` exits with when something was not sent in time, not answered 200, or isn't stored once.
const EXIT_NOT_CLEAN: u8 = 3;

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// The message says why there is no result.
pub(crate) fn run(BenchFlags { to, options }: BenchFlags) -> anyhow::Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::sets(stop.clone()).map_err(cannot("wait for signals"))?;
    let mut shown = Ok(());
    let show = |text: &dyn Display| print(|output| write!(output, "{text}"));
    // People see the figures while the store is looked into; programs get one object at the end.
    let show_figures = |report: &Report| {
        if !options.json {
            shown = show(report);
        }
    };
    let report = bench::run((&to.destination()?, &options), &stop, show_figures)?;
    shown?;
    if options.json {
        show(&(report.to_json() + "\n"))?;
    } else {
        let check = report.verified.map_or_else(String::new, |check| check.to_string());
        show(&(check + &report.conclusion()))?;
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
    if report.verified.is_some_and(|check| check.is_all_lost()) && !was_stopped {
        log::warning("none of the events is in the store: is it the one that their type is routed to?");
    }
}
