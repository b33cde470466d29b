//! The journal: the durable log on disk, a directory of segments for each shard. Synchronous; it knows bytes,
//! not JSON.

pub mod disk;
