//! Ctrl-C, SIGTERM and the terminal's end (SIGHUP) for commands that can end in good order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::Signal;

use crate::signals::{self, Signals};

/// The exit code after a second signal: 128 and the number of SIGINT, as in shells.
const EXIT_AT_ONCE: i32 = 130;

/// Sets `stop` at the first signal, and ends the process at the second.
pub(crate) fn sets(stop: Arc<AtomicBool>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let (mut signals, mut hangup) = {
        let _context = runtime.enter();
        // A handler would undo the effect of `nohup`.
        (Signals::new()?, if ignores_hangup() { None } else { Some(signals::hangup()?) })
    };
    let watch = move || {
        let mut next = || runtime.block_on(first(&mut signals, hangup.as_mut()));
        next();
        stop.store(true, Ordering::Relaxed);
        next();
        std::process::exit(EXIT_AT_ONCE);
    };
    thread::Builder::new().name("signals".into()).spawn(watch).map(drop)
}

/// Waits for the first of the signals.
async fn first(signals: &mut Signals, hangup: Option<&mut Signal>) {
    let hung_up = async {
        match hangup {
            Some(hangup) => hangup.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = signals.next() => {}
        _ = hung_up => {}
    }
}

/// Whether the parent process has set SIGHUP to be ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // Signals are counted from 1, and SIGHUP is the first.
    mask & 1 != 0
}
