//! What the ledger knows of the claims on a sink's store, and of disputes with it.

use std::sync::Arc;
use std::time::Duration;

use sink::{Claim, Mark};

use crate::dispute::Dispute;
use crate::ledger::Ledger;
use crate::routes::SinkName;

/// If the ledger isn't saved after this time, the lane reports that it waits for it.
pub const SAVED_SOON: Duration = Duration::from_secs(1);
/// The most claims that are known of a sink: those of the newest starts after which its store answered.
const KNOWN_MAX: usize = 32;

impl Ledger {
    /// The claims of this data directory's processes that the sink's store may hold.
    pub fn claims(&self, sink: &str) -> Arc<[Claim]> {
        self.lock().state.sinks.get(sink).map(|sink| sink.claims.as_slice().into()).unwrap_or_default()
    }

    /// Saves durably, in both generations, that the sink's store may hold `claim` from now on. The claims that it
    /// holds, `held`, stay known.
    pub async fn note_claim(&self, sink: &SinkName, held: &[Claim], claim: Claim) {
        let change = self.with_sink(sink, |state| {
            let others = state.claims.iter().filter(|known| !held.contains(known) && **known != claim);
            let known = held.iter().filter(|held| **held != claim && state.claims.contains(held));
            let mut claims: Vec<Claim> = others.chain(known).copied().collect();
            claims.push(claim);
            claims.drain(..claims.len().saturating_sub(KNOWN_MAX));
            state.claims = claims;
        });
        self.saved_with(change).await;
    }

    /// The lane's store and journal disagree: what the store has is unknown until the operator decides.
    pub fn dispute(&self, lane: &event::Lane, dispute: Dispute) {
        self.with_lane(lane, |state| {
            // After the store has answered, positions after the cursor were accepted by this process alone. Events that
            // another process has stored at these positions are others.
            if dispute != Dispute::Lost {
                state.unconfirmed_since.get_or_insert(state.cursor);
            }
            state.ahead |= dispute == Dispute::StoreAhead;
            state.confirmed = false;
            state.dispute = Some(dispute);
        });
        self.end_waiting();
    }

    /// The dispute is over.
    pub fn accepted(&self, lane: &event::Lane) {
        self.with_lane(lane, |state| (state.ahead, state.dispute, state.accept) = (false, None, None));
    }

    /// The mark (store id) of the store that the sink is bound to.
    pub fn mark(&self, sink: &SinkName) -> Option<Mark> {
        self.lock().state.sinks.get(sink)?.mark
    }
}
