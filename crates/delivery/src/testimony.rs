//! What delivery says to those who wait for their events to be stored.

use std::sync::Arc;

use eventlog::{DeliveryStatusSource, PendingLane, Rejections, WatchRequest};

use crate::{DeadLetterOffice, Ledger};

/// The ledger knows what has come to an end, the dead letters which end that was.
pub(crate) struct Testimony {
    ledger: Arc<Ledger>,
    dead_letters: DeadLetterOffice,
}

impl Testimony {
    pub(crate) const fn new(ledger: Arc<Ledger>, dead_letters: DeadLetterOffice) -> Self {
        Self { ledger, dead_letters }
    }
}

impl DeliveryStatusSource for Testimony {
    fn pending(&self, asked: &WatchRequest) -> Vec<PendingLane> {
        let mut pending = self.ledger.pending(asked);
        for desk in self.dead_letters.desks() {
            desk.dead.add_pending(asked, desk.sink.is_configured(), &mut pending);
        }
        pending
    }

    fn may_have_rejected(&self) -> bool {
        self.dead_letters.desks().iter().any(|desk| desk.dead.was_used())
    }

    fn rejected(&self, asked: &WatchRequest, limit: usize) -> Rejections {
        let mut refusals = Rejections::default();
        for desk in self.dead_letters.desks().iter().filter(|desk| desk.dead.was_used()) {
            desk.dead.add_refused(asked, limit, &mut refusals);
        }
        refusals
    }
}
