//! Connections whose client has not shown yet that it may use the port. Each of them is closed early if others need its place. So a client
//! without a token can't keep others out by holding connections.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::oneshot;

use crate::connections::{ConnectionLimiter, ConnectionPermit, client_of};

/// The newcomers among a port's connections.
#[derive(Debug)]
pub struct Newcomers {
    limiter: Arc<ConnectionLimiter>,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// Of each client, by the order of their arrival.
    of_clients: HashMap<IpAddr, BTreeMap<u64, Waiting>>,
    arrived: u64,
}

#[derive(Debug)]
struct Waiting {
    _permit: ConnectionPermit,
    /// Dropped to close the connection.
    _open: oneshot::Sender<()>,
}

/// The place of a connection: a newcomer's until it is admitted. It is freed when this is dropped.
#[derive(Debug)]
pub struct Place {
    all: Arc<Newcomers>,
    client: IpAddr,
    number: u64,
    kept: OnceLock<Waiting>,
}

/// Ends when another connection needs the place, or when the place is dropped.
pub type Closed = oneshot::Receiver<()>;

impl Newcomers {
    /// The newcomers of a port with these limits.
    #[must_use]
    pub fn new(limiter: Arc<ConnectionLimiter>) -> Arc<Self> {
        Arc::new(Self { limiter, list: Mutex::default() })
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place of a connection that has arrived. If there is no room for it, a newcomer loses its place. It is the oldest of the same client
    /// if that has its share, else the oldest of the client that has the most. If all places belong to admitted connections, it waits for one.
    /// `None` if the client has its share by admitted connections.
    pub async fn arrive(self: &Arc<Self>, address: IpAddr) -> Option<(Place, Closed)> {
        let client = client_of(address);
        if self.limiter.has_share(address) && !self.close_one(Some(client)) {
            return None;
        }
        let slot = match self.limiter.try_free() {
            Some(slot) => slot,
            None => {
                self.close_one(None);
                self.limiter.free().await?
            }
        };
        let permit = self.limiter.take(slot, address)?;
        let (open, closed) = oneshot::channel();
        let mut list = self.list();
        list.arrived += 1;
        let number = list.arrived;
        list.of_clients.entry(client).or_default().insert(number, Waiting { _permit: permit, _open: open });
        Some((Place { all: self.clone(), client, number, kept: OnceLock::new() }, closed))
    }

    /// Closes the oldest newcomer of this client, or else of the client that has the most. `false` if there is none.
    fn close_one(&self, client: Option<IpAddr>) -> bool {
        let mut list = self.list();
        let oldest = |(client, waiting): (&IpAddr, &BTreeMap<u64, Waiting>)| Some((*client, *waiting.keys().next()?));
        let found = match client {
            Some(client) => list.of_clients.get_key_value(&client),
            None => list.of_clients.iter().max_by_key(|(_, waiting)| waiting.len()),
        };
        found.and_then(oldest).and_then(|(client, number)| list.remove(client, number)).is_some()
    }
}

impl List {
    fn remove(&mut self, client: IpAddr, number: u64) -> Option<Waiting> {
        let waiting = self.of_clients.get_mut(&client)?;
        let removed = waiting.remove(&number);
        if waiting.is_empty() {
            self.of_clients.remove(&client);
        }
        removed
    }
}

impl Place {
    /// The client has shown that it may use the port: its connection keeps its place, unless another connection has it already.
    pub fn admit(&self) {
        if self.kept.get().is_none()
            && let Some(waiting) = self.all.list().remove(self.client, self.number)
        {
            // It was removed from the list once, so this is the first value.
            let _ = self.kept.set(waiting);
        }
    }

    /// Whether its client was admitted.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        self.kept.get().is_some()
    }

    /// Its client, as `client_of` distinguishes clients.
    #[must_use]
    pub const fn client(&self) -> IpAddr {
        self.client
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.list().remove(self.client, self.number);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    fn newcomers(all: usize, of_client: usize) -> Arc<Newcomers> {
        Newcomers::new(Arc::new(ConnectionLimiter::new(all, of_client)))
    }

    fn is_closed((_, closed): &mut (Place, Closed)) -> bool {
        closed.try_recv() == Err(TryRecvError::Closed)
    }

    #[tokio::test]
    async fn oldest_newcomer_of_greediest_client_yields_its_place() {
        let newcomers = newcomers(4, 3);
        let arrive = async |last| newcomers.arrive([10, 0, 0, last].into()).await.unwrap();
        let (mut other, mut first, mut second) = (arrive(1).await, arrive(2).await, arrive(2).await);
        let mut admitted = arrive(3).await;
        admitted.0.admit();
        assert!(![&mut first, &mut second, &mut other, &mut admitted].into_iter().any(is_closed));
        let late = arrive(4).await;
        assert!(is_closed(&mut first) && ![&mut second, &mut other, &mut admitted].into_iter().any(is_closed));
        first.0.admit();
        assert!(!first.0.is_admitted() && admitted.0.is_admitted(), "the first one's place is another's");
        drop((first, other, second, late, admitted));
        assert_eq!(newcomers.limiter.open(), 0);
    }

    #[tokio::test]
    async fn admitted_connection_keeps_its_place_and_counts_for_its_client() {
        let newcomers = newcomers(4, 2);
        let arrive = async || newcomers.arrive([10, 0, 0, 1].into()).await;
        let [first, second] = [arrive().await.unwrap(), arrive().await.unwrap()];
        first.0.admit();
        second.0.admit();
        assert!(arrive().await.is_none(), "a client whose admitted connections use its share gets no other");
        drop(first);
        let mut waiting = arrive().await.unwrap();
        let next = arrive().await.unwrap();
        assert!(is_closed(&mut waiting), "a newcomer yields to the next of its client");
        drop((second, waiting, next));
        assert_eq!(newcomers.limiter.open(), 0);
    }
}
