//! Limits connections: so many for all clients together, and so many for each of them. The intake, the admin port, a writer's port and the
//! connections that are drained after an early response all use it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bits of an IPv6 address that one client may choose as it likes (RFC 6177: a site gets a /64 at least).
const HOST_BITS: u32 = 64;

/// Limits the connections of a port.
#[derive(Debug)]
pub struct ConnectionLimiter {
    all: Arc<Semaphore>,
    of_client_max: AtomicUsize,
    taken: Arc<Taken>,
}

type Taken = Mutex<Seats>;

#[derive(Debug, Default)]
struct Seats {
    of_clients: HashMap<IpAddr, usize>,
    /// How many connections may be open in all.
    all: usize,
    /// Places beyond a lowered limit, which are removed when they are released.
    too_many: usize,
}

fn lock(taken: &Taken) -> MutexGuard<'_, Seats> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Room for one more connection.
#[derive(Debug)]
pub struct ConnectionSlot(OwnedSemaphorePermit);

/// The permit of an open connection. It is released when this is dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    of_all: Option<OwnedSemaphorePermit>,
    client: IpAddr,
    taken: Arc<Taken>,
}

impl ConnectionLimiter {
    /// So many connections for all clients together, and for each of them.
    #[must_use]
    pub fn new(all: usize, of_client_max: usize) -> Self {
        let taken = Arc::new(Mutex::new(Seats { all, ..Seats::default() }));
        Self { all: Arc::new(Semaphore::new(all)), of_client_max: AtomicUsize::new(of_client_max), taken }
    }

    /// Sets other limits. Open connections stay open.
    pub fn limit(&self, all: usize, of_client_max: usize) {
        self.of_client_max.store(of_client_max, Ordering::Relaxed);
        let mut seats = lock(&self.taken);
        if all >= seats.all {
            let more = all - seats.all;
            let kept = more.min(seats.too_many);
            seats.too_many -= kept;
            self.all.add_permits(more - kept);
        } else {
            let fewer = seats.all - all;
            seats.too_many += fewer - self.all.forget_permits(fewer);
        }
        seats.all = all;
    }

    /// Waits for room. `None` never happens.
    pub async fn free(&self) -> Option<ConnectionSlot> {
        self.all.clone().acquire_owned().await.ok().map(ConnectionSlot)
    }

    /// Room for one connection, if there is any now.
    #[must_use]
    pub fn try_free(&self) -> Option<ConnectionSlot> {
        self.all.clone().try_acquire_owned().ok().map(ConnectionSlot)
    }

    /// Connections that are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        lock(&self.taken).of_clients.values().sum()
    }

    /// Whether a client has as many connections as one client may have.
    #[must_use]
    pub fn has_share(&self, address: IpAddr) -> bool {
        let taken = lock(&self.taken);
        let places = taken.of_clients.get(&client_of(address)).copied().unwrap_or(0);
        places >= self.of_client_max.load(Ordering::Relaxed)
    }

    /// Waits until no connection is open.
    pub async fn all_closed(&self) {
        let all = lock(&self.taken).all;
        let _ = self.all.acquire_many(u32::try_from(all).unwrap_or(u32::MAX)).await;
    }

    /// Gives the room to a client, unless it has as many connections as one client may have.
    pub fn take(&self, free: ConnectionSlot, address: IpAddr) -> Option<ConnectionPermit> {
        let client = client_of(address);
        let mut taken = lock(&self.taken);
        let places = taken.of_clients.entry(client).or_insert(0);
        if *places >= self.of_client_max.load(Ordering::Relaxed) {
            return None;
        }
        *places += 1;
        Some(ConnectionPermit { of_all: Some(free.0), client, taken: self.taken.clone() })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(places) = taken.of_clients.get_mut(&self.client) {
            *places -= 1;
            if *places == 0 {
                taken.of_clients.remove(&self.client);
            }
        }
        if taken.too_many > 0
            && let Some(permit) = self.of_all.take()
        {
            taken.too_many -= 1;
            permit.forget();
        }
    }
}

/// What counts as one client: an IPv4 address, or an IPv6 network.
#[must_use]
pub fn client_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_connections_are_limited_and_released() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let places = ConnectionLimiter::new(4, 2);
        let take = |address: &str| places.take(runtime.block_on(places.free()).unwrap(), address.parse().unwrap());
        let first = take("10.0.0.1").unwrap();
        let second = take("10.0.0.1").unwrap();
        assert!(take("10.0.0.1").is_none());
        let other = take("10.0.0.2").unwrap();
        assert_eq!(places.all.available_permits(), 1, "the one that wasn't given is free");
        drop(first);
        let first = take("10.0.0.1").unwrap();
        drop([first, second, other]);
        assert!(lock(&places.taken).of_clients.is_empty(), "nothing is remembered of who left");
    }

    #[test]
    fn connection_limit_can_grow_and_shrink() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let places = ConnectionLimiter::new(3, 3);
        let take = || places.take(runtime.block_on(places.free()).unwrap(), [10, 0, 0, 1].into()).unwrap();
        let mut taken = vec![take(), take(), take()];
        places.limit(1, 3);
        taken.pop();
        assert_eq!(places.all.available_permits(), 0, "there are two too many, and one has left");
        places.limit(2, 3);
        taken.pop();
        assert_eq!(places.all.available_permits(), 1);
        places.limit(5, 1);
        assert_eq!(places.all.available_permits(), 4);
        assert!(places.take(runtime.block_on(places.free()).unwrap(), [10, 0, 0, 1].into()).is_none());
        taken.pop();
        assert_eq!(places.all.available_permits(), 5);
    }

    #[test]
    fn ipv6_network_is_one_client() {
        let client = |text: &str| client_of(text.parse().unwrap());
        assert_eq!(client("2001:db8:1:2:3:4:5:6"), client("2001:db8:1:2::1"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
