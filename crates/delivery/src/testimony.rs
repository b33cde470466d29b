//! What delivery says to those who wait for their events to be stored.

use std::sync::Arc;

use eventlog::{Asked, Pending, Refusals, Witness};

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

impl Witness for Testimony {
    fn pending(&self, asked: &Asked) -> Vec<Pending> {
        let mut pending = self.ledger.pending(asked);
        for desk in self.dead_letters.desks() {
            desk.dead.add_pending(asked, desk.sink.is_configured(), &mut pending);
        }
        pending
    }

    fn may_have_refused(&self) -> bool {
        self.dead_letters.desks().iter().any(|desk| desk.dead.was_used())
    }

    fn refused(&self, asked: &Asked, limit: usize) -> Refusals {
        let mut refusals = Refusals::default();
        for desk in self.dead_letters.desks().iter().filter(|desk| desk.dead.was_used()) {
            desk.dead.add_refused(asked, limit, &mut refusals);
        }
        refusals
    }
}
