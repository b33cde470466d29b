//! Reservations: the size that batches which have just begun will probably reach.
//!
//! A batch that is rejected halfway wastes the work so far. If every batch began when a little room is left, all would grow until none
//! has any, and under overload most work would be wasted. So a batch begins only if there is room for its reservation and those of the
//! batches before it. A reservation expires after a second or two, so clients that announce much and send little don't keep others out.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::client_quota::{BucketTotals, BucketUsage, ClientBucket};

/// The average follows a new batch by one part in this many.
const SMOOTHING: usize = 8;
/// An announcement of up to so many bytes is trusted.
const ANNOUNCED_BYTES_MAX: usize = 1024 * 1024;
/// For how many seconds an expectation counts, that of its beginning included.
const SECONDS: usize = 2;

/// The reservations of one shard. Only the shard writes to them.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    /// The average size of the last batches, in bytes.
    usual: AtomicUsize,
    /// For each of the last seconds: its number, and how much batches that began in it will still grow.
    slots: [Slot; SECONDS],
}

#[derive(Debug, Default)]
struct Slot {
    second: AtomicU64,
    bytes: AtomicUsize,
    shares: BucketUsage,
}

/// How much one batch will probably still grow.
#[derive(Debug)]
pub(crate) struct Reservation {
    client: ClientBucket,
    second: u64,
    bytes: usize,
}

impl Reservations {
    /// The size that a batch will probably reach. An announcement of much more than usual isn't trusted: otherwise a few heads could keep all
    /// others out.
    pub(crate) fn of_batch(&self, announced: Option<usize>) -> usize {
        let usual = self.usual();
        announced.map_or(usual, |announced| announced.min(usual.max(ANNOUNCED_BYTES_MAX)))
    }

    fn usual(&self) -> usize {
        self.usual.load(Ordering::Relaxed)
    }

    /// A batch has reached this size, or would have grown further.
    pub(crate) fn learn(&self, bytes: usize) {
        let usual = self.usual();
        let next = if usual == 0 { bytes } else { usual - usual / SMOOTHING + bytes / SMOOTHING };
        self.usual.store(next, Ordering::Relaxed);
    }

    /// How much the batches that have just begun will grow.
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

    /// A part of it has arrived, or it is over.
    pub(crate) fn received(&self, expected: &mut Reservation, bytes: usize) {
        let received = bytes.min(expected.bytes);
        expected.bytes -= received;
        let slot = self.slot(expected.second);
        if slot.second.load(Ordering::Relaxed) == expected.second {
            slot.bytes.fetch_sub(received, Ordering::Relaxed);
            slot.shares.take(expected.client, received);
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
    fn reservation_shrinks_as_bytes_arrive() {
        let forecast = Reservations::default();
        let mut one = forecast.expect(100, client(), 7);
        let mut other = forecast.expect(50, client(), 8);
        assert_eq!(forecast.bytes(8), 150);
        forecast.received(&mut one, 30);
        forecast.received(&mut other, 60);
        assert_eq!(forecast.bytes(8), 70);
    }

    #[test]
    fn reservation_expires_if_no_bytes_arrive() {
        let forecast = Reservations::default();
        let mut slow = forecast.expect(100, client(), 7);
        assert_eq!((forecast.bytes(8), forecast.bytes(9)), (100, 0));
        let mut next = forecast.expect(10, client(), 9);
        forecast.received(&mut slow, 100);
        assert_eq!(forecast.bytes(9), 10, "a late release doesn't reduce another's reservation");
        forecast.received(&mut next, usize::MAX);
        assert_eq!(forecast.bytes(9), 0);
    }

    #[test]
    fn usual_size_follows_recent_batches() {
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
