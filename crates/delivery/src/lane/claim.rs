//! The claim of a process on a lane, and disputes between the lane's store and the journal.
//!
//! A process claims each lane before it writes, in this order:
//!
//! 1. It reads the cursor and the claim that the store holds. If the two don't fit what this data directory knows, there is a
//!    [`Dispute`]: the lane stops, and nothing is changed in the store.
//! 2. It adds its own claim to those that the ledger knows of the sink, and saves both generations of the ledger.
//! 3. It exchanges the store's claim for its own, if that is still one of those that the ledger knows.
//!
//! A crash before 3 leaves a claim in the ledger that no store holds. A crash behind 3 leaves the claim in the store that the ledger
//! knows, whichever generation is read. Earlier claims stay known: a server that takes over may hold one of them.
//!
//! From then on each batch carries the claim. A store that holds another one writes nothing; the lane reads what the store holds and
//! begins again with 1.
//!
//! An operator who accepts what the store has permits a lane to take it by force. The permission is saved in the ledger, and the lane uses
//! it at 1 in the place of stopping: so it doesn't matter whether a crash comes before the store answers.

use std::pin::pin;

use ledger::{Accept, Dispute, SAVED_SOON};
use sink::{Cursor, Held, Takeover};
use text::OperatorCommand;
use tokio::time::timeout;

use crate::lane::{Lane, LaneExit};
use crate::status::LaneState;

impl Lane {
    /// Finds what the store holds of the lane, with this process's claim on it.
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
        self.until_saved(noted, "the ledger can't be saved with the claim on its store").await;
    }

    /// Makes durable which store a sink of a writer is bound to, before anything is written to it: the first one that its writers have named. The
    /// next start then accepts no other one, whichever writer answers first.
    pub(super) async fn save_binding(&self) {
        let (mark, sink) = (self.sink.bound_to(), &self.name.sink);
        if mark.is_none() || self.ledger.mark(sink) == mark {
            return;
        }
        let change = self.ledger.set_mark(sink, mark);
        let saved = self.ledger.saved_with(change);
        self.until_saved(saved, "the ledger can't be saved with the mark of its store").await;
    }

    /// Waits until the ledger is saved with the store's first answer: before anything is written to the store, or after a crash it would
    /// be taken for one that is ahead.
    pub(crate) async fn wait_until_answer_saved(&self) {
        let saved = self.ledger.answer_saved(&self.name);
        self.until_saved(saved, "the ledger can't be saved with where its store stands").await;
    }

    pub(crate) async fn until_saved(&self, saved: impl Future<Output = ()>, or_else: &str) {
        let mut saved = pin!(saved);
        if timeout(SAVED_SOON, saved.as_mut()).await.is_err() {
            self.enter(LaneState::Waiting(or_else.into()));
            saved.await;
        }
    }

    /// In what the store and the journal disagree, if they do: in words, with what to do.
    fn disputed(&self, held: &Held) -> Option<(Dispute, String)> {
        let (progress, end, known) = (self.ledger.lane(&self.name), self.reach(), self.ledger.claims(&self.name.sink));
        let (position, shard, sink) = (held.position, self.name.shard, &self.name.sink);
        if held.claims.iter().any(|claim| *claim != self.claim && !known.contains(claim)) {
            let reason = format!(
                "another server has claimed it in the store: either a server runs on a copy of this data directory, or the directory \
                 was restored from a backup. Events stay in the journal. See to it that no other server delivers for this data \
                 directory, then let this one go on with: {}",
                OperatorCommand::RouteAccept(sink)
            );
            return Some((Dispute::Claimed, reason));
        }
        if progress.ahead || position > end {
            let reason = format!(
                "the store has positions up to {position}, the journal of shard {shard} ended at {end}: was the data directory \
                 restored from a copy? What the store has beyond that is none of these events. To accept it and deliver what was \
                 accepted since: {}",
                OperatorCommand::RouteAccept(sink)
            );
            return Some((Dispute::StoreAhead, reason));
        }
        let (goes_on_at, oldest) = (progress.resume_at(position), self.shard.segments().oldest().unwrap_or(1));
        (goes_on_at < progress.cursor && goes_on_at + 1 < oldest).then(|| {
            let reason = format!(
                "the store's cursor is {goes_on_at}, the oldest event that shard {shard} still has is {oldest}, and those \
                 between were stored before: was the store restored from a copy? Bring the newer one back. Or accept the loss and \
                 send again what the journal still has: {}. Or go on with the events that wait: {}",
                OperatorCommand::RouteAccept(sink),
                OperatorCommand::RouteDrop(sink)
            );
            (Dispute::Lost, reason)
        })
    }

    /// Where the store's cursor is set: everything up to there is in the store, as far as anybody can tell, or gone from the journal.
    fn accepted_position(&self, held: &Held, accept: Accept) -> u64 {
        let (progress, oldest) = (self.ledger.lane(&self.name), self.shard.segments().oldest().unwrap_or(1));
        let most = if accept.resend { progress.cursor } else { self.reach() };
        held.position.min(most).max(oldest.saturating_sub(1)).max(progress.start)
    }
}
