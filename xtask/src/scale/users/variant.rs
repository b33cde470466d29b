//! How the server is set up for a load.

/// The database of the users that no shard has.
pub(super) const COMMON: &str = "common";
pub(super) const SHARDS: u32 = 8;

/// The connections of a database's pools, at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pools {
    writers: u32,
    readers: u32,
}

impl Pools {
    pub(super) const fn sum(self) -> u32 {
        self.writers + self.readers
    }

    /// The settings of a sink or of a shard.
    pub(super) fn settings(self) -> String {
        format!("max_connections = {}\nmax_readers = {}\n", self.writers, self.readers)
    }
}

/// How the server is set up for a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variant {
    pub(super) name: &'static str,
    pub(super) common: Pools,
    pub(super) shard: Pools,
    pub(super) object_cache: &'static str,
    /// Whether PostgreSQL is at a distance.
    pub(super) is_far: bool,
}

impl Variant {
    pub(super) const USUAL: Self = Self {
        name: "usual",
        common: Pools { writers: 4, readers: 16 },
        shard: Pools { writers: 2, readers: 2 },
        object_cache: "64MiB",
        is_far: false,
    };
    /// Own events differ by user, so no reads are combined: at a distance, they need readers.
    pub(super) const FAR: Self = Self { name: "PostgreSQL 10 ms away", is_far: true, ..Self::USUAL };
    pub(super) const ONE_READER: Self = Self {
        name: "control: one reader for each database, 10 ms away",
        common: Pools { readers: 1, ..Self::USUAL.common },
        shard: Pools { readers: 1, ..Self::USUAL.shard },
        ..Self::FAR
    };
    pub(super) const UNCACHED: Self = Self { name: "control: no cache of objects", object_cache: "0", ..Self::USUAL };
}
