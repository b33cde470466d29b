//! Replays that their store may still lose: a server that takes over may have less than the one that stored them.
//!
//! The replays of a sink are a separate lane, whose cursor in the store says whether it has them. The store is asked
//! for it during the failover window. Until its end, the dead letters stay in their journal although they have ended.
//! This process's knowledge of it is not saved.

use std::time::Duration;

use crate::contact_log::ContactLog;

/// A batch of dead letters that the store has stored.
#[derive(Debug)]
struct Sent {
    /// The time in contact with the store when it was stored.
    since: Duration,
    /// The position of each dead letter in its journal, and its number in the lane of replays. Both ascend.
    numbered: Vec<(u64, u64)>,
}

impl Sent {
    fn last(&self) -> u64 {
        self.numbered.last().map_or(0, |(_, number)| *number)
    }
}

/// The replays of one sink whose failover window is open.
#[derive(Debug, Default)]
pub(crate) struct ReplayTracker {
    contacts: ContactLog,
    sent: Vec<Sent>,
    lost: Vec<(u64, u64)>,
}

impl ReplayTracker {
    /// The store has stored these dead letters: the position of each in its journal, and its number in the lane of
    /// replays.
    pub(crate) fn add(&mut self, numbered: Vec<(u64, u64)>) {
        self.contacts.contacted();
        self.sent.push(Sent { since: self.contacts.steady().time, numbered });
    }

    /// The store's cursor is at this position, and its failover window is this long.
    pub(crate) fn contacted(&mut self, position: u64, settle: Duration) {
        if self.sent.iter().any(|sent| sent.last() > position) {
            for sent in &mut self.sent {
                // A store may have stored only the first of a batch.
                let kept = sent.numbered.partition_point(|(_, number)| *number <= position);
                self.lost.extend(sent.numbered.drain(kept..));
            }
            self.sent.retain(|sent| !sent.numbered.is_empty());
            // The failover window of the rest starts again, in another server.
            self.contacts.set_back();
            self.contacts.contacted();
            let now = self.contacts.steady().time;
            self.sent.iter_mut().for_each(|sent| sent.since = now);
            return;
        }
        self.contacts.contacted();
        let now = self.contacts.steady().time;
        self.sent.retain(|sent| now.saturating_sub(sent.since) < settle);
    }

    /// The store does not answer: no time counts until it does.
    pub(crate) fn interrupted(&self) {
        self.contacts.interrupted();
    }

    /// Takes the dead letters that the store has lost, ascending, with their numbers.
    pub(crate) fn take_lost(&mut self) -> Vec<(u64, u64)> {
        let mut lost = std::mem::take(&mut self.lost);
        lost.sort_unstable();
        lost
    }

    /// Adds dead letters again that could not be handled.
    pub(crate) fn return_lost(&mut self, lost: Vec<(u64, u64)>) {
        self.lost.extend(lost);
    }

    /// Stops watching this store.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.lost.is_empty()
    }

    /// The position of the first dead letter that may be needed again.
    pub(crate) fn first(&self) -> Option<u64> {
        self.sent.iter().flat_map(|sent| &sent.numbered).chain(&self.lost).map(|(at, _)| *at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn lost_replays_are_found_within_the_failover_window() {
        let mut watch = ReplayTracker::default();
        watch.add(vec![(4, 4), (9, 5)]);
        pass(20).await;
        watch.add(vec![(11, 8)]);
        pass(20).await;
        watch.contacted(8, MINUTE);
        assert_eq!((watch.first(), watch.take_lost()), (Some(4), vec![]));
        pass(20).await;
        watch.contacted(8, MINUTE);
        assert_eq!(watch.first(), Some(11), "the first have settled");
        watch.interrupted();
        pass(500).await;
        watch.contacted(8, MINUTE);
        assert_eq!(watch.first(), Some(11), "an outage is no time in touch");
        watch.contacted(7, MINUTE);
        assert!(!watch.is_idle());
        assert_eq!((watch.take_lost(), watch.is_idle()), (vec![(11, 8)], true));
    }

    #[tokio::test(start_paused = true)]
    async fn failover_restarts_the_failover_window() {
        let mut watch = ReplayTracker::default();
        watch.add(vec![(4, 5)]);
        watch.add(vec![(7, 6), (8, 9)]);
        pass(29).await;
        watch.contacted(9, MINUTE);
        pass(29).await;
        watch.contacted(5, MINUTE);
        assert_eq!(watch.take_lost(), [(7, 6), (8, 9)]);
        pass(29).await;
        watch.contacted(5, MINUTE);
        assert_eq!(watch.first(), Some(4));
    }

    #[tokio::test(start_paused = true)]
    async fn only_missing_records_of_a_batch_are_lost() {
        let mut watch = ReplayTracker::default();
        watch.add(vec![(4, 5), (7, 6), (8, 9)]);
        watch.contacted(6, MINUTE);
        assert_eq!((watch.take_lost(), watch.first()), (vec![(8, 9)], Some(4)));
    }
}
