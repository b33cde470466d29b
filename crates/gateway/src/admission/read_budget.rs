//! The memory budget of reads: pages that are being read, and responses that clients haven't received yet. It is separate from the room
//! for posted events.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use limits::memory::Budgets;

use super::client_quota::{BucketTotals, BucketUsage, ClientBucket};
use super::wait_queue::{self, WaitQueue};
use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};

/// The budget of all shards.
#[derive(Debug)]
pub(crate) struct ReadBudget {
    bytes_max: usize,
    page_bytes: usize,
    taken: AtomicUsize,
    /// The part of `taken` for answers that haven't come yet.
    expected: AtomicUsize,
    shares: BucketUsage,
    waiting: WaitQueue,
}

/// A part of it, until this is dropped.
#[derive(Debug)]
pub(crate) struct ReadPermit {
    room: Arc<ReadBudget>,
    client: ClientBucket,
    bytes: usize,
}

/// A part for the answer of a service that hasn't come yet, until this is dropped.
#[derive(Debug)]
pub(crate) struct ExpectedAnswer {
    permit: ReadPermit,
    bytes: usize,
}

/// What is known of the size of an answer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerSize {
    /// Answers before it had about this size.
    Usual(usize),
    /// There was none before.
    AtMost(usize),
}

/// Which clients may have more at a moment.
pub(crate) struct Quotas {
    /// What clients have, if little is left.
    sums: Option<BucketTotals>,
    bytes_max: usize,
}

impl Quotas {
    /// Whether little memory is left.
    pub(crate) const fn are_tight(&self) -> bool {
        self.sums.is_some()
    }

    /// Whether a client has no more than its share.
    pub(crate) fn admit(&self, client: ClientBucket) -> bool {
        self.sums.as_ref().is_none_or(|sums| !sums.has_too_much(client, 0, self.bytes_max))
    }
}

impl ReadBudget {
    pub(crate) fn new(memory: &Budgets) -> Self {
        let (bytes_max, page_bytes) = (memory.reads_bytes, memory.read_page_bytes());
        let waiting = WaitQueue::new(wait_queue::WAIT);
        let [taken, expected] = [0, 0].map(AtomicUsize::new);
        Self { bytes_max, page_bytes, taken, expected, shares: BucketUsage::default(), waiting }
    }

    /// Bytes of a page, at most.
    pub(crate) const fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// The reads that wait for memory.
    pub(crate) const fn waiting(&self) -> &WaitQueue {
        &self.waiting
    }

    /// If more than this is in use, the rest, a page of full size, is for clients with less than their share: a client that reads its
    /// responses slowly doesn't keep others from reading.
    const fn for_all_bytes(&self) -> usize {
        self.bytes_max - self.page_bytes
    }

    /// Which clients may have so many bytes more.
    pub(crate) fn quotas(&self, bytes: usize) -> Quotas {
        let is_tight = self.taken.load(Ordering::Relaxed).saturating_add(bytes) > self.for_all_bytes();
        let sums = is_tight.then(|| {
            let mut sums = BucketTotals::new();
            self.shares.add_to(&mut sums);
            sums
        });
        Quotas { sums, bytes_max: self.bytes_max }
    }

    /// Takes bytes now.
    ///
    /// # Errors
    /// Less is left, or this client has more than its share.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize, client: ClientBucket) -> Result<ReadPermit, Refused> {
        let refused = |detail| Err(Problem::boxed(ErrorCode::Overload, detail));
        // This check comes first: bytes that a rejected read gives back would wake the others, which would do the same for ever.
        let has_too_much = !self.quotas(bytes).admit(client);
        let with = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.bytes_max && !has_too_much);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with) {
            Ok(_) => {
                self.shares.add(client, bytes);
                Ok(ReadPermit { room: self.clone(), client, bytes })
            }
            Err(_) if has_too_much => refused(
                "your other reads use more than your share of the memory for reads; receive their responses first, \
                 or request fewer events with `limit`",
            ),
            Err(_) => refused("the memory for reads is in use; retry later, or request fewer events with `limit`"),
        }
    }
}

impl ReadBudget {
    /// Takes bytes for the answer of a service. All answers that haven't come yet have half of the memory, so services that are slow don't
    /// keep clients from reading events. Those of unknown size have half of it: others find room next to them. One is always expected,
    /// regardless of its size.
    ///
    /// # Errors
    /// Less is left, or this client has more than its share.
    pub(crate) fn expect(self: &Arc<Self>, size: AnswerSize, client: ClientBucket) -> Result<ExpectedAnswer, Refused> {
        let (bytes, bytes_max) = match size {
            AnswerSize::Usual(bytes) => (bytes, self.bytes_max / 2),
            AnswerSize::AtMost(bytes) => (bytes, self.bytes_max / 4),
        };
        let bytes = bytes.min(bytes_max);
        let with = |expected: usize| expected.checked_add(bytes).filter(|sum| *sum <= bytes_max);
        let refused = || {
            let detail = "the memory for answers of services is in use: retry later. Nothing was sent";
            Problem::boxed(ErrorCode::Overload, detail)
        };
        self.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with).map_err(|_| refused())?;
        let permit = self.take(bytes, client).map_err(|_| {
            // This wakes nothing: those that wait would do the same for ever.
            self.expected.fetch_sub(bytes, Ordering::Relaxed);
            refused()
        })?;
        Ok(ExpectedAnswer { permit, bytes })
    }
}

impl ExpectedAnswer {
    /// Says whether [`Self::received`] would succeed for so many bytes.
    pub(crate) fn room(&self) -> Box<dyn Fn(usize) -> bool> {
        let (room, client, own) = (self.permit.room.clone(), self.permit.client, self.bytes);
        Box::new(move |bytes| {
            let more = bytes.saturating_sub(own);
            let fits = || room.taken.load(Ordering::Relaxed) + more <= room.bytes_max;
            more == 0 || (fits() && room.quotas(more).admit(client))
        })
    }

    /// Its memory, now that it has come and has this many bytes.
    ///
    /// # Errors
    /// It has more than were expected, and less is left, or this client has more than its share.
    pub(crate) fn received(mut self, bytes: usize) -> Result<ReadPermit, Refused> {
        let client = self.permit.client;
        let mut permit = self.permit.split(usize::MAX, client);
        permit.resize(bytes)?;
        Ok(permit)
    }
}

impl Drop for ExpectedAnswer {
    fn drop(&mut self) {
        let before = self.permit.room.expected.fetch_sub(self.bytes, Ordering::Relaxed);
        debug_assert!(before >= self.bytes, "only counted bytes are released");
        self.permit.room.waiting.wake_first();
    }
}

impl ReadPermit {
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Releases all but so many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let back = self.bytes.saturating_sub(bytes);
        if back == 0 {
            return;
        }
        self.room.shares.take(self.client, back);
        let before = self.room.taken.fetch_sub(back, Ordering::Relaxed);
        debug_assert!(before >= back, "only counted bytes are released");
        self.bytes -= back;
        self.room.waiting.wake_first();
    }

    /// Takes more, or releases some, up to so many bytes.
    fn resize(&mut self, bytes: usize) -> Result<(), Refused> {
        match bytes.checked_sub(self.bytes) {
            Some(more) if more > 0 => {
                let mut more = self.room.take(more, self.client)?;
                self.bytes += std::mem::take(&mut more.bytes);
            }
            _ => self.shrink(bytes),
        }
        Ok(())
    }

    /// Passes so many of its bytes, or all, to a client.
    pub(crate) fn split(&mut self, bytes: usize, client: ClientBucket) -> Self {
        let bytes = bytes.min(self.bytes);
        self.room.shares.take(self.client, bytes);
        self.room.shares.add(client, bytes);
        self.bytes -= bytes;
        Self { room: self.room.clone(), client, bytes }
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

    #[test]
    fn split_permit_counts_for_its_client() {
        let room = Arc::new(ReadBudget::new(&Budgets::FULL));
        let [one, other] = some();
        let mut batch = room.take(100, one).unwrap();
        let part = batch.split(60, other);
        assert_eq!((batch.bytes(), part.bytes(), batch.split(60, other).bytes()), (40, 60, 40));
        assert_eq!([one, other].map(|client| room.shares.of(client)), [0, 60]);
        drop((batch, part));
        assert_eq!((room.taken.load(Ordering::Relaxed), room.shares.of(other)), (0, 0));
    }

    #[test]
    fn expected_answers_have_half_of_the_memory() {
        let room = Arc::new(ReadBudget::new(&Budgets::FULL));
        let [one, other] = some();
        let half = READS_IN_FLIGHT_BYTES_MAX / 2;
        let unknown = room.expect(AnswerSize::AtMost(usize::MAX), one).unwrap();
        assert_eq!(room.shares.of(one), half / 2);
        assert!(
            room.expect(AnswerSize::AtMost(1), other).is_err()
                && room.expect(AnswerSize::Usual(half / 2), other).is_ok()
        );
        drop(unknown);
        let first = room.expect(AnswerSize::Usual(half - 1), one).unwrap();
        assert_eq!(room.expect(AnswerSize::Usual(2), other).unwrap_err().code, ErrorCode::Overload);
        let second = room.expect(AnswerSize::Usual(1), other).unwrap();
        assert!(first.room()(half + 1000) && !first.room()(2 * half));
        // It is larger than expected. While it is received, others may be expected.
        let first = first.received(half + 1000).unwrap();
        assert_eq!((first.bytes(), room.taken.load(Ordering::Relaxed)), (half + 1000, half + 1001));
        assert_eq!(
            room.expect(AnswerSize::Usual(half - 1), other).unwrap_err().code,
            ErrorCode::Overload,
            "the whole memory"
        );
        assert!(second.received(half).is_err());
        drop(first);
        assert_eq!((room.taken.load(Ordering::Relaxed), room.expected.load(Ordering::Relaxed)), (0, 0));
        let all = room.expect(AnswerSize::Usual(usize::MAX), one).unwrap();
        assert_eq!(room.shares.of(one), half, "one answer is always asked for");
        assert_eq!(all.received(3).unwrap().bytes(), 3);
        assert_eq!((room.taken.load(Ordering::Relaxed), room.shares.of(one)), (0, 0));
    }

    #[test]
    fn last_memory_is_for_clients_below_their_share() {
        let room = Arc::new(ReadBudget::new(&Budgets::FULL));
        let [hog, one] = some();
        let _held: Vec<_> = std::iter::from_fn(|| room.take(READ_BYTES_MAX, hog).ok()).collect();
        let quotas = room.quotas(1);
        assert!(!quotas.admit(hog) && quotas.admit(one));
        assert!(ReadBudget::new(&Budgets::FULL).quotas(1).admit(hog));
    }
}
