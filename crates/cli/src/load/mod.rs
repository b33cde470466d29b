//! `forebay load`: passes the flags to crate `load`, and shows the results.

mod load_progress;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use load::loader::{self, Counts, Ended, LoadCounters};
use text::counted;

use crate::errors::cannot;
use crate::flags::LoadFlags;
use crate::interrupt;
use crate::output::print;
use crate::progress::{self, ProgressLine};
use load_progress::{LoadProgress, SHOW_EVERY};

/// The exit code if all was answered, and some lines were rejected, undecided by the filter, or may be unread.
const EXIT_REFUSED: u8 = 3;
/// The exit code if there is more to load, as after a failure.
const EXIT_STOPPED: u8 = 1;

/// Runs the command and returns the exit code.
///
/// # Errors
/// The message says what failed. Starting again resumes from there.
pub(crate) fn run(LoadFlags { options, to }: LoadFlags) -> anyhow::Result<u8> {
    if options.follow && options.inputs.len() > 1 {
        bail!("--follow loads one file until you stop it: name only one");
    }
    let to = to.destination()?;
    let stop = Arc::new(AtomicBool::new(false));
    // While only counting there is nothing to end in good order.
    if !options.count {
        interrupt::sets(stop.clone()).map_err(cannot("wait for signals"))?;
    }
    let counters = LoadCounters::default();
    let begun = Instant::now();
    let ended = thread::scope(|scope| {
        let mut text = LoadProgress::new(&counters);
        let progress = ProgressLine::start(scope, SHOW_EVERY, move || text.text());
        let notify = |message: &str| {
            progress::clear();
            tracing::warn!("{message}");
        };
        let ended = loader::run((&to, &options), &counters, &stop, &notify);
        if let Some(progress) = progress {
            progress.end();
        }
        ended
    });
    let counts = counters.read();
    // A load that failed at its first step has only its error to report.
    if ended.is_ok() || counts.has_begun() {
        let text = if options.count { format!("{}\n", counts.matched) } else { summary(&counts, begun.elapsed()) };
        print(|output| output.write_all(text.as_bytes()))?;
    }
    match ended? {
        // A load that follows its file has no other end.
        Ended::Stopped if !options.follow => {
            tracing::warn!("stopped before the end: start the load again to resume from there");
            Ok(EXIT_STOPPED)
        }
        Ended::Stopped | Ended::Complete => Ok(exit_code(&counts)),
    }
}

/// A resumed load also counts the lines that earlier runs had rejected.
fn exit_code(counts: &Counts) -> u8 {
    if counts.refused_before > 0 {
        let rejected = counted(counts.refused_before, "line");
        tracing::warn!(
            "{rejected} rejected and reported in earlier runs of this load, and not sent again: see the file of --refused"
        );
    }
    if counts.refused + counts.refused_before + counts.undecided + counts.gaps > 0 { EXIT_REFUSED } else { 0 }
}

/// The counts of this run and, if it resumed earlier ones, the total.
fn summary(counts: &Counts, elapsed: Duration) -> String {
    let Counts { lines_read, matched, undecided, accepted, duplicates, refused, batches_again, gaps, .. } = counts;
    let rows = [
        ("lines read", lines_read),
        ("matched", matched),
        ("undecided", undecided),
        ("sent", &counts.sent()),
        ("accepted", accepted),
        ("duplicates", duplicates),
        ("rejected", refused),
        ("batches sent again", batches_again),
    ];
    // Only a file that is followed has any.
    let gaps = (*gaps > 0).then_some(("files with gaps", gaps));
    let mut text: String = rows.iter().chain(&gaps).map(|(name, count)| format!("{name:<20}{count}\n")).collect();
    let seconds = elapsed.as_secs_f64();
    text += &format!("{:<20}{seconds:.1} s, {:.0} lines/s\n", "time", *lines_read as f64 / seconds.max(0.001));
    if counts.lines_before > 0 {
        let (lines, rejected) = (counts.lines_before + lines_read, counts.refused_before + refused);
        text += &format!("{:<20}{}, {rejected} of them rejected\n", "with earlier runs", counted(lines, "line"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_shows_the_summary_of_resumed_run() {
        let counts = Counts {
            lines_read: 5_780_417,
            matched: 5_780_417,
            accepted: 5_780_390,
            duplicates: 18,
            refused: 9,
            lines_before: 4_219_583,
            refused_before: 3,
            batches_again: 1,
            ..Counts::default()
        };
        let text = summary(&counts, Duration::from_millis(133_400));
        let page = include_str!("../../../../docs/guides/load-files.md");
        assert!(page.contains(&format!("```text\n{text}```\n")), "docs/guides/load-files.md lacks:\n{text}");
        let alone = summary(&Counts { lines_before: 0, refused_before: 0, ..counts }, Duration::ZERO);
        assert!(!alone.contains("earlier"), "{alone}");
    }
}
