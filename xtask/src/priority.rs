//! Clients that stand for other machines come last: their own work is to take nothing from the server beside them.

use anyhow::{Context, Result};
use rustix::process::setpriority_process;

/// Lowers the calling thread's priority as far as it goes. Processes that it starts have the same.
pub(crate) fn come_last() -> Result<()> {
    const LAST: i32 = 19;
    // Without a process it is the calling thread alone (sched(7)).
    setpriority_process(None, LAST).context("lowering a client's priority")
}
