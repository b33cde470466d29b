//! Signals of a role's process.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::Signal;

use crate::log;
use cli::errors::cannot;
use cli::signals::{Signals, hangup};

/// The exit code after a second signal: 128 and the number of SIGTERM, as in shells.
pub(crate) const EXIT_AT_ONCE: i32 = 143;

/// The runtime of a role's process. It listens for signals before anything else: a signal during the start is neither lost nor ends
/// the process.
pub(crate) fn runtime_with_signals() -> anyhow::Result<(Runtime, (Signals, Signal))> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot("start"))?;
    let signals = {
        let _context = runtime.enter();
        Signals::new().and_then(|signals| Ok((signals, hangup()?))).map_err(cannot("wait for signals"))?
    };
    Ok((runtime, signals))
}

/// A second signal ends the process immediately.
pub(crate) async fn end_at_once(mut signals: Signals) {
    signals.next().await;
    tracing::warn!("stopped immediately by a second signal; acknowledged events are in the journal");
    log::flush();
    std::process::exit(EXIT_AT_ONCE);
}

/// The log message of a stop that first waits for load balancers.
pub(crate) fn delayed(delay: Duration, what: &str) -> String {
    let delay = humantime::format_duration(delay);
    format!("stopping: /readyz responds with 503, and {what} are accepted for another {delay} (stop_delay)")
}
