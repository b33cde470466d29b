//! Replays that their store may lose yet: a server that takes over may be behind the one that stored them.
//!
//! The replays of a sink are a lane of their own, whose cursor in the store says whether it has them. It is asked for as
//! long as such a store takes to settle; meanwhile the letters stay in their journal, though they have come to their end.
//! What this process knows of it ends with it.

use std::time::Duration;

use crate::contact_log::ContactLog;

/// A batch of letters that the store has taken.
#[derive(Debug)]
struct Sent {
    /// The time in touch with the store when it was taken.
    since: Duration,
    /// Where each letter stands in its journal, and its number in the lane of replays. Both ascend.
    letters: Vec<(u64, u64)>,
}

impl Sent {
    fn last(&self) -> u64 {
        self.letters.last().map_or(0, |(_, number)| *number)
    }
}

/// The replays of one sink that aren't settled.
#[derive(Debug, Default)]
pub(crate) struct ReplayTracker {
    contacts: ContactLog,
    sent: Vec<Sent>,
    lost: Vec<(u64, u64)>,
}

impl ReplayTracker {
    /// The store has taken these letters: where each stands in its journal, and its number in the lane of replays.
    pub(crate) fn add(&mut self, letters: Vec<(u64, u64)>) {
        self.contacts.contacted();
        self.sent.push(Sent { since: self.contacts.steady().time, letters });
    }

    /// The store says that it stands at this position, and needs so long to settle.
    pub(crate) fn contacted(&mut self, position: u64, settle: Duration) {
        if self.sent.iter().any(|sent| sent.last() > position) {
            for sent in &mut self.sent {
                // A store may have taken the first of a batch, and not the others.
                let kept = sent.letters.partition_point(|(_, number)| *number <= position);
                self.lost.extend(sent.letters.drain(kept..));
            }
            self.sent.retain(|sent| !sent.letters.is_empty());
            // What is left begins to settle anew, in another server.
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

    /// The store doesn't answer: until it does no time counts.
    pub(crate) fn interrupted(&self) {
        self.contacts.interrupted();
    }

    /// The letters that the store has lost, ascending, with their numbers. They are forgotten here.
    pub(crate) fn take_lost(&mut self) -> Vec<(u64, u64)> {
        let mut lost = std::mem::take(&mut self.lost);
        lost.sort_unstable();
        lost
    }

    /// These couldn't be seen to.
    pub(crate) fn put_back(&mut self, lost: Vec<(u64, u64)>) {
        self.lost.extend(lost);
    }

    /// Nothing of this store is watched any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.sent.is_empty() && self.lost.is_empty()
    }

    /// Where the first letter stands that may be needed again.
    pub(crate) fn first(&self) -> Option<u64> {
        self.sent.iter().flat_map(|sent| &sent.letters).chain(&self.lost).map(|(at, _)| *at).min()
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
    async fn what_a_store_has_for_its_time_is_let_go_and_what_it_lacks_is_known() {
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
    async fn what_another_server_has_settles_there_anew() {
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
    async fn of_a_batch_only_what_the_store_lacks_is_lost() {
        let mut watch = ReplayTracker::default();
        watch.add(vec![(4, 5), (7, 6), (8, 9)]);
        watch.contacted(6, MINUTE);
        assert_eq!((watch.take_lost(), watch.first()), (vec![(8, 9)], Some(4)));
    }
}
