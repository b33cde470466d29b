//! `forebay load`: hands the flags to crate `load`, and shows what comes of it.

mod progress;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use event::counted;
use std::thread;

use anyhow::bail;
use load::loader::{self, Counts, Ended, LoadCounters};

use crate::cli::LoadFlags;
use crate::commands::interrupt;
use crate::commands::output::print;
use crate::errors::cannot;
use crate::log;
use progress::Progress;

/// What `load` exits with when everything was answered, and some lines were refused, couldn't be judged, or may have been left unread.
const EXIT_REFUSED: u8 = 3;
/// What it exits with when there is more to load, as after a failure.
const EXIT_STOPPED: u8 = 1;

/// Runs the command and gives the process's exit code.
///
/// # Errors
/// The message says what stands in the way. Starting again goes on from there.
pub(crate) fn run(LoadFlags { options, to }: LoadFlags) -> anyhow::Result<u8> {
    if options.follow && options.inputs.len() > 1 {
        bail!("--follow goes on for ever: give it one file");
    }
    let to = to.destination()?;
    let stop = Arc::new(AtomicBool::new(false));
    // While only counting there is nothing to end in good order.
    if !options.count {
        interrupt::sets(stop.clone()).map_err(cannot("wait for signals"))?;
    }
    let counters = LoadCounters::default();
    let shows_progress = io::stderr().is_terminal();
    let ended = thread::scope(|scope| {
        let progress = shows_progress.then(|| Progress::start(scope, &counters));
        let notify = |message: &str| {
            progress::clear(shows_progress);
            log::warning(message);
        };
        let ended = loader::run((&to, &options), &counters, &stop, &notify);
        if let Some(progress) = progress {
            progress.end();
        }
        ended
    });
    let counts = counters.read();
    // A load that failed at its first step has nothing to tell but why.
    if ended.is_ok() || counts.has_begun() {
        let text = if options.count { format!("{}\n", counts.matched) } else { summary(&counts) };
        print(|output| output.write_all(text.as_bytes()))?;
    }
    match ended? {
        // Nothing else ends a load that follows its file.
        Ended::Stopped if !options.follow => {
            log::warning("stopped before the end; start it again, and it goes on from there");
            Ok(EXIT_STOPPED)
        }
        Ended::Stopped | Ended::Complete => Ok(exit_code(&counts)),
    }
}

/// A load that is gone on with isn't without refused lines because none was refused this time.
fn exit_code(counts: &Counts) -> u8 {
    if counts.refused_before > 0 {
        log::warning(format_args!(
            "refused in earlier runs of this load, named then, and not sent again: {}",
            counted(counts.refused_before, "line")
        ));
    }
    if counts.refused + counts.refused_before + counts.undecided + counts.gaps > 0 { EXIT_REFUSED } else { 0 }
}

fn summary(counts: &Counts) -> String {
    let Counts { lines_read, matched, undecided, accepted, duplicates, refused, batches_again, gaps, .. } = counts;
    let rows = [
        ("lines read", lines_read),
        ("matched", matched),
        ("undecided", undecided),
        ("sent", &counts.sent()),
        ("accepted", accepted),
        ("duplicates", duplicates),
        ("refused", refused),
        ("batches sent again", batches_again),
    ];
    // Only a file that is followed has any.
    let gaps = (*gaps > 0).then_some(("files with gaps", gaps));
    rows.iter().chain(&gaps).map(|(name, count)| format!("{name:<20}{count}\n")).collect()
}
