//! File descriptors: each connection needs one, and so do the journal and the stores, which must never lack any.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is kept for everything but connections on the intake port: segments, spares, stores, the admin port, logs.
const OTHERS: u64 = 256;

/// How many connections there can be, at most `wanted`: the process's limit is raised as far as it may be. Where even that
/// is less than what the rest wants, half of it is for connections.
pub(crate) fn connections(wanted: usize) -> usize {
    bounded(wanted, raise())
}

/// Raises the soft limit to the hard one, as servers do that don't use `select`, and gives what it is then. `None` is
/// without limit.
fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // Where that isn't allowed, the limit stays what it was.
    if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current }
}

fn bounded(wanted: usize, descriptors: Option<u64>) -> usize {
    let Some(descriptors) = descriptors else { return wanted };
    let for_connections = descriptors.saturating_sub(OTHERS).max(descriptors / 2).max(1);
    wanted.min(usize::try_from(for_connections).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_keeps_its_descriptors() {
        let limits = [None, Some(1 << 20), Some(50_255), Some(1024), Some(300), Some(1)];
        assert_eq!(limits.map(|limit| bounded(50_000, limit)), [50_000, 50_000, 49_999, 768, 150, 1]);
        assert_eq!(bounded(10, Some(1024)), 10);
    }

    #[test]
    fn the_limit_is_what_it_may_be() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise(), before.maximum);
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
