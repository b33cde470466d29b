//! Server and client on separate cores: neither slows the other.

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Processes that run at the same time, each on a separate core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Server,
    Client,
}

/// Does something on the core of one side; the processes that it starts stay there.
///
/// # Errors
/// Where there is only one core, and what `action` returns.
pub(crate) fn on_core_of<T>(side: Side, action: impl FnOnce() -> Result<T>) -> Result<T> {
    let all = sched_getaffinity(None).context("asking which cores there are")?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core));
    let (Some(first), Some(second)) = (cores.next(), cores.next()) else {
        bail!("a server and a client on a core each need two cores");
    };
    let mut one = CpuSet::new();
    one.set(match side {
        Side::Server => first,
        Side::Client => second,
    });
    sched_setaffinity(None, &one).context("going to a core")?;
    let done = action();
    sched_setaffinity(None, &all).context("going back to all cores")?;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_have_separate_cores_and_restore_all() {
        let before = sched_getaffinity(None).unwrap();
        if before.count() < 2 {
            testkit::skipped::report("one core");
            return;
        }
        let cores_of = |side| on_core_of(side, || Ok(sched_getaffinity(None)?)).unwrap();
        let (server, client) = (cores_of(Side::Server), cores_of(Side::Client));
        assert_eq!((server.count(), client.count()), (1, 1));
        assert_ne!(server, client);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
