//! The memory budget of reads: pages that are being read, and responses that clients haven't received yet. It is separate from the room
//! for posted events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use limits::memory::Budgets;

use super::client_quota::{BucketTotals, BucketUsage, ClientBucket};
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// The budget of all shards.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    bytes_max: usize,
    page_bytes: usize,
    taken: AtomicUsize,
    shares: BucketUsage,
}

/// A part of it, until this is dropped.
#[derive(Debug)]
pub(crate) struct ReadPermit {
    room: Arc<ReadBudget>,
    client: ClientBucket,
    bytes: usize,
}

impl ReadBudget {
    pub(crate) fn new(memory: &Budgets) -> Self {
        let (bytes_max, page_bytes) = (memory.reads_bytes, memory.read_page_bytes());
        Self { bytes_max, page_bytes, taken: AtomicUsize::new(0), shares: BucketUsage::default() }
    }

    /// Bytes of a page, at most.
    pub(crate) const fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// If more than this is in use, the rest, a page of full size, is for clients with less than their share: a client that reads its
    /// responses slowly doesn't keep others from reading.
    const fn for_all_bytes(&self) -> usize {
        self.bytes_max - self.page_bytes
    }

    /// # Errors
    /// Less is left, or this client has more than its share.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, client: ClientBucket) -> Result<ReadPermit, Refused> {
        let refused = |detail| Err(Problem::boxed(ErrorCode::Overload, detail));
        let with = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        let Ok(before) = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with) else {
            return refused("the memory for reads is in use; retry later, or request fewer events with `limit`");
        };
        self.shares.add(client, bytes);
        let permit = ReadPermit { room: self.clone(), client, bytes };
        if before + bytes > self.for_all_bytes() && permit.is_of_one_who_has_too_much() {
            return refused(
                "your other reads use more than your share of the memory for reads; receive their responses first, \
                 or request fewer events with `limit`",
            );
        }
        Ok(permit)
    }
}

impl ReadPermit {
    fn is_of_one_who_has_too_much(&self) -> bool {
        let mut sums = BucketTotals::new();
        self.room.shares.add_to(&mut sums);
        sums.has_too_much(self.client, self.bytes, self.room.bytes_max)
    }

    /// Releases all but so many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        self.room.shares.take(self.client, back);
        let before = self.room.taken.fetch_sub(back, Ordering::Relaxed);
        debug_assert!(before >= back, "only counted bytes are released");
        self.bytes -= back;
    }
}

impl Drop for ReadPermit {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use limits::{READ_BYTES_MAX, READS_IN_FLIGHT_BYTES_MAX};

    use super::*;
    use crate::admission::client_quota::ClientBuckets;

    /// Clients in different buckets.
    fn some<const N: usize>() -> [ClientBucket; N] {
        let clients = ClientBuckets::default();
        let mut apart: Vec<ClientBucket> = Vec::new();
        let mut names = 0_u32..;
        while apart.len() < N {
            let name = names.next().unwrap().to_string();
            let client = clients.of(&name, IpAddr::V4(Ipv4Addr::LOCALHOST));
            if !apart.contains(&client) {
                apart.push(client);
            }
        }
        std::array::from_fn(|at| apart[at])
    }

    #[test]
    fn read_budget_is_bounded_and_released() {
        let room = Arc::new(ReadBudget::new(&Budgets::FULL));
        let [one, other] = some();
        let mut most = room.take(READS_IN_FLIGHT_BYTES_MAX - 1, one).unwrap();
        let rest = room.take(1, other).unwrap();
        assert_eq!(room.take(1, other).unwrap_err().code, ErrorCode::Overload);
        assert!(room.take(usize::MAX, other).is_err());
        most.shrink(10);
        most.shrink(20);
        drop(rest);
        assert_eq!(room.taken.load(Ordering::Relaxed), 10);
        drop(most);
        assert!(room.take(READS_IN_FLIGHT_BYTES_MAX, one).is_ok());
        assert_eq!(room.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn slow_reader_does_not_block_other_clients() {
        let room = Arc::new(ReadBudget::new(&Budgets::FULL));
        let [hog, one, other] = some();
        let mut held: Vec<_> = std::iter::from_fn(|| room.take(READ_BYTES_MAX, hog).ok()).collect();
        assert!(held.len() > 1, "{}", held.len());
        assert!(room.take(1, hog).is_err());
        assert!([one, other].into_iter().all(|client| room.take(READ_BYTES_MAX, client).is_ok()));
        let _both = [one, other].map(|client| room.take(READ_BYTES_MAX / 2, client).unwrap());
        held.pop();
        assert!(room.take(1, other).is_ok());
    }
}
