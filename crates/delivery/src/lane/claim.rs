//! The claim of a process on a lane, and disputes between the lane's store and the journal.
//!
//! A process claims each lane before it writes, in this order:
//!
//! 1. It reads the cursor and the claim that the store holds. If they do not fit what this data directory knows, there
//!    is a [`Dispute`]: the lane stops, and nothing is changed in the store.
//! 2. It adds its own claim to those that the ledger knows of the sink, and saves both generations of the ledger.
//! 3. It exchanges the store's claim for its own, if that is still one of those that the ledger knows.
//!
//! A crash before 3 leaves a claim in the ledger that no store holds. A crash after 3 leaves a claim in the store that
//! both generations of the ledger know. Earlier claims stay known: a server that takes over may hold one of them.
//!
//! From then on each batch carries the claim. A store that holds another one writes nothing; the lane reads what the store holds and
//! begins again with 1.
//!
//! The operator can accept what the store has, which permits the lane to take it by force. The permission is saved in
//! the ledger, and the lane uses it at 1 instead of stopping. So it does not matter whether a crash happens before the
//! store answers.

use std::pin::pin;

use ledger::{Accept, Dispute, SAVED_SOON};
use sink::{Cursor, Held, Takeover};
use text::OperatorCommand;
use tokio::time::timeout;

use crate::lane::{Lane, LaneExit};
use crate::status::LaneState;

impl Lane {
    /// Reads what the store holds of the lane, with this process's claim on it.
    pub(crate) async fn claim_cursor(&mut self) -> Result<Cursor, LaneExit> {
        let mut found = self.find_held().await;
        loop {
            let Some(held) = found else { return Ok(Cursor::Delivery) };
            let accept = self.ledger.lane(&self.name).accept;
            let takeover = match (self.disputed(&held), accept) {
                (None, _) if held.claims == [self.claim] => {
                    self.ledger.accepted(&self.name);
                    return Ok(Cursor::Store(held.position));
                }
                (None, _) => Takeover::Known([&*self.ledger.claims(&self.name.sink), &[self.claim]].concat().into()),
                (Some(_), Some(accept)) => Takeover::Forced(self.accepted_position(&held, accept)),
                (Some((dispute, reason)), None) => {
                    self.ledger.dispute(&self.name, dispute);
                    return Err(LaneExit::Stop(reason));
                }
            };
            self.note_claim(&held).await;
            let answer = self.sink.claim(&self.name, self.claim, takeover.clone()).await;
            found = match answer {
                Ok(held) => {
                    if let Takeover::Forced(position) = takeover {
                        self.ledger.accepted(&self.name);
                        tracing::warn!(
                            lane = %self.name, sink = &*self.name.sink, shard = self.name.shard, position,
                            "the store's cursor is accepted: the lane continues after this position"
                        );
                    }
                    held
                }
                Err(error) => {
                    self.wait(&error.to_string()).await;
                    self.find_held().await
                }
            };
        }
    }

    async fn note_claim(&self, held: &Held) {
        let noted = self.ledger.note_claim(&self.name.sink, &held.claims, self.claim);
        self.until_saved(
            noted,
            "the claim on the store is not saved in the ledger yet; if this lasts, free space on \
                                 the disk of the data directory",
        )
        .await;
    }

    /// Saves the binding of a writer's sink to a store durably, before anything is written to it. The first store that
    /// its writers have named counts. The next start then accepts no other one, regardless of which writer answers
    /// first.
    pub(super) async fn save_binding(&self) {
        let (mark, sink) = (self.sink.bound_to(), &self.name.sink);
        if mark.is_none() || self.ledger.mark(sink) == mark {
            return;
        }
        let change = self.ledger.set_mark(sink, mark);
        let saved = self.ledger.saved_with(change);
        self.until_saved(
            saved,
            "the store id is not saved in the ledger yet; if this lasts, free space on the disk \
                                 of the data directory",
        )
        .await;
    }

    /// Waits until the ledger is saved with the store's first answer, before anything is written to the store.
    /// Otherwise, after a crash, the store would count as ahead of the journal.
    pub(crate) async fn wait_until_answer_saved(&self) {
        let saved = self.ledger.answer_saved(&self.name);
        self.until_saved(
            saved,
            "the store's cursor is not saved in the ledger yet; if this lasts, free space on the \
                                 disk of the data directory",
        )
        .await;
    }

    pub(crate) async fn until_saved(&self, saved: impl Future<Output = ()>, or_else: &str) {
        let mut saved = pin!(saved);
        if timeout(SAVED_SOON, saved.as_mut()).await.is_err() {
            self.enter(LaneState::Waiting(or_else.into()));
            saved.await;
        }
    }

    /// The dispute between the store and the journal, if there is one, with a message that says what to do.
    fn disputed(&self, held: &Held) -> Option<(Dispute, String)> {
        let (progress, end, known) = (self.ledger.lane(&self.name), self.reach(), self.ledger.claims(&self.name.sink));
        let (position, shard, sink) = (held.position, self.name.shard, &self.name.sink);
        if held.claims.iter().any(|claim| *claim != self.claim && !known.contains(claim)) {
            let reason = format!(
                "another server has claimed this lane in the store: a copy or a restored backup of this data \
                 directory is in use. Events stay in the journal. Stop the other server, then run {}",
                OperatorCommand::RouteAccept(sink)
            );
            return Some((Dispute::Claimed, reason));
        }
        if progress.ahead || position > end {
            let reason = format!(
                "the store has positions up to {position}, but the journal of shard {shard} ended at {end}: was the \
                 data directory restored from a backup? To keep the store's events and deliver everything accepted \
                 since, run {}",
                OperatorCommand::RouteAccept(sink)
            );
            return Some((Dispute::StoreAhead, reason));
        }
        let (resume_at, oldest) = (progress.resume_at(position), self.shard.segments().oldest().unwrap_or(1));
        (resume_at < progress.cursor && resume_at + 1 < oldest).then(|| {
            let reason = format!(
                "the store's cursor went back to {resume_at}, and shard {shard} begins at {oldest}: was the store \
                 restored from a backup? Restore the newer one, resend what the journal has ({}), or deliver only \
                 pending events ({})",
                OperatorCommand::RouteAccept(sink),
                OperatorCommand::RouteDrop(sink)
            );
            (Dispute::Lost, reason)
        })
    }

    /// The position to set the store's cursor to. Everything up to it is known to be in the store, or gone from
    /// the journal.
    fn accepted_position(&self, held: &Held, accept: Accept) -> u64 {
        let (progress, oldest) = (self.ledger.lane(&self.name), self.shard.segments().oldest().unwrap_or(1));
        let most = if accept.resend { progress.cursor } else { self.reach() };
        held.position.min(most).max(oldest.saturating_sub(1)).max(progress.start)
    }
}
