//! How many connections there may be, and for how long.

use std::num::NonZeroUsize;
use std::time::Duration;

/// How many connections write to a database, and how long each is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The maximum; without it each lane may have one. Reads have others.
    pub max: Option<NonZeroUsize>,
    /// The maximum of those that read.
    pub readers: NonZeroUsize,
    /// A connection that is idle for this long is closed.
    pub idle: Duration,
    /// No connection is used for longer, so servers with one name share the load over time.
    pub lifetime: Duration,
    /// The pooler between Forebay and the server.
    pub pooler: Pooler,
}

impl PoolLimits {
    /// An idle connection that a firewall may have dropped is no longer used.
    pub const IDLE: Duration = Duration::from_mins(5);
    /// See [`PoolLimits::lifetime`].
    pub const LIFETIME: Duration = Duration::from_hours(1);
    /// See [`PoolLimits::readers`].
    pub const READERS: NonZeroUsize = NonZeroUsize::new(8).expect("it isn't 0");
    /// The same for a shard: there may be many shards, and each has few of the reads.
    pub const READERS_OF_SHARD: NonZeroUsize = NonZeroUsize::new(2).expect("it isn't 0");

    /// Those of a shard of a sink with these, which has no limits itself.
    pub(crate) fn of_shard(self) -> Self {
        Self { readers: self.readers.min(Self::READERS_OF_SHARD), ..self }
    }
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            max: None,
            readers: Self::READERS,
            idle: Self::IDLE,
            lifetime: Self::LIFETIME,
            pooler: Pooler::default(),
        }
    }
}

/// What the configuration says about a pooler between Forebay and a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooler {
    /// Nothing: Forebay detects a pooler that doesn't keep a session's server process.
    #[default]
    Detect,
    /// There is one, and it keeps a session's server process.
    Session,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_has_few_readers() {
        let readers_of_shard = |readers| {
            let readers = NonZeroUsize::new(readers).unwrap_or(PoolLimits::READERS);
            PoolLimits { readers, ..PoolLimits::default() }.of_shard().readers.get()
        };
        assert_eq!([1, 2, 8, 100].map(readers_of_shard), [1, 2, 2, 2]);
    }
}
