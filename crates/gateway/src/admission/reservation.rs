//! What the batches that have just begun will probably come to.
//!
//! A batch that is refused halfway was work for nothing. If every batch began when a little room is left, all of them would
//! grow until none has any, and under overload most work would be of that kind: so a batch begins only where there is room
//! for all that it and those before it are expected to be. The expectation of one lasts for a second or two, so that clients
//! who announce much and send little keep nobody out.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::client_quota::{BucketTotals, BucketUsage, ClientBucket};

/// The average follows a new batch by one part in this many.
const SMOOTHING: usize = 8;
/// An announcement of so many bytes is believed.
const ANNOUNCED_BYTES_MAX: usize = 1024 * 1024;
/// For how many seconds an expectation counts, that of its beginning included.
const SECONDS: usize = 2;

/// One shard's forecast. Only the shard writes to it.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// What batches came to lately: an average, in bytes.
    usual: AtomicUsize,
    /// For each of the last seconds: which it is, and what batches that began in it are still expected to grow by.
    slots: [Slot; SECONDS],
}

#[derive(Debug, Default)]
struct Slot {
    second: AtomicU64,
    bytes: AtomicUsize,
    shares: BucketUsage,
}

/// What one batch is still expected to grow by.
#[derive(Debug)]
pub(crate) struct Reservation {
    client: ClientBucket,
    second: u64,
    bytes: usize,
}

impl Reservations {
    /// What a batch will probably come to. Who announces much more than is usual is not believed: else a few heads would
    /// keep everybody out.
    pub(crate) fn of_batch(&self, announced: Option<usize>) -> usize {
        let usual = self.usual();
        announced.map_or(usual, |announced| announced.min(usual.max(ANNOUNCED_BYTES_MAX)))
    }

    fn usual(&self) -> usize {
        self.usual.load(Ordering::Relaxed)
    }

    /// A batch came to this, or would have come to more.
    pub(crate) fn learn(&self, bytes: usize) {
        let usual = self.usual();
        let next = if usual == 0 { bytes } else { usual - usual / SMOOTHING + bytes / SMOOTHING };
        self.usual.store(next, Ordering::Relaxed);
    }

    /// What those that began lately will grow by.
    pub(crate) fn bytes(&self, now: u64) -> usize {
        self.recent(now).map(|slot| slot.bytes.load(Ordering::Relaxed)).sum()
    }

    /// The same by client, added up.
    pub(crate) fn add_to(&self, sums: &mut BucketTotals, now: u64) {
        self.recent(now).for_each(|slot| slot.shares.add_to(sums));
    }

    fn recent(&self, now: u64) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(move |slot| slot.second.load(Ordering::Relaxed) + SECONDS as u64 > now)
    }

    /// A client's batch begins in the second `now`.
    pub(crate) fn expect(&self, bytes: usize, client: ClientBucket, now: u64) -> Reservation {
        let slot = self.slot(now);
        if slot.second.swap(now, Ordering::Relaxed) != now {
            slot.bytes.store(0, Ordering::Relaxed);
            slot.shares.clear();
        }
        slot.bytes.fetch_add(bytes, Ordering::Relaxed);
        slot.shares.add(client, bytes);
        Reservation { client, second: now, bytes }
    }

    /// Something of it has come, or it is over.
    pub(crate) fn came(&self, expected: &mut Reservation, bytes: usize) {
        let came = bytes.min(expected.bytes);
        expected.bytes -= came;
        let slot = self.slot(expected.second);
        if slot.second.load(Ordering::Relaxed) == expected.second {
            slot.bytes.fetch_sub(came, Ordering::Relaxed);
            slot.shares.take(expected.client, came);
        }
    }

    fn slot(&self, second: u64) -> &Slot {
        &self.slots[usize::from(!second.is_multiple_of(SECONDS as u64))]
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::admission::client_quota::ClientBuckets;

    fn client() -> ClientBucket {
        ClientBuckets::default().of("", IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    #[test]
    fn what_is_expected_shrinks_by_what_comes() {
        let forecast = Reservations::default();
        let mut one = forecast.expect(100, client(), 7);
        let mut other = forecast.expect(50, client(), 8);
        assert_eq!(forecast.bytes(8), 150);
        forecast.came(&mut one, 30);
        forecast.came(&mut other, 60);
        assert_eq!(forecast.bytes(8), 70);
    }

    #[test]
    fn an_expectation_that_isnt_met_is_forgotten() {
        let forecast = Reservations::default();
        let mut slow = forecast.expect(100, client(), 7);
        assert_eq!((forecast.bytes(8), forecast.bytes(9)), (100, 0));
        let mut next = forecast.expect(10, client(), 9);
        forecast.came(&mut slow, 100);
        assert_eq!(forecast.bytes(9), 10, "what is given back late isn't taken from another's");
        forecast.came(&mut next, usize::MAX);
        assert_eq!(forecast.bytes(9), 0);
    }

    #[test]
    fn the_usual_size_follows_what_comes() {
        let forecast = Reservations::default();
        forecast.learn(800);
        assert_eq!(forecast.usual(), 800);
        (0..100).for_each(|_| forecast.learn(1600));
        assert!((1500..=1600).contains(&forecast.usual()), "{}", forecast.usual());
        assert_eq!(forecast.of_batch(None), forecast.usual());
        assert_eq!(forecast.of_batch(Some(100)), 100);
        assert_eq!(forecast.of_batch(Some(usize::MAX)), ANNOUNCED_BYTES_MAX);
    }
}
