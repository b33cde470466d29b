//! `forebay bench`: hands the flags to crate `load`, and shows the result.

use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use load::bench::{self, BenchCounters, Report};
use load::scenario::{self, Scenario};

use crate::errors::cannot;
use crate::flags::BenchFlags;
use crate::interrupt;
use crate::output::print;
use crate::progress::{ProgressLine, bar};

/// The exit code if something was not sent in time, not answered 200, or isn't stored once.
const EXIT_NOT_CLEAN: u8 = 3;
/// How often the progress is shown.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says why there is no result.
pub(crate) fn run(BenchFlags { to, options }: BenchFlags) -> anyhow::Result<u8> {
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::sets(stop.clone()).map_err(cannot("wait for signals"))?;
    let mut shown = Ok(());
    let show = |text: &dyn Display| print(|output| write!(output, "{text}"));
    let (to, counters) = (to.destination()?, BenchCounters::default());
    let scenario = options.scenario.as_deref().map(Scenario::load).transpose()?;
    if let Some(scenario) = &scenario {
        let report = thread::scope(|scope| {
            let mut text = Progress::new(&counters, options.duration, "requests");
            let progress = ProgressLine::start(scope, SHOW_EVERY, move || text.text());
            let report = scenario::run((&to, scenario), (options.duration, options.seed), &counters, &stop);
            if let Some(progress) = progress {
                progress.end();
            }
            report
        })?;
        if options.json {
            show(&(report.to_json() + "\n"))?
        } else {
            show(&report)?
        }
        warn_of_stop(&stop);
        return Ok(if report.is_clean() { 0 } else { EXIT_NOT_CLEAN });
    }
    let report = thread::scope(|scope| {
        let mut text = Progress::new(&counters, options.duration, "events");
        let progress = ProgressLine::start(scope, SHOW_EVERY, move || text.text());
        // Users see the figures before the store is checked; programs get one object at the end.
        let show_figures = |report: &Report| {
            if let Some(progress) = progress {
                progress.end();
            }
            if !options.json {
                shown = show(report);
            }
        };
        bench::run((&to, &options), &counters, &stop, show_figures)
    })?;
    shown?;
    if options.json {
        show(&(report.to_json() + "\n"))?;
    } else {
        let check = report.verified.map_or_else(String::new, |check| check.to_string());
        show(&(check + &report.conclusion()))?;
    }
    warn(&report, &stop);
    Ok(if report.is_clean() { 0 } else { EXIT_NOT_CLEAN })
}

/// The progress line of a running load.
struct Progress<'a> {
    counters: &'a BenchCounters,
    duration: Duration,
    /// What is counted.
    what: &'static str,
    begun: Instant,
    /// When it was shown last, and how many events there were.
    last: (Instant, u64),
}

impl<'a> Progress<'a> {
    fn new(counters: &'a BenchCounters, duration: Duration, what: &'static str) -> Self {
        let begun = Instant::now();
        Self { counters, duration, what, begun, last: (begun, 0) }
    }

    fn text(&mut self) -> String {
        let [events, failed] =
            [&self.counters.events, &self.counters.failed].map(|count| count.load(Ordering::Relaxed));
        let (now, (last, before)) = (Instant::now(), self.last);
        self.last = (now, events);
        let rate = (events - before) as f64 / (now - last).as_secs_f64().max(0.001);
        line((now - self.begun, self.duration), (events, self.what), rate, failed)
    }
}

/// How far it is, how many events were answered 200, how many of these a second just now, and how many requests weren't.
fn line((elapsed, duration): (Duration, Duration), (events, what): (u64, &str), rate: f64, failed: u64) -> String {
    let [elapsed, whole] = [elapsed.min(duration), duration].map(|time| time.as_secs_f64());
    let failed = if failed > 0 { format!("  {failed} FAILED") } else { String::new() };
    format!("{}  {elapsed:.0} of {whole:.0} s  {events} {what}  {rate:.0}/s{failed}", bar(elapsed / whole.max(0.001)))
}

fn warn_of_stop(stop: &AtomicBool) -> bool {
    let was_stopped = stop.load(Ordering::Relaxed);
    if was_stopped {
        tracing::warn!("stopped before the end: the figures cover the time until then");
    }
    was_stopped
}

/// Warns about figures that can't be trusted.
fn warn(report: &Report, stop: &AtomicBool) {
    let was_stopped = warn_of_stop(stop);
    if let Some(failure) = &report.failure {
        tracing::error!("{failure}");
    }
    if report.verified.is_some_and(|check| check.is_all_lost()) && !was_stopped {
        tracing::warn!(
            "the store has none of the events: with --verify, name the file of a sink to which their type has a route"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_shows_the_progress_line() {
        let whole = Duration::from_secs(30);
        let text = line((Duration::from_millis(12_010), whole), (203_344, "events"), 17_021.4, 0);
        let page = include_str!("../../../docs/guides/measure.md");
        assert!(page.contains(&format!("```text\n{text}\n```\n")), "docs/guides/measure.md lacks:\n{text}");
        let late = line((whole * 2, whole), (4_294_967_296, "events"), 9_999_999.0, 65_536);
        assert!(late.contains(" 30 of 30 s ") && late.ends_with("  65536 FAILED") && late.len() < 90, "{late}");
    }
}
