//! Quotas of clients: how much of what is in flight each has. When little room is left, a client with more than an equal share is rejected
//! first, so one client can't keep others out.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use net::connections::client_of;

/// Clients fall into so many buckets; those few in one bucket have one quota together.
const BUCKETS: usize = 256;

/// The bucket of a client: of the source of its token, or without one of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientBucket(u8);

/// Finds the buckets of clients, by a hash that they can't foresee.
#[derive(Debug, Default)]
pub(crate) struct ClientBuckets(RandomState);

impl ClientBuckets {
    /// The bucket of a client with this source, which is empty without a token, and this address.
    pub(crate) fn of(&self, source: &str, client: IpAddr) -> ClientBucket {
        let hash = if source.is_empty() { self.0.hash_one(client_of(client)) } else { self.0.hash_one(source) };
        let [first, ..] = hash.to_le_bytes();
        ClientBucket(first)
    }
}

/// Amounts by bucket: bytes, or requests.
#[derive(Debug)]
pub(crate) struct BucketUsage([AtomicUsize; BUCKETS]);

impl Default for BucketUsage {
    fn default() -> Self {
        Self([const { AtomicUsize::new(0) }; BUCKETS])
    }
}

impl BucketUsage {
    pub(crate) fn add(&self, client: ClientBucket, bytes: usize) {
        self.0[usize::from(client.0)].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn take(&self, client: ClientBucket, bytes: usize) {
        self.0[usize::from(client.0)].fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What one bucket has.
    pub(crate) fn of(&self, client: ClientBucket) -> usize {
        self.0[usize::from(client.0)].load(Ordering::Relaxed)
    }

    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|bytes| bytes.store(0, Ordering::Relaxed));
    }

    /// Adds these amounts to the totals.
    pub(crate) fn add_to(&self, sums: &mut BucketTotals) {
        sums.0.iter_mut().zip(&self.0).for_each(|(sum, bytes)| *sum += bytes.load(Ordering::Relaxed));
    }
}

/// Amounts by bucket, over all shards.
pub(crate) struct BucketTotals([usize; BUCKETS]);

impl BucketTotals {
    pub(crate) const fn new() -> Self {
        Self([0; BUCKETS])
    }

    /// Whether a client has more than its share of `all`, in addition to `own` bytes of the request in question. There is always one share
    /// more than there are clients, so a new client finds room.
    pub(crate) fn has_too_much(&self, client: ClientBucket, own: usize, all: usize) -> bool {
        let clients = self.0.iter().filter(|bytes| **bytes > 0).count();
        self.0[usize::from(client.0)].saturating_sub(own) > all / (clients + 1)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Two clients in different buckets.
    pub(crate) fn two_clients() -> [ClientBucket; 2] {
        let clients = ClientBuckets::default();
        let address = |last| clients.of("", IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)));
        let other = (2..255).map(address).find(|other| *other != address(1));
        [address(1), other.unwrap()]
    }

    #[test]
    fn source_outranks_address_and_ipv6_uses_network() {
        let clients = ClientBuckets::default();
        let address = |last| IpAddr::V4(Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(clients.of("shop", address(1)).0, clients.of("shop", address(2)).0);
        let differ = (0..=255).map(|last| clients.of("", address(last)).0).collect::<std::collections::BTreeSet<_>>();
        assert!(differ.len() > 100, "{}", differ.len());
        let network = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 0, 0, 0, last]);
        assert_eq!(clients.of("", network(1)).0, clients.of("", network(2)).0);
    }

    #[test]
    fn client_above_its_share_is_over_quota() {
        let shares = BucketUsage::default();
        shares.add(ClientBucket(1), 60);
        shares.add(ClientBucket(2), 20);
        let mut sums = BucketTotals::new();
        shares.add_to(&mut sums);
        assert!(sums.has_too_much(ClientBucket(1), 0, 100));
        assert!(!sums.has_too_much(ClientBucket(1), 30, 100), "most of it is this request's");
        assert!(!sums.has_too_much(ClientBucket(2), 0, 100) && !sums.has_too_much(ClientBucket(3), 0, 100));
        shares.take(ClientBucket(1), 60);
        let mut sums = BucketTotals::new();
        shares.add_to(&mut sums);
        assert!(!sums.has_too_much(ClientBucket(1), 0, 100));
    }
}
