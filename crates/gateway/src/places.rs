//! The places of open connections: so many for all, and so many for one client.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bits of an IPv6 address that one client may choose as it likes (RFC 6177: a site gets a /64 at least).
const HOST_BITS: u32 = 64;

/// The places of a gateway's connections.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    of_client_max: usize,
    taken: Arc<Taken>,
}

type Taken = Mutex<HashMap<IpAddr, usize>>;

fn lock(taken: &Taken) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A place among all; nobody sits there yet.
pub(crate) struct Free(OwnedSemaphorePermit);

/// The place of an open connection. It is given back when this is dropped.
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    client: IpAddr,
    taken: Arc<Taken>,
}

impl Places {
    pub(crate) fn new(all: usize, of_client_max: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), of_client_max, taken: Arc::default() }
    }

    /// Waits for a place among all. `None` will never be.
    pub(crate) async fn free(&self) -> Option<Free> {
        self.all.clone().acquire_owned().await.ok().map(Free)
    }

    /// Gives the place to a client, unless it has as many as one may have.
    pub(crate) fn take(&self, free: Free, address: IpAddr) -> Option<Place> {
        let client = client_of(address);
        let mut taken = lock(&self.taken);
        let places = taken.entry(client).or_insert(0);
        if *places >= self.of_client_max {
            return None;
        }
        *places += 1;
        Some(Place { _of_all: free.0, client, taken: self.taken.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(places) = taken.get_mut(&self.client) {
            *places -= 1;
            if *places == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

/// What counts as one client: an IPv4 address, or an IPv6 network.
pub(crate) fn client_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_so_many_places_and_gets_them_back() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let places = Places::new(4, 2);
        let take = |address: &str| places.take(runtime.block_on(places.free()).unwrap(), address.parse().unwrap());
        let first = take("10.0.0.1").unwrap();
        let second = take("10.0.0.1").unwrap();
        assert!(take("10.0.0.1").is_none());
        let other = take("10.0.0.2").unwrap();
        assert_eq!(places.all.available_permits(), 1, "the one that wasn't given is free");
        drop(first);
        let first = take("10.0.0.1").unwrap();
        drop([first, second, other]);
        assert!(lock(&places.taken).is_empty(), "nothing is remembered of who left");
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let client = |text: &str| client_of(text.parse().unwrap());
        assert_eq!(client("2001:db8:1:2:3:4:5:6"), client("2001:db8:1:2::1"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
