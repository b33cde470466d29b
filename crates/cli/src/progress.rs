//! One line that is rewritten while a command works, for users: nothing is written if stderr is no terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use super::table::{shortened, width_of};

const BAR_WIDTH: usize = 24;

/// A line that is being shown.
pub(super) struct ProgressLine<'scope> {
    end: Sender<()>,
    thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> ProgressLine<'scope> {
    /// Shows the text of `text`, each time that `every` has passed.
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        every: Duration,
        mut text: impl FnMut() -> String + Send + 'scope,
    ) -> Option<Self> {
        if !is_shown() {
            return None;
        }
        let (end, ended) = mpsc::channel();
        let thread = scope.spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                // A line that wraps can't be rewritten.
                let width = width_of(io::stderr()).map_or(usize::MAX, |width| width.saturating_sub(1));
                let _ = write!(io::stderr().lock(), "\r{}\x1b[K", shortened(&text(), width));
            }
            clear();
        });
        Some(Self { end, thread })
    }

    /// Takes the line away.
    pub(super) fn end(self) {
        drop(self.end);
        // It only writes, and a panic has ended the process.
        let _ = self.thread.join();
    }
}

fn is_shown() -> bool {
    io::stderr().is_terminal()
}

/// Clears the line for other output.
pub(super) fn clear() {
    if is_shown() {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}

/// A bar of which a part is filled, and the percentage.
pub(super) fn bar(done: f64) -> String {
    let done = done.clamp(0.0, 1.0);
    let filled = (0..BAR_WIDTH).filter(|at| (*at as f64) < done * BAR_WIDTH as f64).count();
    let bar = "=".repeat(filled) + &" ".repeat(BAR_WIDTH - filled);
    format!("[{bar}] {:3.0} %", (done * 100.0).floor())
}

/// A time in hours, minutes and seconds, as clocks show it.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_full_only_at_the_end() {
        assert_eq!(bar(0.0), "[                        ]   0 %");
        assert_eq!(bar(0.5), "[============            ]  50 %");
        assert_eq!(bar(0.999), "[========================]  99 %");
        assert_eq!(bar(7.0), "[========================] 100 %");
    }

    #[test]
    fn clock_shows_hours_if_any() {
        for (seconds, shown) in [(0, "0:00"), (59, "0:59"), (61, "1:01"), (3_600, "1:00:00"), (90_061, "25:01:01")] {
            assert_eq!(clock(Duration::from_secs(seconds)), shown);
        }
    }
}
