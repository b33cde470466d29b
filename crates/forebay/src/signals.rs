//! Signals of a role's process.

use std::io;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::errors::cannot;
use crate::log;

/// What a second signal exits with: 128 and the number of SIGTERM, as shells have it.
pub(crate) const EXIT_AT_ONCE: i32 = 143;

/// The runtime of a role's process. Signals are waited for before anything else, so that one in the midst of the start isn't lost, nor ends
/// the process.
pub(crate) fn runtime_with_signals() -> anyhow::Result<(Runtime, (Signals, Signal))> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot("start"))?;
    let signals = {
        let _context = runtime.enter();
        Signals::new().and_then(|signals| Ok((signals, hangup()?))).map_err(cannot("wait for signals"))?
    };
    Ok((runtime, signals))
}

/// A second signal ends the process at once.
pub(crate) async fn end_at_once(mut signals: Signals) {
    signals.next().await;
    tracing::warn!("stopped at once by a second signal; acknowledged events are in the journal");
    log::flush();
    std::process::exit(EXIT_AT_ONCE);
}

/// The log message of a stop that first waits for load balancers.
pub(crate) fn delayed(delay: Duration, what: &str) -> String {
    let delay = humantime::format_duration(delay);
    format!("stopping: /readyz answers 503, and {what} are accepted for another {delay} (stop_delay)")
}

/// SIGHUP.
pub(crate) fn hangup() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Waits for them on the runtime that is entered.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
