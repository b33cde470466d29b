//! Work that would block a shard runs on a thread of its worker pool, one piece at a time for each shard: small events never wait for
//! large ones, and large ones wait for each other.

use crate::admission::{ClientBucket, FairSemaphore};
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// By how much a thread of the pool is `nicer` than its shard: if cores are scarce, shards run first, and a tenth is left.
const NICE: i32 = 10;

/// Lowers the priority of the calling thread. Without the permission all threads are alike.
pub(crate) fn lower_priority() {
    // Without a process it is the calling thread alone (sched(7)).
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Runs the `work` of a client on a thread of the pool, when the pool has a permit for it.
///
/// # Errors
/// The server stops.
pub(crate) async fn offload<T: Send + 'static>(
    pool: &FairSemaphore,
    client: ClientBucket,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    let permit = pool.acquire(client).await;
    let work = move || {
        // Held until the work is done, although its client may have disconnected.
        let _permit = permit;
        work()
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::boxed(ErrorCode::Overload, "the server is stopping; retry later"))
}
