//! The line that a person watches while a load runs.

use std::io::{self, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::Scope;
use std::time::{Duration, Instant};

use load::loader::{Counts, LoadCounters};

const SHOW_EVERY: Duration = Duration::from_millis(200);
const BAR_WIDTH: usize = 24;

/// Shows the progress until it is ended.
pub(super) struct Progress {
    end: Sender<()>,
}

impl Progress {
    pub(super) fn start<'scope>(scope: &'scope Scope<'scope, '_>, counters: &'scope LoadCounters) -> Self {
        let (end, ended) = mpsc::channel();
        scope.spawn(move || {
            let (begun, first) = (Instant::now(), counters.read());
            while ended.recv_timeout(SHOW_EVERY) == Err(RecvTimeoutError::Timeout) {
                let text = line(&first, &counters.read(), begun.elapsed());
                let _ = write!(io::stderr().lock(), "\r{text}\x1b[K");
            }
            clear(true);
        });
        Self { end }
    }

    pub(super) fn end(self) {
        // If it has ended already, so much the better.
        let _ = self.end.send(());
    }
}

/// Clears the line, so that something else can be written there.
pub(super) fn clear(is_shown: bool) {
    if is_shown {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

fn line(first: &Counts, now: &Counts, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let lines = now.lines_read.max(now.matched);
    let rate = (lines - first.lines_read.max(first.matched)) as f64 / seconds;
    let counted = format!("{lines} lines  {rate:.0}/s");
    if now.bytes_all == 0 {
        return counted;
    }
    let done = (now.bytes_read as f64 / now.bytes_all as f64).min(1.0);
    let filled = (0..BAR_WIDTH).filter(|at| (*at as f64) < done * BAR_WIDTH as f64).count();
    let bar = "=".repeat(filled) + &" ".repeat(BAR_WIDTH - filled);
    // From the first look on: what an earlier run has loaded says nothing about this one's speed.
    let bytes_rate = now.bytes_read.saturating_sub(first.bytes_read) as f64 / seconds;
    let left = if bytes_rate > 0.0 { now.bytes_all.saturating_sub(now.bytes_read) as f64 / bytes_rate } else { 0.0 };
    format!("[{bar}] {:3.0} %  {counted}  {} left", done * 100.0, clock(left))
}

fn clock(seconds: f64) -> String {
    let minutes = (seconds / 60.0).floor();
    format!("{minutes:.0}:{:02.0}", (seconds - minutes * 60.0).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_far_how_fast_and_how_long() {
        let first = Counts { bytes_read: 100, bytes_all: 400, ..Counts::default() };
        let now = Counts { bytes_read: 200, lines_read: 50, ..first };
        let shown = line(&first, &now, Duration::from_secs(50));
        assert_eq!(shown, "[============            ]  50 %  50 lines  1/s  1:40 left");
        let unknown = Counts { bytes_all: 0, ..now };
        assert_eq!(line(&first, &unknown, Duration::from_secs(10)), "50 lines  5/s");
        assert!(line(&first, &first, Duration::ZERO).ends_with("0/s  0:00 left"));
    }
}
