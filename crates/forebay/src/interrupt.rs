//! Ctrl-C and SIGTERM for commands that can end in good order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a second signal exits with: 128 and the number of SIGINT, as shells have it.
const EXIT_AT_ONCE: i32 = 130;

/// Sets `stop` at the first signal, and ends the process at the second.
pub(crate) fn sets(stop: Arc<AtomicBool>) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let signals = {
        let _context = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let watch = move || {
        let (mut interrupt, mut terminate) = signals;
        runtime.block_on(next(&mut interrupt, &mut terminate));
        stop.store(true, Ordering::Relaxed);
        runtime.block_on(next(&mut interrupt, &mut terminate));
        std::process::exit(EXIT_AT_ONCE);
    };
    thread::Builder::new().name("signals".into()).spawn(watch).map(drop)
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
