//! Clients that stand for other machines come last: their own work is to take nothing from the server beside them.

use std::process::Command;

use anyhow::{Context, Result};
use rustix::thread::gettid;

use crate::workspace;

/// Lets the calling thread run only where a core has nothing else to do (`SCHED_IDLE`, sched(7)). Processes that it starts
/// have it alike. One that is merely nice keeps a core for milliseconds once it has it.
pub fn come_last() -> Result<()> {
    let thread = gettid().as_raw_nonzero().to_string();
    workspace::run(Command::new("chrt").args(["--idle", "--pid", "0", &thread])).context("lowering a client's priority")
}
