//! Gives clients that simulate other machines the lowest priority: their own work must take nothing from the server on the same machine.

use std::process::Command;

use anyhow::{Context, Result};
use rustix::thread::gettid;

use crate::workspace;

/// Lets the calling thread run only if a core has nothing else to do (`SCHED_IDLE`, sched(7)). Processes that it starts
/// inherit that. A thread that is only nice keeps a core for milliseconds once it has it.
pub fn come_last() -> Result<()> {
    let thread = gettid().as_raw_nonzero().to_string();
    workspace::run(Command::new("chrt").args(["--idle", "--pid", "0", &thread])).context("lowering a client's priority")
}
