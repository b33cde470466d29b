//! Checks after a replay that the store still has the events, until the failover window has passed, and replays again
//! what a failover has lost.

use std::future::Future;
use std::pin::Pin;

use tokio::time::Instant;

use crate::contact_log::PROBE_STORE_EVERY;
use crate::page::{Numbered, Page};
use crate::reader::DeadLetterReader;
use crate::replay::{DeadOutcome, ReplaySink, Replayer};

impl Replayer {
    /// Sets from where segments are kept, and when to ask the store. A busy replayer asks equally often.
    pub(super) fn plan(&mut self) {
        self.dead.keep_from(self.watch.first());
        let to_come = self.probe_at.filter(|at| *at > Instant::now());
        self.probe_at = (!self.watch.is_idle()).then(|| to_come.unwrap_or_else(|| Instant::now() + PROBE_STORE_EVERY));
    }

    /// Asks the store whether it has what was replayed.
    pub(super) async fn probe(&mut self) {
        match self.sink.get() {
            Some(ReplaySink { sink, .. }) => match sink.held(&self.lane).await {
                // If another process has claimed the lane, its position says nothing of these replays.
                Ok(Some(held)) if !self.is_ours(&held) => self.watch.interrupted(),
                Ok(Some(held)) => self.watch.contacted(held.position, sink.capabilities().settle),
                Ok(None) => self.watch.clear(),
                Err(_) => self.watch.interrupted(),
            },
            // It may be configured again: until then the outcome is unknown.
            None => self.watch.interrupted(),
        }
        self.resend_lost().await;
    }

    /// The same from within a replay, which starts further ones.
    pub(super) fn resend_lost_first(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.resend_lost())
    }

    /// Reopens the dead letters that the store has lost, and sends them again. If it cannot reopen them, it retries.
    pub(super) async fn resend_lost(&mut self) {
        let mut lost = self.watch.take_lost();
        if lost.is_empty() {
            return;
        }
        let (count, mut outcome) = (lost.len(), DeadOutcome::none(self.dead.sink().clone()));
        let failure = self.reopen_lost(&mut lost, &mut outcome).await.err();
        self.watch.return_lost(lost);
        tracing::warn!(
            sink = &**self.dead.sink(),
            lost = count,
            stored = outcome.stored,
            reason = failure,
            "the store has lost replayed dead letters: it is another server now, or an older copy. Forebay resends \
             them; replay those again that stay dead letters"
        );
    }

    /// Removes from `lost` what was handled.
    async fn reopen_lost(&mut self, lost: &mut Vec<Numbered>, outcome: &mut DeadOutcome) -> Result<(), String> {
        let first = lost.first().map_or(0, |(at, _)| *at);
        let positions: Vec<u64> = lost.iter().map(|(at, _)| *at).collect();
        let reading = DeadLetterReader::from(&self.dead, first).map_err(|error| error.to_string())?;
        let Some(mut reading) = reading else { return Ok(()) };
        let (mut page, mut failed) = (Page::default(), Ok(()));
        loop {
            let read = reading.read().map_err(|error| {
                format!("can't read the journal of dead letters: {error}. Check the disk of the data directory")
            })?;
            let is_end = read.is_none();
            if let Some(chunk) = read {
                page.add(chunk, &positions);
            }
            if is_end || page.is_full(self.dead.memory()) {
                let page = std::mem::take(&mut page);
                let done = page.positions.last().copied();
                let are_any = self.reopen(page, lost)?;
                lost.retain(|(at, _)| done.is_none_or(|done| *at > done));
                // They are dead letters now, regardless of the outcome; the store is asked only once.
                if failed.is_ok() && are_any {
                    failed = self.replay(Page::default(), outcome).await;
                }
            }
            if is_end {
                lost.clear();
                return failed;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Reopens the dead letters of a page, except those whose lane has gone back too and resends them. Returns whether
    /// there are any. The next replay begins with them.
    fn reopen(&mut self, mut page: Page, lost: &[Numbered]) -> Result<bool, String> {
        let passed: Vec<bool> =
            page.records(&page.positions).iter().map(|record| self.lane_has_passed(record)).collect();
        let mut kept = passed.into_iter();
        page.positions.retain(|_| kept.next().unwrap_or(false));
        if page.positions.is_empty() {
            return Ok(false);
        }
        self.note_lost(&page, lost)?;
        self.dead.reopen(&page.records(&page.positions)).map_err(|error| error.to_string())?;
        Ok(true)
    }
}
