//! The progress line of a load: how far it is, how fast, and the time left.

use std::time::{Duration, Instant};

use load::loader::{Counts, LoadCounters};

use crate::progress::{bar, clock};

/// How often it is shown.
pub(super) const SHOW_EVERY: Duration = Duration::from_millis(200);

/// The text of the moments of a load.
pub(super) struct LoadProgress<'a> {
    counters: &'a LoadCounters,
    /// Before that nothing was sent: a resumed load first reads a packed file up to its place.
    begun: Instant,
}

impl<'a> LoadProgress<'a> {
    pub(super) fn new(counters: &'a LoadCounters) -> Self {
        Self { counters, begun: Instant::now() }
    }

    pub(super) fn text(&mut self) -> String {
        let now = self.counters.read();
        if now.bytes_sent == 0 {
            self.begun = Instant::now();
        }
        line(&now, self.begun.elapsed())
    }
}

/// The rate is that of this run, which has worked for `elapsed`, and so is the time that is left.
fn line(now: &Counts, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(0.001);
    let lines = now.lines_read.max(now.matched);
    let counted = format!("{lines} lines  {:.0}/s", lines as f64 / seconds);
    if now.bytes_all == 0 {
        return counted;
    }
    let left = now.bytes_all.saturating_sub(now.bytes_read) as f64 * seconds / now.bytes_sent as f64;
    // The time left isn't known before anything is sent, and isn't useful while the load barely moves.
    let left =
        Duration::try_from_secs_f64(left).map_or_else(|_| String::new(), |left| format!("  {} left", clock(left)));
    format!("{}  {counted}{left}", bar(now.bytes_read as f64 / now.bytes_all as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_shows_progress_rate_and_time_left() {
        let now = Counts { bytes_read: 200, bytes_sent: 100, bytes_all: 400, lines_read: 50, ..Counts::default() };
        let shown = |counts: &Counts, seconds| line(counts, Duration::from_secs(seconds));
        // Half of the bytes was loaded by an earlier run: that doesn't make this one faster.
        assert_eq!(shown(&now, 50), "[============            ]  50 %  50 lines  1/s  1:40 left");
        assert_eq!(
            shown(&Counts { bytes_sent: 0, lines_read: 0, ..now }, 0),
            "[============            ]  50 %  0 lines  0/s"
        );
        assert_eq!(shown(&Counts { bytes_all: 0, ..now }, 10), "50 lines  5/s");
        assert!(shown(&Counts { bytes_read: 400, ..now }, 50).ends_with("  0:00 left"));
    }

    #[test]
    fn page_shows_the_progress_line() {
        let now = Counts {
            bytes_read: 2_466_250_752,
            bytes_sent: 1_073_741_824,
            bytes_all: 3_404_727_808,
            lines_read: 3_205_199,
            ..Counts::default()
        };
        let text = line(&now, Duration::from_secs(74));
        assert!(text.len() < 80, "{text}");
        let page = include_str!("../../../../docs/guides/load-files.md");
        assert!(page.contains(&format!("```text\n{text}\n```\n")), "docs/guides/load-files.md lacks:\n{text}");
    }
}
