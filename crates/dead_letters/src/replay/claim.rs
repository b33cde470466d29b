//! The claim on the lane of replays. It follows the claim on the sink's own lanes.

use event::Lane;
use ledger::SAVED_SOON;
use sink::{Held, Sink, SinkError, Takeover};
use text::OperatorCommand;
use tokio::time::timeout;

use crate::replay::Replayer;

impl Replayer {
    /// Whether the store holds the lane of replays for this process, for an earlier one of its data directory, or for
    /// none yet.
    pub(super) fn is_ours(&self, held: &Held) -> bool {
        let known = self.ledger.claims(self.dead.sink());
        held.claims.iter().all(|claim| *claim == self.claim || known.contains(claim))
    }

    /// The store's cursor of the lane, with this process's claim on it; `None` if the store keeps no cursor.
    pub(super) async fn claim_cursor(&mut self, sink: &Sink) -> Result<Option<u64>, String> {
        let failed = |error: SinkError| error.to_string();
        let first = Lane { shard: 0, sink: self.dead.sink().clone(), ..self.lane.clone() };
        let Some(of_sink) = sink.held(&first).await.map_err(failed)? else { return Ok(None) };
        if !self.is_ours(&of_sink) {
            let sink = self.dead.sink();
            return Err(format!(
                "another server has claimed sink {sink} in the store: {} shows why its lanes have stopped",
                OperatorCommand::RouteList
            ));
        }
        let Some(held) = sink.held(&self.lane).await.map_err(failed)? else { return Ok(None) };
        if held.claims == [self.claim] {
            return Ok(Some(held.position));
        }
        let takeover = if self.is_ours(&held) {
            Takeover::Known(held.claims.clone().into())
        } else if of_sink.claims == [self.claim] {
            // Another process may have moved the cursor past numbers that were sent and never stored.
            self.forget_attempt()?;
            Takeover::Forced(held.position)
        } else {
            return Err(format!(
                "another server has claimed the replays of this sink in the store: wait until {} shows that its lanes deliver, then replay again",
                OperatorCommand::RouteList
            ));
        };
        let noted = self.ledger.note_claim(self.dead.sink(), &held.claims, self.claim);
        if timeout(SAVED_SOON, noted).await.is_err() {
            return Err(
                "can't save this server's claim on the replays in the ledger: free space on the disk of the data \
                 directory, then replay again"
                    .into(),
            );
        }
        let held = sink.claim(&self.lane, self.claim, takeover).await.map_err(failed)?;
        match held {
            Some(held) if held.claims == [self.claim] => Ok(Some(held.position)),
            Some(_) => Err("another server is claiming the replays of this sink in the store: stop that server, then \
                replay again"
                .into()),
            None => Ok(None),
        }
    }
}
