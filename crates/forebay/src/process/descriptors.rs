//! File descriptors: each connection needs one, and so do the journal and the stores, which must never lack any.

use config::ConnectionLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for all but connections on the intake port: segments, spares, stores, the admin port, logs.
const OTHERS: u64 = 256;

/// Lowers the limits to the descriptors that the process may have: its soft limit is raised to the hard one. If even that is less than `OTHERS`
/// needs, half of it is for connections. If these are fewer, a client still gets only its share of them, and can't use all.
pub(crate) fn within_limit(wanted: ConnectionLimits) -> ConnectionLimits {
    bounded_both(wanted, raise())
}

fn bounded_both(wanted: ConnectionLimits, descriptors: Option<u64>) -> ConnectionLimits {
    let all = bounded(wanted.all, descriptors);
    let per_client = wanted.per_client.min(wanted.all).saturating_mul(all) / wanted.all.max(1);
    ConnectionLimits { all, per_client: per_client.max(1) }
}

/// Raises the soft limit to the hard one, as servers do that don't use `select`, and returns the result. `None` is
/// without limit.
fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // If that isn't allowed, the limit stays.
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
    fn rest_keeps_its_descriptors() {
        let limits = [None, Some(1 << 20), Some(50_255), Some(1024), Some(300), Some(1)];
        assert_eq!(limits.map(|limit| bounded(50_000, limit)), [50_000, 50_000, 49_999, 768, 150, 1]);
        assert_eq!(bounded(10, Some(1024)), 10);
    }

    #[test]
    fn client_share_is_kept() {
        for (all, per_client, descriptors, expected) in [
            (50_000, 25_000, None, (50_000, 25_000)),
            (50_000, 25_000, Some(2000), (1744, 872)),
            (50_000, 50_000, Some(2000), (1744, 1744)),
            (50_000, 100, Some(2000), (1744, 3)),
            (100, 25_000, Some(2000), (100, 100)),
            (50_000, 25_000, Some(2), (1, 1)),
            (50_000, 1, Some(2000), (1744, 1)),
        ] {
            let ConnectionLimits { all, per_client } = bounded_both(ConnectionLimits { all, per_client }, descriptors);
            assert_eq!((all, per_client), expected);
        }
    }

    #[test]
    fn soft_limit_is_raised_to_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        assert_eq!(raise(), before.maximum);
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
    }
}
