//! What the memory of a process is used for, and what its shards do, as JSON.

use serde::{Deserialize, Serialize};

/// The answer of [`DEBUG_MEMORY`](crate::paths::DEBUG_MEMORY).
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct MemoryJson {
    /// Bytes of the process that are in memory.
    pub resident_bytes: Option<u64>,
    /// The limit of the container, or of the system.
    pub limit_bytes: Option<u64>,
    /// The C library's heap, in which all parts are.
    pub heap: Option<HeapJson>,
    pub owners: Vec<OwnerJson>,
}

/// Bytes of the heap.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HeapJson {
    /// Allocated.
    pub used_bytes: u64,
    /// Free for allocations, and not returned to the system yet.
    pub free_bytes: u64,
}

/// A part of the memory plan.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct OwnerJson {
    pub owner: String,
    pub bytes: u64,
    /// Bytes that it may use.
    pub max_bytes: u64,
}

impl OwnerJson {
    /// An owner with these bytes.
    pub fn new(owner: impl Into<String>, bytes: usize, max_bytes: usize) -> Self {
        Self { owner: owner.into(), bytes: bytes as u64, max_bytes: max_bytes as u64 }
    }
}

/// The answer of [`DEBUG_SHARDS`](crate::paths::DEBUG_SHARDS).
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ShardsJson {
    pub shards: Vec<ShardJson>,
}

/// A shard.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ShardJson {
    pub shard: usize,
    pub connections: usize,
    pub bytes_in_flight: usize,
    /// Null if the shard didn't answer within a second: it is at work.
    pub long_requests: Option<LongRequestsJson>,
}

/// Requests that have been open for more than a second.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LongRequestsJson {
    /// The client has sent a part.
    pub arriving: usize,
    /// The server works, or waits for a store.
    pub processing: usize,
    /// The client has read a part of the response.
    pub answering: usize,
    pub longest_seconds: u32,
}
