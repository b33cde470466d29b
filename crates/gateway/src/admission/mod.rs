//! Admission: how much each shard has to do, and how much the process accepts. It counts bytes that have arrived and are not durable yet.

mod client_quota;
mod fair_semaphore;
mod read_budget;
mod reservation;
pub(crate) mod wait_queue;

#[cfg(test)]
pub(crate) use client_quota::tests::two_clients;
pub(crate) use client_quota::{ClientBucket, ClientBuckets};
pub(crate) use fair_semaphore::FairSemaphore;
pub(crate) use read_budget::{AnswerSize, ExpectedAnswer, ReadBudget, ReadPermit};

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::error_code::ErrorCode;
use crate::problem::{Problem, Refused};
use client_quota::{BucketTotals, BucketUsage};
use http1::BodyBudget;
use reservation::{Reservation, Reservations};
use wait_queue::WaitQueue;

/// The body of a request, counted in a permit.
pub(crate) type Body<'a> = http1::Body<'a, Permit<'a>>;

/// What one shard has to do.
#[derive(Debug, Default)]
pub(crate) struct Load {
    bytes: AtomicUsize,
    connections: AtomicUsize,
    shares: BucketUsage,
    forecast: Reservations,
}

/// The loads of all shards, and the limit for them together.
#[derive(Debug)]
pub(crate) struct Admission {
    loads: Box<[Load]>,
    bytes_max: usize,
    /// Bytes of one request.
    request_bytes_max: usize,
    clients: ClientBuckets,
    waiting: WaitQueue,
}

/// If more than so many eighths of the room are in use, the rest is for clients with less than their share.
const EIGHTHS_FOR_ALL: usize = 7;

impl Admission {
    pub(crate) fn new(shards: usize, bytes_max: usize, request_bytes_max: usize, batch_wait: Duration) -> Self {
        Self {
            loads: (0..shards).map(|_| Load::default()).collect(),
            bytes_max,
            request_bytes_max,
            clients: ClientBuckets::default(),
            waiting: WaitQueue::new(batch_wait),
        }
    }

    /// The bucket of a client.
    pub(crate) fn bucket(&self, source: &str, client: IpAddr) -> ClientBucket {
        self.clients.of(source, client)
    }

    /// The batches that wait for room.
    pub(crate) const fn waiting(&self) -> &WaitQueue {
        &self.waiting
    }

    /// The shard that has the least to do: in bytes, then in connections.
    pub(crate) fn least_loaded(&self) -> usize {
        let load = |shard: &usize| {
            let Load { bytes, connections, .. } = &self.loads[*shard];
            (bytes.load(Ordering::Relaxed), connections.load(Ordering::Relaxed))
        };
        (0..self.loads.len()).min_by_key(load).unwrap_or_default()
    }

    pub(crate) fn connection_opened(&self, shard: usize) {
        self.loads[shard].connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_closed(&self, shard: usize) {
        let before = self.loads[shard].connections.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a connection closes once");
    }

    /// The open connections of one shard.
    pub(crate) fn connections_of(&self, shard: usize) -> usize {
        self.loads[shard].connections.load(Ordering::Relaxed)
    }

    /// The bytes in flight of one shard.
    pub(crate) fn bytes_of(&self, shard: usize) -> usize {
        self.loads[shard].bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> usize {
        self.loads.iter().map(|load| load.connections.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.loads.iter().map(|load| load.bytes.load(Ordering::Relaxed)).sum()
    }

    /// A permit for no bytes yet, for a request of `client` that begins in the second `now`.
    pub(crate) const fn permit(&self, shard: usize, client: ClientBucket, now: u64) -> Permit<'_> {
        Permit { admission: self, shard, client, now, bytes: 0, expected: None }
    }

    /// A permit for a batch that has `announced` a length or hasn't.
    ///
    /// # Errors
    /// There is no room for it in addition to the batches that have begun.
    pub(crate) fn batch_permit(
        &self,
        shard: usize,
        client: ClientBucket,
        announced: Option<usize>,
        now: u64,
    ) -> Result<Permit<'_>, Refused> {
        let forecast = &self.loads[shard].forecast;
        let own = forecast.of_batch(announced);
        let others: usize = self.loads.iter().map(|load| load.forecast.bytes(now)).sum();
        let permit = self.permit(shard, client, now);
        permit.check(self.bytes().saturating_add(others).saturating_add(own))?;
        Ok(Permit { expected: Some(forecast.expect(own, client, now)), ..permit })
    }

    /// Whether a request that needs so many bytes at the same time, as body and as records, can ever be admitted.
    ///
    /// # Errors
    /// It can't.
    pub(crate) fn check_alone(&self, bytes: usize) -> Result<(), Refused> {
        if bytes <= self.bytes_max { Ok(()) } else { Err(never_fits(self.bytes_max)) }
    }

    fn sums(&self, now: u64) -> BucketTotals {
        let mut sums = BucketTotals::new();
        for Load { shares, forecast, .. } in &self.loads {
            shares.add_to(&mut sums);
            forecast.add_to(&mut sums, now);
        }
        sums
    }
}

/// The bytes of one request, counted from their arrival until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    admission: &'a Admission,
    shard: usize,
    client: ClientBucket,
    /// The second in which the request began.
    now: u64,
    bytes: usize,
    /// What a batch is still expected to grow by.
    expected: Option<Reservation>,
}

fn too_many() -> Refused {
    Problem::boxed(ErrorCode::Overload, "too many bytes are waiting to become durable; retry later")
}

fn never_fits(bytes_max: usize) -> Refused {
    let detail = format!(
        "the request takes more than {bytes_max} bytes of memory as a body or as records, the limit of this server: \
         split it into smaller requests"
    );
    Problem::boxed(ErrorCode::TooLarge, detail)
}

fn more_than_others() -> Refused {
    let detail = "your other requests use more than your share of the in-flight limit; retry later";
    Problem::boxed(ErrorCode::Overload, detail)
}

impl Permit<'_> {
    /// Counts bytes that have arrived. They are counted before they are compared, so shards that ask concurrently may reject too much but
    /// never accept too much.
    ///
    /// # Errors
    /// They are too many for the process, or for their client, for now; or they never fit.
    pub(crate) fn admit(&mut self, bytes: usize) -> Result<(), Refused> {
        let load = &self.admission.loads[self.shard];
        load.bytes.fetch_add(bytes, Ordering::Relaxed);
        load.shares.add(self.client, bytes);
        self.bytes += bytes;
        if self.bytes > self.admission.request_bytes_max {
            return Err(never_fits(self.admission.request_bytes_max));
        }
        let Some(expected) = &mut self.expected else { return self.check(self.admission.bytes()) };
        load.forecast.received(expected, bytes);
        if self.admission.bytes() <= self.admission.bytes_max {
            // A batch that has begun continues regardless of its client's other requests: otherwise the work so far would be lost.
            return Ok(());
        }
        // The batch would have grown further: the next ones reserve more.
        load.forecast.learn(self.bytes.saturating_mul(2).min(self.admission.bytes_max / 2));
        Err(too_many())
    }

    /// Whether so many bytes may be in flight for this request to be among them.
    fn check(&self, in_flight: usize) -> Result<(), Refused> {
        let Admission { bytes_max, .. } = *self.admission;
        if in_flight > bytes_max {
            return Err(too_many());
        }
        if in_flight <= bytes_max / 8 * EIGHTHS_FOR_ALL {
            return Ok(());
        }
        let has_too_much = self.admission.sums(self.now).has_too_much(self.client, self.bytes, bytes_max);
        if has_too_much { Err(more_than_others()) } else { Ok(()) }
    }

    /// The client of the request.
    pub(crate) const fn client(&self) -> ClientBucket {
        self.client
    }

    /// Releases all but so many bytes: the rest is no longer in memory.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let load = &self.admission.loads[self.shard];
        let back = self.bytes.saturating_sub(bytes);
        let before = load.bytes.fetch_sub(back, Ordering::Relaxed);
        debug_assert!(before >= back, "only counted bytes are released");
        load.shares.take(self.client, back);
        self.bytes -= back;
        if let Some(expected) = &mut self.expected {
            load.forecast.received(expected, usize::MAX);
        }
        // A permit without bytes makes no room: waiting batches would wake each other for ever.
        if back > 0 || self.expected.is_some() {
            self.admission.waiting.wake_first();
        }
    }

    fn load(&self) -> &'_ Load {
        &self.admission.loads[self.shard]
    }

    /// The batch is complete: its size counts for the reservations of later ones.
    pub(crate) fn complete(&self) {
        self.load().forecast.learn(self.bytes);
    }
}

impl BodyBudget for Permit<'_> {
    type Error = Refused;

    fn admit(&mut self, bytes: usize) -> Result<(), Refused> {
        Permit::admit(self, bytes)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Two clients in different buckets.
    fn clients(admission: &Admission) -> [ClientBucket; 2] {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let one = admission.bucket("", address);
        let mut others = (0..).map(|number| admission.bucket(&number.to_string(), address));
        [one, others.find(|other| *other != one).expect("few fall together")]
    }

    #[test]
    fn last_room_goes_to_clients_with_least() {
        let admission = Admission::new(2, 80, 80, Duration::ZERO);
        let [hog, other] = clients(&admission);
        let mut events: Vec<_> = (0..7).map(|_| admission.permit(0, hog, 1)).collect();
        assert!(events.iter_mut().all(|event| event.admit(10).is_ok()));
        assert_eq!(admission.permit(1, hog, 1).admit(1).unwrap_err().code, ErrorCode::Overload);
        assert!(admission.batch_permit(1, hog, Some(1), 1).is_err());
        assert!(admission.permit(1, other, 1).admit(1).is_ok());
        assert!(admission.batch_permit(1, other, Some(10), 1).is_ok());
        drop(events);
        assert!(admission.permit(0, hog, 1).admit(80).is_ok(), "alone it may have all");
    }

    #[test]
    fn byte_limit_spans_all_shards() {
        let admission = Admission::new(2, 10, 10, Duration::ZERO);
        let [a, b] = clients(&admission);
        let (mut one, mut other) = (admission.permit(0, a, 1), admission.permit(1, b, 1));
        assert!(one.admit(6).is_ok() && other.admit(4).is_ok());
        assert_eq!(other.admit(1).unwrap_err().code, ErrorCode::Overload);
        drop(other);
        assert_eq!(admission.bytes(), 6);
        assert!(admission.permit(1, b, 1).admit(4).is_ok());
    }

    #[test]
    fn batch_is_admitted_if_reservations_leave_room() {
        let admission = Admission::new(2, 100, 100, Duration::ZERO);
        let [a, b] = clients(&admission);
        let mut first = admission.batch_permit(0, a, Some(60), 1).unwrap();
        assert_eq!(admission.batch_permit(1, b, Some(50), 1).unwrap_err().code, ErrorCode::Overload);
        assert!(admission.batch_permit(1, b, Some(40), 1).is_ok(), "its permit is dropped immediately");
        assert!(first.admit(60).is_ok() && admission.permit(1, b, 1).admit(40).is_ok());
        assert!(admission.batch_permit(1, b, Some(41), 1).is_err());
        first.complete();
        drop(first);
        assert_eq!(admission.bytes(), 0);
        let usual = admission.batch_permit(0, a, None, 1).unwrap();
        assert!(admission.batch_permit(0, a, None, 1).is_err(), "60 are usual");
        assert!(admission.batch_permit(0, a, None, 3).is_ok(), "and the other one has had its time");
        drop(usual);
    }

    #[test]
    fn batch_shed_midway_raises_the_next_reservation() {
        let admission = Admission::new(1, 100, 100, Duration::ZERO);
        let [a, _] = clients(&admission);
        let mut batch = admission.batch_permit(0, a, None, 1).unwrap();
        let mut event = admission.permit(0, a, 1);
        assert!(event.admit(80).is_ok() && batch.admit(30).is_err());
        drop((event, batch));
        let mut event = admission.permit(0, a, 1);
        assert!(event.admit(60).is_ok());
        assert!(admission.batch_permit(0, a, None, 1).is_err());
    }

    #[test]
    fn oversized_request_is_rejected_and_excess_retried() {
        let admission = Admission::new(1, 100, 50, Duration::ZERO);
        let [a, b] = clients(&admission);
        let mut other = admission.permit(0, b, 1);
        assert!(other.admit(40).is_ok());
        let mut batch = admission.batch_permit(0, a, None, 1).unwrap();
        assert!(batch.admit(30).is_ok());
        let refused = batch.admit(21).unwrap_err();
        assert_eq!(refused.code, ErrorCode::TooLarge);
        assert!(refused.detail.contains("more than 50 bytes"), "{}", refused.detail);
        drop(batch);
        let mut events = [a, b, a].map(|client| admission.permit(0, client, 1));
        let codes = events.each_mut().map(|event| event.admit(25).err().map(|refused| refused.code));
        assert_eq!(codes, [None, Some(ErrorCode::Overload), Some(ErrorCode::Overload)]);
    }

    #[test]
    fn connection_goes_to_least_loaded_shard() {
        let admission = Admission::new(2, 10, 10, Duration::ZERO);
        let [a, _] = clients(&admission);
        admission.connection_opened(0);
        assert_eq!(admission.least_loaded(), 1);
        let mut permit = admission.permit(1, a, 1);
        assert!(permit.admit(1).is_ok());
        assert_eq!(admission.least_loaded(), 0);
    }
}
