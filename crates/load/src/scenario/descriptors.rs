//! File descriptors: each user has a connection.

use anyhow::bail;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// For files, timers and the standard streams.
const OTHERS: u64 = 32;

/// Raises this process's soft limit to its hard one.
///
/// # Errors
/// Even that is too low.
pub(super) fn ensure(users: usize) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let allowed = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let needed = users as u64 + OTHERS;
    if let Some(allowed) = allowed.filter(|allowed| *allowed < needed) {
        bail!(
            "{users} users need {needed} file descriptors, and this process may have {allowed}: raise the limit with \
             `ulimit -n {needed}`, or lower users.count"
        );
    }
    Ok(())
}
