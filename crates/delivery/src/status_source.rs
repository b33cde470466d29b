//! The status source for requests that wait until their events are stored.

use std::sync::Arc;

use dead_letters::DeadLetterService;
use eventlog::{DeliveryStatusSource, PendingLane, Rejections, WatchRequest};
use ledger::Ledger;

/// The ledger knows which events have ended, the dead letters how.
pub(crate) struct StatusSource {
    ledger: Arc<Ledger>,
    dead_letters: DeadLetterService,
}

impl StatusSource {
    pub(crate) const fn new(ledger: Arc<Ledger>, dead_letters: DeadLetterService) -> Self {
        Self { ledger, dead_letters }
    }
}

impl DeliveryStatusSource for StatusSource {
    fn pending(&self, asked: &WatchRequest) -> Vec<PendingLane> {
        let mut pending = self.ledger.pending(asked);
        for queue in self.dead_letters.queues() {
            queue.dead.add_pending(asked, queue.sink.is_configured(), &mut pending);
        }
        pending
    }

    fn may_have_rejected(&self) -> bool {
        self.dead_letters.queues().iter().any(|queue| queue.dead.was_used())
    }

    fn rejected(&self, asked: &WatchRequest, limit: usize) -> Rejections {
        let mut refusals = Rejections::default();
        for queue in self.dead_letters.queues().iter().filter(|queue| queue.dead.was_used()) {
            queue.dead.add_refused(asked, limit, &mut refusals);
        }
        refusals
    }
}
