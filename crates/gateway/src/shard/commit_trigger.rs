//! Group commit: when a shard commits what its requests have appended.
//!
//! Usually the runtime is about to park: nothing is left to do. A longer tick is committed in between.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Builder;

use super::iterations::Iterations;
use crate::cached_clock::CachedClock;

/// A tick that lasts longer is committed in between.
const TICK_MAX: Duration = Duration::from_millis(4);
/// The same if only requests are left that clients have sent ahead.
const TICK_MAX_BEFORE_PIPELINED: Duration = Duration::from_micros(500);
/// So many tasks of connections run between two checks of the time: each takes microseconds.
const POLLS_BETWEEN_LOOKS: u32 = 8;

/// Commits within a long tick.
pub(crate) struct CommitTrigger {
    iterations: Iterations,
    clock: Arc<CachedClock>,
    polls: Cell<u32>,
}

/// Makes a runtime commit when it is about to park, and read the clocks when it resumes.
pub(crate) fn commit_on_park<'b>(
    builder: &'b mut Builder,
    iterations: &Iterations,
    clock: &Arc<CachedClock>,
) -> &'b mut Builder {
    let (iterations, begun, clock) = (iterations.clone(), clock.clone(), clock.clone());
    builder.on_thread_park(move || iterations.end(begun.tick_time())).on_thread_unpark(move || clock.refresh())
}

impl CommitTrigger {
    pub(crate) const fn new(iterations: Iterations, clock: Arc<CachedClock>) -> Self {
        Self { iterations, clock, polls: Cell::new(0) }
    }

    /// To be called whenever a task of a connection runs. While there is always something to do the runtime never parks, and each client
    /// would wait for all others.
    pub(crate) fn before_poll(&self) {
        let polls = self.polls.get().wrapping_add(1);
        self.polls.set(polls);
        if polls.is_multiple_of(POLLS_BETWEEN_LOOKS) {
            self.commit_after(TICK_MAX);
        }
    }

    /// To be called before a request that its client has sent ahead.
    pub(crate) fn before_pipelined(&self) {
        self.commit_after(TICK_MAX_BEFORE_PIPELINED);
    }

    fn commit_after(&self, longest: Duration) {
        let took = self.clock.tick_time();
        if took > longest {
            self.iterations.end(took);
            self.clock.refresh();
        }
    }
}
