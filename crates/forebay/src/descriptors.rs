//! File descriptors: each connection needs one, and so do the journal and the stores, which must never lack any.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is kept for everything but connections on the intake port: segments, spares, stores, the admin port, logs.
const OTHERS: u64 = 256;

/// How many connections there may be at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connections {
    /// Of all clients together.
    pub(crate) all: usize,
    /// Of one client.
    pub(crate) per_client: usize,
}

impl Connections {
    /// These limits as far as the process may have descriptors: its limit is raised as far as it may be. Where even that is less than
    /// what the rest wants, half of it is for connections. A client keeps its part of all connections when these are fewer, so that it
    /// can't take them all.
    pub(crate) fn within_limit(self) -> Self {
        self.bounded(raise())
    }

    fn bounded(self, descriptors: Option<u64>) -> Self {
        let all = bounded(self.all, descriptors);
        let per_client = self.per_client.min(self.all).saturating_mul(all) / self.all.max(1);
        Self { all, per_client: per_client.max(1) }
    }
}

/// The connections of a writer, which doesn't tell its clients apart: as many of these as the process may have descriptors for.
pub(crate) fn connections_within_limit(all: usize) -> usize {
    bounded(all, raise())
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
    fn a_client_keeps_its_part() {
        for (all, per_client, descriptors, expected) in [
            (50_000, 25_000, None, (50_000, 25_000)),
            (50_000, 25_000, Some(2000), (1744, 872)),
            (50_000, 50_000, Some(2000), (1744, 1744)),
            (50_000, 100, Some(2000), (1744, 3)),
            (100, 25_000, Some(2000), (100, 100)),
            (50_000, 25_000, Some(2), (1, 1)),
            (50_000, 1, Some(2000), (1744, 1)),
        ] {
            let Connections { all, per_client } = Connections { all, per_client }.bounded(descriptors);
            assert_eq!((all, per_client), expected);
        }
    }

    #[test]
    fn the_limit_is_what_it_may_be() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise(), before.maximum);
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
